"""Values that come from outside, held to the types of the fields they are for."""

from __future__ import annotations

import warnings
from functools import lru_cache
from typing import Any

import pyarrow as pa

from rollup.core.errors import QueryError
from rollup.core.untyped import pc
from rollup.engine.types import DataType, Kind, RowType
from rollup.plan.likeness import near
from rollup.plan.reading import BITS, NAMES, Unreadable, is_rounded, read, rounded

LIMITS = {Kind.INT: 1 << BITS["int"], Kind.LONG: 1 << BITS["long"], Kind.TIMESTAMP: 1 << BITS["long"]}
"""Whole numbers of a kind are below this, and not below its negative."""
READ = {kind: kind.value for kind in Kind if kind.value in NAMES} | {Kind.TIMESTAMP: "long"}
"""The kinds that records of a job have, by the names of their types."""


class UndeclaredField(UserWarning):
    """A record has a field that its stream does not declare, and which nobody reads."""


class RoundedField(UserWarning):
    """A field has whole numbers of which its type does not have all."""


def fitting(stream: str, name: str, kind: DataType, value: Any) -> Any:
    """A value as its field holds it. Raises QueryError that names the field."""
    known = READ.get(kind.kind)
    if value is None or known is None or fits(value, kind.kind):
        return value
    try:
        found = read(value, known)
    except Unreadable:
        raise QueryError(f"{stream}.{name} is {kind}, and {value!r} is not") from None
    if is_rounded(value, found):
        say_rounded(stream, name, known)
    return found


def fits(value: Any, kind: Kind) -> bool:
    """Whether a value is what its type wants to the letter, as nearly all are."""
    given = type(value)
    if given is str:
        return kind is Kind.STRING and value.isascii()
    if given is float:
        return kind is Kind.DOUBLE
    if given is int:
        return kind in LIMITS and -(limit := LIMITS[kind]) <= value < limit
    return given is bool and kind is Kind.BOOL


@lru_cache(maxsize=1 << 10)
def say_rounded(stream: str, name: str, kind: str) -> None:
    """Say once that whole numbers of a field are too great for its type."""
    warnings.warn(rounded(stream, name, kind), RoundedField, stacklevel=2)


@lru_cache(maxsize=1 << 10)
def say_undeclared(stream: str, name: str, declared: tuple[str, ...]) -> None:
    """Say once that a field of records is not read."""
    close = near(name, declared)
    hint = f"did you mean `{close}`?" if close else f"declared are {', '.join(declared)}"
    warnings.warn(f"`{stream}` declares no `{name}`, which is not read: {hint}", UndeclaredField, stacklevel=2)


def fitting_columns(kinds: RowType, table: pa.Table) -> tuple[pa.Array, ...] | None:
    """The columns of a table as the types of a stream, null where it has none; None where only its values, one by one,
    can tell."""
    found, names = list[pa.Array](), table.column_names
    for name, kind in kinds.fields.items():
        if kind.arrow is None:
            return None
        if name not in names:
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
    if pa.types.is_timestamp(one.type) and pa.types.is_int64(wanted):
        one, whole = pc.floor_temporal(one, unit="millisecond").cast(pa.timestamp("ms", one.type.tz)), True
    if not (whole or (text and pa.types.is_string(wanted))):
        return None
    try:
        return one.cast(wanted)
    except pa.ArrowInvalid:
        return None
