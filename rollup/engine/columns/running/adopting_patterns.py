"""The partial matches of a pattern, and the tries of one that begins anew, read from the row executor's tree of states."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pyarrow as pa

from rollup.engine.columns.cores.links import Link
from rollup.engine.columns.cores.matched import Matched
from rollup.engine.columns.cores.renewing import Renewing
from rollup.engine.columns.cores.renewing_loop import Stage
from rollup.engine.columns.evaluate import field as column
from rollup.engine.columns.running.adopting_folds import MATCHERS, table_of
from rollup.engine.row import Row
from rollup.engine.state import State


def matched_state(core: Matched | Renewing, kept: Any, now: int) -> State:
    """What waits, from the snapshot of the statement."""
    if isinstance(core, Renewing):
        return core.state(_tries(core, [_Try.of(core, kept)], [()]), now)
    return core.state(_tables(core, [_Waiting.of(core, kept)], now), now)


def matched_in_partitions(core: Matched | Renewing, kept: Sequence[Any], now: int) -> State:
    """What waits in each partition, from the snapshots of the statement in them."""
    if isinstance(core, Renewing):
        found = [_Try.of(core, each) for each in kept]
        return core.state(_tries(core, found, [(number,) for number in range(len(kept))]), now)
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


@dataclass
class _Try:
    """Where a try stands: its stage, what that has got, when the stages before were over, and its events by tag."""

    core: Renewing
    stage: int = 0
    got: int = 0
    ended: dict[int, int] = field(default_factory=dict[int, int])
    events: dict[int, Any] = field(default_factory=dict[int, Any])

    @staticmethod
    def of(core: Renewing, kept: Any) -> _Try:
        """From the snapshot of a statement."""
        found = _Try(core)
        _, root = kept[MATCHERS][0][1]
        found.read(root)
        return found

    def read(self, saved: Any) -> None:
        """A state and what is below it."""
        _, node, begin, own, below = saved
        self.take(begin)
        guards = (guard for stage in self.core.stages for guard in stage.guards if guard.node == node)
        self.ended.update({guard.since: own[0] - guard.span for guard in guards})
        for place, stage in enumerate(self.core.stages):
            if stage.node == node:
                self.stage = place
                self.at(stage, own)
                return
        for each in below:
            self.read(each)

    def at(self, stage: Stage, own: Any) -> None:
        """What the stage has got at which it stands."""
        if stage.kind in ("times", "until"):
            self.got, lists, *_ = own
            self.events.update(lists)
        elif stage.kind == "all" and own is not None:
            takings = (each for each in stage.takings if not each.fails)
            for bit, taking in enumerate(takings):
                for match in own[1][taking.child]:
                    self.got |= 1 << bit
                    self.take(match)

    def take(self, match: Sequence[Any]) -> None:
        """The events that a match has."""
        self.events.update({tag: value for tag, value in enumerate(match) if value is not None})


def _tries(core: Renewing, found: Sequence[_Try], more: Sequence[tuple[int, ...]]) -> pa.Table:
    """Those that have any event, each of whose events has some `more` fields; the last of these says of which partition."""
    parts = [number for number, each in enumerate(found) if each.stage or each.got]
    held = [found[number] for number in parts]
    ended = [[each.ended.get(place, 0) for each in held] for place in range(len(core.stages) - 1)]
    numbers = ([each.stage for each in held], [each.got for each in held], *ended)
    columns = [pa.array(each, pa.int64()) for each in (parts, *numbers)]
    for slot in core.slots:
        events = [event_of(each.events.get(slot.tag), slot.nth) for each in held]
        columns.append(pa.array([each is not None for each in events], pa.bool_()))
        values = [
            (None,) * len(slot.type.fields) if each is None else (*each.values, *more[number])
            for number, each in zip(parts, events, strict=True)
        ]
        columns += [
            column([each[place] for each in values], kind) for place, kind in enumerate(slot.type.fields.values())
        ]
    return pa.table(columns, schema=core.schema)


def event_of(value: Any, nth: int | None) -> Row | None:
    """The event of a slot, out of what its tag has."""
    if nth is None:
        return value
    return value[nth] if value is not None and nth < len(value) else None


def _tables(core: Matched, parts: Sequence[_Waiting], now: int) -> list[pa.Table]:
    waiting = ([each for part in parts for each in part.found[place]] for place in range(len(core.links)))
    return [_table(link, each, now) for link, each in zip(core.links, waiting, strict=True)]


def _table(link: Link, waiting: Sequence[tuple[int, Mapping[int, int], list[Row]]], now: int) -> pa.Table:
    """Those that wait for a link; when an event came that gives nothing up does not matter."""
    times = [pa.array([known.get(i, now) for _, known, _ in waiting], pa.int64()) for i in range(link.events)]
    events = [table_of([rows[tag] for _, _, rows in waiting], kind) for tag, kind in enumerate(link.types)]
    return pa.table([*times, *(column for each in events for column in each.columns)], schema=link.schema)
