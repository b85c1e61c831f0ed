"""The running queries of a kernel: each on rows or over columns, told in the order of instants and registration."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from heapq import merge
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Output
from rollup.engine.columns.cycles.clocked import CycleCore, Events
from rollup.engine.columns.cycles.query import COLUMNS, ColumnQuery, batches
from rollup.engine.rows.cycles.partitions import earliest
from rollup.engine.rows.cycles.running import Batch, RunningQuery
from rollup.engine.rows.journal import MOST
from rollup.engine.rows.runner import Runner
from rollup.engine.state import State, packed, unpacked
from rollup.engine.types import RowType

Heard = tuple[str, Sequence[Any], int]
"""The stream of an event, its values and its instant."""
Listener = Callable[[Batch], None]
Begin = Callable[[Runner], RunningQuery]
Told = tuple[int, int, Batch]
"""A batch behind its instant and the place of its query among all."""


_TOGETHER = 1 << 16
"""So many events are one piece, so that what they bring stays bounded."""


_LATE = "the first events came in small batches, or not all are known"
_HEARD = "heard"
"""The table of a state that keeps them."""
_WORTH = 32
"""From so many events on a batch is worth going over while what came before is still known."""


class Placed(NamedTuple):
    """Where a query runs, and the first reason against columns."""

    executor: str
    reason: str | None


@dataclass
class Registered:
    """A query at work: how it begins, its listener, and the core that it may change to or the reason against.

    `heard` has its events: stream, values, instant. None where the query does not change, or not all events are known.
    """

    query: RunningQuery | ColumnQuery
    begin: Begin
    listener: Listener
    core: CycleCore | str
    heard: list[Heard] | None


class Queries:
    """All queries. From batches of `least` events on, what columns cover goes over for good; None: nothing does."""

    def __init__(self, runner: Runner, least: int | None) -> None:
        self._runner, self._least = runner, least
        self._registered: list[Registered] = []
        self._kinds: dict[str, RowType] = {}

    def add(self, begin: Begin, listener: Listener, core: CycleCore | str, kinds: Mapping[str, RowType]) -> None:
        """A query over streams of these rows."""
        heard = None if self._least is None or isinstance(core, str) else list[Heard]()
        self._registered.append(Registered(begin(self._runner), begin, listener, core, heard))
        self._kinds.update(kinds)

    def placed(self) -> list[Placed]:
        """Where batches of each query run."""
        never = "columns are switched off" if self._least is None else None
        late = {
            id(each): _LATE for each in self._registered if each.heard is None and isinstance(each.query, RunningQuery)
        }
        reasons = [
            each.core if isinstance(each.core, str) else never or late.get(id(each)) for each in self._registered
        ]
        return [Placed("rows" if reason else "columns", reason) for reason in reasons]

    @property
    def open(self) -> bool:
        """Whether one of them waits for the end of the present instant."""
        return any(each.query.open for each in self._registered)

    @property
    def beyond(self) -> int:
        """How many values of partitions 64 bits did not hold so far; columns take no sums that can be."""
        return sum(query.beyond for _, query in self._rows())

    def offer(self, stream: str, row: Sequence[Any]) -> None:
        """An event of the present instant."""
        self._note(stream, row, self._runner.now)
        for each in self._registered:
            each.query.offer(stream, row)

    def finish(self) -> None:
        """The present instant is over."""
        for each in self._registered:
            for batch in each.query.finish():
                each.listener(batch)

    def advance(self, to: int) -> None:
        """Every cycle that comes by itself up to `to`; nothing waits."""
        columns = self._columns()
        if not columns:
            for at, place, batch in self._ticked(to):
                self._tell([(at, place, batch)])
            return
        self._tell_merged([(place, query.take({}, to)) for place, query in columns], list(self._ticked(to)))

    def send(self, events: Mapping[str, Events], until: int, to: int) -> None:
        """Events of many instants, of which those up to `until` are over; the clock goes to `to`."""
        self._go_over(sum(len(part.times) for part in events.values()))
        found = [(place, query.take(events, until)) for place, query in self._columns()]
        by_rows = list(self._one_by_one(events, until)) if len(found) < len(self._registered) else []
        self._runner.environment.now = to
        self._tell_merged(found, by_rows)

    def _tell_merged(self, columns: Sequence[tuple[int, Output]], rows: Sequence[Told]) -> None:
        """What several queries found, by instant and registration."""
        if len(columns) == 1 and not rows:
            ((place, output),) = columns
            for batch in batches(output):
                self._registered[place].listener(batch)
        else:
            self._tell(merge(*(_told(place, output) for place, output in columns), rows, key=itemgetter(0, 1)))

    def _tell(self, told: Iterable[Told]) -> None:
        for _, place, batch in told:
            self._registered[place].listener(batch)

    # rows

    def _rows(self) -> list[tuple[int, RunningQuery]]:
        return [(n, each.query) for n, each in enumerate(self._registered) if isinstance(each.query, RunningQuery)]

    def _ticked(self, to: int) -> Iterator[Told]:
        """The cycles on rows that come by themselves up to `to`."""
        rows = self._rows()
        while (due := earliest([query for _, query in rows])) is not None and due <= to:
            self._runner.environment.now = max(due, self._runner.now)
            yield from self._finished(rows)

    def _finished(self, rows: Sequence[tuple[int, RunningQuery]]) -> Iterator[Told]:
        for place, query in rows:
            for batch in query.finish():
                yield batch.at, place, batch

    def _one_by_one(self, events: Mapping[str, Events], until: int) -> Iterator[Told]:
        """Each event to the queries on rows, and every cycle up to `until`."""
        rows = self._rows()
        streams = [
            (stream, zip(*(c.to_pylist() for c in part.columns), strict=True)) for stream, part in events.items()
        ]
        times = np.concatenate([part.times for part in events.values()])
        which = np.repeat(np.arange(len(streams)), [len(part.times) for part in events.values()])
        order = np.argsort(times, kind="stable")
        for at, place in zip(times[order].tolist(), which[order].tolist(), strict=True):
            if at > self._runner.now:
                yield from self._finished(rows)
                yield from self._ticked(at - 1)
                self._runner.environment.now = at
            stream, values = streams[place]
            row = next(values)
            self._note(stream, row, at)
            for _, query in rows:
                query.offer(stream, row)
        if until >= self._runner.now:
            yield from self._finished(rows)
            yield from self._ticked(until)

    # columns

    def _columns(self) -> list[tuple[int, ColumnQuery]]:
        return [(n, each.query) for n, each in enumerate(self._registered) if isinstance(each.query, ColumnQuery)]

    def _note(self, stream: str, row: Sequence[Any], at: int) -> None:
        """Keep an event for those that may go over, as long as all can be kept."""
        for each in self._registered:
            if each.heard is not None:
                each.heard.append((stream, row, at))
                if len(each.heard) > MOST:
                    each.heard = None

    def forget(self) -> None:
        """What came before is no longer all that queries hang on."""
        for each in self._registered:
            each.heard = each.heard and None

    def _go_over(self, events: int) -> None:
        """What is covered goes over: columns take what came before once more."""
        for each in self._registered:
            if each.heard is None or isinstance(each.core, str) or self._least is None:
                continue
            if events >= self._least or (events >= _WORTH and len(each.heard) + events > MOST):
                until = self._runner.now - each.query.open
                each.query = ColumnQuery(each.core, self._kinds, self._runner)
                each.query.catch_up(each.heard, until)
                each.heard = None

    def snapshot(self) -> list[State]:
        """The state of each, with what it has heard."""
        return [_with(each.query.snapshot(), each.heard) for each in self._registered]

    def restore(self, states: Sequence[State]) -> None:
        """Go on from the states of the same queries, each on its executor."""
        for each, state in zip(self._registered, states, strict=True):
            if state.scalars.get("executor") == COLUMNS and not isinstance(each.core, str):
                each.query = ColumnQuery(each.core, self._kinds, self._runner)
            else:
                each.query = each.begin(self._runner)
            each.query.restore(state)
            each.heard = unpacked(state.tables[_HEARD][0][0].as_py()) if _HEARD in state.tables else None

    def prove(self, states: Sequence[State]) -> None:
        """Raise QueryError for what a select could not compute later on; these are the states as they are now."""
        for each, state in zip(self._registered, states, strict=True):
            if isinstance(each.query, RunningQuery) and each.query.proves:
                copy = each.begin(Runner(self._runner.now))
                copy.restore(state)
                each.query.prove(copy)


def _with(state: State, heard: Sequence[Heard] | None) -> State:
    if heard is None:
        return state
    return State({**state.tables, _HEARD: pa.table({"events": [packed(heard)]})}, state.scalars)


def pieces(events: Mapping[str, Events], size: int = _TOGETHER) -> Iterator[tuple[dict[str, Events], int, int]]:
    """Events by stream cut into pieces at ends of instants: a piece, the last instant that is over, and its last one."""
    times = np.sort(np.concatenate([part.times for part in events.values()]), kind="stable")
    cuts = [int(each) for each in np.unique(times[size - 1 : -1 : size])]
    begins, end = dict.fromkeys(events, 0), int(times[-1])
    for cut in [*(each for each in cuts if each < end), end]:
        ends = {stream: int(np.searchsorted(part.times, cut, "right")) for stream, part in events.items()}
        sliced = {stream: part.slice(begins[stream], ends[stream]) for stream, part in events.items()}
        yield {stream: part for stream, part in sliced.items() if len(part.times)}, cut - (cut == end), cut
        begins = ends


def _told(place: int, output: Output) -> Iterator[Told]:
    return ((batch.at, place, batch) for batch in batches(output))
