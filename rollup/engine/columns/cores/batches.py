"""What goes into a core and what comes out of it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from rollup.core.errors import QueryError
from rollup.engine.columns.groups import Ints
from rollup.engine.state import State

TIMER = -1
"""The event of rows that no event brought about but the clock."""


@dataclass(frozen=True)
class Batch:
    """Events of one stream in order: a column a field, the instant of each event, and the instant the clock ends at.

    `stream` says which, to a core that reads several.

    >>> Batch.of([pa.array(["a", "b"])], [5, 5]).now
    5
    """

    columns: tuple[pa.Array, ...]
    times: Ints
    now: int
    stream: str = ""

    @classmethod
    def of(cls, columns: Sequence[pa.Array], times: Any, now: int | None = None, stream: str = "") -> Batch:
        """A batch; the clock ends at the last event unless `now` says later.

        Raises QueryError for times that go back.
        """
        instants = np.asarray(times, np.int64)
        if len(instants) > 1 and bool((instants[1:] < instants[:-1]).any()):
            raise QueryError("the times of a batch go back", hint="order its events by their instants")
        last = int(instants[-1]) if len(instants) else 0
        return cls(tuple(columns), instants, last if now is None else max(now, last), stream)

    @property
    def rows(self) -> int:
        """How many events."""
        return len(self.times)

    def part(self, begin: int, end: int) -> Batch:
        """The events from one place up to another; the clock ends where they end."""
        now = self.now if end == self.rows else int(self.times[end - 1])
        columns = tuple(column.slice(begin, end - begin) for column in self.columns)
        return Batch(columns, self.times[begin:end], now, self.stream)


@dataclass(frozen=True)
class Output:
    """Rows of an insert stream, in order: their instants, the batch's event that brought each (or TIMER), their columns.

    Rows with one instant and one event are one delivery. `statement` says, of a family, which of its statements a row
    is for.
    """

    at: Ints
    event: Ints
    columns: tuple[pa.Array, ...]
    statement: Ints | None = None

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.at)

    def where(self, mask: pa.Array) -> Output:
        """The rows that a mask without nulls lets through."""
        kept = mask.to_numpy(zero_copy_only=False)
        statement = None if self.statement is None else self.statement[kept]
        return Output(self.at[kept], self.event[kept], tuple(c.filter(mask) for c in self.columns), statement)

    def deliveries(self, apart: bool = False) -> Iterator[tuple[int, int, list[tuple[Any, ...]]]]:
        """Instant, event and values of each delivery; `apart`: each row is one, as those of partitions are.

        >>> output = Output(np.array([5, 5]), np.array([0, 0]), (pa.array(["a", "b"]),))
        >>> list(output.deliveries()), len(list(output.deliveries(apart=True)))
        ([(5, 0, [('a',), ('b',)])], 2)
        """
        rows = zip(*(column.to_pylist() for column in self.columns), strict=True)
        place, found = (-1, -2), list[tuple[Any, ...]]()
        for at, event, row in zip(self.at.tolist(), self.event.tolist(), rows, strict=True):
            if found and (apart or (at, event) != place):
                yield *place, found
                found = []
            place = (at, event)
            found.append(row)
        if found:
            yield *place, found


class Core(Protocol):
    """A statement, or a family of statements, over columns."""

    def start(self, now: int) -> State:
        """The state before the first event."""
        ...

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The state after a batch, and the rows that it brought. The given state stays as it was."""
        ...
