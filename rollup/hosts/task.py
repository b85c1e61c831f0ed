"""What runs inside Spark tasks: a task's share of a batch becomes partial rows, with DuckDB, in one pass.

The function is sent to Spark with plain data only; each worker process compiles the app once and keeps its engine.
"""

from __future__ import annotations

import gc
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.ipc

from rollup.aggregation.engine import Engine
from rollup.aggregation.partials import Partials
from rollup.hosts.shards import Split, split
from rollup.plan.dialects import to_sql
from rollup.program import Program, compile_app
from rollup.sources.base import DEAD, Part, Source
from rollup.sources.records import quoted
from rollup.sources.registry import source

RESULT = "kind string, name string, origin string, position long, rows long, payload binary, file string"
RESULT_SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("name", pa.string()),
        ("origin", pa.string()),
        ("position", pa.int64()),
        ("rows", pa.int64()),
        ("payload", pa.binary()),
        ("file", pa.string()),
    ]
)
INLINE = 4 * 1024 * 1024
"""Bytes of a result that go through Spark; larger ones go through a file when there is a folder both sides see."""


@dataclass(frozen=True)
class TaskSpec:
    """What a task needs: the app, its stream, the source's options, and for a second look the steps of the clock."""

    app: str
    zone: str
    stream: str
    options: Mapping[str, Any]
    exchange: str | None = None
    forwards: tuple[str, ...] = ()
    threads: int = 1
    refold: Mapping[str, tuple[bytes, bytes]] = field(default_factory=dict[str, tuple[bytes, bytes]])
    bases: Mapping[str, int] = field(default_factory=dict[str, int])
    split: Mapping[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])
    """For aggregations whose step runs in shards: the folder their partial rows go to, and how many shards there are."""


def run(spec: TaskSpec, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """One row a result: partial rows of an aggregation over one part, dead letters, forwarded events, counts of a part."""
    received = list(batches)
    if not received:
        return
    worker = _worker(spec.app, spec.zone, spec.threads)
    origin = source(worker.program.streams[spec.stream], spec.options)
    for part in origin.parts(worker.engine, pa.Table.from_batches(received)):
        for kind, name, table in _whole(spec, worker, origin, part):
            yield _packed(spec, kind, name, part, table)


def _whole(
    spec: TaskSpec, worker: _Worker, origin: Source, part: Part
) -> list[tuple[str, str, pa.Table | Split | None]]:
    """The results of a part. A file may turn out to be damaged only when it is read to its end: then all of it is a
    dead letter and none of it counts."""
    try:
        return list(_results(spec, worker, origin, part))
    except (duckdb.InvalidInputException, duckdb.IOException, duckdb.SerializationException) as problem:
        row = [[spec.stream], [f"the file cannot be read: {str(problem).splitlines()[0]}"], [part.origin], [""]]
        return [("part", spec.stream, None), ("dead", spec.stream, pa.table(row, schema=DEAD))]


@dataclass(frozen=True)
class _Worker:
    program: Program
    engine: Engine
    partials: Mapping[str, Partials]


@lru_cache(maxsize=4)
def _worker(app: str, zone: str, threads: int) -> _Worker:
    program = compile_app(app, zone)
    made = _Worker(program, Engine(threads=threads), {name: Partials(a) for name, a in program.aggregations.items()})
    # Spark collects garbage after every task, 50 ms over all that was imported; what lives for ever is left out of it.
    gc.freeze()
    return made


def _results(
    spec: TaskSpec, worker: _Worker, origin: Source, part: Part
) -> Iterator[tuple[str, str, pa.Table | Split | None]]:
    yield "part", spec.stream, None
    if part.dead.num_rows:
        yield "dead", spec.stream, part.dead
    views = _derive(spec, worker, part)
    for name, partials in worker.partials.items():
        view = views.get(partials.aggregation.stream)
        if view is None:
            continue
        if spec.refold:
            if name in spec.refold:
                yield (
                    "partials",
                    name,
                    _shared(spec, worker, partials, _second_look(spec, worker, partials, part, view)),
                )
            continue
        rows = partials.fold(worker.engine, view)
        yield "partials", name, _shared(spec, worker, partials, rows)
        if view == part.view and partials.hold_all(rows, part.rows):
            continue
        refused = partials.refused(worker.engine, view)
        if refused.num_rows:
            yield "dead", name, _letters(worker.engine, part, partials.aggregation.stream, refused)
    for stream in spec.forwards if not spec.refold else ():
        if stream in views:
            yield "events", stream, worker.engine.run(f"SELECT * FROM {views[stream]}")


def _derive(spec: TaskSpec, worker: _Worker, part: Part) -> dict[str, str]:
    """The views of all streams that the part's events reach."""
    views, parts = {spec.stream: part.view}, dict[str, list[str]]()
    for number, derivation in enumerate(worker.program.fed_by(spec.stream)):
        worker.engine.connection.execute(
            f"CREATE OR REPLACE TEMP VIEW {quoted(derivation.source)} AS SELECT * FROM {views[derivation.source]}"
        )
        name = f"__derived_{number}"
        worker.engine.connection.execute(f"CREATE OR REPLACE TEMP TABLE {name} AS {to_sql(derivation.query)}")
        parts.setdefault(derivation.target, []).append(name)
        union = " UNION ALL ".join(f"SELECT * FROM {each}" for each in parts[derivation.target])
        worker.engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW __all_{number} AS {union}")
        views[derivation.target] = f"__all_{number}"
    return views


def _second_look(spec: TaskSpec, worker: _Worker, partials: Partials, part: Part, view: str) -> pa.Table:
    steps, suspects = (unpack(blob) for blob in spec.refold[partials.aggregation.name])
    base = spec.bases.get(part.origin, 0)
    numbered = f"(SELECT * REPLACE (__arrival + {base} AS __arrival) FROM {view})"
    worker.engine.connection.execute(f"CREATE OR REPLACE TEMP VIEW __numbered AS {numbered}")
    return partials.fold_by_step(worker.engine, "__numbered", steps, suspects)


def _shared(spec: TaskSpec, worker: _Worker, partials: Partials, table: pa.Table) -> pa.Table | Split:
    """Partial rows as the step wants them: together, or split for its shards."""
    name = partials.aggregation.name
    return split(worker.engine, partials.aggregation, table, *spec.split[name]) if name in spec.split else table


def _letters(engine: Engine, part: Part, stream: str, refused: pa.Table) -> pa.Table:
    """The dead letters of events that an aggregation refuses; they stand where the source says, as those it refuses."""
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


def _packed(spec: TaskSpec, kind: str, name: str, part: Part, table: pa.Table | Split | None) -> pa.RecordBatch:
    payload: bytes | None = None
    file: str | None = None
    if isinstance(table, Split):
        payload, file = pack(table.summary.replace_schema_metadata({"rows": str(table.rows)})), table.file
    elif table is not None and spec.exchange is not None and table.nbytes > INLINE:
        file = str(Path(spec.exchange) / f"{uuid.uuid4().hex}.arrow")
        with pa.OSFile(file, "wb") as sink, pa.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table)
    elif table is not None:
        payload = pack(table)
    position = -1 if part.numbered else part.order
    row = [[kind], [name], [part.origin], [position], [part.rows], [payload], [file]]
    return pa.RecordBatch.from_arrays(
        [pa.array(v, f.type) for v, f in zip(row, RESULT_SCHEMA, strict=True)], schema=RESULT_SCHEMA
    )


def pack(table: pa.Table) -> bytes:
    """A table as bytes (Arrow stream)."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def unpack(blob: bytes) -> pa.Table:
    """The table that `pack` made bytes of."""
    return pa.ipc.open_stream(blob).read_all()


def received(row: Mapping[str, Any]) -> pa.Table | Split:
    """The partial rows of a result row: their table, or where they are when tasks have split them."""
    if row["file"] is not None and row["payload"] is not None:
        summary = unpack(row["payload"])
        return Split(row["file"], summary, int(summary.schema.metadata[b"rows"]))
    return unpack_row(row["payload"], row["file"])


def unpack_row(payload: bytes | None, file: str | None) -> pa.Table:
    """The table of a result row; a file is mapped, and removed from its folder at once."""
    if file is None:
        assert payload is not None
        return unpack(payload)
    with pa.memory_map(file) as mapped:
        table = pa.ipc.open_file(mapped).read_all()
    Path(file).unlink()
    return table
