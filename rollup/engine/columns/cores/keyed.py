"""A keyed context whose partitions show their totals every so often: a partition is a key, its clock begins at its first event.

At one instant partitions are shown in the order in which they began. Since all clocks have the same span, those that
were shown last are due last: what is due is a queue, not a heap, and the order of ties comes by itself.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch, Output
from rollup.engine.columns.cores.covering import KEYS, against, filtered, first
from rollup.engine.columns.cores.declared import Lines, uncountable
from rollup.engine.columns.cores.folded import fields_for_slots, whole
from rollup.engine.columns.cores.keys import KeyCodes
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.cores.rewriting import inside
from rollup.engine.columns.evaluate import arrow, evaluate, passing
from rollup.engine.columns.loops import block, loop
from rollup.engine.expressions import Ask, Expr, Field, walk
from rollup.engine.rows.contexts.levels import Context, Keyed
from rollup.engine.rows.plans import ContextValue, Filter, Select, StreamInput
from rollup.engine.rows.selects.rates import Rate
from rollup.engine.state import State
from rollup.engine.types import DataType, RowType

_TEMPLATE = """
def core(old, now, span, times, codes, {given}due, queue, {slots}at, group, {results}):
    n, head, started, total, places = 0, 0, old, len(codes), len(queue)
    for i in range(total + 1):
        t = times[i] if i < total else now
        while started > 0 and due[head] <= t:
            k = queue[head]
            at[n], group[n] = due[head], k
{value}
            n += 1
            tail = (head + started) % places
            due[tail], queue[tail] = due[head] + span, k
            head = (head + 1) % places
        if i == total:
            break
        k = codes[i]
        if k == started:
            tail = (head + started) % places
            due[tail], queue[tail] = t + span, k
            started += 1
{enter}
    return n, head
"""


@dataclass(frozen=True)
class KeyedTotals:
    """The projection sees the key, then the calls. Null is a key like any other."""

    filter: Filter
    key: int
    kind: DataType
    lines: Lines
    span: int
    columns: tuple[Expr, ...]
    having: Expr | None
    _codes: KeyCodes = field(default_factory=KeyCodes, compare=False, repr=False)

    @cached_property
    def _text(self) -> str:
        return _TEMPLATE.format(
            value=block(self.lines.value(), 3), enter=block(self.lines.change("enter", "i"), 2), **self.lines.names
        )

    @cached_property
    def _schema(self) -> pa.Schema:
        slots = [pa.field(f"slot{i}", kind) for i, kind in enumerate(self.lines.slot_types())]
        return pa.schema([pa.field("key", arrow(self.kind)), *slots])

    def start(self, now: int) -> State:
        """No partitions."""
        clocks = pa.schema([("due", pa.int64()), ("partition", pa.int64())])
        return State({"partitions": self._schema.empty_table(), "clocks": clocks.empty_table()}, {"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """A row for each instant at which a partition is shown."""
        before: int = state.scalars["now"]
        now = max(before, batch.now)
        taken = Taken.of(batch, before, self.filter)
        partitions, clocks = state.tables["partitions"], state.tables["clocks"]
        codes, keys = self._codes.codes(whole(partitions.column("key")), taken.columns[self.key])
        old, places = partitions.num_rows, len(keys) + 1
        due, queue = (_longer(clocks.column(i).to_numpy(), places) for i in range(2))
        slots = self.lines.grown(partitions.columns[1:], len(keys))
        room = self._room(clocks.column("due").to_numpy(), taken, now, len(keys) - old)
        at, group = np.empty(room, np.int64), np.empty(room, np.int64)
        results = self.lines.room(room)
        given = self.lines.given(taken.columns, len(codes))
        times = np.ascontiguousarray(taken.times)
        n, head = loop(self._text)(
            old, now, self.span, times, codes, *given, due, queue, *slots, at, group, *results
        )  # fmt: skip
        order = (head + np.arange(len(keys))) % places
        after = State(
            {
                "partitions": pa.table([keys, *map(pa.array, slots)], schema=self._schema),
                "clocks": pa.table({"due": due[order], "partition": queue[order]}),
            },
            {"now": now},
        )
        columns = [keys.take(pa.array(group[:n])), *self.lines.results(results, n)]
        found = Output(at[:n], np.full(n, TIMER), tuple(evaluate(each, columns, n) for each in self.columns))
        mask = passing(self.having, columns, n)
        return after, found if mask is None else found.where(mask)

    def _room(self, due: np.ndarray, taken: Taken, now: int, fresh: int) -> int:
        """How many rows there can be: each clock as often as its span fits."""
        old = np.maximum((now - due) // self.span + 1, 0).sum()
        return int(old) + (fresh * ((now - int(taken.times[0])) // self.span) if fresh else 0)


def _longer(values: np.ndarray, length: int) -> np.ndarray:
    out = np.zeros(length, np.int64)
    out[: len(values)] = values
    return out


def keyed_totals(plan: Select, context: Context, type: RowType) -> KeyedTotals | str:
    """The core of a total in a keyed context, or the first reason against it."""
    input, rate = plan.inputs[0], plan.rate
    if not isinstance(input, StreamInput) or input.window is not None or input.unnest or input.prior:
        return "an input that is not a plain stream, in a context"
    if rate.span is None or rate != Rate("last", span=rate.span):
        return "a rate other than output last every so often, in a context"
    if not plan.total or len(plan.levels) != 1 or plan.levels[0].keys or input.filter.equals or input.filter.test:
        return "a filter or grouping in a context"
    if plan.where is not None:
        return "where in a context"
    keyed = _key(context, input.filter.stream)
    if isinstance(keyed, str):
        return keyed
    filter, place = keyed
    kind = list(type.fields.values())[place]
    calls = plan.levels[0].calls
    if any(not isinstance(each, ContextValue) or not each.name.endswith("key1") for each in plan.lookups):
        return "a look-up"
    used = (*plan.projection.columns, *([plan.projection.having] if plan.projection.having is not None else []))
    if any(isinstance(each, Field) for column in used for each in walk(column)):
        return "a column that is neither the key nor an aggregate"
    columns = tuple(_keys(fields_for_slots(column, 1)) for column in plan.projection.columns)
    having = None if plan.projection.having is None else _keys(fields_for_slots(plan.projection.having, 1))
    if kind.kind not in KEYS:
        return f"a key of type {kind}"
    reason = filtered(filter) or first(map(uncountable, calls)) or first(map(against, (*columns, having)))
    return reason or KeyedTotals(filter, place, kind, Lines(calls), rate.span, columns, having)


def _key(context: Context, stream: str) -> tuple[Filter, int] | str:
    """The filter of the context's stream and the place of its one key."""
    if len(context.levels) != 1 or not isinstance(level := context.levels[0][1], Keyed):
        return "a context that is not keyed"
    if level.initiated or level.end is not None or len(level.streams) != 1 or len(level.streams[0].places) != 1:
        return "a context with beginnings, ends, several streams or keys"
    found = level.streams[0]
    return (found.filter, found.places[0]) if found.filter.stream == stream else "a stream outside the context"


def _keys(expr: Expr) -> Expr:
    """An expression that reads the context's key as field 0."""
    if isinstance(expr, Ask):
        return Field(0, 0, expr.type)
    return inside(expr, _keys)
