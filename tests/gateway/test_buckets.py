"""Buckets that a client's own SQL cuts: the view of an aggregation's name is read per the level that they need."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

import psycopg
import pytest

from rollup.core.errors import QueryError
from rollup.gateway.rewriting.mentions import Reader
from rollup.program import compile_app
from tests.gateway.trades import Serving, configuration, folder, host

_AGGREGATION = (
    "define aggregation {} from Trades select symbol, sum(price) as total group by symbol aggregate by ts every {};"
)
APP = "define stream Trades (symbol string, price double, ts long);" + "".join(
    (
        _AGGREGATION.format("Agg", "min ... year"),
        "@zone('Europe/Berlin') " + _AGGREGATION.format("Berlin", "sec ... year"),
        "@zone('Asia/Kolkata') " + _AGGREGATION.format("Kolkata", "min ... year"),
    )
)
READER = Reader(compile_app(APP).aggregations)
EPOCH = 'floor(extract(epoch from "AGG_TIME")/{0})*{0}'


@pytest.mark.parametrize(
    ("bucket", "name", "level"),
    [
        ("time_bucket('15 minutes', \"AGG_TIME\")", "Agg", "minutes"),
        ("time_bucket(interval '2 hours', t.\"AGG_TIME\")", "Agg", "hours"),
        ("time_bucket('300.000s', \"AGG_TIME\")", "Agg", "minutes"),
        ("time_bucket('1 day'::interval, \"AGG_TIME\")", "Agg", "days"),
        ("time_bucket('7 days', \"AGG_TIME\")", "Agg", "days"),
        ("time_bucket('1 month', \"AGG_TIME\")", "Agg", "months"),
        ("time_bucket('1 day', \"AGG_TIME\", 'Europe/Berlin')", "Agg", "hours"),
        ("time_bucket('1 day', \"AGG_TIME\", 'Asia/Kolkata')", "Agg", "minutes"),
        ("time_bucket('10 seconds', \"AGG_TIME\")", "Berlin", "seconds"),
        ("time_bucket('1 day', \"AGG_TIME\")", "Berlin", "hours"),
        ("time_bucket('1 day', \"AGG_TIME\", 'Europe/Berlin')", "Berlin", "days"),
        ("time_bucket('1 hour', \"AGG_TIME\")", "Kolkata", "minutes"),
        ("date_trunc('quarter', \"AGG_TIME\", 'Europe/Berlin')", "Berlin", "months"),
        ("date_trunc('week', \"AGG_TIME\" at time zone 'Europe/Berlin')", "Berlin", "days"),
        ("date_trunc('month', \"AGG_TIME\")", "Berlin", "hours"),
        ("date_trunc('minute', \"AGG_TIME\")", "Kolkata", "minutes"),
        ("date_bin('1 hour', \"AGG_TIME\", '2001-01-01 00:07')", "Agg", "minutes"),
        (EPOCH.format(300), "Agg", "minutes"),
        (EPOCH.format(21600), "Agg", "hours"),
        ("date_trunc('year', \"AGG_TIME\", 'UTC'), time_bucket('1 day', \"AGG_TIME\")", "Agg", "days"),
    ],
)  # fmt: skip
def test_the_coarsest_level_whose_rows_lie_in_one_bucket_is_read(bucket: str, name: str, level: str) -> None:
    (source,) = READER.template(f"select {bucket}, sum(total) from {name} as t group by 1").sources
    assert (source.aggregation, source.per) == (name, f"'{level}'")


def test_the_clocks_of_a_session_decide_where_no_zone_is_named() -> None:
    asked = "select date_trunc('day', \"AGG_TIME\") from {}"
    assert [READER.template(asked.format("Agg"), whole).sources[0].per for whole in (True, False)] == [
        "'hours'",
        "'minutes'",
    ]


@pytest.mark.parametrize(
    "sql",
    [
        'select * from "Agg"',
        "select date_trunc('day', now()) from rollup.\"Agg\"",
        'select time_bucket(\'1 day\', at) from (select "AGG_TIME" as at from public."Agg") as q',
        'select time_bucket(\'1 day\', o."AGG_TIME") from other o, "Agg"',
    ],
)
def test_what_does_not_cut_the_time_of_the_view_passes_as_it_is(sql: str) -> None:
    assert READER.template(sql).text == sql


@pytest.mark.parametrize(
    ("bucket", "message"),
    [
        ("time_bucket('10 seconds', \"AGG_TIME\")", "10 seconds cannot be put together: the finest level of Agg is minutes"),
        ('time_bucket($1, "AGG_TIME")', "$1 is no width of a bucket"),
        ("time_bucket('some days', \"AGG_TIME\")", "'some days' is no width of a bucket"),
        ("time_bucket('1 day', \"AGG_TIME\", 'Mars')", "'Mars' is no zone"),
    ],
)  # fmt: skip
def test_a_bucket_that_cannot_be_is_refused_with_its_place(bucket: str, message: str) -> None:
    with pytest.raises(QueryError) as refused:
        READER.template(f"select {bucket} from Agg")
    assert message in str(refused.value) and str(refused.value).startswith("line 1, column ")


@pytest.fixture(scope="module")
def client() -> Iterator[psycopg.Connection]:
    with folder() as made:
        conf = configuration(made, app=APP)
        host(conf).send("Trades", TRADES)
        with Serving(conf) as serving, psycopg.connect(**serving.login(), autocommit=True) as connection:
            yield connection


START = datetime(2018, 3, 24, 20, tzinfo=UTC)
TRADES = [(f"S{n % 2}", float(n), int((START + timedelta(minutes=17 * n)).timestamp() * 1000)) for n in range(300)]
"""Three days in which the clocks of Berlin go forward."""


@pytest.mark.postgres
@pytest.mark.parametrize("name", ["Agg", "Berlin", "Kolkata"])
@pytest.mark.parametrize(
    ("bucket", "zone", "seconds"),
    [
        ("time_bucket('15 minutes', \"AGG_TIME\")", "UTC", 900),
        ("time_bucket('2 hours', \"AGG_TIME\")", "UTC", 7200),
        ("time_bucket('1 day', \"AGG_TIME\", 'Europe/Berlin')", "Europe/Berlin", None),
        ("date_trunc('day', \"AGG_TIME\", 'Asia/Kolkata')", "Asia/Kolkata", None),
        (f"to_timestamp({EPOCH.format(300)})", "UTC", 300),
    ],
)  # fmt: skip
@pytest.mark.few(6)
def test_sums_are_those_of_the_trades(client: Any, name: str, bucket: str, zone: str, seconds: int | None) -> None:
    wanted = dict[datetime, float]()
    for _, price, ts in TRADES:
        at = datetime.fromtimestamp(ts / 1000, ZoneInfo(zone))
        start = (
            at.replace(hour=0, minute=0, second=0)
            if seconds is None
            else datetime.fromtimestamp(ts // 1000 // seconds * seconds, UTC)
        )
        wanted[start.astimezone(UTC)] = wanted.get(start.astimezone(UTC), 0.0) + price
    found = client.execute(
        f"select {bucket} as at, sum(total) from {name} where \"AGG_TIME\" >= '2018-03-01' group by 1"
    ).fetchall()
    assert {at.astimezone(UTC): total for at, total in found} == wanted


@pytest.mark.postgres
@pytest.mark.parametrize("name", ["Agg", "Berlin"])
@pytest.mark.parametrize("zone", ["Europe/Berlin", "Asia/Kolkata"])
@pytest.mark.parametrize("at_once", [False, True], ids=["said before", "in the same text"])
def test_days_of_a_session_are_those_of_its_clocks(client: Any, name: str, zone: str, at_once: bool) -> None:
    wanted = dict[datetime, float]()
    for _, price, ts in TRADES:
        at = datetime.fromtimestamp(ts / 1000, ZoneInfo(zone)).replace(hour=0, minute=0, second=0)
        wanted[at.astimezone(UTC)] = wanted.get(at.astimezone(UTC), 0.0) + price
    asked = f"select date_trunc('day', \"AGG_TIME\") as at, sum(total) from {name} where \"AGG_TIME\" >= '2018-03-01' group by 1"
    try:
        if at_once:
            found = client.execute(f"set time zone '{zone}'; {asked}")
            found.nextset()
        else:
            client.execute(f"set time zone '{zone}'")
            found = client.execute(asked)
        assert {at.astimezone(UTC): total for at, total in found.fetchall()} == wanted
    finally:
        client.execute("reset time zone")


@pytest.mark.postgres
def test_time_bucket_counts_as_timescale_does(client: Any) -> None:
    at = "timestamptz '2018-03-28 10:47:11+00'"
    asked = [f"time_bucket('{width}', {at})" for width in ("5 minutes", "1 week", "3 months", "2 years")]
    (found,) = client.execute(f"select {', '.join(asked)}, time_bucket('1 day', {at}, 'Asia/Kolkata')").fetchall()
    wanted = [(2018, 3, 28, 10, 45), (2018, 3, 26), (2018, 1, 1), (2018, 1, 1), (2018, 3, 27, 18, 30)]
    assert [each.astimezone(UTC) for each in found] == [datetime(*parts, tzinfo=UTC) for parts in wanted]
