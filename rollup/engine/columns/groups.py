"""Rows of a batch sorted into cells: a cell is one group of one window, numbered by window, then by first appearance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.passes import CELLS, compiled

Ints = np.ndarray[tuple[int], np.dtype[np.int64]]
Bools = np.ndarray[tuple[int], np.dtype[np.bool_]]


def spans(begins: Ints, counts: Ints) -> Ints:
    """So many whole numbers from each of some on.

    >>> spans(np.array([7, 0, 3]), np.array([2, 0, 3])).tolist()
    [7, 8, 3, 4, 5]
    """
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0) + np.repeat(begins - ends + counts, counts)


def equals(codes: Ints, others: Ints) -> tuple[Ints, Ints]:
    """The places of equal numbers, in order of the first ones; those below 0 equal nothing.

    >>> [each.tolist() for each in equals(np.array([5, 7, -1]), np.array([7, 5, 7, -1]))]
    [[0, 1, 1], [1, 0, 2]]
    """
    order = np.argsort(others, kind="stable")
    begins, ends = (np.searchsorted(others[order], codes, side) for side in ("left", "right"))
    counts = np.where(codes < 0, 0, ends - begins)
    return np.repeat(np.arange(len(codes)), counts), order[spans(begins, counts)]


@dataclass(frozen=True)
class Groups:
    """The cell of each row. The first `carried` rows stand for cells that were open before the batch.

    `first` is, for each cell, the place of its first row.
    """

    codes: Ints
    carried: int
    size: int
    first: Ints

    @property
    def new(self) -> Ints:
        """The cells of the rows of the batch itself."""
        return self.codes[self.carried :]

    @property
    def old(self) -> Ints:
        """The cells of the carried rows."""
        return self.codes[: self.carried]

    @cached_property
    def sizes(self) -> Ints:
        """How many rows of the batch each cell has."""
        return np.bincount(self.new, minlength=self.size)

    @property
    def last(self) -> Ints:
        """For each cell the place of its last row."""
        last = np.empty(self.size, np.int64)
        last[self.codes] = np.arange(len(self.codes))  # of repeated places the last one stands
        return last


def grouped(windows: Ints, keys: Sequence[pa.Array], carried: int) -> Groups:
    """The cells of rows by their window and their keys; null is a key like any other.

    >>> grouped(np.array([0, 0, 1]), [pa.array(["b", "a", "b"])], 0).codes.tolist()
    [0, 1, 2]
    """
    if not len(windows):
        return Groups(np.empty(0, np.int64), carried, 0, np.empty(0, np.int64))
    codes, width = _key_codes(keys, len(windows))
    low = int(windows.min())
    span = int(windows.max()) - low + 1
    if span * width <= 4 * len(windows) + 65_536:
        return _dense(windows, low, codes, width, span * width, carried)
    return _sparse(windows, codes, carried)


def key_codes(column: pa.Array) -> tuple[Any, int]:
    """A number for each value of a column, null included, and how many numbers there are."""
    if not pa.types.is_dictionary(column.type):
        column = column.dictionary_encode()
    codes = column.indices
    size = len(column.dictionary)
    if codes.null_count:
        codes, size = pc.fill_null(codes, pa.scalar(size, codes.type)), size + 1
    return codes.to_numpy(zero_copy_only=False), size


def _key_codes(keys: Sequence[pa.Array], rows: int) -> tuple[Any, int]:
    codes, width = (np.zeros(rows, np.int64), 1) if not keys else key_codes(keys[0])
    for place in range(max(len(keys), 1)):
        if place:
            more, size = key_codes(keys[place])
            codes, width = codes.astype(np.int64) * size + more, width * size
        if width > 4 * rows:
            found, codes = np.unique(codes, return_inverse=True)
            width = len(found)
    return codes, max(width, 1)


def _dense(windows: Ints, low: int, codes: Ints, width: int, space: int, carried: int) -> Groups:
    one_pass = compiled(CELLS, len(windows))
    if one_pass is not None:
        cells, first, ordered = one_pass(windows, codes, low, width, space)
        return Groups(cells, carried, len(first), first) if ordered else _by_window(windows, cells, first, carried)
    places = (windows - low) * width + codes
    first = np.full(space, -1, np.int64)
    first[places[::-1]] = np.arange(len(places) - 1, -1, -1, dtype=np.int64)
    found = np.flatnonzero(first >= 0)
    found = found[np.argsort(first[found])]
    number = np.empty(space, np.int64)
    number[found] = np.arange(len(found))
    return _by_window(windows, number[places], first[found], carried)


def _by_window(windows: Ints, cells: Ints, first: Ints, carried: int) -> Groups:
    """Cells that are numbered by first appearance, numbered by window before it."""
    order = np.argsort(windows[first], kind="stable")
    number = np.empty(len(order), np.int64)
    number[order] = np.arange(len(order))
    return Groups(number[cells], carried, len(order), first[order])


def _sparse(windows: Ints, codes: Ints, carried: int) -> Groups:
    order = np.lexsort((codes, windows))
    changes = np.empty(len(order), bool)
    changes[0] = True
    sorted_windows, sorted_codes = windows[order], codes[order]
    changes[1:] = (sorted_windows[1:] != sorted_windows[:-1]) | (sorted_codes[1:] != sorted_codes[:-1])
    starts = np.flatnonzero(changes)
    first = order[starts]  # lexsort is stable: the first of equal ones is the earliest
    rank = np.lexsort((first, sorted_windows[starts]))
    number = np.empty(len(starts), np.int64)
    number[rank] = np.arange(len(starts))
    cells = np.empty(len(order), np.int64)
    cells[order] = number[np.cumsum(changes) - 1]
    return Groups(cells, carried, len(starts), first[rank])


def joined(old: pa.Array, new: pa.Array) -> pa.Array:
    """Two columns one after the other; codes of dictionaries are made the same."""
    if pa.types.is_dictionary(new.type) and not pa.types.is_dictionary(old.type):
        old = old.dictionary_encode().cast(new.type)
    if not len(old):
        return new
    combined = pa.chunked_array([old, new])
    if pa.types.is_dictionary(new.type):
        combined = combined.unify_dictionaries()
    whole = combined.combine_chunks()
    return whole.combine_chunks() if isinstance(whole, pa.ChunkedArray) else whole
