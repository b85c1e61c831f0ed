"""Aggregates over a window that lets the oldest rows out first (by length, by time, or never), grouped or not; or over
the newest rows of each key, or over the rows that sort first.

State: `content`, the rows of the window: arrival, group, arguments; `groups`: key, rows in the window, slots. One loop:
an arrival enters its group, what the window lets out leaves its own; each touched group, or the arrival, is a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.covering import KEYS, against, filtered, first, unshown, wide
from rollup.engine.columns.cores.declared import Held, Lines, uncountable
from rollup.engine.columns.cores.folding_loop import (
    KEYED,
    LENGTH,
    NEVER,
    SORTED,
    TIME,
    UNIQUE,
    Shape,
    text,
)
from rollup.engine.columns.cores.keys import KeyCodes, whole
from rollup.engine.columns.cores.marks import Order
from rollup.engine.columns.cores.projecting import Made, Taken
from rollup.engine.columns.cores.queueable import batched, unheld, unlisted
from rollup.engine.columns.evaluate import Columns, arrow, evaluate, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.columns.numbering import ordered
from rollup.engine.expressions import Expr, Field, Slot, inside, walk
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.plans import Emitted, Filter, Select, StreamInput
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.ranked import Sorted
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.types import Kind

GroupedShape = tuple[tuple[Expr, ...], tuple[AggregateCall, ...], bool]
"""Keys, calls, and whether there is a row a group."""
_EMPTIED = 16_384
"""So many groups that have emptied may stay: to number all keys anew costs more than they do."""


@dataclass(frozen=True)
class Folded:
    """Aggregates over a window; without `keys` one group. `by_group`: a row for each group that a change touches, else for
    each arrival. The projection sees, behind the fields of the event where there is one: the keys (`by_group`), the calls.
    `kept`: the groups are partitions, so their one key is their number, and they are not forgotten when they empty.
    """

    filter: Filter
    where: Expr | None
    window: WindowSpec | None
    keys: tuple[Expr, ...]
    calls: tuple[AggregateCall, ...]
    by_group: bool
    projection: Projection
    width: int
    emitted: Emitted = "new"
    kept: bool = False
    _codes: KeyCodes = field(default_factory=KeyCodes, compare=False, repr=False)

    @cached_property
    def lines(self) -> Lines:
        """The calls."""
        return Lines(self.calls, stay=self.window is None)

    @cached_property
    def _order(self) -> Order:
        return Order()

    @cached_property
    def _text(self) -> str:
        """The text of the loop."""
        both = self.by_group and self.emitted != "new"  # rows that stand for themselves are there where none leaves
        return text(self.lines, Shape(self._window[0], self.forgets, self.by_group, both))

    @property
    def forgets(self) -> bool:
        """Whether groups that have emptied begin anew."""
        return bool(self.keys) and not self.kept

    @cached_property
    def _schemas(self) -> tuple[pa.Schema, pa.Schema]:
        given = [pa.field(f"given{i}", kind) for i, kind in enumerate(self.lines.given_types())]
        slots = [pa.field(f"slot{i}", kind) for i, kind in enumerate(self.lines.slot_types())]
        kinds = [arrow(key.type) for key in self.keys]
        key = kinds[0] if len(kinds) == 1 else pa.struct([(f"key{i}", kind) for i, kind in enumerate(kinds)])
        key = key if kinds else pa.int64()
        marks = [] if self.mark is None else [pa.field("mark", arrow(self.mark.type))]
        content = pa.schema([pa.field("time", pa.int64()), pa.field("group", pa.int64()), *marks, *given])
        return content, pa.schema([pa.field("key", key), pa.field("rows", pa.int64()), *slots])

    @property
    def mark(self) -> Expr | None:
        """What the window tells rows apart by."""
        match self.window:
            case Unique(key=(key,)) | Grouped(key=(key,)) | Sorted(by=(key,)):
                return key
            case _:
                return None

    def start(self, now: int) -> State:
        """An empty window."""
        content, groups = self._schemas
        return State({"content": content.empty_table(), "groups": groups.empty_table()}, {"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """Rows by arrivals and, for windows of time, by the instants at which rows leave."""
        return self.finished(*self.made(state, self.taken(state, batch)))

    def finished(self, after: State, made: Made) -> tuple[State, Output]:
        """The state after a step, without what is not needed any more, and the rows."""
        return self.compacted(after), made.output(self.projection).emitted(self.emitted)

    def taken(self, state: State, batch: Batch) -> Taken:
        """The events that pass."""
        return Taken.of(batch, state.scalars["now"], self.filter, self.where)

    def made(self, state: State, taken: Taken) -> tuple[State, Made]:
        """The rows before they are projected."""
        now = taken.now
        content, groups = state.tables["content"], state.tables["groups"]
        codes, keys = self.numbered(whole(groups.column("key")), taken.columns, len(taken.times))
        given = self.lines.given(taken.columns, len(codes))
        names = [name for name in content.column_names if name != "mark"]
        held = [content.column(name).to_numpy() for name in names]
        times, codes, *given = (np.concatenate(pair) for pair in zip(held, [taken.times, codes, *given], strict=True))
        marked, marks = self._marks(content, taken)
        alive = np.ones(len(times), bool)
        rows = np.zeros(len(keys), np.int64)
        rows[: groups.num_rows] = groups.column("rows").to_numpy()
        slots = self.lines.grown(groups.columns[2:], len(keys))
        room = self._room(times, len(held[0]), now)
        at, event, group = (np.empty(room, np.int64) for _ in range(3))
        sign = np.ones(room if self.emitted != "new" else 0, np.int8)
        results = self.lines.room(room)
        kind, size, span, late = self._window
        order = self._order.of(content, marks, late) if kind == SORTED else ()
        n, head = loop(self._text)(
            len(held[0]), now, size, span, late, times, codes, marks, alive, *order, *self.lines.arranged(given, codes), rows, *slots,
            at, event, group, sign, *results,
        )  # fmt: skip
        stays = slice(len(times) if kind == NEVER else head, None) if kind <= TIME else np.flatnonzero(alive)
        left = [each[stays] for each in (times, codes, *given)]
        kept = None if marked is None else marked.take(pa.array(stays))
        after = self._state(now, left, kept, keys, rows, slots)
        if order and not isinstance(stays, slice):
            self._order.keep(after.tables["content"], order[0], stays)
        made = self.lines.results(results, n)
        columns = [*self._named(keys, group[:n]), *made] if self.by_group else [*taken.columns, *made]
        return after, Made(taken, at[:n], event[:n], columns, sign[:n] if self.emitted != "new" else None)

    def _named(self, keys: pa.Array, group: Ints) -> list[pa.Array]:
        """The keys of some groups, as columns that are looked up only for the rows that are shown."""
        parts = keys.flatten() if len(self.keys) > 1 else [keys] if self.keys else []
        return [pa.DictionaryArray.from_arrays(pa.array(group), part, safe=False) for part in parts]

    def _marks(self, content: pa.Table, taken: Taken) -> tuple[pa.Array | None, Ints]:
        """What tells the rows of the window and the arrivals apart, and as numbers: equal, and in the window's order."""
        if self.mark is None:
            return None, np.zeros(0, np.int64)
        arrived = evaluate(self.mark, taken.columns, len(taken.times))
        marked = pa.concat_arrays([*content.column("mark").chunks, arrived])
        if isinstance(self.window, Unique | Grouped):
            return marked, marked.dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
        assert isinstance(self.window, Sorted)
        places = ordered(marked)
        return marked, ~places if self.window.descending[0] else places

    @property
    def _window(self) -> tuple[int, int, int, bool]:
        match self.window:
            case Length(size):
                return LENGTH, size, 0, False
            case Time(span):
                return TIME, 0, span, False
            case Unique():
                return UNIQUE, 1, 0, False
            case Grouped(inner=Length(size)):
                return KEYED, size, 0, False
            case Sorted(size=size, ties=ties):
                return SORTED, size, 0, ties == "newest"
            case _:
                return NEVER, 0, 0, False

    def numbered(self, known: pa.Array, columns: Columns, rows: int) -> tuple[Ints, pa.Array]:
        """The number of each row's group, and the keys that are known then."""
        match self.keys:
            case (Field(index=index),) if self.kept:
                codes = plain(columns[index]).to_numpy(zero_copy_only=False)
                return codes, pa.array(np.arange(max(len(known), int(codes.max(initial=-1)) + 1)))
            case ():
                return np.zeros(rows, np.int64), pa.array([0], pa.int64())
            case (Field(index=index),):
                column = columns[index]
            case (key,):
                column = evaluate(key, columns, rows)
            case several:
                parts = [evaluate(key, columns, rows) for key in several]
                column = pa.StructArray.from_arrays(parts, fields=list(known.type))
        return self._codes.codes(known, column)

    def _room(self, times: Ints, old: int, now: int) -> int:
        """The most rows that a step can give: one an arrival, and one a row that the window lets out; each also as it was."""
        (kind, _, span, _), room = self._window, len(times) - old
        if kind == TIME and self.by_group:
            room += int(np.searchsorted(times, now - span, "right"))
        elif kind not in (NEVER, TIME) and self.keys:
            room *= 2
        return room if self.emitted == "new" else 2 * room

    def _state(
        self,
        now: int,
        held: Sequence[np.ndarray],
        marked: pa.Array | None,
        keys: pa.Array,
        rows: Ints,
        slots: Sequence[np.ndarray],
    ) -> State:
        """The state."""
        content, groups = self._schemas
        columns = [pa.array(each) for each in held]
        columns[2:2] = [] if marked is None else [marked]
        return State(
            {
                "content": pa.table(columns, schema=content),
                "groups": pa.table([keys, *(pa.array(each) for each in (rows, *slots))], schema=groups),
            },
            {"now": now},
        )

    def nothing(self) -> list[pa.Array]:
        """What the projection sees of a total of no rows."""
        return self.lines.of_slots(self.lines.fold.start())

    def compacted(self, state: State) -> State:
        """The state without the groups that have emptied, once they are many and the greater part."""
        groups = state.tables["groups"]
        if not self.forgets or groups.num_rows <= _EMPTIED:
            return state
        live = groups.column("rows").to_numpy() > 0
        live[state.tables["content"].column("group").to_numpy()] = True  # also of rows that wait for their batch
        if len(live) - (there := int(live.sum())) <= max(there, _EMPTIED):
            return state
        numbers, content = np.cumsum(live) - 1, state.tables["content"]
        place = content.schema.get_field_index("group")
        content = content.set_column(
            place, content.schema.field(place), pa.array(numbers[content.column(place).to_numpy()])
        )
        tables = {**state.tables, "content": content, "groups": groups.filter(pa.array(live))}
        return State(tables, state.scalars)


def folded(plan: Select, width: int) -> Folded | str:
    """The core of aggregates over one stream of `width` fields, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or input.unnest or input.prior:
        return "an input that is not a plain stream"
    if plan.lookups or plan.rate.limited:
        return "look-ups or an output rate"
    window = input.window
    if (reason := _unheld(window)) is not None:
        return reason
    if isinstance(window, Length | Unique | Grouped | Sorted) and plan.where is not None:
        return f"where behind a window of {'length' if isinstance(window, Length) else 'keys'}"
    shape = shape_of(plan)
    if isinstance(shape, str):
        return shape
    keys, calls, by_group = shape
    by_key = isinstance(window, Unique | Grouped) and window.key[0] in keys  # a group's rows are of one key
    held = "queue" if isinstance(window, Length | Time) or by_key else "rows"
    held = "all stay" if isinstance(window, KeepAll | None) else held
    if (reason := unfolded(plan, input, shape, held)) is not None:
        return reason
    if not by_group and isinstance(window, Unique | Grouped | Sorted):
        return "one row a row over a window of keys"
    kept = window if isinstance(window, Length | Time | Unique | Grouped | Sorted) else None
    if not by_group and plan.emitted != "new" and (kept is not None or plan.emitted == "old"):
        return "the remove stream of one row a row"
    projection = shifted(plan.projection, 0 if by_group else width)
    return Folded(input.filter, plan.where, kept, keys, calls, by_group, projection, width, plan.emitted)


def unfolded(plan: Select, input: StreamInput, shape: GroupedShape, held: Held, whole: bool = False) -> str | None:
    """The first reason against filter, keys, calls and columns; `held`: what is of a group's rows, and whether these are `whole`."""
    (keys, calls, by_group), used = shape, plan.projection.evaluated
    emptied = bool(keys) and (plan.emitted != "new" or batched(input.window))
    own = by_group and any(isinstance(each, Field) for column in used for each in walk(column))
    return first(
        (
            filtered(input.filter, plan.where),
            *(uncountable(call, held, emptied, whole) for call in calls),
            unlisted(plan.projection, input.window, by_group),
            *map(unkeyed, keys),
            "a column that is neither a key nor an aggregate" if own else None,
            *map(unshown, used),
        )
    )


def _unheld(window: WindowSpec | None) -> str | None:
    """The first reason against a window."""
    match window:
        case None | KeepAll() | Length() | Time(size=None):
            return None
        case Unique(key=(key,), first=False) | Grouped(key=(key,), inner=Length(_)):
            return against(key) or wide(key) or (None if key.type.kind in KEYS else f"a window by a {key.type}")
        case Sorted(by=(key,)):
            known = key.type.kind in (Kind.STRING, Kind.INT, Kind.LONG, Kind.DOUBLE)
            return against(key) or wide(key) or (None if known else f"a window by a {key.type}")
        case _:
            return unheld(window) or f"the window {type(window).__name__}"


def unkeyed(key: Expr) -> str | None:
    """The first reason against a key of groups."""
    known = key.type.kind in (*KEYS, Kind.DOUBLE)
    return against(key) or wide(key) or (None if known else f"groups by a {key.type}")


def shape_of(plan: Select) -> GroupedShape | str:
    """Keys, calls, and whether there is a row a group."""
    grouping = plan.grouping
    if grouping is not None:
        if grouping.own or not grouping.whole:
            return "grouping sets"
        return (grouping.dimensions, grouping.calls, True) if grouping.calls else "a grouping without aggregates"
    if len(plan.levels) != 1 or plan.projection.whole:
        return "several levels of aggregates" if plan.levels else "no aggregates"
    level = plan.levels[0]
    return level.keys, level.calls, plan.total


def shifted(projection: Projection, by: int) -> Projection:
    """A projection whose slots are fields behind those of the event."""
    return projection.changed(lambda each: fields_for_slots(each, by))


def fields_for_slots(expr: Expr, by: int) -> Expr:
    """An expression that reads slot i as field `by + i`."""
    if isinstance(expr, Slot):
        return Field(0, by + expr.index, expr.type)
    return inside(expr, lambda inner: fields_for_slots(inner, by))
