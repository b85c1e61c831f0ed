"""Reading a Delta store without Spark: plan the files from the log's statistics, read them with DuckDB.

What depends only on a table's version (which files, their time ranges) is kept between questions, so a question costs
what its answer costs.
"""

from __future__ import annotations

import itertools
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pyarrow as pa
from deltalake import DeltaTable

from rollup.aggregation.engine import Engine
from rollup.aggregation.retrieval import Ask, Question, Sides, bucket_column, late_rows, open_rows
from rollup.aggregation.state import State
from rollup.calendar import Duration
from rollup.errors import StoreError
from rollup.plan.aggregation import COMMIT, TIMESTAMP, Aggregation
from rollup.stores.base import Loaded, Size, ledger_schema
from rollup.stores.delta_index import FileIndex
from rollup.stores.delta_record import Record, RecordFolder, identity
from rollup.stores.delta_session import Session, Sessions, parquet, quoted
from rollup.untyped import pc

__all__ = ["DeltaReader", "DeltaSnapshot", "FileIndex"]


_KEPT = 4
"""File lists of so many versions of a table are kept: readers may be a commit or two behind."""
_serials = itertools.count()


class DeltaReader:
    """Reads the tables of one aggregation; keeps file lists and open rows of the newest commit it has seen.

    May be asked by several threads at once: each has a connection of its own, and a snapshot never changes.
    """

    def __init__(self, aggregation: Aggregation, engine: Engine, root: Path) -> None:
        self.aggregation = aggregation
        self.engine = engine
        self.root = root
        self.records = RecordFolder(root / "_rollup" / aggregation.name)
        self.sessions = Sessions(engine)
        self._lock = threading.RLock()
        self._indexes: dict[str, dict[int, _Known]] = {}
        self._last: DeltaSnapshot | None = None

    def snapshot(self) -> DeltaSnapshot:
        """The newest commit. Raises StoreError when there is none."""
        last, numbers = self._last, self.records.numbers()
        if last is not None and numbers and numbers[-1] == last.number and self._is_of(last):
            return last
        with self._lock:
            while True:
                record = self.records.newest()
                if record is None:
                    raise StoreError(
                        f"{self.aggregation.name} has no commit in {self.root}", hint="start the job with `rollup run`"
                    )
                seen = self.records.identity(record.number)
                if self._last is not None and self._last.number == record.number and self._last.seen == seen:
                    return self._last
                if seen and self.records.newest() == record:  # so it is this one that was looked at
                    self._last = DeltaSnapshot(self, record, seen)
                    return self._last

    def _is_of(self, snapshot: DeltaSnapshot) -> bool:
        """Whether a snapshot's record is still the one of its number: after a rebuild it may be another."""
        return self.records.identity(snapshot.number) == snapshot.seen

    def index(self, table: Duration | str, version: int) -> FileIndex:
        """The files of a level's table, or of one by its suffix, at a version."""
        name = table.table_suffix if isinstance(table, Duration) else table
        path = self.root / f"{self.aggregation.name}_{name}"
        with self._lock:
            known = self._indexes.setdefault(name, {})
            seen = identity(_log(path, version))
            if version not in known or known[version].seen != seen:
                newest = max(
                    (old for old, one in known.items() if old < version and one.is_of(path, old)), default=None
                )
                found = None if newest is None else known[newest].index.after(path, newest, version)
                if found is None:
                    found = FileIndex.of(DeltaTable(str(path), version=version))
                known[version] = _Known(found, seen)
                for old in sorted(known)[:-_KEPT]:
                    del known[old]
            return known[version].index


@dataclass(frozen=True)
class _Known:
    """The files of a version of a table, and which log file it was read by: a new table counts from 0 again."""

    index: FileIndex
    seen: tuple[int, ...]

    def is_of(self, path: Path, version: int) -> bool:
        """Whether the table still has this version."""
        return bool(self.seen) and identity(_log(path, version)) == self.seen


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

    @cached_property
    def state(self) -> State:
        """Clocks and open rows of this commit."""
        aggregation, records = self._reader.aggregation, self._reader.records
        empty = pa.Table.from_batches([], aggregation.state_schema)
        rows = {
            level: records.read_rows(self.record.open[level.table_suffix])
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
        names = ", ".join(f'"{name}"' for name in schema.names)
        bounds = {"low": -(2**63) if start is None else start, "high": 2**63 - 1 if end is None else end}
        sql = f'SELECT {names} FROM {parquet(files)} WHERE "{TIMESTAMP}" >= $low AND "{TIMESTAMP}" < $high'
        return self._reader.sessions.session().run(sql, bounds).cast(schema)

    def ledger(self) -> pa.Table:
        """Every late event counted."""
        aggregation, version = self._reader.aggregation, self.record.versions.get("LATE")
        schema = ledger_schema(aggregation)
        if version is None:
            return schema.empty_table()
        files = self.files_of("LATE")
        names = ", ".join(quoted(name) for name in schema.names)
        return (
            self._reader.sessions.session().run(f"SELECT {names} FROM {parquet(files)}", {}).cast(schema)
            if files
            else schema.empty_table()
        )

    def sizes(self) -> dict[Duration, Size]:
        """Rows and bytes of each level's table."""
        levels = self._reader.aggregation.levels
        indexes = {level: self._index(level) for level in levels}
        return {level: Size(int(index.rows.sum()), int(index.bytes.sum())) for level, index in indexes.items()}

    def extent(self, level: Duration) -> tuple[int, int] | None:
        """The least and greatest AGG_TIMESTAMP of a level's stored rows."""
        index = self._index(level)
        return (int(index.low.min()), int(index.high.max())) if index.paths else None

    def committed(self) -> float:
        """When this commit was made, seconds since the epoch."""
        return self._reader.records.made(self.number)

    @cached_property
    def open(self) -> pa.Table:
        """All open rows, see `rollup.aggregation.retrieval.open_rows`."""
        return open_rows(self._reader.engine, self._reader.aggregation, self.state)

    def files(self, level: Duration, start: int | None = None, end: int | None = None) -> list[str]:
        """The data files of a level that can hold rows of a range."""
        return self._index(level).between(start, end)

    def _index(self, level: Duration) -> FileIndex:
        name = level.table_suffix
        found = self._indexes.get(name)
        if found is None:
            found = self._indexes[name] = self._reader.index(name, self.record.versions[name])
        return found

    def files_of(self, name: str) -> list[str]:
        """All data files of one of the tables by its suffix; none when this commit has no such table."""
        version = self.record.versions.get(name)
        return [] if version is None else self._reader.index(name, version).paths

    def version(self, level: Duration) -> int:
        """The version of a level's table in this commit."""
        return self.record.versions[level.table_suffix]

    @cached_property
    def open_extent(self) -> Mapping[Duration, tuple[int, int]]:
        """For each level that has open rows, the first and the last bucket they belong to."""
        found = {
            level: pc.min_max(self.open[bucket_column(level)]).as_py() for level in self._reader.aggregation.levels
        }
        return {level: (both["min"], both["max"]) for level, both in found.items() if both["min"] is not None}

    def may_be_open(self, level: Duration, start: int, end: int) -> bool:
        """Whether an open row can belong to a bucket of a range."""
        extent = self.open_extent.get(level)
        return extent is not None and extent[0] < end and start <= extent[1]

    @cached_property
    def late(self) -> pa.Table:
        """The ledger as the relation `late`, see `rollup.aggregation.retrieval.late_rows`."""
        aggregation, files = self._reader.aggregation, self.files_of("LATE")
        schema = ledger_schema(aggregation).append(pa.field(COMMIT, pa.int64()))
        rows = schema.empty_table()
        if files:
            names = ", ".join(quoted(name) for name in schema.names)
            rows = self._reader.sessions.session().run(f"SELECT {names} FROM {parquet(files)}", {}).cast(schema)
        return late_rows(self._reader.engine, aggregation, rows)

    def answer(self, question: Question, **tables: pa.Table) -> pa.Table:
        """The rows that answer a question."""
        session = self._reader.sessions.session()
        if isinstance(question, Ask):
            return self._ask(session, question, {**question.tables(), **tables})
        bounds = {"start": question.start, "end": question.end}
        files = self.files(question.per, question.start, question.end)
        late = {"late": self.late} if getattr(question, "late", False) else {}
        return session.run(
            f"{self._with({'closed': files}, True, False)} {question.sql()}", bounds, {**late, **tables} or None
        )

    def _ask(self, session: Session, ask: Ask, tables: Mapping[str, pa.Table]) -> pa.Table:
        """A range without open rows, or without files, does not pay for the other side."""
        sides, files = self._sides(ask)
        sql, values = ask.prepared(sides)
        return session.run(f"{self._with(files, sides is not Sides.STORED, ask.late)} {sql}", values, tables)

    def inlined(self, ask: Ask, tables: dict[str, pa.Table]) -> str:
        """The question as SQL without parameters for this store's engine; what else it reads is put into `tables`."""
        sides, files = self._sides(ask)
        relations = self._with(files, sides is not Sides.STORED, ask.late)
        for name, rows in ask.tables().items():
            own = f"rollup_{name}_{len(tables)}"
            tables[own] = rows
            relations += f", {name} AS (SELECT * FROM {own})"
        return f"{relations} {ask.constant_sql(sides)}"

    def _sides(self, ask: Ask) -> tuple[Sides, Mapping[str, list[str]]]:
        """Which sides can have rows of the answer, and the files of each relation of stored rows."""
        files = {name: self._files_in(ask, level) for name, level in ask.relations.items()}
        if not any(files.values()):
            return Sides.OPEN, {}
        opened = any(self.may_be_open(level, ask.start, ask.end) for level in ask.relations.values())
        return (Sides.BOTH if opened else Sides.STORED), files

    def _files_in(self, ask: Ask, level: Duration) -> list[str]:
        found = [file for start, end in ask.ranges(level) for file in self.files(level, start, end)]
        return found if len(ask.ranges(level)) == 1 else sorted(set(found))

    def _with(self, closed: Mapping[str, list[str]], opened: bool, late: bool) -> str:
        """The relations of a query, as it reads them of this commit."""
        relations = {
            name: f"SELECT * FROM {parquet(files)}" if files else self._nothing() for name, files in closed.items()
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
