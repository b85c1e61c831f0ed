"""`recover`, `status` and `verify` see all that a job goes on from: what it would refuse to start from, they refuse too."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rollup.conf import load
from rollup.core.errors import ConfigError
from rollup.hosts.local import LocalHost
from rollup.statements.committed.commits import Commits
from tests.job.jobs import ROOT, Job
from tests.job.kills import Round

Cli = Callable[..., tuple[int, str]]
COMMANDS = ("recover", "status", "verify")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Round, Job]:
    """A job with aggregations, statements and three sinks that has taken all its files."""
    one = Round(tmp_path_factory.mktemp("made"), random.Random("5-0"), files=6, statements=True)
    job = one.job("real", 3)
    code = f"from pathlib import Path; from tests.job.kills import once; once(Path({str(job.path)!r}))"
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=True)
    return one, job


@pytest.fixture
def job(made: tuple[Round, Job], tmp_path: Path) -> Job:
    """A copy of it."""
    one, job = made
    shutil.copytree(job.folder, one.folder / tmp_path.name)
    return one.job(tmp_path.name, 3)


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def newest(folder: Path, pattern: str) -> Path:
    return max(folder.glob(pattern), key=lambda path: path.name.rsplit("-", 1)[-1])


DAMAGE: dict[str, Callable[[Path], Path]] = {
    "the statements' record": lambda folder: newest(folder, "tables/_rollup/_statements/commit-*.json"),
    "the statements' state": lambda folder: newest(folder, "tables/_rollup/_statements/open-*.arrow"),
    "the note of a sink": lambda folder: newest(folder, "falls/_*.json"),
    "an entry of Spark's log": lambda folder: newest(folder, "checkpoint/S/offsets/[0-9]*"),
    "whose checkpoint it is": lambda folder: folder / "checkpoint" / "rollup.json",
}


def test_a_whole_job_is_whole_to_all_commands(job: Job, rollup: Cli) -> None:
    for command in COMMANDS:
        code, said = rollup(command, job.path)
        assert code == 0, said
        if command != "verify":
            assert "statements: commit" in said and "is whole" in said and "sink of Falls: the folder" in said


@pytest.mark.parametrize("what", DAMAGE)
@pytest.mark.few(2)
def test_what_is_damaged_is_named_by_all_commands(job: Job, rollup: Cli, what: str) -> None:
    flip(DAMAGE[what](job.folder))
    for command in COMMANDS:
        code, said = rollup(command, job.path)
        assert code == 2, (command, said)
        assert "damaged" in said or "cannot be read" in said, (command, said)
    assert rollup("verify", job.path, "--aggregation", "A0")[0] == 0, "the aggregations are whole"


ELSEWHERE: dict[str, tuple[str, str]] = {
    "rows of a sink's table": ("counts/*.parquet", "the sink of Counts"),
    "an entry of its log": ("counts/_delta_log/*.json", "the sink of Counts"),
    "rows of a sink's files": ("falls/*.parquet", "the sink of Falls"),
    "dead letters": ("tables/DEAD_LETTERS/*.parquet", "DEAD_LETTERS"),
    "an entry of their log": ("tables/DEAD_LETTERS/_delta_log/*.json", "DEAD_LETTERS"),
}
"""Files that no aggregation and no statement goes on from, and what they are of."""


@pytest.mark.parametrize("what", ELSEWHERE)
def test_a_file_of_a_sink_or_of_dead_letters_with_another_bit_is_named_by_verify(
    job: Job, rollup: Cli, what: str
) -> None:
    pattern, name = ELSEWHERE[what]
    files = sorted(job.folder.glob(pattern))
    assert files
    for file in files:
        content = bytearray(file.read_bytes())
        content[len(content) // 3] ^= 16
        file.write_bytes(content)
    code, said = rollup("verify", job.path)
    assert code and all(f"{name}: {file} is damaged" in said for file in files), said
    code, said = rollup("verify", job.path, "--json")
    named = [json.loads(line)["damaged"] for line in said.splitlines() if line.startswith('{"table"')]
    assert code and sorted(named) == [str(file) for file in files]


def test_dead_letters_of_a_damaged_file_are_not_taken_in_again(job: Job, rollup: Cli) -> None:
    (file, *_) = sorted(job.folder.glob("tables/DEAD_LETTERS/*.parquet"))
    flip(file)
    code, said = rollup("dead", job.path, "--retake")
    assert code == 2 and f"the file {file} is damaged" in said, said


def test_a_sink_that_was_taken_away_is_said_to_lack_its_rows(job: Job, rollup: Cli) -> None:
    shutil.rmtree(job.folder / "falls")
    code, said = rollup("status", job.path)
    assert code == 0 and "has 0 of" in said and "the next start brings what it lacks" in said


COUNTS = "@lang('epl') {{ insert into {0} select k, count(*) as n from S{1}; }}\n"


def counting(folder: Path, condition: str = "") -> Path:
    """An app of two blocks that count; the first counts what fulfils a condition."""
    app = "define stream S (k string, v double);\n" + COUNTS.format("A", condition) + COUNTS.format("B", "")
    source = {"kind": "json", "path": str(folder)}
    return Job(folder, source, app=app, streams=("S",), more='[sinks.A]\nkind = "files"\npath = "a"').path


def counted(path: Path, *events: tuple[str, float]) -> dict[str, list[int]]:
    """What the blocks count when some more events come."""
    conf = load(path)
    host = LocalHost(conf.program(), commits=Commits.beside(conf.tables))
    host.send("S", events)
    return {
        name: [n for given, rows in host.emitted if given == name for n in rows["n"].to_pylist()] for name in ("A", "B")
    }


def test_a_block_that_was_put_right_begins_anew_and_the_others_keep_their_state(tmp_path: Path, rollup: Cli) -> None:
    assert counted(counting(tmp_path), ("a", 1.0), ("b", 2.0)) == {"A": [1, 2], "B": [1, 2]}
    path = counting(tmp_path, "(v > 1)")
    with pytest.raises(ConfigError, match=r"'epl block' have changed.*rollup change CONF --accept"):
        counted(path, ("c", 3.0))
    code, said = rollup("change", path)
    assert code == 0 and "the statements of 'epl block' have changed: not done yet" in said
    code, said = rollup("change", path, "--accept")
    assert code == 0 and "the statements of 'epl block' have changed: begin anew" in said
    assert counted(path, ("c", 3.0)) == {"A": [1], "B": [3]}
    assert rollup("change", path) == (0, "")
