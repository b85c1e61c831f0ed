"""Functions of the subset become LLVM IR.

Types follow from the calls: a function is translated once for each tuple of types that it is called with. A local or a
result that turns out wider than it was thought makes the function begin again. What a local is called may not change its
type otherwise, so that the same text means the same to CPython.

References that stand in memory are counted, those in locals are not: what nothing refers to any more is freed by
`collect()`, which a program calls between two events.
"""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from llvmlite import ir

from rollup.engine.compiler import native, operations
from rollup.engine.compiler.emitter import F64, I1, I64, PARTS, Emitter, Translated, Value, int_
from rollup.engine.compiler.faults import Check
from rollup.engine.compiler.freeing import FREED, freeing
from rollup.engine.compiler.source import Function, Source, functions_of
from rollup.engine.compiler.types import (
    BOOL,
    FLOAT,
    INT,
    NONE,
    Layout,
    Reference,
    Struct,
    SubsetError,
    Tuple,
    Type,
    joined,
    type_of,
)

_EXTERNAL = {"malloc": 1, "realloc": 2, "calloc": 2, "free": 1, "memcpy": 3, "memmove": 3}


class _Again(Exception):
    """A function begins again, since a type was wider than it was thought."""


@cache
def _native() -> Mapping[str, Function]:
    return functions_of(inspect.getsource(native), native.__file__)


class Translation:
    """The module of a source. `checked`: every index, reference and count is checked, and a fault names its line."""

    def __init__(self, source: Source, checked: bool) -> None:
        self.source, self.checked = source, checked
        self.layout: Layout = source.layout
        self.module = ir.Module("program")
        self._functions = {**_native(), **source.functions}
        self._numbers = {name: number for number, name in enumerate(source.functions)}
        self._known: dict[tuple[str, tuple[Type, ...]], Translated] = {}
        self._count = 0
        self.external: Mapping[str, Any] = {
            name: ir.Function(self.module, ir.FunctionType(I64, [I64] * count), name)
            for name, count in _EXTERNAL.items()
        }
        kind = ir.FunctionType(ir.VoidType(), [I64])
        self.collect, self.dispose = (ir.Function(self.module, kind, name) for name in ("collect", "dispose"))

    def text(self) -> str:
        """The module's IR, with a function for each entry and one that frees all memory."""
        for name, types in self.source.entries.items():
            made = self.function(name, tuple(type_of(each) for each in types))
            if made.result is not NONE:
                raise SubsetError(f"the entry {name} returns a value", self.source.functions[name].file)
            entry = ir.Function(self.module, made.function.function_type, f"entry_{name}")
            builder = ir.IRBuilder(entry.append_basic_block())
            builder.call(made.function, entry.args)
            builder.ret_void()
        for name, lines in freeing(self.layout, self.checked).items():
            self._functions |= functions_of(lines, native.__file__)
            made = self.function(f"{name}_all", ())
            function = getattr(self, name)
            builder = ir.IRBuilder(function.append_basic_block())
            builder.call(made.function, function.args)
            builder.ret_void()
        self.collect.linkage = "internal"
        return str(self.module)

    def defines(self, name: str) -> bool:
        """Whether the source has a function of this name."""
        return name in self._functions

    def function(self, name: str, types: tuple[Type, ...]) -> Translated:
        """A function for arguments of some types."""
        found = self._known.get((name, types))
        if found is not None:
            return found
        source = self._functions[name]
        hints: dict[str, Type] = {}
        stops = False
        while True:
            self._count += 1
            before = dict(self._known)
            made = _Translating(self, source, types, hints, f"{name}.{self._count}", self._numbers.get(name))
            self._known[name, types] = Translated(made.function, hints.get("return", NONE), stops)  # it may call itself
            try:
                result = made.translated()
                if result.stops == stops or not made.recursive:
                    self._known[name, types] = result
                    return result
                stops = True
            except _Again:
                pass
            for each in self._known.keys() - before.keys():  # what has called the function that begins again
                del self.module.globals[self._known[each].function.name]
            self._known = before


class _Translating(Emitter):
    """One function for one tuple of types, while it is translated. `hints` are the types of its locals, as far as they are known."""

    def __init__(
        self,
        module: Translation,
        source: Function,
        types: tuple[Type, ...],
        hints: dict[str, Type],
        label: str,
        number: int | None,
    ) -> None:
        super().__init__(module, source, types, hints.get("return", NONE), label, number)
        self._translation, self._hints = module, hints
        self._locals: dict[str, tuple[Type, list[Any]]] = {}

    def translated(self) -> Translated:
        """The whole function."""
        start, at = self.builder.block, 1
        names = [each.arg for each in self.source.node.args.args]
        if len(names) != len(self.types):
            raise self.wrong(f"{self.source.name} takes {len(names)} arguments, not {len(self.types)}")
        for name, kind in zip(names, self.types, strict=True):
            end = at + len(kind.parts)
            self._assign(name, Value(kind, list(self.function.args[at:end])))
            at = end
        self._block(self.source.node.body)
        if not self.builder.block.is_terminated:
            self._give(Value(NONE, []))
        ir.IRBuilder(self._head).branch(start)
        return Translated(self.function, self._hints.get("return", NONE), self.stops)

    # statements

    def _block(self, body: Sequence[ast.stmt]) -> None:
        for each in body:
            if self.builder.block.is_terminated:
                return
            self._line = getattr(each, "lineno", self._line)
            method = getattr(self, f"_do_{type(each).__name__}", None)
            if method is None:
                raise self.wrong(f"`{type(each).__name__}` is no statement of the subset")
            try:
                method(each)
            except SubsetError as error:
                raise error if error.place else self.wrong(str(error)) from None

    def _do_Pass(self, node: ast.Pass) -> None:
        pass

    def _do_Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def _do_Return(self, node: ast.Return) -> None:
        self._give(self.value(node.value) if node.value is not None else Value(NONE, []))

    def _give(self, value: Value) -> None:
        known = self._hints.get("return")
        wider = value.type if known is None else joined(known, value.type)
        if wider != known:
            self._hints["return"] = wider
            if known is not None or wider is not NONE:
                raise _Again
        flat = self.cast(value, wider).parts
        if not flat:
            self.builder.ret_void()
        elif len(flat) == 1:
            self.builder.ret(flat[0])
        else:
            made: Any = ir.Constant(self._result, ir.Undefined)
            for i, each in enumerate(flat):
                made = self.builder.insert_value(made, each, i)
            self.builder.ret(made)

    def _do_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            self._store(target, self.value(node.value))

    def _do_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is None:
            raise self.wrong("a local needs a value")
        self._store(node.target, self.cast(self.value(node.value), type_of(node.annotation)))

    def _do_AugAssign(self, node: ast.AugAssign) -> None:
        self._store(node.target, self.binary(type(node.op), self.value(node.target), self.value(node.value)))

    def _store(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(name):
                self._assign(name, value)
            case ast.Tuple(items) if isinstance(value.type, Tuple) and len(items) == len(value.type.items):
                for i, each in enumerate(items):
                    self._store(each, self.item(value, i))
            case ast.Attribute(of, name):
                held = self._struct(self.value(of))
                struct, kind = self._field(held, name)
                if struct.record:
                    raise self.wrong(f"{struct.name} is a record, which is never changed")
                self.put(held.parts[0], 8 * struct.places[name], value, kind, over=True)
            case ast.Subscript(of, index):
                operations.set_item(self, self.value(of), self.value(index), value)
            case _:
                raise self.wrong(f"nothing can be stored in `{ast.unparse(target)}`")

    def _field(self, held: Value, name: str) -> tuple[Struct, Type]:
        assert isinstance(held.type, Reference)
        struct = self.module.layout.structs[held.type.struct]
        if name not in struct.fields:
            raise self.wrong(f"{struct.name} has no field `{name}`; it has {', '.join(struct.fields) or 'none'}")
        return struct, struct.fields[name]

    def _struct(self, value: Value) -> Value:
        """A reference to a struct that is there."""
        if not isinstance(value.type, Reference):
            raise self.wrong(f"a value of type {value.type} has no fields")
        if self.checked and value.type.struct != self.module.layout.root:
            self.guard(self.builder.icmp_signed("!=", value.parts[0], int_(0)), Check.NOTHING)
            self.guard(self.builder.icmp_signed("!=", self.load(value.parts[0]), int_(FREED)), Check.FREED)
        return value

    def _assign(self, name: str, value: Value) -> None:
        known = self._hints.get(name)
        kind = value.type if known is None else joined(known, value.type)
        if kind != known:
            self._hints[name] = kind
            if known is not None:
                raise _Again
        if name not in self._locals:
            head = ir.IRBuilder(self._head)
            self._locals[name] = kind, [head.alloca(PARTS[part]) for part in kind.parts]
        for place, part in zip(self._locals[name][1], self.cast(value, kind).parts, strict=True):
            self.builder.store(part, place)

    def _do_Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            if not isinstance(target, ast.Subscript):
                raise self.wrong(f"`{ast.unparse(target)}` cannot be deleted")
            operations.delete_item(self, self.value(target.value), self.value(target.slice))

    def _do_If(self, node: ast.If) -> None:
        test = self.truth(self.value(node.test))
        then, other, end = (self.function.append_basic_block() for _ in range(3))
        self.builder.cbranch(test, then, other)
        for block, body in ((then, node.body), (other, node.orelse)):
            self.builder.position_at_end(block)
            self._block(body)
            if not self.builder.block.is_terminated:
                self.builder.branch(end)
        self.builder.position_at_end(end)

    def _do_While(self, node: ast.While) -> None:
        self.loop(lambda: self.truth(self.value(node.test)), lambda: self._block(node.body))

    def _do_Break(self, node: ast.Break) -> None:
        self.builder.branch(self._loops[-1][1])

    def _do_Continue(self, node: ast.Continue) -> None:
        self.builder.branch(self._loops[-1][0])

    def _do_For(self, node: ast.For) -> None:
        """A loop over a container as it is when each item's turn comes."""
        held, way = node.iter, ""
        match node.iter:
            case ast.Call(ast.Attribute(held, way), []) | ast.Call(ast.Name("enumerate" as way), [held]):
                pass
            case _:
                pass

        def body(value: Value) -> None:
            self._store(node.target, value)
            self._block(node.body)

        operations.iterate(self, self.value(held), way, body)

    def value(self, node: ast.expr) -> Value:
        """An expression."""
        method = getattr(self, f"_of_{type(node).__name__}", None)
        if method is None:
            raise self.wrong(f"`{ast.unparse(node)}` is no expression of the subset")
        return method(node)

    def _of_Constant(self, node: ast.Constant) -> Value:
        match node.value:
            case None:
                return Value(NONE, [])
            case bool(value):
                return Value(BOOL, [ir.Constant(I1, int(value))], value)
            case float(value):
                return Value(FLOAT, [ir.Constant(F64, value)], value)
            case int(value) if -(2**63) <= value < 2**63:
                return Value(INT, [int_(value)], value)
            case other:
                raise self.wrong(f"{other!r} is no constant of the subset")

    def _of_Name(self, node: ast.Name) -> Value:
        if node.id == "s" and "s" not in self._locals:
            return Value(Reference(self.module.layout.root), [self.function.args[0]])
        if node.id not in self._locals:
            raise self.wrong(f"`{node.id}` has no value here")
        kind, places = self._locals[node.id]
        loaded = [self.builder.load(each, typ=PARTS[part]) for each, part in zip(places, kind.parts, strict=True)]
        return Value(kind, loaded)

    def _of_Attribute(self, node: ast.Attribute) -> Value:
        held = self._struct(self.value(node.value))
        struct, kind = self._field(held, node.attr)
        return self.get(held.parts[0], 8 * struct.places[node.attr], kind)

    def _of_Subscript(self, node: ast.Subscript) -> Value:
        held, index = self.value(node.value), self.value(node.slice)
        if isinstance(held.type, Reference):
            self._struct(held)
            struct, kind = self._field(held, f"f{index.constant}")
            return self.get(held.parts[0], 8 * struct.places[f"f{index.constant}"], kind)
        return operations.get_item(self, held, index)

    def _of_Tuple(self, node: ast.Tuple) -> Value:
        items = [self.value(each) for each in node.elts]
        return Value(Tuple(tuple(each.type for each in items)), [part for each in items for part in each.parts])

    def _of_UnaryOp(self, node: ast.UnaryOp) -> Value:
        value = self.value(node.operand)
        if isinstance(node.op, ast.Not):
            return Value(BOOL, [self.builder.not_(self.truth(value))])
        if not isinstance(node.op, ast.USub):
            raise self.wrong(f"`{ast.unparse(node)}` is no expression of the subset")
        if value.constant is not None:
            return self._of_Constant(ast.Constant(-value.constant))
        value = self.number(value)
        if value.type is FLOAT:
            return Value(FLOAT, [self.builder.fneg(value.parts[0])])
        return self.binary(ast.Sub, Value(INT, [int_(0)]), value)

    def _of_BinOp(self, node: ast.BinOp) -> Value:
        return self.binary(type(node.op), self.value(node.left), self.value(node.right))

    def binary(self, op: type[ast.operator], left: Value, right: Value) -> Value:
        """An operation of two numbers."""
        a, b = self.number(left), self.number(right)
        kind = FLOAT if FLOAT in (a.type, b.type) or op is ast.Div else INT
        x, y = self.cast(a, kind).parts[0], self.cast(b, kind).parts[0]
        return Value(kind, [operations.arithmetic(self, op, x, y)])

    def _of_BoolOp(self, node: ast.BoolOp) -> Value:
        place, end = self.alloca(I1), self.function.append_basic_block()
        for i, each in enumerate(node.values):
            found = self.value(each)
            test = self.truth(found)
            self.builder.store(test, place)
            if i < len(node.values) - 1:
                more = self.function.append_basic_block()
                self.builder.cbranch(test, *((more, end) if isinstance(node.op, ast.And) else (end, more)))
                self.builder.position_at_end(more)
        self.builder.branch(end)
        self.builder.position_at_end(end)
        return Value(BOOL, [self.builder.load(place, typ=I1)])

    def _of_Compare(self, node: ast.Compare) -> Value:
        left, found = self.value(node.left), None
        for op, each in zip(node.ops, node.comparators, strict=True):
            right = self.value(each)
            test = operations.compared(self, op, left, right)
            found = test if found is None else self.builder.and_(found, test)
            left = right
        return Value(BOOL, [found])

    def _of_IfExp(self, node: ast.IfExp) -> Value:
        test = self.truth(self.value(node.test))
        branches = [self.function.append_basic_block() for _ in range(2)]
        end = self.function.append_basic_block()
        self.builder.cbranch(test, *branches)
        values: list[tuple[Value, Any]] = []
        for block, each in zip(branches, (node.body, node.orelse), strict=True):
            self.builder.position_at_end(block)
            value = self.value(each)
            values.append((value, self.builder.block))
        kind = joined(values[0][0].type, values[1][0].type)
        flat: list[tuple[list[Any], Any]] = []
        for value, block in values:
            self.builder.position_at_end(block)
            parts = self.cast(value, kind).parts
            flat.append((parts, self.builder.block))
            self.builder.branch(end)
        self.builder.position_at_end(end)
        found: list[Any] = []
        for i, part in enumerate(kind.parts):
            phi = self.builder.phi(PARTS[part])
            for parts, block in flat:
                phi.add_incoming(parts[i], block)
            found.append(phi)
        return Value(kind, found)

    # calls

    def _of_Call(self, node: ast.Call) -> Value:
        if node.keywords:
            raise self.wrong("arguments have no names in the subset")
        if isinstance(node.func, ast.Attribute):
            held = self.value(node.func.value)
            return operations.method(self, held, node.func.attr, [self.value(each) for each in node.args])
        assert isinstance(node.func, ast.Name)
        name = node.func.id
        with self.wrapping(name == "wrapped"):
            arguments = [self.value(each) for each in node.args]
        if name in self.module.layout.structs:
            return self.new(name, arguments)
        if self._translation.defines(name):
            return self.call(name, arguments)
        return operations.function(self, name, arguments)
