"""The calendar by examples a reader can check with a wall calendar: patterns, timestamps, days with 23 and 25 hours."""

from __future__ import annotations

import pytest

from rollup.core.calendar import (
    Duration,
    bucket_end,
    bucket_start,
    normal_zone,
    parse_timestamp,
    parse_within,
    within_range,
)
from rollup.core.errors import QueryError, RollupError, TimeError

HOUR = 3_600_000


def at(text: str) -> int:
    """The instant of a timestamp."""
    return parse_timestamp(text)[0]


@pytest.mark.parametrize(
    ("pattern", "start", "end"),
    [
        ("2018-**-** **:**:**", "2018-01-01 00:00:00", "2019-01-01 00:00:00"),
        ("2018-12-** **:**:**", "2018-12-01 00:00:00", "2019-01-01 00:00:00"),
        ("2020-02-** **:**:**", "2020-02-01 00:00:00", "2020-03-01 00:00:00"),
        ("2019-02-28 **:**:**", "2019-02-28 00:00:00", "2019-03-01 00:00:00"),
        ("2018-01-05 23:**:**", "2018-01-05 23:00:00", "2018-01-06 00:00:00"),
        ("2018-01-05 23:59:**", "2018-01-05 23:59:00", "2018-01-06 00:00:00"),
        ("2018-01-05 23:59:59", "2018-01-05 23:59:59", "2018-01-06 00:00:00"),
        ("2018-01-05 **:**:** +05:30", "2018-01-04 18:30:00", "2018-01-05 18:30:00"),
        ("  2018-01-05 **:**:** Z ", "2018-01-05 00:00:00", "2018-01-06 00:00:00"),
        ("1969-12-31 **:**:**", "1969-12-31 00:00:00", "1970-01-01 00:00:00"),
        ("2018", "2018-01-01T00:00:00", "2019-01-01T00:00:00"),
        ("2018-02", "2018-02-01T00:00:00", "2018-03-01T00:00:00"),
        ("2018-02-03 04:05", "2018-02-03T04:05:00", "2018-02-03T04:06:00"),
    ],
)
def test_a_pattern_names_the_bucket_of_its_first_star(pattern: str, start: str, end: str) -> None:
    assert parse_within(pattern) == (at(start), at(end))


@pytest.mark.parametrize(
    "pattern",
    [
        "",
        "2018-1",
        "2018-**",
        "2018-01-** 12:**:**",
        "****-**-** **:**:**",
        "2018-1*-** **:**:**",
        "2018-13-** **:**:**",
        "2018-02-30 **:**:**",
        "2018-01-05 24:**:**",
        "2018-01-05 12:60:**",
        "2018-01-05T**:**:**",
        "2018-01-** **:**:** Nowhere/City",
        "2018-01-** **:**:** +25:00",
    ],
)
def test_a_pattern_that_names_no_time_is_refused(pattern: str) -> None:
    with pytest.raises(RollupError) as refused:
        parse_within(pattern)
    assert refused.value.message


def test_a_day_pattern_in_a_zone_with_summer_time_has_23_or_25_hours() -> None:
    spring = parse_within("2018-03-25 **:**:** Europe/Berlin")
    autumn = parse_within("2018-10-28 **:**:** Europe/Berlin")
    assert (spring[1] - spring[0], autumn[1] - autumn[0]) == (23 * HOUR, 25 * HOUR)


@pytest.mark.parametrize(
    ("text", "instant", "zone"),
    [
        ("1970-01-01 00:00:00", 0, "+00:00"),
        (" 1970-01-01T00:00:00Z ", 0, "+00:00"),
        ("1970-01-01 05:30:00 +05:30", 0, "+05:30"),
        ("1970-01-01T05:30:00+0530", 0, "+05:30"),
        ("1970-01-01 01:00:00 +01", 0, "+01:00"),
        ("1970-01-01T00:00:00.25", 250, "+00:00"),
        ("1970-01-01T00:00:00,123456789", 123, "+00:00"),
        ("1969-12-31 24:00:00", 0, "+00:00"),
        ("1970-01-01", 0, "+00:00"),
        ("1970-01-01 00:01", 60_000, "+00:00"),
        ("1970-01-01 01:00:00 Europe/Berlin", 0, "Europe/Berlin"),
        ("1969-12-31 23:59:59.999", -1, "+00:00"),
    ],
)
def test_a_timestamp_is_an_instant_and_a_zone(text: str, instant: int, zone: str) -> None:
    assert parse_timestamp(text) == (instant, zone)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "now",
        "12:00:00",
        "2019-7-1 1:00:00",
        "2019-02-30 12:00:00",
        "2019-13-01 12:00:00",
        "2019-07-10 12:00:60",
        "2019-07-10 24:00:01",
        "2019-07-10  12:00:00",
        "2019-07-10 12:00:00 IST",
        "2019-07-10 12:00:00 Nowhere/City",
        "2019-07-10 12:00:00 +19:00",
        "0000-01-01 00:00:00",
    ],
)
def test_a_text_that_names_no_instant_is_refused(text: str) -> None:
    with pytest.raises(TimeError):
        parse_timestamp(text)


def test_a_repeated_hour_of_the_clock_is_read_as_its_first() -> None:
    assert at("2018-10-28 02:30:00 Europe/Berlin") == at("2018-10-28 00:30:00")


@pytest.mark.parametrize(
    ("zone", "day", "start", "hours"),
    [
        ("America/Havana", "2018-03-11", "2018-03-11 05:00:00", 23),
        ("America/Havana", "2018-11-04", "2018-11-04 04:00:00", 25),
        ("America/Sao_Paulo", "2018-11-04", "2018-11-04 03:00:00", 23),
        ("America/Sao_Paulo", "2018-02-17", "2018-02-17 02:00:00", 25),
        ("Australia/Lord_Howe", "2018-10-07", "2018-10-06 13:30:00", 23.5),
        ("Australia/Lord_Howe", "2018-04-01", "2018-03-31 13:00:00", 24.5),
        ("+14:00", "2019-12-31", "2019-12-30 10:00:00", 24),
        ("Pacific/Apia", "2011-12-29", "2011-12-29 10:00:00", 24),
        ("Pacific/Apia", "2011-12-31", "2011-12-30 10:00:00", 24),
    ],
)
def test_a_day_starts_at_its_first_instant_and_lasts_as_long_as_the_clocks_say(
    zone: str, day: str, start: str, hours: float
) -> None:
    noon = at(f"{day} 12:00:00 {zone}")
    begin = bucket_start(noon, Duration.DAYS, zone)
    assert begin == at(start)
    assert bucket_end(begin, Duration.DAYS, zone) - begin == int(hours * HOUR)


def test_a_repeated_hour_is_two_buckets_of_the_hour_level() -> None:
    first, second = at("2018-10-28 00:30:00"), at("2018-10-28 01:30:00")
    starts = [bucket_start(t, Duration.HOURS, "Europe/Berlin") for t in (first, second)]
    assert starts == [at("2018-10-28 00:00:00"), at("2018-10-28 01:00:00")]


def test_times_before_1970_fall_into_the_bucket_below() -> None:
    assert bucket_start(-1, Duration.SECONDS) == -1000
    assert bucket_start(-1500, Duration.SECONDS) == -2000
    assert bucket_start(-1, Duration.YEARS) == at("1969-01-01")


def test_a_range_is_two_bounds_in_any_form_with_the_start_before_the_end() -> None:
    assert within_range(0, "1970-01-01 00:00:01") == (0, 1000)
    assert within_range("1970-01-01 05:30:00 +05:30", 5) == (0, 5)
    for bounds in ((5, 5), (6, 5), ("2019-01-02", "2019-01-01"), (0.5, 1), (True, 2), (7,)):
        with pytest.raises(QueryError):
            within_range(*bounds)  # type: ignore[arg-type]


@pytest.mark.parametrize("spelling", ["Z", "z", "UTC", "GMT", "+00:00", "-00:00", "+0000", "+00"])
def test_every_spelling_of_utc_is_one_zone(spelling: str) -> None:
    assert normal_zone(spelling) == "+00:00"
