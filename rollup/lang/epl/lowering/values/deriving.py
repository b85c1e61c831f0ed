"""The windows behind `#` that give one row of numbers about the content of another: sizes, sums, lines, correlations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from rollup.engine import operators as op
from rollup.engine.aggregates import known as agg
from rollup.engine.expressions import All, Call, Expr, Field
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Derived
from rollup.engine.types import BOOL, DOUBLE, LONG, Kind, RowType
from rollup.lang.epl.catalog import problem
from rollup.lang.epl.lowering.values.expressions import lower
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree.streams import View

_Values = tuple[Any, ...]


def _ratio(above: float, below: float) -> float:
    return above / below if below else math.nan


def _root(value: float) -> float:
    return math.nan if math.isnan(value) else math.sqrt(max(0.0, value))


class _Points:
    """Sums over points. The squares are of the distances from the mean."""

    def __init__(self, values: _Values) -> None:
        self.n, self.x, self.y, self.xx, self.yy, self.xy = (value or 0 for value in values)
        n = self.n or 1
        self.squares = self.xx - self.x * self.x / n
        self.squares_y = self.yy - self.y * self.y / n
        self.products = self.xy - self.x * self.y / n

    def spread(self, squares: float) -> tuple[float, float, float]:
        """Of one coordinate: the deviation of a population, that of a sample, and its variance."""
        variance = squares / (self.n - 1) if self.n > 1 else math.nan
        return _root(_ratio(squares, self.n)), _root(variance), variance


def _uni(values: _Values) -> _Values:
    n, x, xx = values
    points = _Points((n, x, 0, xx, 0, 0))
    population, sample, variance = points.spread(points.squares)
    return n, float(x or 0), sample, population, variance, _ratio(points.x, points.n)


def _weighted(values: _Values) -> _Values:
    return (_ratio(values[0] or 0.0, values[1] or 0.0),)


def _linest(values: _Values) -> _Values:
    p = _Points(values)
    slope = _ratio(p.products, p.squares)
    sides = [
        (_ratio(total, p.n), population, sample, float(total), variance)
        for total, (population, sample, variance) in ((p.x, p.spread(p.squares)), (p.y, p.spread(p.squares_y)))
    ]
    above = _ratio(p.y, p.n) - slope * _ratio(p.x, p.n)
    sums = (float(each) for each in (p.x, p.xx, p.xy, p.y, p.yy))
    return (slope, above, *sides[0], *sides[1], p.n, p.n, *sums)


def _correl(values: _Values) -> _Values:
    p = _Points(values)
    if not p.n or not p.squares or not p.squares_y:
        return (math.nan,)
    return (p.products / math.sqrt(p.squares * p.squares_y),)


_SIDE = ("Average", "StandardDeviationPop", "StandardDeviationSample", "Sum", "Variance")
_FIELDS: dict[str, list[str]] = {
    "size": ["size"],
    "uni": ["datapoints", "total", "stddev", "stddevpa", "variance", "average"],
    "weighted_avg": ["average"],
    "linest": [
        "slope", "YIntercept", *(f"X{name}" for name in _SIDE), *(f"Y{name}" for name in _SIDE),
        "dataPoints", "n", "sumX", "sumXSq", "sumXY", "sumY", "sumYSq",
    ],
    "correl": ["correlation"],
}  # fmt: skip
_COUNTS = ("size", "datapoints", "dataPoints", "n")
DERIVED: dict[str, Callable[[_Values], _Values]] = {
    "size": tuple,
    "uni": _uni,
    "weighted_avg": _weighted,
    "linest": _linest,
    "correl": _correl,
}
"""By name: the values of the row out of those of the aggregate calls."""


def derived_window(
    view: View, inner: WindowSpec, scope: Scope, groups: Sequence[ex.Expression]
) -> tuple[WindowSpec, RowType]:
    """The window of a derived row, and the row: the numbers, properties of the newest row, the keys of its group."""
    name, source = view.name, scope.sources[0].type
    needed = {"size": 0, "uni": 1}.get(name, 2)
    numbers = [lower(node, scope) for node in view.arguments[:needed]]
    if len(numbers) < needed:
        raise problem(f"#{name} takes {needed} number(s)", view)
    for node, number in zip(view.arguments, numbers, strict=False):
        if not number.type.numeric:
            raise problem(f"`{render(node)}` is {number.type}, not a number", node)
    fields = {field: LONG if field in _COUNTS else DOUBLE for field in _FIELDS[name]}
    given = [node for node in view.arguments[needed:] if isinstance(node, ex.Reference) and node.name in source.fields]
    keys = [
        node for node in groups if isinstance(node, ex.Reference) and node.name not in {each.name for each in given}
    ]
    newest, key = ([_property(node, source) for node in nodes] for nodes in (given, keys))
    for node, field in zip((*given, *keys), (*newest, *key), strict=True):
        fields[node.name] = field.type
    calls = _calls(name, numbers)
    n, finish = len(calls), DERIVED[name]
    calls += [AggregateCall(agg.LAST_EVER, (field,)) for field in newest]
    made = Derived(inner, tuple(calls), lambda v: (*finish(v[:n]), *v[n:]), tuple(key), quiet=name == "size")
    return made, RowType(name, fields)


def _property(node: ex.Reference, source: RowType) -> Field:
    return Field(0, source.index[node.name], source.fields[node.name])


def _calls(name: str, numbers: Sequence[Expr]) -> list[AggregateCall]:
    """What is kept of the points; one with a coordinate that is null is none."""
    values = [n if n.type.kind is Kind.DOUBLE else Call(op.TO_DOUBLE, (n,), DOUBLE) for n in numbers]
    if name == "size":
        return [AggregateCall(agg.COUNT)]
    there = All(tuple(Call(op.NOT_NULL, (value,), BOOL) for value in values))

    def total(value: Expr) -> AggregateCall:
        return AggregateCall(agg.SUM, (value,), where=there)

    count = AggregateCall(agg.COUNT, where=there)
    if name == "uni":
        (x,) = values
        return [count, total(x), total(Call(op.MULTIPLY, (x, x), DOUBLE))]
    x, y = values
    xx, yy, xy = (Call(op.MULTIPLY, pair, DOUBLE) for pair in ((x, x), (y, y), (x, y)))
    if name == "weighted_avg":
        return [total(xy), total(y)]
    return [count, *(total(value) for value in (x, y, xx, yy, xy))]
