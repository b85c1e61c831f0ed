"""Moments of some values, for the aggregates that are computed from all values at once; no value, no moment."""

from __future__ import annotations

import math
from collections.abc import Sequence


def geometric_mean(values: Sequence[float]) -> float | None:
    """exp of the mean of the logarithms; null where one is not above zero.

    >>> geometric_mean([1.0, 4.0])
    2.0
    """
    if not values or min(values) <= 0:
        return None
    return math.exp(sum(math.log(value) for value in values) / len(values))


def spread_of_sample(values: Sequence[float]) -> float | None:
    """The variance of a sample, 0 of one value.

    >>> spread_of_sample([1.0, 3.0]), spread_of_sample([5.0])
    (2.0, 0.0)
    """
    if not values:
        return None
    if len(values) == 1:
        return 0.0
    center = sum(values) / len(values)
    return sum((value - center) ** 2 for value in values) / (len(values) - 1)


def skewness(values: Sequence[float]) -> float | None:
    """The skewness of a sample; null below three values and where all are equal."""
    n = len(values)
    if n < 3:
        return None
    standard = _standard(values)
    if standard is None:
        return None
    return n / ((n - 1) * (n - 2)) * sum(each**3 for each in standard)


def kurtosis(values: Sequence[float]) -> float | None:
    """The excess kurtosis of a sample; null below four values and where all are equal."""
    n = len(values)
    if n < 4:
        return None
    standard = _standard(values)
    if standard is None:
        return None
    first = n * (n + 1) / ((n - 1) * (n - 2) * (n - 3)) * sum(each**4 for each in standard)
    return first - 3 * (n - 1) ** 2 / ((n - 2) * (n - 3))


def _standard(values: Sequence[float]) -> list[float] | None:
    spread = math.sqrt(spread_of_sample(values) or 0.0)
    center = sum(values) / len(values)
    return [(value - center) / spread for value in values] if spread else None


def deviation_of_sample(values: Sequence[float]) -> float | None:
    """The standard deviation of a sample, 0 of one value."""
    spread = spread_of_sample(values)
    return None if spread is None else math.sqrt(spread)
