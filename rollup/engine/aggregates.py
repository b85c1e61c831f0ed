"""Aggregate functions of the engine, declared once each: what is kept, how a value enters, leaves and merges, the result.

The lines are Python over the names of the slots (`{n}`, `{total}` …) and the value `{x}` (with further arguments `{y}`,
`{z}`), so that the row executor and the compiled columnar cores are generated from the same declaration, and no column
name is in it. A slot's `start` is a Python expression. Nulls do not enter where `skips` is true. `leave` None: values
never leave (the *ever* functions); a window then refuses the aggregate, or keeps it growing where the language says so.
`merge` adds another state, whose slots are `{o_n}` …; it is a commutative monoid (tests/engine/test_aggregate_laws.py).

The rollups' partial columns (`rollup/plan/aggregates.py`) are the same functions printed as SQL; a test holds them equal.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from typing import Any

from sortedcontainers import SortedList

from rollup.core.errors import PlanError
from rollup.engine import moments
from rollup.engine.sketches import distinct_estimate
from rollup.engine.types import BOOL, DECIMAL, DOUBLE, LONG, DataType, Kind


@dataclass(frozen=True)
class Aggregate:
    """An aggregate function; see the module for the form of its lines.

    >>> SUM.enter
    '{n} += 1; {total} += {x}'
    """

    name: str
    slots: Mapping[str, str]
    enter: str
    leave: str | None
    value: str
    result: Callable[[Sequence[DataType]], DataType]
    merge: str | None = None
    skips: bool = True
    arguments: tuple[int, int] = (1, 1)
    objects: Mapping[str, Any] = field(default_factory=dict[str, Any])


def _number(result: Callable[[DataType], DataType]) -> Callable[[Sequence[DataType]], DataType]:
    def check(types: Sequence[DataType]) -> DataType:
        if not types[0].numeric and types[0].kind not in (Kind.ANY, Kind.NULL, Kind.DURATION):
            raise PlanError(f"needs a number, not {types[0]}")
        return result(types[0])

    return check


def _mean(kind: DataType) -> DataType:
    return DECIMAL if kind.kind is Kind.DECIMAL else DOUBLE


def _first(types: Sequence[DataType]) -> DataType:
    return types[0]


def _double(types: Sequence[DataType]) -> DataType:
    return DOUBLE


def _long(types: Sequence[DataType]) -> DataType:
    return LONG


SORTED = "sorted_list()"
"""A multiset in order: what min and max need when values leave in any order."""

COUNT = Aggregate("count", {"n": "0"}, "{n} += 1", "{n} -= 1", "{n}", _long, merge="{n} += {o_n}", arguments=(0, 1))
SUM = Aggregate(
    "sum",
    {"n": "0", "total": "0"},
    "{n} += 1; {total} += {x}",
    "{n} = max({n} - 1, 0); {total} = {total} - {x} if {n} else 0",
    "{total} if {n} else None",
    _number(lambda kind: kind),
    merge="{n} += {o_n}; {total} += {o_total}",
)
AVG = Aggregate(
    "avg",
    SUM.slots,
    SUM.enter,
    SUM.leave,
    "mean({total}, {n}) if {n} else None",
    _number(_mean),
    merge=SUM.merge,
)
MIN = Aggregate(
    "min", {"values": SORTED}, "{values}.add({x})", "{values}.discard({x})", "{values}[0] if {values} else None", _first,
    merge="{values}.update({o_values})",
)  # fmt: skip
MAX = Aggregate("max", MIN.slots, MIN.enter, MIN.leave, "{values}[-1] if {values} else None", _first, merge=MIN.merge)
MEDIAN = Aggregate(
    "median", MIN.slots, MIN.enter, MIN.leave, "middle({values})", _number(lambda kind: DOUBLE), merge=MIN.merge
)
MINEVER = Aggregate(
    "minever", {"least": "None"}, "{least} = {x} if {least} is None or {x} < {least} else {least}", None, "{least}", _first,
    merge="{least} = {o_least} if {least} is None or ({o_least} is not None and {o_least} < {least}) else {least}",
)  # fmt: skip
MAXEVER = Aggregate(
    "maxever", {"most": "None"}, "{most} = {x} if {most} is None or {x} > {most} else {most}", None, "{most}", _first,
    merge="{most} = {o_most} if {most} is None or ({o_most} is not None and {o_most} > {most}) else {most}",
)  # fmt: skip
_MOMENTS = {"n": "0", "mean": "0.0", "m2": "0.0"}
_MOMENTS_IN = "{n} += 1; d = {x} - {mean}; {mean} += d / {n}; {m2} += d * ({x} - {mean})"
_MOMENTS_OUT = "{n}, {mean}, {m2} = moments_without({n}, {mean}, {m2}, {x})"
_MOMENTS_MERGE = "{n}, {mean}, {m2} = moments_merged({n}, {mean}, {m2}, {o_n}, {o_mean}, {o_m2})"
STDDEV = Aggregate(
    "stddev", _MOMENTS, _MOMENTS_IN, _MOMENTS_OUT, "sqrt({m2} / ({n} - 1)) if {n} > 1 else None",
    _number(lambda kind: DOUBLE), merge=_MOMENTS_MERGE,
)  # fmt: skip
VARIANCE = Aggregate(
    "variance", _MOMENTS, _MOMENTS_IN, _MOMENTS_OUT, "{m2} / ({n} - 1) if {n} > 1 else None",
    _number(lambda kind: DOUBLE), merge=_MOMENTS_MERGE,
)  # fmt: skip
STDDEV_POPULATION = Aggregate(
    "stddev of the population", _MOMENTS, _MOMENTS_IN, _MOMENTS_OUT, "sqrt({m2} / {n}) if {n} else None",
    _number(lambda kind: DOUBLE), merge=_MOMENTS_MERGE,
)  # fmt: skip
AVEDEV = Aggregate(
    "avedev", MIN.slots, MIN.enter, MIN.leave, "mean_deviation({values})", _number(lambda kind: DOUBLE), merge=MIN.merge
)
DISTINCT_COUNT = Aggregate(
    "distinctcount", {"counts": "{}"}, "{counts}[{x}] = {counts}.get({x}, 0) + 1", "drop_one({counts}, {x})",
    "len({counts})", _long, merge="add_counts({counts}, {o_counts})",
)  # fmt: skip
ALL_TRUE = Aggregate(
    "all true", {"yes": "0", "no": "0"}, "{yes} += 1 if {x} else 0; {no} += 0 if {x} else 1",
    "{yes} -= 1 if {x} else 0; {no} -= 0 if {x} else 1", "{yes} > 0 and {no} == 0", lambda types: BOOL,
    merge="{yes} += {o_yes}; {no} += {o_no}",
)  # fmt: skip
ANY_TRUE = Aggregate(
    "any true", ALL_TRUE.slots, ALL_TRUE.enter, ALL_TRUE.leave, "{yes} > 0", lambda types: BOOL, merge=ALL_TRUE.merge
)
FIRST_EVER = Aggregate(
    "firstever", {"seen": "False", "value": "None"},
    "{value} = {value} if {seen} else {x}; {seen} = True", None, "{value}", _first, skips=False,
)  # fmt: skip
LAST_EVER = Aggregate("lastever", {"value": "None"}, "{value} = {x}", None, "{value}", _first, skips=False)
COUNT_EVER = Aggregate("countever", {"n": "0"}, "{n} += 1", None, "{n}", _long, merge="{n} += {o_n}", arguments=(0, 1))


def rate(second: int, span: int) -> Aggregate:
    """Rows a second over the last `span`; the argument is the time. Null until `span` has passed once."""
    return Aggregate(
        f"rate over {span}", {"times": "[]", "full": "False"},
        f"{{times}}.append({{x}}); {{full}} = drop_early({{times}}, {{x}} - {span}) or {{full}}", None,
        f"len({{times}}) * {second} / {span} if {{full}} else None", _double, skips=False,
    )  # fmt: skip


def rate_by(second: int) -> Aggregate:
    """What is in (rows, or the sum of the second argument) a second, from the time of the last row that left to the
    newest; the first argument is a row's time. Null until a row has left."""
    return Aggregate(
        "rate", {"total": "0.0", "newest": "0", "oldest": "None"},
        "{newest} = {x}; {total} += {y}", "{oldest} = {x}; {total} -= {y}",
        f"per_time({{total}} * {second}, {{newest}} - {{oldest}}) if {{oldest}} is not None else None", _double,
        arguments=(2, 2),
    )  # fmt: skip


HLL = Aggregate(
    "hll", {"seen": "set()"}, "{seen}.add({x})", None, "distinct_estimate({seen})", _long, merge="{seen}.update({o_seen})"
)  # fmt: skip
"""How many different values, exact for a few thousand, then estimated within 2 %."""
CMS = Aggregate(
    "cms", {"counts": "{}"}, "{counts}[{x}] = {counts}.get({x}, 0) + 1", None, "max({counts}.values(), default=0)", _long,
    merge="add_counts({counts}, {o_counts})",
)  # fmt: skip
"""How often the most frequent value came; an estimate, over columns, of more than a few thousand different values."""
CMS_OF = Aggregate(
    "cms of", {"counts": "{}", "of": "None"}, "{counts}[{x}] = {counts}.get({x}, 0) + 1; {of} = {y}", None,
    "{counts}.get({of}, 0)", _long, arguments=(2, 2),
)  # fmt: skip
"""How often the value that the second argument names came."""


def _value_at(name: str, sign: str) -> Aggregate:
    better = f"{{key}} is None or {{x}} {sign} {{key}}"
    return Aggregate(
        name,
        {"key": "None", "value": "None"},
        f"{{value}}, {{key}} = ({{y}}, {{x}}) if {better} else ({{value}}, {{key}})",
        None,
        "{value}",
        lambda types: types[1],
        arguments=(2, 2),
    )


LEAST_BY, MOST_BY = _value_at("value at the least", "<"), _value_at("value at the most", ">")
"""The second argument of the first row whose first argument is the least, or the most, of all."""


def _over_values(name: str, value: str) -> Aggregate:
    """An aggregate that is computed from all values that are in."""
    return Aggregate(
        name, MIN.slots, MIN.enter, MIN.leave, f"{value}({{values}})", _number(lambda kind: DOUBLE), merge=MIN.merge
    )


GEOMETRIC_MEAN = _over_values("geomean", "geometric_mean")
SKEWNESS = _over_values("skewness", "skewness")
KURTOSIS = _over_values("kurtosis", "kurtosis")
SPREAD_OF_SAMPLE = _over_values("variance of a sample, 0 of one value", "spread_of_sample")
DEVIATION_OF_SAMPLE = _over_values("deviation of a sample, 0 of one value", "deviation_of_sample")
SUM_OF_SQUARES = Aggregate(
    "sum of squares", {"n": "0", "total": "0.0"}, "{n} += 1; {total} += {x} * {x}",
    "{n} -= 1; {total} = {total} - {x} * {x} if {n} else 0.0", "{total} if {n} else None",
    _number(lambda kind: DOUBLE), merge="{n} += {o_n}; {total} += {o_total}",
)  # fmt: skip


def custom(name: str, functions: Mapping[str, Callable[..., Any]], arguments: Sequence[Any] = ()) -> Aggregate:
    """An aggregate of four functions: `start()`, `enter(state, x)`, `leave(state, x)`, `value(state)`.

    The state they pass on is plain values. `arguments` go to `start`.

    >>> last = custom("last", {"start": lambda: None, "enter": lambda s, x: x, "leave": lambda s, x: s, "value": lambda s: s})
    >>> last.enter
    '{state} = f_enter({state}, {x})'
    """
    objects = {
        **{f"f_{word}": functions[word] for word in ("start", "enter", "leave", "value")},
        "f_arguments": arguments,
    }
    enter, leave = "{state} = f_enter({state}, {x})", "{state} = f_leave({state}, {x})"
    return Aggregate(
        name, {"state": "f_start(*f_arguments)"}, enter, leave, "f_value({state})", _double, objects=objects
    )


def mean(total: Any, n: int) -> Any:
    """The mean of a sum: decimals to 34 digits, all else a double."""
    from decimal import Decimal

    from rollup.engine.operators import divide_decimal

    return divide_decimal(total, Decimal(n)) if isinstance(total, Decimal) else total / n


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
    center = sum(values) / len(values)
    return sum(abs(value - center) for value in values) / len(values)


def moments_without(n: int, center: float, m2: float, x: float) -> tuple[int, float, float]:
    """Count, mean and sum of squared distances after a value has left."""
    if n <= 1:
        return 0, 0.0, 0.0
    before = center
    center = (n * center - x) / (n - 1)
    return n - 1, center, max(0.0, m2 - (x - before) * (x - center))  # rounding must not make a root imaginary


def moments_merged(n: int, center: float, m2: float, n2: int, center2: float, other: float) -> tuple[int, float, float]:
    """Count, mean and sum of squared distances of two groups together (Chan's formula)."""
    if n + n2 == 0:
        return 0, 0.0, 0.0
    gap = center2 - center
    total = n + n2
    return total, center + gap * n2 / total, m2 + other + gap * gap * n * n2 / total


def drop_early(times: list[int], limit: int) -> bool:
    """Let go of the times up to `limit`, from the front; whether there were any."""
    early = sum(1 for _ in takewhile(lambda time: time <= limit, times))
    del times[:early]
    return early > 0


def per_time(amount: float, span: int) -> float:
    """An amount a unit of time; in no time endless, or no number."""
    return amount / span if span else math.nan if not amount else math.copysign(math.inf, amount)


def drop_one(counts: dict[Any, int], value: Any) -> None:
    """One occurrence of a value less; the last takes the value with it."""
    if counts.get(value, 0) <= 1:
        counts.pop(value, None)
    else:
        counts[value] -= 1


def add_counts(counts: dict[Any, int], more: Mapping[Any, int]) -> None:
    """The occurrences of another state as well."""
    for value, n in more.items():
        counts[value] = counts.get(value, 0) + n


HELPERS: Mapping[str, Callable[..., Any]] = {
    "sqrt": math.sqrt,  # a power of one half is another double in compiled loops
    "sorted_list": SortedList,
    "mean": mean,
    "middle": middle,
    "mean_deviation": mean_deviation,
    "moments_without": moments_without,
    "moments_merged": moments_merged,
    "geometric_mean": moments.geometric_mean,
    "skewness": moments.skewness,
    "kurtosis": moments.kurtosis,
    "spread_of_sample": moments.spread_of_sample,
    "deviation_of_sample": moments.deviation_of_sample,
    "drop_one": drop_one,
    "drop_early": drop_early,
    "per_time": per_time,
    "add_counts": add_counts,
    "distinct_estimate": distinct_estimate,
}
"""The functions that the lines of the declarations may call."""
