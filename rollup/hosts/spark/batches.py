"""What is made of the batches of a job: their tasks are asked, pipelines go a step further, commits begin.

A batch at a time and in order; who calls sees to that.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from rollup.aggregation.admission import Refold
from rollup.aggregation.offsets import Offsets
from rollup.checkpoint.inputs import Input
from rollup.checkpoint.marks import Mark, Plans, after, ahead, arrivals, done, measured, none
from rollup.conf import Conf
from rollup.core.packing import pack
from rollup.hosts.answers import Answers
from rollup.hosts.maintenance import Upkeep
from rollup.hosts.pipeline import Advance, Pipeline, Prepared
from rollup.hosts.reporting.absent import Absent
from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.reporting.report import BatchReport
from rollup.hosts.reporting.unreported import Unreported
from rollup.hosts.spark.carried import QueryLog
from rollup.hosts.spark.collecting import Asked, Collected, Tasks
from rollup.hosts.spark.ownership import say_lost, say_zones
from rollup.hosts.spark.placement import shift
from rollup.hosts.spark.sharing import Given, Places, batch_of
from rollup.hosts.spark.statements import OF_STATEMENTS, JobStatements
from rollup.hosts.spark.tasks.kept import Kept
from rollup.hosts.spark.tasks.results import Kind, Result
from rollup.hosts.spark.tasks.task import TaskSpec, look_again
from rollup.hosts.spark.watching.watchdog import Watchdog
from rollup.hosts.trailing import Made, TrailingStore
from rollup.plan.aggregation import Clock
from rollup.plan.lateness import ahead_of
from rollup.program import Program
from rollup.sources.file_log import planned_at
from rollup.sources.registry import source
from rollup.sources.topics.notes import with_topics
from rollup.stores.base import Store
from rollup.stores.dead_letters import DeadLetters
from rollup.stores.faults import point

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


@dataclass(frozen=True)
class Batch:
    """A batch that Spark has given: for which pipelines, and what its tasks are asked."""

    stream: str
    number: int
    query: str
    fed: list[Pipeline]
    given: Given
    spec: TaskSpec
    whole: TaskSpec
    """What is asked of all of them at once: for the pipelines that lack the whole batch."""
    newest: int = 0
    """The time that its events are measured against, where that is ahead of the clock."""


@dataclass(frozen=True)
class _Share:
    """What a pipeline takes of a batch, and how it was asked for."""

    spec: TaskSpec
    results: Collected


class Batches:
    """The way of batches through an app; `ids`, `logs`, `plans` and `begun` of its streams' queries are set before the first."""

    def __init__(
        self,
        conf: Conf,
        program: Program,
        pipelines: Mapping[str, Pipeline],
        stores: Mapping[str, Store],
        statements: JobStatements | None,
        reporter: Reporter,
        watchdog: Watchdog,
        stop: threading.Event,
        exchange: Callable[[], str | None],
    ) -> None:
        self._conf, self._program, self._pipelines, self._statements = conf, program, pipelines, statements
        self._reporter, self._exchange = reporter, exchange
        self._reports = Unreported(reporter)
        self._trailing = {name: store for name, store in stores.items() if isinstance(store, TrailingStore)}
        self._answers = Answers(conf, program, stores)
        self._letters = DeadLetters(conf.tables)
        self._kept = Kept()
        self._tasks = Tasks(program, self._kept, watchdog, stop, self._following)
        self._upkeep = Upkeep(list(stores.values()))
        self._absent = {name: Absent(name, conf.sources[name]) for name in program.inputs}
        self._offsets = Offsets()
        self.ids: dict[str, str] = {}
        self.logs: dict[str, QueryLog] = {}
        self.plans: Mapping[str, Plans] = {}
        self.begun: Mapping[str, int] = {}

    def forget(self, query: str, batch: int) -> None:
        """Take back what batches of a query after one have left beside the tables."""
        for each in (query, query + OF_STATEMENTS):
            self._letters.forget(each, batch)
        self._answers.forget(query, batch)

    def report(self) -> None:
        """Report the batches whose commits have been made."""
        self._reports.report()

    def ask(self, batch: Batch) -> list[Result]:
        """What the tasks of a batch give."""
        return self._tasks.results(batch.given, batch.whole)

    def given(self, stream: str, frame: DataFrame, number: int) -> Batch:
        """A batch as Spark gives it to `foreachBatch`."""
        query, log = self.ids[stream], self.logs[stream]
        log.sums.add()
        waiting = [p for p in self._pipelines.values() if not done(p.source.get(stream), query, number)]
        fed = self._fed(stream, waiting)
        newest, planned = self._newest(stream, query, number), planned_at(log.folder, number)
        now = int(time.time() * 1000) if planned is None else planned
        given = self._planned(stream, frame, number)
        log.carry()
        spec = replace(self.spec(stream), latest=self._latest(now, newest), now=now)
        told = self._told_rows(stream, query, number)
        whole = tuple(p.aggregation.name for p in fed if not ahead(p.source.get(stream), query))
        return Batch(stream, number, query, fed, given, spec, replace(spec, only=whole, rows=told), newest)

    def _latest(self, now: int, newest: int) -> int | None:
        """The latest time that an event of a batch may have: so far ahead of when it was planned, or of what was taken.

        A batch that comes again after a crash is measured as it was.
        """
        ahead = ahead_of(self._conf.ahead)
        return None if ahead is None else max(now, newest) + ahead

    def _newest(self, stream: str, query: str, number: int) -> int:
        """The newest time that aggregations of a stream had before a batch; 0 where it is not ahead of the clock."""
        for mark in self._marks(stream):
            if mark["query"] == query and mark["batch"] == number:
                return int(mark.get("newest", 0))
        reached = self._fed(stream, list(self._pipelines.values()))
        newest = max((p.clock or 0 for p in reached if p.aggregation.clock is not Clock.ARRIVAL), default=0)
        return newest if newest > time.time() * 1000 else 0

    def _marks(self, stream: str) -> list[Mark]:
        """What everyone who takes events of a stream has of it."""
        sources = [p.source for p in self._pipelines.values()]
        if self._statements is not None:
            sources.append(self._statements.running.source)
        return [source[stream] for source in sources if stream in source]

    def trails(self, batch: Batch) -> bool:
        """Whether the rest of a batch may trail: its tasks need nothing that the one before still changes, and every
        aggregation it reaches has a commit of this query, or nobody could tell after a crash what is missing."""
        reached = self._fed(batch.stream, list(self._pipelines.values()))
        marks = [p.source.get(batch.stream) for p in reached]
        known = all(mark and mark["query"] == batch.query and not ahead(mark, batch.query) for mark in marks)
        alike = isinstance(batch.given, Places) and not batch.spec.split and batch.fed == reached != []
        return known and alike

    def may_overlap(self) -> bool:
        """Whether batches of this app may overlap: every commit trails, and nothing but tables comes of a batch."""
        arriving = any(p.aggregation.clock is Clock.ARRIVAL for p in self._pipelines.values())
        return self._only_tables and not arriving and self._trailing.keys() == self._pipelines.keys()

    @property
    def _only_tables(self) -> bool:
        """Whether a batch leaves rows and dead letters of its tasks, and nothing that is made of these rows."""
        return self._statements is None and not self._asking

    def take(self, batch: Batch, asked: Asked | None = None) -> None:
        """A batch through its tasks, steps and commits; its tasks may have been asked already."""
        began, clock, query, number = time.time(), time.monotonic(), batch.query, batch.number
        with self._kept:
            results = self._tasks.collect(batch.given, batch.whole, asked)
            self._reporter.warn(self._absent[batch.stream].observe(results.looked))
            for stream, found in results.offsets.items():
                self._reporter.warn(f"warning: {said}." for said in self._offsets.observe(stream, found))
            for store in self._trailing.values():
                store.next_batch()
            letters = results.dead
            if self._only_tables:  # before the commits, behind which the batch may never come again
                self._letters.append(letters, query, number)
                advances = self._advanced(batch, results)[0]
            else:
                advances, prepared = self._advanced(batch, results)
                refused = self._told(batch, results, prepared)
                advances |= {name: self._pipelines[name].commit(made) for name, made in prepared.items()}
                answered = self._answers.process(results.forwarded, query, number, self.plans[batch.stream])
                letters = pa.concat_tables([letters, answered])
                self._letters.append(letters, query, number)
                letters = pa.concat_tables([letters, *refused])
            # The clock of the machine may be set back meanwhile.
            events, ended = results.numbering.events, began + time.monotonic() - clock
            taken = events - results.lost
            report = BatchReport(batch.stream, number, events, began, ended, letters, advances, self._pipelines, taken)
            self._reports.add(report, self._on_their_way(advances))
            self._upkeep.after_batch()
            point("batch.end")

    def _advanced(self, batch: Batch, results: Collected) -> tuple[dict[str, Advance], dict[str, Prepared]]:
        """Its pipelines a batch further; of those that tell statements what closes, what is to be committed."""
        advances, prepared = dict[str, Advance](), dict[str, Prepared]()
        for p, share in self._shares(batch, results):
            asked = self._asked(p, batch, share, results.held)
            if self._statements is not None and self._statements.tells(p):
                prepared[p.aggregation.name] = p.prepare(*asked)
            else:
                advances[p.aggregation.name] = p.advance(*asked)
        return advances, prepared

    def _planned(self, stream: str, frame: DataFrame, number: int) -> Given:
        """What the tasks of a batch read."""
        origin = source(self._program.streams[stream], self._conf.sources[stream])
        return batch_of(frame, origin.planned(frame, self.logs[stream].folder, number))

    def _on_their_way(self, names: Iterable[str]) -> dict[str, Future[Made]]:
        """The commits of some aggregations that are being made by another process."""
        newest = {name: self._trailing[name].newest_commit for name in names if name in self._trailing}
        return {name: commit for name, commit in newest.items() if commit is not None}

    def _shares(self, batch: Batch, results: Collected) -> Iterator[tuple[Pipeline, _Share]]:
        """What each pipeline takes of a batch: all of it, or where it is ahead of the others what it has not had."""
        for pipeline in batch.fed:
            taken = ahead(pipeline.source.get(batch.stream), batch.query)
            own = replace(batch.spec, only=(pipeline.aggregation.name,), taken=taken)
            found = self._tasks.collect(batch.given, own) if taken else results
            yield pipeline, _Share(replace(own, options=found.spec.options), found)

    def _fed(self, stream: str, pipelines: list[Pipeline]) -> list[Pipeline]:
        reached = {stream, *(derivation.target for derivation in self._program.fed_by(stream))}
        return [pipeline for pipeline in pipelines if pipeline.aggregation.stream in reached]

    def _told_rows(self, stream: str, query: str, number: int) -> Mapping[str, tuple[str, ...]]:
        """The columns that the one Spark job of a batch brings for statements."""
        found = self._statements
        if found is None or found.done(stream, query, number) or found.ahead(stream, query):
            return {}
        return found.columns(stream)

    def _told(self, batch: Batch, results: Collected, prepared: Mapping[str, Prepared]) -> Sequence[pa.Table]:
        """A batch through the statements, unless they have it already; the dead letters of the events they refuse."""
        found, stream, query, number = self._statements, batch.stream, batch.query, batch.number
        if found is None or found.done(stream, query, number):
            return ()
        given = results
        if taken := found.ahead(stream, query):
            spec = replace(batch.spec, only=(), rows=found.columns(stream), taken=taken)
            given = self._tasks.collect(batch.given, spec)

        def look_up(sought: Mapping[str, pa.Table]) -> Sequence[Mapping[str, Any]]:
            wanted = {name: pack(rows) for name, rows in sought.items()}
            spec = replace(given.spec, only=(), rows={}, sought=wanted, bases=given.numbering.bases, keep=False)
            letters = [each for each in self._tasks.results(batch.given, spec) if each.kind is Kind.DEAD]
            return [row for each in letters for row in each.table().to_pylist()]

        def untouched(source: Mapping[str, Any]) -> Mapping[str, Mark]:
            return self._untouched(source, lambda other: bool(found.columns(other)))

        return [
            found.batch(
                stream,
                query,
                number,
                given.rows,
                results.held,
                self.plans[stream],
                batch.newest,
                prepared,
                untouched,
                look_up,
            )
        ]

    def _asked(
        self, pipeline: Pipeline, batch: Batch, share: _Share, held: Input
    ) -> tuple[list[Any], Refold, Mapping[str, Any]]:
        """What a pipeline is advanced with: partial rows, how to look again, and its marks after the batch."""
        name, stream, results = pipeline.aggregation.name, batch.stream, share.results
        base, following = results.bounds(name, self._following(name, stream))

        def refold(steps: pa.Table, suspects: pa.Table) -> list[Any]:
            bases = {origin: base + offset for origin, offset in results.numbering.bases.items()}
            spec = replace(share.spec, refold={name: (pack(steps), pack(suspects))}, bases=bases, keep=False)
            self._kept.ask(stream)
            if results.kept is not None:
                with suppress(OSError):
                    return look_again(replace(spec, threads=os.cpu_count() or 1), results.kept)
            return [each.partials() for each in self._tasks.results(batch.given, spec) if each.kind is Kind.PARTIALS]

        partials = [shift(table, base) for table in results.partials.get(name, [])]
        say_zones(pipeline, stream)
        mark = after(pipeline.source.get(stream), batch.query, batch.number, following, held, self.plans[stream])
        mark = measured(mark, batch.newest)
        untouched = self._untouched(pipeline.source, lambda other: bool(self._fed(other, [pipeline])))
        source = {**pipeline.source, **untouched, stream: mark}
        if pipeline.anew(source):
            say_lost(pipeline, stream)
        return partials, refold, source

    def _following(self, name: str, stream: str) -> int:
        """The arrival that comes next of a stream, to an aggregation."""
        return arrivals(self._pipelines[name].source.get(stream))

    def _untouched(self, source: Mapping[str, Any], feeds: Callable[[str], bool]) -> dict[str, Mark]:
        """Marks of the streams that feed a pipeline, or the statements, and of whose queries it had nothing yet.

        Without them nobody could tell, once the tables go back to a commit of before their first batch, that it lacks
        this: the stream would go on behind what the others have.
        """
        known = {stream for stream, mark in source.items() if mark["query"] == self.ids.get(stream)}
        others = [stream for stream in self._program.inputs if stream not in known]
        return {stream: none(self.ids[stream], self.begun[stream]) for stream in others if feeds(stream)}

    def spec(self, stream: str) -> TaskSpec:
        """What the tasks of a batch of a stream need, as things stand."""
        split = {name: p.split for name, p in self._pipelines.items() if p.split is not None}
        return TaskSpec(
            self._program.rollups,
            stream,
            dict(with_topics(self._conf.sources[stream], self.logs[stream].folder)),
            self._exchange(),
            self._asking,
            split=split,
            keep=self._kept.wanted(stream),
        )

    @property
    def _asking(self) -> tuple[str, ...]:
        """The streams whose events questions or sinks ask for."""
        return tuple({join.source.stream for join in self._program.joins} | set(self._conf.sinks))
