"""Sub-queries → look-ups over an input of their own."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

from rollup.engine.expressions import Expr, Field, RowOf, walk
from rollup.engine.rows.plans import StoreInput, StreamInput, Subquery
from rollup.engine.rows.running import stands_alone
from rollup.engine.rows.windows.counted import KeepAll
from rollup.engine.types import BOOL, DataType, Kind, RowType
from rollup.lang.epl.catalog import problem
from rollup.lang.epl.lowering.values.aggregates import collect
from rollup.lang.epl.lowering.values.expressions import condition, key
from rollup.lang.epl.scope import Scope
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.streams import Stream


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
    selecting = replace(inner, slots=slots)
    having = condition(query.having, selecting) if query.having is not None else None
    columns, names = columns_of(query.items, selecting)
    folded = tuple(each.call for each in calls)
    whole = any(isinstance(item.value, (ex.Star, ex.StreamStar)) for item in query.items)
    asked = Subquery(number, mode, tuple(columns), where, keys, folded, having, whole)
    if isinstance(found, StreamInput) and found.window is None:
        registry.own_inputs[number - registry.outer] = _unbounded(found, asked, stream, len(scope.sources))
    registry.lookups.append(asked)
    from rollup.engine.expressions import Ask

    return Ask(len(registry.lookups) - 1, _type(columns, names, mode))


def _unbounded(input: StreamInput, asked: Subquery, stream: Stream, outer: int) -> StreamInput:
    """The input of a sub-query over a stream without a window: one that aggregates all that has come, or asks whether
    anything has. Its aggregates are kept up without the rows where they ask for nothing else."""
    parts = [asked.where, asked.having, *asked.columns, *asked.keys]
    parts += [part for call in asked.calls for part in (*call.args, call.where)]
    inside = [each for part in parts if part is not None for each in walk(part)]
    alone = not any(isinstance(each, (Field, RowOf)) and each.input < outer for each in inside)
    rows = [each for part in (*asked.columns, asked.having) if part is not None for each in walk(part)]
    aggregated = bool(asked.calls) and not any(isinstance(each, (Field, RowOf)) for each in rows)
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
