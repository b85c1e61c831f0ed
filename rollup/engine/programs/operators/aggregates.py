"""The functions that the declarations of aggregates call, in the subset."""

from __future__ import annotations

from typing import Any


def mean(total: float, n: int) -> float:
    """The mean of a sum of doubles."""
    return total / n


def mean_of_whole(total: int, n: int) -> float:
    """The mean of a sum of whole numbers of 32 bits, rounded once: also where the sum has more bits than a double.

    Below 2**31 values the quotient has 23 to 32 bits, and fits 64 with 32 more. At least 55 in all are the 53 of a double,
    the one that rounds, and one that says whether there is more.
    """
    if -9007199254740992 <= total <= 9007199254740992:
        return total / n
    rest = (total % n) << 32
    fine = ((total // n) << 32) + rest // n
    return (fine | (1 if rest % n != 0 else 0)) / 4294967296


def orderable(x: Any) -> Any:
    """A value in an order; nothing but numbers stands in one here."""
    return x


def ordered_value(x: Any) -> Any:
    """The value that stood there."""
    return x


def discard(values: Any, x: Any) -> None:
    """A value leaves."""
    values.discard(x)


def middle(values: Any) -> float | None:
    """The median: of an even number of values the mean of the two in the middle."""
    if len(values) == 0:
        return None
    half = len(values) // 2
    return float(values[half]) if len(values) % 2 else (values[half - 1] + values[half]) / 2


def mean_deviation(values: Any) -> float | None:
    """The mean distance from the mean."""
    n = len(values)
    if n == 0:
        return None
    total = values[0]
    i = 1
    while i < n:
        total += values[i]
        i += 1
    center = total / n
    apart = abs(values[0] - center)
    i = 1
    while i < n:
        apart += abs(values[i] - center)
        i += 1
    return apart / n


def moments_without(n: int, center: float, m2: float, x: float) -> tuple[int, float, float]:
    """Count, mean and sum of squared distances after a value has left."""
    if n <= 1:
        return 0, 0.0, 0.0
    before = center
    center = (n * center - x) / (n - 1)
    if n == 2:
        return 1, center, 0.0
    return n - 1, center, max(0.0, m2 - (x - before) * (x - center))
