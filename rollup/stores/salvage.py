"""What a store still has of an aggregation whose newest commit cannot be taken up."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rollup.aggregation.state import State
from rollup.core.calendar import Duration
from rollup.plan.aggregation import TIMESTAMP

Clocks = Mapping[Duration, int | None]
Open = Mapping[Duration, pa.Table]


@dataclass(frozen=True)
class Salvage:
    """The newest record (None when there is none, or its place in the streams cannot be read), its number, what it says,
    and the open rows that belong to it; what is None cannot be read. `gone` are tables that commits were written to,
    `broken` which of those have rows of a level, or late events (`LATE`), by suffix.
    """

    number: int
    source: Mapping[str, Any] | None
    clocks: Clocks | None
    open: Open | None
    resume: int | None
    gone: frozenset[str]
    broken: frozenset[str]

    @property
    def whole(self) -> bool:
        """Whether there is nothing to mend."""
        return not self.gone and None not in (self.source, self.clocks, self.open)

    def state(self, newest: Mapping[Duration, Mapping[str, int]]) -> State | None:
        """The state of the record, its open rows included; None when it cannot be told. `newest` has the newest bucket
        starts of each level's table.

        Clocks that cannot be read are those that rows tell: the root's newest bucket is always open, and a coarser
        level's clock is the newest row that the finer one has handed on.
        """
        if self.open is None or (self.clocks is None and self.gone):
            return None
        clocks = self.clocks if self.clocks is not None else _told(self.open, newest)
        return None if clocks is None else State(clocks, self.open, self.resume)


def _told(opened: Open, newest: Mapping[Duration, Mapping[str, int]]) -> Clocks | None:
    root, *coarser = opened
    if not opened[root].num_rows:
        return None
    clocks: dict[Duration, int | None] = {root: max(opened[root][TIMESTAMP].to_pylist())}
    return clocks | {
        level: max(newest[finer].values(), default=None) for finer, level in zip(opened, coarser, strict=False)
    }
