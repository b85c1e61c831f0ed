"""The state of aggregates over a window, read from the row executor's snapshot of a statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.keeping import KeepingEach
from rollup.engine.columns.cores.leveled import Leveled
from rollup.engine.columns.cores.moving import Moving
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.evaluate import evaluate, field
from rollup.engine.columns.running.adopting_windows import held_by, held_in_any_order
from rollup.engine.compiling import predicate
from rollup.engine.row import Row
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.windows.combined import Derived
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.types import RowType

INPUTS, MATCHERS, KEPT, GONE, RUNNING = range(5)
"""What stands where in the snapshot of a statement."""


def folded_state(
    core: Folded, kept: Any, stream: RowType, now: int, wanted: Sequence[Any] = ()
) -> tuple[State, pa.Table]:
    """The state of aggregates over a window, and the rows of the window. `wanted`: keys of groups that come first, be they empty."""
    window = kept[INPUTS][0][0] or []
    timed = isinstance(core.window, Time)
    if isinstance(core.window, Grouped):
        window = [row for _, inner in window for row in inner]
    stamped: list[tuple[Row, int]] = [(row, at) for row, at in window] if timed else [(row, 0) for row in window]
    test = predicate(core.where)
    stamped = [(row, at) for row, at in stamped if test((row,), (), None)]
    stamped.sort(key=lambda each: each[0].id)
    rows = table_of([row for row, _ in stamped], stream)
    groups = groups_of(core, kept[KEPT][0], wanted)
    state = core.start(now)
    table = groups_table(core, groups, state.tables["groups"].schema)
    keys = table.column("key").combine_chunks()
    fields = [column.combine_chunks() for column in rows.columns]
    numbers, _ = core.numbered(keys, fields, rows.num_rows)
    given = core.lines.given(fields, rows.num_rows)
    times = np.array([at for _, at in stamped], np.int64)
    content = [times, numbers, *given] if core.window is not None else [part[:0] for part in (times, numbers, *given)]
    arrays = [pa.array(each) for each in content]
    arrays[2:2] = [] if core.mark is None else [evaluate(core.mark, fields, rows.num_rows)]
    tables = {
        "content": pa.table(arrays, schema=state.tables["content"].schema),
        "groups": table,
    }
    return State(tables, {"now": now}), rows


def staying_state(core: KeepingEach, window: Sequence[Row] | None, now: int) -> State:
    """The state of a statement without aggregates whose rows all stay."""
    test = predicate(core.where)
    rows = sorted((row for row in window or () if test((row,), (), None)), key=lambda row: row.id)
    return core.holding(core.start(now), table_of(rows, core.type))


def of_totals(plan: object, kept: Any) -> Any:
    """What is kept of a statement over numbers about a window, as of one of totals over that window."""
    match plan:
        case Select(inputs=(StreamInput(window=Derived()),)):
            return _of_total(kept)
        case _:
            return kept


def _of_total(kept: Any) -> Any:
    (inner, group, *_), *rest = kept[INPUTS][0]
    return [[[inner, *rest]], kept[MATCHERS], [[[[(), group, len(inner)]]]]]


def queued_state(core: Queued, kept: Any, stream: RowType, now: int, wanted: Sequence[Any] = ()) -> State:
    """The state of a statement over a window whose rows leave in the order in which they came; `wanted` as in `folded_state`."""
    state, window = core.start(now), kept[INPUTS][0][0]
    if isinstance(core, Moving):
        held = held_in_any_order(core.window, window or (), now)
    else:
        held = held_by(core.window, window, now)
    stamped, come = held.stamped, held.come
    if not core.behind:
        test = predicate(core.where)
        stamped = [(row, at) for row, at in stamped if test((row,), (), None)]
        come = come if core.batches else len(stamped)
    content, groups = (state.tables[name].schema for name in ("content", "groups"))
    fields = [column.combine_chunks() for column in table_of([row for row, _ in stamped], stream).columns]
    found = groups_of(core, kept[KEPT][0], wanted) if core.calls else [(_key(core, key), [], 0) for key in wanted]
    table = groups_table(core, found, groups)
    numbers, keys = core.numbered(table.column("key").combine_chunks(), fields, len(stamped))
    fresh = [(key, core.lines.fold.start(), 0) for key in keys.to_pylist()[len(found) :]]  # of rows that wait
    table = groups_table(core, [*found, *fresh], groups)
    times = pa.array([at for _, at in stamped], pa.int64())
    tables = {"content": pa.table([times, pa.array(numbers), *fields], schema=content), "groups": table}
    scalars = {**state.scalars, **held.notes, "come": come}
    if core.condition is not None and held.group is not None:
        tables |= core.condition.table(held.group)
    if isinstance(core, Moving):
        scalars["due"] = core.due(State(tables, scalars))
    return State(tables, scalars)


def aggregates_state(core: Folded, kept: Any, stream: RowType, now: int) -> State:
    """The state of aggregates over a window of any kind."""
    if isinstance(core, Queued):
        return queued_state(core, kept, stream, now)
    return folded_state(core, kept, stream, now)[0]


def leveled_state(core: Leveled, kept: Any, stream: RowType, now: int) -> State:
    """The state of aggregates by several sets of keys: of each level as if it were alone."""
    states = list[State]()
    for level, groups in zip(core.levels, kept[KEPT][0][0], strict=True):
        kind = [[groups]] if level.keys or not level.by_group else [groups]
        alone = [kept[INPUTS], kept[MATCHERS], [kind]]
        states.append(aggregates_state(level, alone, stream, now))
    return core.holding(states)


def groups_table(core: Folded, groups: Sequence[Any], schema: pa.Schema) -> pa.Table:
    """Groups as the state has them."""
    columns: list[list[Any]] = [[key for key, _, _ in groups], [count for _, _, count in groups]]
    columns += core.lines.slots_in([values for _, values, _ in groups])
    return pa.table([pa.array(column, slot.type) for column, slot in zip(columns, schema, strict=True)], schema=schema)


def groups_of(core: Folded, kind: Any, wanted: Sequence[Any] = ()) -> list[tuple[Any, list[Any], int]]:
    """Key, slots and rows of each group, those that are wanted first; of the one group over all rows the key is 0."""
    if core.keys and core.by_group:  # one row a group: levels, own levels, rows
        found = kind[0][0]
    elif core.by_group:  # one row in all: the levels
        found = kind[0]
    else:  # one row a row: levels, representatives
        found = kind[0][0]
    there = [each for each in found if each[2] > 0 or not core.forgets]  # a group that has emptied is about to go
    known = {**{key: (key, core.lines.fold.start(), 0) for key in wanted}, **{each[0]: each for each in there}}
    return [(_key(core, key), slots, count) for key, slots, count in (known.values() if core.keys else there)]


def _key(core: Folded, key: Sequence[Any]) -> Any:
    """The key of a group, as the state has it."""
    if len(core.keys) > 1:
        return {f"key{i}": value for i, value in enumerate(key)}
    return key[0] if core.keys else 0


def columns_of(window: Sequence[Any], timed: bool, type: RowType, now: int) -> tuple[list[pa.Array], np.ndarray]:
    """The rows of a window as columns, in the order in which they came; and when that was, where time lets them out."""
    pairs = sorted(window if timed else [(row, now) for row in window], key=lambda each: each[0].id)
    columns = table_of([row for row, _ in pairs], type).columns
    return [column.combine_chunks() for column in columns], np.array([at for _, at in pairs], np.int64)


def table_of(rows: Sequence[Row], stream: RowType) -> pa.Table:
    """Rows as columns."""
    columns = [field([row.values[i] for row in rows], kind) for i, kind in enumerate(stream.fields.values())]
    return pa.table(columns, names=[f"field{i}" for i in range(len(columns))])
