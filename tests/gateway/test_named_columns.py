"""Columns that an answer has where a text names them, AGG_EVENTS and those of the ledger, before both kinds of stores."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest

from rollup.hosts.local import LocalHost
from tests.gateway.trades import at, served

APP = """define stream S (k string, v long, hidden string, ts long);
@OutOfOrder('correct') define aggregation Corrected from S select k, sum(v) as total group by k
aggregate by ts every sec ... year;
@OutOfOrder('drop') define aggregation Dropped from S select sum(v) as total group by k, hidden
aggregate by ts every sec ... year;"""
DAYS = [at(f"2018-01-0{day}T10:00:00") for day in range(1, 8)]
ON_TIME = [(k, day + 1, "h", start) for day, start in enumerate(DAYS) for k in "ab"]
LATE = [[("a", 10, "h", DAYS[0]), ("a", 10, "h", DAYS[0] + 1), ("b", 10, "h", DAYS[2])], [("a", 10, "h", DAYS[0])]]
"""Events of two more commits, each later than every bucket of its time."""
COUNTED = {("a", 0): (3, 2), ("b", 2): (1, 1)}
"""Late events and the commits that they came in, by key and day; of all others there are none."""
COLUMNS = '"AGG_EVENTS", "AGG_LATE_{}", "AGG_REVISION", "AGG_PER"'
JANUARY = "'2018-01-** **:**:**'"


@pytest.fixture(scope="module", params=["delta", pytest.param("postgresql", marks=pytest.mark.postgres)])
def login(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with served(request.param, APP, _send) as found:
        yield found


def _send(job: LocalHost) -> None:
    for batch in (ON_TIME, *LATE):
        job.send("S", batch)


def expected(corrected: bool) -> list[tuple[Any, ...]]:
    """Day, key, events that are in the row, late events, commits that corrected it."""
    return [
        (day, k, 1 + (late if corrected else 0), late, commits if corrected else 0)
        for day in range(len(DAYS))
        for k in "ab"
        for late, commits in [COUNTED.get((k, day), (0, 0))]
    ]


def day_of(start: int) -> int:
    return datetime.fromtimestamp(start / 1000, UTC).day - 1


@pytest.mark.parametrize(
    "source",
    [
        f"Corrected WITHIN {JANUARY} PER 'days'",
        f"Corrected({JANUARY}, 'days') AS c",
        '"Corrected_per_days" WHERE "AGG_TIME" < \'2019-01-01\'',
        '"Corrected_per_days"',
    ],
)
def test_an_answer_says_how_its_buckets_came_about(login: dict[str, Any], source: str) -> None:
    text = f'SELECT "AGG_TIMESTAMP", k, {COLUMNS.format("CORRECTED")} FROM {source} ORDER BY 1, 2'
    with psycopg.connect(**login, autocommit=True) as client:
        found = client.execute(text.encode()).fetchall()
        assert [(day_of(start), *row) for start, *row in found] == [(*row, "days") for row in expected(True)]


def test_dropped_events_are_counted_beside_keys_that_nobody_selected(login: dict[str, Any]) -> None:
    text = (
        f'WITH d AS (SELECT * FROM "Dropped_per_days") SELECT "AGG_TIMESTAMP", k, {COLUMNS.format("DROPPED")}, hidden'
        " FROM d ORDER BY 1, 2"
    )
    with psycopg.connect(**login, autocommit=True) as client:
        found = client.execute(text.encode()).fetchall()
        assert [(day_of(start), *row) for start, *row in found] == [(*row, "days", "h") for row in expected(False)]


def test_closed_buckets_are_final_and_wider_ones_have_no_such_column(login: dict[str, Any]) -> None:
    text = f'SELECT "AGG_FINAL", "AGG_TIMEZONE" FROM Dropped WITHIN {JANUARY} PER \'{{}}\' ORDER BY "AGG_TIMESTAMP"'
    with psycopg.connect(**login, autocommit=True) as client:
        found = client.execute(text.format("hours").encode()).fetchall()
        # An hour closes when a later one arrives from the minutes, a minute when one does from the seconds, and so on.
        assert [final for final, _ in found] == [True] * 8 + [False] * 6
        with pytest.raises(psycopg.Error, match="AGG_FINAL is of stored levels"):
            client.execute(text.format("weeks").encode())
        late = f"SELECT sum(\"AGG_LATE_DROPPED\")::int FROM Dropped WITHIN {JANUARY} PER 'weeks'"
        assert client.execute(late.encode()).fetchall() == [(4,)]


def test_they_come_where_they_are_named_alone(login: dict[str, Any]) -> None:
    with psycopg.connect(**login, autocommit=True) as client:
        for source in (f"Corrected WITHIN {JANUARY} PER 'days'", '"Corrected_per_days"'):
            shown = client.execute(f"SELECT * FROM {source}".encode()).description or []
            assert [column.name for column in shown] == ["AGG_TIMESTAMP", "k", "total", "AGG_TIME"]
        with pytest.raises(psycopg.errors.UndefinedColumn):
            client.execute(f"SELECT AGG_EVENTS FROM Corrected WITHIN {JANUARY} PER 'days'".encode())


def test_a_prepared_statement_has_them_or_says_what_it_needs(login: dict[str, Any]) -> None:
    text = 'SELECT sum("AGG_LATE_CORRECTED")::int, max(k) FROM Corrected WITHIN %s PER %s'
    with psycopg.connect(**login, autocommit=True) as client:
        for _ in range(2):
            plain = client.execute(text.replace("%s", "{}").format(JANUARY, "'days'").encode(), prepare=True)
            assert plain.fetchall() == [(4, "b")]
        if login["dbname"] == "rollup":
            assert client.execute(text, ("2018-01-** **:**:**", "days"), prepare=True).fetchall() == [(4, "b")]
        else:
            with pytest.raises(
                psycopg.Error, match="AGG_LATE_CORRECTED: the range and the level must be constants here"
            ):
                client.execute(text, ("2018-01-** **:**:**", "days"), prepare=True)
