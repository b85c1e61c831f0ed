"""Where a select's rows go: streams, named windows and tables."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from rollup.core.errors import QueryError
from rollup.engine.expressions import Call, Const, Expr
from rollup.engine.folding import AggregateCall
from rollup.engine.operators import Operator
from rollup.engine.rows.plans import Select, TableTarget, Target
from rollup.engine.types import NULL, DataType, RowType
from rollup.lang.epl.accessing import RANKED
from rollup.lang.epl.catalog import StoreInfo, loose, problem, unknown
from rollup.lang.epl.lowering.values.aggregates import collect
from rollup.lang.epl.lowering.values.comparing import widened
from rollup.lang.epl.lowering.values.expressions import lower
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope, is_aggregate
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import statements as sm
from rollup.lang.epl.tree.streams import Item


def as_declared(query: sm.Query, scope: Scope) -> sm.Query:
    """A select into a table, with the criteria that its columns declare and the text leaves out: `sorted()`, `sorted(*)`."""
    if query.insert is None or not query.insert.table:
        return query
    info = scope.catalog.store(query.insert.target, query.insert)

    def filled(item: Item) -> Item:
        given, declared = item.value, info.declared.get(item.name or "")
        if not isinstance(given, ex.Call) or not isinstance(declared, ex.Call):
            return item
        if given.name.lower() not in RANKED or declared.name.lower() != given.name.lower():
            return item
        if given.arguments not in ((), (ex.Star(),)):
            raise problem("the table says by what its column sorts", given, f"{given.name}()")
        return replace(item, value=replace(given, arguments=declared.arguments))

    return replace(query, items=tuple(filled(item) for item in query.items))


def table_target(query: sm.Query, scope: Scope, dimensions: tuple[Expr, ...]) -> TableTarget:
    """The columns of a table that a select fills. Raises PlanError for aggregates other than those it declares."""
    assert query.insert is not None
    info = scope.catalog.store(query.insert.target, query.insert)
    if info.kind != "table":
        raise problem(f"`{query.insert.target}` is no table", query.insert, "insert into")
    if len(dimensions) != len(info.keys):
        hint = f"group by {', '.join(info.keys)}" if info.keys else "without group by"
        raise problem(f"`{query.insert.target}` has {len(info.keys)} key(s)", query.insert, hint)
    for name, dimension in zip(info.keys, dimensions, strict=True):
        kind = info.type.fields[name]
        if not loose(kind) and not loose(dimension.type) and kind.kind is not dimension.type.kind:
            raise problem(f"the key `{name}` of the table is {kind}, what is grouped by {dimension.type}", query.insert)
    items = [item for item in query.items if is_aggregate(item.value) or lower(item.value, scope) not in dimensions]
    for item in items:
        name = item.name or render(item.value)
        if name not in info.aggregated:
            raise unknown("aggregated column", name, info.aggregated, item)
        if not is_aggregate(item.value):
            raise problem(f"`{render(item.value)}` is no aggregate", item, "into table fills aggregated columns")
    calls, _ = collect([item.value for item in items], scope, 0, dimensions)
    by_text = {each.text: each.call for each in calls}
    if len(by_text) != len(items):
        raise problem("the same aggregate stands twice in an `into table`", query, "fill one column with it")
    for item in items:
        _check_column(item, by_text[render(item.value)], info)
    by_column = {render(item.value): item.name or render(item.value) for item in items}
    return TableTarget(
        query.insert.target, dimensions, tuple(by_column[each.text] for each in calls), tuple(e.call for e in calls)
    )


def _check_column(item: Item, given: AggregateCall, info: StoreInfo) -> None:
    """Raise PlanError for an aggregate other than that of the table's column."""
    column = item.name or render(item.value)
    declared, wanted = info.declared[column], info.aggregated[column]
    assert isinstance(declared, ex.Call) and isinstance(wanted, AggregateCall) and isinstance(item.value, ex.Call)
    same = (item.value.name.lower(), given.distinct) == (declared.name.lower(), wanted.distinct)
    kinds = [[arg.type for arg in call.args] if call.aggregate.arguments[0] == 1 else [] for call in (given, wanted)]
    if not same or (kinds[0] and kinds[1] and kinds[0] != kinds[1]):
        hint = f"declare the column {render(item.value)}, or fill it with {render(declared)}"
        raise problem(f"`{column}` of the table is {render(declared)}, not {render(item.value)}", item, hint)


def target_of(insert: sm.InsertInto, made: RowType, scope: Scope) -> tuple[Target, RowType]:
    """Where a select's rows go, and the rows there: a store, a known type, or a type that this insert makes."""
    catalog = scope.catalog
    names = list(insert.columns) or list(made.fields)
    if len(names) != len(made.fields):
        raise problem(f"{len(made.fields)} columns for {len(names)} names", insert, "as many as columns")
    kinds = list(made.fields.values())
    known = catalog.stores[insert.target].type if insert.target in catalog.stores else catalog.types.get(insert.target)
    if known is None:
        known = RowType(insert.target, dict(zip(names, kinds, strict=True)))
    kept = catalog.stores[insert.target].aggregated if insert.target in catalog.stores else {}
    for name, kind in zip(names, kinds, strict=True):
        if name not in known.fields:
            raise unknown(f"column of `{insert.target}`", name, known.fields, insert)
        if name in kept:
            raise problem(f"`{insert.target}.{name}` is an aggregate, which nobody inserts", insert, "into table")
        check_fits(kind, known.fields[name], f"{insert.target}.{name}", insert)
    columns = tuple(names.index(name) if name in names else None for name in known.fields)
    arriving = insert.selector in (None, "istream", "irstream")
    leaving = insert.selector in ("rstream", "irstream")
    return Target(insert.target, columns, arriving, leaving), known


def inserting(select: Select, insert: sm.InsertInto, scope: Scope) -> tuple[Select, RowType]:
    """A select whose rows go into a type, and that type: its rows have the names there, and null where they say nothing."""
    target, known = target_of(insert, select.type, scope)
    names = insert.columns or tuple(select.type.fields)
    select = _typed(select, [known.fields[name] for name in names])
    kinds = dict(zip(names, select.type.fields.values(), strict=True))
    kept = scope.catalog.stores[insert.target].aggregated if insert.target in scope.catalog.stores else {}
    rest = {name: kind for name, kind in known.fields.items() if name not in kinds and name not in kept}
    if rest:
        nulls = tuple(Const(None, kind) for kind in rest.values())
        columns = (*select.projection.columns, *nulls)
        select = replace(select, projection=replace(select.projection, columns=columns, whole=False))
        kinds |= rest
    places = {name: place for place, name in enumerate(kinds)}
    target = replace(target, columns=tuple(map(places.get, known.fields)))
    return replace(select, target=target, type=RowType(select.type.name, kinds)), known


def _typed(select: Select, wanted: Sequence[DataType]) -> Select:
    """A select whose whole numbers are doubles, and whose numbers are BigDecimals, where its target has those."""
    shown = select.projection.columns
    columns = tuple(widened(column, kind) for column, kind in zip(shown, wanted, strict=True))
    if columns == shown:
        return select
    kinds = {name: column.type for name, column in zip(select.type.fields, columns, strict=True)}
    projection = replace(select.projection, columns=columns, whole=False)
    return replace(select, projection=projection, type=RowType(select.type.name, kinds))


def placed(columns: Sequence[Expr], target: Target, known: RowType) -> list[Expr]:
    """The columns in the order of the target's fields and of their types; what is not given is null."""
    kinds = known.fields.values()
    return [
        Const(None, NULL) if place is None else widened(columns[place], kind)
        for place, kind in zip(target.columns, kinds, strict=True)
    ]


def name_of(target: ex.Expression) -> str:
    """The name of the column or variable that an assignment sets."""
    return target.name if isinstance(target, (ex.Reference, ex.Member)) else render(target)


def assigned(assignment: sm.Assignment, scope: Scope) -> tuple[ex.Expression, Expr]:
    """What an assignment sets, and its value: of `list[place] = x` the whole list, with x at that place."""
    target = assignment.target
    if assignment.value is None:
        raise problem("an assignment needs its value", assignment)
    value = lower(assignment.value, scope)
    if not isinstance(target, ex.Index):
        return target, value
    whole, places = lower(target.of, scope), [lower(each, scope) for each in target.keys]
    if whole.type.element is None or len(places) != 1 or not places[0].type.integral:
        raise problem(f"`{render(target)}` is no element of a list", target, "list[0] = x")
    value = fitting(value, whole.type.element, render(target), assignment)
    return target.of, Call(_WITH_ELEMENT, (whole, places[0], value), whole.type)


def _with_element(values: list[Any] | None, place: int | None, value: Any) -> list[Any] | None:
    if values is None or place is None:
        return values
    if not 0 <= place < len(values):
        raise QueryError(
            f"a list of {len(values)} has no place {place}", hint=f"0 to {len(values) - 1}" if values else "it is empty"
        )
    return [*values[:place], value, *values[place + 1 :]]


_WITH_ELEMENT = Operator("with element", _with_element, strict=False)


def fitting(value: Expr, wanted: DataType, what: str, at: Any) -> Expr:
    """A value that is to be one of the wanted type. Raises PlanError for one that cannot be."""
    check_fits(value.type, wanted, what, at)
    return widened(value, wanted)


def check_fits(given: Any, wanted: Any, what: str, at: Any) -> None:
    """Raise PlanError for a value that cannot be one of the wanted type, and for a number of a wider type."""
    loose = ("any", "null")
    if given.kind in loose or wanted.kind in loose or given.kind is wanted.kind:
        return
    if not (given.numeric and wanted.numeric) or wanted.widest(given) != wanted:
        raise problem(f"`{what}` is {wanted}, the value {given}", at, f"cast(…, {wanted})")
