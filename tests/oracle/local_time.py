"""The calendar of the oracle: buckets, timestamps and `within` patterns through zoneinfo alone.

Instants are whole milliseconds since 1970-01-01T00:00:00Z. Levels are the numbers 0 (second) to 5 (year).
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from functools import lru_cache
from zoneinfo import ZoneInfo

SECOND, MINUTE, HOUR, DAY, MONTH, YEAR = range(6)
WIDTHS = {SECOND: 1_000, MINUTE: 60_000, HOUR: 3_600_000}
NAMES = ("SECONDS", "MINUTES", "HOURS", "DAYS", "MONTHS", "YEARS")
WORDS = {word: level for level, name in enumerate(NAMES) for word in (name.lower(), name.lower()[:-1])}
WORDS |= {"sec": SECOND, "min": MINUTE}
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MS = timedelta(milliseconds=1)


class NoTime(Exception):
    """A text that names no instant, no zone, or no range."""


@lru_cache(maxsize=512)
def zone(name: str) -> tzinfo:
    """The zone of `+05:30` or of an IANA name."""
    match = re.fullmatch(r"([+-])(\d\d):(\d\d)", name)
    if match:
        minutes = int(match[2]) * 60 + int(match[3])
        return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
    try:
        return ZoneInfo(name)
    except Exception:
        raise NoTime(f"zone {name!r}") from None


def local(instant: int, name: str) -> datetime:
    """The wall clock at an instant."""
    return (_EPOCH + instant * _MS).astimezone(zone(name))


def instant_of(wall: datetime) -> int:
    """The instant of an aware wall clock."""
    return (wall - _EPOCH) // _MS


def first_instant(day: date, name: str) -> int:
    """The first instant of a local date; where its midnight is skipped, the instant at which the clock jumps."""
    midnight = datetime(day.year, day.month, day.day)
    for fold in (0, 1):
        found = instant_of(midnight.replace(tzinfo=zone(name), fold=fold))
        if local(found, name).replace(tzinfo=None) == midnight:
            return found
    before, after = (instant_of(midnight.replace(tzinfo=zone(name), fold=fold)) for fold in (1, 0))
    while after - before > 1:
        middle = (before + after) // 2
        if local(middle, name).utcoffset() == local(after, name).utcoffset():
            after = middle
        else:
            before = middle
    return after


def floor_date(instant: int, level: int, name: str) -> date:
    """The first date of the local day, month or year that holds an instant."""
    day = local(instant, name).date()
    return day if level == DAY else day.replace(day=1) if level == MONTH else day.replace(month=1, day=1)


def start(instant: int, level: int, name: str) -> int:
    """Start of the bucket that holds an instant."""
    if level >= DAY:
        begin = first_instant(floor_date(instant, level, name), name)
        after = later(begin, level, name, 1)  # where clocks go back over midnight, the new day goes on
        return after if after <= instant else begin
    shift = local(instant, name).utcoffset() // _MS  # type: ignore[operator]
    found = (instant + shift) // WIDTHS[level] * WIDTHS[level] - shift
    if (local(found, name).utcoffset() // _MS - shift) % WIDTHS[level] == 0:  # type: ignore[operator]
        return found
    low = found  # the clocks have changed since by half an hour or so: then the rest of the hour is a bucket of its own
    while instant - low > 1:
        middle = (low + instant) // 2
        low, instant = (
            (low, middle) if local(middle, name).utcoffset() == local(instant, name).utcoffset() else (middle, instant)
        )
    return instant


def end(begin: int, level: int, name: str, units: int = 1) -> int:
    """End of the bucket that starts at `begin`, or of `units` buckets from there on."""
    found = later(begin, level, name, units)
    return start(found, level, name) if level < DAY else found


def later(begin: int, level: int, name: str, units: int) -> int:
    """Start of the bucket `units` buckets after the one that starts at `begin`; before it when negative."""
    if level < DAY:
        return begin + units * WIDTHS[level]
    day = floor_date(begin, level, name)
    if level == DAY:
        return first_instant(day + timedelta(days=units), name)
    months = day.year * 12 + day.month - 1 + units * (12 if level == YEAR else 1)
    return first_instant(date(months // 12, months % 12 + 1, 1), name)


_STAMP = re.compile(
    r"(?P<day>\d{4}-\d\d-\d\d)([T ](?P<h>\d\d):(?P<m>\d\d)(:(?P<s>\d\d)([.,](?P<f>\d+))?)?)?"
    r"\s*(?P<zone>[Zz]|[+-]\d\d(:?\d\d)?|[A-Za-z]+(/[\w+-]+)+)?"
)


def zone_name(text: str | None, default: str) -> str:
    """The spelling under which rows keep a zone."""
    if text is None:
        return default
    if text in "Zz":
        return "+00:00"
    if text[0] in "+-":
        digits = text[1:].replace(":", "").ljust(4, "0")
        return f"{'+' if digits == '0000' else text[0]}{digits[:2]}:{digits[2:]}"
    zone(text)
    return text


def stamp(text: object, default: str = "+00:00") -> tuple[int, str]:
    """The instant and zone of a timestamp: the page's form or ISO 8601. Raises NoTime."""
    match = _STAMP.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise NoTime(f"{text!r} is no timestamp")
    name = zone_name(match["zone"], default)
    hour, minute, second = (int(match[part] or 0) for part in "hms")
    midnight = (hour, minute, second) == (24, 0, 0)
    try:
        day = datetime.fromisoformat(match["day"]) + timedelta(days=midnight)
        wall = day.replace(hour=0 if midnight else hour, minute=minute, second=second, tzinfo=zone(name))
    except ValueError as problem:
        raise NoTime(f"{text!r}: {problem}") from None
    return instant_of(wall) + int((match["f"] or "0")[:3].ljust(3, "0")), name


_PATTERN = re.compile(r"(\d{4})-(\d\d|\*\*)-(\d\d|\*\*) (\d\d|\*\*):(\d\d|\*\*):(\d\d|\*\*)(?:\s+(.+))?")


def within(bounds: list[object]) -> tuple[int, int]:
    """The half-open range of one pattern, or of a start and an end. Raises NoTime."""
    if len(bounds) == 1:
        return _pattern(bounds[0])
    low, high = (
        int(bound) if isinstance(bound, int) and not isinstance(bound, bool) else stamp(bound)[0] for bound in bounds
    )
    if low >= high:
        raise NoTime("start is not before end")
    return low, high


def _pattern(text: object) -> tuple[int, int]:
    match = _PATTERN.fullmatch(text.strip()) if isinstance(text, str) else None
    if match is None:
        raise NoTime(f"{text!r} is no pattern")
    parts = list(match.groups()[:6])
    given = parts.index("**") if "**" in parts else 6
    if any(part != "**" for part in parts[given:]):
        raise NoTime("a number after a star")
    y, mo, d, h, mi, s = [*parts[:given], "", "01", "01", "00", "00", "00"][:given] + [
        "",
        "01",
        "01",
        "00",
        "00",
        "00",
    ][given:]
    begin, name = stamp(f"{y}-{mo}-{d} {h}:{mi}:{s}" + (f" {match[7]}" if match[7] else ""))
    return begin, end(begin, 6 - given, name)
