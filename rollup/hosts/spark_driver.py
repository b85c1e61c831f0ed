"""The Spark host: one streaming query an input stream, one Spark job a batch, the step in the driver.

`foreachBatch` sends `task.run` over the batch, puts the parts that come back in order, numbers their arrivals, and lets
each aggregation's pipeline admit, cascade and commit. A batch that Spark sends again after a crash is known by the id
of its query and its number, both in the commit.
"""

from __future__ import annotations

import gc
import threading
import time
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import structlog

from rollup.aggregation.engine import Engine
from rollup.aggregation.pipeline import Advance, Pipeline
from rollup.conf import Conf, check
from rollup.errors import RollupError
from rollup.hosts.answers import Answers
from rollup.hosts.checkpoint import refuse_without_tables
from rollup.hosts.exchange import Exchange
from rollup.hosts.numbering import Numbering
from rollup.hosts.progress import BatchReport, Reporter
from rollup.hosts.query_log import beyond, query_of, remove
from rollup.hosts.session import session
from rollup.hosts.shards import shifted
from rollup.hosts.spark_shards import SizedPipeline, pipeline_of, shift
from rollup.hosts.task import RESULT, RESULT_SCHEMA, TaskSpec, pack, received, run, unpack_row
from rollup.hosts.trailing import Made, TrailingStore
from rollup.hosts.upkeep import Upkeep
from rollup.plan.aggregation import Clock
from rollup.sources.base import DEAD
from rollup.sources.registry import source
from rollup.stores.base import Store
from rollup.stores.dead_letters import DeadLetters
from rollup.stores.faults import point
from rollup.stores.registry import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_STOPPED = "stopped between two batches"


@dataclass(frozen=True)
class _Results:
    """What the tasks of a batch gave, in order of arrival."""

    numbering: Numbering
    partials: Mapping[str, list[Any]]  # pa.Table, or Split where the step runs in shards
    dead: pa.Table
    forwarded: Mapping[str, pa.Table]

    def bounds(self, name: str, known: int) -> tuple[int, int]:
        """As `Numbering.bounds`, of the partial rows of an aggregation."""
        return self.numbering.bounds([getattr(part, "summary", part) for part in self.partials.get(name, [])], known)


class SparkHost:
    """Runs the app of a configuration on Spark until told to stop."""

    def __init__(self, conf: Conf, spark: SparkSession | None = None, reporter: Reporter | None = None) -> None:
        self.conf = conf
        self.program = conf.program()
        check(conf, self.program)
        self.engine = Engine()
        kafka = any(options.get("kind") == "kafka" for options in conf.sources.values())
        stores = {name: _trailing(open_store(conf, a, self.engine)) for name, a in self.program.aggregations.items()}
        self._trailing = {name: store for name, store in stores.items() if isinstance(store, TrailingStore)}
        self._unreported = deque[tuple[BatchReport, Mapping[str, Future[Made]]]]()
        self.pipelines = {
            name: pipeline_of(conf, a, stores[name], self.engine, lambda: self.spark)
            for name, a in self.program.aggregations.items()
        }
        self.answers = Answers(conf, self.program, {name: stores[name] for name in stores})
        self.dead_letters = DeadLetters(conf.tables)
        self.reporter = reporter or Reporter()
        self.spark = spark if spark is not None else session(conf.spark, kafka)
        self._lock = threading.RLock()
        self._ids: dict[str, str] = {}
        self._started = threading.Event()
        self._stop = threading.Event()
        self._exchange = Exchange()
        self._upkeep = Upkeep(list(stores.values()))

    def run(self, once: bool = False) -> None:
        """Process streams until `stop`, or with `once` all that is there now. Raises what stopped a query."""
        for pipeline in self.pipelines.values():
            pipeline.start()
        refuse_without_tables(self.conf, self.program, {name: one.number for name, one in self.pipelines.items()})
        for stream in self.program.inputs:
            self._rewind(stream)
        queries = [self._query(stream, once) for stream in self.program.inputs]
        self._ids.update({stream: str(query.id) for stream, query in zip(self.program.inputs, queries, strict=True)})
        self._started.set()
        gc.freeze()  # what is there now stays; to look at it again for garbage takes 50 ms each time
        try:
            self._wait(queries, once)
        finally:
            self._end(queries)
        for store in self._trailing.values():
            store.settle()

    def stop(self) -> None:
        """Ask the host to end between two batches; safe in a signal handler."""
        self._stop.set()

    def _rewind(self, stream: str) -> None:
        """Let a query go on where the tables are that are behind it, and take back what it left beside them."""
        checkpoint = self.conf.checkpoint / stream
        query = query_of(checkpoint)
        marks = [pipeline.source.get(stream) for pipeline in self.pipelines.values()]
        batches = [int(mark["batch"]) for mark in marks if mark is not None and mark["query"] == query]
        later = beyond(checkpoint, min(batches)) if batches else []
        if query is None or not later:
            return
        self.dead_letters.forget(query, min(batches))
        self.answers.forget(query, min(batches))
        remove(later)
        structlog.get_logger("rollup").info("the stream goes back to the tables", stream=stream, batch=min(batches))

    def _query(self, stream: str, once: bool) -> StreamingQuery:
        frame = source(self.program.streams[stream], self.conf.sources[stream]).frame(self.spark)
        writer = frame.writeStream.queryName(stream).option("checkpointLocation", str(self.conf.checkpoint / stream))
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=self.conf.trigger)
        return writer.foreachBatch(lambda batch, number: self._batch(stream, batch, number)).start()

    def _wait(self, queries: list[StreamingQuery], once: bool) -> None:
        while not self._stop.is_set() and (any(query.isActive for query in queries) or not once):
            if any(not query.isActive for query in queries) and not once:
                break
            self._tick()
            self._stop.wait(0.2)
        for query in queries:
            problem = query.exception()
            if problem is not None and _STOPPED not in str(problem):
                raise problem

    def _end(self, queries: list[StreamingQuery]) -> None:
        self._stop.set()
        with self._lock:
            pass  # the batch in progress has ended; stop() inside one leaves a stack trace behind
        # Not under the lock: a batch that waits for it would keep its query from ending, and both would wait for ever.
        for query in queries:
            query.stop()
        gc.unfreeze()
        for store in self._trailing.values():
            store.close()
        self._report()
        self._exchange.close()
        self.reporter.close()

    def _tick(self) -> None:
        """Aggregations by arrival time close their buckets although nothing arrives; commits that trail are looked at."""
        for store in self._trailing.values():
            store.check()
        if self._lock.acquire(blocking=False):
            try:
                self._report()
            finally:
                self._lock.release()
        now = int(time.time() * 1000)
        for pipeline in self.pipelines.values():
            if pipeline.aggregation.clock is Clock.ARRIVAL and pipeline.due(now):
                with self._lock:
                    pipeline.tick(now, pipeline.source)

    def _batch(self, stream: str, frame: DataFrame, number: int) -> None:
        self._started.wait()
        with self._lock:
            if self._stop.is_set():
                # Spark would take a batch that returns as done, and its events would be lost.
                raise RollupError(_STOPPED)
            point("batch.begin")
            began = time.time()
            query = self._ids[stream]
            waiting = [p for p in self.pipelines.values() if not _done(p, stream, query, number)]
            results = self._collect(stream, frame, self._spec(stream))
            advances = {
                p.aggregation.name: self._advance(p, stream, frame, results, query, number)
                for p in self._fed(stream, waiting, results)
            }
            letters = pa.concat_tables([results.dead, self.answers.process(results.forwarded, query, number)])
            self.dead_letters.append(letters, query, number)
            report = BatchReport(
                stream, number, results.numbering.events, began, time.time(), letters.num_rows, advances, self.pipelines
            )
            self._unreported.append((report, self._on_their_way(advances)))
            self._report()
            self._upkeep.after_batch()
            point("batch.end")

    def _on_their_way(self, names: Iterable[str]) -> dict[str, Future[Made]]:
        """The commits of some aggregations that are being made by another process."""
        newest = {name: self._trailing[name].newest_commit for name in names if name in self._trailing}
        return {name: commit for name, commit in newest.items() if commit is not None}

    def _report(self) -> None:
        """Report the batches, in their order, whose commits have been made; the one of a failed commit never is."""
        while self._unreported and all(commit.done() for commit in self._unreported[0][1].values()):
            report, commits = self._unreported.popleft()
            if not any(commit.exception() for commit in commits.values()):
                self.reporter.batch(report.completed({name: commit.result() for name, commit in commits.items()}))

    def _fed(self, stream: str, pipelines: list[Pipeline], results: _Results) -> list[Pipeline]:
        reached = {stream, *(derivation.target for derivation in self.program.fed_by(stream))}
        return [pipeline for pipeline in pipelines if pipeline.aggregation.stream in reached]

    def _advance(
        self, pipeline: Pipeline, stream: str, frame: DataFrame, results: _Results, query: str, number: int
    ) -> Advance:
        name = pipeline.aggregation.name
        base, following = results.bounds(name, _arrivals(pipeline, stream))

        def refold(steps: pa.Table, suspects: pa.Table) -> list[Any]:
            bases = {origin: base + offset for origin, offset in results.numbering.bases.items()}
            spec = replace(self._spec(stream), refold={name: (pack(steps), pack(suspects))}, bases=bases)
            rows = self._rows(frame, spec)
            return [received(row) for row in rows if row["kind"] == "partials"]

        partials = [shift(table, base) for table in results.partials.get(name, [])]
        mark = {"query": query, "batch": number, "arrivals": following}
        return pipeline.advance(partials, refold, {**pipeline.source, stream: mark})

    def _spec(self, stream: str) -> TaskSpec:
        local = str(self.spark.sparkContext.master).startswith("local")
        asking = tuple({join.source.stream for join in self.program.joins} | set(self.conf.sinks))
        split = {
            name: p.split for name, p in self.pipelines.items() if isinstance(p, SizedPipeline) and p.split is not None
        }
        return TaskSpec(
            self.program.app.text,
            self.conf.zone,
            stream,
            dict(self.conf.sources[stream]),
            self._exchange.path if local else None,
            asking,
            split=split,
        )

    def _rows(self, frame: DataFrame, spec: TaskSpec) -> list[dict[str, Any]]:
        """The one Spark job of a batch."""
        found = frame.mapInArrow(lambda batches: run(spec, batches), RESULT).toArrow()
        return found.cast(RESULT_SCHEMA).to_pylist()

    def _collect(self, stream: str, frame: DataFrame, spec: TaskSpec) -> _Results:
        rows = self._rows(frame, spec)
        numbering = Numbering.of(rows)
        bases, order = numbering.bases, numbering.order
        rows.sort(key=lambda row: order[row["origin"]])
        partials, forwarded, dead = dict[str, list[Any]](), dict[str, list[pa.Table]](), [DEAD.empty_table()]
        for row in rows:
            if row["kind"] == "part":
                continue
            if row["kind"] == "partials":
                partials.setdefault(row["name"], []).append(shift(received(row), bases[row["origin"]]))
                continue
            table = unpack_row(row["payload"], row["file"])
            if row["kind"] == "dead":
                dead.append(table.cast(DEAD))
            else:
                forwarded.setdefault(row["name"], []).append(shifted(table, bases[row["origin"]]))
        whole = {name: pa.concat_tables(tables) for name, tables in forwarded.items()}
        return _Results(numbering, partials, pa.concat_tables(dead), whole)


def _trailing(store: Store) -> Store:
    return store if store.apart is None else TrailingStore(store.apart)


def _done(pipeline: Pipeline, stream: str, query: str, number: int) -> bool:
    """Whether a pipeline has committed this batch already, before a crash."""
    mark = pipeline.source.get(stream)
    return mark is not None and mark["query"] == query and mark["batch"] >= number


def _arrivals(pipeline: Pipeline, stream: str) -> int:
    mark = pipeline.source.get(stream)
    return 0 if mark is None else int(mark["arrivals"])
