"""A Parquet file as pyarrow reads it: the second way, for what DuckDB cannot hold (a time far outside of its range)."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rollup.core.untyped import pc

_A_MILLISECOND = {"ms": 1, "us": 1_000, "ns": 1_000_000}


def arrow_rows(path: str) -> pa.Table:
    """The rows with their number (`file_row_number`), times as milliseconds. Raises what pyarrow does, and OSError."""
    with open(path, "rb") as opened:
        found = pq.ParquetFile(opened).read(use_threads=False)
    found.validate(full=True)
    columns = {name: _plain(found[name]) for name in dict.fromkeys(found.column_names)}
    return pa.table({**columns, "file_row_number": pa.array(range(found.num_rows), pa.int64())})


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    if not pa.types.is_timestamp(column.type):
        return column
    return _floor(column.cast(pa.int64()), _A_MILLISECOND[column.type.unit])


def _floor(number: Any, by: int) -> Any:
    """Divided, down also below zero: a time of 1969 must not come into the next second."""
    if by == 1:
        return number
    cut = pc.divide(number, by)
    return pc.subtract(cut, pc.cast(pc.less(number, pc.multiply(cut, by)), pa.int64()))
