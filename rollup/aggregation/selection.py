"""What follows the rows of an answer: `on … select … group by … having … order by … limit … offset`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sqlglot import exp

from rollup.errors import QueryError
from rollup.plan.aggregation import column
from rollup.plan.app import Selection, position
from rollup.plan.expressions import Scope, bind, condition
from rollup.plan.functions import Bound
from rollup.plan.types import Type


def constant(node: exp.Expr) -> object:
    """The value of a constant of a question. Raises QueryError for anything else."""
    if isinstance(node, exp.Literal):
        if node.is_string:
            return node.name
        return int(node.name) if node.is_int else float(node.name)
    if isinstance(node, exp.Neg):
        inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
        value = constant(inner)
        return -value if isinstance(value, (int, float)) else value
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    raise QueryError("`within`, `per`, `limit` and `offset` of an on-demand query take constants").at(*position(node))


def shape(query: exp.Select, scope: Scope, selection: Selection, star: Sequence[str]) -> exp.Select:
    """A select list and what follows it, put on a query that has FROM and WHERE; `star` is what `*` means."""
    with_aggregates = Scope(scope.columns, _row_aggregate)
    if selection.items is None:
        return _tail(query.select(*(column(name) for name in star)), scope, selection, {})
    bound = {item.name: bind(item.expression, with_aggregates) for item in selection.items}
    query = query.select(*(exp.alias_(found.sql, name, quoted=True) for name, found in bound.items()))
    groups = [bind(node, scope).sql for node in selection.group_by]
    grouped = groups or any(found.sql.find(exp.AggFunc) for found in bound.values())
    if grouped:
        for item, found in zip(selection.items, bound.values(), strict=True):
            if not found.sql.find(exp.AggFunc) and found.sql not in groups:
                raise QueryError(f"{item.name!r} is neither aggregated nor in `group by`").at(
                    *position(item.expression)
                )
    return _tail(query.group_by(*groups) if groups else query, with_aggregates, selection, bound)


def _tail(query: exp.Select, scope: Scope, selection: Selection, bound: Mapping[str, Bound]) -> exp.Select:
    named = Scope({**scope.columns, **{("", name): found for name, found in bound.items()}}, scope.aggregates)
    if selection.having is not None:
        passes = condition(selection.having, named, "`having`")
        grouped = query.args.get("group") or passes.find(exp.AggFunc)
        query = query.having(passes) if grouped else query.where(passes)
    for ordering in selection.order_by:
        query = query.order_by(
            exp.Ordered(this=bind(ordering.this, named).sql, desc=ordering.args.get("desc"), nulls_first=True)
        )
    for clause in ("limit", "offset"):
        node = getattr(selection, clause)
        if node is not None:
            value = constant(node)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise QueryError(f"`{clause}` takes a whole number from 0, not {value!r}").at(*position(node))
            query = query.limit(value) if clause == "limit" else query.offset(value)
    return query


def _row_aggregate(call: exp.Anonymous, scope: Scope) -> Bound | None:
    """Aggregates over the rows of an answer; these are SQL's own."""
    name = call.name.lower()
    if name == "count":
        inner = bind(call.expressions[0], scope).sql if call.expressions else exp.Star()
        return Bound(exp.Count(this=inner), Type.LONG)
    found = _ROW_AGGREGATES.get(name)
    if found is None:
        return None
    if len(call.expressions) != 1:
        raise QueryError(f"{call.name} takes 1 argument, not {len(call.expressions)}")
    argument = bind(call.expressions[0], Scope(scope.columns))
    if argument.type is None or (name not in ("min", "max", "distinctcount") and not argument.type.numeric):
        raise QueryError(f"{call.name} takes a number, not {argument.type}")
    kind = found[1] or argument.type
    if name == "sum":
        kind = Type.LONG if argument.type.integral else Type.DOUBLE
    return Bound(exp.cast(found[0](argument.sql), kind.sql), kind)


_ROW_AGGREGATES = {
    "sum": (lambda x: exp.Sum(this=x), None),
    "avg": (lambda x: exp.Avg(this=x), Type.DOUBLE),
    "min": (lambda x: exp.Min(this=x), None),
    "max": (lambda x: exp.Max(this=x), None),
    "stddev": (lambda x: exp.StddevPop(this=x), Type.DOUBLE),
    "distinctcount": (lambda x: exp.Count(this=exp.Distinct(expressions=[x])), Type.LONG),
}
