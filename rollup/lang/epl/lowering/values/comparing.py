"""How values are compared with several others: in a list, in a range; the least and the greatest."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from rollup.engine import operators as op
from rollup.engine.compiling import compiled
from rollup.engine.expressions import All, Call, Const, Expr, Field, Slot
from rollup.engine.operators import Operator
from rollup.engine.quantifiers import AMONG
from rollup.engine.types import ANY, BOOL, DECIMAL, DOUBLE, DataType, Kind
from rollup.lang.epl.semantics import CASTS

_ARITHMETIC = (op.ADD, op.SUBTRACT, op.MULTIPLY, op.NEGATE, *op.WRAPPING.values())


def widened(value: Expr, kind: DataType) -> Expr:
    """A whole number as a double, and any number as a BigDecimal, where values of several types meet or one is set."""
    if kind == DECIMAL and value.type.numeric and value.type != DECIMAL:
        return Call(CASTS[Kind.DECIMAL], (value,), kind)
    whole = value.type.integral and kind.kind in (Kind.DOUBLE, Kind.FLOAT)
    return Call(op.TO_DOUBLE, (value,), kind) if whole else value


def as_doubles(value: Expr, other: Expr) -> Expr:
    """A whole number that is compared with a double, as one, where no double may be it; beside a literal that is near zero it may
    stay what an index finds.
    """
    wide = value.type.kind is Kind.LONG or (value.type.kind is Kind.INT and isinstance(value, Slot | Call))
    if not wide or other.type.kind not in (Kind.DOUBLE, Kind.FLOAT):
        return value
    if isinstance(value, Const) and value.value is not None:
        return Const(float(value.value), DOUBLE)
    near = isinstance(other, Const) and isinstance(other.value, (int, float)) and abs(other.value) < op.EXACT
    return value if near else widened(value, DOUBLE)


def _worked_out(bound: Expr) -> Expr:
    """Arithmetic of literals as the literal that it is."""
    if not isinstance(bound, Call) or bound.op not in _ARITHMETIC:
        return bound
    literals = all(isinstance(arg, Const) and arg.value is not None for arg in bound.args)
    return Const(compiled(bound)((), (), None), bound.type) if literals else bound


def between(value: Expr, bounds: tuple[Expr, Expr], closed: tuple[bool, bool], negated: bool) -> Expr:
    """Whether a value is in a range, or out of it; where the bounds are literals in order, comparisons that indexes know."""
    low, high = map(_worked_out, bounds)
    simple = isinstance(value, Field) and value.type.numeric and low.type.numeric and high.type.numeric
    if simple and isinstance(low, Const) and isinstance(high, Const) and low.value <= high.value:
        above = Call(op.GREATER_EQUAL if closed[0] else op.GREATER, (value, low), BOOL)
        below = Call(op.LESS_EQUAL if closed[1] else op.LESS, (value, high), BOOL)
        known, inside = Call(op.NOT_NULL, (value,), BOOL), (above, below)
        return All((known, Call(op.NOT, (All(inside),), BOOL)) if negated else (known, *inside))
    return Call(_within(*closed, negated), (value, low, high), BOOL)


@cache
def _within(low_closed: bool, high_closed: bool, negated: bool) -> Operator:
    """Whether a value is in a range, or out of it, whichever of its bounds is the greater.

    A value that is null is neither in nor out; nothing is in a range that has null for a bound.
    """

    def test(value: Any, low: Any, high: Any) -> bool:
        if value is None:
            return False
        if low is None or high is None:
            return negated
        if low > high:
            low, high = high, low
        inside = (low <= value if low_closed else low < value) and (value <= high if high_closed else value < high)
        return inside is not negated

    return Operator(
        f"{'not ' if negated else ''}within {'[' if low_closed else '('}{']' if high_closed else ')'}",
        test,
        strict=False,
    )


LISTED = Operator("array", lambda *values: list(values), strict=False)
FLAT = Operator(
    "array of all",
    lambda *values: [each for value in values for each in (value if isinstance(value, list) else [value])],
    strict=False,
)
_THERE = Operator("list that is there", lambda values: values or [], strict=False)


def apart(value: Expr, item: Expr) -> bool:
    """Whether `in` looks for a value among the elements of an item, not for the item itself."""
    return item.type.kind is Kind.LIST and value.type.kind is not Kind.LIST


def among(value: Expr, items: Sequence[Expr]) -> Expr:
    """Whether a value is one of several; what is `apart` stands for its elements, and where it is null for none."""
    if len(items) == 1 and items[0].type.kind is Kind.LIST:
        return Call(AMONG, (value, items[0]), BOOL)
    if not any(apart(value, item) for item in items):
        return Call(op.MEMBER, (value, *items), BOOL)
    each = tuple(Call(_THERE, (item,), item.type) if apart(value, item) else item for item in items)
    return Call(AMONG, (value, Call(FLAT, each, DataType(Kind.LIST, element=ANY))), BOOL)
