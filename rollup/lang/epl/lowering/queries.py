"""Sub-queries → look-ups over an input of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from rollup.engine.expressions import Call, Expr, Slot, inputs_read, walk
from rollup.engine.operators import Operator
from rollup.engine.rows.plans import StoreInput, StreamInput, Subquery
from rollup.engine.rows.running import stands_alone
from rollup.engine.rows.windows.counted import KeepAll
from rollup.engine.types import ANY, BOOL, DataType, Kind, RowType
from rollup.lang.epl.catalog import problem
from rollup.lang.epl.lowering.values.aggregates import collect
from rollup.lang.epl.lowering.values.expressions import condition, key
from rollup.lang.epl.scope import Collected, Scope
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.node import Node
from rollup.lang.epl.tree.streams import FilterSource, Item, Stream


def subquery(query: sm.Query, scope: Scope, mode: Literal["value", "exists", "list", "rows"]) -> Expr:
    """A select inside an expression. It sees the streams around it, its own come first."""
    from rollup.lang.epl.lowering.streams import columns_of, lower_stream

    if len(query.streams) != 1 or query.joins:
        raise problem("a sub-query reads one stream, window or table", query, "join in the outer select")
    if query.selector is not None:
        raise problem(f"a sub-query is no stream: `{query.selector}`", query, "leave it out")
    registry = scope.registry
    stream = query.streams[0]
    found, source = lower_stream(stream, scope, len(scope.sources))
    if isinstance(found, StoreInput):
        found = replace(found, follow=False)
    elif not source.windowed:
        source = replace(source, windowed=True)  # what it aggregates is all that has come
    number = registry.outer + len(registry.own_inputs)
    registry.own_inputs.append(found)
    inner = replace(
        scope, sources=(*scope.sources, source), outer=len(scope.sources), slots=None, no_aggregates="in this where"
    )
    where = condition(query.where, inner) if query.where is not None else None
    keys = tuple(key(value, inner) for grouping in query.group_by for value in grouping.values)
    calls, slots = collect([item.value for item in query.items] + [query.having], inner, 0, keys)
    folded = tuple(each.call for each in calls)
    if folded and not keys:
        inner = replace(inner, sources=(*scope.sources, replace(source, optional=True)))  # there may be no row
    selecting = replace(inner, slots=slots)
    having = condition(query.having, selecting) if query.having is not None else None
    columns, names = columns_of(query.items, selecting)
    _check_columns(query, columns, calls, len(scope.sources), bool(keys))
    whole = any(isinstance(item.value, (ex.Star, ex.StreamStar)) for item in query.items)
    asked = Subquery(number, mode, tuple(columns), where, keys, folded, having, whole)
    if isinstance(found, StreamInput) and found.window is None:
        registry.own_inputs[number - registry.outer] = _unbounded(found, asked, stream, len(scope.sources))
    registry.lookups.append(asked)
    from rollup.engine.expressions import Ask

    return Ask(len(registry.lookups) - 1, _type(columns, names, mode))


def keys_of(table: str, at: Node, scope: Scope) -> Expr:
    """The keys of the rows of a table, oldest row first; where it has several, each a list of their values.

    Raises PlanError for a table without keys.
    """
    keys = scope.catalog.store(table, at).keys
    if not keys:
        raise problem(f"`{table}` has no keys", at, "create table T(name type primary key, …)")
    items = tuple(Item(ex.Reference(key, at=at.at), at=at.at) for key in keys)
    query = sm.Query(items, (Stream(FilterSource(table, at=at.at), at=at.at),), at=at.at)
    found = subquery(query, scope, "list")
    if len(keys) == 1:
        return found
    apart = Operator("the values of rows", lambda rows: [list(row.values) for row in rows])
    return Call(apart, (found,), DataType(Kind.LIST, element=DataType(Kind.LIST, element=ANY)))


def _check_columns(
    query: sm.Query, columns: Sequence[Expr], calls: Sequence[Collected], own: int, grouped: bool
) -> None:
    """Raise PlanError where one column of a sub-query is of all rows and another of one, or `*` is not the only one."""
    if len(query.items) > 1 and any(isinstance(item.value, (ex.Star, ex.StreamStar)) for item in query.items):
        raise problem("`*` stands alone in a sub-query", query, "name the columns")
    for each in calls:
        if any(place < own for place in inputs_read([*each.call.args, each.call.where])):
            raise problem(f"`{each.text}` adds up a property of the outer statement", query, "add it up outside")
    adds = [any(isinstance(each, Slot) for each in walk(column)) for column in columns]
    reads = [inputs_read([column]) for column in columns]
    alone = not grouped and any(adds) and any(read and not added for read, added in zip(reads, adds, strict=True))
    if alone or (adds and adds[0] and any(own in read for read in reads)):
        raise problem(
            "a sub-query has a column that is of no single row beside aggregates", query, "first(x), or group by it"
        )


def _unbounded(input: StreamInput, asked: Subquery, stream: Stream, outer: int) -> StreamInput:
    """The input of a sub-query over a stream without a window: one that aggregates all that has come, or asks whether
    anything has. Its aggregates are kept up without the rows where they ask for nothing else."""
    parts = [asked.where, asked.having, *asked.columns, *asked.keys]
    parts += [part for call in asked.calls for part in (*call.args, call.where)]
    alone = not any(place < outer for place in inputs_read(parts))
    aggregated = bool(asked.calls) and not inputs_read([*asked.columns, asked.having])
    if not alone or not (aggregated or (asked.mode == "exists" and asked.whole)):
        raise problem("a sub-query over a stream needs a window", stream, "Stream#lastevent, Stream#keepall")
    return input if stands_alone(asked, input, outer) else replace(input, window=KeepAll())


def _type(columns: list[Expr], names: list[str], mode: str) -> DataType:
    if mode == "exists":
        return BOOL
    if len(columns) == 1:
        one = columns[0].type
    else:
        one = RowType("subquery", {name: column.type for name, column in zip(names, columns, strict=True)}).data_type
    return DataType(Kind.LIST, element=one) if mode in ("list", "rows") else one
