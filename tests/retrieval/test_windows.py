"""Rows that look back (`over`, `previous`) and rows over fewer keys (`by`), against the raw events."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollup
from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from tests.profiles import examples
from tests.retrieval.test_merging import APP, ROWS, Event, events, told
from tests.retrieval.trades import DAY, HOUR, START, STORES, stored_in

ZONES = ("UTC", "Europe/Berlin", "America/New_York")
PROGRAMS = {zone: compile_app(APP, "+00:00" if zone == "UTC" else zone) for zone in ZONES}
Step = Callable[[datetime], datetime]
MONDAY, EARLIEST = datetime(2017, 11, 6), datetime(2017, 9, 1)


def _months_back(wall: datetime, months: int) -> datetime:
    month = wall.year * 12 + wall.month - 1 - months
    year, month = divmod(month, 12)
    last = (datetime(year + month // 11, (month + 1) % 12 + 1, 1) - timedelta(days=1)).day
    return wall.replace(year=year, month=month + 1, day=min(wall.day, last))


WIDTHS: dict[str, timedelta] = {"days": timedelta(days=1), "weeks": timedelta(days=7), "6 hours": timedelta(hours=6)}
WINDOWS: dict[str, tuple[Step, bool]] = {
    "7 days": (lambda end: end - timedelta(days=7), True),
    "36 hours": (lambda end: end - timedelta(hours=36), True),
    "3 weeks": (lambda end: end - timedelta(days=21), True),
    "1 month": (lambda end: _months_back(end, 1), True),
    "month to date": (lambda begin: begin.replace(day=1, hour=0), False),
    "year to date": (lambda begin: begin.replace(month=1, day=1, hour=0), False),
}
"""Start of a window by the wall clock, of the bucket's end or of its begin."""


def _instant(wall: datetime, zone: str) -> int:
    return round(wall.replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def _buckets(width: str, zone: str, start: int, end: int) -> list[tuple[datetime, datetime]]:
    walls = [MONDAY + n * WIDTHS[width] for n in range(int(timedelta(days=150) / WIDTHS[width]))]
    return [pair for pair in pairwise(walls) if start <= _instant(pair[0], zone) < end]


@examples(12)
@given(
    events, st.integers(-10, 40), st.integers(1, 30), st.sampled_from([*WIDTHS]), st.sampled_from([*WINDOWS]),
    st.sampled_from(ZONES), st.sampled_from(ZONES), st.sets(st.sampled_from(("country", "shop"))),
)  # fmt: skip
def test_a_row_is_about_all_events_of_its_window_and_keys(
    rows: list[Event], day: int, days: int, width: str, window: str, own: str, zone: str, keys: set[str]
) -> None:
    host = LocalHost(PROGRAMS[own])
    host.send("S", rows)
    start, end, by = START + day * DAY, START + (day + days) * DAY, sorted(keys)
    text = f"from A within {start}L, {end}L per '{width}' over '{window}' by ({', '.join(by)}) in zone '{zone}'"
    shown = "AGG_TIMESTAMP, country, shop, customers, mean, spread, total, n, least, most, latest"
    found = {
        (row.pop("AGG_TIMESTAMP"), row.pop("country"), row.pop("shop")): row
        for row in host.query(f"{text} select {shown}").to_pylist()
    }
    expected: dict[Any, list[Event]] = {}
    begin, of_end = WINDOWS[window]
    for low, high in _buckets(width, zone, start, end):
        since, until = _instant(begin(high if of_end else low), zone), _instant(high, zone)
        for row in rows:
            if since <= row[4] < until:
                group = (row[0] if "country" in keys else None, row[1] if "shop" in keys else None)
                expected.setdefault((_instant(low, zone), *group), []).append(row)
    assert found == {group: told(each) for group, each in expected.items()}


@examples(12)
@given(events, st.integers(-10, 40), st.integers(1, 30), st.sampled_from(["weeks", "days"]), st.sampled_from(ZONES))
def test_a_previous_value_is_that_of_the_bucket_of_then(
    rows: list[Event], day: int, days: int, width: str, zone: str
) -> None:
    host = LocalHost(PROGRAMS["UTC"])
    host.send("S", rows)
    start, end = START + day * DAY, START + (day + days) * DAY
    text = f"from A within {start}L, {end}L per '{width} by country in {zone}'"
    shown = "AGG_TIMESTAMP, country, n, previous(n) as before, previous(customers, '1 month') as a_month_ago"
    pairs = _buckets(width, zone, START - 70 * DAY, START + 80 * DAY)

    def of(wall: datetime, country: str) -> list[Event]:
        low, high = next((_instant(a, zone), _instant(b, zone)) for a, b in pairs if a <= wall < b)
        return [row for row in rows if row[0] == country and low <= row[4] < high]

    expected: dict[Any, Any] = {}
    for low, _ in pairs:
        for country in "xyz":
            here = of(low, country)
            if here and start <= _instant(low, zone) < end:
                before, then = of(low - timedelta(hours=1), country), of(_months_back(low, 1), country)
                customers = len({row[2] for row in then}) if then else None
                expected[_instant(low, zone), country] = (len(here), len(before) or None, customers)
    found = host.query(f"{text} select {shown}").to_pylist()
    assert {
        (row["AGG_TIMESTAMP"], row["country"]): (row["n"], row["before"], row["a_month_ago"]) for row in found
    } == expected


@pytest.fixture(params=STORES)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The configuration of a store that holds the events."""
    return stored_in(request, tmp_path, APP, ROWS)


BY_COUNTRY = [
    {"at": START, "country": "de", "shop": None, "customers": 1, "total": 10},
    {"at": START + DAY, "country": "de", "shop": None, "customers": 2, "total": 30},
    {"at": START + 2 * DAY, "country": "fr", "shop": None, "customers": 1, "total": 30},
    {"at": START + 2 * DAY, "country": "de", "shop": None, "customers": 2, "total": 30},
]
SHOWN = '"AGG_TIMESTAMP" as at, country, shop, customers, total'
RANGE = "'2018-01-01', '2018-01-04'"


@pytest.mark.parametrize(
    "question",
    [
        f"from A within {RANGE} per 'days over 7 days by country' select {SHOWN.replace(chr(34), '')}",
        f"from A within {RANGE} per 'days' over '7 days' by (country) select {SHOWN.replace(chr(34), '')}",
        f"select {SHOWN} from A within {RANGE} per 'days' over '7 days' by (country)",
        f"select {SHOWN} from A within {RANGE} per 'days' over '7 days' by (country) in zone '+00:00' as a",
        f"select {SHOWN} from A({RANGE}, 'days over 7 days by `country`')",
        f'select {SHOWN} from "A within 2018-01-01, 2018-01-04 per days over 7 days by country" as a',
    ],
)
@pytest.mark.few(6)
def test_every_spelling_and_store_gives_the_same_rows(stored: Path, question: str) -> None:
    found = rollup.query(stored, question).to_pylist()
    assert sorted(found, key=repr) == sorted(BY_COUNTRY, key=repr)


def test_every_store_gives_the_same_earlier_values(stored: Path) -> None:
    text = "from A within '2018-01-02', '2018-01-10' per 'days' by () select AGG_TIMESTAMP as at, total, previous(total) as p, previous(total, '1 week') as w"
    assert rollup.query(stored, text).to_pylist() == [
        {"at": START + DAY, "total": 20, "p": 10, "w": None},
        {"at": START + 2 * DAY, "total": 30, "p": 20, "w": None},
        {"at": START + 8 * DAY, "total": 100, "p": None, "w": 20},
    ]


def test_gaps_of_fewer_keys_are_filled_and_lost_keys_stay_null() -> None:
    text = APP.replace("shop string", "shop int")
    host = LocalHost.of(text)
    host.send("S", [(country, int(shop), *rest) for country, shop, *rest in ROWS])
    ask = "from A within '2018-01-01', '2018-01-04' per 'days by country' fill(zero, range) select AGG_TIMESTAMP, country, shop, n"
    found = [
        (row["AGG_TIMESTAMP"] - START, row["country"], row["shop"], row["n"]) for row in host.query(ask).to_pylist()
    ]
    days = {("de", 0): 1, ("de", DAY): 1, ("fr", 2 * DAY): 1}
    assert found == [
        (at, country, None, days.get((country, at), 0)) for at in (0, DAY, 2 * DAY) for country in ("de", "fr")
    ]


def test_late_events_are_counted_over_the_asked_keys() -> None:
    host = LocalHost.of(APP)
    host.send("S", ROWS)
    host.send("S", [("de", "1", "eve", 1, START), ("de", "2", "eve", 1, START + HOUR), ("fr", "1", "eve", 1, START)])
    ask = "from A within '2018-01-01' per 'days by country' select country, n, AGG_LATE_CORRECTED as late"
    assert host.query(ask).to_pylist() == [{"country": "de", "n": 3, "late": 2}, {"country": "fr", "n": 1, "late": 1}]


def test_a_condition_chooses_what_is_merged(stored: Path) -> None:
    text = "from A on shop == '2' within '2018' per 'years by country' select country, n order by country"
    assert rollup.query(stored, text).to_pylist() == [{"country": "de", "n": 1}, {"country": "fr", "n": 2}]


@pytest.mark.parametrize(
    ("per", "select", "message", "hint"),
    [
        ("days by town", "n", "A has no group key 'town'", "country, shop"),
        ("days by country", "merge(n) as n", "'days by country' merges all columns", "without `by`"),
        ("days over 3 fortnights", "n", "cannot look back over 'fortnights'", "month to date"),
        ("days over 0 days", "n", "cannot look back over 'days'", "over 7 days"),
        ("days over 2 months to date", "n", "cannot look back over 'months'", "month to date"),
        ("days by", "n", "unknown duration 'days by'", "[by keys]"),
        ("auto", "previous(n) as p", "previous(x) needs one row a bucket", "level"),
        ("days' fill(zero)", "previous(n) as p", "previous(x) needs one row a bucket", "fill"),
        ("days", "previous(nn) as p", "unknown attribute 'nn'", "total"),
        ("days", "previous(n, 'long ago') as p", "a length of time as its second argument", "1 year"),
        ("days", "previous(n + 1) as p", "previous takes a column", "1 year"),
    ],
)
def test_what_cannot_be_is_refused_with_what_can(per: str, select: str, message: str, hint: str) -> None:
    quoted = per if "'" in per else f"{per}'"
    with pytest.raises(RollupError) as caught:
        LocalHost.of(APP).query(f"from A within '2018' per '{quoted} select {select}")
    assert message in str(caught.value) and hint in str(caught.value) and caught.value.line == 1
