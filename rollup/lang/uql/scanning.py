"""Plain rows of text into columns by one compiled loop, which gives up at the first byte that is not plain.

Plain is what programs write: no quotes, comments, blank lines or carriage returns, numbers in digits, times such as
2030-01-01T17:00:00.123-07:00. What is not plain is left to `ingress.py`, which reads everything; both give the same
columns where both can read. The loop is worth its loading only where there is much to read, so it is loaded when much has been read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.lang.uql.catalog import Field, Kind

LEAST = 1 << 19
"""Bytes of a piece from which a run of the loop is worth its while."""
ENOUGH = 64 << 20
"""Bytes of an input from which loading the loop is."""
_KINDS = {Kind.INTEGER: 0, Kind.FLOAT: 1, Kind.TEXT: 2, Kind.BOOLEAN: 3, Kind.TIME: 4}
_SPARE = 1.03
"""More room than the piece before would have needed; where it is too little, lines are counted."""
_SLOTS, _MOST_SLOTS = 1 << 12, 1 << 22
_STRANGE, _FULL = -1, -3

_SOURCE = """
def core(data, kinds, low, high, wholes, floats, codes, missing, slots, begins, sizes, heads, counts, powers, tens):
    # wholes[f, r], floats[f, r], codes[f, r], missing[f, r]: the values by field and row. Code c of field f is the text
    # data[begins[f, c]:][:sizes[f, c]], found by the open hash table slots[f], which holds codes + 1; heads[f, c] is what
    # is hashed: the bytes of a text of less than eight, of a longer one a number that all of its bytes are in.
    fields, end, at, row = len(kinds), len(data), 0, 0
    mask = slots.shape[1] - 1
    most = slots.shape[1] // 2
    minutes = np.full(fields, -1, np.int64)  # where the last time of a field began, and the second at which its minute did
    starts = np.zeros(fields, np.int64)
    zones = np.full(fields, -1, np.int64)  # the same of its offset
    shifts = np.zeros(fields, np.int64)
    ones, highs = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
    while at < end:
        if byte_at(data, at) == 35 or byte_at(data, at) == 10:
            return -1
        if row >= wholes.shape[1]:
            return -3
        for f in range(fields):
            kind = kinds[f]
            last = f == fields - 1
            start = at
            if kind == 2:
                size, h = -1, np.uint64(0)
                if at + 8 <= end:  # where a short text ends is told of eight bytes at once
                    word = eight_at(data, at)
                    bars, lines = word ^ (ones * np.uint64(124)), word ^ (ones * np.uint64(10))
                    ends = ((bars - ones) & ~bars | (lines - ones) & ~lines) & highs
                    if ends:
                        below = ((ends & (~ends + np.uint64(1))) - np.uint64(1)) >> np.uint64(7)
                        h = word & below
                        quotes, returns = h ^ (ones * np.uint64(34)), h ^ (ones * np.uint64(13))
                        if (((quotes - ones) & ~quotes | (returns - ones) & ~returns | h) & highs):
                            return -1
                        size = np.int64((below & ones) * ones >> np.uint64(56))
                        at += size
                if size < 0:
                    while at < end and byte_at(data, at) != 124 and byte_at(data, at) != 10:
                        byte = byte_at(data, at)
                        if byte == 34 or byte == 13 or byte >= 128:
                            return -1
                        if at - start < 8:
                            h |= np.uint64(byte) << np.uint64(8 * (at - start))
                        else:
                            h = (h ^ np.uint64(byte)) * np.uint64(1099511628211)
                        at += 1
                    size = at - start
                place = np.int64((h * np.uint64(0x9E3779B97F4A7C15) >> np.uint64(32)) & np.uint64(mask))
                while True:
                    code = slots[f, place] - 1
                    if code < 0:
                        code = counts[f]
                        if code >= most:
                            return -2
                        counts[f] = code + 1
                        begins[f, code] = start
                        sizes[f, code] = size
                        heads[f, code] = h
                        slots[f, place] = code + 1
                        break
                    if sizes[f, code] == size and heads[f, code] == h:
                        if size < 8:
                            break  # its bytes are its head
                        first, i = begins[f, code], 0
                        while i < size and byte_at(data, first + i) == byte_at(data, start + i):
                            i += 1
                        same = i == size
                        if same:
                            break
                    place = (place + 1) & mask
                codes[f, row] = code
            elif at >= end or byte_at(data, at) == 124 or byte_at(data, at) == 10:
                wholes[f, row] = 0
                missing[f, row] = 1
                counts[f] += 1
                if kind == 1:
                    floats[f, row] = 0.0
            elif kind == 0:
                negative = byte_at(data, at) == 45
                if negative:
                    at += 1
                digits, value = at, 0
                while at < end and 48 <= byte_at(data, at) <= 57:
                    value = value * 10 + (byte_at(data, at) - 48)
                    at += 1
                if at == digits or at - digits > 18:
                    return -1
                if negative:
                    value = -value
                if value < low[f] or value > high[f]:
                    return -1
                wholes[f, row] = value
            elif kind == 1:
                negative = byte_at(data, at) == 45
                if negative:
                    at += 1
                digits, scale, value, begin = 0, 0, 0, at
                while at < end and 48 <= byte_at(data, at) <= 57:
                    value = value * 10 + (byte_at(data, at) - 48)
                    digits += 1
                    at += 1
                if digits == 0:
                    return -1
                if at < end and byte_at(data, at) == 46:
                    at += 1
                    while at < end and 48 <= byte_at(data, at) <= 57:
                        value = value * 10 + (byte_at(data, at) - 48)
                        digits += 1
                        scale += 1
                        at += 1
                if digits > 18 or value > 9007199254740992 or scale > 22:
                    return -1  # beyond it one division no longer gives the nearest double
                number = value / powers[scale]
                floats[f, row] = -number if negative else number
            elif kind == 3:
                byte = byte_at(data, at)
                if byte == 49 or byte == 48:
                    wholes[f, row] = byte - 48
                    at += 1
                elif byte == 116 or byte == 102:
                    wholes[f, row] = 1 if byte == 116 else 0
                    at += 1
                    if at < end and byte_at(data, at) != 124 and byte_at(data, at) != 10:
                        size = 3 if byte == 116 else 4
                        if at + size > end:
                            return -1
                        if byte == 116 and not (byte_at(data, at) == 114 and byte_at(data, at + 1) == 117 and byte_at(data, at + 2) == 101):
                            return -1
                        if byte == 102 and not (byte_at(data, at) == 97 and byte_at(data, at + 1) == 108 and byte_at(data, at + 2) == 115
                                                and byte_at(data, at + 3) == 101):
                            return -1
                        at += size
                else:
                    return -1
            else:
                if at + 20 > end:
                    return -1
                before, differs = minutes[f], np.uint64(0)
                if before >= 0:
                    differs = ((eight_at(data, at) ^ eight_at(data, before)) | (eight_at(data, at + 8) ^ eight_at(data, before + 8))
                               | (eight_at(data, at + 9) ^ eight_at(data, before + 9)))
                if before >= 0 and differs == 0:  # the minute of the row before
                    ten, one = byte_at(data, at + 17) - np.uint8(48), byte_at(data, at + 18) - np.uint8(48)
                    if ten > 5 or one > 9:
                        return -1
                    second = np.int64(ten) * 10 + np.int64(one)
                else:
                    for i in range(19):
                        byte = byte_at(data, at + i)
                        if i == 4 or i == 7:
                            if byte != 45:
                                return -1
                        elif i == 10:
                            if byte != 84 and byte != 32 and byte != 116:
                                return -1
                        elif i == 13 or i == 16:
                            if byte != 58:
                                return -1
                        elif byte < 48 or byte > 57:
                            return -1
                    year = ((np.int64(byte_at(data, at)) - 48) * 1000 + (np.int64(byte_at(data, at + 1)) - 48) * 100
                            + (np.int64(byte_at(data, at + 2)) - 48) * 10 + (np.int64(byte_at(data, at + 3)) - 48))
                    month = (np.int64(byte_at(data, at + 5)) - 48) * 10 + (np.int64(byte_at(data, at + 6)) - 48)
                    day = (np.int64(byte_at(data, at + 8)) - 48) * 10 + (np.int64(byte_at(data, at + 9)) - 48)
                    hour = (np.int64(byte_at(data, at + 11)) - 48) * 10 + (np.int64(byte_at(data, at + 12)) - 48)
                    minute = (np.int64(byte_at(data, at + 14)) - 48) * 10 + (np.int64(byte_at(data, at + 15)) - 48)
                    second = (np.int64(byte_at(data, at + 17)) - 48) * 10 + (np.int64(byte_at(data, at + 18)) - 48)
                    leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
                    if year < 1 or month < 1 or month > 12 or day < 1 or hour > 23 or minute > 59 or second > 59:
                        return -1
                    longest = 30 if month == 4 or month == 6 or month == 9 or month == 11 else 31
                    if month == 2:
                        longest = 29 if leap else 28
                    if day > longest:
                        return -1
                    y = year - 1 if month <= 2 else year  # days of the civil calendar, years beginning in March
                    era = y // 400
                    of_era = y - era * 400
                    m = month - 3 if month > 2 else month + 9
                    days = era * 146097 + of_era * 365 + of_era // 4 - of_era // 100 + (153 * m + 2) // 5 + day - 719469
                    minutes[f] = at
                    starts[f] = days * 86400 + hour * 3600 + minute * 60
                at += 19
                micros, weight = 0, 6
                if byte_at(data, at) == 46:
                    at += 1
                    begin = at
                    while at < end and 48 <= byte_at(data, at) <= 57:
                        if at < begin + 6:
                            micros = micros * 10 + (np.int64(byte_at(data, at)) - 48)
                            weight -= 1
                        at += 1
                    if at == begin:
                        return -1
                    micros *= tens[weight]
                before, differs = zones[f], np.uint64(0)
                if before >= 0 and at + 8 <= end:
                    differs = (eight_at(data, at) ^ eight_at(data, before)) & np.uint64(0xFFFFFFFFFFFF)
                if before >= 0 and at + 8 <= end and differs == 0:  # the offset of the row before
                    shift = shifts[f]
                    at += 6
                else:
                    shift = 0
                    if at >= end:
                        return -1
                    if byte_at(data, at) == 90 or byte_at(data, at) == 122:
                        at += 1
                    elif byte_at(data, at) == 43 or byte_at(data, at) == 45:
                        if at + 6 > end or byte_at(data, at + 3) != 58:
                            return -1
                        for i in (1, 2, 4, 5):
                            if byte_at(data, at + i) < 48 or byte_at(data, at + i) > 57:
                                return -1
                        away = (np.int64(byte_at(data, at + 1)) - 48) * 10 + (np.int64(byte_at(data, at + 2)) - 48)
                        more = (np.int64(byte_at(data, at + 4)) - 48) * 10 + (np.int64(byte_at(data, at + 5)) - 48)
                        if away > 23 or more > 59:
                            return -1
                        shift = (away * 60 + more) * 60
                        if byte_at(data, at) == 45:
                            shift = -shift
                        zones[f] = at
                        shifts[f] = shift
                        at += 6
                    else:
                        return -1
                wholes[f, row] = (starts[f] + second - shift) * 1000000 + micros
            if last:
                if at < end and byte_at(data, at) != 10:
                    return -1
            elif at >= end or byte_at(data, at) != 124:
                return -1
            at += 1
        row += 1
    return row
"""


def fits(fields: Sequence[Field]) -> bool:
    """Whether every field has a type that the loop reads."""
    return bool(fields) and all(field.kind in _KINDS and field.arrow != pa.float32() for field in fields)


class Scanner:
    """Reads plain rows of fields that it `fits`."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = fields
        self._slots = _SLOTS
        self._kinds = np.array([_KINDS[field.kind] for field in fields], np.int64)
        self._low, self._high = _limits(fields)
        self._density = 0.0  # rows a byte, of the piece before

    def ready(self, read: int) -> bool:
        """Whether the loop is loaded, or so many bytes have been read that loading it is worth its while."""
        if read >= ENOUGH:
            load()
        return _core.cache_info().currsize > 0

    def scan(self, piece: bytes | memoryview) -> list[pa.Array] | None:
        """The columns of a piece; None when something in it is not plain."""
        data = np.frombuffer(piece, np.uint8)
        room = int(len(data) * self._density * _SPARE) or _lines(data)  # counting lines costs
        while True:
            arrays = _Arrays(len(self._fields), room, self._slots)
            rows = arrays.fill(data, self._kinds, self._low, self._high)
            if rows >= 0:
                self._density = rows / len(data)
                return [arrays.column(data, place, field, rows) for place, field in enumerate(self._fields)]
            if rows == _FULL:
                room = _lines(data)
            elif rows == _STRANGE or self._slots >= _MOST_SLOTS:
                return None
            else:
                self._slots *= 16


def _lines(data: Any) -> int:
    return int(np.count_nonzero(data == 10)) + 1


class _Arrays:
    """What one run of the loop fills."""

    def __init__(self, fields: int, rows: int, slots: int) -> None:
        self.wholes = np.empty((fields, rows), np.int64)
        self.floats = np.empty((fields, rows), np.float64)
        self.codes = np.empty((fields, rows), np.int32)
        self.missing = np.zeros((fields, rows), np.uint8)
        self.slots = np.zeros((fields, slots), np.int64)
        self.begins = np.empty((fields, slots), np.int64)
        self.sizes = np.empty((fields, slots), np.int64)
        self.heads = np.empty((fields, slots), np.uint64)
        self.counts = np.zeros(fields, np.int64)  # of different texts, and of nulls

    def fill(self, data: Any, kinds: Any, low: Any, high: Any) -> int:
        """How many rows there are, or why the loop gave up."""
        return int(
            _core()(
                data, kinds, low, high, self.wholes, self.floats, self.codes, self.missing, self.slots, self.begins,
                self.sizes, self.heads, self.counts, _POWERS, _TENS,
            )
        )  # fmt: skip

    def column(self, data: Any, place: int, field: Field, rows: int) -> pa.Array:
        """The column of a field."""
        if field.kind is Kind.TEXT:
            return self._texts(data, place, rows)
        values = (self.floats if field.kind is Kind.FLOAT else self.wholes)[place, :rows]
        mask = self.missing[place, :rows].astype(bool) if self.counts[place] else None
        return pa.array(values.astype(bool) if field.kind is Kind.BOOLEAN else values, mask=mask)

    def _texts(self, data: Any, place: int, rows: int) -> pa.Array:
        count = int(self.counts[place])
        pairs = zip(self.begins[place, :count].tolist(), self.sizes[place, :count].tolist(), strict=True)
        words = [data[begin : begin + size].tobytes() for begin, size in pairs]
        codes = pa.array(self.codes[place, :rows])
        return pa.DictionaryArray.from_arrays(codes, pa.array(words, pa.binary()).cast(pa.string()))


def _limits(fields: Sequence[Field]) -> tuple[Any, Any]:
    """The least and the greatest whole number of each field."""
    bits = [field.arrow.bit_width if field.kind is Kind.INTEGER else 64 for field in fields]
    return np.array([-(2 ** (b - 1)) for b in bits], np.int64), np.array([2 ** (b - 1) - 1 for b in bits], np.int64)


def load() -> None:
    """Load the loop: half a second, and a few seconds the first time on a machine."""
    _core()


@cache
def _core() -> Callable[..., Any]:
    from rollup.engine.columns.loops import LOADS, loop

    return loop(_SOURCE, LOADS)


_TENS = 10 ** np.arange(7)
_POWERS = 10.0 ** np.arange(23)
