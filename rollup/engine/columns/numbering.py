"""Numbers that stand for values: equal where these are, or in their order."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.groups import Ints
from rollup.engine.operators import LONG_MAX, LONG_MIN


def codes_of(values: pa.Array) -> tuple[Ints, int]:
    """Numbers that are equal where the values are, and how many there are; null is -1.

    >>> [part if isinstance(part, int) else part.tolist() for part in codes_of(pa.array(["b", None, "a", "b"]))]
    [[0, -1, 1, 0], 2]
    """
    encoded = values.dictionary_encode()
    return encoded.indices.fill_null(-1).to_numpy().astype(np.int64), len(encoded.dictionary)


def told_apart(columns: Sequence[pa.Array], codes: Ints) -> Ints:
    """Numbers that are equal where some numbers are and all values are: both zeros are one value, and so is what is no number.

    >>> told_apart([pa.array([0.0, -0.0, None]), pa.array(["a", "a", "a"])], np.zeros(3, np.int64)).tolist()
    [0, 0, 1]
    """
    for column in columns:
        values = as_double(column)
        if pa.types.is_floating(values.type):
            values = pa.array(ordered(values))
        more, different = codes_of(values)
        codes = np.unique(codes * (different + 1) + more + 1, return_inverse=True)[1]
    return codes


def ordered(values: pa.Array) -> Ints:
    """Whole numbers in the order of some values, equal where they are equal; null comes before all.

    >>> (ordered(pa.array([1.5, -0.0, None, 0.0, -2.0])).argsort(kind="stable")).tolist()
    [2, 4, 1, 3, 0]
    """
    kind, missing = values.type, values.is_null().to_numpy(zero_copy_only=False) if values.null_count else None
    if pa.types.is_floating(kind):
        numbers = pc.fill_null(values, 0.0).to_numpy() + 0.0  # both zeros are one
        bits = np.where(np.isnan(numbers), np.nan, numbers).view(np.int64)
        ranks = np.where(bits < 0, bits ^ LONG_MAX, bits)  # the bits of doubles are ordered but for the negative ones
    elif pa.types.is_integer(kind) and (missing is None or kind.bit_width < 64):
        ranks = pc.fill_null(values, 0).to_numpy().astype(np.int64)
    elif pa.types.is_string(kind):
        encoded = values.dictionary_encode()
        places = pc.rank(encoded.dictionary, "ascending", tiebreaker="min").to_numpy().astype(np.int64)
        ranks = (
            pa.array(places).take(encoded.indices.fill_null(0)).to_numpy().copy()
            if len(places)
            else np.zeros(len(values), np.int64)
        )
    else:
        ranks = pc.rank(values, "ascending", tiebreaker="min").to_numpy().astype(np.int64)
    if missing is not None:
        ranks[missing] = LONG_MIN
    return ranks


def ranked(values: pa.Array) -> Ints:
    """The same of values of any type that has an order."""
    return ordered(as_double(values.cast(pa.int8()) if pa.types.is_boolean(values.type) else values))


def valid(values: pa.Array) -> np.ndarray:
    """Which values are not null."""
    return pc.is_valid(values).to_numpy(zero_copy_only=False)


def as_double(values: Any) -> Any:
    """Floats as doubles: Arrow would round what it compares or adds them with; all else as it is."""
    return values.cast(pa.float64()) if pa.types.is_float32(values.type) else values
