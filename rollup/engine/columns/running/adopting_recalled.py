"""The state of a statement that reads earlier events, read from the row executor's snapshot of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.cores.recalling import Recalling
from rollup.engine.columns.evaluate import field
from rollup.engine.columns.rates.firsts import Firsts
from rollup.engine.columns.rates.rated import Rated
from rollup.engine.columns.running.adopting_folds import INPUTS, folded_state, queued_state, table_of
from rollup.engine.columns.running.adopting_rates import rated_state
from rollup.engine.columns.running.adopting_windows import rows_of
from rollup.engine.row import Row
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.plans import StreamInput
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State


def recalling_state(core: Recalling, instance: Instance, now: int) -> State:
    """What was read of the last events, and the rows of the window with what came before each."""
    kept = instance.snapshot()
    window, recent, known = kept[INPUTS][0]
    reached = _Reaching(core, dict(known))
    content = _content(core.window, window, reached, now)
    last = content if core.window is not None else _last_ones(core, window, reached, now)
    return core.state(_main(core, instance, reached, now), _earlier(core, recent, last, now), _held(core, content), now)


def recalling_in_partitions(core: Recalling, kept: Sequence[Any], now: int) -> State:
    """The same of a statement in partitions: of each its window, its last events and what was before those in the window, all
    rows with its number as their last field. Such a statement keeps no rows but those of the window.
    """
    windows, last = list[Any](), list[tuple[int, Row]]()
    for number, (window, recent, known) in enumerate(kept):
        windows.append(_Reaching(core, dict(known)).rows(window or []))
        last += [(number, row) for row in recent[max(len(recent) - core.depth, 0) :]]
    content = [(at, row) for row, at in rows_of(core.window, in_one(core.window, windows), now)] if core.window else []
    return core.state(core.main.start(now), _read_of(core, last), _held(core, content), now)


def in_one(window: WindowSpec | None, windows: Sequence[Any]) -> list[Any]:
    """The rows of the windows of partitions, as the one window that they are has them."""
    match window:
        case Grouped(key=(_,)):
            return [((number,), own) for number, own in enumerate(windows) if own]
        case Grouped():
            return [((number, *key), inner) for number, own in enumerate(windows) for key, inner in own]
        case Unique() | KeepAll():
            return [row for own in windows for row in own]
        case Time():
            return sorted((each for own in windows for each in own), key=lambda each: each[0].id)
        case _:
            return []


def _content(spec: WindowSpec | None, window: Any, reached: _Reaching, now: int) -> list[tuple[int, Row]]:
    return [] if spec is None else [(at, reached.row(row)) for row, at in rows_of(spec, window, now)]


def _last_ones(core: Recalling, window: Any, reached: _Reaching, now: int) -> list[tuple[int, Row]]:
    """The last rows that came, where aggregates are of these."""
    input = core.plan.inputs[0]
    if isinstance(input, StreamInput) and isinstance(input.window, Length):
        return _content(input.window, window, reached, now)
    return []


def _held(core: Recalling, content: Sequence[tuple[int, Row]]) -> pa.Table:
    rows = table_of([row for _, row in content], core.reached)
    return pa.table([pa.array([at for at, _ in content], pa.int64()), *rows.columns], schema=core.schemas[1])


class _Reaching:
    """Rows with what is read of those before them; `known`: which those are."""

    def __init__(self, core: Recalling, known: Mapping[int, Sequence[Row]]) -> None:
        self._core, self._known = core, known

    def row(self, row: Row) -> Row:
        """A row; what is previous to it is read when it is shown."""
        before, further = self._known.get(row.id, ()), list[Any]()
        for each in self._core.recalled:
            there = (*before, row)[-1 - each.offset :][:1] if not each.inside and each.offset <= len(before) else ()
            further += [there[0].values[each.value.index]] if there else [None]
        return Row(row.id, (*row.values, *further))

    def rows(self, window: Any) -> Any:
        """The same of each row of a window's state."""
        if isinstance(window, Row):
            return self.row(window)
        return list(map(self.rows, window)) if isinstance(window, list | tuple) else window


def _main(core: Recalling, instance: Instance, reached: _Reaching, now: int) -> State:
    def wider(kept: Any) -> Any:
        (window, *rest), *others = kept[INPUTS]
        return [[[reached.rows(window), *rest], *others], *kept[INPUTS + 1 :]]

    match core.main:
        case Rated() | Firsts():
            return rated_state(core.main, instance, core.reached, wider)[0]
        case Queued():
            return queued_state(core.main, wider(instance.snapshot()), core.reached, now)
        case Folded():
            return folded_state(core.main, wider(instance.snapshot()), core.reached, now)[0]
        case _:
            return core.main.start(now)


def _earlier(core: Recalling, recent: Sequence[Row], content: Sequence[tuple[int, Row]], now: int) -> pa.Table:
    """What is read of the last events: those that the window holds, or those that came, whichever are more."""
    gone = now - (core.window.span if isinstance(core.window, Time) else 0)
    last_ones = len(content) > len(recent) and not isinstance(core.window, Grouped)
    stamped = content if last_ones else [(gone, row) for row in recent]
    times = {row.id: at for at, row in content}
    last = [(times.get(row.id, at), row) for at, row in stamped][max(len(stamped) - core.depth, 0) :]
    return _read_of(core, last)


def _read_of(core: Recalling, last: Sequence[tuple[int, Row]]) -> pa.Table:
    columns = [field([row.values[each.value.index] for _, row in last], each.type) for each in core.shifted]
    return pa.table([pa.array([first for first, _ in last], pa.int64()), *columns], schema=core.schemas[0])
