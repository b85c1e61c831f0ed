"""Output snapshot of a window's own rows: what it holds when an output is due."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch, Output
from rollup.engine.columns.cores.covering import first
from rollup.engine.columns.cores.folded import unkeyed
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.moving import Moving
from rollup.engine.columns.cores.projecting import projected
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.evaluate import passing
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.counts import After, Counts, Pacing
from rollup.engine.columns.rates.intervals import moves_of
from rollup.engine.columns.rates.rated import Rated
from rollup.engine.rows.windows.keyed import Unique
from rollup.engine.state import State


@dataclass(frozen=True)
class Contents(Rated):
    """The same where the rows that the window of a core holds are shown as they came, and nothing waits."""

    def shown(self, state: State, batch: Batch, ticks: Ints | None, released: bool = False) -> tuple[State, Output]:
        core, counts = state.held()["core"], Counts.of(state)
        assert isinstance(self.core, Queued)
        taken = self.core.taken(core, batch)
        after, made = self.core.released(core, taken) if released else self.core.made(core, taken)
        moves = moves_of(made)
        _, counts, instants = self._ticks(counts, moves.at, moves.come, taken.now, ticks)
        held = list(self._held(self.core, core, batch, np.minimum(instants, taken.now)))
        if self.emitted == "old":  # what is there has not left
            held = [each.slice(0, 0) for each in held]
        every = pa.concat_tables([self.core.waiting(core).slice(0, 0), *held]).combine_chunks()
        at = np.repeat(instants, [each.num_rows for each in held])
        columns = list(map(whole, every.columns[2:]))
        ticked = instants, np.full(len(instants), TIMER)
        shown = projected(self.core.projection, columns, len(at))
        output = Output(at, np.full(len(at), TIMER), tuple(shown), ticks=ticked)
        mask = passing(self.core.projection.having, columns, len(at))
        tables = state.tables["waiting"], state.tables["latest"]
        return self.state({"core": after}, *tables, counts), output if mask is None else output.where(mask)

    @staticmethod
    def _held(core: Queued, state: State, batch: Batch, instants: Ints) -> Iterator[pa.Table]:
        """What the window holds at some instants, at each before the events of it come."""
        begin, times = 0, np.maximum(batch.times, state.scalars["now"])
        for now, end in zip(instants.tolist(), np.searchsorted(times, instants).tolist(), strict=True):
            part = replace(batch.part(begin, end), now=now)
            state, begin = core.made(state, core.taken(state, part))[0], end
            held = core.waiting(state)
            yield held.take(np.argsort(held.column("group").to_numpy(), kind="stable")) if core.keys else held


def contents(core: object, pacing: Pacing) -> Queued | str:
    """The core of whose window outputs show what it holds, or the first reason against it.

    The rows of a window by key stand in it by when their keys came first, as groups by these keys do.
    """
    if not isinstance(core, Queued) or core.calls or core.by_group:
        return "output snapshot of one row a row with aggregates, or without a window"
    if not pacing.clock.runs or pacing.after != After():
        return "output snapshot of one row a row, other than by the clock"
    if not core.batches and not isinstance(core, Moving):
        return core
    if isinstance(core.window, Unique) and not core.keys:
        reason = first(map(unkeyed, core.window.key))
        return reason or (core if core.window.first else replace(core, keys=core.window.key))
    return "output snapshot of one row a row over a window of batches, or whose rows stand otherwise than they came"
