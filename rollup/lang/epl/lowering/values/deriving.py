"""The windows behind `#` that give one row of numbers about the content of another: sizes, sums, lines, correlations."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from rollup.engine import operators as op
from rollup.engine import reals
from rollup.engine.aggregates import known as agg
from rollup.engine.expressions import All, Call, Case, Coalesce, Const, Expr, Field, Slot
from rollup.engine.folding import AggregateCall
from rollup.engine.operators import Operator
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Derived
from rollup.engine.types import BOOL, DOUBLE, LONG, Kind, RowType
from rollup.lang.epl.catalog import problem
from rollup.lang.epl.lowering.values.expressions import lower
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree.streams import View

_NAN = Const(math.nan, DOUBLE)
_ZERO = Const(0.0, DOUBLE)
_ROOT = Operator("root", reals.root, numpy="np.sqrt({0})")


def _binary(operator: Operator) -> Callable[[Expr, Expr], Expr]:
    return lambda a, b: Call(operator, (a, b), DOUBLE)


_times, _minus, _over = map(_binary, (op.MULTIPLY, op.SUBTRACT, op.DIVIDE_IEEE))


def _if(operator: Operator, a: Expr, b: Expr, then: Expr, otherwise: Expr) -> Expr:
    return Case(((Call(operator, (a, b), BOOL), then),), otherwise, DOUBLE)


def _ratio(above: Expr, below: Expr) -> Expr:
    return _if(op.EQUAL, below, _ZERO, _NAN, _over(above, below))


def _root(value: Expr) -> Expr:
    """Of what rounding has taken below 0 it is 0."""
    return _if(op.LESS, value, _ZERO, _ZERO, Call(_ROOT, (value,), DOUBLE))


def _slot(place: int) -> Expr:
    """The value of a sum, 0 without points."""
    return Coalesce((Slot(place, DOUBLE), _ZERO), DOUBLE)


class _Points:
    """Sums over points: their number is the value of the first call. The squares are of the distances from the mean."""

    def __init__(self, x: Expr, xx: Expr, y: Expr = _ZERO, yy: Expr = _ZERO, xy: Expr = _ZERO) -> None:
        self.x, self.y, self.xx, self.yy, self.xy = x, y, xx, yy, xy
        self.n = Call(op.TO_DOUBLE, (Slot(0, LONG),), DOUBLE)
        some = _if(op.EQUAL, self.n, _ZERO, Const(1.0, DOUBLE), self.n)
        self.squares, self.squares_y, self.products = (
            _minus(whole, _over(_times(a, b), some)) for whole, a, b in ((xx, x, x), (yy, y, y), (xy, x, y))
        )

    def spread(self, squares: Expr) -> tuple[Expr, Expr, Expr]:
        """Of one coordinate: the deviation of a population, that of a sample, and its variance."""
        one = Const(1.0, DOUBLE)
        variance = _if(op.GREATER, self.n, one, _over(squares, _minus(self.n, one)), _NAN)
        return _root(_ratio(squares, self.n)), _root(variance), variance


def _uni() -> list[Expr]:
    x, xx = _slot(1), _slot(2)
    points = _Points(x, xx)
    population, sample, variance = points.spread(points.squares)
    return [Slot(0, LONG), x, sample, population, variance, _ratio(x, points.n)]


def _weighted() -> list[Expr]:
    return [_ratio(_slot(0), _slot(1))]


def _two_coordinates() -> _Points:
    x, y, xx, yy, xy = map(_slot, range(1, 6))
    return _Points(x, xx, y, yy, xy)


def _linest() -> list[Expr]:
    p = _two_coordinates()
    slope = _ratio(p.products, p.squares)
    sides = [
        (_ratio(total, p.n), population, sample, total, variance)
        for total, (population, sample, variance) in ((p.x, p.spread(p.squares)), (p.y, p.spread(p.squares_y)))
    ]
    above = _minus(_ratio(p.y, p.n), _times(slope, _ratio(p.x, p.n)))
    return [slope, above, *sides[0], *sides[1], Slot(0, LONG), Slot(0, LONG), p.x, p.xx, p.xy, p.y, p.yy]


def _correl() -> list[Expr]:
    p = _two_coordinates()
    found = _over(p.products, Call(_ROOT, (_times(p.squares, p.squares_y),), DOUBLE))
    for each in (p.squares_y, p.squares, p.n):
        found = _if(op.EQUAL, each, _ZERO, _NAN, found)
    return [found]


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
DERIVED: dict[str, Callable[[], list[Expr]]] = {
    "size": lambda: [Slot(0, LONG)],
    "uni": _uni,
    "weighted_avg": _weighted,
    "linest": _linest,
    "correl": _correl,
}
"""By name: the values of the row, which read those of the aggregate calls."""


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
    shown = [*DERIVED[name](), *(Slot(len(calls) + place, field.type) for place, field in enumerate(newest))]
    calls += [AggregateCall(agg.LAST_EVER, (field,)) for field in newest]
    made = Derived(inner, tuple(calls), tuple(shown), tuple(key), quiet=name == "size")
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
