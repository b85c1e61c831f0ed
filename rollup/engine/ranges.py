"""Conditions as intervals of one field, and the intervals that hold a value, found without looking at the others.

What is found is only a candidate: its whole condition is tested afterwards, so bounds count as inside here.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from sortedcontainers import SortedKeyList

from rollup.engine import operators as op
from rollup.engine.conjunctions import conjuncts
from rollup.engine.expressions import All, Any_, Call, Case, Closure, Coalesce, Const, Expr, Field, children
from rollup.engine.types import Kind

_NUMBERS = (Kind.INT, Kind.LONG, Kind.FLOAT, Kind.DOUBLE, Kind.DECIMAL, Kind.TIMESTAMP, Kind.DURATION)
_ABOVE = {op.GREATER.name, op.GREATER_EQUAL.name}
_BELOW = {op.LESS.name, op.LESS_EQUAL.name}


@dataclass(frozen=True)
class Range:
    """A field between two expressions that are known when a filter begins; equal to one where both are the same."""

    place: int
    low: Expr | None
    high: Expr | None


def paths(test: Expr | None, input: int) -> tuple[Range, ...]:
    """Ranges of the fields of an input, one of which an event must be in to pass; none where the condition says none."""
    if test is None:
        return ()
    parts = conjuncts(test)
    found: dict[int, Range] = {}
    for part in parts:
        one = _range(part, input)
        if one is not None:
            known = found.get(one.place, one)
            low, high = (known.low or one.low), (known.high or one.high)
            found[one.place] = Range(one.place, low, high)
    if found:  # the narrowest: both bounds before one
        return (min(found.values(), key=lambda each: (each.low is None) + (each.high is None)),)
    for part in parts:
        if isinstance(part, Any_):
            ways = [paths(way, input) for way in part.args]
            if all(ways):
                return tuple(each for way in ways for each in way)
    return ()


def intervals(ranges: tuple[Range, ...], value: Callable[[Expr], Any]) -> tuple[tuple[int, Any, Any], ...]:
    """The ranges with their bounds worked out; none where a bound is unknown, so that the condition itself decides."""
    found: list[tuple[int, Any, Any]] = []
    for each in ranges:
        low, high = (None if bound is None else value(bound) for bound in (each.low, each.high))
        if (low is None and each.low is not None) or (high is None and each.high is not None):
            return ()
        if any(bound is not None and bound != bound for bound in (low, high)):
            return ()
        found.append((each.place, low, high))
    return tuple(found)


def _range(part: Expr, input: int) -> Range | None:
    """A comparison of a field with something that is known beforehand."""
    if not isinstance(part, Call) or len(part.args) != 2:
        return None
    one, other = part.args
    above, below, same = part.op.name in _ABOVE, part.op.name in _BELOW, part.op.name == op.EQUAL.name
    if not (above or below or same):
        return None
    if not _is_field(one, input):
        one, other, above, below = other, one, below, above
    if not _is_field(one, input) or not _known(other, input) or not _comparable(one, other):
        return None
    assert isinstance(one, Field)
    return Range(one.index, other if above or same else None, other if below or same else None)


def _is_field(expr: Expr, input: int) -> bool:
    return isinstance(expr, Field) and expr.input == input


def _known(expr: Expr, input: int) -> bool:
    """Whether a value is known when a filter begins: literals, and what tags have bound."""
    match expr:
        case Field():
            return expr.input != input
        case Const():
            return expr.value is not None
        case Call() | Coalesce() | Case() | All() | Any_():
            return all(_known(child, input) for child in children(expr)) and not isinstance(expr, Closure)
        case _:
            return False


def _comparable(one: Expr, other: Expr) -> bool:
    kinds = one.type.kind, other.type.kind
    return all(kind in _NUMBERS for kind in kinds) or all(kind is Kind.STRING for kind in kinds)


class Bounds:
    """Things under a lower bound each, or an upper one.

    >>> bounds = Bounds(lower=True)
    >>> bounds.add(5, "five"); bounds.add(9, "nine")
    >>> list(bounds.holding(7))
    ['five']
    """

    def __init__(self, lower: bool) -> None:
        self._lower = lower
        self._found: SortedKeyList = SortedKeyList(key=lambda each: each[0])

    def add(self, bound: Any, thing: Any) -> None:
        """One more."""
        self._found.add((bound, thing))

    def remove(self, bound: Any, thing: Any) -> None:
        """One less."""
        self._found.discard((bound, thing))

    def __len__(self) -> int:
        return len(self._found)

    def holding(self, value: Any) -> Iterator[Any]:
        """Those whose bound the value keeps."""
        low, high = (None, value) if self._lower else (value, None)
        return (thing for _, thing in self._found.irange_key(low, high))


class Intervals:
    """Things under two bounds each: a tree of the highest upper bounds over the things in order of their lower ones.

    It is built anew when an eighth of it has changed; until then what came is looked at one by one.

    >>> intervals = Intervals()
    >>> for low, high in ((1, 3), (2, 9), (8, 9)):
    ...     intervals.add(low, high, (low, high))
    >>> sorted(intervals.holding(3))
    [(1, 3), (2, 9)]
    """

    def __init__(self) -> None:
        self._all: dict[Any, tuple[Any, Any]] = {}
        self._fresh: dict[Any, tuple[Any, Any]] = {}
        self._gone = 0
        self._things: list[Any] = []
        self._lows: list[Any] = []
        self._highest: list[Any] = []
        self._leaves = 1

    def add(self, low: Any, high: Any, thing: Any) -> None:
        """One more."""
        self._all[thing] = self._fresh[thing] = (low, high)

    def remove(self, thing: Any) -> None:
        """One less."""
        if self._all.pop(thing, None) is not None and self._fresh.pop(thing, None) is None:
            self._gone += 1

    def __len__(self) -> int:
        return len(self._all)

    def holding(self, value: Any) -> Iterator[Any]:
        """Those whose bounds the value keeps."""
        if len(self._fresh) + self._gone > 16 + len(self._things) // 8:
            self._build()
        for thing, (low, high) in self._fresh.items():
            if low <= value <= high:
                yield thing
        prefix = bisect_right(self._lows, value)
        waiting = [(1, 0, self._leaves)] if prefix else []
        while waiting:
            node, begin, end = waiting.pop()
            highest = self._highest[node]
            if begin >= prefix or highest is None or highest < value:
                continue
            if end - begin == 1:
                thing = self._things[begin]
                if thing in self._all and thing not in self._fresh:
                    yield thing
                continue
            middle = (begin + end) // 2
            waiting += [(2 * node + 1, middle, end), (2 * node, begin, middle)]

    def _build(self) -> None:
        ordered = sorted(self._all.items(), key=lambda each: each[1][0])
        self._things = [thing for thing, _ in ordered]
        self._lows = [low for _, (low, _) in ordered]
        self._leaves = 1 << max(len(ordered) - 1, 0).bit_length()
        highs = [high for _, (_, high) in ordered]
        self._highest = [None] * self._leaves + highs + [None] * (self._leaves - len(highs))
        for node in range(self._leaves - 1, 0, -1):
            left, right = self._highest[2 * node], self._highest[2 * node + 1]
            self._highest[node] = left if right is None else max(left, right)
        self._fresh, self._gone = {}, 0
