"""What plain PostgreSQL clients get: an aggregation's function and views say what our own questions say.

Patterns are read as `rollup.core.calendar` reads them: two implementations, so each pattern goes through both.
"""

from __future__ import annotations

from datetime import date, timedelta
from typing import Any

import psycopg
import pytest

from rollup.core.calendar import Duration, parse_timestamp, parse_within
from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost
from rollup.stores.databases import store_of
from tests.stores.conftest import NewUrl
from tests.stores.samples import answers, app, batches, host, rows

pytestmark = pytest.mark.postgres
PATTERNS = [
    "2018-**-** **:**:**",
    "2018-01-** **:**:**",
    "2018-12-** **:**:**",
    "2018-02-28 **:**:**",
    "2020-02-29 **:**:**",
    "2018-01-05 12:**:**",
    "2018-01-05 12:30:**",
    "2018-01-05 12:30:59",
    "  2018-01-** **:**:**  ",
    "1969-12-31 23:59:59",
    "0001-01-01 00:00:00",
    "1900-02-** **:**:**",
    "2018-01-** **:**:** +05:30",
    "2018-01-05 **:**:** -03:30",
    "2018-01-** **:**:** Z",
    "2018-**-** **:**:** +14:00",
    "2018-**-** **:**:** -18:00",
    "2018-03-25 **:**:** Europe/Paris",
    "2018-10-28 **:**:** Europe/Paris",
    "2018-10-28 02:**:** Europe/Paris",
    "2018-10-28 02:30:00 Europe/Paris",
    "2018-03-25 02:30:00 Europe/Paris",
    "2018-03-25 02:**:** Europe/Paris",
    "2018-11-04 01:30:** America/New_York",
    "2018-03-11 **:**:** America/New_York",
    "2018-**-** **:**:** Asia/Kolkata",
    "2018-11-04 **:**:** America/Sao_Paulo",
    "2018-11-03 **:**:** America/Sao_Paulo",
    "2018-04-01 **:**:** Australia/Lord_Howe",
    "2018-04-01 01:45:00 Australia/Lord_Howe",
    "2011-12-** **:**:** Pacific/Apia",
    "2018-03-** **:**:** America/Argentina/Buenos_Aires",
    "2018-01-05 24:00:00",
    "2018-13-** **:**:**",
    "2018-00-** **:**:**",
    "2018-02-30 **:**:**",
    "2018-**-05 **:**:**",
    "2018-01-** 12:**:**",
    "2018-01-05 12:**:30",
    "2018-01-05 25:**:**",
    "2018-01-05 12:60:**",
    "2018-01-05 12:30:60",
    "2018-01-05",
    "",
    "often",
    "2018-01-** **:**:** +19:00",
    "2018-01-** **:**:** +05:75",
    "2018-01-** **:**:** Mars/Olympus",
    "0000-**-** **:**:**",
    "2018-01-** **:**:** +0530",
    "2018-1-** **:**:**",
    "****-**-** **:**:**",
]
STAMPS = [
    "2018-01-05 12:30:59",
    "2018-01-05T12:30:59Z",
    "2018-01-05",
    "2018-01-05 12:30",
    "2018-01-05 12:30:59.5",
    "2018-01-05 12:30:59,123456",
    "2018-01-05 12:30:59 +05:30",
    "2018-01-05 12:30:59+0530",
    "2018-01-05T12:30:59-03",
    "2018-01-05 24:00:00",
    "2018-10-28 02:30:00 Europe/Paris",
    "2018-03-25 02:30:00 Europe/Paris",
    "2018-01-05 12:30:59 z",
    "1960-02-29 00:00:00.001",
    "9999-12-31 23:59:59",
    "2018-12-31 24:00:00 Asia/Tokyo",
    "2018-02-29 00:00:00",
    "2018-01-05 24:00:01",
    "2018-01-05 12",
    "2018-01-05 12:30:59 EST",
    "2018-01-05 12:30:59 +18:01",
    "noon",
]


@pytest.fixture(scope="module")
def filled(database: str) -> tuple[str, LocalHost]:
    """The URL of a store with rows, and its host."""
    from tests.stores.conftest import execute

    execute(database, "create schema functions")
    url = f"{database}?options=-csearch_path%3Dfunctions"
    stored = host(app(), lambda a, e: store_of(a, e, url))
    for batch in batches(13, 5):
        stored.send("S", [(k, i, None if d == 1e300 else d, s, b, ts) for k, i, d, s, b, ts in batch])
    return url, stored


def _ours(pattern: str) -> object:
    try:
        return list(parse_within(pattern))
    except RollupError:
        return "refused"


def _theirs(connection: psycopg.Connection, function: str, text: str) -> object:
    try:
        with connection.transaction():
            found = connection.execute(f"select rollup_{function}(%s)", (text,)).fetchone()
    except psycopg.Error:
        return "refused"
    return found[0] if found else None


def test_patterns_mean_in_the_server_what_they_mean_in_python(filled: tuple[str, LocalHost]) -> None:
    with psycopg.connect(filled[0]) as connection:
        theirs = {pattern: _theirs(connection, "within", pattern) for pattern in PATTERNS}
    assert theirs == {pattern: _ours(pattern) for pattern in PATTERNS}
    assert sum(found == "refused" for found in theirs.values()) == 18


@pytest.mark.parametrize("zone", ["America/Vancouver", "Africa/Casablanca", "America/Havana", "America/Toronto"])
def test_the_declared_zone_is_that_of_the_pinned_database_in_the_server(zone: str, new_url: NewUrl) -> None:
    """All days, and times of the wall clock, of years in which its rules changed, midnight was skipped or came twice."""
    url = new_url()
    host(app(f"@zone('{zone}')"), lambda a, e: store_of(a, e, url)).send("S", [("x", 1, 1.0, "a", True, 1)])
    first = date(1919, 1, 1) if zone == "America/Toronto" else date(2026, 1, 1)
    days = [f"{first + timedelta(days=n)}" for n in range(800)]
    stamps = [f"{day} {hour:02d}:{minute}:00" for day in days for hour in (0, 1, 2, 3, 23) for minute in (15, 45)]
    ask = "select rollup_{}(given, %s) from unnest(%s::text[]) with ordinality as t (given, n) order by n"
    with psycopg.connect(url) as connection:
        within = [found for (found,) in connection.execute(ask.format("within"), (zone, days)).fetchall()]
        instants = [found for (found,) in connection.execute(ask.format("instant"), (zone, stamps)).fetchall()]
    assert within == [list(parse_within(day, zone)) for day in days]
    assert instants == [parse_timestamp(stamp, zone)[0] for stamp in stamps]


def test_timestamps_mean_in_the_server_what_they_mean_in_python(filled: tuple[str, LocalHost]) -> None:
    ours: dict[str, object] = {}
    for stamp in STAMPS:
        try:
            ours[stamp] = parse_timestamp(stamp)[0]
        except RollupError:
            ours[stamp] = "refused"
    with psycopg.connect(filled[0]) as connection:
        assert {stamp: _theirs(connection, "instant", stamp) for stamp in STAMPS} == ours
    assert list(ours.values()).count("refused") == 6


@pytest.mark.parametrize("per", [level.plural for level in Duration])
def test_the_function_says_what_our_question_says_from_any_search_path(per: str, filled: tuple[str, LocalHost]) -> None:
    url, stored = filled
    wanted = answers(stored)[per]
    with psycopg.connect(url.partition("?")[0]) as connection:
        found = connection.execute(
            'select * from functions."Agg"(%s, %s, %s)', (946684800000, 4102444800000, per)
        ).fetchall()
        as_text = connection.execute(
            "select * from functions.\"Agg\"('2000-01-01 00:00:00', '2100-01-01', %s)", (per,)
        ).fetchall()
    assert sorted(map(_plain, found), key=repr) == wanted
    assert sorted(map(_plain, as_text), key=repr) == wanted


def test_one_pattern_and_any_word_for_a_level(filled: tuple[str, LocalHost]) -> None:
    url, stored = filled
    ours = stored.query("from Agg within '2018-01-** **:**:**' per 'days' select AGG_TIMESTAMP, k, n")
    with psycopg.connect(url) as connection:
        for word in ("days", "Day", " DAYS "):
            found = connection.execute(
                """select "AGG_TIMESTAMP", k, n from "Agg"('2018-01-** **:**:**', %s)""", (word,)
            ).fetchall()
            assert sorted(found, key=repr) == sorted(rows(ours), key=repr) != []


def test_a_view_a_level_has_the_keys_and_final_values(filled: tuple[str, LocalHost]) -> None:
    url, stored = filled
    with psycopg.connect(url) as connection:
        found = connection.execute('select * from "Agg_per_days"').fetchall()
        comment = connection.execute("select obj_description('\"Agg_per_days\"'::regclass)").fetchone()
    assert sorted(map(_plain, found), key=repr) == answers(stored)["days"]
    assert comment is not None and "per days" in comment[0]


def test_only_the_level_that_is_asked_is_read_and_only_its_range(filled: tuple[str, LocalHost]) -> None:
    with psycopg.connect(filled[0]) as connection:
        plan = connection.execute("""explain (analyze, costs off, timing off, summary off)
            select * from "Agg"('2018-01-** **:**:**', 'days')""").fetchall()
    text = "\n".join(line for (line,) in plan)
    assert "Agg_DAYS" in text
    assert "Agg_SECONDS" not in text and "Agg_YEARS" not in text
    assert "1514764800000" in text, "the pattern is computed once, when the query is planned"


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("""('2018-01-** **:**:**', 'weeks')""", 'not aggregated per "weeks"'),
        ("""('2018-**-05 **:**:**', 'days')""", "is no time pattern"),
        ("""('2018-02-01', '2018-01-01', 'days')""", "which is not before its end"),
        ("""('soon', 'later', 'days')""", "is not a timestamp"),
        ("""(null::text, 'days')""", "a `within` bound is null"),
        ("""('2018-01-01', null, 'days')""", "a `within` bound is null"),
        ("""(0, null::bigint, 'days')""", "a `within` bound is null"),
    ],
)
def test_wrong_arguments_are_refused_by_what_is_wrong(call: str, says: str, filled: tuple[str, LocalHost]) -> None:
    with psycopg.connect(filled[0]) as connection, pytest.raises(psycopg.Error, match=says):
        connection.execute(f'select * from "Agg"{call}')


def test_an_output_may_have_the_name_of_a_parameter(new_url: NewUrl) -> None:
    url = new_url()
    select = "select k as per, sum(i) as end, count() as start, max(i) as within"
    stored = host(app(select=select), lambda a, e: store_of(a, e, url))
    stored.send("S", batches(1, 1, 5)[0])
    with psycopg.connect(url) as connection:
        found = connection.execute("""select * from "Agg"('2000-01-01', '2100-01-01', 'years')""").fetchall()
    assert sorted(map(_plain, found), key=repr) == answers(stored)["years"] != []


def _plain(shown: tuple[Any, ...]) -> tuple[object, ...]:
    """A row without AGG_TIME, its last column, which is the first one as a time."""
    *row, time = shown
    assert time.timestamp() * 1000 == row[0]
    return tuple(float(f"{value:.12g}") if isinstance(value, float) else value for value in row)
