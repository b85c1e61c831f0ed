"""Expressions made from others, the leaves replaced, what is around them kept; and statements with other expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from rollup.core.descriptions import descendants
from rollup.engine import operators as op
from rollup.engine.expressions import All, Ask, Call, Const, Expr, Field, RowOf, inside
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.plans import Arriving, ContextValue, Select, StreamInput, Subquery
from rollup.engine.rows.selects.grouping import Level
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.combined import Derived
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import BOOL, DataType, RowType

_HELD = KeepAll, Length, Time


def of_one_event(expr: Expr) -> Expr:
    """An expression over the fields of one event, whichever input it was of."""
    return Field(0, expr.index, expr.type) if isinstance(expr, Field) else inside(expr, of_one_event)


def calls_of(lookup: Subquery) -> tuple[AggregateCall, ...]:
    """The aggregates of a sub-query, over its events alone."""

    def own(call: AggregateCall) -> AggregateCall:
        where = None if call.where is None else of_one_event(call.where)
        return replace(call, args=tuple(map(of_one_event, call.args)), where=where)

    return tuple(map(own, lookup.calls))


def of_arrivals(plan: Select) -> Select:
    """A statement that shows only rows that come, without its asking in what it shows whether they do."""
    asks = bool(plan.lookups) and all(isinstance(each, Arriving) for each in plan.lookups)
    if (
        not asks
        or plan.tells_what_leaves
        or any(isinstance(each, Ask) for each in descendants([plan.where, plan.levels, plan.grouping]))
    ):
        return plan

    def known(expr: Expr) -> Expr:
        return Const(True, BOOL) if isinstance(expr, Ask) else inside(expr, known)

    order = tuple(map(known, plan.projection.order))
    return replace(plan, projection=replace(plan.projection.changed(known), order=order), lookups=())


def of_numbers(plan: Select) -> Select:
    """A statement over the row of numbers about a window as one of a total over that window, where those are the same."""
    window = plan.inputs[0].window if isinstance(plan.inputs[0], StreamInput) else None
    if not isinstance(window, Derived) or window.quiet or window.key or not isinstance(window.inner, _HELD):
        return plan
    asks = any(not isinstance(each, ContextValue) for each in plan.lookups)
    bare = len(plan.inputs) == 1 and not (plan.own_inputs or asks or plan.levels or plan.grouping or plan.grouped)
    if not bare or plan.rate.limited:
        return plan
    columns = window.columns

    def number(expr: Expr) -> Expr:
        return columns[expr.index] if isinstance(expr, Field) else inside(expr, number)

    read = rewritten(plan, number)
    conditions = [each for each in (read.where, read.projection.having) if each is not None]
    having = All(tuple(conditions)) if conditions else None
    shown = replace(read.projection, columns=columns, whole=False) if plan.projection.whole else read.projection
    return replace(
        read,
        inputs=(replace(plan.inputs[0], window=window.inner),),
        where=None,
        levels=(Level((), window.calls),),
        total=True,
        projection=replace(shown, having=having),
    )


def of_fields(kind: DataType, begin: int = 0, input: int = 0) -> Call:
    """A row as one of the fields of an input from a place on."""
    assert kind.row is not None
    fields = enumerate(kind.row.fields.values(), begin)
    return Call(op.ROW, tuple(Field(input, place, each) for place, each in fields), kind)


def of_rows(plan: Select) -> Select:
    """A statement that shows rows of its inputs as rows of their fields; where a join may have none of an input, as it was."""
    if plan.join is not None and any(side.kind != "inner" for side in plan.join.sides):
        return plan

    def shown(expr: Expr) -> Expr:
        return of_fields(expr.type, input=expr.input) if isinstance(expr, RowOf) and expr.type.row else expr

    return replace(plan, projection=replace(plan.projection, columns=tuple(map(shown, plan.projection.columns))))


def rewritten(plan: Select, change: Callable[[Expr], Expr]) -> Select:
    """A statement with each expression of its columns, conditions and aggregates changed."""

    def several(found: Sequence[Expr]) -> tuple[Expr, ...]:
        return tuple(map(change, found))

    def called(calls: Sequence[AggregateCall]) -> tuple[AggregateCall, ...]:
        return tuple(
            replace(call, args=several(call.args), where=None if call.where is None else change(call.where))
            for call in calls
        )

    grouping = plan.grouping
    return replace(
        plan,
        projection=plan.projection.changed(change),
        where=None if plan.where is None else change(plan.where),
        levels=tuple(replace(each, keys=several(each.keys), calls=called(each.calls)) for each in plan.levels),
        grouping=None
        if grouping is None
        else replace(grouping, dimensions=several(grouping.dimensions), calls=called(grouping.calls)),
    )


def whole_columns(projection: Projection, type: RowType) -> Projection:
    """A projection with the columns of the whole row, where it is that."""
    if not projection.whole:
        return projection
    columns = tuple(Field(0, i, kind) for i, kind in enumerate(type.fields.values()))
    return replace(projection, columns=columns, whole=False)


def aggregates(plan: Select) -> bool:
    """Whether a statement over one stream has aggregates."""
    return isinstance(plan.inputs[0], StreamInput) and (bool(plan.levels) or plan.grouping is not None)
