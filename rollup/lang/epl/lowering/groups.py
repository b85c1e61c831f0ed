"""What is grouped by: dimensions, the sets of them that rollup, cube and grouping sets make, and what beside them is each row's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import combinations

from rollup.core.descriptions import descendants
from rollup.engine.expressions import Expr, Field, RowOf
from rollup.engine.expressions import walk as walk_plan
from rollup.lang.epl.catalog import problem
from rollup.lang.epl.lowering.values.expressions import key
from rollup.lang.epl.lowering.values.methods import of_column
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope, is_aggregate, walk
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm


def grouping_sets(
    groupings: Sequence[sm.Grouping], scope: Scope
) -> tuple[tuple[Expr, ...], tuple[tuple[int, ...], ...]]:
    """The dimensions, and the sets of them that are grouped by, finest first."""
    for node in walk(tuple(groupings)):
        if isinstance(node, ex.Call) and is_aggregate(node):
            raise problem(f"`{render(node)}` is an aggregate and cannot be grouped by", node)
    for grouping in groupings:
        _check_overall(grouping)
    dimensions: list[Expr] = []

    def place(node: ex.Expression) -> int:
        found = key(node, scope)
        if found not in dimensions:
            dimensions.append(found)
        return dimensions.index(found)

    sets: list[tuple[int, ...]] = [()]
    for grouping in groupings:
        sets = [tuple(dict.fromkeys((*left, *right))) for left in sets for right in _expanded(grouping, place)]
    return tuple(dimensions), tuple(dict.fromkeys(sets))


def shows_methods(query: sm.Query, scope: Scope) -> bool:
    """Whether a method of a column is shown that is not itself grouped by: it is each row's, be the column a key or not."""
    grouped = {render(value) for each in query.group_by for value in each.values}
    shown = [each.value for each in (*query.items, *query.order_by)]
    calls = [each for node in shown for each in descendants(node, (sm.Query, ex.Lambda)) if isinstance(each, ex.Call)]
    ends = [each for each in calls if is_aggregate(each) or render(each) in grouped]
    left_out = {id(inner) for each in ends for inner in walk(each)}
    return any(id(each) not in left_out and of_column(each, scope) for each in calls)


def check_having(query: sm.Query, having: Expr | None, dimensions: Sequence[Expr]) -> None:
    """A group passes or fails as one: beside aggregates `having` reads what the groups are made of."""
    made_of = {each for dimension in dimensions for each in walk_plan(dimension) if isinstance(each, Field)}
    rest = [each for each in walk_plan(having) if isinstance(each, (Field, RowOf))] if having is not None else []
    if made_of and any(each not in made_of for each in rest):
        assert query.having is not None
        raise problem("`having` reads a column that is not grouped by", query.having, "where, or group by it too")


def _check_overall(grouping: sm.Grouping) -> None:
    """Raise PlanError for `()` that is not one of several grouping sets, once."""
    if grouping.kind == "combined" and not grouping.values:
        raise problem("`()` stands only in grouping sets", grouping, "without group by there is one group")
    empty = [part for part in grouping.parts if part.kind == "combined" and not part.values]
    if len(empty) > 1 or (empty and len(grouping.parts) == 1):
        raise problem("`()` stands once, beside other sets", empty[-1], "grouping sets((a), ())")


def _expanded(grouping: sm.Grouping, place: Callable[[ex.Expression], int]) -> list[tuple[int, ...]]:
    if grouping.kind in ("value", "combined"):
        return [tuple(place(value) for value in grouping.values)]
    parts = [_expanded(part, place) for part in grouping.parts]
    if grouping.kind == "sets":
        return [each for part in parts for each in part]
    firsts = [part[0] for part in parts]
    n = len(firsts)
    if grouping.kind == "rollup":
        chosen = [tuple(range(length)) for length in range(n, -1, -1)]
    else:
        chosen = [each for size in range(n, -1, -1) for each in combinations(range(n), size)]
    return [tuple(column for number in each for column in firsts[number]) for each in chosen]
