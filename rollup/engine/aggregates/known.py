"""The aggregate functions there are, one declaration each; `declaration` says what its parts are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from sqlglot import exp

from rollup.core.dialects import Size
from rollup.core.errors import PlanError
from rollup.engine.aggregates import partials
from rollup.engine.aggregates.declaration import Aggregate, Kept
from rollup.engine.aggregates.partials import Find, Partial, double, function, some
from rollup.engine.types import ANY, BOOL, DECIMAL, DOUBLE, LONG, STRING, DataType, Kind


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


def _itself(partial: Partial) -> Kept:
    """A table keeps the value as it is."""
    return Kept((partial,), lambda find, constants: find(partial.name))


def _sketched(partial: Partial, read: str, constants: tuple[int, int] = (0, 0)) -> Kept:
    """A table keeps a sketch, which a function of SQL reads."""
    return Kept((partial,), lambda find, given: function(read, find(partial.name), *given), constants)


def _mean_kept(find: Find, constants: Sequence[exp.Expr]) -> exp.Expr:
    return exp.Div(this=double(find("sum")), expression=some(find("count")), typed=False, safe=True)


def _spread_kept(find: Find, constants: Sequence[exp.Expr]) -> exp.Expr:
    """The variance of the population; null without a value."""
    return exp.Div(this=find("m2"), expression=some(find("count")), typed=False, safe=True)


def _second(partial: Partial) -> Partial:
    """A partial of the second argument."""
    return replace(partial, of=1)


def _correlation_kept(find: Find, constants: Sequence[exp.Expr]) -> exp.Expr:
    """Each root for itself, as the product of the squares may leave the doubles. Null where one side is constant."""
    sides = (find, partials.own(find, 1))
    x, y = (exp.Sqrt(this=side("m2")) for side in sides)
    value = exp.Div(this=find("comoment"), expression=some(exp.Mul(this=x, expression=y)), typed=False, safe=True)
    size = exp.Abs(this=value)
    rounded = exp.and_(
        exp.GT(this=size, expression=exp.convert(1)), exp.LT(this=size.copy(), expression=exp.convert(2))
    )
    cases = [
        exp.If(this=exp.or_(*map(_constant, sides)), true=exp.Null()),
        exp.If(this=rounded, true=double(exp.Sign(this=value.copy()))),
    ]
    return exp.Case(ifs=cases, default=value.copy())


def _constant(find: Find) -> exp.Expr:
    """Whether all values are equal, as far as rounding lets it be seen."""
    distance = exp.Sqrt(this=exp.Div(this=find("m2"), expression=some(find("count")), typed=False, safe=True))
    least = exp.Mul(this=exp.Abs(this=find("mean")), expression=double(exp.convert(partials.ROUNDING)))
    return exp.or_(exp.LT(this=distance, expression=least), exp.EQ(this=find("m2"), expression=exp.convert(0)))


COUNT = Aggregate(
    "count", {"n": "0"}, "{n} += 1", "{n} -= 1", "{n}", _long, merge="{n} += {o_n}", arguments=(0, 1),
    kept=_itself(partials.COUNT),
)  # fmt: skip
SUM = Aggregate(
    "sum",
    {"n": "0", "total": "0"},
    "{n} += 1; {total} += {x}",
    "{n} = max({n} - 1, 0); {total} = {total} - {x} if {n} else 0",
    "{total} if {n} else None",
    _number(lambda kind: kind),
    merge="{n} += {o_n}; {total} += {o_total}",
    kept=_itself(partials.SUM),
)
AVG = Aggregate(
    "avg",
    SUM.slots,
    SUM.enter,
    SUM.leave,
    "mean({total}, {n}) if {n} else None",
    _number(_mean),
    merge=SUM.merge,
    kept=Kept((partials.SUM, partials.COUNT), _mean_kept),
)
_WRAPPING = {
    "enter": "{n} += 1; {total} = wrapped({total} + {x})",
    "leave": "{n} = max({n} - 1, 0); {total} = wrapped({total} - {x}) if {n} else 0",
    "merge": "{n} += {o_n}; {total} = wrapped({total} + {o_total})",
    "kept": None,
}
SUM_OF_LONGS = replace(SUM, name="sum of longs", **_WRAPPING)
AVG_OF_LONGS = replace(AVG, name="avg of longs", value="float({total}) / {n} if {n} else None", **_WRAPPING)
"""In 64 bits, as machines add, and the mean of what these hold."""
MIN = Aggregate(
    "min", {"values": SORTED}, "{values}.add(orderable({x}))", "discard({values}, {x})",
    "ordered_value({values}[0]) if {values} else None", _first, merge="{values}.update({o_values})", kept=_itself(partials.MIN),
)  # fmt: skip
MAX = Aggregate(
    "max", MIN.slots, MIN.enter, MIN.leave, "ordered_value({values}[-1]) if {values} else None", _first,
    merge=MIN.merge, kept=_itself(partials.MAX),
)  # fmt: skip
MEDIAN = Aggregate(
    "median", MIN.slots, MIN.enter, MIN.leave, "middle({values})", _number(lambda kind: DOUBLE), merge=MIN.merge
)
MINEVER = Aggregate(
    "minever", {"least": "None"}, "{least} = {x} if {least} is None or {x} < {least} or {least} != {least} else {least}", None, "{least}", _first,
    merge="{least} = {o_least} if {least} is None or {o_least} is not None and ({o_least} < {least} or {least} != {least}) "
    "else {least}",
)  # fmt: skip
MAXEVER = Aggregate(
    "maxever", {"most": "None"}, "{most} = {x} if {most} is None or {x} > {most} or {x} != {x} else {most}", None, "{most}", _first,
    merge="{most} = {o_most} if {most} is None or {o_most} is not None and ({o_most} > {most} or {o_most} != {o_most}) "
    "else {most}",
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
_MOMENTS_KEPT = (partials.COUNT, partials.MEAN, partials.M2)
STDDEV_POPULATION = Aggregate(
    "stddev of the population", _MOMENTS, _MOMENTS_IN, _MOMENTS_OUT, "sqrt({m2} / {n}) if {n} else None",
    _number(lambda kind: DOUBLE), merge=_MOMENTS_MERGE,
    kept=Kept(_MOMENTS_KEPT, lambda find, constants: exp.Sqrt(this=_spread_kept(find, constants))),
)  # fmt: skip
VARIANCE_POPULATION = Aggregate(
    "variance of the population", _MOMENTS, _MOMENTS_IN, _MOMENTS_OUT, "{m2} / {n} if {n} else None",
    _number(lambda kind: DOUBLE), merge=_MOMENTS_MERGE, kept=Kept(_MOMENTS_KEPT, _spread_kept),
)  # fmt: skip
_PAIRS = {"n": "0", "at": "0.0", "to": "0.0", "c": "0.0"}
_PAIRS_IN = "{n} += 1; d = {x} - {at}; {at} += d / {n}; {to} += ({y} - {to}) / {n}; {c} += d * ({y} - {to})"
_PAIRS_OUT = "{n}, {at}, {to}, {c} = comoments_without({n}, {at}, {to}, {c}, {x}, {y})"
_PAIRS_MERGE = "{n}, {at}, {to}, {c} = comoments_merged({n}, {at}, {to}, {c}, {o_n}, {o_at}, {o_to}, {o_c})"
_PAIRS_KEPT = (partials.COUNT, partials.MEAN, *map(_second, (partials.COUNT, partials.MEAN)), partials.COMOMENT)
COVARIANCE = Aggregate(
    "covariance of the population", _PAIRS, _PAIRS_IN, _PAIRS_OUT, "{c} / {n} if {n} else None",
    _number(lambda kind: DOUBLE), arguments=(2, 2), merge=_PAIRS_MERGE,
    kept=Kept(
        _PAIRS_KEPT,
        lambda find, constants: exp.Div(this=find("comoment"), expression=some(find("count")), typed=False, safe=True),
    ),
)  # fmt: skip
"""Of two arguments, over the events that have both."""
_SPREADS = {"p": "0.0", "q": "0.0"}
CORRELATION = Aggregate(
    "correlation",
    {**_PAIRS, **_SPREADS},
    "{n} += 1; d = {x} - {at}; e = {y} - {to}; {at} += d / {n}; {to} += e / {n}; "
    "{c} += d * ({y} - {to}); {p} += d * ({x} - {at}); {q} += e * ({y} - {to})",
    "_, _, {p} = moments_without({n}, {at}, {p}, {x}); _, _, {q} = moments_without({n}, {to}, {q}, {y}); " + _PAIRS_OUT,
    "correlated({n}, {c}, {at}, {p}, {to}, {q})",
    _number(lambda kind: DOUBLE),
    arguments=(2, 2),
    merge="_, _, {p} = moments_merged({n}, {at}, {p}, {o_n}, {o_at}, {o_p}); "
    "_, _, {q} = moments_merged({n}, {to}, {q}, {o_n}, {o_to}, {o_q}); " + _PAIRS_MERGE,
    kept=Kept((*_PAIRS_KEPT, partials.M2, _second(partials.M2)), _correlation_kept),
)
"""From -1 to 1, of two arguments, over the events that have both; null where one of them is constant."""
AVEDEV = Aggregate(
    "avedev", MIN.slots, MIN.enter, MIN.leave, "mean_deviation({values})", _number(lambda kind: DOUBLE), merge=MIN.merge
)
DISTINCT_COUNT = Aggregate(
    "distinctcount", {"counts": "{}"}, "add_one({counts}, {x})", "drop_one({counts}, {x})",
    "len({counts})", _long, merge="add_counts({counts}, {o_counts})",
    kept=Kept((partials.VALUES,), lambda find, constants: exp.cast(Size(this=find("set")), "bigint")),
)  # fmt: skip
MODE = Aggregate(
    "mode", DISTINCT_COUNT.slots, DISTINCT_COUNT.enter, DISTINCT_COUNT.leave, "most_common({counts})", _first,
    merge=DISTINCT_COUNT.merge,
    kept=Kept((partials.COUNTS,), lambda find, constants: function("rollup_counts_mode", find("counts")), text=True),
)  # fmt: skip
"""The most frequent value, exact; of several the least."""
UNION = Aggregate(
    "union of sets", DISTINCT_COUNT.slots, "add_each({counts}, {x})", "drop_each({counts}, {x})", "tuple({counts})",
    lambda types: ANY, merge=DISTINCT_COUNT.merge,
)  # fmt: skip
"""The values of sets, each once, in the order in which they came; a set is a tuple."""
LEAVING = Aggregate(
    "leaving", {"left": "False"}, "pass", "{left} = True", "{left}", lambda types: BOOL, skips=False, arguments=(0, 0)
)
"""Whether a row has left: what has left leaves its trace here."""
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
    kept=_itself(partials.FIRST),
)  # fmt: skip
LAST_EVER = Aggregate(
    "lastever", {"value": "None"}, "{value} = {x}", None, "{value}", _first, skips=False, kept=_itself(partials.LAST)
)
COUNT_EVER = Aggregate("countever", {"n": "0"}, "{n} += 1", None, "{n}", _long, merge="{n} += {o_n}", arguments=(0, 1))


class Counting(NamedTuple):
    """What `rate` counts: over so long a time, of which a `second` is a part."""

    span: int
    second: int


def rate(second: int, span: int) -> Aggregate:
    """Rows a second over the last `span`; the argument is the time. Null until `span` has passed once.

    Beside the times of the last `span` earlier ones may still stand.
    """
    enter = "{times}.append({x}); {full} = drop_early({times}, {x}, rated_span) or {full}"
    return Aggregate(
        f"rate over {span}", {"times": "[]", "full": "False"}, enter, None,
        "rated({times}, {full}, rated_span, rated_second)", _double, skips=False,
        objects={"rated_span": span, "rated_second": second},
    )  # fmt: skip


def counting(aggregate: Aggregate) -> Counting | None:
    """What an aggregate counts that `rate` has made; None of others."""
    span, second = (aggregate.objects.get(name) for name in ("rated_span", "rated_second"))
    return None if span is None or second is None else Counting(span, second)


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
    "hll", {"seen": "set()"}, "{seen}.add(comparable({x}))", None, "distinct_estimate({seen})", _long, merge="{seen}.update({o_seen})",
    kept=_sketched(partials.HLL, "rollup_hll_estimate"),
)  # fmt: skip
"""How many different values, exact for a few thousand, then estimated within 2 %."""
_RANKED = {"values": SORTED, "rank": "None"}
QUANTILE = Aggregate(
    "quantile", _RANKED, "{rank} = {y}; {values}.update(numbers({x}))", "{rank} = {y}; take_out({values}, {x})",
    "ranked({values}, {rank})", _number(lambda kind: DOUBLE), arguments=(2, 2),
    merge="{rank} = {o_rank} if {rank} is None else {rank}; {values}.update({o_values})",
    kept=_sketched(partials.KLL, "rollup_kll_quantile", (1, 1)),
)  # fmt: skip
"""The value at a rank from 0 to 1, the second argument; tables keep counts: exact for 256 different values, then within 0.4 %."""
QUANTILES = Aggregate(
    "quantiles", MIN.slots, "{values}.update(numbers({x}))", "take_out({values}, {x})", "all_ranked({values})",
    _number(lambda kind: STRING), merge=MIN.merge, kept=_sketched(partials.KLL, "rollup_kll_quantiles"),
)  # fmt: skip
"""The values at the usual ranks, as a JSON object."""
TOPK = Aggregate(
    "topk", {"counts": "{}", "most": "None"}, "{most} = {y}; add_one({counts}, {x})",
    "{most} = {y}; drop_one({counts}, {x})", "most_frequent({counts}, {most})", lambda types: STRING, arguments=(2, 2),
    merge="{most} = {o_most} if {most} is None else {most}; add_counts({counts}, {o_counts})",
    kept=_sketched(partials.TOPK, "rollup_topk_items", (1, 1)),
)  # fmt: skip
"""The most frequent values, as many as the second argument says, with their counts: a JSON list of pairs."""
CMS = Aggregate(
    "cms", {"counts": "{}"}, "add_one({counts}, {x})", None, "max({counts}.values(), default=0)", _long,
    merge="add_counts({counts}, {o_counts})",
)  # fmt: skip
"""How often the most frequent value came; an estimate, over columns, of more than a few thousand different values."""
CMS_OF = Aggregate(
    "cms of", {"counts": "{}", "of": "None"}, "add_one({counts}, {x}); {of} = {y}", None,
    "{counts}.get(comparable({of}), 0)", _long, arguments=(2, 2),
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

    The state they pass on is plain values. `arguments` go to `start`. Without `leave` values never leave.

    >>> last = custom("last", {"start": lambda: None, "enter": lambda s, x: x, "leave": lambda s, x: s, "value": lambda s: s})
    >>> last.enter
    '{state} = f_enter({state}, {x})'
    """
    objects = {
        **{f"f_{word}": functions[word] for word in ("start", "enter", "leave", "value") if word in functions},
        "f_arguments": arguments,
    }
    enter, leave = (
        "{state} = f_enter({state}, {x})",
        "{state} = f_leave({state}, {x})" if "leave" in functions else None,
    )
    return Aggregate(
        name, {"state": "f_start(*f_arguments)"}, enter, leave, "f_value({state})", _double, objects=objects
    )
