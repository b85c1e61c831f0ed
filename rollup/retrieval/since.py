"""What may be different between two commits of an aggregation: where its open buckets began, and which stored rows changed.

A store needs to remember little for this. The clocks of a commit say which buckets were closed. Stored rows of closed
buckets change only by corrections, replays, repairs and retention, and a store knows the times of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from rollup.core.calendar import Duration, bucket_end, bucket_start
from rollup.plan.aggregation import Aggregation

FIRST, LAST = -(2**62), 2**62
"""Before and behind every bucket start."""
Interval = tuple[int, int]
"""All bucket starts from the first number on that are less than the second."""
_DAY = 86_400_000
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
