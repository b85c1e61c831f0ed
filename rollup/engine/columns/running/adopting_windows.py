"""The rows of a window and what it notes, read from the row executor's snapshot of it: a function a window."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from rollup.engine.columns.cores.changes import IN_BATCHES
from rollup.engine.columns.groups import Ints
from rollup.engine.folding import Group
from rollup.engine.operators import LONG_MAX
from rollup.engine.row import Row
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Intersection, Union
from rollup.engine.rows.windows.counted import LengthBatch
from rollup.engine.rows.windows.expressed import Expressed, ExpressedBatch
from rollup.engine.rows.windows.external import ExternalTime, ExternalTimeBatch, TimeOrder
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import FirstTime, Time, TimeAccumulating, TimeBatch, TimeLengthBatch

Stamped = Sequence[tuple[Row, int]]
_NOTHING = np.empty(0, np.int64)


class Held(NamedTuple):
    """The rows with the instants at which they came, so far as those matter; how many of them have come; what is noted."""

    stamped: Stamped
    come: int
    notes: Mapping[str, Any] = {}
    group: Group | None = None
    """The aggregates over the content, of a window by a condition."""
    bits: Ints = _NOTHING
    """Which parts of a union have each row."""
    leaves: Ints = _NOTHING
    """When each row leaves, of a window that keeps each until a time of its own."""


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


def _of_time_length(snapshot: Any, now: int) -> Held:
    batches, due = snapshot
    return _of_batches(batches, now)._replace(notes={"due": due})


def _of_accumulating(snapshot: Any, now: int) -> Held:
    rows, last = snapshot
    return _in_order(rows, last)


def _of_first_time(snapshot: Any, now: int) -> Held:
    rows, end = snapshot
    return _in_order(rows, now)._replace(notes={"end": end})


def _of_condition(snapshot: Any, now: int) -> Held:
    stamped, group = snapshot
    return _of_time(stamped, now)._replace(group=group)


def _of_batches_by_condition(snapshot: Any, now: int) -> Held:
    (_, last), (stamped, group) = snapshot
    return Held([*((row, now) for row in last), *((row, at) for row, at in stamped)], len(last), {}, group)


_READ: Mapping[type, Callable[[Any, int], Held]] = {
    Time: _of_time,
    ExternalTime: _of_time,
    TimeBatch: _of_time_batch,
    ExternalTimeBatch: _of_external_batch,
    TimeLengthBatch: _of_time_length,
    TimeAccumulating: _of_accumulating,
    FirstTime: _of_first_time,
    Expressed: _of_condition,
    ExpressedBatch: _of_batches_by_condition,
}


def held_in_any_order(window: WindowSpec | None, kept: Any, now: int) -> Held:
    """The same of a window that lets rows out in any order."""
    if isinstance(window, Grouped) and isinstance(window.inner, LengthBatch):
        batches = sorted((last for _, (_, last) in kept if last), key=lambda last: last[-1].id)  # as they came
        waiting = sorted((row for _, (current, _) in kept for row in current), key=lambda row: row.id)
        come = [row for last in batches for row in last]
        return Held([(row, now) for row in (*come, *waiting)], len(come))
    found = rows_of(window, kept, now)
    bits = _parts_having(window, kept, [row for row, _ in found])
    return Held(found, len(found), bits=bits, leaves=_leaves_of(window, kept))


def rows_of(window: WindowSpec | None, kept: Any, now: int) -> list[tuple[Row, int]]:
    """The rows of a window whose rows leave in any order, as they came, with when they did where it matters; else `now`."""
    match window:
        case Grouped(inner=inner):
            found = [each for _, own in kept for each in rows_of(inner, own, now)]
        case Time():
            found = [(row, at) for row, at in kept]
        case TimeOrder():
            found = [(row, now) for row, _ in kept]
        case Intersection(parts):
            timed = [place for place, part in enumerate(parts) if isinstance(part, Time)]
            place = timed[0] if timed else 0
            found = rows_of(parts[place], kept[place], now) if kept else []
        case Union(parts):
            known = {row.id: at for part, own in _kept(parts, kept) if isinstance(part, Time) for row, at in own}
            found = [(row, known.get(row.id, now)) for row, _ in (kept[1] if kept else ())]
        case _:
            found = [(row, now) for row in kept]
    return sorted(found, key=lambda each: each[0].id)


def _leaves_of(window: WindowSpec | None, kept: Any) -> Ints:
    """When each row leaves, of a window that keeps each until a time of its own."""
    if not isinstance(window, TimeOrder):
        return np.empty(0, np.int64)
    found = sorted(kept, key=lambda each: each[0].id)
    return np.array([min(time + window.span, LONG_MAX) for _, time in found], np.int64)


def _parts_having(window: WindowSpec | None, kept: Any, rows: Sequence[Row]) -> Ints:
    """Of a union which parts have each row, a bit for each."""
    bits = np.zeros(len(rows), np.int64)
    if isinstance(window, Union):
        for place, (part, own) in enumerate(_kept(window.parts, kept)):
            ids = {row.id for row, _ in rows_of(part, own, 0)}
            bits += np.array([(row.id in ids) << place for row in rows], np.int64)
    return bits


def _kept(parts: Sequence[WindowSpec], kept: Any) -> list[tuple[WindowSpec, Any]]:
    """The parts of a union with the snapshot of each."""
    return list(zip(parts, kept[0], strict=True)) if kept else []
