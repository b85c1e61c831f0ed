"""What runs inside Spark tasks: a task's share of a batch becomes partial rows, with DuckDB, in one pass.

The function is sent to Spark with plain data only; each worker process compiles the app once and keeps its engine.
"""

from __future__ import annotations

import atexit
import gc
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.ipc
from sqlglot import exp

from rollup.aggregation.event_times import AT, letters_of
from rollup.aggregation.partials import Partials
from rollup.checkpoint.inputs import Input, held, rest
from rollup.core.columns import ColumnEngine
from rollup.core.errors import RollupError, SourceError
from rollup.core.packing import unpack
from rollup.core.untyped import pc
from rollup.hosts.spark.tasks.results import KeptFiles, Kind, Result, kept, of_part
from rollup.hosts.spark.tasks.shard_step import Split, split
from rollup.hosts.walk import Reached, Walk
from rollup.plan.aggregation import column
from rollup.program import PASSED, Declaration
from rollup.sources.base import DEAD, Part, Source
from rollup.sources.content.damage import PASSING
from rollup.sources.content.records import text
from rollup.sources.kafka import BY_OFFSET, COPIES
from rollup.sources.registry import source


@dataclass(frozen=True)
class TaskSpec:
    """What a task needs: the app, its stream, the source's options, and for a second look the steps of the clock."""

    app: Declaration
    stream: str
    options: Mapping[str, Any]
    exchange: str | None = None
    forwards: tuple[str, ...] = ()
    threads: int = 1
    refold: Mapping[str, tuple[bytes, bytes]] = field(default_factory=dict[str, tuple[bytes, bytes]])
    bases: Mapping[str, int] = field(default_factory=dict[str, int])
    split: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """For aggregations whose step runs in shards: the folder their partial rows go to, and how many shards there are."""
    only: tuple[str, ...] | None = None
    """The aggregations that are asked for; all when it is None."""
    rows: Mapping[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    """The columns of streams whose events statements take, in the driver."""
    taken: Input = field(default_factory=dict[str, Any])
    """What of the batch is passed over, see `rollup.checkpoint.inputs`."""
    latest: int | None = None
    """The latest time that an event of the batch may have."""
    now: int | None = None
    """When the batch was planned."""
    passed: frozenset[str] = frozenset()
    """The places of records that are passed over: a replay takes no event that the job has found too far ahead."""
    sought: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    """By stream the events that are looked up, and nothing but them: see `rollup.hosts.statements.refusals`."""
    keep: bool = False
    """Whether events that had to be parsed are left in the exchange, for `look_again`."""


def by_offset(spec: TaskSpec) -> TaskSpec:
    """For a batch whose arrivals are `Numbering.too_wide`: the same task, its events numbered by their offsets."""
    return replace(spec, options={**spec.options, BY_OFFSET: True})


def run(spec: TaskSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The results of a task's share of a batch, one row each."""
    if received := list(batches):
        yield from (result.row() for result in results(spec, pa.Table.from_batches(received)))


def results(spec: TaskSpec, batch: pa.Table) -> Iterator[Result]:
    """Partial rows of an aggregation over one part, dead letters, forwarded events, counts of a part, what it has of the
    attributes, and which input the batch is."""
    worker = _worker(spec.app, spec.threads)
    options = {**spec.options, COPIES: worker.program.scale(spec.stream)}
    origin = source(worker.program.streams[spec.stream], options)
    yield Result(Kind.INPUT, spec.stream, payload=json.dumps(held(batch)).encode())
    try:
        with worker.engine.use():
            for part in origin.parts(worker.engine, rest(batch, spec.taken)):
                for kind, name, table in _whole(spec, worker, origin, part):
                    if kind is not Kind.KEPT:
                        yield of_part(kind, name, part, table, spec.exchange)
                    elif table is not None and (result := kept(name, part, table, str(spec.exchange))) is not None:
                        yield result
    except SourceError:
        _worker.cache_clear()  # what a fault may have left of an engine does not meet the next try
        raise


def rehearse(specs: Sequence[TaskSpec]) -> None:
    """What `run` does before it has seen an event, and does once a process: the app is compiled, its source
    loaded, its queries printed and planned. What goes wrong here goes wrong in a batch, and is said there."""
    for spec in specs:
        with suppress(duckdb.Error, RollupError):
            worker = _worker(spec.app, spec.threads)
            source(worker.program.streams[spec.stream], spec.options)
            worker.rehearse(spec.stream)


def look_again(spec: TaskSpec, files: KeptFiles) -> list[pa.Table | Split]:
    """What the tasks of a batch would give for a second look, from the events that they have kept. Raises OSError."""
    worker, found = _worker(spec.app, spec.threads), list[pa.Table | Split]()
    for origin, file in files:
        with pa.memory_map(file) as mapped, worker.engine.tables({"__kept": pa.ipc.open_file(mapped).read_all()}):
            part = Part("__kept", 0, origin, 0, DEAD.empty_table())
            again = _results(replace(spec, keep=False), worker, part)
            found += [table for kind, _, table in again if kind is Kind.PARTIALS and table is not None]
    return found


def _whole(spec: TaskSpec, worker: Walk, origin: Source, part: Part) -> list[tuple[Kind, str, pa.Table | Split | None]]:
    """The results of a part. A file may turn out to be damaged only when it is read to its end: then all of it is a
    dead letter and none of it counts."""
    try:
        return list(_results(spec, worker, part))
    except (duckdb.Error, *PASSING) as problem:
        reason = origin.damaged(part.origin, problem)
    row = [[spec.stream], [reason], [part.origin], [""]]
    dead = pa.table(row, schema=DEAD)
    return [(Kind.PART, spec.stream, None), (Kind.LOST, spec.stream, _lost(part.rows)), (Kind.DEAD, spec.stream, dead)]


def _lost(records: int) -> pa.Table:
    return pa.table({"records": [records]})


@lru_cache(maxsize=4)
def _worker(app: Declaration, threads: int) -> Walk:
    made = Walk(app.program(), ColumnEngine(threads=threads))
    # Spark collects garbage after every task, 50 ms over all that was imported; what lives for ever is left out of it.
    gc.freeze()
    atexit.register(
        gc.unfreeze
    )  # what is frozen when the process ends is never let go, and DuckDB reports it as leaked
    return made


def _results(spec: TaskSpec, worker: Walk, part: Part) -> Iterator[tuple[Kind, str, pa.Table | Split | None]]:
    yield Kind.PART, spec.stream, None
    if part.dead.num_rows and not spec.sought:
        yield Kind.DEAD, spec.stream, part.dead
    if part.looked is not None and part.looked.num_rows and not spec.refold:
        yield Kind.LOOKED, spec.stream, part.looked
    if spec.keep and part.parsed and spec.exchange is not None:
        names = (*worker.program.streams[spec.stream].attributes, *PASSED)
        yield Kind.KEPT, spec.stream, _columns(worker, part.view, names)
    wanted = () if spec.refold else spec.only
    view = _without(worker.engine, part, spec.passed) if spec.passed else part.view
    for reached in worker.along(spec.stream, view, wanted, part.rows, spec.latest, spec.now):
        stream, view = reached.stream, reached.view
        for name, rows in reached.folded.items():
            yield Kind.PARTIALS, name, _shared(spec, worker, worker.partials[name], rows)
        for name in spec.refold:
            if (partials := worker.partials[name]).aggregation.stream == stream:
                again = _second_look(spec, worker, partials, part, view)
                yield Kind.PARTIALS, name, _shared(spec, worker, partials, again)
        if stream in spec.sought:
            yield Kind.DEAD, stream, _looked_up(spec, worker, part, reached)
        if spec.refold or spec.sought:
            continue
        if stream == spec.stream and (part.dead.num_rows or reached.refused is not None):
            yield Kind.LOST, stream, _lost(part.rows - worker.engine.count(f"SELECT COUNT(*) FROM {view}"))
        if reached.offsets:
            yield Kind.OFFSETS, stream, pa.table({"offset": sorted(reached.offsets)})
        if reached.refused is not None:
            scale = worker.program.scale(spec.stream)
            yield Kind.DEAD, stream, _letters(worker.engine, part, stream, reached.refused, scale)
        if stream in spec.forwards:
            yield Kind.EVENTS, stream, _columns(worker, view, (*worker.program.streams[stream].attributes, *PASSED))
        if stream in spec.rows:
            yield Kind.ROWS, stream, _columns(worker, view, (*spec.rows[stream], "__arrival", AT))


def _without(engine: ColumnEngine, part: Part, passed: Iterable[str]) -> str:
    """The events of a part but for those of some places."""
    engine.connection.execute("CREATE OR REPLACE TEMP TABLE __passed (position VARCHAR)")
    with engine.tables({"__given": pa.table({"position": pa.array(sorted(passed), pa.string())})}):
        engine.connection.execute("INSERT INTO __passed SELECT * FROM __given")
    place = f"{text(part.origin + ':')} || __arrival"
    gone = f"SELECT __arrival FROM {part.places} WHERE __position IN (FROM __passed)"
    gone = gone if part.places else f"SELECT __arrival FROM {part.view} WHERE {place} IN (FROM __passed)"
    rest = f"SELECT * FROM {part.view} WHERE __arrival NOT IN ({gone})"
    engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW __unpassed AS {rest}")
    return "__unpassed"


def _columns(worker: Walk, view: str, names: Iterable[str]) -> pa.Table:
    return worker.engine.run(exp.select(*map(column, names)).from_(exp.to_table(view, quoted=True)))


def _second_look(spec: TaskSpec, worker: Walk, partials: Partials, part: Part, view: str) -> pa.Table:
    steps, suspects = (unpack(blob) for blob in spec.refold[partials.aggregation.name])
    base = spec.bases.get(part.origin, 0)
    numbered = f"(SELECT * REPLACE (__arrival + {base} AS __arrival) FROM {view})"
    worker.engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW __numbered AS {numbered}")
    return partials.fold_by_step(worker.engine, "__numbered", steps, suspects)


def _shared(spec: TaskSpec, worker: Walk, partials: Partials, table: pa.Table) -> pa.Table | Split:
    """Partial rows as the step wants them: together, or split for its shards."""
    name = partials.aggregation.name
    return split(worker.engine, partials.aggregation, table, *spec.split[name]) if name in spec.split else table


def _looked_up(spec: TaskSpec, worker: Walk, part: Part, reached: Reached) -> pa.Table:
    """The records of events of a stream and where they stand, as letters."""
    base, sought = spec.bases.get(part.origin, 0), unpack(spec.sought[reached.stream])
    sought = sought.set_column(0, "__arrival", pc.subtract(sought["__arrival"], base))
    names = worker.program.streams[reached.stream].attributes
    found = letters_of(worker.engine, reached.view, sought, names)
    return _letters(worker.engine, part, reached.stream, found, worker.program.scale(spec.stream))


def _letters(engine: ColumnEngine, part: Part, stream: str, refused: pa.Table, scale: int) -> pa.Table:
    """The dead letters of events that an aggregation refuses; they stand where the source says, as those it refuses."""
    own = pc.divide(refused["__arrival"], scale)  # a copy stands where its event does
    refused = refused.set_column(refused.schema.get_field_index("__arrival"), "__arrival", own)
    places = dict[int, str]()
    if part.places:
        found = f"SELECT __arrival, MIN(__position) AS position FROM {part.places} SEMI JOIN refused USING (__arrival) GROUP BY 1"
        places = {row["__arrival"]: row["position"] for row in engine.run(found, refused=refused).to_pylist()}
    rows = [
        {
            "stream": stream,
            "reason": row["reason"],
            "position": places.get(row["__arrival"], f"{part.origin}:{row['__arrival']}"),
            "raw": str(row["raw"]),
        }
        for row in refused.to_pylist()
    ]
    return pa.Table.from_pylist(rows, schema=DEAD)
