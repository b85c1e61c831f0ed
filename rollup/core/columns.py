"""The embedded column engine: one DuckDB connection with our functions, and Arrow tables in and out."""

from __future__ import annotations

import atexit
import itertools
import threading
import weakref
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Protocol

import duckdb
import pyarrow as pa
from sqlglot import exp

from rollup.core import local_columns
from rollup.core.dialects import to_sql

_MOST = 8192
"""Uses of connections from which on a database makes room for a new one; DuckDB keeps half a kilobyte to three of each."""


class Database:
    """A DuckDB database in memory with our functions, and a connection for each thread."""

    def __init__(self, settings: Sequence[tuple[str, Sequence[object]]]) -> None:
        self._root = duckdb.connect()  # runs no query: a busy connection refuses to be copied
        local_columns.register(self._root)
        self._own = threading.local()
        self._lock = threading.Lock()
        self._sketches = False
        self.uses = 0
        """How often a connection was asked for, or a little less where several threads ask."""
        for setting, values in settings:
            self.set(setting, *values)

    def set(self, setting: str, *values: object) -> None:
        """Change a setting of the database; `values` fill its `?`."""
        self._root.execute(setting, values)

    def close(self) -> None:
        """Close every connection."""
        self._own = threading.local()
        self._root.close()

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection of this thread."""
        self.uses += 1
        found: duckdb.DuckDBPyConnection | None = getattr(self._own, "connection", None)
        if found is None:
            with self._lock:
                found = self._own.connection = self._root.cursor()
            found.execute("SET error_on_division_by_zero = false; SET TimeZone = 'UTC'")
            found.execute("SET enable_progress_bar = false")
            found.execute("SET python_enable_replacements = false")  # a name of a query is never one of our variables
        return found

    def prepare(self, sql: str) -> None:
        """Make known what a query needs: the functions for sketches cost a library, which most queries do without."""
        if not self._sketches and "rollup_" in sql.lower():
            with self._lock:
                if not self._sketches:
                    from rollup.core import sketches

                    sketches.register(self._root)
                    self._sketches = True


class ColumnEngine:
    """DuckDB with a connection for each thread.

    Steps own no tables in it: what they need is registered for one call. Of files that it reads nothing is kept: a job reads
    most of them once, and would keep a kilobyte of each.

    >>> ColumnEngine().run("SELECT SUM(x) AS s FROM t", t=pa.table({"x": [1, 2]}))["s"].to_pylist()
    [Decimal('3')]
    """

    def __init__(self, threads: int | None = None) -> None:
        self._settings = list[tuple[str, Sequence[object]]]()
        self._newest = Database(self._settings)
        self._own = threading.local()
        self._lock = threading.Lock()
        self.set("SET preserve_insertion_order = true")
        self.set("SET enable_external_file_cache = false")
        if threads is not None:
            self.set("SET threads = ?", threads)
        close_at_exit(self)

    def confine(self, folders: Sequence[str]) -> None:
        """Let queries read files of some folders only, and nothing else outside of this process; for good."""
        self.set("SET allowed_directories = ?", list(folders))
        self.set("SET enable_external_access = false")

    def set(self, setting: str, *values: object) -> None:
        """Change a setting of the database at hand, and of those that come after it; `values` fill its `?`."""
        self._settings.append((setting, values))
        self._newest.set(setting, *values)

    def close(self) -> None:
        """Close every connection; the engine is of no more use."""
        _open.discard(self)
        self._newest.close()
        del self._newest

    @contextmanager
    def use(self) -> Generator[None]:
        """A piece of work that needs nothing of an earlier one: a batch, a question. All of it has one database.

        DuckDB gives some memory back only when a database is closed. So after some thousand queries the next piece of work
        begins with a new one. The database before it ends with the last piece of work that has it.

        >>> engine = ColumnEngine()
        >>> with engine.use():
        ...     engine.count("SELECT 1")
        1
        """
        if not self._having:
            with self._lock:
                if self._newest.uses >= _MOST:
                    self._newest = Database(self._settings)
        with self._with_one():
            yield

    @property
    def _having(self) -> bool:
        """Whether this thread is at a piece of work."""
        return getattr(self._own, "database", None) is not None

    @contextmanager
    def _with_one(self) -> Generator[None]:
        """In it this thread has one database, whatever others do."""
        if self._having:
            yield
            return
        self._own.database = self._newest
        try:
            yield
        finally:
            self._own.database = None

    @property
    def database(self) -> Database:
        """The database of this thread."""
        found: Database = self._own.database if self._having else self._newest
        return found

    @property
    def connection(self) -> duckdb.DuckDBPyConnection:
        """The connection of this thread."""
        return self.database.connection

    def prepare(self, sql: str) -> None:
        """Make known what a query needs."""
        self.database.prepare(sql)

    @contextmanager
    def tables(self, tables: Mapping[str, pa.Table | pa.RecordBatch | pa.RecordBatchReader]) -> Generator[None]:
        """Arrow tables visible under their names for the length of a `with`."""
        with self._with_one():
            for name, table in tables.items():
                self.connection.register(name, table)
            try:
                yield
            finally:
                for name in tables:
                    self.connection.unregister(name)

    def run(
        self, query: str | exp.Expr, parameters: Mapping[str, object] | None = None, **tables: pa.Table
    ) -> pa.Table:
        """The Arrow table a query gives over the tables given by name; `parameters` fill its `$name` places."""
        sql = query if isinstance(query, str) else to_sql(query)
        with self.tables(tables), _interruptible():
            self.prepare(sql)
            return self.connection.sql(sql, params=parameters).to_arrow_table()

    def count(self, sql: str) -> int:
        """The one number a query gives; 0 for null or no row."""
        with self._with_one(), _interruptible():
            self.prepare(sql)
            rows = self.connection.execute(sql).fetchall()
        return int(rows[0][0] or 0) if rows else 0


def told_apart(names: Sequence[str]) -> list[str]:
    """Names of columns, none of them twice in any case: the second `k` is `k0`, the third `k1`, as Calcite has it.

    >>> told_apart(["k", "v", "k", "K", "v0", "v"])
    ['k', 'v', 'k0', 'K1', 'v0', 'v1']
    """
    given, found = {name.casefold() for name in names}, dict[str, str]()
    for name in names:
        numbers = (f"{name}{n}" for n in itertools.count())
        own = name if name.casefold() not in found else next(n for n in numbers if n.casefold() not in {*given, *found})
        found[own.casefold()] = own
    return list(found.values())


@contextmanager
def _interruptible() -> Generator[None]:
    """Ctrl-C in a query is Ctrl-C, and no fault of what was asked: DuckDB makes an error of its own of it."""
    try:
        yield
    except RuntimeError as problem:
        if str(problem) == "Query interrupted":
            raise KeyboardInterrupt from None
        raise


class Closing(Protocol):
    """What has a connection of DuckDB's."""

    def close(self) -> None:
        """Close it, and let go of it."""
        ...


_open: weakref.WeakSet[Closing] = weakref.WeakSet()


def close_at_exit(owner: Closing) -> None:
    """Close the connections of an object when the process ends, if it is still there.

    Caches and Spark's callbacks hold some to the very end, where DuckDB's library would report them as leaks.
    """
    _open.add(owner)


@atexit.register
def _close() -> None:
    for owner in list(_open):
        owner.close()
