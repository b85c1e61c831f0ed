"""The clock of a core between batches: when something is due next, and what a clock that jumped past it brings.

A jump lets everything out at once and late, at the instant the clock has now, as the row executor does.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Core, Output
from rollup.engine.columns.cores.lifecycle_statement import LifecycleStatement
from rollup.engine.columns.cores.of_matches import OfMatches
from rollup.engine.columns.cores.partition_totals import PartitionTotals
from rollup.engine.columns.cores.partitioned import Partitioned
from rollup.engine.columns.cores.prior_access import PriorAccess
from rollup.engine.columns.cores.selected import Selected
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.timers import Phase, edge


def phase(core: Core) -> Phase:
    """When, at one instant, what the clock brings of a core comes."""
    if isinstance(core, PriorAccess | OfMatches):
        return phase(core.main)
    if isinstance(core, LifecycleStatement):
        return Phase.CONTEXT
    ticks = isinstance(core, PartitionTotals) or (isinstance(core, Selected) and core.clocked)
    return Phase.OUTPUT if ticks else Phase.WINDOW


def dues(core: Core, state: State) -> dict[Phase, int | None]:
    """The next instants at which a core has something to do without an event."""
    match core:
        case PriorAccess(window=None) | OfMatches():
            return dues(core.main, state.held()["main"])
        case Selected():
            return core.dues(state)
        case _:
            return {phase(core): _due(core, state)}


def _due(core: Core, state: State) -> int | None:
    match core:
        case PriorAccess(window=None):
            return None
        case PriorAccess():
            return _leaves(core.window, state.tables["content"])
        case Partitioned():
            return dues(core.inner, state.held()["core"]).get(Phase.WINDOW)
        case LifecycleStatement():
            return core.due(state)
        case PartitionTotals():
            clocks = state.tables["clocks"].column("due")
            return clocks[0].as_py() if len(clocks) else None
        case _:
            return None


def _leaves(window: WindowSpec | None, held: pa.Table) -> int | None:
    """When rows of a window leave by themselves."""
    return held.column("time")[0].as_py() + window.span if isinstance(window, Time) and held.num_rows else None


def late(core: Core, state: State, phase: Phase, now: int, types: Sequence[pa.DataType]) -> tuple[State, Output]:
    """What is due by `now`, at `now`."""
    nothing = Batch.nothing(types, now)
    match core:
        case PriorAccess(window=None) | OfMatches():
            held = state.held()
            inner, output = late(core.main, held["main"], phase, now, core.kinds)
            return state.instead({**held, "main": inner}), output
        case Selected() | Partitioned(inner=Selected()):
            return core.late(state, phase, nothing)
        case LifecycleStatement():
            return core.step(core.late(state, now), nothing)
        case PartitionTotals():
            return _shown(core, state, now, nothing)
        case _:
            return core.step(state, nothing)


def _shown(core: PartitionTotals, state: State, now: int, nothing: Batch) -> tuple[State, Output]:
    """Each partition that is due is shown once; its clock goes on in whole spans from when it was due."""
    clocks = state.tables["clocks"]
    dues = clocks.column("due").to_numpy()
    late = dues <= now
    shown = clocks.set_column(0, clocks.schema.field(0), pa.array(np.where(late, now, dues)))
    after, output = core.step(State({**state.tables, "clocks": shown}, state.scalars), nothing)
    goes_on = np.where(late, edge(dues, core.span, now), dues)
    partitions = clocks.column("partition").to_numpy()
    order = np.lexsort((partitions, goes_on))
    clocks = pa.table({"due": goes_on[order], "partition": partitions[order]})
    return State({**after.tables, "clocks": clocks}, after.scalars), output
