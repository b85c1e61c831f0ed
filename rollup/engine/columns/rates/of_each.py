"""Output rates in a context: the outputs of each partition are its own."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.apart import Apart
from rollup.engine.columns.cores.batches import Batch, Core, Output
from rollup.engine.columns.cores.living import Living
from rollup.engine.columns.cores.partitioned import Partitioned
from rollup.engine.columns.cores.parts import REST, Dues, Late, Parts
from rollup.engine.columns.cores.projecting import projected
from rollup.engine.columns.evaluate import plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.beats import Beats, Clocks, Outputs
from rollup.engine.rows.plans import Emitted
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.state import State
from rollup.engine.timers import Phase


@dataclass(frozen=True)
class OfEach(ABC):
    """What outputs show of what a core makes of a stream whose fields are of `kinds`."""

    core: Living | Partitioned
    kinds: tuple[pa.DataType, ...]
    emitted: Emitted

    @abstractmethod
    def start(self, now: int) -> State:
        """The state before the first event."""

    @abstractmethod
    def shown(
        self, state: State, batch: Batch, until: int | None, dues: Dues | None = None, late: Late | None = None
    ) -> tuple[State, Output]:
        """A step with the outputs of the clock that are due by `until` (None: none). Where it has jumped over what was due in
        each partition, these `dues`, all of it comes then, once, in that order; `late`: what comes so of the core.
        """

    @property
    def ticks(self) -> bool:
        """Whether the clock brings outputs."""
        return False

    @property
    def at_end(self) -> bool:
        """Whether the ends of partitions do."""
        return False

    @property
    def counts(self) -> bool:
        """Whether rows that leave may bring some."""
        return False

    @property
    def phase(self) -> Phase:
        """When, at one instant, what the clock brings comes, but for what partitions show that end."""
        return Phase.OUTPUT if self.ticks else self.window_phase

    @property
    def window_phase(self) -> Phase:
        """When, at one instant, windows let rows out."""
        inner = self.core.inner
        return Phase.KEYS if self.clocked and isinstance(inner, Apart) and inner.behind_outputs else Phase.WINDOW

    @property
    def clocked(self) -> bool:
        """Whether outputs, or the intervals of which they show the first, have a clock."""
        return self.ticks

    def dues(self, state: State) -> Ints:
        """When the clock of each partition's outputs is due, where they have one."""
        return np.empty(0, np.int64)

    def due(self, state: State) -> int | None:
        """When one of them is due next."""
        due = self.dues(state)
        found = int(due.min(initial=REST))
        return None if found == REST else found

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The outputs that are due by the batch's end, those that its changes bring about, and those of partitions that end."""
        return self.shown(state, batch, max(batch.now, state.scalars["now"]))

    def late(self, state: State, batch: Batch, phase: Phase) -> tuple[State, Output]:
        """What is due by the instant of a batch without events, and comes then: what windows let out, outputs, or what partitions
        that end show. Where the clock has jumped all of it comes, as it was due.
        """
        now, dues = batch.now, self.core.dues(state.held()["core"])
        if min(int(each.min(initial=now)) for each in (self.dues(state), dues.windows, dues.ends)) < now:
            return self.shown(state, batch, now, dues, Late.ALL)
        match phase:
            case Phase.WINDOW | Phase.KEYS:
                return self.shown(state, batch, None, late=Late.WINDOWS)
            case Phase.OUTPUT:
                return self.shown(state, replace(batch, now=state.scalars["now"]), now)
            case Phase.CONTEXT:
                return self.shown(state, batch, None)

    def of_outputs(
        self, outputs: Outputs, which: Ints, columns: Sequence[pa.Array], parts: Parts, sign: np.ndarray | None = None
    ) -> Output:
        """Rows that outputs show, each by the number of its output."""
        told = outputs.forced.copy()
        told[which] = True
        by = outputs.at, outputs.event, outputs.part, outputs.early
        at, event, part, early = (each[which] for each in by)
        ticks = tuple(each[told] for each in by)
        if parts.moves.after:  # of what comes key by key at one instant there is one delivery
            other = np.logical_or.reduce([np.diff(each.astype(np.int64), prepend=-2) != 0 for each in ticks])
            ticks = tuple(each[other] for each in ticks)
        return self.told(Output(at, event, tuple(columns), sign=sign, ticks=ticks, part=part, early=early), parts)

    def told(self, output: Output, parts: Parts) -> Output:
        """By the numbers of partitions; of those that never end, with what is told of the ones that begin."""
        if parts.numbers is not None:
            return output.numbered(parts.numbers)
        return replace(output, begins=parts.begins, early=None)

    def types_of(self, projection: Projection) -> list[pa.DataType]:
        """The types of what a projection sees of the rows of the core: sums may be wider than they say."""
        nothing = Batch.nothing(self.kinds, 0)
        _, parts = self.core.partings(self.core.start(0), nothing, np.empty(0, np.int64), 0)
        return [plain(each).type for each in projected(projection, parts.columns, parts.rows)]

    def contents(self, state: State) -> list[list[tuple[Any, ...]]] | None:
        """The rows of each partition, where they are not what the core has now."""
        return None

    def aggregates(self, state: State) -> dict[int, tuple[Any, ...]] | None:
        """The values of groups that one sees, by their numbers, where they are not those of now."""
        return None


@dataclass(frozen=True)
class ByBeats(OfEach):
    """Outputs by a clock or a count of each partition, or when it ends. State: `clocks`."""

    beats: Beats

    @staticmethod
    def clocks(state: State) -> Clocks:
        """When partitions are due, and what has come and left since."""
        return Clocks.of(state.tables["clocks"])

    @property
    def ticks(self) -> bool:
        """Where they have a clock."""
        return self.beats.span > 0

    @property
    def at_end(self) -> bool:
        """As they say."""
        return self.beats.at_end

    @property
    def counts(self) -> bool:
        """Where they count rows."""
        return self.beats.limit > 0

    def dues(self, state: State) -> Ints:
        """Where they have a clock."""
        return self.clocks(state).due


@dataclass(frozen=True)
class ByWaiting(ByBeats):
    """Outputs that show what has waited, and what is there. State: also `waiting` and `latest`, rows of partitions."""

    @staticmethod
    def state(core: State, clocks: Clocks, waiting: pa.Table, latest: pa.Table) -> State:
        """The state of the whole."""
        own = {"clocks": pa.table(vars(clocks)), "waiting": waiting, "latest": latest}
        return State.holding({"core": core}, {"now": core.scalars["now"]}, own)


def parted(core: Core) -> Core:
    """A core, or the one whose partitions it shows each by itself."""
    return core.core if isinstance(core, OfEach) else core
