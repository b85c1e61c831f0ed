"""Which core runs a statement over one stream."""

from __future__ import annotations

from rollup.engine.columns.cores.folded import Folded, folded
from rollup.engine.columns.cores.projecting import FilterProject, filter_project
from rollup.engine.columns.cores.queueable import may_hold
from rollup.engine.columns.cores.queued import aggregates, queued
from rollup.engine.columns.cores.selected import Selected, selected
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import RowType


def over_stream(plan: Select, stream: RowType) -> FilterProject | Folded | Selected | str:
    """The core of a statement over one stream whose rows leave at once, or the first reason against it."""
    if _leaving(plan):
        return queued(plan, stream)
    input = plan.inputs[0]
    if isinstance(input, StreamInput) and isinstance(input.window, KeepAll) and not aggregates(plan):
        return selected(plan, stream, False)
    found = folded(plan, len(stream.fields)) if aggregates(plan) else filter_project(plan)
    if not isinstance(found, str) or not isinstance(input, StreamInput):
        return found
    if aggregates(plan) and may_hold(input.window):
        return queued(plan, stream)
    return selected(plan, stream, False)


def _leaving(plan: Select) -> bool:
    """Whether it matters which rows leave a window together, or that they do; or that some take their places unseen."""
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or not may_hold(input.window):
        return False
    each, window = plan.grouping is None and not plan.total, input.window
    if not isinstance(window, Length | Time) or not aggregates(plan) or (each and plan.emitted != "new"):
        return True
    return isinstance(window, Length) and plan.where is not None
