"""`output first`: of each interval what comes first passes at once, the rest does not come at all.

State: that of the core; whether an interval waits for its first change and since when; of groups, which have intervals of
their own, `units`: whether one has begun, rows that came since, since when, rows that left since.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.projecting import FilterProject, Made
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.intervals import Opening, first, moves_of
from rollup.engine.columns.rates.units import Units, renumbered
from rollup.engine.rows.plans import Emitted
from rollup.engine.state import State
from rollup.engine.timers import edge


@dataclass(frozen=True)
class Firsts:
    """The first change of a core's that shows something in each interval of `span` or of `limit` rows, one of them 0.

    `grouped`: the first row of each group; over a window also what leaves counts, and is shown as what comes.
    """

    core: FilterProject | Folded
    span: int
    limit: int
    grouped: bool
    emitted: Emitted

    def start(self, now: int) -> State:
        """Every interval waits for its first change."""
        return self.state(self.core.start(now), Opening(), Units.of([[]] * 4))

    @staticmethod
    def state(core: State, opening: Opening, units: pa.Table) -> State:
        """The state of the whole."""
        return State.holding({"core": core}, {"now": core.scalars["now"], **vars(opening)}, {"units": units})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """What begins an interval."""
        return self.shown(state, batch)

    def shown(self, state: State, batch: Batch, late: int | None = None) -> tuple[State, Output]:
        """The same; `late`: when what leaves the window was due, where a clock that jumped lets it out late and no event comes."""
        units, opening = state.tables["units"], Opening(*(state.scalars[name] for name in vars(Opening())))
        before = state.held()["core"]
        taken = self.core.taken(before, batch)
        if late is not None and isinstance(self.core, Queued) and self.core.dated:
            core, made = self.core.released(before, taken)
        else:
            core, made = self.core.made(before, taken)
        if self.grouped:
            picked, units = self._of_units(made, self._units(units), before, core)
            core, units = self._compacted(core, units)
        else:
            picked, opening = self._of_changes(made, opening, core.scalars["now"], late)
        made = made.at_places(picked)
        made = replace(made, sign=None) if self.grouped else made  # what leaves may begin an interval, and comes then
        found = made.output(self.core.projection).emitted(self.emitted)
        return self.state(core, opening, units), found

    def opened(self, state: State, now: int) -> State:
        """The clock has reached an instant that begins an interval; nothing leaves a window by it."""
        due = edge(state.scalars["due"], self.span, now)
        return State(state.tables, {**state.scalars, "opened": True, "due": due})

    def _of_changes(self, made: Made, opening: Opening, now: int, late: int | None) -> tuple[Ints, Opening]:
        """The rows of the changes that begin an interval."""
        moves, shown = moves_of(made), made.passes(self.core.projection.having)
        if self.emitted == "old":
            assert made.sign is not None
            shown = shown & (made.sign < 0)
        visible = np.zeros(len(moves.at), bool)
        visible[moves.of_rows[shown]] = True
        picks, opening = first(moves, visible, (self.span, self.limit), now, opening, late)
        return np.flatnonzero(np.isin(moves.of_rows, picks)), opening

    def _of_units(self, made: Made, units: Units, before: State, core: State) -> tuple[Ints, pa.Table]:
        """The rows that begin an interval of their group."""
        assert isinstance(self.core, Folded)
        passes, begin = made.passes(self.core.projection.having), before.scalars.get("come", 0)
        return units.picked(made, begin, passes, self.core.by_group, core.tables["groups"].num_rows)

    def _compacted(self, core: State, units: pa.Table) -> tuple[State, pa.Table]:
        """Without the groups that have emptied and whose next row begins an interval anyway."""
        assert isinstance(self.core, Folded)
        core, numbers = self.core.compacted(core, self._units(units).waiting(core.scalars["now"]))
        return core, renumbered(units, numbers)

    def _units(self, table: pa.Table) -> Units:
        return Units(table, (self.span, self.limit))
