"""Periods of any width, zone and origin: what `per '15 minutes'` or `per 'weeks from Sunday'` cuts time into.

A period is named by a text: `[count] unit [from origin] [over window] [by keys] [in zone]`, where a unit may also be a
table that lists periods. Its edges are instants,
made by the local calendar here and nowhere else, so an engine only compares numbers. Periods of hours, minutes and seconds begin where the wall
clock shows a multiple of their width, counted from local midnight, and where a clock change jumps into the midst of
another one. So a day of 23 hours has a shorter period, and an hour that comes twice is two hours, as in stored levels.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple, Protocol

from rollup.core.calendar import midnight, normal_zone, to_instant, to_local, zone
from rollup.core.errors import QueryError

MOST = 1_000_000
_LONGEST_DAY = 25 * 3_600_000
_DAY = 86_400_000
_CLOCK = {"second": 1_000, "minute": 60_000, "hour": 3_600_000}
_MONTHS = {"month": 1, "quarter": 3, "year": 12}
_UNITS = (*_CLOCK, "day", "week", *_MONTHS)
_SHORT = {"sec": "second", "min": "minute"}
_LETTERS = {"s": "second", "m": "minute", "h": "hour", "d": "day", "w": "week", "M": "month", "y": "year"}
"""As charts write them, `5m`; only behind a count."""
_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NAMES = (
    "january", "february", "march", "april", "may", "june",
    "july", "august", "september", "october", "november", "december",
)  # fmt: skip
_MONDAY = date(1970, 1, 5)
_SHORTER = 4
"""The days by which one month may be shorter than another, and one for clock changes."""
_KEY = r"(?:`[^`]+`|\"[^\"]+\"|[^\W\d]\w*)"
_TEXT = re.compile(
    r"\s*(?:(\d{1,6})\s*)?([^\W\d]\w*)(?:\s+from\s+(?:the\s+)?([^ ]+(?:\s+\d\d?)?))?"
    r"(?:\s+over\s+(?:(\d{1,6})\s*)?([a-z]+)(\s+to\s+date)?)?"
    rf"(?:\s+by\s*(\(\s*\)|\(?\s*{_KEY}(?:\s*,\s*{_KEY})*\s*\)?))?(?:\s+in\s+(\S+))?\s*",
    re.IGNORECASE,
)
_HINT = (
    "[count] unit [from origin] [over window] [by keys] [in zone], as in '15 minutes', 'weeks from Sunday', "
    "'years from April 6', 'days over 7 days', 'days by country', 'days in Asia/Kolkata'"
)


_NONE: Mapping[str, Calendar] = {}


class Span(NamedTuple):
    """The name of a bucket, which is its start, and the range of time that its row is about."""

    name: int
    start: int
    end: int


class Calendar(Protocol):
    """Periods that somebody lists, as the 4-4-5 weeks of a fiscal year."""

    @property
    def name(self) -> str:
        """How a question calls them."""
        ...

    def spans(self, zone_name: str) -> Sequence[Span]:
        """All of them in order; days begin in the zone. Raises a RollupError where they cannot be known."""
        ...


@dataclass(frozen=True)
class Window:
    """What each row looks back over: so many units until its end, or with no count all since the unit began."""

    count: int | None
    unit: str

    @classmethod
    def of(cls, count: str | None, word: str, to_date: bool) -> Window:
        """Raises QueryError.

        >>> Window.of("7", "days", False), Window.of(None, "month", True)
        (Window(count=7, unit='day'), Window(count=None, unit='month'))
        """
        unit = _unit(word, count)
        if unit is None or (to_date and count) or count == "0":
            raise QueryError(f"a row cannot look back over {word!r}", hint="as 'over 7 days' or 'over month to date'")
        return cls(None if to_date else int(count or 1), unit)

    def starts(self, edges: Sequence[int], zone_name: str) -> list[int]:
        """Where the window of each bucket begins; `edges` are the starts of buckets and the end of the last one."""
        if self.count is not None:
            return [back(end, self.count, self.unit, zone_name) for end in edges[1:]]
        begins = Period.parse(self.unit).edges(back(edges[0], 2, self.unit, zone_name), edges[-1], zone_name)
        return [begins[bisect_right(begins, at) - 1] for at in edges[:-1]]

    def last(self, end: int, zone_name: str) -> int:
        """An instant with no window at or behind it that holds one before `end`."""
        return back(end, -(self.count or 1), self.unit, zone_name) + (0 if self.unit in _CLOCK else _SHORTER * _DAY)


@dataclass(frozen=True)
class Period:
    """A width of time: `count` units from an origin, in a zone of its own or in that of who asks.

    `day` is the first local day that is counted from, of months and years also that of the month; `clock` are the
    milliseconds into the day at which a period begins. Each row is about its own period or about the window `over`,
    which ends with it, and about the group keys `by`; None are those of who asks. With a `calendar` the periods are those
    that it lists, and between them may be gaps.
    """

    text: str
    count: int
    unit: str
    day: date
    clock: int = 0
    zone: str | None = None
    over: Window | None = None
    by: tuple[str, ...] | None = None
    calendar: Calendar | None = None

    @classmethod
    def parse(cls, text: str, calendars: Mapping[str, Calendar] = _NONE) -> Period:
        """The period of a text; `calendars` are units beside those of the clock. Raises QueryError with what is allowed.

        >>> Period.parse("15 Minutes").count, Period.parse("weeks in Europe/Berlin").zone
        (15, 'Europe/Berlin')
        >>> Period.parse("5m").unit, Period.parse("3M").unit
        ('minute', 'month')
        >>> Period.parse("days over 7 days by country, `unit price`").by
        ('country', 'unit price')
        """
        match = _TEXT.fullmatch(text)
        unit = _unit(match.group(2), match.group(1)) if match else None
        calendar = calendars.get(match.group(2)) if match and unit is None else None
        if match is None or (unit is None and calendar is None):
            units = ", ".join((_listed(), *calendars))
            raise QueryError(f"unknown duration {text!r}", hint=f"a level's word, or {_HINT}; units are {units}")
        if calendar is not None:
            return cls._listed(match, calendar)
        assert unit is not None
        count = int(match.group(1) or 1)
        if count == 0 or (unit in _CLOCK and _DAY % (count * _CLOCK[unit])):
            raise QueryError(f"{count} {unit}s do not divide a day", hint="as 15 minutes or 6 hours do")
        day, clock = _origin(unit, match.group(3))
        over = Window.of(match.group(4), match.group(5), bool(match.group(6))) if match.group(5) else None
        return cls(" ".join(text.split()), count, unit, day, clock, _place(match), over, _keys(match))

    @classmethod
    def _listed(cls, match: re.Match[str], calendar: Calendar) -> Period:
        if match.group(1) or match.group(3) or match.group(5):
            hint = f"as '{calendar.name}', '{calendar.name} by country' or '{calendar.name} in Asia/Kolkata'"
            raise QueryError(f"{calendar.name} lists its periods, so they have no count, origin or window", hint=hint)
        text = " ".join(match.group(0).split())
        return cls(text, 1, calendar.name, _MONDAY, 0, _place(match), None, _keys(match), calendar)

    @property
    def sliding(self) -> bool:
        """Whether an instant may be in several rows or in none."""
        return self.over is not None or self.calendar is not None

    @property
    def plain(self) -> str | None:
        """The word for stored buckets that these are, if nothing else is said of them."""
        if self.calendar is not None:
            return None
        nothing = (self.count, self.clock, self.zone, self.over) == (1, 0, None, None)
        return self.unit if nothing and self.day == _origin(self.unit, None)[0] else None

    def spans(self, start: int, end: int, zone_name: str) -> tuple[Span, ...]:
        """The buckets whose periods begin in start <= t < end.

        Raises QueryError when there are too many, and of a calendar when there is none.
        """
        found = self.begun(start, end, zone_name)
        if self.calendar is not None and not found and start < end:
            place = self.zone or zone_name
            every = self.calendar.spans(place)
            first, last = (to_local(at, place) for at in (every[0].start, every[-1].end))
            hint = f"they are from {first:%Y-%m-%d} to {last:%Y-%m-%d}"
            raise QueryError(f"no period of {self.calendar.name} begins in this range", hint=hint)
        return found

    def begun(self, start: int, end: int, zone_name: str) -> tuple[Span, ...]:
        """As `spans`; of a calendar that has no period there, none."""
        place = self.zone or zone_name
        if self.calendar is not None:
            return tuple(span for span in self.calendar.spans(place) if start <= span.name < end)
        edges = self.edges(start, end, zone_name)
        if len(edges) < 2:
            return ()
        starts = edges if self.over is None else self.over.starts(edges, place)
        return tuple(map(Span, edges[:-1], starts, edges[1:]))

    def around(self, low: int, high: int, zone_name: str) -> tuple[int, int]:
        """A range of bucket starts with every row that can be about an instant in low <= t < high.

        >>> Period.parse("15 minutes").around(900_001, 900_002, "+00:00")
        (900000, 900002)
        """
        first = self.preceding(low + 1, zone_name)
        return first, high if self.over is None else self.over.last(high, self.zone or zone_name)

    def preceding(self, start: int, zone_name: str) -> int:
        """The start of the newest period that begins before an instant; before the first one of a calendar, one in none."""
        place = self.zone or zone_name
        if self.calendar is None:
            return self.edges(back(start, 2 * self.count, self.unit, place), start, zone_name)[-2]
        starts = [span.name for span in self.calendar.spans(place)]
        at = bisect_right(starts, start - 1) - 1
        return starts[at] if at >= 0 else starts[0] - 1

    def edges(self, start: int, end: int, zone_name: str) -> tuple[int, ...]:
        """The starts of all periods that begin in start <= t < end, and behind them the end of the last one.

        `zone_name` is the zone of a period that has none of its own. Raises QueryError when there are too many.
        """
        self.check(start, end, MOST)
        return _edges(self, start, end, self.zone or zone_name)

    def check(self, start: int, end: int, most: int) -> None:
        """Raises QueryError where there are surely more in a range; nobody has to count them for that.

        >>> Period.parse("minutes").check(0, 600_000, 8)
        Traceback (most recent call last):
        ...
        rollup.core.errors.QueryError: more than 8 of 'minutes' in this range (a shorter range)
        """
        if self.calendar is not None:
            return
        longest = _CLOCK.get(self.unit) or _LONGEST_DAY * (
            31 * _MONTHS.get(self.unit, 0) or (7 if self.unit == "week" else 1)
        )
        if (end - start) // (longest * self.count) - 1 > most:
            raise self.too_many(most)

    def too_many(self, most: int) -> QueryError:
        """The refusal of a range that has more than so many."""
        return QueryError(f"more than {most:,} of {self.text!r} in this range", hint="a shorter range")

    def _starts(self, start: int, zone_name: str) -> Iterator[int]:
        """The starts of periods, in order, the first of them not after `start`."""
        local = to_local(start, zone_name).date()
        if self.unit in _CLOCK:
            yield from self._slots(local - timedelta(days=1), zone_name)
        elif self.unit in _MONTHS:
            step = self.count * _MONTHS[self.unit]
            months = local.year * 12 + local.month - 1 - (self.day.year * 12 + self.day.month - 1)
            at = months // step * step - step
            while True:
                month = self.day.year * 12 + self.day.month - 1 + at
                yield _begin(date(month // 12, month % 12 + 1, self.day.day), self.clock, zone_name)
                at += step
        else:
            step = self.count * (7 if self.unit == "week" else 1)
            day = self.day + timedelta(days=(local - self.day).days // step * step - step)
            while True:
                yield _begin(day, self.clock, zone_name)
                day += timedelta(days=step)

    def _slots(self, day: date, zone_name: str) -> Iterator[int]:
        """Where the wall clock is at a multiple of the width, or jumps into the midst of another one, from a day on."""
        step = self.count * _CLOCK[self.unit]
        while True:
            low, high = (_begin(day + timedelta(days=n), 0, zone_name) for n in (0, 1))
            for first, last in pairwise((low, *_changes(low, high, zone_name), high)):
                wall, before = (at + _shift(at, zone_name) - self.clock for at in (first, first - 1))
                if wall % step and wall // step != before // step:
                    yield first
                yield from range(first + -wall % step, last, step)
            day += timedelta(days=1)


@lru_cache(maxsize=256)
def _edges(period: Period, start: int, end: int, zone_name: str) -> tuple[int, ...]:
    found = list[int]()
    try:
        for at in period._starts(start, zone_name):  # pyright: ignore[reportPrivateUsage]
            if at >= start and (not found or at > found[-1]):
                found.append(at)
            if at >= end:
                return tuple(found)
            if len(found) > MOST:
                raise period.too_many(MOST)
    except (OverflowError, ValueError):
        raise QueryError(f"{period.text!r} needs bounds between the years 2 and 9998") from None
    return tuple(found)


def back(instant: int, count: int, unit: str, zone_name: str) -> int:
    """So many units before an instant: what the clock on the wall showed then, or so much time.

    >>> back(86_400_000, 1, "day", "+00:00"), back(86_400_000, 2, "hour", "+00:00")
    (0, 79200000)
    """
    if unit in _CLOCK:
        return instant - count * _CLOCK[unit]
    import pendulum

    length = {"quarter": {"months": 3 * count}}.get(unit, {f"{unit}s": count})
    wall = pendulum.instance(to_local(instant, zone_name).replace(tzinfo=UTC)).subtract(**length)
    return to_instant(datetime(1970, 1, 1, tzinfo=zone(zone_name)) + timedelta(seconds=wall.timestamp()))


def _place(match: re.Match[str]) -> str | None:
    return normal_zone(match.group(8)) if match.group(8) else None


def _keys(match: re.Match[str]) -> tuple[str, ...] | None:
    return None if match.group(7) is None else tuple(key.strip('`"') for key in re.findall(_KEY, match.group(7)))


def _unit(word: str, count: str | None) -> str | None:
    """The unit that a word names, or behind a count a letter, in the singular."""
    if count is not None and len(word) == 1:
        return _LETTERS.get(word) or _LETTERS.get(word.lower())
    bare = word.lower().removesuffix("s")
    unit = _SHORT.get(bare, bare)
    return unit if unit in _UNITS else None


def _begin(day: date, clock: int, zone_name: str) -> int:
    """The first instant of a local day at or behind a time of the clock."""
    if not clock:
        return midnight(datetime(day.year, day.month, day.day), zone_name)
    wall = datetime(day.year, day.month, day.day) + timedelta(milliseconds=clock)
    return to_instant(wall.replace(tzinfo=zone(zone_name)))


def _shift(instant: int, zone_name: str) -> int:
    offset = to_local(instant, zone_name).utcoffset()
    assert offset is not None
    return offset // timedelta(milliseconds=1)


def _changes(low: int, high: int, zone_name: str) -> list[int]:
    """The instants in low < t < high at which the clocks of a zone change; one at most, as days have."""
    before, after = _shift(low, zone_name), _shift(high - 1, zone_name)
    if before == after:
        return []
    first, last = low, high - 1
    while last - first > 1:
        middle = (first + last) // 2
        first, last = (middle, last) if _shift(middle, zone_name) == before else (first, middle)
    return [last]


def _origin(unit: str, text: str | None) -> tuple[date, int]:
    """The first day that is counted from, and the time of its clock. Raises QueryError."""
    day = _MONDAY if unit == "week" else date(1970, 1, 1)
    if text is None:
        return day, 0
    word = text.lower()
    clock = re.fullmatch(r"(\d\d?):(\d\d)", word)
    if clock and unit not in _MONTHS and int(clock[1]) < 24 and int(clock[2]) < 60:
        return day, (int(clock[1]) * 60 + int(clock[2])) * 60_000
    weekdays = [index for index, name in enumerate(_WEEKDAYS) if name.startswith(word) and len(word) >= 3]
    if unit == "week" and weekdays:
        return _MONDAY + timedelta(days=weekdays[0] - 7 * (weekdays[0] > 3)), 0
    ordinal = re.fullmatch(r"(\d\d?)(?:st|nd|rd|th)?", word)
    if unit in ("month", "quarter") and ordinal and 1 <= int(ordinal[1]) <= 28:
        return date(1970, 1, int(ordinal[1])), 0
    named = re.fullmatch(r"([a-z]+)(?:\s+(\d\d?))?", word)
    months = [i for i, name in enumerate(_NAMES, 1) if named and name.startswith(named[1]) and len(named[1]) >= 3]
    if unit == "year" and named and months and 1 <= int(named[2] or 1) <= 28:
        return date(1970, months[0], int(named[2] or 1)), 0
    whole = re.fullmatch(r"(\d{4})-(\d\d)-(\d\d)", word)
    if whole and unit not in _CLOCK:
        try:
            given = date(int(whole[1]), int(whole[2]), int(whole[3]))
        except ValueError:
            raise QueryError(f"there is no day {text!r}", hint="yyyy-MM-dd") from None
        if unit not in _MONTHS or given.day <= 28:
            return given, 0
    hint = {
        "week": "a weekday, a day as yyyy-MM-dd, or a time as 06:00",
        "month": "a day of the month to the 28th, or a day as yyyy-MM-dd",
        "quarter": "a day of the month to the 28th, or a day as yyyy-MM-dd",
        "year": "a month with a day to the 28th, as April 6, or a day as yyyy-MM-dd",
        "day": "a time as 06:00, or a day as yyyy-MM-dd",
    }.get(unit, "a time as 00:05")
    raise QueryError(f"{unit}s cannot begin from {text!r}", hint=hint)


def _listed() -> str:
    return ", ".join(f"{unit}s" for unit in _UNITS)


# Ranges as people say them

_SAID = re.compile(
    r"\s*(?:(today|yesterday)|(this|last)\s+(minute|hour|day|week|month|quarter|year)|last\s+(\d{1,6})\s*"
    r"((?:second|minute|hour|day|week|month|quarter|year)s?|[smhdwy]))\s*",
    re.IGNORECASE,
)


def is_said(text: object) -> bool:
    """Whether a text is a range that depends on the present.

    >>> is_said("last 7 days"), is_said("2018-01")
    (True, False)
    """
    return isinstance(text, str) and _SAID.fullmatch(text) is not None


def may_say(text: str) -> bool:
    """Whether such a range may stand in a text, so that what is made of the text holds for a moment only."""
    return re.search(r"\b(?:today|yesterday|this|last)\b", text, re.IGNORECASE) is not None


def said_range(text: str, zone_name: str, now: int) -> tuple[int, int]:
    """Start and end of a range that depends on the present, `now`: a whole local period, or so much time until now.

    >>> said_range("today", "+00:00", 86_400_123), said_range("last 2 hours", "+00:00", 86_400_000)
    ((86400000, 172800000), (79200000, 86400001))
    """
    match = _SAID.fullmatch(text)
    assert match is not None
    if match[4]:
        length = _unit(match[5], match[4])
        assert length is not None
        return back(now, int(match[4]), length, zone_name), now + 1
    day, which, unit = (part.lower() if part else None for part in match.groups()[:3])
    period = Period.parse(unit or "day")
    before = now - 2 * 366 * _DAY if period.unit in (*_MONTHS, "week") else now - 3 * _DAY
    edges = [*period.edges(before, now + 1, zone_name)]
    latest = len(edges) - 2
    at = latest - (day == "yesterday" or which == "last")
    return edges[at], edges[at + 1]
