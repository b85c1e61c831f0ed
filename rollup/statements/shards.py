"""A component in shards: each has the events of some keys, and of all others what time they told.

    step(state, events) -> as the component itself, but for the order of rows that time brings at one instant

A shard gets every event of its keys, at the time that the clock of all events has then. It also gets how far that clock
has gone on without them. This is enough to do what the undivided component does for its keys.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, groupby
from operator import attrgetter
from typing import Any
from zlib import crc32

import numpy as np

from rollup.core.errors import ConfigError
from rollup.engine.state import State, packed
from rollup.statements.component import ELSEWHERE, Component, Described, Event, Showing, Streams, Taken

SHARDS, _CLOCK = "__shards", "__clock"


@dataclass(frozen=True)
class Divided:
    """A batch: the events of each shard, and those that tell all of them what time it is, or what closes their windows."""

    own: Sequence[Sequence[Event]]
    told: Sequence[Event]


Run = Callable[[State | None, Divided], tuple[State, Sequence[Taken]]]
"""Runs the steps of all shards: the state that it gave last time, None at the start, and a batch."""


@dataclass(frozen=True)
class Sharded:
    """A component whose step runs in shards."""

    component: Component
    places: Mapping[str, tuple[int, ...]]
    """Of each stream that is read, where among its attributes the key stands."""
    shards: int
    run: Run

    @classmethod
    def of(cls, component: Component, streams: Streams, shards: int, run: Run) -> Sharded:
        """A component over streams, by the keys it says it has."""
        by = component.described.keys.by
        places = {name: tuple(map(list(streams[name].attributes).index, names)) for name, names in by.items()}
        return cls(component, places, shards, run)

    @property
    def described(self) -> Described:
        """As undivided."""
        return self.component.described

    @property
    def writes(self) -> Streams:
        """As undivided."""
        return self.component.writes

    def step(self, state: State | None, events: Sequence[Event]) -> tuple[State | None, Taken]:
        """One batch."""
        keys = self.component.described.keys
        if keys.own:
            events = [event for event in events if event.stream in self.places or event.stream == ELSEWHERE]
        if not events:
            return state, Taken()
        begun = events[0].at if state is None else int(state.scalars[_CLOCK])
        clock = list(accumulate((event.at for event in events), max, initial=begun))[1:]
        after, taken = self.run(state, self._divided(events, clock, keys.instants))
        own = {_CLOCK: clock[-1], SHARDS: self.shards}
        together = united(taken, events, None if keys.instants else clock)
        return State(after.tables, {**after.scalars, **own}), together

    def _divided(self, events: Sequence[Event], clock: Sequence[int], instants: bool) -> Divided:
        """Where not every instant is told, a shard's own clock may be behind: its events come at the time of all."""
        own: list[list[Event]] = [[] for _ in range(self.shards)]
        for event, at in zip(events, clock, strict=True):
            places = self.places.get(event.stream)
            if places is not None:
                key = tuple(event.values[place] for place in places) if places else event.key
                own[shard_of(key, self.shards)].append(event if instants else event._replace(at=at))
        if isinstance(self.component, Showing):
            return Divided(own, [events[n]._replace(stream=ELSEWHERE) for n in self.component.shown(events)])
        return Divided(own, [Event(events[n].key, clock[n], ELSEWHERE, ()) for n in _told(clock, instants)])


def events_of_shard(own: Sequence[Event], told: Sequence[Event]) -> list[Event]:
    """What one shard is given, in the order of all."""
    known = {event.key for event in own}
    return sorted([*own, *(event for event in told if event.key not in known)], key=attrgetter("key"))


def in_process(component: Component, shards: int) -> Run:
    """The shards one after the other, here; each holds what it is running."""
    components = [copy(component) for _ in range(shards)]

    def run(state: State | None, batch: Divided) -> tuple[State, Sequence[Taken]]:
        before = {} if state is None else state.held()
        after, given = dict[str, State](), list[Taken]()
        for number, (one, part) in enumerate(zip(components, batch.own, strict=True)):
            made, taken = one.step(before.get(str(number)), events_of_shard(part, batch.told))
            given.append(taken)
            if made is not None:
                after[str(number)] = made
        return State.holding(after, {}), given

    return run


def refuse_other_shards(name: str, component: Component, state: State | None, folder: str) -> None:
    """Raise ConfigError when a state was made by another number of shards: it cannot be divided again."""
    if state is None:
        return
    made, wanted = state.scalars.get(SHARDS), component.shards if isinstance(component, Sharded) else None
    if made != wanted:
        was = "in the driver" if made is None else f"in {made} shards"
        now = "in the driver" if wanted is None else f"in {wanted} shards"
        back = "leave statement_shards out" if made is None else f"statement_shards = {made}"
        raise ConfigError(
            f"the statements of {name!r} ran {was}, and now would run {now}: their windows cannot be divided anew",
            hint=f"{back}; or remove {folder} to begin all statements anew",
        )


# events to shards


def _told(clock: Sequence[int], instants: bool) -> Iterator[int]:
    """Which events tell their time to all: the first and the last, or every one with which time goes on."""
    for number, at in enumerate(clock):
        if number in (0, len(clock) - 1) or (instants and at > clock[number - 1]):
            yield number


def shard_of(key: tuple[Any, ...], shards: int) -> int:
    """The shard of a key, the same in every process and for numbers that are equal.

    >>> shard_of((1,), 8) == shard_of((1.0,), 8), {shard_of((n,), 4) for n in range(100)}
    (True, {0, 1, 2, 3})
    """
    return _hash(tuple(map(_alike, key))) % shards


@lru_cache(maxsize=1 << 16)
def _hash(key: tuple[Any, ...]) -> int:
    return crc32(packed(list(key)))


def _alike(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else int(value) if value.is_integer() else value
    return value


# rows together


def united(taken: Sequence[Taken], events: Sequence[Event], clock: Sequence[int] | None) -> Taken:
    """What all shards gave, in the order of the events that caused it; `clock` has the times at those, where shards may
    have heard of a time later than it came."""
    given = [each._replace(key=each.key[:-1]) for one in taken for each in one.events]
    if clock is not None:
        numbers = {event.key: number for number, event in enumerate(events)}
        given = [_behind(each, numbers, events, clock) for each in given]
    given.sort(key=attrgetter("key"))  # which keeps the order of shards, and in each that of its rows
    refused = sorted((each for one in taken for each in one.refused), key=lambda each: each.event.key)
    return Taken(list(_numbered(given)), refused, sum(one.beyond for one in taken))


def _behind(event: Event, numbers: Mapping[Any, int], events: Sequence[Event], clock: Sequence[int]) -> Event:
    """A row right behind the first event by whose time it was due; its shard may have heard of that time later."""
    cause = numbers[event.key]
    if event.at < clock[cause]:
        cause = min(cause, int(np.searchsorted(clock, event.at)))
    return event._replace(key=events[cause].key)


def _numbered(given: Iterable[Event]) -> Iterator[Event]:
    for key, rows in groupby(given, key=attrgetter("key")):
        for place, row in enumerate(rows):
            yield row._replace(key=(*key, place))
