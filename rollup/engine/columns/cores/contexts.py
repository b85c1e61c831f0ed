"""Which core runs a statement in a context."""

from __future__ import annotations

from rollup.engine.columns.cores.partition_totals import PartitionTotals, partition_totals
from rollup.engine.columns.cores.partitioned import Partitioned, partitioned
from rollup.engine.rows.contexts.levels import Context
from rollup.engine.rows.plans import Select
from rollup.engine.types import RowType


def in_context(plan: Select, context: Context, type: RowType) -> PartitionTotals | Partitioned | str:
    """The core of a statement in a context, or the first reason against it."""
    if plan.rate.limited:
        return partition_totals(plan, context, type)
    return partitioned(plan, context, type)
