"""What a statement reads of rows that have come before, and where these stand in a window with each arrival."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Expr, Field
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import Length
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import LONG, DataType, Kind

_EVER = 2**62
_OF_KEYS = """
def core(size, codes, keys, count, oldest, before, alive):
    first, last, held = np.full(keys, -1, np.int64), np.full(keys, -1, np.int64), np.zeros(keys, np.int64)
    follows = np.empty(len(codes), np.int64)
    for i in range(len(codes)):
        k = codes[i]
        before[i] = last[k]
        if last[k] < 0:
            first[k] = i
        else:
            follows[last[k]] = i
        last[k] = i
        held[k] += 1
        if held[k] > size:
            alive[first[k]] = False
            first[k] = follows[first[k]]
            held[k] -= 1
        count[i], oldest[i] = held[k], first[k]
"""
"""Windows of the last `size` rows of each key, over the rows of all in order."""
_NEWEST = """
def core(places, count, before, found):
    n = 0
    for i in range(len(places)):
        place = places[i]
        for _ in range(count[i]):
            found[n] = place
            n, place = n + 1, before[place]
"""
"""The rows of the window with each of some arrivals, newest first."""


@dataclass(frozen=True)
class PriorValue:
    """What is read of earlier events.

    * `earlier`: of the event `offset` arrivals before.
    * `row`: of the row `offset` before in the window; `tail`: of the row `offset` behind the oldest.
    * `count`: the number of rows in the window; `window`: of all rows, newest first.
    """

    value: Field
    what: Literal["earlier", "row", "tail", "count", "window"]
    offset: int = 0

    @property
    def inside(self) -> bool:
        """Whether the window says what is read."""
        return self.what != "earlier"

    @property
    def type(self) -> DataType:
        """The type of what is read."""
        if self.what == "window":
            return DataType(Kind.LIST, element=self.value.type)
        return LONG if self.what == "count" else self.value.type


def recalled(each: PriorValue, values: Sequence[Any]) -> Any:
    """What is read of the rows of a window."""
    if each.what == "count":
        return len(values)
    if each.what == "tail":
        return values[each.offset] if each.offset < len(values) else None
    if each.what == "window":
        return list(values[::-1])
    return values[-1 - each.offset] if each.offset < len(values) else None


@dataclass(frozen=True)
class Standing:
    """Where the rows of a window stand with each arrival, behind the `held` rows that it had before.

    `count` and `oldest`: the number of rows then, and the oldest. `before`: for all rows of a window by key, the row of
    the same key before. `stays`: which of all rows stay.
    """

    held: int
    count: Ints
    oldest: Ints
    before: Ints | None
    stays: slice | Ints

    @cached_property
    def places(self) -> Ints:
        """The arrivals."""
        return np.arange(self.held, self.held + len(self.count))

    def earlier(self, offset: int) -> Ints:
        """The rows so many before the arrivals; -1 where the window has none."""
        places = self.places
        if self.before is None:
            return np.where(offset < self.count, places - offset, -1)
        for _ in range(offset):
            places = np.where(places < 0, -1, self.before[places])
        return np.where(offset < self.count, places, -1)

    def behind_oldest(self, offset: int) -> Ints:
        """The rows so many behind the oldest ones, which came in this order; -1 where the window has none."""
        return self.oldest if offset == 0 else np.where(offset < self.count, self.oldest + offset, -1)

    def newest(self, arrivals: Ints) -> tuple[Ints, Ints]:
        """The rows of the window with some of the arrivals, newest first, and where those of each begin, and the last ones end."""
        count = self.count[arrivals]
        ends = np.cumsum(count)
        found = np.empty(int(ends[-1]) if len(ends) else 0, np.int64)
        before = np.arange(-1, self.held + len(self.count) - 1) if self.before is None else self.before
        loop(_NEWEST)(self.places[arrivals], count, before, found)
        return found, np.concatenate([[0], ends])


def standing(window: WindowSpec | None, content: pa.Table, taken: Taken) -> Standing:
    """Where the rows of a window stand with each of the events taken; `content`: those that it has, arrival and fields."""
    held, rows = content.num_rows, len(taken.times)
    places = np.arange(held, held + rows)
    match window:
        case Grouped(key=(key,), inner=inner):
            return _by_key(key, inner.size if isinstance(inner, Length) else _EVER, content, taken)
        case Length(size):
            count = np.minimum(places + 1, size)
            return Standing(held, count, places + 1 - count, None, slice(max(held + rows - size, 0), None))
        case Time(span):
            times = np.concatenate([content.column("time").to_numpy(), taken.times])
            oldest = np.searchsorted(times, taken.times - span, "right")
            stays = slice(int(np.searchsorted(times, taken.now - span, "right")), None)
            return Standing(held, places + 1 - oldest, oldest, None, stays)
        case _:
            return Standing(held, places + 1, np.zeros(rows, np.int64), None, slice(0, None))


def _by_key(key: Expr, size: int, content: pa.Table, taken: Taken) -> Standing:
    """The same of windows of so many rows a key."""
    held, total = content.num_rows, content.num_rows + len(taken.times)
    keys = [evaluate(key, [whole(column) for column in content.columns[1:]], held)] if held else []
    together = pa.concat_arrays([*keys, evaluate(key, taken.columns, len(taken.times))])
    codes = together.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
    count, oldest, before = (np.empty(total, np.int64) for _ in range(3))
    alive = np.ones(total, bool)
    loop(_OF_KEYS)(size, codes, int(codes.max(initial=-1)) + 1, count, oldest, before, alive)
    return Standing(held, count[held:], oldest[held:], before, np.flatnonzero(alive))
