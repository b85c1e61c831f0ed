"""Values that come from outside, held to the types of the fields they are for."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.errors import QueryError
from rollup.engine.operators import single
from rollup.engine.types import DataType, Kind, RowType

_TEXT = (str,)
LIMITS = {Kind.INT: 2**31, Kind.LONG: 2**63, Kind.TIMESTAMP: 2**63}
"""Whole numbers of a kind are below this, and not below its negative."""
_FITS: dict[Kind, tuple[type, ...]] = {
    Kind.INT: (int,),
    Kind.LONG: (int,),
    Kind.FLOAT: (int, float),
    Kind.DOUBLE: (int, float),
    Kind.STRING: _TEXT,
    Kind.BOOL: (bool,),
    Kind.TIMESTAMP: (int,),
}


def fitting(stream: str, name: str, kind: DataType, value: Any) -> Any:
    """A value as its field holds it. Raises QueryError that names the field."""
    allowed = _FITS.get(kind.kind)
    if value is None or (allowed is _TEXT and value.__class__ is str and value.isascii()):
        return value
    limit = LIMITS.get(kind.kind)
    fits = allowed is None or (isinstance(value, allowed) and isinstance(value, bool) is (kind.kind is Kind.BOOL))
    if fits and (limit is None or -limit <= value < limit) and (not isinstance(value, str) or is_text(value)):
        found = double(value, kind.kind) if kind.kind in (Kind.FLOAT, Kind.DOUBLE) else value
        if found is not None:
            return found
    if isinstance(value, np.generic):
        return fitting(stream, name, kind, value.item())
    raise QueryError(f"{stream}.{name} is {kind}, and {value!r} is not")


def is_text(value: str) -> bool:
    """Whether a text can be stored and sent: JSON may hold halves of characters, which nothing else can.

    >>> is_text("Zoë"), is_text("\\ud800")
    (True, False)
    """
    try:
        return value.isascii() or bool(value.encode())
    except UnicodeEncodeError:
        return False


def double(value: Any, kind: Kind) -> float | None:
    """A number (also a Decimal) as a double, or as the nearest 32-bit float; None for what is none, as a whole number beyond them.

    >>> double(1, Kind.DOUBLE), double(10**400, Kind.DOUBLE)
    (1.0, None)
    """
    try:
        found = float(value)
    except (OverflowError, ValueError):  # the second of a signaling NaN
        return None
    return single(found) if kind is Kind.FLOAT else found


def fitting_columns(kinds: RowType, table: pa.Table) -> tuple[pa.Array, ...] | None:
    """The columns of a table as the types of a stream, null where it has none; None where only its values, one by one,
    can tell."""
    found: list[pa.Array] = []
    for name, kind in kinds.fields.items():
        if kind.arrow is None:
            return None
        if name not in table.column_names:
            found.append(pa.nulls(table.num_rows, kind.arrow))
            continue
        column = _column(table.column(name), kind.arrow)
        if column is None:
            return None
        found.append(column)
    return tuple(found)


def _column(column: pa.ChunkedArray, wanted: pa.DataType) -> pa.Array | None:
    one = column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
    if isinstance(one, pa.ChunkedArray):  # no rows, or too many for one piece
        one = pa.concat_arrays(one.chunks) if one.num_chunks else pa.array([], column.type)
    if one.type == wanted or (pa.types.is_dictionary(one.type) and one.type.value_type == wanted):
        return one
    text = pa.types.is_large_string(one.type) or pa.types.is_string_view(one.type)
    whole = pa.types.is_integer(one.type) and (pa.types.is_integer(wanted) or pa.types.is_floating(wanted))
    if not (whole or (text and pa.types.is_string(wanted))):
        return None
    try:
        return one.cast(wanted)
    except pa.ArrowInvalid:
        return None
