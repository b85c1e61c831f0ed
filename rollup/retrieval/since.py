"""What may be different between two commits of an aggregation: where its open buckets began, and which stored rows changed.

A store needs to remember little for this. The clocks of a commit say which buckets were closed. Stored rows of closed
buckets change only by corrections, replays, repairs and retention, and a store knows the times of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollup.core.calendar import Duration, bucket_end, bucket_start
from rollup.core.columns import ColumnEngine
from rollup.core.identifiers import quoted
from rollup.plan.aggregation import TIMESTAMP, Aggregation

FIRST, LAST = -(2**62), 2**62
"""Before and behind every bucket start."""
Interval = tuple[int, int]
"""All bucket starts from the first number on that are less than the second."""
_HOUR, _DAY = 3_600_000, 86_400_000
_MOST = 8


@dataclass(frozen=True)
class Mark:
    """What is left of an earlier commit: its clocks, and what tells it from another commit of its number."""

    clocks: Mapping[Duration, int | None]
    token: object


def first_open(aggregation: Aggregation, clocks: Mapping[Duration, int | None], level: Duration) -> int:
    """A bucket start of a level: with these clocks every bucket that begins earlier is closed."""
    clock = clocks.get(aggregation.root)
    if clock is None:
        return FIRST
    zones = ("-12:00", "+14:00") if aggregation.own_zones else (aggregation.zone,)
    return min(_first_open(aggregation, clocks, clock, level, zone) for zone in zones)


def _first_open(
    aggregation: Aggregation, clocks: Mapping[Duration, int | None], clock: int, level: Duration, zone: str
) -> int:
    root = aggregation.root
    found = bucket_end(bucket_start(clock, root, zone), root, zone, -aggregation.buffer)
    if aggregation.own_zones:
        found -= 2 * _DAY  # a zone's own bucket may begin earlier by the distance of two zones
    for coarser in aggregation.levels[1 : aggregation.levels.index(level) + 1]:
        arrived = clocks.get(coarser)
        found = bucket_start(found if arrived is None else min(found, arrived), coarser, zone)
    return found


def joined(intervals: Iterable[Interval], low: int = FIRST, high: int = LAST, most: int = _MOST) -> list[Interval]:
    """What lies from `low` to before `high`, in order, as at most so many intervals; the smallest gaps are filled.

    >>> joined([(5, 7), (0, 2), (1, 3), (90, 95)], high=93), joined([(0, 1), (5, 6), (90, 91)], most=2)
    ([(0, 3), (5, 7), (90, 93)], [(0, 6), (90, 91)])
    """
    found = list[Interval]()
    for begin, end in sorted((max(begin, low), min(end, high)) for begin, end in intervals):
        if begin >= end:
            continue
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], max(end, found[-1][1])
        else:
            found.append((begin, end))
    while len(found) > most:
        at = min(range(1, len(found)), key=lambda i: found[i][0] - found[i - 1][1])
        found[at - 1 : at + 1] = [(found[at - 1][0], found[at][1])]
    return found


def around(starts: npt.NDArray[np.int64]) -> list[Interval]:
    """A few intervals that hold all of some bucket starts, which are in order and differ.

    >>> around(np.array([0, 1000, 2000, 90_000]))
    [(0, 2001), (90000, 90001)]
    """
    if not len(starts):
        return []
    gaps = np.diff(starts)
    widest = np.argsort(gaps, kind="stable")[::-1][: _MOST - 1]
    cuts = np.sort(widest[gaps[widest] > gaps.min(initial=LAST)]) + 1
    return [(int(part[0]), int(part[-1]) + 1) for part in np.split(starts, cuts)]


@dataclass(frozen=True)
class Hours:
    """A digest of the rows that begin in each hour: it finds the hours that have other rows now, and keeps no row.

    >>> engine, rows = ColumnEngine(), pa.table({"AGG_TIMESTAMP": [0, 1000, 7_200_000], "n": [1, 2, 3]})
    >>> hours = Hours(engine).and_of(rows)
    >>> hours.others((0, 9_000_000), rows), hours.others((0, 9_000_000), rows.slice(1))
    ([], [(0, 3600000)])
    """

    engine: ColumnEngine
    digests: Mapping[int, int] = field(default_factory=dict[int, int])

    def and_of(self, rows: pa.Table) -> Hours:
        """With further rows, each of which is new."""
        found = self._of(rows)
        return replace(self, digests={**self.digests, **{at: self.digests.get(at, 0) + found[at] for at in found}})

    def without(self, hours: Iterable[Interval]) -> Hours:
        """Without the rows of some hours."""
        gone = {low for low, _ in hours}
        return replace(self, digests={at: each for at, each in self.digests.items() if at not in gone})

    def others(self, within: Interval, rows: pa.Table) -> list[Interval]:
        """The hours that touch a range and have other rows now; these are all `rows` of the hours."""
        now, (low, high) = self._of(rows), around_hours(within)
        known = {at: each for at, each in self.digests.items() if low <= at < high}
        differ = {at for at in known.keys() | now.keys() if known.get(at) != now.get(at)}
        return [(at, at + _HOUR) for at in sorted(differ)]

    def _of(self, rows: pa.Table) -> Mapping[int, int]:
        hour = f'"{TIMESTAMP}" - ("{TIMESTAMP}" % {_HOUR} + {_HOUR}) % {_HOUR}'
        digest = f"sum(hash({', '.join(map(quoted, rows.column_names))}))::VARCHAR"
        found = self.engine.run(f"SELECT {hour}, {digest} FROM rows GROUP BY 1", rows=rows)
        return dict(zip(found[0].to_pylist(), map(int, found[1].to_pylist()), strict=True))


def around_hours(within: Interval) -> Interval:
    """All of the hours that a range touches.

    >>> around_hours((5, 3_600_001))
    (0, 7200000)
    """
    return within[0] // _HOUR * _HOUR, -(-within[1] // _HOUR) * _HOUR
