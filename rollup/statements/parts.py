"""A batch through a step in as few parts as the texts need that its events make; what comes of it is the same."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import TypeVar

from rollup.engine.room import NoRoom, room
from rollup.statements.component import Event, Key

T = TypeVar("T")


def in_parts(
    events: Sequence[Event], step: Callable[[Sequence[Event]], T]
) -> Iterator[tuple[Sequence[Event], T, bool]]:
    """Each part, what the step gave for it, and whether it was the last; the step goes on from where the part before ended.

    What one event makes is held at once, however much it is.
    """
    waiting = [events]
    while waiting:
        part = waiting.pop()
        try:
            with room():
                found = step(part)
        except NoRoom:
            cut = middle([event.key for event in part])
            if cut is not None:
                waiting += [part[cut:], part[:cut]]
                continue
            found = step(part)
        yield part, found, not waiting


def middle(keys: Sequence[Key]) -> int | None:
    """The place nearest to the middle before which all keys are less than all behind it.

    >>> middle([(1,), (2,), (2,), (3,)]), middle([(2,), (1,)])
    (1, None)
    """
    greatest = list(accumulate(keys, max))
    least = list(accumulate(reversed(keys), min))[::-1]
    found = [n for n in range(1, len(keys)) if greatest[n - 1] < least[n]]
    return min(found, key=lambda n: abs(2 * n - len(keys)), default=None)
