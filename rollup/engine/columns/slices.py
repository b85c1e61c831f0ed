"""Slices: windows of one width on a line of numbers (instants, row numbers, values), each given once, when it has closed.

Window k is [origin + k * every, origin + k * every + width). It closes when the clock, the greatest number seen, has
reached its end. A row whose windows have all closed is late: it goes into the oldest window that is still open.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import numpy as np

from rollup.core.errors import PlanError
from rollup.engine.columns.groups import Bools, Ints, spans
from rollup.engine.columns.passes import PLACES, compiled

Clock = TypeVar("Clock", int, Ints)


class Placed(NamedTuple):
    """Where the rows of a batch go: the window of each entry, and the row of each (None: every row once, in order).

    `clock` is the greatest number seen so far, `late` how many rows had a window that had closed.
    """

    rows: Ints | None
    windows: Ints
    clock: int | None
    late: int

    def of(self, own: Bools) -> Placed:
        """The entries of some rows alone, after the clock of all."""
        places = np.flatnonzero(own) if self.rows is None else np.flatnonzero(own[self.rows])
        rows = places if self.rows is None else self.rows[places]
        return Placed(rows, self.windows[places], self.clock, self.late)


@dataclass(frozen=True)
class Slices:
    """The shape of the windows; `first` is the number of the lowest there is, None when there are always earlier ones.

    >>> Slices(10, 10).place(np.array([1, 12, 3]), None).windows.tolist()  # 3 is late: its window closed at 12
    [0, 1, 1]
    """

    width: int
    every: int
    origin: int = 0
    first: int | None = None

    def __post_init__(self) -> None:
        if self.width <= 0 or self.every <= 0:
            raise PlanError("a window needs a width above zero")

    def place(self, numbers: Ints, clock: int | None) -> Placed:
        """The windows of rows by their numbers, in order of arrival, after `clock`."""
        if not len(numbers):
            return Placed(None, numbers, clock, 0)
        one_pass = compiled(PLACES, len(numbers)) if self.width == self.every else None
        if one_pass is not None:
            windows, after, late = one_pass(numbers, self.origin, self.width, numbers[0] if clock is None else clock)
            return Placed(None, windows, int(after), int(late))
        before = np.maximum.accumulate(numbers)
        after = int(before[-1])
        before = np.concatenate([before[:1] if clock is None else [clock], before[:-1]])
        if clock is not None:
            before, after = np.maximum(before, clock), max(after, clock)
        if self.width == self.every:
            return self._single(numbers, before, after)
        return self._several(numbers, before, after)

    def closed(self, clock: int | None) -> int:
        """Windows with a number below this one have closed."""
        return self._open(clock) if clock is not None else -(2**62)

    def closing(self, numbers: Ints) -> Ints:
        """The places of the rows, the first among them, with which a window closes if no number went before them."""
        reached = self._open(np.maximum.accumulate(numbers))
        return np.flatnonzero(np.diff(reached, prepend=reached[:1] - 1))

    def bounds(self, windows: Ints) -> tuple[Ints, Ints]:
        """The start and the end of each window."""
        start = windows * self.every + self.origin
        return start, start + self.width

    def next_close(self, clock: int) -> int:
        """The next number after the clock at which a window closes."""
        return (self._open(clock) * self.every) + self.origin + self.width

    def _open(self, clock: Clock) -> Clock:
        return (clock - self.origin - self.width) // self.every + 1

    def _single(self, numbers: Ints, before: Ints, after: int) -> Placed:
        windows = (numbers - self.origin) // self.every
        late = numbers < before
        if not late.any():
            return Placed(None, windows, after, 0)
        lowest = (before - self.origin - self.width) // self.every + 1
        return Placed(None, np.maximum(windows, lowest), after, int((windows < lowest).sum()))

    def _several(self, numbers: Ints, before: Ints, after: int) -> Placed:
        last = (numbers - self.origin) // self.every
        begin = (numbers - self.origin - self.width) // self.every + 1
        if self.first is not None:
            begin = np.maximum(begin, self.first)
        lowest = (before - self.origin - self.width) // self.every + 1
        somewhere = begin <= last  # with every > width there are numbers that lie in no window
        late = somewhere & (begin < lowest)
        begin = np.where(late, lowest, begin)
        last = np.where(late & (last < lowest), lowest, last)
        counts = np.where(somewhere, last - begin + 1, 0)
        rows = np.repeat(np.arange(len(numbers)), counts)
        return Placed(rows, spans(begin, counts), after, int(late.sum()))
