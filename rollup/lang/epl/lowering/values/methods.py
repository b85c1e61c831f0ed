"""Methods of values in expressions: those of texts, of lists with their functions, and what kind of value it is."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import Any

from rollup.engine import operators as op
from rollup.engine.expressions import All, Call, Closure, Coalesce, Const, Expr, Local, RowOf
from rollup.engine.operators import Operator
from rollup.engine.types import ANY, BOOL, DECIMAL, DOUBLE, INT, STRING, DataType, Kind, RowType
from rollup.lang.epl.accessing import OF_RANKS
from rollup.lang.epl.catalog import loose, problem, unknown
from rollup.lang.epl.java import MAPS, NUMBERS, STATIC, TEXTS, TO_TEXT, Function
from rollup.lang.epl.lowering.values.comparing import widened
from rollup.lang.epl.lowering.values.enumerating import METHODS, placed
from rollup.lang.epl.lowering.values.fitting import counted, fitting
from rollup.lang.epl.lowering.values.ranking import RANKED, criteria_of, key_of, ranked
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope, Sets, Source, end_of_sorted, property_of
from rollup.lang.epl.semantics import TYPES
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree.node import Node

_numbers = count()
_NO_VALUES = Operator("no values", lambda: [], strict=False)
"""What stands in place of a list that is null, where that is one of no elements."""
_NAMES = {
    Kind.INT: "Integer", Kind.LONG: "Long", Kind.FLOAT: "Float", Kind.DOUBLE: "Double", Kind.STRING: "String",
    Kind.BOOL: "Boolean", Kind.DECIMAL: "BigDecimal",
}  # fmt: skip


class LowerMethods:
    """The part of the lowering of an expression that is about methods and kinds."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope

    def lower(self, node: ex.Expression) -> Expr:
        """An expression, bound."""
        raise NotImplementedError

    def _all(self, nodes: Sequence[ex.Expression]) -> tuple[Expr, ...]:
        return tuple(self.lower(node) for node in nodes)

    # methods

    def _method(self, node: ex.Call) -> Expr:
        name, arguments = node.name.lower(), node.arguments
        static = STATIC.get(self._class(node.of))
        if static is not None:
            if name not in static:
                raise unknown("method", node.name, static, node)
            return self._function(node, static[name], self._all(arguments))
        if name == "keys" and (table := self._table(node.of)):  # nothing else has that method
            return self._table_keys(node, table)
        if self.scope.slots is not None and (end := end_of_sorted(node, self.scope)) is not None:
            return self._end(node, end)
        value = self._whose(node)
        if value.type.kind is Kind.LIST:
            return self._list_method(node, value)
        known = _methods_of(value.type)
        if name not in known:
            raise unknown("method", node.name, known, node)
        return self._function(node, known[name], (value, *self._all(arguments)))

    def _class(self, node: ex.Expression | None) -> str:
        """The class of Java whose static method is called, with or without its package; empty when it is none."""
        text = dotted(node) if isinstance(node, (ex.Reference, ex.Member)) else ""
        package, _, name = text.rpartition(".")
        own = self.scope.fields(name) or self.scope.source(name) is not None or name in self.scope.locals
        return name if package in ("", "java.lang") and not own else ""

    def _table(self, node: ex.Expression | None) -> str:
        """The table of that name, also where a stream or a property is called so; empty when it is none."""
        name = node.name if isinstance(node, ex.Reference) and node.name not in self.scope.locals else ""
        info = self.scope.catalog.stores.get(name)
        return name if info is not None and info.kind == "table" else ""

    def _table_keys(self, node: ex.Call, table: str) -> Expr:
        from rollup.lang.epl.lowering.queries import keys_of

        counted(node, "", len(node.arguments))
        return keys_of(table, node, self.scope)

    def _end(self, node: ex.Call, end: ex.Call) -> Expr:
        """The first or the last of what is sorted, or its key."""
        row, name = self.lower(end), property_of(end, self.scope)
        return self._property(row, name, node) if name and node.name.lower().endswith("key") else row

    def _property(self, value: Expr, name: str, node: Node) -> Expr:
        """A property of a row."""
        raise NotImplementedError

    def _whose(self, node: ex.Call) -> Expr:
        """The value that a method is of; of a sub-query all its rows."""
        from rollup.lang.epl.lowering.queries import subquery

        assert node.of is not None
        if isinstance(node.of, ex.Subquery):
            return subquery(node.of.query, self.scope, "rows")
        value = self.lower(node.of)
        if isinstance(node.of, ex.Array):
            return Call(_THERE, (value,), value.type)
        if isinstance(node.of, ex.Call) and node.of.of is None and node.of.name.lower() == "sorted":
            return Coalesce((value, Call(_NO_VALUES, (), value.type)), value.type)
        return value

    def _function(self, node: ex.Call, function: Function, values: tuple[Expr, ...]) -> Expr:
        found, result, wants = function
        counted(node, wants, len(values))
        fitting(node, wants, ANY, values)
        if found is TO_TEXT and values[0].type.kind is Kind.FLOAT:
            found = op.WORDS[Kind.FLOAT]
        kind = result([value.type for value in values])
        given = tuple(widened(value, kind) for value in values) if kind == DOUBLE else values
        return Call(found, given, kind)

    def _list_method(self, node: ex.Call, value: Expr) -> Expr:
        name = node.name.lower()
        criteria = criteria_of(node.of, self.scope)
        if criteria and name in RANKED and not (name in METHODS and node.arguments):
            return self._ranked_method(node, value, criteria)
        if name not in METHODS:
            raise unknown("method", node.name, {**METHODS, **(RANKED if criteria else {})}, node)
        function, result, wants = METHODS[name]
        counted(node, wants, len(node.arguments))
        element = value.type.element or ANY
        arguments: list[Expr] = []
        more: list[int] = []
        for argument in node.arguments:
            if isinstance(argument, ex.Lambda):
                kinds = [arguments[0].type, element] if name == "aggregate" and arguments else [element]
                arguments.append(self._closure(argument, kinds))
                more.append(len(argument.parameters) - len(kinds))
            else:
                arguments.append(self.lower(argument))
                more.append(0)
        fitting(node, wants, element, arguments)
        kind = self._result(result, value.type, element, arguments)
        found = placed(function, tuple(more)) if any(more) else function
        operator = Operator(name, _nullable(found), strict=False)
        return Call(operator, (value, *arguments), kind)

    def _ranked_method(self, node: ex.Call, value: Expr, criteria: Sequence[ex.Expression]) -> Expr:
        """A method of what is sorted, by one value: the keys have the type of that."""
        name, element = node.name.lower(), value.type.element or ANY
        _, result, wants = RANKED[name]
        if len(node.arguments) != wants:
            raise problem(f"`{node.name}` takes {wants} argument(s), not {len(node.arguments)}", node)
        if element.row is None:
            raise problem(f"`{render(node.of) if node.of else name}` holds no events", node, "sorted(price)")
        inside = type(self)(replace(self.scope, sources=(Source(None, element.row),), outer=0))
        by = [inside.lower(each.value if isinstance(each, ex.Sorted) else each) for each in criteria]
        key, lowered = key_of(by), by[0]
        if key is None:
            raise problem(f"`{node.name}`: the key hangs on more than the row", node, "sorted(price)")
        if len(by) > 1 and (wants or result == "key"):
            raise problem(f"`{node.name}` needs rows sorted by one property", node, "sorted(price)")
        given = self._all(node.arguments)
        value = _unlisted(value)
        for place, each in enumerate(given):
            wanted = BOOL if place in (1, 3) else lowered.type
            if each.type.kind is not wanted.kind and not loose(each.type):
                raise problem(f"`{render(node.arguments[place])}` is {each.type}, the key is {wanted}", node, "cast it")
        down = isinstance(criteria[0], ex.Sorted) and criteria[0].descending
        kind = {"bool": BOOL, "int": INT, "key": lowered.type, "element": element, "list": value.type}[result]
        return Call(Operator(name, ranked(name, key, down), strict=False), (value, *given), kind)

    def _result(self, result: str, whole: DataType, element: DataType, arguments: Sequence[Expr]) -> DataType:
        inner = arguments[-1].type if arguments else element
        return {
            "list": whole, "element": element, "int": INT, "bool": BOOL, "double": DOUBLE, "value": inner,
            "mean": DECIMAL if inner == DECIMAL else DOUBLE,
            "mapped": DataType(Kind.LIST, element=inner), "first": inner, "map": DataType(Kind.ANY, element=inner),
            "groups": DataType(Kind.ANY, element=DataType(Kind.LIST, element=inner if len(arguments) > 1 else element)),
        }[result]  # fmt: skip

    def _closure(self, node: ex.Lambda, kinds: Sequence[DataType]) -> Expr:
        """A function of a value, and, where the text gives it more parameters, of its place and of the size of the list."""
        wanted, given = len(kinds), len(node.parameters)
        if not wanted <= given <= wanted + 2:
            raise problem(
                f"the lambda takes {wanted} to {wanted + 2} parameters, not {given}", node, "x => …, (x, i) => …"
            )
        every = [*kinds, *[INT] * (given - wanted)]
        names = [f"p{next(_numbers)}" for _ in every]
        bound = {text: Local(name, kind) for text, name, kind in zip(node.parameters, names, every, strict=True)}
        body = type(self)(replace(self.scope, locals={**self.scope.locals, **bound})).lower(node.body)
        return Closure(tuple(names), body, body.type)

    # kinds

    def _type_name(self, node: ex.Call) -> Expr:
        (value,) = self._arguments(node, 1, "typeof(x)")
        name = _type_name(value.type)
        return Call(Operator("typeof", lambda value: name), (value,), STRING)

    def _instance(self, node: ex.Call) -> Expr:
        if len(node.arguments) < 2:
            raise problem("instanceof takes a value and types", node, "instanceof(x, int, long)")
        value = self.lower(node.arguments[0])
        kinds = [self._kind(each) for each in node.arguments[1:]]
        fits = value.type.kind in (Kind.ANY, *(kind.kind for kind in kinds)) or ANY in kinds
        return All((Const(fits, BOOL), Call(op.NOT_NULL, (value,), BOOL)))

    def _same_event(self, node: ex.Call) -> Expr:
        """Whether two rows are one event, and not two of the same values."""
        values = self._arguments(node, 2, "event_identity_equals(a, b)")
        rows = [value.type.row for value in values]
        if rows[0] is None or rows[0] is not rows[1] or not all(isinstance(v, (RowOf, Local)) for v in values):
            raise problem(f"`{render(node)}` needs two streams of one type", node, "event_identity_equals(a, b)")
        return Call(_SAME_EVENT, values, BOOL)

    def _kind(self, node: ex.Expression) -> DataType:
        """The type that a name or a text says, with or without its package."""
        text = str(node.value) if isinstance(node, ex.Constant) else dotted(node)
        name = text.rsplit(".", 1)[-1].lower()
        if name not in TYPES:
            raise unknown("type", text, TYPES, node)
        return TYPES[name]

    def _existsvalue(self, node: ex.ExistsValue) -> Expr:
        """Whether there is such a property: of a row inside another, whether that row is there."""
        self.lower(node.value)
        if isinstance(node.value, ex.Member) and dotted(node.value):
            inside = self.lower(node.value.of)
            return Call(op.NOT_NULL, (inside,), BOOL)
        return Const(True, BOOL)

    def _grouping(self, node: ex.Call) -> Expr:
        """A bit for each expression, in the order of the group by, the first the highest: whether its set lacks it."""
        sets = self.scope.sets
        if sets is None:
            raise problem(f"`{node.name}` needs grouping sets", node, "group by rollup(a, b)")
        if not node.arguments or (node.name.lower() == "grouping" and len(node.arguments) > 1):
            raise problem(f"`{node.name}` takes an expression of the group by", node, f"{node.name}(a)")
        places = sorted(self._dimension(each, sets) for each in node.arguments)
        answers = tuple(sum((p not in each) << n for n, p in enumerate(reversed(places))) for each in sets.sets)
        return Call(Operator("grouping", lambda place: answers[place]), (sets.slot,), INT)

    def _dimension(self, node: ex.Expression, sets: Sets) -> int:
        found = self.lower(node)
        if found not in sets.dimensions:
            raise problem(f"`{render(node)}` is not among what is grouped by", node)
        return sets.dimensions.index(found)

    def _arguments(self, node: ex.Call, n: int, example: str) -> tuple[Expr, ...]:
        if len(node.arguments) != n:
            raise problem(f"`{node.name}` takes {n} argument(s), not {len(node.arguments)}", node, example)
        return self._all(node.arguments)

    def _new(self, node: ex.New) -> Expr:
        for place, (name, value) in enumerate(node.fields):
            if any(name == other for other, _ in node.fields[:place]):
                raise problem(f"`new` has `{name}` twice", value, "each name once")
        values = self._all([value for _, value in node.fields])
        kinds = RowType("new", {name: value.type for (name, _), value in zip(node.fields, values, strict=True)})
        return Call(op.ROW, values, kinds.data_type)


_SAME_EVENT = Operator("same event", "({0}.id == {1}.id)")
_THERE = Operator("values that are there", lambda values: [each for each in values if each is not None])


def _unlisted(value: Expr) -> Expr:
    """The ranks whose rows are listed, for one who asks them themselves."""
    match value:
        case Coalesce(args=(Call(op=operator, args=(ranks,)), nothing)) if operator is OF_RANKS:
            return replace(value, args=(ranks, nothing))
        case _:
            return value


def _methods_of(kind: DataType) -> Mapping[str, Function]:
    """The methods that values of a type have, lists apart."""
    if kind.numeric:
        return NUMBERS
    if kind.kind is Kind.STRING:
        return TEXTS
    return MAPS if kind.kind is Kind.ANY and kind.element is not None else {}


def _type_name(kind: DataType) -> str | None:
    if kind.kind is Kind.LIST:
        return f"{_type_name(kind.element or ANY) or 'Object'}[]"
    return kind.row.name if kind.row is not None else _NAMES.get(kind.kind)


def _nullable(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda values, *rest: None if values is None else function(values, *rest)


def of_column(node: ex.Call, scope: Scope) -> bool:
    """Whether a call is one of a method, or of a chain of them, of a column."""
    of: ex.Expression | None = node
    while isinstance(of, ex.Call):
        of = of.of
    return of is not None and bool(scope.fields(dotted(of).rpartition(".")[2]))


def dotted(node: ex.Expression) -> str:
    """The names of a chain, empty when it is something else."""
    if isinstance(node, ex.Reference):
        return node.name
    if isinstance(node, ex.Member):
        before = dotted(node.of)
        return f"{before}.{node.name}" if before else ""
    return ""
