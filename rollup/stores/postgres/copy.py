"""Rows on their way into PostgreSQL: Arrow to the binary form that COPY reads, which spares the server the parsing."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import pyarrow as pa
from pgpq import ArrowToPostgresBinaryEncoder

READ_SIZE = 1 << 16
"""Bytes for a driver to read at a time; psycopg2 by itself reads 8 KiB."""
_PIECE = 20_000
"""Rows that are encoded at a time, about 2 MB: what the system holds between two processes."""


class CopyRows(io.RawIOBase):
    """Rows as `COPY … FROM STDIN (FORMAT binary)` reads them; the columns of the table must have the types of theirs.

    A piece is encoded when it is read, so that the server takes in one while the next is made.

    >>> CopyRows(pa.table({"n": [1, 2]})).read()[:11]
    b'PGCOPY\\n\\xff\\r\\n\\x00'
    """

    def __init__(self, rows: pa.Table) -> None:
        self._pieces = _encoded(rows)
        self._rest = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int:
        while not self._rest:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._rest = memoryview(piece)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _encoded(rows: pa.Table) -> Iterator[bytes]:
    encoder = ArrowToPostgresBinaryEncoder(rows.schema)
    yield encoder.write_header()
    for batch in rows.to_batches(max_chunksize=_PIECE):
        yield encoder.write_batch(batch)
    yield encoder.finish()
