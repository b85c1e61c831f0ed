"""The buckets that a subscription follows, at one commit: which may still change, which an earlier commit has touched.

Those of a level are stored. Those of a period are put together from the rows of a level, so what is known of these says
what may be different in a period.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from rollup.core.calendar import Duration, bucket_end
from rollup.core.errors import QueryError
from rollup.core.periods import Period
from rollup.plan.aggregation import TIMESTAMP, column
from rollup.plan.app import Item, Selection
from rollup.plan.retention import retention
from rollup.retrieval.questions import Ask, ask_for
from rollup.retrieval.since import FIRST, LAST, Interval, first_open
from rollup.stores.base import Snapshot

_OLDEST, _NEWEST = -62_000_000_000_000, 252_000_000_000_000
"""Between the years 5 and 9955: a calendar still knows what is a few years before and behind."""


class Followed(Protocol):
    """Buckets at a moment of a store."""

    @property
    def snapshot(self) -> Snapshot:
        """The moment."""
        ...

    @property
    def level(self) -> Duration:
        """The level whose rows they are made of."""
        ...

    def first_open(self, clocks: Mapping[Duration, int | None]) -> int:
        """A bucket start: with these clocks every bucket that begins earlier is closed."""
        ...

    def touched(self, stored: Iterable[Interval]) -> list[Interval]:
        """Where buckets begin that are made of stored rows of these ranges."""
        ...

    def rows(self, low: int, high: int) -> pa.Table | None:
        """The rows that begin in a range; None where there is surely no row."""
        ...


@dataclass(frozen=True)
class StoredBuckets:
    """The buckets of a level."""

    ask: Ask
    snapshot: Snapshot

    @property
    def level(self) -> Duration:
        return self.ask.per

    def first_open(self, clocks: Mapping[Duration, int | None]) -> int:
        return first_open(self.ask.aggregation, clocks, self.level)

    def touched(self, stored: Iterable[Interval]) -> list[Interval]:
        return list(stored)

    def rows(self, low: int, high: int) -> pa.Table | None:
        return self.snapshot.answer(_part(self.ask, low, high, self.level)) if low < high else None


@dataclass(frozen=True)
class PeriodBuckets:
    """The buckets of a period, made of a level that has rows in the range `data`."""

    ask: Ask
    snapshot: Snapshot
    period: Period
    level: Duration
    data: Interval

    def first_open(self, clocks: Mapping[Duration, int | None]) -> int:
        at = first_open(self.ask.aggregation, clocks, self.level)
        return at if at == FIRST else self._around(at, at + 1)[0]

    def touched(self, stored: Iterable[Interval]) -> list[Interval]:
        return [self._around(low, high) for low, high in stored]

    def rows(self, low: int, high: int) -> pa.Table | None:
        first, last = self._around(*self.data) if self.data[0] < self.data[1] else (LAST, FIRST)
        low, high = max(low, first), min(high, last)
        return self.snapshot.answer(_part(self.ask, low, high, self.level)) if low < high else None

    def _around(self, low: int, high: int) -> Interval:
        """Where buckets begin that are made of rows of a range; ends beyond every calendar stay what they are."""
        first, last = self.period.around(max(low, _OLDEST), min(high, _NEWEST), self.ask.aggregation.zone)
        return (FIRST if low < _OLDEST else first), (LAST if high > _NEWEST else last)


def followed(ask: Ask, snapshot: Snapshot) -> Followed:
    """The buckets of a question at a moment. Raises QueryError for a period of which there are too many."""
    if ask.period is None:
        return StoredBuckets(ask, snapshot)
    purged = retention(ask.aggregation.purge, ask.aggregation.levels)
    kept = {} if purged is None else purged.keep
    problem = None
    for level in sorted(ask.aggregation.levels, key=lambda each: (kept.get(each) or LAST, each), reverse=True):
        data = _data(ask, snapshot, level)
        if data[0] >= data[1]:
            continue
        try:
            first, last = ask.period.around(*data, ask.aggregation.zone)
            made_of = ask.part(max(first, ask.start), last).per
            return PeriodBuckets(ask, snapshot, ask.period, made_of, data)
        except QueryError as found:  # a finer level may hold less, and so a shorter range
            problem = found
    if problem is not None:
        raise QueryError(problem.message, hint=f"begin later, with `since`; or {problem.hint}")
    return PeriodBuckets(ask, snapshot, ask.period, ask.aggregation.root, (FIRST, FIRST))


def _part(ask: Ask, low: int, high: int, level: Duration) -> Ask:
    return replace(ask.part(low, high), per=level)


def _data(ask: Ask, snapshot: Snapshot, level: Duration) -> Interval:
    """The range that holds the bucket starts of a level's rows."""
    calls = (exp.Anonymous(this=name, expressions=[column(TIMESTAMP)]) for name in ("min", "max"))
    selection = Selection(tuple(Item(name, each) for name, each in zip(("low", "high"), calls, strict=True)))
    found = snapshot.answer(ask_for(ask.aggregation, FIRST, LAST, level.plural, selection)).to_pylist()
    ends = [at for row in found for at in row.values() if at is not None]
    return (ends[0], bucket_end(ends[1], level, ask.aggregation.zone)) if ends else (FIRST, FIRST)
