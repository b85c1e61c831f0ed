"""An app's tree as what the engine runs: every name resolved, every window, pattern and change a node of the engine."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import Any

from rollup.core.crontabs import Crontab
from rollup.core.descriptions import descendants
from rollup.core.errors import PlanError, RollupError
from rollup.engine.expressions import All, Call, Const, Expr, Field
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.deliveries.app import AppSpec, SharedSpec
from rollup.engine.rows.deliveries.inputs import JoinSpec, SideSpec, StreamSpec
from rollup.engine.rows.deliveries.partitions import PartitionSpec
from rollup.engine.rows.deliveries.queries import ChangeSpec, InputSpec, InsertSpec, QuerySpec
from rollup.engine.rows.deliveries.rates import Rate
from rollup.engine.rows.deliveries.selecting import Selection
from rollup.engine.rows.windows.counted import Length
from rollup.engine.types import BOOL, LONG, STRING, DataType, RowType
from rollup.lang.siddhi import tree
from rollup.lang.siddhi.statements import semantics
from rollup.lang.siddhi.statements.annotations import check_definition, check_names, check_queries, primary_key, purge
from rollup.lang.siddhi.statements.binding import TIME, Input, Scope, attributes_of, bind, condition, number, row_type
from rollup.lang.siddhi.statements.calendars import crontab
from rollup.lang.siddhi.statements.functions import spelled_out
from rollup.lang.siddhi.statements.kinds import alike, assigned, keyed, ordered
from rollup.lang.siddhi.statements.names import Names, qualified
from rollup.lang.siddhi.statements.patterns import lower_pattern
from rollup.lang.siddhi.statements.windows import window
from rollup.plan.types import Type


def lower(app: tree.App) -> AppSpec:
    """The engine's app. Raises PlanError with the place of what cannot run."""
    check_names(app)
    names, tables, shared, queries = Names(), dict[str, tuple[int, ...]](), dict[str, SharedSpec](), list[Any]()
    for statement in app.statements:
        if isinstance(statement, tree.Definition) and not _unread(statement, app):
            _define(statement, names, tables, shared)
    for statement in app.statements:
        if isinstance(statement, tree.Query):
            queries.append(_query(statement, names))
        elif isinstance(statement, tree.Partition):
            queries.append(_partition(statement, names))
    stored = {**names.tables, **names.shared}
    ticking = [each for each in app.statements if isinstance(each, tree.Definition) and each.kind == "trigger"]
    triggers = {each.name: _ticks(each) for each in ticking}
    return AppSpec(
        {**names.streams, **names.inner}, stored, tables, shared, tuple(queries), tuple(names.asks), triggers
    )


def _ticks(made: tree.Definition) -> int | Crontab | None:
    if made.every == 0:
        raise PlanError(f"{made.name} ticks at every 0 ms, without end", hint="at every 1 sec").at(*made.place)
    return crontab(made.at, made.place) if made.at is not None else made.every


def _unread(made: tree.Definition, app: tree.App) -> bool:
    """Whether a stream has a type that statements do not carry, and none has to do with it: it is only for aggregations."""
    if made.kind != "stream" or all(kind in semantics.TYPES for _, kind in made.attributes):
        return False
    nodes = list(descendants(app.statements))
    read = {node.name for node in nodes if isinstance(node, tree.Stream)}
    return made.name not in read | {node.output.target for node in nodes if isinstance(node, tree.Query)}


def _define(made: tree.Definition, names: Names, tables: dict[str, Any], shared: dict[str, SharedSpec]) -> None:
    check_definition(made)
    names_of = [name for name, _ in made.attributes]
    twice = next((name for name in names_of if names_of.count(name) > 1), None)
    if twice is not None:
        raise PlanError(f"{made.name} has the attribute {twice!r} twice", hint="rename one").at(*made.place)
    rows = row_type(made.name, (("triggered_time", Type.LONG),) if made.kind == "trigger" else made.attributes)
    if _is_known(made, rows, names):
        return
    if made.kind in ("stream", "trigger"):
        names.streams[made.name] = rows
    elif made.kind == "table":
        names.tables[made.name] = rows
        tables[made.name] = primary_key(made, rows)
    elif made.window is not None:
        names.shared[made.name] = rows
        output: Any = made.output
        shared[made.name] = SharedSpec(window(made.window, rows), output)


def _is_known(made: tree.Definition, rows: RowType, names: Names) -> bool:
    """Whether a stream or a table is defined once more, and alike. Raises PlanError where the two differ."""
    like = {"stream": names.streams, "trigger": names.streams, "table": names.tables}.get(made.kind, {}).get(made.name)
    if like is None and not any(made.name in known for known in (names.streams, names.tables, names.shared)):
        return False
    if like is None or like.fields != rows.fields or (made.kind == "table" and made.annotations):
        raise PlanError(f"{made.name!r} is defined twice, and not alike", hint="rename one").at(*made.place)
    return True


def _partition(made: tree.Partition, names: Names) -> PartitionSpec:
    values, ranges = dict[str, Expr](), dict[str, tuple[tuple[Expr, str], ...]]()
    for key in made.keys:
        rows = names.streams.get(key.stream) or names.shared.get(key.stream)
        if rows is None:
            raise PlanError(f"stream {key.stream!r} is not defined").at(*made.place)
        if key.stream in values or key.stream in ranges:
            raise PlanError(f"{key.stream} has two keys", hint="one key a stream").at(*made.place)
        scope = Scope([Input((key.stream,), rows)])
        if key.value is not None:
            values[key.stream] = keyed(bind(key.value, scope))
        else:
            ranges[key.stream] = tuple((condition(test, scope, "a range"), label) for test, label in key.ranges)
    queries = tuple(_query(query, names) for query in made.queries)
    for inner in [name for name in names.streams if name.startswith("#")]:
        names.inner[inner] = names.streams.pop(inner)
    return PartitionSpec(values, ranges, queries, purge(made))


def _query(made: tree.Query, names: Names) -> QuerySpec:
    check_queries(made.annotations)
    made = spelled_out(made, names)
    source, inputs = _input(made.input, names)
    scope = Scope(inputs, [], ask=lambda node, inside: _ask(node, inside, names))
    selection, columns = lower_selection(made.selection, scope, made.output.kind)
    rate = None if made.rate is None else _rate(made.rate, made.output, bool(selection.group_by))
    if rate is not None and rate.mode == "snapshot":
        selection = _all_rows(selection)
    return QuerySpec(source, selection, rate, _output(made.output, columns, names))


def _rate(made: tree.Rate, output: tree.Output, grouped: bool) -> Rate:
    if not (made.events or made.span):
        raise PlanError("output every 0 gives nothing", hint="output every 1 events").at(*output.place)
    if made.mode == "snapshot" and made.span is None:
        raise PlanError("a snapshot is taken by time", hint="output snapshot every 1 sec").at(*output.place)
    if made.mode == "snapshot" and output.kind == "expired":
        raise PlanError("a snapshot is of what is in, not of what has left", hint="insert into …").at(*output.place)
    return Rate(made.mode, made.events, made.span, grouped)


def _all_rows(selection: Selection) -> Selection:
    """What is in a window is known by all that came and left."""
    return replace(selection, kind="all", each=True)


def lower_selection(
    made: tree.Selection, scope: Scope, kind: Any, asked: bool = False
) -> tuple[Selection, dict[str, DataType]]:
    """The engine's select, and the names and types of its columns. `asked`: `having` and `order by` of a question also know
    attributes that it does not select; those that it orders by stand behind the columns."""
    items = made.items or _all_items(scope)
    columns = dict[str, Expr]()
    for item in items:
        name = item.name
        if name is None:
            raise PlanError("a column that is no attribute needs a name", hint="as name").at(*item.expression.place)
        if name in columns:
            raise PlanError(f"two columns are called {name!r}").at(*item.expression.place)
        columns[name] = bind(item.expression, scope)
    named = Scope(scope.inputs, scope.calls, _not_fields(columns, scope), timed=True)
    keys = tuple(_key(node, scope, named) for node in made.group_by)
    having = (
        None
        if made.having is None
        else condition(made.having, Scope(scope.inputs, scope.calls, columns, selected=not asked), "having")
    )
    given = {**columns, **(_attributes(made.order_by, columns, scope) if asked else {})}
    order = tuple((_column(each, given), each.descending) for each in made.order_by)
    limit = None if made.limit is None else number(made.limit, "limit")
    offset = 0 if made.offset is None else number(made.offset, "offset")
    calls: list[AggregateCall] = scope.calls or []
    selection = Selection(tuple(given.values()), tuple(calls), keys, having, order, limit, offset, kind)
    return selection, {name: expr.type for name, expr in columns.items()}


def _not_fields(columns: dict[str, Expr], scope: Scope) -> dict[str, Expr]:
    """The columns whose names are not attributes: in `group by` an attribute comes first."""
    known = {name for given in scope.inputs for name in given.type.fields}
    return {name: expr for name, expr in columns.items() if name not in known}


def _key(node: tree.Expression, scope: Scope, named: Scope) -> Expr:
    calls, named.calls = named.calls, None
    try:
        return keyed(bind(node, named))
    finally:
        named.calls = calls


def _all_items(scope: Scope) -> tuple[tree.Item, ...]:
    names = [
        (given.names[0], name) for given in scope.inputs for name in given.type.fields if not name.startswith("__")
    ]
    qualify = len(scope.inputs) > 1
    return tuple(tree.Item(tree.Name(name, stream if qualify else None, None, (1, 1)), None) for stream, name in names)


def _attributes(order_by: Iterable[tree.Ordering], columns: Mapping[str, Expr], scope: Scope) -> dict[str, Expr]:
    """The attributes that are ordered by and not selected."""
    known = {name for given in scope.inputs for name in given.type.fields}
    nodes = [each.expression for each in order_by]
    names = [node for node in nodes if isinstance(node, tree.Name) and node.attribute in known - set(columns)]
    return {str(node.attribute): bind(node, scope) for node in names}


def _column(made: tree.Ordering, columns: Mapping[str, Expr]) -> int:
    node, names = made.expression, list(columns)
    if isinstance(node, tree.Name) and node.attribute is not None and node.attribute in columns:
        ordered(columns[node.attribute].type, node, node.attribute)
        return names.index(node.attribute)
    raise PlanError("order by takes a selected column", hint=f"selected are {', '.join(names)}").at(*node.place)


def _input(made: tree.Stream | tree.Join | tree.Pattern, names: Names) -> tuple[InputSpec, list[Input]]:
    match made:
        case tree.Stream():
            rows = names.rows(made)
            if made.name in names.tables and not made.inner:
                raise PlanError(f"{made.name} is a table and never triggers", hint="join it with a stream").at(
                    *made.place
                )
            return stream_spec(made, names, rows), [_known(made, None, rows)]
        case tree.Join():
            return _join(made, names)
        case tree.Pattern():
            return lower_pattern(made, names)


def _known(made: tree.Stream, alias: str | None, rows: RowType, optional: bool = False) -> Input:
    """A stream by the names that it has in a query: its alias, or its own, with the sign of an inner one and without."""
    names = (alias,) if alias else (made.name,) if not made.inner else (made.name, qualified(made))
    return Input(names, rows, optional)


def stream_spec(made: tree.Stream, names: Names, rows: RowType) -> StreamSpec:
    """A stream with the filters before and after its window."""
    scope = Scope([_known(made, None, rows)], ask=lambda node, inside: _ask(node, inside, names))
    before, after, kept = list[Expr](), list[Expr](), None
    for handler in made.handlers:
        if handler.kind == "filter":
            (before if kept is None else after).append(condition(handler.expression, scope, "a filter"))
        elif handler.kind == "log":
            (before if kept is None else after).append(_log(handler.expression, rows))
        elif handler.kind == "function":
            problem = "a stream function stands in a query over one stream, not in a join"
            raise PlanError(problem, hint="insert what it gives into a stream").at(*handler.expression.place)
        elif kept is not None or made.name in names.shared:
            raise PlanError("a stream has one window, and a shared window none").at(*handler.expression.place)
        elif isinstance(handler.expression, tree.Function):
            kept = window(handler.expression, rows)
    return StreamSpec(qualified(made), _all(before), kept, _all(after), made.name in names.shared)


def _log(call: tree.Expression, rows: RowType) -> Expr:
    """`#log('words')`: a condition that is always true and writes the row to the log."""
    given = call.arguments if isinstance(call, tree.Function) else ()
    words = " ".join(str(each.value) for each in given if isinstance(each, tree.Constant) and each.value is not None)
    shown = (Field(0, place, kind) for place, (name, kind) in enumerate(rows.fields.items()) if name != TIME)
    return Call(semantics.LOG, (Const(words, STRING), *shown), BOOL)


def _all(conditions: list[Expr]) -> Expr | None:
    return None if not conditions else conditions[0] if len(conditions) == 1 else All(tuple(conditions))


def _ask(node: tree.InTable, inside: Scope, names: Names) -> int:
    """`(condition) in Table`: the table's row is one more input behind those of the filter."""
    if node.table not in names.tables:
        raise PlanError(f"table {node.table!r} is not defined", hint=f"tables are {', '.join(names.tables)}")
    scope = Scope([*inside.inputs, Input((node.table,), names.tables[node.table])], preferred=0)
    names.asks.append((node.table, condition(node.condition, scope, "the condition of `in`")))
    return len(names.asks) - 1


def _join(made: tree.Join, names: Names) -> tuple[JoinSpec, list[Input]]:
    if made.left.unidirectional and made.right.unidirectional:
        raise PlanError("one side of a join is unidirectional, not both", hint="leave it out").at(*made.place)
    if all(side.stream.name in names.tables and not side.stream.inner for side in (made.left, made.right)):
        problem = f"{made.left.stream.name} and {made.right.stream.name} are tables, and none of them triggers"
        raise PlanError(problem, hint="join a stream with a table").at(*made.place)
    sides, inputs = list[SideSpec](), list[Input]()
    unidirectional = made.left.unidirectional or made.right.unidirectional
    outer = {"inner": (False, False), "left": (True, False), "right": (False, True), "full": (True, True)}[made.kind]
    for place, side in enumerate((made.left, made.right)):
        rows = names.rows(side.stream)
        stored = side.stream.name in names.tables or side.stream.name in names.shared
        table = side.stream.name in names.tables
        itself = stored and place == 1 and made.left.stream.name == side.stream.name  # once is enough
        triggers = not table and (side.unidirectional or not (unidirectional or itself))
        spec = stream_spec(side.stream, names, rows)
        if spec.window is None and not stored:
            spec = replace(spec, window=Length(0))  # it holds nothing: a row is matched as it comes and as it leaves
        sides.append(SideSpec(spec, triggers, stored))
        inputs.append(_known(side.stream, side.alias, rows, outer[1 - place]))
    on = None if made.on is None else condition(made.on, Scope(inputs), "the condition of a join")
    return JoinSpec(sides[0], sides[1], on, outer), inputs


def _output(made: tree.Output, columns: dict[str, DataType], names: Names) -> InsertSpec | ChangeSpec:
    given = RowType(made.target, {**columns, TIME: LONG})
    target = f"#{made.target}" if made.inner else made.target
    if made.action == "insert":
        _insertable(made, target, given, names)
        return InsertSpec(target)
    if target not in names.tables:
        raise _no_table(made, names.tables)
    return _change(made, target, given, names.tables[target])


def lower_change(made: tree.ChangeRequest, stored: Mapping[str, RowType], tables: Collection[str]) -> ChangeRequest:
    """An on-demand query that changes a table: what it selects is one row, of constants. Raises PlanError."""
    scope, output = Scope([], []), made.output
    columns = dict[str, DataType]()
    selection = Selection(())
    if made.selection.items:
        selection, columns = lower_selection(made.selection, scope, "current")
    elif output.action in ("insert", "upsert"):
        raise PlanError("there is no row to insert", hint="select 1 as k, … insert into T").at(*output.place)
    given, known = RowType("the query", {**columns, TIME: LONG}), stored.get(output.target)
    if known is None or (output.action != "insert" and output.target not in tables):
        raise _no_table(output, tables)
    if output.action == "insert":
        _check_fits(output, given, known)
        return selection, InsertSpec(output.target), columns
    return selection, _change(output, output.target, given, known, always=output.action == "delete"), columns


ChangeRequest = tuple[Selection, InsertSpec | ChangeSpec, dict[str, DataType]]
"""What is selected, what is done with it, and the columns of what is selected."""


def _no_table(made: tree.Output, tables: Collection[str]) -> RollupError:
    return PlanError(f"{made.target!r} is no table", hint=f"tables are {', '.join(tables) or 'none'}").at(*made.place)


def _insertable(made: tree.Output, target: str, given: RowType, names: Names) -> None:
    """Refuse what does not fit; a stream that is not defined is defined by what is inserted."""
    known = names.tables.get(target) or names.shared.get(target) or names.streams.get(target)
    if known is None:
        names.streams[target] = RowType(target, given.fields)
        return
    _check_fits(made, given, known)


def _check_fits(made: tree.Output, given: RowType, known: RowType) -> None:
    """Refuse rows that are not as their target is defined."""
    wanted, got = list(known.fields.values()), list(given.fields.values())
    fits = list(given.fields) == list(known.fields) and all(map(alike, got, wanted))
    if not fits:
        columns, defined = ([f"{name} {kind}" for name, kind in attributes_of(rows).items()] for rows in (given, known))
        raise PlanError(
            f"the query selects ({', '.join(columns)}), but {made.target} is defined as ({', '.join(defined)})"
        ).at(*made.place)


def _change(made: tree.Output, target: str, given: RowType, table: RowType, always: bool = False) -> ChangeSpec:
    """What rows do to a table; `always`: without a condition it is all of its rows."""
    scope = Scope([Input((target,), table), Input(("the query",), given)], preferred=1)
    if made.on is None and not always:
        raise PlanError(f"{made.action} needs a condition", hint="on …").at(*made.place)
    on = Const(True, BOOL) if made.on is None else condition(made.on, scope, "on")
    places, values = list[int](), list[Expr]()
    for each in made.assignments or ():
        if each.column.attribute not in table.index:
            raise PlanError(f"{target} has no column {each.column.attribute!r}").at(*each.column.place)
        places.append(table.index[each.column.attribute])
        values.append(assigned(bind(each.value, scope), list(table.fields.values())[places[-1]], each))
    if made.action == "upsert" or (made.action == "update" and made.assignments is None):
        _check_columns(made, given, table)
    if made.assignments is None and made.action != "delete":
        places = [table.index[name] for name in given.fields]
        values = [Field(1, given.index[name], kind) for name, kind in given.fields.items()]
    inserted = tuple(given.index.get(name) for name in table.fields)
    return ChangeSpec(made.action, target, on, tuple(places), tuple(values), inserted)  # type: ignore[arg-type]


def _check_columns(made: tree.Output, given: RowType, table: RowType) -> None:
    """Refuse a column that the table has not, or has of another type: rows go into it by the names of their columns."""
    missing = [name for name in table.fields if name not in given.fields] if made.action == "upsert" else []
    if missing:
        raise PlanError(f"the query selects no {missing[0]}, which a new row of {made.target} has").at(*made.place)
    for name, kind in given.fields.items():
        wanted = table.fields.get(name)
        if wanted is None or not alike(kind, wanted):
            columns = ", ".join(f"{each} {of}" for each, of in attributes_of(table).items())
            problem = f"the query selects {name} {kind}, but {made.target} has the columns {columns}"
            raise PlanError(problem, hint="as name").at(*made.place)
