"""Durations, zones, bucket arithmetic and `within` patterns.

All instants are integers: milliseconds since 1970-01-01T00:00:00Z (proleptic Gregorian). A bucket is half open,
[start, end), and is cut in a zone: an offset like ``+05:30`` or an IANA name. Seconds, minutes and hours are cut by
the offset in force at the instant, so the hour that is repeated when summer time ends is two buckets. Where the clocks
change by half an hour, the hour in which they do is two buckets as well: its rest is one. Days, months and years are cut by
the local calendar, so a day may have 23 or 25 hours.

This module is the reference in plain Python; `rollup.core.buckets` says the same in SQL and `rollup.core.local_columns`
over columns. Tests compare the three.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from enum import IntEnum
from functools import lru_cache

from rollup.core import zones
from rollup.core.errors import QueryError, TimeError

GMT = "+00:00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


class Duration(IntEnum):
    """A level of an aggregation, finest first.

    >>> Duration.parse("Minutes").table_suffix
    'MINUTES'
    >>> Duration.SECONDS.width_ms, Duration.MONTHS.width_ms
    (1000, None)
    """

    SECONDS = 0
    MINUTES = 1
    HOURS = 2
    DAYS = 3
    MONTHS = 4
    YEARS = 5

    @property
    def table_suffix(self) -> str:
        """The suffix of the level's table, as in ``TradeAggregation_SECONDS``."""
        return self.name

    @property
    def plural(self) -> str:
        """The word a user writes after `per`: ``'days'``."""
        return self.name.lower()

    @property
    def unit(self) -> str:
        """The singular word, as SQL's ``date_trunc`` takes it: ``'day'``."""
        return self.plural[:-1]

    @property
    def width_ms(self) -> int | None:
        """Width in milliseconds of the levels that always have one; None for days, months and years."""
        return {Duration.SECONDS: 1_000, Duration.MINUTES: 60_000, Duration.HOURS: 3_600_000}.get(self)

    @classmethod
    def parse(cls, word: str) -> Duration:
        """The level that a word of an app or a `per` clause names, in any case.

        Raises QueryError that lists the allowed words.
        """
        found = WORDS.get(word.strip().lower())
        if found is None:
            raise QueryError(f"unknown duration {word!r}", hint=f"use one of {', '.join(WORDS)}")
        return found


WORDS: dict[str, Duration] = {
    word: duration
    for duration, words in {
        Duration.SECONDS: "sec second seconds",
        Duration.MINUTES: "min minute minutes",
        Duration.HOURS: "hour hours",
        Duration.DAYS: "day days",
        Duration.MONTHS: "month months",
        Duration.YEARS: "year years",
    }.items()
    for word in words.split()
}

_OFFSET = re.compile(r"([+-])(\d{2})(?::?(\d{2}))?$")


@lru_cache(maxsize=1024)
def zone(name: str) -> tzinfo:
    """The zone that an offset (``+05:30``, ``-0330``, ``+01``, ``Z``) or an IANA name stands for.

    Raises TimeError for an unknown name or an offset beyond 18 hours.
    """
    offset = offset_ms(name)
    if offset is not None:
        return timezone(timedelta(milliseconds=offset))
    try:
        return zones.named(name)
    except KeyError:
        raise TimeError(
            f"unknown zone {name!r}", hint="an offset like +05:30 or an IANA name like Asia/Kolkata"
        ) from None


def offset_ms(name: str) -> int | None:
    """Milliseconds east of UTC of an offset zone, None for any other name.

    >>> offset_ms("-03:30"), offset_ms("Z"), offset_ms("Europe/Paris")
    (-12600000, 0, None)
    """
    if name in ("Z", "z", "UTC", "GMT"):
        return 0
    match = _OFFSET.match(name)
    if match is None:
        return None
    sign, hours, minutes = match.group(1), int(match.group(2)), int(match.group(3) or 0)
    if hours > 18 or minutes > 59 or (hours == 18 and minutes):
        raise TimeError(f"impossible offset {name!r}", hint="offsets go from -18:00 to +18:00")
    return (1 if sign == "+" else -1) * (hours * 60 + minutes) * 60_000


def normal_zone(name: str) -> str:
    """The one spelling under which a zone is stored, so that ``Z``, ``+0000`` and ``+00:00`` are one identity.

    >>> normal_zone("Z"), normal_zone("+0530"), normal_zone("Europe/Paris")
    ('+00:00', '+05:30', 'Europe/Paris')
    """
    offset = offset_ms(name)
    if offset is None:
        zone(name)
        return name
    minutes = abs(offset) // 60_000
    return f"{'-' if offset < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def to_local(instant: int, zone_name: str) -> datetime:
    """The wall clock in a zone at an instant."""
    return (_EPOCH + instant * _MS).astimezone(zone(zone_name))


def to_instant(local: datetime) -> int:
    """Milliseconds since the epoch of an aware datetime."""
    return (local - _EPOCH) // _MS


def bucket_start(instant: int, level: Duration, zone_name: str = GMT) -> int:
    """Start of the bucket that holds an instant.

    >>> bucket_start(1514786399123, Duration.MONTHS)
    1514764800000
    """
    local = to_local(instant, zone_name)
    width = level.width_ms
    if width is not None:
        shift = local.utcoffset() // _MS  # type: ignore[operator]
        return _same_clock((instant + shift) // width * width - shift, instant, width, zone_name)
    if local.fold:  # the clocks went back, perhaps over midnight: the day that has begun goes on
        later = midnight(_add(local, level, 1), zone_name)
        if later <= instant:
            return later
    return midnight(_floor_date(local, level), zone_name)


def _same_clock(start: int, instant: int, width: int, zone_name: str) -> int:
    """The start of a bucket, or where the clocks changed since by what is no multiple of its width, that instant."""
    shifts = [to_local(at, zone_name).utcoffset() for at in (start, instant)]
    if not (shifts[1] - shifts[0]) // _MS % width:  # type: ignore[operator]
        return start
    return start + bisect_left(
        range(instant - start), True, key=lambda ms: to_local(start + ms, zone_name).utcoffset() == shifts[1]
    )


def bucket_end(start: int, level: Duration, zone_name: str = GMT, count: int = 1) -> int:
    """End of the bucket that starts at `start`, or of the `count` buckets from there on."""
    width = level.width_ms
    if width is not None:
        return bucket_start(start + count * width, level, zone_name)
    return midnight(_add(to_local(start, zone_name), level, count), zone_name)


def _floor_date(local: datetime, level: Duration) -> datetime:
    month = local.month if level < Duration.YEARS else 1
    day = local.day if level < Duration.MONTHS else 1
    return datetime(local.year, month, day)


def _add(local: datetime, level: Duration, count: int) -> datetime:
    if level is Duration.DAYS:
        return datetime(local.year, local.month, local.day) + timedelta(days=count)
    months = local.year * 12 + local.month - 1 + count * (12 if level is Duration.YEARS else 1)
    return datetime(months // 12, months % 12 + 1, 1)


def midnight(naive: datetime, zone_name: str) -> int:
    """The first instant of a local date; where summer time skips midnight, the one at which the clocks jump."""
    where = zone(zone_name)
    instant = to_instant(naive.replace(tzinfo=where))
    if to_local(instant, zone_name).replace(tzinfo=None) == naive:
        return instant
    first = to_instant(naive.replace(tzinfo=where, fold=1))
    before = to_local(first, zone_name).utcoffset()
    return first + bisect_left(
        range(instant - first), True, key=lambda ms: to_local(first + ms, zone_name).utcoffset() != before
    )


_STAMP = re.compile(
    r"\s*(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?\s*(Z|z|[+-]\d{2}(?::?\d{2})?|[A-Za-z]+(?:/[\w+-]+)+)?\s*"
)


def parse_timestamp(text: str, default_zone: str = GMT) -> tuple[int, str]:
    """The instant and zone of a timestamp: ``yyyy-MM-dd HH:mm:ss[ zone]`` or any ISO 8601 form.

    24:00:00 is the next midnight, as ISO 8601 has it. Raises TimeError for impossible dates and unknown zones.

    >>> parse_timestamp("2014-02-15 00:00:00 +05:30")
    (1392402600000, '+05:30')
    >>> parse_timestamp("2014-02-15T00:00:00.250Z")
    (1392422400250, '+00:00')
    """
    match = _STAMP.fullmatch(text)
    if match is None:
        raise TimeError(
            f"{text!r} is not a timestamp", hint="yyyy-MM-dd HH:mm:ss, with an optional zone such as +05:30"
        )
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups()[:6])
    name = normal_zone(match.group(8) or default_zone)
    next_day = (hour, minute, second) == (24, 0, 0)
    try:
        local = datetime(year, month, day, 0 if next_day else hour, minute, second, tzinfo=zone(name))
        instant = to_instant(local + timedelta(days=next_day))
    except (ValueError, OverflowError) as problem:
        raise TimeError(f"{text!r} names no instant: {problem}", hint="e.g. '2018-01-05 12:30:45 +05:30'") from None
    return instant + int((match.group(7) or "0")[:3].ljust(3, "0")), name


def names_zone(text: str) -> bool | None:
    """Whether a timestamp names its zone; None for a text that is none.

    >>> names_zone("2018-01-05T00:00:00Z"), names_zone("2018-01-05 00:00"), names_zone("1515110400000")
    (True, False, None)
    """
    match = _STAMP.fullmatch(text)
    return None if match is None else match.group(8) is not None


_WILD = re.compile(
    r"(\d{4})-(\d{2}|\*\*)-(\d{2}|\*\*) (\d{2}|\*\*):(\d{2}|\*\*):(\d{2}|\*\*)(?:\s+(Z|[+-]\d{2}:\d{2}|[A-Za-z]+(?:/[\w+-]+)+))?"
)
_WILD_HINT = "e.g. '2018-01', '2018-01-** **:**:**', '2018-01-05 12:**:** +05:30', 'today', 'last 7 days'; stars only from the right"


def parse_within(pattern: str, default_zone: str = GMT) -> tuple[int, int]:
    """Start and end of the time that one `within` pattern names, end exclusive; `default_zone` is that of one without.

    Fields may be left out from the right: `2018-01` is `2018-01-** **:**:**`.

    >>> parse_within("2018-01-** **:**:**") == (parse_timestamp("2018-01-01")[0], parse_timestamp("2018-02-01")[0])
    True
    """
    match = _WILD.fullmatch(whole_pattern(pattern).strip())
    if match is None:
        raise QueryError(f"{pattern!r} is no time pattern", hint=_WILD_HINT)
    fields = list(match.groups()[:6])
    stars = [field == "**" for field in fields]
    given = stars.index(True) if True in stars else 6
    if not all(stars[given:]):
        raise QueryError(f"{pattern!r} has a star before a number", hint=_WILD_HINT)
    year, month, day, hour, minute, second = (
        int(f) if f and f != "**" else low for f, low in zip(fields, (1, 1, 1, 0, 0, 0), strict=True)
    )
    if given < 6 and hour == 24:
        raise QueryError(f"{pattern!r} has no hour 24", hint="hours go from 00 to 23")
    zone_name = normal_zone(match.group(7) or default_zone)
    stamp = f"{year:04d}-{month:02d}-{day:02d} {hour:02d}:{minute:02d}:{second:02d} {zone_name}"
    start, _ = parse_timestamp(stamp)
    try:
        return start, bucket_end(start, Duration(6 - given), zone_name)
    except (ValueError, OverflowError):  # the end of the year 9999, for which there is no date
        return start, parse_timestamp(f"9999-12-31 23:59:59 {zone_name}")[0] + 1000


_BEGUN = re.compile(r"(\d{4}(?:-\d{2}){0,2})(?:(?<=-\d\d-\d\d)[T ](\d{2}(?::\d{2}){0,2}))?")


def whole_pattern(pattern: str) -> str:
    """A pattern whose last fields are left out, with stars for them.

    >>> whole_pattern("2018-01"), whole_pattern("2018-01-** **:**:**")
    ('2018-01-** **:**:**', '2018-01-** **:**:**')
    """
    match = _BEGUN.fullmatch(pattern.strip())
    if match is None:
        return pattern
    day, clock = match.group(1), match.group(2) or "**"
    return f"{day}{'-**' * (2 - day.count('-'))} {clock}{':**' * (2 - clock.count(':'))}"


def within_range(start: int | str, end: int | str | None = None, default_zone: str = GMT) -> tuple[int, int]:
    """The half-open range of instants of a `within` clause: one pattern, or a start and an end (text or milliseconds).

    Texts that name no zone are in `default_zone`.

    Raises QueryError when the range is empty or a bound names no instant.

    >>> within_range(0, "1970-01-01 00:00:01")
    (0, 1000)
    """
    if end is None:
        if not isinstance(start, str):
            raise QueryError(f"a single `within` must be a text pattern, not {start!r}", hint=_WILD_HINT)
        return parse_within(start, default_zone)
    first, last = _bound(start, default_zone), _bound(end, default_zone)
    if first >= last:
        raise QueryError(
            f"`within` starts at {start!r}, which is not before its end {end!r}", hint="the start comes first"
        )
    return first, last


def _bound(value: int | str, default_zone: str) -> int:
    if isinstance(value, str):
        return parse_timestamp(value, default_zone)[0]
    if isinstance(value, bool) or not isinstance(value, int):
        raise QueryError(f"a `within` bound is a text or milliseconds, not {value!r}")
    return value
