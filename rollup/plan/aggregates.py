"""The aggregates of SiddhiQL: which function each name is, the type of its value, and the columns that its rows keep.

The functions are declared once, with windows, in `rollup/engine/aggregates`; here their partials get columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum

import pyarrow as pa
from sqlglot import exp

from rollup.core.dialects import Checked
from rollup.core.errors import PlanError
from rollup.engine.aggregates import known
from rollup.engine.aggregates.declaration import Aggregate, Kept
from rollup.engine.aggregates.partials import Partial, Shape
from rollup.plan.types import MORE, Type, fitting

WIDE = exp.DataType.build("DECIMAL(38, 0)")


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
"""A sum of whole numbers: exact in the state, so that it never wraps; a table has it as a long, or null beyond 64 bits.
Compared by its parts, since an aggregation may come from another process."""

_KINDS: Mapping[Shape, Callable[[Type], Kind]] = {
    Shape.ARGUMENT: Kind.of,
    Shape.ARGUMENTS: Kind.list_of,
    Shape.SUM: lambda kind: EXACT if kind.integral else Kind.of(kind.total),
    Shape.LONG: lambda kind: LONG,
    Shape.DOUBLE: lambda kind: DOUBLE,
    Shape.BYTES: lambda kind: BLOB,
}


def kind_of(partial: Partial, argument: Type) -> Kind:
    """What the column of a partial is made of, for an argument of that type."""
    return _KINDS[partial.shape](argument)


def column_of(partial: str) -> str:
    """What the columns of a partial begin with: `AGG_SUM` of `AGG_SUM_price`."""
    return f"AGG_{partial.upper()}"


class Gives(Enum):
    """The type of an aggregate's value."""

    ARGUMENT = "that of the argument"
    SUM = "long of whole numbers, a decimal of decimals, double of others"
    MEAN = "a decimal of decimals, double of others"
    LONG = "long"
    DOUBLE = "double"
    BOOL = "bool"
    OBJECT = "object"


_FIXED = {
    Gives.LONG: Type.LONG,
    Gives.DOUBLE: Type.DOUBLE,
    Gives.MEAN: Type.DOUBLE,
    Gives.BOOL: Type.BOOL,
    Gives.OBJECT: Type.OBJECT,
}


@dataclass(frozen=True)
class Summary:
    """An aggregate of SiddhiQL: its function and the type of its value; `numeric` says that it takes only numbers.

    `constant` is the form of the function with a constant behind its argument, where it may be left out.
    """

    function: Aggregate
    gives: Gives
    numeric: bool = False
    constant: Summary | None = None

    @property
    def kept(self) -> Kept:
        """What tables keep; every aggregate of a rollup has it."""
        assert self.function.kept is not None
        return self.function.kept

    def type(self, name: str, argument: Type) -> Type:
        """The type of the value. Raises PlanError for an argument that the aggregate does not take."""
        if self.numeric and not argument.numeric:
            raise PlanError(f"{name} takes a number, not {argument}", hint="int, long, float, double or decimal(p, s)")
        if argument.exact and self.gives in (Gives.SUM, Gives.MEAN):
            fitting(argument.digits[0] + MORE, argument.digits[1], f"sums of {argument}")
            return argument.total if self.gives is Gives.SUM else argument.mean
        return self.value(argument.integral) or argument

    def value(self, integral: bool) -> Type | None:
        """The type of the value over whole numbers or over others; None where it is that of the argument."""
        if self.gives is Gives.SUM:
            return Type.LONG if integral else Type.DOUBLE
        return _FIXED.get(self.gives)


_QUANTILE = Summary(known.QUANTILE, Gives.DOUBLE, numeric=True)
AGGREGATES: Mapping[str, Summary] = {
    "sum": Summary(known.SUM, Gives.SUM, numeric=True),
    "count": Summary(known.COUNT, Gives.LONG),
    "avg": Summary(known.AVG, Gives.MEAN, numeric=True),
    "min": Summary(known.MIN, Gives.ARGUMENT),
    "max": Summary(known.MAX, Gives.ARGUMENT),
    "first": Summary(known.FIRST_EVER, Gives.ARGUMENT),
    "last": Summary(known.LAST_EVER, Gives.ARGUMENT),
    "stddev": Summary(known.STDDEV_POPULATION, Gives.DOUBLE, numeric=True),
    "variance": Summary(known.VARIANCE_POPULATION, Gives.DOUBLE, numeric=True),
    "covariance": Summary(known.COVARIANCE, Gives.DOUBLE, numeric=True),
    "corr": Summary(known.CORRELATION, Gives.DOUBLE, numeric=True),
    "mode": Summary(known.MODE, Gives.ARGUMENT),
    "distinctcount": Summary(known.DISTINCT_COUNT, Gives.LONG),
    "hll": Summary(known.HLL, Gives.LONG),
    "quantiles": Summary(known.QUANTILES, Gives.OBJECT, numeric=True, constant=_QUANTILE),
    "topk": Summary(known.TOPK, Gives.OBJECT),
}


def narrowed(value: exp.Expr, kind: Kind) -> exp.Expr:
    """A state column as its table and its readers have it: exact sums as longs, null beyond 64 bits; sums never wrap."""
    return Checked(this=value.copy(), to=Type.LONG.sql) if kind == EXACT else value


def guarded(merge: exp.Expr, overflow: exp.Expr) -> exp.Expr:
    """The merge of an exact sum, null when `overflow` says of one of the rows that it has lost its own."""
    lost = exp.func("COALESCE", exp.LogicalOr(this=overflow), exp.false())
    return exp.Case(ifs=[exp.If(this=exp.Not(this=lost), true=merge)])


def aggregate(name: str) -> Summary | None:
    """The aggregate of that name in any case, None when there is none."""
    return AGGREGATES.get(name.lower())


def arguments_of(call: exp.Anonymous) -> list[exp.Expr]:
    """What an aggregate is computed from, each of which has columns of its own: its arguments, and of two also the pair."""
    found = aggregate(call.name)
    if found is None or not call.expressions:
        return []
    given = call.expressions[: found.kept.arguments]
    return [*given, exp.Tuple(expressions=[each.copy() for each in given])] if len(given) > 1 else list(given)


def check_constant(name: str, value: float | None) -> None:
    """Raise PlanError for what cannot stand behind the argument of a sketch: no rank, or no number of values."""
    if name.lower() == "quantiles":
        if value is None or not 0 <= value <= 1:
            raise PlanError("this argument must be a rank from 0 to 1", hint="quantiles(x, 0.99)")
    elif not isinstance(value, int) or isinstance(value, bool) or not 0 < value < 2**31:
        raise PlanError(f"this argument of {name} must be a whole number from 1", hint=f"{name}(x, 10)")
