"""Timers: who is to be called at which instant. They are data that nodes keep (`due`), never closures, so a restored
engine asks its nodes again and goes on.

At one instant windows and patterns come first, then output ticks, then windows of keys whose statement has such ticks, then
the ends of contexts. Within a phase the order is that of deployment, then that of partitions. The windows of a statement
come before its patterns.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from enum import IntEnum
from itertools import count
from typing import Any, Protocol, TypeVar


class Phase(IntEnum):
    """The order of what is due at one instant; arrivals come after all of them."""

    WINDOW = 0
    OUTPUT = 1
    KEYS = 2
    CONTEXT = 3


_PHASES = tuple(Phase)
T = TypeVar("T")

Order = tuple[int, ...]
"""The place of a statement's partition among all: deployment number, partition number."""


def edge(origin: Any, span: int, at: Any) -> Any:
    """The first edge of a raster after an instant, or after each of some.

    >>> edge(3, 10, 12), edge(3, 10, 13)
    (13, 23)
    """
    return origin + ((at - origin) // span + 1) * span


_Entry = tuple[int, int, Order, int, int, int]
"""When, phase, order, rank, number of the target, its `id`."""
_Turn = tuple[Order, _Entry]


class Timed(Protocol):
    """What can be due."""

    order: Order

    def fire(self, phase: Phase, now: int) -> None:
        """It is due; the clock stands at `now`, which a jump may have put later than what was asked for."""
        ...


class Timers:
    """The instants that are asked for, at most one a phase and target.

    >>> class Alarm:
    ...     order = (1, 0)
    ...     def fire(self, phase, now): print(phase.name, now)
    >>> timers, alarm = Timers(), Alarm()
    >>> timers.ask(alarm, Phase.OUTPUT, 500)
    >>> timers.ask(alarm, Phase.WINDOW, 1500)
    >>> timers.next, [phase.name for _, phase in timers.take(2000)], timers.next
    (500, ['OUTPUT', 'WINDOW'], None)
    """

    def __init__(self) -> None:
        self._heap: list[_Entry] = []
        self._asked = tuple(dict[int, int]() for _ in Phase)
        """By phase: when each target is to be called."""
        self._targets: dict[int, tuple[Timed, int]] = {}
        """The targets, with a number each in the order in which they first asked."""
        self._numbers = count()

    def ask(self, target: Timed, phase: Phase, due: int | None, rank: int = 0) -> None:
        """Call the target at that instant; None: no longer. The latest call of a target and phase holds.

        Of targets of one order that are due at one instant, the lesser rank comes first.
        """
        asked, key = self._asked[phase], id(target)
        if asked.get(key) == due:
            return
        if due is None:
            del asked[key]
            return
        known = self._targets.get(key)
        number = next(self._numbers) if known is None else known[1]
        if known is None:
            self._targets[key] = target, number
        asked[key] = due
        heapq.heappush(self._heap, (due, int(phase), target.order, rank, number, key))

    def forget(self, target: Timed) -> None:
        """The target is gone."""
        for asked in self._asked:
            asked.pop(id(target), None)
        self._targets.pop(id(target), None)

    def may_be_due(self, by: int) -> bool:
        """Whether it has to be looked what is due by then; it costs less than to look."""
        return bool(self._heap) and self._heap[0][0] <= by

    @property
    def next(self) -> int | None:
        """The earliest instant that is asked for."""
        while self._heap and not self._holds(self._heap[0]):
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def take(self, now: int) -> Iterator[tuple[Timed, Phase]]:
        """Everything that is due by `now`, in order; what is asked for meanwhile waits for the next call."""
        due = list[_Entry]()
        heap = self._heap
        while heap and heap[0][0] <= now:
            entry = heapq.heappop(heap)
            if self._holds(entry):
                due.append(entry)
                del self._asked[entry[1]][entry[-1]]
        for _, phase, *_, key in due:
            target = self._targets.get(key)
            if target is not None:
                yield target[0], _PHASES[phase]

    def fire_in_turn(self, now: int, fire: Callable[[Timed, Phase], None]) -> None:
        """Everything that is due by `now`, statement after statement in their order, each until nothing of it is due any
        more. Of the statements before the one in hand, what becomes due meanwhile waits for another round.

        What has the first two numbers of its order in common is one statement, such as that of all keys of a partition.
        """
        place: Order = ()
        this_round, later = list[_Turn](), list[_Turn]()
        try:
            while True:
                while self._heap and self._heap[0][0] <= now:
                    entry = heapq.heappop(self._heap)
                    turn = entry[2][:2]
                    heapq.heappush(this_round if turn >= place else later, (turn, entry))
                if not this_round:
                    if not later:
                        return
                    this_round, later, place = later, [], ()
                place, entry = heapq.heappop(this_round)
                if self._holds(entry):
                    del self._asked[entry[1]][entry[-1]]
                    fire(self._targets[entry[-1]][0], _PHASES[entry[1]])
        finally:
            for _, entry in (*this_round, *later):
                heapq.heappush(self._heap, entry)

    def _holds(self, entry: _Entry) -> bool:
        return self._asked[entry[1]].get(entry[-1]) == entry[0] and entry[-1] in self._targets
