"""What stands in a from clause → the engine's inputs: filters with their equalities, windows, stores, patterns."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from rollup.engine import operators as op
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Ask, Call, Const, Expr, Field, Slot, Variable, walk
from rollup.engine.operators import Operator
from rollup.engine.row import Row
from rollup.engine.rows.plans import ContextValue, Filter, Input, PatternInput, StoreInput, StreamInput, Unnest
from rollup.engine.types import BOOL, DataType, Kind, RowType
from rollup.lang.epl.catalog import problem
from rollup.lang.epl.lowering.patterns import lower_pattern
from rollup.lang.epl.lowering.values.expressions import condition, lower
from rollup.lang.epl.lowering.values.filtering import filter_condition
from rollup.lang.epl.lowering.values.names import field_of
from rollup.lang.epl.lowering.windows import ordered, windows
from rollup.lang.epl.naming import column_name
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Registry, Scope, Source, in_context
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree import streams as st


def filter_of(stream: str, tests: Sequence[Expr], registry: Registry) -> Filter:
    """A filter whose equalities with known values are apart, so that the index finds it."""
    equals: dict[int, Expr] = {}
    rest: list[Expr] = []
    for test in (part for each in tests for part in conjuncts(each)):
        pair = _equality(test, registry)
        if pair is not None and pair[0] not in equals:
            equals[pair[0]] = pair[1]
        else:
            rest.append(test)
    return Filter(stream, tuple(sorted(equals.items(), key=lambda each: each[0])), conjunction(rest))


def _equality(test: Expr, registry: Registry) -> tuple[int, Expr] | None:
    if not isinstance(test, Call) or test.op is not op.EQUAL:
        return None
    for one, other in (test.args, test.args[::-1]):
        if isinstance(one, Field) and one.type.kind is not Kind.LIST and _known(other, registry):
            if isinstance(other, Const) and other.value is None:
                return None
            return one.index, other
    return None


def _known(value: Expr, registry: Registry) -> bool:
    """Whether a value is the same for as long as the partition lives."""
    for each in walk(value):
        if isinstance(each, (Field, Slot, Variable)) or (each.type.kind is Kind.ROW and not isinstance(each, Ask)):
            return False
        if isinstance(each, Ask) and not isinstance(registry.lookups[each.index], ContextValue):
            return False
    return True


def source_filter(source: st.FilterSource, scope: Scope) -> tuple[RowType, list[Expr]]:
    """The rows of a stream or store, and the conditions in its parentheses."""
    kinds = scope.catalog.row_type(source.type, source)
    inner = replace(
        scope, sources=(Source(None, kinds, stream=source.type),), outer=0, slots=None, no_aggregates="in a filter"
    )
    named = replace(inner, sources=(Source(source.type, kinds, stream=source.type),))
    found = condition if source.type in scope.catalog.stores else filter_condition
    return kinds, [found(each, named) for each in source.filters]


def lower_stream(stream: st.Stream, scope: Scope, place: int) -> tuple[Input, Source]:
    """One entry of a from clause. `scope` gives catalog, registry, context; `place` is its number among all inputs."""
    if isinstance(stream.source, st.PatternSource):
        return _pattern(stream, stream.source, scope, place)
    source = stream.source
    kinds, tests = source_filter(source, scope)
    name = stream.alias or source.type
    if source.type in scope.catalog.stores:
        return _store(stream, source, kinds, tests, name, scope)
    unnest: list[Unnest] = []
    outer = Source(source.type, kinds)
    for contained in source.contained:
        found, kinds = lower_contained(contained, outer, source.type, scope)
        outer = Source(contained.alias, kinds, stream=kinds.name)
        unnest.append(found)
    inner = replace(scope, sources=(Source(name, kinds),), outer=0)
    window, held = windows(stream.views, stream.retain, inner)
    found = StreamInput(filter_of(source.type, tests, scope.registry), window, tuple(unnest))
    plain = source.type if held is kinds and not source.contained else None
    return found, Source(
        name, held, windowed=window is not None, ordered=ordered(stream.views), stream=plain, alias=stream.alias
    )


def _store(
    stream: st.Stream, source: st.FilterSource, kinds: RowType, tests: list[Expr], name: str, scope: Scope
) -> tuple[Input, Source]:
    info = scope.catalog.stores[source.type]
    if stream.views:
        what = "a named window has its window already" if info.kind == "window" else "a table has no window"
        raise problem(f"`{source.type}`: {what}", stream.views[0], "leave the # out")
    if source.contained:
        raise problem(f"contained events of `{source.type}` are not supported", source.contained[0])
    in_context(info, source.type, source, scope)
    found = StoreInput(source.type, conjunction(tests), follow=info.kind == "window")
    return found, Source(name, kinds, windowed=True, stream=source.type, alias=stream.alias)


def _pattern(stream: st.Stream, source: st.PatternSource, scope: Scope, place: int) -> tuple[Input, Source]:
    pattern, tags = lower_pattern(source, scope)
    kinds = RowType("pattern", dict(tags))
    name = stream.alias
    inner = replace(scope, sources=(Source(name, kinds),), outer=0)
    window, held = windows(stream.views, stream.retain, inner)
    return PatternInput(pattern, window), Source(
        name, held, windowed=window is not None, ordered=ordered(stream.views), alias=stream.alias
    )


def lower_contained(contained: st.Contained, outer: Source, stream: str, scope: Scope) -> tuple[Unnest, RowType]:
    """Events inside an event of `outer`: where they are, and the rows they make."""
    inner_scope = replace(scope, sources=(outer,), outer=0, slots=None, no_aggregates="inside an event")
    rows = lower(contained.property, inner_scope)
    if rows.type.row is not None:
        rows = Call(_ALONE, (rows,), DataType(Kind.LIST, element=rows.type))
    element = rows.type.element.row if rows.type.element is not None else None
    if rows.type.kind is not Kind.LIST or element is None:
        message = f"`{render(contained.property)}` is {rows.type}, neither an event nor an array of events"
        raise problem(message, contained.property, "a property of type OtherEvent or OtherEvent[]")
    both = replace(inner_scope, sources=(outer, Source(contained.alias, element)), outer=0)
    reading = replace(both, outer=1)
    where = condition(contained.where, reading) if contained.where is not None else None
    if not contained.items:
        return Unnest(rows, None, where), element
    every = ex.Star()
    inside = columns_of([each for each in contained.items if each.value == every], reading)
    columns, names = columns_of([each for each in contained.items if each.value != every], both, *inside)
    made = RowType(f"{stream}.{render(contained.property)}", {n: c.type for n, c in zip(names, columns, strict=True)})
    return Unnest(rows, tuple(columns), where), made


_ALONE = Operator("an event alone", lambda row: [row])


def columns_of(
    items: Sequence[st.Item], scope: Scope, before: Sequence[Expr] = (), called: Sequence[str] = ()
) -> tuple[list[Expr], list[str]]:
    """The columns of a select and their names, after those that are there `before`; `*` and `a.*` give all fields."""
    columns, names = list(before), list(called)

    def add(name: str, value: Expr, item: st.Item) -> None:
        if name in names:
            raise problem(f"two columns are called `{name}`", item, "give one another name with `as`")
        columns.append(value)
        names.append(name)

    numbers = count(1)  # of the sub-queries
    for item in items:
        if isinstance(item.value, ex.Star):
            for name, value in _all_columns(scope):
                add(name, value, item)
        elif isinstance(item.value, ex.StreamStar) and item.name is None:
            _stream_star(item, item.value, scope, add)
        else:
            add(item.name or column_name(item.value, numbers), _column(item.value, scope), item)
    return columns, names


def _column(node: ex.Expression, scope: Scope) -> Expr:
    """A column. Of a grouped sub-query that has no one row it is a row of nulls, where an expression would find null."""
    found = lower(node, scope)
    row = found.type.row
    if row is None or not isinstance(node, ex.Subquery) or not node.query.group_by:
        return found
    nothing = Row(0, (None,) * len(row.fields))
    return Call(Operator("the row or nulls", lambda row: nothing if row is None else row, False), (found,), found.type)


def _stream_star(item: st.Item, star: ex.StreamStar, scope: Scope, add: Any) -> None:
    place = scope.source(star.stream)
    if place is None:
        fields = scope.fields(star.stream)
        row = fields[0].type.row if fields else None
        if row is None:
            lower(star, scope)  # raises with the streams that there are
            return

        for name, kind in row.fields.items():
            add(name, Call(field_of(row.index[name]), (fields[0],), kind), item)
        return
    for name in scope.sources[place].type.fields:
        add(name, scope.field(place, name), item)


def _all_columns(scope: Scope) -> list[tuple[str, Expr]]:
    sources = scope.sources[scope.outer :]
    if len(sources) == 1:
        place = scope.outer
        return [(name, scope.field(place, name)) for name in sources[0].type.fields]
    return [
        (source.alias or f"stream_{number}", scope.row(scope.outer + number)) for number, source in enumerate(sources)
    ]


TRUE = Const(True, BOOL)
