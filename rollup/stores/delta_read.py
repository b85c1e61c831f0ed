"""Reading a Delta store without Spark: plan the files from the log's statistics, read them with DuckDB.

What depends only on a table's version (which files, their time ranges) is kept between questions, so a question costs
what its answer costs.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from deltalake import DeltaTable

from rollup.aggregation.engine import Engine
from rollup.aggregation.retrieval import Question, open_rows
from rollup.aggregation.state import State
from rollup.calendar import Duration
from rollup.errors import StoreError
from rollup.plan.aggregation import TIMESTAMP, Aggregation
from rollup.stores.delta_record import Record, RecordFolder


@dataclass(frozen=True)
class FileIndex:
    """The files of one version of a table with the AGG_TIMESTAMP range of each."""

    paths: list[str]
    low: npt.NDArray[np.int64]
    high: npt.NDArray[np.int64]
    rows: npt.NDArray[np.int64]

    @classmethod
    def of(cls, table: DeltaTable) -> FileIndex:
        """From the log's statistics; a file without them may hold any time."""
        actions = pa.table(table.get_add_actions(flatten=True))
        if not actions.num_rows:
            none = np.zeros(0, np.int64)
            return cls([], none, none, none)
        root = table.table_uri.rstrip("/").removeprefix("file://")
        names = set(actions.schema.names)

        def longs(name: str, missing: int) -> npt.NDArray[np.int64]:
            if name not in names:
                return np.full(actions.num_rows, missing, np.int64)
            return actions[name].fill_null(missing).to_numpy().astype(np.int64)

        low, high = longs(f"min.{TIMESTAMP}", -(2**63)), longs(f"max.{TIMESTAMP}", 2**63 - 1)
        return cls([f"{root}/{path}" for path in actions["path"].to_pylist()], low, high, longs("num_records", 0))

    def between(self, start: int | None, end: int | None) -> list[str]:
        """The files that can hold rows with start <= AGG_TIMESTAMP < end."""
        if not self.paths:
            return []
        fits = np.ones(len(self.paths), bool)
        if start is not None:
            fits &= self.high >= start
        if end is not None:
            fits &= self.low < end
        return [self.paths[i] for i in np.flatnonzero(fits)]


class DeltaReader:
    """Reads the tables of one aggregation; keeps file lists and open rows of the newest commit it has seen."""

    def __init__(self, aggregation: Aggregation, engine: Engine, root: Path) -> None:
        self.aggregation = aggregation
        self.engine = engine
        self.root = root
        self.records = RecordFolder(root / "_rollup" / aggregation.name)
        self._indexes: dict[tuple[str, int], FileIndex] = {}
        self._tables: dict[str, DeltaTable] = {}
        self._last: DeltaSnapshot | None = None

    def snapshot(self) -> DeltaSnapshot:
        """The newest commit. Raises StoreError when there is none."""
        numbers = self.records.numbers()
        if self._last is not None and numbers and numbers[-1] == self._last.number:
            return self._last
        record = self.records.newest()
        if record is None:
            raise StoreError(f"{self.aggregation.name} has no commit in {self.root}", hint="start the job with `rollup run`")
        self._last = DeltaSnapshot(self, record)
        return self._last

    def index(self, level: Duration, version: int) -> FileIndex:
        """The files of a level's table at a version."""
        key = (level.table_suffix, version)
        if key not in self._indexes:
            stale = [known for known in self._indexes if known[0] == key[0]]
            for known in stale[:-2]:
                del self._indexes[known]
            self._indexes[key] = FileIndex.of(self._table(level, version))
        return self._indexes[key]

    def _table(self, level: Duration, version: int) -> DeltaTable:
        name = level.table_suffix
        if name not in self._tables:
            self._tables[name] = DeltaTable(str(self.root / f"{self.aggregation.name}_{name}"), version=version)
        elif self._tables[name].version() != version:
            self._tables[name].load_as_version(version)
        return self._tables[name]


class DeltaSnapshot:
    """One commit: table versions pinned by its record, and its open rows."""

    def __init__(self, reader: DeltaReader, record: Record) -> None:
        self.number = record.number
        self.record = record
        self._reader = reader

    @cached_property
    def open(self) -> pa.Table:
        """All open rows, see `rollup.aggregation.retrieval.open_rows`."""
        aggregation, records = self._reader.aggregation, self._reader.records
        empty = State.empty(aggregation)
        rows = {
            level: records.read_rows(self.record.open[level.table_suffix]) if level.table_suffix in self.record.open else empty.open[level]
            for level in aggregation.levels
        }
        return open_rows(self._reader.engine, aggregation, State(empty.clocks, rows))

    def files(self, level: Duration, start: int | None = None, end: int | None = None) -> list[str]:
        """The data files of a level that can hold rows of a range."""
        return self._reader.index(level, self.record.versions[level.table_suffix]).between(start, end)

    def answer(self, question: Question, **tables: pa.Table) -> pa.Table:
        """The rows that answer a question."""
        reader, bounds = self._reader, {"start": question.start, "end": question.end}
        files = self.files(question.per, question.start, question.end)
        if not files:
            empty = reader.aggregation.table_schema.empty_table()
            return reader.engine.run(question.sql(), bounds, closed=empty, open=self.open, **tables)
        sql = f"WITH closed AS (SELECT * FROM read_parquet($files)) {question.sql()}"
        return reader.engine.run(sql, {**bounds, "files": files}, open=self.open, **tables)
