"""Reading a Delta store without Spark: plan the files from the log's statistics, read them with DuckDB.

What depends only on a table's version (which files, their time ranges) is kept between questions, so a question costs
what its answer costs.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

import pyarrow as pa

from rollup.aggregation.state import State
from rollup.checkpoint.checksums import says_its_sum
from rollup.checkpoint.records import Record, RecordFolder, home, identity
from rollup.core.calendar import Duration, to_local
from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.core.identifiers import quoted
from rollup.plan.aggregation import COMMIT, TIMESTAMP, Aggregation
from rollup.retrieval.as_of import AsOf
from rollup.retrieval.questions import Ask, Question, Sides, late_rows, open_rows
from rollup.retrieval.relations import open_extents
from rollup.retrieval.since import Interval, Mark
from rollup.stores.base import Damaged, Loaded, Size, Snapshot, ledger_schema
from rollup.stores.delta.change import sql_type
from rollup.stores.delta.index import FileIndex
from rollup.stores.delta.missing import check_listed, damaged, fetched, files_at, reading, require_whole, uncommitted
from rollup.stores.delta.schema import as_before, check_columns, conformed, lacking, ledger_table
from rollup.stores.delta.session import Sessions, parquet
from rollup.stores.delta.standing import standing

__all__ = ["DeltaReader", "DeltaSnapshot", "FileIndex"]


_KEPT = 4
"""File lists of so many versions of a table are kept: readers may be a commit or two behind."""
_LATE = "LATE"
_CHECKED_BYTES = 4 << 20
"""How large a file may be that is checked before a question reads it: some milliseconds."""
_serials = itertools.count()


class DeltaReader:
    """Reads the tables of one aggregation; keeps file lists and open rows of the newest commit it has seen.

    May be asked by several threads at once: each has a connection of its own, and a snapshot never changes.
    """

    def __init__(self, aggregation: Aggregation, engine: ColumnEngine, root: Path) -> None:
        self.aggregation = aggregation
        self.engine = engine
        self.root = root
        self.records = RecordFolder(home(root, aggregation.name))
        self.sessions = Sessions(engine)
        self._lock = threading.RLock()
        self._indexes: dict[str, dict[int, _Known]] = {}
        self._last: DeltaSnapshot | None = None
        self._checked = set[str]()

    def snapshot(self) -> DeltaSnapshot:
        """The newest commit. Raises StoreError when there is none."""
        last, numbers = self._last, self.records.numbers()
        if last is not None and numbers and numbers[-1] == last.number and self._is_of(last):
            return last
        with self._lock:
            while True:
                record = self.records.newest()
                if record is None:
                    raise uncommitted(self.root, self.aggregation)
                seen = self.records.identity(record.number)
                if self._last is not None and self._last.number == record.number and self._last.seen == seen:
                    return self._last
                if seen and self.records.newest() == record:  # so it is this one that was looked at
                    self._last = DeltaSnapshot(self, record, seen)
                    return self._last

    def as_of(self, moment: AsOf) -> DeltaSnapshot:
        """An earlier commit. Raises StoreError where it is not kept."""
        newest, numbers = self.snapshot(), self.records.numbers()
        if moment.commit is not None:
            found = moment.commit if moment.commit in numbers else None
        else:
            found = max((n for n in numbers if self.records.made(n) * 1000 <= (moment.instant or 0)), default=None)
        if found == newest.number:
            return newest
        try:
            if found is not None:
                return DeltaSnapshot(self, self.records.read(found), self.records.identity(found))
        except FileNotFoundError:  # a writer has just removed it
            numbers = self.records.numbers()
        since = f"{to_local(int(self.records.made(numbers[0]) * 1000), self.aggregation.zone):%Y-%m-%d %H:%M:%S}"
        raise StoreError(
            f"{self.aggregation.name} has no such commit: kept are {numbers[0]} (made at {since} {self.aggregation.zone}) to {numbers[-1]}",
            hint="of earlier commits nothing is kept, and nothing is known of later ones",
        )

    def _is_of(self, snapshot: DeltaSnapshot) -> bool:
        """Whether a snapshot's record is still the one of its number: after a rebuild it may be another."""
        return self.records.identity(snapshot.number) == snapshot.seen

    def check(self, files: Iterable[str]) -> None:
        """Raises StoreError when one of the files is damaged. Each is looked at once, and large ones are not: a question
        reads little of them, and should not wait for all of their bytes."""
        fresh = [file for file in files if file not in self._checked]
        if fresh:
            copies = zip(fresh, fetched(fresh), strict=True)
            require_whole(file for file, copy in copies if identity(Path(copy))[2:] <= (_CHECKED_BYTES,))
            self._checked.update(fresh)

    def index(self, name: str, version: int) -> FileIndex:
        """The files of a table, by its suffix, at a version."""
        return self._known(name, version).index

    def lacking(self, name: str, version: int) -> list[str]:
        """SQL for each declared value that a level's table does not have yet at a version."""
        return self._known(name, version).lacking

    def stored(self, name: str, version: int) -> pa.Schema:
        """The columns that a table has at a version."""
        return self._known(name, version).stored

    def _known(self, name: str, version: int) -> _Known:
        path = self.root / f"{self.aggregation.name}_{name}"
        with self._lock:
            known = self._indexes.setdefault(name, {})
            seen = identity(_log(path, version))
            if version not in known or known[version].seen != seen:
                newest = max(
                    (old for old, one in known.items() if old < version and one.leads_on(path, old)), default=None
                )
                found = None if newest is None else known[newest].index.after(path, newest, version)
                if newest is None or found is None:
                    found, stored = files_at(path, version)
                    known[version] = _Known(found, seen, stored, self._lacking(name, path, stored))
                else:
                    known[version] = replace(known[newest], index=found, seen=seen)
                for old in sorted(known)[:-_KEPT]:
                    del known[old]
            return known[version]

    def _lacking(self, name: str, path: Path, stored: pa.Schema) -> list[str]:
        if name == _LATE:
            check_columns(path, stored, ledger_table(self.aggregation), stored.names)
            return []
        return [as_before(f, sql_type(self.engine, f)) for f in lacking(path, stored, self.aggregation)]


@dataclass(frozen=True)
class _Known:
    """The files of a version of a table, and which log file it was read by: a new table counts from 0 again.

    `stored`: its columns; `lacking` is SQL for the declared values that it does not have.
    """

    index: FileIndex
    seen: tuple[int, ...]
    stored: pa.Schema
    lacking: list[str]

    def leads_on(self, path: Path, version: int) -> bool:
        """Whether the table still has this version, and later ones have the same columns: none but more files."""
        return not self.lacking and bool(self.seen) and identity(_log(path, version)) == self.seen


def _log(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020d}.json"


class DeltaSnapshot:
    """One commit: table versions pinned by its record, and its open rows."""

    def __init__(self, reader: DeltaReader, record: Record, seen: tuple[int, ...] = ()) -> None:
        self.number = record.number
        self.serial = next(_serials)
        self.record = record
        self.seen = seen
        self._reader = reader
        self._indexes: dict[str, FileIndex] = {}
        self._standing: dict[str, int] = {}

    @property
    def in_files(self) -> DeltaSnapshot:
        return self

    def close(self) -> None:
        """Files stay for a while after they are replaced: nothing is held."""

    @cached_property
    def state(self) -> State:
        """Clocks and open rows of this commit."""
        aggregation, records = self._reader.aggregation, self._reader.records
        empty = pa.Table.from_batches([], aggregation.state_schema)
        rows = {
            level: conformed(records.read_rows(self.record.open[level.table_suffix]), aggregation.state_schema)
            if level.table_suffix in self.record.open
            else empty
            for level in aggregation.levels
        }
        return State(
            {level: self.record.clocks.get(level.table_suffix) for level in aggregation.levels},
            rows,
            self.record.resume,
        )

    def loaded(self) -> Loaded:
        """The state and the source marks of this commit."""
        return Loaded(self.number, self.state, self.record.source)

    def rows(self, level: Duration, start: int | None = None, end: int | None = None) -> pa.Table:
        """Stored rows with start <= AGG_TIMESTAMP < end."""
        schema = self._reader.aggregation.table_schema
        files = self.files(level, start, end)
        if not files:
            return schema.empty_table()
        names = ", ".join(quoted(name) for name in schema.names)
        bounds = {"low": -(2**63) if start is None else start, "high": 2**63 - 1 if end is None else end}
        sql = (
            f'SELECT {names} FROM {self._relation(level, files)} WHERE "{TIMESTAMP}" >= $low AND "{TIMESTAMP}" < $high'
        )
        require_whole(files)
        with self._reader.engine.use(), reading(lambda: files):
            return self._reader.sessions.session().run(sql, bounds).cast(schema)

    def ledger(self) -> pa.Table:
        """Every late event counted."""
        return self._ledger(ledger_schema(self._reader.aggregation))

    def _ledger(self, schema: pa.Schema) -> pa.Table:
        """Columns of the ledger."""
        files = self.files_of(_LATE)
        if not files:
            return schema.empty_table()
        names = ", ".join(quoted(name) for name in schema.names)
        with self._reader.engine.use(), reading(lambda: files):
            return self._reader.sessions.session().run(f"SELECT {names} FROM {parquet(files)}", {}).cast(schema)

    def sizes(self) -> dict[Duration, Size]:
        """Rows and bytes of each level's table."""
        levels = self._reader.aggregation.levels
        indexes = {level: self.index_of(level) for level in levels}
        return {level: Size(int(index.rows.sum()), int(index.bytes.sum())) for level, index in indexes.items()}

    def extent(self, level: Duration) -> tuple[int, int] | None:
        """The least and greatest AGG_TIMESTAMP of a level's stored rows."""
        index = self.index_of(level)
        return (int(index.low.min()), int(index.high.max())) if index.paths else None

    def committed(self) -> float:
        """When this commit was made, seconds since the epoch."""
        return self._reader.records.made(self.number)

    def mark(self, commit: int | None = None) -> Mark | None:
        record, seen = self.record, self.seen
        if commit is not None and commit != self.number:
            try:
                record = self._reader.records.read(commit)
            except FileNotFoundError:
                return None
            seen = self._reader.records.identity(commit)
        levels = self._reader.aggregation.levels
        return Mark({level: record.clocks.get(level.table_suffix) for level in levels}, seen)

    def changed(self, level: Duration, earlier: Snapshot | int) -> list[Interval] | None:
        """By the log of the level's table; by the files of both where the log is gone."""
        if not isinstance(earlier, DeltaSnapshot):
            return None
        name = level.table_suffix
        if name not in earlier.record.versions:
            return None
        before, after = earlier.index_of(level), self.index_of(level)
        versions = earlier.record.versions[name], self.record.versions[name]
        found = before.touched(self._path(name), *versions)
        return before.beside(after) if found is None else found

    @cached_property
    def open(self) -> pa.Table:
        """All open rows, see `rollup.retrieval.questions.open_rows`."""
        return open_rows(self._reader.engine, self._reader.aggregation, self.state)

    def files(self, level: Duration, start: int | None = None, end: int | None = None) -> list[str]:
        """The data files of a level that can hold rows of a range."""
        return self.index_of(level).between(start, end)

    def index_of(self, level: Duration) -> FileIndex:
        """The files of a level, with their times."""
        name = level.table_suffix
        if name not in self._indexes:
            self.version(level)
        return self._listed(name)

    def _listed(self, name: str) -> FileIndex:
        """The files of a table by its suffix. Raises StoreError when its log lists others than this commit knows."""
        found = self._indexes.get(name)
        if found is None:
            version = self._version(name)
            found = self._indexes[name] = self._reader.index(name, version)
            check_listed(self._path(name), self.record, name, version, found)
        return found

    def _path(self, name: str) -> Path:
        return self._reader.root / f"{self._reader.aggregation.name}_{name}"

    def _relation(self, level: Duration, files: list[str]) -> str:
        """Files of a level as a table in SQL, with every column that is declared."""
        found, lacking = parquet(files), self._reader.lacking(level.table_suffix, self.version(level))
        return f"(SELECT *, {', '.join(lacking)} FROM {found})" if lacking else found

    def files_of(self, name: str) -> list[str]:
        """All data files of one of the tables by its suffix; none when this commit has no such table."""
        return self._listed(name).paths if name in self.record.versions else []

    def version(self, level: Duration) -> int:
        """The version of a level's table that has the rows of this commit."""
        if level.table_suffix not in self.record.versions:
            raise StoreError(
                f"the tables of {self._reader.aggregation.name} have no {level.plural}: they are of another declaration",
                hint="`rollup change CONF` says what is different",
            )
        return self._version(level.table_suffix)

    def _version(self, name: str) -> int:
        """The version of a table that is read: the newest with the rows of the pinned one."""
        found = self._standing.get(name)
        if found is None:
            found = self._standing[name] = standing(self._path(name), self.record.versions[name])
        return found

    @cached_property
    def open_extent(self) -> Mapping[Duration, tuple[int, int]]:
        """For each level that has open rows, the first and the last bucket they belong to."""
        return open_extents(self._reader.engine, self._reader.aggregation, self.open)

    def may_be_open(self, level: Duration, start: int, end: int) -> bool:
        """Whether an open row can belong to a bucket of a range."""
        extent = self.open_extent.get(level)
        return extent is not None and extent[0] < end and start <= extent[1]

    @cached_property
    def late(self) -> pa.Table:
        """The ledger as the relation `late`, see `rollup.retrieval.questions.late_rows`."""
        aggregation = self._reader.aggregation
        rows = self._ledger(ledger_schema(aggregation).append(pa.field(COMMIT, pa.int64())))
        return late_rows(self._reader.engine, aggregation, rows)

    def answer(self, question: Question, **tables: pa.Table) -> pa.Table:
        """The rows that answer a question."""
        try:
            with reading(self.all_files):
                return self._answer(question, tables)
        except StoreError:
            before = dict(self._standing)
            self._standing.clear()
            self._indexes.clear()
            if all(self._version(name) == version for name, version in before.items()):
                raise
            with reading(self.all_files):  # another program has put files together, and removed the old ones
                return self._answer(question, tables)

    def damaged(self) -> list[Damaged]:
        found = list[Damaged]()
        for name in self.record.versions:
            index = self._listed(name)
            level = next((each for each in Duration if each.table_suffix == name), None)
            for file in damaged(index.paths):
                at = index.paths.index(file)
                found.append(Damaged(self._path(name).name, level, file, int(index.low[at]), int(index.high[at])))
        return found

    def unproven(self, level: Duration, start: int, end: int) -> list[str]:
        return [file for file in self.files(level, start, end) if not says_its_sum(file)]

    def all_files(self) -> list[str]:
        """The data files of every level."""
        return [file for level in self._reader.aggregation.levels for file in self.files(level)]

    def _answer(self, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table:
        sides, files = self._sides(question)
        sql, values = question.prepared(sides)
        closed = {name: (question.relations[name], found) for name, found in files.items()}
        with self._reader.engine.use():
            relations = self._with(closed, sides is not Sides.STORED, question.late)
            session = self._reader.sessions.session()
            return session.run(f"{relations} {sql}", values, {**question.tables(), **tables})

    def inlined(self, ask: Ask, tables: dict[str, pa.Table]) -> str:
        """The question as SQL without parameters for this store's engine; what else it reads is put into `tables`."""
        sides, files = self._sides(ask)
        closed = {name: (ask.relations[name], found) for name, found in files.items()}
        relations = self._with(closed, sides is not Sides.STORED, ask.late)
        for name, rows in ask.tables().items():
            own = f"rollup_{name}_{len(tables)}"
            tables[own] = rows
            relations += f", {name} AS (SELECT * FROM {own})"
        return f"{relations} {ask.constant_sql(sides)}"

    def _sides(self, ask: Question) -> tuple[Sides, Mapping[str, list[str]]]:
        """Which sides can have rows of the answer, and the files of each relation of stored rows.

        A range without open rows, or without files, does not pay for the other side.
        """
        files = {name: self._files_in(ask, level) for name, level in ask.relations.items()}
        if not ask.sided:
            return Sides.BOTH, files
        if not any(files.values()):
            return Sides.OPEN, {}
        opened = any(self.may_be_open(level, ask.start, ask.end) for level in ask.relations.values())
        return (Sides.BOTH if opened else Sides.STORED), files

    def _files_in(self, ask: Question, level: Duration) -> list[str]:
        found = [file for start, end in ask.ranges(level) for file in self.files(level, start, end)]
        self._reader.check(found)
        return sorted(set(found))  # a log lists them in another order once it has a checkpoint

    def _with(self, closed: Mapping[str, tuple[Duration, list[str]]], opened: bool, late: bool) -> str:
        """The relations of a query, as it reads them of this commit: `closed` has a level and its files for each."""
        relations = {
            name: f"SELECT * FROM {self._relation(level, files)}" if files else self._nothing()
            for name, (level, files) in closed.items()
        }
        if opened:
            relations["open"] = f"SELECT * FROM {self._shared('open', self.open)}"
        if late:
            relations["late"] = f"SELECT * FROM {self._shared('late', self.late)}"
        return "WITH " + ", ".join(f"{name} AS NOT MATERIALIZED ({query})" for name, query in relations.items())

    def _shared(self, kind: str, rows: pa.Table) -> str:
        reader = self._reader
        return quoted(reader.sessions.share(f"{kind} of {reader.aggregation.name}", self.serial, rows))

    def _nothing(self) -> str:
        """A relation of stored rows when no file can hold one: those of the open rows that are none."""
        names = ", ".join(quoted(name) for name in self._reader.aggregation.table_schema.names)
        return f"SELECT {names} FROM {self._shared('open', self.open)} WHERE false"
