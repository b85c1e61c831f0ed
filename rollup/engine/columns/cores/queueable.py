"""Which windows let rows out in the order in which they came, so that a queue holds them."""

from __future__ import annotations

from rollup.engine.columns.cores.changes import IN_BATCHES
from rollup.engine.columns.cores.conditions import condition_of
from rollup.engine.columns.cores.covering import against, makes_lists
from rollup.engine.expressions import Now
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import FirstLength, Length, LengthBatch
from rollup.engine.rows.windows.external import ExternalTime, ExternalTimeBatch, ExternalTimeBatchTimeout
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import Time, TimeBatch
from rollup.engine.types import Kind

_LONGEST = 256
LONG_LISTS = f"lists of what a window holds, other than one of at most {_LONGEST} rows, of all or of a key"
"""The reason against such lists."""


def unheld(window: WindowSpec | None) -> str | None:
    """The first reason why no queue holds the rows of a window."""
    match window:
        case Length() | LengthBatch(early=False) | Time(size=None):
            return None
        case TimeBatch(eager=False, forced=False, each=False, early=False):
            return None
        case FirstLength():
            return None
        case ExternalTimeBatchTimeout():
            return "batches by a time that rows carry that also the clock lets out"
        case ExternalTimeBatch(origin=origin) if origin is not None and not isinstance(origin, int):
            return "batches whose raster begins by a value"
        case ExternalTime(time=time) | ExternalTimeBatch(time=time):
            known = time.type.kind in (Kind.INT, Kind.LONG, Kind.TIMESTAMP)
            reason = None if isinstance(time, Now) else against(time)
            return reason or (None if known else f"a window by a time that is a {time.type}")
        case _:
            condition = condition_of(window)
            return f"the window {type(window).__name__}" if condition is None else condition.against()


def may_hold(window: WindowSpec | None) -> bool:
    """Whether a queue holds the rows of a window."""
    return unheld(window) is None


def batched(window: WindowSpec | None) -> bool:
    """Whether rows wait for their batch."""
    return isinstance(window.inner if isinstance(window, Grouped) else window, IN_BATCHES)


def short(window: WindowSpec | None, once: bool = False) -> bool:
    """Whether lists of what a window holds cannot be long; `once`: each row that has come is in one list, until others leave."""
    inner = window.inner if isinstance(window, Grouped) else window
    few = isinstance(inner, Length | LengthBatch) and inner.size <= _LONGEST
    return few or (once and isinstance(window, IN_BATCHES))


def unlisted(projection: Projection, window: WindowSpec | None, by_group: bool = False) -> str | None:
    """The reason against lists that are made of what a window holds, where these may be long."""
    return LONG_LISTS if any(map(makes_lists, projection.evaluated)) and not short(window, by_group) else None
