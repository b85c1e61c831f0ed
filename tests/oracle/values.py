"""The aggregates over the events of a bucket, as the rulings say: nulls are skipped, whole numbers are exact.

A sum beyond 64 bits is null; a second moment beyond the range of doubles is infinite; avg is sum by count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any

Values = Sequence[Any]


def total(values: Values) -> Any:
    """The sum; None of nothing and beyond 64 bits."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    found = sum(present)
    return found if isinstance(found, float) or -(2**63) <= found < 2**63 else None


def count(values: Values) -> int:
    """How many are not null."""
    return sum(value is not None for value in values)


def average(values: Values) -> float | None:
    """Sum by count, a double."""
    found = total(values)
    return None if found is None else float(found) / count(values)


def mean(values: Values) -> float | None:
    """The exact mean, rounded once."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    if not all(math.isfinite(value) for value in present):
        return sum(present) / len(present)
    return _double(sum(map(Fraction, present)) / len(present))


def moment(values: Values) -> float | None:
    """The sum of squared distances from the mean."""
    present = [value for value in values if value is not None]
    if not present:
        return None
    if not all(math.isfinite(value) for value in present):
        return math.nan
    exact = [Fraction(value) for value in present]
    middle = sum(exact) / len(exact)
    return _double(sum((value - middle) ** 2 for value in exact))


def variance(values: Values) -> float | None:
    """Of the population."""
    found = moment(values)
    return None if found is None else found / count(values)


def deviation(values: Values) -> float | None:
    """The root of the variance."""
    found = variance(values)
    return None if found is None else math.sqrt(found)


def least(values: Values) -> Any:
    """The smallest value that is not null."""
    return min((value for value in values if value is not None), default=None)


def greatest(values: Values) -> Any:
    """The greatest value that is not null."""
    return max((value for value in values if value is not None), default=None)


def distinct(values: Values) -> list[Any] | None:
    """The distinct values, sorted; None of nothing."""
    return sorted({value for value in values if value is not None}) or None


def distinct_count(values: Values) -> int:
    """How many distinct values."""
    return len(distinct(values) or ())


def _double(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


FINAL: dict[str, Callable[[Values], Any]] = {
    "sum": total,
    "count": count,
    "avg": average,
    "min": least,
    "max": greatest,
    "stddev": deviation,
    "variance": variance,
    "distinctcount": distinct_count,
    "first": lambda values: values[0],
    "last": lambda values: values[-1],
}
"""By the name in a select list; the values come in order of (event time, arrival)."""

BASE: dict[str, tuple[tuple[str, Callable[[Values], Any]], ...]] = {
    "sum": (("AGG_SUM", total),),
    "count": (("AGG_COUNT", count),),
    "avg": (("AGG_SUM", total), ("AGG_COUNT", count)),
    "min": (("AGG_MIN", least),),
    "max": (("AGG_MAX", greatest),),
    "stddev": (("AGG_COUNT", count), ("AGG_MEAN", mean), ("AGG_M2", moment)),
    "variance": (("AGG_COUNT", count), ("AGG_MEAN", mean), ("AGG_M2", moment)),
    "distinctcount": (("AGG_SET", distinct),),
    "first": (("AGG_FIRST", lambda values: values[0]),),
    "last": (("AGG_LAST", lambda values: values[-1]),),
}
"""The stored columns of each aggregate, before the `_argument`."""
