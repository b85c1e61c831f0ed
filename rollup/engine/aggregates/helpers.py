"""The functions that the lines of the declarations may call."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from operator import add
from typing import Any

from sortedcontainers import SortedList

from rollup.core.json_line import json_line
from rollup.core.sketches import QUANTILES
from rollup.engine import decimals
from rollup.engine.aggregates import moments
from rollup.engine.aggregates.partials import ROUNDING
from rollup.engine.aggregates.sketches import distinct_estimate
from rollup.engine.operators import single, wrapped
from rollup.engine.reals import orderable, ordered_value
from rollup.engine.row import comparable


def mean(total: Any, n: int) -> Any:
    """The mean of a sum: of decimals one, all else a double."""
    return decimals.divide(total, Decimal(n)) if isinstance(total, Decimal) else total / n


def middle(values: Sequence[float]) -> float | None:
    """The median: of an even number of values the mean of the two in the middle."""
    if not values:
        return None
    half = len(values) // 2
    return float(values[half]) if len(values) % 2 else (values[half - 1] + values[half]) / 2


def mean_deviation(values: Sequence[float]) -> float | None:
    """The mean distance from the mean."""
    if not values:
        return None
    center = reduce(add, values) / len(values)
    return reduce(add, (abs(value - center) for value in values)) / len(
        values
    )  # `sum` is another one from Python 3.12 on


def moments_without(n: int, center: float, m2: float, x: float) -> tuple[int, float, float]:
    """Count, mean and sum of squared distances after a value has left."""
    if n <= 1:
        return 0, 0.0, 0.0
    before = center
    center = (n * center - x) / (n - 1)
    if n == 2:  # one value has no distance from itself, also after rounding
        return 1, center, 0.0
    return n - 1, center, max(0.0, m2 - (x - before) * (x - center))  # rounding must not make a root imaginary


def moments_merged(n: int, center: float, m2: float, n2: int, center2: float, other: float) -> tuple[int, float, float]:
    """Count, mean and sum of squared distances of two groups together (Chan's formula)."""
    if n + n2 == 0:
        return 0, 0.0, 0.0
    gap = center2 - center
    total = n + n2
    return total, center + gap * n2 / total, m2 + other + gap * gap * n * n2 / total


def comoments_without(n: int, at: float, to: float, c: float, x: float, y: float) -> tuple[int, float, float, float]:
    """Count, both means and the sum of products of distances after a pair of values has left."""
    if n <= 1:
        return 0, 0.0, 0.0, 0.0
    before = at, to
    at, to = (n * at - x) / (n - 1), (n * to - y) / (n - 1)
    return n - 1, at, to, 0.0 if n == 2 else c - (x - before[0]) * (y - to)


def comoments_merged(
    n: int, at: float, to: float, c: float, n2: int, at2: float, to2: float, other: float
) -> tuple[int, float, float, float]:
    """Count, both means and the sum of products of distances of two groups together."""
    if n + n2 == 0:
        return 0, 0.0, 0.0, 0.0
    total, x, y = n + n2, at2 - at, to2 - to
    return total, at + x * n2 / total, to + y * n2 / total, c + other + x * y * n * n2 / total


def correlated(n: int, c: float, at: float, spread: float, to: float, other: float) -> float | None:
    """The correlation of a sum of products of distances, and of each side the mean and the sum of squares.

    Null where one side is constant: its distances are then no more than what rounding leaves.
    """
    if not n or any(m2 == 0 or math.sqrt(m2 / n) < abs(mean) * ROUNDING for mean, m2 in ((at, spread), (to, other))):
        return None
    found = c / (math.sqrt(spread) * math.sqrt(other))
    return math.copysign(1.0, found) if 1 < abs(found) < 2 else found


def most_common(counts: Mapping[Any, int]) -> Any:
    """The most frequent value, of several the least; None of none.

    >>> most_common({3: 1, 2: 2, 1: 2})
    1
    """
    return ordered_value(min((-n, orderable(value)) for value, n in counts.items())[1]) if counts else None


def drop_early(times: list[int], now: int, span: int) -> bool:
    """Let go of the times that are `span` old, once the first is twice as old; whether there were any."""
    if times[0] > now - 2 * span:
        return False
    del times[: bisect_right(times, now - span)]
    return True


def rated(times: list[int], full: bool, span: int, second: int) -> float | None:
    """How many times a second there are in the last `span` before the newest; None until that has passed once."""
    early = bisect_right(times, times[-1] - span) if times else 0
    return (len(times) - early) * second / span if full or early else None


def per_time(amount: float, span: int) -> float:
    """An amount a unit of time; in no time endless, or no number."""
    return amount / span if span else math.nan if not amount else math.copysign(math.inf, amount)


def add_each(counts: dict[Any, int], values: Sequence[Any]) -> None:
    """The values of a set come."""
    for value in values:
        add_one(counts, value)


def drop_each(counts: dict[Any, int], values: Sequence[Any]) -> None:
    """The values of a set leave."""
    for value in values:
        drop_one(counts, value)


def discard(values: SortedList, value: Any) -> None:
    """A value leaves; of equal decimals the one with its digits, so that 1.0 stays when 1.00 leaves."""
    key = orderable(value)
    if isinstance(key, Decimal):
        alike = values.irange(key, key)
        place = next((n for n, each in enumerate(alike) if each.as_tuple() == key.as_tuple()), None)
        if place is not None:
            del values[values.bisect_left(key) + place]
        return
    values.discard(key)


def add_one(counts: dict[Any, int], value: Any) -> None:
    """One occurrence of a value more."""
    key = comparable(value)
    counts[key] = counts.get(key, 0) + 1


def drop_one(counts: dict[Any, int], value: Any) -> None:
    """One occurrence of a value less; the last takes the value with it."""
    key = comparable(value)
    if counts.get(key, 0) <= 1:
        counts.pop(key, None)
    else:
        counts[key] -= 1


def add_counts(counts: dict[Any, int], more: Mapping[Any, int]) -> None:
    """The occurrences of another state as well."""
    for value, n in more.items():
        counts[value] = counts.get(value, 0) + n


def numbers(value: float) -> tuple[float, ...]:
    """A number as one that has a rank; NaN has none."""
    number = float(value)
    return () if math.isnan(number) else (number,)


def take_out(values: Any, value: float) -> None:
    """A number that had entered by `numbers` leaves."""
    for number in numbers(value):
        values.discard(number)


def ranked(values: Sequence[float], rank: float) -> float | None:
    """The value at a rank from 0 to 1, None of none.

    >>> ranked([1.0, 2.0, 3.0], 0.5)
    2.0
    """
    return values[min(int(rank * len(values)), len(values) - 1)] if values else None


def all_ranked(values: Sequence[float]) -> str | None:
    """The values at the usual ranks, as a JSON object."""
    return json_line({str(rank): ranked(values, rank) for rank in QUANTILES}) if values else None


def most_frequent(counts: Mapping[Any, int], most: int) -> str | None:
    """The `most` most frequent values with their counts as JSON, most frequent first, the alphabet among equals.

    >>> most_frequent({"a": 2, "b": 1}, 1)
    '[["a", 2]]'
    """
    texts = sorted(((_text(value), n) for value, n in counts.items()), key=lambda pair: (-pair[1], pair[0]))
    return json_line([list(pair) for pair in texts[:most]]) if texts else None


def _text(value: Any) -> str:
    return ("true" if value else "false") if isinstance(value, bool) else str(value)


HELPERS: Mapping[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,  # a power of one half is another double in compiled loops
    "single": single,
    "add_decimals": decimals.add,
    "subtract_decimals": decimals.subtract,
    "sorted_list": SortedList,
    "comparable": comparable,
    "orderable": orderable,
    "ordered_value": ordered_value,
    "mean": mean,
    "wrapped": wrapped,
    "middle": middle,
    "mean_deviation": mean_deviation,
    "moments_without": moments_without,
    "moments_merged": moments_merged,
    "comoments_without": comoments_without,
    "comoments_merged": comoments_merged,
    "correlated": correlated,
    "most_common": most_common,
    "geometric_mean": moments.geometric_mean,
    "skewness": moments.skewness,
    "kurtosis": moments.kurtosis,
    "spread_of_sample": moments.spread_of_sample,
    "deviation_of_sample": moments.deviation_of_sample,
    "discard": discard,
    "add_one": add_one,
    "drop_one": drop_one,
    "add_each": add_each,
    "drop_each": drop_each,
    "drop_early": drop_early,
    "rated": rated,
    "per_time": per_time,
    "add_counts": add_counts,
    "distinct_estimate": distinct_estimate,
    "numbers": numbers,
    "take_out": take_out,
    "ranked": ranked,
    "all_ranked": all_ranked,
    "most_frequent": most_frequent,
}
