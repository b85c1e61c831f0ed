"""Expressions of the tree → typed expressions of the engine: names bound, operators chosen, types checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NoReturn

from rollup.core.errors import PlanError
from rollup.engine import operators as op
from rollup.engine.expressions import (
    All,
    Any_,
    Call,
    Case,
    Coalesce,
    Const,
    Expr,
    Now,
    Variable,
)
from rollup.engine.operators import Operator
from rollup.engine.rows.plans import Arriving, ContextValue, Earlier, Previous, TableRow
from rollup.engine.types import ANY, BOOL, DECIMAL, DOUBLE, FLOAT, INT, LONG, NULL, STRING, DataType, Kind
from rollup.lang.epl.catalog import loose, problem, unknown
from rollup.lang.epl.lowering.methods import LowerMethods, dotted
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope, aggregates, called, is_aggregate
from rollup.lang.epl.semantics import (
    ARITHMETIC,
    BITS,
    CASTS,
    COMPARE,
    DECIMAL_REMAINDER,
    HASHES,
    REGEXP,
)
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree.node import Node

_KINDS: dict[str, DataType] = {
    "int": INT, "long": LONG, "float": FLOAT, "double": DOUBLE, "string": STRING, "boolean": BOOL, "null": NULL,
}  # fmt: skip


def lower(node: ex.Expression, scope: Scope) -> Expr:
    """An expression, bound. Raises PlanError with the place for names and types that do not fit."""
    return _Lowering(scope).lower(node)


def condition(node: ex.Expression, scope: Scope) -> Expr:
    """A condition: its value must be a boolean."""
    found = lower(node, scope)
    if found.type.kind is not Kind.BOOL and not loose(found.type):
        raise problem(f"`{render(node)}` is {found.type}, not a condition", node, "compare it with something")
    return found


@cache
def field_of(place: int) -> Operator:
    """The field of a row that is a value."""
    return Operator(f"field {place}", f"{{0}}.values[{place}]")


class _Lowering(LowerMethods):
    """The lowering of one expression."""

    def lower(self, node: ex.Expression) -> Expr:
        return getattr(self, f"_{type(node).__name__.lower()}", self._refused)(node)

    def _refused(self, node: ex.Expression) -> NoReturn:
        raise problem(f"`{render(node)}` cannot stand here", node, "an expression")

    # values and names

    def _constant(self, node: ex.Constant) -> Expr:
        return Const(node.value, _KINDS[node.kind])

    def _parameter(self, node: ex.Parameter) -> Expr:
        given = self.scope.parameters
        key: Any = node.name or f"@{node.at.line}:{node.at.column}"
        if isinstance(given, Mapping):
            if key not in given:
                raise unknown("parameter", node.name or "?", given, node)
            value = given[key]
        else:
            raise problem("a parameter without a value", node, "give it with the request")
        return Const(value, _type_of(value))

    def _reference(self, node: ex.Reference) -> Expr:
        scope, name = self.scope, node.name
        if name in scope.locals:
            return scope.locals[name]
        if name in scope.names:
            return scope.names[name]
        found = scope.fields(name)
        if len(found) > 1:
            owners = [scope.sources[each.input].name or scope.sources[each.input].type.name for each in found]
            hint = " or ".join(f"{owner}.{name}" for owner in owners)
            raise problem(f"`{name}` is in more than one stream", node, hint)
        if found:
            return found[0]
        return self._other_name(node)

    def _other_name(self, node: ex.Reference) -> Expr:
        scope, name = self.scope, node.name
        place = scope.source(name)
        if place is not None:
            return scope.row(place)
        if name in scope.catalog.variables:
            return Variable(name, scope.catalog.variables[name].type)
        if name in scope.catalog.stores and scope.catalog.stores[name].kind == "table":
            return self._table_row(node, name, ())
        declared = scope.declaration(name)
        if declared is not None and declared.alias:
            return self.lower(declared.body)
        if name.lower() == "current_timestamp":
            return Now()
        known = [*(field for source in scope.sources for field in source.type.fields), *scope.names]
        names = [source.name for source in scope.sources if source.name]
        raise unknown("property", name, [*known, *names, *scope.catalog.variables], node)

    def _member(self, node: ex.Member) -> Expr:
        scope = self.scope
        if isinstance(node.of, ex.Reference):
            name, place = node.of.name, scope.source(node.of.name)
            if place is not None and name not in scope.locals and node.name in scope.sources[place].type.fields:
                return scope.field(place, node.name)  # the name of a stream goes before that of a property
            if (
                name not in scope.locals
                and name not in scope.names
                and not (name == "context" and scope.context)
                and not scope.fields(name)
            ):
                if place is not None:
                    raise unknown("property", node.name, scope.sources[place].type.fields, node)
                if scope.declaration(name) is None and name not in (*scope.catalog.stores, *scope.catalog.variables):
                    self._no_stream(node, name)
            if name == "context" and not scope.fields("context"):
                return self._context(node)
        elif isinstance(node.of, ex.Member) and dotted(node) and scope.context is not None:
            text = dotted(node).removeprefix("context.")
            if dotted(node).startswith("context.") and text in scope.context.properties:
                return scope.registry.ask(ContextValue(text), scope.context.properties[text])
        return self._property(self.lower(node.of), node.name, node)

    def _no_stream(self, node: ex.Member, name: str) -> NoReturn:
        names = [source.name for source in self.scope.sources if source.name]
        raise unknown("stream", name, names, node)

    def _context(self, node: ex.Member) -> Expr:
        context = self.scope.context
        if context is None:
            raise problem("`context` stands only in a statement with a context", node, "context Name select …")
        if node.name not in context.properties:
            if any(name.startswith(f"{node.name}.") for name in context.properties):
                raise problem(f"`context.{node.name}` is a level, not a value", node, "context.Level.property")
            raise unknown("context property", node.name, context.properties, node)
        return self.scope.registry.ask(ContextValue(node.name), context.properties[node.name])

    def _property(self, value: Expr, name: str, node: Node) -> Expr:
        row = value.type.row
        if row is None:
            raise problem(f"`{name}` of a value of type {value.type}", node, "only rows have properties")
        if name not in row.fields:
            raise unknown("property", name, row.fields, node)
        return Call(field_of(row.index[name]), (value,), row.fields[name])

    def _index(self, node: ex.Index) -> Expr:
        catalog = self.scope.catalog
        if isinstance(node.of, ex.Reference) and node.of.name in catalog.stores:
            return self._table_row(node, node.of.name, node.keys)
        value = self.lower(node.of)
        if value.type.kind is not Kind.LIST or len(node.keys) != 1:
            raise problem(f"`{render(node.of)}` is {value.type} and has no elements", node, "an array, or a table")
        return Call(op.ELEMENT, (value, self.lower(node.keys[0])), value.type.element or ANY)

    def _table_row(self, node: Node, name: str, keys: Sequence[ex.Expression]) -> Expr:
        info = self.scope.catalog.store(name, node)
        if info.kind != "table" or len(keys) != len(info.keys):
            wanted = f"{name}[{', '.join(info.keys)}]" if info.keys else name
            raise problem(f"`{name}` has {len(info.keys)} key(s), not {len(keys)}", node, wanted)
        return self.scope.registry.ask(TableRow(name, self._all(keys), len(info.type.fields)), info.type.data_type)

    def _streamstar(self, node: ex.StreamStar) -> Expr:
        place = self.scope.source(node.stream)
        if place is None:
            raise unknown("stream", node.stream, [s.name for s in self.scope.sources if s.name], node)
        return self.scope.row(place)

    # operators

    def _sign(self, node: ex.Sign) -> Expr:
        value = self._number(node.operand)
        return Call(op.NEGATE, (value,), value.type)

    def _number(self, node: ex.Expression) -> Expr:
        value = self.lower(node)
        if not value.type.numeric and not loose(value.type) and value.type.kind not in (Kind.TIMESTAMP, Kind.DURATION):
            raise problem(f"`{render(node)}` is {value.type}, not a number", node)
        return value

    def _arithmetic(self, node: ex.Arithmetic) -> Expr:
        if node.operator == "||":
            parts = [value if value.type.kind is Kind.STRING else Call(CASTS[Kind.STRING], (value,), STRING)
                     for value in self._all((node.left, node.right))]  # fmt: skip
            return Call(op.CONCAT, tuple(parts), STRING)
        if node.operator == "+" and self._texts(node):
            return self._arithmetic(replace(node, operator="||"))
        left, right = self._number(node.left), self._number(node.right)
        if node.operator in BITS:
            return Call(BITS[node.operator], (left, right), _widest(left, right))
        kind = _widest(left, right)
        if kind.kind is Kind.DECIMAL:
            left, right = (
                v if v.type.kind is Kind.DECIMAL else Call(op.TO_DECIMAL, (v,), DECIMAL) for v in (left, right)
            )
            found = {"/": op.DIVIDE_DECIMAL, "%": DECIMAL_REMAINDER}.get(node.operator) or ARITHMETIC[node.operator]
            return Call(found, (left, right), DECIMAL)
        if node.operator == "/":
            return Call(op.DIVIDE_IEEE, (left, right), DOUBLE)
        return Call(ARITHMETIC[node.operator], (left, right), kind)

    def _texts(self, node: ex.Arithmetic) -> bool:
        return any(isinstance(side, ex.Constant) and side.kind == "string" for side in (node.left, node.right))

    def _comparison(self, node: ex.Comparison) -> Expr:
        left, right = self.lower(node.left), self.lower(node.right)
        self._comparable(left.type, right.type, node)
        return Call(COMPARE[node.operator], (left, right), BOOL)

    def _comparable(self, left: DataType, right: DataType, node: ex.Expression) -> None:
        if loose(left) or loose(right) or left.kind is right.kind:
            return
        times = (Kind.TIMESTAMP, Kind.DURATION)
        numbers = (left.numeric or left.kind in times) and (right.numeric or right.kind in times)
        if not numbers:
            raise problem(f"`{render(node)}` compares {left} with {right}", node, "cast one of them")

    def _logical(self, node: ex.Logical) -> Expr:
        parts: list[Expr] = []
        for side in (node.left, node.right):
            value = condition(side, self.scope)
            same = All if node.operator == "and" else Any_
            parts += value.args if isinstance(value, same) else (value,)
        return All(tuple(parts)) if node.operator == "and" else Any_(tuple(parts))

    def _not(self, node: ex.Not) -> Expr:
        return Call(op.NOT, (condition(node.operand, self.scope),), BOOL)

    def _negated(self, value: Expr, negated: bool) -> Expr:
        return Call(op.NOT, (value,), BOOL) if negated else value

    def _in(self, node: ex.In) -> Expr:
        value, items = self.lower(node.value), self._all(node.items)
        if len(items) == 1 and items[0].type.kind is Kind.LIST:
            return self._negated(Call(_AMONG, (value, items[0]), BOOL), node.negated)
        for item in items:
            self._comparable(value.type, item.type, node)
        return self._negated(Call(op.MEMBER, (value, *items), BOOL), node.negated)

    def _between(self, node: ex.Between) -> Expr:
        value, low, high = self._all((node.value, node.low, node.high))
        for side in (low, high):
            self._comparable(value.type, side.type, node)
        return Call(_within(node.low_closed, node.high_closed, node.negated), (value, low, high), BOOL)

    def _like(self, node: ex.Like) -> Expr:
        parts = [node.value, node.pattern, *([node.escape] if node.escape else [])]
        values = self._all(parts)
        for value, part in zip(values, parts, strict=True):
            if value.type.kind is not Kind.STRING and not loose(value.type):
                raise problem(f"`{render(part)}` is {value.type}, not a text", part)
        return self._negated(Call(REGEXP if node.regexp else op.LIKE, values, BOOL), node.negated)

    def _quantified(self, node: ex.Quantified) -> Expr:
        from rollup.lang.epl.lowering.queries import subquery

        left = self.lower(node.left)
        if isinstance(node.items, tuple):
            items = self._all(node.items)
            several = any(item.type.kind is Kind.LIST for item in items)
            values: Expr = Call(_FLAT if several else _LISTED, items, DataType(Kind.LIST, element=ANY))
        else:
            values, several = subquery(node.items, self.scope, "list"), False
        return Call(_quantifier(node.operator, node.every, several), (left, values), BOOL)

    def _case(self, node: ex.Case) -> Expr:
        branches: list[tuple[Expr, Expr]] = []
        operand = self.lower(node.operand) if node.operand is not None else None
        for when, then in node.branches:
            if operand is None:
                test = condition(when, self.scope)
            else:
                value = self.lower(when)
                self._comparable(operand.type, value.type, when)
                test = Call(op.SAME, (operand, value), BOOL)
            branches.append((test, self.lower(then)))
        otherwise = self.lower(node.otherwise) if node.otherwise is not None else Const(None, NULL)
        kinds = [value.type for _, value in branches] + [otherwise.type]
        return Case(tuple(branches), otherwise, self._common(kinds, node))

    def _common(self, kinds: Sequence[DataType], node: ex.Expression) -> DataType:
        found = [kind for kind in kinds if kind.kind is not Kind.NULL]
        if not found:
            return NULL
        first = found[0]
        for kind in found[1:]:
            if first.numeric and kind.numeric:
                first = first.widest(kind)
            elif first.kind is not kind.kind:
                raise problem(f"`{render(node)}` is {first} or {kind}", node, "values of one type")
        return first

    def _array(self, node: ex.Array) -> Expr:
        items = self._all(node.items)
        return Call(_LISTED, items, DataType(Kind.LIST, element=self._common([i.type for i in items], node)))

    # sub-queries

    def _subquery(self, node: ex.Subquery) -> Expr:
        from rollup.lang.epl.lowering.queries import subquery

        return subquery(node.query, self.scope, "value")

    def _exists(self, node: ex.Exists) -> Expr:
        from rollup.lang.epl.lowering.queries import subquery

        return subquery(node.query, self.scope, "exists")

    def _inquery(self, node: ex.InQuery) -> Expr:
        from rollup.lang.epl.lowering.queries import subquery

        value, values = self.lower(node.value), subquery(node.query, self.scope, "list")
        if values.type.element is not None:
            self._comparable(value.type, values.type.element, node)
        return self._negated(Call(_AMONG, (value, values), BOOL), node.negated)

    # calls

    def _call(self, node: ex.Call) -> Expr:
        if node.of is not None:
            return self._method(node)
        if is_aggregate(node):
            return self._aggregate(node)
        name = node.name.lower()
        known: dict[str, Callable[[ex.Call], Expr]] = {
            "current_timestamp": lambda node: Now(),
            "istream": lambda node: self.scope.registry.ask(Arriving(), BOOL),
            "coalesce": self._coalesce,
            "cast": self._cast,
            "prev": self._prev,
            "prior": self._prior,
            "prevtail": self._prev,
            "prevcount": self._prev,
            "prevwindow": self._prev,
            "min": self._extreme,
            "max": self._extreme,
            "typeof": self._type_name,
            "instanceof": self._instance,
            "grouping": self._grouping,
            "grouping_id": self._grouping,
        }
        if name in known:
            return known[name](node)
        if name in HASHES:
            return Call(Operator(name, HASHES[name], strict=False), self._all(node.arguments), LONG)
        declared = self.scope.declaration(node.name)
        if declared is not None:
            return self._declared(node, declared.body)
        raise unknown("function", node.name, [*known, *HASHES, *self.scope.catalog.expressions, "sum", "count"], node)

    def _aggregate(self, node: ex.Call) -> Expr:
        slots = self.scope.slots
        if slots is None:
            raise problem(
                f"the aggregate `{render(node)}` is not allowed {self.scope.no_aggregates}", node, "having, select"
            )
        return slots[render(node)]

    def _declared(self, node: ex.Call, body: ex.Expression) -> Expr:
        parameters = body.parameters if isinstance(body, ex.Lambda) else ()
        if len(parameters) != len(node.arguments):
            message = f"`{node.name}` takes {len(parameters)} argument(s), not {len(node.arguments)}"
            raise problem(message, node)
        whole = called(node, self.scope)
        if whole is not None and aggregates([whole], self.scope):
            return self.lower(whole)
        values = dict(zip(parameters, self._all(node.arguments), strict=True))
        inner = replace(self.scope, locals={**self.scope.locals, **values})
        return _Lowering(inner).lower(body.body if isinstance(body, ex.Lambda) else body)

    def _coalesce(self, node: ex.Call) -> Expr:
        values = self._all(node.arguments)
        return Coalesce(values, self._common([value.type for value in values], node))

    def _cast(self, node: ex.Call) -> Expr:
        if len(node.arguments) != 2:
            raise problem("cast takes a value and a type", node, "cast(x, int)")
        kind = self._kind(node.arguments[1])
        if kind.kind not in CASTS:
            raise problem(f"nothing is cast to {kind}", node.arguments[1], "cast(x, int)")
        return Call(CASTS[kind.kind], (self.lower(node.arguments[0]),), kind)

    def _extreme(self, node: ex.Call) -> Expr:
        values = self._all(node.arguments)
        found = _LEAST if node.name.lower() == "min" else _GREATEST
        return Call(found, values, self._common([value.type for value in values], node))

    def _prev(self, node: ex.Call) -> Expr:
        name, arguments = node.name.lower(), list(node.arguments)
        offset: Expr | None = None
        if name in ("prev", "prevtail") and len(arguments) == 2:
            offset = self.lower(arguments.pop(0) if not isinstance(arguments[1], ex.Constant) else arguments.pop(1))
        elif name == "prev":
            offset = Const(1, INT)
        if len(arguments) != 1:
            raise problem(f"`{node.name}` takes a number and a property", node, "prev(1, price)")
        value = self.lower(arguments[0])
        place = self._stream_of(value, node)
        if not self.scope.sources[place].windowed:
            raise problem(f"`{node.name}` needs a window on the stream", node, "Stream#length(10)")
        what: Any = {"prev": "row", "prevtail": "tail", "prevcount": "count", "prevwindow": "window"}[name]
        kind = {"count": LONG, "window": DataType(Kind.LIST, element=value.type)}.get(what, value.type)
        return self.scope.registry.ask(Previous(place, what, value, offset), kind)

    def _prior(self, node: ex.Call) -> Expr:
        if len(node.arguments) != 2 or not isinstance(node.arguments[0], ex.Constant):
            raise problem("`prior` takes a constant number and a property", node, "prior(1, price)")
        offset, value = int(node.arguments[0].value or 0), self.lower(node.arguments[1])
        place = self._stream_of(value, node)
        priors = self.scope.registry.priors
        priors[place] = max(offset, priors.get(place, 0))
        return self.scope.registry.ask(Earlier(place, offset, value), value.type)

    def _stream_of(self, value: Expr, node: ex.Call) -> int:
        from rollup.engine.expressions import Field, RowOf, walk

        places = {each.input for each in walk(value) if isinstance(each, (Field, RowOf))}
        if len(places) != 1:
            raise problem(f"`{render(node)}` needs a property of one stream", node)
        return places.pop()


def _widest(left: Expr, right: Expr) -> DataType:
    kinds = [side.type for side in (left, right) if side.type.numeric]
    if len(kinds) == 2:
        return kinds[0].widest(kinds[1])
    return kinds[0] if kinds else LONG


def _type_of(value: Any) -> DataType:
    for python, kind in ((bool, BOOL), (int, LONG), (float, DOUBLE), (str, STRING)):
        if isinstance(value, python):
            return kind
    return NULL if value is None else ANY


def _among(value: Any, values: Any) -> bool | None:
    """SQL's IN over a list: unknown when it is not found and something is null."""
    found = list(values or ())
    if not found:
        return False
    return None if value is None else op.member(value, *found)


@cache
def _within(low_closed: bool, high_closed: bool, negated: bool) -> Operator:
    """Whether a value is in a range, or out of it, whichever of its bounds is the greater.

    A value that is null is neither in nor out; nothing is in a range that has null for a bound.
    """

    def test(value: Any, low: Any, high: Any) -> bool:
        if value is None:
            return False
        if low is None or high is None:
            return negated
        if low > high:
            low, high = high, low
        inside = (low <= value if low_closed else low < value) and (value <= high if high_closed else value < high)
        return inside is not negated

    return Operator(
        f"{'not ' if negated else ''}within {'[' if low_closed else '('}{']' if high_closed else ')'}",
        test,
        strict=False,
    )


_AMONG = Operator("in list", _among, strict=False)
_LISTED = Operator("array", lambda *values: list(values), strict=False)
_FLAT = Operator(
    "array of all",
    lambda *values: [each for value in values for each in (value if isinstance(value, list) else [value])],
    strict=False,
)
_LEAST = Operator("least", lambda *values: min(values))
_GREATEST = Operator("greatest", lambda *values: max(values))


@cache
def _quantifier(operator: str, every: bool, several: bool) -> Operator:
    """Whether a comparison holds for all values, or for any; `several`: nothing is known of lists without values."""
    sign = {"=": "==", "!=": "!="}.get(operator, operator)
    compare: Callable[[Any, Any], bool] = eval(f"lambda a, b: a {sign} b")  # one of six signs of the grammar

    def test(value: Any, values: Any) -> bool | None:
        found = list(values or ())
        if not found:
            return None if several else every
        answers = [None if value is None or each is None else compare(value, each) for each in found]
        if (not every) in answers:
            return not every
        return None if None in answers else every

    return Operator(f"{operator} {'all' if every else 'any'}", test, strict=False)


def constant(node: ex.Expression, scope: Scope, what: str) -> Any:
    """The value of an expression that is known when the statement is deployed: constants, variables, parameters."""
    from rollup.engine.compiling import compiled
    from rollup.engine.expressions import Ask, Field, RowOf, walk

    found = lower(node, scope)
    if any(isinstance(each, (Field, RowOf, Ask)) for each in walk(found)):
        raise problem(f"{what} must be known at once, and `{render(node)}` is not", node, "a number or a variable")
    try:
        return compiled(found)((), (), scope.catalog.environment)
    except TypeError:
        raise PlanError(f"{what} cannot be worked out", line=node.at.line, column=node.at.column) from None
