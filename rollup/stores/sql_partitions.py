"""Partitions by time of the two finest levels in PostgreSQL: `@store(type='rdbms', partition='month')`."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa

from rollup.calendar import Duration, bucket_end, bucket_start, to_local
from rollup.errors import StoreError
from rollup.plan.aggregation import TIMESTAMP
from rollup.stores.sql_ddl import Tables, template

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

    def _statement(self, table: str, partition: str, low: int) -> str:
        assert self.width is not None
        quote = self._tables.quote
        high = bucket_end(low, self.width)
        make = template(
            "postgres/partition.sql", partition=quote(partition), table=quote(table), low=str(low), high=str(high)
        )
        there = quote(partition).replace("'", "''")
        return f"do $body$ begin if to_regclass('{there}') is null then {make} end if; end $body$"
