"""When rows leave a window that keeps each until a time of its own."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollup.engine.columns.cores.covering import against
from rollup.engine.columns.evaluate import Columns, evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Call, Expr, Now
from rollup.engine.operators import ADD, LONG_MAX, LONG_MIN
from rollup.engine.rows.windows.base import timeless
from rollup.engine.rows.windows.external import TimeOrder
from rollup.engine.types import Kind

_WHOLE = (Kind.INT, Kind.LONG, Kind.TIMESTAMP)


@dataclass(frozen=True)
class Stamp:
    """The time of a row: what it carries (`of`), the instant at which it came (`clock`), or the sum of the two; it leaves `span`
    later.
    """

    of: Expr | None
    clock: bool
    span: int

    def against(self) -> str | None:
        """The first reason why no loop can go by it."""
        if self.span > LONG_MAX:
            return "a span of more than 64 bits"
        if self.of is None:
            return None
        known = self.of.type.kind in _WHOLE
        return against(self.of) or (None if known else f"a window by a time that is a {self.of.type}")

    def leaves(self, came: Ints, fields: Columns) -> Ints:
        """When each row leaves, of those that `came` then; raises QueryError where one carries no time.

        What is beyond 64 bits is at their end: an instant that has passed, or one that no clock reaches.
        """
        found = came if self.clock else np.zeros(len(came), np.int64)
        if self.of is not None:
            carried = evaluate(self.of, fields, len(came))
            if carried.null_count:
                raise timeless()
            found = _sum(found, carried.to_numpy(zero_copy_only=False).astype(np.int64, copy=False))
        return _sum(found, np.full(len(came), self.span, np.int64))


def stamp_of(window: TimeOrder) -> Stamp:
    """The time by which rows leave a window."""
    match window.time:
        case Now():
            return Stamp(None, True, window.span)
        case Call(op, (Now(), other) | (other, Now())) if op.name == ADD.name:
            return Stamp(other, True, window.span)
        case time:
            return Stamp(time, False, window.span)


def _sum(one: Ints, other: Ints) -> Ints:
    total = one + other
    beyond = (one ^ total) & (other ^ total) < 0
    return np.where(beyond, np.where(one < 0, LONG_MIN, LONG_MAX), total)
