"""Expressions made from others: the leaves replaced, what is around them kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rollup.core.descriptions import descendants
from rollup.engine.expressions import All, Any_, Ask, Call, Case, Coalesce, Const, Expr, Field
from rollup.engine.rows.plans import Arriving, Select
from rollup.engine.types import BOOL


def inside(expr: Expr, change: Callable[[Expr], Expr]) -> Expr:
    """An expression with each of its direct parts changed."""
    match expr:
        case Call() | All() | Any_() | Coalesce():
            return replace(expr, args=tuple(change(arg) for arg in expr.args))
        case Case():
            branches = tuple((change(condition), change(value)) for condition, value in expr.branches)
            return replace(expr, branches=branches, otherwise=change(expr.otherwise))
        case _:
            return expr


def of_one_event(expr: Expr) -> Expr:
    """An expression over the fields of one event, whichever input it was of."""
    return Field(0, expr.index, expr.type) if isinstance(expr, Field) else inside(expr, of_one_event)


def of_arrivals(plan: Select) -> Select:
    """A statement that shows only rows that come, without its asking in what it shows whether they do."""
    asks = bool(plan.lookups) and all(isinstance(each, Arriving) for each in plan.lookups)
    if (
        not asks
        or plan.tells_what_leaves
        or any(isinstance(each, Ask) for each in descendants([plan.where, plan.levels, plan.grouping]))
    ):
        return plan

    def known(expr: Expr) -> Expr:
        return Const(True, BOOL) if isinstance(expr, Ask) else inside(expr, known)

    projection = plan.projection
    having = None if projection.having is None else known(projection.having)
    columns, order = (tuple(map(known, each)) for each in (projection.columns, projection.order))
    return replace(plan, projection=replace(projection, columns=columns, order=order, having=having), lookups=())
