"""One batch through all statements of an app: the step over events that the hosts run.

Components run one after the other, each over the whole batch; what one inserts into a stream stands, for those behind
it, right after the event that caused it. So a batch gives what its events one by one would give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import merge
from typing import Any

import pyarrow as pa

from rollup.aggregation.event_times import AT
from rollup.engine.state import State
from rollup.plan.app import StreamDef
from rollup.statements.careful import careful_step
from rollup.statements.compiled import Statements
from rollup.statements.component import ELSEWHERE, Event, Key, Refused
from rollup.statements.values import schema_of, table_of

ARRIVAL, RECEIVED = "__arrival", "__received"
States = Mapping[str, State]
"""The state of each component that has seen an event."""


@dataclass(frozen=True)
class Given:
    """What a batch gave: the rows of every stream that statements insert into, and the events they refused; `beyond` are
    the sums that 64 bits did not hold, by component.

    A row has the attributes of its stream and its time, as `__received`.
    """

    streams: Mapping[str, pa.Table]
    refused: tuple[Refused, ...] = ()
    beyond: Mapping[str, int] = field(default_factory=dict[str, int])


class Flow:
    """The statements of an app at work."""

    def __init__(self, statements: Statements) -> None:
        self.statements = statements
        self.stops = False
        """Whether a value that cannot be computed with is an error, not a refused event."""

    def step(self, states: States, events: Sequence[Event], only: str | None = None) -> tuple[States, Given]:
        """One batch in order of arrival: the states after it, and what it gave. `only`: the part that takes the events, where
        the others have had them; what it makes of them is for all."""
        after, made, refused = dict(states), list[Event](), list[Refused]()
        flowing = list(events) if only is None else []
        beyond = dict[str, int]()
        for number, part in enumerate(self.statements.parts):
            mine = list(merge(events, flowing, key=_place)) if part.name == only else flowing
            state, taken = careful_step(part.component, states.get(part.name), mine, self.stops)
            if state is not None:
                after[part.name] = state
            refused += [each._replace(by=part.name) for each in taken.refused]
            beyond |= {part.name: taken.beyond} if taken.beyond else {}
            given = [event._replace(key=(*event.key[:-1], number, event.key[-1])) for event in taken.events]
            flowing = list(merge(flowing, given, key=_place)) if given else flowing
            made += given
        made.sort(key=lambda event: event.key)
        return after, Given(self._tables(made), tuple(refused), beyond)

    def arrived(self, streams: Mapping[str, StreamDef], tables: Mapping[str, pa.Table]) -> list[Event]:
        """The rows of some streams, each in order of `__arrival`, as events at `__at`; of what arrives at once the streams' order."""
        found = [self._events(streams[name], rows, place) for place, (name, rows) in enumerate(tables.items())]
        return list(merge(*found, key=lambda event: event.key))

    def _events(self, stream: StreamDef, rows: pa.Table, place: int) -> list[Event]:
        """Columns that are missing are null: nobody asks for them."""
        count = rows.num_rows
        columns = [
            rows[name].to_pylist() if name in rows.column_names else [None] * count for name in stream.attributes
        ]
        found = zip(rows[ARRIVAL].to_pylist(), rows[AT].to_pylist(), zip(*columns, strict=True), strict=True)
        return [Event((arrival, place), at, stream.name, row) for arrival, at, row in found]

    def _tables(self, events: Sequence[Event]) -> Mapping[str, pa.Table]:
        rows: dict[str, list[tuple[Any, ...]]] = {name: [] for name in self.statements.streams}
        for event in events:
            rows[event.stream].append((*event.values, event.at))
        return {name: table_of(_told(self.statements.streams[name]), found) for name, found in rows.items()}


def _place(event: Event) -> Key:
    """Where an event stands: behind its cause, and before a step of time by which it was due."""
    return (*event.key, _LAST) if event.stream == ELSEWHERE else event.key


_LAST = 1 << 62


def _told(stream: StreamDef) -> pa.Schema:
    return schema_of(stream).append(pa.field(RECEIVED, pa.int64()))
