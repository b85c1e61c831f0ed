"""One function of machine code while it is made: its memory, its values, its checks and its calls.

What the text of the function means is said elsewhere: statements and expressions in `subset.py`, operators, functions and
containers in `operations.py`. Both make their code with an `Emitter`.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol

from llvmlite import ir

from rollup.engine.compiler import native
from rollup.engine.compiler.faults import REFUSED, Check
from rollup.engine.compiler.freeing import FREED
from rollup.engine.compiler.source import Function
from rollup.engine.compiler.types import (
    BOOL,
    CODE,
    DYING,
    FAULT,
    FLOAT,
    INT,
    LIVE,
    NONE,
    POOLS,
    WHERE,
    Container,
    Layout,
    Optional,
    RecordOf,
    Reference,
    SubsetError,
    Tuple,
    Type,
)

I64, F64, I1, I8 = ir.IntType(64), ir.DoubleType(), ir.IntType(1), ir.IntType(8)
PARTS: Mapping[str, Any] = {"int": I64, "float": F64, "bool": I1}
_POINTER = ir.PointerType()


@dataclass
class Value:
    """A value in hand: its type, its machine values, and what it is where the text says so."""

    type: Type
    parts: list[Any]
    constant: Any = None


@dataclass(frozen=True)
class Translated:
    """A function in the module. `stops`: it may end because of a fault."""

    function: Any
    result: Type
    stops: bool


def int_(number: int) -> Any:
    """A whole number as a constant of the machine."""
    return ir.Constant(I64, number)


class Module(Protocol):
    """The functions of a program while they are made."""

    layout: Layout
    checked: bool
    module: Any
    external: Mapping[str, Any]
    collect: Any

    def function(self, name: str, types: tuple[Type, ...]) -> Translated:
        """A function for arguments of some types."""
        ...


class Emitter:
    """A function for arguments of some types. `number` is its place in the source, if it has one: other functions are not checked."""

    def __init__(
        self,
        module: Module,
        source: Function,
        types: tuple[Type, ...],
        result: Type,
        label: str,
        number: int | None,
    ) -> None:
        self.module, self.source, self.types, self._number = module, source, types, number
        self.checked = module.checked and number is not None
        self.recursive = self.stops = self.wraps = False
        self._line = source.node.lineno
        kinds = [PARTS[part] for part in result.parts]
        self._result = ir.VoidType() if not kinds else kinds[0] if len(kinds) == 1 else ir.LiteralStructType(kinds)
        flat = [PARTS[part] for each in types for part in each.parts]
        self.function = ir.Function(module.module, ir.FunctionType(self._result, [I64, *flat]), label)
        self.function.linkage = "internal"
        if source.name in native.COLD:
            self.function.attributes.add("noinline")
            self.function.attributes.add("cold")
        self._head = self.function.append_basic_block("head")
        self.builder: Any = ir.IRBuilder(self.function.append_basic_block("body"))
        self._loops: list[tuple[Any, Any]] = []
        self._end: Any = None

    # errors and checks

    def wrong(self, message: str) -> SubsetError:
        """The error for the line at hand."""
        return SubsetError(message, f"{self.source.file}:{self._line}")

    def guard(self, holds: Any, check: Check) -> None:
        """In the checked build: the call ends as a fault unless something holds. Elsewhere nothing is asked."""
        if self.checked:
            with self.builder.if_then(self.builder.not_(holds), likely=False):
                self._stop(int_(check))

    def _stop(self, code: Any) -> None:
        """The function ends, and with it the call from outside."""
        self.stops = True
        root = self.function.args[0]
        self.store(root, 8 * FAULT, code)
        self.store(root, 8 * WHERE, int_(((self._number or 0) << 32) + self._line))
        self.builder.branch(self._exit())

    def _exit(self) -> Any:
        """The block that gives back nothing."""
        if self._end is None:
            self._end = self.function.append_basic_block("stopped")
            builder = ir.IRBuilder(self._end)
            if isinstance(self._result, ir.VoidType):
                builder.ret_void()
            else:
                builder.ret(ir.Constant(self._result, None))
        return self._end

    def refuse(self, code: Value) -> None:
        """The program ends the call by itself."""
        self._stop(self.builder.add(int_(REFUSED), self.cast(code, INT).parts[0]))
        self.builder.position_at_end(self.function.append_basic_block("refused"))

    # loops and places

    def loop(self, test: Callable[[], Any], body: Callable[[], None], step: Callable[[], None] = lambda: None) -> None:
        """A loop; `step` is done after each turn, also after one that was cut short."""
        top, inside, further, end = (self.function.append_basic_block() for _ in range(4))
        self.builder.branch(top)
        self.builder.position_at_end(top)
        self.builder.cbranch(test(), inside, end)
        self.builder.position_at_end(inside)
        self._loops.append((further, end))
        body()
        self._loops.pop()
        if not self.builder.block.is_terminated:
            self.builder.branch(further)
        self.builder.position_at_end(further)
        step()
        self.builder.branch(top)
        self.builder.position_at_end(end)

    def skip_unless(self, holds: Any) -> None:
        """The rest of a turn of a loop happens only if something holds."""
        go = self.function.append_basic_block()
        self.builder.cbranch(holds, go, self._loops[-1][0])
        self.builder.position_at_end(go)

    def counter(self, first: Any) -> tuple[Callable[[], Any], Callable[[], None]]:
        """A whole number that a loop counts with: how to read it, and how to add one."""
        place = self.alloca(I64)
        self.builder.store(first, place)

        def step() -> None:
            self.builder.store(self.builder.add(self.builder.load(place, typ=I64), int_(1)), place)

        return lambda: self.builder.load(place, typ=I64), step

    def alloca(self, kind: Any) -> Any:
        """A place for a machine value."""
        return ir.IRBuilder(self._head).alloca(kind)

    # memory

    def load(self, base: Any, at: int = 0, kind: Any = I64) -> Any:
        """What stands in memory, so many bytes behind an address."""
        where = self.builder.add(base, int_(at)) if at else base
        return self.builder.load(self.builder.inttoptr(where, _POINTER), typ=kind)

    def store(self, base: Any, at: int, part: Any) -> None:
        """A machine value into memory."""
        where = self.builder.add(base, int_(at)) if at else base
        self.builder.store(part, self.builder.inttoptr(where, _POINTER))

    def get(self, base: Any, at: int, kind: Type) -> Value:
        """A value that stands in memory. Of a container it is the address."""
        if isinstance(kind, Container):
            return Value(kind, [self.builder.add(base, int_(at))])
        found: list[Any] = []
        for i, part in enumerate(kind.parts):
            read = self.load(base, at + 8 * i, I64 if part == "bool" else PARTS[part])
            found.append(self.builder.trunc(read, I1) if part == "bool" else read)
        if isinstance(kind, Reference) and kind.weak:
            kind = Reference(kind.struct)
        return Value(kind, found)

    def put(self, base: Any, at: int, value: Value, kind: Type, over: bool) -> None:
        """A value into memory. `over`: what stood there is referred to less."""
        if isinstance(kind, Container):
            raise self.wrong(f"a field of type {kind} is not assigned to")
        parts = self.cast(value, kind).parts
        for i, struct in kind.references:
            self._count(parts[i], struct)
            if over:
                self.release(self.load(base, at + 8 * i), struct)
        for i, part in enumerate(parts):
            self.store(base, at + 8 * i, self.builder.zext(part, I64) if part.type == I1 else part)

    def _count(self, reference: Any, struct: str) -> None:
        """One reference more."""
        with self.builder.if_then(self.builder.icmp_signed("!=", reference, int_(0))):
            count = self.load(reference)
            self.guard(self.builder.icmp_signed("!=", count, int_(FREED)), Check.FREED)
            self.store(reference, 0, self.builder.add(count, int_(2)))

    def drop(self, base: Any, at: int, kind: Type) -> None:
        """What a value in memory refers to is referred to less."""
        for i, struct in kind.references:
            self.release(self.load(base, at + 8 * i), struct)

    def release(self, reference: Any, struct: str) -> None:
        """One reference less."""
        if self.checked:
            with self.builder.if_then(self.builder.icmp_signed("!=", reference, int_(0))):
                self.guard(self.builder.icmp_signed(">=", self.load(reference), int_(2)), Check.COUNT)
        self.native("release", reference, int_(self.module.layout.structs[struct].number))

    def native(self, name: str, *arguments: Any) -> Any:
        """A call of a function of `native.py` over whole numbers; its value, if any."""
        found = self.call(name, [Value(INT, [each]) for each in arguments]).parts
        return found[0] if found else None

    def new(self, name: str, arguments: Sequence[Value]) -> Value:
        """A struct, whose first fields are the arguments, and the others nothing."""
        struct = self.module.layout.structs[name]
        root = self.function.args[0]
        pool = self.builder.add(root, int_(8 * (POOLS + struct.number)))
        with self.builder.if_then(self.builder.icmp_signed("==", self.load(pool), int_(0)), likely=False):
            self.native("add_chunk", pool, int_(8 * struct.size))
        p = self.load(pool)
        self.store(pool, 0, self.load(p, 8))
        self.store(p, 0, int_(1))
        self.store(root, 8 * LIVE, self.builder.add(self.load(root, 8 * LIVE), int_(1)))
        self.native("note_dying", p, int_(struct.number))
        fields = list(struct.fields.items())
        if len(arguments) > len(fields):
            raise self.wrong(f"{name} has {len(fields)} fields, not {len(arguments)}")
        for (field, kind), value in zip(fields, arguments, strict=False):
            self.put(p, 8 * struct.places[field], value, kind, over=False)
        for field, kind in fields[len(arguments) :]:
            for i, word in enumerate(kind.zero):
                self.store(p, 8 * (struct.places[field] + i), int_(word))
        return Value(Reference(name), [p])

    # values

    def cast(self, value: Value, kind: Type) -> Value:
        """A value as one of another type. Raises SubsetError where the type does not hold it."""
        if value.type == kind or (isinstance(kind, Reference) and value.type == Reference(kind.struct)):
            return value
        match value.type, kind:
            case (_, Optional(inner)) if value.type is NONE:
                empty = [ir.Constant(PARTS[part], 0) for part in inner.parts]
                return Value(kind, [*empty, ir.Constant(I1, 0)])
            case Optional(of), Optional(inner):
                bare = self.cast(Value(of, value.parts[:-1]), inner)
                return Value(kind, [*bare.parts, value.parts[-1]])
            case _, Optional(inner):
                return Value(kind, [*self.cast(value, inner).parts, ir.Constant(I1, 1)])
            case Optional(), _:
                return self.cast(self.bare(value), kind)
            case Tuple(of), Tuple(items) if len(of) == len(items):
                cast = [self.cast(self.item(value, i), each) for i, each in enumerate(items)]
                return Value(kind, [part for each in cast for part in each.parts])
            case _:
                pass
        if value.type is NONE and (kind is CODE or isinstance(kind, Reference)):
            return Value(kind, [int_(kind.zero[0])])
        if kind is FLOAT and value.type in (INT, BOOL):
            return Value(kind, [self.builder.sitofp(self.cast(value, INT).parts[0], F64)])
        if kind is INT and value.type is BOOL:
            return Value(kind, [self.builder.zext(value.parts[0], I64)])
        raise self.wrong(f"a value of type {value.type} where one of type {kind} is needed")

    def item(self, value: Value, index: int) -> Value:
        """An item of a tuple."""
        assert isinstance(value.type, Tuple)
        begin, kind = value.type.item(index)
        return Value(kind, value.parts[begin : begin + len(kind.parts)])

    def bare(self, value: Value) -> Value:
        """A value that is there."""
        if isinstance(value.type, Optional):
            self.guard(value.parts[-1], Check.NOTHING)
            return Value(value.type.of, value.parts[:-1])
        return value

    def number(self, value: Value) -> Value:
        """A number or a truth value that is there."""
        bare = self.bare(value)
        if bare.type not in (INT, FLOAT, BOOL):
            raise self.wrong(f"a value of type {value.type} is no number")
        return bare

    def truth(self, value: Value) -> Any:
        """What a test makes of a value."""
        kind, parts = value.type, value.parts
        if isinstance(kind, Optional):
            return self.builder.and_(parts[-1], self.truth(Value(kind.of, parts[:-1])))
        if kind is BOOL:
            return parts[0]
        if kind is NONE:
            return ir.Constant(I1, 0)
        if kind is FLOAT:
            return self.builder.fcmp_unordered("!=", parts[0], ir.Constant(F64, 0.0))
        if isinstance(kind, Container):
            return self.builder.icmp_signed("!=", self.load(parts[0], 8 * kind.count), int_(0))
        if kind is INT or isinstance(kind, Reference):
            return self.builder.icmp_signed("!=", parts[0], int_(0))
        raise self.wrong(f"a value of type {kind} is no condition; compare it")

    # calls

    @contextmanager
    def wrapping(self, wraps: bool) -> Generator[None]:
        """Whether whole numbers may go beyond 64 bits meanwhile."""
        before, self.wraps = self.wraps, wraps
        yield
        self.wraps = before

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        """A call of a function of the source."""
        found = self.module.function(name, tuple(each.type for each in arguments))
        self.recursive |= found.function is self.function
        result = self.builder.call(
            found.function, [self.function.args[0], *(p for each in arguments for p in each.parts)]
        )
        if found.stops:
            self.stops = True
            go = self.function.append_basic_block()
            stopped = self.builder.icmp_signed("!=", self.load(self.function.args[0], 8 * FAULT), int_(0))
            self.builder.cbranch(stopped, self._exit(), go)
            self.builder.position_at_end(go)
        count = len(found.result.parts)
        if count > 1:
            return Value(found.result, [self.builder.extract_value(result, i) for i in range(count)])
        return Value(found.result, [result][:count])

    def record(self, address: Any, kind: RecordOf, row: Any, index: int) -> Value:
        """A value of a row of input."""
        item = kind.items[index]
        data = self.load(address, 8 + 16 * index)
        where = self.builder.add(data, self.builder.mul(row, int_(8)))
        inner = item.of if isinstance(item, Optional) else item
        value = self.get(where, 0, inner)
        if not isinstance(item, Optional):
            return value
        there = self.load(self.builder.add(self.load(address, 16 + 16 * index), row), 0, I8)
        return Value(item, [*value.parts, self.builder.trunc(there, I1)])

    def collect(self) -> None:
        """What nothing refers to is freed."""
        root = self.function.args[0]
        with self.builder.if_then(self.builder.icmp_signed("!=", self.load(root, 8 * (DYING + 2)), int_(0))):
            self.builder.call(self.module.collect, [root])
