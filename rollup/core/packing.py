"""Arrow tables as bytes, and back."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.ipc


def pack(table: pa.Table) -> bytes:
    """A table as bytes (an Arrow stream).

    >>> unpack(pack(pa.table({"a": [1, 2]})))["a"].to_pylist()
    [1, 2]
    """
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


def unpack(blob: bytes) -> pa.Table:
    """The table that `pack` made bytes of. Raises pyarrow.ArrowInvalid for bytes that are none."""
    return pa.ipc.open_stream(blob).read_all()
