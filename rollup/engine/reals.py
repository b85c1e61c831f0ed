"""Functions of doubles as IEEE 754 has them: what is beyond them is infinite, what is not defined is NaN, nothing fails."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Real = Callable[[float], float]


class _Greatest(float):
    """NaN with a place in an order: equal to itself and above all numbers, as databases and Java sort it."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Greatest)

    def __ne__(self, other: object) -> bool:
        return not isinstance(other, _Greatest)

    def __lt__(self, other: object) -> bool:
        return False

    def __le__(self, other: object) -> bool:
        return self == other

    def __gt__(self, other: object) -> bool:
        return self != other

    def __ge__(self, other: object) -> bool:
        return True

    def __hash__(self) -> int:
        return hash(_Greatest)


_NAN = _Greatest(math.nan)


def orderable(value: Any) -> Any:
    """A value as it stands in an order; comparing NaN itself says nothing, and would break every sorted list. A zero has no
    sign, since values leave by equality.

    >>> sorted([orderable(math.nan), 2.0, 1.0]), orderable("a"), orderable(-0.0)
    ([1.0, 2.0, nan], 'a', 0.0)
    """
    if isinstance(value, float):
        return _NAN if value != value else value + 0.0
    return _NAN if value != value else value


def ordered_value(found: Any) -> Any:
    """The value that `orderable` was asked for.

    >>> ordered_value(orderable(math.nan)) > 1.0
    False
    """
    return math.nan if found is _NAN else found


def finite(of: Callable[[float], int]) -> Real:
    """A rounding; what has no end, and what is no number, stays. A zero has the sign of the number.

    >>> finite(math.ceil)(1.5), finite(math.ceil)(-0.5), finite(math.floor)(-math.inf)
    (2.0, -0.0, -inf)
    """
    return lambda x: (float(of(x)) or math.copysign(0.0, x)) if math.isfinite(x) else x


def half_up(x: float) -> float:
    """The whole number next to a number, the one above it where two are; what has no end, and what is no number, stays.

    >>> half_up(2.5), half_up(-2.5), half_up(0.49999999999999994), half_up(math.inf)
    (3.0, -2.0, 0.0, inf)
    """
    if not math.isfinite(x):
        return x
    below = math.floor(x)
    return float(below + (x - below >= 0.5))  # a half added to the number itself might be rounded


def circular(of: Real) -> Real:
    """A function of an angle; of an endless one it is no number.

    >>> circular(math.cos)(0.0), circular(math.sin)(math.inf)
    (1.0, nan)
    """
    return lambda x: math.nan if math.isinf(x) else of(x)


def root(x: float) -> float:
    """The square root.

    >>> root(4.0), root(-1.0)
    (2.0, nan)
    """
    return math.sqrt(x) if x >= 0 else math.nan


def exponential(x: float) -> float:
    """e to the power of a number.

    >>> exponential(0.0), exponential(1000.0)
    (1.0, inf)
    """
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def logarithm(of: Real) -> Real:
    """A logarithm.

    >>> logarithm(math.log10)(100.0), logarithm(math.log)(0.0), logarithm(math.log)(-1.0)
    (2.0, -inf, nan)
    """
    return lambda x: of(x) if x > 0 else (-math.inf if x == 0 else math.nan)


def power(x: float, y: float) -> float:
    """One number to the power of another.

    >>> power(2, 3), power(0, -1), power(-0.0, -1), power(-8, 0.5), power(-10, 401), power(-1e200, 2.5), power(1, math.nan)
    (8.0, inf, -inf, nan, -inf, nan, nan)
    """
    if math.isnan(y) or (math.isinf(y) and abs(x) == 1):  # where Python says 1
        return math.nan
    try:
        found = float(x) ** y
    except ZeroDivisionError:
        return math.copysign(math.inf, x) if y % 2 == 1 else math.inf
    except OverflowError:
        return math.inf if x > 0 or y % 2 == 0 else -math.inf if y % 2 == 1 else math.nan
    return math.nan if isinstance(found, complex) else found
