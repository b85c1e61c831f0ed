"""Lists that are parts of one list: which elements each has, and in which order, is found by a loop over their places."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pyarrow as pa

from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import block, loop
from rollup.engine.enumerations import Way

_TEMPLATE = """
def core(begin, size, count, marks, limit, places, first, many):
    n, seen = 0, np.full(limit, -1, np.int64)
    for i in range(len(begin)):
        first[i] = n
        for j in range({walk}):
            if not count[j]:
                continue
{asked}
            places[n] = j
            n += 1
{then}
        many[i] = n - first[i]
    return n
"""
_FORWARD, _BACKWARD = "begin[i], begin[i] + size[i]", "begin[i] + size[i] - 1, begin[i] - 1, -1"
_ENOUGH = ["if n - first[i] >= limit:", "    break"]
_WHILE = ["if marks[j] == 0:", "    break"]
_ONCE = ["if seen[marks[j]] == i:", "    continue", "seen[marks[j]] = i"]
_TURNED = ["places[first[i] : n] = places[first[i] : n][::-1].copy()"]
_SORTED = [
    "part = places[first[i] : n].copy()",
    'places[first[i] : n] = part[np.argsort(marks[part], kind="mergesort")]',
]
_WAYS: dict[str, tuple[str, list[str], list[str]]] = {
    "all": (_FORWARD, [], []),
    "take": (_FORWARD, _ENOUGH, []),
    "take last": (_BACKWARD, _ENOUGH, _TURNED),
    "take while": (_FORWARD, _WHILE, []),
    "take last while": (_BACKWARD, _WHILE, _TURNED),
    "reverse": (_BACKWARD, [], []),
    "order": (_FORWARD, [], _SORTED),
    "distinct": (_FORWARD, _ONCE, []),
}
"""How a list is walked through, what is asked of an element before it is taken, and what is done with those that were."""


@dataclass(frozen=True)
class Elements:
    """Lists as so many elements from a place on of some `columns`, those of rows or one of values; which lists are `there`, and
    which elements `count`.
    """

    begin: Ints
    size: Ints
    there: np.ndarray
    columns: Sequence[pa.Array]
    count: np.ndarray

    @classmethod
    def of(cls, lists: pa.ListViewArray) -> Elements:
        """Those of lists all of whose elements count."""
        values = lists.values
        there = lists.is_valid().to_numpy(zero_copy_only=False)
        size = np.where(there, lists.sizes.to_numpy(), 0).astype(np.int64)
        begin = lists.offsets.to_numpy().astype(np.int64)
        return cls(begin, size, there, columns_of(values), np.ones(len(values), bool))

    def counting(self, which: np.ndarray) -> Elements:
        """Those of its elements that are `which`."""
        return replace(self, count=self.count & which)

    def arranged(self, way: Way, marks: Ints | None = None, limit: int = 0) -> Elements:
        """Lists of these elements, made in a way; `marks`: a number of each element, equal where they are, in their order, or
        not 0 as long as they are taken; `limit`: how many are taken, or below which numbers marks are.
        """
        return self._taken(way, np.zeros(1, np.int64) if marks is None else marks, limit)

    def lists(self, names: Sequence[str] | None) -> pa.ListViewArray:
        """The lists, of rows with fields of these names or (None) of values."""
        found = self if self.count.all() else self._taken("all", np.zeros(1, np.int64), 0)
        values = found.columns[0] if names is None else pa.StructArray.from_arrays(found.columns, list(names))
        begin, size = (pa.array(each.astype(np.int32)) for each in (found.begin, found.size))
        return pa.ListViewArray.from_arrays(begin, size, values, mask=pa.array(~found.there))

    def _taken(self, way: str, marks: Ints, limit: int) -> Elements:
        places = np.empty(int(self.size.sum()), np.int64)
        first, many = np.empty(len(self.begin), np.int64), np.empty(len(self.begin), np.int64)
        taken = loop(_text(way))(self.begin, self.size, self.count, marks, limit, places, first, many)
        found = pa.array(places[:taken])
        columns = [column.take(found) for column in self.columns]
        return Elements(first, many, self.there, columns, np.ones(taken, bool))


@cache
def _text(way: str) -> str:
    walk, asked, then = _WAYS[way]
    return _TEMPLATE.format(walk=walk, asked=block(asked, 3), then=block(then, 2))


def columns_of(values: pa.Array) -> list[pa.Array]:
    """Values as columns: of rows, which are all there, those of their fields."""
    if not pa.types.is_struct(values.type):
        return [values]
    return [values.field(place) for place in range(values.type.num_fields)]
