"""The value types of streams: what each is in Arrow and in SQL, which arithmetic it has, and which words name it.

A type is registered here once, by one call of `_registered`; `decimal(p, s)` is one type for each precision and scale.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache
from typing import ClassVar

import pyarrow as pa
from sqlglot import exp

from rollup.core.errors import PlanError

MOST = 38
"""Digits that a decimal has at most, in every store."""
MORE = 10
"""Digits that a sum of decimals has before those of its values: enough for ten thousand million of them."""
FINER = 6
"""Digits behind the point that an average has beyond those of its values, as far as 38 digits reach."""


class Type(str):
    """A value type, which is its name; there is one object for each, so that `is` compares them.

    >>> Type.LONG.arrow, Type.INT.widest(Type.DOUBLE), Type.decimal(10, 2).widest(Type.INT)
    (DataType(int64), 'double', 'decimal(12, 2)')
    """

    INT: ClassVar[Type]
    LONG: ClassVar[Type]
    FLOAT: ClassVar[Type]
    DOUBLE: ClassVar[Type]
    STRING: ClassVar[Type]
    BOOL: ClassVar[Type]
    OBJECT: ClassVar[Type]
    TIMESTAMP: ClassVar[Type]
    DATE: ClassVar[Type]

    arrow: pa.DataType
    """The Arrow type of a column."""
    duckdb: str
    """The type as DuckDB writes it."""
    postgres: str
    """The type as PostgreSQL writes it."""
    rank: int
    """The place in the order of widening; 0: no number."""
    digits: tuple[int, int]
    """Precision and scale of exact numbers; (0, 0) of all others."""

    @staticmethod
    @cache
    def decimal(precision: int, scale: int) -> Type:
        """The type of exact numbers with so many digits, `scale` of them behind the point."""
        name, arrow = f"decimal({precision}, {scale})", pa.decimal128(precision, scale)
        sql = f"({precision},{scale})"
        return _registered(name, f"DECIMAL{sql}", f"numeric{sql}", arrow, 3, (precision, scale))

    @property
    def numeric(self) -> bool:
        """Whether arithmetic is allowed."""
        return self.rank > 0

    @property
    def integral(self) -> bool:
        """Whether values are whole numbers of 32 or 64 bits."""
        return self in (Type.INT, Type.LONG)

    @property
    def exact(self) -> bool:
        """Whether values are decimals."""
        return self.rank == 3

    @property
    def timed(self) -> bool:
        """Whether values are instants or days."""
        return self in (Type.TIMESTAMP, Type.DATE)

    @property
    def carried(self) -> bool:
        """Whether statements over windows and patterns have values of this type."""
        return not (self.exact or self.timed)

    @property
    def bits(self) -> int:
        """How many bits a whole number of this type has."""
        return 32 if self is Type.INT else 64

    @property
    def sql(self) -> exp.DataType:
        """The SQL type, as a sqlglot node that each dialect prints its own way."""
        return _node(self.duckdb).copy()

    def widest(self, other: Type) -> Type:
        """The type that holds the values of two numeric types. Raises PlanError where a decimal has too few digits."""
        if not (self.exact or other.exact) or self is other:
            return max(self, other, key=lambda kind: kind.rank)
        if not all(sum(each.digits) for each in (self, other)):
            return Type.DOUBLE
        (p, s), (q, t) = self.digits, other.digits
        return fitting(max(p - s, q - t) + max(s, t), max(s, t), f"{self} and {other} together")

    @property
    def total(self) -> Type:
        """The type of a sum of values."""
        if self.exact:
            return Type.decimal(min(MOST, self.digits[0] + MORE), self.digits[1])
        return Type.LONG if self.integral else Type.DOUBLE

    @property
    def mean(self) -> Type:
        """The type of an average of values."""
        if not self.exact:
            return Type.DOUBLE
        finer = min(FINER, MOST - self.total.digits[0])
        return Type.decimal(self.digits[0] + finer, self.digits[1] + finer)

    def __reduce__(self) -> tuple[object, ...]:
        return parse_type, (str(self),)


@cache
def _node(text: str) -> exp.DataType:
    return exp.DataType.build(text, dialect="duckdb")


def _registered(
    name: str, duckdb: str, postgres: str, arrow: pa.DataType, rank: int = 0, digits: tuple[int, int] = (0, 0)
) -> Type:
    made = Type(name)
    made.duckdb, made.postgres, made.arrow, made.rank, made.digits = duckdb, postgres, arrow, rank, digits
    return made


Type.INT = _registered("int", "INTEGER", "integer", pa.int32(), 1, (10, 0))
Type.LONG = _registered("long", "BIGINT", "bigint", pa.int64(), 2, (19, 0))
Type.FLOAT = _registered("float", "FLOAT", "real", pa.float32(), 4)
Type.DOUBLE = _registered("double", "DOUBLE", "double precision", pa.float64(), 5)
Type.STRING = _registered("string", "VARCHAR", "text", pa.string())
Type.BOOL = _registered("bool", "BOOLEAN", "boolean", pa.bool_())
Type.OBJECT = _registered("object", "VARCHAR", "text", pa.string())
Type.TIMESTAMP = _registered(
    "timestamp", "TIMESTAMP WITH TIME ZONE", "timestamp with time zone", pa.timestamp("us", "UTC")
)
Type.DATE = _registered("date", "DATE", "date", pa.date32())
_NAMED = {
    str(kind): kind
    for kind in (
        Type.INT,
        Type.LONG,
        Type.FLOAT,
        Type.DOUBLE,
        Type.STRING,
        Type.BOOL,
        Type.OBJECT,
        Type.TIMESTAMP,
        Type.DATE,
    )
}


def fitting(precision: int, scale: int, what: str) -> Type:
    """The decimal of so many digits. Raises PlanError, for `what` needs it, where no store has so many."""
    if precision > MOST:
        raise PlanError(
            f"{what} need {precision} digits, and a decimal has at most {MOST}",
            hint="convert one to fewer digits, convert(x, 'decimal(18, 2)'), or to a double",
        )
    return Type.decimal(precision, scale)


_DECIMAL = re.compile(r"(?:decimal|numeric)\s*\(\s*(\d{1,3})\s*(?:,\s*(\d{1,3})\s*)?\)", re.IGNORECASE)


def written(parts: Iterable[object]) -> str:
    """A type as it is written, of its name and the numbers that may follow it.

    >>> written(["decimal", "10", None]), written(["long", None, None])
    ('decimal(10)', 'long')
    """
    name, *numbers = [str(part) for part in parts if part is not None]
    return f"{name}({', '.join(numbers)})" if numbers else name


def parse_type(word: str, line: int | None = None, column: int | None = None) -> Type:
    """The type that a word of a stream definition names. Raises PlanError listing the allowed ones."""
    found, digits = _NAMED.get(word.lower()), _DECIMAL.fullmatch(word)
    if digits is not None:
        precision, scale = int(digits[1]), int(digits[2] or 0)
        if 0 < precision <= MOST and scale <= precision:
            return Type.decimal(precision, scale)
        hint = f"decimal(p, s): p digits, 1 to {MOST}, s of them behind the point, 0 to p"
        raise PlanError(f"there is no {word}", line=line, column=column, hint=hint)
    if found is None:
        raise PlanError(f"unknown type {word!r}", line=line, column=column, hint=_hint(word))
    return found


_CALLED = {
    **dict.fromkeys(("integer", "smallint", "tinyint", "short", "byte"), "int"),
    **dict.fromkeys(("bigint", "int64", "time"), "long"),
    **dict.fromkeys(("datetime", "timestamptz", "instant"), "timestamp"),
    **dict.fromkeys(("decimal", "numeric", "money", "bigdecimal"), "decimal(18, 2)"),
    **dict.fromkeys(("number", "real", "float64"), "double"),
    **dict.fromkeys(("text", "varchar", "char", "str"), "string"),
    "boolean": "bool",
}
"""Types of other languages, by the one that takes their values."""


def _hint(word: str) -> str:
    word = word.partition("(")[0]
    called = _CALLED.get(word.lower())
    if word.lower() == "time":
        return "timestamp, or long for milliseconds since 1970, string for a text such as '2018-01-05 12:30:45'"
    return f"did you mean {called}?" if called else f"one of {', '.join(_NAMED)}, decimal(p, s)"
