"""Rows on their way out of a database: those of a cursor to Arrow."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa


def to_arrow(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table of the schema."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [_arrow(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_list(kind) and any(isinstance(each, str) for value in values for each in value or ()):
        return pa.array(values, pa.list_(pa.string())).cast(kind)  # of a database without arrays
    if pa.types.is_binary(kind):
        return pa.array([None if value is None else bytes(value) for value in values], kind)
    return pa.array(values, kind)


_TYPES = {
    16: pa.bool_(), 17: pa.binary(), 20: pa.int64(), 21: pa.int32(), 23: pa.int32(), 25: pa.string(), 700: pa.float32(),
    701: pa.float64(), 1000: pa.list_(pa.bool_()), 1005: pa.list_(pa.int32()), 1007: pa.list_(pa.int32()),
    1009: pa.list_(pa.string()), 1016: pa.list_(pa.int64()), 1021: pa.list_(pa.float32()), 1022: pa.list_(pa.float64()),
    1042: pa.string(), 1043: pa.string(), 1082: pa.date32(), 1184: pa.timestamp("us", "UTC"),
}  # fmt: skip
"""PostgreSQL's numbers for its types (pg_type.oid), which are the same in every server."""
_NUMERIC = 1700


def described(description: Sequence[Any], rows: list[Sequence[Any]]) -> pa.Table:
    """The rows of a psycopg2 cursor, typed as the server says."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in description)
    arrays = [_typed(column, values) for column, values in zip(description, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in description])


def _typed(column: Any, values: Sequence[Any]) -> pa.Array:
    if column.type_code != _NUMERIC:
        return _arrow(values, _TYPES.get(column.type_code, pa.string()))
    if 0 < (column.precision or 0) <= 38 and 0 <= column.scale <= column.precision:
        return pa.array(values, pa.decimal128(column.precision, column.scale))
    whole = all(value is None or (value.is_finite() and value == value.to_integral_value()) for value in values)
    if whole:
        return pa.array(
            [None if value is None else value.to_integral_value() for value in values], pa.decimal128(38, 0)
        )
    return pa.array([None if value is None else float(value) for value in values], pa.float64())
