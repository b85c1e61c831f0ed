"""The calendar of the oracle for periods of any width: the bucket of an instant, and the buckets before and behind it.

By zoneinfo alone. A period of days is cut at local dates; one of hours, minutes or seconds where the clock on the wall
shows a multiple of its width, and where the clock jumps into the midst of another multiple.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Protocol

from tests.oracle.local_time import first_instant, instant_of, local, zone

DAY = timedelta(days=1)
FIRST, LAST = datetime(2016, 1, 1, tzinfo=UTC), datetime(2020, 1, 1, tzinfo=UTC)
"""No clock is asked beyond these."""


class Calendar(Protocol):
    """What cuts time into buckets."""

    def start(self, instant: int, name: str) -> int:
        """The start of the bucket that holds an instant, in a zone."""
        ...

    def following(self, start: int, name: str) -> int:
        """The start of the next bucket."""
        ...


def shift(instant: int, name: str) -> int:
    """How far the local clock is ahead, in milliseconds."""
    return local(instant, name).utcoffset() // timedelta(milliseconds=1)  # type: ignore[operator]


@lru_cache(maxsize=64)
def changes(name: str) -> list[int]:
    """The instants at which the clocks of a zone change."""
    found, step = list[int](), 6 * 3_600_000
    for at in range(instant_of(FIRST), instant_of(LAST), step):
        low, high = at, at + step
        if shift(low, name) != shift(high, name):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if shift(middle, name) == shift(low, name) else (low, middle)
            found.append(high)
    return found


@dataclass(frozen=True)
class Clock:
    """Buckets of a width that divides a day, the first one `origin` milliseconds behind midnight."""

    width: int
    origin: int = 0

    def start(self, instant: int, name: str) -> int:
        ahead = shift(instant, name) - self.origin
        begin = instant - (instant + ahead) % self.width
        jumps = changes(name)
        at = bisect_right(jumps, instant)
        change = jumps[at - 1] if at else begin
        if change <= begin:
            return begin
        before = change - 1 + shift(change - 1, name) - self.origin
        if (change + ahead) // self.width != before // self.width:
            return change
        return self.start(change - 1, name)

    def following(self, start: int, name: str) -> int:
        at, jumps = start, changes(name)
        while at == start or self.start(at, name) != at:
            tick = at + self.width - (at + shift(at, name) - self.origin) % self.width
            at = min([tick, *jumps[bisect_right(jumps, at) :][:1]])
        return at


@dataclass(frozen=True)
class Dates:
    """Buckets that begin on some dates, so far behind midnight."""

    floor: Callable[[date], date]
    after: Callable[[date], date]
    origin: int = 0

    def begin(self, day: date, name: str) -> int:
        """The instant at which the bucket of a date begins."""
        if not self.origin:
            return first_instant(day, name)
        wall = datetime(day.year, day.month, day.day) + timedelta(milliseconds=self.origin)
        return instant_of(wall.replace(tzinfo=zone(name)))

    def start(self, instant: int, name: str) -> int:
        today = local(instant, name).date()
        found = {self.begin(self.floor(today + n * DAY), name) for n in (-1, 0, 1)}
        return max(each for each in found if each <= instant)

    def following(self, start: int, name: str) -> int:
        day = self.floor(local(start + 1, name).date())
        if self.begin(day, name) > start:
            day = self.floor(day - DAY)
        return self.begin(self.after(day), name)


def of_days(count: int, first: date, origin: int = 0) -> Dates:
    """So many days each, counted from one."""
    return Dates(lambda day: day - (day - first).days % count * DAY, lambda day: day + count * DAY, origin)


def of_months(count: int, month: int = 1, day_of_month: int = 1) -> Dates:
    """So many months each, counted from a month of 1970, from a day of it on."""
    first = 1970 * 12 + month

    def floor(day: date) -> date:
        months = day.year * 12 + day.month - (day.day < day_of_month)
        months -= (months - first) % count
        return date((months - 1) // 12, (months - 1) % 12 + 1, day_of_month)

    return Dates(floor, lambda day: floor(day + 31 * count * DAY))


def wall_back(instant: int, count: int, unit: str, name: str) -> int:
    """So long before an instant: by the clock on the wall for days and what is longer, by the time that passes else."""
    if unit in ("second", "minute", "hour"):
        return instant - count * {"second": 1000, "minute": 60_000, "hour": 3_600_000}[unit]
    wall = local(instant, name).replace(tzinfo=None)
    if unit in ("day", "week"):
        wall -= count * (7 if unit == "week" else 1) * DAY
    else:
        months = wall.year * 12 + wall.month - 1 - count * {"month": 1, "quarter": 3, "year": 12}[unit]
        behind = date((months + 1) // 12, (months + 1) % 12 + 1, 1)
        wall = wall.replace(year=months // 12, month=months % 12 + 1, day=min(wall.day, (behind - DAY).day))
    return instant_of(wall.replace(tzinfo=zone(name)))
