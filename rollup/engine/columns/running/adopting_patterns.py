"""The partial matches of a pattern, read from the row executor's tree of states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rollup.engine.columns.cores.links import Link
from rollup.engine.columns.cores.matched import Matched
from rollup.engine.columns.running.adopting_folds import MATCHERS, table_of
from rollup.engine.row import Row
from rollup.engine.state import State


def matched_state(core: Matched, kept: Any, now: int) -> State:
    """What waits, from the snapshot of the statement."""
    return core.state(_tables(core, [_Waiting.of(core, kept)], now), now)


def matched_in_partitions(core: Matched, kept: Sequence[Any], now: int) -> State:
    """What waits in each partition, from the snapshots of the statement in them."""
    return core.state(_tables(core, [_Waiting.of(core, each, (number,)) for number, each in enumerate(kept)], now), now)


@dataclass(frozen=True)
class _Waiting:
    """What waits for each link: the number of its state, which says which is older, the time of the events from which on
    something gives it up, and the events that have names, each with `more` fields.
    """

    core: Matched
    more: tuple[Any, ...]
    found: list[list[tuple[int, Mapping[int, int], list[Row]]]] = field(default_factory=list[Any])

    @staticmethod
    def of(core: Matched, kept: Any, more: tuple[Any, ...] = ()) -> _Waiting:
        """From the snapshot of a statement."""
        waiting = _Waiting(core, more, [[] for _ in core.links])
        _, root = kept[MATCHERS][0][1]
        if root is not None:
            waiting.read(root, {})
        for each in waiting.found:
            each.sort(key=lambda found: found[0])
        return waiting

    def read(self, saved: Any, times: Mapping[int, int]) -> None:
        """A state and what is below it."""
        number, node, begin, own, below = saved
        for place, link in enumerate(self.core.links):
            times = {**times, **{each.since: own[0] - each.span for each in link.guards if each.node == node}}
            if link.node == node:
                rows = [Row(row.id, (*row.values, *self.more)) for row in begin[: len(link.types)]]
                self.found[place].append((number, times, rows))
        for each in below:
            self.read(each, times)


def _tables(core: Matched, parts: Sequence[_Waiting], now: int) -> list[pa.Table]:
    waiting = ([each for part in parts for each in part.found[place]] for place in range(len(core.links)))
    return [_table(link, each, now) for link, each in zip(core.links, waiting, strict=True)]


def _table(link: Link, waiting: Sequence[tuple[int, Mapping[int, int], list[Row]]], now: int) -> pa.Table:
    """Those that wait for a link; when an event came that gives nothing up does not matter."""
    times = [pa.array([known.get(i, now) for _, known, _ in waiting], pa.int64()) for i in range(link.events)]
    events = [table_of([rows[tag] for _, _, rows in waiting], kind) for tag, kind in enumerate(link.types)]
    return pa.table([*times, *(column for each in events for column in each.columns)], schema=link.schema)
