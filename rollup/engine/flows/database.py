"""A DuckDB database whose tables stay while it is made anew, since DuckDB gives some memory back only when it is closed."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import contextmanager

import duckdb
import pyarrow as pa

from rollup.core.columns import close_at_exit
from rollup.core.identifiers import quoted

Connection = duckdb.DuckDBPyConnection
_MOST = 8192
"""Uses of a connection from which on the next piece of work has a new one; DuckDB keeps a kilobyte to three of each."""


class Database:
    """A database in memory with one connection: settings and functions, definitions, relations at hand, stored rows.

    >>> database = Database(lambda connection: connection.execute("SET TimeZone = 'UTC'"))
    >>> database.define("CREATE TABLE t (x HUGEINT)")
    >>> _ = database.connection.execute("INSERT INTO t VALUES (1)")
    >>> database.renew()
    >>> database.connection.sql("FROM t").fetchall()
    [(1,)]
    """

    def __init__(self, *made_with: Callable[[Connection], object]) -> None:
        self._made_with = list(made_with)
        self._definitions = list[str]()
        self._relations = dict[str, pa.Table]()
        self._uses, self._used = 0, False
        self._connection = self._made()
        close_at_exit(self)

    def _made(self) -> Connection:
        connection = duckdb.connect(config={"threads": 2, "preserve_insertion_order": True})
        for make in self._made_with:
            make(connection)
        return connection

    def close(self) -> None:
        """Close the database; its tables are gone."""
        self._connection.close()
        del self._connection

    @property
    def connection(self) -> Connection:
        """What runs statements. Definitions and relations that stay go through `define` and `show`."""
        self._uses += 1
        return self._connection

    def make(self, make: Callable[[Connection], object]) -> None:
        """Give a setting or a function to this database, and to those that come after it."""
        self._made_with.append(make)
        make(self._connection)

    def define(self, sql: str) -> None:
        """Create a table or a view, which stays."""
        self.connection.execute(sql)
        self._definitions.append(sql)

    def show(self, name: str, rows: pa.Table) -> None:
        """Show rows under a name from now on, in place of those that it had."""
        self.connection.register(name, rows)
        self._relations[name] = rows

    @contextmanager
    def use(self) -> Generator[None]:
        """A piece of work, as a batch or a question: it has one database, which is new where the one before was used up."""
        if self._used:
            yield
            return
        if self._uses >= _MOST:
            self.renew()
        self._used = True
        try:
            yield
        finally:
            self._used = False

    def renew(self) -> None:
        """Put all that is there into a new database, and close this one."""
        old, new = self._connection, self._made()
        for name, rows in self._relations.items():
            new.register(name, rows)
        for sql in self._definitions:
            new.execute(sql)
        old.execute("SET arrow_lossless_conversion = true")
        for (table,) in old.execute("SELECT table_name FROM duckdb_tables() WHERE NOT internal").fetchall():
            new.register("__moved", old.sql(f"FROM {quoted(table)}").to_arrow_table())
            new.execute(f"INSERT INTO {quoted(table)} FROM __moved")
            new.unregister("__moved")
        self._connection, self._uses = new, 0
        old.close()
