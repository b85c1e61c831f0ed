"""An input of a join over columns: what is kept of its rows, and which of them leave its window when.

A window lets its oldest row out first (of length, of time), or that of the arrival's key; or keeps all, or (without one) none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch
from rollup.engine.columns.cores.changes import by_time
from rollup.engine.columns.cores.covering import KEYS, against, first, wide
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.evaluate import arrow, evaluate, flags, plain
from rollup.engine.columns.groups import Ints, key_codes
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Expr
from rollup.engine.rows.plans import Filter, StreamInput
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import RowType

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
class Moves:
    """What the changes of a join bring of a side: the rows that come, in order, and how many have come after each change; the rows
    that leave, and how many have left.
    """

    came: Ints
    tos: Ints
    gone: Ints
    ends: Ints


@dataclass(frozen=True)
class Moved(Moves):
    """The same of the changes of a side alone, which are those `at` some instants that events of a batch bring, or TIMER."""

    at: Ints
    event: Ints

    def among(self, numbers: Ints, changes: int) -> Moves:
        """The same of more changes, among which these have such numbers."""
        if len(numbers) == changes:
            return self
        tos, ends = np.zeros(changes, np.int64), np.zeros(changes, np.int64)
        tos[numbers], ends[numbers] = self.tos, self.ends
        return Moves(self.came, np.maximum.accumulate(tos), self.gone, np.maximum.accumulate(ends))


@dataclass(frozen=True)
class Arrived:
    """The rows of a side, of which `old` have been there, with those that events at some `places` of a batch brought."""

    table: pa.Table
    old: int
    places: Ints
    now: int

    @property
    def times(self) -> Ints:
        """When those came."""
        return self.table.column("time").to_numpy()[self.table.num_rows - len(self.places) :]


@dataclass(frozen=True)
class Side:
    """An input of the join: `keys` over the fields of its events, and the places of the fields that the statement reads. Without a
    window nothing is kept of the events.
    """

    filter: Filter
    window: WindowSpec | None
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

    def arrived(self, held: pa.Table, batch: Batch, before: int) -> Arrived:
        """The rows that the window holds with those that a batch brings, at the instant `before` or later."""
        table, taken = held, self._taken(batch)
        places = np.flatnonzero(taken)
        if len(places):
            rows = self.rows(batch.columns, np.maximum(batch.times[places], before), places)
            table = pa.concat_tables([table, rows]).combine_chunks()
        return Arrived(table, held.num_rows, places, max(before, batch.now))

    def kept(self, table: pa.Table) -> list[pa.ChunkedArray]:
        """The fields among what is kept."""
        return table.columns[1 + len(self.keys) + len(self.marks) :]

    def _taken(self, batch: Batch) -> np.ndarray:
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

    def due(self, held: pa.Table) -> int | None:
        """When the oldest row leaves by itself."""
        if not isinstance(self.window, Time) or not held.num_rows:
            return None
        return held.column("time")[0].as_py() + self.window.span

    def together(self, held: pa.Table, now: int) -> pa.Table:
        """The rows, of which those that are due by `now` leave at `now`."""
        if not isinstance(self.window, Time):
            return held
        times = np.maximum(held.column("time").to_numpy(), now - self.window.span)
        return held.set_column(0, held.schema.field(0), pa.array(times))

    def moved(self, rows: Arrived, codes: Ints) -> tuple[Moved, pa.Table]:
        """The changes of the window, and the rows that it holds after them; `codes`: the numbers of the rows' keys."""
        moved = self._moved(rows, codes)
        return moved, self._left(rows.table, moved.gone)

    def _moved(self, rows: Arrived, codes: Ints) -> Moved:
        arrivals = np.arange(len(rows.places))
        came = rows.old + arrivals
        match self.window:
            case Time(span):
                times = rows.table.column("time").to_numpy()
                found = by_time(rows.times, times, span, rows.now)
                event = np.where(found.event >= 0, rows.places[found.event], TIMER) if len(came) else found.event
                gone = np.arange(int(found.gone[-1]) if len(found.gone) else 0)
                return Moved(came, found.come - rows.old, gone, found.gone, found.at, event)
            case Length(size):
                ends = np.maximum(came + 1 - size, 0)
                gone = np.arange(int(ends[-1]) if len(ends) else 0)
            case Unique():
                gone, ends = self._gone_by_key(1, rows, codes)
            case Grouped(inner=Length(size)):
                gone, ends = self._gone_by_key(size, rows, codes)
            case None:
                gone, ends = came, arrivals + 1
            case _:
                gone, ends = np.empty(0, np.int64), np.zeros(len(came), np.int64)
        return Moved(came, arrivals + 1, gone, ends, rows.times, rows.places)

    def _gone_by_key(self, size: int, rows: Arrived, codes: Ints) -> tuple[Ints, Ints]:
        """What leaves windows of the last rows of each key, and how many rows have left with each arrival."""
        marks = self._marked(rows.table, codes)
        held, first, last = (np.zeros(marks.max(initial=-1) + 1, np.int64) for _ in range(3))
        follows, gone, by = (np.empty(len(marks), np.int64) for _ in range(3))
        n = loop(_BY_KEY)(size, marks, held, first, last, follows, gone, by)
        return gone[:n], np.searchsorted(by[:n], rows.old + np.arange(len(rows.places)), "right")

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

    def _left(self, table: pa.Table, gone: Ints) -> pa.Table:
        """The rows that are still there."""
        if not isinstance(self.window, Unique | Grouped):
            return table.slice(len(gone))
        stays = np.ones(table.num_rows, bool)
        stays[gone] = False
        return table.filter(pa.array(stays))


def side_of(input: StreamInput, keys: Sequence[Expr], fields: Sequence[int], type: RowType) -> Side | str:
    """An input of a join, with what is equal and what is kept of its rows; or the first reason against its window."""
    reason = None if input.window is None else unheld(input.window)
    return reason or Side(input.filter, input.window, tuple(keys), tuple(fields), type)


def unheld(window: WindowSpec | None) -> str | None:
    """The first reason against a window in a join."""
    match window:
        case Length(size) if size > 0:
            return None
        case KeepAll() | Time(size=None):
            return None
        case Unique(key=keys, first=False) | Grouped(key=keys, inner=Length()):
            return first(against(key) or wide(key) or _unmarked(key) for key in keys)
        case _:
            return f"a join over the window {type(window).__name__}"


def _unmarked(key: Expr) -> str | None:
    return None if key.type.kind in KEYS else f"a window by a {key.type}"
