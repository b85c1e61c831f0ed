"""How the parts of a batch are put in order and their events numbered: by the job, and by whoever reads its past again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa

from rollup.aggregation.partials import FIRST, LAST
from rollup.core.untyped import pc
from rollup.hosts.spark.tasks.results import Kind, Result

_ROOM = (1 << 63) - (1 << 60)
"""Arrivals beyond this number leave too little of 64 bits for what follows."""


@dataclass(frozen=True)
class Numbering:
    """Where each part begins, in the order of the parts; how many events there are; whether the source numbers them.

    An event takes `scale` numbers, see `Program.numbered`.
    """

    bases: Mapping[str, int]
    events: int
    numbered: bool
    scale: int = 1

    @classmethod
    def of(cls, results: Sequence[Result], scale: int = 1) -> Numbering:
        """From the results of the tasks of a batch.

        >>> Numbering.of([Result(Kind.PART, "S", origin, position, 5) for position, origin in ((2, "b"), (1, "a"))])
        Numbering(bases={'a': 0, 'b': 5}, events=10, numbered=False, scale=1)
        """
        found = [(each.position, each.origin, each.rows) for each in results if each.kind is Kind.PART]
        bases, events = dict[str, int](), 0
        for position, origin, count in sorted(set(found)):
            bases[origin] = 0 if position < 0 else events * scale
            events += count
        numbered = any(position < 0 for position, _, _ in found)
        if numbered:  # two tasks may give as many of a topic
            events = sum(count for _, _, count in found)
        return cls(bases, events, numbered, scale)

    @property
    def order(self) -> Mapping[str, int]:
        """The place of each part among them."""
        return {origin: index for index, origin in enumerate(self.bases)}

    def bounds(self, partials: Sequence[pa.Table], known: int) -> tuple[int, int]:
        """(what to add to the arrivals of partial rows, the first arrival of the next batch); `known` is that of this one.

        A source with numbers of its own may begin again where the batch before ended, or before it: what comes in a
        later batch has arrived later.
        """
        if not self.numbered:
            return known, known + self.events * self.scale
        filled = [table for table in partials if table.num_rows]
        base = max(0, known - min((pc.min(table[FIRST]).as_py() for table in filled), default=known))
        return base, max([known, *(pc.max(table[LAST]).as_py() + base + 1 for table in filled)])

    def too_wide(self, partials: Sequence[pa.Table], known: int) -> bool:
        """Whether arrivals that a source numbers by time are so far apart that 64 bits would run out."""
        return self.numbered and self.bounds(partials, known)[1] > _ROOM
