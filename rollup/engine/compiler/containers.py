"""The containers of the subset as CPython has them: the same methods, and the same state after each."""

from __future__ import annotations

import heapq
import struct
from collections import OrderedDict, deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from sortedcontainers import SortedList

from rollup.engine.compiler.types import (
    BOOL,
    CODE,
    FLOAT,
    INT,
    ColumnsOf,
    HeapOf,
    ListOf,
    MapOf,
    QueueOf,
    SortedOf,
    TableOf,
    Tuple,
    Type,
)


class Queue(deque[Any]):
    """References in order, of which the first leaves."""

    def first(self) -> Any:
        """The first reference."""
        return self[0]


class Rows:
    """References in order, of which any may leave. None stands there twice."""

    __slots__ = ("_rows", "append", "remove")

    def __init__(self) -> None:
        rows = self._rows = OrderedDict[int, Any]()

        def append(row: Any) -> None:
            if id(row) in rows:
                raise KeyError("the row is in the container")
            rows[id(row)] = row

        def remove(row: Any) -> None:
            del rows[id(row)]

        self.append, self.remove = append, remove  # closures: half the time of methods

    def first(self) -> Any:
        """The first reference."""
        return next(iter(self._rows.values()))

    def popleft(self) -> Any:
        """The first reference, which leaves."""
        return self._rows.popitem(last=False)[1]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Any]:
        return iter(self._rows.values())


class SortedDoubles:
    """Doubles in ascending order, what is no number behind all others."""

    __slots__ = ("_numbers",)

    def __init__(self) -> None:
        self._numbers: Any = SortedList()

    def add(self, value: float) -> None:
        """One double more."""
        self._numbers.add(order(value))

    def discard(self, value: float) -> None:
        """One double less, if it is there."""
        self._numbers.discard(order(value))

    def update(self, values: Iterable[float]) -> None:
        """Several doubles more."""
        self._numbers.update(map(order, values))

    def __getitem__(self, index: int) -> float:
        return _double(self._numbers[index])

    def __len__(self) -> int:
        return len(self._numbers)

    def __iter__(self) -> Iterator[float]:
        return map(_double, self._numbers)


class Heap(list[Any]):
    """Tuples, of which the least comes first."""

    def push(self, item: Any) -> None:
        """One tuple more."""
        heapq.heappush(self, item)

    def pop(self) -> Any:  # type: ignore[override]
        """The least tuple, which leaves."""
        return heapq.heappop(self)


class Table(list[Any]):
    """Rows of output, value after value."""

    append = list[Any].extend  # type: ignore[assignment]


class Columns(list[Any]):
    """Rows of input as tuples."""


def first_value(kind: Type) -> Callable[[], Any]:
    """What makes the first value of a field."""
    match kind:
        case ListOf():
            return list
        case QueueOf():
            return Queue if kind.position is None else Rows
        case MapOf():
            return dict
        case HeapOf():
            return Heap
        case SortedOf():
            return SortedDoubles if kind.of is FLOAT else SortedList
        case TableOf():
            return Table
        case ColumnsOf():
            return Columns
        case Tuple(items):
            return lambda: tuple(first_value(each)() for each in items)
        case _:
            value = {INT: 0, FLOAT: 0.0, BOOL: False, CODE: None}.get(kind)  # type: ignore[call-overload]
            return lambda: value


def order(value: float) -> int:
    """A whole number; these stand in the order of doubles, that of what is no number last.

    >>> order(-1.5) < order(0.0) == order(-0.0) < order(1e-300) < order(float("inf")) < order(-float("nan"))
    True
    """
    found = bits(value)
    return found ^ (found >> 63) & (2**63 - 1)


def _double(number: int) -> float:
    """The double at a place of that order."""
    return struct.unpack("<d", struct.pack("<q", number ^ (number >> 63) & (2**63 - 1)))[0]


def bits(value: float) -> int:
    """The 64 bits of a double as a whole number; one for all that are no number, and one for both zeros.

    >>> bits(0.0) == bits(-0.0), bits(float("nan")) == bits(-float("nan"))
    (True, True)
    """
    return 0x7FF8 << 48 if value != value else struct.unpack("<q", struct.pack("<d", value + 0.0))[0]
