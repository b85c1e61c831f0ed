"""`output first` in a context: of each interval of a partition, or of a group in it, what comes first is shown at once, and
nothing else is.

State: that of the core; `clocks`, of each partition, or `units`, of each group.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.parts import Dues, Late, Parts
from rollup.engine.columns.cores.projecting import projected
from rollup.engine.columns.evaluate import flags, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.beats import Beats, Clocks
from rollup.engine.columns.rates.of_each import OfEach
from rollup.engine.columns.rates.units import Units, renumbered
from rollup.engine.state import State


@dataclass(frozen=True)
class EachFirst(OfEach):
    """The first change of each interval of a partition that shows something."""

    beats: Beats

    def start(self, now: int) -> State:
        """Every interval waits for its first change."""
        return self.step(self.state(self.core.start(now), Clocks.none()), Batch.nothing(self.kinds, now))[0]

    @staticmethod
    def state(core: State, clocks: Clocks) -> State:
        """The state of the whole."""
        return State.holding({"core": core}, {"now": core.scalars["now"]}, {"clocks": pa.table(vars(clocks))})

    @property
    def clocked(self) -> bool:
        """As they say."""
        return self.beats.span > 0

    def dues(self, state: State) -> Ints:
        """When an interval of each begins by the clock."""
        return Clocks.of(state.tables["clocks"]).due

    def shown(
        self, state: State, batch: Batch, until: int | None, dues: Dues | None = None, late: Late | None = None
    ) -> tuple[State, Output]:
        """What begins an interval."""
        clocks = Clocks.of(state.tables["clocks"])
        core, parts = self.core.partings(state.held()["core"], batch, np.empty(0, np.int64), len(clocks.due), late)
        rows = passes(self, parts)
        if self.emitted == "old":
            rows &= np.zeros(parts.rows, bool) if parts.sign is None else parts.sign < 0
        visible = np.zeros(len(parts.moves.at), bool)
        visible[parts.move[rows]] = True
        picks, then = self.beats.firsts(clocks.grown(parts.count), parts, visible, until, dues)
        visible[:] = False
        visible[picks] = True
        which = np.flatnonzero(rows & visible[parts.move])
        sign = None if parts.sign is None else parts.sign[which]
        output = replace(of_rows(self, parts, which), sign=sign).emitted(self.emitted)
        return self.state(core, then.where(parts.alive)), self.told(output, parts)


@dataclass(frozen=True)
class EachFirstOfGroups(OfEach):
    """The first row of each interval of a group, as `pace` says; over a window also what leaves counts, and is shown as what comes."""

    pace: tuple[int, int]

    @property
    def clocked(self) -> bool:
        """As they say."""
        return self.pace[0] > 0

    def start(self, now: int) -> State:
        """No group."""
        return self.state(self.core.start(now), Units.of([[]] * 4))

    @staticmethod
    def state(core: State, units: pa.Table) -> State:
        """The state of the whole."""
        return State.holding({"core": core}, {"now": core.scalars["now"]}, {"units": units})

    def shown(
        self, state: State, batch: Batch, until: int | None, dues: Dues | None = None, late: Late | None = None
    ) -> tuple[State, Output]:
        """What begins an interval."""
        before, units = state.held()["core"], Units(state.tables["units"], self.pace)
        core, parts = self.core.partings(before, batch, units.waiting(batch.now), 0, late)
        made, inner, numbers = parts.made, self.core.inner, parts.regrouped
        assert isinstance(inner, Folded) and made.group is not None
        known = max(units.table.num_rows if numbers is None else len(numbers), int(made.group.max(initial=-1)) + 1)
        begin: int = before.held()["core"].scalars.get("come", 0)
        picks, then = units.picked(made, begin, passes(self, parts), inner.by_group, known)
        return self.state(core, renumbered(then, numbers)), self.told(of_rows(self, parts, picks), parts)


def passes(core: OfEach, parts: Parts) -> np.ndarray:
    """Which rows fulfil `having`."""
    return flags(passing(core.core.projection.having, parts.columns, parts.rows), parts.rows)


def of_rows(core: OfEach, parts: Parts, places: Ints) -> Output:
    """Some rows, as they come."""
    moves, by = parts.moves, parts.move[places]
    columns = projected(core.core.projection, [each.take(pa.array(places)) for each in parts.columns], len(places))
    at, event, part, early = (each[by] for each in (moves.at, moves.event, moves.part, moves.begins))
    return Output(at, event, tuple(map(plain, columns)), part=part, early=early)
