"""Grizzly UQL in an app: a chain of queries from a stream to the one that its last query names.

Every stream has a field `rowtime`, the time of its events; windows of the wall clock go by that time too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, dropwhile

import numpy as np
import pyarrow as pa

from rollup.engine.dividing import Need
from rollup.engine.state import State
from rollup.lang.sections import Section
from rollup.lang.uql.catalog import Catalog, Kind
from rollup.lang.uql.chain import Chain
from rollup.lang.uql.ingress import WIDE, text_of
from rollup.lang.uql.plan import plan
from rollup.lang.uql.reader import parse
from rollup.plan.app import StreamDef
from rollup.plan.dividing import common
from rollup.plan.types import Type
from rollup.statements.columns import ROWTIME, batch_of, by_place, events_of
from rollup.statements.component import ELSEWHERE, Described, Event, Names, Streams, Taken, refuse_own
from rollup.statements.values import comparable

_FIELDS: Mapping[Type, str] = {
    Type.INT: "integer32",
    Type.LONG: "integer64",
    Type.FLOAT: "float32",
    Type.DOUBLE: "float64",
    Type.STRING: "text",
    Type.BOOL: "boolean",
    Type.OBJECT: "text",
}
_ATTRIBUTES: Mapping[Kind, Type] = {
    Kind.INTEGER: Type.LONG,
    Kind.FLOAT: Type.DOUBLE,
    Kind.TEXT: Type.STRING,
    Kind.BOOLEAN: Type.BOOL,
    Kind.TIME: Type.LONG,
    Kind.SPAN: Type.LONG,
}
_PLACE = "place"


class Uql:
    """The language's entry; see `rollup.statements.component.Language`."""

    def names(self, section: Section) -> Names:
        """The table of the first query and the target of the last one."""
        queries = parse(section.placed)
        return Names(frozenset({queries[0].source.text}), frozenset({queries[-1].target.text}))

    def compile(self, section: Section, streams: Streams, names: Names) -> UqlBlock:
        """The chain over the streams. Raises SyntaxProblem or PlanError with the place."""
        refuse_own(names, section.into)
        return UqlBlock(section, streams)


class UqlBlock:
    """A chain of queries."""

    def __init__(self, section: Section, streams: Streams) -> None:
        self._plans = plan(section.placed, Catalog.of({"schemas": [_table(stream) for stream in streams.values()]}))
        self._chain = Chain(self._plans)
        self._stream = streams[self._plans[0].query.source.text]
        kinds = {output.name: _ATTRIBUTES[output.kind] for output in self._plans[-1].outputs}
        target = StreamDef(self._plans[-1].query.target.text, kinds)
        self._target = by_place(target, streams)
        self._keys = comparable(common([self._need()], instants=True, own=True), streams)

    def _need(self) -> Need | str:
        first, *more = self._plans
        if more:
            return "a query reads what another gives for all groups"
        names = first.query.group_by
        shared = tuple(name.text for name in names if name.text in self._stream.attributes)
        if shared:
            return {self._stream.name: shared}
        return "its groups are times of events" if names else "its windows are over all events"

    @property
    def described(self) -> Described:
        return Described("columns", "steps over Arrow", "the open windows of each query", self._keys)

    def shown(self, events: Sequence[Event]) -> Sequence[int]:
        """See `rollup.statements.component.Showing`; where windows go by the wall's clock, what lets it go on is shown."""
        mine = [place for place, event in enumerate(events) if event.stream == self._stream.name]
        if not mine:
            return []
        found = [events[place] for place in mine]
        now = list(accumulate((event.at for event in found), max))
        closing = self._chain.closing(self._batch(found), [at * 1000 for at in now])
        later = np.flatnonzero(np.diff(now)) + 1 if self._chain.wall_clock else []
        return [mine[place] for place in sorted({0, *map(int, closing), *map(int, later)})]

    @property
    def writes(self) -> Streams:
        """The target of the last query."""
        return {self._target.name: self._target}

    def step(self, state: State | None, events: Sequence[Event]) -> tuple[State | None, Taken]:
        """One batch; events of other shards only close windows, and so does time that passes without any."""
        if state is None:
            events = [*dropwhile(_is_time, events)]
        wall = self._chain.wall_clock
        mine = [e for e in events if e.stream == self._stream.name or (e.stream == ELSEWHERE and (e.values or wall))]
        if not mine:
            return state, Taken()
        start = mine[0].at if state is None else int(state.scalars["start"])
        now = start if state is None else int(state.scalars["now"])
        arrivals = list[int]()
        for event in mine:
            now = max(now, event.at)
            arrivals.append((now - start) * 1000)
        states = self._chain.start() if state is None else tuple(state.held().values())
        known = _beyond(states)
        states, given = self._stepped(states, mine, arrivals)
        after = State.holding({str(place): each for place, each in enumerate(states)}, {"start": start, "now": now})
        return after, Taken(given, beyond=_beyond(states) - known)

    def _stepped(
        self, states: tuple[State, ...], events: Sequence[Event], arrivals: Sequence[int]
    ) -> tuple[tuple[State, ...], list[Event]]:
        """The states after some events, and what they give, each row behind the event that closed its window.

        Which event that was the step does not say; a batch that gives rows, or in which time passes, is halved until one
        event is left.
        """
        if len(events) == 1 or not any(map(_is_time, events)):
            after, output = self._given(states, events, arrivals)
            if not output.num_rows:
                return after, []
            if len(events) == 1:
                outputs = self._plans[-1].outputs
                rows = _attributes(output, [each.place for each in outputs], [each.kind for each in outputs])
                return after, events_of(self._target, rows, [events[0]] * rows.num_rows, 0)
        half = len(events) // 2
        between, first = self._stepped(states, events[:half], arrivals[:half])
        after, second = self._stepped(between, events[half:], arrivals[half:])
        return after, first + second

    def _given(
        self, states: tuple[State, ...], events: Sequence[Event], arrivals: Sequence[int]
    ) -> tuple[tuple[State, ...], pa.Table]:
        """The states after events, or after time that passes, and the rows that the chain gives."""
        if _is_time(events[0]):
            return self._chain.advance(states, arrivals[0])
        own = np.array([event.stream != ELSEWHERE for event in events])
        return self._chain.step(states, self._batch(events), arrivals, None if own.all() else own)

    def _batch(self, events: Sequence[Event]) -> pa.Table:
        """As the reader of rows gives them: times in microseconds, with their texts where a query prints them."""
        named = [e if e.stream != ELSEWHERE else e._replace(stream=self._stream.name) for e in events]
        found, table = batch_of(self._stream, named, 0, _PLACE).drop_columns([_PLACE]), self._plans[0].table
        columns = {field.name: found.column(field.name).cast(WIDE[field.kind]) for field in table.fields}
        for name in self._plans[0].texts:
            texts = [value.isoformat(timespec="milliseconds") + "Z" for value in found.column(name).to_pylist()]
            columns[text_of(name)] = pa.chunked_array([pa.array(texts, pa.string())])
        return pa.table(columns)


def _is_time(event: Event) -> bool:
    """Whether it says only what time it is."""
    return event.stream == ELSEWHERE and not event.values


def _beyond(states: Sequence[State]) -> int:
    """How many sums 64 bits did not hold so far."""
    return sum(state.scalars["beyond"] for state in states)


def _table(stream: StreamDef) -> Mapping[str, object]:
    fields = [{"name": name, "type": _FIELDS[kind]} for name, kind in stream.attributes.items()]
    if ROWTIME not in stream.attributes:
        fields.append({"name": ROWTIME, "type": "timestamp", "usage": "time"})
    return {"name": stream.name, "fields": fields}


def _attributes(output: pa.Table, places: Sequence[int], kinds: Sequence[Kind]) -> pa.Table:
    columns = [output.column(place) for place in places]
    found = [
        column.cast(pa.timestamp("us")) if kind is Kind.TIME else _texts(column) if kind is Kind.TEXT else column
        for column, kind in zip(columns, kinds, strict=True)
    ]
    return pa.table(found, names=[f"c{place}" for place in range(len(found))])


def _texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(pa.string())
