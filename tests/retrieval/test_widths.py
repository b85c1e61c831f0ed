"""Buckets of any width, zone and origin, put together from stored levels, against a group-by over the raw events."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

import rollup
from rollup.core import periods
from rollup.core.calendar import Duration, bucket_start
from rollup.core.errors import QueryError
from rollup.core.periods import Period
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from rollup.retrieval.questions import _all_begin, bounds  # pyright: ignore[reportPrivateUsage]
from tests.profiles import examples
from tests.retrieval.trades import DAY, EVENTS, HOUR, SECOND, START, STORES, Event, app, stored_in

ZONES = ("UTC", "Europe/Berlin", "Asia/Kathmandu", "America/New_York")
PROGRAMS = {zone: compile_app(app("correct"), "+00:00" if zone == "UTC" else zone) for zone in ZONES}
Floor = Callable[[datetime], datetime]


def _clock(minutes: float) -> Floor:
    return lambda wall: (
        wall
        - timedelta(
            seconds=(wall.hour * 3600 + wall.minute * 60 + wall.second) % int(minutes * 60),
            microseconds=wall.microsecond,
        )
    )


def _day(wall: datetime) -> datetime:
    return wall.replace(hour=0, minute=0, second=0, microsecond=0)


WIDTHS: dict[str, Floor] = {
    "15 minutes": _clock(15),
    "10 seconds": _clock(1 / 6),
    "6 hours": _clock(360),
    "2 days": lambda wall: _day(wall) - timedelta(days=(wall.date() - datetime(1970, 1, 1).date()).days % 2),
    "weeks": lambda wall: _day(wall) - timedelta(days=wall.weekday()),
    "weeks from Sunday": lambda wall: _day(wall) - timedelta(days=wall.isoweekday() % 7),
    "quarters": lambda wall: _day(wall).replace(month=(wall.month - 1) // 3 * 3 + 1, day=1),
    "months from the 7th": lambda wall: (_day(wall) - timedelta(days=6)).replace(day=7),
    "years from April 6": lambda wall: _day(wall).replace(
        year=wall.year - ((wall.month, wall.day) < (4, 6)), month=4, day=6
    ),
    "days": _day,
}
times = st.builds(
    lambda step, n, off: START + n * step + off,
    st.sampled_from((SECOND, HOUR, DAY)), st.integers(-40, 70), st.sampled_from((0, 1, 999, 59_999)),
)  # fmt: skip
events = st.lists(st.tuples(st.sampled_from(("a", "b", None)), st.integers(-9, 9), times), min_size=1, max_size=14)


def start_of(ts: int, text: str, zone: str) -> int:
    """The start of the bucket of an event; until spring no clock of these zones changes within one."""
    wall = datetime.fromtimestamp(ts / 1000, UTC).astimezone(ZoneInfo(zone)).replace(tzinfo=None)
    return int(WIDTHS[text](wall).replace(tzinfo=ZoneInfo(zone)).timestamp() * 1000)


def grouped(
    rows: list[Event], text: str, zone: str, low: int, high: int
) -> dict[tuple[int, str | None], tuple[int, int]]:
    found: dict[tuple[int, str | None], tuple[int, int]] = {}
    for key, value, ts in rows:
        bucket = start_of(ts, text, zone)
        if low <= bucket < high:
            total, count = found.get((bucket, key), (0, 0))
            found[bucket, key] = total + value, count + 1
    return found


@examples(20)
@given(
    events, times, st.integers(1, 60 * DAY), st.sampled_from([*WIDTHS]), st.sampled_from(ZONES), st.sampled_from(ZONES)
)
def test_an_answer_is_the_group_by_over_the_raw_events(
    rows: list[Event], start: int, width: int, text: str, own: str, asked: str
) -> None:
    host = LocalHost(PROGRAMS[own])
    host.send("S", rows)
    question = (
        f"from A within {start}L, {start + width}L per '{text}' in zone '{asked}' select AGG_TIMESTAMP, k, total, n"
    )
    found = {(row["AGG_TIMESTAMP"], row["k"]): (row["total"], row["n"]) for row in host.query(question).to_pylist()}
    assert found == grouped(rows, text, asked, start, start + width)


def _weeks() -> list[dict[str, Any]]:
    found = grouped([*EVENTS], "weeks", "Europe/Berlin", START - 7 * DAY, START + 60 * DAY)
    return [{"AGG_TIMESTAMP": at, "k": key, "total": found[at, key][0]} for at, key in sorted(found, key=repr)]


WEEKS = "within '2017-12-25', '2018-03-01' per 'weeks in Europe/Berlin'"
SIDDHI = f"from A {WEEKS} select AGG_TIMESTAMP, k, total"
SQL = f'select "AGG_TIMESTAMP", k, total from A {WEEKS}'


def _sorted(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return sorted(rows, key=lambda row: repr((row["AGG_TIMESTAMP"], row["k"])))


@pytest.fixture(params=STORES)
def stored(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The configuration of a store that holds the events."""
    return stored_in(request, tmp_path, app("correct"), EVENTS)


@pytest.mark.parametrize(
    "question",
    [
        SIDDHI,
        SQL,
        SQL.replace("'weeks in Europe/Berlin'", "'weeks' in zone 'Europe/Berlin'"),
        """select "AGG_TIMESTAMP", k, total from "A within 2017-12-25, 2018-03-01 per weeks in Europe/Berlin" as a""",
        """select "AGG_TIMESTAMP", k, total from A('2017-12-25', '2018-03-01', 'weeks in Europe/Berlin')""",
    ],
)
@pytest.mark.few(5)
def test_every_store_gives_the_same_weeks(stored: Path, question: str) -> None:
    assert _sorted(rollup.query(stored, question).to_pylist()) == _weeks()


def test_gaps_ledger_and_explanation_are_of_the_asked_buckets(stored: Path) -> None:
    ask = "from A on k == 'a' within '2018-01-01', '2018-02-19' per 'weeks'"
    filled = rollup.query(stored, f"{ask} fill(zero) select AGG_TIMESTAMP, total order by AGG_TIMESTAMP").to_pylist()
    weeks = [START + 7 * DAY * n for n in range(6)]
    totals = {start: 0 for start in weeks}
    for key, value, ts in EVENTS:
        if key == "a":
            totals[start_of(ts, "weeks", "UTC")] += value
    assert filled == [{"AGG_TIMESTAMP": start, "total": totals[start]} for start in weeks]
    extra = rollup.query(stored, f"{ask} select AGG_EVENTS, AGG_PER, AGG_LATE_CORRECTED").to_pylist()
    assert sum(row["AGG_EVENTS"] for row in extra) == 6 and {row["AGG_PER"] for row in extra} == {"weeks"}
    explained = rollup.query(stored, f"explain {ask} select total").to_pylist()
    assert explained[0]["level"] == "days" and explained[0]["start"].startswith("2018-01-01")


def test_bounds_without_a_zone_are_in_the_zone_of_the_question() -> None:
    host = LocalHost(PROGRAMS["UTC"])
    host.send("S", EVENTS)
    first, last = START + 5 * HOUR, START + 29 * HOUR  # the first of January in New York
    asked = "from A within '2018-01-01 **:**:**' per 'days' in zone 'America/New_York' select AGG_TIMESTAMP, n"
    assert host.query(asked).to_pylist() == []
    host.send("S", [("c", 1, first), ("c", 1, last - 1), ("c", 1, last)])
    assert host.query(asked).to_pylist() == [{"AGG_TIMESTAMP": first, "n": 2}]


@pytest.mark.parametrize(
    ("levels", "per", "message", "hint"),
    [
        ("hour ... year", "15 minutes", "'15 minutes' cannot be put together: the finest level of A is hours", "minutes"),
        ("day, month", "days in Asia/Kathmandu", "the finest level of A is days", "made of minutes"),
        ("sec ... year", "7 hours", "do not divide a day", "15 minutes"),
        ("sec ... year", "fortnights", "unknown duration 'fortnights'", "weeks"),
        ("sec ... year", "days in Nowhere/Land", "unknown zone", "IANA"),
    ],
)  # fmt: skip
def test_what_cannot_be_exact_is_refused_with_what_would_be_needed(
    levels: str, per: str, message: str, hint: str
) -> None:
    text = f"define stream S (v long, ts long); define aggregation A from S select sum(v) as v aggregate by ts every {levels};"
    host = LocalHost.of(text)
    with pytest.raises(rollup.RollupError) as caught:
        host.query(f"from A within '2018-01-** **:**:**' per '{per}' select v")
    assert message in str(caught.value) and hint in (caught.value.hint or "") and caught.value.column == 41


def test_whether_a_row_is_final_is_said_of_stored_levels_only() -> None:
    with pytest.raises(QueryError, match="AGG_FINAL is of stored levels"):
        LocalHost(PROGRAMS["UTC"]).query("from A within '2018-**-** **:**:**' per 'weeks' select AGG_FINAL")


NOW = START + 45 * DAY + 12 * HOUR  # Thursday the 15th of February 2018, noon


@pytest.mark.parametrize(
    ("said", "zone", "first", "last"),
    [
        ("today", "UTC", "2018-02-15T00:00", "2018-02-16T00:00"),
        ("Yesterday", "UTC", "2018-02-14T00:00", "2018-02-15T00:00"),
        ("this hour", "UTC", "2018-02-15T12:00", "2018-02-15T13:00"),
        ("today", "Asia/Kathmandu", "2018-02-14T18:15", "2018-02-15T18:15"),
        ("this week", "UTC", "2018-02-12T00:00", "2018-02-19T00:00"),
        ("last week", "UTC", "2018-02-05T00:00", "2018-02-12T00:00"),
        ("this month", "Europe/Berlin", "2018-01-31T23:00", "2018-02-28T23:00"),
        ("last month", "UTC", "2018-01-01T00:00", "2018-02-01T00:00"),
        ("this quarter", "UTC", "2018-01-01T00:00", "2018-04-01T00:00"),
        ("last year", "UTC", "2017-01-01T00:00", "2018-01-01T00:00"),
        ("last 7 days", "UTC", "2018-02-08T12:00", "2018-02-15T12:00:00.001"),
        ("last 36 hours", "UTC", "2018-02-14T00:00", "2018-02-15T12:00:00.001"),
        ("last 2 months", "UTC", "2017-12-15T12:00", "2018-02-15T12:00:00.001"),
        ("2018-02", "UTC", "2018-02-01T00:00", "2018-03-01T00:00"),
        ("2018", "Europe/Berlin", "2017-12-31T23:00", "2018-12-31T23:00"),
        ("2018-02-15 12", "UTC", "2018-02-15T12:00", "2018-02-15T13:00"),
        ("2018-02-15T12:30", "UTC", "2018-02-15T12:30", "2018-02-15T12:31"),
    ],
)
def test_ranges_are_taken_as_people_say_them(
    monkeypatch: pytest.MonkeyPatch, said: str, zone: str, first: str, last: str
) -> None:
    monkeypatch.setattr("time.time_ns", lambda: NOW * 1_000_000)
    expected = tuple(round(datetime.fromisoformat(at).replace(tzinfo=UTC).timestamp() * 1000) for at in (first, last))
    assert bounds([said], "+00:00" if zone == "UTC" else zone) == expected


@pytest.mark.parametrize(
    "question", ["from A within 'today' per 'days' select total", "select total from A within 'today' per 'days'"]
)
def test_the_present_moves_on_between_two_askings(stored: Path, monkeypatch: pytest.MonkeyPatch, question: str) -> None:
    found = []
    for day in (0, 1, 40):
        monkeypatch.setattr("time.time_ns", lambda at=START + day * DAY: at * 1_000_000)
        found.append(sum(row["total"] for row in rollup.query(stored, question).to_pylist()))
    assert found == [sum(v for _, v, ts in EVENTS if START + d * DAY <= ts < START + (d + 1) * DAY) for d in (0, 1, 40)]


@pytest.mark.parametrize(
    ("range_", "says"), [("last 7 days", "depends on the present"), ("2019", "says '2019-**-** **:**:**'")]
)
def test_a_stream_asks_in_the_documents_forms(range_: str, says: str) -> None:
    ask = "define stream Ask (w string); from Ask as b join A as a within {} per 'days' select a.total insert into Out;"
    host = LocalHost.of(app("correct") + ask.format("b.w"))
    host.send("Ask", [(range_,)])
    assert says in str(host.dead)
    with pytest.raises(QueryError, match=re.escape(says)):
        compile_app(app("correct") + ask.format(f"'{range_}'"))


@pytest.mark.parametrize(
    "question",
    ["from A within last '7 days' per 'days' select n", "select n from A within last '7 days' per 'days'",
     "select n from A('last 7 days', 'days')", 'select n from "A within last 7 days per days" as a'],
)  # fmt: skip
def test_the_last_days_are_those_until_now(monkeypatch: pytest.MonkeyPatch, stored: Path, question: str) -> None:
    for now in (START + DAY, START + 40 * DAY + HOUR):
        monkeypatch.setattr("time.time_ns", lambda at=now: at * 1_000_000)
        days = {(key, ts // DAY) for key, _, ts in EVENTS if now - 7 * DAY <= ts // DAY * DAY <= now}
        assert rollup.query(stored, question).num_rows == len(days) > 0


@pytest.mark.parametrize(
    "zone", ["Europe/Berlin", "Australia/Lord_Howe", "Africa/Monrovia", "America/St_Johns", "+05:30"]
)
@pytest.mark.parametrize("year", [1937, 1972, 2018])
def test_edges_that_begin_buckets_are_told_as_one_by_one(zone: str, year: int) -> None:
    """A day of them at once, also where the clocks change in it, by half an hour or by some seconds."""
    for word in ("15 minutes in Asia/Kolkata", "minutes", "hours", "2 hours in Europe/Amsterdam", "days"):
        for month in (1, 3, 4, 10):
            begin = int(datetime(year, month, 1, tzinfo=UTC).timestamp() * 1000)
            edges = Period.parse(word).edges(begin, begin + 9 * 86_400_000, zone)
            for level in Duration:
                one_by_one = all(bucket_start(each, level, zone) == each for each in edges)
                assert _all_begin(edges, level, zone) == one_by_one, (word, month, level)


@pytest.mark.parametrize("word", ["seconds in Asia/Kolkata", "6 minutes", "days in Asia/Kolkata", "weeks", "months"])
def test_a_range_with_far_too_many_is_refused_before_they_are_made(word: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> None:
        raise AssertionError("they are made")

    monkeypatch.setattr(periods, "_edges", never)
    with pytest.raises(QueryError, match=f"more than 1,000,000 of '{word}' in this range"):
        Period.parse(word).edges(-(2**62), 2**62, "Europe/Berlin")
