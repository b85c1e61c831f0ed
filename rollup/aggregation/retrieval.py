"""`within … per …` as one SQL tree: stored rows of the level, the open rows of it and all finer levels, one row a bucket.

The tree reads two relations, `closed` (a level's table) and `open` (see `open_rows`), and is printed in any of the
three dialects. A bucket is in the answer iff start <= AGG_TIMESTAMP < end, by its start at the level asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

import pyarrow as pa
import pyarrow.compute as pc
from sqlglot import exp

from rollup.aggregation import buckets
from rollup.aggregation.aggregates import EXACT, WIDE
from rollup.aggregation.cascade import merged_rows
from rollup.aggregation.dialects import to_sql
from rollup.aggregation.engine import Engine
from rollup.aggregation.state import State
from rollup.calendar import Duration, within_range
from rollup.errors import QueryError, RollupError
from rollup.plan.aggregation import EVENTS, TIMESTAMP, Aggregation, Output, column, read_column
from rollup.plan.app import Retrieval, Selection, position
from rollup.plan.expressions import Scope, bind, condition
from rollup.plan.functions import Bound
from rollup.plan.types import Type

LEVEL = "AGG_LEVEL"
START, END = exp.Placeholder(this="start"), exp.Placeholder(this="end")
EXTRA = {EVENTS: Type.LONG}
"""Columns that answer by name although `select *` does not show them."""


def bucket_column(level: Duration) -> str:
    """The column of an open row that has the start of its bucket at `level`."""
    return f"AGG_IN_{level.table_suffix}"


def open_rows(engine: Engine, aggregation: Aggregation, state: State) -> pa.Table:
    """All open rows in one table: AGG_LEVEL, the state columns, and each row's bucket start at every level from its own.

    It is both what a restart loads and what a reader adds to the stored rows.
    """
    tables = [state.open[level].append_column(LEVEL, pa.array([int(level)] * state.open[level].num_rows, pa.int32())) for level in aggregation.levels]
    return engine.run(_open_sql(aggregation), rows=pa.concat_tables(tables)).cast(open_schema(aggregation))


@lru_cache(maxsize=256)
def _open_sql(aggregation: Aggregation) -> str:
    columns: list[exp.Expression] = []
    for level in aggregation.levels:
        begin = buckets.start(column(TIMESTAMP), level, aggregation.row_zone)
        own = exp.LTE(this=column(LEVEL), expression=exp.Literal.number(int(level)))
        columns.append(exp.Case(ifs=[exp.If(this=own, true=begin)]).as_(bucket_column(level), quoted=True))
    return to_sql(exp.select("*", *columns).from_("rows"))


def open_schema(aggregation: Aggregation) -> pa.Schema:
    """Arrow schema of `open_rows`."""
    cut = [(bucket_column(level), pa.int64()) for level in aggregation.levels]
    return pa.schema([*aggregation.state_schema, pa.field(LEVEL, pa.int32()), *(pa.field(*pair) for pair in cut)])


def state_rows(aggregation: Aggregation, rows: pa.Table) -> Mapping[Duration, pa.Table]:
    """The open rows of each level out of the table that `open_rows` made."""
    return {
        level: rows.filter(pc.equal(rows[LEVEL], int(level))).select(aggregation.state_schema.names)
        for level in aggregation.levels
    }


@dataclass(frozen=True)
class Ask:
    """A question that has been checked: which buckets of which level, and what of them."""

    aggregation: Aggregation
    start: int
    end: int
    per: Duration
    on: exp.Expression | None
    selection: Selection
    fill: str | None = None
    explain: bool = False

    def sql(self, dialect: str = "duckdb") -> str:
        """The whole query over the relations `closed` and `open`, with parameters `start` and `end`."""
        return _answer_sql(self.aggregation, self.per, self.on, self.selection, dialect)


class Question(Protocol):
    """What a snapshot can answer: an `Ask`, or a `Request` of a stream."""

    @property
    def aggregation(self) -> Aggregation: ...
    @property
    def per(self) -> Duration: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    def sql(self, dialect: str = "duckdb") -> str: ...


@lru_cache(maxsize=4096)
def _answer_sql(aggregation: Aggregation, per: Duration, on: exp.Expression | None, selection: Selection, dialect: str) -> str:
    return to_sql(answer(aggregation, per, on, selection), dialect)


def plan(query: Retrieval, aggregations: Mapping[str, Aggregation]) -> Ask:
    """The checked question of an on-demand query. Raises QueryError or PlanError before any data is read."""
    aggregation = aggregations.get(query.aggregation)
    if aggregation is None:
        known = ", ".join(aggregations) or "none is defined"
        raise QueryError(f"aggregation {query.aggregation!r} is not defined", hint=f"known are {known}")
    assert query.per is not None
    start, end = bounds([_value(node) for node in query.within], query.within[0])
    level = per_level(aggregation, _value(query.per), query.per)
    if query.fill is not None and query.fill not in ("null", "zero", "previous", "linear"):
        raise QueryError(f"unknown fill {query.fill!r}", hint="null, zero, previous, linear")
    ask = Ask(aggregation, start, end, level, query.on, query.selection, query.fill, query.explain)
    ask.sql()
    return ask


def bounds(values: Sequence[object], node: exp.Expression | None = None) -> tuple[int, int]:
    """Start and end of a `within` clause with one or two values. Raises QueryError."""
    for value in values:
        if isinstance(value, bool) or not isinstance(value, (int, str)):
            raise _at(QueryError(f"a `within` bound is a text or milliseconds, not {value!r}"), node)
    try:
        return within_range(*values)  # type: ignore[arg-type]
    except RollupError as problem:
        raise _at(QueryError(problem.message, hint=problem.hint), node) from None


def per_level(aggregation: Aggregation, word: object, node: exp.Expression | None = None) -> Duration:
    """The level that a `per` value names. Raises QueryError when it is unknown or not aggregated."""
    if not isinstance(word, str):
        raise _at(QueryError(f"`per` takes a text, not {word!r}", hint="e.g. per 'days'"), node)
    try:
        level = Duration.parse(word)
    except QueryError as problem:
        raise _at(problem, node) from None
    if level not in aggregation.levels:
        allowed = ", ".join(known.plural for known in aggregation.levels)
        raise _at(QueryError(f"{aggregation.name} is not aggregated per {level.plural}", hint=f"it has {allowed}"), node)
    return level


def _at(problem: QueryError, node: exp.Expression | None) -> RollupError:
    return problem.at(*position(node)) if node is not None else problem


def _value(node: exp.Expression) -> object:
    if isinstance(node, exp.Literal):
        if node.is_string:
            return node.name
        return int(node.name) if node.is_int else float(node.name)
    if isinstance(node, exp.Neg):
        inner = node.this.this if isinstance(node.this, exp.Paren) else node.this
        value = _value(inner)
        return -value if isinstance(value, int) else value
    if isinstance(node, exp.Boolean):
        return bool(node.this)
    raise _at(QueryError("`within` and `per` of an on-demand query take constants"), node)


# The tree


def answer(aggregation: Aggregation, per: Duration, on: exp.Expression | None, selection: Selection) -> exp.Select:
    """The whole query: buckets of the range, `on`, the select list, `group by` … `offset`."""
    rows = bucket_rows(aggregation, per, _needed(aggregation, on, selection))
    return select_from(rows, aggregation, on, selection)


def bucket_rows(
    aggregation: Aggregation,
    per: Duration,
    outputs: Sequence[Output],
    closed: str = "closed",
    opened: str = "open",
    start: exp.Expression = START,
    end: exp.Expression = END,
) -> exp.Select:
    """One row a bucket and keys, with start <= AGG_TIMESTAMP < end: AGG_TIMESTAMP and the outputs, final values."""
    names = _columns_of(aggregation, outputs)
    stored = _part(aggregation, names, column(TIMESTAMP), closed, start, end)
    level = exp.LTE(this=column(LEVEL), expression=exp.Literal.number(int(per)))
    running = _part(aggregation, names, column(bucket_column(per)), opened, start, end).where(level)
    both = exp.select("*").from_(exp.union(stored, running, distinct=False).subquery("u"))
    values = tuple(value for value in aggregation.values if value.name in names)
    groups = [TIMESTAMP, *(key.name for key in aggregation.keys)]
    merged = merged_rows(both, groups, values)
    narrow = exp.select(*(column(name) for name in groups), *(exp.alias_(read_column(aggregation, v.name), v.name, quoted=True) for v in values))
    finals = [exp.alias_(output.final.copy(), output.name, quoted=True) for output in outputs]
    extras = [column(name) for name in EXTRA if name in names and name not in (o.name for o in outputs)]
    return exp.select(column(TIMESTAMP), *finals, *extras).from_(narrow.from_(merged.subquery("m")).subquery("n"))


def _part(aggregation: Aggregation, names: Iterable[str], begin: exp.Column, table: str, start: exp.Expression, end: exp.Expression) -> exp.Select:
    columns = [exp.alias_(begin.copy(), TIMESTAMP, quoted=True), *(column(key.name) for key in aggregation.keys)]
    for name in names:
        wide = aggregation.kinds[name] is EXACT
        columns.append(exp.alias_(exp.cast(column(name), WIDE), name, quoted=True) if wide else column(name))
    low = exp.GTE(this=begin.copy(), expression=start.copy())
    high = exp.LT(this=begin.copy(), expression=end.copy())
    return exp.select(*columns).from_(table).where(low, high)


def _columns_of(aggregation: Aggregation, outputs: Sequence[Output]) -> list[str]:
    """The stored columns that outputs are computed from, with the siblings their merges look at."""
    wanted = {found.name for output in outputs for found in output.final.find_all(exp.Column)} | {EVENTS}
    values = {value.name: value for value in aggregation.values}
    todo = [name for name in wanted if name in values]
    while todo:
        value = values[todo.pop()]
        nodes = [value.merge, *(value.helper[1:] if value.helper else ())]
        for sibling in {found.name for node in nodes for found in node.find_all(exp.Column)} & set(values) - wanted:
            wanted.add(sibling)
            todo.append(sibling)
    return [name for name in values if name in wanted]


def _needed(aggregation: Aggregation, on: exp.Expression | None, selection: Selection) -> tuple[Output, ...]:
    """The outputs that a question mentions; all of them for `select *`."""
    if selection.items is None:
        return aggregation.outputs
    nodes = [item.expression for item in selection.items]
    nodes += [*selection.group_by, *selection.order_by, *(node for node in (on, selection.having) if node is not None)]
    names = {found.name for node in nodes for found in node.find_all(exp.Column)}
    return tuple(output for output in aggregation.outputs if output.name in names)


def attributes(aggregation: Aggregation) -> dict[str, Type]:
    """What an answer can be asked for, by name: AGG_TIMESTAMP, the outputs, and the columns of EXTRA."""
    return {TIMESTAMP: Type.LONG, **{output.name: output.type for output in aggregation.outputs}, **EXTRA}


def select_from(
    rows: exp.Select, aggregation: Aggregation, on: exp.Expression | None, selection: Selection, scope: Scope | None = None
) -> exp.Select:
    """`on … select … group by … having … order by … limit … offset` over rows of buckets."""
    names = attributes(aggregation)
    scope = scope or Scope.of(names, aggregation.name)
    query = exp.select().from_(rows.subquery("b"))
    if on is not None:
        query = query.where(condition(on, scope, "`on`"))
    return shape(query, scope, selection, [TIMESTAMP, *(output.name for output in aggregation.outputs)])


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
                raise QueryError(f"{item.name!r} is neither aggregated nor in `group by`").at(*position(item.expression))
    return _tail(query.group_by(*groups) if groups else query, with_aggregates, selection, bound)


def _tail(query: exp.Select, scope: Scope, selection: Selection, bound: Mapping[str, Bound]) -> exp.Select:
    named = Scope({**scope.columns, **{("", name): found for name, found in bound.items()}}, scope.aggregates)
    if selection.having is not None:
        passes = condition(selection.having, named, "`having`")
        grouped = query.args.get("group") or passes.find(exp.AggFunc)
        query = query.having(passes) if grouped else query.where(passes)
    for ordering in selection.order_by:
        query = query.order_by(exp.Ordered(this=bind(ordering.this, named).sql, desc=ordering.args.get("desc"), nulls_first=True))
    for clause in ("limit", "offset"):
        node = getattr(selection, clause)
        if node is not None:
            value = _value(node)
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
