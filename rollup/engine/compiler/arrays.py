"""Values of the subset as Arrow arrays: made of Python's objects or of words of memory, and back.

References stand in the arrays as whole numbers: `id`s of objects, addresses of structs, or rows of tables (`state.py`).
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, islice
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollup.engine.compiler.containers import first_value
from rollup.engine.compiler.types import (
    BOOL,
    CODE,
    FLOAT,
    INT,
    NONE,
    Container,
    HeapOf,
    MapOf,
    Optional,
    QueueOf,
    Reference,
    SortedOf,
    Tuple,
    Type,
)

Ints = npt.NDArray[np.int64]
_PLAIN: Mapping[Type, pa.DataType] = {
    INT: pa.int64(),
    FLOAT: pa.float64(),
    BOOL: pa.bool_(),
    CODE: pa.string(),
    NONE: pa.null(),
}
_SIGN = np.int64(2**63 - 1)


def arrow_type(kind: Type) -> pa.DataType:
    """Arrow's type for a type of the subset. A map is a list of its entries, which are tuples."""
    match kind:
        case Optional(of):
            return arrow_type(of)
        case Reference():
            return pa.int64()
        case Tuple(items):
            return pa.struct([(f"i{i}", arrow_type(each)) for i, each in enumerate(items)])
        case Container():
            return pa.list_(arrow_type(_inner(kind)))
        case _:
            return _PLAIN[kind]


def _inner(kind: Container) -> Type:
    """What stands in a container: of a map, tuples of key and value."""
    return Tuple((kind.key, kind.value)) if isinstance(kind, MapOf) else kind.item


def _lists(counts: Sequence[int] | Ints, items: pa.Array) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(np.asarray(counts, np.int64))]).astype(np.int32)
    return pa.ListArray.from_arrays(pa.array(offsets), items)


def _struct(kind: Tuple, columns: Sequence[pa.Array], nothing: npt.NDArray[np.bool_] | None = None) -> pa.Array:
    mask = None if nothing is None else pa.array(nothing)
    return pa.StructArray.from_arrays(columns, fields=list(arrow_type(kind)), mask=mask)


def mapped(kind: Type, array: pa.Array, change: Callable[[str, pa.Array], pa.Array]) -> pa.Array:
    """An array with other references: `change` makes them of a struct's name and the references to it."""
    match kind:
        case Reference(struct):
            return change(struct, array)
        case Optional(of):
            return mapped(of, array, change)
        case Tuple(items):
            nothing = array.is_null().to_numpy(zero_copy_only=False) if array.null_count else None
            columns = zip(items, array.flatten(), strict=True)
            return _struct(kind, [mapped(each, column, change) for each, column in columns], nothing)
        case Container():
            return pa.ListArray.from_arrays(array.offsets, mapped(_inner(kind), array.flatten(), change))
        case _:
            return array


# objects of Python


def array_of(kind: Type, values: Sequence[Any], reference: Callable[[str, Any], int]) -> pa.Array:
    """Values of Python as an array; `reference` gives the number for an object."""
    match kind:
        case Reference(struct):
            return pa.array([None if each is None else reference(struct, each) for each in values], pa.int64())
        case Optional(Tuple(items) as inner):
            empty = (None,) * len(items)
            found = array_of(inner, [empty if each is None else each for each in values], reference)
            return _struct(inner, found.flatten(), np.array([each is None for each in values], np.bool_))
        case Optional(of):
            return array_of(of, values, reference)
        case Tuple(items):
            columns = list(zip(*values, strict=True)) or [()] * len(items)
            return _struct(kind, [array_of(e, column, reference) for e, column in zip(items, columns, strict=True)])
        case Container():
            contents = [_contents(kind, each) for each in values]
            items = array_of(_inner(kind), list(chain.from_iterable(contents)), reference)
            return _lists([len(each) for each in contents], items)
        case _:
            return pa.array(values, arrow_type(kind))


def _contents(kind: Container, container: Any) -> Any:
    """What is in a container. A heap is given in order: that it is one has no place in a state."""
    if isinstance(kind, HeapOf):
        return sorted(container, key=lambda item: item[: kind.ranks])
    return container.items() if isinstance(kind, MapOf) else container


def values_of(kind: Type, array: pa.Array, objects: Callable[[str], Sequence[Any]]) -> list[Any]:
    """An array as values of Python; `objects` gives the structs of a name, by number."""
    match kind:
        case Reference(struct):
            found = objects(struct)
            return [None if each is None else found[each] for each in array.to_pylist()]
        case Optional(Tuple() as inner):
            there = array.is_valid().to_pylist()
            return [v if each else None for v, each in zip(values_of(inner, array, objects), there, strict=True)]
        case Optional(of):
            return values_of(of, array, objects)
        case Tuple(items):
            columns = zip(items, array.flatten(), strict=True)
            return list(zip(*(values_of(each, column, objects) for each, column in columns), strict=True))
        case Container():
            items = iter(values_of(_inner(kind), array.flatten(), objects))
            return [_filled(kind, islice(items, count)) for count in _counts(array).tolist()]
        case _:
            return array.to_pylist()


def _filled(kind: Container, items: Iterator[Any]) -> Any:
    made = first_value(kind)()
    if isinstance(kind, QueueOf):
        for each in items:
            made.append(each)
    elif isinstance(kind, MapOf | SortedOf):
        made.update(items)
    else:
        made.extend(items)
    return made


def _counts(array: pa.Array) -> Ints:
    return np.diff(array.offsets.to_numpy()).astype(np.int64)


# words of memory

_MEMORY: Ints = np.ctypeslib.as_array((ctypes.c_int64 * (2**44)).from_address(8))
"""All memory as words: that at an address stands at `address // 8 - 1`. Only words that are known are looked at."""


def words(addresses: Ints) -> Ints:
    """The words at addresses."""
    return _MEMORY[addresses // 8 - 1]


def set_words(addresses: Ints, values: Ints | int) -> None:
    """Write words to addresses."""
    _MEMORY[addresses // 8 - 1] = values


def ranges(counts: Ints) -> Ints:
    """0, 1, … up to each count, one after the other.

    >>> ranges(np.array([2, 0, 3])).tolist()
    [0, 1, 0, 1, 2]
    """
    ends = np.cumsum(counts)
    return np.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64) - np.repeat(ends - counts, counts)


def in_order(bits: Ints) -> Ints:
    """The bits of doubles as whole numbers of the same order, and these as bits of doubles."""
    return bits ^ ((bits >> 63) & _SIGN)


def loaded(kind: Type, addresses: Ints, texts: Callable[[Ints], pa.Array]) -> pa.Array:
    """The values at addresses as an array. References are addresses; `texts` decodes codes."""
    match kind:
        case Optional(of):
            nothing = words(addresses + 8 * len(of.parts)) == 0
            found = loaded(of, addresses, texts)
            if not nothing.any():
                return found
            if isinstance(of, Tuple):
                return _struct(of, found.flatten(), nothing)
            return pa.array(found.to_numpy(zero_copy_only=False), found.type, mask=nothing)
        case Reference():
            found = words(addresses)
            return pa.array(found, mask=found == 0)
        case Tuple(items):
            begins = [8 * kind.item(i)[0] for i in range(len(items))]
            return _struct(kind, [loaded(e, addresses + begin, texts) for e, begin in zip(items, begins, strict=True)])
        case Container():
            counts, items = _items(kind, addresses)
            if isinstance(kind, SortedOf) and kind.of is FLOAT:
                return _lists(counts, pa.array(in_order(words(items)).view(np.float64)))
            return _lists(counts, loaded(_inner(kind), items, texts))
        case _:
            found = words(addresses)
            if kind is CODE:
                return texts(found)
            return pa.array(found.view(np.float64) if kind is FLOAT else found != 0 if kind is BOOL else found)


def _items(kind: Container, addresses: Ints) -> tuple[Ints, Ints]:
    """How many items there are in each of some containers, and the addresses of all, in order."""
    data = words(addresses)
    if isinstance(kind, QueueOf):
        head = words(addresses + 16)
        counts = words(addresses + 24) - head
        places = np.repeat(head, counts) + ranges(counts)
        found = np.repeat(data, counts) + 8 * (places & (np.repeat(words(addresses + 8), counts) - 1))
    else:
        counts = words(addresses + 16)
        found = np.repeat(data, counts) + 8 * size_of(kind) * ranges(counts)
    owners = np.repeat(np.arange(len(addresses)), counts)
    if isinstance(kind, QueueOf | MapOf):
        there = words(found) != 0
        found, owners = found[there] + (8 if isinstance(kind, MapOf) else 0), owners[there]
    if isinstance(kind, HeapOf):
        ranks = [words(found + 8 * i) for i in reversed(range(kind.ranks))]
        found = found[np.lexsort([*ranks, owners])]
    return np.bincount(owners, minlength=len(addresses)).astype(np.int64), found


def size_of(kind: Container) -> int:
    """The words of an item in the memory of a container."""
    return kind.size if isinstance(kind, MapOf) else kind.item.words
