"""`output after` alone: what a core gives comes at once, but nothing does before so much time, or so many rows.

State: that of the core; what is still waited for.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.leveled import Leveled
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.cores.recalling import Recalling
from rollup.engine.columns.rates.counts import After
from rollup.engine.rows.plans import Emitted
from rollup.engine.state import State


@dataclass(frozen=True)
class Delayed:
    """What a core makes once `after` is over; of its rows those that come are counted, whatever is `emitted` of them."""

    core: FilterProject | Folded | Leveled | Recalling
    after: After
    emitted: Emitted

    def start(self, now: int) -> State:
        """Everything is waited for."""
        return self.state(self.core.start(now), self.after.start(now))

    @staticmethod
    def state(core: State, waits: int | None) -> State:
        """The state of the whole."""
        return State.holding({"core": core}, {"now": core.scalars["now"], "waits": waits})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """What the core makes of a batch, once nothing is waited for."""
        return self.let(state, *self.core.step(state.held()["core"], batch))

    def let(self, state: State, core: State, made: Output) -> tuple[State, Output]:
        """The state after a step of the core, and what comes of the rows it made: those of the delivery that ends the wait, and
        of all behind it.
        """
        waits = state.scalars["waits"]
        if waits is None:
            return self.state(core, None), made.emitted(self.emitted)
        come = np.ones(made.rows, np.int64) if made.sign is None else (made.sign > 0).astype(np.int64)
        begin, waits = self.after.over(waits, made.at, come)
        if begin < made.rows:
            begin = int(np.argmax((made.at == made.at[begin]) & (made.event == made.event[begin])))
        return self.state(core, waits), made.at_places(np.arange(begin, made.rows)).emitted(self.emitted)
