"""Cycles over columns: rows that wait for the end of their instant, rows that are in, and the instants at which they leave.

A core keeps its rows in tables, those that are in before those that wait. Its loop goes from one instant to the next:
who leaves, who comes, then what the kind of query does with both (`{cycle}`). A row leaves `span` after its own time; one
that is too old when it comes leaves with whatever cycle is next, and makes none come.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Output
from rollup.engine.columns.evaluate import Columns, evaluate, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Expr
from rollup.engine.state import State

AT, TIME = "at", "time"
"""Columns of every table of rows: the instant at which the row came, and its own time."""
LAST = 2**63 - 2
"""The last instant that a loop knows."""
CYCLES = """
def core(held, until, several, arrive, due, time, chain, order, gone, {given}):
    n, p, i, total, olds, numbered = 0, 0, held, len(arrive), 0, 0
    old = np.empty(total, np.int64)
    leaving = np.empty(total, np.int64)
    for j in range(held):
        if due[j] <= arrive[j]:
            old[olds] = j
            olds += 1
{prologue}
    while True:
        now = until + 1
        if i < total and arrive[i] < now:
            now = arrive[i]
        if p < len(order) and due[order[p]] < now:
            now = due[order[p]]
        if now > until:
            break
        out = olds
        leaving[:out] = old[:out]
        while p < len(order) and due[order[p]] <= now:
            leaving[out] = order[p]
            out += 1
            p += 1
        if out > 1 and (olds > 0 or several):
            by_time = leaving[:out][np.argsort(time[leaving[:out]], kind="mergesort")]
            leaving[:out] = by_time[np.argsort(chain[by_time], kind="mergesort")]
        last = i
        while last < total and arrive[last] <= now:
            last += 1
        for j in range(out):
            gone[leaving[j]] = True
{cycle}
        olds = 0
        for j in range(i, last):
            if due[j] <= now:
                old[olds] = j
                olds += 1
        i = last
    return n, i
"""


@dataclass(frozen=True)
class Events:
    """Events of a stream in order: a column a field, and the instant of each."""

    columns: tuple[pa.Array, ...]
    times: Ints

    def slice(self, begin: int, end: int) -> Events:
        """Some of them."""
        return Events(tuple(column.slice(begin, end - begin) for column in self.columns), self.times[begin:end])


class CycleCore(Protocol):
    """A running query over columns."""

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that it reads."""
        ...

    def start(self) -> State:
        """The state before the first event."""
        ...

    def step(self, state: State, events: Mapping[str, Events], until: int) -> tuple[State, Output]:
        """Events by stream, and all cycles of instants up to `until`; what comes later waits. Rows are those of the
        select, with their instants."""
        ...

    def due(self, state: State) -> int | None:
        """The next instant at which a row leaves by itself."""
        ...

    def waits(self, state: State) -> bool:
        """Whether events wait for the end of their instant."""
        ...


@dataclass(frozen=True)
class Chained:
    """A window of time over a stream: its filter, the place of its rows' time, how long they stay, and what is kept of
    them for the loop and for the result."""

    stream: str
    test: Expr | None
    time: int
    span: int

    def taken(self, events: Events | None) -> tuple[Columns, Ints, Ints]:
        """What passes of a batch: its columns, instants and own times."""
        if events is None:
            return (), np.empty(0, np.int64), np.empty(0, np.int64)
        columns, times = events.columns, events.times
        mask = passing(self.test, columns, len(times))
        if mask is not None:
            columns, times = (
                tuple(column.filter(mask) for column in columns),
                times[mask.to_numpy(zero_copy_only=False)],
            )
        return columns, times, plain(columns[self.time]).to_numpy(zero_copy_only=False).astype(np.int64, copy=False)

    def kept(self, table: pa.Table, events: Events | None, values: Sequence[Expr]) -> pa.Table:
        """The table of rows with what passes of a batch behind them; `values` are the columns behind instant and time."""
        columns, arrive, time = self.taken(events)
        if not len(arrive):
            return table
        made = [evaluate(each, columns, len(arrive)) for each in values]
        fresh = pa.table([pa.array(arrive), pa.array(time), *made], schema=table.schema)
        return pa.concat_tables([table, fresh]).combine_chunks() if table.num_rows else fresh


def rows_schema(kinds: Sequence[pa.DataType]) -> pa.Schema:
    """The table of rows whose further columns have these types."""
    further = [pa.field(f"value{i}", kind) for i, kind in enumerate(kinds)]
    return pa.schema([pa.field(AT, pa.int64()), pa.field(TIME, pa.int64()), *further])


def _due(time: Ints, span: Ints | int) -> Ints:
    """When rows leave; of the last instants that there are, never."""
    return np.minimum(time, LAST - span) + span


@dataclass(frozen=True)
class Lined:
    """Rows of several chains in one line, as the loop wants them: those that are in, then those that wait by instant.

    `place` is the place of each among the rows of all chains, one chain after the other.
    """

    held: int
    place: Ints
    arrive: Ints
    time: Ints
    due: Ints
    chain: Ints
    order: Ints

    @classmethod
    def of(cls, tables: Sequence[pa.Table], held: Sequence[int], spans: Sequence[int]) -> Lined:
        """The rows of tables of which the first `held` are in, and stay for their spans."""
        arrive, time = (np.concatenate([t.column(name).to_numpy() for t in tables]) for name in (AT, TIME))
        sizes = [table.num_rows for table in tables]
        chain = np.repeat(np.arange(len(tables)), sizes)
        due = _due(time, np.repeat(np.array(spans, np.int64), sizes))
        place = np.arange(len(arrive))
        if len(tables) > 1:
            inside = np.concatenate([np.arange(size) < count for size, count in zip(sizes, held, strict=True)])
            place = np.argsort(np.where(inside, np.iinfo(np.int64).min, arrive), kind="stable")
            arrive, time, due, chain = (each[place] for each in (arrive, time, due, chain))
        stays = np.flatnonzero(due > arrive)
        order = stays[np.argsort(due[stays], kind="stable")]
        return cls(sum(held), place, arrive, time, due, chain, order)


def next_due(tables: Sequence[pa.Table], held: Sequence[int], spans: Sequence[int]) -> int | None:
    """When the next of the rows that are in leaves by itself."""
    found: int | None = None
    for table, count, span in zip(tables, held, spans, strict=True):
        arrive, due = table.column(AT).to_numpy()[:count], _due(table.column(TIME).to_numpy()[:count], span)
        stays = due[due > arrive]
        if len(stays):
            found = int(stays.min()) if found is None else min(found, int(stays.min()))
    return found
