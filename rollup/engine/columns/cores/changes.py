"""What comes into a window and what leaves it with each change: of every window whose rows leave in the order in which
they came, a function.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Const, Expr, Now, with_time
from rollup.engine.rows.windows.base import WindowSpec, timeless
from rollup.engine.rows.windows.counted import FirstLength, Length, LengthBatch
from rollup.engine.rows.windows.external import ExternalTime, ExternalTimeBatch
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import Time, TimeBatch
from rollup.engine.timers import edge
from rollup.engine.types import LONG

_EXTERNAL = """
def core(stamps, old, span, head, gone):
    least = -(2**63) + span
    for i in range(old, len(stamps)):
        while head <= i and stamps[i] >= least and stamps[head] <= stamps[i] - span:
            head += 1
        gone[i - old] = head
"""
"""How many rows have left with each arrival: from the front, those that are `span` older than it."""
_EXTERNAL_BATCHES = """
def core(stamps, old, span, origin, begun, last, ends):
    n = 0
    for i in range(old, len(stamps)):
        at = stamps[i]
        if begun and at > last:
            ends[n], begun = i, False
            n += 1
        if not begun:
            if origin < 0:
                origin = at % span
            step = span - (at % span - origin) % span - 1
            last, begun = at + step if at <= 2**63 - 1 - step else 2**63 - 1, True
    return n, origin, begun, last
"""
"""The rows that close a batch before them. `origin`: where the raster begins, less whole spans (-1: at the first row);
`last`: the last time of the batch that has `begun`.
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

    def of(self, old: int, passes: np.ndarray) -> Changes:
        """Those by which any of some rows comes or leaves; `old` rows had come before."""
        counts = self.counts(old, passes)
        some = np.flatnonzero((counts[0] > 0) | (counts[1] > 0))
        return Changes(self.at[some], self.event[some], self.come[some], self.gone[some])

    def counts(self, old: int, passes: np.ndarray | None = None) -> tuple[Ints, Ints]:
        """How many rows come and leave with each; None: of all rows."""
        if passes is None:
            return np.diff(self.come, prepend=old), np.diff(self.gone, prepend=0)
        before = np.concatenate([[0], np.cumsum(passes)])
        return np.diff(before[self.come], prepend=before[old]), np.diff(before[self.gone], prepend=0)

    def stays(self, old: int) -> tuple[Ints | slice, int]:
        """The rows that stay, those that have come first, and how many these are; `old` had come before."""
        begin, end = (int(self.gone[-1]), int(self.come[-1])) if len(self.at) else (0, old)
        return slice(begin, None), end - begin


@dataclass(frozen=True)
class Step:
    """What a window is given with a step: the events taken; when each of its rows, these the last, came; their fields; and
    what it noted of the steps before.
    """

    taken: Taken
    times: Ints
    fields: Sequence[pa.Array]
    noted: Mapping[str, Any]

    @property
    def held(self) -> int:
        """How many rows there were before these events."""
        return len(self.times) - len(self.taken.times)

    @property
    def old(self) -> int:
        """How many of those had come."""
        return self.noted["come"]

    @property
    def arrivals(self) -> Ints:
        """The places of the events taken."""
        return np.arange(len(self.taken.times))

    def each(self, gone: Ints) -> Changes:
        """Each event is a change, by which it comes."""
        return Changes(self.taken.times, self.arrivals, self.held + self.arrivals + 1, gone)

    def closing(self, arrivals: Ints, ends: Ints) -> Changes:
        """Some events close a batch, which comes, and that before it leaves."""
        gone = np.concatenate([[self.old], ends])[:-1].astype(np.int64)
        return Changes(self.taken.times[arrivals], arrivals, ends, gone)

    def stamps(self, time: Expr) -> Ints:
        """The times that the rows carry, or at which they came; raises QueryError where one carries none."""
        if isinstance(time, Now):
            return self.times
        found = evaluate(time, self.fields, len(self.times))
        if found.null_count:
            raise timeless()
        return found.to_numpy(zero_copy_only=False).astype(np.int64, copy=False)


class Moved(NamedTuple):
    """The changes of a step, and what the window notes of it."""

    changes: Changes
    notes: Mapping[str, Any] = {}
    tables: Mapping[str, pa.Table] = {}


def _length(window: Length, step: Step) -> Moved:
    return Moved(step.each(np.maximum(step.held + step.arrivals + 1 - window.size, 0)))


def _length_batch(window: LengthBatch, step: Step) -> Moved:
    come = step.held + step.arrivals + 1
    full = np.flatnonzero((come - step.old) % window.size == 0)
    return Moved(step.closing(full, come[full]))


def _time(window: Time, step: Step) -> Moved:
    return Moved(by_time(step.taken.times, step.times, window.span, step.taken.now))


def by_time(arrived: Ints, times: Ints, span: int, now: int) -> Changes:
    """Rows come one by one, and leave together with those of their instant."""
    held, instants = len(times) - len(arrived), times[: np.searchsorted(times, now - span, "right")] + span
    instants = instants[np.flatnonzero(np.diff(instants, prepend=instants[:1] - 1))]  # each once; times never go back
    at = np.concatenate([instants, arrived])
    event = np.concatenate([np.full(len(instants), TIMER), np.arange(len(arrived))])
    order = np.argsort(at, kind="stable")  # at one instant what leaves is first
    at, event = at[order], event[order]
    return Changes(at, event, held + np.cumsum(event >= 0), np.searchsorted(times, at - span, "right"))


def _time_batch(window: TimeBatch, step: Step) -> Moved:
    """Rows come at the edge after them; at the next one they leave, with or without others that come."""
    span, times, origin, due = window.span, step.times, step.noted["origin"], step.noted["due"]
    if origin is None and len(times):
        origin = int(times[0]) if window.origin is None else window.origin
    edges = edge(origin or 0, span, times[step.old :])
    if due is not None:
        edges = np.maximum(edges, due)  # a clock that jumped has let out what it passed
    different = edges[np.flatnonzero(np.diff(edges, prepend=edges[:1] - 1))]  # as events do, they never go back
    instants = np.unique(np.concatenate([different, different + span, [] if due is None else [due]])).astype(np.int64)
    fired, later = instants[instants <= step.taken.now], instants[instants > step.taken.now]
    come = step.old + np.searchsorted(edges, fired, "right")
    gone = np.concatenate([[step.old], come])[:-1].astype(np.int64)
    notes = {"origin": origin, "due": int(later[0]) if len(later) else None}
    return Moved(Changes(fired, np.full(len(fired), TIMER), come, gone), notes)


def _external(window: ExternalTime, step: Step) -> Moved:
    gone = np.empty(len(step.taken.times), np.int64)
    loop(_EXTERNAL)(step.stamps(window.time), step.held, window.span, 0, gone)
    return Moved(step.each(gone))


def _external_batch(window: ExternalTimeBatch, step: Step) -> Moved:
    """A row that reaches the end of the batch closes it, and is the first of the next."""
    origin, end = step.noted["origin"], step.noted["end"]
    assert not isinstance(window.origin, Expr)
    if origin is None and window.origin is not None:
        origin = window.origin
    ends = np.empty(len(step.taken.times), np.int64)
    n, origin, begun, end = loop(_EXTERNAL_BATCHES)(
        step.stamps(window.time), step.held, window.span, -1 if origin is None else origin % window.span,
        end is not None, 0 if end is None else end, ends,
    )  # fmt: skip
    notes = {"origin": None if origin < 0 else int(origin), "end": int(end) if begun else None}
    return Moved(step.closing(ends[:n] - step.held, ends[:n]), notes)


def _first(window: FirstLength, step: Step) -> Moved:
    """Nothing leaves."""
    return Moved(step.each(np.zeros(len(step.taken.times), np.int64)))


def _once(step: Step) -> Changes:
    """What waits comes now, and what had come leaves, if there is any of them; no event does."""
    found = (np.array([each], np.int64) for each in (step.taken.now, TIMER, step.held, step.old))
    return Changes(*(each[: min(step.held, 1)] for each in found))


_CHANGES: Mapping[type, Callable[[Any, Step], Moved]] = {
    Length: _length,
    LengthBatch: _length_batch,
    Time: _time,
    TimeBatch: _time_batch,
    ExternalTime: _external,
    ExternalTimeBatch: _external_batch,
    FirstLength: _first,
}
IN_BATCHES = (TimeBatch, LengthBatch, ExternalTimeBatch)
"""Those whose rows come when a batch is complete."""


def changes_of(window: WindowSpec | None, step: Step) -> Moved:
    """The changes of a step, and what is to be noted of it."""
    return _CHANGES[type(window)](window, step)


def released_of(window: WindowSpec | None, step: Step) -> Moved:
    """The same of a batch that is let out late, at the step's end; no event comes."""
    assert isinstance(window, TimeBatch)
    now, held = step.taken.now, step.held
    return Moved(_once(step), {"due": edge(step.noted["origin"], window.span, now) if held > step.old else None})


def admitted(window: WindowSpec | None, taken: Taken, held: int) -> Taken:
    """Those of some events that a window takes in which holds so many rows; all others are as if there had been no such event."""
    return taken.until(max(window.size - held, 0)) if isinstance(window, FirstLength) else taken


def time_in(window: WindowSpec | None) -> Expr | None:
    """The time that rows carry, none of which may be null, where a window goes by one."""
    match window:
        case ExternalTime(time=time) | ExternalTimeBatch(time=time):
            # Whether it is null hangs on rows alone, whatever the clock says.
            return None if isinstance(time, Now) else with_time(time, Const(0, LONG))
        case Grouped(inner=inner):
            return time_in(inner)
        case _:
            return None
