"""The rows of a window and what it notes, read from the row executor's snapshot of it: a function a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rollup.engine.columns.cores.changes import IN_BATCHES
from rollup.engine.folding import Group
from rollup.engine.row import Row
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Intersection
from rollup.engine.rows.windows.counted import LengthBatch
from rollup.engine.rows.windows.expressed import Expressed
from rollup.engine.rows.windows.external import ExternalTime, ExternalTimeBatch
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import Time, TimeBatch

Stamped = Sequence[tuple[Row, int]]


class Held(NamedTuple):
    """The rows with the instants at which they came, so far as those matter; how many of them have come; what is noted."""

    stamped: Stamped
    come: int
    notes: Mapping[str, Any] = {}
    group: Group | None = None
    """The aggregates over the content, of a window by a condition."""


def held_by(window: WindowSpec | None, snapshot: Any, now: int) -> Held:
    """What a window holds; of rows whose arrival does not matter that is `now`."""
    read = _READ.get(type(window), _of_batches if isinstance(window, IN_BATCHES) else _in_order)
    return read(snapshot, now)


def _in_order(rows: Sequence[Row], now: int) -> Held:
    return Held([(row, now) for row in rows], len(rows))


def _of_time(stamped: Sequence[Sequence[Any]], now: int) -> Held:
    return Held([(row, at) for row, at in stamped], len(stamped))


def _of_batches(batches: Sequence[Sequence[Row]], now: int) -> Held:
    current, last = batches
    return Held([(row, now) for row in (*last, *current)], len(last))


def _of_time_batch(snapshot: Any, now: int) -> Held:
    batches, origin, due = snapshot
    return _of_batches(batches, now)._replace(notes={"origin": origin, "due": due})


def _of_external_batch(snapshot: Any, now: int) -> Held:
    batches, origin, end, _ = snapshot
    last = None if end is None else min(end - 1, 2**63 - 1)
    return _of_batches(batches, now)._replace(notes={"origin": origin, "end": last})


def _of_condition(snapshot: Any, now: int) -> Held:
    stamped, group = snapshot
    return _of_time(stamped, now)._replace(group=group)


_READ: Mapping[type, Callable[[Any, int], Held]] = {
    Time: _of_time,
    ExternalTime: _of_time,
    TimeBatch: _of_time_batch,
    ExternalTimeBatch: _of_external_batch,
    Expressed: _of_condition,
}


def held_in_any_order(window: WindowSpec | None, kept: Any, now: int) -> Held:
    """The same of a window that lets rows out in any order."""
    if isinstance(window, Grouped) and isinstance(window.inner, LengthBatch):
        batches = sorted((last for _, (_, last) in kept if last), key=lambda last: last[-1].id)  # as they came
        waiting = sorted((row for _, (current, _) in kept for row in current), key=lambda row: row.id)
        come = [row for last in batches for row in last]
        return Held([(row, now) for row in (*come, *waiting)], len(come))
    found = rows_of(window, kept, now)
    return Held(found, len(found))


def rows_of(window: WindowSpec | None, kept: Any, now: int) -> list[tuple[Row, int]]:
    """The rows of a window whose rows leave in any order, as they came, with when they did where it matters; else `now`."""
    match window:
        case Grouped(inner=inner):
            found = [each for _, own in kept for each in rows_of(inner, own, now)]
        case Time():
            found = [(row, at) for row, at in kept]
        case Intersection(parts):
            timed = [place for place, part in enumerate(parts) if isinstance(part, Time)]
            place = timed[0] if timed else 0
            found = rows_of(parts[place], kept[place], now) if kept else []
        case _:
            found = [(row, now) for row in kept]
    return sorted(found, key=lambda each: each[0].id)
