"""What commands print beside their answer: nothing. Each runs in a process of its own, since a process's end prints too.

A library that finds its objects alive when the process ends says so in forty lines, and nobody reads what stands above.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lifecycle.filejob import MIDNIGHT, FileJob, Place

ROOT = Path(__file__).parents[2]
QUESTION = "from TradeAgg within '2018-01-** **:**:**' per 'days' select symbol, total"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A job over files that has run."""
    made = Place(tmp_path_factory.mktemp("printed")).write()
    for day in range(2):
        made.add(*(("A", 1.0, 1, MIDNIGHT + day * 86_400_000 + second * 1000) for second in range(5)))
    FileJob(made.conf).run()
    return made.root


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["plan"], "TradeAgg"),
        (["query", QUESTION, "--format", "csv"], "A,5"),
        (["status"], "commit 2"),
        (["verify"], "every level is right"),
        (["verify", "--raw"], "every level is right"),
        (["replay", "--from", "2018-01-01", "--to", "2018-01-02"], "replay is commit"),
        (["recover"], "nothing to recover"),
        (["change"], "nothing has changed"),
        (["maintain"], "nothing to remove"),
    ],
    ids=lambda value: value[0] + ("-raw" if "--raw" in value else "") if isinstance(value, list) else "",
)
@pytest.mark.few(3)
def test_a_command_that_succeeds_prints_its_answer_and_no_word_more(place: Path, words: list[str], says: str) -> None:
    command = [sys.executable, "-m", "rollup.cli.main", words[0], "rollup.toml", *words[1:]]
    ran = subprocess.run(
        command, cwd=place, env={**os.environ, "PYTHONPATH": str(ROOT)}, capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    assert says in ran.stdout
