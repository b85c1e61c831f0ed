"""A sub-query over all rows that ever came, of which it is asked whether a value is among theirs, or whether any has a key: only
the different values are kept, so that an event costs as much however many have come.

State: `known`, the values but for null; whether there has been a null, and any row at all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.covering import filtered, first
from rollup.engine.columns.cores.keys import KeyCodes, whole
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.cores.rewriting import of_one_event
from rollup.engine.columns.cores.sought import parted, unequal
from rollup.engine.columns.evaluate import Columns, arrow, evaluate, flags, passing
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Expr, inputs_read
from rollup.engine.rows.plans import StreamInput, Subquery
from rollup.engine.rows.windows.counted import KeepAll
from rollup.engine.state import State
from rollup.engine.types import Kind, RowType


@dataclass(frozen=True)
class Remembered:
    """The sub-query: the value `own` of each of its rows that fulfils `where`, and that which is `asked` for. `among`: nulls leave
    unknown whether it is there.
    """

    input: StreamInput
    type: RowType
    own: Expr
    asked: Expr
    among: bool
    where: Expr | None = None
    _codes: KeyCodes = field(default_factory=KeyCodes, compare=False, repr=False)

    def start(self, now: int) -> State:
        """Nothing has come."""
        return _state(pa.array([], self._kind), now, False, False)

    def holding(self, columns: Columns, rows: int, now: int) -> State:
        """The state when some events have come, given as their fields."""
        values, _ = self._values(columns, rows)
        known = self._codes.codes(pa.array([], self._kind), values.drop_null())[1]
        return _state(known, now, values.null_count > 0, len(values) > 0)

    @property
    def _kind(self) -> pa.DataType:
        same = self.own.type == self.asked.type
        return arrow(self.own.type) if same else pa.int64()

    def _values(self, columns: Columns, rows: int) -> tuple[pa.Array, np.ndarray]:
        """The values of the rows that fulfil the condition, and which rows do."""
        values, passes = evaluate(self.own, columns, rows).cast(self._kind), passing(self.where, columns, rows)
        return values if passes is None else values.filter(passes), flags(passes, rows)

    def step(self, state: State, batch: Batch, asking: bool) -> tuple[State, list[pa.Array]]:
        """The state after a batch; and, where its events are `asking`, the answer for each."""
        before = whole(state.tables["known"].column(0))
        taken = Taken.of(batch.on(self.input.filter.stream, self.type), state.scalars["now"], self.input.filter)
        values, passes = self._values(taken.columns, len(taken.times))
        places = taken.places[passes]
        null = values.is_null().to_numpy(zero_copy_only=False)
        codes, known = self._codes.codes(before, values.drop_null())
        nulls, some = state.scalars["nulls"], state.scalars["some"]
        after = _state(known, taken.now, nulls or bool(null.any()), some or len(values) > 0)
        if not asking:
            return after, []
        wanted = evaluate(self.asked, batch.columns, batch.rows).cast(self._kind)
        since = _since(codes, places[~null], len(before), len(known))
        now = np.arange(batch.rows)
        place = self._codes.found(known, wanted)
        hits = (place >= 0) & (np.append(since, batch.rows)[place] <= now)
        if not self.among:
            return after, [pa.array(hits)]
        missing = wanted.is_null().to_numpy(zero_copy_only=False)
        unknown = missing | (now >= _first(nulls, places[null], batch.rows))
        return after, [pa.array(hits, mask=~hits & unknown & (now >= _first(some, places, batch.rows)))]


def _state(known: pa.Array, now: int, nulls: bool, some: bool) -> State:
    return State({"known": pa.table([known], names=["value"])}, {"now": now, "nulls": nulls, "some": some})


def _since(codes: Ints, places: Ints, old: int, known: int) -> Ints:
    """From which event of the batch on each value is there; -1: before it."""
    since = np.full(known, -1, np.int64)
    different, at = np.unique(codes, return_index=True)
    since[different[different >= old]] = places[at[different >= old]]
    return since


def _first(before: bool, places: Ints, rows: int) -> int:
    """From which event on something is so that was so `before`, or is so from the first of some places on."""
    return -1 if before else int(places[0]) if len(places) else rows


def remembered(lookup: Subquery, input: StreamInput, type: RowType, value: Expr | None) -> Remembered | str:
    """A sub-query over all rows without aggregates, or the first reason against it; `value`: what is looked for among its rows."""
    keys, where, rest = parted(lookup)
    found = _looked_for(lookup, keys, value)
    plain = not (lookup.calls or lookup.keys or lookup.having is not None or input.unnest or input.prior or rest)
    if not isinstance(input.window, KeepAll) or found is None or not plain:
        return "a sub-query over the window KeepAll, other than whether a value is in it"
    own, asked = found
    other = value is None and own.type.kind is Kind.DOUBLE  # what is no number is among others, but equals none
    reason = first((filtered(input.filter, where), unequal([found]), "a key of type double" if other else None))
    return reason or Remembered(input, type, own, asked, value is not None, where)


def _looked_for(lookup: Subquery, keys: Sequence[tuple[Expr, Expr]], value: Expr | None) -> tuple[Expr, Expr] | None:
    """What a row has and what is asked for: of a value that is looked for, or of the one key."""
    if value is not None:
        alone = not keys and not inputs_read(lookup.columns) - {1}
        return (of_one_event(lookup.columns[0]), value) if alone else None
    return keys[0] if len(keys) == 1 and lookup.mode == "exists" else None
