"""The Spark host: one streaming query an input stream, one Spark job a batch, the step in the driver.

`foreachBatch` sends `task.run` over the batch, puts the parts that come back in order, numbers their arrivals, and lets
each aggregation's pipeline admit, cascade and commit. A batch that Spark sends again after a crash is known by the id
of its query and its number, both in the commit.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import structlog
from py4j.protocol import Py4JError

from rollup.aggregation.admission import Refold
from rollup.checkpoint.inputs import Input
from rollup.checkpoint.marks import Mark, Plans, after, ahead, arrivals, done, none
from rollup.conf import Conf, check
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, RollupError, StoppedError
from rollup.core.packing import pack
from rollup.hosts.answers import Answers
from rollup.hosts.exchange import Exchange
from rollup.hosts.maintenance import Upkeep
from rollup.hosts.pipeline import Advance, Pipeline, Prepared
from rollup.hosts.reporting.absent import Absent
from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.reporting.report import BatchReport
from rollup.hosts.spark.collecting import Collected, Tasks
from rollup.hosts.spark.ownership import refuse_without_tables, say_lost
from rollup.hosts.spark.placement import pipeline_of, shift
from rollup.hosts.spark.query_log import newest_done
from rollup.hosts.spark.rewind import Marked, rewind
from rollup.hosts.spark.session import Coming, job_session
from rollup.hosts.spark.sharing import Given, batch_of
from rollup.hosts.spark.statements import JobStatements
from rollup.hosts.spark.tasks.kept import Kept
from rollup.hosts.spark.tasks.results import Kind
from rollup.hosts.spark.tasks.task import TaskSpec, look_again
from rollup.hosts.spark.warming import warm
from rollup.hosts.spark.watching.failures import cause
from rollup.hosts.spark.watching.processes import java_ended, java_of, spent
from rollup.hosts.spark.watching.watchdog import Watchdog
from rollup.hosts.statements.running import bound_to_statements
from rollup.hosts.trailing import Made, trailing
from rollup.plan.aggregation import Clock
from rollup.sources.registry import source
from rollup.stores.base import Store
from rollup.stores.dead_letters import DeadLetters
from rollup.stores.faults import point
from rollup.stores.registry import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_MOMENT = 2.0
"""Seconds between a signal to one process of a job and to the others, at most."""
_HANGING = 20.0
"""Seconds for a batch that hangs to end when Spark's jobs are cancelled; then Java is ended."""


@dataclass(frozen=True)
class _Share:
    """What a pipeline takes of a batch, and how it was asked for."""

    spec: TaskSpec
    results: Collected


class SparkHost:
    """Runs the app of a configuration on Spark until told to stop."""

    def __init__(
        self, conf: Conf, spark: SparkSession | Coming | None = None, reporter: Reporter | None = None
    ) -> None:
        if not isinstance(conf, Conf):
            raise ConfigError(
                f"{type(self).__name__} takes a configuration, not {conf!r}", hint="rollup.conf.load(path) reads one"
            )
        self.conf = conf
        self.program = conf.program()
        check(conf, self.program)
        self.engine = ColumnEngine()
        bound = set() if self.program.statements is None else bound_to_statements(self.program)
        opened = {name: open_store(conf, a, self.engine) for name, a in self.program.aggregations.items()}
        apart = {name: store.apart for name, store in opened.items() if name not in bound}
        self._trailing = {name: trailing(store) for name, store in apart.items() if store is not None}
        stores: dict[str, Store] = {**opened, **self._trailing}
        self._unreported = deque[tuple[BatchReport, Mapping[str, Future[Made]]]]()
        self.pipelines = {
            name: pipeline_of(conf, self.program, a, stores[name], self.engine, lambda: self.spark, name in bound)
            for name, a in self.program.aggregations.items()
        }
        self.statements = (
            None
            if self.program.statements is None
            else JobStatements(conf, self.program, self.pipelines, self.engine, lambda: self.spark)
        )
        self.answers = Answers(conf, self.program, {name: stores[name] for name in stores})
        self.dead_letters = DeadLetters(conf.tables)
        self.reporter = reporter or Reporter()
        self._session = spark if spark is not None else job_session(conf)
        self._lock = threading.RLock()
        self._ids: dict[str, str] = {}
        self._plans: Mapping[str, Plans] = {}
        self._begun: Mapping[str, int] = {}
        self._started = threading.Event()
        self._stop = threading.Event()
        self._exchange = Exchange()
        self._kept = Kept()
        self._cancelled: float | None = None
        self._watchdog = Watchdog(lambda: None if self._java is None else spent(self._java))
        self._tasks = Tasks(self.program, self._kept, self._watchdog, self._stop, self._following)
        self._upkeep = Upkeep(list(stores.values()))
        self._absent = {name: Absent(name, conf.sources[name]) for name in self.program.inputs}

    @cached_property
    def spark(self) -> SparkSession:
        """The session, waited for when it is still coming up."""
        return self._session.session() if isinstance(self._session, Coming) else self._session

    @cached_property
    def _java(self) -> int | None:
        return java_of(self.spark) if self._local else None

    def run(self, once: bool = False) -> None:
        """Process streams until `stop`, or with `once` all that is there now. Raises what stopped a query."""
        for pipeline in self.pipelines.values():
            pipeline.start()
        if self.statements is not None:
            self.statements.running.start(self.engine)
        refuse_without_tables(self.conf, self.program, {name: one.number for name, one in self.pipelines.items()})
        self._plans = {stream: self._rewind(stream) for stream in self.program.inputs}
        self._begun = {stream: newest_done(self.conf.checkpoint / stream) for stream in self.program.inputs}
        if isinstance(self._session, Coming) and self._local:
            warm(self.spark, [self._spec(stream) for stream in self.program.inputs])
        queries: list[StreamingQuery] = []
        try:
            for stream in self.program.inputs:
                queries.append(self._query(stream, once))
                self._ids[stream] = str(queries[-1].id)
            self._started.set()
            gc.freeze()  # what is there now stays; to look at it again for garbage takes 50 ms each time
            self._wait(queries, once)
        except (Py4JError, OSError) as problem:
            self._without_java(problem)
        finally:
            self._end(queries)
        for store in self._trailing.values():
            store.settle()

    def stop(self) -> None:
        """Ask the host to end between two batches; safe in a signal handler."""
        self._stop.set()

    def _rewind(self, stream: str) -> Plans:
        """Let a query go on where the tables are that are behind it, and take back what it left beside them."""

        def forget(query: str, batch: int) -> None:
            self.dead_letters.forget(query, batch)
            self.answers.forget(query, batch)

        marked: dict[str, Marked] = {**self.pipelines}
        if self.statements is not None:
            marked["the statements"] = self.statements.running
        return rewind(stream, self.conf.checkpoint / stream, marked, forget)

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
            self._watch()
            self._stop.wait(0.02 if once else 0.2)
        for query in queries:
            problem = query.exception()
            if problem is not None and not isinstance(cause(problem), StoppedError):
                raise problem

    def _end(self, queries: list[StreamingQuery]) -> None:
        self._stop.set()
        self._started.set()  # one of several queries may not have started: the batches of the others must not wait for it
        self._let_end()  # stop() inside a batch leaves a stack trace behind
        # Not under the lock: a batch that waits for it would keep its query from ending, and both would wait for ever.
        for query in queries:
            with suppress(Py4JError, OSError):  # without Java there is nothing to stop
                query.stop()
        gc.unfreeze()
        for store in self._trailing.values():
            store.close()
        self._report()
        if self.statements is not None:
            structlog.get_logger("rollup").info("statements gave", rows=dict(self.statements.running.counts))
        self._exchange.close()
        self.reporter.close()

    def _without_java(self, problem: Exception) -> None:
        """What to make of an error of the connection to Java: its end, when that was asked for, is a clean one.

        A service manager ends all processes of a job at once, Java often first. Raises RollupError, or the error itself.
        """
        until = time.monotonic() + _MOMENT
        while (how := java_ended(self.spark)) is None:
            if time.monotonic() > until:
                raise problem
            time.sleep(0.05)
        if self._stop.wait(_MOMENT):
            return
        raise RollupError(
            f"Java, which Spark runs in, was ended {how}",
            hint="too little memory is a common reason; start the job again: nothing that was committed is lost",
        ) from None

    def _watch(self) -> None:
        """Raise what the watchdog says; then Spark's jobs are told to end, so that the batch does."""
        problem = self._watchdog.look()
        if problem is not None:
            self._cancelled = time.monotonic()
            self.spark.sparkContext.cancelAllJobs()
            raise problem

    def _let_end(self) -> None:
        """Wait until the batch in progress has ended, which one that hangs is made to do."""
        while not self._lock.acquire(timeout=1):
            if self._cancelled is None:
                with suppress(RollupError, Py4JError, OSError):
                    self._watch()
            elif time.monotonic() - self._cancelled > _HANGING and java_ended(self.spark) is None:
                os.kill(java_of(self.spark) or os.getpid(), signal.SIGKILL)
        self._lock.release()

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
                with self._between_batches() as free:
                    if free:
                        pipeline.tick(now, pipeline.source)

    @contextmanager
    def _between_batches(self) -> Generator[bool]:
        """The lock, or False after a second: who waits longer for a batch does not see that it hangs."""
        free = self._lock.acquire(timeout=1)
        try:
            yield free
        finally:
            if free:
                self._lock.release()

    def _batch(self, stream: str, frame: DataFrame, number: int) -> None:
        self._started.wait()
        with self._lock, self._kept:
            if self._stop.is_set():
                # Spark would take a batch that returns as done, and its events would be lost.
                raise StoppedError("stopped between two batches")
            point("batch.begin")
            began = time.time()
            query = self._ids[stream]
            waiting = [p for p in self.pipelines.values() if not done(p.source.get(stream), query, number)]
            fed = self._fed(stream, waiting)
            given, spec = self._planned(stream, frame, number), self._spec(stream)
            whole = [p.aggregation.name for p in fed if not ahead(p.source.get(stream), query)]
            results = self._tasks.collect(
                given, replace(spec, only=tuple(whole), rows=self._told_rows(stream, query, number))
            )
            self.reporter.warn(self._absent[stream].observe(results.looked))
            for store in self._trailing.values():
                store.next_batch()
            advances, prepared = dict[str, Advance](), dict[str, Prepared]()
            for p, share in self._shares(fed, given, spec, results, query):
                asked = self._asked(p, stream, given, share, results.held, query, number)
                if self.statements is not None and self.statements.tells(p):
                    prepared[p.aggregation.name] = p.prepare(*asked)
                else:
                    advances[p.aggregation.name] = p.advance(*asked)
            refused = self._statements(stream, given, spec, results, query, number, prepared)
            advances |= {name: self.pipelines[name].commit(made) for name, made in prepared.items()}
            answered = self.answers.process(results.forwarded, query, number)
            letters = pa.concat_tables([results.dead, answered, *refused])
            self.dead_letters.append(letters, query, number)
            report = BatchReport(
                stream, number, results.numbering.events, began, time.time(), letters.num_rows, advances, self.pipelines
            )
            self._unreported.append((report, self._on_their_way(advances)))
            self._report()
            self._upkeep.after_batch()
            point("batch.end")

    def _planned(self, stream: str, frame: DataFrame, number: int) -> Given:
        """What the tasks of a batch read."""
        origin = source(self.program.streams[stream], self.conf.sources[stream])
        return batch_of(frame, origin.planned(frame, self.conf.checkpoint / stream, number))

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

    def _shares(
        self, pipelines: list[Pipeline], given: Given, spec: TaskSpec, results: Collected, query: str
    ) -> Iterator[tuple[Pipeline, _Share]]:
        """What each pipeline takes of a batch: all of it, or where it is ahead of the others what it has not had."""
        for pipeline in pipelines:
            taken = ahead(pipeline.source.get(spec.stream), query)
            own = replace(spec, only=(pipeline.aggregation.name,), taken=taken)
            found = self._tasks.collect(given, own) if taken else results
            yield pipeline, _Share(replace(own, options=found.spec.options), found)

    def _fed(self, stream: str, pipelines: list[Pipeline]) -> list[Pipeline]:
        reached = {stream, *(derivation.target for derivation in self.program.fed_by(stream))}
        return [pipeline for pipeline in pipelines if pipeline.aggregation.stream in reached]

    def _told_rows(self, stream: str, query: str, number: int) -> Mapping[str, tuple[str, ...]]:
        """The columns that the one Spark job of a batch brings for statements."""
        found = self.statements
        if found is None or found.done(stream, query, number) or found.ahead(stream, query):
            return {}
        return found.columns(stream)

    def _statements(
        self,
        stream: str,
        given: Given,
        spec: TaskSpec,
        results: Collected,
        query: str,
        number: int,
        prepared: Mapping[str, Prepared],
    ) -> Sequence[pa.Table]:
        """A batch through the statements, unless they have it already; the dead letters of the events they refuse."""
        found = self.statements
        if found is None or found.done(stream, query, number):
            return ()
        rows = results.rows
        if taken := found.ahead(stream, query):
            rows = self._tasks.collect(given, replace(spec, only=(), rows=found.columns(stream), taken=taken)).rows
        return [found.batch(stream, query, number, rows, results.held, self._plans[stream], prepared)]

    def _asked(
        self, pipeline: Pipeline, stream: str, given: Given, share: _Share, held: Input, query: str, number: int
    ) -> tuple[list[Any], Refold, Mapping[str, Any]]:
        """What a pipeline is advanced with: partial rows, how to look again, and its marks after the batch."""
        name, results = pipeline.aggregation.name, share.results
        base, following = results.bounds(name, self._following(name, stream))

        def refold(steps: pa.Table, suspects: pa.Table) -> list[Any]:
            bases = {origin: base + offset for origin, offset in results.numbering.bases.items()}
            spec = replace(share.spec, refold={name: (pack(steps), pack(suspects))}, bases=bases, keep=False)
            self._kept.ask(stream)
            if results.kept is not None:
                with suppress(OSError):
                    return look_again(replace(spec, threads=os.cpu_count() or 1), results.kept)
            return [each.partials() for each in self._tasks.results(given, spec) if each.kind is Kind.PARTIALS]

        partials = [shift(table, base) for table in results.partials.get(name, [])]
        mark = after(pipeline.source.get(stream), query, number, following, held, self._plans[stream])
        source = {**self._untouched(pipeline), **pipeline.source, stream: mark}
        if pipeline.anew(source):
            say_lost(pipeline, stream)
        return partials, refold, source

    def _following(self, name: str, stream: str) -> int:
        """The arrival that comes next of a stream, to an aggregation."""
        return arrivals(self.pipelines[name].source.get(stream))

    def _untouched(self, pipeline: Pipeline) -> dict[str, Mark]:
        """Marks of the streams that feed a pipeline and had nothing for it yet.

        Without them nobody could tell, once the tables go back to a commit of before their first batch, that it lacks
        this: the stream would go on behind what the others have.
        """
        others = [stream for stream in self.program.inputs if stream not in pipeline.source]
        return {
            stream: none(self._ids[stream], self._begun[stream]) for stream in others if self._fed(stream, [pipeline])
        }

    def _spec(self, stream: str) -> TaskSpec:
        asking = tuple({join.source.stream for join in self.program.joins} | set(self.conf.sinks))
        split = {name: p.split for name, p in self.pipelines.items() if p.split is not None}
        return TaskSpec(
            self.program.rollups,
            stream,
            dict(self.conf.sources[stream]),
            self._exchange.path if self._local else None,
            asking,
            split=split,
            keep=self._kept.wanted(stream),
        )

    @property
    def _local(self) -> bool:
        """Whether tasks run on this machine."""
        return str(self.spark.sparkContext.master).startswith("local")
