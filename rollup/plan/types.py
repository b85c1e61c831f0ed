"""The value types of SiddhiQL and what they are in Arrow and in SQL."""

from __future__ import annotations

from enum import StrEnum

import pyarrow as pa
from sqlglot import exp

from rollup.core.errors import PlanError


class Type(StrEnum):
    """A value type; the order of the numeric ones is the order of widening.

    >>> Type.LONG.arrow, Type.INT.widest(Type.DOUBLE)
    (DataType(int64), <Type.DOUBLE: 'double'>)
    """

    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    STRING = "string"
    BOOL = "bool"
    OBJECT = "object"

    @property
    def numeric(self) -> bool:
        """Whether arithmetic is allowed."""
        return self in _NUMERIC

    @property
    def integral(self) -> bool:
        """Whether values are whole numbers."""
        return self in (Type.INT, Type.LONG)

    @property
    def bits(self) -> int:
        """How many bits a whole number of this type has."""
        return 32 if self is Type.INT else 64

    @property
    def arrow(self) -> pa.DataType:
        """The Arrow type of a column of this type."""
        return _ARROW[self]

    @property
    def sql(self) -> exp.DataType:
        """The SQL type, as a sqlglot node that each dialect prints its own way."""
        return exp.DataType.build(_SQL[self])

    @property
    def duckdb(self) -> str:
        """DuckDB's own name of the type."""
        return _DUCKDB[self]

    def widest(self, other: Type) -> Type:
        """The type of an arithmetic result of two numeric operands."""
        return max(self, other, key=_NUMERIC.index)


_NUMERIC = (Type.INT, Type.LONG, Type.FLOAT, Type.DOUBLE)
_ARROW = {
    Type.INT: pa.int32(),
    Type.LONG: pa.int64(),
    Type.FLOAT: pa.float32(),
    Type.DOUBLE: pa.float64(),
    Type.STRING: pa.string(),
    Type.BOOL: pa.bool_(),
    Type.OBJECT: pa.string(),
}
_SQL = {
    Type.INT: "INT",
    Type.LONG: "BIGINT",
    Type.FLOAT: "FLOAT",
    Type.DOUBLE: "DOUBLE",
    Type.STRING: "TEXT",
    Type.BOOL: "BOOLEAN",
    Type.OBJECT: "TEXT",
}
_DUCKDB = {
    Type.INT: "INTEGER",
    Type.LONG: "BIGINT",
    Type.FLOAT: "FLOAT",
    Type.DOUBLE: "DOUBLE",
    Type.STRING: "VARCHAR",
    Type.BOOL: "BOOLEAN",
    Type.OBJECT: "VARCHAR",
}


def parse_type(word: str, line: int | None = None, column: int | None = None) -> Type:
    """The type that a word of a stream definition names. Raises PlanError listing the allowed ones."""
    try:
        return Type(word.lower())
    except ValueError:
        raise PlanError(f"unknown type {word!r}", line=line, column=column, hint=_hint(word)) from None


_CALLED = {
    **dict.fromkeys(("integer", "smallint", "tinyint", "short", "byte"), "int"),
    **dict.fromkeys(("bigint", "int64", "timestamp", "datetime", "date", "time"), "long"),
    **dict.fromkeys(("decimal", "numeric", "number", "real", "float64"), "double"),
    **dict.fromkeys(("text", "varchar", "char", "str"), "string"),
    "boolean": "bool",
}
"""Types of other languages, by the one that takes their values."""


def _hint(word: str) -> str:
    called = _CALLED.get(word.lower())
    if called == "long" and word.lower() in ("timestamp", "datetime", "date", "time"):
        return "long for milliseconds since 1970, string for a text such as '2018-01-05 12:30:45'"
    return f"did you mean {called}?" if called else f"one of {', '.join(Type)}"
