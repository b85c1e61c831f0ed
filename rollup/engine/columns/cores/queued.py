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

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.changes import (
    IN_BATCHES,
    Changes,
    Moved,
    Step,
    admitted,
    changes_of,
    released_of,
)
from rollup.engine.columns.cores.conditions import Condition, condition_of
from rollup.engine.columns.cores.declared import Lines
from rollup.engine.columns.cores.folded import Folded, shape_of, shifted, unfolded
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.projecting import Made, Taken
from rollup.engine.columns.cores.queueable import unheld
from rollup.engine.columns.evaluate import Columns, carried, flags, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import block, loop
from rollup.engine.expressions import Field
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.timed import Time, TimeBatch
from rollup.engine.state import State
from rollup.engine.types import RowType

_TEMPLATE = """
{functions}def core(old, unseen, come, gone, codes, {given}rows, {slots}change, group, source, sign, {results}):
    n, begin, head = 0, old, 0
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
    i = j if j < end else head + j - end
    k = codes[i]
    if seen[k] != stamp:
        seen[k] = stamp
"""


@dataclass(frozen=True, kw_only=True)
class Queued(Folded):
    """The same over another window; the fields of the stream are of `type`. Rows that stand for themselves see the
    aggregates as they are after the whole change.
    """

    type: RowType

    @cached_property
    def _text(self) -> str:
        return _text(self.lines, (self.by_group, self.keyed, self.emitted != "new"), self.behind, self.forgets)

    @cached_property
    def lines(self) -> Lines:
        """The calls."""
        return Lines(self.calls)

    @property
    def keyed(self) -> bool:
        """Whether there is more than one group."""
        return bool(self.keys)

    @cached_property
    def _schemas(self) -> tuple[pa.Schema, pa.Schema]:
        fields = [pa.field(f"field{i}", carried(kind)) for i, kind in enumerate(self.type.fields.values())]
        content = pa.schema([pa.field("time", pa.int64()), pa.field("group", pa.int64()), *fields])
        return content, super()._schemas[1]

    @property
    def batches(self) -> bool:
        """Whether rows come when a batch is complete."""
        return isinstance(self.window, IN_BATCHES)

    @property
    def dated(self) -> bool:
        """Whether it notes when rows come or leave next by themselves."""
        return isinstance(self.window, TimeBatch)

    def start(self, now: int) -> State:
        """An empty window."""
        tables = {**super().start(now).tables, **({} if self.condition is None else self.condition.start())}
        return State(tables, {"now": now, "come": 0, "origin": None, "due": None, "end": None})

    @cached_property
    def condition(self) -> Condition | None:
        """The condition over its own content by which the window goes."""
        return condition_of(self.window)

    @property
    def behind(self) -> bool:
        """Whether there is a condition that is asked behind the window: rows that do not meet it take their places in it."""
        return self.where is not None and not isinstance(self.window, Time)

    def waiting(self, state: State) -> pa.Table:
        """What one who looks at the window sees: of batches that which is not complete."""
        content = state.tables["content"]
        return self._seen(content.slice(state.scalars["come"]) if self.batches else content)

    def _seen(self, held: pa.Table) -> pa.Table:
        """The rows that meet a condition behind the window."""
        if not self.behind:
            return held
        return held.filter(passing(self.where, list(map(whole, held.columns[2:])), held.num_rows))

    def inside(self, state: State) -> pa.Table:
        """The rows that count, with their groups and what the aggregates are of."""
        return self.counting(self._seen(state.tables["content"].slice(0, state.scalars["come"])))

    def counting(self, held: pa.Table) -> pa.Table:
        """The groups of some rows, their fields, and what the aggregates are of."""
        given = self.lines.given([column.combine_chunks() for column in held.columns[2:]], held.num_rows)
        names = [f"given{i}" for i in range(len(given))]
        return pa.table([*held.columns[1:], *map(pa.array, given)], names=[*held.column_names[1:], *names])

    def taken(self, state: State, batch: Batch) -> Taken:
        """The events that come to the window."""
        taken = Taken.of(batch, state.scalars["now"], self.filter, None if self.behind else self.where)
        return admitted(self.window, taken, state.tables["content"].num_rows)

    def made(self, state: State, taken: Taken) -> tuple[State, Made]:
        """The rows before they are projected."""
        return self.stepped(state, taken)

    def released(self, state: State, taken: Taken) -> tuple[State, Made]:
        """What is due is let out, late, and no event comes."""
        return self.stepped(state, taken, True)

    def stepped(self, state: State, taken: Taken, late: bool = False) -> tuple[State, Made]:
        """The state and the rows; `late`: what is due is let out, and no event comes."""
        step, condition = self.given(state, taken), self.condition
        if late:
            moved = released_of(self.window, step)
        else:
            moved = changes_of(self.window, step) if condition is None else condition.changes(step, state.tables)
        return self.through(state, step, moved)

    def given(self, state: State, taken: Taken) -> Step:
        """What the window is given with a step."""
        content = state.tables["content"]
        times = np.concatenate([content.column("time").to_numpy(), taken.times])
        arrived = zip(content.columns[2:], taken.columns, strict=True)
        fields = [pa.concat_arrays([*held.chunks, plain(column)]) for held, column in arrived]
        return Step(taken, times, fields, state.scalars)

    def through(self, state: State, step: Step, moved: Moved) -> tuple[State, Made]:
        """The state after a step, and the rows that its changes make."""
        content, groups = state.tables["content"], state.tables["groups"]
        own, keys = self.numbered(whole(groups.column("key")), step.taken.columns, len(step.taken.times))
        codes, known = np.concatenate([content.column("group").to_numpy(), own]), len(keys)
        passes = flags(passing(self.where, step.fields, len(codes)), len(codes)) if self.behind else None
        changes = moved.changes if passes is None else moved.changes.of(step.old, passes)
        counted = codes if passes is None else np.where(passes, codes, known)  # the others are a group that nobody sees
        rows = np.zeros(known + self.behind, np.int64)
        rows[: groups.num_rows] = groups.column("rows").to_numpy()
        slots = self.lines.grown(groups.columns[2:], len(rows))
        change, group, source, sign, made = self._looped(step.old, changes, counted, step.fields, rows, slots)
        columns = self._named(keys, group) if self.by_group else [each.take(pa.array(source)) for each in step.fields]
        signs = sign if self.emitted != "new" else None
        at, event = changes.at[change], changes.event[change]
        seen = [*columns, *made]
        found = Made(step.taken, at, event, seen, signs)
        stays, inside = moved.changes.stays(step.old)
        left, schemas = [pa.array(step.times[stays]), pa.array(codes[stays])], self._schemas
        left += [each[stays] if isinstance(stays, slice) else each.take(pa.array(stays)) for each in step.fields]
        tables = {
            "content": pa.table(left, schema=schemas[0]),
            "groups": pa.table([keys, *(pa.array(each[:known]) for each in (rows, *slots))], schema=schemas[1]),
        }
        now = max(state.scalars["now"], step.taken.now)
        scalars = {**state.scalars, **moved.notes, "now": now, "come": inside}
        return State({**state.tables, **moved.tables, **tables}, scalars), found

    def _looped(
        self, old: int, changes: Changes, codes: Ints, fields: Columns, rows: Ints, slots: list[np.ndarray]
    ) -> tuple[Ints, Ints, Ints, np.ndarray, list[pa.Array]]:
        """The rows that the changes make: change, group, row of the content, sign, results."""
        both, moved = self.emitted != "new", int(sum(map(np.sum, changes.counts(old))))
        room = (1 + both) * (moved if self.keyed or not self.by_group else len(changes.at))
        change, group, source = (np.empty(room, np.int64) for _ in range(3))
        sign, made = np.ones(room, np.int8), self.lines.room(room)
        given = self.lines.arranged(self.lines.given(fields, len(codes)), codes)
        n = loop(self._text)(
            old, len(rows) - 1, changes.come, changes.gone, codes, *given, rows, *slots,
            change, group, source, sign, *made,
        )  # fmt: skip
        order = np.lexsort((-sign[:n], change[:n])) if both and self.by_group else slice(n)  # what leaves is last
        results = self.lines.looked_up(self._ordered(made, n, order), fields, codes)
        return change[order], group[order], source[order], sign[order], results

    def _ordered(self, made: list[np.ndarray], n: int, order: Ints | slice) -> list[pa.Array]:
        results = self.lines.results(made, n)
        return results if isinstance(order, slice) else [each.take(pa.array(order)) for each in results]


def _text(lines: Lines, shape: tuple[bool, bool, bool], behind: bool, forgets: bool) -> str:
    """The text of a loop. Rows: of each group that is touched; of a total; or of each row that comes and, for `both`, leaves.
    `behind`: rows of the group `unseen` make none; `forgets`: as in `Folded`.
    """
    by_group, keyed, both = shape
    skip = ["if k == unseen:", "    continue"] if behind else []

    def row(sign: int) -> list[str]:
        return ["change[n], group[n], source[n], sign[n] = c, k, i, " + str(sign), *lines.value(), "n += 1"]

    def once(sign: int) -> list[str]:
        if not keyed:
            return ["k, i = 0, 0", *row(sign)]  # of a total each change that is left has rows that are seen
        touched = _TOUCHED.strip().splitlines()
        return [*touched, *(f"        {line}" for line in (*skip, *row(sign)))]

    def each(come: bool, body: Sequence[str]) -> list[str]:
        walk = f"for i in range({'begin, end' if come else 'head, tail'}):"
        return [walk, "    k = codes[i]", *(f"    {line}" for line in body)]

    after = once(1) if by_group else [*each(True, [*skip, *row(1)]), *(each(False, [*skip, *row(-1)]) if both else ())]
    forget = each(False, ["if rows[k] == 0:", *(f"    {line}" for line in lines.forget())])
    return _TEMPLATE.format(
        prologue=block(lines.prologue(), 1),
        before=block(once(-1) if by_group and both else [], 2),
        enter=block(each(True, ["rows[k] += 1", *lines.change("enter", "i")]), 2),
        leave=block(each(False, ["rows[k] -= 1", *lines.change("leave", "i")]), 2),
        after=block(after, 2),
        forget=block(forget if forgets and lines.forget() else [], 2),
        functions=lines.functions,
        **lines.names,
    )


def queued(plan: Select, type: RowType) -> Queued | str:
    """The core of a statement over such a window of a stream, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or input.unnest or input.prior or plan.lookups:
        return "an input that is not a plain stream"
    window = input.window
    reason = unheld(window)
    if reason is not None:
        return reason
    shape = shape_of(plan) if aggregates(plan) else ((), (), False)
    if isinstance(shape, str):
        return shape
    keys, calls, by_group = shape
    reason = unfolded(plan, input, shape, "queue", True)
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
