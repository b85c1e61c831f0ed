"""Statements that read earlier events with each of theirs, `prior(n, x)` and `prev(n, x)`: what they read so are further
fields of an event, made when it comes, and a core that knows of nothing else reads those.

State: that of this core; `earlier`, what is read of the last events that passed, and when they came. Where the rows of a
window matter only to `prev` and to one who looks at them, also `content`, these rows: arrival, fields, earlier ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.covering import against, filtered, first
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.over_stream import over_stream
from rollup.engine.columns.cores.projecting import FilterProject, Taken
from rollup.engine.columns.cores.queued import aggregates, queued
from rollup.engine.columns.cores.rewriting import inside
from rollup.engine.columns.evaluate import carried, evaluate, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Ask, Const, Expr, Field
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.plans import Earlier, Filter, Lookup, Previous, Select, StreamInput
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length, LengthBatch
from rollup.engine.rows.windows.timed import Time, TimeBatch
from rollup.engine.state import State
from rollup.engine.types import RowType

_WINDOWS = (Length, LengthBatch, Time, TimeBatch, KeepAll)
_PIECES = 64
"""How many pieces the rows of a window may consist of before they are put together."""


@dataclass(frozen=True)
class Recalled:
    """What is read of the event `offset` before; `inside`: of one that the window holds, else of any arrival."""

    value: Field
    offset: int
    inside: bool


@dataclass(frozen=True)
class Recalling:
    """The statement; `main` reads, behind the fields of its stream, what is `recalled`, by `plan`. `window`: the one whose rows
    are kept here, since `main` keeps none.
    """

    main: FilterProject | Folded
    plan: Select
    filter: Filter
    recalled: tuple[Recalled, ...]
    window: WindowSpec | None
    type: RowType
    """The stream, without what is recalled."""

    @cached_property
    def depth(self) -> int:
        """How many events back anything is read."""
        return max(each.offset for each in self.recalled)

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
        read = [pa.field(f"value{i}", carried(each.value.type)) for i, each in enumerate(self.recalled)]
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
        columns, earlier = self._recall(state.tables["earlier"], taken)
        inner, output = self.main.step(
            state.held()["main"], Batch((*taken.columns, *columns), taken.times, taken.now, batch.stream)
        )
        content = state.tables.get("content", earlier)
        if self.window is not None:
            content = self._kept(content, taken, columns)
        after = self.state(inner, earlier, content, taken.now)
        return after, replace(output, event=taken.placed(output.event))

    def _recall(self, earlier: pa.Table, taken: Taken) -> tuple[list[pa.Array], pa.Table]:
        """What is read with each of the events taken, and what is to be kept for those to come."""
        rows, held = len(taken.times), earlier.num_rows
        times = np.concatenate([earlier.column("time").to_numpy(), taken.times])
        known, found = [pa.array(times)], list[pa.Array]()
        for each, column in zip(self.recalled, earlier.columns[1:], strict=True):
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

    def _kept(self, content: pa.Table, taken: Taken, columns: Sequence[pa.Array]) -> pa.Table:
        """The rows that are in the window then."""
        begin, fields = 0, (*taken.columns, *columns)
        match self.window:
            case Length(size):
                content = content[max(content.num_rows + len(taken.times) - size, 0) :]
                begin = max(len(taken.times) - size, 0)
            case Time(span):
                content = content[int(np.searchsorted(content.column("time").to_numpy(), taken.now - span, "right")) :]
                begin = int(np.searchsorted(taken.times, taken.now - span, "right"))
            case _:
                pass
        arrived = [pa.array(taken.times[begin:]), *(plain(each[begin:]) for each in fields)]
        content = pa.concat_tables([content, pa.table(arrived, schema=content.schema)])
        return content.combine_chunks() if content.column(0).num_chunks > _PIECES else content


def _shifted(values: pa.Array, begin: int, rows: int) -> pa.Array:
    """So many values from a place on; null where that is before the first of them."""
    if begin >= 0:
        return values[begin : begin + rows]
    missing = min(-begin, rows)
    return pa.concat_arrays([pa.nulls(missing, values.type), values[: rows - missing]])


def _reached(stream: RowType, recalled: Sequence[Recalled]) -> RowType:
    further = {f"{each.offset} before ({i})": each.value.type for i, each in enumerate(recalled)}
    return RowType(stream.name, {**stream.fields, **further})


def recalling(plan: Select, stream: RowType) -> Recalling | str:
    """The core of a statement with look-ups of earlier events, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or input.unnest:
        return "an input that is not a plain stream"
    if plan.rate.limited:
        return "earlier events with an output rate"
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
        return "prev beside aggregates, with the remove stream, or over a window other than length, time, keepall"
    bare = replace(input, filter=Filter(input.filter.stream), prior=0, window=None if window else input.window)
    read = _reading(plan, len(stream.fields), stream)
    main = _main(replace(read, inputs=(bare,)), _reached(stream, recalled))
    return main if isinstance(main, str) else Recalling(main, read, input.filter, tuple(recalled), window, stream)


def _recalled(lookup: Lookup) -> Recalled | str:
    """What a look-up reads, or the first reason against it."""
    match lookup:
        case Earlier(input=0, offset=offset, value=Field() as value):
            return Recalled(value, offset, False)
        case Previous(input=0, what="row", value=Field() as value, offset=Const(value=int(offset))) if offset >= 0:
            return Recalled(value, offset, True)
        case Earlier() | Previous():
            return "an earlier event other than a field of the one that is so many before"
        case _:
            return f"the look-up {type(lookup).__name__}"


def _steady(window: WindowSpec | None) -> bool:
    """Whether the rows of a window are the last that came."""
    return isinstance(window, Length | KeepAll) or (isinstance(window, Time) and window.size is None)


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

    def several(found: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(map(read, found))

    def called(calls: Sequence[AggregateCall]) -> tuple[AggregateCall, ...]:
        return tuple(
            replace(call, args=several(call.args), where=None if call.where is None else read(call.where))
            for call in calls
        )

    projection, grouping = plan.projection, plan.grouping
    fields = tuple(Field(0, i, kind) for i, kind in enumerate(stream.fields.values()))
    columns = fields if projection.whole else several(projection.columns)
    having = None if projection.having is None else read(projection.having)
    return replace(
        plan,
        projection=replace(projection, columns=columns, having=having, whole=False),
        where=None if plan.where is None else read(plan.where),
        levels=tuple(replace(each, keys=several(each.keys), calls=called(each.calls)) for each in plan.levels),
        grouping=None
        if grouping is None
        else replace(grouping, dimensions=several(grouping.dimensions), calls=called(grouping.calls)),
        lookups=(),
    )
