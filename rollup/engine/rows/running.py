"""Aggregates of a sub-query that asks nothing of the row outside: kept up as rows come and leave, as a statement's are.

So a look at them costs nothing, however much the window holds, and sums of doubles are those of a statement over it. Of
groups a look works out those that have changed since the look before.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from rollup.core.descriptions import descendants
from rollup.engine.compiling import compiled_row, predicate
from rollup.engine.expressions import Ask, Expr, Field, Now, RowOf, Variable, children, walk
from rollup.engine.row import Row, Rows
from rollup.engine.rows.plans import Input, Lookup, StoreInput, StreamInput, Subquery
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.selects.grouping import Groups, Key, Level
from rollup.engine.types import DataType


class Running:
    """The aggregates of one sub-query over all rows."""

    def __init__(self, plan: Subquery, width: int, environment: Environment) -> None:
        self.input = plan.input
        self._groups = Groups(Level(plan.keys, plan.calls), environment)
        self._where, self._having, self._columns = (
            predicate(plan.where),
            predicate(plan.having),
            compiled_row(plan.columns),
        )
        self._every = plan.where is None
        self._environment = environment
        self._before = (None,) * width

    def change(self, new: Sequence[Row | None], old: Sequence[Row | None]) -> None:
        """Rows come into its window, and rows leave it."""
        before, every, where, e, groups = self._before, self._every, self._where, self._environment, self._groups
        for rows, change in ((new, groups.enter), (old, groups.leave)):
            for row in rows:
                r = (*before, row)
                if every or where(r, (), e):
                    self._changed(change(r), r)

    def answers(self, r: Rows) -> list[tuple[Any, ...]]:
        """What the sub-query selects, asked with these rows outside."""
        selected = self._selected((*r, None), self._groups.values(()))
        return [] if selected is None else [selected]

    def snapshot(self) -> Any:
        """The state."""
        return self._groups.snapshot()

    def restore(self, state: Any) -> None:
        """Go on."""
        self._groups.restore(state)

    def _changed(self, key: Key, r: Rows) -> None:
        pass

    def _selected(self, r: Rows, values: tuple[Any, ...]) -> tuple[Any, ...] | None:
        """The columns; None where `having` does not hold."""
        return self._columns(r, values, self._environment) if self._having(r, values, self._environment) else None


class RunningGroups(Running):
    """The aggregates of one sub-query by groups, in no order."""

    def __init__(self, plan: Subquery, width: int, environment: Environment) -> None:
        super().__init__(plan, width, environment)
        self._found: dict[Key, tuple[Any, ...]] = {}
        self._due: dict[Key, Rows] = {}
        """Groups that have changed since they were looked at, and a row of each."""

    def answers(self, r: Rows) -> list[tuple[Any, ...]]:
        """What the sub-query selects."""
        for key, row in self._due.items():
            selected = self._selected(row, self._groups.values(key)) if key in self._groups else None
            if selected is None:
                self._found.pop(key, None)
            else:
                self._found[key] = selected
        self._due.clear()
        return list(self._found.values())

    def snapshot(self) -> Any:
        """The state; what is selected of each group, too, which no row may be left to work out from."""
        self.answers(self._before)
        return [super().snapshot(), list(self._found.items())]

    def restore(self, state: Any) -> None:
        """Go on."""
        groups, found = state
        super().restore(groups)
        self._found = dict(found)
        self._due.clear()

    def _changed(self, key: Key, r: Rows) -> None:
        self._due[key] = r


def running_of(
    lookups: Sequence[Lookup],
    inputs: Sequence[Input],
    width: int,
    environment: Environment,
    followed: Callable[[str], bool] = lambda name: False,
) -> list[Running | None]:
    """What keeps the aggregates of each look-up of a statement over `width` rows; None where it is no such sub-query.

    `followed`: whether what a store shows is what it tells that has come and not left.
    """
    inner = {each.index for lookup in lookups for each in descendants(lookup, (DataType,)) if isinstance(each, Ask)}
    return [
        (RunningGroups if lookup.keys else Running)(lookup, width, environment)
        if isinstance(lookup, Subquery)
        and place not in inner
        and (
            stands_alone(lookup, inputs[lookup.input], width) or follows(lookup, inputs[lookup.input], width, followed)
        )
        else None
        for place, lookup in enumerate(lookups)
    ]


def stands_alone(lookup: Subquery, input: Input, width: int) -> bool:
    """Whether a sub-query has aggregates over a stream or a window of it, and asks nothing of the `width` rows outside.

    What it finds in a window is what has come and not left, so its changes are all that has to be heard.
    """
    return isinstance(input, StreamInput) and _asks_nothing(lookup, width)


def follows(lookup: Subquery, input: Input, width: int, followed: Callable[[str], bool]) -> bool:
    """The same over a store, of which nothing is asked that has another answer later."""
    if not isinstance(input, StoreInput) or input.prior or not followed(input.store):
        return False
    read = [input.condition, lookup.where, *(call.where for call in lookup.calls)]
    parts = [part for each in read if each is not None for part in walk(each)]
    return _asks_nothing(lookup, width) and not any(isinstance(each, Ask | Variable | Now) for each in parts)


def _asks_nothing(lookup: Subquery, width: int) -> bool:
    """Whether a sub-query has aggregates, and asks nothing of the `width` rows outside."""
    if not lookup.calls or lookup.mode == "exists":
        return False
    if lookup.keys and not _of_groups(lookup):
        return False
    read = [lookup.where, *lookup.keys, *(arg for call in lookup.calls for arg in (*call.args, call.where))]
    return all(_own(each, width) for each in read)


def _of_groups(lookup: Subquery) -> bool:
    """Whether a sub-query lists, in whatever order, what depends on nothing but its groups' keys and aggregates."""
    shown = [*lookup.columns, *([] if lookup.having is None else [lookup.having])]
    return lookup.mode == "list" and all(_of_group(each, lookup.keys) for each in shown)


def _of_group(expr: Expr, keys: Sequence[Expr]) -> bool:
    if expr in keys:
        return True
    return not isinstance(expr, Field | RowOf | Ask | Variable | Now) and all(
        _of_group(each, keys) for each in children(expr)
    )


def _own(expr: Expr | None, width: int) -> bool:
    """Whether an expression reads the row behind the `width` rows outside, and nothing else."""
    parts = () if expr is None else walk(expr)
    return not any(
        isinstance(each, Ask | Variable) or (isinstance(each, Field) and each.input != width) for each in parts
    )
