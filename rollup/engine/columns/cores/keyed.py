"""A keyed context whose partitions have aggregates: a partition is a key, and begins at its first event. Without a
window; with one see `keyed_windows`.

`KeyedRows`: an event is answered by what its partition then has. `KeyedTotals`: partitions show their totals every so
often, by a clock that begins with them. At one instant partitions are shown in the order in which they began. Since all
clocks have the same span, those that were shown last are due last: what is due is a queue, not a heap, and the order of
ties comes by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch, Output
from rollup.engine.columns.cores.covering import KEYS, against, filtered, first
from rollup.engine.columns.cores.declared import Held, Lines, uncountable
from rollup.engine.columns.cores.folded import fields_for_slots
from rollup.engine.columns.cores.keys import KeyCodes, whole
from rollup.engine.columns.cores.projecting import Taken, accepted
from rollup.engine.columns.cores.rewriting import inside
from rollup.engine.columns.evaluate import arrow, evaluate, flags, passing
from rollup.engine.columns.groups import Ints
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

_EACH = """
def core(codes, {given}{slots}{results}):
    for i in range(len(codes)):
        k, n = codes[i], i
{enter}
{value}
"""


@dataclass(frozen=True)
class KeyedRows:
    """The projection sees the fields of the event, the key, the calls. `began`: the events that begin partitions, of which
    the statement takes those that pass its own filter; `total`: the row stands for the partition, not for the event.
    """

    began: Filter
    filter: Filter
    where: Expr | None
    key: int
    kind: DataType
    lines: Lines
    columns: tuple[Expr, ...]
    having: Expr | None
    total: bool
    width: int
    _codes: KeyCodes = field(default_factory=KeyCodes, compare=False, repr=False)

    @cached_property
    def _text(self) -> str:
        enter, value = block(self.lines.change("enter", "i"), 2), block(self.lines.value(), 2)
        return _EACH.format(enter=enter, value=value, **self.lines.names)

    def start(self, now: int) -> State:
        """No partitions."""
        return State({"partitions": _partitions(self.kind, self.lines).empty_table()}, {"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """A row for each event that passes."""
        taken, codes, keys = self.taken(state, batch)
        partitions, rows = state.tables["partitions"], len(codes)
        slots, results = self.lines.grown(partitions.columns[1:], len(keys)), self.lines.room(rows)
        loop(self._text)(codes, *self.lines.given(taken.columns, rows), *slots, *results)
        columns = [*taken.columns, keys.take(pa.array(codes)), *self.lines.results(results, rows)]
        found = Output(taken.times, taken.places, tuple(evaluate(each, columns, rows) for each in self.columns))
        passed = passing(self.having, columns, rows)
        after = State({"partitions": self.known(keys, slots)}, {"now": taken.now})
        return after, found if passed is None else found.where(passed)

    def taken(self, state: State, batch: Batch) -> tuple[Taken, Ints, pa.Array]:
        """The events that the statement takes, the partition of each, and the keys of all partitions then."""
        taken = Taken.of(batch, state.scalars["now"], self.began)
        codes, keys = self._codes.codes(whole(state.tables["partitions"].column("key")), taken.columns[self.key])
        mask = accepted(self.filter, self.where, taken.columns, len(codes))
        if mask is None:
            return taken, codes, keys
        passes = flags(mask, len(codes))
        columns = tuple(column.filter(mask) for column in taken.columns)
        return Taken(columns, taken.times[passes], taken.places[passes], taken.now), codes[passes], keys

    def known(self, keys: pa.Array, slots: Sequence[np.ndarray]) -> pa.Table:
        """The partitions, as the state has them."""
        return pa.table([keys, *map(pa.array, slots)], schema=_partitions(self.kind, self.lines))


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
        return _partitions(self.kind, self.lines)

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


def _partitions(kind: DataType, lines: Lines) -> pa.Schema:
    """What is kept of partitions: key and slots."""
    slots = [pa.field(f"slot{i}", each) for i, each in enumerate(lines.slot_types())]
    return pa.schema([pa.field("key", arrow(kind)), *slots])


def _longer(values: np.ndarray, length: int) -> np.ndarray:
    out = np.zeros(length, np.int64)
    out[: len(values)] = values
    return out


def keyed(plan: Select, context: Context, type: RowType, held: Held = "nothing") -> KeyedTotals | KeyedRows | str:
    """The core of aggregates in a keyed context, or the first reason against it; `held`: what is of rows."""
    input, rate, projection = plan.inputs[0], plan.rate, plan.projection
    if not isinstance(input, StreamInput) or input.window is not None or input.unnest or input.prior:
        return "an input that is not a plain stream, in a context"
    if rate != Rate() and (rate.span is None or rate != Rate("last", span=rate.span)):
        return "a rate other than output last every so often, in a context"
    if plan.grouping is not None or len(plan.levels) != 1 or plan.levels[0].keys or projection.whole:
        return "no aggregates, or a grouping, in a context"
    own = bool(input.filter.equals or input.filter.test or plan.where)
    if rate.span is not None and (own or not plan.total or projection.having is not None):  # an empty output is one
        return "a filter, having, or a row a row, with an output rate in a context"
    found = _key(context, input.filter.stream)
    if isinstance(found, str):
        return found
    began, place = found
    kind = list(type.fields.values())[place]
    if kind.kind not in KEYS:
        return f"a key of type {kind}"
    if any(not isinstance(each, ContextValue) or not each.name.endswith("key1") for each in plan.lookups):
        return "a look-up"
    used = (*projection.columns, *([projection.having] if projection.having is not None else []))
    if plan.total and any(isinstance(each, Field) for column in used for each in walk(column)):
        return "a column that is neither the key nor an aggregate"
    width = 0 if rate.span is not None else len(type.fields)
    columns = tuple(_keys(fields_for_slots(column, width + 1), width) for column in projection.columns)
    having = None if projection.having is None else _keys(fields_for_slots(projection.having, width + 1), width)
    calls = plan.levels[0].calls
    reason = first((filtered(began), filtered(input.filter, plan.where)))
    reason = reason or first(uncountable(call, held) for call in calls)
    reason = reason or first(against(_keys(each, width)) for each in used)
    if reason is not None:
        return reason
    lines = Lines(calls)
    if rate.span is not None:
        return KeyedTotals(began, place, kind, lines, rate.span, columns, having)
    return KeyedRows(began, input.filter, plan.where, place, kind, lines, columns, having, plan.total, width)


def _key(context: Context, stream: str) -> tuple[Filter, int] | str:
    """The filter of the context's stream and the place of its one key."""
    if len(context.levels) != 1 or not isinstance(level := context.levels[0][1], Keyed):
        return "a context that is not keyed"
    if level.initiated or level.end is not None or len(level.streams) != 1 or len(level.streams[0].places) != 1:
        return "a context with beginnings, ends, several streams or keys"
    found = level.streams[0]
    return (found.filter, found.places[0]) if found.filter.stream == stream else "a stream outside the context"


def _keys(expr: Expr, place: int) -> Expr:
    """An expression that reads the context's key as the field at that place."""
    if isinstance(expr, Ask):
        return Field(0, place, expr.type)
    return inside(expr, lambda inner: _keys(inner, place))
