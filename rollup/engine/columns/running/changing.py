"""Events that statements change before anybody sees them, as batches."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.covering import against, first, wide
from rollup.engine.columns.evaluate import carried, evaluate, flags, passing, plain
from rollup.engine.expressions import Const, Expr, Field
from rollup.engine.rows.actions import Set, StreamUpdate
from rollup.engine.state import State
from rollup.engine.types import DataType, Kind


@dataclass(frozen=True)
class Changing:
    """Gives the events that meet `where` other values, one field after the other, each value seeing those before it."""

    sets: tuple[Set, ...]
    where: Expr | None
    kinds: tuple[DataType, ...]

    def start(self, now: int) -> State:
        """The clock."""
        return State(scalars={"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """What is told of the events that change."""
        return State(scalars={"now": max(state.scalars["now"], batch.now)}), self.changed(batch)[1]

    def changed(self, batch: Batch) -> tuple[Batch, Output]:
        """The events as they go on, and what is told of those that change: each as it is then, and as it came."""
        columns = [plain(column) for column in batch.columns]
        mask = passing(self.where, columns, batch.rows)
        which = np.flatnonzero(flags(mask, batch.rows))
        came = columns if mask is None else [column.filter(mask) for column in columns]
        made = list(came)
        for each in self.sets:
            made[each.place] = evaluate(each.value, made, len(which)).cast(carried(self.kinds[each.place]))
        after = list(columns)
        for place in {each.place for each in self.sets}:
            after[place] = made[place] if mask is None else pc.replace_with_mask(after[place], mask, made[place])
        return replace(batch, columns=tuple(after), given=None), _told(batch, which, made, came)


def _told(batch: Batch, which: np.ndarray, made: Sequence[pa.Array], came: Sequence[pa.Array]) -> Output:
    """Each of some events as it is and as it came."""
    rows = len(which)
    pairs = pa.array(np.arange(2 * rows).reshape(2, rows).T.ravel())
    columns = tuple(pa.concat_arrays([new, old]).take(pairs) for new, old in zip(made, came, strict=True))
    event = np.repeat(which, 2)
    return Output(batch.times[event], event, columns, sign=np.tile(np.array([1, -1], np.int8), rows))


def changing(plan: StreamUpdate) -> Changing | str:
    """What changes the events of a stream over columns, or the first reason against it."""
    kinds = tuple(plan.type.fields.values())
    if plan.lookups or plan.own_inputs:
        return "look-ups in a change of events"
    reasons = (
        against(plan.where),
        *(against(Field(0, place, kind)) for place, kind in enumerate(kinds)),
        *(_misfit(each.value, kinds[each.place]) for each in plan.sets),
    )
    sets = tuple(replace(each, value=_typed(each.value, kinds[each.place])) for each in plan.sets)
    return first(reasons) or Changing(sets, plan.where, kinds)


def _misfit(value: Expr, kind: DataType) -> str | None:
    """The first reason why a field of that type cannot be set to a value."""
    given = value.type.kind
    if value == Const(None, value.type):
        return None
    if given is not kind.kind and (given, kind.kind) != (Kind.INT, Kind.LONG):
        return f"a {kind} that is set to {value.type}"
    return against(value) or wide(value)


def _typed(value: Expr, kind: DataType) -> Expr:
    """A value as a field of that type has it: null is one of each."""
    return Const(None, kind) if value == Const(None, value.type) else value
