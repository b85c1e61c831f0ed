"""Named windows and tables of an app's statements as tables of the endpoint: what the last commit left in them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from rollup.conf import Conf
from rollup.gateway.servers.options import ServeOptions
from rollup.hosts.local import LocalHost
from tests.gateway.trades import KEEPING, Serving, configuration, folder, host, trade

pytestmark = pytest.mark.postgres


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[LocalHost, Conf, Serving]]:
    with folder() as made:
        conf = configuration(made, KEEPING)
        with Serving(conf) as serving:
            yield host(conf), conf, serving


def rows(serving: Serving, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(**serving.login(), autocommit=True) as connection:
        return connection.execute(sql).fetchall()


def test_each_is_a_view_of_what_the_last_commit_left(served: tuple[LocalHost, Conf, Serving]) -> None:
    job, _, serving = served
    with pytest.raises(psycopg.Error, match="the statements have no commit yet"):
        rows(serving, 'SELECT * FROM "Last"')
    job.send("Trades", [trade("A", 1.0, 1), trade("B", 2.0, 2), trade("A", 3.0, 3)])
    job.send("Limits", [("A", 9.0)])
    assert rows(serving, 'SELECT * FROM "Last" ORDER BY symbol') == [("A", 3.0, 1), ("B", 2.0, 1)]
    assert rows(serving, 'SELECT symbol, price FROM public."Recent"') == [("B", 2.0), ("A", 3.0)]
    assert rows(serving, 'SELECT * FROM "Highest"') == [("A", 9.0)]
    assert rows(serving, 'SELECT k, total FROM "Totals" ORDER BY k') == [("A", 4.0), ("B", 2.0)]
    assert rows(serving, 'SELECT "it\'s", yes FROM "a ""b""#c"') == [("A", False), ("B", True), ("A", True)]
    sums = dict(rows(serving, 'SELECT symbol, total FROM "Sums"'))
    assert (sums["A"], sums["B"]) == (3.0, 2.0)
    ((seen,),) = rows(serving, "SELECT seen FROM \"Sums\" WHERE symbol = 'B'")
    assert [each["price"] for each in json.loads(seen)] == [2.0]
    job.send("Trades", [trade("B", 7.0, 4)])
    assert rows(serving, "SELECT price FROM \"Last\" WHERE symbol = 'B'") == [(7.0,)]


def test_they_join_aggregations_and_are_read_from_one_commit(served: tuple[LocalHost, Conf, Serving]) -> None:
    job, _, serving = served
    job.send("Trades", [trade("A", 5.0, 5)])
    sql = """SELECT l.symbol, l.price, t.total FROM "Last" l JOIN TradeAgg WITHIN '2018-01-** **:**:**' PER 'years' t
             USING (symbol) JOIN "Totals" s ON s.k = l.symbol WHERE l.symbol = 'A' AND s.total = t.total"""
    (found,) = rows(serving, sql)
    assert found[:2] == ("A", 5.0)


def test_a_name_that_is_taken_has_that_of_its_block_before_it(served: tuple[LocalHost, Conf, Serving]) -> None:
    _, _, serving = served
    names = {
        row[0]
        for row in rows(serving, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
    }
    assert {"Last", "Recent", "Highest", "Totals", 'a "b"#c', "TradeAgg"} <= names
    assert [name for name in names if name.endswith(".TradeAgg")] != []
    with pytest.raises(psycopg.errors.UndefinedTable, match="capitals"):
        rows(serving, "SELECT * FROM Last")


@pytest.mark.slow
def test_more_rows_than_may_be_read_are_refused(served: tuple[LocalHost, Conf, Serving]) -> None:
    job, conf, _ = served
    job.send("Trades", [trade("A", 1.0, 6), trade("B", 1.0, 6)])
    options = replace(ServeOptions.of(conf), row_limit=1, port=0, data=conf.tables / "_other")
    with Serving(conf, options) as serving, pytest.raises(psycopg.Error, match=r"holds \d rows, and 1 may be read"):
        rows(serving, 'SELECT * FROM "Last"')
