"""Aggregates with keys of their own (`group_by:`) for rows that stand for themselves: a row sees, side by side, the values that each
set of keys has for it.

State: that of each level, by its number, as of grouping sets.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from rollup.engine.columns.cores.covering import against, first, unshown
from rollup.engine.columns.cores.folded import Folded, folded, shifted
from rollup.engine.columns.cores.leveled import Levels
from rollup.engine.columns.cores.moving import moving
from rollup.engine.columns.cores.projecting import Made
from rollup.engine.columns.cores.queueable import unlisted
from rollup.engine.columns.cores.queued import queued
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.types import RowType


@dataclass(frozen=True)
class Beside(Levels):
    """The projection sees the fields of the event, then the calls of one level behind those of another."""

    width: int

    def _together(self, made: Sequence[Made]) -> Made:
        """The rows are the same at each level."""
        values = (column for each in made for column in each.columns[self.width :])
        columns: list[pa.Array] = [*made[0].columns[: self.width], *values]
        return replace(made[0], columns=columns)


def beside(plan: Select, stream: RowType) -> Beside | str:
    """The core of aggregates by several keys of their own over a stream, or the first reason against it."""
    if plan.total or plan.grouped or plan.projection.whole:
        return "aggregates with a grouping of their own, other than in a row for each row"
    having, input = plan.projection.having, plan.inputs[0]
    window = input.window if isinstance(input, StreamInput) else None
    reason = first(map(unshown, plan.projection.columns)) or against(having) or unlisted(plan.projection, window)
    if reason is not None:
        return reason
    levels = list[Folded]()
    for level in plan.levels:
        core = _alone(replace(plan, levels=(level,), projection=Projection(())), stream)
        if isinstance(core, str):
            return core
        levels.append(core)
    width = len(stream.fields)
    return Beside(tuple(levels), shifted(plan.projection, width), plan.emitted, width)


def _alone(plan: Select, stream: RowType) -> Folded | str:
    """The core of one level, which keeps the rows of its window whole."""
    input = plan.inputs[0]
    if isinstance(input, StreamInput) and input.window is None:
        return folded(plan, len(stream.fields))
    core = queued(plan, stream)
    return moving(plan, stream) if isinstance(core, str) else core
