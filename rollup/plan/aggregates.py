"""Every aggregate, declared once: which partial columns it keeps, how two partials merge, how its value is computed.

A partial is a column of a level's row. Merging is a commutative monoid over rows (tests/aggregation/test_merge_laws.py
holds for all of them), so a bucket may be put together in any order and from any number of parts. Aggregates share
partials: avg(x) and sum(x) keep one AGG_SUM_x.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from rollup.core.dialects import Checked, LastBy, Size, Union, Values
from rollup.core.errors import PlanError
from rollup.plan.types import Type

WIDE = exp.DataType.build("DECIMAL(38, 0)")

Columns = Callable[[str], exp.Expr]
"""Gives a sibling partial of the same argument by its prefix, e.g. columns("AGG_COUNT")."""


@dataclass(frozen=True)
class Kind:
    """What a partial column is made of: in the state (SQL and Arrow) and, narrower for exact sums, in a table."""

    sql: exp.DataType
    arrow: pa.DataType
    table: pa.DataType
    table_sql: exp.DataType

    @classmethod
    def of(cls, kind: Type) -> Kind:
        """The kind of a column that holds values of a SiddhiQL type as they are."""
        return cls(kind.sql, kind.arrow, kind.arrow, kind.sql)

    @classmethod
    def list_of(cls, kind: Type) -> Kind:
        """The kind of a column that holds lists of values."""
        sql = exp.DataType(this=exp.DataType.Type.ARRAY, expressions=[kind.sql], nested=True)
        return cls(sql, pa.list_(kind.arrow), pa.list_(kind.arrow), sql)


LONG, DOUBLE = Kind.of(Type.LONG), Kind.of(Type.DOUBLE)
BLOB = Kind(exp.DataType.build("BLOB"), pa.binary(), pa.binary(), exp.DataType.build("BLOB"))
EXACT = Kind(WIDE, pa.decimal128(38, 0), pa.int64(), Type.LONG.sql)
"""A sum of whole numbers: exact in the state, so that it never wraps; a table has it as a long, or null beyond 64 bits."""


@dataclass(frozen=True)
class Partial:
    """A partial column: its kind for an argument type, its value over events, and its merge over partial rows.

    `helper`, when given, is computed for every row over its whole group before the merge and reaches `merge` as the
    sibling `HELPER`: the second moment needs the mean of the whole group.
    """

    prefix: str
    kind: Callable[[Type], Kind]
    prepare: Callable[[exp.Expr], exp.Expr]
    merge: Callable[[Columns], exp.Expr]
    needs: tuple[str, ...] = ()
    helper: Callable[[Columns], tuple[exp.Expr, exp.Expr]] | None = None


@dataclass(frozen=True)
class Aggregate:
    """An aggregate: its partials by prefix, the type of its value, and the value from the merged partials."""

    partials: tuple[str, ...]
    result: Callable[[str, Type], Type]
    final: Callable[[Columns, Sequence[exp.Expr]], exp.Expr]
    extra: int = 0
    doc: str = ""


def _f(name: str, *arguments: exp.Expr) -> exp.Expr:
    return exp.Anonymous(this=name, expressions=[argument.copy() for argument in arguments])


def _own(prefix: str, merge: Callable[[exp.Expr], exp.Expr]) -> Callable[[Columns], exp.Expr]:
    return lambda columns: merge(columns(prefix))


def _sum_kind(kind: Type) -> Kind:
    return EXACT if kind.integral else DOUBLE


def _wide_sum(x: exp.Expr) -> exp.Expr:
    """A sum that keeps the kind of its column: exact for whole numbers in all three dialects."""
    return exp.Sum(this=x.copy())


def _long_sum(x: exp.Expr) -> exp.Expr:
    return exp.cast(exp.Sum(this=x.copy()), Type.LONG.sql)


def guarded(merge: exp.Expr, overflow: exp.Expr) -> exp.Expr:
    """The merge of an exact sum, null when `overflow` says of one of the rows that it has lost its own."""
    lost = exp.func("COALESCE", exp.LogicalOr(this=overflow), exp.false())
    return exp.Case(ifs=[exp.If(this=exp.Not(this=lost), true=merge)])


def _merge_m2(columns: Columns) -> exp.Expr:
    """Chan's formula over any number of parts: M2 = sum(M2_i + n_i * (mean_i - mean)^2), mean over the whole group."""
    spread = exp.Sub(this=columns("AGG_MEAN"), expression=columns("HELPER"))
    between = exp.Mul(
        this=exp.Mul(this=columns("AGG_COUNT"), expression=exp.paren(spread)), expression=exp.paren(spread.copy())
    )
    return exp.Sum(this=exp.Add(this=columns("AGG_M2"), expression=between))


def _weighted(columns: Columns) -> tuple[exp.Expr, exp.Expr]:
    """Numerator and denominator of the mean of parts weighted by their counts."""
    total = exp.Sum(this=exp.Mul(this=columns("AGG_MEAN"), expression=columns("AGG_COUNT")))
    some = exp.Case(
        ifs=[
            exp.If(
                this=exp.Not(this=exp.Is(this=columns("AGG_MEAN"), expression=exp.Null())), true=columns("AGG_COUNT")
            )
        ]
    )
    return total, exp.Sum(this=some)


def _merge_mean(columns: Columns) -> exp.Expr:
    total, count = _weighted(columns)
    return exp.cast(
        exp.Div(this=total, expression=_f("NULLIF", count, exp.Literal.number(0)), typed=False, safe=True),
        Type.DOUBLE.sql,
    )


def _sketched(name: str, x: exp.Expr) -> exp.Expr:
    """Values as a sketch takes them: quantiles are of doubles, the others of texts, in which the two zeros are one."""
    if name == "kll":
        return exp.cast(x.copy(), Type.DOUBLE.sql)
    if isinstance(x, exp.Cast) and x.to in (Type.FLOAT.sql, Type.DOUBLE.sql):
        zero = exp.cast(exp.Literal.number(0), x.to.copy())
        same = exp.EQ(this=exp.paren(x.copy()), expression=zero)
        x = exp.Case(ifs=[exp.If(this=same, true=zero.copy())], default=x.copy())
    return exp.cast(x.copy(), Type.STRING.sql)


def _double(x: exp.Expr) -> exp.Expr:
    return exp.cast(x.copy(), Type.DOUBLE.sql)


PARTIALS: Mapping[str, Partial] = {
    partial.prefix: partial
    for partial in (
        Partial("AGG_SUM", _sum_kind, lambda x: exp.Sum(this=x), _own("AGG_SUM", _wide_sum)),
        Partial("AGG_COUNT", lambda kind: LONG, lambda x: exp.Count(this=x), _own("AGG_COUNT", _long_sum)),
        Partial("AGG_MIN", Kind.of, lambda x: exp.Min(this=x), _own("AGG_MIN", lambda x: exp.Min(this=x))),
        Partial("AGG_MAX", Kind.of, lambda x: exp.Max(this=x), _own("AGG_MAX", lambda x: exp.Max(this=x))),
        Partial("AGG_MEAN", lambda kind: DOUBLE, lambda x: exp.Avg(this=_double(x)), _merge_mean, ("AGG_COUNT",)),
        Partial(
            "AGG_M2",
            lambda kind: DOUBLE,
            lambda x: exp.Mul(this=_f("VAR_POP", _double(x)), expression=exp.Count(this=x.copy())),
            _merge_m2,
            ("AGG_COUNT", "AGG_MEAN"),
            _weighted,
        ),
        Partial("AGG_SET", Kind.list_of, lambda x: Values(this=x), _own("AGG_SET", lambda x: Union(this=x))),
        Partial(
            "AGG_FIRST",
            Kind.of,
            lambda x: LastBy(this=x, time=exp.column("__ts"), arrival=exp.column("__arrival"), first=True),
            lambda columns: LastBy(
                this=columns("AGG_FIRST"),
                time=columns("AGG_FIRST_EVENT_TIMESTAMP"),
                arrival=columns("AGG_FIRST_ARRIVAL"),
                first=True,
            ),
        ),
        Partial(
            "AGG_LAST",
            Kind.of,
            lambda x: LastBy(this=x, time=exp.column("__ts"), arrival=exp.column("__arrival")),
            lambda columns: LastBy(
                this=columns("AGG_LAST"), time=columns("AGG_LAST_EVENT_TIMESTAMP"), arrival=columns("AGG_LAST_ARRIVAL")
            ),
        ),
        *(
            Partial(
                f"AGG_{name.upper()}",
                lambda kind: BLOB,
                lambda x, name=name: _f(f"rollup_{name}_fold", _f("LIST", _sketched(name, x))),
                _own(f"AGG_{name.upper()}", lambda x, name=name: _f(f"rollup_{name}_merge", _f("LIST", x))),
            )
            for name in ("hll", "kll", "topk")
        ),
    )
}


def _numeric(result: Callable[[Type], Type]) -> Callable[[str, Type], Type]:
    def check(name: str, kind: Type) -> Type:
        if not kind.numeric:
            raise PlanError(f"{name} takes a number, not {kind}", hint="int, long, float or double")
        return result(kind)

    return check


def _any(result: Callable[[Type], Type]) -> Callable[[str, Type], Type]:
    return lambda name, kind: result(kind)


def _as_long(x: exp.Expr) -> exp.Expr:
    """A long, or null when an exact sum does not fit into 64 bits; sums never wrap."""
    return Checked(this=x.copy(), to=Type.LONG.sql)


def _final_sum(columns: Columns, extra: Sequence[exp.Expr]) -> exp.Expr:
    return columns("AGG_SUM")


def _final_avg(columns: Columns, extra: Sequence[exp.Expr]) -> exp.Expr:
    count = _f("NULLIF", columns("AGG_COUNT"), exp.Literal.number(0))
    return exp.Div(this=_double(columns("AGG_SUM")), expression=count, typed=False, safe=True)


def _final_variance(columns: Columns, extra: Sequence[exp.Expr]) -> exp.Expr:
    """Of the population, as SiddhiQL's stdDev; null without a value."""
    count = _f("NULLIF", columns("AGG_COUNT"), exp.Literal.number(0))
    return exp.Div(this=columns("AGG_M2"), expression=count, typed=False, safe=True)


def _self(prefix: str) -> Callable[[Columns, Sequence[exp.Expr]], exp.Expr]:
    return lambda columns, extra: columns(prefix)


def _final_quantiles(columns: Columns, extra: Sequence[exp.Expr]) -> exp.Expr:
    """All of QUANTILES, or the value at the one rank that was asked for."""
    if extra:
        return _f("rollup_kll_quantile", columns("AGG_KLL"), _double(extra[0]))
    return _f("rollup_kll_quantiles", columns("AGG_KLL"))


def _sketch(name: str, prefix: str) -> Callable[[Columns, Sequence[exp.Expr]], exp.Expr]:
    return lambda columns, extra: _f(name, columns(prefix), *extra)


AGGREGATES: Mapping[str, Aggregate] = {
    "sum": Aggregate(("AGG_SUM",), _numeric(lambda k: Type.LONG if k.integral else Type.DOUBLE), _final_sum),
    "count": Aggregate(("AGG_COUNT",), _any(lambda k: Type.LONG), _self("AGG_COUNT")),
    "avg": Aggregate(("AGG_SUM", "AGG_COUNT"), _numeric(lambda k: Type.DOUBLE), _final_avg),
    "min": Aggregate(("AGG_MIN",), _any(lambda k: k), _self("AGG_MIN")),
    "max": Aggregate(("AGG_MAX",), _any(lambda k: k), _self("AGG_MAX")),
    "first": Aggregate(("AGG_FIRST",), _any(lambda k: k), _self("AGG_FIRST")),
    "last": Aggregate(("AGG_LAST",), _any(lambda k: k), _self("AGG_LAST")),
    "stddev": Aggregate(
        ("AGG_COUNT", "AGG_MEAN", "AGG_M2"),
        _numeric(lambda k: Type.DOUBLE),
        lambda columns, extra: exp.Sqrt(this=_final_variance(columns, extra)),
    ),
    "variance": Aggregate(("AGG_COUNT", "AGG_MEAN", "AGG_M2"), _numeric(lambda k: Type.DOUBLE), _final_variance),
    "distinctcount": Aggregate(
        ("AGG_SET",),
        _any(lambda k: Type.LONG),
        lambda columns, extra: exp.cast(Size(this=columns("AGG_SET")), Type.LONG.sql),
    ),
    "hll": Aggregate(("AGG_HLL",), _any(lambda k: Type.LONG), _sketch("rollup_hll_estimate", "AGG_HLL")),
    "quantiles": Aggregate(
        ("AGG_KLL",),
        _numeric(lambda k: Type.OBJECT),
        _final_quantiles,
    ),
    "topk": Aggregate(("AGG_TOPK",), _any(lambda k: Type.OBJECT), _sketch("rollup_topk_items", "AGG_TOPK"), extra=1),
}


def narrowed(value: exp.Expr, kind: Kind) -> exp.Expr:
    """A state column as its table and its readers have it: exact sums as longs, null beyond 64 bits."""
    return _as_long(value) if kind is EXACT else value


def aggregate(name: str) -> Aggregate | None:
    """The aggregate of that name in any case, None when there is none."""
    return AGGREGATES.get(name.lower())
