"""What can be computed over columns with the very values of the row executor: expressions, and statements in general."""

from __future__ import annotations

from collections.abc import Iterable

from rollup.engine import operators as op
from rollup.engine.columns.evaluate import takes
from rollup.engine.expressions import All, Any_, Call, Case, Coalesce, Const, Expr, Field, Slot, children
from rollup.engine.rows.plans import Filter, Finish, Select
from rollup.engine.types import DataType, Kind

_COLUMNS = (Kind.BOOL, Kind.INT, Kind.LONG, Kind.DOUBLE, Kind.STRING, Kind.TIMESTAMP, Kind.DURATION)
_WHOLE = (Kind.INT, Kind.LONG, Kind.TIMESTAMP, Kind.DURATION)
KEYS = (Kind.STRING, Kind.INT, Kind.LONG, Kind.BOOL)
_COMPARED = {each.name for each in (op.EQUAL, op.UNEQUAL, op.LESS, op.LESS_EQUAL, op.GREATER, op.GREATER_EQUAL)}
_SAMENESS = {op.EQUAL.name, op.UNEQUAL.name}
_ARITHMETIC = {each.name for each in (op.ADD, op.SUBTRACT, op.MULTIPLY)}


def against(expr: Expr | None) -> str | None:
    """The first reason why an expression cannot be computed over columns; None when it can."""
    if expr is None:
        return None
    match expr:
        case Field() | Slot() | Const():
            known = expr.type.kind in _COLUMNS and not (isinstance(expr, Const) and expr.value is None)
            return None if known else f"a value of type {expr.type}"
        case All() | Any_() | Case() | Coalesce():
            return first(against(child) for child in children(expr))
        case Call():
            return _operator(expr) or first(against(arg) for arg in expr.args)
        case _:
            return f"{type(expr).__name__.lower()} in an expression"


def first(reasons: Iterable[str | None]) -> str | None:
    """The first reason among some."""
    return next((reason for reason in reasons if reason is not None), None)


def _operator(call: Call) -> str | None:
    name, kinds = call.op.name, [arg.type for arg in call.args]
    if name in _COMPARED and not _comparable(kinds, name in _SAMENESS):
        return f"{name} between {' and '.join(map(str, kinds))}"
    if name in _ARITHMETIC and not _doubles(kinds):
        return f"{name} of whole numbers"  # the row executor's do not wrap
    if all(isinstance(arg, Const) for arg in call.args):
        return "an expression of constants"
    return None if takes(call.op) and name != op.NEGATE.name else f"the operator {name}"


def _comparable(kinds: list[DataType], sameness: bool) -> bool:
    one, other = (kind.kind for kind in kinds)
    if one is Kind.BOOL or other is Kind.BOOL:
        return one is other and sameness
    if one is Kind.STRING or other is Kind.STRING:
        return one is other
    exact = (Kind.INT, Kind.DOUBLE)  # Arrow compares a long with a double as doubles, Python exactly
    return (one in _WHOLE and other in _WHOLE) or (one in exact and other in exact)


def _doubles(kinds: list[DataType]) -> bool:
    numbers = {kind.kind for kind in kinds}
    return Kind.DOUBLE in numbers and numbers <= {Kind.DOUBLE, Kind.INT, Kind.LONG}


def filtered(filter: Filter, where: Expr | None = None) -> str | None:
    """The first reason against a filter."""
    equals = (_constant(value) for _, value in filter.equals)
    return first((*equals, against(filter.test), against(where)))


def _constant(value: Expr) -> str | None:
    if not isinstance(value, Const):
        return "a filter with a value that is not a literal"
    known = value.value is not None and value.type.kind in (Kind.STRING, Kind.INT, Kind.LONG)
    return None if known else f"equality with a {value.type}"


def general(plan: Select) -> str | None:
    """The first reason against what surrounds a statement: routes, orders, limits."""
    rate = plan.rate
    reasons = (
        (plan.target is not None or plan.into is not None, "insert into"),
        (plan.finish != Finish(), "distinct, order by or limit"),
        (bool(plan.projection.order), "order by"),
        (rate.after_span is not None or rate.after_events is not None, "output after"),
        (rate.at_end or rate.when is not None or rate.schedule is not None, "output when, at or at the end"),
        (rate.events is not None, "output every so many events"),
    )
    return next((reason for holds, reason in reasons if holds), None)
