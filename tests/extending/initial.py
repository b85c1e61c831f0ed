"""A toy function: the first letter of a text."""

from __future__ import annotations

from sqlglot import exp

from rollup.plan.functions import Arguments, Bound, Function
from rollup.plan.types import Type


def _initial(arguments: Arguments) -> Bound:
    return Bound(exp.func("LEFT", arguments[0].sql, exp.Literal.number(1)), Type.STRING)


INITIAL = Function(1, 1, _initial)
