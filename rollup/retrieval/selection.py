"""What follows the rows of an answer: `on … select … group by … having … order by … limit … offset`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from sqlglot import exp

from rollup.core.dialects import Checked, InOrder, LastBy, Mean, Widened
from rollup.core.errors import QueryError
from rollup.engine.aggregates.partials import double, some
from rollup.plan.aggregation import TIMESTAMP, column
from rollup.plan.app import Item, Selection, check_columns, position
from rollup.plan.expressions import Scope, bind, condition, ranked
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
    raise QueryError(
        "`within`, `per`, `limit` and `offset` of an on-demand query take constants",
        hint="texts stand in quotes, as in per 'days'; a comma stands between two bounds",
    ).at(*position(node))


def shape(
    query: exp.Select, scope: Scope, selection: Selection, star: Sequence[str], order: Sequence[exp.Expr]
) -> exp.Select:
    """A select list and what follows it, put on a query that has FROM and WHERE; `star` is what `*` means.

    An aggregate anywhere, or `group by`, makes groups of rows, and of everything else the value of the newest bucket.
    `order` tells any two rows apart: where the question says no order, or leaves some rows equal, theirs is that, and
    that of groups is by what they are grouped by. Raises PlanError for two columns of one name.
    """
    items = selection.items or tuple(Item(name, column(name)) for name in star)
    check_columns(items)
    bound = {item.name: bind(item.expression, _over_rows(scope, {})) for item in items}
    named = _over_rows(scope, bound)
    groups = [ranked(found.sql, found.type) for found in (bind(node, scope) for node in selection.group_by)]
    rest = [node for node in (selection.having, *(each.this for each in selection.order_by)) if node is not None]
    settle, last = _as_it_is, list(order)
    if groups or any(found.sql.find(exp.AggFunc) for found in (*bound.values(), *(bind(node, named) for node in rest))):
        time = scope.find(exp.column(TIMESTAMP)).sql
        settle, last = partial(_settled, groups=groups, time=time), groups
        query = query.group_by(*groups) if groups else query.having(exp.GT(this=_rows(), expression=_ZERO.copy()))
    settled = {name: Bound(settle(found.sql.copy()), found.type) for name, found in bound.items()}
    query = query.select(*(exp.alias_(found.sql, name, quoted=True) for name, found in settled.items()))
    return _tail(query, named, selection, settle, last)


def _over_rows(scope: Scope, items: Mapping[str, Bound]) -> Scope:
    """The names of rows and of a select list, and aggregates over rows, whose arguments are names of rows first."""
    alone = {("", name): found for name, found in items.items()}
    inner = Scope({**alone, **scope.columns})
    return Scope({**scope.columns, **alone}, lambda call, _: _row_aggregate(call, inner))


def outputs(scope: Scope, selection: Selection, star: Sequence[str]) -> dict[str, Type | None]:
    """The columns that `shape` gives, with their types; None is that of the null literal."""
    items = selection.items or tuple(Item(name, column(name)) for name in star)
    return {item.name: bind(item.expression, _over_rows(scope, {})).type for item in items}


def _as_it_is(node: exp.Expr) -> exp.Expr:
    return node


def _settled(node: exp.Expr, groups: Sequence[exp.Expr], time: exp.Expr) -> exp.Expr:
    """An expression over a group: a column that is neither aggregated nor grouped by is that of the newest bucket."""
    if node in groups or isinstance(node, exp.AggFunc):
        return node
    if isinstance(node, exp.Column):
        return LastBy(this=node.copy(), time=time.copy(), arrival=node.copy())
    for child in list(node.iter_expressions()):
        child.replace(_settled(child, groups, time))
    return node


def _tail(
    query: exp.Select,
    named: Scope,
    selection: Selection,
    settle: Callable[[exp.Expr], exp.Expr],
    last: Sequence[exp.Expr],
) -> exp.Select:
    if selection.having is not None:
        passes = settle(condition(selection.having, named, "`having`"))
        grouped = query.args.get("group") or passes.find(exp.AggFunc)
        query = query.having(passes) if grouped else query.where(passes)
    ordered = list[exp.Expr]()
    for ordering in selection.order_by:
        found = bind(ordering.this, named)
        ordered.append(ranked(settle(found.sql), found.type))
        query = query.order_by(exp.Ordered(this=ordered[-1], desc=ordering.args.get("desc"), nulls_first=True))
    asked = {key.name for key in ordered if isinstance(key, exp.Column)}
    for key in last:
        if key not in ordered and not (isinstance(key, exp.Column) and key.name in asked):
            query = query.order_by(exp.Ordered(this=key.copy(), nulls_first=True))
    for clause in ("limit", "offset"):
        node = getattr(selection, clause)
        if node is not None:
            value = constant(node)
            if not isinstance(value, int) or isinstance(value, bool) or value < 0:
                raise QueryError(f"`{clause}` takes a whole number from 0, not {value!r}", hint=f"e.g. {clause} 10").at(
                    *position(node)
                )
            query = query.limit(value) if clause == "limit" else query.offset(value)
    return query


_ZERO = exp.Literal.number(0)


def _rows() -> exp.Count:
    """How many rows a group has: the whole answer, aggregated without `group by`, has no row when this is 0."""
    return exp.Count(this=exp.Star())


def _row_aggregate(call: exp.Anonymous, scope: Scope) -> Bound | None:
    """Aggregates over the rows of an answer; these are SQL's own."""
    name = call.name.lower()
    if name == "count":
        inner = _of_a_row(call, scope).sql if call.expressions else exp.Star()
        return Bound(exp.Count(this=inner), Type.LONG)
    found = _ROW_AGGREGATES.get(name)
    if found is None:
        return None
    if len(call.expressions) != 1:
        raise QueryError(f"{call.name} takes 1 argument, not {len(call.expressions)}")
    argument = _of_a_row(call, scope)
    if argument.type is None or (name not in ("min", "max", "distinctcount") and not argument.type.numeric):
        raise QueryError(f"{call.name} takes a number, not {argument.type}")
    kind = found[1] or argument.type
    if name == "sum":
        kind = argument.type.total
        if kind.exact:
            return Bound(exp.cast(exp.Sum(this=argument.sql), kind.sql), kind)
        if kind is Type.LONG:
            return Bound(Checked(this=exp.Sum(this=Widened(this=argument.sql)), to=kind.sql), kind)
    if name == "avg" and argument.type.exact:
        total, count = exp.Sum(this=argument.sql), exp.Count(this=argument.sql.copy())
        return Bound(Mean(this=total, expression=count, to=argument.type.mean.sql), argument.type.mean)
    if name == "avg" and argument.type.integral:
        return Bound(exp.cast(exp.Avg(this=argument.sql), kind.sql), kind)
    return Bound(exp.cast(found[0](argument.sql), kind.sql), kind)


def _of_a_row(call: exp.Anonymous, scope: Scope) -> Bound:
    argument = bind(call.expressions[0], scope)
    if argument.sql.find(exp.AggFunc):
        raise QueryError(f"{call.name}(…) is over rows, and its argument is an aggregate already").at(*position(call))
    return argument


def is_over_rows(node: exp.Expr) -> bool:
    """Whether an expression is an aggregate over the rows of an answer."""
    return isinstance(node, exp.Anonymous) and node.name.lower() in (*_ROW_AGGREGATES, "count")


_ROW_AGGREGATES = {
    "sum": (lambda x: InOrder(this=double(x)), None),
    "avg": (
        lambda x: exp.Div(this=InOrder(this=double(x)), expression=some(exp.Count(this=x.copy())), typed=False),
        Type.DOUBLE,
    ),
    "min": (lambda x: exp.Min(this=x), None),
    "max": (lambda x: exp.Max(this=x), None),
    "stddev": (lambda x: InOrder(this=double(x), name="STDDEV_POP"), Type.DOUBLE),
    "distinctcount": (lambda x: exp.Count(this=exp.Distinct(expressions=[x])), Type.LONG),
}
