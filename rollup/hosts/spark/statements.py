"""Statements in the Spark job: the tasks bring the columns they need, the driver runs the step and commits.

With `statement_shards`, those that keys divide take their step in tasks, see `rollup.hosts.spark.statement_shards`.

They commit before the aggregations whose closed rows they read. So whatever closes in a batch is known to both or comes
again for both. A batch that one of them has already is skipped, as with any two aggregations.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import structlog

from rollup.checkpoint.marks import Plans, after, ahead, done, measured
from rollup.conf import Conf
from rollup.core.columns import ColumnEngine
from rollup.hosts.pipeline import Pipeline, Prepared
from rollup.hosts.spark.statement_shards import in_shards
from rollup.hosts.statements.closed import closed_events
from rollup.hosts.statements.outlets import outlets_of
from rollup.hosts.statements.refusals import LookUp, letters_of
from rollup.hosts.statements.running import Running
from rollup.hosts.statements.silence import Silence
from rollup.plan.app import StreamDef
from rollup.program import Program
from rollup.sources.base import DEAD
from rollup.statements.committed.commits import Commits
from rollup.statements.component import Refused
from rollup.statements.flow import ARRIVAL
from rollup.stores.dead_letters import DeadLetters

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OF_STATEMENTS, _TIME = "-statements", "time-statements"
"""Ends the query of letters that statements write of its batches, before their commit; and that of letters of no batch."""
Rows = Mapping[str, Sequence[pa.Table]]


class JobStatements:
    """The statements of a job."""

    def __init__(
        self,
        conf: Conf,
        program: Program,
        pipelines: Mapping[str, Pipeline],
        engine: ColumnEngine,
        spark: Callable[[], SparkSession],
    ) -> None:
        commits = Commits.beside(conf.tables)
        program = in_shards(conf, program, commits.folder, spark, lambda: self.running.number + 1)
        stops = conf.on_error == "stop"
        self._letters = DeadLetters(conf.tables)
        aside = None if stops else self._letters.append
        self.running = Running(program, pipelines, commits, outlets_of(conf, program), aside)
        self.running.flow.stops = stops
        self._program, self._pipelines, self._engine = program, pipelines, engine
        self._silence = Silence(conf.sources, [name for name in program.inputs if self.columns(name)])

    def say_missed(self, begun: Mapping[str, int]) -> None:
        """Say it when statements begin behind events that the job has had already; `begun`: its last batch of a stream."""
        missed = {stream: last + 1 for stream, last in begun.items() if last >= 0 and self.columns(stream)}
        if missed and not self.running.number:
            structlog.get_logger("rollup").warning(
                "statements have no state and begin here: events of earlier batches are not in it", batches=missed
            )

    def pass_time(self) -> None:
        """Let time go on where no event comes; nothing of a batch is in progress."""
        at = self._silence.clock(self.running.live)
        if at is not None:
            began = time.monotonic()
            self.running.pass_time(self._engine, at, self._set_aside)
            self._silence.took(time.monotonic() - began)

    def _set_aside(self, refused: Sequence[Refused]) -> None:
        """What statements refuse of that which time brings others to insert."""
        self._letters.append(letters_of(refused, self._program), _TIME, self.running.number + 1)

    @property
    def silent(self) -> bool:
        """Whether no event has come for so long that time is to go on without."""
        return self._silence.clock(self.running.live) is not None

    def done(self, stream: str, query: str, number: int) -> bool:
        """Whether this batch was committed already, before a crash."""
        return done(self.running.source.get(stream), query, number)

    def ahead(self, stream: str, query: str) -> Mapping[str, Any]:
        """What of the batches of a query to come the statements have already; nothing in the ordinary course."""
        return ahead(self.running.source.get(stream), query)

    def columns(self, stream: str) -> Mapping[str, tuple[str, ...]]:
        """The columns that a batch of a stream must bring, of it and of the streams it feeds; none if nobody reads."""
        reached = {stream, *(each.target for each in self._program.fed_by(stream))}
        streams: dict[str, StreamDef] = {name: self._program.streams[name] for name in reached}
        return self.running.columns(streams)

    def tells(self, pipeline: Pipeline) -> bool:
        """Whether statements read what an aggregation closes."""
        return pipeline.aggregation.name in self.running.told.values()

    def batch(
        self,
        stream: str,
        query: str,
        number: int,
        rows: Rows,
        held: Mapping[str, Any],
        plans: Plans,
        newest: int,
        prepared: Mapping[str, Prepared],
        untouched: Callable[[Mapping[str, Any]], Mapping[str, Any]],
        look_up: LookUp,
    ) -> pa.Table:
        """One batch of a stream, and what aggregations will close with it; the dead letters of the events that were refused,
        which are in their table already.

        `untouched` gives the marks of streams of whose queries nothing has come yet, `look_up` the records of events.
        """
        running = self.running
        if running.lost(stream, query):
            running.restart(stream)
        events = running.flow.arrived(
            self._program.streams,
            {name: pa.concat_tables(tables).sort_by(ARRIVAL) for name, tables in sorted(rows.items()) if tables},
        )
        for name, made in prepared.items():
            events += closed_events(self._engine, self._pipelines[name], made, running.told)
        self._silence.heard()
        mark = measured(after(running.source.get(stream), query, number, 0, held, plans), newest)
        letters = list[pa.Table]()

        def aside(refused: Sequence[Refused]) -> None:
            letters.append(letters_of(refused, self._program, stream, look_up))
            self._letters.append(letters[0], query + OF_STATEMENTS, number)

        marks = {**running.source, **untouched(running.source), stream: mark}
        for _ in running.advancing(self._engine, events, marks, aside, of=stream):
            pass
        return letters[0].select(DEAD.names) if letters else DEAD.empty_table()
