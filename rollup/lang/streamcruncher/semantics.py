"""StreamCruncher's words as tables: types of columns, operators of pre-filters, aggregates and the types they give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from rollup.engine import operators as op
from rollup.engine.aggregates import known as agg
from rollup.engine.aggregates.declaration import Aggregate
from rollup.engine.operators import Operator
from rollup.engine.types import BOOL, DOUBLE, FLOAT, INT, LONG, STRING, TIMESTAMP, DataType, Kind

TYPES: Mapping[str, DataType] = {
    "long": LONG,
    "int": INT,
    "double": DOUBLE,
    "float": FLOAT,
    "str": STRING,
    "ts": TIMESTAMP,
    "bool": BOOL,
}
COMPARISONS: Mapping[str, Operator] = {
    "=": op.EQUAL,
    "!=": op.UNEQUAL,
    "<": op.LESS,
    "<=": op.LESS_EQUAL,
    ">": op.GREATER,
    ">=": op.GREATER_EQUAL,
}
ARITHMETIC: Mapping[str, Operator] = {"+": op.ADD, "-": op.SUBTRACT, "*": op.MULTIPLY}


def division(whole: bool) -> Operator:
    """Whole numbers divide to whole numbers."""
    return op.DIVIDE_CUT if whole else op.DIVIDE_NULL


@dataclass(frozen=True)
class Summary:
    """An aggregate and the type of its value; `numeric`: of numbers only."""

    aggregate: Aggregate
    result: Callable[[DataType], DataType]
    numeric: bool = True


def _double(kind: DataType) -> DataType:
    return DOUBLE


_SUM = replace(
    agg.SUM,
    value="({total} if not isinstance({total}, int) or -2**63 <= {total} < 2**63 else None) if {n} else None",
    beyond="isinstance({total}, int) and not -2**63 <= {total} < 2**63",
)
"""A sum of whole numbers that 64 bits do not hold is null until enough has left, and counted."""
AGGREGATES: Mapping[str, Summary] = {
    "count": Summary(agg.COUNT, lambda kind: LONG, numeric=False),
    "sum": Summary(_SUM, lambda kind: LONG if kind.integral else DOUBLE),
    "avg": Summary(agg.AVG, _double),
    "min": Summary(agg.MIN, lambda kind: kind, numeric=False),
    "max": Summary(agg.MAX, lambda kind: kind, numeric=False),
    "median": Summary(agg.MEDIAN, _double),
    "geomean": Summary(agg.GEOMETRIC_MEAN, _double),
    "variance": Summary(agg.SPREAD_OF_SAMPLE, _double),
    "stddev": Summary(agg.DEVIATION_OF_SAMPLE, _double),
    "skewness": Summary(agg.SKEWNESS, _double),
    "kurtosis": Summary(agg.KURTOSIS, _double),
    "sumsq": Summary(agg.SUM_OF_SQUARES, _double),
}


def aggregate(function: str, kind: DataType) -> Aggregate:
    """The aggregate of a function over values of a type: only a sum of longs can leave 64 bits."""
    return agg.SUM if function == "sum" and kind != LONG else AGGREGATES[function].aggregate


COMPARABLE = (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.TIMESTAMP)
"""Kinds that compare with each other as numbers."""
