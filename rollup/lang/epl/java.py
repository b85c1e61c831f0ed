"""What statements call of Java's standard classes: static methods by class, and methods of texts, numbers and maps.

Tables, not code. Whatever has no effect outside its arguments and gives a value that streams can have stands here.
"""

from __future__ import annotations

import math
import struct
import sys
import zlib
from collections.abc import Callable, Sequence
from typing import Any

from rollup.engine import operators as op
from rollup.engine import reals
from rollup.engine.expressions import Const
from rollup.engine.operators import Operator
from rollup.engine.sizes import repeated, replaced
from rollup.engine.types import ANY, BOOL, DOUBLE, FLOAT, INT, LONG, STRING, DataType, Kind

Function = tuple[Operator, Callable[[Sequence[DataType]], DataType], str]
"""Operator, the type of the result by those of the arguments, and what it wants: see `lowering/values/fitting.py`."""


def _of(kind: DataType) -> Callable[[Sequence[DataType]], DataType]:
    return lambda types: kind


def _widest(types: Sequence[DataType]) -> DataType:
    """Of numbers the widest; what is no number is taken for a double."""
    numbers = [kind for kind in types if kind.numeric]
    found = numbers[0] if numbers else DOUBLE
    for kind in numbers[1:]:
        found = found.widest(kind)
    return found


def _function(
    name: str, python: str | Callable[..., Any], kind: DataType, wants: str, doubles: str | None = None
) -> Function:
    return Operator(name, python, doubles=doubles), _of(kind), wants


def rounded(value: float) -> int:
    """Half up, and what no long holds as near as a long comes.

    >>> rounded(2.5), rounded(math.nan), rounded(1e300)
    (3, 0, 9223372036854775807)
    """
    if math.isnan(value):
        return 0
    return int(reals.half_up(value)) if abs(value) < op.LONG_MAX else op.LONG_MAX if value > 0 else op.LONG_MIN


def narrowed(value: Any, bits: int) -> int:
    """A number as a whole one of so many bits: a fraction as near as they come to it, a whole number by its last bits.

    >>> narrowed(1e10, 32), narrowed(2**32 + 1, 32), narrowed(math.nan, 32), narrowed(-2.9, 64)
    (2147483647, 1, 0, -2)
    """
    most = (1 << bits - 1) - 1
    if isinstance(value, float):
        return 0 if value != value else most if value >= most else ~most if value <= ~most else int(value)
    return ((int(value) + most + 1) & (1 << bits) - 1) - most - 1


def narrowing(low: int, high: int) -> str:
    """`narrowed` of an array of doubles, to whole numbers between these."""
    inside = f"({{0}} < {high}.0) & ({{0}} > {low}.0)"
    return f"np.where({inside}, np.where({inside}, {{0}}, 0.0).astype('i8'), {_beyond(low, high)})"


def _beyond(low: int, high: int) -> str:
    """What doubles are as whole numbers that do not reach so far; what is no number is 0."""
    return f"np.where({{0}} > 0, {high}, np.where({{0}} < 0, {low}, 0))"


def sign(value: float) -> float:
    """One with the sign of a number; of a zero, and of what is no number, itself.

    >>> sign(-3), sign(-0.0), sign(math.nan)
    (-1.0, -0.0, nan)
    """
    return float(value) if value == 0 or value != value else math.copysign(1.0, value)


def _compared(a: Any, b: Any) -> int:
    return (a > b) - (a < b)


def _compared_texts(a: str, b: str) -> int:
    """Java's order of texts: the distance of the first signs that differ, else of the lengths.

    >>> _compared_texts("b", "a"), _compared_texts("ab", "abcd"), _compared_texts("a", "a")
    (1, -2, 0)
    """
    return next((ord(x) - ord(y) for x, y in zip(a, b, strict=False) if x != y), len(a) - len(b))


def text(value: Any) -> str:
    """A value as Java's text of it: `true`, `1.0E10`, `NaN`. Of a 32-bit float see `words_of_single`."""
    if isinstance(value, float):
        return op.words_of_double(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def shard_hash(*values: Any) -> int:
    """Java's `hashCode`, without its sign, as `hash_code` shares events out; null is 0.

    >>> shard_hash("a"), shard_hash("ab"), shard_hash(-3), shard_hash(None)
    (97, 3105, 3, 0)
    """
    if len(values) == 1:
        return abs(_java_hash(values[0]))
    total = 0
    for value in values:
        total = 31 * total + _java_hash(value)
    return abs(_signed(total & 0xFFFFFFFF))


def shard_crc32(*values: Any) -> int:
    """The check sum of a text; null is 0.

    >>> shard_crc32("b"), shard_crc32(None)
    (1908338681, 0)
    """
    if values == (None,):
        return 0
    return zlib.crc32("".join(str(value) for value in values).encode())


def _java_hash(value: Any) -> int:
    match value:
        case None:
            return 0
        case bool():
            return 1231 if value else 1237
        case int():
            return value if -(2**31) <= value < 2**31 else _signed((value ^ (value >> 32)) & 0xFFFFFFFF)
        case float():
            bits = int.from_bytes(struct.pack(">d", value))
            return _signed((bits ^ (bits >> 32)) & 0xFFFFFFFF)
        case _:
            return _text_hash(str(value))


def _text_hash(value: str) -> int:
    total = 0
    for sign in value:
        total = (31 * total + ord(sign)) & 0xFFFFFFFF
    return _signed(total)


def _signed(bits: int) -> int:
    return bits - 2**32 if bits >= 2**31 else bits


def _whole(value: str) -> int | None:
    try:
        return int(value)
    except ValueError:
        return None


def _real(value: str) -> float | None:
    try:
        return float(value)
    except ValueError:
        return None


def _single(value: str) -> float | None:
    found = _real(value)
    return None if found is None else op.single(found)


def _substring(value: str, start: int, end: int | None = None) -> str | None:
    return value[start : len(value) if end is None else end] if 0 <= start <= len(value) else None


_ABS: Function = (Operator("abs", "abs({0})", doubles="np.abs({0})"), _widest, "number")
_MAX: Function = (op.GREATEST, _widest, "number number")
_MIN: Function = (op.LEAST, _widest, "number number")
_COMPARE = _function("compare", _compared, INT, "number number")
TO_TEXT = Operator("text of", text)
_TO_TEXT: Function = (TO_TEXT, _of(STRING), "value")


def _real_function(name: str, python: Callable[[float], float], doubles: str | None = None) -> Function:
    return _function(name, lambda value: python(float(value)), DOUBLE, "number", doubles)


_FITS = "np.abs({0}) < 2.0**63"
_ROUNDED = f"np.where({_FITS}, np.floor(np.where({_FITS}, {{0}}, 0.0)).astype('i8') + ({{0}} - np.floor({{0}}) >= 0.5), {_beyond(op.LONG_MIN, op.LONG_MAX)})"
"""`rounded` of an array."""


_MATH: dict[str, Function] = {
    "abs": _ABS,
    "max": _MAX,
    "min": _MIN,
    "sqrt": _real_function("sqrt", reals.root, "np.sqrt(np.where({0} >= 0, {0}, np.nan))"),
    "cbrt": _real_function("cbrt", math.cbrt),
    "pow": _function("pow", reals.power, DOUBLE, "number number"),
    "exp": _real_function("exp", reals.exponential),
    "log": _real_function("log", reals.logarithm(math.log)),
    "log10": _real_function("log10", reals.logarithm(math.log10)),
    "floor": _real_function("floor", reals.finite(math.floor), "np.floor({0})"),
    "ceil": _real_function("ceil", reals.finite(math.ceil), "np.ceil({0})"),
    "rint": _real_function("rint", reals.finite(round), "np.rint({0})"),
    "round": _function("round", rounded, LONG, "number", _ROUNDED),
    "signum": _real_function("signum", sign, "np.where(({0} == 0) | ({0} != {0}), {0}, np.copysign(1.0, {0}))"),
    "hypot": _function("hypot", math.hypot, DOUBLE, "number number"),
    "sin": _real_function("sin", reals.circular(math.sin)),
    "cos": _real_function("cos", reals.circular(math.cos)),
    "tan": _real_function("tan", reals.circular(math.tan)),
    "atan2": _function("atan2", math.atan2, DOUBLE, "number number"),
    "toradians": _real_function("radians", math.radians, "{0} * (np.pi / 180.0)"),
    "todegrees": _real_function("degrees", math.degrees, "{0} * (180.0 / np.pi)"),
    "floormod": (Operator("floorMod", "({0} % {1} if {1} else None)"), _widest, "number number"),
    "floordiv": (Operator("floorDiv", "({0} // {1} if {1} else None)"), _widest, "number number"),
}


def _whole_numbers(kind: DataType, word: str) -> dict[str, Function]:
    return {
        f"parse{word}": _function("to whole", _whole, kind, "text"),
        "valueof": _function("to whole", lambda value: _whole(str(value)), kind, "value"),
        "tostring": _TO_TEXT,
        "compare": _COMPARE,
        "max": _MAX,
        "min": _MIN,
        "sum": (op.ADD, _of(kind), "number number"),
        "signum": _function("signum", lambda value: _compared(value, 0), INT, "number"),
    }


_REAL: dict[str, Function] = {
    "parsedouble": _function("to real", _real, DOUBLE, "text"),
    "parsefloat": _function("to real", _real, DOUBLE, "text"),
    "valueof": _function("to real", lambda value: _real(str(value)), DOUBLE, "value"),
    "tostring": _TO_TEXT,
    "compare": _COMPARE,
    "max": _MAX,
    "min": _MIN,
    "sum": (op.ADD, _of(DOUBLE), "number number"),
    "isnan": _function("is NaN", math.isnan, BOOL, "number", "np.isnan({0})"),
    "isinfinite": _function("is infinite", math.isinf, BOOL, "number", "np.isinf({0})"),
}
_BOOLEAN: dict[str, Function] = {
    "parseboolean": _function("to boolean", lambda value: value.lower() == "true", BOOL, "text"),
    "valueof": _function("to boolean", lambda value: str(value).lower() == "true", BOOL, "value"),
    "tostring": _TO_TEXT,
}
_SINGLE: dict[str, Function] = {
    **_REAL,
    "parsefloat": _function("to single", lambda value: _single(value), FLOAT, "text"),
    "valueof": _function("to single", lambda value: _single(str(value)), FLOAT, "value"),
    "tostring": (op.WORDS[Kind.FLOAT], _of(STRING), "number"),
}
STATIC: dict[str, dict[str, Function]] = {
    "Math": _MATH,
    "Integer": _whole_numbers(INT, "int"),
    "Long": _whole_numbers(LONG, "long"),
    "Double": _REAL,
    "Float": _SINGLE,
    "Boolean": _BOOLEAN,
    "String": {
        "valueof": (Operator("text of", lambda x: "null" if x is None else text(x), False), _of(STRING), "value")
    },
}
"""Static methods by class, as Java writes it, and method in lower case."""

FIELDS: dict[str, dict[str, Const]] = {
    "Math": {"PI": Const(math.pi, DOUBLE), "E": Const(math.e, DOUBLE)},
    "Integer": {"MAX_VALUE": Const(op.INT_MAX, INT), "MIN_VALUE": Const(op.INT_MIN, INT)},
    "Long": {"MAX_VALUE": Const(op.LONG_MAX, LONG), "MIN_VALUE": Const(op.LONG_MIN, LONG)},
    "Double": {"MAX_VALUE": Const(sys.float_info.max, DOUBLE), "MIN_VALUE": Const(5e-324, DOUBLE)},
}
"""Constants by class and name, as Java writes both."""

_LENGTH = "len({0})"
TEXTS: dict[str, Function] = {
    "touppercase": _function("upper", "{0}.upper()", STRING, "text"),
    "tolowercase": _function("lower", "{0}.lower()", STRING, "text"),
    "trim": _function("trim", "{0}.strip()", STRING, "text"),
    "strip": _function("trim", "{0}.strip()", STRING, "text"),
    "length": _function("length", _LENGTH, INT, "text"),
    "substring": _function("substring", _substring, STRING, "text whole whole?"),
    "charat": _function("sign at", lambda value, at: value[at] if 0 <= at < len(value) else None, STRING, "text whole"),
    "contains": _function("contains", "({1} in {0})", BOOL, "text text"),
    "startswith": _function("starts with", "{0}.startswith({1})", BOOL, "text text"),
    "endswith": _function("ends with", "{0}.endswith({1})", BOOL, "text text"),
    "indexof": _function("index of", lambda value, *what: value.find(*what), INT, "text text whole?"),
    "lastindexof": _function("last index of", "{0}.rfind({1})", INT, "text text"),
    "equals": (op.EQUAL, _of(BOOL), "text value"),
    "equalsignorecase": _function("equals ignoring case", "({0}.lower() == {1}.lower())", BOOL, "text text"),
    "compareto": _function("compare", _compared_texts, INT, "text text"),
    "comparetoignorecase": _function("compare", lambda a, b: _compared_texts(a.lower(), b.lower()), INT, "text text"),
    "concat": (op.CONCAT, _of(STRING), "text text"),
    "isempty": _function("is empty", "(not {0})", BOOL, "text"),
    "isblank": _function("is blank", "(not {0}.strip())", BOOL, "text"),
    "replace": _function("replace", replaced, STRING, "text text text"),
    "repeat": _function("repeat", repeated, STRING, "text whole"),
    "hashcode": _function("hash", _text_hash, INT, "text"),
    "tostring": _TO_TEXT,
}
"""Methods of texts; the text is the first argument."""

NUMBERS: dict[str, Function] = {
    "intvalue": _function("to int", lambda value: narrowed(value, 32), INT, "number"),
    "longvalue": _function("to long", lambda value: narrowed(value, 64), LONG, "number"),
    "doublevalue": (op.TO_DOUBLE, _of(DOUBLE), "number"),
    "floatvalue": (op.TO_DOUBLE, _of(DOUBLE), "number"),
    "tostring": _TO_TEXT,
    "compareto": _COMPARE,
    "equals": (op.EQUAL, _of(BOOL), "number value"),
}
"""Methods of numbers."""


def _element(types: Sequence[DataType]) -> DataType:
    return types[0].element or ANY


MAPS: dict[str, Function] = {
    "size": _function("size", _LENGTH, INT, "value"),
    "isempty": _function("is empty", "(not {0})", BOOL, "value"),
    "containskey": _function("has key", "({1} in {0})", BOOL, "value order"),
    "get": (Operator("value of key", "{0}.get({1})"), _element, "value order"),
}
"""Methods of maps, which `toMap` and `groupBy` make."""
