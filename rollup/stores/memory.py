"""Tables in this process: the default without @store, and what tests and the library use."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping

import pyarrow as pa

from rollup.aggregation.state import State
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import FencedError
from rollup.core.untyped import pc
from rollup.plan.aggregation import COMMIT, TIMESTAMP, ZONE, Aggregation
from rollup.retrieval.as_of import AsOf
from rollup.retrieval.questions import Question, late_rows, open_rows
from rollup.retrieval.since import Interval, Mark
from rollup.stores.base import Commit, Loaded, Size, Snapshot, ledger_schema, newest_alone


class MemoryStore:
    """An aggregation's tables as Arrow tables."""

    apart = None
    filed = None
    salvaged = None

    def __init__(self, aggregation: Aggregation, engine: ColumnEngine) -> None:
        self.aggregation = aggregation
        self.engine = engine
        self.tables = {level: aggregation.table_schema.empty_table() for level in aggregation.levels}
        self.ledgers: list[pa.Table] = []
        self.last: Commit | None = None
        self.at = 0.0
        self._shown: tuple[Commit | None, pa.Table] | None = None

    def load(self) -> Loaded | None:
        return None if self.last is None else Loaded(self.last.number, self.last.state, self.last.source)

    def commit(self, commit: Commit) -> None:
        if self.last is not None and commit.number <= self.last.number:
            raise FencedError(f"commit {commit.number} of {self.aggregation.name} is taken")
        for level, rewrite in commit.rewrites.items():
            kept = self.tables[level].filter(pc.invert(_within(self.tables[level], rewrite.start, rewrite.end)))
            self.tables[level] = pa.concat_tables([kept, rewrite.rows])
        for level, rows in commit.closed.items():
            self.tables[level] = pa.concat_tables([self.tables[level], rows])
        if commit.ledger is not None and commit.ledger.num_rows:
            self.ledgers.append(commit.ledger)
        self.last = commit
        self.at = time.time()

    def snapshot(self) -> MemorySnapshot:
        last = self.last
        state = State.empty(self.aggregation) if last is None else last.state
        return MemorySnapshot(
            self, dict(self.tables), state, 0 if last is None else last.number, self._open(last, state)
        )

    def _open(self, last: Commit | None, state: State) -> pa.Table:
        """What readers of a commit add to its stored rows, computed once."""
        shown = self._shown
        if shown is None or shown[0] is not last:
            shown = self._shown = last, open_rows(self.engine, self.aggregation, state)
        return shown[1]

    def as_of(self, moment: AsOf) -> Snapshot:
        raise newest_alone(self.aggregation)

    def newest(self, level: Duration) -> dict[str, int]:
        found = self.tables[level].group_by(ZONE).aggregate([(TIMESTAMP, "max")]).to_pydict()
        return dict(zip(found[ZONE], found[f"{TIMESTAMP}_max"], strict=True))

    def rows_after(self, level: Duration, start: int | None) -> pa.Table:
        table = self.tables[level]
        return table if start is None else table.filter(pc.greater(table[TIMESTAMP], start))

    def forget(self) -> None:
        """Only the tables survive."""
        self.last = None

    def evolve(self, added: pa.Schema, retired: Collection[str]) -> None:
        """Nothing to do: a table in memory is as old as its process, and so is its declaration."""

    def maintain(self, budget: float) -> dict[str, int]:
        """Nothing to do: there are no files."""
        return {}

    def release(self, pin: Callable[[], object]) -> int:
        """Nothing to do: there are no files."""
        return 0


def _within(table: pa.Table, start: int | None, end: int | None) -> pa.ChunkedArray:
    low = pc.greater_equal(table[TIMESTAMP], -(2**63) if start is None else start)
    return pc.and_(low, pc.less(table[TIMESTAMP], 2**63 - 1 if end is None else end))


class MemorySnapshot:
    """The tables and open rows at one moment."""

    def __init__(
        self, store: MemoryStore, tables: Mapping[Duration, pa.Table], state: State, number: int, opened: pa.Table
    ) -> None:
        self.number = number
        self._store = store
        self._tables = tables
        self._open = opened
        self._loaded = Loaded(number, state, {} if store.last is None else store.last.source)
        self._ledgers, self._at = list(store.ledgers), store.at

    @property
    def in_files(self) -> None:
        return None

    def close(self) -> None:
        """Nothing is held."""

    def answer(self, question: Question, **tables: pa.Table) -> pa.Table:
        """The rows that answer a question."""
        sql, values = question.prepared()
        stored = {name: self._tables[level] for name, level in question.relations.items()}
        late = {"late": self._late()} if question.late else {}
        return self._store.engine.run(sql, values, **stored, open=self._open, **late, **question.tables(), **tables)

    def _late(self) -> pa.Table:
        aggregation = self._store.aggregation
        parts = [
            part.append_column(COMMIT, pa.array([number] * part.num_rows, pa.int64()))
            for number, part in enumerate(self._ledgers)
        ]
        empty = ledger_schema(aggregation).append(pa.field(COMMIT, pa.int64())).empty_table()
        return late_rows(self._store.engine, aggregation, pa.concat_tables([empty, *parts]))

    def loaded(self) -> Loaded:
        return self._loaded

    def rows(self, level: Duration, start: int | None = None, end: int | None = None) -> pa.Table:
        return self._tables[level].filter(_within(self._tables[level], start, end))

    def ledger(self) -> pa.Table:
        empty = ledger_schema(self._store.aggregation).empty_table()
        return pa.concat_tables([empty, *self._ledgers])

    def sizes(self) -> Mapping[Duration, Size]:
        return {level: Size(table.num_rows, table.nbytes) for level, table in self._tables.items()}

    def extent(self, level: Duration) -> tuple[int, int] | None:
        found = pc.min_max(self._tables[level][TIMESTAMP]).as_py()
        return None if found["min"] is None else (found["min"], found["max"])

    def committed(self) -> float:
        return self._at

    def mark(self, commit: int | None = None) -> Mark | None:
        return Mark(self._loaded.state.clocks, self.number) if commit in (None, self.number) else None

    def changed(self, level: Duration, earlier: Snapshot | int) -> list[Interval] | None:
        """Nothing is known: the tables are those of now."""
        return None
