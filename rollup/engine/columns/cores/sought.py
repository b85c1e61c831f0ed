"""A sub-query that asks for the rows of a key: whether a window holds any, the value of the only one, or whether a value is
among theirs. Without a key it asks for all rows of the window.

State: `content`, the rows of the window: arrival, whether they are looked for at all, and the values that are asked of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.covering import KEYS, against, equated, filtered, first, wide
from rollup.engine.columns.cores.keys import matching
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.cores.rewriting import of_one_event
from rollup.engine.columns.evaluate import Columns, arrow, evaluate, flags, passing
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.columns.numbering import codes_of
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Const, Expr, inputs_read
from rollup.engine.rows.plans import StreamInput, Subquery
from rollup.engine.rows.selects.joining import equality
from rollup.engine.rows.windows.counted import Length
from rollup.engine.rows.windows.keyed import Unique
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.types import BOOL, RowType

_EVER = -1
_LOOP = """
def core(old, size, span, times, codes, before, places, came, wanted, keys, many, which):
    there, total = np.zeros(keys, np.int64), np.zeros(keys, np.int64)
    head = come = 0
    for i in range(len(came)):
        while come < len(times) and (come < old or places[come - old] <= i):
            k = codes[come]
            if k >= 0:
                there[k] += 1
                total[k] += come
            k = codes[before[come]] if before[come] >= 0 else -1
            if k >= 0:
                there[k] -= 1
                total[k] -= before[come]
            come += 1
        while (size >= 0 and come - head > size) or (span >= 0 and head < come and times[head] + span <= came[i]):
            k = codes[head]
            if k >= 0:
                there[k] -= 1
                total[k] -= head
            head += 1
        k = wanted[i]
        if k >= 0:
            many[i], which[i] = there[k], total[k]
"""
"""Rows come and leave between events, and each event finds so `many` of its key, whose numbers add up to `which`. `before`: the
row that one makes leave, or -1."""


@dataclass(frozen=True)
class Sought:
    """The sub-query. `keys`: what must be equal, of the row and of the event that asks; `where`: what the row must fulfil.

    `column`: the value that is asked for; `value`: what is looked for among those values.
    """

    input: StreamInput
    type: RowType
    what: Literal["exists", "value", "among"]
    keys: tuple[tuple[Expr, Expr], ...]
    column: Expr
    where: Expr | None = None
    value: Expr | None = None

    @cached_property
    def _kept(self) -> tuple[Expr, ...]:
        """What is asked of the rows that the window holds: their keys, what tells them apart, and their value."""
        window = self.input.window
        return (*(own for own, _ in self.keys), *(window.key if isinstance(window, Unique) else ()), *self.read)

    @property
    def read(self) -> tuple[Expr, ...]:
        """What is asked of a row that is found."""
        return (self.column,)

    @cached_property
    def _schema(self) -> pa.Schema:
        fields = [pa.field(f"kept{i}", arrow(each.type)) for i, each in enumerate(self._kept)]
        return pa.schema([pa.field("time", pa.int64()), pa.field("passes", pa.bool_()), *fields])

    def start(self, now: int) -> State:
        """An empty window."""
        return State({"content": self._schema.empty_table()}, {"now": now})

    def holding(self, columns: Columns, times: Ints, now: int) -> State:
        """The state of a window that holds some events, given as their fields."""
        return State({"content": self._rows(columns, times)}, {"now": now})

    def _rows(self, columns: Columns, times: Ints) -> pa.Table:
        passes = flags(passing(self.where, columns, len(times)), len(times))
        kept = [evaluate(each, columns, len(times)) for each in self._kept]
        return pa.table([pa.array(times), pa.array(passes), *kept], schema=self._schema)

    def step(self, state: State, batch: Batch, asking: bool) -> tuple[State, list[pa.Array]]:
        """The state after a batch; and, where its events are `asking`, the answer for each."""
        before: int = state.scalars["now"]
        taken = Taken.of(batch.on(self.input.filter.stream, self.type), before, self.input.filter)
        content = pa.concat_tables([state.tables["content"], self._rows(taken.columns, taken.times)]).combine_chunks()
        replaced = self._replaced(content)
        answers = list[pa.Array]()
        if asking:
            old = state.tables["content"].num_rows
            answers = [self.answer(Window(self, content, old, replaced, taken.places), batch, before)]
        left = content.filter(pa.array(self._stays(content, replaced, taken.now)))
        return State({"content": left}, {"now": taken.now}), answers

    def _replaced(self, content: pa.Table) -> Ints:
        """The row that each makes leave by being of the same key, or -1."""
        before = np.full(content.num_rows, -1, np.int64)
        if isinstance(window := self.input.window, Unique) and content.num_rows:
            codes = _apart(content.columns[2 + len(self.keys) :][: len(window.key)])
            order = np.argsort(codes, kind="stable")
            again = np.flatnonzero(codes[order][1:] == codes[order][:-1]) + 1
            before[order[again]] = order[again - 1]
        return before

    def _stays(self, content: pa.Table, replaced: Ints, now: int) -> np.ndarray:
        """Which rows the window still holds."""
        stays = np.ones(content.num_rows, bool)
        match self.input.window:
            case Length(size):
                stays[: max(content.num_rows - size, 0)] = False
            case Time(span):
                stays = content.column("time").to_numpy() + span > now
            case _:
                stays[replaced[replaced >= 0]] = False
        return stays

    @property
    def bounds(self) -> tuple[int, int]:
        """How many rows the window holds and for how long, or that it is not so bounded."""
        match self.input.window:
            case Length(size):
                return size, _EVER
            case Time(span):
                return _EVER, span
            case _:
                return _EVER, _EVER

    def answer(self, window: Window, batch: Batch, before: int) -> pa.Array:
        """The answer to each event; `before`: the clock until then."""
        asked, came = batch.columns, np.maximum(batch.times, before)
        outer = [evaluate(each, asked, batch.rows) for _, each in self.keys]
        many, which = window.found(outer, came)
        if self.what == "exists":
            return pa.array(many > 0)
        if self.what == "value":
            return window.values.take(pa.array(which, mask=many != 1))
        assert self.value is not None
        value = evaluate(self.value, asked, batch.rows)
        hits, _ = window.found([*outer, value], came)
        unknown = window.found(outer, came, nulls=True)[0] > 0
        missing = value.is_null().to_numpy(zero_copy_only=False)
        return pa.array(hits > 0, mask=(many > 0) & (hits == 0) & (unknown | missing))


@dataclass(frozen=True)
class Window:
    """The rows of a window in order, those that it held before, then those that came with the batch at some `places`."""

    of: Sought
    content: pa.Table
    old: int
    replaced: Ints
    places: Ints

    @property
    def times(self) -> Ints:
        """When each row came."""
        return self.content.column("time").to_numpy()

    @property
    def values(self) -> pa.Array:
        """What is asked of each row."""
        return self._column(self.content.num_columns - 1)

    def read(self, columns: int) -> list[pa.Array]:
        """The same of so many things."""
        return [self._column(self.content.num_columns - columns + place) for place in range(columns)]

    def _column(self, place: int) -> pa.Array:
        column = self.content.column(place)
        return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()

    def codes(self, outer: Sequence[pa.Array], asked: int) -> tuple[Ints, Ints, int]:
        """Numbers for the rows and for so many events that are `asked`, equal where the keys are, and the number that all are below;
        behind the keys stands the value. A row that is not looked for has -1.
        """
        keys = len(self.of.keys)
        own = [self._column(2 + place) for place in range(keys)] + ([self.values] if len(outer) > keys else [])
        codes, wanted, below = np.zeros(self.content.num_rows, np.int64), np.zeros(asked, np.int64), 1
        if own:
            codes, wanted, below = matching(zip(own, outer, strict=True), itself=[keys])
        return np.where(self.content.column("passes").to_numpy(), codes, -1), wanted, below

    def found(self, outer: Sequence[pa.Array], came: Ints, nulls: bool = False) -> tuple[Ints, Ints]:
        """How many rows each event finds that have its keys, and what their numbers add up to. `nulls`: of the rows without a
        value alone.
        """
        codes, wanted, below = self.codes(outer, len(came))
        if nulls:
            codes = np.where(self.values.is_null().to_numpy(zero_copy_only=False), codes, -1)
        many, which = np.zeros(len(came), np.int64), np.zeros(len(came), np.int64)
        loop(_LOOP)(
            self.old, *self.of.bounds, self.times, codes, self.replaced, self.places, came, wanted, below, many, which
        )  # fmt: skip
        return many, which


def _apart(columns: Sequence[pa.ChunkedArray]) -> Ints:
    """Numbers of rows, equal where all values are; null is a value."""
    found = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        codes, below = codes_of(column.combine_chunks())
        found = np.unique(found * (below + 1) + codes + 1, return_inverse=True)[1]
    return found


def sought(lookup: Subquery, input: StreamInput, type: RowType, value: Expr | None) -> Sought | str:
    """A sub-query of one column without aggregates, or the first reason against it; `value`: what is looked for among its rows."""
    keys, where, rest = parted(lookup)
    if (
        lookup.calls
        or lookup.keys
        or lookup.having is not None
        or rest is not None
        or inputs_read(lookup.columns) - {1}
    ):
        return "a sub-query that asks more of the row outside than equal values"
    column = Const(True, BOOL) if lookup.mode == "exists" else of_one_event(lookup.columns[0])
    what = "exists" if lookup.mode == "exists" else "value" if value is None else "among"
    compared = keys if value is None else (*keys, (column, value))
    reason = unheld(input) or first(
        (filtered(input.filter, where), unequal(compared), against(column) or wide(column))
    )  # fmt: skip
    return reason or Sought(input, type, what, keys, column, where, value)


def parted(lookup: Subquery) -> tuple[tuple[tuple[Expr, Expr], ...], Expr | None, Expr | None]:
    """The condition of a sub-query in parts: what must be equal, of its row and of the one outside; what its row must fulfil
    alone, as an expression of one event; and the rest.
    """
    parts = conjuncts(lookup.where)
    pairs = [pair for part in parts if (pair := equality(part, 1)) is not None]
    others = [each for each in parts if equality(each, 1) is None]
    own = conjunction([each for each in others if not inputs_read([each]) - {1}])
    rest = conjunction([each for each in others if inputs_read([each]) - {1}])
    keys = tuple((of_one_event(inner), of_one_event(outer)) for outer, inner in pairs)
    return keys, None if own is None else of_one_event(own), rest


def unequal(pairs: Sequence[tuple[Expr, Expr]]) -> str | None:
    """The reason against keys that no hash can tell to be equal."""
    return None if all(equated(*pair) for pair in pairs) else "a sub-query that asks for keys of other types"


def unheld(input: StreamInput) -> str | None:
    """The first reason against the window of a sub-query."""
    if input.unnest or input.prior:
        return "a sub-query over an input that is not a plain stream"
    match input.window:
        case Length() | Time(size=None):
            return None
        case Unique(key=keys, first=False):
            known = all(against(each) is None and wide(each) is None and each.type.kind in KEYS for each in keys)
            return None if known else "a sub-query over a window by values of other types"
        case window:
            return f"a sub-query over the window {type(window).__name__}"
