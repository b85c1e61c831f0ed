"""What the partitions of a context make of a batch, before it is decided what is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.groups import Ints


def _nothing() -> Ints:
    return np.empty(0, np.int64)


@dataclass(frozen=True)
class Ended:
    """The partitions that end, in that order: until when each lived, and by which event of the batch (or TIMER)."""

    part: Ints = field(default_factory=_nothing)
    until: Ints = field(default_factory=_nothing)
    by: Ints = field(default_factory=_nothing)


@dataclass(frozen=True)
class Arrivals:
    """What comes into partitions, in order: when, by which event of the batch, and into which partition; `begins`: whether
    the partition begins with it, and tells of it before others do.
    """

    at: Ints
    event: Ints
    part: Ints
    begins: np.ndarray


@dataclass(frozen=True)
class Parts:
    """Of partitions that are numbered for this batch alone, those that there were first: what comes into them, and the rows
    made of it, each with its instant, arrival, partition, group (None: that is the partition) and what the projection sees.

    `nothing`: what it sees of a total of no rows, of some partitions, the last ones. `begins`: the events with which
    partitions begin, where these never end. `regrouped`: the numbers that groups have after the batch; None: the same.
    """

    count: int
    arrivals: Arrivals
    at: Ints
    arrival: Ints
    part: Ints
    group: Ints | None
    columns: Sequence[pa.Array]
    nothing: Sequence[pa.Array]
    ended: Ended = field(default_factory=Ended)
    begins: Ints | None = None
    regrouped: Ints | None = None

    @property
    def alive(self) -> np.ndarray:
        """Which partitions live on."""
        lives = np.ones(self.count, bool)
        lives[self.ended.part] = False
        return lives


def of_no_rows(core: Folded, part: Ints) -> list[pa.Array]:
    """What a projection sees of groups without rows that are partitions, without their properties."""
    return [pa.array(part), *(pa.repeat(each[0], len(part)) for each in core.nothing())]
