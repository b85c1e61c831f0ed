"""What the tests of SQL stores share: a copy of a schema's tables, to take a database back to."""

from __future__ import annotations

from itertools import count

from tests.servers.postgres import NewUrl, execute

__all__ = ["Backup", "NewUrl", "execute"]

_number = count()


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
