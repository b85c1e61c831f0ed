"""Which statements run over columns: decided once, when a statement is deployed, never for a batch."""

from __future__ import annotations

from collections.abc import Mapping

from rollup.core.descriptions import descendants
from rollup.engine.columns.cores.contexts import in_context
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.covering import against, first, general, too_long
from rollup.engine.columns.cores.joined import joined
from rollup.engine.columns.cores.of_matches import of_matches
from rollup.engine.columns.cores.patterns import matched
from rollup.engine.columns.cores.prior_access import prior_access
from rollup.engine.columns.cores.rewriting import aggregates
from rollup.engine.columns.cores.selected import over_stream
from rollup.engine.columns.cores.sub_queries import with_sub_queries
from rollup.engine.columns.finishing import against_finishing, as_read
from rollup.engine.expressions import Field
from rollup.engine.rows.contexts.levels import Context
from rollup.engine.rows.plans import Filter, PatternInput, Select, StreamInput
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.rows.windows.counted import KeepAll
from rollup.engine.types import DataType, RowType


def core_of(plan: object, reads: Mapping[str, RowType], context: Context | None = None) -> Core | str:
    """The core that runs a statement over the events of the streams that it reads, or the first reason why none does."""
    if not isinstance(plan, Select):
        return f"the statement {type(plan).__name__}"
    reason = against_finishing(plan) or _unending(plan)
    if reason is not None:
        return reason
    ordered = bool(plan.finish.descending)
    plan = as_read(plan, reads)
    if plan.rate != Rate() and not plan.rate.limited:
        return "output after something"
    reason = general(plan) or _unread(plan, reads, context)
    if reason is not None:
        return reason
    if _hears_leaving(plan):
        return "the remove stream"
    if plan.own_inputs:
        return with_sub_queries(plan, reads) if context is None else "a sub-query in a context"
    if context is not None:
        return in_context(plan, context, reads)
    if plan.join is not None or len(plan.inputs) != 1:
        return joined(plan, reads, ordered)
    if isinstance(input := plan.inputs[0], PatternInput):
        if input.window is None and not plan.levels and plan.grouping is None:
            return matched(plan, reads)
        return "order by of aggregates or a window over a pattern" if ordered else of_matches(plan, reads)
    ((_, stream),) = reads.items()
    if plan.lookups:
        return prior_access(plan, stream, ordered)
    return over_stream(plan, stream, ordered)


def _unending(plan: Select) -> str | None:
    """The first reason against the spans of its windows, patterns and outputs."""
    spans = (getattr(each, "span", None) for each in descendants(plan))
    return first(too_long(span) for span in spans if isinstance(span, int))


def _unread(plan: Select, reads: Mapping[str, RowType], context: Context | None) -> str | None:
    """The first reason against what is read of fields that have no column; those that nobody reads are no reason."""
    found = list[DataType]()
    if plan.projection.whole:
        found += [kind for stream in reads.values() for kind in stream.fields.values()]
    for part in descendants([plan.inputs, plan.own_inputs, context]):
        if isinstance(part, Filter) and part.stream in reads:
            kinds = list(reads[part.stream].fields.values())
            found += [kinds[place] for place, _ in part.equals]
    return first(against(Field(0, 0, kind)) for kind in found)


def _hears_leaving(plan: Select) -> bool:
    """Whether it asks for rows that leave where columns have none of them."""
    if plan.emitted == "new":
        return False
    input = plan.inputs[0]
    if not isinstance(input, StreamInput):
        return True
    if plan.join is not None:
        return False
    return plan.emitted == "old" and isinstance(input.window, KeepAll | None) and not aggregates(plan)


def covers(plan: object, reads: Mapping[str, RowType], context: Context | None = None) -> str | None:
    """The first reason against running a statement over columns; None when it is covered."""
    found = core_of(plan, reads, context)
    return found if isinstance(found, str) else None
