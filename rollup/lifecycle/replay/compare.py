"""Two sets of rows of a level compared, bucket by bucket and column by column."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rollup.aggregation.cascade import Cascade, narrowed
from rollup.core.calendar import Duration, to_local
from rollup.core.columns import ColumnEngine
from rollup.core.identifiers import quoted, same
from rollup.core.json_line import json_line
from rollup.plan.aggregates import EXACT
from rollup.plan.aggregation import TIMESTAMP, ZONE, Aggregation

_RELATIVE = 1e-9
"""Doubles are sums in another order: they may differ in their last digits."""

_ARRIVALS = ("AGG_LAST_ARRIVAL", "AGG_FIRST_ARRIVAL")
_MOST = 10_000
"""Differences told of a range of a level; more say no more."""


@dataclass(frozen=True)
class Difference:
    """A column of a bucket that is not what it should be; column `(row)` when one side has no row at all."""

    aggregation: str
    level: Duration
    start: int
    zone: str
    keys: tuple[Any, ...]
    column: str
    stored: Any
    expected: Any

    @property
    def bucket(self) -> str:
        """The bucket's start, as a person reads it."""
        return readable(self.start, self.zone)

    def json(self) -> str:
        """As one line of JSON."""
        row = {"aggregation": self.aggregation, "level": self.level.plural, "bucket": self.bucket, "start": self.start}
        row |= {"keys": self.keys, "column": self.column, "stored": self.stored, "expected": self.expected}
        return json_line(row)


def readable(instant: int, zone: str = "+00:00") -> str:
    """An instant in milliseconds as a date and time in a zone.

    >>> readable(1514764800000)
    '2018-01-01 00:00:00'
    """
    try:
        return f"{to_local(instant, zone):%Y-%m-%d %H:%M:%S}" + ("" if zone == "+00:00" else f" {zone}")
    except (OverflowError, ValueError):
        return str(instant)


@dataclass(frozen=True)
class Comparison:
    """Compares rows of the levels of one aggregation."""

    engine: ColumnEngine
    cascade: Cascade

    @property
    def aggregation(self) -> Aggregation:
        """What the rows are of."""
        return self.cascade.aggregation

    def differences(self, level: Duration, stored: list[pa.Table], expected: list[pa.Table]) -> Iterator[Difference]:
        """Where the parts `stored`, merged at `level`, are not the parts `expected`, merged at `level`."""
        left, right = (self._merged(level, parts) for parts in (stored, expected))
        if left.num_rows == 0 and right.num_rows == 0:
            return
        both = same(self.aggregation.identity, "__s", "__e")
        wrong = " OR ".join(self._unlike(name) for name in self._compared) or "false"
        # A row is never without its count of events, so a null there is a row that the other side does not have.
        missing = '__s."AGG_EVENTS" IS NULL OR __e."AGG_EVENTS" IS NULL'
        sql = f"SELECT __s, __e FROM stored AS __s FULL JOIN expected AS __e ON {both} WHERE {missing} OR {wrong} LIMIT {_MOST}"
        for row in self.engine.run(sql, stored=left, expected=right).to_pylist():
            yield from self._described(level, row["__s"], row["__e"])

    def _merged(self, level: Duration, parts: list[pa.Table]) -> pa.Table:
        wide = [
            part.select(self.aggregation.state_schema.names).cast(self.aggregation.state_schema)
            for part in parts
            if part.num_rows
        ]
        return narrowed(self.aggregation, self.cascade.merge(self.engine, level, wide))

    @property
    def _compared(self) -> list[str]:
        """Value columns, except sketches, whose bytes depend on the order they were merged in, and except numbers of
        arrival: a reading that begins in the middle of a stream counts from there."""
        return [
            name
            for name, kind in self.aggregation.kinds.items()
            if name not in (*self.aggregation.identity, *_ARRIVALS) and not pa.types.is_binary(kind.table)
        ]

    def _unlike(self, name: str) -> str:
        s, e = quoted(name, "__s"), quoted(name, "__e")
        kind = self.aggregation.kinds[name]
        if pa.types.is_floating(kind.table):
            near = f"ABS({s} - {e}) <= {_RELATIVE} * GREATEST(ABS({s}), ABS({e}), 1e-6)"
            return f"({s} IS DISTINCT FROM {e} AND NOT COALESCE({near}, false))"
        if kind == EXACT:  # null is a sum that left 64 bits somewhere below; which one is no longer known
            return f"({s} <> {e})"
        return f"({s} IS DISTINCT FROM {e})"

    def _described(self, level: Duration, stored: dict[str, Any], expected: dict[str, Any]) -> Iterator[Difference]:
        none = [row is None or row["AGG_EVENTS"] is None for row in (stored, expected)]
        row = expected if none[0] else stored
        keys = tuple(row[key.name] for key in self.aggregation.keys)

        def make(column: str, left: Any, right: Any) -> Difference:
            return Difference(self.aggregation.name, level, row[TIMESTAMP], row[ZONE], keys, column, left, right)

        if none[0] or none[1]:
            yield make(
                "(row)",
                *(
                    "missing" if gone else f"{side['AGG_EVENTS']} events"
                    for gone, side in zip(none, (stored, expected), strict=True)
                ),
            )
            return
        for name in self._compared:
            if not _alike(stored[name], expected[name]):
                yield make(name, stored[name], expected[name])


def _alike(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return (
            left == right
            or (math.isnan(left) and math.isnan(right))
            or math.isclose(left, right, rel_tol=_RELATIVE, abs_tol=1e-6 * _RELATIVE)
        )
    return left == right
