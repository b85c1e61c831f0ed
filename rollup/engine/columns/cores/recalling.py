"""Statements that read earlier events with each of theirs, `prior(n, x)` and `prev(n, x)`, or how many a window holds and
the oldest of them: what they read so are further fields of an event, made when it comes, and a core that knows of nothing
else reads those.

State: that of this core; `earlier`, what is read of the last events that passed, and when they came. Where the rows of a
window matter only to such look-ups and to one who looks at them, also `content`, these rows: arrival, fields, earlier ones.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.cores.batches import Batch, Core, Output
from rollup.engine.columns.cores.covering import KEYS, against, filtered, first, wide
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.over_stream import over_stream
from rollup.engine.columns.cores.projecting import FilterProject, Taken
from rollup.engine.columns.cores.queued import aggregates, queued
from rollup.engine.columns.cores.rewriting import inside, rewritten
from rollup.engine.columns.evaluate import carried, evaluate, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Ask, Const, Expr, Field
from rollup.engine.rows.plans import Earlier, Filter, Lookup, Previous, Select, StreamInput
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length, LengthBatch
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import Time, TimeBatch
from rollup.engine.state import State
from rollup.engine.types import LONG, DataType, RowType

_WINDOWS = (Length, LengthBatch, Time, TimeBatch, KeepAll)
Making = Callable[[Select, RowType, bool], Core | str]
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
_PIECES = 64
"""How many pieces the rows of a window may consist of before they are put together."""


@dataclass(frozen=True)
class Recalled:
    """What is read: of the event `offset` before, of any arrival (`earlier`) or of the rows of the window (`row`); of the
    oldest of these (`tail`); or their number (`count`).
    """

    value: Field
    what: Literal["earlier", "row", "tail", "count"]
    offset: int = 0

    @property
    def inside(self) -> bool:
        """Whether the window says what is read."""
        return self.what != "earlier"

    @property
    def type(self) -> DataType:
        """The type of what is read."""
        return LONG if self.what == "count" else self.value.type


@dataclass(frozen=True)
class Window:
    """Where the rows of a window stand with each arrival, those held before it first: how many rows there are, the oldest
    of them, and (by key) the one before the arrival; which of all stay.
    """

    count: Ints
    oldest: Ints
    before: Ints | None
    stays: slice | Ints

    def earlier(self, places: Ints, offset: int) -> Ints:
        """The rows so many before those at some places; -1 where the window has none."""
        if self.before is None:
            return np.where(offset < self.count, places - offset, -1)
        for _ in range(offset):
            places = np.where(places < 0, -1, self.before[places])
        return np.where(offset < self.count, places, -1)


@dataclass(frozen=True)
class Recalling:
    """The statement; `main` reads, behind the fields of its stream, what is `recalled`, by `plan`. `window`: the one whose rows
    are kept here, since `main` keeps none.
    """

    main: Core
    plan: Select
    filter: Filter
    recalled: tuple[Recalled, ...]
    window: WindowSpec | None
    type: RowType
    """The stream, without what is recalled."""

    @cached_property
    def shifted(self) -> tuple[Recalled, ...]:
        """What is read of the event so many before, whatever its key."""
        there = ("earlier",) if isinstance(self.window, Grouped) else ("earlier", "row")
        return tuple(each for each in self.recalled if each.what in there)

    @cached_property
    def depth(self) -> int:
        """How many events back anything of these is read."""
        return max((each.offset for each in self.shifted), default=0)

    @cached_property
    def reached(self) -> RowType:
        """The stream with what is recalled."""
        return _reached(self.type, self.recalled)

    @cached_property
    def kinds(self) -> list[pa.DataType]:
        """What its fields are carried as."""
        return [carried(kind) for kind in self.reached.fields.values()]

    @cached_property
    def schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """Of what is read of earlier events, and of the window's rows."""
        time = pa.field("time", pa.int64())
        read = [pa.field(f"value{i}", carried(each.type)) for i, each in enumerate(self.shifted)]
        return pa.schema([time, *read]), pa.schema(
            [time, *(pa.field(f"field{i}", kind) for i, kind in enumerate(self.kinds))]
        )

    def start(self, now: int) -> State:
        """Nothing has come."""
        earlier, content = self.schemas
        return self.state(self.main.start(now), earlier.empty_table(), content.empty_table(), now)

    def state(self, main: State, earlier: pa.Table, content: pa.Table, now: int) -> State:
        """The state, of its parts."""
        held = {} if self.window is None else {"content": content}
        return State.holding({"main": main}, {"now": now}, {"earlier": earlier, **held})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """What `main` makes of the events that pass, with what came before each."""
        taken = Taken.of(batch, state.scalars["now"], self.filter)
        earlier, content = state.tables["earlier"], state.tables.get("content")
        shifted, earlier = self._shifted(earlier, taken)
        window = None if content is None else self._window(content, taken)
        columns = [
            shifted[self.shifted.index(each)] if each in self.shifted else self._read(each, content, window, taken)
            for each in self.recalled
        ]
        inner, output = self.main.step(
            state.held()["main"], Batch((*taken.columns, *columns), taken.times, taken.now, batch.stream)
        )
        if content is not None and window is not None:
            content = self._kept(content, window, taken, columns)
        after = self.state(inner, earlier, content if content is not None else earlier, taken.now)
        ticks = None if output.ticks is None else (output.ticks[0], taken.placed(output.ticks[1]))
        return after, replace(output, event=taken.placed(output.event), ticks=ticks)

    def _shifted(self, earlier: pa.Table, taken: Taken) -> tuple[list[pa.Array], pa.Table]:
        """What is read of the events so many before those taken, and what is to be kept for those to come."""
        rows, held = len(taken.times), earlier.num_rows
        times = np.concatenate([earlier.column("time").to_numpy(), taken.times])
        known, found = [pa.array(times)], list[pa.Array]()
        for each, column in zip(self.shifted, earlier.columns[1:], strict=True):
            values = pa.concat_arrays([*column.chunks, evaluate(each.value, taken.columns, rows)])
            known.append(values)
            shifted = _shifted(values, held - each.offset, rows)
            found.append(self._there(shifted, each, times, taken.times) if each.inside else shifted)
        kept = slice(max(held + rows - self.depth, 0), None)
        return found, pa.table([column[kept] for column in known], schema=earlier.schema)

    def _there(self, values: pa.Array, each: Recalled, times: Ints, arrived: Ints) -> pa.Array:
        """The values of those events that the window still holds."""
        match self.window:
            case Length(size) if each.offset >= size:
                return pa.nulls(len(values), values.type)
            case Time(span):
                came = _shifted(pa.array(times), len(times) - len(arrived) - each.offset, len(arrived))
                inside = pc.less(pc.subtract(pa.array(arrived), came), span)
                return pc.if_else(inside, values, pa.scalar(None, values.type))
            case _:
                return values

    def _window(self, content: pa.Table, taken: Taken) -> Window:
        """Where the rows of the window stand with each of the events taken."""
        held, rows = content.num_rows, len(taken.times)
        places = np.arange(held, held + rows)
        match self.window:
            case Grouped(key=(key,), inner=inner):
                return self._by_key(key, inner.size if isinstance(inner, Length) else _EVER, content, taken)
            case Length(size):
                count = np.minimum(places + 1, size)
                return Window(count, places + 1 - count, None, slice(max(held + rows - size, 0), None))
            case Time(span):
                times = np.concatenate([content.column("time").to_numpy(), taken.times])
                oldest = np.searchsorted(times, taken.times - span, "right")
                stays = slice(int(np.searchsorted(times, taken.now - span, "right")), None)
                return Window(places + 1 - oldest, oldest, None, stays)
            case _:
                return Window(places + 1, np.zeros(rows, np.int64), None, slice(0, None))

    def _by_key(self, key: Expr, size: int, content: pa.Table, taken: Taken) -> Window:
        """The same of windows of so many rows a key."""
        held, total = content.num_rows, content.num_rows + len(taken.times)
        keys = [evaluate(key, [whole(column) for column in content.columns[1:]], held)] if held else []
        together = pa.concat_arrays([*keys, evaluate(key, taken.columns, len(taken.times))])
        codes = together.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
        count, oldest, before = (np.empty(total, np.int64) for _ in range(3))
        alive = np.ones(total, bool)
        loop(_OF_KEYS)(size, codes, int(codes.max(initial=-1)) + 1, count, oldest, before, alive)
        return Window(count[held:], oldest[held:], before, np.flatnonzero(alive))

    def _read(self, each: Recalled, content: pa.Table | None, window: Window | None, taken: Taken) -> pa.Array:
        """What is read of the window's rows with each of the events taken."""
        assert content is not None and window is not None
        if each.what == "count":
            return pa.array(window.count)
        if each.what == "tail":
            places = window.oldest
        else:
            places = window.earlier(np.arange(len(taken.times)) + content.num_rows, each.offset)
        first = int(places[places >= 0].min(initial=content.num_rows))
        arrived = evaluate(each.value, taken.columns, len(taken.times))
        values = pa.concat_arrays([*content.column(f"field{each.value.index}").slice(first).chunks, arrived])
        return values.take(pa.array(places - first, mask=places < 0))

    def _kept(self, content: pa.Table, window: Window, taken: Taken, columns: Sequence[pa.Array]) -> pa.Table:
        """The rows that are in the window then."""
        fields = [pa.array(taken.times), *map(plain, (*taken.columns, *columns))]
        content = pa.concat_tables([content, pa.table(fields, schema=content.schema)])
        stays = window.stays
        content = content[stays] if isinstance(stays, slice) else content.take(pa.array(stays))
        return content.combine_chunks() if content.column(0).num_chunks > _PIECES else content


def _shifted(values: pa.Array, begin: int, rows: int) -> pa.Array:
    """So many values from a place on; null where that is before the first of them."""
    if begin >= 0:
        return values[begin : begin + rows]
    missing = min(-begin, rows)
    return pa.concat_arrays([pa.nulls(missing, values.type), values[: rows - missing]])


def _reached(stream: RowType, recalled: Sequence[Recalled]) -> RowType:
    further = {f"{each.offset} before ({i})": each.type for i, each in enumerate(recalled)}
    return RowType(stream.name, {**stream.fields, **further})


def recalling(plan: Select, stream: RowType, ordered: bool, rated: Making) -> Recalling | str:
    """The core of a statement with look-ups of earlier events, or the first reason against it. `rated` makes that of one with an
    output rate, whose rows may be `ordered`.
    """
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or input.unnest:
        return "an input that is not a plain stream"
    if plan.rate.limited and input.window is not None and (ordered or not _at_once(plan)):
        return "earlier events of rows that wait for an output, over a window that they may leave before"
    recalled = list[Recalled]()
    for lookup in plan.lookups:
        found = _recalled(lookup)
        if isinstance(found, str):
            return found
        recalled.append(found)
    reason = filtered(input.filter) or first(against(each.value) for each in recalled)
    if reason is not None:
        return reason
    window = input.window if not aggregates(plan) and plan.comes_alone and _steady(input.window) else None
    if window is None and any(each.inside for each in recalled):
        return (
            "prev beside aggregates, with the remove stream, or over a window other than length, time, keepall, a key's"
        )
    bare = replace(input, filter=Filter(input.filter.stream), prior=0, window=None if window else input.window)
    read = _reading(plan, len(stream.fields), stream)
    wider, type = replace(read, inputs=(bare,)), _reached(stream, recalled)
    main = rated(wider, type, ordered) if plan.rate.limited else _main(wider, type)
    return main if isinstance(main, str) else Recalling(main, read, input.filter, tuple(recalled), window, stream)


def _recalled(lookup: Lookup) -> Recalled | str:
    """What a look-up reads, or the first reason against it."""
    match lookup:
        case Earlier(input=0, offset=offset, value=Field() as value):
            return Recalled(value, "earlier", offset)
        case Previous(input=0, what="row", value=Field() as value, offset=Const(value=int(offset))) if offset >= 0:
            return Recalled(value, "row", offset)
        case Previous(input=0, what="count" | "tail" as what, value=Field() as value, offset=None):
            return Recalled(value, what)
        case Earlier() | Previous():
            return "an earlier event other than a field of the one that is so many before"
        case _:
            return f"the look-up {type(lookup).__name__}"


def _steady(window: WindowSpec | None) -> bool:
    """Whether the rows of a window are the last that came, of all or of a key."""
    match window:
        case Length() | KeepAll() | Time(size=None):
            return True
        case Grouped(key=(key,), inner=Length() | KeepAll()):
            return not (against(key) or wide(key)) and key.type.kind in KEYS
        case _:
            return False


def _at_once(plan: Select) -> bool:
    """Whether what a row recalls is read when it comes, though an output shows it later."""
    grouped = plan.grouping is not None or plan.total
    return grouped and plan.rate.mode in ("last", "all", "first")


def _main(plan: Select, type: RowType) -> FilterProject | Folded | str:
    """What reads earlier events as further fields. Where a row stands for itself, the window keeps the rows."""
    window = plan.inputs[0].window if isinstance(plan.inputs[0], StreamInput) else None
    if window is not None and not isinstance(window, _WINDOWS):
        return f"earlier events over the window {window.__class__.__name__}"
    each = plan.grouping is None and not plan.total
    return queued(plan, type) if window is not None and each else over_stream(plan, type)


def _reading(plan: Select, width: int, stream: RowType) -> Select:
    """A statement that reads the answers of its look-ups as fields behind those of the event."""

    def read(expr: Expr) -> Expr:
        return Field(0, width + expr.index, expr.type) if isinstance(expr, Ask) else inside(expr, read)

    projection = plan.projection
    if projection.whole:
        fields = tuple(Field(0, i, kind) for i, kind in enumerate(stream.fields.values()))
        projection = replace(projection, columns=fields, whole=False)
    return replace(rewritten(replace(plan, projection=projection), read), lookups=())
