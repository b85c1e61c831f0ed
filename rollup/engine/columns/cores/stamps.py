"""When rows leave a window that keeps each until a time of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.covering import against
from rollup.engine.columns.evaluate import Columns, evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Expr, Field, with_time
from rollup.engine.operators import LONG_MAX, LONG_MIN
from rollup.engine.rows.windows.base import timeless
from rollup.engine.rows.windows.external import TimeOrder
from rollup.engine.types import LONG, Kind

_WHOLE = (Kind.INT, Kind.LONG, Kind.TIMESTAMP)


_CAME = Field(0, -1, LONG)
"""The instant at which a row came, behind its fields."""


@dataclass(frozen=True)
class Stamp:
    """The time of a row: what it carries, which may go by the instant at which it came; it leaves `span` later."""

    time: Expr
    span: int

    def against(self) -> str | None:
        """The first reason why no loop can go by it."""
        if self.span > LONG_MAX:
            return "a span of more than 64 bits"
        known = self.time.type.kind in _WHOLE
        return against(self.time) or (None if known else f"a window by a time that is a {self.time.type}")

    def leaves(self, came: Ints, fields: Columns) -> Ints:
        """When each row leaves, of those that `came` then; raises QueryError where one carries no time.

        What is beyond 64 bits is at their end: an instant that has passed, or one that no clock reaches.
        """
        carried = evaluate(self.time, (*fields, pa.array(came, pa.int64())), len(came))
        if carried.null_count:
            raise timeless()
        found = carried.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)
        return _sum(found, np.full(len(came), self.span, np.int64))


def stamp_of(window: TimeOrder) -> Stamp:
    """The time by which rows leave a window."""
    return Stamp(with_time(window.time, _CAME), window.span)


def _sum(one: Ints, other: Ints) -> Ints:
    total = one + other
    beyond = (one ^ total) & (other ^ total) < 0
    return np.where(beyond, np.where(one < 0, LONG_MIN, LONG_MAX), total)
