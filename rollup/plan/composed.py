"""Aggregates that are expressions over others, so that what they keep, and how it merges, is theirs.

median(x)                     the middle of two neighbouring quantiles
weightedAvg(x, w)             sum(x * w) / sum(w)
histogram(x, 0, 10, 100)      counts below 0, from 0, from 10, and from 100 on.
covariance(x, y), corr(x, y)  themselves, over the events that have both
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from sqlglot import exp

from rollup.core.errors import PlanError
from rollup.plan.aggregates import aggregate
from rollup.plan.app import position
from rollup.plan.names import words
from rollup.plan.types import Type

_BELOW_MIDDLE = "0.499999999999"
"""A rank that is the lower of the two middle values where their number is even, and the middle one where it is odd."""


@dataclass(frozen=True)
class Composed:
    """An aggregate as what it is made of; `written` shows its arguments, of which there are at least and at most so many."""

    written: str
    least: int
    most: int | None
    made: Callable[[Sequence[exp.Expr]], exp.Expr]


def _call(name: str, *arguments: exp.Expr) -> exp.Anonymous:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _text(value: str) -> exp.Literal:
    return exp.Literal.string(value)


def _number(value: str) -> exp.Expr:
    made = exp.Literal.number(value)
    made.meta["type"] = Type.INT if value.isdigit() else Type.DOUBLE
    return made


def _double(x: exp.Expr) -> exp.Expr:
    return _call("convert", _call("maximum", x, x), _text("double"))  # which takes numbers alone


def only(condition: exp.Expr, x: exp.Expr) -> exp.Expr:
    """A value where a condition holds, else null."""
    return _call("ifThenElse", condition, x, exp.Null())


def _binary(kind: type[exp.Binary], one: exp.Expr, other: exp.Expr) -> exp.Expr:
    return kind(this=exp.paren(one.copy()), expression=exp.paren(other.copy()))


def _median(given: Sequence[exp.Expr]) -> exp.Expr:
    middle = (_call("quantiles", given[0], _number(rank)) for rank in (_BELOW_MIDDLE, "0.5"))
    return _binary(exp.Div, _binary(exp.Add, *middle), _number("2.0"))


def _percentile(given: Sequence[exp.Expr]) -> exp.Expr:
    return _call("quantiles", *given)


def _weighted(given: Sequence[exp.Expr]) -> exp.Expr:
    x, weight = map(_double, given)
    there = exp.Not(this=exp.paren(exp.Is(this=exp.paren(given[0].copy()), expression=exp.Null())))
    total = _call("sum", _binary(exp.Mul, x, weight))
    return _binary(exp.Div, total, _call("sum", only(there, weight)))


def _histogram(given: Sequence[exp.Expr]) -> exp.Expr:
    x, *edges = given
    values = [_edge(edge) for edge in edges]
    for edge, (low, high) in zip(edges[1:], pairwise(values), strict=True):
        if not low < high:
            raise PlanError("the edges of a histogram rise", hint="histogram(x, 0, 10, 100)").at(*position(edge))
    below, behind = _binary(exp.LT, x, edges[0]), _binary(exp.GTE, x, edges[-1])
    inside = [
        exp.And(this=exp.paren(_binary(exp.GTE, x, low)), expression=exp.paren(_binary(exp.LT, x, high)))
        for low, high in pairwise(edges)
    ]
    parts = list[exp.Expr]()
    for condition in (below, *inside, behind):
        parts += [
            _text(", " if parts else "["),
            _call("convert", _call("count", only(condition, _number("1"))), _text("string")),
        ]
    return _call("str:concat", *parts, _text("]"))


def _edge(node: exp.Expr) -> float:
    bare = node.unnest()
    sign, digits = (-1, bare.this.unnest()) if isinstance(bare, exp.Neg) else (1, bare)
    if not isinstance(digits, exp.Literal) or digits.is_string:
        raise PlanError("an edge of a histogram is a number", hint="histogram(x, 0, 10, 100)").at(*position(node))
    return sign * float(digits.name)


def _pairs(name: str) -> Callable[[Sequence[exp.Expr]], exp.Expr]:
    """An aggregate of two numbers, each of which counts where the other one is there."""

    def made(given: Sequence[exp.Expr]) -> exp.Expr:
        x, y = (
            only(exp.Not(this=exp.paren(exp.Is(this=exp.paren(other.copy()), expression=exp.Null()))), _double(one))
            for one, other in (given, reversed(given))
        )
        x.meta["words"], y.meta["words"] = (
            f"{words(given[0])}_by_{words(given[1])}",
            f"{words(given[1])}_by_{words(given[0])}",
        )
        return _call(name, x, y)

    return made


COMPOSED: Mapping[str, Composed] = {
    "any": Composed("any(x)", 1, 1, lambda given: _call("min", *given)),
    "median": Composed("median(x)", 1, 1, _median),
    "percentile": Composed("percentile(x, 0.95)", 2, 2, _percentile),
    "covariance": Composed("covariance(x, y)", 2, 2, _pairs("covariance")),
    "corr": Composed("corr(x, y)", 2, 2, _pairs("corr")),
    "weightedavg": Composed("weightedAvg(x, weight)", 2, 2, _weighted),
    "histogram": Composed("histogram(x, 0, 10, 100)", 2, None, _histogram),
}


def composed(node: exp.Expr) -> exp.Expr:
    """An expression in which each aggregate that is composed is what it is made of. Raises PlanError."""
    found = COMPOSED.get(node.name.lower()) if isinstance(node, exp.Anonymous) else None
    copy = node.copy()
    for child in list(copy.iter_expressions()):
        child.replace(composed(child))
    if found is None:
        return copy
    given = copy.expressions
    if len(given) < found.least or (found.most is not None and len(given) > found.most):
        raise PlanError(f"{node.name} takes other arguments", hint=found.written).at(*position(node))
    made = found.made(given)
    line, column = position(node)
    made.meta.update(line=line, column=column)
    return exp.paren(made)


def filtered(call: exp.Anonymous, condition: exp.Expr) -> exp.Anonymous:
    """`sum(x) filter (where …)`: the aggregate over events of which the condition is true. Raises PlanError."""
    name = call.name.lower()
    if name in ("first", "last"):
        raise PlanError(
            f"{call.name} has the nulls of events too, so it cannot leave events out", hint="filter the stream"
        )
    if aggregate(name) is None and name not in COMPOSED:
        raise PlanError(
            f"`filter (where …)` is of an aggregate, and {call.name} is none", hint="sum(x) filter (where y > 0)"
        )
    first = call.expressions[0] if call.expressions else _number("1")
    call.set("expressions", [only(condition, first), *call.expressions[1:]])
    return call
