"""Tables of a configuration, as tools see them at the endpoint: beside the views, before both kinds of stores."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import pytest

from rollup.conf import Conf, load
from rollup.hosts.local import LocalHost
from rollup.stores.databases import store_of
from tests.gateway.trades import Serving, before_postgres, configuration, folder, host, let_ann_read, trade
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres
TABLE = '[tables.planes]\npath = "planes.csv"\n'
JOINED = """SELECT p.name, t.total FROM planes p JOIN TradeAgg WITHIN '2018-01-** **:**:**' PER 'years' t USING (symbol)
            ORDER BY p.seats"""


def _with_table(conf: Conf) -> Conf:
    (conf.path.parent / "planes.csv").write_text('symbol,name,seats\nA,Alpha,150\nB,"B\'eta",12\n')
    conf.path.write_text(conf.path.read_text() + TABLE)
    return load(conf.path)


@contextmanager
def _delta() -> Iterator[tuple[LocalHost, Conf]]:
    with folder() as made:
        conf = _with_table(configuration(made))
        yield host(conf), conf


@contextmanager
def _postgres() -> Iterator[tuple[LocalHost, Conf]]:
    with folder() as made, PostgresServer() as server:  # the roles' script takes rights from PUBLIC in every database
        dsn = server.new_database()
        conf = _with_table(before_postgres(made, dsn))
        let_ann_read(dsn)
        yield LocalHost(conf.program(), lambda each, engine: store_of(each, engine, dsn)), conf


def _rows(serving: Serving, sql: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(**serving.login(dbname=serving.endpoint.database), autocommit=True) as connection:
        return connection.execute(sql.encode()).fetchall()


@pytest.mark.parametrize("store", [_delta, _postgres])
def test_a_table_joins_with_an_aggregation_and_is_read_again_when_it_has_changed(store: Any) -> None:
    with store() as (job, conf):
        job.send("Trades", [trade("A", 1.0, 1), trade("B", 2.0, 2), trade("A", 3.0, 3)])
        with Serving(conf) as serving:
            assert _rows(serving, JOINED) == [("B'eta", 2.0), ("Alpha", 4.0)]
            listed = "SELECT column_name, data_type FROM information_schema.columns WHERE table_name = 'planes'"
            assert set(_rows(serving, listed)) == {("symbol", "text"), ("name", "text"), ("seats", "bigint")}
            (Path(conf.path).parent / "planes.csv").write_text("symbol,name,seats\nA,Other,1\n")
            assert _rows(serving, JOINED) == [("Other", 4.0)]
            if store is _postgres:
                with Serving(conf) as other:  # two endpoints before one store fill one table
                    assert _rows(other, "SELECT name FROM planes") == [("Other",)]
            assert _rows(serving, "SELECT seats FROM planes") == [(1,)]
