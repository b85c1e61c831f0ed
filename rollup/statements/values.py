"""Values on their way between the streams of an app and the types of the engine."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any

import pyarrow as pa

from rollup.core.json_line import json_line
from rollup.engine.types import DataType, Kind
from rollup.plan.app import StreamDef
from rollup.plan.dividing import Keys
from rollup.plan.types import Type
from rollup.statements.component import Streams

_ATTRIBUTES: dict[Kind, Type] = {
    Kind.BOOL: Type.BOOL,
    Kind.INT: Type.INT,
    Kind.LONG: Type.LONG,
    Kind.TIMESTAMP: Type.LONG,
    Kind.DURATION: Type.LONG,
    Kind.FLOAT: Type.FLOAT,
    Kind.DOUBLE: Type.DOUBLE,
    Kind.DECIMAL: Type.DOUBLE,
}


def attribute(kind: DataType) -> Type:
    """The type of an attribute that holds values of the engine; what is open in shape is a text of JSON.

    >>> from rollup.engine.types import DECIMAL, ANY
    >>> attribute(DECIMAL), attribute(ANY)
    ('double', 'string')
    """
    return _ATTRIBUTES.get(kind.kind, Type.STRING)


_BITS = {Type.INT: 1 << 31, Type.LONG: 1 << 63}
"""Of whole numbers, the first one that their type does not hold."""


def plain(value: Any, kind: Type) -> Any:
    """A value as an attribute of a type holds it.

    >>> plain(Decimal("1.5"), Type.DOUBLE), plain({"a": 1}, Type.STRING), plain(None, Type.INT)
    (1.5, '{"a": 1}', None)
    """
    if value is None:
        return None
    if kind is Type.STRING:
        return value if isinstance(value, str) else json_line(value, _text)
    return float(value) if kind in (Type.FLOAT, Type.DOUBLE) else value


def plain_row(values: Iterable[Any], stream: StreamDef) -> tuple[Any, ...]:
    """The values of an event as the attributes of a stream hold them."""
    return tuple(plain(value, kind) for value, kind in zip(values, stream.attributes.values(), strict=True))


def wrapped_row(values: Iterable[Any], stream: StreamDef) -> tuple[Any, ...]:
    """As `plain_row`, where whole numbers wrap at the width of their attribute, as those of the language do: its engine counts
    further inside.

    >>> wrapped_row([2**31, 2**31], StreamDef("S", {"i": Type.INT, "l": Type.LONG}))
    (-2147483648, 2147483648)
    """
    kinds = stream.attributes.values()
    return tuple(_wrapped(plain(value, kind), _BITS.get(kind)) for value, kind in zip(values, kinds, strict=True))


def _wrapped(value: Any, beyond: int | None) -> Any:
    if beyond is None or value is None or -beyond <= value < beyond:
        return value
    return (value + beyond) % (2 * beyond) - beyond


def stores_of(kinds: Mapping[str, Mapping[str, DataType]]) -> Streams:
    """Named windows and tables as what an app has: their columns with the types of attributes."""
    return {name: stream_with(name, columns) for name, columns in kinds.items()}


def stream_with(name: str, kinds: Mapping[str, DataType]) -> StreamDef:
    """A stream whose columns hold values of the engine."""
    return StreamDef(name, {column: attribute(kind) for column, kind in kinds.items()})


def schema_of(stream: StreamDef) -> pa.Schema:
    """The Arrow schema of a stream's rows."""
    return pa.schema([(name, kind.arrow) for name, kind in stream.attributes.items()])


def table_of(schema: pa.Schema, rows: Sequence[Sequence[Any]]) -> pa.Table:
    """Rows of plain values as a table."""
    columns = [pa.array([row[place] for row in rows], kind.type) for place, kind in enumerate(schema)]
    return pa.table(columns, schema=schema)


def held(stream: StreamDef, rows: Iterable[Iterable[Any]]) -> pa.Table:
    """Rows of an engine's values with the columns of a stream."""
    return table_of(schema_of(stream), [plain_row(row, stream) for row in rows])


def comparable(keys: Keys, streams: Streams) -> Keys:
    """The keys of statements, unless one is of values that need not be plain ones."""
    for stream, names in keys.by.items():
        for name in names:
            if streams[stream].attributes.get(name, Type.OBJECT) is Type.OBJECT:
                return Keys(reason=f"{name} of {stream} is no plain value")
    return keys


def _text(value: Any) -> Any:
    return float(value) if isinstance(value, Decimal) else str(value)
