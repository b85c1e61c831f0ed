"""The Spark host: one streaming query an input stream, one Spark job a batch, the step in the driver.

`foreachBatch` sends `task.run` over the batch, puts the parts that come back in order, numbers their arrivals, and lets
each aggregation's pipeline admit, cascade and commit (`batches.py`); where it may it returns before that (`rests.py`).
A batch that Spark sends again after a crash is known by the id of its query and its number, both in the commit.
"""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from typing import TYPE_CHECKING

import structlog
from py4j.protocol import Py4JError, Py4JJavaError

from rollup.checkpoint.marks import Plans
from rollup.conf import Conf, check
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, RollupError, StoppedError
from rollup.hosts.exchange import Exchange
from rollup.hosts.pipeline import Pipeline
from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.spark.batches import Batch, Batches
from rollup.hosts.spark.carried import log_of
from rollup.hosts.spark.catalog import register
from rollup.hosts.spark.collecting import Asked
from rollup.hosts.spark.ownership import (
    agreed,
    note_queries,
    refuse_half_lost,
    refuse_without_closings,
    refuse_without_tables,
)
from rollup.hosts.spark.placement import pipeline_of
from rollup.hosts.spark.query_log import drop_drafts, newest_done
from rollup.hosts.spark.rests import Rests
from rollup.hosts.spark.rewind import Marked, rewind
from rollup.hosts.spark.session import Coming, disks_of, job_session
from rollup.hosts.spark.statements import JobStatements
from rollup.hosts.spark.warming import warm
from rollup.hosts.spark.watching.failures import cause, of_query
from rollup.hosts.spark.watching.processes import java_ended, java_of, spent
from rollup.hosts.spark.watching.servers import Servers
from rollup.hosts.spark.watching.watchdog import Watchdog
from rollup.hosts.statements.running import bound_to_statements
from rollup.hosts.trailing import trailing
from rollup.plan.aggregation import Clock
from rollup.sources.base import Remote
from rollup.sources.registry import source
from rollup.sources.topics.ranges import topics_of
from rollup.stores.base import Store
from rollup.stores.faults import point
from rollup.stores.registry import open_store

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

_MOMENT = 2.0
"""Seconds between a signal to one process of a job and to the others, at most."""
_HANGING = 20.0
"""Seconds for a batch that hangs to end when Spark's jobs are cancelled; then Java is ended."""
_AT_REST = ("Waiting for next trigger", "Waiting for data to arrive")
"""What Spark says of a query that has taken what there was."""
_WARMING = 10.0
"""Seconds that workers which have just been begun may hold up the end of a job."""


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
        self.pipelines = {
            name: pipeline_of(conf, self.program, a, stores[name], self.engine, lambda: self.spark, name in bound)
            for name, a in self.program.aggregations.items()
        }
        self.statements = (
            None
            if self.program.statements is None
            else JobStatements(conf, self.program, self.pipelines, self.engine, lambda: self.spark)
        )
        self.reporter = reporter or Reporter()
        self._session = spark if spark is not None else job_session(conf)
        self._lock = threading.RLock()
        self._rests = Rests()
        self._overlapping = False
        self._started = threading.Event()
        self._stop = threading.Event()
        self._exchange = Exchange()
        self._cancelled: float | None = None
        self._warming: threading.Thread | None = None
        self._watchdog = Watchdog(lambda: None if self._java is None else spent(self._java))
        self._batches = Batches(
            conf,
            self.program,
            self.pipelines,
            stores,
            self.statements,
            self.reporter,
            self._watchdog,
            self._stop,
            lambda: self._exchange.path if self._local else None,
        )

    @cached_property
    def spark(self) -> SparkSession:
        """The session, waited for when it is still coming up."""
        return self._session.session() if isinstance(self._session, Coming) else self._session

    @cached_property
    def _java(self) -> int | None:
        return java_of(self.spark) if self._local else None

    def run(self, once: bool = False) -> None:
        """Process streams until `stop`, or with `once` all that is there now. Raises what stopped a query."""
        self._overlapping = once and self._batches.may_overlap()
        for pipeline in self.pipelines.values():
            pipeline.start()
        if self.statements is not None:
            self.statements.running.start(self.engine)
        refuse_without_tables(self.conf, self.program, {name: one.number for name, one in self.pipelines.items()})
        owner = agreed(self.conf, self.program, self._marked)
        refuse_half_lost(self.conf, self.program, self._marked)
        if self.statements is not None:
            refuse_without_closings(self.conf, self.program, self.pipelines, self.statements.running)
        self._batches.plans = {stream: self._rewind(stream) for stream in self.program.inputs}
        self._batches.logs = {stream: log_of(self.conf.checkpoint / stream) for stream in self.program.inputs}
        self._batches.begun = {stream: newest_done(log.folder) for stream, log in self._batches.logs.items()}
        self.reporter.warn(self._begin_empty())
        self.reporter.warn(register(self.spark, self.conf, self.program) if "catalog" in self.conf.store else ())
        if self.statements is not None:
            self.statements.say_missed(self._batches.begun)
        if isinstance(self._session, Coming) and self._local:
            self._warming = warm(self.spark, [self._batches.spec(stream) for stream in self.program.inputs])
        queries: list[StreamingQuery] = []
        try:
            for stream in self.program.inputs:
                queries.append(self._query(stream, once))
                self._batches.ids[stream] = str(queries[-1].id)
            self._carry()
            note_queries(self.conf, owner, self._batches.ids)
            self._started.set()
            gc.freeze()  # what is there now stays; to look at it again for garbage takes 50 ms each time
            self._wait(queries, once)
        except (Py4JError, OSError) as problem:
            self._without_java(problem)
        finally:
            self._end(queries)
        self._carry()
        for log in self._batches.logs.values():
            log.close()
        self._rests.check()
        for store in self._trailing.values():
            store.settle()
        self.reporter.check()

    def _begin_empty(self) -> Iterator[str]:
        """A warning for each aggregation that begins behind events which others have had."""
        had = [stream for stream, last in self._batches.begun.items() if last >= 0]
        for name, pipeline in self.pipelines.items():
            behind = [stream for stream in had if pipeline.aggregation.stream in self._reach(stream)]
            if pipeline.number == 0 and behind:
                yield (
                    f"warning: {name} is new and begins empty: the events of {', '.join(behind)} that the job has had are not "
                    f"in it; `rollup replay` with `--aggregation {name}` brings them once the job has begun"
                )

    def _reach(self, stream: str) -> set[str]:
        """A stream, and those that its events reach."""
        return {stream, *(derivation.target for derivation in self.program.fed_by(stream))}

    def stop(self) -> None:
        """Ask the host to end between two batches; safe in a signal handler."""
        self._stop.set()

    def _rewind(self, stream: str) -> Plans:
        """Let a query go on where the tables are that are behind it, and take back what it left beside them."""
        return rewind(stream, self.conf.checkpoint / stream, self._marked, self._batches.forget)

    @property
    def _marked(self) -> dict[str, Marked]:
        """What holds events of streams."""
        statements = {} if self.statements is None else {"the statements": self.statements.running}
        return {**self.pipelines, **statements}

    def _carry(self) -> None:
        for log in self._batches.logs.values():
            log.carry()

    def _query(self, stream: str, once: bool) -> StreamingQuery:
        checkpoint = self._batches.logs[stream].folder
        drop_drafts(checkpoint)
        frame = source(self.program.streams[stream], self.conf.sources[stream]).frame(self.spark, checkpoint)
        writer = frame.writeStream.queryName(stream).option("checkpointLocation", str(checkpoint))
        writer = writer.trigger(availableNow=True) if once else writer.trigger(processingTime=self.conf.trigger)
        try:
            return writer.foreachBatch(lambda batch, number: self._batch(stream, batch, number)).start()
        except Py4JJavaError as problem:
            raise self._told(problem, stream) from None

    def _wait(self, queries: list[StreamingQuery], once: bool) -> None:
        while not self._stop.is_set() and (
            any(query.isActive for query in queries) or not self._rests.idle(0) or not once
        ):
            if any(not query.isActive for query in queries) and not once:
                break
            self._tick()
            if not once:
                self._pass_time(queries)
            self.reporter.warn(self._servers.look(queries))
            self._watch()
            self._stop.wait(0.02 if once else 0.2)
        for query in queries:
            problem = query.exception()
            if problem is not None and not isinstance(cause(problem), StoppedError):
                raise self._told(problem, str(query.name))

    def _told(self, problem: Exception, stream: str) -> Exception:
        """What stopped the query of a stream, as `of_query`, or that its server has gone away."""
        if type(cause(problem)) is RollupError and (away := self._servers.lost(stream)) is not None:
            return away
        options = self.conf.sources[stream]
        topics = ", ".join(topics_of(options)) or None
        found = of_query(problem, self.conf.checkpoint / stream, topics, disks_of(self.conf.spark))
        log = self._batches.logs.get(stream)
        return found if log is None else log.named(found)

    @cached_property
    def _servers(self) -> Servers:
        found = {name: source(self.program.streams[name], self.conf.sources[name]) for name in self.program.inputs}
        return Servers({name: each for name, each in found.items() if isinstance(each, Remote)})

    def _end(self, queries: list[StreamingQuery]) -> None:
        self._stop.set()
        self._started.set()  # one of several queries may not have started: the batches of the others must not wait for it
        self._let_end()  # stop() inside a batch leaves a stack trace behind
        # Not under the lock: a batch that waits for it would keep its query from ending, and both would wait for ever.
        for query in queries:
            with suppress(Py4JError, OSError):  # without Java there is nothing to stop
                query.stop()
        if self._warming is not None:
            self._warming.join(_WARMING)
        gc.unfreeze()
        self._rests.close()
        for store in self._trailing.values():
            store.close()
        self._batches.report()
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
        while not self._idle():
            if self._cancelled is None:
                with suppress(RollupError, Py4JError, OSError):
                    self._watch()
            elif time.monotonic() - self._cancelled > _HANGING and java_ended(self.spark) is None:
                os.kill(java_of(self.spark) or os.getpid(), signal.SIGKILL)

    def _idle(self) -> bool:
        """Whether nothing of a batch is in progress."""
        with self._between_batches() as free:
            return free

    def _tick(self) -> None:
        """Aggregations by arrival time close their buckets although nothing arrives; commits that trail are looked at."""
        self._rests.check()
        for store in self._trailing.values():
            store.check()
        self._batches.report()
        self.reporter.check()
        now = int(time.time() * 1000)
        if due := [pipeline for pipeline in self._arriving if pipeline.due(now)]:
            # All at once: no batch comes between two aggregations of one stream, whose arrival is one clock.
            with self._between_batches() as free:
                for pipeline in due if free else ():
                    pipeline.tick(now, pipeline.source)

    def _pass_time(self, queries: Sequence[StreamingQuery]) -> None:
        """Time goes on for statements although nothing comes, unless a source has something that was not taken yet."""
        if self.statements is None or not self.statements.silent:
            return
        if all(query.status["message"] in _AT_REST and not query.status["isDataAvailable"] for query in queries):
            with self._between_batches() as free:
                if free:
                    self.statements.pass_time()

    @cached_property
    def _arriving(self) -> list[Pipeline]:
        """The pipelines that close by the clock of the machine; what statements insert is there at the time of its cause."""
        statements = self.program.statements
        caused = set() if statements is None or not self.program.times else set(statements.streams)
        arriving = [p for p in self.pipelines.values() if p.aggregation.clock is Clock.ARRIVAL]
        return [p for p in arriving if p.aggregation.stream not in caused]

    @contextmanager
    def _between_batches(self) -> Generator[bool]:
        """The lock when nothing of a batch is in progress, or False after two seconds: who waits longer for a batch
        does not see that it hangs."""
        if not self._lock.acquire(timeout=1):
            yield False
            return
        try:
            yield self._rests.idle(1)
        finally:
            self._lock.release()

    def _batch(self, stream: str, frame: DataFrame, number: int) -> None:
        self._started.wait()
        with self._lock:
            if self._stop.is_set():
                # Spark would take a batch that returns as done, and its events would be lost.
                raise StoppedError("stopped between two batches")
            point("batch.begin")
            batch = self._batches.given(stream, frame, number)
            if self._overlapping and self._batches.trails(batch):
                asked = self._rests.ask(lambda: self._batches.ask(batch))
                self._rests.settle()
                for store in self._trailing.values():
                    store.make_room()
                self._rests.begin(lambda: self._take(batch, asked))
                return
            if self._overlapping:
                self._rests.settle()
                batch = self._batches.given(stream, frame, number)  # as the one before has left things
            self._take(batch)

    def _take(self, batch: Batch, asked: Asked | None = None) -> None:
        with self.engine.use():
            self._batches.take(batch, asked)

    @property
    def _local(self) -> bool:
        """Whether tasks run on this machine."""
        return str(self.spark.sparkContext.master).startswith("local")
