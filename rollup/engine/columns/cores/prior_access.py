"""Statements that read earlier events with each event: `prior(n, x)`, `prev(n, x)`, the number of rows and the oldest.

What they read become further fields of an event, made when it comes. The core below reads these like any other field.

State: that of the core below; `earlier`, what is read of the last events that passed, and when they came. `content`, the
rows of the window (arrival, fields, earlier values), where only such look-ups and readers of the content need them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.core import BeforeAnother, Core
from rollup.engine.columns.cores.covering import KEYS, against, filtered, first, wide
from rollup.engine.columns.cores.held import LONG_LISTS, short
from rollup.engine.columns.cores.keeping import behind
from rollup.engine.columns.cores.prior_values import PriorValue, Standing, recalled, standing
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.cores.rewriting import aggregates, rewritten
from rollup.engine.columns.cores.selected import over_stream
from rollup.engine.columns.cores.showing import shown
from rollup.engine.columns.evaluate import carried, evaluate, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.compiling import predicate
from rollup.engine.expressions import Ask, Const, Expr, Field, inside
from rollup.engine.row import Row
from rollup.engine.rows.plans import Earlier, Filter, Lookup, Previous, Select, StreamInput
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.timers import Phase
from rollup.engine.types import RowType


@dataclass(frozen=True)
class PriorAccess(BeforeAnother):
    """The statement; `main` reads, behind the fields of its stream, what is `recalled`, by `plan`. `window`: the one whose rows
    are kept here, since `main` keeps none.
    """

    main: Core
    plan: Select
    filter: Filter
    recalled: tuple[PriorValue, ...]
    window: WindowSpec | None
    type: RowType
    """The stream, without what is recalled."""
    lists: tuple[tuple[int, PriorValue], ...] = ()
    """Columns of the result that are all values of the window, with their places; `main` has none of them."""
    by: int | None = None
    """The field by which events are those of several partitions, each with those before it of its own; None: of one."""

    @cached_property
    def shifted(self) -> tuple[PriorValue, ...]:
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

    @property
    def kinds(self) -> list[pa.DataType]:
        """What its fields are carried as."""
        return [carried(kind) for kind in self.reached.fields.values()]

    @cached_property
    def schemas(self) -> tuple[pa.Schema, pa.Schema]:
        """Of what is read of earlier events, with when they came or the partition of each; and of the window's rows."""
        time = pa.field("time", pa.int64())
        first = time if self.by is None else pa.field("part", pa.int64())
        read = [pa.field(f"value{i}", carried(each.type)) for i, each in enumerate(self.shifted)]
        return pa.schema([first, *read]), pa.schema(
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
        window = None if content is None else standing(self.window, content, taken)
        columns = [
            shifted[self.shifted.index(each)] if each in self.shifted else self._read(each, content, window, taken)
            for each in self.recalled
        ]
        inner, output = self.main.step(
            state.held()["main"], Batch((*taken.columns, *columns), taken.times, taken.now, batch.stream)
        )
        if content is not None and window is not None:
            output = self._with_lists(output, content, window, taken)
            content = self._kept(content, window, taken, columns)
        after = self.state(inner, earlier, content if content is not None else earlier, taken.now)
        ticks = None if output.ticks is None else (output.ticks[0], taken.placed(output.ticks[1]))
        return after, replace(output, event=taken.placed(output.event), ticks=ticks)

    def dues(self, state: State) -> dict[Phase, int | None]:
        """When the oldest row leaves the window, or what is due of the statement that reads."""
        if self.window is None:
            return super().dues(state)
        held, due = state.tables["content"], None
        if isinstance(self.window, Time) and held.num_rows:
            due = held.column("time")[0].as_py() + self.window.span
        return {self.phase: due}

    def late(self, state: State, phase: Phase, nothing: Batch) -> tuple[State, Output]:
        """What is due of the statement that reads, or leaves the window."""
        return super().late(state, phase, nothing) if self.window is None else self.step(state, nothing)

    @property
    def needed(self) -> Expr | None:
        """What the window goes by."""
        return self.main.needed

    def content(self, state: State) -> list[tuple[Any, ...]]:
        """The rows of the window, or of the statement that reads."""
        return super().content(state) if self.window is None else self.kept(state)

    def kept(self, state: State) -> list[tuple[Any, ...]]:
        """The rows of the window: what is `prior` to each, and what is read of them all, the newest of which is the last."""
        if self.window is None:
            return []
        held = state.tables["content"]
        columns = [column.to_pylist() for column in held.columns[1:]]
        windows = self._windows(held)
        for place, each in enumerate(self.recalled, len(self.type.fields)):
            if each.inside:
                values = columns[each.value.index]
                columns[place] = [recalled(each, [values[row] for row in rows]) for rows in windows]
        values, passes = [((Row(0, row),), ()) for row in zip(*columns, strict=True)], predicate(self.plan.where)
        found = [each for each in values if passes(*each, None)]
        return shown(self.plan.projection.columns, self.plan.projection.having, found)

    def _windows(self, held: pa.Table) -> list[list[int]]:
        """For each row the rows of its window, oldest first."""
        if not isinstance(self.window, Grouped):
            return [list(range(held.num_rows))] * held.num_rows
        (key,) = self.window.key
        keys = evaluate(key, [column.combine_chunks() for column in held.columns[1:]], held.num_rows).to_pylist()
        rows = dict[Any, list[int]]()
        for number, each in enumerate(keys):
            rows.setdefault(each, []).append(number)
        return [rows[each] for each in keys]

    def _shifted(self, earlier: pa.Table, taken: Taken) -> tuple[list[pa.Array], pa.Table]:
        """What is read of the events so many before those taken, and what is to be kept for those to come."""
        if self.by is not None:
            return self._shifted_by(self.by, earlier, taken)
        rows, held = len(taken.times), earlier.num_rows
        times = np.concatenate([earlier.column("time").to_numpy(), taken.times])
        known, found = [pa.array(times)], list[pa.Array]()
        for each, column in zip(self.shifted, earlier.columns[1:], strict=True):
            values = _with(column, each, taken)
            known.append(values)
            shifted = _shifted(values, held - each.offset, rows)
            found.append(self._there(shifted, each, times, taken.times) if each.inside else shifted)
        kept = slice(max(held + rows - self.depth, 0), None)
        return found, pa.table([column[kept] for column in known], schema=earlier.schema)

    def _shifted_by(self, by: int, earlier: pa.Table, taken: Taken) -> tuple[list[pa.Array], pa.Table]:
        """The same of partitions: those of each stand together, in the order in which they came."""
        held, arrived = earlier.num_rows, plain(taken.columns[by]).to_numpy(zero_copy_only=False)
        parts = np.concatenate([earlier.column("part").to_numpy(), arrived])
        order = np.argsort(parts, kind="stable")
        places, sorted_parts = np.empty(len(order), np.int64), parts[order]
        places[order] = np.arange(len(order))
        kept = np.sort(order[_last(sorted_parts, self.depth)])
        known, found = [pa.array(parts[kept])], list[pa.Array]()
        for each, column in zip(self.shifted, earlier.columns[1:], strict=True):
            values = _with(column, each, taken)
            known.append(values.take(pa.array(kept)))
            before = np.maximum(places[held:] - each.offset, 0)
            own = (places[held:] >= each.offset) & (sorted_parts[before] == arrived)
            found.append(values.take(pa.array(order[before], mask=~own)))
        return found, pa.table(known, schema=earlier.schema)

    def _there(self, values: pa.Array, each: PriorValue, times: Ints, arrived: Ints) -> pa.Array:
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

    def _read(self, each: PriorValue, content: pa.Table | None, window: Standing | None, taken: Taken) -> pa.Array:
        """What is read of the window's rows with each of the events taken; lists only once it is known who shows them."""
        assert content is not None and window is not None
        match each.what:
            case "count":
                return pa.array(window.count)
            case "window":
                return pa.nulls(len(taken.times))
            case "tail":
                return _values(each, content, taken, window.behind_oldest(each.offset))
            case _:
                return _values(each, content, taken, window.earlier(each.offset))

    def _with_lists(self, output: Output, content: pa.Table, window: Standing, taken: Taken) -> Output:
        """The rows of a step with the columns that are all values of the window, of the event that each row is."""
        columns = list(output.columns)
        for place, each in self.lists:
            rows, begins = window.newest(output.event)
            values = _values(each, content, taken, rows)
            columns.insert(place, pa.ListArray.from_arrays(pa.array(begins, pa.int32()), values))
        return replace(output, columns=tuple(columns))

    def _kept(self, content: pa.Table, window: Standing, taken: Taken, columns: Sequence[pa.Array]) -> pa.Table:
        """The rows that are in the window then."""
        content, stays = behind(content, [pa.array(taken.times), *taken.columns, *columns]), window.stays
        return content[stays] if isinstance(stays, slice) else content.take(pa.array(stays))


def _with(column: pa.ChunkedArray, each: PriorValue, taken: Taken) -> pa.Array:
    """What is read of earlier events, and the same of those taken."""
    return pa.concat_arrays([*column.chunks, plain(evaluate(each.value, taken.columns, len(taken.times)))])


def _last(parts: Ints, most: int) -> np.ndarray:
    """Which are among so many of the last of their partition, where those of each stand together."""
    found = np.ones(len(parts), bool)
    if most < len(parts):
        found[: len(parts) - most] = parts[: len(parts) - most] != parts[most:]
    return found


def _values(each: PriorValue, content: pa.Table, taken: Taken, places: Ints) -> pa.Array:
    """The values of rows at some places among those of the window, behind which the events taken stand; of -1 null."""
    first = int(places[places >= 0].min(initial=content.num_rows))
    arrived = evaluate(each.value, taken.columns, len(taken.times))
    values = pa.concat_arrays([*content.column(f"field{each.value.index}").slice(first).chunks, plain(arrived)])
    return values.take(pa.array(places - first, mask=places < 0))


def _shifted(values: pa.Array, begin: int, rows: int) -> pa.Array:
    """So many values from a place on; null where that is before the first of them."""
    if begin >= 0:
        return values[begin : begin + rows]
    missing = min(-begin, rows)
    return pa.concat_arrays([pa.nulls(missing, values.type), values[: rows - missing]])


def _reached(stream: RowType, recalled: Sequence[PriorValue]) -> RowType:
    further = {f"{each.offset} before ({i})": each.type for i, each in enumerate(recalled)}
    return RowType(stream.name, {**stream.fields, **further})


def prior_access(plan: Select, stream: RowType, ordered: bool = False, by: int | None = None) -> PriorAccess | str:
    """The core of a statement with look-ups of earlier events, or the first reason against it. `ordered`: the rows of an output
    are put in order; `by`: as in `PriorAccess`.
    """
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or input.unnest:
        return "an input that is not a plain stream"
    if plan.rate.limited and input.window is not None and (ordered or not _at_once(plan)):
        return "earlier events of rows that wait for an output, over a window that they may leave before"
    recalled = list[PriorValue]()
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
    if isinstance(window, Grouped) and any(each.what == "tail" and each.offset for each in recalled):
        return "another row of a key's window than its oldest one"
    bare = replace(input, filter=Filter(input.filter.stream), prior=0, window=None if window else input.window)
    read = _reading(plan, len(stream.fields), stream)
    lists = _lists(read, recalled, len(stream.fields))
    if lists and not short(window):
        return LONG_LISTS
    without = tuple(each for place, each in enumerate(read.projection.columns) if place not in dict(lists))
    shown = replace(read.projection, columns=without)
    wider, type = replace(read, projection=shown, inputs=(bare,)), _reached(stream, recalled)
    main = over_stream(wider, type, ordered)
    if isinstance(main, str):
        return main
    return PriorAccess(main, read, input.filter, tuple(recalled), window, stream, lists, by)


def _recalled(lookup: Lookup) -> PriorValue | str:
    """What a look-up reads, or the first reason against it."""
    match lookup:
        case Earlier(input=0, offset=offset, value=Field() as value):
            return PriorValue(value, "earlier", offset)
        case Previous(input=0, what="row", value=Field() as value, offset=Const(value=int(offset))) if offset >= 0:
            return PriorValue(value, "row", offset)
        case Previous(input=0, what="tail", value=Field() as value, offset=Const(value=int(offset))) if offset >= 0:
            return PriorValue(value, "tail", offset)
        case Previous(input=0, what="count" | "tail" | "window" as what, value=Field() as value, offset=None):
            return PriorValue(value, what)
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


def _lists(plan: Select, recalled: Sequence[PriorValue], width: int) -> tuple[tuple[int, PriorValue], ...]:
    """The columns that are all values of a window, with their places."""
    read = [each.index - width if isinstance(each, Field) else -1 for each in plan.projection.columns]
    found = [(place, recalled[number]) for place, number in enumerate(read) if number >= 0]
    return tuple((place, each) for place, each in found if each.what == "window")


def _at_once(plan: Select) -> bool:
    """Whether what a row recalls is read when it comes, though an output shows it later."""
    grouped = plan.grouping is not None or plan.total
    return grouped and plan.rate.mode in ("last", "all", "first")


def _reading(plan: Select, width: int, stream: RowType) -> Select:
    """A statement that reads the answers of its look-ups as fields behind those of the event."""

    def read(expr: Expr) -> Expr:
        return Field(0, width + expr.index, expr.type) if isinstance(expr, Ask) else inside(expr, read)

    projection = plan.projection
    if projection.whole:
        fields = tuple(Field(0, i, kind) for i, kind in enumerate(stream.fields.values()))
        projection = replace(projection, columns=fields, whole=False)
    return replace(rewritten(replace(plan, projection=projection), read), lookups=())
