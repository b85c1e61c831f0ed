"""Operators become one program: each method is a function of its text, each field is a field of one state.

    class Length(KeepAll):                        def window1_insert(row):
        size: int                                     s.window1_rows.append(row)
        def insert(self, row):               ->       groups1_insert(row)
            self.rows.append(row)                     if len(s.window1_rows) > s.window1_size:
            self.emit_insert(row)                         groups1_remove(s.window1_rows.popleft())
            if len(self.rows) > self.size:
                self.emit_remove(self.rows.popleft())

Nothing else is done to the text: LLVM puts functions into one another. Names are those of the operator's part in its
statement and of the statement's number, so they are the same wherever the same statements are deployed.
"""

from __future__ import annotations

import ast
import inspect
import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any

from rollup.engine.compiler.source import Function, Source, function_of, functions_of
from rollup.engine.compiler.types import FLOAT, INT, ListOf, QueueOf, Reference, Struct, TableOf, Type, type_of
from rollup.engine.programs.lowering.unsupported import NotLowered
from rollup.engine.programs.operators import aggregates
from rollup.engine.programs.operators.base import FOREVER, Operator, port

STATE = "State"


@cache
def _methods(operator: type[Operator]) -> dict[str, Function | None]:
    """The methods of an operator by name; None for a port that the plan binds."""
    found: dict[str, Function | None] = {}
    for each in reversed(operator.__mro__):
        for name, method in vars(each).items():
            if inspect.isfunction(method):
                function = function_of(method)
                found[name] = None if _is_port(function.node) else function
    return found


def _is_port(node: ast.FunctionDef) -> bool:
    return any(isinstance(each, ast.Name) and each.id == port.__name__ for each in node.decorator_list)


@cache
def _fields(operator: type[Operator]) -> dict[str, str]:
    """The annotated fields of an operator."""
    return {
        name: text
        for each in reversed(operator.__mro__)
        for name, text in vars(each).get("__annotations__", {}).items()
    }


@cache
def _helpers() -> Mapping[str, Function]:
    return functions_of(inspect.getsource(aggregates), aggregates.__file__)


@dataclass(frozen=True)
class Asked:
    """The function of a look-up: its name, and whether it is told the row that asks."""

    name: str
    told: bool


@dataclass
class Linker:
    """A program while operators are put into it. `constants`: the values of fields that the plan gives."""

    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    state: dict[str, Type] = field(default_factory=lambda: {"now": INT, "place": INT})
    structs: dict[str, Struct] = field(default_factory=dict[str, Struct])
    constants: dict[str, Any] = field(default_factory=dict[str, Any])
    values: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """The values of the engine's variables."""
    variables: dict[str, str] = field(default_factory=dict[str, str])
    """By variable the field with its value."""
    asks: Sequence[Asked] = ()
    """The look-ups of the statement at hand."""
    timely: bool = False
    """Whether no event without the time that a window needs gets into the program."""
    over: list[str] = field(default_factory=list[str])
    """The lines at the end of a change, before the next event or instant."""

    def left_last(self, table: str, sign: str, row: str) -> list[str]:
        """The lines that put a row into a table: where it leaves, behind those that come with the change."""
        left, kind = f"{table}_left", self.state[table]
        assert isinstance(kind, TableOf)
        if left not in self.state:
            self.state[left] = ListOf(kind.of)
            lines = [f"for row in s.{left}:", f"    s.{table}.append(row)", f"s.{left}.clear()"]
            self.over.append(f"{self.function(f'{table}_leave', '', lines)}()")
        return [f"if {sign} > 0:", f"    s.{table}.append({row})", "else:", f"    s.{left}.append({row})"]

    def operator(
        self,
        operator: type[Operator],
        name: str,
        constants: Mapping[str, Any] | None = None,
        types: Mapping[str, Type] | None = None,
        ports: Mapping[str, Sequence[str]] | None = None,
    ) -> str:
        """An operator. `types` are those of the names in its annotations, `ports` the functions that its ports call."""
        given, named = constants or {}, types or {}
        places: dict[str, ast.Constant | str] = {}
        for each, text in _fields(operator).items():
            value = given.get(each)
            places[each] = ast.Constant(value) if isinstance(value, bool) else f"{name}_{each}"
            if isinstance(value, int) and not isinstance(value, bool):
                self.constant(f"{name}_{each}", value)
            elif value is None:
                self.state[f"{name}_{each}"] = type_of(text, named)
        methods = _methods(operator)
        bound = {each: list((ports or {})[each]) for each, method in methods.items() if method is None}
        for each, method in methods.items():
            if method is not None:
                own = _Own(name, places, methods, bound, named)
                self.functions[f"{name}_{each}"] = replace(method, node=own.function(method.node, f"{name}_{each}"))
        return name

    def constant(self, name: str, value: Any, kind: Type | None = None) -> str:
        """A value of the plan, which stands in the state: no part of the text."""
        self.state[name] = kind or (FLOAT if isinstance(value, float) else INT)
        self.constants[name] = value
        return f"s.{name}"

    def variable(self, name: str, kind: Type) -> str:
        """The field of a variable. Raises NotLowered for one of a context."""
        if name not in self.values:
            raise NotLowered("context", "a variable of a context")
        found = self.variables.setdefault(name, f"variable{len(self.variables)}")
        self.state[found], self.constants[found] = kind.optional, self.values[name]
        return found

    def function(self, name: str, arguments: str, lines: Sequence[str]) -> str:
        """A function of text."""
        text = f"def {name}({arguments}):\n" + "\n".join(f"    {line}" for line in lines or ["pass"])
        self.functions |= functions_of(text, f"<{name}>")
        return name

    def source(self, entries: Mapping[str, Sequence[str]]) -> Source:
        """The program of what the entries reach."""
        functions = self._reached(entries)
        taken_out = {
            node.func.value.attr
            for each in functions.values()
            for node in ast.walk(each.node)
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "remove"
            if isinstance(node.func.value, ast.Attribute)
        }
        structs = [Struct(STATE, self.state), *self.structs.values()]
        made = [
            Struct(each.name, {n: _queue(n, kind, taken_out) for n, kind in each.fields.items()}, each.record)
            for each in structs
        ]
        return Source(functions, made, entries, STATE)

    def _reached(self, entries: Mapping[str, Sequence[str]]) -> dict[str, Function]:
        """The functions that the entries call, and that those call."""
        known = {**_helpers(), **self.functions}
        found, todo = set[str](), list(entries)
        while todo:
            name = todo.pop()
            if name not in found and name in known:
                found.add(name)
                calls = (each for each in ast.walk(known[name].node) if isinstance(each, ast.Call))
                todo += [each.func.id for each in calls if isinstance(each.func, ast.Name)]
        return {name: function for name, function in known.items() if name in found}


def _queue(name: str, kind: Type, taken_out: set[str]) -> Type:
    """`Rows` from which nobody takes a row are a queue, which costs less."""
    return QueueOf(kind.of) if isinstance(kind, QueueOf) and name not in taken_out else kind


class _Own(ast.NodeTransformer):
    """What is `self` in a method of an operator, as it is in the program."""

    def __init__(
        self,
        name: str,
        places: Mapping[str, ast.Constant | str],
        methods: Mapping[str, Any],
        ports: Mapping[str, Sequence[str]],
        types: Mapping[str, Type],
    ) -> None:
        self._name, self._places, self._methods, self._ports, self._types = name, places, methods, ports, types

    def function(self, node: ast.FunctionDef, name: str) -> ast.FunctionDef:
        """A method as a function."""
        arguments = ast.arguments([], [ast.arg(each.arg) for each in node.args.args[1:]], None, [], [], None, [])
        body = [made for each in node.body if not _is_text(each) for made in _listed(self.visit(_copied(each)))]
        made = ast.FunctionDef(name, arguments, body or [ast.Pass()], [])
        return ast.fix_missing_locations(ast.copy_location(made, node))

    def visit_Name(self, node: ast.Name) -> Any:
        if node.id == "FOREVER":
            return ast.copy_location(ast.Constant(FOREVER), node)
        found = self._types.get(node.id)
        return ast.copy_location(ast.Name(found.struct, node.ctx), node) if isinstance(found, Reference) else node

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not _is_self(node.value):
            return self.generic_visit(node)
        place = self._places[node.attr]
        if isinstance(place, ast.Constant):
            return ast.copy_location(ast.Constant(place.value), node)
        return ast.copy_location(ast.Attribute(ast.Name("s", ast.Load()), place, node.ctx), node)

    def visit_If(self, node: ast.If) -> Any:
        test = self.visit(node.test)
        if isinstance(test, ast.Constant):  # the plan decides
            chosen = node.body if test.value else node.orelse
            return [made for each in chosen for made in _listed(self.visit(each))] or ast.copy_location(
                ast.Pass(), node
            )
        node.test = test
        for body in (node.body, node.orelse):
            body[:] = [made for each in body for made in _listed(self.visit(each))]
        return node

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Call) and self._is_own(node.value.func):
            calls = [ast.copy_location(ast.Expr(each), node) for each in self._calls(node.value)]
            return calls or ast.copy_location(ast.Pass(), node)
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> Any:
        if not self._is_own(node.func):
            return self.generic_visit(node)
        (call,) = self._calls(node)
        return call

    def _is_own(self, func: ast.expr) -> bool:
        return isinstance(func, ast.Attribute) and _is_self(func.value) and func.attr in self._methods

    def _calls(self, node: ast.Call) -> list[ast.Call]:
        assert isinstance(node.func, ast.Attribute)
        arguments = [self.visit(each) for each in node.args]
        targets = self._ports.get(node.func.attr, [f"{self._name}_{node.func.attr}"])
        return [ast.copy_location(ast.Call(ast.Name(each, ast.Load()), arguments, []), node) for each in targets]


def _is_self(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id == "self"


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _copied(node: ast.stmt) -> ast.stmt:
    """A copy of a statement: the method's own tree serves other programs, too."""
    return pickle.loads(pickle.dumps(node))


def _listed(made: Any) -> list[Any]:
    return made if isinstance(made, list) else [made]
