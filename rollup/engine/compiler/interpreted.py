"""The interpreted mode: the same text, run by CPython.

Fields of the state are globals of the functions (`s.now` is `s_now`), which takes a third less time than to look for them
in an object. A record is a tuple, any other struct a class with slots.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from copy import deepcopy
from math import sqrt
from types import CodeType
from typing import Any

import pyarrow as pa

from rollup.engine.compiler.arrays import array_of
from rollup.engine.compiler.containers import Columns, bits, first_value, order
from rollup.engine.compiler.faults import Refused
from rollup.engine.compiler.source import Source
from rollup.engine.compiler.types import POSITION, Struct, TableOf
from rollup.engine.operators import wrapped

_FIELD = "s_"


class Interpreted:
    """A source at work in CPython, with a state of its own."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.space = _functions(source)

    def call(self, entry: str, *arguments: Any) -> None:
        """Call a function from outside. Raises Refused."""
        self.space[entry](*arguments)

    def get(self, field: str) -> Any:
        """A field of the state."""
        return self.space[_FIELD + field]

    def set(self, field: str, value: Any) -> None:
        """A value into a field of the state."""
        self.space[_FIELD + field] = value

    def feed(self, field: str, columns: Sequence[pa.Array]) -> None:
        """Input into a field of type `Columns`."""
        self.set(field, Columns(zip(*(each.to_pylist() for each in columns), strict=True)))

    def take(self, field: str) -> list[pa.Array]:
        """The output in a field of type `Table`, column by column; the field is empty then."""
        kind, rows = self.source.layout.state.fields[field], self.get(field)
        assert isinstance(kind, TableOf)
        width = len(kind.of.items)
        found = [array_of(item, rows[i::width], _no_reference) for i, item in enumerate(kind.of.items)]
        rows.clear()
        return found


class _State:
    """The state as an object: its attributes are the globals of the functions that work on it."""

    def __init__(self, space: dict[str, Any]) -> None:
        object.__setattr__(self, "_space", space)

    def __getattr__(self, name: str) -> Any:
        return self._space[_FIELD + name]

    def __setattr__(self, name: str, value: Any) -> None:
        self._space[_FIELD + name] = value


def _refuse(code: int) -> None:
    raise Refused(code)


def _functions(source: Source) -> dict[str, Any]:
    """The functions of a source over a new state, by name; the state is `s`."""
    space: dict[str, Any] = {"order": order, "bits": bits, "wrapped": wrapped, "sqrt": sqrt, "refuse": _refuse}
    space |= {"collect": lambda: None}
    if source.key not in _MODULES:
        _MODULES[source.key] = _module(source)
    classes, codes = _MODULES[source.key]
    space |= classes
    for code in codes:
        exec(code, space)
    space |= {_FIELD + name: first_value(kind)() for name, kind in source.layout.state.fields.items()}
    space["s"] = _State(space)
    return space


_MODULES: dict[str, tuple[Mapping[str, type], Sequence[CodeType]]] = {}
"""By the key of a source what all its states share: a statement has one for each of its partitions and restarts."""


def _module(source: Source) -> tuple[Mapping[str, type], Sequence[CodeType]]:
    """The classes of a source, and the code that defines its functions."""
    structs = [each for each in source.layout.structs.values() if each.name != source.root]
    records = {each.name: each for each in structs if each.record}
    codes: list[CodeType] = []
    for function in source.functions.values():
        node, fields = _Records(records).visit(deepcopy(function.node)), _Fields()
        node = fields.visit(node)
        if fields.stored:
            node.body.insert(0, ast.Global(sorted(fields.stored)))
        tree = ast.fix_missing_locations(ast.Module([node], []))
        codes.append(compile(tree, function.file, "exec"))
    return {each.name: _class(each) for each in structs if not each.record}, codes


class _Records(ast.NodeTransformer):
    """Records are tuples, which are made where they are written."""

    def __init__(self, records: dict[str, Struct]) -> None:
        self._records = records

    def visit_Call(self, node: ast.Call) -> Any:
        self.generic_visit(node)
        struct = self._records.get(node.func.id) if isinstance(node.func, ast.Name) else None
        if struct is None:
            return node
        names = [name for name in struct.fields if not name.startswith(POSITION)]
        given = dict(zip(names, node.args, strict=False))
        width = 1 + max((int(name[1:]) for name in names), default=0)  # CPython has one tuple without items
        items = [given.get(f"f{i}", ast.Constant(None)) for i in range(width)]
        made: ast.expr = ast.Tuple(items, ast.Load())
        if all(isinstance(each, ast.Constant) for each in items):  # CPython would make one tuple for all calls
            made = ast.Call(ast.Name("tuple", ast.Load()), [ast.List(items, ast.Load())], [])
        return ast.copy_location(made, node)


class _Fields(ast.NodeTransformer):
    """`s.name` as a global."""

    def __init__(self) -> None:
        self.stored: set[str] = set()

    def visit_Attribute(self, node: ast.Attribute) -> Any:
        if not (isinstance(node.value, ast.Name) and node.value.id == "s"):
            return self.generic_visit(node)
        if isinstance(node.ctx, ast.Store):
            self.stored.add(_FIELD + node.attr)
        return ast.copy_location(ast.Name(_FIELD + node.attr, node.ctx), node)


def _class(struct: Struct) -> type:
    """A struct as a class, whose first fields may be given. Its constructor is text: half the time of a loop over fields."""
    makes = {name: first_value(kind) for name, kind in struct.fields.items() if not name.startswith(POSITION)}
    plain = {name: make() for name, make in makes.items()}
    given = [name for name, value in plain.items() if value is None or isinstance(value, int | float | tuple)]
    lines = [f"def __init__(self, {', '.join(f'{name}={plain[name]!r}' for name in given)}):"]
    lines += [f"    self.{name} = {name if name in given else f'make_{name}()'}" for name in makes] or ["    pass"]
    space: dict[str, Any] = {f"make_{name}": make for name, make in makes.items()}
    exec("\n".join(lines), space)
    return type(struct.name, (), {"__slots__": tuple(makes), "__init__": space["__init__"]})


def _no_reference(struct: str, value: Any) -> int:
    raise TypeError(f"output holds a reference to a {struct}")
