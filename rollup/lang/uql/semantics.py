"""What the words of UQL mean, as tables: operators by the kinds of their operands, aggregates, functions of spans."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from rollup.engine import operators as op
from rollup.engine.aggregates import known
from rollup.engine.aggregates.declaration import Aggregate
from rollup.engine.expressions import Call, Const, Expr
from rollup.engine.operators import Operator
from rollup.engine.types import BOOL, DOUBLE, DURATION, LONG, STRING, TIMESTAMP, DataType
from rollup.lang.uql.catalog import Kind
from rollup.lang.uql.reader import MICROSECONDS

TYPES: Mapping[Kind, DataType] = {
    Kind.INTEGER: LONG,
    Kind.FLOAT: DOUBLE,
    Kind.TEXT: STRING,
    Kind.BOOLEAN: BOOL,
    Kind.TIME: TIMESTAMP,
    Kind.SPAN: DURATION,
}
"""The engine's type of each kind; times and spans are microseconds."""

COMPARISONS: Mapping[str, Operator] = {
    "==": op.EQUAL,
    "!=": op.UNEQUAL,
    "<": op.LESS,
    "<=": op.LESS_EQUAL,
    ">": op.GREATER,
    ">=": op.GREATER_EQUAL,
}


def _floor_modulo(a: int, b: int) -> int | None:
    return None if b == 0 else a % b


MODULO_OF_TIME = Operator("mod of a time", _floor_modulo)
"""How far a time lies behind the last multiple of a span since 1970, also before 1970."""

Build = Callable[[Expr, Expr], Expr]


def _fitting(operator: Operator, kind: DataType) -> Build:
    """Whole numbers: null where the result leaves 64 bits."""
    return lambda a, b: Call(op.FIT_LONG, (Call(operator, (a, b), kind),), kind)


def _floating(operator: Operator) -> Build:
    return lambda a, b: Call(operator, (double(a), double(b)), DOUBLE)


def double(expr: Expr) -> Expr:
    """A number as a double."""
    if isinstance(expr, Const) and expr.type.integral:
        return Const(float(expr.value), DOUBLE)
    return expr if expr.type is DOUBLE else Call(op.TO_DOUBLE, (expr,), DOUBLE)


_FOUR = {"+": op.ADD, "-": op.SUBTRACT, "*": op.MULTIPLY}
_I, _F, _T, _S = Kind.INTEGER, Kind.FLOAT, Kind.TIME, Kind.SPAN

ARITHMETIC: dict[tuple[str, Kind, Kind], tuple[Kind, Build]] = {
    **{(sign, _I, _I): (_I, _fitting(operator, LONG)) for sign, operator in _FOUR.items()},
    ("/", _I, _I): (_I, _fitting(op.DIVIDE_CUT, LONG)),
    ("%", _I, _I): (_I, lambda a, b: Call(op.REMAINDER, (a, b), LONG)),
    ("-", _T, _T): (_S, _fitting(op.SUBTRACT, DURATION)),
    ("+", _T, _S): (_T, _fitting(op.ADD, TIMESTAMP)),
    ("-", _T, _S): (_T, _fitting(op.SUBTRACT, TIMESTAMP)),
    ("+", _S, _T): (_T, _fitting(op.ADD, TIMESTAMP)),
    ("%", _T, _S): (_S, lambda a, b: Call(MODULO_OF_TIME, (a, b), DURATION)),
    ("+", _S, _S): (_S, _fitting(op.ADD, DURATION)),
    ("-", _S, _S): (_S, _fitting(op.SUBTRACT, DURATION)),
    ("*", _S, _I): (_S, _fitting(op.MULTIPLY, DURATION)),
    ("*", _I, _S): (_S, _fitting(op.MULTIPLY, DURATION)),
    ("/", _S, _I): (_S, _fitting(op.DIVIDE_CUT, DURATION)),
    ("%", _S, _S): (_S, lambda a, b: Call(op.REMAINDER, (a, b), DURATION)),
    ("/", _S, _S): (_F, _floating(op.DIVIDE_NULL)),
}
"""Arithmetic by sign and kinds: the kind of the result, and how it is computed."""
for _kinds in ((_I, _F), (_F, _I), (_F, _F)):
    ARITHMETIC.update({(sign, *_kinds): (_F, _floating(operator)) for sign, operator in _FOUR.items()})
    ARITHMETIC["/", *_kinds] = (_F, _floating(op.DIVIDE_NULL))
    ARITHMETIC["%", *_kinds] = (_F, _floating(op.REMAINDER))


def negative(value: Expr) -> Expr:
    """The value with the other sign, null beyond 64 bits."""
    negated = Call(op.NEGATE, (value,), value.type)
    return negated if value.type is DOUBLE else Call(op.FIT_LONG, (negated,), value.type)


SPAN_FUNCTIONS: Mapping[str, int] = {f"{unit}s": size for unit, size in MICROSECONDS.items()}
"""seconds(span) and its like: the whole units in a span, cut."""


@dataclass(frozen=True)
class Function:
    """An aggregate function of UQL: what it is in the engine, the kind of its value, and what it may be asked of.

    `text_at`: the aggregate that finds the text of the same time, which is printed as it was read.
    """

    aggregate: Aggregate
    kind: Callable[[Kind], Kind]
    takes: frozenset[Kind]
    text_at: Aggregate | None = None


ANY = frozenset({Kind.INTEGER, Kind.FLOAT, Kind.TEXT, Kind.BOOLEAN, Kind.TIME})
"""What fields hold."""
_NUMBERS = frozenset({Kind.INTEGER, Kind.FLOAT})


def _same(kind: Kind) -> Kind:
    return kind


def _integer(kind: Kind) -> Kind:
    return Kind.INTEGER


def _mean(kind: Kind) -> Kind:
    return Kind.FLOAT


FUNCTIONS: Mapping[str, Function] = {
    "count": Function(known.COUNT, _integer, ANY),
    "avg": Function(known.AVG, _mean, _NUMBERS),
    "mean": Function(known.AVG, _mean, _NUMBERS),
    "sum": Function(known.SUM, _same, _NUMBERS),
    "min": Function(known.MINEVER, _same, ANY, text_at=known.LEAST_BY),
    "max": Function(known.MAXEVER, _same, ANY, text_at=known.MOST_BY),
    "first": Function(known.FIRST_EVER, _same, ANY, text_at=known.FIRST_EVER),
    "last": Function(known.LAST_EVER, _same, ANY, text_at=known.LAST_EVER),
    "distinctcount": Function(known.DISTINCT_COUNT, _integer, ANY),
    "hll": Function(known.HLL, _integer, ANY),
    "uniq": Function(known.HLL, _integer, ANY),
    "cms": Function(known.CMS, _integer, ANY),
}
"""The aggregate functions by their names in UQL."""

FREQUENCY_OF = known.CMS_OF
"""cms(x, v): how often one value came."""
