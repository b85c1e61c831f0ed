"""A full disk loses nothing, doubles nothing and makes no dead letter; who meets it says which disk it is, and to make room.

The disks are small file systems that are mounted for the test. `make crash` fills each place under a whole job.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rollup.checkpoint.records import Record, RecordFolder
from rollup.core.errors import SystemFault, refused_by_system
from rollup.hosts.spark.watching.failures import cause, of_query
from rollup.sinks.base import Held
from rollup.sinks.delta import DeltaSink
from rollup.sinks.files import FileSink
from rollup.sinks.sql import SqlSink
from rollup.sources.base import DEAD
from rollup.stores.dead_letters import DeadLetters
from tests.job.full_disks import PLACES, NotMounted, SmallDisk, mounted
from tests.job.jobs import ROOT

ROWS = pa.table({"k": ["a", "b"] * 2000, "n": list(range(4000))})
LETTER = pa.Table.from_pylist([{name: None for name in DEAD.names} | {"stream": "S", "raw": "x" * 4000}], DEAD)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    """A file system of 2 MB."""
    try:
        with mounted(tmp_path / "small", 2) as found:
            yield found
    except NotMounted:
        pytest.skip("only root may mount a small file system")


def _sink(kind: Callable[[dict[str, Any]], Any], **options: str) -> Callable[[Path, int], None]:
    def write(folder: Path, number: int) -> None:
        place = {name: value.format(folder=folder) for name, value in options.items()}
        kind({"name": "S", **place}).write(ROWS, "line", Held(number * ROWS.num_rows))

    return write


def _records(folder: Path, number: int) -> None:
    records = RecordFolder(folder / "records")
    records.create()
    file = records.write_rows(f"open-{number}.arrow", ROWS)
    records.write(Record(number, {}, {"DAYS": file}, {}))


WRITERS: dict[str, Callable[[Path, int], None]] = {
    "a sink of files": _sink(FileSink, path="{folder}/files"),
    "a sink in Delta": _sink(DeltaSink, path="{folder}/delta"),
    "a sink in SQLite": _sink(SqlSink, url="sqlite:///{folder}/out.db", table="t"),
    "dead letters": lambda folder, number: DeadLetters(folder).append(LETTER, "q", number),
    "open rows and the record": _records,
}


@pytest.mark.parametrize("writer", WRITERS)
def test_who_writes_names_the_disk_and_the_cure_and_goes_on_when_there_is_room(writer: str, disk: SmallDisk) -> None:
    write = WRITERS[writer]
    write(disk.path, 1)
    disk.fill(left=0)
    with pytest.raises(SystemFault) as refused:
        write(disk.path, 2)
    said = str(refused.value)
    assert str(disk.path) in said and "make room there, then start again" in said, said
    assert "No space left on device" in said or "database or disk is full" in said, said
    disk.free()
    write(disk.path, 2)


def test_a_note_that_cannot_be_read_now_is_not_called_damaged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sink = FileSink({"path": tmp_path, "name": "S"})
    sink.write(ROWS, "line", Held(ROWS.num_rows))

    def refuse(path: Path) -> bytes:
        raise OSError(24, "Too many open files", str(path))

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(SystemFault, match="Too many open files") as refused:
        sink.held("line")
    assert "is damaged: T" not in str(refused.value) and "another folder" not in str(refused.value)


class OfPostgres(Exception):
    """As psycopg2 has it: the words are the server's, and a code says what they mean."""

    def __init__(self, code: str, said: str) -> None:
        super().__init__(said)
        self.pgcode = code


@pytest.mark.parametrize(
    ("code", "said", "known"),
    [
        ("53100", 'could not write to file "base/5/t3": wrote only 4096 of 8192 bytes', "No space left on device"),
        ("53200", "out of memory", "Cannot allocate memory"),
        ("58030", "could not read block 0", "Input/output error"),
        ("22003", "value out of range", None),
        ("23505", "duplicate key", None),
    ],
)
def test_what_a_server_lacks_is_told_by_its_code(code: str, said: str, known: str | None) -> None:
    refused = refused_by_system("A in PostgreSQL", OfPostgres(code, said))
    assert (refused and refused.message) == (known and f"A in PostgreSQL: {known}")
    assert refused is None or ("make room" in str(refused)) == (code == "53100")


def test_a_file_without_a_name_is_said_with_the_disks_that_have_no_room(disk: SmallDisk, tmp_path: Path) -> None:
    met = Exception("Traceback (most recent call last):\n…\nOSError: [Errno 28] No space left on device\n")
    found = cause(met)
    assert isinstance(found, SystemFault) and found.message == "the job stopped: No space left on device"
    disk.fill(left=0)
    told = str(of_query(met, tmp_path / "c", disks={"spark.local.dir": disk.path, "temporary files": tmp_path}))
    assert f"full is that of spark.local.dir ({disk.path})" in told and "temporary files (" not in told


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("place", PLACES)
def test_a_job_whose_disk_is_full_ends_with_its_name_and_the_next_start_has_each_event_once(
    tmp_path: Path, place: str, disk: SmallDisk
) -> None:
    """In a process of its own, which forks. `disk` skips where nothing can be mounted."""
    spark = ["--spark"] if place in ("spark", "checkpoint") else []
    command = [sys.executable, "-m", "tests.job.full_disks", str(tmp_path), place, "--rounds", "2", *spark]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=560)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert done.returncode == 0 and len(found) == 2, done.stderr[-2000:]
    for each in found:
        assert (each["again"], each.get("differ")) == (0, []), each
        assert each["code"] == 0 or ("make room" in each["said"] and "Traceback" not in each["said"][-200:]), each
    assert any(each["code"] for each in found), "none met the full disk"
