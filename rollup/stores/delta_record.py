"""The commit record of a Delta store: one small file a commit, whose appearance is the commit.

A record pins the version of every level's table and names the files of open rows, so a reader that opens the newest
record sees one consistent moment. Records are created with `link`, which fails when the name exists: of two writers
that make the same commit one is refused. The folder must be on a file system with atomic `link` (local or POSIX-shared).
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from rollup.errors import FencedError, StoreError

KEPT = 32
"""How many records are kept; a reader that opened an older one than that must open a newer one."""


@dataclass(frozen=True)
class Record:
    """What one commit made visible."""

    number: int
    versions: Mapping[str, int]
    open: Mapping[str, str]
    clocks: Mapping[str, int | None]
    resume: int | None = None
    source: Mapping[str, Any] = field(default_factory=dict[str, Any])


class RecordFolder:
    """The records and open rows of one aggregation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self) -> None:
        """Make the folder. Raises StoreError when that is not allowed."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise StoreError(f"cannot create {self.folder}: {problem.strerror}", hint="the job needs to write there") from None

    def numbers(self) -> list[int]:
        """The numbers of all records, oldest first."""
        try:
            names = os.listdir(self.folder)
        except FileNotFoundError:
            return []
        return sorted(int(name[7:-5]) for name in names if name.startswith("commit-") and name.endswith(".json"))

    def newest(self) -> Record | None:
        """The newest record, None when there is none. Raises StoreError when it is damaged."""
        while True:
            numbers = self.numbers()
            if not numbers:
                return None
            try:
                return self.read(numbers[-1])
            except FileNotFoundError:
                continue  # a writer has just removed it, so there are newer ones

    def read(self, number: int) -> Record:
        """One record."""
        path = self._path(number)
        text = path.read_text()
        try:
            return Record(**json.loads(text))
        except (ValueError, TypeError) as problem:
            raise StoreError(
                f"commit record {path} is damaged: {problem}",
                hint="remove it to fall back to the one before, then `rollup verify`; or `rollup recover`",
            ) from None

    def write(self, record: Record) -> None:
        """Make a record appear. Raises FencedError when its number is taken, StoreError when the disk refuses."""
        path = self._path(record.number)
        draft = self.folder / f".{path.name}.{os.getpid()}"
        try:
            write_durably(draft, json.dumps(asdict(record)).encode())
            os.link(draft, path)
        except FileExistsError:
            raise FencedError(
                f"commit {record.number} of {self.folder.name} was made by another job", hint="only one job may write an aggregation"
            ) from None
        except OSError as problem:
            raise StoreError(f"cannot write {path}: {problem.strerror}") from None
        finally:
            draft.unlink(missing_ok=True)

    def write_rows(self, name: str, rows: pa.Table) -> None:
        """A file of open rows; it means nothing until a record names it."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(rows)
        try:
            write_durably(self.folder / name, sink.getvalue().to_pybytes())
        except OSError as problem:
            raise StoreError(f"cannot write {self.folder / name}: {problem.strerror}") from None

    def read_rows(self, name: str) -> pa.Table:
        """The open rows of a file that a record names. Raises StoreError when it is missing or damaged."""
        try:
            with pa.memory_map(str(self.folder / name)) as source:
                return pa.ipc.open_file(source).read_all()
        except (OSError, pa.ArrowInvalid) as problem:
            raise StoreError(f"open rows {self.folder / name} cannot be read: {problem}", hint="`rollup recover` rebuilds them") from None

    def tidy(self) -> None:
        """Remove records beyond the KEPT newest, and open rows that no kept record names."""
        numbers = self.numbers()
        for number in numbers[:-KEPT]:
            self._path(number).unlink(missing_ok=True)
        kept = [self.read(number) for number in numbers[-KEPT:]]
        named = {name for record in kept for name in record.open.values()}
        newest = kept[-1].number if kept else 0
        for path in self.folder.glob("open-*.arrow"):
            if path.name not in named and int(path.stem.rsplit("-", 1)[1]) <= newest:
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove all records: only the tables remain."""
        for number in self.numbers():
            self._path(number).unlink()

    def _path(self, number: int) -> Path:
        return self.folder / f"commit-{number:012d}.json"


def write_durably(path: Path, content: bytes) -> None:
    """Write a file whose content has reached the disk when this returns."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
