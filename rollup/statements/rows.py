"""What components of an engine share: one that goes on as long as the state handed in is the one it gave."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Generic, TypeVar

import structlog

from rollup.core.errors import QueryError
from rollup.core.garbage import AT_A_TIME, uncollected
from rollup.engine.rows.patterns.matcher import TURNS
from rollup.engine.state import State, taking_up
from rollup.statements.component import ELSEWHERE, Event, Refused, Streams, Taken, together

Running = TypeVar("Running")
_CURE = "go on with the version that wrote it, or remove `_rollup/_statements` beside the tables to begin all statements anew"
Emitted = tuple[int, str, tuple[Any, ...]]
"""Time, stream and values of what was inserted."""


def caused(event: Event, emitted: Iterable[Emitted]) -> list[Event]:
    """What an event has brought, as events behind it."""
    return [Event((*event.key, place), at, stream, values) for place, (at, stream, values) in enumerate(emitted)]


def say_hurried(statements: str, begin: int, end: int) -> None:
    """Say that of a jump of the clock not everything was gone through."""
    structlog.get_logger("rollup").warning(
        f"a silence, or an event ahead of all others, has {TURNS:,} instants and more at which statements are due: "
        "what is due behind these is done once, at its end",
        statements=statements,
        begin=begin,
        end=end,
    )


class Live(ABC, Generic[Running]):
    """A step over a batch. What runs between two steps is a cache: the state alone decides."""

    def __init__(self, reads: Iterable[str], writes: Streams) -> None:
        self.reads = frozenset(reads)
        self._writes = writes
        self._held: tuple[State, Running] | None = None

    @property
    def writes(self) -> Streams:
        """The streams that it inserts into."""
        return self._writes

    def step(self, state: State | None, events: Sequence[Event]) -> tuple[State | None, Taken]:
        """One batch; events of streams that are not read only move the clock.

        Other statements may have answered an event, and totals may have counted it, when it is refused. All that is taken
        back: the batch goes on from the state before that event, which has moved the clock and no more.
        """
        parts, rest = list[Taken](), events
        while rest:
            running, found = self._fed(state, rest)
            if not found.refused:
                return self._kept(running), together([*parts, found])
            bad = found.refused[0]
            place = next(n for n, event in enumerate(rest) if event.key == bad.event.key)
            before, rest = rest[:place], rest[place + 1 :]
            try:
                running, found = self._fed(state, [*before, bad.event._replace(stream=ELSEWHERE, values=())])
            except QueryError:  # the clock cannot go on: taken back, it would stand before all events behind this one
                running, found = self._fed(state, [*before, bad.event])
            state = self._kept(running)
            parts.append(replace(found, refused=[bad]))
        return state, together(parts)

    def _fed(self, state: State | None, events: Sequence[Event]) -> tuple[Running, Taken]:
        """The events up to one that is refused, which may have left something behind."""
        running = self._running(state, events[0].at)
        return running, self.fed(running, events)

    def _kept(self, running: Running) -> State:
        after = self.snapshot(running)
        self.prove(running, after)
        self._held = after, running
        return after

    def _running(self, state: State | None, start: int) -> Running:
        held, self._held = self._held, None  # a step that fails leaves nothing behind
        if state is None:
            return self.begun(start)
        if held is not None and held[0] is state:
            return held[1]
        with taking_up("a state of statements", _CURE):
            return self.restored(state)

    @abstractmethod
    def begun(self, start: int) -> Running:
        """The engine before the first event, whose time is `start`."""

    @abstractmethod
    def restored(self, state: State) -> Running:
        """The engine as it was."""

    @abstractmethod
    def snapshot(self, running: Running) -> State:
        """All that is needed to go on."""

    @abstractmethod
    def fed(self, running: Running, events: Sequence[Event]) -> Taken:
        """A batch, up to the first event that is refused."""

    def prove(self, running: Running, after: State) -> None:
        """Raise what the events of a batch would raise later on, when something is computed of them."""


class OnRows(Live[Running]):
    """A step over events one at a time."""

    def fed(self, running: Running, events: Sequence[Event]) -> Taken:
        """A batch, one event after the other, up to one that is refused."""
        given, refused = list[Event](), list[Refused]()
        for begin in range(0, len(events), AT_A_TIME):
            with uncollected():
                for event in events[begin : begin + AT_A_TIME]:
                    given += self._one(running, event, refused)
                    if refused:
                        return Taken(given, refused)
        return Taken(given, refused)

    def _one(self, running: Running, event: Event, refused: list[Refused]) -> list[Event]:
        try:
            self.move(running, event.at)
            if event.stream in self.reads:
                self.send(running, event)
        except QueryError as problem:
            refused.append(Refused(event, str(problem)))
        return caused(event, self.taken(running))

    @abstractmethod
    def move(self, running: Running, to: int) -> None:
        """The clock goes on, unless it is further already."""

    @abstractmethod
    def send(self, running: Running, event: Event) -> None:
        """An event of a stream that is read."""

    @abstractmethod
    def taken(self, running: Running) -> Iterable[Emitted]:
        """What was inserted into streams since the last call."""
