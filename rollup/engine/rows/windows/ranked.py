"""Windows that keep the best: by an order of their own, with or without one row a key."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import total_ordering
from typing import Any, Literal

from sortedcontainers import SortedKeyList

from rollup.engine.expressions import Expr
from rollup.engine.reals import orderable
from rollup.engine.row import Delta, Row, delta_of
from rollup.engine.rows.windows.base import Host, Key, Window, key_of, value_of
from rollup.engine.types import Kind

Ties = Literal["oldest", "newest"]
_NUMBERS = (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE)
"""Those that are exact with another sign."""


@total_ordering
class Descending:
    """A value in reverse order; null is the least value either way, as in the order of a query's rows."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Descending) and self.value == other.value

    def __lt__(self, other: Descending) -> bool:
        return other.value < self.value


def sort_key(values: Sequence[Any], descending: Sequence[bool]) -> tuple[Any, ...]:
    """A key that sorts rows; nulls come first ascending and last descending, NaN behind all numbers.

    >>> sorted([(3,), (None,), (5,)], key=lambda values: sort_key(values, [True]))
    [(5,), (3,), (None,)]
    """
    pairs = zip(values, descending, strict=True)
    keys = ((v is not None, orderable(v), down) for v, down in pairs)
    return tuple(Descending((there, v)) if down else (there, v) for there, v, down in keys)


def number_key(values: Sequence[Any], descending: Sequence[bool]) -> tuple[Any, ...]:
    """The same of numbers, which are put in reverse order by their sign: that is compared without code of ours.

    >>> sorted([(3,), (None,), (5,)], key=lambda values: number_key(values, [True]))
    [(5,), (3,), (None,)]
    """
    return tuple(map(_number, values, descending))


def _number(value: Any, descending: bool) -> tuple[int, Any]:
    if value is None:
        return 0, 0
    if value != value:
        return (-2, 0) if descending else (2, 0)
    return (-1, -value) if descending else (1, value)


@dataclass(frozen=True)
class Sorted:
    """The `size` rows that sort first by `by`; the last leaves, of equal ones the oldest or the newest.

    A row that does not rank comes and leaves in one delivery. `lazy`: until a row has to leave, those who look into the
    window see its rows as they came.
    """

    size: int
    by: tuple[Expr, ...]
    descending: tuple[bool, ...]
    ties: Ties = "oldest"
    lazy: bool = False

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Sorted(self, host)


def _numbers(spec: Sorted) -> bool:
    return all(each.type.kind in _NUMBERS for each in spec.by)


def _by_values(spec: Sorted, host: Host) -> Key:
    """By what rows stand in order; of equal ones by which has come first."""
    values, descending, sign = key_of(spec.by, host), spec.descending, _sign(spec)
    sort = number_key if _numbers(spec) else sort_key
    return lambda row: (sort(values(row), descending), sign * row.id)


def _by_number(spec: Sorted, host: Host) -> Key:
    """The same by one number, as nearly always."""
    value, (descending,), sign = value_of(spec.by[0], host), spec.descending, _sign(spec)

    def key(row: Row) -> tuple[Any, ...]:
        found = value(row)
        if found is None or found != found:
            return (*_number(found, descending), sign * row.id)
        return (-1, -found, sign * row.id) if descending else (1, found, sign * row.id)

    return key


def _sign(spec: Sorted) -> int:
    return -1 if spec.ties == "oldest" else 1


class _Sorted(Window):
    told = True

    def __init__(self, spec: Sorted, host: Host) -> None:
        self._size = spec.size
        self._key = _by_number(spec, host) if len(spec.by) == 1 and _numbers(spec) else _by_values(spec, host)
        self._rows: SortedKeyList = SortedKeyList(key=self._key)
        self._last: Any = None
        """By what the last row of a full window sorts, where that is known."""
        self._lazy, self._ranked = spec.lazy, not spec.lazy

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        old: list[Row] = []
        kept, size = self._rows, self._size
        for row in rows:
            if len(kept) == size and self._key(row) > self._least():
                old.append(row)
            else:
                kept.add(row)
                self._last = None
                if len(kept) > size:
                    last: Row = kept.pop()
                    old.append(last)
        self._ranked = self._ranked or bool(old)
        return delta_of((rows, old, False))

    def _least(self) -> tuple[Any, ...]:
        """By what a row sorts with which one that comes gets in, into a window that is full."""
        if self._last is None:
            last: list[Row] = self._rows[-1:]
            self._last = self._key(last[0]) if last else ()
        return self._last

    def previous(self, row: Row) -> Sequence[Row]:
        """Counted from the row that sorts first."""
        return tuple(self.content())[::-1]

    def content(self) -> Iterable[Row]:
        rows: list[Row] = list(self._rows)
        return rows if self._ranked else sorted(rows, key=lambda row: row.id)

    def remove(self, row: Row) -> None:
        self._rows.discard(row)
        self._last = None

    def snapshot(self) -> Any:
        return list(self.content())

    def restore(self, state: Any) -> None:
        """Rows that fill the window in the order that they came in, which is that of the sort, read alike either way."""
        self._rows, self._last = SortedKeyList(state, key=self._key), None
        self._ranked = not self._lazy or (len(state) == self._size and list(self._rows) == list(state))


@dataclass(frozen=True)
class Ranked:
    """The newest row of each key, and of these the `size` that sort first."""

    key: tuple[Expr, ...]
    size: int
    by: tuple[Expr, ...]
    descending: tuple[bool, ...]

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Ranked(self, host)


class _Ranked(_Sorted):
    def __init__(self, spec: Ranked, host: Host) -> None:
        super().__init__(Sorted(spec.size, spec.by, spec.descending), host)
        self._unique = key_of(spec.key, host)
        self._of: dict[Any, Row] = {}

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        old: list[Row] = []
        for row in rows:
            key = self._unique(row)
            known = self._of.get(key)
            if known is not None:
                self._rows.remove(known)
                self._last = None
                old.append(known)
            self._of[key] = row
            left = super().enter([row], now).old
            for each in left:
                self._forget(each)
            old += left
        return Delta(rows, old)

    def remove(self, row: Row) -> None:
        super().remove(row)
        self._forget(row)

    def _forget(self, row: Row) -> None:
        """The key of a row is free, unless a newer row has it."""
        key = self._unique(row)
        if self._of.get(key) is row:
            del self._of[key]

    def restore(self, state: Any) -> None:
        super().restore(state)
        self._of = {self._unique(row): row for row in self._rows}


@dataclass(frozen=True)
class Frequent:
    """The newest row of each of the most frequent keys, at most `size` of them, by the algorithm of Misra and Gries.

    A key that does not get in lowers every count by one; keys whose count is gone leave. A row without a place gives
    nothing.
    """

    size: int
    key: tuple[Expr, ...]

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Frequent(self.size, key_of(self.key, host))


class _Counted(Window):
    """The newest row of each key that is counted."""

    _key: Key
    _rows: dict[Any, Row]
    _counts: dict[Any, Any]

    def content(self) -> Iterable[Row]:
        return iter(self._rows.values())

    def remove(self, row: Row) -> None:
        key = self._key(row)
        if self._rows.get(key) is row:
            del self._rows[key], self._counts[key]


class _Frequent(_Counted):
    def __init__(self, size: int, key: Key) -> None:
        self._size, self._key = size, key
        self._rows: dict[Any, Row] = {}
        self._counts: dict[Any, int] = {}

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        new: list[Row] = []
        old: list[Row] = []
        for row in rows:
            key = self._key(row)
            if key not in self._rows and len(self._rows) >= self._size:
                old += self._lowered()
                if len(self._rows) >= self._size:
                    continue
            self._rows[key] = row
            self._counts[key] = self._counts.get(key, 0) + 1
            new.append(row)
        return Delta(new, old)

    def _lowered(self) -> list[Row]:
        gone = [key for key, count in self._counts.items() if count == 1]
        self._counts = {key: count - 1 for key, count in self._counts.items() if count > 1}
        return [self._rows.pop(key) for key in gone]

    def snapshot(self) -> Any:
        return [[key, row, self._counts[key]] for key, row in self._rows.items()]

    def restore(self, state: Any) -> None:
        self._rows = {key: row for key, row, _ in state}
        self._counts = {key: count for key, _, count in state}


@dataclass(frozen=True)
class LossyFrequent:
    """The newest row of each key whose share of all rows is about `support` or more, by lossy counting.

    Counts are too small by at most `error` of all rows; after each 1 / `error` rows keys leave that can have no more than
    that. A row of a key without the share gives nothing, and stays for its key.
    """

    support: float
    error: float
    key: tuple[Expr, ...]

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _LossyFrequent(self, key_of(self.key, host))


class _LossyFrequent(_Counted):
    def __init__(self, spec: LossyFrequent, key: Key) -> None:
        self._least, self._width, self._key = spec.support - spec.error, math.ceil(1 / spec.error), key
        self._rows: dict[Any, Row] = {}
        self._counts: dict[Any, tuple[int, int]] = {}
        """By key: its rows, and how many may have been forgotten before it came."""
        self._total = 0

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        new: list[Row] = []
        old: list[Row] = []
        for row in rows:
            self._total += 1
            key, bucket = self._key(row), math.ceil(self._total / self._width)
            count, missed = self._counts.get(key, (0, bucket - 1))
            self._rows[key], self._counts[key] = row, (count + 1, missed)
            if count + 1 >= self._least * self._total:
                new.append(row)
            if self._total % self._width == 0:
                old += self._pruned(bucket)
        return Delta(new, old)

    def _pruned(self, bucket: int) -> list[Row]:
        gone = [key for key, (count, missed) in self._counts.items() if count + missed <= bucket]
        for key in gone:
            del self._counts[key]
        return [self._rows.pop(key) for key in gone]

    def snapshot(self) -> Any:
        return [[[key, row, list(self._counts[key])] for key, row in self._rows.items()], self._total]

    def restore(self, state: Any) -> None:
        self._rows = {key: row for key, row, _ in state[0]}
        self._counts = {key: (count, missed) for key, _, (count, missed) in state[0]}
        self._total = state[1]
