"""One real PostgreSQL for the gateway's tests, with the role of `ddl/gateway_roles.sql`, and one gateway before it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql

from tests.gateway.toys import Running
from tests.servers.postgres import PostgresServer

ROLES = Path(__file__).parents[2] / "ddl" / "gateway_roles.sql"
collect_ignore = ["superset_client.py"]  # runs in an environment of its own, see test_superset.py
PASSWORD = "read'er {pw}"


def _prepare(server: PostgresServer) -> None:
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute("create role writer login password 'w'")
        admin.execute("create role trusting login")
        admin.execute("create database served")
        admin.execute("create database other")
    dsn = server.dsn.rpartition("/")[0] + "/served"
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute("create schema rollups authorization writer; create schema hidden; create table hidden.t (x int)")
        admin.execute("create table rollups.days (ts bigint, symbol text, total double precision)")
        admin.execute("insert into rollups.days select g, 'S' || g % 10, g / 3.0 from generate_series(1, 20000) g")
        admin.execute("comment on table rollups.days is 'one row a day'")
        admin.execute("alter table rollups.days owner to writer; select lo_from_bytea(4711, 'secret')")
        names = {key: sql.Identifier(value) for key, value in
                 {"role": "reader", "database": "served", "schema": "rollups", "owner": "writer"}.items()}  # fmt: skip
        admin.execute(sql.SQL(ROLES.read_text()).format(password=sql.Literal(PASSWORD), **names))
        admin.execute("grant connect, temporary on database served to trusting")
    hba = server.data / "pg_hba.conf"
    hba.write_text("host all trusting 127.0.0.1/32 trust\n" + hba.read_text())
    with psycopg.connect(server.dsn, autocommit=True) as admin:
        admin.execute("select pg_reload_conf()")


@pytest.fixture(scope="session")
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    try:
        _prepare(server.start())
        yield server
    finally:
        server.remove()


@pytest.fixture(scope="session")
def gateway(server: PostgresServer) -> Iterator[Running]:
    with Running(("127.0.0.1", server.port)) as running:
        yield running


@pytest.fixture
def login(gateway: Running) -> dict[str, str | int]:
    """Keyword arguments of psycopg2, psycopg and, but for dbname, of asyncpg."""
    return {"host": "127.0.0.1", "port": gateway.port, "user": "reader", "password": PASSWORD, "dbname": "served"}
