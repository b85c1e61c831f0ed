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
from rollup.hosts.statements.commits import FOLDER, Commits
from rollup.stores.delta.store import DeltaStore
from tests.gateway.trades import APP, Serving, at, configuration, folder

pytestmark = pytest.mark.postgres
STATEMENTS = """;
@PrimaryKey('k') define stream Totals (k string, total double);
define table Highest (symbol string, price double);
define stream Limits (symbol string, price double);
from Limits select symbol, price insert into Highest;
define window Recent (symbol string, price double) length(2) output all events;
from Trades select symbol, price insert into Recent;
@lang('epl') {
  create window Last#unique(symbol) as (symbol string, price double, n int);
  insert into Last select symbol, price, 1 as n from Trades;
  create table Sums(symbol string primary key, total sum(double), seen window(*) @type(Trades));
  into table Sums select sum(price) as total, window(*) as seen from Trades#length(2) group by symbol;
}
@lang('epl') {
  create window `a "b"#c`#keepall as (`it's` string, yes boolean);
  insert into `a "b"#c` select symbol as `it's`, price > 1 as yes from Trades;
  create window TradeAgg#keepall as (symbol string);
}
@lang('sql') {
  UPSERT INTO Totals SELECT STREAM symbol, SUM(price) OVER (PARTITION BY symbol ORDER BY rowtime ROWS UNBOUNDED PRECEDING)
  FROM Trades
}
@lang('sql', into='Seen') { SELECT STREAM s.symbol, t.total FROM Trades AS s JOIN Totals AS t ON s.symbol = t.k }
"""


def trade(symbol: str, price: float, second: int) -> tuple[Any, ...]:
    return symbol, price, 1, at(f"2018-01-01T00:00:{second:02d}")


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[LocalHost, Conf, Serving]]:
    with folder() as made:
        conf = configuration(made, APP.rstrip().rstrip(";") + STATEMENTS)
        commits = Commits(conf.tables / "_rollup" / FOLDER)
        job = LocalHost(
            conf.program(), lambda aggregation, engine: DeltaStore(aggregation, engine, conf.tables), commits
        )
        with Serving(conf) as serving:
            yield job, conf, serving


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
    assert rows(serving, 'SELECT symbol, price FROM rollup."Recent"') == [("B", 2.0), ("A", 3.0)]
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
        for row in rows(serving, "SELECT table_name FROM information_schema.tables WHERE table_schema = 'rollup'")
    }
    assert {"Last", "Recent", "Highest", "Totals", 'a "b"#c', "TradeAgg"} <= names
    assert [name for name in names if name.endswith(".TradeAgg")] != []


def test_more_rows_than_may_be_read_are_refused(served: tuple[LocalHost, Conf, Serving]) -> None:
    job, conf, _ = served
    job.send("Trades", [trade("A", 1.0, 6)])
    options = replace(ServeOptions.of(conf), row_limit=1, port=0, data=conf.tables / "_other")
    with Serving(conf, options) as serving, pytest.raises(psycopg.Error, match=r"holds \d rows, and 1 may be read"):
        rows(serving, 'SELECT * FROM "Last"')
