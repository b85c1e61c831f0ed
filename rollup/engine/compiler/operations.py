"""What compiled code does with numbers and containers: operators, methods and functions of the subset, by name."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from llvmlite import ir

from rollup.engine.compiler.emitter import F64, I1, I8, I64, Emitter, Value, int_
from rollup.engine.compiler.faults import Check
from rollup.engine.compiler.types import (
    BOOL,
    CODE,
    FLOAT,
    INT,
    NONE,
    ColumnsOf,
    Container,
    HeapOf,
    ListOf,
    MapOf,
    Optional,
    QueueOf,
    RecordOf,
    Reference,
    SortedOf,
    SubsetError,
    TableOf,
    Tuple,
    Type,
    joined,
)

_PLAIN: Mapping[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("add", "fadd"),
    ast.Sub: ("sub", "fsub"),
    ast.Mult: ("mul", "fmul"),
    ast.Div: ("", "fdiv"),
    ast.BitAnd: ("and_", ""),
    ast.BitOr: ("or_", ""),
    ast.BitXor: ("xor", ""),
    ast.LShift: ("shl", ""),
    ast.RShift: ("ashr", ""),
}
_SIGNS: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
}
_WITHOUT_SIGN = (1 << 63) - 1


# numbers


def arithmetic(f: Emitter, op: type[ast.operator], x: Any, y: Any) -> Any:
    """An operation of two machine values of one type."""
    real = x.type == F64
    if op in (ast.Div, ast.FloorDiv, ast.Mod):
        zero = (
            f.builder.fcmp_unordered("!=", y, ir.Constant(F64, 0.0))
            if real
            else f.builder.icmp_signed("!=", y, int_(0))
        )
        f.guard(zero, Check.ZERO)
    if op in (ast.LShift, ast.RShift) and not real:
        f.guard(f.builder.icmp_unsigned("<", y, int_(64)), Check.SHIFT)
    if op in (ast.FloorDiv, ast.Mod) and not real:
        return _floored(f, op, x, y)
    name = _PLAIN.get(op, ("", ""))[real]
    if not name:
        raise SubsetError(f"{op.__name__} of {'doubles' if real else 'whole numbers'} is not in the subset")
    if f.checked and not f.wraps and name in ("add", "sub", "mul"):
        return _exact(f, name, x, y)
    return getattr(f.builder, name)(x, y)


def _exact(f: Emitter, name: str, x: Any, y: Any) -> Any:
    kind = ir.FunctionType(ir.LiteralStructType([I64, I1]), [I64, I64])
    function = f.module.module.declare_intrinsic(f"llvm.s{name}.with.overflow", [I64], kind)
    found = f.builder.call(function, [x, y])
    f.guard(f.builder.not_(f.builder.extract_value(found, 1)), Check.OVERFLOW)
    return f.builder.extract_value(found, 0)


def _floored(f: Emitter, op: type[ast.operator], x: Any, y: Any) -> Any:
    b = f.builder
    rest = b.srem(x, y)
    off = b.and_(b.icmp_signed("!=", rest, int_(0)), b.icmp_signed("<", b.xor(x, y), int_(0)))
    if op is ast.Mod:
        return b.select(off, b.add(rest, y), rest)
    cut = b.sdiv(x, y)
    return b.select(off, b.sub(cut, int_(1)), cut)


def compared(f: Emitter, op: ast.cmpop, left: Value, right: Value) -> Any:
    """A comparison. `==` compares numbers, or codes; `is` asks for None, for a truth value, or whether structs are one."""
    if isinstance(op, ast.Is | ast.IsNot):
        found = _same(f, left, right)
        return f.builder.not_(found) if isinstance(op, ast.IsNot) else found
    if isinstance(op, ast.In | ast.NotIn):
        found = f.builder.icmp_signed("!=", _found(f, right, left), int_(0))
        return f.builder.not_(found) if isinstance(op, ast.NotIn) else found
    sign = _SIGNS[type(op)]
    if left.type is CODE or right.type is CODE:
        if sign not in ("==", "!=") or {left.type, right.type} - {CODE, NONE}:
            raise SubsetError(f"{left.type} {sign} {right.type}: codes have no order and equal codes alone")
        return f.builder.icmp_signed(sign, f.cast(left, CODE).parts[0], f.cast(right, CODE).parts[0])
    a, b = f.number(left), f.number(right)
    if FLOAT in (a.type, b.type):
        x, y = f.cast(a, FLOAT).parts[0], f.cast(b, FLOAT).parts[0]
        return (f.builder.fcmp_unordered if sign == "!=" else f.builder.fcmp_ordered)(sign, x, y)
    return f.builder.icmp_signed(sign, f.cast(a, INT).parts[0], f.cast(b, INT).parts[0])


def _same(f: Emitter, a: Value, b: Value) -> Any:
    if b.type is NONE:
        if isinstance(a.type, Optional):
            return f.builder.not_(a.parts[-1])
        if a.type is CODE or isinstance(a.type, Reference):
            return f.builder.icmp_signed("==", a.parts[0], int_(a.type.zero[0]))
        return ir.Constant(I1, a.type is NONE)
    if b.type is BOOL and b.constant is not None:
        if a.type is NONE:
            return ir.Constant(I1, 0)
        there = a.parts[-1] if isinstance(a.type, Optional) else ir.Constant(I1, 1)
        return f.builder.and_(there, f.builder.icmp_signed("==", a.parts[0], b.parts[0]))
    if isinstance(a.type, Reference) and isinstance(b.type, Reference):
        return f.builder.icmp_signed("==", a.parts[0], b.parts[0])
    raise SubsetError(f"{a.type} is {b.type}: only None, True, False and structs are asked for by `is`")


# functions


def function(f: Emitter, name: str, arguments: Sequence[Value]) -> Value:
    """A call of a function that is part of the subset."""
    found = _FUNCTIONS.get(name)
    if found is None:
        raise SubsetError(f"no function is called `{name}`")
    wanted = found.__code__.co_argcount - 1
    if wanted != len(arguments):
        raise SubsetError(f"{name} takes {wanted} arguments, not {len(arguments)}")
    return found(f, *arguments)


def _value(kind: Type, *parts: Any) -> Value:
    return Value(kind, list(parts))


def _len(f: Emitter, held: Value) -> Value:
    return _value(INT, f.load(held.parts[0], 8 * _container(held).count))


def _order(f: Emitter, a: Value) -> Value:
    """Whole numbers in the order of doubles."""
    found = _bits(f, a).parts[0]
    return _value(INT, f.builder.xor(found, f.builder.and_(f.builder.ashr(found, int_(63)), int_(_WITHOUT_SIGN))))


def _bits(f: Emitter, a: Value) -> Value:
    """The 64 bits of a double as a whole number, those of 0.0 for -0.0, and those of one for all that are no number."""
    x = f.builder.fadd(f.cast(f.number(a), FLOAT).parts[0], ir.Constant(F64, 0.0))
    nan = f.builder.fcmp_unordered("uno", x, x)
    return _value(INT, f.builder.select(nan, int_(0x7FF8 << 48), f.builder.bitcast(x, I64)))


def _chosen(sign: str) -> Callable[..., Value]:
    """`min` or `max` of two: the second where it is before the first, as CPython has it."""

    def chosen(f: Emitter, a: Value, b: Value) -> Value:
        a, b = f.number(a), f.number(b)
        kind = joined(a.type, b.type)
        op = ast.Lt() if sign == "<" else ast.Gt()
        before = compared(f, op, b, a)
        return _value(kind, f.builder.select(before, f.cast(b, kind).parts[0], f.cast(a, kind).parts[0]))

    return chosen


def _abs(f: Emitter, a: Value) -> Value:
    a = f.number(a)
    if a.type is FLOAT:
        return _value(FLOAT, f.builder.call(f.module.module.declare_intrinsic("llvm.fabs", [F64]), a.parts))
    x = f.cast(a, INT).parts[0]
    return _value(INT, f.builder.select(f.builder.icmp_signed("<", x, int_(0)), f.builder.neg(x), x))


def _sqrt(f: Emitter, a: Value) -> Value:
    root = f.module.module.declare_intrinsic("llvm.sqrt", [F64])
    return _value(FLOAT, f.builder.call(root, f.cast(f.number(a), FLOAT).parts))


def _collect(f: Emitter) -> Value:
    f.collect()
    return _value(NONE)


def _refuse(f: Emitter, code: Value) -> Value:
    f.refuse(code)
    return _value(NONE)


def _load(f: Emitter, address: Value) -> Value:
    return _value(INT, f.load(address.parts[0]))


def _store(f: Emitter, address: Value, value: Value) -> Value:
    f.store(address.parts[0], 0, f.cast(value, INT).parts[0])
    return _value(NONE)


def _external(name: str, count: int) -> Callable[..., Value]:
    def one(f: Emitter, a: Value) -> Value:
        return _value(INT, f.builder.call(f.module.external[name], a.parts))

    def two(f: Emitter, a: Value, b: Value) -> Value:
        return _value(INT, f.builder.call(f.module.external[name], [*a.parts, *b.parts]))

    def three(f: Emitter, a: Value, b: Value, c: Value) -> Value:
        return _value(INT, f.builder.call(f.module.external[name], [*a.parts, *b.parts, *c.parts]))

    return (one, two, three)[count - 1]


def _hashed(f: Emitter, key: Value) -> Value:
    b = f.builder
    h = int_(0)
    for i, part in enumerate(key.parts):
        h = b.xor(b.mul(h, int_(HASH_FURTHER)) if i else h, b.mul(part, int_(HASH)))
    return _value(INT, b.xor(h, b.lshr(h, int_(32))))


HASH, HASH_FURTHER = -7046029254386353131, -4417276706812531889
"""A hash of words: each times the first number, those before times the second; the upper half goes into the lower one."""


def _same_key(f: Emitter, address: Value, key: Value) -> Value:
    found = ir.Constant(I1, 1)
    for i, part in enumerate(key.parts):
        found = f.builder.and_(found, f.builder.icmp_signed("==", f.load(address.parts[0], 8 * i), part))
    return _value(BOOL, found)


def _load_key(f: Emitter, address: Value, key: Value) -> Value:
    return _value(key.type, *(f.load(address.parts[0], 8 * i) for i in range(len(key.parts))))


def _store_key(f: Emitter, address: Value, key: Value) -> Value:
    for i, part in enumerate(key.parts):
        f.store(address.parts[0], 8 * i, part)
    return _value(NONE)


_FUNCTIONS: Mapping[str, Any] = {
    "len": _len,
    "order": _order,
    "bits": _bits,
    "min": _chosen("<"),
    "max": _chosen(">"),
    "abs": _abs,
    "sqrt": _sqrt,
    "float": lambda f, a: f.cast(f.number(a), FLOAT),
    "int": lambda f, a: f.cast(f.number(a), INT),
    "wrapped": lambda f, a: f.number(a),
    "collect": _collect,
    "refuse": _refuse,
    # what native.py needs
    "root": lambda f: _value(INT, f.function.args[0]),
    "load": _load,
    "store": _store,
    "malloc": _external("malloc", 1),
    "realloc": _external("realloc", 2),
    "calloc": _external("calloc", 2),
    "free": _external("free", 1),
    "memcpy": _external("memcpy", 3),
    "memmove": _external("memmove", 3),
    "hashed": _hashed,
    "same_key": _same_key,
    "load_key": _load_key,
    "store_key": _store_key,
}


# containers


def _container(held: Value) -> Container:
    if not isinstance(held.type, Container):
        raise SubsetError(f"a value of type {held.type} is no container")
    return held.type


def _length(f: Emitter, held: Value) -> Any:
    return f.load(held.parts[0], 8 * _container(held).count)


def _full(f: Emitter, held: Value) -> None:
    """A check: the container is not empty."""
    f.guard(f.builder.icmp_signed(">", _length(f, held), int_(0)), Check.EMPTY)


def _place(f: Emitter, held: Value, index: Value) -> Any:
    """The number of an item from the front, for an index that may count from the end."""
    at, length = f.cast(index, INT).parts[0], _length(f, held)
    if index.constant is None or index.constant < 0:
        at = f.builder.select(f.builder.icmp_signed("<", at, int_(0)), f.builder.add(at, length), at)
    f.guard(f.builder.icmp_unsigned("<", at, length), Check.INDEX)
    return at


def _element(f: Emitter, held: Value, at: Any) -> Any:
    """The address of an item of a list or a heap."""
    return f.builder.add(f.load(held.parts[0]), f.builder.mul(at, int_(8 * _container(held).item.words)))


def get_item(f: Emitter, held: Value, index: Value) -> Value:
    """`held[index]`."""
    match held.type:
        case Tuple(items) if isinstance(index.constant, int) and 0 <= index.constant < len(items):
            return f.item(held, index.constant)
        case RecordOf(items) if isinstance(index.constant, int) and 0 <= index.constant < len(items):
            return f.record(held.parts[0], held.type, held.parts[1], index.constant)
        case ListOf():
            return f.get(_element(f, held, _place(f, held, index)), 0, held.type.item)
        case SortedOf():
            key = f.load(_element(f, held, _place(f, held, index)))
            if held.type.of is not FLOAT:
                return _value(INT, key)
            bits = f.builder.xor(key, f.builder.and_(f.builder.ashr(key, int_(63)), int_(_WITHOUT_SIGN)))
            return _value(FLOAT, f.builder.bitcast(bits, F64))
        case QueueOf(position=None):
            first = f.load(held.parts[0], 16)
            return _value(held.type.of, f.load(_slot(f, held.parts[0], f.builder.add(first, _place(f, held, index)))))
        case HeapOf() if index.constant == 0:
            _full(f, held)
            return f.get(f.load(held.parts[0]), 0, held.type.item)
        case MapOf():
            entry = _found(f, held, index)
            f.guard(f.builder.icmp_signed("!=", entry, int_(0)), Check.ABSENT)
            return f.get(entry, 8 * (1 + len(held.type.key.parts)), held.type.value)
        case ColumnsOf():
            at = f.cast(index, INT).parts[0]
            f.guard(f.builder.icmp_unsigned("<", at, _length(f, held)), Check.INDEX)
            return _value(held.type.item, held.parts[0], at)
        case _:
            raise SubsetError(
                f"a value of type {held.type} has no item {index.constant if index.constant is not None else ''}"
            )


def set_item(f: Emitter, held: Value, index: Value, value: Value) -> None:
    """`held[index] = value`."""
    match held.type:
        case MapOf():
            kind, begin = held.type, 8 * (1 + len(held.type.key.parts))
            entry = f.call(
                "map_put", [_address(held), _key(f, kind, index), _constant(8 * kind.size), _constant(begin)]
            )
            f.put(entry.parts[0], begin, value, kind.value, over=True)
        case ListOf():
            f.put(_element(f, held, _place(f, held, index)), 0, value, held.type.item, over=True)
        case _:
            raise SubsetError(f"an item of {held.type} is not assigned to")


def delete_item(f: Emitter, held: Value, index: Value) -> None:
    """`del held[index]`."""
    if not isinstance(held.type, MapOf):
        raise SubsetError(f"an item of {held.type} is not deleted")
    kind = held.type
    entry = f.call("map_drop", [_address(held), _key(f, kind, index), _constant(8 * kind.size)]).parts[0]
    there = f.builder.icmp_signed("!=", entry, int_(0))
    f.guard(there, Check.ABSENT)
    with f.builder.if_then(there):
        f.drop(entry, 8 * (1 + len(kind.key.parts)), kind.value)


def _address(held: Value) -> Value:
    return _value(INT, held.parts[0])


def _constant(number: int) -> Value:
    return _value(INT, int_(number))


def _key(f: Emitter, kind: MapOf, key: Value) -> Value:
    """A key as whole numbers."""
    parts = [f.builder.zext(part, I64) if part.type == I1 else part for part in f.cast(key, kind.key).parts]
    return _value(Tuple((INT,) * len(parts)), *parts)


def _found(f: Emitter, held: Value, key: Value) -> Any:
    """The address of the entry of a key, or 0."""
    if not isinstance(held.type, MapOf):
        raise SubsetError(f"{held.type} has no keys")
    return f.call("map_find", [_address(held), _key(f, held.type, key), _constant(8 * held.type.size)]).parts[0]


def iterate(f: Emitter, held: Value, way: str, body: Callable[[Value], None]) -> None:
    """A loop over a container; `way`: of a list `enumerate`, of a map its `keys`, `values` or `items`."""
    kind, base = held.type, held.parts[0]
    if isinstance(kind, ListOf) and way in ("", "enumerate"):
        first, last = int_(0), 2
    elif isinstance(kind, QueueOf) and not way:
        first, last = f.load(base, 16), 3
    elif isinstance(kind, MapOf) and way in ("", "keys", "values", "items"):
        first, last = int_(0), 2
    else:
        raise SubsetError(f"no loop goes over {way or 'a value'} of type {kind}")
    at, step = f.counter(first)
    end, count = f.load(base, 8 * last), _length(f, held)

    def turn() -> None:
        found = _turn(f, held, at(), way)
        body(found)

    def unchanged() -> None:
        if not isinstance(kind, ListOf):  # a list may grow while a loop goes over it
            same = f.builder.and_(
                f.builder.icmp_signed("==", f.load(base, 8 * last), end),
                f.builder.icmp_signed("==", _length(f, held), count),
            )
            f.guard(same, Check.CHANGED)
        step()

    f.loop(lambda: f.builder.icmp_signed("<", at(), f.load(base, 8 * last)), turn, unchanged)


def _turn(f: Emitter, held: Value, at: Any, way: str) -> Value:
    kind, base = held.type, held.parts[0]
    if isinstance(kind, ListOf):
        item = f.get(_element(f, held, at), 0, kind.item)
        return _value(Tuple((INT, item.type)), at, *item.parts) if way else item
    if isinstance(kind, QueueOf):
        found = f.load(_slot(f, base, at))
        f.skip_unless(f.builder.icmp_signed("!=", found, int_(0)))
        return _value(kind.of, found)
    assert isinstance(kind, MapOf)
    entry = f.builder.add(f.load(base), f.builder.mul(at, int_(8 * kind.size)))
    f.skip_unless(f.builder.icmp_signed("!=", f.load(entry), int_(0)))
    key, value = f.get(entry, 8, kind.key), f.get(entry, 8 * (1 + len(kind.key.parts)), kind.value)
    if way == "items":
        return _value(Tuple((key.type, value.type)), *key.parts, *value.parts)
    return value if way == "values" else key


def _slot(f: Emitter, base: Any, at: Any) -> Any:
    """The address of a place in a ring."""
    mask = f.builder.sub(f.load(base, 8), int_(1))
    return f.builder.add(f.load(base), f.builder.mul(f.builder.and_(at, mask), int_(8)))


def method(f: Emitter, held: Value, name: str, arguments: Sequence[Value]) -> Value:
    """A call of a container's method."""
    found = _METHODS.get((type(held.type), name))
    if found is None:
        known = ", ".join(each for kind, each in _METHODS if kind is type(held.type)) or "no methods"
        raise SubsetError(f"a value of type {held.type} has no method `{name}`; it has {known}")
    made = found(f, held, held.type, *arguments)
    return _value(NONE) if made is None else made


def _room(f: Emitter, held: Value, size: int) -> Any:
    """The address where the next item of a list goes; the list is one longer."""
    base = held.parts[0]
    with f.builder.if_then(f.builder.icmp_signed("==", f.load(base, 16), f.load(base, 8)), likely=False):
        f.native("grow", base, int_(size))
    count = f.load(base, 16)
    f.store(base, 16, f.builder.add(count, int_(1)))
    return f.builder.add(f.load(base), f.builder.mul(count, int_(size)))


def _list_append(f: Emitter, held: Value, kind: ListOf, value: Value) -> None:
    value = f.cast(value, kind.item)
    f.put(_room(f, held, 8 * kind.item.words), 0, value, kind.item, over=False)


def _list_clear(f: Emitter, held: Value, kind: ListOf) -> None:
    base, size = held.parts[0], 8 * kind.item.words
    for i, struct in kind.item.references:
        number = f.module.layout.structs[struct].number
        f.native("release_items", f.builder.add(f.load(base), int_(8 * i)), f.load(base, 16), int_(size), int_(number))
    f.store(base, 16, int_(0))


def _list_pop(f: Emitter, held: Value, kind: ListOf) -> Value:
    _full(f, held)
    last = f.builder.sub(_length(f, held), int_(1))
    f.store(held.parts[0], 16, last)
    where = _element(f, held, last)
    found = f.get(where, 0, kind.item)
    f.drop(where, 0, kind.item)
    return found


def _position(f: Emitter, kind: QueueOf) -> int:
    """Where in a struct its place in the queue stands; 0: it does not."""
    return 8 * f.module.layout.structs[kind.of.struct].places[kind.position] if kind.position else 0


def _queue_append(f: Emitter, held: Value, kind: QueueOf, value: Value) -> None:
    base, position, value = held.parts[0], _position(f, kind), f.cast(value, kind.of)
    f.guard(f.builder.icmp_signed("!=", value.parts[0], int_(0)), Check.NOTHING)
    if position:
        f.guard(f.builder.icmp_signed("==", f.load(value.parts[0], position), int_(0)), Check.ABSENT)
    span = f.builder.sub(f.load(base, 24), f.load(base, 16))
    with f.builder.if_then(f.builder.icmp_signed("==", span, f.load(base, 8)), likely=False):
        f.native("ring_grow", base, int_(position))
    tail = f.load(base, 24)
    f.put(_slot(f, base, tail), 0, value, kind.of, over=False)
    following = f.builder.add(tail, int_(1))
    if position:
        f.store(value.parts[0], position, following)
    f.store(base, 24, following)
    f.store(base, 32, f.builder.add(f.load(base, 32), int_(1)))


def _queue_first(f: Emitter, held: Value, kind: QueueOf) -> Value:
    _full(f, held)
    return _value(kind.of, f.load(_slot(f, held.parts[0], f.load(held.parts[0], 16))))


def _queue_popleft(f: Emitter, held: Value, kind: QueueOf) -> Value:
    found, base = _queue_first(f, held, kind), held.parts[0]
    _leave(f, held, kind, found, f.load(base, 16))
    return found


def _queue_remove(f: Emitter, held: Value, kind: QueueOf, value: Value) -> None:
    if not kind.position:
        raise SubsetError("only the first leaves a Queue; declare Rows")
    value = f.cast(value, kind.of)
    f.guard(f.builder.icmp_signed("!=", value.parts[0], int_(0)), Check.NOTHING)
    place = f.load(value.parts[0], _position(f, kind))
    f.guard(f.builder.icmp_signed("!=", place, int_(0)), Check.ABSENT)
    place = f.builder.sub(place, int_(1))
    f.guard(f.builder.icmp_signed("==", f.load(_slot(f, held.parts[0], place)), value.parts[0]), Check.ABSENT)
    _leave(f, held, kind, value, place)


def _leave(f: Emitter, held: Value, kind: QueueOf, value: Value, place: Any) -> None:
    """A struct leaves its place in a queue."""
    base = held.parts[0]
    if kind.position:
        f.store(value.parts[0], _position(f, kind), int_(0))
        f.native("ring_remove", base, place)
    else:
        f.store(base, 16, f.builder.add(place, int_(1)))
        f.store(base, 32, f.builder.sub(f.load(base, 32), int_(1)))
    f.release(value.parts[0], kind.of.struct)


def _map_get(f: Emitter, held: Value, kind: MapOf, key: Value) -> Value:
    entry = _found(f, held, key)
    absent = f.builder.icmp_signed("==", entry, int_(0))
    begin = 8 * (1 + len(kind.key.parts))
    place = f.builder.select(
        absent, f.function.args[0], f.builder.add(entry, int_(begin))
    )  # any address that can be read
    found = f.get(place, 0, kind.value)
    if isinstance(found.type, Reference) or found.type is CODE:
        return _value(found.type, f.builder.select(absent, int_(found.type.zero[0]), found.parts[0]))
    there = f.builder.not_(absent)
    if isinstance(found.type, Optional):
        return _value(found.type, *found.parts[:-1], f.builder.and_(found.parts[-1], there))
    return _value(found.type.optional, *found.parts, there)


def _map_clear(f: Emitter, held: Value, kind: MapOf) -> None:
    base = held.parts[0]
    begin = 1 + len(kind.key.parts)
    for i, struct in kind.value.references:
        number = f.module.layout.structs[struct].number
        arguments = [int_(8 * kind.size), int_(8 * (begin + i)), int_(number)]
        f.native("release_entries", f.load(base), f.load(base, 16), *arguments)
    for at in (0, 32):
        f.builder.call(f.module.external["free"], [f.load(base, at)])
    for word in range(kind.words):
        f.store(base, 8 * word, int_(0))


def _heap_push(f: Emitter, held: Value, kind: HeapOf, value: Value) -> None:
    size, value = 8 * kind.of.words, f.cast(value, kind.of)
    f.put(_room(f, held, size), 0, value, kind.of, over=False)
    f.native("heap_up", held.parts[0], int_(size), int_(8 * kind.ranks))


def _heap_pop(f: Emitter, held: Value, kind: HeapOf) -> Value:
    _full(f, held)
    found = f.get(f.load(held.parts[0]), 0, kind.of)
    f.native("heap_down", held.parts[0], int_(8 * kind.of.words), int_(8 * kind.ranks))
    for i, struct in kind.of.references:
        f.release(found.parts[i], struct)
    return found


def _sorted_number(f: Emitter, kind: SortedOf, value: Value) -> Any:
    return (_order(f, value) if kind.of is FLOAT else f.cast(f.number(value), INT)).parts[0]


def _sorted_add(f: Emitter, held: Value, kind: SortedOf, value: Value) -> None:
    f.native("sorted_add", held.parts[0], _sorted_number(f, kind, value))


def _sorted_discard(f: Emitter, held: Value, kind: SortedOf, value: Value) -> None:
    f.native("sorted_discard", held.parts[0], _sorted_number(f, kind, value))


def _table_append(f: Emitter, held: Value, kind: TableOf, value: Value) -> None:
    base, parts = held.parts[0], f.cast(value, kind.of).parts
    with f.builder.if_then(f.builder.icmp_signed("==", f.load(base), f.load(base, 8)), likely=False):
        f.native("table_grow", base, int_(len(parts)))
    count = f.load(base)
    for i, part in enumerate(parts):
        byte = part.type == I1
        where = f.builder.add(f.load(base, 16 + 8 * i), f.builder.mul(count, int_(1 if byte else 8)))
        f.store(where, 0, f.builder.zext(part, I8) if byte else part)
    f.store(base, 0, f.builder.add(count, int_(1)))


_METHODS: Mapping[tuple[type[Type], str], Any] = {
    (ListOf, "append"): _list_append,
    (ListOf, "clear"): _list_clear,
    (ListOf, "pop"): _list_pop,
    (QueueOf, "append"): _queue_append,
    (QueueOf, "first"): _queue_first,
    (QueueOf, "popleft"): _queue_popleft,
    (QueueOf, "remove"): _queue_remove,
    (MapOf, "get"): _map_get,
    (MapOf, "clear"): _map_clear,
    (HeapOf, "push"): _heap_push,
    (HeapOf, "pop"): _heap_pop,
    (SortedOf, "add"): _sorted_add,
    (SortedOf, "discard"): _sorted_discard,
    (TableOf, "append"): _table_append,
}
