"""What every statement over columns answers: to its batches, to the clock, and to the rest of the engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar

import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.expressions import Expr
from rollup.engine.state import State
from rollup.engine.timers import Phase


class Core(ABC):
    """A statement, or a family of statements, over columns. The defaults are those of one without partitions to which the clock
    brings nothing.
    """

    hears_all: ClassVar[bool] = False
    """Whether it hears events that do not pass its filter: they begin partitions, or concern sub-queries."""
    ends: ClassVar[bool] = False
    """Whether its partitions end, together with those of the other statements of the context."""

    @abstractmethod
    def start(self, now: int) -> State:
        """The state before the first event."""

    @abstractmethod
    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The state after a batch, and the rows that it brought. The given state stays as it was."""

    # the clock

    @property
    def phase(self) -> Phase:
        """When, at one instant, what the clock brings comes."""
        return Phase.WINDOW

    @property
    def clock_brings(self) -> bool:
        """Whether the clock brings rows."""
        return False

    @property
    def clock_inserts(self) -> bool:
        """Whether rows that the clock brings may go into a stream, behind those whom their instant concerns before."""
        return False

    @property
    def clock_concerns(self) -> bool:
        """Whether the clock may concern the statement, which then hears of its instants in order."""
        return True

    def dues(self, state: State) -> dict[Phase, int | None]:
        """The next instants at which there is something to do without an event."""
        return {self.phase: None}

    def late(self, state: State, phase: Phase, nothing: Batch) -> tuple[State, Output]:
        """What is due of a phase by the time of a batch without events: a jump of the clock lets it out at that time, as on rows."""
        return self.step(state, nothing)

    # what may be refused

    @property
    def matches(self) -> bool:
        """Whether it is a pattern, which refuses an event that makes too many partial matches."""
        return False

    @property
    def needed(self) -> Expr | None:
        """The time that a window needs of each event, which is refused without it."""
        return None

    def roomy(self, state: State, batch: Batch) -> bool:
        """Whether a batch can be taken as a whole, without too much memory and with no event that may be refused."""
        return self.needed is None or not evaluate(self.needed, batch.columns, batch.rows).null_count

    # what is there now; nothing of it is hot

    def content(self, state: State) -> list[tuple[Any, ...]]:
        """The values of the rows as they are now: groups, or the rows of a window. Of single events nothing is known."""
        return []

    def contents(self, state: State) -> list[list[tuple[Any, ...]]]:
        """The same of each partition."""
        return [self.content(state)]

    # partitions

    @property
    def context(self) -> str | None:
        """The context whose partitions it has; None where all events are in one."""
        return None

    @property
    def begins_first(self) -> bool:
        """Whether an event with which a partition begins or ends is told of before all others hear it."""
        return False

    def opens(self, state: State, batch: Batch) -> bool:
        """Whether a partition may begin or end with one of the events."""
        return True

    def opened(self, state: State, batch: Batch) -> State:
        """The state in which the partitions of some events have begun, which the statement itself is refused."""
        return state

    def paths(self, state: State) -> Sequence[tuple[Any, ...]]:
        """Its partitions that never end, as the row executor tells them apart."""
        return ()

    def handed_back(self, state: State) -> Any | None:
        """Its partitions that end, as the row executor has them."""
        return None


class BeforeAnother(Core):
    """A core whose events go on to another, `main`: what the clock brings is that one's."""

    main: Core

    @property
    @abstractmethod
    def kinds(self) -> list[pa.DataType]:
        """What the fields of the events that go on are carried as."""

    @property
    def phase(self) -> Phase:
        """That of the other."""
        return self.main.phase

    @property
    def clock_brings(self) -> bool:
        """Whether it brings rows of the other."""
        return self.main.clock_brings

    def dues(self, state: State) -> dict[Phase, int | None]:
        """Those of the other."""
        return self.main.dues(state.held()["main"])

    def late(self, state: State, phase: Phase, nothing: Batch) -> tuple[State, Output]:
        """What is due of the other."""
        held = state.held()
        main, output = self.main.late(held["main"], phase, Batch.nothing(self.kinds, nothing.now))
        return state.instead({**held, "main": main}), output

    def content(self, state: State) -> list[tuple[Any, ...]]:
        """The rows of the other."""
        return self.main.content(state.held()["main"])
