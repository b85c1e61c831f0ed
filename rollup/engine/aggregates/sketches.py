"""Sketches: estimates of bounded size of how many different values there are, and of how often they come.

Exact up to a few thousand different values. An estimate depends on the values in the order in which they first came,
not on how they were cut into batches.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import Any

import datasketches
import numpy as np

EXACT = 4096
"""Up to so many different values everything is exact."""
_LOG_K = 16
_DEPTH, _WIDTH = 4, 2**14
_library: Any = datasketches


def distinct_estimate(values: Iterable[Any]) -> int:
    """How many different values a set has; an estimate above `EXACT`.

    >>> distinct_estimate({"a", "b"})
    2
    """
    found = list(values)
    return len(found) if len(found) <= EXACT else estimate(sketched(None, found))


def sketched(sketch: bytes | None, values: Iterable[Any]) -> bytes:
    """A HyperLogLog sketch with more values in it; None: an empty one. Its error is about 0.4 %."""
    kept = _library.hll_sketch(_LOG_K, _library.tgt_hll_type.HLL_8)
    if sketch is not None:
        kept = _library.hll_sketch.deserialize(sketch)
    for value in values:
        kept.update(_bytes(value).decode())
    return bytes(kept.serialize_updatable())


def estimate(sketch: bytes) -> int:
    """How many different values a sketch has seen."""
    return round(_library.hll_sketch.deserialize(sketch).get_estimate())


def counted(sketch: bytes | None, values: Sequence[Any], counts: Sequence[int]) -> bytes:
    """A count-min sketch with more values in it; None: an empty one."""
    table = _table(sketch).copy()
    for value, count in zip(values, counts, strict=True):
        table[range(_DEPTH), _buckets(value)] += count
    return table.tobytes()


def frequency(sketch: bytes, value: Any) -> int:
    """How often a value came, never below the truth."""
    return int(_table(sketch)[range(_DEPTH), _buckets(value)].min())


def top_frequency(sketch: bytes) -> int:
    """How often the most frequent value came, never below the truth.

    The fullest bucket of a row holds at least as much; so does the least of these over the rows.
    """
    return int(_table(sketch).max(axis=1).min())


def _table(sketch: bytes | None) -> Any:
    if sketch is None:
        return np.zeros((_DEPTH, _WIDTH), np.int64)
    return np.frombuffer(sketch, np.int64).reshape(_DEPTH, _WIDTH)


def _buckets(value: Any) -> list[int]:
    digest = hashlib.blake2b(_bytes(value), digest_size=4 * _DEPTH).digest()
    return [int.from_bytes(digest[4 * row : 4 * row + 4], "little") % _WIDTH for row in range(_DEPTH)]


def _bytes(value: Any) -> bytes:
    """A value as text, equal numbers alike: 1 and 1.0 are one value."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        value = int(value)
    return repr(value).encode()
