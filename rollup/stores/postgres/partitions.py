"""Partitions by time of the two finest levels in PostgreSQL: `@store(type='rdbms', partition='month')`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import psycopg2.errors
import pyarrow as pa

from rollup.core.calendar import Duration, bucket_end, bucket_start, to_local
from rollup.core.errors import StoreError
from rollup.plan.aggregation import TIMESTAMP
from rollup.stores.sql.ddl import Tables, statements
from rollup.stores.sql.types import check_name

_BOUNDS = re.compile(r"FROM \('(-?\d+)'\) TO \('(-?\d+)'\)")
WIDTHS: Mapping[str, tuple[Duration, Duration]] = {
    "hour": (Duration.HOURS, Duration.DAYS),
    "day": (Duration.DAYS, Duration.DAYS),
    "month": (Duration.MONTHS, Duration.MONTHS),
    "year": (Duration.YEARS, Duration.YEARS),
}
"""What a partition of seconds, and one of minutes, is cut by: an hour of minutes would be hardly any rows."""

Times = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True)
class Part:
    """One partition of a table: AGG_TIMESTAMP from `low` to before `high`, ms."""

    table: str
    name: str
    low: int
    high: int


class Partitions:
    """Which partitions exist, and which ones rows still need."""

    def __init__(self, tables: Tables, width: str | None) -> None:
        if width is not None and width not in WIDTHS:
            raise StoreError(f"@store: partition={width!r} is not known", hint=", ".join(WIDTHS))
        self.on = width is not None
        self._tables = tables
        fine = zip((Duration.SECONDS, Duration.MINUTES), () if width is None else WIDTHS[width], strict=False)
        levels = {level: cut for level, cut in fine if level in tables.aggregation.levels}
        self._widths = {tables.aggregation.table(level): cut for level, cut in levels.items()}
        self._there: dict[str, dict[str, tuple[int, int]]] = {table: {} for table in self._widths}
        for table in self._widths:
            check_name(self._part(table, 0).name, "the partition", "postgresql")

    def fill(self, cursor: Any, table: str, rows: pa.Table, copy: Callable[[str, pa.Table], None]) -> pa.Table:
        """Make the partitions that rows need and that are not there, each with its rows; the rows that are left.

        It is part of the cursor's transaction, so that a partition and what is in it appear together or not at all.
        """
        if table not in self._widths:
            return rows
        times = rows[TIMESTAMP].to_numpy()
        for part in self._missing(cursor, table, times):
            make, attach = self._statements(part)
            inside = (part.low <= times) & (times < part.high)
            cursor.execute(make)
            copy(part.name, rows.filter(pa.array(inside)))
            cursor.execute(attach)
            rows, times = rows.filter(pa.array(~inside)), times[~inside]
        return rows

    def _missing(self, cursor: Any, table: str, times: Times) -> list[Part]:
        """The partitions that times need and that are not there; the database is asked unless all are known."""
        left = self._outside(table, np.unique(times))
        if left.size:
            if not self._partitioned(cursor, table):
                del self._widths[table]  # made before there was a width
                return []
            # One that is made now is looked up again by the next who needs it: its transaction may yet fail.
            self._there[table] = self._bounds(cursor, table)
            left = self._outside(table, left)
        parts = list[Part]()
        while left.size:
            parts.append(self._part(table, int(left[0])))
            left = left[left >= parts[-1].high]
        return parts

    def _outside(self, table: str, times: Times) -> Times:
        """Those of some times that are in no partition that is known."""
        for low, high in self._there[table].values():
            times = times[(times < low) | (times >= high)]
        return times

    def _part(self, table: str, time: int) -> Part:
        """The partition for a time that is in none. The width may have been another: it ends where others begin."""
        width, there = self._widths[table], self._there[table].values()
        start = bucket_start(time, width)
        low = max([start, *(end for _, end in there if end <= time)])
        high = min([bucket_end(start, width), *(begin for begin, _ in there if begin > time)])
        hourly = width is Duration.HOURS or low != bucket_start(low, Duration.DAYS)
        return Part(table, f"{table}_{to_local(low, 'Z'):{'%Y%m%d%H' if hourly else '%Y%m%d'}}", low, high)

    def _statements(self, part: Part) -> list[str]:
        names = {"partition": self._tables.quote(part.name), "table": self._tables.quote(part.table)}
        return statements("postgres/partition.sql", **names, low=str(part.low), high=str(part.high))

    def drop(self, cursor: Any, table: str, end: int) -> None:
        """Drop the partitions of a table that are over before `end`, inside the cursor's transaction.

        Whoever reads the table has a lock on it. One that does not let go within a second is not held up: rows of its
        partition are then deleted like any others, and the empty partition goes the next time.
        """
        for name in self._over(cursor, table, end):
            try:
                cursor.execute(f"savepoint part; set local lock_timeout = '1s'; drop table {self._tables.quote(name)}")
            except (psycopg2.errors.LockNotAvailable, psycopg2.errors.InsufficientPrivilege):
                cursor.execute("rollback to savepoint part")
            else:
                cursor.execute("set local lock_timeout = '10s'; release savepoint part")
                self._there[table].pop(name, None)

    def _over(self, cursor: Any, table: str, end: int) -> list[str]:
        """The partitions of a table whose rows are all before `end`."""
        if table not in self._widths:
            return []
        return [name for name, (_, high) in self._bounds(cursor, table).items() if high <= end]

    def _partitioned(self, cursor: Any, table: str) -> bool:
        cursor.execute("select relkind = 'p' from pg_class where oid = to_regclass(%s)", (self._tables.quote(table),))
        found = cursor.fetchone()
        return found is None or bool(found[0])

    def _bounds(self, cursor: Any, table: str) -> dict[str, tuple[int, int]]:
        """The partitions a table has, and from when to when (excluded) they are, ms."""
        cursor.execute(
            "select c.relname, pg_get_expr(c.relpartbound, c.oid) from pg_inherits i"
            " join pg_class c on c.oid = i.inhrelid where i.inhparent = to_regclass(%s)",
            (self._tables.quote(table),),
        )
        found = ((name, _BOUNDS.search(text)) for name, text in cursor.fetchall())
        return {name: (int(bounds[1]), int(bounds[2])) for name, bounds in found if bounds is not None}
