"""The local host: an app in this process, without Spark. For the library, the command line and tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from rollup.aggregation.engine import Engine
from rollup.aggregation.explaining import explain
from rollup.aggregation.pipeline import Pipeline
from rollup.aggregation.requests import Requests
from rollup.aggregation.retrieval import Ask, plan
from rollup.errors import QueryError, RollupError
from rollup.lang.siddhi import parse_query
from rollup.plan.aggregation import Aggregation
from rollup.plan.dialects import to_sql
from rollup.program import Program, compile_app
from rollup.stores.base import Store
from rollup.stores.memory import MemoryStore

StoreFactory = Callable[[Aggregation, Engine], Store]


class LocalHost:
    """Runs a program over rows that are handed to it.

    >>> host = LocalHost.of("define stream S (k string, v int, ts long);"
    ...     "define aggregation A from S select k, sum(v) as s group by k aggregate by ts every sec ... min;")
    >>> host.send("S", [("a", 1, 0), ("a", 2, 1500)])
    >>> host.query("from A within '1970-01-01 00:00:**' per 'minutes' select k, s").to_pylist()
    [{'k': 'a', 's': 3}]
    """

    def __init__(self, program: Program, store: StoreFactory = MemoryStore) -> None:
        self.program = program
        self.engine = Engine(threads=2)
        self.now = 0
        self.arrivals = 0
        self.dead: list[dict[str, Any]] = []
        self.emitted: list[tuple[str, pa.Table]] = []
        self.stores = {name: store(a, self.engine) for name, a in program.aggregations.items()}
        self.pipelines = {name: Pipeline(a, self.stores[name], self.engine) for name, a in program.aggregations.items()}
        for pipeline in self.pipelines.values():
            pipeline.start()

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
        good = [row for row in rows if self._fits(stream, schema, row)]
        columns = [pa.array([row[i] for row in good], schema.field(i).type) for i in range(len(schema))]
        arrivals = pa.array(range(self.arrivals, self.arrivals + len(good)), pa.int64())
        received = pa.array([self.now] * len(good), pa.int64())
        self.arrivals += len(good)
        schema = schema.append(pa.field("__arrival", pa.int64())).append(pa.field("__received", pa.int64()))
        self.process(stream, pa.table([*columns, arrivals, received], schema=schema))

    def process(self, stream: str, events: pa.Table) -> None:
        """One batch of a stream: its attributes, `__arrival` and `__received`."""
        batches = {stream: events}
        for derivation in self.program.fed_by(stream):
            derived = self.engine.run(to_sql(derivation.query), **{derivation.source: batches[derivation.source]})
            known = batches.get(derivation.target)
            batches[derivation.target] = derived if known is None else pa.concat_tables([known, derived])
            self.emitted.append((derivation.target, derived.drop_columns(["__arrival", "__received"])))
        for name, batch in batches.items():
            for pipeline in self.pipelines.values():
                if pipeline.aggregation.stream == name:
                    self._advance(pipeline, batch)
            for join in self.program.joins:
                if join.source.stream == name:
                    aggregation = self.program.aggregations[join.retrieval.aggregation]
                    self._ask(Requests.of(join, self.program.streams[name], aggregation), batch)

    def tick(self, now: int) -> None:
        """The wall clock; aggregations by arrival time close what it has passed."""
        self.now = now
        for pipeline in self.pipelines.values():
            if pipeline.aggregation.time is None:
                pipeline.tick(now, {})

    def query(self, text: str) -> pa.Table:
        """The answer to an on-demand query. Raises a RollupError before any data is read when it is wrong."""
        return self.ask(plan(parse_query(text), self.program.aggregations))

    def ask(self, ask: Ask) -> pa.Table:
        """The answer to a checked question."""
        snapshot = self.stores[ask.aggregation.name].snapshot()
        return explain(snapshot, ask) if ask.explain else snapshot.answer(ask)

    def _fits(self, stream: str, schema: pa.Schema, row: Sequence[Any]) -> bool:
        reason = None
        if len(row) != len(schema):
            reason = f"{len(row)} values for {len(schema)} attributes"
        else:
            for value, field in zip(row, schema, strict=True):
                try:
                    pa.array([value], field.type)
                except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as problem:
                    reason = f"{field.name}: {problem}"
        if reason is not None:
            self.dead.append({"stream": stream, "reason": reason, "raw": repr(row)})
        return reason is None

    def _advance(self, pipeline: Pipeline, batch: pa.Table) -> None:
        with self.engine.tables({"batch": batch}):
            folded = pipeline.partials.fold(self.engine, "batch")
            refused = pipeline.partials.refused(self.engine, "batch")
            self.dead += [{"stream": pipeline.aggregation.stream, **row} for row in refused.to_pylist()]
            pipeline.advance(
                [folded],
                lambda steps, suspects: [pipeline.partials.fold_by_step(self.engine, "batch", steps, suspects)],
                {},
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
