"""A file of lines as Arrow batches: every line of it, however long, with whether it is text at all.

DuckDB's own reader of lines passes over what is longer than its buffer, and refuses a whole file for one odd end of
line; here a line is what stands between two newlines and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.sources.content.documents import SIGNS

SCHEMA = pa.schema(
    [("raw", pa.large_string()), ("readable", pa.bool_()), ("plain", pa.bool_()), ("record", pa.int64())]
)
"""A line's text with its newline, whether it is UTF-8 (else with replacement characters), whether no line around it has
one of `SIGNS`, its number among the lines."""
_BLOCK = 8 << 20
_BOM = b"\xef\xbb\xbf"


def lines(path: str) -> pa.RecordBatchReader:
    """The lines of a file, unpacked when its name says that it is packed; an empty line is no line.

    Raises OSError while it is read: with an errno when the system refuses, without one when packed content is damaged.
    """
    return pa.RecordBatchReader.from_batches(SCHEMA, _batches(path))


def _batches(path: str) -> Iterator[pa.RecordBatch]:
    known = 0
    for block in blocks(path):
        batch = split(block, known)
        known += batch.num_rows
        yield batch


def blocks(path: str, size: int = _BLOCK) -> Iterator[bytes]:
    """The content of a file in pieces of about a size that end where lines end; raises as `lines` does."""
    with pa.input_stream(path, compression="detect") as file:
        left, first = list[bytes](), True
        while found := file.read(size):
            if first:
                found, first = found.removeprefix(_BOM), False
            cut = found.rfind(b"\n") + 1
            if not cut:
                left.append(found)
                continue
            yield b"".join([*left, found[:cut]])
            left = [found[cut:]]
        if rest := b"".join(left):
            yield rest


def newlines(block: bytes) -> npt.NDArray[np.int64]:
    """Where the lines of a block begin, and the last one ends.

    >>> newlines(b"a\\n\\nbc").tolist()
    [0, 2, 3, 5]
    """
    ends = np.flatnonzero(np.frombuffer(block, np.uint8) == ord("\n")) + 1
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(block))
    return np.concatenate([[0], ends]).astype(np.int64)


def split(block: bytes, known: int) -> pa.RecordBatch:
    """The lines of a block, of which the first has a number."""
    offsets = newlines(block)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(block)]
    raw, readable = _decoded(pa.Array.from_buffers(pa.large_binary(), len(offsets) - 1, buffers))
    filled = pc.invert(pc.ascii_is_space(raw))
    plain = pa.array(np.full(len(raw), not any(sign in block for sign in SIGNS)))
    batch = pa.record_batch([raw, readable, plain, pa.nulls(len(raw), pa.int64())], schema=SCHEMA)
    if not pc.all(filled).as_py():
        batch = batch.filter(filled)
    record = pa.array(np.arange(known, known + batch.num_rows), pa.int64())
    return pa.RecordBatch.from_arrays([*batch.columns[:-1], record], schema=SCHEMA)


def _decoded(found: pa.Array) -> tuple[pa.Array, pa.Array]:
    """Lines as texts, and which of them are UTF-8."""
    try:
        return found.cast(pa.large_string()), pa.array(np.ones(len(found), bool))
    except pa.ArrowInvalid:
        raw = [line.decode(errors="replace") for line in found.to_pylist()]
        readable = [text.encode() == line for text, line in zip(raw, found.to_pylist(), strict=True)]
        return pa.array(raw, pa.large_string()), pa.array(readable)
