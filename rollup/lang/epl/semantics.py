"""EPL's words and what they stand for in the engine: types, operators, functions, aggregates. Tables, not code."""

from __future__ import annotations

import math
import zlib
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from typing import Any

from rollup.engine import aggregates as agg
from rollup.engine import operators as op
from rollup.engine.operators import Operator
from rollup.engine.types import ANY, BOOL, DECIMAL, DOUBLE, FLOAT, INT, LONG, STRING, TIMESTAMP, DataType, Kind
from rollup.lang.epl.lowering.accessing import LEAVING

TYPES: dict[str, DataType] = {
    **dict.fromkeys(("string", "character", "char"), STRING),
    **dict.fromkeys(("int", "integer", "short", "byte"), INT),
    **dict.fromkeys(("long",), LONG),
    **dict.fromkeys(("double",), DOUBLE),
    **dict.fromkeys(("float",), FLOAT),
    **dict.fromkeys(("boolean", "bool"), BOOL),
    **dict.fromkeys(("bigdecimal", "biginteger"), DECIMAL),
    **dict.fromkeys(("date", "datetime", "calendar"), TIMESTAMP),
    **dict.fromkeys(("object",), ANY),
}
"""By name in lower case, without a package."""

COMPARE: dict[str, Operator] = {
    "=": op.EQUAL,
    "!=": op.UNEQUAL,
    "<": op.LESS,
    "<=": op.LESS_EQUAL,
    ">": op.GREATER,
    ">=": op.GREATER_EQUAL,
    "is": op.SAME,
    "is not": op.NOT_SAME,
}
MIRRORED = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def remainder(a: float, b: float) -> float | None:
    """The remainder; by a zero that is a double it is no number, by one that is whole it is null."""
    return math.nan if b == 0 and isinstance(a + b, float) else op.remainder_cut(a, b)


ARITHMETIC: dict[str, Operator] = {"+": op.ADD, "-": op.SUBTRACT, "*": op.MULTIPLY, "%": Operator("%", remainder)}
BITS: dict[str, Operator] = {
    "&": Operator("&", "({0} & {1})"),
    "|": Operator("|", "({0} | {1})"),
    "^": Operator("^", "({0} ^ {1})"),
}
DECIMAL_REMAINDER = Operator("% of decimals", "({0} % {1})")
REGEXP = Operator("regexp", lambda text, pattern: __import__("re").fullmatch(pattern, text) is not None)


def _number(types: Sequence[DataType]) -> DataType:
    return types[0] if types and types[0].numeric else DOUBLE


def _of(kind: DataType) -> Callable[[Sequence[DataType]], DataType]:
    return lambda types: kind


Function = tuple[Operator, Callable[[Sequence[DataType]], DataType], int, int]
"""Operator, the type of the result by those of the arguments, least and most arguments."""


def _cut(value: float) -> int:
    return math.floor(value + 0.5)


MATH: dict[str, Function] = {
    "abs": (Operator("abs", "abs({0})"), _number, 1, 1),
    "sqrt": (Operator("sqrt", lambda x: math.sqrt(x) if x >= 0 else math.nan), _of(DOUBLE), 1, 1),
    "pow": (Operator("pow", lambda x, y: float(x) ** y), _of(DOUBLE), 2, 2),
    "exp": (Operator("exp", math.exp), _of(DOUBLE), 1, 1),
    "log": (
        Operator("log", lambda x: math.log(x) if x > 0 else (-math.inf if x == 0 else math.nan)),
        _of(DOUBLE),
        1,
        1,
    ),
    "floor": (Operator("floor", lambda x: float(math.floor(x))), _of(DOUBLE), 1, 1),
    "ceil": (Operator("ceil", lambda x: float(math.ceil(x))), _of(DOUBLE), 1, 1),
    "round": (Operator("round", _cut), _of(LONG), 1, 1),
    "max": (Operator("greater", "max({0}, {1})"), _number, 2, 2),
    "min": (Operator("lesser", "min({0}, {1})"), _number, 2, 2),
}
"""Functions behind `Math.`"""


def _substring(text: str, start: int, end: int | None = None) -> str:
    return text[start:end]


TEXT_METHODS: dict[str, Function] = {
    "touppercase": (Operator("upper", "{0}.upper()"), _of(STRING), 1, 1),
    "tolowercase": (Operator("lower", "{0}.lower()"), _of(STRING), 1, 1),
    "trim": (Operator("trim", "{0}.strip()"), _of(STRING), 1, 1),
    "length": (Operator("length", "len({0})"), _of(INT), 1, 1),
    "substring": (Operator("substring", _substring), _of(STRING), 2, 3),
    "contains": (Operator("contains", "({1} in {0})"), _of(BOOL), 2, 2),
    "startswith": (Operator("starts with", "{0}.startswith({1})"), _of(BOOL), 2, 2),
    "endswith": (Operator("ends with", "{0}.endswith({1})"), _of(BOOL), 2, 2),
    "indexof": (Operator("index of", "{0}.find({1})"), _of(INT), 2, 2),
    "equals": (op.EQUAL, _of(BOOL), 2, 2),
    "concat": (op.CONCAT, _of(STRING), 2, 2),
    "isempty": (Operator("is empty", "(not {0})"), _of(BOOL), 1, 1),
    "replace": (Operator("replace", "{0}.replace({1}, {2})"), _of(STRING), 3, 3),
}


def java_hash(value: Any) -> int:
    """Java's hash of a text (or of the text of another value), as `hash_code` gives it; never negative.

    >>> java_hash("a"), java_hash("ab")
    (97, 3105)
    """
    total = 0
    for sign in value if isinstance(value, str) else str(value):
        total = (31 * total + ord(sign)) & 0xFFFFFFFF
    return total & 0x7FFFFFFF


HASHES: dict[str, Callable[..., int]] = {
    "hash_code": lambda *values: java_hash("".join(str(value) for value in values)),
    "consistent_hash_crc32": lambda *values: zlib.crc32("".join(str(value) for value in values).encode()),
}


def text(value: Any) -> str:
    """A value as a text: true, NaN and Infinity as they are written elsewhere."""
    if isinstance(value, float) and not math.isfinite(value):
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    return str(value).lower() if isinstance(value, bool) else str(value)


CASTS: dict[Kind, Operator] = {
    Kind.INT: Operator("to int", lambda value: _whole(value, 2**31)),
    Kind.LONG: Operator("to long", lambda value: _whole(value, 2**63)),
    Kind.DOUBLE: Operator("to double", lambda value: _double(value)),
    Kind.FLOAT: Operator("to float", lambda value: _double(value)),
    Kind.STRING: Operator("to string", text),
    Kind.BOOL: Operator("to boolean", lambda value: value if isinstance(value, bool) else str(value).lower() == "true"),
    Kind.DECIMAL: op.TO_DECIMAL,
}


def _whole(value: Any, limit: int) -> int | None:
    try:
        found = int(float(value)) if isinstance(value, str) and "." in value else int(value)
    except (ValueError, OverflowError):
        return None
    return found if -limit <= found < limit else None


def _double(value: Any) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


# aggregates

AGGREGATES: dict[str, agg.Aggregate] = {
    "count": agg.COUNT,
    "sum": agg.SUM,
    "total": agg.SUM,
    "avg": agg.AVG,
    "min": agg.MIN,
    "max": agg.MAX,
    "fmin": agg.MIN,
    "fmax": agg.MAX,
    "median": agg.MEDIAN,
    "stddev": agg.STDDEV,
    "avedev": agg.AVEDEV,
    "countever": agg.COUNT_EVER,
    "leaving": LEAVING,
    "firstever": replace(agg.FIRST_EVER, skips=True),
    "lastever": replace(agg.LAST_EVER, skips=True),
    "minever": agg.MINEVER,
    "maxever": agg.MAXEVER,
    "fminever": agg.MINEVER,
    "fmaxever": agg.MAXEVER,
}
"""The aggregates of one value; `total` is our word for `sum` (the document uses it)."""
ACCESS = {"first", "last", "window", "nth", "sorted", "minby", "maxby", "minbyever", "maxbyever", "rate"}
"""The aggregates that give back rows or values of them, see `accessing.py`."""
AGGREGATING = set(AGGREGATES) | ACCESS
BUILT_IN = {"current_timestamp", "istream", "prev", "prior", "prevtail", "prevcount", "prevwindow", "coalesce", "cast"}


def decimal_of(value: Any) -> Decimal | None:
    """A value as a decimal."""
    return None if value is None else Decimal(str(value))
