"""What tools send, answered as a plain PostgreSQL answers it that holds the same rows in tables.

The statements are those of `tools.txt`. `row_limit` is below what a level holds, so a statement that bounds its range
fails where the range is lost on the way.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import psycopg2
import pytest

from rollup.gateway.servers.options import ServeOptions
from rollup.hosts.local import LocalHost
from rollup.stores.databases import store_of
from tests.gateway.trades import Serving, at, before_postgres, configuration, events, folder, host, let_ann_read
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres
TOOLS = dict(
    block.split("\n", 1)
    for block in re.split(r"^== ", (Path(__file__).with_name("tools.txt")).read_text(), flags=re.MULTILINE)[1:]
)
DAYS = [f"2018-01-{day:02d}" for day in range(1, 29)] + [f"2018-02-{day:02d}" for day in range(1, 11)]
ROW_LIMIT = 60


def _tables(cursor: Any) -> None:
    """The rows of the events, by hand: three trades a day and symbol, the price is the day of the month."""
    for level in ("days", "months"):
        cursor.execute(
            f'create table "TradeAgg_per_{level}" ("AGG_TIMESTAMP" bigint, symbol text, total double precision,'
            ' "avgPrice" double precision, low double precision, high double precision, trades bigint,'
            ' "AGG_TIME" timestamptz)'
        )
    buckets: dict[tuple[str, str, str], list[float]] = {}
    for text in DAYS:
        for index, symbol in enumerate("AB"):
            price = float(int(text[-2:]) * (index + 1))
            for level, start in (("days", text), ("months", f"{text[:7]}-01")):
                buckets.setdefault((level, start, symbol), []).extend([price] * 3)
    for (level, start, symbol), prices in buckets.items():
        cursor.execute(
            f'insert into "TradeAgg_per_{level}" values (%s, %s, %s, %s, %s, %s, %s, %s)',
            (at(f"{start}T00:00:00"), symbol, sum(prices), sum(prices) / len(prices), min(prices), max(prices),
             len(prices), f"{start} 00:00:00+00"),
        )  # fmt: skip


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    """A server of its own: the roles' script takes rights from PUBLIC in every database."""
    with PostgresServer() as running:
        yield running


@pytest.fixture(scope="module")
def plain(server: PostgresServer) -> str:
    dsn = server.new_database()
    with closing(psycopg2.connect(dsn)) as connection, connection, connection.cursor() as cursor:
        _tables(cursor)
    return dsn


@pytest.fixture(scope="module", params=["delta", "postgresql"])
def served(request: pytest.FixtureRequest, server: PostgresServer) -> Iterator[tuple[Serving, LocalHost]]:
    with folder() as made:
        if request.param == "delta":
            conf = configuration(made, serve=f"port = 0\nrow_limit = {ROW_LIMIT}")
            job = host(conf)
        else:
            dsn = server.new_database()
            conf = before_postgres(made, dsn)
            job = LocalHost(conf.program(), lambda aggregation, engine: store_of(aggregation, engine, dsn))
        job.send("Trades", events("2018-01"))
        job.send("Trades", events("2018-02", days=10))
        if request.param == "postgresql":
            let_ann_read(dsn)
        with Serving(conf) as serving:
            yield serving, job


def _login(served: tuple[Serving, LocalHost], **other: Any) -> Any:
    return psycopg2.connect(**served[0].login(dbname=served[0].endpoint.database), **other)


def _answers(connection: Any, script: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Names and rows of the last statement, in an order of their own unless it says one."""
    connection.autocommit = True
    with connection.cursor() as cursor:
        for statement in re.split(r";\s*(?:\n|$)", script.strip()):
            if statement:
                cursor.execute(statement)
        rows = cursor.fetchall()
        ordered = "ORDER BY" in script.upper()
        return [column[0] for column in cursor.description], rows if ordered else sorted(rows, key=repr)


@pytest.mark.parametrize("title", TOOLS)
def test_a_tools_statement_is_answered_as_by_tables(served: Any, plain: str, title: str) -> None:
    with closing(psycopg2.connect(plain)) as reference, closing(_login(served)) as client:
        expected = _answers(reference, TOOLS[title])
        assert expected[1], "a statement without rows shows nothing"
        assert _answers(client, TOOLS[title]) == expected


def test_ranges_of_another_table_without_a_word_for_it(served: Any) -> None:
    """A function's arguments may name what stands before it, in PostgreSQL, and so may the bounds of a source."""
    text = (
        "SELECT r.a::text, count(*) FROM (VALUES (date '2018-01-07', date '2018-01-09'), (date '2018-02-01', date"
        " '2018-02-04')) r(a, b){join} TradeAgg(r.a, r.b, 'days') t GROUP BY 1 ORDER BY 1"
    )
    with closing(_login(served)) as client:
        for join in (",", ", LATERAL", " CROSS JOIN LATERAL", " CROSS JOIN"):
            assert _answers(client, text.format(join=join))[1] == [("2018-01-07", 4), ("2018-02-01", 6)], join


def test_a_mistyped_name_before_within_is_told_the_nearest(served: Any) -> None:
    with closing(_login(served)) as client, pytest.raises(psycopg2.Error) as caught:
        _answers(client, "SELECT * FROM TradAgg WITHIN '2018-**-** **:**:**' PER 'days'")
    assert "unknown aggregation 'TradAgg'" in str(caught.value) and "did you mean TradeAgg?" in str(caught.value)


@pytest.mark.parametrize(
    "begin", ["START TRANSACTION ISOLATION LEVEL REPEATABLE READ", "BEGIN ISOLATION LEVEL SERIALIZABLE"]
)
def test_an_isolated_transaction_reads_one_commit(served: Any, begin: str) -> None:
    _, job = served
    question = 'select count(*), sum(total) from "TradeAgg_per_months"'
    day = "2018-02-11" if begin.startswith("START") else "2018-02-12"
    with closing(_login(served)) as isolated, closing(_login(served)) as other:
        isolated.autocommit = other.autocommit = True
        with isolated.cursor() as first, other.cursor() as second:
            first.execute(begin)
            first.execute(question)
            before = first.fetchone()
            job.send("Trades", [("C" + day, 1.0, 1, at(f"{day}T00:00:00"))])
            second.execute(question)
            seen = second.fetchone()
            assert seen == (before[0] + 1, before[1] + 1.0)
            first.execute(question)
            assert first.fetchone() == before
            first.execute("commit")
            first.execute(question)
            assert first.fetchone() == seen


@pytest.mark.parametrize(
    ("zone", "shown", "day"),
    [
        ("Europe/Berlin", "Europe/Berlin", "2018-01-02 00:00:00+01"),
        ("+05:30", "<+05:30>-05:30", "2018-01-02 00:00:00+05:30"),
    ],
)
@pytest.mark.few(1)
def test_a_session_begins_in_the_zone_of_the_configuration(zone: str, shown: str, day: str) -> None:
    with folder() as made:
        conf = configuration(made)
        conf.path.write_text(f'zone = "{zone}"\n' + conf.path.read_text())
        from rollup.conf import load

        conf = load(conf.path)
        host(conf).send("Trades", [("A", 1.0, 1, at("2018-01-02T12:00:00"))])
        with Serving(conf, ServeOptions.of(conf)) as serving:
            with closing(psycopg2.connect(**serving.login())) as client:
                assert _answers(client, "show timezone")[1] == [(shown,)]
                assert _answers(client, 'select "AGG_TIME"::text from "TradeAgg_per_days"')[1] == [(day,)]
            with closing(psycopg2.connect(**serving.login(options="-c TimeZone=Asia/Tokyo"))) as client:
                assert _answers(client, "show timezone")[1] == [("Asia/Tokyo",)]
