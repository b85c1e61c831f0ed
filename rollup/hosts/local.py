"""The local host: an app in this process, without Spark. For the library, the command line and tests."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rollup.aggregation.event_times import latest_of
from rollup.aggregation.offsets import Offsets
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from rollup.core.errors import QueryError, RollupError
from rollup.hosts.pipeline import Pipeline, Prepared
from rollup.hosts.statements.closed import closed_events
from rollup.hosts.statements.running import Running
from rollup.hosts.walk import Reached, Walk
from rollup.lang.fitting import say_rounded
from rollup.lang.siddhi.apps import parse_query
from rollup.plan.aggregation import Aggregation
from rollup.plan.app import StreamDef
from rollup.plan.reading import Unreadable, is_rounded, read
from rollup.program import Program, compile_app
from rollup.retrieval.explain import explain
from rollup.retrieval.questions import Ask, plan
from rollup.retrieval.requests import Requests
from rollup.sinks.base import Sink
from rollup.statements.committed.commits import Commits
from rollup.statements.component import Refused
from rollup.stores.base import Store
from rollup.stores.memory import MemoryStore


@dataclass(frozen=True)
class _Batch:
    """The events of a batch that reach a stream, in order of arrival, and what aggregations make of them."""

    stream: str
    rows: pa.Table
    folded: Mapping[str, pa.Table]


StoreFactory = Callable[[Aggregation, ColumnEngine], Store]


class LocalHost:
    """Runs a program over rows that are handed to it.

    >>> host = LocalHost.of("define stream S (k string, v int, ts long);"
    ...     "define aggregation A from S select k, sum(v) as s group by k aggregate by ts every sec ... min;")
    >>> host.send("S", [("a", 1, 0), ("a", 2, 1500)])
    >>> host.query("from A within '1970-01-01 00:00:**' per 'minutes' select k, s").to_pylist()
    [{'k': 'a', 's': 3}]
    """

    def __init__(
        self,
        program: Program,
        store: StoreFactory = MemoryStore,
        commits: Commits | None = None,
        ahead: int | None = None,
        outlets: Mapping[str, Sink] | None = None,
    ) -> None:
        """`ahead`: how far ahead of the clock of this machine, ms, an event may be, as `[late] ahead` of a configuration."""
        self.program, self._ahead = program, ahead
        self.engine = ColumnEngine(threads=2)
        self.walk = Walk(program, self.engine)
        self.now = 0
        self.arrivals = 0
        self.dead: list[dict[str, Any]] = []
        self.emitted: list[tuple[str, pa.Table]] = []
        self.stores = {name: store(a, self.engine) for name, a in program.aggregations.items()}
        self.pipelines = {name: Pipeline(a, self.stores[name], self.engine) for name, a in program.aggregations.items()}
        for pipeline in self.pipelines.values():
            pipeline.start()
        self._offsets = Offsets()
        self.statements: Running | None = None
        if program.statements is not None:
            self.statements = Running(program, self.pipelines, commits, outlets)
            self.statements.start(self.engine)

    @classmethod
    def of(cls, text: str, store: StoreFactory = MemoryStore) -> LocalHost:
        """A host for the app of a text."""
        return cls(compile_app(text), store)

    def send(self, stream: str, rows: Sequence[Sequence[Any]]) -> None:
        """Events of a stream, in order of arrival, as rows of its attributes' values. A row that does not fit is a dead letter."""
        definition = self.program.streams.get(stream)
        if definition is None:
            raise QueryError(f"stream {stream!r} is not defined", hint=f"streams are {', '.join(self.program.streams)}")
        schema = pa.schema([(name, kind.arrow) for name, kind in definition.attributes.items()])
        good = [fit for row in rows if (fit := self._fitting(definition, row)) is not None]
        columns = [pa.array([row[i] for row in good], schema.field(i).type) for i in range(len(schema))]
        arrivals = pa.array(range(self.arrivals, self.arrivals + len(good)), pa.int64())
        received = pa.array([self.now] * len(good), pa.int64())
        self.arrivals += len(good)
        schema = schema.append(pa.field("__arrival", pa.int64())).append(pa.field("__received", pa.int64()))
        self.process(stream, pa.table([*columns, arrivals, received], schema=schema))

    def process(self, stream: str, events: pa.Table) -> None:
        """One batch of a stream: its attributes, `__arrival` and `__received`."""
        with self.engine.use():
            self._process(stream, events)

    def _process(self, stream: str, events: pa.Table) -> None:
        with self.engine.tables({"__batch": events}):
            walked = self.walk.along(stream, "__batch", events=events.num_rows, latest=self._latest)
            batches = [self._batch(each) for each in walked]
        self.emitted += [(each.stream, _shown(each.rows)) for each in batches if each.stream != stream]
        running = self.statements if self.statements is not None and self.lacks(self.statements.source) else None
        prepared = () if running is None else self._state(running, batches)
        for batch in batches:
            for name in batch.folded.keys() - prepared:
                if self.lacks(self.pipelines[name].source):
                    self.pipelines[name].commit(self._prepare(name, batch))
            for join in self.program.joins:
                if join.source.stream == batch.stream:
                    aggregation = self.program.aggregations[join.retrieval.aggregation]
                    self._ask(Requests.of(join, self.program.streams[batch.stream], aggregation), batch.rows)

    def refused(self, stream: str, events: pa.Table) -> set[int]:
        """The arrivals of a batch whose time is none to somebody."""
        found = set[int]()
        with self.engine.tables({"__batch": events}):
            for reached in self.walk.along(stream, "__batch", events=events.num_rows, latest=self._latest):
                if reached.refused is not None:
                    numbers = reached.refused["__arrival"].to_pylist()
                    found |= {each // self.program.scale(stream) for each in numbers}
        return found

    def aside(self, refused: Sequence[Refused]) -> None:
        """Events that statements refuse, before the commit of those that they take."""
        self.dead += [
            {"stream": event.stream, "reason": reason, "raw": repr(event.values), "by": by}
            for event, reason, by in refused
        ]

    def marks(self, before: Mapping[str, Any]) -> Mapping[str, Any]:
        """The marks of who takes a batch, after it; those it had come in."""
        return {}

    def lacks(self, marks: Mapping[str, Any]) -> bool:
        """Whether somebody with these marks has not had the batch."""
        return True

    @property
    def _latest(self) -> int | None:
        """The latest time that an event of a batch may have."""
        by_event = (one for one in self.pipelines.values() if one.aggregation.time is not None)
        return latest_of(self._ahead, max((one.clock or 0 for one in by_event), default=0))

    def _batch(self, reached: Reached) -> _Batch:
        refused = [] if reached.refused is None else reached.refused.to_pylist()
        self.dead += [{"stream": reached.stream, **row} for row in refused]
        self._offsets.warn(reached.stream, reached.offsets)
        rows = self.engine.run(f"FROM {reached.view} ORDER BY __arrival")
        return _Batch(reached.stream, rows, reached.folded)

    def _state(self, running: Running, batches: Sequence[_Batch]) -> Collection[str]:
        """One batch through the statements; the aggregations that were advanced because statements read what they close."""
        reads, prepared = running.told, dict[str, Prepared]()
        for batch in batches:
            for name in dict.fromkeys(reads.values()):
                if name in batch.folded:
                    prepared[name] = self._prepare(name, batch)
        closed = [
            event
            for name, made in prepared.items()
            for event in closed_events(self.engine, self.pipelines[name], made, reads)
        ]
        own = {batch.stream: batch.rows for batch in batches if batch.stream in running.flow.statements.reads}
        events = [*running.flow.arrived(self.program.streams, own), *closed]
        given = running.advance(self.engine, events, self.marks(running.source), self.aside)
        self.emitted += [(name, _shown(rows)) for name, rows in given.streams.items() if rows.num_rows]
        for name, made in prepared.items():
            self.pipelines[name].commit(made)
        return prepared

    def tick(self, now: int) -> None:
        """The wall clock; aggregations by arrival time close what it has passed, and statements do what is due."""
        self.now = now
        for pipeline in self.pipelines.values():
            if pipeline.aggregation.time is None:
                pipeline.tick(now, {})
        if self.statements is not None:
            given = self.statements.pass_time(self.engine, now, self.aside)
            self.emitted += [(name, _shown(rows)) for name, rows in given.streams.items() if rows.num_rows]

    def query(self, text: str) -> pa.Table:
        """The answer to an on-demand query. Raises a RollupError before any data is read when it is wrong."""
        return self.ask(plan(parse_query(text), self.program.aggregations))

    def ask(self, ask: Ask) -> pa.Table:
        """The answer to a checked question."""
        store = self.stores[ask.aggregation.name]
        snapshot = store.snapshot() if ask.as_of is None else store.as_of(ask.as_of)
        return explain(snapshot, ask) if ask.explain else snapshot.answer(ask)

    def _fitting(self, stream: StreamDef, row: Sequence[Any]) -> list[Any] | None:
        """A row's values as their types; None where it is a dead letter."""
        reason, found = None, list[Any]()
        if len(row) != len(stream.attributes):
            reason = f"{len(row)} values for {len(stream.attributes)} attributes"
        else:
            for value, (name, kind) in zip(row, stream.attributes.items(), strict=True):
                try:
                    found.append(made := read(value, kind, stream.zone))
                    if is_rounded(value, made):
                        say_rounded(stream.name, name, kind)
                except Unreadable:
                    reason = f"{name} is not a {kind}"
        if reason is None:
            return found
        self.dead.append({"stream": stream.name, "reason": reason, "raw": repr(row)})
        return None

    def _prepare(self, name: str, batch: _Batch) -> Prepared:
        pipeline = self.pipelines[name]
        with self.engine.tables({"batch": batch.rows}):
            return pipeline.prepare(
                [batch.folded[name]],
                lambda steps, suspects: [pipeline.partials.fold_by_step(self.engine, "batch", steps, suspects)],
                self.marks(pipeline.source),
            )

    def _ask(self, requests: Requests, batch: pa.Table) -> None:
        inputs = self.engine.run(to_sql(requests.inputs()), events=batch).to_pylist()
        store = self.stores[requests.aggregation.name]
        for index, values in enumerate(inputs):
            if not values.pop("asks"):
                continue
            try:
                request = requests.request(values)
            except RollupError as problem:
                row = batch.slice(index, 1).to_pylist()[0]
                self.dead.append({"stream": requests.stream.name, "reason": str(problem), "raw": repr(row)})
                continue
            found = store.snapshot().answer(request, request=batch.slice(index, 1))
            if found.num_rows:
                self.emitted.append((requests.join.target, found))


def _shown(rows: pa.Table) -> pa.Table:
    """Rows without the columns that are ours."""
    return rows.drop_columns([name for name in rows.column_names if name.startswith("__")])
