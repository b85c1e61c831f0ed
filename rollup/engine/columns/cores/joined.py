"""The inner join of two windows by equal keys, of one stream or of two: an arrival meets what the other side holds then.

State: `left` and `right`, the rows of each window, oldest first: arrival, keys, and the fields that the statement reads.
The loop keeps a list of each side's rows of a key, oldest first; windows of length, of time, and those that keep all let
rows out in the order in which they came, so what leaves is always the first of its list.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.covering import against, equated, filtered, first
from rollup.engine.columns.cores.keys import matching, whole
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.cores.rewriting import inside, of_one_event
from rollup.engine.columns.evaluate import arrow, evaluate, flags, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.conjunctions import conjuncts
from rollup.engine.expressions import All, Expr, Field, walk
from rollup.engine.rows.plans import Filter, Input, Select, StreamInput
from rollup.engine.rows.selects.joining import equality
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.types import RowType

_MOST = 1 << 22
"""So many pairs are looked at together; a batch that makes more is taken in halves."""
_EVER = 2**62
SIDES = ("left", "right")
"""The tables of the state."""
_LOOP = """
def leave(times, codes, firsts, after, head, tail, span, size, now):
    while head < tail and (tail - head > size or times[head] + span <= now):
        if codes[head] >= 0:
            firsts[codes[head]] = after[head]
        head += 1
    return head


@compiled
def enter(codes, firsts, lasts, after, row):
    k = codes[row]
    if k >= 0:
        if firsts[k] < 0:
            firsts[k] = row
        else:
            after[lasts[k]] = row
        lasts[k] = row


@compiled
def core(
    old, old_other, now, keys, span, size, span_other, size_other, times, codes, times_other, codes_other, at, enters,
    enters_other, one, other, event,
):
    n, room, head, tail, head_other, tail_other = 0, len(one), 0, old, 0, old_other
    firsts, lasts, after = np.full(keys, -1, np.int64), np.full(keys, -1, np.int64), np.full(len(codes), -1, np.int64)
    firsts_other, lasts_other = np.full(keys, -1, np.int64), np.full(keys, -1, np.int64)
    after_other = np.full(len(codes_other), -1, np.int64)
    for row in range(old):
        enter(codes, firsts, lasts, after, row)
    for row in range(old_other):
        enter(codes_other, firsts_other, lasts_other, after_other, row)
    for i in range(len(at) + 1):
        t = at[i] if i < len(at) else now
        came, came_other = -1, -1
        if i < len(at) and enters[i]:
            came, tail = tail, tail + 1
            enter(codes, firsts, lasts, after, came)
        if i < len(at) and enters_other[i]:
            came_other, tail_other = tail_other, tail_other + 1
            enter(codes_other, firsts_other, lasts_other, after_other, came_other)
        head = leave(times, codes, firsts, after, head, tail, span, size, t)
        head_other = leave(
            times_other, codes_other, firsts_other, after_other, head_other, tail_other, span_other, size_other, t
        )
        if came_other >= 0 and codes_other[came_other] >= 0:
            partner = firsts[codes_other[came_other]]
            while partner >= 0:
                if n < room:
                    one[n], other[n], event[n] = partner, came_other, i
                n += 1
                partner = after[partner]
        if came >= 0 and codes[came] >= 0:
            partner = firsts_other[codes[came]]
            while partner >= 0:
                if partner != came_other:
                    if n < room:
                        one[n], other[n], event[n] = came, partner, i
                    n += 1
                partner = after_other[partner]
    return n, head, head_other
"""
"""The pairs in order, as many as there is room for, and their number: an event that enters both sides meets itself once."""


@dataclass(frozen=True)
class Side:
    """An input of the join: `keys` over the fields of its events, and the places of the fields that the statement reads."""

    filter: Filter
    window: Length | Time | KeepAll
    keys: tuple[Expr, ...]
    fields: tuple[int, ...]
    type: RowType

    @cached_property
    def schema(self) -> pa.Schema:
        """What is kept of a row."""
        kinds = list(self.type.fields.values())
        names = [("time", pa.int64()), *((f"key{i}", arrow(key.type)) for i, key in enumerate(self.keys))]
        return pa.schema([*names, *((f"field{place}", arrow(kinds[place])) for place in self.fields)])

    @property
    def bounds(self) -> tuple[int, int]:
        """How long and how many rows stay."""
        match self.window:
            case Time(span):
                return span, _EVER
            case Length(size):
                return _EVER, size
            case KeepAll():
                return _EVER, _EVER

    def taken(self, batch: Batch) -> np.ndarray:
        """Which events of a batch come in."""
        if batch.stream != self.filter.stream:
            return np.zeros(batch.rows, bool)
        return flags(accepted(self.filter, None, batch.columns, batch.rows), batch.rows)

    def rows(self, columns: Sequence[pa.Array], times: Ints, places: Ints) -> pa.Table:
        """What is kept of the events at some places of a batch, with the instants at which they came."""
        values = [evaluate(key, columns, len(columns[0])) for key in self.keys]
        values += [plain(columns[place]) for place in self.fields]
        if len(places) < len(columns[0]):
            values = [value.take(pa.array(places)) for value in values]
        return pa.table([pa.array(times), *values], schema=self.schema)


@dataclass(frozen=True)
class Joined:
    """The pairs of the rows of two sides that have equal keys and pass `test`, which sees, as `columns` do, the kept
    fields of the left row, then those of the right one.
    """

    left: Side
    right: Side
    test: Expr | None
    columns: tuple[Expr, ...]

    @property
    def sides(self) -> tuple[Side, Side]:
        """Left and right."""
        return self.left, self.right

    def start(self, now: int) -> State:
        """Two empty windows."""
        tables = {name: side.schema.empty_table() for name, side in zip(SIDES, self.sides, strict=True)}
        return State(tables, {"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The pairs that a batch of one of the streams makes."""
        before: int = state.scalars["now"]
        now = max(before, batch.now)
        taken = [side.taken(batch) for side in self.sides]
        places = np.flatnonzero(taken[0] | taken[1])
        held = [state.tables[name] for name in SIDES]
        tables = list(held)
        for place, side in enumerate(self.sides):
            if taken[place].any():
                came = np.flatnonzero(taken[place])
                arrived = side.rows(batch.columns, np.maximum(batch.times[came], before), came)
                tables[place] = pa.concat_tables([held[place], arrived]).combine_chunks()
        codes, keys = self._numbered(tables)
        times = [table.column("time").to_numpy() for table in tables]
        at = np.maximum(batch.times[places], before)
        given = (
            *(table.num_rows for table in held), now, keys, *self.left.bounds, *self.right.bounds,
            times[0], codes[0], times[1], codes[1], at, *(mask[places] for mask in taken),
        )  # fmt: skip
        n = loop(_LOOP)(*given, *_room(0))[0]
        if n > _MOST and batch.rows > 1:
            return self._in_halves(state, batch)
        one, other, event = _room(n)
        _, *heads = loop(_LOOP)(*given, one, other, event)
        left = {name: table.slice(head) for name, table, head in zip(SIDES, tables, heads, strict=True)}
        columns, mask = self._made(tables, one, other)
        found = Output(at[event], places[event], columns)
        after = State(left, {"now": now})
        return after, found if mask is None else found.where(mask)

    def _in_halves(self, state: State, batch: Batch) -> tuple[State, Output]:
        middle = batch.rows // 2
        state, begun = self.step(state, batch.part(0, middle))
        state, rest = self.step(state, batch.part(middle, batch.rows))
        columns = tuple(pa.concat_arrays(pair) for pair in zip(begun.columns, rest.columns, strict=True))
        at, event = np.concatenate([begun.at, rest.at]), np.concatenate([begun.event, rest.event + middle])
        return state, Output(at, event, columns)

    def content(self, state: State) -> list[tuple[Any, ...]]:
        """The values of the pairs that the windows hold now; nothing here is hot."""
        tables = [state.tables[name] for name in SIDES]
        (codes, codes_other), _ = self._numbered(tables)
        order = np.argsort(codes_other, kind="stable")
        begins, ends = (np.searchsorted(codes_other[order], codes, side) for side in ("left", "right"))
        counts = np.where(codes < 0, 0, ends - begins)
        within = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        one, other = np.repeat(np.arange(len(codes)), counts), order[np.repeat(begins, counts) + within]
        columns, mask = self._made(tables, one, other)
        shown = columns if mask is None else tuple(column.filter(mask) for column in columns)
        return list(zip(*(column.to_pylist() for column in shown), strict=True))

    def _numbered(self, tables: Sequence[pa.Table]) -> tuple[list[Ints], int]:
        """The keys of all rows of both sides as codes that hold for this batch; null is -1 and equals nothing."""
        one, other, keys = matching(
            (whole(tables[0].column(1 + place)), whole(tables[1].column(1 + place)))
            for place in range(len(self.left.keys))
        )
        return [one, other], keys

    def _made(self, tables: Sequence[pa.Table], one: Ints, other: Ints) -> tuple[tuple[pa.Array, ...], pa.Array | None]:
        """The columns of pairs, and which of them pass; None: all."""
        skipped = 1 + len(self.left.keys)
        sides = zip(tables, (pa.array(one), pa.array(other)), strict=True)
        flat = [whole(column).take(rows) for table, rows in sides for column in table.columns[skipped:]]
        columns = tuple(evaluate(each, flat, len(one)) for each in self.columns)
        return columns, passing(self.test, flat, len(one))


def _room(pairs: int) -> list[Ints]:
    return [np.empty(pairs, np.int64) for _ in range(3)]


def joined(plan: Select, reads: Mapping[str, RowType]) -> Joined | str:
    """The core of a join of streams with those fields, or the first reason against it."""
    if plan.join is None or len(plan.inputs) != 2:
        return "a join of more than two"
    (side,) = plan.join.sides
    if side.kind != "inner" or plan.join.only is not None:
        return "an outer or unidirectional join"
    if plan.levels or plan.grouping is not None or plan.lookups or plan.rate.limited:
        return "aggregates, look-ups or an output rate over a join"
    reason = first(map(_unheld, plan.inputs))
    if reason is not None:
        return reason
    projection = plan.projection
    parts = [*conjuncts(side.condition), *conjuncts(plan.where), *conjuncts(projection.having)]
    keys = [pair for part in parts if (pair := _key(part)) is not None]
    if not keys:
        return "a join without equal fields of both sides"
    rest = tuple(part for part in parts if _key(part) is None)
    used = [each for expr in (*rest, *projection.columns) for each in walk(expr) if isinstance(each, Field)]
    fields = [sorted({each.index for each in used if each.input == number}) for number in range(2)]
    sides = [
        _side(input, [of_one_event(pair[number]) for pair in keys], fields[number], reads)
        for number, input in enumerate(plan.inputs)
    ]
    places = {(number, index): len(fields[0]) * number + place
              for number in range(2) for place, index in enumerate(fields[number])}  # fmt: skip
    columns = tuple(_flat(each, places) for each in projection.columns)
    tests = tuple(_flat(each, places) for each in rest)
    reason = first(filtered(each.filter) for each in sides) or first(map(against, (*columns, *tests)))
    test = None if not tests else tests[0] if len(tests) == 1 else All(tests)
    return reason or Joined(sides[0], sides[1], test, columns)


def _unheld(input: Input) -> str | None:
    """The first reason against an input."""
    if not isinstance(input, StreamInput) or input.unnest or input.prior:
        return "a join with what is not a plain stream"
    match input.window:
        case Length() | KeepAll() | Time(size=None):
            return None
        case None:
            return "a join of a stream without a window"
        case _:
            return f"a join over the window {type(input.window).__name__}"


def _side(input: Input, keys: Sequence[Expr], fields: Sequence[int], reads: Mapping[str, RowType]) -> Side:
    assert isinstance(input, StreamInput) and isinstance(input.window, Length | Time | KeepAll)
    return Side(input.filter, input.window, tuple(keys), tuple(fields), reads[input.filter.stream])


def _key(part: Expr) -> tuple[Expr, Expr] | None:
    """What must be equal on the left and on the right, where a hash can tell."""
    pair = equality(part, 1)
    return pair if pair is not None and equated(*map(of_one_event, pair)) else None


def _flat(expr: Expr, places: Mapping[tuple[int, int], int]) -> Expr:
    """An expression over the fields that are kept of both sides."""
    if isinstance(expr, Field):
        return Field(0, places[expr.input, expr.index], expr.type)
    return inside(expr, lambda inner: _flat(inner, places))
