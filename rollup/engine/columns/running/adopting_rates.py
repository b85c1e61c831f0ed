"""The state of a statement with an output rate, read from the row executor: the rows that wait, the clock, the counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.folded_joins import FoldedJoin
from rollup.engine.columns.cores.keeping import KeepingEach
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.rates.counts import Counts
from rollup.engine.columns.rates.firsts import Firsts
from rollup.engine.columns.rates.intervals import Opening
from rollup.engine.columns.rates.rated import Rated
from rollup.engine.columns.rates.units import Units
from rollup.engine.columns.running.adopting_folds import (
    INPUTS,
    KEPT,
    folded_state,
    queued_state,
    staying_state,
    table_of,
)
from rollup.engine.columns.running.adopting_joins import folded_join_state
from rollup.engine.compiling import compiled_row, predicate
from rollup.engine.row import Row
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.lazy import Lazy
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.projecting import Out
from rollup.engine.rows.selects.rates import INSERTED, REMOVED, Saved
from rollup.engine.rows.windows.external import ExternalTime
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.types import RowType

Waiting = tuple[Any, int, Sequence[Any] | None]
"""A row that waits: the key of its group, its sign, its values where it fulfils `having`."""


def rated_state(
    core: Rated | Firsts, instance: Instance, stream: RowType, wider: Callable[[Any], Any] = lambda kept: kept
) -> tuple[State, pa.Table]:
    """The state, and the rows of the window; in snapshots these are made `wider`."""
    assert isinstance(instance, SelectInstance)
    if isinstance(instance, Lazy):
        instance.settle()
    now, shown = instance.runner.now, None
    if isinstance(core, Rated) and core.lazy:
        # Before the instance goes on: a snapshot shares the groups with it.
        before = wider(instance.snapshot())
        if not isinstance(core.core, FoldedJoin):  # of pairs those of now are shown
            before = _at_last_output(core.core, before, now)
        shown = _inner(core.core, before, stream, now, [])[0]
    instance.outputs.settle()
    kept = wider(instance.snapshot())
    outputs = kept[KEPT][1]
    if isinstance(core, Firsts):
        return _firsts(core, kept, outputs, stream, now)
    waiting = [] if core.shows == "there" else _waiting(core, outputs[Saved.COLLECTED], kept[KEPT][0])
    ever = [key for _, key, _ in kept[KEPT][0][2]] if core.shows in ("all", "there") and not core.total else []
    keys = dict.fromkeys([*ever, *(key for key, _, _ in waiting)]) if core.by_unit else {}
    inner, held = _inner(core.core, kept, stream, now, list(keys))
    codes = {key: code for code, key in enumerate(keys)}
    latest = _latest(core, kept[KEPT][0], outputs[Saved.COLLECTED], list(keys)) if core.total or ever else []
    counts = _counts(core, outputs)
    rows = core.rows([(codes.get(key, 0), sign, values) for key, sign, values in waiting])
    return core.state({"core": inner, "shown": shown or inner}, rows, core.rows(latest), counts), held


def _counts(core: Rated, outputs: Any) -> Counts:
    """Where the outputs stand; by the clock no rows are counted."""
    if core.pacing.clock.runs:
        return Counts(outputs[Saved.DUE])
    counts = outputs[Saved.COUNTS]
    return Counts(None, counts[INSERTED], counts[REMOVED], outputs[Saved.LIMIT])


def _inner(
    core: FilterProject | Folded, kept: Any, stream: RowType, now: int, wanted: Sequence[Any]
) -> tuple[State, pa.Table]:
    if isinstance(core, FoldedJoin):
        return folded_join_state(core, kept, now, wanted), table_of((), stream)
    if isinstance(core, Queued):
        return queued_state(core, kept, stream, now, wanted), table_of((), stream)
    if isinstance(core, Folded):
        return folded_state(core, kept, stream, now, wanted)
    if isinstance(core, KeepingEach):
        return staying_state(core, kept[INPUTS][0][0], now), table_of((), stream)
    return core.start(now), table_of((), stream)


def _at_last_output(core: FilterProject | Folded, kept: Any, now: int) -> Any:
    """A snapshot with the window as it was when the aggregates were worked out last: what has left it since is as if it had
    come `now`, and so is not due again.
    """
    inputs, *rest = kept
    came = {row.id for new, _ in kept[KEPT][1][Saved.PENDING] for (row,) in new}
    left = [row for _, old in kept[KEPT][1][Saved.PENDING] for (row,) in old if row.id not in came]
    window = inputs[0][0] or []
    by_key = isinstance(core, Folded) and isinstance(core.window, Grouped)
    if by_key:
        window = [row for _, inner in window for row in inner]
    # Of a window that is empty by now, too, rows have left since then.
    stamped = (
        isinstance(window[0], list)
        if window
        else isinstance(core, Folded) and isinstance(core.window, Time | ExternalTime)
    )
    stays = [each for each in window if (each[0] if stamped else each).id not in came]
    rows = [*([row, now] if stamped else row for row in left), *stays]
    return [[[[(None, rows)] if by_key else rows, *inputs[0][1:]]], *rest]


def _waiting(core: Rated, collected: Any, kind: Any) -> list[Waiting]:
    """The rows that the next output may show."""
    if core.shows == "everything":
        come, leave, touched = collected
        marks = [((), 1, None)] if core.total and touched else []  # it was touched, be it that nothing passed
        return [*marks, *(((), 1, _values(out)) for out in come), *(((), -1, _values(out)) for out in leave)]
    if core.total:
        return []
    if not isinstance(core.core, Folded) or not core.core.by_group:
        come, leave = collected
        shown = [*((1, each) for each in come), *((-1, each) for each in leave if core.emitted != "new")]
        return [(key or (), sign, _values(out)) for sign, (key, out) in shown]
    slots = {key: each for key, each, _ in kind[0][0]}
    found = [(key, 1, _row(core.core, key, slots.get(key))) for (_, key), _ in collected]
    if core.emitted == "new":
        return found
    old = [(key, -1, None if out is None else _values(out)) for (_, key), out in collected]
    return [*found, *(each for each in old if each[2] is not None or core.shows == "all")]


def _latest(core: Rated, kind: Any, collected: Any, keys: Sequence[Any]) -> list[tuple[int, int, Any]]:
    """The row of each group; of a total, now and at the last output."""
    assert isinstance(core.core, Folded)
    if not core.total:
        slots = {key: each for key, each, _ in kind[0][0]}
        return [(code, 1, _row(core.core, key, slots.get(key))) for code, key in enumerate(keys)]
    groups = kind[0]
    now = _row(core.core, (), groups[0][1] if groups else None)
    before = now if core.shows != "last" else None if collected is None else _values(collected)
    return [(0, 1, now), (0, 1, before)]


def _values(out: Out) -> Sequence[Any]:
    """What is shown of a row, and what it is ordered by."""
    return (*out.row.values, *out.order)


def _row(core: Folded, key: Sequence[Any], slots: list[Any] | None) -> Sequence[Any] | None:
    """The row of a group, None where it does not fulfil `having`."""
    fold = core.lines.fold
    values = (*key, *fold.values(fold.start() if slots is None else slots))
    row = ((Row(0, values),), (), None)
    return compiled_row(core.projection.columns)(*row) if predicate(core.projection.having)(*row) else None


def _firsts(core: Firsts, kept: Any, outputs: Any, stream: RowType, now: int) -> tuple[State, pa.Table]:
    """Whether an interval waits for its first change, and the intervals of groups."""
    by_group = isinstance(core.core, Folded) and core.core.by_group
    units = [(key[1] if by_group else key, counts) for key, counts in outputs[Saved.UNITS]]
    inner, held = _inner(core.core, kept, stream, now, [key for key, _ in units] if core.grouped else [])
    counts = (outputs[Saved.COUNTS][INSERTED], outputs[Saved.COUNTS][REMOVED]) if core.limit else (0, 0)
    columns = [[True] * len(units), *([each[place] for _, each in units] for place in (0, 2, 1))]
    table = Units.of(columns)
    return core.state(
        inner, Opening(outputs[Saved.OPEN], outputs[Saved.DUE] if core.span else None, *counts), table
    ), held
