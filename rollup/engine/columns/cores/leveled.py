"""Grouping sets, rollup and cube: each set of keys is a level, and each level aggregates over the same window.

State: that of each level, by its number. The rows of all levels are put in order and projected together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.covering import first, unshown
from rollup.engine.columns.cores.folded import Folded, shifted
from rollup.engine.columns.cores.over_stream import over_stream
from rollup.engine.columns.cores.projecting import Made
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.evaluate import arrow, plain
from rollup.engine.expressions import Expr, Field, walk
from rollup.engine.rows.plans import Emitted, Select
from rollup.engine.rows.selects.pergroup import Grouping
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.state import State
from rollup.engine.types import INT, RowType


@dataclass(frozen=True)
class Leveled:
    """Several levels over the same events and window. The projection sees the slots of `Grouping`: all dimensions, null where a
    level has not the dimension, the calls, the level.
    """

    levels: tuple[Folded, ...]
    projection: Projection
    emitted: Emitted
    grouping: Grouping

    @property
    def window(self) -> WindowSpec | None:
        """The window of every level."""
        return self.levels[0].window

    def start(self, now: int) -> State:
        """Empty windows."""
        return self.holding([level.start(now) for level in self.levels])

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The rows of each change, level by level."""
        states = self.states(state)
        taken = self.levels[0].taken(states[0], batch)
        return self._finished([level.made(each, taken) for level, each in zip(self.levels, states, strict=True)])

    def released(self, state: State, nothing: Batch) -> tuple[State, Output]:
        """A batch that is due is let out, late, and no event comes."""
        found = list[tuple[State, Made]]()
        for level, each in zip(self.levels, self.states(state), strict=True):
            assert isinstance(level, Queued)
            found.append(level.released(each, level.taken(each, nothing)))
        return self._finished(found)

    def holding(self, states: Sequence[State]) -> State:
        """The state of all levels from that of each."""
        return State.holding({str(n): each for n, each in enumerate(states)}, {"now": states[0].scalars["now"]})

    def states(self, state: State) -> list[State]:
        """The state of each level."""
        return list(state.held().values())

    def _finished(self, found: Sequence[tuple[State, Made]]) -> tuple[State, Output]:
        states = [level.compacted(after) for level, (after, _) in zip(self.levels, found, strict=True)]
        made = self._together([each for _, each in found])
        return self.holding(states), made.output(self.projection).emitted(self.emitted)

    def slots(self, level: int, key: Sequence[Any], values: Sequence[Any]) -> tuple[Any, ...]:
        """What the projection sees of one group."""
        known = dict(zip(self.grouping.sets[level], key, strict=True))
        return (*map(known.get, range(len(self.grouping.dimensions))), *values, level)

    def _together(self, made: Sequence[Made]) -> Made:
        """The rows of all levels: change by change, of each first what comes, and of that level by level."""
        at = np.concatenate([each.at for each in made])
        event = np.concatenate([each.event for each in made if each.event is not None])
        signs = [each.sign for each in made if each.sign is not None]
        sign = np.concatenate(signs) if signs else None
        level = np.repeat(np.arange(len(made)), [len(each.at) for each in made])
        seen = zip(*(self._seen(number, each) for number, each in enumerate(made)), strict=True)
        columns = [pa.concat_arrays(parts) for parts in seen]
        order = np.lexsort((level, np.zeros(len(at)) if sign is None else -sign, event, at))
        return Made(made[0].taken, at, event, columns, sign).at_places(order)

    def _seen(self, level: int, made: Made) -> list[pa.Array]:
        """The slots of a level's rows as columns."""
        dimensions, sets = self.grouping.dimensions, self.grouping.sets[level]
        keys, values = made.columns[: len(sets)], made.columns[len(sets) :]
        known = dict(zip(sets, keys, strict=True))
        rows = len(made.at)
        return [
            *(
                plain(known[place]) if place in known else pa.nulls(rows, arrow(dimension.type))
                for place, dimension in enumerate(dimensions)
            ),
            *map(plain, values),
            pa.repeat(pa.scalar(level, arrow(INT)), rows),
        ]


def leveled(plan: Select, stream: RowType) -> Leveled | str:
    """The core of aggregates by several sets of keys over a stream, or the first reason against it."""
    grouping, projection = plan.grouping, plan.projection
    assert grouping is not None
    if grouping.own:
        return "aggregates with a grouping of their own"
    used = (*projection.columns, *([projection.having] if projection.having is not None else []))
    if any(isinstance(each, Field) for column in used for each in walk(column)):
        return "a column that is neither a key nor an aggregate"
    if any(call.aggregate.listed for call in grouping.calls):
        return "lists of what a window holds in grouping sets"
    reason = first(map(unshown, used))
    if reason is not None:
        return reason
    levels = list[Folded]()
    for places in grouping.sets:
        core = over_stream(_level(plan, tuple(grouping.dimensions[place] for place in places)), stream)
        if isinstance(core, str):
            return core
        assert isinstance(core, Folded)
        levels.append(core)
    return Leveled(tuple(levels), shifted(projection, 0), plan.emitted, grouping)


def _level(plan: Select, keys: tuple[Expr, ...]) -> Select:
    """The statement grouped by some keys alone, of which nothing is projected."""
    assert plan.grouping is not None
    grouping = Grouping(keys, (tuple(range(len(keys))),), plan.grouping.calls)
    return replace(plan, grouping=grouping, projection=Projection(()))
