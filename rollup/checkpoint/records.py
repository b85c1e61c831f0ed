"""The commit record of a Delta store: one small file a commit, whose appearance is the commit.

A record pins the version of every level's table and names the files of open rows, so a reader that opens the newest
record sees one consistent moment. A record's name can be made once (`rollup.core.objects.create`): of two writers that
make the same commit one is refused. A folder must be on a file system with atomic `link` (local or POSIX-shared), an
object store must refuse a second object of one name, which is tried before the first commit.
"""

from __future__ import annotations

import json
import re
import time
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc

from rollup.checkpoint.checksums import named, sealed, unsealed, verified
from rollup.core.copies import near
from rollup.core.errors import FencedError, StoreError, not_done, refused_by_system
from rollup.core.objects import ObjectPath, create, names_in, replace_durably, write_durably

_RETIRED = "retired.json"
_DIGITS = 12
_ROWS = re.compile(r"open-.+-(\d+)\.arrow")
_DRAFT = re.compile(r"\.commit-(\d+)\.json\.\d+")
_CHUNK = 1 << 18
"""Open rows that are read at once where all of them would be too many."""
KEPT = 32
"""How many records are kept; a reader that opened an older one than that must open a newer one."""


def home(tables: Path, name: str) -> Path:
    """The folder of what is kept about an aggregation, or about statements, beside a configuration's tables.

    >>> home(Path("tables"), "TradeAgg").as_posix()
    'tables/_rollup/TradeAgg'
    """
    return tables / "_rollup" / name


@dataclass(frozen=True)
class Record:
    """What one commit made visible; `sums` has for each table a digest of what its log lists at the version."""

    number: int
    versions: Mapping[str, int]
    open: Mapping[str, str | list[str]]
    clocks: Mapping[str, int | None]
    resume: int | None = None
    source: Mapping[str, Any] = field(default_factory=dict[str, Any])
    sums: Mapping[str, str] = field(default_factory=dict[str, str])

    def files(self, name: str) -> list[str]:
        """The files of a table's open rows: one, or one a shard."""
        found = self.open.get(name, [])
        return [found] if isinstance(found, str) else found

    @property
    def split(self) -> bool:
        """Whether open rows are kept by shard."""
        return any(not isinstance(found, str) for found in self.open.values())


_FIELDS = [each.name for each in fields(Record)]
_UNREADABLE = (OSError, ValueError, TypeError, KeyError, IndexError, pa.ArrowException)
"""What Arrow raises over damaged bytes, and what we do."""


def _checked(record: Record, number: int) -> Record:
    """A record whose parts are of the kinds they must be, so that whoever uses it need not ask. Raises ValueError."""
    numbers = (record.number, *record.versions.values(), *(c for c in record.clocks.values() if c is not None))
    names = [name for table in record.open for name in record.files(table)]
    marks = record.source.values()
    if not all(type(each) is int for each in numbers) or record.number != number:
        raise ValueError("its numbers are none, or another commit's")
    if not all(isinstance(name, str) and name == Path(name).name for name in names):
        raise ValueError("its open rows are no names of files")
    if not all(isinstance(mark, dict) and {"query", "batch", "arrivals"} <= mark.keys() for mark in marks):
        raise ValueError("its marks are none")
    return record


class RecordFolder:
    """The records and open rows of one aggregation, or of statements; `cure` is what helps against damage of the latter."""

    def __init__(self, folder: Path, cure: str | None = None) -> None:
        self.folder = folder
        self._cure = cure

    def create(self) -> None:
        """Make the folder. Raises StoreError when that is not allowed, or a name there can be made twice."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            if isinstance(self.folder, ObjectPath):
                self._refuse_unsafe(self.folder / f"probe-{uuid.uuid4().hex}")
        except OSError as problem:
            raise StoreError(
                f"cannot create {self.folder}: {problem.strerror}", hint="the job needs to write there"
            ) from None

    def _refuse_unsafe(self, probe: Path) -> None:
        """Raise StoreError where an object store takes a second object of one name."""
        create(probe, b"first")
        try:
            create(probe, b"second")
        except FileExistsError:
            return
        finally:
            probe.unlink(missing_ok=True)
        raise StoreError(
            f"{self.folder}: the object store takes a second object of one name although it was told not to",
            hint="two jobs could both commit there: a store is needed that obeys `If-None-Match: *` when an object is put",
        )

    def numbers(self) -> list[int]:
        """The numbers of all records, oldest first. Raises StoreError when the folder cannot be read."""
        try:
            found = names_in(self.folder)
        except FileNotFoundError:
            return []
        except OSError as problem:
            raise self._closed(self.folder, problem) from None
        numbered = (name[7:-5] for name in found if name.startswith("commit-") and name.endswith(".json"))
        return sorted(int(number) for number in numbered if number.isdecimal() and len(number) == _DIGITS)

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
        """One record. Raises FileNotFoundError when it is gone, StoreError when it is damaged or cannot be read."""
        path = self.path(number)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            raise
        except OSError as problem:
            raise self._closed(path, problem) from None
        try:
            return _checked(Record(**unsealed(content, _FIELDS)), number)
        except (ValueError, TypeError, AttributeError) as problem:
            raise StoreError(
                f"commit record {path} is damaged: {problem}",
                hint=self._cure
                or "remove it to fall back to the one before, then `rollup verify`; or `rollup recover`",
            ) from None

    def _closed(self, path: Path, problem: OSError) -> StoreError:
        hint = "who asks, and the job, need to read it"
        return not_done(f"cannot read {path}", problem, hint)

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
        try:
            create(path, sealed(asdict(record)))
        except FileExistsError:
            raise self._taken(record.number) from None
        except OSError as problem:
            raise not_done(f"cannot write {path}", problem) from None

    def refuse_taken(self, number: int) -> None:
        """Raise FencedError when the number is taken; `write` does so too, but only after the work is done."""
        if self.path(number).is_file():
            raise self._taken(number)

    def _taken(self, number: int) -> FencedError:
        return FencedError(
            f"commit {number} of {self.folder.name} was made by another job",
            hint="only one job may write an aggregation",
        )

    def write_rows(self, name: str, rows: pa.Table, seal: bool = True) -> str:
        """A file of open rows, and its name, now with a checksum; it means nothing until a record has the name."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, rows.schema, options=pa.ipc.IpcWriteOptions(compression="lz4")) as writer:
            writer.write_table(rows, max_chunksize=_CHUNK)
        content = sink.getvalue().to_pybytes()
        name = named(name, content) if seal else name
        try:
            write_durably(self.folder / name, content)
        except OSError as problem:
            raise not_done(f"cannot write {self.folder / name}", problem) from None
        return name

    def read_rows(self, names: str | Sequence[str]) -> pa.Table:
        """The open rows of a level, whose files a record names. Raises StoreError when one is missing or damaged."""
        if not isinstance(names, str):
            return pa.concat_tables([self.read_rows(name) for name in names])
        try:
            file = near(self.folder / names)
            known = verified(file)
            with pa.memory_map(str(file)) as source:
                found = pa.ipc.open_file(source).read_all()
                if not known:  # from before there were checksums: at least nothing reads past its end
                    found.validate(full=True)
                return found
        except _UNREADABLE as problem:
            raise self._unreadable(names, problem) from None

    def batches(self, name: str, columns: Sequence[str] | None = None) -> Iterator[pa.RecordBatch]:
        """The open rows of a file piece by piece, or only some columns of them. Raises StoreError as `read_rows`."""
        try:
            path = near(self.folder / name)
            verified(path)
            with pa.OSFile(str(path)) as source:
                file = pa.ipc.open_file(source)
                if columns is not None:
                    chosen = [file.schema.get_field_index(column) for column in columns]
                    file = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=chosen))
                for index in range(file.num_record_batches):
                    yield file.get_batch(index)
        except _UNREADABLE as problem:
            raise self._unreadable(name, problem) from None

    def require(self, names: Sequence[str]) -> None:
        """Raises StoreError as `read_rows` where one of some files is missing or damaged; reads no rows."""
        for name in names:
            try:
                verified(near(self.folder / name))
            except _UNREADABLE as problem:
                raise self._unreadable(name, problem) from None

    def _unreadable(self, name: str, problem: Exception) -> StoreError:
        what = f"{'open rows' if self._cure is None else 'the state'} {self.folder / name} cannot be read"
        said = problem.strerror or problem if isinstance(problem, OSError) else problem
        return refused_by_system(what, problem) or StoreError(
            f"{what}: {said}", hint=self._cure or "`rollup recover` rebuilds them"
        )

    def retired(self) -> frozenset[str]:
        """Columns that the tables keep although they are no longer declared."""
        try:
            content = (self.folder / _RETIRED).read_bytes()
        except FileNotFoundError:
            return frozenset()
        except OSError as problem:
            raise self._closed(self.folder / _RETIRED, problem) from None
        try:
            before = content.startswith(b"[")  # as it was before there were checksums
            return frozenset(map(str, json.loads(content) if before else unsealed(content, ["columns"])["columns"]))
        except (ValueError, TypeError, KeyError) as problem:
            raise StoreError(
                f"{self.folder / _RETIRED} is damaged: {problem}",
                hint='put {"columns": [...]} there with the names of the columns that were dropped',
            ) from None

    def retire(self, columns: Collection[str]) -> None:
        """Let the tables keep columns that are no longer declared."""
        if columns or (self.folder / _RETIRED).is_file():
            replace_durably(self.folder / _RETIRED, sealed({"columns": sorted(columns)}))

    def tidy(self, before: float | None = None) -> None:
        """Remove records beyond the KEPT newest, older ones than the last before a time, and open rows that no kept
        record names.

        An older record that is damaged is no reason for a job to stop: what it names stays as long as it stays.
        """
        numbers = self.numbers()
        for number in numbers[:-1]:
            if number not in numbers[-KEPT:] or (before is not None and self.made(number) <= before):
                self.path(number).unlink(missing_ok=True)
        numbers = self.numbers()
        try:
            kept = [self.read(number) for number in numbers[-KEPT:]]
        except StoreError:
            return
        # Drafts of a writer that was killed; one that lives has a new number.
        for draft in self.folder.glob(".commit-*.json.*"):
            if (made := _DRAFT.fullmatch(draft.name)) and int(made[1]) < numbers[-1]:
                draft.unlink(missing_ok=True)
        named = {name for record in kept for table in record.open for name in record.files(table)}
        newest = kept[-1].number if kept else 0
        for path in self.folder.glob("open-*.arrow"):
            made = _ROWS.fullmatch(path.name)  # what others have put there is theirs
            if made and path.name not in named and int(made[1]) <= newest and path.is_file():
                path.unlink(missing_ok=True)

    def clear(self) -> None:
        """Remove all records: only the tables remain."""
        for number in self.numbers():
            self.path(number).unlink()

    def path(self, number: int) -> Path:
        """Where the record of a commit is."""
        return self.folder / f"commit-{number:0{_DIGITS}d}.json"


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
