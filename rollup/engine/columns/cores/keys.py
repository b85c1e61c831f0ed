"""Keys as codes: each value its number by first appearance, batch after batch; and values as numbers of their order."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.evaluate import plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.columns.numbering import codes_of

_PAIRS = """
def core(pairs, table, numbers, known, codes, fresh):
    found, mask = 0, len(table) - 1
    for i in range(len(pairs)):
        pair = pairs[i]
        place = (pair ^ (pair >> 29)) * 0x2545F4914F6CDD1D
        place = (place ^ (place >> 32)) & mask
        while numbers[place] >= 0 and table[place] != pair:
            place = (place + 1) & mask
        if numbers[place] < 0:
            table[place], numbers[place], fresh[found] = pair, known + found, i
            found += 1
        codes[i] = numbers[place]
    return found
"""
_FEWEST = 1024


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
        self._rows = RowCodes()

    def codes(self, known: pa.Array, column: pa.Array) -> tuple[Ints, pa.Array]:
        """The code of each value, and what is known then. Null is a value."""
        if pa.types.is_struct(column.type):
            return self._codes_of_rows(known, column)
        places, values = _encoded(column)
        table = self._of(known)
        numbers: list[Any] = [table.get(value) for value in values]
        if None in numbers:
            fresh = [value for value, number in zip(values, numbers, strict=True) if number is None]
            for value in fresh:
                table[value] = len(table)
            known = pa.concat_arrays([known, _values(fresh, known.type)])
            self._known = known
            numbers = [table[value] for value in values]
        return np.array(numbers, np.int64)[places], known

    def _codes_of_rows(self, known: pa.Array, column: pa.StructArray) -> tuple[Ints, pa.Array]:
        """The same of several columns."""
        if self._known is None or not _same(self._known, known):
            self._rows = RowCodes()
            self._rows.codes(known)
        codes, fresh = self._rows.codes(column)
        if len(fresh):
            known = pa.concat_arrays([known, _unsigned(column.take(pa.array(fresh)))])
        self._known = known
        return codes, known

    def found(self, known: pa.Array, column: pa.Array) -> Ints:
        """The code of each value, -1 for one that is not known."""
        places, values = _encoded(column)
        table = self._of(known)
        return np.array([table.get(value, -1) for value in values], np.int64)[places]

    def _of(self, known: pa.Array) -> dict[Any, int]:
        if self._known is None or not _same(self._known, known):  # another state than that of the last step
            self._table = {value: code for code, value in enumerate(_told(known).to_pylist())}
            self._known = known
        return self._table


class RowCodes:
    """Numbers the rows of several columns by first appearance: a value is a number of its column, and two numbers are one.

    >>> rows = RowCodes()
    >>> [part.tolist() for part in rows.codes(pa.array([{"a": 1, "b": "x"}, {"a": 2, "b": "x"}, {"a": 1, "b": "x"}]))]
    [[0, 1, 0], [0, 1]]
    """

    def __init__(self) -> None:
        self._columns: list[tuple[KeyCodes, pa.Array]] = []
        self._pairs: list[PairCodes] = []

    def codes(self, rows: pa.StructArray) -> tuple[Ints, Ints]:
        """The code of each row, and the places of those that are new."""
        parts = rows.flatten()
        if not self._columns:
            self._columns = [(KeyCodes(), pa.array([], part.type)) for part in parts]
            self._pairs = [PairCodes() for _ in parts[1:]]
        codes, fresh = self._column(0, parts[0]), np.empty(0, np.int64)
        for place, (part, pairs) in enumerate(zip(parts[1:], self._pairs, strict=True), 1):
            numbers = _narrow(part) if part.type in _NARROW else self._column(place, part)
            codes, fresh = pairs.codes(codes << 33 | numbers)
        return codes, fresh

    def _column(self, place: int, part: pa.Array) -> Ints:
        table, known = self._columns[place]
        codes, known = table.codes(known, part)
        self._columns[place] = table, known
        return codes


_NARROW = (pa.int32(), pa.int16(), pa.int8(), pa.bool_())


def _narrow(column: pa.Array) -> Ints:
    """Numbers of at most 32 bits as numbers of 33 that are not negative; null is 0."""
    numbers = column.cast(pa.int64())
    found = (pc.fill_null(numbers, 0) if numbers.null_count else numbers).to_numpy() + (1 << 31) + 1
    if numbers.null_count:
        found[numbers.is_null().to_numpy(zero_copy_only=False)] = 0
    return found


class PairCodes:
    """Numbers whole numbers by first appearance: a table of as many places as a power of two, at most half of them taken."""

    def __init__(self) -> None:
        self._table, self._numbers = np.zeros(_FEWEST, np.int64), np.full(_FEWEST, -1, np.int64)
        self._known = 0

    def codes(self, pairs: Ints) -> tuple[Ints, Ints]:
        """The code of each, and the places of those that are new."""
        self._make_room(self._known + len(pairs))
        codes, fresh = np.empty(len(pairs), np.int64), np.empty(len(pairs), np.int64)
        found = loop(_PAIRS)(pairs, self._table, self._numbers, self._known, codes, fresh)
        self._known += found
        return codes, fresh[:found]

    def _make_room(self, most: int) -> None:
        if 2 * most <= len(self._table):
            return
        taken = np.flatnonzero(self._numbers >= 0)
        held = self._table[taken[np.argsort(self._numbers[taken])]]
        room = 1 << (4 * most - 1).bit_length()
        self._table, self._numbers, self._known = np.zeros(room, np.int64), np.full(room, -1, np.int64), 0
        if len(held):
            self.codes(held)


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
    if pa.types.is_dictionary(column.type) and not pa.types.is_floating(column.type.value_type):
        column = _compact(column)
    else:
        column = _told(plain(column)).dictionary_encode(null_encoding="encode")
    return column.indices.to_numpy(), column.dictionary.to_pylist()


def _unsigned(rows: pa.StructArray) -> pa.StructArray:
    """Rows whose zeros have no sign."""
    parts = [pc.add(each, 0.0) if pa.types.is_floating(each.type) else each for each in rows.flatten()]
    return pa.StructArray.from_arrays(parts, [each.name for each in rows.type])


def _told(values: pa.Array) -> pa.Array:
    """What values are told apart by: of doubles their bits, by which also what is no number is one value."""
    return bits_of(values, True) if pa.types.is_floating(values.type) else values


def _values(told: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """The values that are so told apart."""
    return pa.array(told, pa.int64()).view(kind) if pa.types.is_floating(kind) else pa.array(told, kind)


def _compact(column: pa.Array) -> pa.Array:
    """A dictionary that holds only what the rows use, each once, in order of first appearance."""
    if column.null_count or len(pc.unique(column.dictionary)) != len(column.dictionary):
        return column.dictionary_decode().dictionary_encode(null_encoding="encode")
    inner = column.indices.dictionary_encode()
    return pa.DictionaryArray.from_arrays(inner.indices, column.dictionary.take(inner.dictionary))


def matching(pairs: Iterable[tuple[pa.Array, pa.Array]]) -> tuple[Ints, Ints, int]:
    """Numbers for the rows of two sides that are equal where all their keys are, and the number that all are below.

    `pairs` has the values of each key, for the rows of one side and for those of the other. Null equals nothing and is
    -1, and so is what is no number. Both zeros are equal.

    >>> numbers, texts = (pa.array([1, 1, None]), pa.array([1, None])), (pa.array(["x", "y", "x"]), pa.array(["y", "y"]))
    >>> one, other, below = matching([numbers, texts])
    >>> one.tolist(), other.tolist(), below
    ([2, 3, -1], [3, -1], 4)
    """
    codes, below, rows = np.empty(0, np.int64), 0, 0
    for place, (one, other) in enumerate(pairs):
        if pa.types.is_floating(one.type):
            one, other = bits_of(one, False), bits_of(other, False)
        kind = one.type if one.type == other.type else pa.int64()
        more, values = codes_of(pa.concat_arrays([one.cast(kind), other.cast(kind)]))
        if place == 0:
            codes, below, rows = more, values, len(one)
        else:
            unknown = (codes < 0) | (more < 0)
            found, codes = np.unique(codes * values + more, return_inverse=True)
            codes[unknown], below = -1, len(found)
    return codes[:rows], codes[rows:], below


def bits_of(doubles: pa.Array, itself: bool) -> pa.Array:
    """Whole numbers that are equal where doubles are; what is no number has one if it equals `itself`."""
    missing = doubles.is_null().to_numpy(zero_copy_only=False)
    values = (pc.fill_null(doubles, 0.0) if doubles.null_count else doubles).to_numpy()
    return pa.array(equal_bits(values), mask=missing if itself else missing | np.isnan(values))


def equal_bits(doubles: np.ndarray) -> Ints:
    """Whole numbers that are equal where doubles are: both zeros are one value, and so is what is no number."""
    return np.where(np.isnan(doubles), np.nan, doubles + 0.0).view(np.int64)


def whole(column: pa.ChunkedArray) -> pa.Array:
    """A column of a state in one piece; not copied where it is one, so that its keys are known again."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
