"""Names and values of expressions: properties, streams, variables, tables' rows, the properties of a context."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NoReturn

from rollup.engine import operators as op
from rollup.engine.expressions import Call, Const, Expr, Field, Now, RowOf, Variable
from rollup.engine.operators import Operator
from rollup.engine.rows.plans import ContextValue, TableRow
from rollup.engine.types import ANY, BOOL, DOUBLE, FLOAT, INT, LONG, NULL, STRING, DataType, Kind
from rollup.lang.epl.catalog import ContextInfo, loose, problem, unknown
from rollup.lang.epl.java import FIELDS
from rollup.lang.epl.lowering.values.methods import LowerMethods, dotted
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import in_context, reads_nothing, variable_of
from rollup.lang.epl.tree import expressions as ex
from rollup.lang.epl.tree.node import Node

_KINDS: dict[str, DataType] = {
    "int": INT, "long": LONG, "float": FLOAT, "double": DOUBLE, "string": STRING, "boolean": BOOL, "null": NULL,
}  # fmt: skip


@cache
def field_of(place: int) -> Operator:
    """The field of a row that is a value."""
    return Operator(f"field {place}", f"{{0}}.values[{place}]", field=place)


class LowerNames(LowerMethods):
    """The part of the lowering of an expression that is about names and values."""

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
            return Variable(name, variable_of(name, node, scope).type)
        if name in scope.catalog.stores and scope.catalog.stores[name].kind == "table":
            return self._table_row(node, name, ())
        declared = scope.declaration(name)
        if declared is not None and not isinstance(declared.body, ex.Lambda):
            scope.registry.write_out(node)
            if not declared.alias:
                reads_nothing(node, declared.body, scope)
            return self.lower(declared.body)
        if name.lower() == "current_timestamp":
            return Now()
        known = [*(field for source in scope.sources for field in source.type.fields), *scope.names]
        names = [source.name for source in scope.sources if source.name]
        raise unknown("property", name, [*known, *names, *scope.catalog.variables], node)

    def _member(self, node: ex.Member) -> Expr:
        scope = self.scope
        constant = FIELDS.get(self._class(node.of), {}).get(node.name)
        if constant is not None:
            return constant
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
            before, _, text = dotted(node).partition(".")
            if before == "context" and text in scope.context.properties:
                return scope.registry.ask(ContextValue(text), scope.context.properties[text])
            if before == "context" and text == f"{node.of.name}.{node.name}" and _level(node.of.name, scope.context):
                self._no_property(node, text, scope.context)
        return self._property(self.lower(node.of), node.name, node)

    def _no_stream(self, node: ex.Member, name: str) -> NoReturn:
        names = [source.name for source in self.scope.sources if source.name]
        raise unknown("stream", name, names, node)

    def _context(self, node: ex.Member) -> Expr:
        context = self.scope.context
        if context is None:
            raise problem("`context` stands only in a statement with a context", node, "context Name select …")
        if node.name not in context.properties:
            if _level(node.name, context):
                raise problem(f"`context.{node.name}` is a level, not a value", node, "context.Level.property")
            raise unknown("context property", node.name, context.properties, node)
        return self.scope.registry.ask(ContextValue(node.name), context.properties[node.name])

    def _no_property(self, node: ex.Member, text: str, context: ContextInfo) -> NoReturn:
        if node.name != "id":
            raise unknown("context property", text, context.properties, node)
        message = f"no context property is called `{text}`: only the last level has an id"
        raise problem(message, node, f"context.id; known: {', '.join(sorted(context.properties))}")

    def _property(self, value: Expr, name: str, node: Node) -> Expr:
        row = value.type.row
        if row is None:
            raise problem(f"`{name}` of a value of type {value.type}", node, "only rows have properties")
        if name not in row.fields:
            raise unknown("property", name, row.fields, node)
        if isinstance(value, RowOf):
            sources = self.scope.sources[
                value.input : value.input + 1
            ]  # none of the oldest row of a window's condition
            absent = any(source.optional for source in sources)
            return Field(value.input, row.index[name], row.fields[name], optional=absent)
        return Call(field_of(row.index[name]), (value,), row.fields[name])

    def _index(self, node: ex.Index) -> Expr:
        catalog = self.scope.catalog
        own = isinstance(node.of, ex.Reference) and node.of.name in self.scope.locals
        if isinstance(node.of, ex.Reference) and not own and node.of.name in catalog.stores:
            return self._table_row(node, node.of.name, node.keys)
        value = self.lower(node.of)
        if value.type.kind is not Kind.LIST or len(node.keys) != 1:
            raise problem(f"`{render(node.of)}` is {value.type} and has no elements", node, "an array, or a table")
        place = self.lower(node.keys[0])
        if not (place.type.integral or loose(place.type)):
            raise problem(f"`{render(node.keys[0])}` is {place.type}, not a place", node, "a whole number from 0 on")
        return Call(op.ELEMENT, (value, place), value.type.element or ANY)

    def _table_row(self, node: Node, name: str, keys: Sequence[ex.Expression]) -> Expr:
        info = self.scope.catalog.store(name, node)
        if info.kind != "table" or len(keys) != len(info.keys):
            wanted = f"{name}[{', '.join(info.keys)}]" if info.keys else name
            raise problem(f"`{name}` has {len(info.keys)} key(s), not {len(keys)}", node, wanted)
        in_context(info, name, node, self.scope)
        values = self._all(keys)
        for key, value in zip(info.keys, values, strict=True):
            kind = info.type.fields[key]
            if not (
                loose(kind)
                or loose(value.type)
                or kind.kind is value.type.kind
                or kind.numeric is value.type.numeric is True
            ):
                raise problem(f"the key `{key}` of `{name}` is {kind}, the value {value.type}", node, "cast it")
        return self.scope.registry.ask(TableRow(name, values, len(info.type.fields)), info.type.data_type)

    def _streamstar(self, node: ex.StreamStar) -> Expr:
        place = self.scope.source(node.stream)
        if place is None:
            raise unknown("stream", node.stream, [s.name for s in self.scope.sources if s.name], node)
        return self.scope.row(place)


def _level(name: str, context: ContextInfo) -> bool:
    """Whether a name is one of a level of a context, and not of a property."""
    return name not in context.properties and any(each.startswith(f"{name}.") for each in context.properties)


def _type_of(value: Any) -> DataType:
    for python, kind in ((bool, BOOL), (int, LONG), (float, DOUBLE), (str, STRING)):
        if isinstance(value, python):
            return kind
    return NULL if value is None else ANY
