"""What the partitions of a context make of a batch, before it is decided what is shown of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.groups import Ints
from rollup.engine.state import State


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


class Parting(Protocol):
    """A core of a context, each of whose partitions is shown at outputs of its own."""

    def start(self, now: int) -> State:
        """The partitions that there are from the beginning."""
        ...

    def partings(self, state: State, batch: Batch, used: Ints, since: int) -> tuple[State, Parts]:
        """The state after a batch, and what partitions make of it. `used`: groups that are waited for; `since`: the first
        partition of which it is not known what is shown of no rows.
        """
        ...
