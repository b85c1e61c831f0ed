"""The commit record of a Delta store: one small file a commit, whose appearance is the commit.

A record pins the version of every level's table and names the files of open rows, so a reader that opens the newest
record sees one consistent moment. Records are created with `link`, which fails when the name exists: of two writers
that make the same commit one is refused. The folder must be on a file system with atomic `link` (local or POSIX-shared).
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from rollup.errors import FencedError, StoreError

_RETIRED = "retired.json"
_CHUNK = 1 << 18
"""Open rows that are read at once where all of them would be too many."""
KEPT = 32
"""How many records are kept; a reader that opened an older one than that must open a newer one."""


@dataclass(frozen=True)
class Record:
    """What one commit made visible."""

    number: int
    versions: Mapping[str, int]
    open: Mapping[str, str | list[str]]
    clocks: Mapping[str, int | None]
    resume: int | None = None
    source: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def files(self, name: str) -> list[str]:
        """The files of a table's open rows: one, or one a shard."""
        found = self.open.get(name, [])
        return [found] if isinstance(found, str) else found

    @property
    def split(self) -> bool:
        """Whether open rows are kept by shard."""
        return any(not isinstance(found, str) for found in self.open.values())


class RecordFolder:
    """The records and open rows of one aggregation."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def create(self) -> None:
        """Make the folder. Raises StoreError when that is not allowed."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as problem:
            raise StoreError(
                f"cannot create {self.folder}: {problem.strerror}", hint="the job needs to write there"
            ) from None

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
        path = self.path(number)
        text = path.read_text()
        try:
            return Record(**json.loads(text))
        except (ValueError, TypeError) as problem:
            raise StoreError(
                f"commit record {path} is damaged: {problem}",
                hint="remove it to fall back to the one before, then `rollup verify`; or `rollup recover`",
            ) from None

    def made(self, number: int) -> float:
        """When a record appeared, seconds since the epoch; now when it has been tidied away."""
        try:
            return self.path(number).stat().st_mtime
        except FileNotFoundError:
            return time.time()

    def identity(self, number: int) -> tuple[int, ...]:
        """Differs between a record and another that has its number, as after a rebuild; a record never changes."""
        return identity(self.path(number))

    def write(self, record: Record) -> None:
        """Make a record appear. Raises FencedError when its number is taken, StoreError when the disk refuses."""
        path = self.path(record.number)
        draft = self.folder / f".{path.name}.{os.getpid()}"
        try:
            write_durably(draft, json.dumps(asdict(record)).encode())
            os.link(draft, path)
        except FileExistsError:
            raise self._taken(record.number) from None
        except OSError as problem:
            raise StoreError(f"cannot write {path}: {problem.strerror}") from None
        finally:
            draft.unlink(missing_ok=True)

    def refuse_taken(self, number: int) -> None:
        """Raise FencedError when the number is taken; `write` does so too, but only after the work is done."""
        if self.path(number).exists():
            raise self._taken(number)

    def _taken(self, number: int) -> FencedError:
        return FencedError(
            f"commit {number} of {self.folder.name} was made by another job",
            hint="only one job may write an aggregation",
        )

    def write_rows(self, name: str, rows: pa.Table) -> None:
        """A file of open rows; it means nothing until a record names it."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(rows, max_chunksize=_CHUNK)
        try:
            write_durably(self.folder / name, sink.getvalue().to_pybytes())
        except OSError as problem:
            raise StoreError(f"cannot write {self.folder / name}: {problem.strerror}") from None

    def read_rows(self, names: str | Sequence[str]) -> pa.Table:
        """The open rows of a level, whose files a record names. Raises StoreError when one is missing or damaged."""
        if not isinstance(names, str):
            return pa.concat_tables([self.read_rows(name) for name in names])
        try:
            with pa.memory_map(str(self.folder / names)) as source:
                return pa.ipc.open_file(source).read_all()
        except (OSError, pa.ArrowInvalid) as problem:
            raise self._unreadable(names, problem) from None

    def batches(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The open rows of a file piece by piece, or only some columns of them. Raises StoreError as `read_rows`."""
        try:
            with pa.OSFile(str(self.folder / name)) as source:
                file = pa.ipc.open_file(source)
                if columns is not None:
                    chosen = [file.schema.get_field_index(column) for column in columns]
                    file = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=chosen))
                for index in range(file.num_record_batches):
                    yield file.get_batch(index)
        except (OSError, pa.ArrowInvalid) as problem:
            raise self._unreadable(name, problem) from None

    def _unreadable(self, name: str, problem: Exception) -> StoreError:
        return StoreError(
            f"open rows {self.folder / name} cannot be read: {problem}", hint="`rollup recover` rebuilds them"
        )

    def retired(self) -> frozenset[str]:
        """Columns that the tables keep although they are no longer declared."""
        try:
            return frozenset(json.loads((self.folder / _RETIRED).read_text()))
        except FileNotFoundError:
            return frozenset()
        except ValueError as problem:
            raise StoreError(
                f"{self.folder / _RETIRED} is damaged: {problem}", hint="it is a JSON list of column names"
            ) from None

    def retire(self, columns: Collection[str]) -> None:
        """Let the tables keep columns that are no longer declared."""
        if columns or (self.folder / _RETIRED).exists():
            draft = self.folder / f".{_RETIRED}.{os.getpid()}"
            write_durably(draft, json.dumps(sorted(columns)).encode())
            draft.rename(self.folder / _RETIRED)

    def tidy(self) -> None:
        """Remove records beyond the KEPT newest, and open rows that no kept record names."""
        numbers = self.numbers()
        for number in numbers[:-KEPT]:
            self.path(number).unlink(missing_ok=True)
        kept = [self.read(number) for number in numbers[-KEPT:]]
        named = {name for record in kept for table in record.open for name in record.files(table)}
        newest = kept[-1].number if kept else 0
        for path in self.folder.glob("open-*.arrow"):
            if path.name not in named and int(path.stem.rsplit("-", 1)[1]) <= newest:
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove all records: only the tables remain."""
        for number in self.numbers():
            self.path(number).unlink()

    def path(self, number: int) -> Path:
        """Where the record of a commit is."""
        return self.folder / f"commit-{number:012d}.json"


def identity(path: Path) -> tuple[int, ...]:
    """Differs between a file and another of its name, if files are written once. Empty when there is none.

    >>> identity(Path("no/such/file"))
    ()
    """
    try:
        found = path.stat()
    except OSError:
        return ()
    return found.st_ino, found.st_mtime_ns, found.st_size


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
