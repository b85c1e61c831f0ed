"""What goes into a core and what comes out of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.errors import QueryError
from rollup.engine.columns.evaluate import carried
from rollup.engine.columns.groups import Ints
from rollup.engine.rows.plans import Emitted
from rollup.engine.types import RowType

Values = list[tuple[Any, ...]]
Place = tuple[int, int, int, bool]
"""Of a delivery: its instant, event and partition, and whether it is told before others are told of the event."""
TIMER = -1
"""The event of rows that no event brought about but the clock; less, of a change before the last one at that instant."""


@dataclass(frozen=True)
class Batch:
    """Events of one stream in order: a column a field, the instant of each event, and the instant the clock ends at.

    `stream` says which, to a core that reads several. `given`: the values of each event, where a field has no column.

    >>> Batch.of([pa.array(["a", "b"])], [5, 5]).now
    5
    """

    columns: tuple[pa.Array, ...]
    times: Ints
    now: int
    stream: str = ""
    given: Sequence[Sequence[Any]] | None = None

    @classmethod
    def of(
        cls,
        columns: Sequence[pa.Array],
        times: Any,
        now: int | None = None,
        stream: str = "",
        given: Sequence[Sequence[Any]] | None = None,
    ) -> Batch:
        """A batch; the clock ends at the last event unless `now` says later.

        Raises QueryError for times that go back.
        """
        instants = np.asarray(times, np.int64)
        if len(instants) > 1 and bool((instants[1:] < instants[:-1]).any()):
            raise QueryError("the times of a batch go back", hint="order its events by their instants")
        last = int(instants[-1]) if len(instants) else 0
        return cls(tuple(columns), instants, last if now is None else max(now, last), stream, given)

    @classmethod
    def nothing(cls, types: Sequence[pa.DataType], now: int) -> Batch:
        """No events of a stream whose fields are of those types, until the clock says `now`."""
        return cls.of([pa.array([], kind) for kind in types], [], now)

    def on(self, stream: str, type: RowType) -> Batch:
        """It, if it is of a stream, whose events are of that type; otherwise no events of that one."""
        return self if self.stream == stream else Batch.nothing([*map(carried, type.fields.values())], self.now)

    @property
    def rows(self) -> int:
        """How many events."""
        return len(self.times)

    def values(self, places: Ints) -> Iterable[Sequence[Any]]:
        """The values of the events at some places."""
        if self.given is not None:
            return [self.given[place] for place in places.tolist()]
        taken = self.columns if len(places) == self.rows else [c.take(pa.array(places)) for c in self.columns]
        lists = [column.to_pylist() for column in taken]
        return zip(*lists, strict=True) if lists else itertools.repeat((), len(places))

    def part(self, begin: int, end: int) -> Batch:
        """The events from one place up to another; the clock ends where they end."""
        now = self.now if end == self.rows else int(self.times[end - 1])
        columns = tuple(column.slice(begin, end - begin) for column in self.columns)
        return Batch(columns, self.times[begin:end], now, self.stream)


@dataclass(frozen=True)
class Output:
    """Rows in order: their instants, the batch's event that brought each (or TIMER), their columns.

    Rows with one instant and one event are one delivery.

    * `statement`: which statement of a family a row is for.
    * `sign`: a row is an insert (1) or a remove row (-1), remove rows last in a delivery. None: all are insert rows.
    * `ticks`: the instants and events of all deliveries, also of those without rows. None: rows make them.
    * `part`: the partition of each row. The rows of several partitions are as many deliveries.
    * `begins`: the events with which partitions began.
    * `early`: rows of partitions that begin or end with the event, emitted before those of others. `ticks` then have the
      partition and this as well.
    """

    at: Ints
    event: Ints
    columns: tuple[pa.Array, ...]
    statement: Ints | None = None
    sign: np.ndarray | None = None
    ticks: tuple[Ints, ...] | None = None
    part: Ints | None = None
    begins: Ints | None = None
    early: np.ndarray | None = None

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.at)

    @property
    def delivers(self) -> bool:
        """Whether there is any delivery."""
        return self.rows > 0 or (self.ticks is not None and len(self.ticks[0]) > 0)

    def where(self, mask: pa.Array) -> Output:
        """The rows that a mask without nulls lets through."""
        return self._taken(mask.to_numpy(zero_copy_only=False), tuple(column.filter(mask) for column in self.columns))

    def at_places(self, places: Ints) -> Output:
        """The rows at some places."""
        taken = pa.array(places)
        return self._taken(places, tuple(column.take(taken) for column in self.columns))

    def _taken(self, which: np.ndarray | slice, columns: tuple[pa.Array, ...]) -> Output:
        statement = None if self.statement is None else self.statement[which]
        sign = None if self.sign is None else self.sign[which]
        part = None if self.part is None else self.part[which]
        early = None if self.early is None else self.early[which]
        return Output(self.at[which], self.event[which], columns, statement, sign, self.ticks, part, self.begins, early)

    @property
    def parts(self) -> set[int]:
        """The partitions of which it tells."""
        told = [] if self.part is None else self.part.tolist()
        return {*told, *(self.ticks[2].tolist() if self.ticks is not None and len(self.ticks) > 2 else ())}

    @property
    def in_turn(self) -> tuple[Output, Output | None]:
        """What is told before others are told of the event, and what is told in turn; None: all is told before."""
        if self.early is None:
            return self, None
        early, ticks = self.early, (None, None)
        if self.ticks is not None:
            ticks = tuple(tuple(each[self.ticks[3] == now] for each in self.ticks) for now in (True, False))
        parts = (self.at_places(np.flatnonzero(early == now)) for now in (True, False))
        before, later = (replace(each, ticks=own) for each, own in zip(parts, ticks, strict=True))
        return before, later

    def of_part(self, part: int) -> Output:
        """What it tells of a partition."""
        assert self.part is not None
        found = self.at_places(np.flatnonzero(self.part == part))
        if self.ticks is None:
            return found
        which = self.ticks[2] == part
        return replace(found, ticks=tuple(each[which] for each in self.ticks))

    def numbered(self, numbers: Ints) -> Output:
        """With the numbers of partitions for their places."""
        assert self.part is not None
        ticks = self.ticks
        if ticks is not None and len(ticks) > 2:
            ticks = (*ticks[:2], numbers[ticks[2]], *ticks[3:])
        return replace(self, part=numbers[self.part], ticks=ticks)

    def emitted(self, what: Emitted) -> Output:
        """What listeners get of it: of what leaves alone, the rows as if they came."""
        if what != "old" or self.sign is None:
            return self
        return replace(self.at_places(np.flatnonzero(self.sign < 0)), sign=None)

    def shared(self, made: Emitted, what: Emitted) -> Output:
        """What one of those gets for whom it was `made`: of what comes and what leaves both, or either as if it came."""
        if what == made:
            return self
        if self.sign is None:
            return self if what == "new" else self.at_places(np.empty(0, np.int64))
        return replace(self.at_places(np.flatnonzero(self.sign > 0 if what == "new" else self.sign < 0)), sign=None)

    @property
    def delivered(self) -> Output:
        """The changes that the clock makes at one instant as one delivery."""
        return replace(self, event=np.maximum(self.event, TIMER)) if (self.event < TIMER).any() else self

    def deliveries(self, apart: bool = False) -> Iterator[tuple[int, int, Values, Values]]:
        """Instant, event, what comes and what leaves of each delivery; `apart`: each row is one.

        >>> output = Output(np.array([5, 5]), np.array([0, 0]), (pa.array(["a", "b"]),), sign=np.array([1, -1]))
        >>> list(output.deliveries()), len(list(output.deliveries(apart=True)))
        ([(5, 0, [('a',)], [('b',)])], 2)
        """
        for (at, event, _, _), new, old in self.placed(apart):
            yield at, event, new, old

    def placed(self, apart: bool = False) -> Iterator[tuple[Place, Values, Values]]:
        """What comes and what leaves of each delivery, with its place."""
        if self.ticks is None:
            yield from self._of_rows(apart)
            return
        found = {place: (place, new, old) for place, new, old in self._of_rows(False)}
        for at, event, *of_part in zip(*(each.tolist() for each in self.ticks), strict=True):
            part, early = of_part or (0, False)
            tick = at, event, part, early and self.early is not None
            yield found.get(tick, (tick, Values(), Values()))

    def _of_rows(self, apart: bool) -> Iterator[tuple[Place, Values, Values]]:
        columns = [column.to_pylist() for column in self.columns]
        rows = zip(*columns, strict=True) if columns else itertools.repeat((), self.rows)
        signs = itertools.repeat(1, self.rows) if self.sign is None else self.sign.tolist()
        parts = itertools.repeat(0, self.rows) if self.part is None else self.part.tolist()
        early = itertools.repeat(False, self.rows) if self.early is None else self.early.tolist()
        place, new, old = (-1, -2, 0, False), Values(), Values()
        for *found, sign, row in zip(self.at.tolist(), self.event.tolist(), parts, early, signs, rows, strict=True):
            if (new or old) and (apart or tuple(found) != place):
                yield place, new, old
                new, old = Values(), Values()
            place = (found[0], found[1], found[2], found[3])
            (new if sign > 0 else old).append(row)
        if new or old:
            yield place, new, old
