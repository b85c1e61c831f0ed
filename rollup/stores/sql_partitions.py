"""Partitions by time of the two finest levels in PostgreSQL: `@store(type='rdbms', partition='month')`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import psycopg2.errors
import pyarrow as pa

from rollup.calendar import Duration, bucket_end, bucket_start, to_local
from rollup.errors import StoreError
from rollup.plan.aggregation import TIMESTAMP
from rollup.stores.sql_ddl import Tables, template

_END = re.compile(r" TO \('(-?\d+)'\)")
WIDTHS = {"day": Duration.DAYS, "month": Duration.MONTHS, "year": Duration.YEARS}


class Partitions:
    """Which partitions exist, and the statements for those that rows still need."""

    def __init__(self, tables: Tables, width: str | None) -> None:
        if width is not None and width not in WIDTHS:
            raise StoreError(f"@store: partition={width!r} is not known", hint=", ".join(WIDTHS))
        self.width = None if width is None else WIDTHS[width]
        self._tables = tables
        self._made: set[str] = set()

    def missing(self, level: Duration, rows: pa.Table) -> Iterator[str]:
        """The statements that make the partitions of a level's rows, one a partition."""
        if self.width is None or level > Duration.MINUTES:
            return
        table, seen = self._tables.aggregation.table(level), set[int]()
        for time in rows[TIMESTAMP].unique().to_pylist():
            seen.add(bucket_start(time, self.width))
        for low in sorted(seen):
            partition = f"{table}_{to_local(low, 'Z'):%Y%m%d}"
            if partition not in self._made:
                yield self._statement(table, partition, low)
                self._made.add(partition)

    def drop(self, cursor: Any, table: str, end: int) -> None:
        """Drop the partitions of a table that are over before `end`, inside the cursor's transaction.

        Whoever reads the table has a lock on it. One that does not let go within a second is not held up: rows of its
        partition are then deleted like any others, and the empty partition goes the next time.
        """
        for partition in self._over(cursor, table, end) if self.width is not None else ():
            try:
                cursor.execute(f"savepoint part; set local lock_timeout = '1s'; drop table {partition}")
            except (psycopg2.errors.LockNotAvailable, psycopg2.errors.InsufficientPrivilege):
                cursor.execute("rollback to savepoint part")
            else:
                cursor.execute("set local lock_timeout = '10s'; release savepoint part")
                self._made = {name for name in self._made if self._tables.quote(name) != partition}

    def _over(self, cursor: Any, table: str, end: int) -> list[str]:
        """The partitions of a table whose rows are all before `end`, as quoted names."""
        cursor.execute(
            "select quote_ident(c.relname), pg_get_expr(c.relpartbound, c.oid) from pg_inherits i"
            " join pg_class c on c.oid = i.inhrelid where i.inhparent = to_regclass(%s)",
            (self._tables.quote(table),),
        )
        bounds = ((partition, _END.search(text)) for partition, text in cursor.fetchall())
        return [partition for partition, found in bounds if found is not None and int(found[1]) <= end]

    def _statement(self, table: str, partition: str, low: int) -> str:
        assert self.width is not None
        quote = self._tables.quote
        high = bucket_end(low, self.width)
        make = template(
            "postgres/partition.sql", partition=quote(partition), table=quote(table), low=str(low), high=str(high)
        )
        there = quote(partition).replace("'", "''")
        return f"do $body$ begin if to_regclass('{there}') is null then {make} end if; end $body$"
