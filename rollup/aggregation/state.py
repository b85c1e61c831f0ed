"""The state of an aggregation: its clocks and open rows. Nothing else is remembered."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import pyarrow as pa

from rollup.core.calendar import Duration
from rollup.plan.aggregation import Aggregation


@dataclass(frozen=True)
class State:
    """What a step starts from and gives back.

    `clocks[level]` is the greatest bucket start that has arrived at that level, None before the first; `open[level]`
    are the rows still open there (`Aggregation.state_schema`), each (bucket, zone, keys) once. `resume` is set after a
    rebuild without commit record: events before it are re-sent ones and are dropped until the first at or after it.
    """

    clocks: Mapping[Duration, int | None]
    open: Mapping[Duration, pa.Table]
    resume: int | None = None

    @classmethod
    def empty(cls, aggregation: Aggregation) -> State:
        """The state before the first event."""
        rows = aggregation.state_schema.empty_table()
        return cls(dict.fromkeys(aggregation.levels), dict.fromkeys(aggregation.levels, rows))

    @property
    def open_rows(self) -> Mapping[Duration, int]:
        """How many rows are open at each level."""
        return {level: table.num_rows for level, table in self.open.items()}
