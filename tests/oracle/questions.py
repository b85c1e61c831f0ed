"""A question answered from the raw events: which buckets, which events each row is about, what these say.

Nothing is stored, merged or planned here. An answer is a list of rows in the order in which answers come.
"""

from __future__ import annotations

import math
import statistics
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple

from tests.oracle.buckets import Calendar, wall_back

TIME, KEYS = "AGG_TIMESTAMP", ("country", "shop")
Group = tuple[Any, ...]
Values = dict[str, Any]


class Event(NamedTuple):
    """One event of the stream."""

    country: str | None
    shop: int
    customer: str | None
    amount: int | None
    price: float | None
    cost: Decimal | None
    ts: int


def told(rows: Sequence[Event]) -> Values:
    """What some events say, which are in the order of their times and, at one time, of arrival."""

    def given(name: str) -> list[Any]:
        return [value for row in rows if (value := getattr(row, name)) is not None]

    amounts, prices, costs = given("amount"), given("price"), given("cost")
    return {
        "n": len(rows),
        "known": len(given("customer")),
        "customers": len(set(given("customer"))),
        "total": sum(amounts) if amounts else None,
        "mean": statistics.fmean(amounts) if amounts else None,
        "revenue": math.fsum(prices) if prices else None,
        "spread": statistics.pstdev(prices) if prices else None,
        "costs": sum(costs) if costs else None,
        "least": min(amounts, default=None),
        "most": max(prices, default=None),
        "opening": rows[0].amount,
        "latest": rows[-1].amount,
        "large": sum(amount > 3 for amount in amounts),
        "early": len({row.customer for row in rows if row.shop == 1 and row.customer is not None}),
        "middle": statistics.median(prices) if prices else None,
        "rank": float(sorted(amounts)[min(len(amounts) * 9 // 10, len(amounts) - 1)]) if amounts else None,
        "weighted": _weighted([(row.price, row.shop) for row in rows if row.price is not None]),
        "spans": str([sum(low <= amount < high for amount in amounts) for low, high in pairwise(EDGES)]),
        "somebody": min(given("customer"), default=None),
        "together": _covariance([(row.amount, row.price) for row in rows if None not in (row.amount, row.price)]),
        "bound": _correlation([(row.price, row.shop) for row in rows if row.price is not None]),
        "usual": min(amounts, key=lambda amount: (-amounts.count(amount), amount), default=None),
        "AGG_EVENTS": len(rows),
    }


def _products(pairs: Sequence[tuple[Any, Any]]) -> Fraction:
    """The sum of the products of both distances from their means, exact."""
    x, y = ([Fraction(pair[side]) for pair in pairs] for side in (0, 1))
    at, to = sum(x) / len(x), sum(y) / len(y)
    return sum(((a - at) * (b - to) for a, b in zip(x, y, strict=True)), Fraction(0))


def _covariance(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    return float(_products(pairs) / len(pairs)) if pairs else None


def _correlation(pairs: Sequence[tuple[Any, Any]]) -> float | None:
    spreads = [_products([(pair[side],) * 2 for pair in pairs]) for side in (0, 1)] if pairs else [0]
    return float(_products(pairs)) / math.sqrt(spreads[0] * spreads[1]) if all(spreads) else None


def _weighted(pairs: Sequence[tuple[float, int]]) -> float | None:
    return math.fsum(x * weight for x, weight in pairs) / sum(weight for _, weight in pairs) if pairs else None


EDGES = (-math.inf, -5, 0, 5, math.inf)
TEXTS = {"spans", "somebody"}
WHOLE = {"usual", "n", "known", "customers", "large", "early", "AGG_EVENTS", "total", "least", "opening", "latest"}


@dataclass(frozen=True)
class Look:
    """`previous(name)`, or with a length `previous(name, '1 month')`."""

    name: str
    count: int = 0
    unit: str = ""

    @property
    def text(self) -> str:
        return f"previous({self.name}, '{self.count} {self.unit}s')" if self.count else f"previous({self.name})"


@dataclass(frozen=True)
class Window:
    """`over '7 days'`; without a count `over month to date`, of which `since` are the months."""

    unit: str
    count: int = 0
    since: Calendar | None = None


@dataclass(frozen=True)
class Fill:
    """`fill(word)`, or `fill(word, range)`."""

    word: str
    whole: bool


@dataclass(frozen=True)
class Question:
    """Buckets that begin in low <= t < high, cut in a zone.

    `keys` are the group keys that rows are of, None: all, as they are stored. `apart` is false where all buckets of the
    range are merged to one row. `keyed` is a condition on group keys, `passes` one on the rows of the answer.
    """

    calendar: Calendar
    zone: str
    low: int
    high: int
    columns: tuple[str, ...]
    keys: tuple[str, ...] | None = None
    apart: bool = True
    window: Window | None = None
    fill: Fill | None = None
    looks: tuple[Look, ...] = ()
    keyed: Callable[[Event], bool] | None = None
    passes: Callable[[Values], bool] | None = None


class Answer:
    """What a question's answer must be."""

    def __init__(self, question: Question, events: Sequence[Event]) -> None:
        self.question = question
        passing = [event for event in events if question.keyed is None or question.keyed(event)]
        self.events = sorted(passing, key=lambda event: event.ts)
        self.times = [event.ts for event in self.events]
        self.known: dict[int, dict[Group, Values]] = {}

    def rows(self) -> list[Values]:
        """The rows, in order."""
        if not self.question.apart:
            inside = [row for start in self._starts() for row in self._events(start)]
            inside.sort(key=lambda event: event.ts)
            return [self._row(None, group, values) for group, values in ordered(self._grouped(inside))]
        found = {
            (start, group): values
            for start in self._starts()
            for group, values in self._at(start).items()
            if self.question.passes is None or self.question.passes(dict(zip(self._keys, group, strict=True)) | values)
        }
        if self.question.fill is not None:
            found = self._filled(found, self.question.fill)
        return [self._row(start, group, values) for (start, group), values in sorted(found.items(), key=in_order)]

    @property
    def _keys(self) -> tuple[str, ...]:
        return KEYS if self.question.keys is None else self.question.keys

    def _grouped(self, events: Sequence[Event]) -> dict[Group, Values]:
        groups: dict[Group, list[Event]] = {}
        for event in events:
            groups.setdefault(tuple(getattr(event, key) for key in self._keys), []).append(event)
        return {group: told(each) for group, each in groups.items()}

    def _starts(self) -> list[int]:
        """The buckets that may have a row."""
        question = self.question
        calendar, zone = question.calendar, question.zone
        if question.window is None and question.fill is None:
            starts = {calendar.start(at, zone) for at in self.times}
            return sorted(start for start in starts if question.low <= start < question.high)
        return self.grid

    @cached_property
    def grid(self) -> list[int]:
        """All buckets of the range."""
        question, found = self.question, list[int]()
        at = question.calendar.start(question.low, question.zone)
        while at < question.high:
            found += [at] if at >= question.low else []
            at = question.calendar.following(at, question.zone)
        return found

    def _events(self, start: int) -> list[Event]:
        """The events that the row of a bucket is about."""
        question, window = self.question, self.question.window
        low, high = start, question.calendar.following(start, question.zone)
        if window is not None and window.since is not None:
            low = window.since.start(start, question.zone)
        elif window is not None:
            low = wall_back(high, window.count, window.unit, question.zone)
        return self.events[bisect_left(self.times, low) : bisect_left(self.times, high)]

    def _at(self, start: int) -> dict[Group, Values]:
        if start not in self.known:
            self.known[start] = self._grouped(self._events(start))
        return self.known[start]

    def _filled(self, rows: dict[tuple[int, Group], Values], fill: Fill) -> dict[tuple[int, Group], Values]:
        found = dict(rows)
        for group in {group for _, group in rows}:
            there = sorted(start for start, each in rows if each == group)
            for start in self.grid:
                if (start, group) not in rows and (fill.whole or there[0] < start < there[-1]):
                    found[start, group] = {
                        name: self._gap(name, start, {at: rows[at, group][name] for at in there}, fill.word)
                        for name in rows[there[0], group]
                    }
        return found

    def _gap(self, name: str, start: int, values: dict[int, Any], word: str) -> Any:
        if word == "zero":
            return None if name in TEXTS else 0 if name in WHOLE else 0.0
        if word == "null" or name == "AGG_EVENTS" or (name in TEXTS and word == "linear"):
            return None
        before = [at for at, value in values.items() if at < start and value is not None]
        after = [at for at, value in values.items() if at > start and value is not None]
        if word == "previous" or not before or not after:
            return values[before[-1]] if before and word == "previous" else None
        rise = (float(values[after[0]]) - float(values[before[-1]])) * (start - before[-1]) / (after[0] - before[-1])
        line = float(values[before[-1]]) + rise
        return math.floor(line + 0.5) if name in WHOLE else line

    def _row(self, start: int | None, group: Group, values: Values) -> Values:
        keys = dict.fromkeys(KEYS) | dict(zip(self._keys, group, strict=True))
        shown = keys if self.question.keys is None or self.question.apart else {k: keys[k] for k in self._keys}
        row = {TIME: start, **shown} if self.question.apart else dict(shown)
        row |= {name: values[name] for name in self.question.columns}
        for index, look in enumerate(self.question.looks):
            row[f"look_{index}"] = self._at(self._earlier(start or 0, look)).get(group, {}).get(look.name)
        return row

    def _earlier(self, start: int, look: Look) -> int:
        calendar, zone = self.question.calendar, self.question.zone
        if not look.count:
            return calendar.start(start - 1, zone)
        return calendar.start(wall_back(start, look.count, look.unit, zone), zone)


def ordered(groups: dict[Group, Values]) -> list[tuple[Group, Values]]:
    """Groups in the order of answers: nulls first."""
    return sorted(groups.items(), key=lambda each: [(key is not None, key) for key in each[0]])


def in_order(row: tuple[tuple[int, Group], Values]) -> Any:
    """What rows are ordered by."""
    (start, group), _ = row
    return start, [(key is not None, key) for key in group]


def alike(found: Any, expected: Any) -> bool:
    """Whether two values are the same, of doubles up to rounding."""
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=1e-12, abs_tol=1e-9)
    return type(found) is type(expected) and found == expected
