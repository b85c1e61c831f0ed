"""Windows of a cycle: what waits is taken in as far as the window allows; the rest waits for the next cycle.

A window is asked once a cycle. What it let in, what it let out and whether something still waits is its answer; the rows
that it holds are its content, oldest first.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from itertools import islice
from random import Random
from typing import Any, NamedTuple

from rollup.engine.row import Row

Time = Callable[[Row], int]
Value = Callable[[Row], Any]


class Taken(NamedTuple):
    """One cycle of a window: rows that entered and rows that left, each oldest first."""

    new: list[Row]
    dead: list[Row]


class CycleWindow(ABC):
    """The rows that are in and those that wait."""

    expires = False
    """Whether rows leave by time or with every cycle, so that no weight holds the query back."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self.waiting: deque[Row] = deque()

    @property
    def due(self) -> int | None:
        """When the next row leaves by itself."""
        return None

    @property
    def empty(self) -> bool:
        """Whether no row is in."""
        return not self.rows

    @property
    def ripe(self) -> bool:
        """Whether the next cycle changes it, whenever that comes."""
        return bool(self.waiting)

    def offer(self, row: Row) -> None:
        """A row waits for the next cycle."""
        self.waiting.append(row)

    @abstractmethod
    def cycle(self, now: int) -> Taken:
        """Let out what is over, take in what waits."""

    def snapshot(self) -> Any:
        """The rows, those that wait, and what else is known."""
        return [self.rows, list(self.waiting), self.own()]

    def restore(self, state: Any) -> None:
        """Go on from a snapshot."""
        self.rows, self.waiting = state[0], deque(state[1])
        self.resume(state[2])

    def own(self) -> Any:
        """What a kind of window knows beside its rows."""
        return None

    def resume(self, own: Any) -> None:  # noqa: B027  # most windows know no more than their rows
        """Go on with it."""


@dataclass(frozen=True)
class SlidingSpec:
    """The last `size` rows: it fills at once, then one enters and one leaves a cycle. `chance`: the seed of a coin that
    each row must win to be taken."""

    size: int
    chance: int | None = None

    expires = False

    def build(self, time: Time) -> CycleWindow:
        """The window, empty."""
        return _Sliding(self)


class _Sliding(CycleWindow):
    def __init__(self, spec: SlidingSpec) -> None:
        super().__init__()
        self._spec = spec
        self._random = Random(spec.chance)

    def cycle(self, now: int) -> Taken:
        free = self._spec.size - len(self.rows)
        count = free if free > 0 else 1
        new = [self.waiting.popleft() for _ in range(min(count, len(self.waiting)))]
        self.rows += new
        over = max(0, len(self.rows) - self._spec.size)
        dead, self.rows = self.rows[:over], self.rows[over:]
        return Taken(new, dead)

    def offer(self, row: Row) -> None:
        if self._spec.chance is None or self._random.random() < 0.5:
            super().offer(row)

    def own(self) -> Any:
        return None if self._spec.chance is None else list(self._random.getstate()[1])

    def resume(self, own: Any) -> None:
        if own is not None:
            self._random.setstate((3, tuple(own), None))


@dataclass(frozen=True)
class TimeSpec:
    """The rows of the last `span` by their own time; `most`: never more than so many."""

    span: int
    most: int | None = None

    expires = True

    def build(self, time: Time) -> CycleWindow:
        """The window, empty."""
        return _Time(self, time)


class _Time(CycleWindow):
    """Rows by number in the order in which they came, and a heap of their times. A row that is too old when it comes is
    in for one cycle: it leaves with whatever cycle comes next, and makes none come."""

    def __init__(self, spec: TimeSpec, time: Time) -> None:
        self._spec, self._time = spec, time
        self._held: dict[int, Row] = {}
        self._heap: list[tuple[int, int]] = []
        self._old: list[int] = []
        super().__init__()

    @property
    def rows(self) -> list[Row]:
        return list(self._held.values())

    @rows.setter
    def rows(self, rows: list[Row]) -> None:  # pyright: ignore[reportIncompatibleVariableOverride]  # made when asked for
        self._held = {row.id: row for row in rows}

    @property
    def empty(self) -> bool:
        return not self._held

    @property
    def ripe(self) -> bool:
        return bool(self.waiting or self._old)

    @property
    def due(self) -> int | None:
        while self._heap and self._heap[0][1] not in self._held:
            heappop(self._heap)
        return self._heap[0][0] + self._spec.span if self._heap else None

    def own(self) -> Any:
        return self._old

    def resume(self, own: Any) -> None:
        self._old = list(own)
        self._heap = [(self._time(row), row.id) for row in self._held.values() if row.id not in own]
        heapify(self._heap)

    def cycle(self, now: int) -> Taken:
        dead = self._over(now)
        most, early = self._spec.most, list[Row]()
        count = len(self.waiting) if most is None else min(len(self.waiting), most - len(self._held))
        if most is not None and count == 0 and self.waiting:
            count = min(len(self.waiting), most)
            early = [self._held.pop(number) for number in list(islice(self._held, count))]
        new = [self.waiting.popleft() for _ in range(count)]
        for row in new:
            self._take(row, now)
        return Taken(new, [*dead, *early])

    def _take(self, row: Row, now: int) -> None:
        self._held[row.id] = row
        at = self._time(row)
        if now - at >= self._spec.span:
            self._old.append(row.id)
        else:
            heappush(self._heap, (at, row.id))

    def _over(self, now: int) -> list[Row]:
        """The rows whose time is over leave, by their times."""
        over = [self._held.pop(number) for number in self._old if number in self._held]
        self._old = []
        while self._heap and now - self._heap[0][0] >= self._spec.span:
            row = self._held.pop(heappop(self._heap)[1], None)
            if row is not None:
                over.append(row)
        return sorted(over, key=self._time) if len(over) > 1 else over


@dataclass(frozen=True)
class TumblingSpec:
    """Up to `size` rows, all of which leave with the next cycle."""

    size: int

    expires = True

    def build(self, time: Time) -> CycleWindow:
        """The window, empty."""
        return _Tumbling(self.size)


class _Tumbling(CycleWindow):
    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def cycle(self, now: int) -> Taken:
        dead = self.rows
        self.rows = [self.waiting.popleft() for _ in range(min(self._size, len(self.waiting)))]
        return Taken(list(self.rows), dead)


@dataclass(frozen=True)
class BestSpec:
    """The `size` rows with the highest (or lowest) value; of equal worst ones the oldest leaves; null never enters.

    `group`: a row first takes out the one of its group, then competes.
    """

    size: int
    value: Value
    lowest: bool = False
    group: Value | None = None

    expires = False

    def build(self, time: Time) -> CycleWindow:
        """The window, empty."""
        return _Best(self)


class _Best(CycleWindow):
    def __init__(self, spec: BestSpec) -> None:
        super().__init__()
        self._spec = spec

    def cycle(self, now: int) -> Taken:
        before = {row.id for row in self.rows}
        dead = list[Row]()
        while self.waiting:
            dead += self._compete(self.waiting.popleft())
        left = [row for row in dead if row.id in before]
        return Taken([row for row in self.rows if row.id not in before], left)

    def _compete(self, row: Row) -> list[Row]:
        """Rows that leave; the row itself is among the rows when it made it."""
        value, group = self._spec.value(row), self._spec.group
        if value is None or value != value:
            return []
        out = list[Row]()
        if group is not None:
            key = group(row)
            out = [each for each in self.rows if group(each) == key]
            self.rows = [each for each in self.rows if group(each) != key]
        self.rows.append(row)
        if len(self.rows) > self._spec.size:
            out.append(self._worst())
            self.rows.remove(out[-1])
        return out

    def _worst(self) -> Row:
        pick = max if self._spec.lowest else min
        worst = pick(self._spec.value(row) for row in self.rows)
        return next(row for row in self.rows if self._spec.value(row) == worst)


WindowSpec = SlidingSpec | TimeSpec | TumblingSpec | BestSpec


def rows_in(windows: Sequence[CycleWindow]) -> list[Row]:
    """The content of several windows, window by window."""
    return [row for window in windows for row in window.rows]
