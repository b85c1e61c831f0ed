"""What the tests of SQL stores share: a copy of a schema's tables, to take a database back to."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path

import pytest

from rollup.hosts.local import LocalHost
from rollup.stores.databases import store_of
from rollup.stores.delta.store import DeltaStore
from rollup.stores.memory import MemoryStore
from tests.servers.postgres import NewUrl, execute
from tests.stores.samples import host

__all__ = ["Backup", "NewUrl", "Open", "execute"]

_number = count()
Open = Callable[[str], LocalHost]


@pytest.fixture(params=["memory", "delta", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def opened(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Open]:
    """A host over a store; of one that lasts, opened once more each time."""
    if request.param == "postgresql":
        new_url: NewUrl = request.getfixturevalue("new_url")
        url = new_url()
        yield lambda text: host(text, lambda a, e: store_of(a, e, url, patience=20))
    elif request.param == "memory":
        made = dict[str, LocalHost]()
        yield lambda text: made.setdefault(text, host(text, MemoryStore))
    elif request.param == "sqlite":
        yield lambda text: host(text, lambda a, e: store_of(a, e, f"sqlite:///{tmp_path}/agg.db"))
    else:
        yield lambda text: host(text, lambda a, e: DeltaStore(a, e, tmp_path))


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
