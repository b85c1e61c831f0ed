"""Types of the subset, and the layout of structs in memory.

A value is a few machine values ("parts"): whole numbers and doubles of 64 bits, and truth values. None is a part of its
own, but for codes (-1) and references (0). A container is known by the address of its words in the struct that holds it.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

Part = Literal["int", "float", "bool"]
"""A machine value: 64 bits as a whole number, 64 bits as a double, one bit."""


class SubsetError(Exception):
    """A text that is not in the subset. Its message begins with the place, a file and a line, where that is known."""

    def __init__(self, message: str, place: str = "") -> None:
        super().__init__(f"{place}: {message}" if place else message)
        self.place = place


class Type:
    """A type of the subset. `parts` are its machine values, `words` the words of eight bytes that it takes in memory."""

    @property
    def parts(self) -> tuple[Part, ...]:
        """The machine values of one value."""
        return ("int",)

    @property
    def words(self) -> int:
        """How many words a field of this type takes in a struct."""
        return len(self.parts)

    @property
    def references(self) -> Iterator[tuple[int, str]]:
        """The counted references of a value: the number of the part, and the struct."""
        return iter(())

    @property
    def optional(self) -> Type:
        """This type, or None."""
        return Optional(self)

    @property
    def zero(self) -> tuple[int, ...]:
        """The words of the first value of a field."""
        return (0,) * self.words


@dataclass(frozen=True)
class Scalar(Type):
    """A number, a truth value, a code of a text, or None alone."""

    name: str

    @property
    def parts(self) -> tuple[Part, ...]:
        return {"float": ("float",), "bool": ("bool",), "none": ()}.get(self.name, ("int",))  # type: ignore[return-value]

    @property
    def optional(self) -> Type:
        return self if self.name in ("code", "none") else Optional(self)

    @property
    def zero(self) -> tuple[int, ...]:
        return (-1,) if self.name == "code" else (0,) * self.words

    def __str__(self) -> str:
        return self.name


INT, FLOAT, BOOL, CODE, NONE = (Scalar(name) for name in ("int", "float", "bool", "code", "none"))


@dataclass(frozen=True)
class Optional(Type):
    """A value or None, which is said by a truth value behind the parts of the value."""

    of: Type

    @property
    def parts(self) -> tuple[Part, ...]:
        return (*self.of.parts, "bool")

    @property
    def references(self) -> Iterator[tuple[int, str]]:
        return self.of.references

    @property
    def optional(self) -> Type:
        return self

    @property
    def zero(self) -> tuple[int, ...]:
        return (*self.of.zero, 0)

    def __str__(self) -> str:
        return f"{self.of} | None"


@dataclass(frozen=True)
class Tuple(Type):
    """Several values as one."""

    items: tuple[Type, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return tuple(part for item in self.items for part in item.parts)

    @property
    def references(self) -> Iterator[tuple[int, str]]:
        begin = 0
        for item in self.items:
            yield from ((begin + at, struct) for at, struct in item.references)
            begin += len(item.parts)

    @property
    def zero(self) -> tuple[int, ...]:
        return tuple(word for item in self.items for word in item.zero)

    def item(self, index: int) -> tuple[int, Type]:
        """An item's first part and its type."""
        return sum(len(each.parts) for each in self.items[:index]), self.items[index]

    def __str__(self) -> str:
        return f"tuple[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True)
class Reference(Type):
    """A reference to a struct, or None. `weak`: the struct does not live because of it, which a cycle needs."""

    struct: str
    weak: bool = False

    @property
    def references(self) -> Iterator[tuple[int, str]]:
        return iter(() if self.weak else ((0, self.struct),))

    @property
    def optional(self) -> Type:
        return self

    def __str__(self) -> str:
        return f"Weak[{self.struct}]" if self.weak else self.struct


@dataclass(frozen=True)
class RecordOf(Type):
    """A row of a `Columns` field: the address of the field, and the number of the row."""

    items: tuple[Type, ...]

    @property
    def parts(self) -> tuple[Part, ...]:
        return ("int", "int")

    def __str__(self) -> str:
        return f"a row of Columns[{', '.join(map(str, self.items))}]"


@dataclass(frozen=True)
class Container(Type):
    """A container: it stands in a field of a struct, and is passed as the address of that field."""

    @property
    def words(self) -> int:
        return 3

    @property
    def item(self) -> Type:
        """What a loop over the container gives."""
        raise NotImplementedError

    @property
    def count(self) -> int:
        """The word that holds the number of items."""
        return 2


@dataclass(frozen=True)
class ListOf(Container):
    """Items in order: data, capacity, count."""

    of: Type

    @property
    def item(self) -> Type:
        return self.of

    def __str__(self) -> str:
        return f"List[{self.of}]"


@dataclass(frozen=True)
class QueueOf(Container):
    """References in order, in a ring: data, capacity, head, tail, count.

    The first leaves. Where `position` names a field of the struct (1 + its number in the ring), any may leave.
    """

    of: Reference
    position: str | None = None

    @property
    def words(self) -> int:
        return 5

    @property
    def item(self) -> Type:
        return self.of

    @property
    def count(self) -> int:
        return 4

    def __str__(self) -> str:
        return f"{'Queue' if self.position is None else 'Rows'}[{self.of}]"


@dataclass(frozen=True)
class MapOf(Container):
    """Values by key in the order in which keys came: entries, capacity, used, count, index, mask of the index.

    An entry is a word (1: it is there), the key and the value. A double is no key: `bits(x)` is.
    """

    key: Type
    value: Type

    @property
    def words(self) -> int:
        return 6

    @property
    def item(self) -> Type:
        return self.key

    @property
    def count(self) -> int:
        return 3

    @property
    def size(self) -> int:
        """The words of an entry."""
        return 1 + len(self.key.parts) + self.value.words

    def __str__(self) -> str:
        return f"Map[{self.key}, {self.value}]"


@dataclass(frozen=True)
class HeapOf(Container):
    """Tuples, of which the least can be had first: data, capacity, count. Whole numbers before all else tell them apart."""

    of: Tuple

    @property
    def item(self) -> Type:
        return self.of

    @property
    def ranks(self) -> int:
        """How many whole numbers decide the order."""
        found = [item is INT for item in self.of.items]
        return found.index(False) if False in found else len(found)

    def __str__(self) -> str:
        return f"Heap[{', '.join(map(str, self.of.items))}]"


@dataclass(frozen=True)
class SortedOf(Container):
    """Numbers in ascending order: data, capacity, count. Doubles stand there as whole numbers of the same order."""

    of: Type

    @property
    def item(self) -> Type:
        return self.of

    def __str__(self) -> str:
        return f"Sorted[{self.of}]"


@dataclass(frozen=True)
class TableOf(Container):
    """Output, column by column: count, capacity, and an address for each part. It is taken between two calls."""

    of: Tuple

    @property
    def words(self) -> int:
        return 2 + len(self.of.parts)

    @property
    def count(self) -> int:
        return 0

    def __str__(self) -> str:
        return f"Table[{', '.join(map(str, self.of.items))}]"


@dataclass(frozen=True)
class ColumnsOf(Container):
    """Input, column by column: count, and for each column the address of its values and of a byte each that says what is there."""

    of: tuple[Type, ...]

    @property
    def words(self) -> int:
        return 1 + 2 * len(self.of)

    @property
    def item(self) -> Type:
        return RecordOf(self.of)

    @property
    def count(self) -> int:
        return 0

    def __str__(self) -> str:
        return f"Columns[{', '.join(map(str, self.of))}]"


_SCALARS: Mapping[str, Type] = {str(each): each for each in (INT, FLOAT, BOOL, CODE)} | {"None": NONE}


_PARSING = threading.Lock()
"""CPython 3.11 counts the depth of the tree that it builds once for all threads: two at a time end in a SystemError."""


def parsed(text: str, mode: str = "exec") -> Any:
    """A text of Python as a tree, from any thread."""
    with _PARSING:
        return ast.parse(text, mode=mode)


def type_of(text: str | ast.expr, names: Mapping[str, Type] | None = None) -> Type:
    """The type that an annotation says. Names that are no types of the subset are structs, or what `names` gives for them.

    >>> print(type_of("Map[tuple[int, code], float | None]"))
    Map[tuple[int, code], float | None]
    """
    node = parsed(text, "eval").body if isinstance(text, str) else text
    match node:
        case ast.Name(name):
            return (names or {}).get(name) or _SCALARS.get(name) or Reference(name)
        case ast.Constant(None):
            return NONE
        case ast.BinOp(left, ast.BitOr(), right):
            return joined(type_of(left, names), type_of(right, names))
        case ast.Subscript(ast.Name(name), inner):
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _generic(name, tuple(type_of(each, names) for each in items))
        case _:
            raise SubsetError(f"`{ast.unparse(node)}` is no type")


def _generic(name: str, items: tuple[Type, ...]) -> Type:
    first = items[0]
    if name in ("Heap", "Table") and isinstance(first, Tuple):
        items = first.items
    inside = [each for each in items if isinstance(each, Container)]
    if inside:
        raise SubsetError(f"{name}: a container holds no container ({inside[0]}); put it into a struct")
    match name:
        case "tuple":
            return Tuple(items)
        case "List":
            return ListOf(first)
        case "Queue" | "Rows" | "Weak" if isinstance(first, Reference) and len(items) == 1:
            if name == "Weak":
                return Reference(first.struct, weak=True)
            return QueueOf(first, None if name == "Queue" else "?")
        case "Map" if len(items) == 2:
            if "float" in first.parts:
                raise SubsetError(f"Map: {first} is no key; take bits(x) of a double")
            return MapOf(*items)
        case "Heap":
            if not HeapOf(Tuple(items)).ranks:
                raise SubsetError("Heap: a whole number comes first")
            return HeapOf(Tuple(items))
        case "Sorted" if first in (INT, FLOAT):
            return SortedOf(first)
        case "Table":
            return TableOf(Tuple(items))
        case "Columns":
            return ColumnsOf(items)
        case _:
            raise SubsetError(f"{name}[{', '.join(map(str, items))}] is no type")


def joined(a: Type, b: Type) -> Type:
    """The narrowest type that holds both. Raises SubsetError when none does."""
    if a == b:
        return a
    match a, b:
        case (Scalar("none"), other) | (other, Scalar("none")):
            return other.optional
        case (Optional(), _) | (_, Optional()):
            return joined(a.of if isinstance(a, Optional) else a, b.of if isinstance(b, Optional) else b).optional
        case (Scalar("int" | "float" | "bool"), Scalar("int" | "float" | "bool")):
            return FLOAT if FLOAT in (a, b) else INT
        case (Reference(one), Reference(other)) if one == other:
            return Reference(one)
        case (Tuple(one), Tuple(other)) if len(one) == len(other):
            return Tuple(tuple(map(joined, one, other)))
        case _:
            raise SubsetError(f"{a} and {b} are not of one type")


@dataclass
class Struct:
    """A struct: its fields by name. A `record` is never changed; its fields are `f0`, `f1`, …, read as `row[0]`, `row[1]`."""

    name: str
    fields: dict[str, Type]
    record: bool = False
    places: dict[str, int] = field(default_factory=dict[str, int])
    """The first word of each field."""
    size: int = 0
    number: int = 0

    def lay(self, begin: int) -> None:
        """Give each field its place; the words before `begin` are for the counts."""
        self.places, self.size = {}, begin
        for name, kind in self.fields.items():
            self.places[name], self.size = self.size, self.size + kind.words
        self.size = max(self.size, 2)

    @property
    def saved(self) -> dict[str, Type]:
        """The fields that are state: all but input, output and the places in containers."""
        return {
            name: kind
            for name, kind in self.fields.items()
            if not isinstance(kind, TableOf | ColumnsOf) and not name.startswith(POSITION)
        }


POSITION = "at_"
"""How the name of a field begins that holds the place of a struct in a container."""
DYING, CHUNKS, FAULT, WHERE, LIVE, POOLS = 0, 3, 4, 5, 6, 7
"""The words of the state before its fields: what may be freed (a list: 3 words), the chunks of memory, the code of a fault,
where it was, how many structs live, and for each struct its free ones."""


@dataclass
class Layout:
    """The structs of a program and their places in memory; `root` is the state."""

    structs: dict[str, Struct]
    root: str

    @staticmethod
    def of(declared: Sequence[Struct], root: str) -> Layout:
        """The layout of declared structs. A struct whose instances stand in a `Rows` field gets a field for its place there."""
        structs = {each.name: Struct(each.name, dict(each.fields), each.record) for each in declared}
        for struct in declared:
            for name, kind in struct.fields.items():
                _check(struct, name, kind, structs)
                if isinstance(kind, QueueOf) and kind.position is not None:
                    position = f"{POSITION}{struct.name}_{name}"
                    structs[kind.of.struct].fields[position] = INT
                    structs[struct.name].fields[name] = QueueOf(kind.of, position)
        for number, struct in enumerate(structs.values()):
            struct.number = number
            struct.lay(POOLS + len(structs) if struct.name == root else 1)
        return Layout(structs, root)

    @property
    def state(self) -> Struct:
        """The struct of the state."""
        return self.structs[self.root]

    def text(self) -> str:
        """The declarations as text: with that of the functions it says all that machine code depends on."""
        return "\n".join(
            f"{struct.name} {struct.record} {name}: {kind}"
            for struct in self.structs.values()
            for name, kind in struct.fields.items()
        )


def _check(struct: Struct, name: str, kind: Type, structs: Mapping[str, Struct]) -> None:
    """Raises SubsetError for a field that refers to a struct which is not there."""
    inner = [kind.key, kind.value] if isinstance(kind, MapOf) else [getattr(kind, "of", kind)]
    for each in inner:
        if isinstance(each, Reference) and each.struct not in structs:
            raise SubsetError(f"{struct.name}.{name}: no struct is called `{each.struct}`")
