"""`every a=A(…) -> b=B(k = a.k, …) -> … where timer:within(t)`, of one stream or of several: partial matches are rows of
tables, one for each link, the oldest first.

A batch goes through link after link: what has gone on over one with an event waits from that event on for the next. What has
expired or gone on leaves its table at the end of the batch. All that an event completes is one delivery.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.links import Link
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.evaluate import Columns, carried, evaluate, flags, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Expr
from rollup.engine.rows.patterns.algebra import too_many
from rollup.engine.rows.plans import Filter
from rollup.engine.state import State
from rollup.engine.types import RowType

_STANDING = 3
"""What the row executor counts for the limit of a pattern beside what waits: `->`, `every`, and the filter of `a`."""


@dataclass(frozen=True)
class _Fresh:
    """Partial matches that have just taken an event: its place among those that the pattern may take, when their events came,
    and the fields of those that have names.
    """

    event: Ints
    times: Sequence[Ints]
    fields: Sequence[pa.Array]

    def behind(self, old: pa.Table, link: Link) -> tuple[pa.Table, Ints]:
        """They behind those that wait for a link already, and until when each of all may."""
        waiting = old
        if len(self.event):
            fresh = pa.table([*self.times, *self.fields], schema=link.schema)
            waiting = pa.concat_tables([old, fresh]).combine_chunks()
        return waiting, link.until(waiting)


@dataclass(frozen=True)
class _Coming:
    """The events of a batch that the pattern may take: their fields, when they came, and their places in the batch; which of
    them may begin a match, and which each of the links may take.
    """

    columns: Columns
    came: Ints
    places: Ints
    begins: np.ndarray
    ends: Sequence[np.ndarray]

    @property
    def first(self) -> _Fresh:
        """Those that begin with one of the events."""
        event = np.flatnonzero(self.begins)
        return _Fresh(event, [self.came[event]], _taken(self.columns, event) if len(event) else [])

    def gone_on(self, link: Link, waiting: pa.Table, one: Ints, other: Ints) -> _Fresh:
        """Partial matches that go on over a link, each with the event with which it does."""
        fields = _taken(link.fields(waiting), one)
        if link.binds is not None:
            kinds = link.binds.fields.values()  # the batch may be one of another stream
            fields += _taken(self.columns, other) if len(other) else [pa.array([], carried(kind)) for kind in kinds]
        times = [waiting.column(place).to_numpy()[one] for place in range(link.events)]
        return _Fresh(other, [*times, self.came[other]], fields)


@dataclass(frozen=True)
class _Went:
    """What waits for a link, the events that it has begun with (-1: before the batch), and whether it has gone on and is not
    too old.
    """

    waiting: pa.Table
    begun: Ints
    matched: np.ndarray
    lives: np.ndarray

    @cached_property
    def stays(self) -> np.ndarray:
        """What goes on waiting."""
        return self.lives & ~self.matched


@dataclass(frozen=True)
class Matched(Core):
    """The pattern: which events begin it, and what follows.

    `columns` and `test` see the fields of the events that have names, whose types are `types`; without `columns` the result is
    these events. `part`: which field of an event is the number of its partition, each of which has a pattern of its own.
    """

    begin: Filter
    links: tuple[Link, ...]
    limit: int
    types: tuple[RowType, ...]
    columns: tuple[Expr, ...] | None = None
    test: Expr | None = None
    part: int | None = None

    @cached_property
    def _room(self) -> int:
        """How many states of what waits the row executor allows."""
        return self.limit - _STANDING

    @cached_property
    def _streams(self) -> set[str]:
        return {self.begin.stream, *(link.filter.stream for link in self.links)}

    @property
    def events(self) -> list[tuple[int, int | None]]:
        """By which tags the events are, and the how manieth of them: the only one."""
        return [(tag, None) for tag in range(len(self.types))]

    def start(self, now: int) -> State:
        """Nothing waits."""
        return self.state([link.schema.empty_table() for link in self.links], now)

    @staticmethod
    def state(waiting: Sequence[pa.Table], now: int) -> State:
        """The state where so much waits for each link."""
        return State({f"partial{number}": each for number, each in enumerate(waiting)}, {"now": now})

    def _waiting(self, state: State) -> list[pa.Table]:
        return [state.tables[f"partial{number}"] for number in range(len(self.links))]

    @cached_property
    def _most(self) -> list[int]:
        """The states of what waits for each link, or for a later one where those are more."""
        return [max(each.states for each in self.links[number:]) for number in range(len(self.links))]

    def spare(self, state: State, rows: int) -> bool:
        """Whether so many events cannot make too many partial matches, of whichever partitions they are."""
        return sum(map(_states, self._waiting(state), self._most)) + rows * self._most[0] <= self._room

    @property
    def matches(self) -> bool:
        """It is a pattern."""
        return True

    def roomy(self, state: State, batch: Batch) -> bool:
        """Whether the events of a batch cannot make too many partial matches."""
        if self.spare(state, batch.rows):
            return True
        waiting, begins = self._waiting(state), self._mask(self.begin, batch)
        parts = [self._parts(link, each) for link, each in zip(self.links, waiting, strict=True)]
        fresh = np.zeros(batch.rows, np.int64) if self.part is None else batch.columns[self.part].to_numpy()
        return _fullest([*parts, fresh[begins]], [*self._most, self._most[0]]) <= self._room

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The matches that the batch's events complete. Raises QueryError when too many partial matches wait."""
        before: int = state.scalars["now"]
        now, coming = max(before, batch.now), self._coming(before, batch)
        fresh, went = coming.first, list[_Went]()
        for link, ends, old in zip(self.links, coming.ends, self._waiting(state), strict=True):
            waiting, until = fresh.behind(old, link)
            begun = np.concatenate([np.full(old.num_rows, -1), fresh.event])
            matched, one, other = link.matches(waiting, until, begun, coming.columns, coming.came, ends)
            went.append(_Went(waiting, begun, matched, until > now))
            fresh = coming.gone_on(link, waiting, one, other)
        self._refuse(went, bool(coming.begins.any()))
        left = [each.waiting if each.stays.all() else each.waiting.filter(pa.array(each.stays)) for each in went]
        return self.state(left, now), self._output(fresh.fields, coming.came[fresh.event], coming.places[fresh.event])

    def _coming(self, before: int, batch: Batch) -> _Coming:
        masks = [self._mask(filter, batch) for filter in (self.begin, *(link.filter for link in self.links))]
        places = np.flatnonzero(np.logical_or.reduce(masks))  # other events change nothing
        begins, *ends = (mask[places] for mask in masks)
        columns = batch.columns if len(places) == batch.rows else _taken(batch.columns, places)
        return _Coming(tuple(map(plain, columns)), np.maximum(batch.times[places], before), places, begins, ends)

    def _mask(self, filter: Filter, batch: Batch) -> np.ndarray:
        """Which events pass; those of one stream need not say that they are of it."""
        if batch.stream != filter.stream and len(self._streams) > 1:
            return np.zeros(batch.rows, bool)
        return flags(accepted(filter, None, batch.columns, batch.rows), batch.rows)

    def _refuse(self, went: Sequence[_Went], begins: bool) -> None:
        """Raise QueryError when too many partial matches wait."""
        states = [link.states for link in self.links]
        if sum(map(_states, (each.waiting for each in went), states)) <= self._room:
            return
        masks = [[each.stays for each in went]]
        if begins and (self.begin.equals or self.begin.test is not None):
            # The row executor asks a filter with conditions before what waits, so before the event makes room.
            first, *others = went
            masks.append([first.lives, *(each.lives & (each.begun < 0) for each in others)])
        for each in masks:
            rows = zip(self.links, went, each, strict=True)
            parts = [self._parts(link, one.waiting)[mask] for link, one, mask in rows]
            if _fullest(parts, states) > self._room:
                raise too_many(self.limit)

    def _parts(self, link: Link, waiting: pa.Table) -> Ints:
        """The partition of each partial match."""
        if self.part is None:
            return np.zeros(waiting.num_rows, np.int64)
        return waiting.column(link.events + self.part).to_numpy()

    def _output(self, fields: Sequence[pa.Array], at: Ints, event: Ints) -> Output:
        """The matches, each of the fields of its events."""
        if self.columns is None:
            shown, begin = list[pa.Array](), 0
            for each in self.types:
                end = begin + len(each.fields)
                shown.append(pa.StructArray.from_arrays(fields[begin:end], list(each.fields)))
                begin = end
        else:
            shown = [evaluate(each, fields, len(at)) for each in self.columns]
        mask, found = passing(self.test, fields, len(at)), Output(at, event, tuple(shown))
        return found if mask is None else found.where(mask)


def _taken(columns: Sequence[pa.Array], places: Ints) -> list[pa.Array]:
    return [column.take(pa.array(places)) for column in columns]


def _states(waiting: pa.Table, each: int) -> int:
    """How many states partial matches are, of so many each."""
    return waiting.num_rows * each


def _fullest(parts: Sequence[Ints], states: Sequence[int]) -> int:
    """How many states the partition has that has most; `parts`: of each link those of what waits for it."""
    room = 1 + max(int(each.max(initial=0)) for each in parts)
    counts = (np.bincount(each, minlength=room) * weight for each, weight in zip(parts, states, strict=True))
    return int(sum(counts, np.zeros(room, np.int64)).max())
