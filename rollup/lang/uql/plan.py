"""A read query and the catalog lowered to a step of the engine: names bound, kinds checked, everything wrong refused."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rollup.core.errors import PlanError, RollupError
from rollup.core.nesting import nests
from rollup.engine.columns.cells import Aggregate
from rollup.engine.columns.sessions import Sessions
from rollup.engine.columns.slices import Slices
from rollup.engine.columns.windowed import Sessioned, Sliced, Windowed
from rollup.engine.expressions import Const, Field
from rollup.engine.expressions import Expr as Lowered
from rollup.engine.folding import AggregateCall
from rollup.engine.overlaps import overlap
from rollup.engine.types import LONG, STRING, DataType
from rollup.lang.uql import tree
from rollup.lang.uql.catalog import Catalog, Kind, Table
from rollup.lang.uql.catalog import Field as Column
from rollup.lang.uql.extensions import functions
from rollup.lang.uql.ingress import text_of
from rollup.lang.uql.reader import names, parse
from rollup.lang.uql.scope import Scope, Value
from rollup.lang.uql.semantics import FREQUENCY_OF, TYPES, Function

ARRIVAL = "arrival time"
"""The column of the microseconds from the start of the query to a row's arrival. No field can have this name."""


@dataclass(frozen=True)
class Output:
    """A printed column: its kind, its place among the step's columns, and that of its text when it is a time as read."""

    name: str
    kind: Kind
    place: int
    text: int | None


@dataclass(frozen=True)
class Plan:
    """One query, ready to run over rows of `table`.

    `texts` are the fields of time whose text is kept; `wall_clock`: windows close by the time of the clock on the wall.
    """

    query: tree.Query
    table: Table
    step: Windowed
    outputs: tuple[Output, ...]
    texts: tuple[str, ...]
    wall_clock: bool

    @property
    def produces(self) -> tuple[Column, ...]:
        """The output as fields of a table, as a catalog would name them; spans of time cannot be read again."""
        types = {kind: next(c for c in _TYPES if c.kind is kind) for kind in Kind if kind is not Kind.SPAN}
        return tuple(Column(o.name, o.kind, types[o.kind].arrow) for o in self.outputs if o.kind is not Kind.SPAN)


@nests
def plan(text: str, catalog: Catalog) -> tuple[Plan, ...]:
    """The plans of a chain of queries: each reads what the one before it writes.

    Raises SyntaxProblem and PlanError with line and column.
    """
    queries, known = parse(text), functions(catalog)
    plans: list[Plan] = []
    for number, query in enumerate(queries):
        if number:
            _check_chain(query, plans[-1])
        table = _table(query, catalog, plans[-1] if number else None)
        plans.append(_Lowering(query, table, known).plan())
    return tuple(plans)


def _table(query: tree.Query, catalog: Catalog, before: Plan | None) -> Table:
    if before is None:
        return catalog.find(query.source)
    try:
        table = catalog.find(query.source)
    except PlanError:
        if any(output.kind is Kind.SPAN for output in before.outputs):
            raise
        return Table((query.source.text,), before.produces)
    kinds = tuple(field.kind for field in table.fields)
    if kinds != tuple(output.kind for output in before.outputs):
        has = ", ".join(f"{output.name} {output.kind}" for output in before.outputs)
        wants = ", ".join(f"{field.name} {field.kind}" for field in table.fields)
        raise _refused(
            query.source,
            f"{table.name} of the catalog has ({wants}), the query before gives ({has})",
            "append its fields in their order",
        )
    return table


def _check_chain(query: tree.Query, before: Plan) -> None:
    if query.source.text.split(".")[-1] != before.query.target.text.split(".")[-1]:
        raise _refused(
            query.source,
            f"a query after the first reads what the one before it writes, {before.query.target.text}, not {query.source.text}",
            f"from {before.query.target.text}",
        )


class _Lowering:
    """One query. Columns of the input: the fields, the texts of times that are printed, the time of arrival."""

    def __init__(self, query: tree.Query, table: Table, functions: Mapping[str, Function]) -> None:
        self.query, self.table, self.functions = query, table, functions
        self.fields = {field.name: field for field in table.fields}
        self.places = {field.name: place for place, field in enumerate(table.fields)}
        self.texts = self._texts()
        for name in self.texts:
            self.places[text_of(name)] = len(self.places)
        self.arrival = len(self.places)
        self.scope = Scope({name: self._field(name) for name in self.fields})

    def plan(self) -> Plan:
        query = self.query
        where = self.scope.condition(query.rows_where) if query.rows_where else None
        window, wall = self._window()
        aggregate, values = self._aggregate()
        scope = Scope(values)
        having = scope.condition(query.windows_where) if query.windows_where else None
        items, names_, outputs, last = self._items(scope, values)
        passes = last.condition(query.output_where) if query.output_where else None
        step = Windowed(where, window, aggregate, having, items, names_, passes)
        return Plan(query, self.table, step, outputs, self.texts, wall)

    # fields

    def _field(self, name: str) -> Value:
        kind = self.fields[name].kind
        return Value(Field(0, self.places[name], TYPES[kind]), kind)

    def _column(self, name: str, kind: DataType) -> Lowered:
        return Field(0, self.places[name], kind)

    def _fields_of(self, kind: Kind) -> str:
        found = ", ".join(field.name for field in self.table.fields if field.kind is kind)
        return f"fields that are {kind}: {found or 'none'}"

    def _known(self, name: tree.Name, where: str) -> Column:
        if name.text not in self.fields:
            hint = f"known: {', '.join(self.fields)}"
            raise _refused(name, f"unknown field in {where}: {name.text}", hint)
        return self.fields[name.text]

    def _texts(self) -> tuple[str, ...]:
        """The fields of time that come out again: aggregated as they are, or grouped by."""
        asked = {a.text for g in self.query.aggregates if g.function in self.functions and self.functions[g.function].text_at
                 for a in g.arguments if isinstance(a, tree.Name)}  # fmt: skip
        asked |= {name.text for name in self.query.group_by}
        return tuple(f.name for f in self.table.fields if f.name in asked and f.kind is Kind.TIME)

    # windows

    def _window(self) -> tuple[Sliced | Sessioned, bool]:
        window = self.query.window
        if isinstance(window, tree.Session):
            return self._session(window)
        every = window.advance if isinstance(window, tree.Slide) else window.width
        growing = every.amount == 0
        if not growing and (said := overlap(window.width.amount, every.amount)):
            raise _refused(window, said, "a longer advance, or a shorter width")
        numbers, first, wall = self._line(window.width)
        shape = Slices(window.width.amount, every.amount or window.width.amount, first=first)
        return Sliced(shape, numbers, growing), wall

    def _line(self, width: tree.Width) -> tuple[Lowered | None, int | None, bool]:
        """What the windows lie on: a field, the wall clock, or the numbers of the rows."""
        based = self.query.based_on
        if based is None:
            return (None, 0, False) if width.unit == "rows" else (Field(0, self.arrival, LONG), None, True)
        field = self._known(based, "based on")
        wanted = Kind.INTEGER if width.unit == "rows" else Kind.TIME
        if field.kind is not wanted:
            widths = "rows" if width.unit == "rows" else "a span of time"
            said = f"a width of {widths} needs {wanted} in based on: {based.text} is {field.kind}"
            raise _refused(based, said, self._fields_of(wanted))
        return self._column(based.text, TYPES[field.kind]), None, False

    def _session(self, window: tree.Session) -> tuple[Sessioned, bool]:
        starts = self._starts(window)
        names_ = {name: self._field(name) for name in self.fields}
        opening = {
            f"{name}.start": Value(Field(0, self._width + i, TYPES[self.fields[name].kind]), self.fields[name].kind)
            for i, name in enumerate(starts)
        }
        begins = self.scope.condition(window.begin)
        ends = Scope({**names_, **opening}).condition(window.end) if window.end else None
        numbers, wall = self._clock(window)
        shape = Sessions(window.inclusive, window.life.amount if window.life else None)
        return Sessioned(shape, numbers, begins, ends, tuple(self.places[name] for name in starts)), wall

    @property
    def _width(self) -> int:
        """The number of columns of the input."""
        return len(self.places) + 1

    def _starts(self, window: tree.Session) -> tuple[str, ...]:
        """The fields that the end asks of the first row, as in `t.start`."""
        found = dict.fromkeys(name.text for name in (names(window.end) if window.end else []))
        parts = [name.removesuffix(".start") for name in found if name.endswith(".start")]
        return tuple(part for part in parts if part in self.fields)

    def _clock(self, window: tree.Session) -> tuple[Lowered, bool]:
        based = self.query.based_on
        if based is not None:
            field = self._known(based, "based on")
            if field.kind is not Kind.TIME:
                said = f"a session is based on a time: {based.text} is {field.kind}"
                raise _refused(based, said, self._fields_of(Kind.TIME))
            return self._column(field.name, TYPES[Kind.TIME]), False
        if window.life is None:
            return Const(0, LONG), False
        if self.table.time is not None:
            return self._column(self.table.time.name, TYPES[Kind.TIME]), False
        return Field(0, self.arrival, LONG), True

    # aggregates

    def _aggregate(self) -> tuple[Aggregate, dict[str, Value | None]]:
        """The aggregate node and the names after it: groups and aggregates by place, texts of times after all of them."""
        for name in self.query.group_by:
            self._known(name, "group by")
        keys = [self._field(name.text) for name in self.query.group_by]
        calls = [self._call(aggregation) for aggregation in self.query.aggregates]
        values: dict[str, Value | None] = {}
        self.text_places: dict[str, int] = {}
        for name, (place, kind) in self._named(keys, calls).items():
            values[name] = Value(Field(0, place, TYPES[kind]), kind)
        extra = self._text_calls(len(keys) + len(calls))
        return Aggregate(tuple(key.expr for key in keys), (*(call for call, _ in calls), *extra)), values

    def _named(self, keys: Sequence[Value], calls: Sequence[tuple[AggregateCall, Kind]]) -> dict[str, tuple[int, Kind]]:
        named = {name.text: (i, key.kind) for i, (name, key) in enumerate(zip(self.query.group_by, keys, strict=True))}
        for i, (aggregation, (_, kind)) in enumerate(zip(self.query.aggregates, calls, strict=True)):
            alias = aggregation.alias
            if alias.text in named:
                raise _refused(alias, f"{alias.text} is the name of two columns of the aggregate clause", "a name each")
            named[alias.text] = (len(keys) + i, kind)
        return named

    def _call(self, node: tree.Aggregation) -> tuple[AggregateCall, Kind]:
        function = self.functions.get(node.function)
        if function is None:
            hint = f"known: {', '.join(self.functions)}"
            raise _refused(node, f"unknown aggregate function: {node.function}", hint)
        if node.function == "count" and (not node.arguments or isinstance(node.arguments[0], tree.Star)):
            if len(node.arguments) > 1:
                raise _refused(node, "count takes one field, * or nothing", "count(x), count(*)")
            return AggregateCall(function.aggregate), Kind.INTEGER
        wanted = 2 if node.function == "cms" and len(node.arguments) == 2 else 1
        if len(node.arguments) != wanted or not isinstance(node.arguments[0], tree.Name):
            raise _refused(
                node,
                f"{node.function} takes one field" + (" and a value" if node.function == "cms" else ""),
                f"{node.function}(x)",
            )
        field = self._known(node.arguments[0], f"{node.function}(..)")
        if field.kind not in function.takes:
            needs = f"{node.function} needs a number"
            raise _refused(
                node,
                f"{node.function}({field.name}): the field is {field.kind}; {needs}",
                self._fields_of(Kind.INTEGER),
            )
        column = self._column(field.name, TYPES[field.kind])
        if wanted == 2:
            return AggregateCall(FREQUENCY_OF, (column, self._constant(node, field))), Kind.INTEGER
        return AggregateCall(function.aggregate, (column,)), function.kind(field.kind)

    def _constant(self, node: tree.Aggregation, field: Column) -> Const:
        value = Scope({}).value(node.arguments[1])  # type: ignore[arg-type]  # a star there is refused by the scope
        if value.kind is not field.kind or not isinstance(value.expr, Const):
            raise _refused(node, f"cms({field.name}, v): v is a value of the field's kind, {field.kind}", "a constant")
        return value.expr

    def _text_calls(self, place: int) -> list[AggregateCall]:
        """One more call for each value that is a time as it was read: its text."""
        calls: list[AggregateCall] = []
        for name in self.query.group_by:
            if name.text in self.texts:
                self.text_places[name.text] = place + len(calls)
                calls.append(self._text_call(self.functions["first"], name.text))
        for aggregation in self.query.aggregates:
            function = self.functions[aggregation.function]
            argument = aggregation.arguments[0] if aggregation.arguments else None
            if function.text_at and isinstance(argument, tree.Name) and argument.text in self.texts:
                self.text_places[aggregation.alias.text] = place + len(calls)
                calls.append(self._text_call(function, argument.text))
        return calls

    def _text_call(self, function: Function, field: str) -> AggregateCall:
        assert function.text_at is not None
        text = self._column(text_of(field), STRING)
        by = (self._column(field, TYPES[Kind.TIME]), text)
        return AggregateCall(function.text_at, by if function.text_at.arguments == (2, 2) else (text,))

    # columns

    def _items(
        self, scope: Scope, values: dict[str, Value | None]
    ) -> tuple[tuple[Lowered, ...], tuple[str, ...], tuple[Output, ...], Scope]:
        """The appended columns, then the groups that are not among them, then the texts of times."""
        groups = [name.text for name in self.query.group_by]
        listed = {item.value.text for item in self.query.items if isinstance(item.value, tree.Name)}
        nodes = [(item.name, item.value) for item in self.query.items]
        nodes += [(g, tree.Name(0, 0, g)) for g in groups if g not in listed]
        columns = [(name, scope.value(node), node) for name, node in nodes]
        exprs = [value.expr for _, value, _ in columns]
        outputs: list[Output] = []
        for place, (name, value, node) in enumerate(columns):
            text = self.text_places.get(node.text) if isinstance(node, tree.Name) else None
            outputs.append(Output(name, value.kind, place, len(exprs) if text is not None else None))
            if text is not None:
                exprs.append(Field(0, text, STRING))
        last: dict[str, Value | None] = {}
        for output, (_, value, _) in zip(outputs, columns, strict=True):
            here = Value(Field(0, output.place, value.expr.type), value.kind)
            same = output.name not in last or _same(columns, output.name)
            last[output.name] = here if same else None
        for group in groups:
            if group not in last:
                place = next(
                    i for i, (_, _, node) in enumerate(columns) if isinstance(node, tree.Name) and node.text == group
                )
                last[group] = Value(Field(0, place, columns[place][1].expr.type), columns[place][1].kind)
        names_ = tuple(f"column{i}" for i in range(len(exprs)))
        return tuple(exprs), names_, tuple(outputs), Scope(last)


def _same(columns: Sequence[tuple[str, Value, tree.Expr]], name: str) -> bool:
    """Whether every column of that name is the same."""
    return len({value.expr for other, value, _ in columns if other == name}) == 1


def _refused(node: tree.Node, message: str, hint: str | None = None) -> RollupError:
    return PlanError(message, line=node.line, column=node.column, hint=hint)


_TYPES = (
    Catalog.of(
        {
            "schemas": [
                {
                    "name": "all",
                    "fields": [
                        {"name": t, "type": t} for t in ("integer64", "float64", "text", "boolean", "timestamp")
                    ],
                }
            ]
        }
    )
    .tables[0]
    .fields
)
