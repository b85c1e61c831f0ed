"""Totals of partitions, which each shows every so often by a clock of its own, which begins with its first event.

At one instant partitions are shown in the order in which they began. Since all clocks have the same span, those that were
shown last are due last: what is due is a queue, not a heap, in which only clocks that begin at one instant must be ordered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch, Output
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.covering import against, filtered, first
from rollup.engine.columns.cores.declared import Lines, uncountable
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.partitions import Division, division
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.cores.showing import shown, with_properties
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import block, loop
from rollup.engine.expressions import Ask, Expr, Field, Slot, inside, walk
from rollup.engine.rows.contexts.levels import Context
from rollup.engine.rows.plans import ContextValue, Filter, Select, StreamInput
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.state import State
from rollup.engine.timers import Phase, edge
from rollup.engine.types import RowType

_TEMPLATE = """
def core(now, span, times, codes, {given}runs, due, queue, clocks, {slots}at, group, {results}):
    n, head, total, places = 0, 0, len(codes), len(queue)
    for i in range(total + 1):
        t = times[i] if i < total else now
        while clocks > 0 and due[head] <= t:
            k = queue[head]
            at[n], group[n] = due[head], k
{value}
            n += 1
            tail = (head + clocks) % places
            due[tail], queue[tail] = due[head] + span, k
            head = (head + 1) % places
        if i == total:
            break
        k = codes[i]
        if not runs[k]:
            place, before = (head + clocks) % places, (head + clocks - 1) % places
            while place != head and due[before] == t + span and queue[before] > k:
                due[place], queue[place] = due[before], queue[before]
                place, before = before, (before - 1) % places
            due[place], queue[place], runs[k] = t + span, k, True
            clocks += 1
{enter}
    return n, head, clocks
"""


@dataclass(frozen=True)
class PartitionTotals(Core):
    """The projection sees the calls, then the `properties` of the partition."""

    division: Division
    filter: Filter
    where: Expr | None
    lines: Lines
    span: int
    columns: tuple[Expr, ...]
    properties: tuple[str, ...]

    @cached_property
    def _text(self) -> str:
        return _TEMPLATE.format(
            value=block(self.lines.value(), 3), enter=block(self.lines.change("enter", "i"), 2), **self.lines.names
        )

    @cached_property
    def schema(self) -> pa.Schema:
        """The slots that are kept of partitions."""
        return pa.schema([pa.field(f"slot{i}", each) for i, each in enumerate(self.lines.slot_types())])

    hears_all: ClassVar[bool] = True

    def start(self, now: int) -> State:
        """The partitions that there are from the beginning; no clock runs."""
        nothing, known = np.empty(0, np.int64), self.division.start()
        slots = [pa.chunked_array([], each.type) for each in self.schema]
        return self.state(known, self.lines.grown(slots, self.division.count(known)), (nothing, nothing), now)

    def state(self, known: pa.Array, slots: list[np.ndarray], clocks: tuple[Ints, Ints], now: int) -> State:
        """The state: what the partitions are told by, their slots, and of the clocks that run when they are due and of which
        partition they are, in that order.
        """
        tables = {
            "partitions": pa.table([known], names=["key"]),
            "totals": pa.table([*map(pa.array, slots)], schema=self.schema),
            "clocks": pa.table({"due": clocks[0], "partition": clocks[1]}),
        }
        return State(tables, {"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """A row for each instant at which a partition is shown."""
        before: int = state.scalars["now"]
        old, clocks = self.known(state), state.tables["clocks"]
        wider, _, known = self.division.wider(old, Taken.of(batch, before, self.division.filter), batch.stream)
        taken = Taken.of(wider, before, self.filter, self.where)
        codes, running, count = taken.columns[-1].to_numpy(), clocks.num_rows, self.division.count(known)
        places = count + 1
        due, queue = (_longer(clocks.column(i).to_numpy(), places) for i in range(2))
        runs = np.zeros(count, bool)
        runs[queue[:running]] = True
        slots = self.lines.grown(state.tables["totals"].columns, count)
        room = self._room(due[:running], taken, len(np.unique(codes[~runs[codes]])))
        at, group, results = np.empty(room, np.int64), np.empty(room, np.int64), self.lines.room(room)
        n, head, left = loop(self._text)(
            taken.now, self.span, np.ascontiguousarray(taken.times), codes, *self.lines.given(taken.columns, len(codes)),
            runs, due, queue, running, *slots, at, group, *results,
        )  # fmt: skip
        order = (head + np.arange(left)) % places
        columns = [*self.lines.results(results, n), *self.division.of_partitions(self.properties, group[:n], known)]
        shown = tuple(evaluate(each, columns, n) for each in self.columns)
        after = self.state(known, slots, (due[order], queue[order]), taken.now)
        return after, Output(at[:n], np.full(n, TIMER), shown, part=group[:n])

    @staticmethod
    def known(state: State) -> pa.Array:
        """What the partitions are told by."""
        return whole(state.tables["partitions"].column("key"))

    @property
    def phase(self) -> Phase:
        """It brings outputs."""
        return Phase.OUTPUT

    @property
    def clock_brings(self) -> bool:
        """It brings all rows."""
        return True

    def dues(self, state: State) -> dict[Phase, int | None]:
        """When a partition is shown next."""
        clocks = state.tables["clocks"].column("due")
        return {self.phase: clocks[0].as_py() if len(clocks) else None}

    def late(self, state: State, phase: Phase, nothing: Batch) -> tuple[State, Output]:
        """Each partition that is due is shown once; its clock goes on in whole spans from when it was due."""
        clocks, now = state.tables["clocks"], nothing.now
        dues = clocks.column("due").to_numpy()
        late = dues <= now
        shown = clocks.set_column(0, clocks.schema.field(0), pa.array(np.where(late, now, dues)))
        after, output = self.step(State({**state.tables, "clocks": shown}, state.scalars), nothing)
        goes_on = np.where(late, edge(dues, self.span, now), dues)
        partitions = clocks.column("partition").to_numpy()
        order = np.lexsort((partitions, goes_on))
        clocks = pa.table({"due": goes_on[order], "partition": partitions[order]})
        return State({**after.tables, "clocks": clocks}, after.scalars), output

    def content(self, state: State) -> list[tuple[Any, ...]]:
        """A row a partition."""
        totals, known = state.tables["totals"], self.known(state)
        columns = zip(*(column.to_pylist() for column in totals.columns), strict=True)
        values = [self.lines.fold.values(self.lines.group(each)) for each in columns]
        properties = self.division.of_partitions(self.properties, np.arange(totals.num_rows), known)
        return shown(self.columns, None, with_properties(values, properties))

    @property
    def context(self) -> str | None:
        """That of its partitions."""
        return self.division.context or None

    def paths(self, state: State) -> Sequence[tuple[Any, ...]]:
        """Its partitions, which never end."""
        return self.division.paths(self.known(state))

    def _room(self, due: Ints, taken: Taken, fresh: int) -> int:
        """How many rows there can be: each clock as often as its span fits."""
        old = np.maximum((taken.now - due) // self.span + 1, 0).sum()
        return int(old) + (fresh * ((taken.now - int(taken.times[0])) // self.span) if fresh else 0)


def _longer(values: np.ndarray, length: int) -> np.ndarray:
    out = np.zeros(length, np.int64)
    out[: len(values)] = values
    return out


def partition_totals(plan: Select, context: Context, type: RowType) -> PartitionTotals | str:
    """The core of totals that partitions show every so often, or the first reason against it."""
    input, rate, projection = plan.inputs[0], plan.rate, plan.projection
    if not isinstance(input, StreamInput) or input.window is not None or input.unnest or input.prior:
        return "an output rate over a window, in a context"
    if rate.span is None or rate not in (Rate("last", span=rate.span), Rate("snapshot", span=rate.span)):
        return "a rate other than output last or snapshot every so often, in a context"
    if not plan.total or len(plan.levels) != 1 or plan.emitted != "new" or projection.having is not None:
        return "having, groups, a row a row, or the remove stream, with an output rate in a context"
    found = division(context, input.filter.stream, type)
    if isinstance(found, str):
        return found
    names = tuple(each.name for each in plan.lookups if isinstance(each, ContextValue) and found.has(each.name))
    if len(names) < len(plan.lookups):
        return "a look-up in a context"
    if any(isinstance(each, Field) for column in projection.columns for each in walk(column)):
        return "a column that is neither the key nor an aggregate"
    calls = plan.levels[0].calls
    columns = tuple(_seen(column, len(calls)) for column in projection.columns)
    reason = filtered(input.filter, plan.where) or first(uncountable(each, "all stay") for each in calls)
    reason = reason or first(map(against, columns))
    return reason or PartitionTotals(found, input.filter, plan.where, Lines(calls), rate.span, columns, names)


def _seen(expr: Expr, calls: int) -> Expr:
    """An expression that reads the aggregates as fields, and the properties of the partition as those behind them."""
    match expr:
        case Slot():
            return Field(0, expr.index, expr.type)
        case Ask():
            return Field(0, calls + expr.index, expr.type)
        case _:
            return inside(expr, lambda inner: _seen(inner, calls))
