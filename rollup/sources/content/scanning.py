"""Plain JSON objects into columns by one compiled loop, which passes over every record that is not plain.

Plain is what programs write: members by their names, without escapes, numbers of at most 18 digits without an exponent,
and no structures in members that are no attributes. What the loop reads is proven to be JSON, to have each attribute once
at most, and as it is written by its type. Other records are for `documents.py`, which reads everything; both give the same
values where both read, which a test holds on hostile documents. Loading the loop takes half a second, so it is loaded when
much has been read.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollup.engine.columns.loops import LOADS, loop
from rollup.plan.app import StreamDef
from rollup.plan.types import Type
from rollup.sources.content.records import is_member

ENOUGH = 64 << 20
"""Bytes of records of a process from which loading the loop is worth its while."""
_KINDS = {Type.LONG: 0, Type.INT: 0, Type.DOUBLE: 1, Type.STRING: 2, Type.BOOL: 3}
_MOST_FIELDS = 62
_MEMBERS = 128
"""Members of a record of which the loop knows what stood before them in the one before."""
_GREATEST = {Type.INT: 2**31 - 1, Type.LONG: 2**63 - 1}
_POWERS = 10.0 ** np.arange(23)
_PARTS = """
inlined = njit(cache=True, nogil=True, error_model="numpy", inline="always")  # a call hands over every array in seven words


@compiled
def blank(data, at, end):
    while at < end and (byte_at(data, at) == 32 or byte_at(data, at) == 10 or byte_at(data, at) == 13 or byte_at(data, at) == 9):
        at += 1
    return at


@compiled
def text_end(data, at, end):
    # Where the quote that ends a text stands; -1 where it has an escape, a control character, or no end.
    while at < end:
        byte = byte_at(data, at)
        if byte == 34:
            return at
        if byte == 92 or byte < 32:
            return -1
        at += 1
    return -1


@compiled
def word_end(data, at, end):
    # Behind true, false or null; -1 where there is none of them.
    if at + 4 > end:
        return -1
    first, second, third, fourth = byte_at(data, at), byte_at(data, at + 1), byte_at(data, at + 2), byte_at(data, at + 3)
    if first == 116 and second == 114 and third == 117 and fourth == 101:
        return at + 4
    if first == 110 and second == 117 and third == 108 and fourth == 108:
        return at + 4
    if first == 102 and second == 97 and third == 108 and fourth == 115 and at + 4 < end and byte_at(data, at + 4) == 101:
        return at + 5
    return -1


@inlined
def number(data, at, end):
    # Where a number ends, its digits as one number, and how many of them stand behind the point; -1 where it is not plain.
    start, value, scale = at, 0, 0
    if at + 8 <= end:  # eight digits at once, as times have
        eight = eight_at(data, at) ^ np.uint64(0x3030303030303030)
        if (eight | eight + np.uint64(0x7676767676767676)) & np.uint64(0x8080808080808080) == 0:
            eight = eight * np.uint64(2561) >> np.uint64(8) & np.uint64(0x00FF00FF00FF00FF)
            eight = eight * np.uint64(6553601) >> np.uint64(16) & np.uint64(0x0000FFFF0000FFFF)
            value = np.int64(eight * np.uint64(42949672960001) >> np.uint64(32))
            at += 8
    while at < end and 48 <= byte_at(data, at) <= 57:
        value = value * 10 + (byte_at(data, at) - 48)
        at += 1
    digits = at - start
    if digits > 0 and digits <= 18 and (digits == 1 or byte_at(data, start) != 48):
        if at < end and byte_at(data, at) == 46:
            at += 1
            point = at
            while at < end and 48 <= byte_at(data, at) <= 57:
                value = value * 10 + (byte_at(data, at) - 48)
                at += 1
            scale = at - point
            if scale == 0 or digits + scale > 18:
                at = -1
    else:
        at = -1
    return at, value, scale


@compiled
def field_of(data, at, end, guess, names, ends):
    # The attribute whose name stands in quotes here, the one that is guessed first; -1 where it is none.
    fields = len(ends)
    for turn in range(fields + 1):
        f = guess if turn == 0 else turn - 1
        begin = ends[f - 1] if f > 0 else 0
        size = ends[f] - begin
        if at + size < end and byte_at(data, at + size) == 34:
            i = 0
            while i < size and names[begin + i] == byte_at(data, at + i):
                i += 1
            if i == size:
                return f
    return -1


@compiled
def skipped(data, at, end):
    # Behind a value that nobody asked for; -1 where it is no plain one.
    byte = byte_at(data, at)
    if byte == 34:
        at = text_end(data, at + 1, end)
        return at + 1 if at >= 0 else -1
    if byte == 45:
        return number(data, at + 1, end)[0]
    return number(data, at, end)[0] if 48 <= byte <= 57 else word_end(data, at, end)


@compiled
def as_before(data, at, end, lead, size):
    # Whether the bytes here are those that stand at `lead`.
    if at + size > end:
        return False
    if size >= 8:
        i = 0
        while i < size - 8:
            if eight_at(data, at + i) != eight_at(data, lead + i):
                return False
            i += 8
        return eight_at(data, at + size - 8) == eight_at(data, lead + size - 8)
    for i in range(size):
        if byte_at(data, at + i) != byte_at(data, lead + i):
            return False
    return True


@compiled
def member(data, at, end, first, guess, names, ends):
    # From what stands before a member to its value: where that begins, and the attribute that it is, or -1; -1 where there
    # is no member, and -2 where the object ends instead.
    at = blank(data, at, end)
    if at >= end or byte_at(data, at) != (123 if first else 44):
        return -1, -1
    at = blank(data, at + 1, end)
    if at >= end:
        return -1, -1
    if byte_at(data, at) != 34:
        return -2 if first and byte_at(data, at) == 125 else -1, at
    at += 1
    f = field_of(data, at, end, guess, names, ends)
    at = text_end(data, at, end) + 1
    if at == 0:
        return -1, -1
    at = blank(data, at, end)
    if at >= end or byte_at(data, at) != 58:
        return -1, -1
    at = blank(data, at + 1, end)
    return (at if at < end else -1), f


@inlined
def document(data, at, end, row, names, ends, kinds, greatest, leads, sizes, members, wholes, floats, places, texts, offsets, powers):
    # Whether one record is plain; then its values are in row `row` of the columns, and the bits of attributes that it
    # lacks, or that are null, in what is returned. -1 where it is not. What stands before a value is mostly what stood
    # there in the record before, at leads[m] with sizes[m] bytes, and then says which attribute comes, members[m].
    fields, most = len(kinds), len(leads)
    seen, there, m = 0, 0, 0
    while True:
        slot = min(m, most - 1)
        if sizes[slot] > 0 and as_before(data, at, end, leads[slot], sizes[slot]):
            f = members[slot]
            at += sizes[slot]
        else:
            start = at
            at, f = member(data, at, end, m == 0, min(m, fields - 1), names, ends)
            if at == -2:
                at = f
                break
            if at < 0:
                return -1
            if m < most:
                leads[m], sizes[m], members[m] = start, at - start, f
        m += 1
        if at >= end:
            return -1
        byte = byte_at(data, at)
        if f < 0:
            at = skipped(data, at, end)
            if at < 0:
                return -1
        else:
            if seen >> f & 1:
                return -1
            seen |= 1 << f
            there |= 1 << f
            kind = kinds[f]
            if kind <= 1 and byte != 110:
                negative = byte == 45
                at, value, scale = number(data, at + negative, end)
                if at < 0 or (negative and value == 0):
                    return -1
                if kind == 0:
                    if scale or value > greatest[f]:
                        return -1
                    wholes[f, row] = -value if negative else value
                else:
                    if value > 9007199254740992:
                        return -1  # beyond it one division no longer gives the nearest double
                    found = value / powers[scale] if scale else float(value)
                    floats[f, row] = -found if negative else found
            elif kind == 2 and byte == 34:
                begin = at + 1
                place = places[f]
                to = offsets[place, row]
                at = begin
                while at < end:
                    byte = byte_at(data, at)
                    if byte == 34:
                        break
                    if byte == 92 or byte < 32:
                        return -1
                    texts[place, to] = byte
                    to += 1
                    at += 1
                if at >= end:
                    return -1
                offsets[place, row + 1] = to
                at += 1
            else:
                at = word_end(data, at, end)
                if at < 0 or (kind != 3 and byte != 110):
                    return -1
                if byte == 110:
                    there &= ~(1 << f)
                else:
                    wholes[f, row] = byte == 116
        if at < end and byte_at(data, at) <= 32:
            at = blank(data, at, end)
        if at < end and byte_at(data, at) == 125:
            break
    return -1 if blank(data, at + 1, end) != end else ((1 << fields) - 1) & ~there


"""
_SOURCE = """
def core(data, bounds, names, ends, kinds, greatest, leads, sizes, members, wholes, floats, places, texts, offsets, missing, plain, powers):
    # plain[r] says of a record whether it is, missing[f, r] that it has not an attribute's value.
    fields = len(kinds)
    for row in range(len(bounds) - 1):
        for place in range(len(offsets)):
            offsets[place, row + 1] = offsets[place, row]
        lacks = document(data, bounds[row], bounds[row + 1], row, names, ends, kinds, greatest, leads, sizes, members, wholes, floats,
                         places, texts, offsets, powers)
        if lacks < 0:
            plain[row] = False
            for place in range(len(offsets)):
                offsets[place, row + 1] = offsets[place, row]
            lacks = (1 << fields) - 1
        if lacks:
            for f in range(fields):
                if lacks >> f & 1:
                    missing[f, row] = True
                    wholes[f, row] = 0
"""


@dataclass(frozen=True)
class Scanned:
    """The attributes of some records, by column; and which records are plain. The others have nulls."""

    columns: Sequence[pa.Array]
    plain: npt.NDArray[np.bool_]


class Scanner:
    """Reads attributes of some types, each from the member of its name."""

    def __init__(self, names: Sequence[str], kinds: Sequence[Type]) -> None:
        self._types = kinds
        encoded = [name.encode() for name in names]
        self._names = np.frombuffer(b"".join(encoded), np.uint8)
        self._ends = np.cumsum([len(name) for name in encoded]).astype(np.int64)
        self._kinds = np.array([_KINDS[kind] for kind in kinds], np.int64)
        self._greatest = np.array([_GREATEST.get(kind, 0) for kind in kinds], np.int64)
        self._places = np.cumsum(self._kinds == _KINDS[Type.STRING]) - 1

    def scan(self, data: Any, bounds: Any) -> Scanned:
        """The records whose bytes, valid UTF-8, stand in `data` (uint8), each from one of `bounds` (int64) to the next."""
        fields, rows, texts = len(self._types), len(bounds) - 1, int(self._places[-1]) + 1
        wholes, missing = np.empty((fields, rows), np.int64), np.zeros((fields, rows), bool)
        written = np.empty((texts, bounds[-1] - bounds[0]), np.uint8)
        offsets = np.zeros((texts, rows + 1), np.int64)
        plain = np.ones(rows, bool)
        _loop()(
            data, bounds, self._names, self._ends, self._kinds, self._greatest, *np.zeros((3, _MEMBERS), np.int64), wholes,
            wholes.view(np.float64), self._places, written, offsets, missing, plain, _POWERS,
        )  # fmt: skip
        columns = list[pa.Array]()
        for field, kind in enumerate(self._types):
            lacks, place = missing[field] if missing[field].any() else None, self._places[field]
            if kind is Type.STRING:
                there = None if lacks is None else pa.array(~lacks).buffers()[1]
                buffers = [there, pa.py_buffer(offsets[place]), pa.py_buffer(written[place, : offsets[place, -1]])]
                columns.append(pa.Array.from_buffers(pa.large_string(), rows, buffers))
            else:
                values = wholes[field].view(np.float64) if kind is Type.DOUBLE else wholes[field]
                columns.append(pa.array(values, mask=lacks).cast(kind.arrow))
        return Scanned(columns, plain)


@lru_cache(maxsize=64)
def _scanner(names: tuple[str, ...], kinds: tuple[Type, ...]) -> Scanner | None:
    known = 0 < len(set(names)) == len(names) <= _MOST_FIELDS and all(kind in _KINDS for kind in kinds)
    return Scanner(names, kinds) if known and all(map(is_member, names)) else None


def scanner_of(stream: StreamDef, renamed: Mapping[str, str]) -> Scanner | None:
    """What reads the attributes of a stream from members of documents; None where one is at a path, or of a type that the
    loop does not read."""
    names = tuple(renamed.get(name, name) for name in stream.attributes)
    return _scanner(names, tuple(stream.attributes.values()))


def ready(size: int) -> bool:
    """Whether the loop is loaded, which begins when enough has been read, with so many bytes more, for it to be worth its
    while. Nothing waits for it: a process of a live job would stand still for a second."""
    global _read
    before, _read = _read, _read + size
    if before < ENOUGH <= _read:
        threading.Thread(target=_load, name="scanning").start()
    return _loaded.is_set()


_read = 0
_loaded = threading.Event()


def _load() -> None:
    """Numba compiles a function, or takes what it has compiled before, when it is called."""
    Scanner(("a",), (Type.LONG,)).scan(np.frombuffer(b"{}", np.uint8), np.array([0, 2]))
    if gc.get_freeze_count():
        gc.freeze()  # a worker of Spark's looks for garbage after every task: in all that numba is, 30 ms
    _loaded.set()


@cache
def _loop() -> Callable[..., Any]:
    return loop(_SOURCE, LOADS + _PARTS)
