"""Subscriptions per what a question takes beside levels: other widths, zones, keys, windows and periods of a table.

What a subscriber has put together must be what `tests.oracle.questions` works out of the events.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

import rollup
from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost
from rollup.subscribe import Change
from tests.oracle.buckets import Calendar, Clock, of_days
from tests.oracle.local_time import instant_of, zone
from tests.oracle.questions import Answer, Event, Question, Window
from tests.retrieval.test_calendars import DAYS, FISCAL, SALES, ZONE, listed
from tests.retrieval.test_questions import MINUTE, MONDAY, PERIODS, THURSDAY, WINDOWS
from tests.retrieval.test_subscribe import drawn
from tests.retrieval.trades import DAY, HOUR, START, STORES, app, delta_host, host_of

NOON = START + 12 * HOUR
"""Of a Monday, in every zone that is asked for here."""
Rows = dict[tuple[int, str | None], tuple[int, int]]


class Fiscal:
    """The 4-4-5 weeks of a table, as a calendar."""

    def start(self, instant: int, name: str) -> int:
        edges = self._edges(name)
        return edges[bisect_right(edges, instant) - 1]

    def following(self, start: int, name: str) -> int:
        edges = self._edges(name)
        return edges[edges.index(start) + 1]

    def _edges(self, name: str) -> list[int]:
        return [instant_of(datetime(day.year, day.month, day.day, tzinfo=zone(name))) for day in DAYS]


PER: dict[str, tuple[Calendar, str, bool, Window | None]] = {
    "weeks from Sunday": (PERIODS["weeks from Sunday"][0], ZONE, True, None),
    "15 minutes in Asia/Kathmandu": (Clock(15 * MINUTE), "Asia/Kathmandu", True, None),
    "quarters by ()": (PERIODS["quarters"][0], ZONE, False, None),
    "days by (k)": (of_days(1, THURSDAY), ZONE, True, None),
    "days over 7 days": (of_days(1, THURSDAY), ZONE, True, WINDOWS["7 days"]),
    "2 hours over 36 hours by ()": (PERIODS["2 hours"][0], ZONE, False, WINDOWS["36 hours"]),
    "weeks over month to date in Europe/Berlin": (of_days(7, MONDAY), "Europe/Berlin", True, WINDOWS["month to date"]),
    "fiscal": (Fiscal(), ZONE, True, None),
    "fiscal by () in UTC": (Fiscal(), "UTC", False, None),
}
"""What `per` says: the calendar, its zone, whether rows are of a key, and what they look back over."""


def put(known: Rows, change: Change) -> None:
    """Do with a change what the documentation says."""
    for low, high in change.cleared:
        for key in [k for k in known if (low is None or k[0] >= low) and (high is None or k[0] < high)]:
            del known[key]
    for row in change.removed.to_pylist():
        del known[row["AGG_TIMESTAMP"], row.get("k")]
    for row in change.rows.to_pylist():
        known[row["AGG_TIMESTAMP"], row.get("k")] = row["total"], row["n"]


def told(events: Sequence[tuple[str | None, int, int]], per: str) -> Rows:
    """All rows there are, out of the events."""
    calendar, place, keyed, window = PER[per]
    given = [Event(k, 1, None, v, None, None, ts) for k, v, ts in events]
    low, high = START - 100 * DAY, max((event.ts for event in given), default=START) + 40 * DAY
    keys = ("country",) if keyed else ()
    question = Question(calendar, place, low, high, ("total", "n"), keys, True, window)
    rows = Answer(question, given).rows()
    return {(row["AGG_TIMESTAMP"], row["country"]): (row["total"], row["n"]) for row in rows}


@pytest.fixture(params=STORES)
def job(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[str], tuple[LocalHost, Path]]:
    """A job over a store of each kind, and its configuration."""

    def made(text: str) -> tuple[LocalHost, Path]:
        host = host_of(request, tmp_path, text, ZONE)
        listed(tmp_path, FISCAL)
        listed(tmp_path, SALES, "sales")
        return host, tmp_path / "conf.toml"

    return made


@pytest.mark.few("delta-0", "postgresql-2")
@pytest.mark.parametrize("seed", range(12))
def test_what_is_put_together_is_what_a_question_would_say(
    job: Callable[[str], tuple[LocalHost, Path]], seed: int
) -> None:
    """Late events reach closed periods; the subscriber misses commits and goes on from those that he has seen."""
    draw = random.Random(seed)
    host, conf = job(app("correct", draw.choice([0, 2])))
    asker = rollup.open(conf)
    listening = {per: asker.subscribe("A", per) for per in PER}
    known: dict[str, Rows] = {per: {} for per in PER}
    sent: list[Any] = []
    for batch in drawn(seed, late=True):
        host.send("S", batch)
        sent += batch
        for per in PER:
            if draw.random() < 0.4:
                continue
            change = listening[per].step()
            assert change is not None and listening[per].step() is None
            put(known[per], change)
            assert known[per] == told(sent, per), per
            if draw.random() < 0.4:
                listening[per] = asker.subscribe("A", per, commit=change.commit)


def test_only_the_periods_that_an_event_reaches_come_again(tmp_path: Path) -> None:
    host, conf = delta_host(tmp_path, app("correct", 0), ZONE), tmp_path / "conf.toml"
    host.send("S", [("a", number, NOON + number * 7 * DAY) for number in range(40)])
    listening = rollup.open(conf).subscribe("A", "weeks over 2 weeks")
    first = listening.step()
    assert first is not None and first.rows.num_rows == 41
    host.send("S", [("a", 100, NOON + 40 * 7 * DAY), ("a", 1, NOON + 70 * DAY)])
    second = listening.step()
    assert second is not None
    places = [(row["AGG_TIMESTAMP"] - START) // (7 * DAY) for row in second.rows.to_pylist()]
    assert [place for place in places if place < 35] == [10, 11]
    assert set(places) >= {40, 41}


def test_gaps_between_periods_and_events_in_none(job: Callable[[str], tuple[LocalHost, Path]]) -> None:
    host, conf = job(app("correct", 0))
    listening = rollup.open(conf).subscribe("A", "sales")
    host.send("S", [("a", 1, START)])
    assert [change.rows.num_rows for change in [listening.step()] if change] == [0]
    inside = datetime(*SALES[1][0].timetuple()[:3], 12, tzinfo=zone(ZONE))
    host.send("S", [("a", 5, instant_of(inside)), ("b", 7, instant_of(inside + timedelta(days=60)))])
    change = listening.step()
    assert change is not None
    assert [(row["k"], row["total"]) for row in change.rows.to_pylist()] == [("a", 5)]


def test_since_is_of_the_zone_that_is_asked_for(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app(), "America/New_York")
    host.send("S", [("a", 1, START - HOUR // 2), ("a", 2, START - 6 * HOUR)])
    change = rollup.open(tmp_path / "conf.toml").subscribe("A", "days in UTC", since="2017-12-31").step()
    assert change is not None and change.rows["AGG_TIMESTAMP"].to_pylist() == [START - DAY]
    assert change.cleared == [(START - DAY, None)]


def test_more_periods_than_a_question_has_need_a_later_begin(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app())
    host.send("S", [("a", 1, START), ("a", 2, START + 400 * DAY)])
    asker = rollup.open(tmp_path / "conf.toml")
    with pytest.raises(RollupError, match=r"more than 1,000,000 of '10 seconds'.*since"):
        asker.subscribe("A", "10 seconds").step()
    change = asker.subscribe("A", "10 seconds", since=START + 399 * DAY).step()
    assert change is not None and change.rows["total"].to_pylist() == [2]


@pytest.mark.parametrize(
    ("per", "message"),
    [
        ("auto", "per 'auto' depends on the ends of a range, and a subscription has no end"),
        ("decades", "unknown duration 'decades'"),
        ("7 minutes", "do not divide a day"),
        ("days by nobody", "no group key 'nobody'.*k"),
        ("30 seconds", "cannot be put together: the finest level of A is minutes"),
        ("sales over 2 days", "sales lists its periods"),
    ],
)
def test_what_no_subscription_takes_is_refused_before_anything_is_read(tmp_path: Path, per: str, message: str) -> None:
    delta_host(tmp_path, app().replace("every sec ... year", "every min ... year"))
    listed(tmp_path, SALES, "sales")
    with pytest.raises(RollupError, match=message):
        rollup.open(tmp_path / "conf.toml").subscribe("A", per)


def test_rows_with_zones_of_their_own_have_levels_alone(tmp_path: Path) -> None:
    host = delta_host(tmp_path, app().replace("ts long", "ts string"))
    asker = rollup.open(tmp_path / "conf.toml")
    host.send("S", [("a", 1, "2018-01-01T00:00:00+05:30")])
    with pytest.raises(RollupError, match="needs one zone"):
        asker.subscribe("A", "weeks")
    assert asker.subscribe("A", "days").step() is not None
