"""An input of a join over a window that a core of its own keeps: batches, and windows that let rows out in any order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch
from rollup.engine.columns.cores.changes import BY_CLOCK, Changes, Step, time_in
from rollup.engine.columns.cores.moving import Moving, moving
from rollup.engine.columns.cores.moving_windows import parts_of
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.cores.queueable import may_hold
from rollup.engine.columns.cores.queued import Queued, queued
from rollup.engine.columns.cores.sides import Arrived, Moved, Side, unheld
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Expr
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Intersection, Union
from rollup.engine.rows.windows.counted import FirstLength, LengthBatch
from rollup.engine.rows.windows.expressed import Expressed
from rollup.engine.rows.windows.external import ExternalTime
from rollup.engine.rows.windows.timed import FirstTime, TimeBatch
from rollup.engine.state import State
from rollup.engine.types import RowType

_IN_ORDER = FirstLength, FirstTime, LengthBatch, TimeBatch, ExternalTime, Expressed
"""The windows of a queue whose rows meet partners in the order in which they came."""


@dataclass(frozen=True)
class _Stepped(Arrived):
    """With the state after the step, what the window was given, its changes, and the events."""

    after: State
    step: Step
    changes: Changes
    taken: Taken


@dataclass(frozen=True, kw_only=True)
class WindowedSide(Side):
    """`core`: that of the window, which makes a row a change."""

    core: Queued

    @property
    def marks(self) -> tuple[Expr, ...]:
        """None: the core knows its own."""
        return ()

    @property
    def timed(self) -> bool:
        """Whether the clock lets rows out."""
        return self.core.parts.timed if isinstance(self.core, Moving) else self.brings

    @property
    def brings(self) -> bool:
        """Whether the clock brings rows."""
        return isinstance(self.core.window, BY_CLOCK)

    def start(self, now: int) -> State:
        """An empty window."""
        return self.core.start(now)

    def held(self, own: State) -> pa.Table:
        """The rows that the window holds; of batches those that have come."""
        content = own.tables["content"].slice(0, own.scalars["come"])
        return self._table(content.column("time").to_numpy(), [each.combine_chunks() for each in content.columns[2:]])

    def _table(self, times: Ints, fields: Sequence[pa.Array]) -> pa.Table:
        keys = [evaluate(key, fields, len(times)) for key in self.keys]
        return pa.table([pa.array(times), *keys, *(fields[place] for place in self.fields)], schema=self.schema)

    def arrived(self, own: State, batch: Batch, before: int, late: bool) -> _Stepped:
        """The rows with those that a batch brings, and what the window makes of them."""
        taken, due = self.core.taken(own, batch.on(self.filter.stream, self.type)), self.due(own)
        after, _, step, changes = self.core.stepped(own, taken, late and due is not None and due <= batch.now)
        table = self._table(step.times, step.fields)
        return _Stepped(table, step.old, taken.places, taken.now, after, step, changes, taken)

    def moved(self, rows: Arrived, codes: Ints) -> tuple[Moved, State]:
        """The changes of the window, and the state after them."""
        assert isinstance(rows, _Stepped)
        changes, old = rows.changes, rows.old
        event = np.where(changes.event >= 0, rows.taken.placed(changes.event), TIMER)
        if changes.listed:
            came, gone = changes.listed
            return Moved(came, changes.come, gone, changes.gone, changes.at, event), rows.after
        came, gone = old + np.arange(_last(changes.come, old) - old), np.arange(_last(changes.gone, 0))
        return Moved(came, changes.come - old, gone, changes.gone, changes.at, event), rows.after

    def due(self, own: State) -> int | None:
        """When the clock makes the next change."""
        return own.scalars["due"] if self.core.dated else None


def _last(counts: Ints, otherwise: int) -> int:
    return int(counts[-1]) if len(counts) else otherwise


def side_of(input: StreamInput, keys: Sequence[Expr], fields: Sequence[int], type: RowType) -> Side | str:
    """An input of a join, with what is equal and what is kept of its rows; or the first reason against its window."""
    reason = unheld(input.window)
    if input.window is None or reason is None:
        return Side(input.filter, input.window, tuple(keys), tuple(fields), type)
    core = _core(input, type)
    if core is None:
        return reason
    if isinstance(core, str):
        return core
    return WindowedSide(input.filter, input.window, tuple(keys), tuple(fields), type, core=core)


def _core(input: StreamInput, type: RowType) -> Queued | str | None:
    """The core of a window, or the first reason against it; None where its rows meet partners in another order."""
    window = input.window
    if time_in(window) is not None:
        return "a join over a window by a time that rows carry"
    plan = Select((StreamInput(input.filter, window),), type, Projection(()))
    if isinstance(window, _IN_ORDER) and may_hold(window):
        core = queued(plan, type)
    elif _any_order(window):
        core = moving(plan, type)
    else:
        return None
    return core if isinstance(core, str) else replace(core, by_group=True)


def _any_order(window: WindowSpec | None) -> bool:
    parts = None if isinstance(window, Intersection | Union) else parts_of(window)
    return parts is not None and not (parts.batches or parts.each_apart)
