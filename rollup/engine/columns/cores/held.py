"""Lists of what a window holds, and the time that its rows carry."""

from __future__ import annotations

from rollup.engine.columns.cores.covering import makes_lists
from rollup.engine.expressions import Const, Expr, Now, with_time
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import Length, LengthBatch
from rollup.engine.rows.windows.external import ExternalTime, ExternalTimeBatch
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.timed import TimeBatch
from rollup.engine.types import LONG

_LONGEST = 256
LONG_LISTS = f"lists of what a window holds, other than one of at most {_LONGEST} rows, of all or of a key"
"""The reason against such lists."""


def short(window: WindowSpec | None, once: bool = False) -> bool:
    """Whether lists of what a window holds cannot be long; `once`: each row that has come is in one list, until others leave."""
    inner = window.inner if isinstance(window, Grouped) else window
    few = isinstance(inner, Length | LengthBatch) and inner.size <= _LONGEST
    return few or (once and isinstance(window, TimeBatch | LengthBatch | ExternalTimeBatch))


def unlisted(projection: Projection, window: WindowSpec | None, by_group: bool = False) -> str | None:
    """The reason against lists that are made of what a window holds, where these may be long."""
    return LONG_LISTS if any(map(makes_lists, projection.evaluated)) and not short(window, by_group) else None


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
