"""The state of a program as Arrow tables, one for each struct: a snapshot, and the way from one mode into the other.

A column is a field; a reference is the number of a row in the table of its struct. Structs are numbered in the order in
which they are found from the state, field by field, so equal states make equal tables in both modes. Compiled state is
read and written as whole columns: no struct is looked at by itself.
"""

from __future__ import annotations

import ctypes
from collections import deque
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.compiler.arrays import (
    Ints,
    array_of,
    arrow_type,
    in_order,
    loaded,
    mapped,
    ranges,
    set_words,
    size_of,
    values_of,
    words,
)
from rollup.engine.compiler.compiled import Compiled
from rollup.engine.compiler.faults import Fault
from rollup.engine.compiler.freeing import FREED
from rollup.engine.compiler.interpreted import Interpreted
from rollup.engine.compiler.operations import HASH, HASH_FURTHER
from rollup.engine.compiler.types import (
    CHUNKS,
    CODE,
    FLOAT,
    LIVE,
    Container,
    Layout,
    MapOf,
    Optional,
    QueueOf,
    Reference,
    SortedOf,
    Tuple,
    Type,
)

Tables = dict[str, pa.Table]
"""A state: for each struct its instances."""
_NO_FIELD = ""
"""The name of the column in the table of a struct without fields, which says how many there are."""


class _Heap(Protocol):
    """Structs by their handles: what a reference is in one mode."""

    root: int

    def column(self, struct: str, field: str, kind: Type, handles: pa.Array) -> pa.Array:
        """A field of some structs; references in it are handles."""
        ...


class _Objects:
    """The structs of the interpreted mode; a handle is an `id`."""

    def __init__(self, mode: Interpreted) -> None:
        self._records = {each.name for each in mode.source.layout.structs.values() if each.record}
        self._objects: dict[int, Any] = {}
        self.root = self._handle(mode.source.root, mode.space["s"])

    def _handle(self, struct: str, value: Any) -> int:
        self._objects[id(value)] = value
        return id(value)

    def column(self, struct: str, field: str, kind: Type, handles: pa.Array) -> pa.Array:
        found = [self._objects[each] for each in handles.to_pylist()]
        record = int(field[1:]) if struct in self._records else None
        values = [getattr(each, field) if record is None else each[record] for each in found]
        return array_of(kind, values, self._handle)


class _Memory:
    """The structs of the compiled mode; a handle is an address."""

    def __init__(self, mode: Compiled) -> None:
        self._mode, self.root = mode, mode.address

    def column(self, struct: str, field: str, kind: Type, handles: pa.Array) -> pa.Array:
        addresses = handles.to_numpy()
        if self._mode.checked and (words(addresses) == FREED).any():
            raise Fault(f"{struct}: the state refers to a struct that was freed")
        return loaded(
            kind, addresses + 8 * self._mode.source.layout.structs[struct].places[field], self._mode.codes.decode
        )


def save(mode: Interpreted | Compiled) -> Tables:
    """The state of a program. In the checked build the counts of all structs are looked at. Raises Fault."""
    layout = mode.source.layout
    tables, handles = _found(layout, _Objects(mode) if isinstance(mode, Interpreted) else _Memory(mode))
    if isinstance(mode, Compiled) and mode.checked:
        _audit(mode, tables, handles)
    return tables


def _found(layout: Layout, heap: _Heap) -> tuple[Tables, dict[str, pa.Array]]:
    """All structs that the state leads to, and their handles."""
    handles = {name: pa.array([], pa.int64()) for name in layout.structs}
    handles[layout.root] = pa.array([heap.root])
    pending = deque([(layout.root, handles[layout.root])])
    chunks: dict[str, dict[str, list[pa.Array]]] = {name: {} for name in layout.structs}

    def note(struct: str, references: pa.Array) -> pa.Array:
        new = pc.unique(references.drop_null())
        if len(handles[struct]):
            new = new.filter(pc.invert(pc.is_in(new, handles[struct])))
        if len(new):
            handles[struct] = pa.concat_arrays([handles[struct], new])
            pending.append((struct, new))
        return references

    while pending:
        struct, some = pending.popleft()
        for name, kind in layout.structs[struct].saved.items():
            column = heap.column(struct, name, kind, some)
            chunks[struct].setdefault(name, []).append(column)
            mapped(kind, column, note)

    def number(struct: str, references: pa.Array) -> pa.Array:
        return pc.index_in(references, handles[struct], skip_nulls=True).cast(pa.int64())

    tables: Tables = {}
    for struct, fields in chunks.items():
        columns: dict[str, pa.Array] = {}
        for name, kind in layout.structs[struct].saved.items():
            found = pa.concat_arrays([pa.array([], arrow_type(kind)), *fields.get(name, [])])
            columns[name] = mapped(kind, found, number)
        tables[struct] = pa.table(columns or {_NO_FIELD: pa.nulls(len(handles[struct]))})
    return tables, handles


def _audit(mode: Compiled, tables: Tables, handles: Mapping[str, pa.Array]) -> None:
    """Each struct is counted as often as it is referred to, and none lives that nothing refers to. Raises Fault."""
    layout = mode.source.layout
    counts = {name: np.zeros(len(each), np.int64) for name, each in handles.items()}

    def count(struct: str, references: pa.Array) -> pa.Array:
        found = references.drop_null().to_numpy()
        counts[struct] += np.bincount(found, minlength=len(counts[struct]))
        return references

    for struct, table in tables.items():
        for name, kind in layout.structs[struct].saved.items():
            if not (isinstance(kind, Reference) and kind.weak):
                mapped(kind, table.column(name).combine_chunks(), count)
    for struct, expected in counts.items():
        if struct == layout.root:
            continue
        kept = words(handles[struct].to_numpy()) >> 1
        wrong = np.flatnonzero(kept != expected)
        if len(wrong):
            text = f"counted {kept[wrong[0]]} times and referred to {expected[wrong[0]]} times"
            raise Fault(f"{struct}: {len(wrong)} of {len(kept)} are counted wrongly; the first is {text}")
    reached = sum(len(each) for each in handles.values()) - 1
    if reached != mode.live:
        raise Fault(
            f"{mode.live} structs live, and the state leads to {reached}: a cycle of references needs a weak one"
        )


def restore(mode: Interpreted | Compiled, tables: Tables) -> None:
    """Go on from a state. The mode is a new one, of the same source."""
    if isinstance(mode, Interpreted):
        _Rebuilding(mode, tables).rebuild()
    else:
        _Writing(mode, tables).write()


class _Rebuilding:
    """Tables become objects of Python."""

    def __init__(self, mode: Interpreted, tables: Tables) -> None:
        self._mode, self._tables, self._layout = mode, tables, mode.source.layout
        self._known: dict[str, Sequence[Any]] = {}

    def rebuild(self) -> None:
        """All objects, and the fields of the state."""
        for name, struct in self._layout.structs.items():
            objects = self._objects(name)
            for field, kind in struct.saved.items() if not struct.record else ():
                for each, value in zip(objects, self._column(name, field, kind), strict=True):
                    setattr(each, field, value)

    def _column(self, struct: str, field: str, kind: Type) -> list[Any]:
        return values_of(kind, self._tables[struct].column(field).combine_chunks(), self._objects)

    def _objects(self, name: str) -> Sequence[Any]:
        """The objects of a struct. A record is made with its fields, any other first without."""
        if name not in self._known:
            struct, count = self._layout.structs[name], self._tables[name].num_rows
            if name == self._layout.root:
                self._known[name] = [self._mode.space["s"]]
            elif struct.record:
                self._known[name] = self._records(name, struct.saved, count)
            else:
                make = self._mode.space[name]
                self._known[name] = [make.__new__(make) for _ in range(count)]
        return self._known[name]

    def _records(self, name: str, fields: Mapping[str, Type], count: int) -> Sequence[Any]:
        width = 1 + max((int(each[1:]) for each in fields), default=0)
        columns = [
            self._column(name, f"f{i}", fields[f"f{i}"]) if f"f{i}" in fields else [None] * count for i in range(width)
        ]
        return list(zip(*columns, strict=True))


@cache
def _allocator() -> Any:
    library = ctypes.CDLL(None)
    library.malloc.restype, library.malloc.argtypes = ctypes.c_size_t, [ctypes.c_size_t]
    return library.malloc


class _Writing:
    """Tables become words of memory."""

    def __init__(self, mode: Compiled, tables: Tables) -> None:
        self._mode, self._tables, self._layout = mode, tables, mode.source.layout
        self._addresses = {name: self._placed(name) for name in self._layout.structs}
        self._counts = {name: np.zeros(len(each), np.int64) for name, each in self._addresses.items()}

    def _placed(self, name: str) -> Ints:
        """Memory for all instances of a struct, as one chunk."""
        count, size = self._tables[name].num_rows, 8 * self._layout.structs[name].size
        if name == self._layout.root:
            return np.array([self._mode.address])
        if not count:
            return np.empty(0, np.int64)
        chunk = _allocator()(count * size + 8)
        found = chunk + 8 + size * np.arange(-1, count, dtype=np.int64)
        set_words(np.array([chunk]), self._mode.memory[CHUNKS])
        self._mode.memory[CHUNKS] = chunk
        self._mode.memory[LIVE] += count
        for word in range(self._layout.structs[name].size):
            set_words(found[1:] + 8 * word, 0)
        return found[1:]

    def write(self) -> None:
        """All structs with their fields, and how often each is referred to."""
        for name, struct in self._layout.structs.items():
            for field, kind in struct.saved.items():
                column = self._tables[name].column(field).combine_chunks()
                self._store(kind, self._addresses[name] + 8 * struct.places[field], column)
        for name, counts in self._counts.items():
            if name != self._layout.root:
                set_words(self._addresses[name], 2 * counts)

    def _store(self, kind: Type, addresses: Ints, array: pa.Array) -> None:
        """An array to addresses."""
        match kind:
            case Optional(of):
                there = array.is_valid().to_numpy(zero_copy_only=False)
                set_words(addresses + 8 * len(of.parts), there.astype(np.int64))
                self._store(of, addresses, array)
            case Reference(struct, weak):
                rows = array.fill_null(-1).to_numpy()
                set_words(addresses, np.append(self._addresses[struct], 0)[rows])
                if not weak:
                    found = rows[rows >= 0]
                    self._counts[struct] += np.bincount(found, minlength=len(self._counts[struct]))
            case Tuple(items):
                for i, (item, column) in enumerate(zip(items, array.flatten(), strict=True)):
                    self._store(item, addresses + 8 * kind.item(i)[0], column)
            case Container():
                self._store_contents(kind, addresses, array)
            case _:
                set_words(addresses, self._scalars(kind, array))

    def _scalars(self, kind: Type, array: pa.Array) -> Ints:
        if kind is CODE:
            return self._mode.codes.encode(array)
        if array.null_count:
            array = array.fill_null(0 if array.type != pa.bool_() else False)
        plain = array.to_numpy(zero_copy_only=False)
        return plain.view(np.int64) if kind is FLOAT else plain.astype(np.int64)

    def _store_contents(self, kind: Container, addresses: Ints, array: pa.Array) -> None:
        """The contents of containers, each in memory of its own."""
        counts = np.diff(array.offsets.to_numpy()).astype(np.int64)
        capacities = np.where(counts > 0, 1 << np.ceil(np.log2(np.maximum(counts, 16))).astype(np.int64), 0)
        data = self._allocated(8 * size_of(kind) * capacities)
        items, flat = np.repeat(data, counts) + 8 * size_of(kind) * ranges(counts), array.flatten()
        set_words(addresses, data)
        set_words(addresses + 8, capacities)
        set_words(addresses + 8 * kind.count, counts)
        match kind:
            case QueueOf():
                set_words(addresses + 16, 0)
                set_words(addresses + 24, counts)
                self._store(kind.of, items, flat)
                if kind.position is not None:
                    place = 8 * self._layout.structs[kind.of.struct].places[kind.position]
                    set_words(words(items) + place, ranges(counts) + 1)
            case MapOf():
                set_words(addresses + 16, counts)
                set_words(items, 1)
                self._store(Tuple((kind.key, kind.value)), items + 8, flat)
                self._store_index(kind, addresses, items, np.repeat(np.arange(len(counts)), counts), capacities)
            case SortedOf() if kind.of is FLOAT:
                set_words(items, in_order(flat.to_numpy().view(np.int64)))
            case _:
                self._store(kind.item, items, flat)

    def _store_index(self, kind: MapOf, addresses: Ints, items: Ints, owners: Ints, capacities: Ints) -> None:
        """The index of maps. All entries look for a free place at once; those that find none go on to the next place."""
        index = self._allocated(16 * capacities)
        cells = np.repeat(index, 2 * capacities) + 8 * ranges(2 * capacities)
        set_words(cells, 0)
        set_words(addresses + 32, index)
        set_words(addresses + 40, 2 * capacities - 1)
        masks, bases = (2 * capacities - 1)[owners], index[owners]
        numbers = ranges(np.bincount(owners, minlength=len(capacities))) + 1
        places = _hashes([words(items + 8 * (1 + i)) for i in range(len(kind.key.parts))]) & masks
        todo = np.arange(len(items))
        while len(todo):
            where = bases[todo] + 8 * places[todo]
            _, first = np.unique(where, return_index=True)
            first = first[words(where[first]) == 0]
            set_words(where[first], numbers[todo[first]])
            todo = np.delete(todo, first)
            places[todo] = (places[todo] + 1) & masks[todo]

    @staticmethod
    def _allocated(sizes: Ints) -> Ints:
        """Memory of some sizes; none for a size of 0."""
        malloc = _allocator()
        return np.array([malloc(size) if size else 0 for size in sizes.tolist()], np.int64)


def _hashes(keys: Sequence[Ints]) -> Ints:
    """The hashes of keys, given word by word, as compiled code makes them."""
    found = np.zeros(len(keys[0]), np.uint64)
    for i, each in enumerate(keys):
        before = found * np.uint64(HASH_FURTHER % 2**64) if i else found
        found = before ^ each.view(np.uint64) * np.uint64(HASH % 2**64)
    return (found ^ (found >> np.uint64(32))).view(np.int64)


__all__ = ["Tables", "arrow_type", "restore", "save"]
