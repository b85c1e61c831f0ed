"""Partials: the columns that a table keeps of a group, as SQL trees; how events become one, and how rows of it merge.

Merging is a commutative monoid over rows (tests/aggregation/test_merge_laws.py holds for all of them), so a bucket may be
put together in any order and from any number of parts. Aggregates share partials: the average and the sum of the same
argument keep one sum. What their columns are called, and what each shape is made of, the rollups say
(`rollup/plan/aggregates.py`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from sqlglot import exp

from rollup.core.dialects import Counts, InOrder, LastBy, Union, Values

Find = Callable[[str], exp.Expr]
"""Gives what stands for a partial of the same argument, by its name."""


class Shape(Enum):
    """What the values of a partial are, beside the type of the argument."""

    ARGUMENT = "as the argument"
    ARGUMENTS = "a list of such"
    SUM = "a sum: exact of whole numbers"
    LONG = "a long"
    DOUBLE = "a double"
    BYTES = "a sketch"


@dataclass(frozen=True)
class Moment:
    """When an event came: the columns of its time and of its arrival."""

    time: exp.Expr
    arrival: exp.Expr


@dataclass(frozen=True)
class Partial:
    """A partial: its value over events, and its merge over rows that hold it.

    `of` says which argument of the aggregate it is of: the first, the second, or the `PAIR` of both, a tuple.
    `merge` is given the siblings of its argument by name, and those of the other one by `second(name)`. `means` are the
    arguments whose mean over the whole group of a row it needs, computed before the merge, as the sibling `HELPER`: the
    second moment needs the mean of the whole group.

    `less` is the partial of a group without the events that were taken back, given those of what came and of what was
    taken back, each with its count. None: nothing tells what is left.
    """

    name: str
    shape: Shape
    prepare: Callable[[exp.Expr, Moment], exp.Expr]
    merge: Callable[[Find], exp.Expr]
    means: tuple[int, ...] = ()
    less: Callable[[Find, Find], exp.Expr] | None = None
    of: int = 0

    @property
    def key(self) -> str:
        """Its name among those of all arguments."""
        return second(self.name) if self.of == 1 else self.name


HELPER = "helper"
ROUNDING = 1e-15
"""The distance of doubles from their mean, as a part of it, that rounding makes where all of them are equal."""
PAIR = 2


def second(name: str) -> str:
    """What a partial of the second argument is called beside those of the first.

    >>> second("mean")
    'second mean'
    """
    return f"second {name}"


def own(find: Find, of: int) -> Find:
    """The siblings as a partial of an argument names them."""
    return (lambda name: find(second(name))) if of == 1 else find


def function(name: str, *arguments: exp.Expr) -> exp.Expr:
    """A call of a function that sqlglot does not know."""
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def double(x: exp.Expr) -> exp.Expr:
    """As a double."""
    return exp.cast(x.copy(), "double")


def some(count: exp.Expr) -> exp.Expr:
    """A count to divide by: of nothing a value is null."""
    return function("NULLIF", count, exp.Literal.number(0))


def _sum(x: exp.Expr) -> exp.Expr:
    """A sum that keeps the kind of its column: exact for whole numbers in all three dialects."""
    return exp.Sum(this=x.copy())


def _count(x: exp.Expr) -> exp.Expr:
    return exp.cast(exp.Sum(this=x.copy()), "bigint")


def _merge_m2(find: Find) -> exp.Expr:
    """Chan's formula over any number of parts: M2 = sum(M2_i + n_i * (mean_i - mean)^2), mean over the whole group."""
    spread = exp.Sub(this=find("mean"), expression=find(HELPER))
    between = exp.Mul(
        this=exp.Mul(this=find("count"), expression=exp.paren(spread)), expression=exp.paren(spread.copy())
    )
    return InOrder(this=exp.Add(this=find("m2"), expression=between))


def weighted(find: Find) -> tuple[exp.Expr, exp.Expr]:
    """Numerator and denominator of the mean of parts weighted by their counts."""
    total = InOrder(this=exp.Mul(this=find("mean"), expression=find("count")))
    there = exp.Not(this=exp.Is(this=find("mean"), expression=exp.Null()))
    return total, exp.Sum(this=exp.Case(ifs=[exp.If(this=there, true=find("count"))]))


def _merge_comoment(find: Find) -> exp.Expr:
    """As the second moment, with a distance of each argument."""
    x, y = (exp.paren(exp.Sub(this=each("mean"), expression=each(HELPER))) for each in (find, own(find, 1)))
    between = exp.Mul(this=exp.Mul(this=find("count"), expression=x), expression=y)
    return InOrder(this=exp.Add(this=find("comoment"), expression=between))


def _less_comoment(came: Find, gone: Find) -> exp.Expr:
    """Chan's formula for two parts, solved for one of them; 0 of one pair."""
    left = _less_count(came, gone)
    x, y = (
        exp.paren(exp.Sub(this=c("mean"), expression=exp.func("COALESCE", g("mean"), c("mean"))))
        for c, g in ((came, gone), (own(came, 1), own(gone, 1)))
    )
    pairs = exp.Mul(this=exp.cast(came("count"), "double"), expression=gone("count"))
    product = exp.Mul(this=exp.Mul(this=pairs, expression=x), expression=y)
    between = exp.Div(this=product, expression=some(left), typed=False, safe=True)
    one = exp.EQ(this=left.copy(), expression=exp.Literal.number(1))
    zero = exp.cast(exp.Literal.number(0), "double")
    rest = exp.Sub(this=_less("comoment", came, gone), expression=between)
    return exp.Case(ifs=[exp.If(this=one, true=zero)], default=rest)


def _merge_mean(find: Find) -> exp.Expr:
    total, count = weighted(find)
    return exp.cast(exp.Div(this=total, expression=some(count), typed=False, safe=True), "double")


def _less_count(came: Find, gone: Find) -> exp.Expr:
    return exp.paren(exp.Sub(this=came("count"), expression=gone("count")))


def _less(name: str, came: Find, gone: Find) -> exp.Expr:
    """A column of what came minus that of what was taken back; null where nothing is left."""
    none = exp.EQ(this=gone("count"), expression=exp.Literal.number(0))
    taken = exp.Case(ifs=[exp.If(this=none, true=exp.Literal.number(0))], default=gone(name))
    left = exp.NEQ(this=_less_count(came, gone), expression=exp.Literal.number(0))
    return exp.Case(ifs=[exp.If(this=left, true=exp.Sub(this=came(name), expression=taken))])


def _less_mean(came: Find, gone: Find) -> exp.Expr:
    def total(of: Find) -> exp.Expr:
        return exp.Mul(this=exp.func("COALESCE", of("mean"), exp.Literal.number(0)), expression=of("count"))

    left = exp.Sub(this=total(came), expression=total(gone))
    return exp.Div(this=exp.paren(left), expression=some(_less_count(came, gone)), typed=False, safe=True)


def _less_m2(came: Find, gone: Find) -> exp.Expr:
    """Chan's formula for two parts, solved for one of them; never below 0, and 0 of one value."""
    left = _less_count(came, gone)
    spread = exp.paren(exp.Sub(this=came("mean"), expression=exp.func("COALESCE", gone("mean"), came("mean"))))
    pairs = exp.Mul(this=exp.cast(came("count"), "double"), expression=gone("count"))
    between = exp.Div(
        this=exp.Mul(this=exp.Mul(this=pairs, expression=spread), expression=spread.copy()),
        expression=some(left),
        typed=False,
        safe=True,
    )
    rest = exp.Sub(this=_less("m2", came, gone), expression=between)
    zero = exp.cast(exp.Literal.number(0), "double")
    one = exp.EQ(this=left.copy(), expression=exp.Literal.number(1))
    none = exp.LT(this=rest, expression=zero)
    return exp.Case(ifs=[exp.If(this=exp.or_(one, none), true=zero.copy())], default=rest.copy())


def _text(x: exp.Expr) -> exp.Expr:
    """Values as sketches of texts take them: the two zeros are one."""
    if isinstance(x, exp.Cast) and x.to.this in (exp.DType.FLOAT, exp.DType.DOUBLE):
        zero = exp.cast(exp.Literal.number(0), x.to.copy())
        same = exp.EQ(this=exp.paren(x.copy()), expression=zero)
        x = exp.Case(ifs=[exp.If(this=same, true=zero.copy())], default=x.copy())
    return exp.cast(x.copy(), "text")


def _numeric(x: exp.Expr) -> bool:
    """Whether values are numbers, which have another order than their texts."""
    return isinstance(x, exp.Cast) and x.to.is_type(*exp.DataType.NUMERIC_TYPES)


def _own(name: str, merge: Callable[[exp.Expr], exp.Expr]) -> Callable[[Find], exp.Expr]:
    return lambda find: merge(find(name))


def _sketch(name: str, value: Callable[[exp.Expr], exp.Expr]) -> Partial:
    return Partial(
        name,
        Shape.BYTES,
        lambda x, at: function(f"rollup_{name}_fold", function("LIST", value(x))),
        _own(name, lambda x: function(f"rollup_{name}_merge", function("LIST", x))),
    )


def _chosen(name: str, first: bool) -> Partial:
    """The value, null included, of the first or last event by (time, arrival); rows are told apart by the same."""
    return Partial(
        name,
        Shape.ARGUMENT,
        lambda x, at: LastBy(this=x, time=at.time.copy(), arrival=at.arrival.copy(), first=first),
        lambda find: LastBy(
            this=find(name), time=find(f"{name}_event_timestamp"), arrival=find(f"{name}_arrival"), first=first
        ),
    )


SUM = Partial(
    "sum",
    Shape.SUM,
    lambda x, at: exp.Sum(this=x),
    _own("sum", _sum),
    less=lambda came, gone: _less("sum", came, gone),
)
COUNT = Partial("count", Shape.LONG, lambda x, at: exp.Count(this=x), _own("count", _count), less=_less_count)
MIN = Partial("min", Shape.ARGUMENT, lambda x, at: exp.Min(this=x), _own("min", lambda x: exp.Min(this=x)))
MAX = Partial("max", Shape.ARGUMENT, lambda x, at: exp.Max(this=x), _own("max", lambda x: exp.Max(this=x)))
MEAN = Partial("mean", Shape.DOUBLE, lambda x, at: exp.Avg(this=double(x)), _merge_mean, less=_less_mean)
M2 = Partial(
    "m2",
    Shape.DOUBLE,
    lambda x, at: exp.Mul(this=function("VAR_POP", double(x)), expression=exp.Count(this=x.copy())),
    _merge_m2,
    (0,),
    _less_m2,
)
COMOMENT = Partial(
    "comoment",
    Shape.DOUBLE,
    lambda pair, at: exp.Mul(
        this=function("COVAR_POP", *map(double, pair.expressions)),
        expression=exp.Count(this=pair.expressions[0].copy()),
    ),
    _merge_comoment,
    (0, 1),
    _less_comoment,
    PAIR,
)
"""The sum of the products of both distances from their means; events that lack one of both are not in it."""
COUNTS = Partial(
    "counts",
    Shape.BYTES,
    lambda x, at: function("rollup_counts_fold", function("LIST", _text(x)), exp.convert(_numeric(x))),
    _own("counts", lambda x: Counts(this=x)),
    less=lambda came, gone: function("rollup_counts_less", came("counts"), gone("counts")),
)
VALUES = Partial("set", Shape.ARGUMENTS, lambda x, at: Values(this=x), _own("set", lambda x: Union(this=x)))
FIRST, LAST = _chosen("first", True), _chosen("last", False)
HLL, KLL, TOPK = _sketch("hll", _text), _sketch("kll", double), _sketch("topk", _text)
