"""What brings outputs: the clock, or so many rows."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Const, Variable
from rollup.engine.rows.selects.rate import Schedule
from rollup.engine.state import State
from rollup.engine.timers import edge

_COUNTED = """
def core(arrived, left, inserted, removed, limit, ends):
    n = 0
    for i in range(len(arrived)):
        inserted += arrived[i]
        removed += left[i]
        if inserted >= limit or removed >= limit:
            ends[n] = i
            n, inserted, removed = n + 1, 0, 0
    return n, inserted, removed
"""


@dataclass(frozen=True)
class Clock:
    """The instants of outputs that the clock brings: in whole spans from the first change on, or by a schedule; or none."""

    span: int = 0
    schedule: Schedule | None = None

    @property
    def runs(self) -> bool:
        """Whether the clock brings any."""
        return self.span > 0 or self.schedule is not None

    def first(self, at: int) -> int | None:
        """The first, when the first change is at that instant."""
        return at + self.span if self.schedule is None else self.schedule.after(at)

    def later(self, due: int, now: int) -> int | None:
        """The next after `now`, when one was due earlier."""
        return edge(due, self.span, now) if self.schedule is None else self.schedule.after(now)

    def until(self, due: int, now: int) -> tuple[Ints, int | None]:
        """Those from the one that is due next up to `now`, and the next then."""
        if self.schedule is None:
            ticks = np.arange(due, now + 1, self.span)
            return ticks, due + self.span * len(ticks)
        found, after = list[int](), due
        while after is not None and after <= now:
            found.append(after)
            after = self.schedule.after(after)
        return np.array(found, np.int64), after


@dataclass(frozen=True)
class Counts:
    """When the clock is due; rows that have come and left since the last output; how many rows brought one, as was known last."""

    due: int | None = None
    inserted: int = 0
    removed: int = 0
    limit: int = 0

    @classmethod
    def of(cls, state: State) -> Counts:
        """Those of a state; an earlier version's had fewer."""
        return cls(**{each.name: state.scalars[each.name] for each in fields(cls) if each.name in state.scalars})

    def ends(self, come: Ints, left: Ints) -> tuple[Ints, Counts]:
        """The changes that bring outputs, of some with which so many rows come and leave."""
        ends = np.empty(len(come), np.int64)
        n, inserted, removed = map(int, loop(_COUNTED)(come, left, self.inserted, self.removed, self.limit, ends))
        return ends[:n], replace(self, inserted=inserted, removed=removed)


@dataclass(frozen=True)
class Pacing:
    """What brings outputs: the clock, or so many `rows`."""

    clock: Clock
    rows: Const | Variable | None = None

    def known(self, counts: Counts) -> Counts:
        """The counts, with how many rows bring an output now: a variable that is null says nothing, and none less than one."""
        if not isinstance(self.rows, Const):
            return counts
        return replace(counts, limit=max(counts.limit if self.rows.value is None else self.rows.value, 1))
