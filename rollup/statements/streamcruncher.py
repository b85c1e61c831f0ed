"""StreamCruncher in an app: one running query a block, whose rows go where `into` says.

Every stream has a column `rowtime`, the time of its events; events of one instant are one cycle, which is over when a
later one comes. A batch is handed over as tables, so that what columns cover runs over them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.errors import PlanError, QueryError
from rollup.engine.rows.cycles.running import Batch
from rollup.engine.state import State
from rollup.lang.sections import Section
from rollup.lang.streamcruncher.kernel import Cruncher
from rollup.lang.streamcruncher.reader import read_query
from rollup.plan.app import StreamDef
from rollup.plan.dividing import common
from rollup.plan.types import Type
from rollup.statements.columns import ROWTIME, stream_of
from rollup.statements.component import Described, Event, Names, Refused, Streams, Taken, refuse_own
from rollup.statements.rows import Emitted, OnRows
from rollup.statements.values import comparable, plain_row

_TOGETHER = 32
"""From batches of so many events on, tables cost less than events one by one."""
_SCRIPT, _QUOTED = re.compile(r"^\s*create\b|;\s*\S", re.IGNORECASE), re.compile(r"'[^']*'|--[^\n]*")
_TYPES = {Type.STRING: "str", Type.OBJECT: "str"}


class StreamCruncher:
    """The language's entry; see `rollup.statements.component.Language`."""

    def names(self, section: Section) -> Names:
        """The streams under the partitions; what is written is only said by `into`. Raises PlanError for a script."""
        if _SCRIPT.search(_QUOTED.sub("", section.placed)):
            raise PlanError(
                "a block of StreamCruncher is one query, its select alone",
                hint="`rollup try FILE.cruncher` runs scripts: weights, timers, tables, several queries",
            )
        return Names(frozenset(chain.stream for chain in read_query(section.placed).chains), frozenset())

    def compile(self, section: Section, streams: Streams, names: Names) -> CruncherBlock:
        """The query over the streams. Raises SyntaxProblem or PlanError with the place."""
        refuse_own(names, section.into)
        return CruncherBlock(section, streams, names)


@dataclass
class Running:
    """A kernel and what its query has given; `beyond`: how many whole numbers of its own did not fit."""

    cruncher: Cruncher
    now: int
    found: list[Batch] = field(default_factory=list[Batch])
    beyond: int = 0


class CruncherBlock(OnRows[Running]):
    """A running query."""

    _kernel: Running | None

    def __init__(self, section: Section, streams: Streams, names: Names) -> None:
        self._text = section.placed
        self._streams = {name: streams[name] for name in names.reads if name in streams}
        if section.into is None or section.into not in streams:
            raise PlanError(
                "where do the rows go?",
                hint="@lang('streamcruncher', into='T'), and define stream T with their columns",
            )
        self._target, self._kernel = streams[section.into], None
        super().__init__(names.reads, {section.into: self._target})
        cruncher = self.begun(0).cruncher
        _check_target(cruncher.answers[0], self._target)
        (self._placed,) = cruncher.plan()
        self._keys = comparable(common([cruncher.need(self._text)], instants=True), streams)

    @property
    def described(self) -> Described:
        reason = self._placed.reason or "one cycle an instant"
        return Described(self._placed.executor, reason, "the rows of each partition", self._keys)

    def begun(self, start: int) -> Running:
        running = Running(Cruncher(start, proves=True), start)
        for name, stream in self._streams.items():
            columns = {column: _TYPES.get(kind, str(kind)) for column, kind in stream.attributes.items()}
            running.cruncher.define(name, {**columns, ROWTIME: "ts"}, ROWTIME)
        running.cruncher.register(self._text, running.found.append)
        return running

    def restored(self, state: State) -> Running:
        self._kernel = running = self._kernel or self.begun(0)  # to prepare a query costs more than all of its state
        running.found.clear()
        running.now = int(state.scalars["clock"])
        running.cruncher.restore([_query(state)])
        return running

    def snapshot(self, running: Running) -> State:
        (state,) = running.cruncher.snapshot()
        return State(state.tables, {"clock": running.now, "query": dict(state.scalars)})

    def forgiven(self, state: State | None, events: Sequence[Event]) -> tuple[State | None, Taken, Sequence[str]]:
        """See `rollup.statements.component.Forgiving`; the instant that is open is none of it."""
        running = self._running(state, events[0].at)
        with running.cruncher.forgiving() as said:
            taken = self.fed(running, events)
        self._held = after, _ = self.snapshot(running), running
        return after, taken, said

    def fed(self, running: Running, events: Sequence[Event]) -> Taken:
        """A batch, with how many of its sums 64 bits did not hold."""
        known, running.beyond = running.cruncher.beyond, 0
        taken = self._sent(running, events)
        return replace(taken, beyond=running.cruncher.beyond - known + running.beyond)

    def _sent(self, running: Running, events: Sequence[Event]) -> Taken:
        """A batch as tables; small ones, and those with a value that does not fit, one event after the other."""
        if len(events) < _TOGETHER:
            return super().fed(running, events)
        clock = np.maximum.accumulate(np.maximum([event.at for event in events], running.now))
        try:
            tables = {name: self._table(running, name, events, clock) for name in self._streams}
            fitted = running.cruncher.fitted({name: table for name, table in tables.items() if table.num_rows})
        except (QueryError, pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            return super().fed(running, events)  # which says which event it is
        running.cruncher.take(fitted)
        running.now = max(running.now, running.cruncher.now)  # whose instant is open: more of it may come
        self.move(running, int(clock[-1]))
        return Taken(self._caused(running, events, clock))

    def _table(self, running: Running, name: str, events: Sequence[Event], clock: np.ndarray) -> pa.Table:
        """The events of a stream, each at the time of the clock."""
        places = [place for place, event in enumerate(events) if event.stream == name]
        rows = [(*events[place].values, int(clock[place])) for place in places]
        kinds = running.cruncher.columns(name)
        values = zip(*rows, strict=True) if rows else ([] for _ in kinds)
        return pa.table(
            {name: pa.array(list(each), kind) for each, (name, kind) in zip(values, kinds.items(), strict=True)}
        )

    def _caused(self, running: Running, events: Sequence[Event], clock: np.ndarray) -> list[Event]:
        """The rows of cycles behind the events that ended their instants."""
        given, places = list[Event](), dict[int, int]()
        for at, stream, values in self.taken(running):
            cause = int(np.searchsorted(clock, at, "right"))
            places[cause] = places.get(cause, -1) + 1
            given.append(Event((*events[cause].key, places[cause]), at, stream, values))
        return given

    def _one(self, running: Running, event: Event, refused: list[Refused]) -> list[Event]:
        self.move(running, event.at)  # what is wrong at the end of an instant is not this event, of the next one
        return super()._one(running, event, refused)

    def prove(self, running: Running, after: State) -> None:
        """Of the instant that is open nothing was computed yet, nor of any row as one that leaves."""
        running.cruncher.prove([_query(after)])

    def move(self, running: Running, to: int) -> None:
        if to > running.now:
            running.cruncher.advance(to - 1)
            running.now = to

    def send(self, running: Running, event: Event) -> None:
        running.cruncher.submit(event.stream, [(*event.values, running.now)], running.now)

    def taken(self, running: Running) -> Iterable[Emitted]:
        found, running.found[:] = list(running.found), []
        for batch in found:
            for row in batch.rows:
                values = plain_row(row, self._target)
                kinds = self._target.attributes.values()
                yield batch.at, self._target.name, tuple(map(partial(_held, running), kinds, values))


def _query(state: State) -> State:
    """The state of the kernel's one query in that of a block."""
    return State(state.tables, state.scalars["query"])


def _check_target(answer: pa.Schema, target: StreamDef) -> None:
    """A text holds everything, a number what is no wider than it, a whole number other ones, anything else its own type."""
    if len(answer) != len(target.attributes):
        raise PlanError(
            f"the query selects {len(answer)} columns, {target.name} has {len(target.attributes)}",
            hint="columns go to attributes by place",
        )
    made = stream_of(target.name, answer.empty_table(), [str(place) for place in range(len(answer))])
    columns = zip(answer.names, made.attributes.values(), target.attributes.items(), strict=True)
    for column, given, (name, wanted) in columns:
        wider = given.numeric and wanted.numeric and wanted.widest(given) is wanted
        whole = given.integral and wanted.integral
        if not wider and not whole and wanted not in (given, Type.STRING, Type.OBJECT):
            cure = f"define {name} {given}, or select cast({column} as {wanted.sql.sql('duckdb').lower()})"
            raise PlanError(f"the column {column} is {given}, {name} of {target.name} is {wanted}", hint=cure)


def _held(running: Running, kind: Type, value: Any) -> Any:
    """A value of the select for an attribute; null where it is a whole number that the attribute's bits do not hold.

    The database makes sums of any size, and the reference calls a count an int.
    """
    bits = kind.bits if kind.integral else Type.LONG.bits
    if not isinstance(value, int) or -(1 << bits - 1) <= value < 1 << bits - 1:
        return value
    running.beyond += 1
    return None
