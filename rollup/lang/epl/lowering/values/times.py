"""Lengths of time and crontabs, in the engine's clock unit."""

from __future__ import annotations

from typing import Any

from rollup.core.crontabs import Crontab, Days
from rollup.engine import operators as op
from rollup.engine.expressions import Call, Const, Expr
from rollup.engine.operators import Operator
from rollup.engine.types import LONG
from rollup.lang.epl.catalog import problem
from rollup.lang.epl.lowering.values.expressions import constant, lower
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope
from rollup.lang.epl.tree import expressions as ex

_SECONDS: dict[str, float] = {
    "week": 604_800, "day": 86_400, "hour": 3_600, "minute": 60, "second": 1, "millisecond": 1e-3, "microsecond": 1e-6,
}  # fmt: skip
_WHOLE = Operator("whole span", lambda value: round(value))


def span(node: ex.Expression, scope: Scope, what: str) -> int:
    """A length of time that is known at once, in clock units; a bare number is seconds."""
    if isinstance(node, ex.Period):
        total = 0.0
        for quantity, unit in node.parts:
            total += _number(constant(quantity, scope, what), quantity) * _seconds(unit, node)
    else:
        total = _number(constant(node, scope, what), node)
    found = round(total * scope.catalog.second)
    if found < 0:
        raise problem(f"{what} needs a length of time that is not negative", node)
    return found


def span_expr(node: ex.Expression, scope: Scope, what: str) -> Expr:
    """A length of time that may depend on tags or variables, in clock units."""
    parts = node.parts if isinstance(node, ex.Period) else ((node, "second"),)
    total: Expr | None = None
    for quantity, unit in parts:
        value = lower(quantity, scope)
        if not value.type.numeric:
            raise problem(f"{what} needs a number, not `{render(quantity)}`", quantity, "10 sec")
        factor = Const(_seconds(unit, node) * scope.catalog.second, LONG)
        product = Call(op.MULTIPLY, (value, factor), LONG)
        total = product if total is None else Call(op.ADD, (total, product), LONG)
    assert total is not None
    return Call(_WHOLE, (total,), LONG)


def _seconds(unit: str, node: ex.Expression) -> float:
    if unit not in _SECONDS:
        raise problem(f"a {unit} has no fixed length", node, "use days or weeks")
    return _SECONDS[unit]


def _number(value: Any, node: ex.Expression) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise problem(f"`{render(node)}` is not a length of time", node, "10 sec, or a number of seconds")
    return value


# crontabs

_FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 6),
    ("second", 0, 59),
)


def crontab(node: ex.Crontab, scope: Scope) -> Crontab:
    """A crontab; fields that are missing are `*`, the second 0. Raises PlanError for values out of range."""
    found = [_field(field, place, scope) for place, field in enumerate(node.fields[:6])]
    seconds = found[5] if len(found) > 5 else frozenset({0})
    every: list[Any] = [
        frozenset(range(low, high + 1)) if each is None else each
        for each, (_, low, high) in zip((*found[:5], seconds), _FIELDS, strict=True)
    ]
    days, weekdays = found[2], found[4]
    return Crontab(every[0], every[1], days, every[3], weekdays, every[5], scope.catalog.second)


def _field(node: ex.Expression, place: int, scope: Scope) -> Days:
    name, low, high = _FIELDS[place]

    def number(part: ex.Expression) -> int:
        value = constant(part, scope, f"the {name} of a crontab")
        if not isinstance(value, int) or not low <= value <= high:
            raise problem(f"`{render(part)}` is no {name}", part, f"{low} to {high}")
        return value

    match node:
        case ex.CronAny():
            return None
        case ex.CronStep():
            step = constant(node.step, scope, "the step of a crontab")
            if not isinstance(step, int) or step < 1:
                raise problem(f"`{render(node.step)}` is no step", node, "1 or more")
            return frozenset(range(low, high + 1, step))
        case ex.CronRange():
            return frozenset(range(number(node.low), number(node.high) + 1))
        case ex.CronList():
            parts = [_field(item, place, scope) for item in node.items]
            return frozenset(value for part in parts if isinstance(part, frozenset) for value in part)
        case ex.CronLast() if place in (2, 4):
            return ("last", None if node.day is None else number(node.day))
        case ex.CronWeekday() if place == 2:
            return ("weekday", None if node.day is None else number(node.day))
        case ex.CronLast() | ex.CronWeekday():
            raise problem(f"`{render(node)}` cannot be the {name}", node)
        case _:
            return frozenset({number(node)})
