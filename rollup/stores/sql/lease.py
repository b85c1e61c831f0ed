"""The leases of an aggregation in its database: rows of a table `<aggregation>_LEASE`. See `rollup.lifecycle.lease.holding`."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import sqlalchemy as sa
from sqlalchemy.exc import DBAPIError, IntegrityError
from sqlalchemy.schema import CreateTable

from rollup.core.errors import StoreError
from rollup.stores.sql.options import StoreOptions
from rollup.stores.sql.session import ConnectionLost, Result, lost

_BUSY = ("database is locked", "already exists")
"""What SQLite says while another writes, and every database of a table that another has just made: try again."""


def table(name: str) -> sa.Table:
    """The table of the leases of an aggregation."""
    return sa.Table(
        sa.quoted_name(f"{name}_LEASE", quote=True),
        sa.MetaData(),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("holder", sa.Text, nullable=False),
        sa.Column("beat", sa.Double, nullable=False),
    )


def lease_ddl(name: str, dialect: str) -> str:
    """The statement that makes it, for whoever makes tables in the job's place."""
    return str(CreateTable(table(name)).compile(dialect=sa.make_url(f"{dialect}://").get_dialect()())).strip()


class Rows:
    """Rows of a table `<aggregation>_LEASE`, whose primary key is the number; it is made with the first lease."""

    def __init__(self, options: str | Mapping[str, str], name: str) -> None:
        self.name = name
        self._table = table(name)
        # A heartbeat is seldom, and whoever only looks does not come back: a connection is not worth keeping.
        self._engine = sa.create_engine(StoreOptions.of(options).url, poolclass=sa.NullPool)
        self._there = False

    def newest(self) -> int:
        found = self._run(lambda connection: connection.execute(sa.select(sa.func.max(self._table.c.number))).scalar())
        return found or 0

    def read(self, number: int) -> tuple[str, float] | None:
        query = sa.select(self._table.c.holder, self._table.c.beat).where(self._table.c.number == number)
        found = self._run(lambda connection: connection.execute(query).first())
        return None if found is None else (found[0], found[1])

    def add(self, number: int, holder: str) -> bool:
        row = {"number": number, "holder": holder, "beat": time.time()}

        def insert(connection: sa.Connection) -> bool:
            try:
                self._table.create(connection, checkfirst=True)
            except IntegrityError as problem:  # another makes the table at this moment, and is no holder for that
                raise ConnectionLost(str(problem.orig)) from None
            connection.execute(self._table.insert(), [row])
            return True

        try:
            return bool(self._run(insert, making=True))
        except IntegrityError:
            return False

    def beat(self, number: int) -> None:
        self._run(lambda connection: connection.execute(self._at(number).values(beat=time.time())))

    def blank(self, number: int) -> None:
        self._run(lambda connection: connection.execute(self._at(number).values(holder="")))

    def remove(self, number: int) -> None:
        self._run(lambda connection: connection.execute(self._table.delete().where(self._table.c.number == number)))

    def _at(self, number: int) -> sa.Update:
        return self._table.update().where(self._table.c.number == number)

    def _run(self, action: Callable[[sa.Connection], Result], making: bool = False) -> Result | None:
        """One transaction; None without the table, unless it makes it."""
        try:
            with self._engine.begin() as connection:
                if not (making or self._there):
                    self._there = sa.inspect(connection).has_table(self._table.name)
                    if not self._there:
                        return None
                return action(connection)
        except IntegrityError:
            raise
        except DBAPIError as problem:
            text, code = str(problem.orig).strip(), getattr(problem.orig, "pgcode", None) or ""
            if problem.connection_invalidated or lost(code, text) or any(said in text for said in _BUSY):
                raise ConnectionLost(text) from None
            raise StoreError(f"the lease of {self.name}: {text.splitlines()[0]}") from None
