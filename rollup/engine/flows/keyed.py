"""A table that is told by its changes: of each key the last row is there."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from rollup.engine.flows.flow import NUMBER, numbered


def last_of(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last row of each key, in the order in which those came; a null is a key as any other.

    >>> last_of(pa.table({"k": ["a", "b", "a", None, None], "v": [1, 2, 3, 4, 5]}), ["k"]).to_pylist()
    [{'k': 'b', 'v': 2}, {'k': 'a', 'v': 3}, {'k': None, 'v': 5}]
    """
    last = numbered(rows).group_by(list(key), use_threads=False).aggregate([(NUMBER, "max")]).column(f"{NUMBER}_max")
    return rows.take(last.combine_chunks().sort())
