"""An input of a join over columns: what is kept of its rows, and which of them leave its window when.

A window lets its oldest row out first (of length, of time), or that of the arrival's key; or keeps all, or (without one) none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.covering import KEYS, against, first, wide
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.evaluate import arrow, evaluate, flags, plain
from rollup.engine.columns.groups import Ints, key_codes
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Expr
from rollup.engine.rows.plans import Filter
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import RowType

Held = Length | Time | KeepAll | Unique | Grouped | None
"""The windows of a join, of several keys those by length; None: the events of a stream, of which nothing is kept."""
_BY_KEY = """
def core(size, marks, held, first, last, follows, gone, by):
    n = 0
    for i in range(len(marks)):
        m = marks[i]
        if held[m] == 0:
            first[m] = i
        else:
            follows[last[m]] = i
        last[m] = i
        held[m] += 1
        if held[m] > size:
            gone[n], by[n] = first[m], i
            n, first[m] = n + 1, follows[first[m]]
            held[m] -= 1
    return n
"""
"""The rows that are no more among the last `size` ones of their mark, and with which row that is so, in the order of these."""

_SPARSE = 4
"""So many numbers there may be for each of those that are taken."""


@dataclass(frozen=True)
class Moments:
    """The changes of a join in order: when, and how many; that of each arrival of a side; of each instant at which the clock
    lets rows out.
    """

    number: int
    arrivals: Ints
    instants: Ints
    fired: Ints


@dataclass(frozen=True)
class Moves:
    """What a side does with the changes: the row that comes with each or -1; rows that leave, in order, and how many of them
    have left after each.
    """

    came: Ints
    gone: Ints
    ends: Ints


@dataclass(frozen=True)
class Side:
    """An input of the join: `keys` over the fields of its events, and the places of the fields that the statement reads."""

    filter: Filter
    window: Held
    keys: tuple[Expr, ...]
    fields: tuple[int, ...]
    type: RowType

    @property
    def marks(self) -> tuple[Expr, ...]:
        """What a window by key goes by, where it is not what the sides have in common."""
        return self.window.key if isinstance(self.window, Unique | Grouped) and not self._by_join_key else ()

    @property
    def _by_join_key(self) -> bool:
        return isinstance(self.window, Unique | Grouped) and len(self.keys) == 1 and self.window.key == self.keys

    @cached_property
    def schema(self) -> pa.Schema:
        """What is kept of a row."""
        kinds = list(self.type.fields.values())
        names = [("time", pa.int64()), *((f"key{i}", arrow(key.type)) for i, key in enumerate(self.keys))]
        names += [(f"mark{i}", arrow(mark.type)) for i, mark in enumerate(self.marks)]
        return pa.schema([*names, *((f"field{place}", arrow(kinds[place])) for place in self.fields)])

    def kept(self, table: pa.Table) -> list[pa.ChunkedArray]:
        """The fields among what is kept."""
        return table.columns[1 + len(self.keys) + len(self.marks) :]

    def taken(self, batch: Batch) -> np.ndarray:
        """Which events of a batch come in."""
        if batch.stream != self.filter.stream:
            return np.zeros(batch.rows, bool)
        return flags(accepted(self.filter, None, batch.columns, batch.rows), batch.rows)

    def rows(self, columns: Sequence[pa.Array], times: Ints, places: Ints) -> pa.Table:
        """What is kept of the events at some places of a batch, with the instants at which they came."""
        values = [evaluate(key, columns, len(columns[0])) for key in (*self.keys, *self.marks)]
        values += [plain(columns[place]) for place in self.fields]
        if len(places) < len(columns[0]):
            values = [value.take(pa.array(places)) for value in values]
        return pa.table([pa.array(times), *values], schema=self.schema)

    @property
    def timed(self) -> bool:
        """Whether the clock lets rows out."""
        return isinstance(self.window, Time)

    def due(self, table: pa.Table) -> int | None:
        """When the oldest row leaves by itself."""
        if not isinstance(self.window, Time) or not table.num_rows:
            return None
        return table.column("time")[0].as_py() + self.window.span

    def dues(self, table: pa.Table) -> Iterator[tuple[Any, int]]:
        """The first key of each row that leaves by itself, and when that is."""
        if isinstance(self.window, Time):
            for key, came in zip(table.column(1).to_pylist(), table.column(0).to_pylist(), strict=True):
                yield key, came + self.window.span

    def together(self, table: pa.Table, now: int) -> pa.Table:
        """The rows, of which those that are due by `now` leave at `now`."""
        if not isinstance(self.window, Time):
            return table
        times = np.maximum(table.column("time").to_numpy(), now - self.window.span)
        return table.set_column(0, table.schema.field(0), pa.array(times))

    def instants(self, table: pa.Table, now: int) -> Ints:
        """When the clock lets rows out, up to `now`."""
        if not isinstance(self.window, Time):
            return np.empty(0, np.int64)
        times = table.column("time").to_numpy()
        return times[: np.searchsorted(times, now - self.window.span, "right")] + self.window.span

    def moves(self, table: pa.Table, old: int, codes: Ints, moments: Moments) -> Moves:
        """The changes of the window, whose rows are the `old` ones and the arrivals; `codes`: the numbers of their keys."""
        came = np.full(moments.number, -1, np.int64)
        came[moments.arrivals] = old + np.arange(len(moments.arrivals))
        gone, change = self._gone(table, old, codes, moments)
        return Moves(came, gone, np.cumsum(np.bincount(change, minlength=moments.number)))

    def _gone(self, table: pa.Table, old: int, codes: Ints, moments: Moments) -> tuple[Ints, Ints]:
        """The rows that leave, and with which change, in order."""
        match self.window:
            case Time():
                left = self.instants(table, moments.instants[-1]) if len(moments.instants) else moments.instants
                return np.arange(len(left)), moments.fired[np.searchsorted(moments.instants, left)]
            case Length(size):
                gone = np.arange(max(table.num_rows - size, 0))
                return gone, moments.arrivals[gone + size - old]
            case Unique():
                return self._gone_by_key(1, table, old, codes, moments)
            case Grouped(inner=Length(size)):
                return self._gone_by_key(size, table, old, codes, moments)
            case None:
                return np.arange(table.num_rows), moments.arrivals
            case _:
                return np.empty(0, np.int64), np.empty(0, np.int64)

    def _gone_by_key(self, size: int, table: pa.Table, old: int, codes: Ints, moments: Moments) -> tuple[Ints, Ints]:
        """The same of windows of the last rows of each key."""
        marks = self._marked(table, codes)
        held, first, last = (np.zeros(marks.max(initial=-1) + 1, np.int64) for _ in range(3))
        follows, gone, by = (np.empty(len(marks), np.int64) for _ in range(3))
        n = loop(_BY_KEY)(size, marks, held, first, last, follows, gone, by)
        return gone[:n], moments.arrivals[by[:n] - old]

    def _marked(self, table: pa.Table, codes: Ints) -> Ints:
        """What a window by key goes by, as numbers; null is a value."""
        if self._by_join_key:
            return codes + 1
        found, below = np.zeros(table.num_rows, np.int64), 1
        for place in range(len(self.marks)):
            more, different = key_codes(whole(table.column(f"mark{place}")))
            found, below = found * different + more, below * different
            if below > _SPARSE * (len(found) + 1):
                values, found = np.unique(found, return_inverse=True)
                below = len(values)
        return found

    def left(self, table: pa.Table, gone: Ints) -> pa.Table:
        """The rows that are still there."""
        if not isinstance(self.window, Unique | Grouped):
            return table.slice(len(gone))
        stays = np.ones(table.num_rows, bool)
        stays[gone] = False
        return table.filter(pa.array(stays))


def unheld(window: WindowSpec | None) -> str | None:
    """The first reason against a window in a join."""
    match window:
        case Length(size) if size > 0:
            return None
        case KeepAll() | Time(size=None):
            return None
        case Unique(key=keys, first=False) | Grouped(key=keys, inner=Length()):
            return first(against(key) or wide(key) or _unmarked(key) for key in keys)
        case None:
            return "a join of a stream without a window"
        case _:
            return f"a join over the window {type(window).__name__}"


def _unmarked(key: Expr) -> str | None:
    return None if key.type.kind in KEYS else f"a window by a {key.type}"
