"""Aggregates of a sub-query that asks nothing of the row outside: kept up as rows come and leave, as a statement's are.

So a look at them costs nothing, however much the window holds, and sums of doubles are those of a statement over it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rollup.core.descriptions import descendants
from rollup.engine.compiling import predicate
from rollup.engine.expressions import Ask, Expr, Field, Variable, walk
from rollup.engine.row import Delta
from rollup.engine.rows.plans import Input, Lookup, StreamInput, Subquery
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.selects.grouping import Groups, Level
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Unique
from rollup.engine.rows.windows.ranked import Sorted
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import DataType


class Running:
    """The aggregates of one sub-query."""

    def __init__(self, plan: Subquery, width: int, environment: Environment) -> None:
        self.input = plan.input
        self._groups = Groups(Level((), plan.calls), environment)
        self._where, self._environment = predicate(plan.where), environment
        self._before = (None,) * width

    def change(self, delta: Delta) -> None:
        """Rows come into its window, and rows leave it."""
        for rows, change in ((delta.new, self._groups.enter), (delta.old, self._groups.leave)):
            for row in rows:
                r = (*self._before, row)
                if self._where(r, (), self._environment):
                    change(r)

    def values(self) -> tuple[Any, ...]:
        """The values of the calls."""
        return self._groups.values(())

    def snapshot(self) -> Any:
        """The state."""
        return self._groups.snapshot()

    def restore(self, state: Any) -> None:
        """Go on."""
        self._groups.restore(state)


def running_of(
    lookups: Sequence[Lookup], inputs: Sequence[Input], width: int, environment: Environment
) -> list[Running | None]:
    """What keeps the aggregates of each look-up of a statement over `width` rows; None where it is no such sub-query."""
    inner = {each.index for lookup in lookups for each in descendants(lookup, (DataType,)) if isinstance(each, Ask)}
    return [
        Running(lookup, width, environment)
        if isinstance(lookup, Subquery) and place not in inner and stands_alone(lookup, inputs[lookup.input], width)
        else None
        for place, lookup in enumerate(lookups)
    ]


def stands_alone(lookup: Subquery, input: Input, width: int) -> bool:
    """Whether a sub-query has aggregates over a window or all that comes, and asks nothing of the `width` rows outside."""
    if not lookup.calls or lookup.keys or lookup.mode == "exists" or not isinstance(input, StreamInput):
        return False
    read = [lookup.where, *(arg for call in lookup.calls for arg in (*call.args, call.where))]
    return isinstance(input.window, Length | Time | KeepAll | Unique | Sorted | None) and all(
        _own(each, width) for each in read
    )


def _own(expr: Expr | None, width: int) -> bool:
    """Whether an expression reads the row behind the `width` rows outside, and nothing else."""
    parts = () if expr is None else walk(expr)
    return not any(
        isinstance(each, Ask | Variable) or (isinstance(each, Field) and each.input != width) for each in parts
    )
