"""Statements over a window that lets rows out in the order in which they came, as they come or in batches: with what
leaves, with aggregates or without; and of a batch all at once.

State: `content`, the rows that are in the window, then those that wait for their batch: arrival, group, fields; `groups`: key,
rows, slots. Scalars: how many of the content have come; of batches by time the raster's `origin` and when one is `due`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER
from rollup.engine.columns.cores.declared import Lines
from rollup.engine.columns.cores.folded import Folded, folded, shape_of, shifted, unfolded
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.projecting import FilterProject, Made, Moves, Pace, Taken, filter_project
from rollup.engine.columns.evaluate import carried, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import block, loop
from rollup.engine.expressions import Field
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import Length, LengthBatch
from rollup.engine.rows.windows.timed import Time, TimeBatch
from rollup.engine.state import State
from rollup.engine.timers import edge
from rollup.engine.types import RowType

_TEMPLATE = """
{functions}def core(old, come, gone, codes, {given}rows, {slots}change, group, source, sign, {results}):
    n, begin, head = 0, old, 0
    stamp, seen = 0, np.zeros(len(rows), np.int64)
{prologue}
    for c in range(len(come)):
        end, tail = come[c], gone[c]
        both = end + tail - head
{before}
        for i in range(begin, end):
            k = codes[i]
            rows[k] += 1
{enter}
        for i in range(head, tail):
            k = codes[i]
            rows[k] -= 1
{leave}
{after}
{forget}
        begin, head = end, tail
    return n
"""
_TOUCHED = """
stamp += 1
for j in range(begin, both):
    i = j if j < end else head + j - end
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


@dataclass(frozen=True, kw_only=True)
class Queued(Folded):
    """The same over another window; the fields of the stream are of `type`. Rows that stand for themselves see the
    aggregates as they are after the whole change.
    """

    type: RowType

    def _new_text(self, paced: int) -> str:
        return _text(self.lines, self.by_group, bool(self.keys), self.emitted != "new")

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

    def _through(self, state: State, taken: Taken, times: Ints, changes: Changes) -> tuple[State, Made]:
        content, groups = state.tables["content"], state.tables["groups"]
        own, keys = self.numbered(whole(groups.column("key")), taken.columns, len(taken.times))
        codes = np.concatenate([content.column("group").to_numpy(), own])
        arrived = zip(content.columns[2:], taken.columns, strict=True)
        fields = [pa.concat_arrays([*held.chunks, plain(column)]) for held, column in arrived]
        rows = np.zeros(len(keys), np.int64)
        rows[: groups.num_rows] = groups.column("rows").to_numpy()
        slots = self.lines.grown(groups.columns[2:], len(keys))
        come = state.scalars["come"]
        change, group, source, sign, made = self._looped(come, changes, codes, fields, rows, slots)
        columns = self._named(keys, group) if self.by_group else [each.take(pa.array(source)) for each in fields]
        signs = sign if self.emitted != "new" else None
        moves = Moves(
            changes.at, changes.event, np.diff(changes.come, prepend=come), np.diff(changes.gone, prepend=0), change
        )
        at, event = changes.at[change], changes.event[change]
        found = Made(taken, at, event, [*columns, *made], signs, group, codes=codes, moves=moves)
        begin, end = (int(changes.gone[-1]), int(changes.come[-1])) if len(changes.at) else (0, come)
        left = [pa.array(times), pa.array(codes), *fields]
        schemas = self._schemas
        tables = {
            "content": pa.table([each.slice(begin) for each in left], schema=schemas[0]),
            "groups": pa.table([keys, *map(pa.array, (rows, *slots))], schema=schemas[1]),
        }
        return State(tables, {**state.scalars, "come": end - begin}), found

    def _looped(
        self, old: int, changes: Changes, codes: Ints, fields: list[pa.Array], rows: Ints, slots: list[np.ndarray]
    ) -> tuple[Ints, Ints, Ints, np.ndarray, list[pa.Array]]:
        """The rows that the changes make: change, group, row of the content, sign, results."""
        both, last = self.emitted != "new", len(changes.at) - 1
        moved = int(changes.come[last]) - old + int(changes.gone[last]) if last >= 0 else 0
        room = (1 + both) * (moved if self.keys or not self.by_group else len(changes.at))
        change, group, source = (np.empty(room, np.int64) for _ in range(3))
        sign, made = np.ones(room, np.int8), self.lines.room(room)
        given = self.lines.arranged(self.lines.given(fields, len(codes)), codes)
        n = loop(self._text())(
            old, changes.come, changes.gone, codes, *given, rows, *slots,
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
                return _by_time(taken.times, times, span, now), None
            case TimeBatch(span):
                return _in_batches(times, span, scalars)
            case _:
                raise AssertionError


def _by_time(arrived: Ints, times: Ints, span: int, now: int) -> Changes:
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


def _text(lines: Lines, by_group: bool, keyed: bool, both: bool) -> str:
    """The text of a loop. Rows: of each that is touched; of a total; or of each row that comes and, for `both`, leaves."""

    def row(sign: int) -> list[str]:
        return ["change[n], group[n], source[n], sign[n] = c, k, i, " + str(sign), *lines.value(), "n += 1"]

    def once(sign: int) -> list[str]:
        if not keyed:
            return ["k, i = 0, 0", *row(sign)]
        return [*_TOUCHED.strip().splitlines(), *(f"        {line}" for line in row(sign))]

    def each(ends: str, sign: int) -> list[str]:
        return [f"for i in range({ends}):", "    k = codes[i]", *(f"    {line}" for line in row(sign))]

    after = once(1) if by_group else [*each("begin, end", 1), *(each("head, tail", -1) if both else ())]
    forget = ["for i in range(head, tail):", "    k = codes[i]", "    if rows[k] == 0:"]
    forget += [f"        {line}" for line in lines.forget()]
    return _TEMPLATE.format(
        prologue=block(lines.prologue(), 1),
        before=block(once(-1) if by_group and both else [], 2),
        enter=block(lines.change("enter", "i"), 3),
        leave=block(lines.change("leave", "i"), 3),
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
    projection, width = plan.projection, len(type.fields)
    if projection.whole:
        columns = tuple(Field(0, i, kind) for i, kind in enumerate(type.fields.values()))
        projection = replace(projection, columns=columns, whole=False)
    shown = shifted(projection, 0 if by_group else width)
    return Queued(input.filter, plan.where, window, keys, calls, by_group, shown, width, plan.emitted, type=type)


def over_stream(plan: Select, stream: RowType) -> FilterProject | Folded | str:
    """The core of a statement over one stream whose rows leave at once, or the first reason against it."""
    if _leaving(plan):
        return queued(plan, stream)
    return folded(plan, len(stream.fields)) if aggregates(plan) else filter_project(plan)


def _leaving(plan: Select) -> bool:
    """Whether it matters which rows leave a window together, or that they do."""
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or not may_hold(input.window):
        return False
    each = plan.grouping is None and not plan.total
    return not isinstance(input.window, Length | Time) or not aggregates(plan) or (each and plan.emitted != "new")


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
