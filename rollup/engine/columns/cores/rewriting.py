"""Expressions made from others: the leaves replaced, what is around them kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from rollup.engine.expressions import All, Any_, Call, Case, Coalesce, Expr, Field


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
