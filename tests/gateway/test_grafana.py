"""Grafana's data source and dashboard of the data: the role, what the panels ask, and what the endpoint answers.

Macros and variables are put in as Grafana's own PostgreSQL plug-in puts them in: times as texts in quotes, the width
as a count and a letter, variables as they are.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2
import pytest
import sqlalchemy as sa
import yaml

from rollup.conf import load
from rollup.hosts.local import LocalHost
from rollup.stores.databases import store_of
from rollup.stores.postgres.server import pg_install
from tests.containers import COMPOSE, ROOT, service
from tests.gateway.trades import Serving, at, before_postgres, configuration, folder, host
from tests.servers.postgres import PostgresServer

pytestmark = pytest.mark.postgres
DASHBOARD: dict[str, Any] = json.loads((ROOT / "conf/grafana/dashboards/rollup-data.json").read_text())
SOURCE: dict[str, Any] = yaml.safe_load((ROOT / "conf/grafana/provisioning/datasources/endpoint.yml").read_text())
APP = (ROOT / "conf/trades.siddhi").read_text()
PASSWORD = "gra'fana"
START = at("2018-01-05T10:00:00")
TRADES = (
    "TradeStream",
    [(symbol, float(second % 60), 2, START + second * 1000) for second in range(601) for symbol in ("A", "B")],
)


def make_reader(server: PostgresServer, database: str) -> None:
    """The role, by the script that PostgreSQL's image runs, before there is any table."""
    url = sa.make_url(server.dsn)
    subprocess.run(
        [ROOT / "conf/postgres/reader.sh"], check=True, capture_output=True,
        env=os.environ | {
            "PATH": f"{pg_install() / 'bin'}:{os.environ['PATH']}", "PGHOST": "127.0.0.1", "PGPORT": str(url.port),
            "PGPASSWORD": url.password or "", "POSTGRES_USER": url.username or "", "POSTGRES_DB": database,
            "READER_PASSWORD": PASSWORD, "ROLES": str(ROOT / "ddl/gateway_roles.sql"),
        },
    )  # fmt: skip


@pytest.fixture(scope="module", params=["delta", "postgresql"])
def client(request: pytest.FixtureRequest) -> Iterator[Any]:
    with folder() as made:
        if request.param == "delta":
            conf = configuration(made, APP)
            host(conf).send(*TRADES)
            with Serving(conf) as serving, closing(psycopg2.connect(**serving.login())) as connection:
                yield connection
            return
        with PostgresServer() as server:
            dsn = server.new_database()
            database = dsn.rpartition("/")[2]
            make_reader(server, database)
            conf = before_postgres(made, dsn, APP)
            conf.path.write_text(conf.path.read_text().replace("ann =", "grafana ="))
            LocalHost(conf.program(), lambda aggregation, engine: store_of(aggregation, engine, dsn)).send(*TRADES)
            with Serving(load(conf.path)) as serving:
                login = serving.login(dbname=database, user="grafana", password=PASSWORD)
                with closing(psycopg2.connect(**login)) as connection:
                    yield connection


def asked(client: Any, text: str, width: str = "1m", **variables: str) -> tuple[list[str], list[tuple[Any, ...]]]:
    """Columns and rows of a question of the dashboard over the first ten minutes."""
    given = {"__interval": width} | variables
    text = text.replace("$__timeFrom()", "'2018-01-05T10:00:00Z'").replace("$__timeTo()", "'2018-01-05T10:10:00Z'")
    text = re.sub(r"\$\{?(\w+)\}?", lambda found: given[found[1]], text)
    with client, client.cursor() as cursor:
        cursor.execute(text)
        return [column[0] for column in cursor.description], cursor.fetchall()


def variables(client: Any) -> dict[str, list[str]]:
    """What each variable may be, by its name; the first is taken for those that follow."""
    found = dict[str, list[str]]()
    for each in DASHBOARD["templating"]["list"]:
        if each["type"] == "query":
            _, rows = asked(client, each["query"], **{name: values[0] for name, values in found.items()})
            found[each["name"]] = sorted(row[0] for row in rows)
    return found


@pytest.mark.few(1)
def test_the_variables_are_aggregations_their_numbers_and_their_keys(client: Any) -> None:
    found = variables(client)
    assert found == {"aggregation": ["TradeAggregation"], "measure": ["avgPrice", "total"], "split": ["symbol"]}


@pytest.mark.parametrize(("width", "seconds"), [("1m", 60), ("30s", 30), ("5m", 300)])
def test_the_chart_has_a_point_a_bucket_and_key(client: Any, width: str, seconds: int) -> None:
    (chart,) = (panel for panel in DASHBOARD["panels"] if panel["type"] == "timeseries")
    text = chart["targets"][0]["rawSql"]
    columns, rows = asked(client, text, width, aggregation="TradeAggregation", measure="avgPrice", split="symbol")
    assert columns == ["time", "metric", "value"]
    first = datetime.fromtimestamp(START / 1000, UTC)
    prices = [second % 60 for second in range(seconds)]
    assert len(rows) == 2 * 600 // seconds
    assert rows[:2] == [(first, symbol, sum(prices) / seconds) for symbol in "AB"]


def test_the_table_has_the_newest_buckets(client: Any) -> None:
    (table,) = (panel for panel in DASHBOARD["panels"] if panel["type"] == "table")
    columns, rows = asked(client, table["targets"][0]["rawSql"], aggregation="TradeAggregation")
    newest = dict(zip(columns, rows[0], strict=True))
    assert newest["AGG_TIME"] == datetime(2018, 1, 5, 10, 9, tzinfo=UTC) and int(newest["total"]) == 120
    assert len(rows) == 20


def test_the_data_source_is_the_endpoint_of_the_compose_file() -> None:
    (source,) = SOURCE["datasources"]
    name, port = source["url"].split(":")
    assert any(published.endswith(f":{port}") for published in COMPOSE["services"][name]["ports"])
    assert COMPOSE["services"][name]["command"][0] == "serve"
    database = service("postgres")["environment"]
    assert source["jsonData"]["database"] == database["POSTGRES_DB"]
    assert database["READER_PASSWORD"] == service("grafana")["environment"]["READER_PASSWORD"]
    assert f"/{source['user']}/g" in Path(ROOT / "conf/postgres/reader.sh").read_text()
    standing = next(each for each in DASHBOARD["templating"]["list"] if each["type"] == "datasource")
    assert (standing["query"], standing["current"]["value"]) == (source["type"], source["uid"])
