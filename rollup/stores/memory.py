"""Tables in this process: the default without @store, and what tests and the library use."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
import pyarrow.compute as pc

from rollup.aggregation.engine import Engine
from rollup.aggregation.retrieval import Question, open_rows
from rollup.aggregation.state import State
from rollup.calendar import Duration
from rollup.errors import FencedError
from rollup.plan.aggregation import TIMESTAMP, ZONE, Aggregation
from rollup.stores.base import Commit, Loaded


class MemoryStore:
    """An aggregation's tables as Arrow tables."""

    def __init__(self, aggregation: Aggregation, engine: Engine) -> None:
        self.aggregation = aggregation
        self.engine = engine
        self.tables = {level: aggregation.table_schema.empty_table() for level in aggregation.levels}
        self.ledgers: list[pa.Table] = []
        self.last: Commit | None = None

    def load(self) -> Loaded | None:
        return None if self.last is None else Loaded(self.last.number, self.last.state, self.last.source)

    def commit(self, commit: Commit) -> None:
        if self.last is not None and commit.number <= self.last.number:
            raise FencedError(f"commit {commit.number} of {self.aggregation.name} is taken")
        for level, rows in commit.closed.items():
            self.tables[level] = pa.concat_tables([self.tables[level], rows])
        if commit.ledger is not None and commit.ledger.num_rows:
            self.ledgers.append(commit.ledger)
        self.last = commit

    def snapshot(self) -> MemorySnapshot:
        last = self.last
        state = State.empty(self.aggregation) if last is None else last.state
        return MemorySnapshot(self, dict(self.tables), state, 0 if last is None else last.number)

    def newest(self, level: Duration) -> dict[str, int]:
        found = self.tables[level].group_by(ZONE).aggregate([(TIMESTAMP, "max")]).to_pydict()
        return dict(zip(found[ZONE], found[f"{TIMESTAMP}_max"], strict=True))

    def rows_after(self, level: Duration, start: int | None) -> pa.Table:
        table = self.tables[level]
        return table if start is None else table.filter(pc.greater(table[TIMESTAMP], start))


class MemorySnapshot:
    """The tables and open rows at one moment."""

    def __init__(self, store: MemoryStore, tables: Mapping[Duration, pa.Table], state: State, number: int) -> None:
        self.number = number
        self._store = store
        self._tables = tables
        self._open = open_rows(store.engine, store.aggregation, state)

    def answer(self, question: Question, **tables: pa.Table) -> pa.Table:
        """The rows that answer a question."""
        bounds = {"start": question.start, "end": question.end}
        return self._store.engine.run(question.sql(), bounds, closed=self._tables[question.per], open=self._open, **tables)
