"""EPL's words and what they stand for in the engine: types, operators, functions, aggregates. Tables, not code."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from decimal import Decimal, InvalidOperation
from functools import lru_cache
from typing import Any

from rollup.engine import operators as op
from rollup.engine.aggregates import known as agg
from rollup.engine.operators import Operator
from rollup.engine.types import ANY, BOOL, DECIMAL, DOUBLE, FLOAT, INT, LONG, STRING, TIMESTAMP, DataType, Kind
from rollup.lang.epl.java import narrowed, narrowing, shard_crc32, shard_hash, text

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


_A_NUMBER = "np.isfinite({0}) & ({1} == {1}) & ({1} != 0)"
REMAINDER = Operator(op.REMAINDER.name, remainder, doubles=f"np.where({_A_NUMBER}, np.fmod({{0}}, {{1}}), np.nan)")
ARITHMETIC: dict[str, Operator] = {"+": op.ADD, "-": op.SUBTRACT, "*": op.MULTIPLY, "%": REMAINDER}
OF_WHOLE: dict[str, Operator] = {**ARITHMETIC, **op.WRAPPING}
"""The same of whole numbers."""
BITS: dict[str, Operator] = {
    "&": Operator("&", "({0} & {1})", numpy="({0} & {1})"),
    "|": Operator("|", "({0} | {1})", numpy="({0} | {1})"),
    "^": Operator("^", "({0} ^ {1})", numpy="({0} ^ {1})"),
}


@lru_cache(maxsize=1024)
def regular(pattern: str) -> Any:
    """A regular expression whose time is linear in the text, whatever it says. Raises ValueError for one that is none, and for
    what asks for another time: back references, and looking ahead or behind.
    """
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        said = problem.args[0] if problem.args else problem
        raise ValueError(said.decode(errors="replace") if isinstance(said, bytes) else str(said)) from None


def _matches(value: str, pattern: str) -> bool | None:
    """Whether the whole text is of the pattern; of a pattern that is none nothing is known."""
    try:
        return regular(pattern).fullmatch(value) is not None
    except ValueError:
        return None


REGEXP = Operator("regexp", _matches)


HASHES: dict[str, Callable[..., int]] = {"hash_code": shard_hash, "consistent_hash_crc32": shard_crc32}
"""By what contexts share events out."""


CASTS: dict[Kind, Operator] = {
    Kind.INT: Operator("to int", lambda value: _whole(value, 32), doubles=narrowing(op.INT_MIN, op.INT_MAX)),
    Kind.LONG: Operator("to long", lambda value: _whole(value, 64), doubles=narrowing(op.LONG_MIN, op.LONG_MAX)),
    Kind.DOUBLE: Operator("to double", lambda value: _double(value)),
    Kind.FLOAT: Operator("to float", lambda value: None if (found := _double(value)) is None else op.single(found)),
    Kind.STRING: Operator("to string", text),
    Kind.BOOL: Operator("to boolean", lambda value: _boolean(value)),
    Kind.DECIMAL: Operator("to decimal", lambda value: _decimal(value)),
}
_WHOLE: dict[Kind, Operator] = {
    Kind.LONG: Operator("whole to long", lambda value: _whole(value, 64), numpy="{0}.astype('i8')"),
    Kind.DOUBLE: op.TO_DOUBLE,
    Kind.STRING: op.TO_STRING,
}
"""The same of whole numbers, of which a column is cast at once."""


def casting(value: DataType, to: DataType) -> Operator:
    """The cast of a value of one type to another."""
    whole = _WHOLE.get(to.kind) if value.integral else None
    words = op.WORDS.get(value.kind) if to.kind is Kind.STRING else None
    return whole or words or CASTS[to.kind]


def _whole(value: Any, bits: int) -> int | None:
    if not isinstance(value, str):
        return narrowed(value, bits)
    try:
        found = int(float(value)) if "." in value else int(value)
    except (ValueError, OverflowError):
        return None
    return found if narrowed(found, bits) == found else None


def _boolean(value: Any) -> bool | None:
    if isinstance(value, str):
        return value.lower() == "true"
    return value if isinstance(value, bool) else None


def _decimal(value: Any) -> Decimal | None:
    """None of what is no number, as there is no such decimal in Java."""
    try:
        found = Decimal(value or 0.0) if isinstance(value, float) else Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() else None


def _double(value: Any) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


# aggregates

_IN_FLOATS = {
    "enter": "{n} += 1; {total} = single({total} + {x})",
    "leave": "{n} = max({n} - 1, 0); {total} = single({total} - {x}) if {n} else 0",
}
_FLOAT_SUM = replace(agg.SUM, name="sum of floats", **_IN_FLOATS)
OF_FLOATS: dict[str, agg.Aggregate] = {
    "sum": _FLOAT_SUM,
    "total": _FLOAT_SUM,
    "avg": replace(agg.AVG, name="avg of floats", **_IN_FLOATS),
}
"""Of 32-bit floats: each addition is one of theirs."""
_IN_DECIMALS = {
    "enter": "{n} += 1; {total} = add_decimals({total}, {x})",
    "leave": "{n} = max({n} - 1, 0); {total} = subtract_decimals({total}, {x}) if {n} else 0",
    "merge": "{n} += {o_n}; {total} = add_decimals({total}, {o_total})",
}
_DECIMAL_SUM = replace(agg.SUM, name="sum of decimals", **_IN_DECIMALS)
OF_DECIMALS: dict[str, agg.Aggregate] = {
    "sum": _DECIMAL_SUM,
    "total": _DECIMAL_SUM,
    "avg": replace(agg.AVG, name="avg of decimals", **_IN_DECIMALS),
}
"""Of decimals: every digit is kept."""
OF_LONGS: dict[str, agg.Aggregate] = {"sum": agg.SUM_OF_LONGS, "total": agg.SUM_OF_LONGS, "avg": agg.AVG_OF_LONGS}
"""Of longs: Java's addition wraps."""
AGGREGATES: dict[str, agg.Aggregate] = {
    "count": replace(agg.COUNT, leave="{n} -= {n} > 0"),
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
    "leaving": agg.LEAVING,
    "firstever": replace(agg.FIRST_EVER, skips=True),
    "lastever": replace(agg.LAST_EVER, skips=True),
    "minever": agg.MINEVER,
    "maxever": agg.MAXEVER,
    "fminever": agg.MINEVER,
    "fmaxever": agg.MAXEVER,
}
"""The aggregates of one value. A count never falls below 0, whatever leaves without having come. `total` is our word for
`sum` (the document uses it)."""
ACCESS = {"first", "last", "window", "nth", "sorted", "minby", "maxby", "minbyever", "maxbyever", "rate"}
"""The aggregates that give back rows or values of them, see `accessing.py`."""
AGGREGATING = set(AGGREGATES) | ACCESS
BUILT_IN = {"current_timestamp", "istream", "prev", "prior", "prevtail", "prevcount", "prevwindow", "coalesce", "cast"}


def decimal_of(value: Any) -> Decimal | None:
    """A value as a decimal."""
    return None if value is None else Decimal(str(value))
