"""Rows in the order of their keys, from which any row may leave: what `sorted`, `minby` and `maxby` keep."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sortedcontainers import SortedList

from rollup.engine.reals import orderable

Held = tuple[Any, tuple[Any, ...], Any, int]
"""The identity of a row, its key, the row, and how often it is in: a row of a join stands in several combinations."""


class Ranks:
    """Rows by their keys, null first, `down` the other way round; of equal keys the one that came first is first.

    To come and to leave costs the logarithm of their number. A state holds them as a list, in the order in which they came.

    >>> ranks = Ranks((False,))
    >>> for identity, key in enumerate([2, 1, None, 1]):
    ...     ranks.enter(identity, (key,), f"row {identity}")
    >>> ranks.leave(2)
    >>> ranks.first(), ranks.all()
    ('row 1', ['row 1', 'row 3', 'row 0'])
    """

    def __init__(self, down: Sequence[bool], held: Iterable[Held] = ()) -> None:
        self._backwards = all(down)  # only of several ways each value needs its own
        self._ways = [False] * len(down) if self._backwards else down
        self._order: Any = SortedList()
        self._held: dict[Any, list[Any]] = {}
        self._came = 0
        for identity, key, row, times in held:
            self.enter(identity, key, row)
            self._held[identity][3] = times

    def __iter__(self) -> Iterator[Held]:
        return ((identity, key, row, times) for identity, (_, key, row, times) in self._held.items())

    def enter(self, identity: Any, key: tuple[Any, ...], row: Any) -> None:
        """A row comes in, which may be in already; no identity, no row."""
        known = self._held.get(identity)
        if known is not None:
            known[3] += 1
        elif identity is not None:
            self._came += 1
            place = in_order(key, self._ways), -self._came if self._backwards else self._came, row
            self._order.add(place)
            self._held[identity] = [place, key, row, 1]

    def leave(self, identity: Any) -> None:
        """A row leaves; one that is not in is no error."""
        known = self._held.get(identity)
        if known is None:
            return
        known[3] -= 1
        if known[3] <= 0:
            self._order.remove(known[0])
            del self._held[identity]

    def first(self) -> Any:
        """The first row; None of none."""
        return self._order[-1 if self._backwards else 0][2] if self._order else None

    def all(self) -> list[Any]:
        """All rows in order."""
        return [row for _, _, row in (reversed(self._order) if self._backwards else self._order)]

    def __len__(self) -> int:
        return len(self._order)

    # rows of equal keys

    def end(self, last: bool) -> list[Any]:
        """The rows of the first key, or of the last; none of none."""
        return self._equal(-1 if last != self._backwards else 0) if self._order else []

    def at(self, key: Any) -> list[Any]:
        """The rows of a key, of those that are sorted by one value; none where it is not there."""
        place = in_order((key,), self._ways)
        begin = self._order.bisect_left((place,))
        return self._equal(begin) if begin < len(self._order) and self._order[begin][0] == place else []

    def near(self, key: Any, after: bool, itself: bool) -> list[Any]:
        """The rows of the key nearest before another one, or `after` it, or of that key `itself` where it is there."""
        place, up = in_order((key,), self._ways), after != self._backwards
        end = (place,) if itself == up else (place, math.inf)
        found = self._order.bisect_left(end) - (not up)
        return self._equal(found) if 0 <= found < len(self._order) else []

    def _equal(self, index: int) -> list[Any]:
        """The rows whose key is that of the row at a place, as they came."""
        place = self._order[index][0]
        begin, end = self._order.bisect_left((place,)), self._order.bisect_left((place, math.inf))
        rows = [row for _, _, row in self._order.islice(begin, end)]
        return rows[::-1] if self._backwards else rows


class _Down:
    """A value that sorts the other way round."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __lt__(self, other: _Down) -> bool:
        return other.value < self.value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Down) and other.value == self.value

    __hash__ = None  # pyright: ignore[reportAssignmentType]


def in_order(key: Sequence[Any], down: Sequence[bool]) -> tuple[Any, ...]:
    """What a key is sorted by, one value after the other."""
    return tuple([_Down(_least(value)) if d else _least(value) for value, d in zip(key, down, strict=True)])


def _least(value: Any) -> tuple[bool, Any]:
    """A value among others, null before all."""
    return value is not None, orderable(value)
