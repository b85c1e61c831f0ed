"""Text on its way into PostgreSQL and back: the one character that it cannot hold, NUL, is written in another way.

NUL becomes U+0001 U+0001, and U+0001, so that this can be undone, U+0001 U+0002. Both sort as before and nothing is
lost: rollup reads back what came in; other clients see the two characters. Other databases hold NUL as it is.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rollup.core.untyped import pc

_MARK = "\x01"
_PAIRS = (("\x01", "\x01\x02"), ("\x00", "\x01\x01"))


def encode(text: str) -> str:
    """A text without NUL.

    >>> encode("a" + chr(0)) == "a" + chr(1) * 2, decode(encode(chr(1) + chr(0) + chr(2))) == chr(1) + chr(0) + chr(2)
    (True, True)
    """
    for plain, coded in _PAIRS:
        text = text.replace(plain, coded)
    return text


def decode(text: str) -> str:
    """What `encode` was given."""
    for plain, coded in reversed(_PAIRS):
        text = text.replace(coded, plain)
    return text


def encoded(value: Any) -> Any:
    """A value with `encode` done to the text in it; a list is a new list."""
    if isinstance(value, list):
        return [encoded(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    return encode(value) if isinstance(value, str) else value


def encode_rows(rows: pa.Table) -> pa.Table:
    """Rows whose text has no NUL; quick where there is nothing to do."""
    if not any(_holds(column, plain) for column in rows.columns for plain, _ in _PAIRS):
        return rows
    columns = [_each(column, _PAIRS, encode) for column in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def decode_rows(rows: pa.Table) -> pa.Table:
    """What `encode_rows` was given; quick where there is nothing to do."""
    if not any(_holds(column, _MARK) for column in rows.columns):
        return rows
    columns = [_each(column, tuple((b, a) for a, b in reversed(_PAIRS)), decode) for column in rows.columns]
    return pa.Table.from_arrays(columns, schema=rows.schema)


def _each(column: pa.ChunkedArray, pairs: tuple[tuple[str, str], ...], one: Any) -> pa.ChunkedArray:
    if pa.types.is_string(column.type):
        for find, put in pairs:
            column = pc.replace_substring(column, find, put)
        return column
    if _texts(column.type):
        lists = [None if v is None else [None if text is None else one(text) for text in v] for v in column.to_pylist()]
        return pa.chunked_array([pa.array(lists, column.type)])
    return column


def _holds(column: pa.ChunkedArray, text: str) -> bool:
    if _texts(column.type):
        column = pc.list_flatten(column)
    return bool(pa.types.is_string(column.type) and pc.any(pc.match_substring(column, text)).as_py())


def _texts(kind: pa.DataType) -> bool:
    return pa.types.is_list(kind) and pa.types.is_string(kind.value_type)
