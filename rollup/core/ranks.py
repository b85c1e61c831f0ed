"""Quantiles from counts: of few different values each with its count, of many the counts of narrow ranges.

What is kept depends on the values alone, not on how they came together: merging is adding counts, so parts may be
merged in any order and grouping and give the same bytes. Up to `EXACT` different values answers are exact; beyond that
a range is as wide as a 128th of its lower end, and an answer is within 0.4 % of the value at that rank. The ends of
the ranges are the upper bits of a double, so no machine rounds them otherwise than another.

The bytes: a mark, the form, the type of the counts, the least and the greatest value, then keys and counts.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

EXACT = 256
"""So many different values are kept as they are."""
_MARK, _HEAD = 0xD1, struct.Struct("<BBBxIdd")
_COUNTS = (np.uint8, np.uint16, np.uint32, np.uint64)
_SHIFT = 52 - 7
"""The bits of a double that a range leaves out."""
_MAGNITUDE = np.int64(2**63 - 1)


@dataclass(frozen=True)
class Counts:
    """Keys in rising order with their counts: `ranged`, of ranges, otherwise of values (as ordered integers)."""

    keys: np.ndarray[Any, np.dtype[np.int64]]
    counts: np.ndarray[Any, np.dtype[np.int64]]
    least: float
    most: float
    ranged: bool = False

    @classmethod
    def of(cls, values: np.ndarray[Any, Any], counts: np.ndarray[Any, Any] | None = None) -> Counts:
        """Those of values, at least one, none of them NaN; the two zeros are one."""
        values = np.asarray(values, np.float64) + 0.0
        keys = _ordered(values)
        weights = np.ones(len(keys), np.int64) if counts is None else np.asarray(counts, np.int64)
        found = cls(*_summed(keys, weights), float(values.min()), float(values.max()))
        return found.narrow()

    def narrow(self) -> Counts:
        """Of ranges, where there are too many values."""
        if self.ranged or len(self.keys) <= EXACT:
            return self
        return Counts(*_summed(self.keys >> _SHIFT, self.counts), self.least, self.most, True)

    def at(self, rank: float) -> float:
        """The value at a rank from 0 to 1."""
        reached = np.cumsum(self.counts)
        place = min(int(rank * int(reached[-1])), int(reached[-1]) - 1)
        key = self.keys[int(np.searchsorted(reached, place, side="right"))]
        if not self.ranged:
            return float(_value(key))
        low, high = float(_value(key << _SHIFT)), float(_value((key << _SHIFT) + (1 << _SHIFT) - 1))
        middle = low / 2 + high / 2
        if middle != middle:  # the range of an infinity has no other number
            middle = high if low != low else low
        return min(max(middle, self.least), self.most)

    def packed(self) -> bytes:
        """As bytes; equal counts give equal bytes."""
        code = next(i for i, kind in enumerate(_COUNTS) if int(self.counts.max()) <= np.iinfo(kind).max)
        head = _HEAD.pack(_MARK, self.ranged, code, len(self.keys), self.least, self.most)
        keys = self.keys.astype("<i4" if self.ranged else "<i8")
        return head + keys.tobytes() + self.counts.astype(np.dtype(_COUNTS[code]).newbyteorder("<")).tobytes()


def unpacked(blob: bytes) -> Counts | None:
    """What `packed` made bytes of; None for bytes of another kind."""
    if not blob or blob[0] != _MARK:
        return None
    _, ranged, code, size, least, most = _HEAD.unpack_from(blob)
    kind = np.dtype("<i4" if ranged else "<i8")
    keys = np.frombuffer(blob, kind, size, _HEAD.size).astype(np.int64)
    counts = np.frombuffer(blob, np.dtype(_COUNTS[code]).newbyteorder("<"), size, _HEAD.size + size * kind.itemsize)
    return Counts(keys, counts.astype(np.int64), least, most, bool(ranged))


def total(parts: Iterable[Counts]) -> Counts | None:
    """All parts together; None of none."""
    found = list(parts)
    if len(found) < 2:
        return found[0] if found else None
    ranged = any(part.ranged for part in found)
    keys = np.concatenate([part.keys if part.ranged or not ranged else part.keys >> _SHIFT for part in found])
    summed = _summed(keys, np.concatenate([part.counts for part in found]))
    return Counts(*summed, min(part.least for part in found), max(part.most for part in found), ranged).narrow()


def _ordered(values: np.ndarray[Any, Any]) -> np.ndarray[Any, np.dtype[np.int64]]:
    """The bits of doubles as integers of the same order."""
    bits = values.view(np.int64)
    return np.where(bits < 0, bits ^ _MAGNITUDE, bits)


def _value(key: Any) -> Any:
    return np.asarray(key ^ _MAGNITUDE if key < 0 else key, np.int64).view(np.float64)


def _summed(keys: np.ndarray[Any, Any], weights: np.ndarray[Any, Any]) -> tuple[Any, Any]:
    """Different keys in rising order, each with the sum of its weights."""
    order = np.argsort(keys, kind="stable")
    rising = keys[order]
    starts = np.flatnonzero(np.concatenate(([True], rising[1:] != rising[:-1])))
    return rising[starts], np.add.reduceat(weights[order], starts)
