"""Rows on their way: Arrow to the text that COPY reads, and rows of a cursor to Arrow."""

from __future__ import annotations

import io
import re
from collections.abc import Iterable, Sequence
from typing import Any

import pyarrow as pa
from pyarrow import csv

from rollup.stores.sql_text import encode_rows

_QUOTED = re.compile(r'(["\\])')
_NUL, _MARK = b"\x00", b"\x01"


def copy_text(rows: pa.Table) -> io.BytesIO:
    """The rows as CSV without header, as PostgreSQL's COPY reads it: null is nothing, text is always in quotes."""
    found = _csv(rows)
    text = found.getvalue()
    return _csv(encode_rows(rows)) if _NUL in text or _MARK in text else found


def _csv(rows: pa.Table) -> io.BytesIO:
    out = io.BytesIO()
    if not rows.num_rows:
        return out
    whole = rows.combine_chunks()  # the CSV writer puts NULs before a column whose first chunk is empty
    flat = pa.table([_flat(column) for column in whole.columns], names=[str(i) for i in range(rows.num_columns)])
    csv.write_csv(flat, out, csv.WriteOptions(include_header=False, quoting_style="needed"))
    out.seek(0)
    return out


def _flat(column: pa.ChunkedArray) -> pa.ChunkedArray:
    kind = column.type
    if pa.types.is_list(kind):
        column = pa.chunked_array([pa.array([_array(value) for value in column.to_pylist()], pa.string())])
    elif pa.types.is_binary(kind):
        texts = [None if value is None else "\\x" + value.hex() for value in column.to_pylist()]
        column = pa.chunked_array([pa.array(texts, pa.string())])
    return column


def _array(values: Sequence[Any] | None) -> str | None:
    """A list as PostgreSQL spells an array.

    >>> _array(["a", "b,c", None]), _array([1, 2.5]), _array([True])
    ('{"a","b,c",NULL}', '{1,2.5}', '{true}')
    """
    return None if values is None else "{" + ",".join(map(_element, values)) + "}"


def _element(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "true" if value else "false"
    return '"' + _QUOTED.sub(r"\\\1", value) + '"' if isinstance(value, str) else repr(value)


def to_arrow(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Rows as a table of the schema."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    arrays = [_arrow(values, field.type) for values, field in zip(columns, schema, strict=True)]
    return pa.table(arrays, schema=schema)


def _arrow(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    if pa.types.is_binary(kind):
        return pa.array([None if value is None else bytes(value) for value in values], kind)
    return pa.array(values, kind)


_TYPES = {
    16: pa.bool_(), 17: pa.binary(), 20: pa.int64(), 21: pa.int32(), 23: pa.int32(), 25: pa.string(), 700: pa.float32(),
    701: pa.float64(), 1000: pa.list_(pa.bool_()), 1005: pa.list_(pa.int32()), 1007: pa.list_(pa.int32()),
    1009: pa.list_(pa.string()), 1016: pa.list_(pa.int64()), 1021: pa.list_(pa.float32()), 1022: pa.list_(pa.float64()),
    1042: pa.string(), 1043: pa.string(),
}  # fmt: skip
"""PostgreSQL's numbers for its types (pg_type.oid), which are the same in every server."""
_NUMERIC = 1700


def described(description: Sequence[Any], rows: list[Sequence[Any]]) -> pa.Table:
    """The rows of a psycopg2 cursor, typed as the server says."""
    columns = zip(*rows, strict=True) if rows else ([] for _ in description)
    arrays = [_typed(column.type_code, values) for column, values in zip(description, columns, strict=True)]
    return pa.Table.from_arrays(arrays, names=[column.name for column in description])


def _typed(code: int, values: Sequence[Any]) -> pa.Array:
    if code != _NUMERIC:
        return _arrow(values, _TYPES.get(code, pa.string()))
    whole = all(value is None or (value.is_finite() and value == value.to_integral_value()) for value in values)
    if whole:
        return pa.array(
            [None if value is None else value.to_integral_value() for value in values], pa.decimal128(38, 0)
        )
    return pa.array([None if value is None else float(value) for value in values], pa.float64())
