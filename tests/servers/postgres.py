"""A real PostgreSQL for tests: the product's own private server, in a folder of its own that goes away with it."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Callable
from pathlib import Path

import psycopg2

from rollup.stores.postgres.server import PgServer

NewUrl = Callable[[], str]
"""Makes an empty schema; gives the URL of a connection that works in it."""


def execute(url: str, sql: str) -> list[tuple[object, ...]]:
    """Run a statement through a connection of its own; the rows it gives."""
    connection = psycopg2.connect(url)
    connection.autocommit = True
    try:
        with connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


class PostgresServer(PgServer):
    """PostgreSQL on a free loopback port with a password; `with PostgresServer() as server:` or start() and stop()."""

    def __init__(self, settings: dict[str, str] | None = None) -> None:
        # Below /tmp and not below pytest's tmp_path: the server's user must be able to reach it when we are root.
        super().__init__(Path(tempfile.mkdtemp(prefix="rollup-pg-")), settings={"fsync": "off"} | (settings or {}))

    def new_database(self) -> str:
        """Make an empty database with a name of its own; returns its DSN. One a test keeps tests apart."""
        name = f"t{uuid.uuid4().hex[:12]}"
        connection = psycopg2.connect(self.dsn)
        connection.autocommit = True
        with connection.cursor() as cursor:
            cursor.execute(f"CREATE DATABASE {name}")
        connection.close()
        return self.dsn.rpartition("/")[0] + f"/{name}"

    def remove(self) -> None:
        """Stop for good and delete the data."""
        self.stop()
        shutil.rmtree(self.base, ignore_errors=True)
