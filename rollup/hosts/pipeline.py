"""One aggregation on its way: state, step, commit. The hosts bring partial rows; the store keeps what comes out."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rollup.aggregation.admission import Admitted, Refold, admit, tick
from rollup.aggregation.cascade import Cascade, Closed
from rollup.aggregation.partials import Partials
from rollup.aggregation.recovery import rebuild
from rollup.aggregation.state import State
from rollup.checkpoint.marks import lost
from rollup.core.calendar import Duration, bucket_end
from rollup.core.columns import ColumnEngine
from rollup.plan.aggregation import Aggregation
from rollup.stores.base import Commit, Rewrite, Store


@dataclass(frozen=True)
class Advance:
    """What one batch did to an aggregation."""

    admitted: Admitted
    closed: Closed
    commit_seconds: float

    @property
    def counts(self) -> Mapping[str, int]:
        """Late events by what happened to them."""
        return self.admitted.counts


@dataclass(frozen=True)
class Prepared:
    """A batch that has been stepped through and waits for its commit."""

    admitted: Admitted
    state: State
    closed: Closed
    source: Mapping[str, Any]


class Pipeline:
    """Holds the state of one aggregation between batches and commits after each."""

    def __init__(self, aggregation: Aggregation, store: Store, engine: ColumnEngine) -> None:
        self.aggregation = aggregation
        self.store = store
        self.engine = engine
        self.partials = Partials(aggregation)
        self.cascade = Cascade(aggregation)
        self.number = 0
        self.state = State.empty(aggregation)
        self.source: Mapping[str, Any] = {}
        self.rebuilt: Mapping[Duration, int] = {}
        """By level, the rows that turned out to be closed when `start` went by the tables alone."""

    @property
    def split(self) -> tuple[str, int] | None:
        """How tasks leave partial rows: a folder and the number of shards; None where they send them, as here."""
        return None

    @property
    def clock(self) -> int | None:
        """The root level's clock, ms since the epoch; None before the first event."""
        return self.state.clocks[self.aggregation.root]

    def start(self) -> None:
        """Take up where the last commit ended; without one, rebuild what the tables still say."""
        loaded = self.store.load()
        if loaded is not None:
            self.number, self.state, self.source = loaded.number, loaded.state, loaded.source
            return
        state, closed = rebuild(self.engine, self.cascade, self.store)
        self.rebuilt = {level: rows.num_rows for level, rows in closed.rows.items()}
        if state.resume is not None:
            self._commit(state, closed, None, {})

    def advance(self, partials: list[pa.Table], refold: Refold, source: Mapping[str, Any]) -> Advance:
        """Admit, cascade and commit one batch.

        `source` has a mark for each stream, see `rollup.hosts.spark.driver`. A mark of another query says that the
        checkpoint is lost and events come again from the start: then open rows are rebuilt from the tables, and
        events that the tables have are passed over.
        """
        return self.commit(self.prepare(partials, refold, source))

    def prepare(self, partials: list[pa.Table], refold: Refold, source: Mapping[str, Any]) -> Prepared:
        """Admit and cascade one batch, for a `commit` that follows: what closes is known before it is stored."""
        if self.anew(source):
            source = self.renew(source)
        admitted = admit(self.engine, self.aggregation, self.state, partials, refold)
        return Prepared(admitted, *self.cascade.step(self.engine, self.state, admitted), source)

    def commit(self, prepared: Prepared) -> Advance:
        """Commit what was prepared last."""
        began = time.perf_counter()
        self._commit(prepared.state, prepared.closed, prepared.admitted.ledger, prepared.source)
        return Advance(prepared.admitted, prepared.closed, time.perf_counter() - began)

    def anew(self, source: Mapping[str, Any]) -> bool:
        """Whether a mark is of another query than the last one, of which there is something."""
        return any(lost(self.source.get(stream), mark["query"]) for stream, mark in source.items())

    def renew(self, source: Mapping[str, Any]) -> Mapping[str, Any]:
        """Rebuild open rows from the tables; the marks that are new."""
        source = {stream: mark for stream, mark in source.items() if mark != self.source.get(stream)}
        self.state, closed = rebuild(self.engine, self.cascade, self.store)
        self._commit(self.state, closed, None, {})
        return source

    def due(self, now: int) -> bool:
        """Whether the wall clock has passed the end of an open root bucket."""
        clock = self.state.clocks[self.aggregation.root]
        return clock is not None and now >= bucket_end(clock, self.aggregation.root, self.aggregation.zone)

    def tick(self, now: int, source: Mapping[str, Any]) -> Advance:
        """Close what the wall clock has passed; only for aggregations by arrival time."""
        admitted = tick(self.aggregation, self.state, now)
        return self.commit(Prepared(admitted, *self.cascade.step(self.engine, self.state, admitted), source))

    def rewrite(self, rewrites: Mapping[Duration, Rewrite], state: State | None = None) -> None:
        """Change stored rows, and with `state` the open ones, in a commit of its own between two batches."""
        nothing = Closed(dict.fromkeys(self.aggregation.levels, self.aggregation.table_schema.empty_table()), 0)
        self._commit(self.state if state is None else state, nothing, None, self.source, rewrites)

    def remark(self, source: Mapping[str, Any]) -> None:
        """Change nothing but the marks, in a commit of its own between two batches."""
        self.source = source
        self.rewrite({})

    def _commit(
        self,
        state: State,
        closed: Closed,
        ledger: pa.Table | None,
        source: Mapping[str, Any],
        rewrites: Mapping[Duration, Rewrite] | None = None,
    ) -> None:
        self.store.commit(Commit(self.number + 1, state, closed.rows, ledger, source, rewrites or {}))
        self.number += 1
        self.state, self.source = state, source
