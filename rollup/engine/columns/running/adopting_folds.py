"""The state of aggregates over a window, read from the row executor's snapshot of a statement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.evaluate import arrow, evaluate
from rollup.engine.compiling import predicate
from rollup.engine.folding import Fold
from rollup.engine.row import Row
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
    stamped: list[tuple[Row, int]] = [(row, at) for row, at in window] if timed else [(row, 0) for row in window]
    test = predicate(core.where)
    stamped = [(row, at) for row, at in stamped if test((row,), (), None)]
    stamped.sort(key=lambda each: each[0].id)
    rows = table_of([row for row, _ in stamped], stream)
    groups = groups_of(core, kept[KEPT][0], wanted)
    state = core.start(now)
    keys = pa.array([key for key, _, _ in groups], state.tables["groups"].schema.field("key").type)
    slots = [[values[place] for _, values, _ in groups] for place in core.lines.slot_places]
    schema = state.tables["groups"].schema
    columns = [keys, pa.array([count for _, _, count in groups], pa.int64())]
    columns += [pa.array(slot, field.type) for slot, field in zip(slots, list(schema)[2:], strict=True)]
    fields = [column.combine_chunks() for column in rows.columns]
    numbers, _ = core.numbered(keys, fields, rows.num_rows)
    given = core.lines.given(fields, rows.num_rows)
    times = np.array([at for _, at in stamped], np.int64)
    content = [times, numbers, *given] if core.window is not None else [part[:0] for part in (times, numbers, *given)]
    arrays = [pa.array(each) for each in content]
    arrays[2:2] = [] if core.mark is None else [evaluate(core.mark, fields, rows.num_rows)]
    tables = {
        "content": pa.table(arrays, schema=state.tables["content"].schema),
        "groups": pa.table(columns, schema=schema),
    }
    return State(tables, {"now": now}), rows


def groups_of(core: Folded, kind: Any, wanted: Sequence[Any] = ()) -> list[tuple[Any, list[Any], int]]:
    """Key, slots and rows of each group, those that are wanted first; of the one group over all rows the key is 0."""
    if core.keys and core.by_group:  # one row a group: levels, own levels, rows
        found = kind[0][0]
    elif core.by_group:  # one row in all: the levels
        found = kind[0]
    else:  # one row a row: levels, representatives
        found = kind[0][0]
    there = [each for each in found if each[2] > 0 or not core.keys]  # a group that has emptied is about to go
    known = {**{key: (key, Fold(core.calls).start(), 0) for key in wanted}, **{each[0]: each for each in there}}
    return [(_key(core, key), slots, count) for key, slots, count in (known.values() if core.keys else there)]


def _key(core: Folded, key: Sequence[Any]) -> Any:
    """The key of a group, as the state has it."""
    if len(core.keys) > 1:
        return {f"key{i}": value for i, value in enumerate(key)}
    return key[0] if core.keys else 0


def table_of(rows: Sequence[Row], stream: RowType) -> pa.Table:
    """Rows as columns."""
    kinds = [arrow(kind) for kind in stream.fields.values()]
    columns = [pa.array([row.values[i] for row in rows], kind) for i, kind in enumerate(kinds)]
    return pa.table(columns, names=[f"field{i}" for i in range(len(kinds))])
