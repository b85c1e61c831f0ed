"""Which patterns run over columns, and what statements see of their matches: the fields of all events, one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rollup.engine.columns.cores.covering import against, first, unshown
from rollup.engine.columns.cores.followed import followed, places_of
from rollup.engine.columns.cores.matched import Matched
from rollup.engine.columns.cores.renewed import Event, element, renewed
from rollup.engine.columns.cores.renewing import Renewing
from rollup.engine.columns.cores.rewriting import of_fields
from rollup.engine.conjunctions import conjunction
from rollup.engine.expressions import Call, Expr, Field, inside
from rollup.engine.rows.patterns.algebra import Pattern
from rollup.engine.rows.plans import PatternInput, Select
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.types import RowType

Places = Mapping[Event, int]
"""Where the fields of an event of a match begin among those of all."""


def matched(plan: Select, reads: Mapping[str, RowType]) -> Matched | Renewing | str:
    """The core of a pattern over streams with those fields, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, PatternInput) or input.window is not None or input.prior:
        return "a pattern with a window"
    if plan.levels or plan.grouping or plan.lookups or plan.rate.limited:
        return "aggregates, look-ups or an output rate over a pattern"
    pattern = pattern_of(plan, input.pattern, reads)
    if isinstance(pattern, str):
        return pattern
    found = of_events(plan, places_in(pattern))
    columns = None if plan.projection.whole else found.columns
    reason = first(map(unshown, columns or ())) or against(found.having)
    return reason or replace(pattern, columns=columns, test=found.having)


def pattern_of(
    plan: Select, pattern: Pattern, reads: Mapping[str, RowType], part: int | None = None
) -> Matched | Renewing | str:
    """The core of a pattern whose matches are shown as whole rows, or the first reason against it; `part`: which field of all
    events is the number of their partition.
    """
    return renewed(plan, pattern, reads, part) or followed(pattern, reads, part)


def places_in(pattern: Matched | Renewing) -> Places:
    """Where the fields of each event of a match begin."""
    return dict(zip(pattern.events, places_of(pattern.types), strict=False))


def of_events(plan: Select, places: Places) -> Projection:
    """What a pattern shows over the fields of all its events; `where` and `having` are one condition."""
    projection = plan.projection
    columns = tuple(flat(each, places) for each in projection.columns)
    conditions = [flat(each, places) for each in (plan.where, projection.having) if each is not None]
    return Projection(columns, conjunction(conditions))


def flat(expr: Expr, places: Places) -> Expr:
    """A column of the result over the fields of all events, where those of each begin at a place."""
    if isinstance(expr, Call) and expr.op.field is not None:
        event = element(expr.args[0])
        if event is not None and event in places:
            return Field(0, places[event] + expr.op.field, expr.type)
    if isinstance(expr, Field) and expr.type.row is not None:
        return of_fields(expr.type, places[expr.index, None])
    return inside(expr, lambda inner: flat(inner, places))
