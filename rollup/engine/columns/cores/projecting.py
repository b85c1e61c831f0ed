"""Filter and project: no state but the clock, no loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.covering import against, filtered, first, unshown
from rollup.engine.columns.cores.sharing import evaluated
from rollup.engine.columns.evaluate import Columns, flags, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.numbering import as_double
from rollup.engine.expressions import Const, Expr
from rollup.engine.rows.plans import Filter, Select, StreamInput
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.state import State


@dataclass(frozen=True)
class FilterProject(Core):
    """The events that pass, each with its columns; `Projection.whole`: the event's own."""

    filter: Filter
    projection: Projection
    where: Expr | None = None

    def start(self, now: int) -> State:
        """The clock."""
        return State(scalars={"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """One row an event that passes."""
        after, made = self.made(state, self.taken(state, batch))
        return after, made.output(self.projection)

    @property
    def clock_inserts(self) -> bool:
        """There are none."""
        return True

    @property
    def clock_concerns(self) -> bool:
        """It goes by its events alone."""
        return False

    def taken(self, state: State, batch: Batch) -> Taken:
        """The events that pass."""
        return Taken.of(batch, state.scalars["now"], self.filter, self.where)

    def made(self, state: State, taken: Taken) -> tuple[State, Made]:
        """The rows before they are projected."""
        return State(scalars={"now": taken.now}), Made(taken, taken.times, None, taken.columns)


def filter_project(plan: Select) -> FilterProject | str:
    """The core of a statement without windows and aggregates, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or input.unnest or input.prior:
        return "an input that is not a plain stream"
    if input.window is not None:
        return f"the window {type(input.window).__name__}"
    if plan.levels or plan.grouping is not None or plan.lookups or plan.rate.limited:
        return "aggregates, look-ups or an output rate"
    projection = plan.projection
    columns = () if projection.whole else projection.columns
    reason = filtered(input.filter, plan.where) or first(map(unshown, columns)) or against(projection.having)
    return reason or FilterProject(input.filter, projection, plan.where)


@dataclass(frozen=True)
class Taken:
    """The events of a batch that pass a filter: their columns, instants, and places in the batch; the clock ends at `now`."""

    columns: tuple[pa.Array, ...]
    times: Ints
    places: Ints
    now: int
    everything: bool = False
    """Whether that is so of each, so that `places` count from 0."""

    @classmethod
    def of(cls, batch: Batch, now: int, filter: Filter, where: Expr | None = None) -> Taken:
        """The events that pass. One that is older than the clock comes at the clock's instant."""
        times = batch.times if not batch.rows or batch.times[0] >= now else np.maximum(batch.times, now)
        mask = accepted(filter, where, batch.columns, batch.rows)
        now = max(now, batch.now)
        if mask is None:
            return cls(batch.columns, times, np.arange(batch.rows), now, True)
        places = np.flatnonzero(flags(mask, batch.rows))
        if len(places) == batch.rows:
            return cls(batch.columns, times, places, now, True)
        taken = pa.array(places)
        return cls(tuple(column.take(taken) for column in batch.columns), times[places], places, now)

    def until(self, rows: int) -> Taken:
        """So many of them, the first."""
        if rows >= len(self.times):
            return self
        columns = tuple(column[:rows] for column in self.columns)
        return replace(self, columns=columns, times=self.times[:rows], places=self.places[:rows])

    def placed(self, event: Ints) -> Ints:
        """The batch's events at some places among those taken, or TIMER."""
        if self.everything or not len(self.places):
            return event
        return np.where(event >= 0, self.places[np.maximum(event, 0)], event)


@dataclass(frozen=True)
class Made:
    """Rows of a step that are not projected yet.

    * `at`, `event`: their instants, and the place of their event among those taken, or TIMER. None: each event has one row.
    * `sign`: as in `Output`.
    """

    taken: Taken
    at: Ints
    event: Ints | None
    columns: Sequence[pa.Array]
    sign: np.ndarray | None = None

    @property
    def places(self) -> Ints:
        """The batch's event that brought each row, or TIMER."""
        return self.taken.places if self.event is None else self.taken.placed(self.event)

    def at_places(self, places: Ints) -> Made:
        """The rows at some places."""
        event = places if self.event is None else self.event[places]
        columns = [column.take(pa.array(places)) for column in self.columns]
        sign = None if self.sign is None else self.sign[places]
        return Made(self.taken, self.at[places], event, columns, sign)

    def output(self, projection: Projection) -> Output:
        """The projected rows, of those that fulfil `having`."""
        found = Output(self.at, self.places, projected(projection, self.columns, len(self.at)), sign=self.sign)
        mask = passing(projection.having, self.columns, len(self.at))
        return found if mask is None else found.where(mask)


def accepted(filter: Filter, where: Expr | None, columns: Columns, rows: int) -> pa.Array | None:
    """Which events pass, as a mask without nulls; None: all of them."""
    masks = [mask for test in (filter.test, where) if (mask := passing(test, columns, rows)) is not None]
    for place, value in filter.equals:
        assert isinstance(value, Const)
        masks.append(_equal(as_double(plain(columns[place])), value.value))
    result = masks[0] if masks else None
    for mask in masks[1:]:
        result = pc.and_(result, mask)
    return result


def _equal(column: pa.Array, value: Any) -> pa.Array:
    """Which values are a literal. Arrow refuses to compare doubles with a whole number that none of them can be."""
    if pa.types.is_floating(column.type):
        if float(value) != value:
            return pa.repeat(False, len(column))
        value = float(value)
    return pc.fill_null(pc.equal(column, pa.scalar(value)), False)


def projected(projection: Projection, columns: Sequence[pa.Array], rows: int) -> tuple[pa.Array, ...]:
    """The columns of the result."""
    if projection.whole:
        return tuple(plain(column) for column in columns)
    return evaluated(projection.columns, columns, rows)
