"""The types of values in the engine, and of rows: what every language's own types are mapped to.

Times are whole numbers of the engine's clock unit (milliseconds unless a component says microseconds); a language that
prints them as timestamps does so at its edge.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

import pyarrow as pa


class Kind(StrEnum):
    """What a value is, apart from what it is made of. The order of the numbers is that of widening."""

    BOOL = "bool"
    INT = "int"
    LONG = "long"
    FLOAT = "float"
    DOUBLE = "double"
    DECIMAL = "decimal"
    STRING = "string"
    TIMESTAMP = "timestamp"
    DURATION = "duration"
    LIST = "list"
    ROW = "row"
    ANY = "any"
    NULL = "null"


_NUMBERS = (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL)
_ARROW: dict[Kind, pa.DataType] = {
    Kind.BOOL: pa.bool_(),
    Kind.INT: pa.int32(),
    Kind.LONG: pa.int64(),
    Kind.FLOAT: pa.float32(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
    Kind.TIMESTAMP: pa.int64(),
    Kind.DURATION: pa.int64(),
    Kind.NULL: pa.null(),
}


@dataclass(frozen=True)
class DataType:
    """The type of a value: its kind, the type of a list's elements, the type of a nested row.

    >>> str(DataType(Kind.LIST, element=LONG)), INT.widest(DOUBLE).kind
    ('long[]', <Kind.DOUBLE: 'double'>)
    """

    kind: Kind
    element: DataType | None = None
    row: RowType | None = None

    def __str__(self) -> str:
        if self.kind is Kind.LIST:
            return f"{self.element or ANY}[]"
        return self.row.name if self.row is not None else str(self.kind)

    @property
    def numeric(self) -> bool:
        """Whether arithmetic is allowed."""
        return self.kind in _NUMBERS

    @property
    def integral(self) -> bool:
        """Whether values are whole numbers."""
        return self.kind in (Kind.INT, Kind.LONG)

    @property
    def arrow(self) -> pa.DataType | None:
        """The Arrow type of a column; None where values are open in shape and are packed (decimals, lists, rows)."""
        return _ARROW.get(self.kind)

    def widest(self, other: DataType) -> DataType:
        """The type of an arithmetic result of two numbers."""
        return max(self, other, key=lambda side: _NUMBERS.index(side.kind))


BOOL, INT, LONG, FLOAT = (DataType(k) for k in (Kind.BOOL, Kind.INT, Kind.LONG, Kind.FLOAT))
DOUBLE, DECIMAL, STRING = (DataType(k) for k in (Kind.DOUBLE, Kind.DECIMAL, Kind.STRING))
TIMESTAMP, DURATION, ANY, NULL = (DataType(k) for k in (Kind.TIMESTAMP, Kind.DURATION, Kind.ANY, Kind.NULL))


@dataclass(frozen=True)
class RowType:
    """The shape of the rows of a stream, a window or a table: names and types of its fields, in order.

    >>> trades = RowType("Trade", {"symbol": STRING, "price": DOUBLE})
    >>> trades.index["price"], list(trades.fields)
    (1, ['symbol', 'price'])
    """

    name: str
    fields: dict[str, DataType]
    index: dict[str, int] = field(init=False, repr=False, compare=False, hash=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", {name: place for place, name in enumerate(self.fields)})

    def __hash__(self) -> int:
        return hash((self.name, tuple(self.fields)))

    @property
    def data_type(self) -> DataType:
        """The type of a value that is such a row."""
        return DataType(Kind.ROW, row=self)
