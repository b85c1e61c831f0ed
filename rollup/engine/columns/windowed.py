"""A windowed aggregation as one step over columns: filter, windows, aggregates, condition, columns, condition.

    step(state, batch) -> (state, output)      finish(state) -> (state, output)      advance(state, now) -> (state, output)

The state is two tables, `cells` (the open groups of the open windows) and `sessions` (the open sessions), and a few
numbers. However the rows are cut into batches, the outputs put together are the same.

A shard, which has the groups of some keys, takes rows of others too: `own` says which are its own. The others close its
windows and are in none; `closing` chooses those that must be taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns import sessions as session_steps
from rollup.engine.columns.cells import Aggregate
from rollup.engine.columns.evaluate import Columns, arrow, evaluate, passing, plain, unfit
from rollup.engine.columns.folds import WholeSumFold
from rollup.engine.columns.groups import Bools, Ints
from rollup.engine.columns.sessions import Sessions
from rollup.engine.columns.slices import Slices
from rollup.engine.expressions import Expr
from rollup.engine.state import State


@dataclass(frozen=True)
class Sliced:
    """Slices of the line of `numbers`; None: of the numbers of the rows that pass the filter. `growing`: one window
    whose start never moves and which is given whenever it has grown at a multiple of the width."""

    shape: Slices
    numbers: Expr | None
    growing: bool = False


@dataclass(frozen=True)
class Sessioned:
    """Sessions by conditions. `starts` are the columns of the opening row that `ends` reads as the fields after the row's own."""

    shape: Sessions
    numbers: Expr
    begins: Expr
    ends: Expr | None
    starts: tuple[int, ...] = ()


@dataclass(frozen=True)
class Windowed:
    """The whole statement. `having` and `items` read keys and values, `passes` reads the items.

    `names` are those of the output columns.
    """

    where: Expr | None
    window: Sliced | Sessioned
    aggregate: Aggregate
    having: Expr | None
    items: tuple[Expr, ...]
    names: tuple[str, ...]
    passes: Expr | None

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the output."""
        return pa.schema([(name, arrow(item.type)) for name, item in zip(self.names, self.items, strict=True)])

    def start(self) -> State:
        """The state before the first row."""
        return State(
            {"cells": self.aggregate.schema.empty_table()},
            {"clock": None, "rows": 0, "late": 0, "unplaced": 0, "beyond": 0},
        )

    def step(self, state: State, batch: pa.Table, own: Bools | None = None) -> tuple[State, pa.Table]:
        """The rows of a batch, in order of arrival, and what closes by them; `own`: not all are folded, see the module."""
        columns = [_whole(column) for column in batch.columns]
        taken = passing(self.where, columns, batch.num_rows)
        state = self._counted(state, (self.where,), columns, batch.num_rows, own)
        if taken is not None and not pc.all(taken).as_py():
            columns = [column.filter(taken) for column in columns]
            own = own if own is None else own[np.asarray(taken)]
        rows = len(columns[0]) if columns else 0
        args = (arg for call in self.aggregate.calls for arg in call.args)
        state = self._counted(state, (*self.aggregate.keys, *args), columns, rows, own)
        if not rows:
            return state, self.schema.empty_table()
        if isinstance(self.window, Sessioned):
            return _SessionStep(self, self.window, own).step(state, columns, rows)
        return _SliceStep(self, self.window, own).step(state, columns, rows)

    def closing(self, batch: pa.Table) -> Ints:
        """The places of the rows that may close a window of another key than theirs."""
        columns = [_whole(column) for column in batch.columns]
        taken = passing(self.where, columns, batch.num_rows)
        places = np.arange(batch.num_rows) if taken is None else np.flatnonzero(taken)
        if isinstance(self.window, Sessioned):  # whose life is over with any row that comes after it
            return places if self.window.shape.life is not None else places[:0]
        if self.window.numbers is None:
            return places
        numbers = evaluate(self.window.numbers, columns, batch.num_rows).take(pa.array(places))
        places, numbers = places[np.asarray(pc.is_valid(numbers))], numbers.drop_null().to_numpy(zero_copy_only=False)
        return places[self.window.shape.closing(numbers)]

    def advance(self, state: State, now: int) -> tuple[State, pa.Table]:
        """The clock has reached `now` without a row."""
        if isinstance(self.window, Sessioned):
            return state, self.schema.empty_table()
        clock = now if state.scalars["clock"] is None else max(now, state.scalars["clock"])
        return _SliceStep(self, self.window).close(_with(state, clock=clock), state.tables["cells"])

    def finish(self, state: State) -> tuple[State, pa.Table]:
        """The input has ended: everything that is open closes, oldest first."""
        cells = state.tables["cells"]
        if isinstance(self.window, Sliced) and self.window.growing and not state.scalars.get("grown", False):
            cells = cells.slice(0, 0)
        empty = {name: table.slice(0, 0) for name, table in state.tables.items()}
        return self.emit(State(empty, state.scalars), cells)

    def emit(self, state: State, cells: pa.Table) -> tuple[State, pa.Table]:
        """The output of cells that have closed."""
        if not cells.num_rows:
            return state, self.schema.empty_table()
        values: Columns = self.aggregate.values(cells)
        beyond, rows = self._beyond(cells), cells.num_rows
        state = self._counted(state, (self.having,), values, rows)
        kept = passing(self.having, values, rows)
        if kept is not None:
            values = [value.filter(kept) for value in values]
            rows = len(values[0]) if values else rows
        items: Columns = [evaluate(item, values, rows) for item in self.items]
        state = self._counted(state, self.items, values, rows)
        state = self._counted(state, (self.passes,), items, rows)
        last = passing(self.passes, items, rows)
        if last is not None:
            items = [item.filter(last) for item in items]
        output = pa.table(
            [item.cast(field.type) for item, field in zip(items, self.schema, strict=True)], schema=self.schema
        )
        return (_with(state, beyond=state.scalars["beyond"] + beyond) if beyond else state), output

    @staticmethod
    def _counted(
        state: State, exprs: Sequence[Expr | None], columns: Sequence[pa.Array], rows: int, own: Bools | None = None
    ) -> State:
        """The state, with the results of arithmetic that left 64 bits counted; `own`: those of which rows count."""
        of = None if own is None else pa.array(own)
        beyond = unfit([each for each in exprs if each is not None], columns, rows, of)
        return _with(state, beyond=state.scalars["beyond"] + beyond) if beyond else state

    def _beyond(self, cells: pa.Table) -> int:
        """How many sums left 64 bits and are null therefore."""
        at, beyond = 1 + len(self.aggregate.keys), 0
        for fold in self.aggregate.folds:
            if isinstance(fold, WholeSumFold):
                beyond += fold.beyond([_whole(cells.column(at + i)) for i in range(3)])
            at += len(fold.slots())
        return beyond


def _with(state: State, **scalars: object) -> State:
    return State(state.tables, {**state.scalars, **scalars})


def _whole(column: pa.ChunkedArray) -> pa.Array:
    if column.num_chunks == 1:
        return column.chunk(0)
    if pa.types.is_dictionary(column.type):
        column = column.unify_dictionaries()
    whole = column.combine_chunks()
    return whole if isinstance(whole, pa.Array) else pa.array([], column.type)


def _concat(tables: Sequence[pa.Table], schema: pa.Schema) -> pa.Table:
    return pa.concat_tables(tables).combine_chunks() if tables else schema.empty_table()


@dataclass(frozen=True)
class _SliceStep:
    plan: Windowed
    window: Sliced
    own: Bools | None = None

    def step(self, state: State, columns: Columns, rows: int) -> tuple[State, pa.Table]:
        state, columns, numbers, own = self._numbered(state, columns, rows)
        if self.window.growing:
            return self._grow(state, columns, numbers, own)
        placed = self.window.shape.place(numbers, state.scalars["clock"])
        placed = placed if own is None else placed.of(own)
        clock = state.scalars["rows"] if self.window.numbers is None else placed.clock
        cells = self.plan.aggregate.add(state.tables["cells"], placed.rows, placed.windows, columns, len(numbers))
        return self.close(_with(state, clock=clock, late=state.scalars["late"] + placed.late), cells)

    def close(self, state: State, cells: pa.Table) -> tuple[State, pa.Table]:
        """What the clock of the state has passed."""
        if self.window.growing:
            return state, self.plan.schema.empty_table()
        done, open_ = self.plan.aggregate.closed(cells, self.window.shape.closed(state.scalars["clock"]))
        return self.plan.emit(State({"cells": open_}, state.scalars), done)

    def _numbered(self, state: State, columns: Columns, rows: int) -> tuple[State, Columns, Ints, Bools | None]:
        own = self.own
        if self.window.numbers is None:
            count = state.scalars["rows"]
            return _with(state, rows=count + rows), columns, np.arange(count, count + rows), own
        numbers = evaluate(self.window.numbers, columns, rows)
        if numbers.null_count:  # without a number a row lies in no window: it is counted, not guessed
            known = pc.is_valid(numbers)
            columns = [column.filter(known) for column in columns]
            own = own if own is None else own[np.asarray(known)]
            state = _with(state, unplaced=state.scalars["unplaced"] + numbers.null_count)
            numbers = numbers.drop_null()
        return state, columns, numbers.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), own

    def _grow(self, state: State, columns: Columns, numbers: Ints, own: Bools | None) -> tuple[State, pa.Table]:
        """One window that only grows: the batch is taken in parts, one up to each multiple of the width."""
        if not len(numbers):
            return state, self.plan.schema.empty_table()
        shape, outputs = self.window.shape, list[pa.Table]()
        steps = (numbers - shape.origin) // shape.width
        clock = state.scalars["clock"]
        reached = np.maximum.accumulate(steps if clock is None else np.concatenate([[clock], steps]))
        reached = reached if clock is None else reached[1:]
        borders = np.flatnonzero(np.diff(reached, prepend=reached[0] if clock is None else clock))
        edges = [0, *(int(border) for border in borders if border), len(numbers)]
        for begin, end in pairwise(edges):
            if begin in borders and state.scalars.get("grown", False):
                state, output = self.plan.emit(state, state.tables["cells"])
                outputs.append(output)
            part = [column.slice(begin, end - begin) for column in columns]
            mine = None if own is None else np.flatnonzero(own[begin:end])
            zeros = np.zeros(end - begin if mine is None else len(mine), np.int64)
            cells = self.plan.aggregate.add(state.tables["cells"], mine, zeros, part, end - begin)
            state = State({"cells": cells}, {**state.scalars, "grown": True, "clock": int(reached[end - 1])})
        if self.window.numbers is None and (state.scalars["rows"] - shape.origin) % shape.width == 0:
            state, output = self.plan.emit(state, state.tables["cells"])  # the last row before the multiple is here
            outputs.append(output)
            state = _with(state, grown=False)
        return state, _concat(outputs, self.plan.schema)


@dataclass(frozen=True)
class _SessionStep:
    plan: Windowed
    window: Sessioned
    own: Bools | None = None

    def step(self, state: State, columns: Columns, rows: int) -> tuple[State, pa.Table]:
        open_ = state.tables.get("sessions", self._schema(columns).empty_table()).combine_chunks()
        times, state = self._times(state, columns, rows)
        keys = [plain(evaluate(key, columns, rows)) for key in self.plan.aggregate.keys]
        arrays = [_whole(column) for column in open_.columns]
        old_keys = arrays[2 : 2 + len(keys)]
        begins = self._mask(self.window.begins, columns, rows)
        if self.own is not None:  # where another key's session does not begin, none of its rows is in one
            begins = begins & self.own
        batch = session_steps.Rows(times, begins, self._ends(arrays, columns, rows), keys)
        numbers = (arrays[0].to_numpy(), arrays[1].to_numpy())
        placed = self.window.shape.place(batch, old_keys, numbers, state.scalars["clock"], state.scalars["rows"])
        cells = self.plan.aggregate.add(state.tables["cells"], placed.rows, placed.sessions, columns, rows, alone=True)
        done, rest = _split(cells, placed.closed)
        kept = self._opened(placed, arrays, keys, columns)
        state = State({"cells": rest, "sessions": kept}, {**state.scalars, "clock": placed.clock, "rows": placed.total})
        return self.plan.emit(state, done)

    def _schema(self, columns: Columns) -> pa.Schema:
        keys = [pa.field(f"key{i}", arrow(key.type)) for i, key in enumerate(self.plan.aggregate.keys)]
        starts = [pa.field(f"start{i}", plain(columns[i].slice(0, 0)).type) for i in self.window.starts]
        return pa.schema([pa.field("window", pa.int64()), pa.field("begin", pa.int64()), *keys, *starts])

    def _times(self, state: State, columns: Columns, rows: int) -> tuple[Ints, State]:
        """The time of each row; a row without one does not move the clock."""
        times = evaluate(self.window.numbers, columns, rows)
        if not times.null_count:
            return times.to_numpy(zero_copy_only=False).astype(np.int64, copy=False), state
        clock = state.scalars["clock"]
        low = -(2**62) if clock is None else clock
        known = pc.fill_null(times, pa.scalar(low, times.type)).to_numpy()
        missing = np.asarray(pc.is_null(times))
        return np.where(missing, np.maximum.accumulate(np.maximum(known, low)), known), state

    def _mask(self, condition: Expr, columns: Columns, rows: int) -> session_steps.Bools:
        return np.asarray(passing(condition, columns, rows))

    def _ends(self, open_: Columns, columns: Columns, rows: int) -> session_steps.Bools | session_steps.EndsAt | None:
        if self.window.ends is None:
            return None
        if not self.window.starts:
            return self._mask(self.window.ends, columns, rows)
        ends, starts = self.window.ends, self.window.starts
        first = 2 + len(self.plan.aggregate.keys)

        def find(opening: int, later: Ints) -> int | None:
            for at in range(0, len(later), 256):
                part = pa.array(later[at : at + 256])
                some = [column.take(part) for column in columns]
                for place, index in enumerate(starts):
                    start = (
                        plain(columns[index])[opening]
                        if opening >= 0
                        else open_[first + place][opening + len(open_[0])]
                    )
                    some.append(pa.repeat(start, len(part)))
                hits = np.flatnonzero(self._mask(ends, some, len(part)))
                if len(hits):
                    return at + int(hits[0])
            return None

        return find

    def _opened(self, placed: session_steps.Placed, open_: Columns, keys: Columns, columns: Columns) -> pa.Table:
        """The sessions that stay open: carried ones from the state, new ones from their opening row."""
        old = placed.opened < 0
        carried = -1 - placed.opened[old]
        fresh = placed.opened[~old]
        parts = [*keys, *(plain(columns[i]) for i in self.window.starts)]
        out = [
            pa.concat_arrays([before.take(pa.array(carried)), after.take(pa.array(fresh)).cast(before.type)])
            for before, after in zip(open_[2:], parts, strict=True)
        ]
        order = np.concatenate([np.flatnonzero(old), np.flatnonzero(~old)])
        return pa.table(
            [pa.array(placed.numbers[order]), pa.array(placed.starts[order]), *out], schema=self._schema(columns)
        )


def _split(cells: pa.Table, closed: Ints) -> tuple[pa.Table, pa.Table]:
    """The cells of closed sessions, in their order, and the others. A session is one cell."""
    if not len(closed):
        return cells.slice(0, 0), cells
    numbers = cells.column("window").to_numpy()
    stays = np.ones(len(numbers), bool)
    places = np.searchsorted(numbers, closed)
    stays[places] = False
    return cells.take(pa.array(places)), cells.filter(pa.array(stays))
