"""Arithmetic of decimals without rounding: Python's own operators keep 28 digits and drop the rest in silence."""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal, Inexact, InvalidOperation
from functools import reduce

from rollup.engine.operators import Operator

_DIGITS = 100_000
"""More than sums and products of real amounts ever need; without an end `1E+999999999 + 1` would take all memory."""
_EXACT = Context(prec=_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation])
_ENDLESS = 34
"""The digits of a quotient that has no end."""

add, subtract = _EXACT.add, _EXACT.subtract


def divide(a: Decimal, b: Decimal) -> Decimal | None:
    """The quotient with all its digits, of one that has no end 34 of them, half even; by zero null.

    >>> divide(Decimal("1e-40"), Decimal(8)), divide(Decimal(1), Decimal(3)), divide(Decimal(1), Decimal(0))
    (Decimal('1.25E-41'), Decimal('0.3333333333333333333333333333333333'), None)
    """
    if not b:
        return None
    enough = len(a.as_tuple().digits) + math.ceil(len(b.as_tuple().digits) * 10 / 3)  # for a quotient that has an end
    try:
        return _quotients(enough, Inexact).divide(a, b)
    except Inexact:
        return _quotients(_ENDLESS).divide(a, b)


def _quotients(digits: int, *traps: type[Inexact]) -> Context:
    return Context(prec=digits, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[InvalidOperation, *traps])


def remainder(a: Decimal, b: Decimal) -> Decimal | None:
    """The remainder; null by zero, and where the whole quotient has too many digits to be kept."""
    try:
        return _EXACT.remainder(a, b)
    except InvalidOperation:
        return None


def total(values: Iterable[Decimal]) -> Decimal:
    """The sum of decimals."""
    return reduce(add, values, Decimal(0))


ADD = Operator("+ decimal", add)
SUBTRACT = Operator("- decimal", subtract)
MULTIPLY = Operator("* decimal", _EXACT.multiply)
NEGATE = Operator("negate decimal", _EXACT.minus)
DIVIDE = Operator("/ decimal", divide)
REMAINDER = Operator("% decimal", remainder)
ARITHMETIC = {"+": ADD, "-": SUBTRACT, "*": MULTIPLY, "/": DIVIDE, "%": REMAINDER}
