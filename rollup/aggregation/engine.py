"""The embedded column engine: one DuckDB connection with our functions, and Arrow tables in and out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import duckdb
import pyarrow as pa
from sqlglot import exp

from rollup.aggregation import sketches
from rollup.aggregation.dialects import to_sql


class Engine:
    """A DuckDB connection. Steps own no tables in it: what they need is registered for one call.

    >>> Engine().run("SELECT SUM(x) AS s FROM t", t=pa.table({"x": [1, 2]}))["s"].to_pylist()
    [Decimal('3')]
    """

    def __init__(self, threads: int | None = None) -> None:
        self.connection = duckdb.connect()
        self.connection.execute("SET error_on_division_by_zero = false; SET TimeZone = 'UTC'; SET preserve_insertion_order = true")
        self.connection.execute("SET enable_progress_bar = false")
        if threads is not None:
            self.connection.execute(f"SET threads = {threads}")
        sketches.register(self.connection)

    @contextmanager
    def tables(self, tables: Mapping[str, pa.Table | pa.RecordBatch]) -> Iterator[None]:
        """Arrow tables visible under their names for the length of a `with`."""
        for name, table in tables.items():
            self.connection.register(name, table)
        try:
            yield
        finally:
            for name in tables:
                self.connection.unregister(name)

    def run(self, query: str | exp.Expression, parameters: Mapping[str, object] | None = None, **tables: pa.Table) -> pa.Table:
        """The Arrow table a query gives over the tables given by name; `parameters` fill its `$name` places."""
        sql = query if isinstance(query, str) else to_sql(query)
        with self.tables(tables):
            return self.connection.sql(sql, params=parameters).to_arrow_table()

    def count(self, sql: str) -> int:
        """The one number a query gives; 0 for null or no row."""
        rows = self.connection.execute(sql).fetchall()
        return int(rows[0][0] or 0) if rows else 0
