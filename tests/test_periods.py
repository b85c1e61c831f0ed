"""Periods of any width, beside a walk over every minute of a few days and over every day of years."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from itertools import pairwise, product
from zoneinfo import ZoneInfo, available_timezones

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.calendar import Duration, bucket_start
from rollup.core.errors import QueryError, TimeError
from rollup.core.periods import Period, said_range
from tests.profiles import examples

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
ODD = ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/Sao_Paulo", "Asia/Kathmandu", "Africa/Cairo",
       "Pacific/Apia", "UTC", "Asia/Beirut", "Atlantic/Azores"]  # fmt: skip


def at(text: str, zone: str = "UTC") -> int:
    return int(datetime.fromisoformat(text).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def wall(instant: int, zone: str) -> datetime:
    return datetime.fromtimestamp(instant / 1000, UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)


def walked(start: int, end: int, minutes: int, zone: str) -> list[int]:
    """The minutes at which the clock shows a multiple of a width, or has jumped over one."""
    found = []
    for instant in range(start, end, MINUTE):
        now, before = (
            (each.hour * 60 + each.minute, each.date()) for each in (wall(instant, zone), wall(instant - MINUTE, zone))
        )
        jumped = now[1] != before[1] or now[0] // minutes != before[0] // minutes
        if now[0] % minutes == 0 or jumped:
            found.append(instant)
    return found


@pytest.mark.parametrize("zone", ODD)
@pytest.mark.parametrize("text", ["15 minutes", "30 min", "hours", "2 hours", "6 hours", "12 hours"])
@given(day=st.dates(date(2009, 1, 1), date(2030, 12, 31)))
@examples(3)
def test_periods_of_the_clock_begin_where_it_shows_their_multiples(zone: str, text: str, day: date) -> None:
    days = {day, *(change for change in _changes(zone, day.year))}
    for each in sorted(days):
        start = at(f"{each}T00:00:00") - 14 * HOUR
        period = Period.parse(text)
        minutes = period.count * (60 if period.unit == "hour" else 1)
        edges = period.edges(start, start + 40 * HOUR, zone)
        assert list(edges[:-1]) == walked(start, start + 40 * HOUR, minutes, zone)
        assert edges[-1] >= start + 40 * HOUR


def _changes(zone: str, year: int) -> list[date]:
    days = [date(year, 1, 1) + timedelta(days=n) for n in range(365)]
    offsets = [datetime(d.year, d.month, d.day, 12, tzinfo=ZoneInfo(zone)).utcoffset() for d in days]
    return [day for day, now, before in zip(days[1:], offsets[1:], offsets, strict=False) if now != before][:2]


@pytest.mark.parametrize("level", [*Duration])
@pytest.mark.parametrize("zone", ODD)
def test_a_periods_of_one_unit_are_the_buckets_of_its_level(level: Duration, zone: str) -> None:
    if (level, zone) == (Duration.HOURS, "Australia/Lord_Howe"):
        return  # where the clock jumps by half an hour, a level has half an hour that no period has
    start = at("2018-10-27T00:00:00")
    end = start + {Duration.SECONDS: HOUR, Duration.MINUTES: 2 * DAY}.get(level, 800 * DAY)
    edges = Period.parse(level.plural).edges(start, end, zone)
    assert all(bucket_start(edge, level, zone) == edge for edge in edges)
    assert all(bucket_start(edge - 1, level, zone) < edge for edge in edges)
    assert all(bucket_start(b - 1, level, zone) == a for a, b in pairwise(edges))


@pytest.mark.parametrize(
    ("text", "starts"),
    [
        ("days", lambda d: True),
        ("weeks", lambda d: d.weekday() == 0),
        ("weeks from Sunday", lambda d: d.weekday() == 6),
        ("2 weeks from 2026-01-07", lambda d: (d - date(2026, 1, 7)).days % 14 == 0),
        ("months", lambda d: d.day == 1),
        ("months from the 7th", lambda d: d.day == 7),
        ("quarters", lambda d: d.day == 1 and d.month in (1, 4, 7, 10)),
        ("years from April 6", lambda d: (d.month, d.day) == (4, 6)),
        ("2 years", lambda d: (d.month, d.day) == (1, 1) and d.year % 2 == 0),
    ],
)
def test_periods_of_the_calendar_begin_with_local_days(text: str, starts: Callable[[date], bool]) -> None:
    """In every thirtieth zone of the database; days that a zone never had (Samoa's 30th of December) begin nothing."""
    for zone, year in product(["Pacific/Apia", *sorted(available_timezones())[::30]], (1970, 1995, 2011, 2040)):
        period = Period.parse(f"{text} in {zone}")
        start, end = at(f"{year}-01-03T00:00:00"), at(f"{year}-01-03T00:00:00") + 800 * DAY
        edges = period.edges(start, end, "UTC")
        days = [wall(edge, zone).date() for edge in edges]
        expected = [wall(start, zone).date() + timedelta(days=n) for n in range(-1, 1900)]
        begun = [day for day in expected if starts(day) and days[0] <= day <= days[-1]]
        lost = set(begun) - set(days)
        assert [day for day in begun if day not in lost] == sorted(set(days)), zone
        assert all(wall(at(f"{day}T12:00:00", zone), zone).date() != day for day in lost), zone
        for edge in edges:  # the first instant of its day
            assert wall(edge - 1000, zone).date() < wall(edge, zone).date()


def test_a_day_may_begin_in_the_morning_and_a_quarter_of_an_hour_at_five_past() -> None:
    start = at("2026-03-28T00:00:00", "Europe/Berlin")
    shown = [
        wall(edge, "Europe/Berlin").isoformat()
        for edge in Period.parse("days from 06:00").edges(start, start + 2 * DAY, "Europe/Berlin")
    ]
    assert shown == ["2026-03-28T06:00:00", "2026-03-29T06:00:00", "2026-03-30T06:00:00"]
    shown = [
        wall(edge, "UTC").minute for edge in Period.parse("15 minutes from 00:05").edges(start, start + HOUR, "UTC")
    ]
    assert shown == [5, 20, 35, 50, 5]


@pytest.mark.parametrize(
    ("letter", "word"),
    [
        ("10s", "10 seconds"), ("5m", "5 minutes"), ("15 m", "15 minutes"), ("1h", "1 hour"), ("2H", "2 hours"),
        ("7d", "7 days"), ("2w", "2 weeks"), ("1M", "1 month"), ("1y", "1 year"), ("1h over 24h", "1 hour over 24 hours"),
    ],
)  # fmt: skip
def test_a_unit_behind_a_count_may_be_the_letter_that_charts_write(letter: str, word: str) -> None:
    one, other = Period.parse(letter), Period.parse(word)
    assert (one.count, one.unit, one.over) == (other.count, other.unit, other.over)
    if not one.over:
        assert said_range(f"last {letter}", "Europe/Berlin", 0) == said_range(f"last {word}", "Europe/Berlin", 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("m", "unknown duration"), ("5q", "unknown duration"),
        ("fortnights", "unknown duration"), ("", "unknown duration"), ("7 hours", "do not divide a day"),
        ("0 days", "do not divide"), ("weeks from April", "cannot begin"), ("months from the 31st", "cannot begin"),
        ("hours from Monday", "cannot begin"), ("days from 2026-02-30", "there is no day"),
        ("years from February 29", "cannot begin"), ("days in Berlin", "unknown zone"), ("-1 days", "unknown duration"),
        ("minutes from 25:00", "cannot begin"),
    ],
)  # fmt: skip
def test_what_is_no_period_is_refused_with_what_is(text: str, message: str) -> None:
    with pytest.raises((QueryError, TimeError), match=message) as caught:
        Period.parse(text)
    assert caught.value.hint
