"""The state of a join, read from the row executor's snapshot of a statement: the rows of both windows, and its groups."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.folded_joins import FoldedJoin
from rollup.engine.columns.cores.joined import Join
from rollup.engine.columns.running.adopting_folds import (
    INPUTS,
    KEPT,
    columns_of,
    groups_of,
    groups_table,
)
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.state import State


def joined_state(core: Join, kept: Any, now: int) -> State:
    """The rows of both windows; when they came matters where time lets them out."""
    tables = list[pa.Table]()
    for side, input in zip(core.sides, kept[INPUTS], strict=True):
        held = input[0] or ()
        if isinstance(side.window, Grouped):
            held = [row for _, inner in held for row in inner]
        columns, times = columns_of(held, side.timed, side.type, now)
        tables.append(side.rows(columns, times, np.arange(len(times))))
    return core.holding(tables, now)


def folded_join_state(core: FoldedJoin, kept: Any, now: int, wanted: Sequence[Any] = ()) -> State:
    """These, and the groups; `wanted`: keys of groups that come first, be they empty."""
    start, windows = core.start(now), joined_state(core.join, kept, now)
    found = groups_of(core, kept[KEPT][0], wanted) if core.calls else []
    groups = groups_table(core, found, start.tables["groups"].schema)
    return State({**start.tables, **windows.tables, "groups": groups}, windows.scalars)
