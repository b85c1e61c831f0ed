"""Periods that a table lists, asked by clients of both endpoints, beside plain Python."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any

import psycopg
import pytest

from rollup.conf import Conf, load
from rollup.hosts.local import LocalHost
from rollup.stores.databases import store_of
from tests.gateway.trades import APP, Serving, before_postgres, configuration, events, folder, host, let_ann_read
from tests.servers.postgres import PostgresServer

TRADES = [*events("2018-01"), *events("2018-02"), *events("2018-03")]
FISCAL = [
    (date(2017, 12, 31), date(2018, 1, 27)),
    (date(2018, 1, 28), date(2018, 2, 24)),
    (date(2018, 3, 4), date(2018, 3, 10)),
]


def listing(conf: Conf) -> Conf:
    """The configuration with a table of periods."""
    (conf.path.parent / "fiscal.csv").write_text("from,to\n" + "".join(f"{low},{high}\n" for low, high in FISCAL))
    conf.path.write_text(conf.path.read_text() + '[tables.fiscal]\npath = "fiscal.csv"\n')
    return load(conf.path)


@pytest.fixture(scope="module", params=["delta", pytest.param("postgresql", marks=pytest.mark.postgres)])
def login(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    with folder() as made:
        if request.param == "delta":
            conf = configuration(made, APP)
            host(conf).send("Trades", TRADES)
            with Serving(listing(conf)) as serving:
                yield dict(serving.login())
            return
        with PostgresServer() as server:
            dsn = server.new_database()
            conf = before_postgres(made, dsn)
            LocalHost(conf.program(), lambda each, engine: store_of(each, engine, dsn)).send("Trades", TRADES)
            let_ann_read(dsn)
            with Serving(listing(conf)) as serving:
                yield dict(serving.login(dbname=serving.endpoint.database))


def day_of(ms: int) -> date:
    return datetime.fromtimestamp(ms / 1000, UTC).date()


@pytest.mark.parametrize("cursor", [psycopg.ClientCursor, psycopg.Cursor], ids=["text", "parameters"])
def test_a_client_asks_per_period_of_a_table(login: dict[str, Any], cursor: type[psycopg.Cursor[Any]]) -> None:
    expected = {
        (low, symbol): sum(price for name, price, _, ts in TRADES if name == symbol and low <= day_of(ts) <= high)
        for low, high in FISCAL
        for symbol in "AB"
    }
    in_database = login["dbname"] != "rollup"
    with psycopg.connect(**login, autocommit=True, cursor_factory=cursor) as client:
        text = 'select "AGG_TIME", symbol, total from TradeAgg within %s, %s per %s'
        if in_database and cursor is psycopg.Cursor:
            with pytest.raises(psycopg.Error, match='not aggregated per "fiscal"') as caught:
                client.execute(text, ("2017-12-01", "2018-06-01", "fiscal"))
            assert "other periods where the text itself names them" in (caught.value.diag.message_hint or "")
            return
        rows = client.execute(text, ("2017-12-01", "2018-06-01", "fiscal")).fetchall()
        assert {(at.astimezone(UTC).date(), symbol): total for at, symbol, total in rows} == expected
        with pytest.raises(psycopg.Error, match="no period of fiscal begins in this range"):
            client.execute(text, ("2030-12-01", "2031-06-01", "fiscal"))


def test_a_period_is_shown_with_what_its_table_says(login: dict[str, Any]) -> None:
    text = """select f."to", sum(t.total) from TradeAgg within '2017-12-01', '2018-06-01' per 'fiscal' t
              join fiscal f on f."from"::date = t."AGG_TIME"::date group by 1 order by 1"""
    with psycopg.connect(**login, autocommit=True) as client:
        rows = client.execute(text).fetchall()
    expected = [
        sum(price for _, price, _, ts in TRADES if low <= day_of(ts) < high + timedelta(days=1)) for low, high in FISCAL
    ]
    assert [total for _, total in rows] == expected
