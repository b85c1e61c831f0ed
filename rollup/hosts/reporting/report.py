"""What a batch has been: the figures that lines, logs and metrics are made of."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pyarrow as pa

    from rollup.hosts.pipeline import Advance, Pipeline
    from rollup.hosts.trailing import Made


@dataclass(frozen=True)
class BatchReport:
    """One batch: when it began and ended (seconds since the epoch), and what each aggregation did with it."""

    stream: str
    number: int
    events: int
    began: float
    ended: float
    letters: pa.Table
    advances: Mapping[str, Advance]
    pipelines: Mapping[str, Pipeline]
    taken: int = 0
    """How many of the records were events."""

    @property
    def dead(self) -> int:
        """How many dead letters there were."""
        return self.letters.num_rows

    def completed(self, made: Mapping[str, Made]) -> BatchReport:
        """When commits were made after the batch had handed them over: with their length, ended when they were."""
        advances = {
            name: replace(advance, commit_seconds=made[name].seconds) if name in made else advance
            for name, advance in self.advances.items()
        }
        return replace(self, advances=advances, ended=max([self.ended, *(each.at for each in made.values())]))

    @property
    def late(self) -> dict[str, int]:
        """Late events by what happened to them, over all aggregations."""
        total: dict[str, int] = {}
        for advance in self.advances.values():
            for kind, events in advance.counts.items():
                total[kind] = total.get(kind, 0) + events
        return total

    @property
    def clock(self) -> int | None:
        """The newest root clock of the aggregations, ms since the epoch."""
        clocks = (pipeline.clock for pipeline in self.pipelines.values())
        return max((clock for clock in clocks if clock is not None), default=None)
