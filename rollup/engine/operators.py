"""Operators: what a function or sign of a language computes, declared once each.

`python` is either the text of a Python expression over its arguments `{0} {1} …`, or a function. A strict operator is
null when an argument is null and is not called then. `numpy`, where there is one, is the same over arrays without
nulls; the columnar executor keeps the null masks itself. A language's table (rollup/lang/*/semantics.py) says which
operator stands for which of its words: that is where `/` is cut, exact, or null by zero.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal
from functools import lru_cache
from typing import Any

from rollup.engine.row import Row, comparable, listed
from rollup.engine.sizes import joined
from rollup.engine.types import Kind

INT_MIN, INT_MAX = -(2**31), 2**31 - 1
LONG_MIN, LONG_MAX = -(2**63), 2**63 - 1
EXACT = 2**53
"""Up to here each whole number is a double, too."""


@dataclass(frozen=True)
class Operator:
    """An operator by name; `python` as the module says. `pure`: equal arguments give equal values. `field`: it is the value at
    this place of a row, which is its argument.
    `doubles`: as `numpy`, of arrays that are all of doubles. `loop`: as `python`, of numbers of the processor in a compiled
    loop; where it is None `python` is that, too.

    >>> MULTIPLY.python, MULTIPLY.strict
    ('({0} * {1})', True)

    There is one of each, which is told by `is`; a copy of an expression has the same.

    >>> from copy import deepcopy
    >>> deepcopy(MULTIPLY) is MULTIPLY
    True
    """

    name: str
    python: str | Callable[..., Any]
    strict: bool = True
    numpy: str | None = None
    pure: bool = True
    field: int | None = None
    doubles: str | None = None
    loop: str | None = None

    @property
    def compiled(self) -> str | None:
        """The text in a compiled loop; None where there is none."""
        return self.python if self.loop is None and isinstance(self.python, str) else self.loop

    def __deepcopy__(self, _: object) -> Operator:
        return self


def fit(low: int, high: int) -> Callable[[int], int | None]:
    """A function that gives null for a whole number that does not fit; numbers never wrap."""

    def check(value: int) -> int | None:
        return value if low <= value <= high else None

    return check


def wrapped(value: int) -> int:
    """A whole number by its last 64 bits, as that of the processor is when it leaves them.

    >>> wrapped(2**63), wrapped(-(2**63) - 1), wrapped(7)
    (-9223372036854775808, 9223372036854775807, 7)
    """
    return value if LONG_MIN <= value <= LONG_MAX else (value - LONG_MIN) % 2**64 + LONG_MIN


def single(value: float) -> float:
    """The nearest 32-bit float; beyond its range infinity.

    >>> single(0.5), single(16_777_217), single(1e300)
    (0.5, 16777216.0, inf)
    """
    try:
        return struct.unpack("f", struct.pack("f", value))[0]
    except OverflowError:
        return math.copysign(math.inf, value)


def words_of_double(value: float) -> str:
    """A double in the fewest digits that mean it; below 0.001 and from 10 million on with an exponent, as Java writes it.

    >>> words_of_double(0.1), words_of_double(1e10), words_of_double(-0.00012), words_of_double(math.inf)
    ('0.1', '1.0E10', '-1.2E-4', 'Infinity')
    """
    if not math.isfinite(value):
        return "NaN" if value != value else "Infinity" if value > 0 else "-Infinity"
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    first, *rest = map(str, digits)
    return f"{'-' * sign}{first}.{''.join(rest) or '0'}E{int(exponent) + len(rest)}"


def words_of_single(value: float) -> str:
    """A 32-bit float in the fewest digits that mean it.

    >>> words_of_single(single(0.1)), words_of_single(single(1e10))
    ('0.1', '1.0E10')
    """
    if not math.isfinite(value):
        return words_of_double(value)
    return words_of_double(next(s for digits in range(1, 10) if single(s := float(f"{value:.{digits}g}")) == value))


def divide_cut(a: int, b: int) -> int | None:
    """Whole division towards zero; by zero null.

    >>> divide_cut(-7, 2), divide_cut(1, 0)
    (-3, None)
    """
    if b == 0:
        return None
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def remainder_cut(a: float, b: float) -> float | None:
    """The remainder with the sign of the dividend, as SQL's and Java's `%`; by zero null.

    >>> remainder_cut(-7, 2), remainder_cut(7.5, 2), remainder_cut(1, 0)
    (-1, 1.5, None)
    """
    if b == 0:
        return None
    if isinstance(a, int) and isinstance(b, int):
        return a - b * (divide_cut(a, b) or 0)
    return math.fmod(a, b) if math.isfinite(a) and not math.isnan(b) else math.nan


def divide_null(a: float, b: float) -> float | None:
    """Division of doubles; by zero null."""
    return None if b == 0 else a / b


def divide_ieee(a: float, b: float) -> float:
    """Division of doubles as IEEE 754 has it: by zero infinity or NaN."""
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1.0, b)


def like(text: str, pattern: str, escape: str | None = None) -> bool:
    """SQL's LIKE: `%` any text, `_` any one sign.

    >>> like("a.c", "a.%"), like("abc", "a.%")
    (True, False)
    """
    first, *rest = _pieces(pattern, escape)
    if not rest:
        return first.pattern.fullmatch(text) is not None
    *middle, last = rest
    found = first.pattern.match(text)
    for piece in middle:  # what stands first is as good as any other, so nothing is tried twice
        found = found and piece.pattern.search(text, found.end())
    begin = len(text) - last.length
    return found is not None and begin >= found.end() and last.pattern.fullmatch(text, begin) is not None


@dataclass(frozen=True)
class _Piece:
    """What stands between two `%`: signs, and such as may be any."""

    pattern: re.Pattern[str]
    length: int


@lru_cache(maxsize=1024)
def _pieces(pattern: str, escape: str | None) -> tuple[_Piece, ...]:
    pieces, signs = [list[str]()], iter(pattern)
    for sign in signs:
        if sign == escape:
            pieces[-1] += [re.escape(each) for each in (next(signs, ""),) if each]
        elif sign == "%":
            pieces.append([])
        else:
            pieces[-1].append("." if sign == "_" else re.escape(sign))
    return tuple(_Piece(re.compile("".join(piece), re.DOTALL), len(piece)) for piece in pieces)


def member(value: Any, *choices: Any) -> bool | None:
    """SQL's IN: unknown when it is not found and one of the choices is null."""
    if value in choices:
        return True
    return None if None in choices else False


ADD = Operator("+", "({0} + {1})", numpy="({0} + {1})")
SUBTRACT = Operator("-", "({0} - {1})", numpy="({0} - {1})")
MULTIPLY = Operator("*", "({0} * {1})", numpy="({0} * {1})")
NEGATE = Operator("negate", "(-{0})", numpy="(-{0})")


def _wrapping(sign: Operator, python: Callable[..., int], name: str) -> Operator:
    numpy = f"np.{name}({'{0}, {1}' if name != 'negative' else '{0}'}, dtype=np.int64)"
    return Operator(f"{sign.name} of 64 bits", python, numpy=numpy, loop=sign.compiled)


WRAPPING: Mapping[str, Operator] = {
    "+": _wrapping(ADD, lambda a, b: wrapped(a + b), "add"),
    "-": _wrapping(SUBTRACT, lambda a, b: wrapped(a - b), "subtract"),
    "*": _wrapping(MULTIPLY, lambda a, b: wrapped(a * b), "multiply"),
    "negate": _wrapping(NEGATE, lambda a: wrapped(-a), "negative"),
}
"""Arithmetic of whole numbers that keep their last 64 bits, by sign."""
DIVIDE_CUT = Operator("/ cut", divide_cut)
DIVIDE_NULL = Operator("/ null by zero", divide_null)
_NO_NUMBER = "({1} == 0) & (({0} == 0) | ({0} != {0}))"  # whose sign the processor would choose
DIVIDE_IEEE = Operator("/ ieee", divide_ieee, numpy=f"np.where({_NO_NUMBER}, np.nan, np.true_divide({{0}}, {{1}}))")
REMAINDER = Operator("%", remainder_cut)
LEAST = Operator("least", "min({0}, {1})", numpy="np.where({1} < {0}, {1}, {0})")
GREATEST = Operator("greatest", "max({0}, {1})", numpy="np.where({1} > {0}, {1}, {0})")
"""Of two numbers; of two that are equal, the first."""
FIT_INT = Operator("fits int", fit(INT_MIN, INT_MAX))
FIT_LONG = Operator("fits long", fit(LONG_MIN, LONG_MAX))
FIT_FLOAT = Operator("fits float", single)
WORDS: Mapping[Kind, Operator] = {
    Kind.FLOAT: Operator("words of a float", words_of_single),
    Kind.DOUBLE: Operator("words of a double", words_of_double),
}

EQUAL = Operator("=", "({0} == {1})", numpy="({0} == {1})")
UNEQUAL = Operator("!=", "({0} != {1})", numpy="({0} != {1})")
LESS = Operator("<", "({0} < {1})", numpy="({0} < {1})")
LESS_EQUAL = Operator("<=", "({0} <= {1})", numpy="({0} <= {1})")
GREATER = Operator(">", "({0} > {1})", numpy="({0} > {1})")
GREATER_EQUAL = Operator(">=", "({0} >= {1})", numpy="({0} >= {1})")
SAME = Operator("is", "({0} == {1})", strict=False)
NOT_SAME = Operator("is not", "({0} != {1})", strict=False)
IS_NULL = Operator("is null", "({0} is None)", strict=False)
NOT_NULL = Operator("is not null", "({0} is not None)", strict=False)
NOT = Operator("not", "(not {0})", numpy="(~{0})")
BETWEEN = Operator("between", "({1} <= {0} <= {2})")
MEMBER = Operator("in", lambda value, *choices: None if value is None else member(value, *choices), strict=False)

ROW = Operator("row", lambda *values: Row(0, values), strict=False)
"""A row of some values."""
AS_KEY = Operator("as a key", comparable)
OF_KEY = Operator("of a key", listed)
LIKE = Operator("like", like)
CONCAT = Operator("||", joined)
TO_DOUBLE = Operator("to double", "float({0})", numpy="{0}.astype('f8')")
TO_STRING = Operator("to string", "str({0})")
GET = Operator(
    "get",
    lambda value, name: value.get(name) if isinstance(value, dict) else getattr(value, "get", lambda _: None)(name),
)
ELEMENT = Operator("element", lambda values, place: values[place] if 0 <= place < len(values) else None)
MINIMUM = Operator("minimum", lambda *values: min((v for v in values if v is not None), default=None), strict=False)
MAXIMUM = Operator("maximum", lambda *values: max((v for v in values if v is not None), default=None), strict=False)
