"""Every bit of our own files matters: whichever is flipped, the file is refused by name, or says what it said."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rollup.checkpoint.checksums import unsealed
from rollup.checkpoint.marks import after
from rollup.checkpoint.records import KEPT, Record, RecordFolder
from rollup.core.errors import StoreError
from rollup.hosts.spark.rewind import note_plans, plans_of
from rollup.lifecycle.book import Book, Page

ROWS = pa.table(
    {
        "AGG_TIMESTAMP": pa.array([1_600_000_000_000 + n for n in range(40)], pa.int64()),
        "k": pa.array([None if n % 7 == 0 else f"k{n}" for n in range(40)], pa.string()),
        "AGG_SUM_v": pa.array([n / 4 for n in range(40)], pa.float64()),
    }
)
MARK = after(None, "3fb2", 6, 700, {"offsets": {"0": 812, "1": 33}})
RECORD = Record(
    7, {"SECONDS": 11, "LATE": 0}, {"SECONDS": "open-SECONDS-000000000007.arrow"}, {"SECONDS": 5}, None, {"S": MARK}
)


def flips(content: bytes, most: int = 1500) -> Iterator[bytes]:
    """Every content that differs in one bit, or so many of them."""
    bits = range(len(content) * 8)
    for bit in bits if len(bits) <= most else random.Random(1).sample(bits, most):
        yield content[: bit // 8] + bytes([content[bit // 8] ^ 1 << bit % 8]) + content[bit // 8 + 1 :]


def refused_or_same(path: Path, read: Callable[[], Any]) -> int:
    """Read a file with each bit flipped; how many of these were refused."""
    content, wanted, refused = path.read_bytes(), read(), 0
    for damaged in flips(content):
        path.write_bytes(damaged)
        try:
            assert read() == wanted, damaged
        except StoreError as problem:
            assert path.name in problem.message and problem.hint
            refused += 1
    path.write_bytes(content)
    return refused


@pytest.fixture
def folder(tmp_path: Path) -> RecordFolder:
    return RecordFolder(tmp_path)


def test_a_flipped_bit_of_a_commit_record_is_never_another_commit(folder: RecordFolder) -> None:
    folder.write(RECORD)
    assert folder.read(7) == RECORD
    assert refused_or_same(folder.path(7), lambda: folder.read(7)) > 1400


def test_a_flipped_bit_of_open_rows_is_never_other_rows(folder: RecordFolder) -> None:
    name = folder.write_rows("open-SECONDS-000000000007.arrow", ROWS)
    assert folder.read_rows(name) == ROWS
    path = folder.folder / name
    assert refused_or_same(path, lambda: folder.read_rows(name)) == min(1500, path.stat().st_size * 8)
    read = lambda: pa.Table.from_batches(folder.batches(name))  # noqa: E731
    assert refused_or_same(path, read) == min(1500, path.stat().st_size * 8)


def test_a_flipped_bit_of_what_was_decided_is_never_another_decision(tmp_path: Path, folder: RecordFolder) -> None:
    book = Book(tmp_path)
    book.write(Page({"keys": {"k": "string"}}, {"AGG_SUM_v": 5}, {}, {"SECONDS": 9}, ({"what": "purge", "at": 1},)))
    assert refused_or_same(tmp_path / "book.json", book.page) > 1000
    folder.retire(["AGG_SUM_v", "AGG_MIN_v"])
    assert refused_or_same(tmp_path / "retired.json", folder.retired) > 300
    note_plans(tmp_path, [("ab12cd34", 17)])
    assert refused_or_same(tmp_path / "rollup-plans.json", lambda: plans_of(tmp_path)) > 300


def test_files_from_before_there_were_checksums_are_read(tmp_path: Path, folder: RecordFolder) -> None:
    folder.path(7).write_text(json.dumps(asdict(RECORD)))
    assert folder.read(7) == RECORD
    with (
        pa.OSFile(str(tmp_path / "open-SECONDS-000000000007.arrow"), "wb") as sink,
        pa.ipc.new_file(sink, ROWS.schema) as file,
    ):
        file.write_table(ROWS)
    assert folder.read_rows("open-SECONDS-000000000007.arrow") == ROWS
    (tmp_path / "retired.json").write_text('["AGG_SUM_v"]')
    assert folder.retired() == {"AGG_SUM_v"}
    (tmp_path / "book.json").write_text('{"declaration": null, "purged": {"SECONDS": 9}}')
    assert Book(tmp_path).page() == Page(purged={"SECONDS": 9})


def test_a_flipped_bit_of_an_old_file_is_no_traceback(tmp_path: Path, folder: RecordFolder) -> None:
    folder.path(7).write_text(json.dumps(asdict(RECORD)))
    for damaged in flips(folder.path(7).read_bytes()):
        folder.path(7).write_bytes(damaged)
        try:
            folder.read(7)
        except StoreError as problem:
            assert "is damaged" in problem.message
    name = "open-SECONDS-000000000007.arrow"
    folder.write_rows(name, ROWS, seal=False)
    for damaged in flips((tmp_path / name).read_bytes()):
        (tmp_path / name).write_bytes(damaged)
        try:
            folder.read_rows(name)
        except StoreError as problem:
            assert "cannot be read" in problem.message


@pytest.mark.parametrize("share", [0, 0.1, 0.5, 0.9])
def test_what_was_written_half_is_refused(folder: RecordFolder, share: float) -> None:
    folder.write(RECORD)
    content = folder.path(7).read_bytes()
    folder.path(7).write_bytes(content[: int(share * len(content))])
    with pytest.raises(StoreError, match=r"commit-000000000007.json is damaged"):
        folder.newest()


def test_names_of_others_are_no_records(folder: RecordFolder) -> None:
    folder.write(RECORD)
    for name in ("commit-x.json", "commit-.json", "commit-000000000009.json.bak", "commit-12.json"):
        (folder.folder / name).write_text("{}")
    assert folder.numbers() == [7]


def test_a_damaged_older_record_does_not_stop_a_job_and_goes_in_time(folder: RecordFolder) -> None:
    for number in range(1, KEPT + 1):
        folder.write(Record(number, {}, {}, {}))
    folder.path(2).write_text("{")
    folder.tidy()
    assert len(folder.numbers()) == KEPT
    folder.write(Record(KEPT + 1, {}, {}, {}))
    folder.write(Record(KEPT + 2, {}, {}, {}))
    folder.tidy()
    assert folder.numbers() == list(range(3, KEPT + 3))


def test_an_object_with_keys_of_others_is_none_of_ours() -> None:
    with pytest.raises(ValueError, match="it has b"):
        unsealed(b'{"a": 1, "b": 2}', ["a"])
