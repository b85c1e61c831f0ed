"""A select of the tree → a plan: inputs, join, kind of rows, columns, rate, targets."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

from rollup.engine.expressions import All, Ask, Call, Const, Expr, Field, RowOf, Slot, Variable, walk
from rollup.engine.operators import OF_KEY
from rollup.engine.rows.plans import (
    ContextValue,
    Earlier,
    Finish,
    Input,
    Previous,
    Select,
    StoreInput,
    StreamInput,
    TableRow,
)
from rollup.engine.rows.selects.grouping import Level
from rollup.engine.rows.selects.joining import JoinSpec
from rollup.engine.rows.selects.pergroup import Grouping
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.types import INT, Kind, RowType
from rollup.lang.epl.catalog import ordered, problem
from rollup.lang.epl.lowering.groups import check_having, grouping_sets, shows_methods
from rollup.lang.epl.lowering.joins import join_spec, moving
from rollup.lang.epl.lowering.rates import lower_rate
from rollup.lang.epl.lowering.streams import columns_of, lower_stream
from rollup.lang.epl.lowering.targets import as_declared, table_target
from rollup.lang.epl.lowering.values.aggregates import collect
from rollup.lang.epl.lowering.values.expressions import condition, criterion, lower
from rollup.lang.epl.lowering.values.filtering import check_filter
from rollup.lang.epl.naming import asked_by
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Collected, Scope, Sets, aggregates
from rollup.lang.epl.scope import walk as parts
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.node import Node
from rollup.lang.epl.tree.streams import Item


def lower_query(query: sm.Query, scope: Scope) -> Select:
    """A select over streams, windows, tables and patterns."""
    streams = [*query.streams, *(join.stream for join in query.joins)]
    scope.registry.outer = len(streams)
    found = [lower_stream(stream, scope, place) for place, stream in enumerate(streams)]
    inputs, sources = [each[0] for each in found], [each[1] for each in found]
    only, alone = moving(query, streams, inputs)
    for place, join in enumerate(query.joins, start=1):
        if join.kind in ("left", "full"):
            sources[place] = replace(sources[place], optional=True)
        if join.kind in ("right", "full"):
            sources[:place] = [replace(source, optional=True) for source in sources[:place]]
    inside = replace(scope, sources=tuple(sources), outer=0)
    join = join_spec(query, inputs, inside, only, alone)
    if query.where is not None and len(inputs) == 1 and _is_filter(query.where, inputs[0]):
        check_filter(query.where, replace(inside, slots=None))
    return assemble(query, inside, inputs, join)


def _is_filter(where: ex.Expression, found: Input) -> bool:
    """Whether `where` says what events a statement wants: without a window, and without sub-queries."""
    bare = isinstance(found, StreamInput) and found.window is None and not found.unnest
    return bare and all(asked_by(each) is None for each in parts(where))


def _filtered(where: Expr | None, inputs: list[Input]) -> tuple[Expr | None, list[Input]]:
    """Without a window `where` is a filter: `prior` counts the rows that pass, and variables are asked before anybody who
    hears the same event sets them."""
    found = inputs[0]
    if where is None or len(inputs) > 1 or any(isinstance(each, Ask) for each in walk(where)):
        return where, inputs
    if not found.prior and not any(isinstance(each, Variable) for each in walk(where)):
        return where, inputs
    if isinstance(found, StoreInput):
        return None, [replace(found, condition=where if found.condition is None else All((found.condition, where)))]
    if not isinstance(found, StreamInput) or found.window is not None or found.unnest:
        return where, inputs
    test = where if found.filter.test is None else All((found.filter.test, where))
    return None, [replace(found, filter=replace(found.filter, test=test))]


def assemble(query: sm.Query, scope: Scope, inputs: Sequence[Input], join: JoinSpec | None) -> Select:
    """The plan of a select whose inputs are known; `scope` has them as sources."""
    query = as_declared(query, scope)
    scope = replace(scope, filling=query.insert is not None and query.insert.table)
    bare = replace(scope, slots=None, no_aggregates="in where")
    where = condition(query.where, bare) if query.where is not None else None
    _no_queries(query.group_by, "group by")
    if query.output is not None and query.output.when is not None:
        _no_queries([query.output.when], "output when")
    dimensions, sets = grouping_sets(query.group_by, replace(bare, no_aggregates="in group by"))
    shape = _shape(query, scope, dimensions, sets)
    type_name = query.insert.target if query.insert is not None else "result"
    kinds = RowType(type_name, {n: c.type for n, c in zip(shape.names, shape.columns, strict=True)})
    whole = len(query.items) == 1 and isinstance(query.items[0].value, ex.Star) and join is None and not shape.per_group
    projection = Projection(shape.columns, shape.having, shape.order, whole)
    registry = scope.registry
    inputs = [replace(each, prior=registry.priors.get(place, 0)) for place, each in enumerate(inputs)]
    where, inputs = _filtered(where, inputs)
    rate, finish = lower_rate(query.output, scope, inputs), _finish(query, scope, shape)
    if len(sets) < 2 and join is None and not rate.limited and _says_nothing(finish, inputs[0]):
        finish, projection = Finish(), replace(projection, order=())
    own = [level for level in shape.own]
    default = Level(dimensions, shape.calls)
    into = table_target(query, scope, dimensions) if query.insert is not None and query.insert.table else None
    grouped = bool(dimensions)
    return Select(
        tuple(inputs),
        kinds,
        projection,
        join,
        where,
        levels=() if shape.per_group or not (shape.aggregated or grouped) else (default, *own),
        grouping=Grouping(dimensions, sets, shape.calls, tuple(own)) if shape.per_group else None,
        total=shape.total,
        grouped=grouped,
        rate=rate,
        finish=finish,
        emitted="both" if query.selector == "irstream" else "old" if query.selector == "rstream" else "new",
        target=None,
        into=into,
        lookups=tuple(registry.lookups),
        own_inputs=tuple(registry.own_inputs),
        unbounded=(join is not None and join.only is not None)
        or any(not isinstance(each, StoreInput) and each.window is None for each in inputs),
    )


# what kind of rows


@dataclass(frozen=True)
class _Shape:
    columns: tuple[Expr, ...]
    names: list[str]
    having: Expr | None
    order: tuple[Expr, ...]
    calls: tuple[Any, ...]
    own: list[Level]
    aggregated: bool
    total: bool
    per_group: bool


def _shape(query: sm.Query, scope: Scope, dimensions: tuple[Expr, ...], sets: tuple[tuple[int, ...], ...]) -> _Shape:
    by_group = _tried(query, scope, dimensions, len(dimensions), sets)
    remaining = _reads(by_group, scope, dimensions)
    wildcard = any(isinstance(item.value, (ex.Star, ex.StreamStar)) for item in query.items)
    own_keys = {key for level in by_group.own for key in level.keys}
    if dimensions:
        if by_group.shape.aggregated:
            check_having(query, by_group.shape.having, dimensions)
        fits = not wildcard and not remaining and own_keys <= set(dimensions)
        if len(sets) == 1:
            fits = fits and not shows_methods(query, scope) and _orders_by_columns(by_group.shape, len(dimensions))
        if not fits and len(sets) > 1:
            at = query.items[0]
            raise problem("a rollup selects only its columns and aggregates", at, "leave other columns out")
        if fits:
            _commit(scope, by_group)
            return replace(by_group.shape, per_group=True)
    plain = _tried(query, scope, dimensions, 0)
    _commit(scope, plain)
    aggregated = plain.shape.aggregated
    total = aggregated and not dimensions and not wildcard and not own_keys and not _reads(plain, scope)
    return replace(plain.shape, total=total)


def _orders_by_columns(shape: _Shape, dimensions: int) -> bool:
    """Whether what is ordered by reads only those dimensions that are shown; else a row is one of each event."""
    shown, order = (
        {slot.index for expr in exprs for slot in walk(expr) if isinstance(slot, Slot) and slot.index < dimensions}
        for exprs in (shape.columns, shape.order)
    )
    return order <= shown


@dataclass(frozen=True)
class _Tried:
    shape: _Shape
    registry: Any

    @property
    def own(self) -> list[Level]:
        return self.shape.own


def _tried(
    query: sm.Query, scope: Scope, dimensions: tuple[Expr, ...], base: int, sets: tuple[tuple[int, ...], ...] = ()
) -> _Tried:
    """The columns lowered as if aggregates stood in the slots from `base` on, the dimensions before them, the set last."""
    registry = deepcopy(scope.registry)
    scope = replace(scope, registry=registry)
    nodes = [*(item.value for item in query.items), query.having, *(each.value for each in query.order_by)]
    collected, slots = collect(nodes, scope, base, dimensions)
    if query.insert is not None and query.insert.table:
        slots = {text: slot for text, slot in slots.items()}
    several = Sets(dimensions, sets, Slot(base + len(collected), INT)) if len(sets) > 1 else None
    selecting = replace(scope, slots=slots, sets=several)
    columns, names = columns_of(query.items, selecting)
    having = condition(query.having, selecting) if query.having is not None else None
    order = tuple(_ordered(each, query.items, columns, names, selecting) for each in query.order_by)
    _check_order(query, scope)
    places: dict[Expr, Expr] = {}
    if base:
        places = {dimension: _of_key(Slot(place, dimension.type)) for place, dimension in enumerate(dimensions)}
    if scope.context is not None and collected and (base or not dimensions):
        places = {**_keys_of(scope), **places}

    def put(expr: Expr) -> Expr:
        return replaced(expr, places) if places else expr

    shape = _Shape(
        tuple(put(column) for column in columns),
        names,
        put(having) if having is not None else None,
        tuple(put(each) for each in order),
        tuple(each.call for each in collected if each.keys is None),
        _own_levels(collected),
        bool(collected),
        False,
        False,
    )
    return _Tried(shape, registry)


def _check_order(query: sm.Query, scope: Scope) -> None:
    """Raise PlanError for an aggregate in `order by` that is not selected, and for sub-queries there."""
    selected = {render(each) for each in aggregates([item.value for item in query.items], scope)}
    for each in query.order_by:
        for call in aggregates([each.value], scope):
            if render(call) not in selected:
                raise problem(f"`order by` has an aggregate that is not selected: `{render(call)}`", call)
        _no_queries([each.value], "order by")


def _no_queries(nodes: Sequence[Node], where: str) -> None:
    for each in parts(tuple(nodes)):
        if asked_by(each) is not None:
            raise problem(f"a sub-query cannot stand in `{where}`", each, "select it, and go on from its name")


def _of_key(slot: Slot) -> Expr:
    """The value of a dimension; a list is kept as its elements."""
    return Call(OF_KEY, (slot,), slot.type) if slot.type.kind is Kind.LIST else slot


def _keys_of(scope: Scope) -> dict[Expr, Expr]:
    """The fields that are a key of the partition, and the property with the same value."""
    context = scope.context
    assert context is not None
    found: dict[Expr, Expr] = {}
    for place, source in enumerate(scope.sources):
        for name, key in context.keys.get(source.stream or "", {}).items():
            if name in source.type.fields:
                asked = scope.registry.ask(ContextValue(key), context.properties[key])
                found[scope.field(place, name)] = asked
    return found


def _own_levels(collected: Sequence[Collected]) -> list[Level]:
    keys = dict.fromkeys(each.keys for each in collected if each.keys is not None)
    return [Level(key, tuple(each.call for each in collected if each.keys == key)) for key in keys]


def _commit(scope: Scope, tried: _Tried) -> None:
    registry = scope.registry
    registry.lookups[:] = tried.registry.lookups
    registry.own_inputs[:] = tried.registry.own_inputs
    registry.priors.update(tried.registry.priors)


def _reads(tried: _Tried, scope: Scope, dimensions: Sequence[Expr] = ()) -> bool:
    """Whether the columns still read rows of the input; a table's row by a dimension is one of the group's."""
    shape = tried.shape
    exprs = [*shape.columns, *shape.order, *([shape.having] if shape.having is not None else [])]
    for each in (inner for expr in exprs for inner in walk(expr)):
        if isinstance(each, (Field, RowOf)):
            return True
        if isinstance(each, Ask):
            lookup = tried.registry.lookups[each.index]
            if isinstance(lookup, (Previous, Earlier)):
                return True
            keys = [key for key in lookup.keys if key not in dimensions] if isinstance(lookup, TableRow) else []
            if any(isinstance(i, Field) for key in keys for i in walk(key)):
                return True
    return False


def _ordered(
    node: sm.Ordering, items: Sequence[Item], columns: Sequence[Expr], names: Sequence[str], scope: Scope
) -> Expr:
    """A criterion: an alias of a column, a column's text, or an expression."""
    text = node.value.name if isinstance(node.value, ex.Reference) else render(node.value)
    named = {item.name for item in items if item.name}
    if text in names and (text in named or not scope.fields(text)):
        found = columns[list(names).index(text)]
        ordered(found.type, node, text)
        return found
    return criterion(node.value, scope)


def replaced(expr: Any, places: dict[Expr, Expr]) -> Any:
    """An expression with some parts exchanged for others."""
    if isinstance(expr, tuple):
        return tuple(replaced(each, places) for each in expr)
    try:
        if expr in places:
            return places[expr]
    except TypeError:
        pass
    if not is_dataclass(expr) or type(expr).__module__ != "rollup.engine.expressions":
        return expr
    changed = {each.name: replaced(getattr(expr, each.name), places) for each in fields(expr)}
    return replace(expr, **changed)  # type: ignore[type-var]


def _finish(query: sm.Query, scope: Scope, shape: _Shape) -> Finish:
    limit = query.limit
    bare = replace(scope, sources=())
    return Finish(
        query.distinct,
        tuple(each.descending for each in query.order_by),
        _many(limit.rows, bare) if limit is not None else None,
        _many(limit.offset, bare) if limit is not None and limit.offset is not None else None,
    )


def _says_nothing(finish: Finish, input: Input) -> bool:
    """Whether each event brings at most one row that comes and one that leaves, of which nothing is left out."""
    single = isinstance(input, StreamInput) and input.window is None and not input.unnest
    count, begin = finish.limit, finish.offset
    some = count is None or (isinstance(count, Const) and count.value != 0)
    return single and some and (begin is None or (isinstance(begin, Const) and begin.value == 0))


def _many(node: ex.Expression, scope: Scope) -> Expr:
    """How many rows: a whole number, or a variable that holds one."""
    found = lower(node, scope)
    if not found.type.integral:
        raise problem(f"`{render(node)}` is {found.type}, not a whole number", node, "limit 10")
    return found
