"""Keys as codes: each value its number by first appearance, batch after batch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.groups import Ints


class KeyCodes:
    """Numbers the values of a column. What is known is an array of the state; a table of it is kept at hand. Of several
    columns, which come as a struct, each different row is a value.

    >>> codes, known = KeyCodes().codes(pa.array(["b"]), pa.array(["a", "b", None, "a"]))
    >>> codes.tolist(), known.to_pylist()
    ([1, 0, 2, 1], ['b', 'a', None])
    """

    def __init__(self) -> None:
        self._known: pa.Array | None = None
        self._table: dict[Any, int] = {}

    def codes(self, known: pa.Array, column: pa.Array) -> tuple[Ints, pa.Array]:
        """The code of each value, and what is known then. Null is a value."""
        places, values = _combined(column) if pa.types.is_struct(column.type) else _encoded(column)
        table = self._of(known)
        numbers: list[Any] = [table.get(value) for value in values]
        if None in numbers:
            fresh = [value for value, number in zip(values, numbers, strict=True) if number is None]
            for value in fresh:
                table[value] = len(table)
            known = pa.concat_arrays([known, _column(fresh, known.type)])
            self._known = known
            numbers = [table[value] for value in values]
        return np.array(numbers, np.int64)[places], known

    def found(self, known: pa.Array, column: pa.Array) -> Ints:
        """The code of each value, -1 for one that is not known."""
        places, values = _encoded(column)
        table = self._of(known)
        return np.array([table.get(value, -1) for value in values], np.int64)[places]

    def _of(self, known: pa.Array) -> dict[Any, int]:
        if self._known is None or not _same(self._known, known):  # another state than that of the last step
            self._table = {value: code for code, value in enumerate(_values(known))}
            self._known = known
        return self._table


def _same(one: pa.Array, other: pa.Array) -> bool:
    """Whether two arrays are one piece of memory; both are alive, so one address is one piece."""
    if one is other:
        return True
    if len(one) != len(other) or one.offset != other.offset or one.type != other.type:
        return False
    pairs = zip(one.buffers(), other.buffers(), strict=True)
    return all((a and a.address) == (b and b.address) for a, b in pairs)


def _encoded(column: pa.Array) -> tuple[Ints, list[Any]]:
    """For each row the place of its value among the different ones, which are in order of first appearance."""
    if pa.types.is_dictionary(column.type):
        column = _compact(column)
    else:
        column = column.dictionary_encode(null_encoding="encode")
    return column.indices.to_numpy(), column.dictionary.to_pylist()


def _combined(column: pa.StructArray) -> tuple[Ints, list[Any]]:
    """The same for the rows of several columns."""
    places, values = np.zeros(len(column), np.int64), list[Any]([()])
    for each in column.flatten():
        codes, own = _encoded(each)
        pairs = pa.array(places * len(own) + codes).dictionary_encode()
        places = pairs.indices.to_numpy().astype(np.int64)
        values = [(*values[pair // len(own)], own[pair % len(own)]) for pair in pairs.dictionary.to_pylist()]
    return places, values


def _column(values: list[Any], kind: pa.DataType) -> pa.Array:
    """Values of `_encoded` or `_combined` as an array."""
    if not pa.types.is_struct(kind):
        return pa.array(values, kind)
    parts = [pa.array([value[i] for value in values], field.type) for i, field in enumerate(kind)]
    return pa.StructArray.from_arrays(parts, fields=list(kind))


def _values(known: pa.Array) -> list[Any]:
    """What is known, as it is looked up."""
    if not pa.types.is_struct(known.type):
        return known.to_pylist()
    return list(zip(*(part.to_pylist() for part in known.flatten()), strict=True))


def _compact(column: pa.Array) -> pa.Array:
    """A dictionary that holds only what the rows use, each once, in order of first appearance."""
    if column.null_count or len(pc.unique(column.dictionary)) != len(column.dictionary):
        return column.dictionary_decode().dictionary_encode(null_encoding="encode")
    inner = column.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(inner.indices, column.dictionary.take(inner.dictionary))
