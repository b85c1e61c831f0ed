"""The pages of queries and apps show what happens: their files are written, their commands run, the output compared."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.markdown import Command, blocks, commands_of

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "docs" / "queries.md", ROOT / "docs" / "apps.md"]
COMMANDS = [(page, command) for page in PAGES for command in commands_of(page)]


def test_the_pages_have_commands_to_run() -> None:
    assert [sum(page == each for each, _ in COMMANDS) for page in PAGES] == [7, 1]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[" ".join(each.words)[:50] for _, each in COMMANDS])
@pytest.mark.few(4)
def test_a_command_of_a_page_does_what_the_page_says(page: Path, command: Command, tmp_path: Path) -> None:
    words, shown = command.words, command.output
    for block in blocks(page):
        if block.title:
            (tmp_path / block.title).write_text(block.text)
    redirected = words.index("<") if "<" in words else len(words)
    data = (tmp_path / words[redirected + 1]).read_bytes() if redirected < len(words) else b""
    ran = subprocess.run(
        [sys.executable, "-m", "rollup.cli.main", *words[1:redirected]],
        cwd=tmp_path, input=data, capture_output=True, timeout=120, check=False,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    said = ran.stderr if shown.startswith("rollup: ") else ran.stdout
    assert said.decode() == shown
    assert ran.returncode == (2 if shown.startswith("rollup: ") else 1 if b"set aside" in ran.stderr else 0)
