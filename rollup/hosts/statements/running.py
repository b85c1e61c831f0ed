"""The statements of a program between batches: their states, the step, the commit, and where their streams go on to."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any
from uuid import uuid4

import pyarrow as pa
import structlog

from rollup.aggregation.closings import closing_streams
from rollup.checkpoint.marks import arrivals, lost
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.hosts.pipeline import Pipeline
from rollup.hosts.reporting.future_times import FILTER, ahead
from rollup.hosts.statements.delivery import Delivery, SetAside
from rollup.plan.app import StreamDef
from rollup.program import Program
from rollup.sinks.base import Held, Sink
from rollup.statements.committed.begun import Begun
from rollup.statements.committed.commits import FILES, Commits, Saved, changed, fingerprint, homes
from rollup.statements.committed.passed import Passed, Step
from rollup.statements.compiled import Part
from rollup.statements.component import Event, Keeping, Refused
from rollup.statements.flow import ARRIVAL, RECEIVED, Flow, Given, States
from rollup.statements.parts import in_parts
from rollup.statements.shards import refuse_other_shards
from rollup.stores.faults import point

_AT = attrgetter("at")
Aside = Callable[[Sequence[Refused]], None]
"""Takes the events that statements have refused."""


class Running:
    """Holds the states of all statements of a program between batches and commits after each.

    Without `commits` nothing is kept: the states live and die with the process.
    """

    def __init__(
        self,
        program: Program,
        pipelines: Mapping[str, Pipeline],
        commits: Commits | None = None,
        outlets: Mapping[str, Sink] | None = None,
        aside: SetAside | None = None,
    ) -> None:
        assert program.statements is not None
        self.program, self._commits = program, commits
        self._deliveries = {name: Delivery(name, sink, commits, aside) for name, sink in (outlets or {}).items()}
        self.flow = Flow(program.statements)
        self._texts = {part.name: fingerprint(part, program.streams) for part in program.statements.parts}
        written = program.statements.streams
        self.told = told(program)
        self._fed = [one for one in pipelines.values() if one.aggregation.stream in written]
        self._saved = Saved(texts=self._texts)
        self._delivered = True
        self.counts = Counter[str]()
        """How many rows each stream was given since the start."""
        self._said_ahead = False

    @property
    def source(self) -> Mapping[str, Any]:
        """By stream, the mark of what input the states hold."""
        return self._saved.source

    @property
    def number(self) -> int:
        """How many commits there were."""
        return self._saved.number

    def start(self, engine: ColumnEngine) -> None:
        """Take up where the last commit ended, and bring on what a job that was killed had not yet brought.

        Raises ConfigError when a text, or the number of shards, has changed under its state.
        """
        for table in [table for part in self.flow.statements.parts for table in part.names.tables]:
            _ = table.rows  # those of the start
        found = Saved() if self._commits is None else self._commits.newest()
        places = homes(found, self._texts)
        states = {name: found.states[old] for name, old in places.items() if old in found.states}
        self._check(found, places, states)
        self._say_changed(found, places)
        self._saved = replace(found, states=states, id=found.id or uuid4().hex[:12], texts=self._texts)
        self._deliver(engine)

    def columns(self, streams: Mapping[str, StreamDef]) -> Mapping[str, tuple[str, ...]]:
        """The columns that a batch must bring of some streams."""
        return self.flow.statements.needed(streams)

    def advance(
        self,
        engine: ColumnEngine,
        events: Sequence[Event],
        source: Mapping[str, Any],
        aside: Aside | None = None,
        only: str | None = None,
    ) -> Given:
        """One batch, see `advancing`; all that it gave."""
        parts = list(self.advancing(engine, events, source, aside, only))
        if len(parts) == 1:
            return parts[0]
        streams = {name: pa.concat_tables([part.streams[name] for part in parts]) for name in parts[0].streams}
        refused = tuple(each for part in parts for each in part.refused)
        return Given(streams, refused, sum((Counter(part.beyond) for part in parts), Counter[str]()))

    def advancing(
        self,
        engine: ColumnEngine,
        events: Sequence[Event],
        source: Mapping[str, Any],
        aside: Aside | None = None,
        only: str | None = None,
        of: str = "",
    ) -> Iterator[Given]:
        """One batch: step, commit, and on to sinks and to the aggregations that are fed by statements.

        Where its events make too much text at once, each of its parts has a commit. Those before the last keep the marks of
        before, with the place of the last event that they hold, and what was refused so far: when the batch comes again
        after a crash, the rest of it is taken.

        `aside` has what was refused before the last commit, behind which the batch may never come again; `only`: see
        `Flow.step`; `of` is the stream whose batch it is.

        What a sink has refused of the batch before goes there first, and while it refuses there is no further commit: the
        rows are in the last one only, and the batch that comes may be one of another stream.
        """
        if not self._delivered:
            self._deliver(engine)
        self._say_ahead(events)
        before = self._saved.begun.get(of, Begun())
        others = {name: one for name, one in self._saved.begun.items() if name != of}
        refused = list(before.refused)

        def step(part: Sequence[Event]) -> tuple[Passed, States, Given]:
            passed = self._saved.passed
            if only is None:
                passed, part = passed.after(part, int(time.time() * 1000))
            return passed, *self.flow.step(self._saved.states, part, only)

        for part, (passed, states, given), last in in_parts(before.rest(events), step):
            refused += given.refused
            saved = replace(self._saved, states=states, passed=passed, begun=others)
            if last:
                saved = replace(saved, source=source)
                if aside is not None and refused:
                    aside(refused)
            else:
                saved = replace(saved, begun={**others, of: Begun(part[-1].key, tuple(refused))})
            self._went_on(saved, given, engine)
            yield given

    def pass_time(self, engine: ColumnEngine, at: int, aside: Aside | None = None) -> Given:
        """Time has gone on without an event. Where nothing comes of it, the commit of the next batch has it too."""
        if not self._delivered:
            self._deliver(engine)
        states, given = self.flow.step(self._saved.states, [Step({}, at).event])
        if aside is not None and given.refused:
            aside(given.refused)
        told = bool(given.refused) or any(rows.num_rows for rows in given.streams.values())
        saved = replace(self._saved, states=states, passed=self._saved.passed.stepped(at, told))
        if told or any(FILES in state.scalars for state in states.values()):
            self._went_on(saved, given, engine)
        else:
            self._saved = saved
        return given

    @property
    def live(self) -> bool:
        """Whether events come about when they happen."""
        return self._saved.passed.live

    def _went_on(self, saved: Saved, given: Given, engine: ColumnEngine) -> None:
        """Commit a step, and bring what it gave to where it belongs."""
        self.counts.update({name: rows.num_rows for name, rows in given.streams.items()})
        if given.beyond:
            structlog.get_logger("rollup").warning("whole numbers that do not fit are null", numbers=dict(given.beyond))
        self._commit(replace(saved, given=given.streams), engine)
        self._deliver(engine)

    def remark(self, source: Mapping[str, Any]) -> None:
        """Change nothing but the marks, in a commit of its own between two batches."""
        self._commit(replace(self._saved, source=source, given={}), None)

    def lost(self, stream: str, query: str) -> bool:
        """Whether the last batch of a stream was one of another query: its checkpoint is gone."""
        return lost(self.source.get(stream), query)

    def restart(self, stream: str) -> None:
        """A stream comes again from its start, as after the loss of its checkpoint: so do the statements."""
        structlog.get_logger("rollup").warning(
            "the checkpoint is lost, the stream comes again from its start: statements begin anew with it, and sinks pass "
            "over the rows that they have",
            stream=stream,
        )
        passed = replace(self._saved.passed, seen={})
        self._saved = replace(self._saved, states={}, source={}, begun={}, given={}, outputs={}, passed=passed)

    def _commit(self, saved: Saved, engine: ColumnEngine | None) -> None:
        saved = replace(saved, number=self._saved.number + 1)
        if engine is not None:
            saved = replace(
                saved,
                outputs={**saved.outputs, **self._counted(saved, engine)},
                sinks={name: delivery.entered(self._saved) for name, delivery in self._deliveries.items()},
            )
        if self._commits is not None:
            self._commits.write(saved)
        self._saved, self._delivered = saved, False

    def _deliver(self, engine: ColumnEngine) -> None:
        """What the last commit gave goes where it belongs, unless it is there already."""
        saved, self._delivered = self._saved, False
        for pipeline in self._fed:
            rows = saved.given.get(pipeline.aggregation.stream)
            if rows is not None and rows.num_rows:
                upto = saved.outputs.get(pipeline.aggregation.stream, Held(rows.num_rows)).rows
                feed(engine, pipeline, rows, saved.id, saved.number, upto)
                point("statements.fed")
        for delivery in self._deliveries.values():
            delivery.bring(saved, engine)
        self._delivered = True

    def _counted(self, saved: Saved, engine: ColumnEngine) -> dict[str, Held]:
        """How many rows there are now of the streams that go on somewhere."""
        found = dict[str, Held]()
        for name in {*self._deliveries, *(pipeline.aggregation.stream for pipeline in self._fed)}:
            before, rows = saved.outputs.get(name, Held(0)), saved.given.get(name)
            if rows is None:
                found[name] = before
            elif name in self._deliveries:
                found[name] = before.after(rows.drop_columns([RECEIVED]), engine)
            else:
                found[name] = Held(before.rows + rows.num_rows)
        return found

    def _say_changed(self, found: Saved, places: Mapping[str, str]) -> None:
        """Say which statements the app no longer has, with whose states they go, and which begin behind the others."""
        log = structlog.get_logger("rollup")
        if gone := sorted(found.states.keys() - set(places.values())):
            log.warning(
                "the app no longer has these statements: their windows and patterns go with the next commit", gone=gone
            )
        if found.number and (new := sorted(self._texts.keys() - places.keys())):
            log.warning("these statements are new, and begin behind the events that the others have had", new=new)

    def _say_ahead(self, events: Sequence[Event]) -> None:
        """Say it once when an event moves the clock of the statements far ahead."""
        newest = max(events, key=_AT, default=None) if not self._said_ahead else None
        if newest is not None and (far := ahead(newest.at, time.time())):
            self._said_ahead = True
            structlog.get_logger("rollup").warning(
                f"an event has moved the clock of statements to {far}: windows of time that end before it have ended, "
                f"and what comes now has that time; {FILTER}",
                stream=newest.stream,
            )

    def _check(self, found: Saved, places: Mapping[str, str], states: States) -> None:
        where = "" if self._commits is None else str(self._commits.folder)
        for name in changed(found, self._texts):
            raise ConfigError(
                f"the statements of {name!r} have changed, and their windows and patterns are those of the old text",
                hint="bring the old text back; `rollup change CONF --accept` begins these anew and leaves the others what they "
                f"have; or remove {where} to begin all statements anew",
            )
        for part in self.flow.statements.parts:
            refuse_other_shards(part.name, part.component, states.get(part.name), where)
        self._refuse_new_readers(found, places, where)

    def _refuse_new_readers(self, found: Saved, places: Mapping[str, str], where: str) -> None:
        """Each block of SQL holds a table that blocks share; one that is new would not have the rows that others have."""
        parts = self.flow.statements.parts if found.states else ()
        held = {name for part in parts if part.name in places for name in _shared(part)}
        for part in parts:
            if part.name not in places and (lacking := sorted(_shared(part) & held)):
                raise ConfigError(
                    f"{part.name} is new and reads the table {lacking[0]}, whose rows so far only others have",
                    hint=f"leave it out, write it into the block of the others, or remove {where} to begin all anew",
                )


def _shared(part: Part) -> set[str]:
    """The tables of the app that a block keeps for itself."""
    component = part.component
    stores = component.stores if isinstance(component, Keeping) else {}
    return {name for name, stream in stores.items() if stream.table is not None}


def feed(engine: ColumnEngine, pipeline: Pipeline, rows: pa.Table, query: str, number: int, upto: int) -> None:
    """Rows of a stream that statements give, as one batch of an aggregation; `upto` are those of the stream so far, of which
    the aggregation takes what it lacks."""
    stream = pipeline.aggregation.stream
    mark = pipeline.source.get(stream)
    has = int(mark["rows"]) if mark is not None and mark["query"] == query else 0
    if has >= upto:
        return
    rows = rows.slice(max(0, has - (upto - rows.num_rows)))
    base = arrivals(mark)
    batch = rows.append_column(ARRIVAL, pa.array(range(base, base + rows.num_rows), pa.int64()))
    after = {"query": query, "batch": number, "arrivals": base + rows.num_rows, "rows": upto}
    with engine.tables({"given": batch}):
        pipeline.advance(
            [pipeline.partials.fold(engine, "given")],
            lambda steps, suspects: [pipeline.partials.fold_by_step(engine, "given", steps, suspects)],
            {**pipeline.source, stream: after},
        )


def told(program: Program) -> dict[str, str]:
    """The streams of closed rows that statements read, and the aggregation of each."""
    reads = frozenset[str]() if program.statements is None else program.statements.reads
    return {
        stream: name
        for name, aggregation in program.aggregations.items()
        for stream in closing_streams(aggregation)
        if stream in reads
    }


def bound_to_statements(program: Program) -> set[str]:
    """The aggregations that statements feed or read: their commits go step by step with those of the statements."""
    assert program.statements is not None
    fed = {name for name, one in program.aggregations.items() if one.stream in program.statements.streams}
    return fed | set(told(program).values())
