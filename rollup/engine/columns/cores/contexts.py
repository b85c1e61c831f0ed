"""Which core runs a statement in a context."""

from __future__ import annotations

from collections.abc import Mapping

from rollup.engine.columns.cores.lifecycle_planning import lifecycle_statement
from rollup.engine.columns.cores.lifecycle_statement import LifecycleStatement
from rollup.engine.columns.cores.partition_totals import PartitionTotals, partition_totals
from rollup.engine.columns.cores.partitioned import Partitioned, partitioned
from rollup.engine.rows.contexts.levels import Context, Lived
from rollup.engine.rows.plans import Select
from rollup.engine.types import RowType


def in_context(
    plan: Select, context: Context, reads: Mapping[str, RowType]
) -> PartitionTotals | Partitioned | LifecycleStatement | str:
    """The core of a statement in a context, or the first reason against it."""
    if plan.join is not None:
        return "a join in a context"
    if len(reads) != 1:
        return "a pattern over several streams in a context"
    ((stream, type),) = reads.items()
    if len(context.levels) == 1 and isinstance(context.levels[0][1], Lived):
        return lifecycle_statement(plan, context, type)
    if plan.rate.limited:
        return partition_totals(plan, context, type)
    return partitioned(plan, context, stream, type)
