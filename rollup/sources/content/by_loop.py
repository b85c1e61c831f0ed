"""Documents whose plain ones a loop has read (`scanning.py`): as events where all are, or for `documents.py` to read the rest.

Where many of a stream's records are not plain, reading them one after the other costs more than it saves: from then on
the process leaves that stream to DuckDB.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TypeAlias

import numpy as np
import pyarrow as pa

from rollup.core.columns import ColumnEngine
from rollup.core.identifiers import quoted
from rollup.core.untyped import pc
from rollup.plan.app import StreamDef
from rollup.sources.base import DEAD
from rollup.sources.content.documents import OK, QUICK, Documents, value_of
from rollup.sources.content.lines import SCHEMA, blocks, newlines, split
from rollup.sources.content.records import show, view
from rollup.sources.content.scanning import Scanned, Scanner, ready, scanner_of

SCANNED = "__scanned"
"""The name of scanned records in an engine, where those of one part stay until the next."""
_PIECE = 1 << 20
"""Bytes of a file that are read at once: these stay in the cache."""
_ROWS = 1 << 15
"""Rows that are scanned at once, likewise."""
_HELD = 256 << 20
"""Bytes of records that are held as they are; more of them become a table of DuckDB's, which may leave the memory."""
_STRANGE = 8
"""One of so many records that is not plain is too many."""
_strange = set[str]()
"""Streams of which this process has met too many of them."""
Records: TypeAlias = pa.Table | pa.RecordBatchReader
"""Records with `raw`, `readable`, and what `_with` adds."""


def scanner_for(stream: StreamDef, renamed: Mapping[str, str], size: int) -> Scanner | None:
    """What reads so many bytes of records of a stream; None where that is for DuckDB."""
    found = None if stream.name in _strange else scanner_of(stream, renamed)
    return found if found is not None and ready(size) else None


def scanned_rows(rows: pa.Table, own: Scanner) -> pa.Table:
    """Rows with `raw` and `readable`, and what is read of each."""
    batches = rows.to_batches(max_chunksize=_ROWS)
    return pa.Table.from_batches([_with(batch, _scanned(batch, own)) for batch in batches])


def scanned_lines(path: str, own: Scanner) -> Iterator[pa.RecordBatch]:
    """The lines of a file as `lines` gives them, and what is read of each; without their texts where all are plain."""
    known = 0
    for block in blocks(path, _PIECE):
        batch = _all_plain(block, known, own)
        if batch is None:
            batch = split(block, known)
            batch = _with(batch, _scanned(batch, own))
        known += batch.num_rows
        yield batch


def held(batches: Iterator[pa.RecordBatch]) -> Records | None:
    """All scanned records as a table, unless they are too many to be held at once; None where there are none."""
    found, size = list[pa.RecordBatch](), 0
    for batch in batches:
        found.append(batch)
        size += batch.nbytes
        if size > _HELD:
            return pa.RecordBatchReader.from_batches(batch.schema, chain(found, batches))
    return pa.Table.from_batches(found) if found else None


def events(
    engine: ColumnEngine,
    stream: StreamDef,
    renamed: Mapping[str, str],
    found: Records,
    relation: str,
    raw: str,
    position: str,
    keep: Sequence[str] = (),
) -> tuple[int, pa.Table] | None:
    """As `rollup.sources.content.records.view`, of scanned records in a relation over `SCANNED`; None where too many are not
    plain."""
    odd = found.num_rows - pc.sum(found[QUICK], min_count=0).as_py() if isinstance(found, pa.Table) else 0
    if odd and odd * _STRANGE > found.num_rows:
        _strange.add(stream.name)
        return None
    engine.connection.register(SCANNED, found)
    if isinstance(found, pa.Table) and not odd:
        columns = [f"{value_of(number)} AS {quoted(name)}" for number, name in enumerate(stream.attributes)]
        show(engine, relation, ", ".join([*columns, "__arrival", "__received"]), position)
        return found.num_rows, DEAD.empty_table()
    documents = Documents(stream, renamed, scanned=True)
    return view(engine, stream, documents.relation(relation), documents.readers(), raw, OK, position, keep)


def _all_plain(block: bytes, known: int, own: Scanner) -> pa.RecordBatch | None:
    """The lines of a block, from the line of a number on; None where one is not plain, or no text."""
    if not _is_text(block):
        return None
    data = np.frombuffer(block, np.uint8)
    found = own.scan(data, newlines(block))
    if not found.plain.all():
        return None
    rows = len(found.plain)
    yes, records = pa.array(found.plain), pa.array(np.arange(known, known + rows), pa.int64())
    return _with(pa.record_batch([pa.nulls(rows, pa.large_string()), yes, yes, records], schema=SCHEMA), found)


def _is_text(block: bytes) -> bool:
    try:
        return block.isascii() or block.decode() != ""
    except UnicodeDecodeError:
        return False


def _scanned(batch: pa.RecordBatch, own: Scanner) -> Scanned:
    """What is read of the texts of a batch, `raw`."""
    raw = batch.column("raw")
    _, offsets, data = raw.buffers()
    width = np.int64 if pa.types.is_large_string(raw.type) else np.int32
    bounds = np.frombuffer(offsets, width)[raw.offset : raw.offset + len(raw) + 1].astype(np.int64)
    return own.scan(np.frombuffer(data or b" ", np.uint8), bounds)


def _with(batch: pa.RecordBatch, found: Scanned) -> pa.RecordBatch:
    """Records and what is read of them; what is no text, or null, is not read."""
    quick = pc.and_(pa.array(found.plain), pc.fill_null(batch.column("readable"), False))
    columns = {value_of(number): column for number, column in enumerate(found.columns)}
    names = [*batch.schema.names, QUICK, *columns]
    return pa.RecordBatch.from_arrays([*batch.columns, quick, *columns.values()], names)
