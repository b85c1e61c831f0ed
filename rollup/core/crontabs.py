"""Instants by a crontab."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

Days = frozenset[int] | tuple[str, int | None] | None
"""Days by number; `last` or `weekday` with the number of one; or, None, all of them."""
_LAST = int(datetime(9990, 1, 1, tzinfo=UTC).timestamp())
"""From this second on a calendar has no more instants."""


@dataclass(frozen=True)
class Crontab:
    """Instants by a crontab, in UTC; `second` clock units make a second; `full`: always at the beginning of one."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: Days
    months: frozenset[int]
    weekdays: Days
    seconds: frozenset[int]
    second: int
    full: bool = False

    def after(self, instant: int) -> int:
        """The first instant after the second of that one, as far behind its full second as that one is, if not `full`.

        A calendar that is asked at half past a second goes on at half past seconds: Esper's does, everywhere.

        >>> every = frozenset
        >>> Crontab(every({5}), every(range(24)), None, every(range(1, 13)), None, every({0}), 1000).after(300_000)
        3900000
        """
        rest = 0 if self.full else instant % self.second
        if instant // self.second >= _LAST:
            return 2**62
        at = datetime.fromtimestamp(instant // self.second, UTC).replace(microsecond=0) + timedelta(seconds=1)
        for _ in range(366 * 9):
            if at.month in self.months and self._day(at):
                found = self._in_day(at)
                if found is not None:
                    return int(found.timestamp()) * self.second + rest
            at = at.replace(hour=0, minute=0, second=0) + timedelta(days=1)
        return 2**62

    def _in_day(self, at: datetime) -> datetime | None:
        for hour in sorted(h for h in self.hours if h >= at.hour):
            for minute in sorted(m for m in self.minutes if hour > at.hour or m >= at.minute):
                same = (hour, minute) == (at.hour, at.minute)
                for second in sorted(s for s in self.seconds if not same or s >= at.second):
                    return at.replace(hour=hour, minute=minute, second=second)
        return None

    def _day(self, at: datetime) -> bool:
        by_day, by_week = _matches_day(self.days, at), _matches_weekday(self.weekdays, at)
        if self.days is not None and self.weekdays is not None:
            return by_day or by_week
        return by_day and by_week


def _matches_day(days: Days, at: datetime) -> bool:
    if days is None or isinstance(days, frozenset):
        return days is None or at.day in days
    last = (at.replace(day=28) + timedelta(days=4)).replace(day=1) - timedelta(days=1)
    kind, day = days
    if kind == "last":
        return at.day == last.day
    wanted = last.day if day is None else min(day, last.day)
    aim = at.replace(day=wanted)
    shift = {5: -1, 6: 1}.get(aim.weekday(), 0)
    moved = aim + timedelta(days=shift)
    if moved.month != aim.month:
        moved = aim + timedelta(days=-2 if shift == 1 else 2)
    return at.day == moved.day


def _matches_weekday(days: Days, at: datetime) -> bool:
    sunday_first = (at.weekday() + 1) % 7
    if days is None or isinstance(days, frozenset):
        return days is None or sunday_first in days
    _, day = days
    if day is None:
        return sunday_first == 6
    return sunday_first == day and (at + timedelta(days=7)).month != at.month
