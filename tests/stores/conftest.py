"""A place of its own in the shared PostgreSQL for every store: schemas of one database, quicker than databases."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from urllib.parse import quote

import psycopg2
import pytest

from tests.servers.postgres import PostgresServer

NewUrl = Callable[[], str]
_number = count()


@pytest.fixture(scope="session")
def database(postgres: PostgresServer) -> str:
    """The DSN of the database all schemas are in."""
    return postgres.new_database()


@pytest.fixture
def new_url(database: str) -> NewUrl:
    """Makes an empty schema; gives the URL of a connection that works in it."""

    def make() -> str:
        schema = f"s{next(_number)}"
        execute(database, f"create schema {schema}")
        return f"{database}?options={quote(f'-csearch_path={schema}')}"

    return make


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


class Backup:
    """All tables of the schema that a URL works in, as they are now; `restore` takes the database back to them."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.kept = f"backup{next(_number)}"
        self.tables = [str(name) for (name,) in execute(url, _TABLES)]
        execute(url, f"create schema {self.kept}")
        for table in self.tables:
            execute(url, f'create table {self.kept}."{table}" as table "{table}"')

    def restore(self) -> None:
        for table in self.tables:
            execute(self.url, f'truncate "{table}"; insert into "{table}" table {self.kept}."{table}"')


_TABLES = "select tablename from pg_tables where schemaname = current_schema()"
