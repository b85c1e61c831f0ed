"""What tasks give back: one Arrow row a result, and how it is written and read.

A large table goes through a file of the exchange, a folder that tasks and driver both see; without one, or without room
in it, through Spark.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.ipc

from rollup.core.packing import pack, unpack
from rollup.hosts.exchange import batches_file
from rollup.hosts.spark.tasks.shard_step import Split
from rollup.sources.base import Part

KeptFiles = Sequence[tuple[str, str]]
"""Events that tasks have kept: the origin of a part, and the Arrow file that has them."""
RESULT = "kind string, name string, origin string, position long, rows long, payload binary, file string"
"""Spark's schema of results."""
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
_INLINE = 4 * 1024 * 1024
"""Bytes of a result that go through Spark; larger ones go through a file when there is a folder both sides see."""
_KEPT = 512 * 1024 * 1024
"""Bytes of events of one part that are kept at most."""


class Kind(StrEnum):
    """What a result is."""

    INPUT = "input"
    """Which input the batches are, as JSON."""
    PART = "part"
    """A part of the input: its place among the others and its records."""
    LOST = "lost"
    """How many records of a part are no events, of those that it counts."""
    LOOKED = "looked"
    """How often the attributes were there at all."""
    OFFSETS = "offsets"
    """Whether times of a stream that are texts have offsets."""
    KEPT = "kept"
    """The parsed events of a part, in a file, for a second look."""
    PARTIALS = "partials"
    """The partial rows of an aggregation."""
    DEAD = "dead"
    """Dead letters."""
    EVENTS = "events"
    """The events of a stream that questions or sinks ask for."""
    ROWS = "rows"
    """The columns of a stream that statements need."""


class Result(NamedTuple):
    """A result: of which aggregation or stream, and of which part. `position` is -1 where a source numbers its events."""

    kind: Kind
    name: str
    origin: str = ""
    position: int = 0
    rows: int = 0
    payload: bytes | None = None
    file: str | None = None

    def row(self) -> pa.RecordBatch:
        """As a task hands it to Spark."""
        columns = [pa.array([value], field.type) for value, field in zip(self, RESULT_SCHEMA, strict=True)]
        return pa.RecordBatch.from_arrays(columns, schema=RESULT_SCHEMA)

    def table(self) -> pa.Table:
        """Its table; a file is mapped, and removed from its folder at once."""
        if self.file is None:
            assert self.payload is not None
            return unpack(self.payload)
        with pa.memory_map(self.file) as mapped:
            table = pa.ipc.open_file(mapped).read_all()
        Path(self.file).unlink()
        return table

    def partials(self) -> pa.Table | Split:
        """Its partial rows: the table, or where they are when the task has split them."""
        if self.file is not None and self.payload is not None:
            summary = unpack(self.payload)
            return Split(self.file, summary, int(summary.schema.metadata[b"rows"]))
        return self.table()


def read(rows: pa.Table | pa.RecordBatch) -> list[Result]:
    """The results of tasks.

    >>> [result.name for result in read(Result(Kind.PART, "Trades").row())]
    ['Trades']
    """
    columns = [column.to_pylist() for column in rows.columns]
    return [Result(Kind(kind), *values) for kind, *values in zip(*columns, strict=True)]


def of_part(kind: Kind, name: str, part: Part, table: pa.Table | Split | None, exchange: str | None) -> Result:
    """The result of a part that a table is, if any."""
    payload: bytes | None = None
    file: str | None = None
    if isinstance(table, Split):
        payload, file = pack(table.summary.replace_schema_metadata({"rows": str(table.rows)})), table.file
    elif table is not None and exchange is not None and table.nbytes > _INLINE:
        file = _filed(exchange, table)
        payload = pack(table) if file is None else None
    elif table is not None:
        payload = pack(table)
    return Result(kind, name, part.origin, -1 if part.numbered else part.order, part.rows, payload, file)


def kept(name: str, part: Part, events: pa.Table, exchange: str) -> Result | None:
    """The events of a part, kept, when they are not too many and there is room for them."""
    file = _filed(exchange, events) if events.nbytes <= _KEPT else None
    return None if file is None else Result(Kind.KEPT, name, part.origin, rows=part.rows, file=file)


def _filed(exchange: str, table: pa.Table) -> str | None:
    """A table as a file of the exchange; None when there is no room for it."""
    file = Path(exchange) / f"{uuid.uuid4().hex}.arrow"
    try:
        with batches_file(file, table.schema) as writer:
            writer.write_table(table)
    except OSError:
        file.unlink(missing_ok=True)
        return None
    return str(file)
