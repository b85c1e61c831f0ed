"""What the system refuses now (here: another open file) is no damage: whoever judges what is kept says what the system
said, and never offers to make anew, or to put aside, what is whole."""

from __future__ import annotations

import resource
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from rollup.checkpoint.records import Record, RecordFolder
from rollup.core.errors import RollupError, StoreError, SystemFault, said_by_system
from rollup.hosts.spark.recovery_points import RecoveryPoints
from rollup.lang.calcite.history import delta
from rollup.lifecycle.book import Book
from rollup.lifecycle.recover import look
from rollup.sinks.base import Held
from rollup.sinks.delta import DeltaSink
from rollup.sources.base import DEAD
from rollup.sources.file_log import logged
from rollup.stores.dead_letters import SCHEMA, DeadLetters
from rollup.stores.delta.missing import damage, emptied, files_at

ROWS = pa.table({"a": [1, 2, 3]})
TOO_MANY = "Too many open files"


@contextmanager
def no_more_files() -> Generator[None]:
    """Nothing can be opened, also when other threads of the process close what they had: no number is low enough but those of
    the standard streams."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


class Kept:
    """Something of each kind that is kept, all of it whole."""

    def __init__(self, root: Path) -> None:
        self.root, self.records = root, RecordFolder(root / "T")
        self.records.create()
        self.file = self.records.write_rows("open-DAYS-000000000001.arrow", ROWS)
        self.records.write(Record(1, {"DAYS": 0}, {"DAYS": self.file}, {}))
        self.records.retire(["b"])
        self.sink = DeltaSink({"path": root / "T_DAYS", "name": "Out"})
        self.sink.write(ROWS, "q", Held(1))
        self.letters = DeadLetters(root)
        self.letters.append(SCHEMA.empty_table().slice(0, 0), "q", 1)
        letter = {name: None for name in DEAD.names} | {"stream": "S"}
        self.letters.append(pa.Table.from_pylist([letter], DEAD), "q", 2)
        Book(root / "T").note("purge")
        (root / "offsets").mkdir()
        (root / "offsets" / "0").write_text('v1\n{"logOffset": 0}')

    def batches(self) -> object:
        return list(self.records.batches(self.file))

    def emptied(self) -> object:
        return emptied(self.root / "T_DAYS", 0, self.root / "aside", keep=True)


KINDS: dict[str, Callable[[Kept], object]] = {
    "records": lambda k: k.records.numbers(),
    "a record": lambda k: k.records.read(1),
    "open rows": lambda k: k.records.read_rows(k.file),
    "open rows piece by piece": Kept.batches,
    "retired columns": lambda k: k.records.retired(),
    "what recover looks at": lambda k: look(RecoveryPoints("T", k.root, k.records, k.root)),
    "the book": lambda k: Book(k.root / "T").page(),
    "a table": lambda k: files_at(k.root / "T_DAYS", 0),
    "the tables": lambda k: damage(k.root, "T", k.records.read(1)),
    "dead letters": lambda k: k.letters.read(),
    "the log of a query": lambda k: logged(k.root / "offsets" / "0", k.root, 0),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_the_system_refuses_to_open_is_not_called_damaged(kind: str, tmp_path: Path) -> None:
    kept, read = Kept(tmp_path), KINDS[kind]
    read(kept)  # it is whole, and what reading needs is loaded
    record = kept.records.read(1)
    kept.records.read = lambda number: record if kind == "the tables" else RecordFolder.read(kept.records, number)
    with no_more_files(), pytest.raises(SystemFault) as refused:
        read(kept)
    assert TOO_MANY in refused.value.message
    said = str(refused.value)
    assert "recover" not in said and "remove" not in said and "move" not in said, said
    read(kept)


def test_a_table_that_cannot_be_opened_now_is_not_put_aside(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    with no_more_files(), pytest.raises(SystemFault, match=TOO_MANY):
        kept.emptied()
    assert (tmp_path / "T_DAYS" / "_delta_log").is_dir() and not (tmp_path / "aside").exists()


WRITING: dict[str, Callable[[Kept], object]] = {
    "a sink": lambda k: k.sink.write(ROWS, "q", Held(2)),
    "letters taken back": lambda k: k.letters.forget("q", 1),
    "a table of history": lambda k: delta("t", k.root / "T_DAYS"),
}


@pytest.mark.parametrize("kind", WRITING)
def test_who_writes_says_in_a_word_what_the_system_said(kind: str, tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    delta("t", tmp_path / "T_DAYS")  # loads what it needs
    with no_more_files(), pytest.raises(RollupError) as refused:
        WRITING[kind](kept)
    assert refused.value.message.endswith(f": {TOO_MANY}"), refused.value.message


def test_damage_and_absence_are_not_the_systems(tmp_path: Path) -> None:
    kept = Kept(tmp_path)
    path = tmp_path / "T" / kept.file
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    assert look(RecoveryPoints("T", kept.root, kept.records, kept.root)).damaged.keys() == {1}
    path.unlink()
    assert look(RecoveryPoints("T", kept.root, kept.records, kept.root)).damaged.keys() == {1}
    with pytest.raises(StoreError, match="is gone") as gone:
        files_at(tmp_path / "nowhere", 0)
    assert not isinstance(gone.value, SystemFault)


def test_duckdb_tells_of_the_system_at_the_end_of_its_sentence() -> None:
    said: Any = duckdb.IOException('IO Error: Cannot open file "/t/x.parquet": Too many open files')
    assert said_by_system(said) == TOO_MANY
    assert said_by_system(duckdb.IOException("IO Error: No files found that match the pattern")) is None
    assert said_by_system(MemoryError()) == "Cannot allocate memory"
