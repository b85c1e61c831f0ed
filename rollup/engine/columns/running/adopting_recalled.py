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
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State


def recalling_state(core: Recalling, instance: Instance, now: int) -> State:
    """What was read of the last events, and the rows of the window with what came before each."""
    kept = instance.snapshot()
    window, recent, known = kept[INPUTS][0]
    reached = _Reaching(core, dict(known))
    content = _content(core, window, reached, now)
    return core.state(
        _main(core, instance, reached, now), _earlier(core, recent, content, now), _held(core, content), now
    )


def holding(core: Recalling, window: Any, now: int) -> State:
    """The state of one that reads nothing but what is previous to a row in its window, of what that keeps."""
    main, earlier = core.main.start(now), core.schemas[0].empty_table()
    return core.state(main, earlier, _held(core, _content(core, window, _Reaching(core, {}), now)), now)


def _content(core: Recalling, window: Any, reached: _Reaching, now: int) -> list[tuple[int, Row]]:
    if core.window is None:
        return []
    return [(at, reached.row(row)) for row, at in rows_of(core.window, window, now)]


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
    columns = [field([row.values[each.value.index] for _, row in last], each.type) for each in core.shifted]
    return pa.table([pa.array([at for at, _ in last], pa.int64()), *columns], schema=core.schemas[0])
