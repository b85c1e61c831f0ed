"""What statements are made of, whatever their language: a step over events in the order of their arrival.

    step(state, events) -> (state, events of the streams that it inserts into, what was refused)

Time is data: each event says its own, and an event of a stream that a component does not read still moves its clock.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol, runtime_checkable

import pyarrow as pa

from rollup.core.errors import PlanError
from rollup.engine.state import State
from rollup.lang.sections import Section
from rollup.plan.app import StreamDef
from rollup.plan.dividing import Keys
from rollup.plan.filled import Filled

Key = tuple[int, ...]
"""The place of an event: its number in the batch, and for what an event causes that of its cause and one of its own."""
Streams = Mapping[str, StreamDef]
ELSEWHERE = ""
"""Instead of its stream, for an event that another shard takes: its time is told, its values where they close windows."""

_UNSAID = Keys(reason="by what they could be divided is not said")


class Event(NamedTuple):
    """An event of a stream, at its time in ms since 1970."""

    key: Key
    at: int
    stream: str
    values: tuple[Any, ...]


class Refused(NamedTuple):
    """An event that a statement could not take, why, and which statements they were, see `Part.name`."""

    event: Event
    reason: str
    by: str = ""


@dataclass(frozen=True)
class Taken:
    """What a step gives beside its state: events that it inserted into streams, those it refused, and how many sums 64
    bits did not hold, which are null therefore."""

    events: Sequence[Event] = ()
    refused: Sequence[Refused] = ()
    beyond: int = 0


def together(taken: Sequence[Taken]) -> Taken:
    """What the parts of a batch gave."""
    return Taken(
        [event for each in taken for event in each.events],
        sorted((event for each in taken for event in each.refused), key=lambda each: each.event.key),
        sum(each.beyond for each in taken),
    )


@dataclass(frozen=True)
class Described:
    """How a component runs, for `rollup plan`: rows or columns, why, what its state is made of, by which keys it may be
    divided, remarks."""

    executor: str
    reason: str
    state: str
    keys: Keys = _UNSAID
    remarks: tuple[str, ...] = ()


class Component(Protocol):
    """Statements that run together; see the module."""

    @property
    def described(self) -> Described:
        """How it runs."""
        ...

    @property
    def writes(self) -> Streams:
        """The streams that it inserts into, with what it inserts."""
        ...

    def step(self, state: State | None, events: Sequence[Event]) -> tuple[State | None, Taken]:
        """One batch, of all streams of the app; None is the state before the first event.

        Raises QueryError for an event with which it cannot compute, also where it would do so in a later step only.
        """
        ...


@runtime_checkable
class Forgiving(Protocol):
    """A component that can make a null of what it cannot compute."""

    def forgiven(self, state: State | None, events: Sequence[Event]) -> tuple[State | None, Taken, Sequence[str]]:
        """A step that does so, and what was wrong; `Taken.refused` are the events that made such nulls, where that is known."""
        ...


@runtime_checkable
class Showing(Protocol):
    """A component whose windows close by what events of any key hold."""

    def shown(self, events: Sequence[Event]) -> Sequence[int]:
        """The places of the events that every shard must see, among those of a batch: the first, and what may close a window."""
        ...


@runtime_checkable
class Keeping(Protocol):
    """A component with named windows or tables that others may read."""

    @property
    def stores(self) -> Streams:
        """They, with their columns."""
        ...

    def stored(self, state: State, name: str) -> pa.Table:
        """The rows that one of them holds in a state."""
        ...


@dataclass(frozen=True)
class Names:
    """The streams that a text reads and inserts into; `columns` has for a stream those it needs, all where it says none.

    `tables` are those of the configuration that it reads.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    columns: Mapping[str, frozenset[str]] = field(default_factory=dict[str, frozenset[str]])
    tables: tuple[Filled, ...] = ()


def refuse_own(names: Names, into: str | None) -> None:
    """Raise PlanError for a block whose queries stand side by side and of which one reads what it inserts: a batch goes
    through a component once, so nothing of it would come."""
    for name in sorted(names.reads & (names.writes if into is None else names.writes | {into})):
        raise PlanError(
            f"{name} is read and inserted into by one block, which would get nothing of what it inserts",
            hint="a block of its own for the query that reads it, or another stream for what it gives",
        )


class Language(Protocol):
    """What a language must bring: one entry in `rollup.statements.languages`."""

    def names(self, section: Section) -> Names:
        """The names of a text. Raises SyntaxProblem with its place in the text."""
        ...

    def compile(self, section: Section, streams: Streams, names: Names) -> Component:
        """The component of a text, whose `names` are given, over streams that are known. Raises SyntaxProblem or PlanError with the place."""
        ...
