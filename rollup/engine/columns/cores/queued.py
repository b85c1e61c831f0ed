"""Statements over a window that lets rows out in the order in which they came, as they come or in batches: with what
leaves, with aggregates or without; and of a batch all at once.

State: `content`, the rows that are in the window, then those that wait for their batch: arrival, group, fields; `groups`: key,
rows, slots. Scalars: how many of the content have come; of batches by time the raster's `origin` and when one is `due`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER
from rollup.engine.columns.cores.declared import Lines
from rollup.engine.columns.cores.folded import Folded, shape_of, shifted, unfolded
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.projecting import Made, Moves, Pace, Taken
from rollup.engine.columns.evaluate import carried, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import block, loop
from rollup.engine.expressions import Field
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import Length, LengthBatch
from rollup.engine.rows.windows.timed import Time, TimeBatch
from rollup.engine.state import State
from rollup.engine.timers import edge
from rollup.engine.types import RowType

_TEMPLATE = """
{functions}def core(old, come, gone, {listed}codes, {given}rows, {slots}change, group, source, sign, {results}):
    n, begin, head = 0, {begin}, 0
    stamp, seen = 0, np.zeros(len(rows), np.int64)
{prologue}
    for c in range(len(come)):
        end, tail = come[c], gone[c]
        both = end + tail - head
{before}
{enter}
{leave}
{after}
{forget}
        begin, head = end, tail
    return n
"""
_TOUCHED = """
stamp += 1
for j in range(begin, both):
    i = {row}
    k = codes[i]
    if seen[k] != stamp:
        seen[k] = stamp
"""


@dataclass(frozen=True)
class Changes:
    """The changes of a window over its rows in order: instant, the arrival that brings each or TIMER, and how many rows have
    come and have left after it.
    """

    at: Ints
    event: Ints
    come: Ints
    gone: Ints

    @property
    def listed(self) -> tuple[Ints, ...]:
        """Which rows come and which leave, one after the other, where they are not those next in order."""
        return ()

    def counts(self, old: int) -> tuple[Ints, Ints]:
        """How many rows come with each change and how many leave; `old` have come before."""
        return np.diff(self.come, prepend=old), np.diff(self.gone, prepend=0)

    def stays(self, old: int) -> tuple[Ints | slice, int]:
        """The rows that stay, those that have come first, and how many these are."""
        begin, end = (int(self.gone[-1]), int(self.come[-1])) if len(self.at) else (0, old)
        return slice(begin, None), end - begin


@dataclass(frozen=True, kw_only=True)
class Queued(Folded):
    """The same over another window; the fields of the stream are of `type`. Rows that stand for themselves see the
    aggregates as they are after the whole change.
    """

    type: RowType

    def _new_text(self, paced: int) -> str:
        return self.text_of(False)

    def text_of(self, listed: bool) -> str:
        """The text of the loop; `listed`: as in `Changes`."""
        return _text(self.lines, (self.by_group, bool(self.keys), self.emitted != "new", listed))

    @cached_property
    def _schemas(self) -> tuple[pa.Schema, pa.Schema]:
        fields = [pa.field(f"field{i}", carried(kind)) for i, kind in enumerate(self.type.fields.values())]
        content = pa.schema([pa.field("time", pa.int64()), pa.field("group", pa.int64()), *fields])
        return content, super()._schemas[1]

    @property
    def oldest_first(self) -> bool:
        """Rows leave in the order in which they came, those of a batch together."""
        return not self.batches

    @property
    def batches(self) -> bool:
        """Whether rows come when a batch is complete."""
        return isinstance(self.window, LengthBatch | TimeBatch)

    def start(self, now: int) -> State:
        """An empty window."""
        state = super().start(now)
        return State(state.tables, {"now": now, "come": 0, "origin": None, "due": None})

    def waiting(self, state: State) -> pa.Table:
        """What one who looks at the window sees: of batches that which is not complete."""
        content = state.tables["content"]
        return content.slice(state.scalars["come"]) if self.batches else content

    def inside(self, state: State) -> pa.Table:
        """The rows that count, with their groups and what the aggregates are of."""
        held = state.tables["content"].slice(0, state.scalars["come"])
        given = self.lines.given([column.combine_chunks() for column in held.columns[2:]], held.num_rows)
        names = [f"given{i}" for i in range(len(given))]
        return pa.table([held.column("group"), *map(pa.array, given)], names=["group", *names])

    def made(self, state: State, taken: Taken, pace: Pace | None = None) -> tuple[State, Made]:
        """The rows before they are projected."""
        scalars = {**state.scalars, "now": taken.now}
        times = np.concatenate([state.tables["content"].column("time").to_numpy(), taken.times])
        if isinstance(self.window, TimeBatch) and scalars["origin"] is None and len(times):
            scalars["origin"] = int(times[0]) if self.window.origin is None else self.window.origin
        changes, due = self._changes(scalars, taken, times)
        return self._through(State(state.tables, {**scalars, "due": due}), taken, times, changes)

    def released(self, state: State, taken: Taken) -> tuple[State, Made]:
        """A batch that is due is let out, late, and no event comes."""
        assert isinstance(self.window, TimeBatch)
        content, come, origin, now = state.tables["content"], state.scalars["come"], state.scalars["origin"], taken.now
        one = [np.array([each], np.int64) for each in (now, TIMER, content.num_rows, come)]
        due = edge(origin, self.window.span, now) if content.num_rows > come else None
        after = State(state.tables, {**state.scalars, "now": max(state.scalars["now"], now), "due": due})
        return self._through(after, taken, content.column("time").to_numpy(), Changes(*one))

    def fields(self, state: State, taken: Taken) -> list[pa.Array]:
        """The fields of the rows that are in the window or wait, and of the arrivals."""
        arrived = zip(state.tables["content"].columns[2:], taken.columns, strict=True)
        return [pa.concat_arrays([*held.chunks, plain(column)]) for held, column in arrived]

    def _through(self, state: State, taken: Taken, times: Ints, changes: Changes) -> tuple[State, Made]:
        content, groups = state.tables["content"], state.tables["groups"]
        own, keys = self.numbered(whole(groups.column("key")), taken.columns, len(taken.times))
        codes, fields = np.concatenate([content.column("group").to_numpy(), own]), self.fields(state, taken)
        rows = np.zeros(len(keys), np.int64)
        rows[: groups.num_rows] = groups.column("rows").to_numpy()
        slots = self.lines.grown(groups.columns[2:], len(keys))
        come = state.scalars["come"]
        change, group, source, sign, made = self._looped(come, changes, codes, fields, rows, slots)
        columns = self._named(keys, group) if self.by_group else [each.take(pa.array(source)) for each in fields]
        signs = sign if self.emitted != "new" else None
        moves = Moves(changes.at, changes.event, *changes.counts(come), change)
        at, event = changes.at[change], changes.event[change]
        found = Made(taken, at, event, [*columns, *made], signs, group, codes=codes, moves=moves)
        stays, inside = changes.stays(come)
        left, schemas = [pa.array(times[stays]), pa.array(codes[stays])], self._schemas
        left += [each[stays] if isinstance(stays, slice) else each.take(pa.array(stays)) for each in fields]
        tables = {
            "content": pa.table(left, schema=schemas[0]),
            "groups": pa.table([keys, *map(pa.array, (rows, *slots))], schema=schemas[1]),
        }
        return State({**state.tables, **tables}, {**state.scalars, "come": inside}), found

    def _looped(
        self, old: int, changes: Changes, codes: Ints, fields: list[pa.Array], rows: Ints, slots: list[np.ndarray]
    ) -> tuple[Ints, Ints, Ints, np.ndarray, list[pa.Array]]:
        """The rows that the changes make: change, group, row of the content, sign, results."""
        both, moved = self.emitted != "new", int(sum(map(np.sum, changes.counts(old))))
        room = (1 + both) * (moved if self.keys or not self.by_group else len(changes.at))
        change, group, source = (np.empty(room, np.int64) for _ in range(3))
        sign, made = np.ones(room, np.int8), self.lines.room(room)
        given = self.lines.arranged(self.lines.given(fields, len(codes)), codes)
        n = loop(self._text())(
            old, changes.come, changes.gone, *changes.listed, codes, *given, rows, *slots,
            change, group, source, sign, *made,
        )  # fmt: skip
        order = np.lexsort((-sign[:n], change[:n])) if both and self.by_group else slice(n)  # what leaves is last
        return change[order], group[order], source[order], sign[order], self._ordered(made, n, order)

    def _ordered(self, made: list[np.ndarray], n: int, order: Ints | slice) -> list[pa.Array]:
        results = self.lines.results(made, n)
        return results if isinstance(order, slice) else [each.take(pa.array(order)) for each in results]

    def _changes(self, scalars: dict[str, int | None], taken: Taken, times: Ints) -> tuple[Changes, int | None]:
        """The changes of a step, and when a batch is due then."""
        held, arrivals = len(times) - len(taken.times), np.arange(len(taken.times))
        now, old = scalars["now"], scalars["come"]
        assert now is not None and old is not None
        come = held + arrivals + 1
        match self.window:
            case Length(size):
                return Changes(taken.times, arrivals, come, np.maximum(come - size, 0)), None
            case LengthBatch(size):
                full = np.flatnonzero((come - old) % size == 0)
                ends = come[full]
                return Changes(taken.times[full], full, ends, np.concatenate([[old], ends])[:-1].astype(np.int64)), None
            case Time(span):
                return by_time(taken.times, times, span, now), None
            case TimeBatch(span):
                return _in_batches(times, span, scalars)
            case _:
                raise AssertionError


def by_time(arrived: Ints, times: Ints, span: int, now: int) -> Changes:
    """Rows come one by one, and leave together with those of their instant."""
    held, instants = len(times) - len(arrived), times[: np.searchsorted(times, now - span, "right")] + span
    instants = instants[np.flatnonzero(np.diff(instants, prepend=instants[:1] - 1))]  # each once; times never go back
    at = np.concatenate([instants, arrived])
    event = np.concatenate([np.full(len(instants), TIMER), np.arange(len(arrived))])
    order = np.argsort(at, kind="stable")  # at one instant what leaves is first
    at, event = at[order], event[order]
    return Changes(at, event, held + np.cumsum(event >= 0), np.searchsorted(times, at - span, "right"))


def _in_batches(times: Ints, span: int, scalars: dict[str, int | None]) -> tuple[Changes, int | None]:
    """Rows come at the edge after them; at the next one they leave, with or without others that come."""
    now, old, due, origin = (scalars[name] for name in ("now", "come", "due", "origin"))
    assert now is not None and old is not None
    edges = edge(origin or 0, span, times[old:])
    if due is not None:
        edges = np.maximum(edges, due)  # a clock that jumped has let out what it passed
    different = edges[np.flatnonzero(np.diff(edges, prepend=edges[:1] - 1))]  # as events do, they never go back
    instants = np.unique(np.concatenate([different, different + span, [] if due is None else [due]])).astype(np.int64)
    fired = instants[instants <= now]
    come = old + np.searchsorted(edges, fired, "right")
    later = instants[instants > now]
    gone = np.concatenate([[old], come])[:-1].astype(np.int64)
    return Changes(fired, np.full(len(fired), TIMER), come, gone), int(later[0]) if len(later) else None


def _text(lines: Lines, shape: tuple[bool, bool, bool, bool]) -> str:
    """The text of a loop. Rows: of each that is touched; of a total; or of each row that comes and, for `both`, leaves.
    `listed`: as in `Changes`.
    """
    by_group, keyed, both, listed = shape
    row_of = "entering[j] if j < end else leaving[head + j - end]" if listed else "j if j < end else head + j - end"

    def row(sign: int) -> list[str]:
        return ["change[n], group[n], source[n], sign[n] = c, k, i, " + str(sign), *lines.value(), "n += 1"]

    def once(sign: int) -> list[str]:
        if not keyed:
            return ["k, i = 0, 0", *row(sign)]
        return [*_TOUCHED.format(row=row_of).strip().splitlines(), *(f"        {line}" for line in row(sign))]

    def each(come: bool, body: Sequence[str]) -> list[str]:
        ends, places = ("begin, end", "entering") if come else ("head, tail", "leaving")
        walk = [f"for j in range({ends}):", f"    i = {places}[j]"] if listed else [f"for i in range({ends}):"]
        return [*walk, "    k = codes[i]", *(f"    {line}" for line in body)]

    after = once(1) if by_group else [*each(True, row(1)), *(each(False, row(-1)) if both else ())]
    forget = each(False, ["if rows[k] == 0:", *(f"    {line}" for line in lines.forget())])
    return _TEMPLATE.format(
        listed="entering, leaving, " if listed else "",
        begin="0" if listed else "old",
        prologue=block(lines.prologue(), 1),
        before=block(once(-1) if by_group and both else [], 2),
        enter=block(each(True, ["rows[k] += 1", *lines.change("enter", "i")]), 2),
        leave=block(each(False, ["rows[k] -= 1", *lines.change("leave", "i")]), 2),
        after=block(after, 2),
        forget=block(forget if keyed and lines.forget() else [], 2),
        functions=lines.functions,
        **lines.names,
    )


def queued(plan: Select, type: RowType) -> Queued | str:
    """The core of a statement over such a window of a stream, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or input.unnest or input.prior or plan.lookups:
        return "an input that is not a plain stream"
    window = input.window
    if not may_hold(window) or window is None:
        return f"the window {window.__class__.__name__}"
    if plan.where is not None and not isinstance(window, Time):
        return (
            "where behind a window of batches"
            if isinstance(window, LengthBatch | TimeBatch)
            else "where behind a window of length"
        )
    shape = shape_of(plan) if aggregates(plan) else ((), (), False)
    if isinstance(shape, str):
        return shape
    keys, calls, by_group = shape
    reason = unfolded(plan, input, shape, "queue")
    if reason is not None:
        return reason
    projection, width = whole_columns(plan.projection, type), len(type.fields)
    shown = shifted(projection, 0 if by_group else width)
    return Queued(input.filter, plan.where, window, keys, calls, by_group, shown, width, plan.emitted, type=type)


def whole_columns(projection: Projection, type: RowType) -> Projection:
    """A projection with the columns of the whole row, where it is that."""
    if not projection.whole:
        return projection
    columns = tuple(Field(0, i, kind) for i, kind in enumerate(type.fields.values()))
    return replace(projection, columns=columns, whole=False)


def aggregates(plan: Select) -> bool:
    """Whether a statement over one stream has aggregates."""
    return isinstance(plan.inputs[0], StreamInput) and (bool(plan.levels) or plan.grouping is not None)


def may_hold(window: WindowSpec | None) -> bool:
    """Whether rows leave such a window in the order in which they came."""
    match window:
        case Length() | LengthBatch(early=False) | Time(size=None):
            return True
        case TimeBatch(eager=False, forced=False, each=False, early=False):
            return True
        case _:
            return False
