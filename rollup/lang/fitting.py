"""Values that come from outside, held to the types of the fields they are for."""

from __future__ import annotations

from typing import Any

from rollup.core.errors import QueryError
from rollup.engine.types import DataType, Kind

_TEXT = (str,)
_BITS = {Kind.INT: 31, Kind.LONG: 63, Kind.TIMESTAMP: 63}
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
    if value is None or allowed is None or (value.__class__ is str and allowed is _TEXT):
        return value
    bits = _BITS.get(kind.kind)
    wrong_bool = isinstance(value, bool) and kind.kind is not Kind.BOOL
    if not isinstance(value, allowed) or wrong_bool or (bits and not -(2**bits) <= value < 2**bits):
        raise QueryError(f"{stream}.{name} is {kind}, and {value!r} is not")
    return float(value) if kind.kind in (Kind.FLOAT, Kind.DOUBLE) else value
