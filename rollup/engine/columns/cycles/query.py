"""A running query over columns: like one on rows it is offered events and asked for the batches of a cycle, and it takes
whole batches of many instants."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Output
from rollup.engine.columns.cycles.clocked import CycleCore, Events
from rollup.engine.columns.evaluate import arrow, plain
from rollup.engine.rows.cycles.running import Batch
from rollup.engine.rows.runner import Runner
from rollup.engine.state import State
from rollup.engine.types import RowType

COLUMNS = "columns"
"""The executor that a state of this kind names."""


class ColumnQuery:
    """A query at work; `kinds` are the rows of its streams."""

    def __init__(self, core: CycleCore, kinds: Mapping[str, RowType], runner: Runner) -> None:
        self._core, self._runner = core, runner
        self._types = {stream: [arrow(kind) for kind in kinds[stream].fields.values()] for stream in core.streams}
        self._state = core.start()
        self._offered: dict[str, list[Sequence[Any]]] = {}
        self._known: tuple[State, int | None] | None = None

    @property
    def due(self) -> int | None:
        """The next instant at which a cycle comes by itself."""
        if self._known is None or self._known[0] is not self._state:
            self._known = (self._state, self._core.due(self._state))
        return self._known[1]

    @property
    def open(self) -> bool:
        """Whether events of the present instant wait for its end."""
        return bool(self._offered) or self._core.waits(self._state)

    def offer(self, stream: str, values: Sequence[Any]) -> None:
        """An event of the present instant."""
        if stream in self._types:
            self._offered.setdefault(stream, []).append(values)

    def finish(self) -> list[Batch]:
        """The present instant is over."""
        if not self.open and ((due := self.due) is None or due > self._runner.now):
            return []
        return list(batches(self.take({}, self._runner.now)))

    def take(self, events: Mapping[str, Events], until: int) -> Output:
        """Events by stream, and all cycles up to `until`."""
        concerned = {stream: part for stream, part in events.items() if stream in self._types}
        waited = self._waited()
        self._state, output = self._core.step(self._state, _joined(waited, concerned), until)
        return output

    def catch_up(self, heard: Iterable[tuple[str, Sequence[Any], int]], until: int) -> None:
        """Take events that rows have taken, of each its stream, values and instant; what they bring is told already."""
        found = dict[str, tuple[list[Sequence[Any]], list[int]]]()
        for stream, values, at in heard:
            if stream in self._types:
                rows, times = found.setdefault(stream, ([], []))
                rows.append(values)
                times.append(at)
        self.take({stream: self._events(stream, *each) for stream, each in found.items()}, until)

    def _events(self, stream: str, rows: Sequence[Sequence[Any]], times: Sequence[int]) -> Events:
        columns = zip(zip(*rows, strict=True), self._types[stream], strict=True)
        return Events(tuple(pa.array(values, kind) for values, kind in columns), np.array(times, np.int64))

    def _waited(self) -> dict[str, Events]:
        """What was offered at the present instant."""
        offered, self._offered = self._offered, {}
        return {stream: self._events(stream, rows, [self._runner.now] * len(rows)) for stream, rows in offered.items()}

    def snapshot(self) -> State:
        """The whole state; the instant that is not over is part of it."""
        self.take({}, self._runner.now - 1)
        scalars = {"executor": COLUMNS, "now": self._runner.now, "rows": self._runner.rows}
        return State(self._state.tables, {**self._state.scalars, **scalars})

    def restore(self, state: State) -> None:
        """Go on from a snapshot of the same query."""
        own = {name: value for name, value in state.scalars.items() if name not in ("executor", "now", "rows")}
        self._state, self._offered = State(state.tables, own), {}
        self._runner.environment.now, self._runner.rows = state.scalars["now"], state.scalars["rows"]


def batches(output: Output) -> Iterator[Batch]:
    """The rows of each cycle."""
    rows = list(zip(*(column.to_pylist() for column in output.columns), strict=True))
    changes = np.ones(len(rows), bool)
    changes[1:] = output.at[1:] != output.at[:-1]
    begins = np.flatnonzero(changes)
    places = begins.tolist()
    for at, begin, end in zip(output.at[begins].tolist(), places, [*places[1:], len(rows)], strict=False):
        yield Batch(at, rows[begin:end])


def _joined(first: Mapping[str, Events], then: Mapping[str, Events]) -> dict[str, Events]:
    """Events by stream, some before others."""
    found = dict(first)
    for stream, events in then.items():
        before = found.get(stream)
        if before is not None:
            columns = tuple(
                pa.concat_arrays([a, plain(b)]) for a, b in zip(before.columns, events.columns, strict=True)
            )
            events = Events(columns, np.concatenate([before.times, events.times]))
        found[stream] = events
    return found
