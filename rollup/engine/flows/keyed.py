"""A table that is told by its changes: of each key the last row is there."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.flows.flow import NUMBER, numbered


def last_of(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The last row of each key, in the order in which those came; a null is a key as any other, so is what is no number.

    >>> last_of(pa.table({"k": ["a", "b", "a", None, None], "v": [1, 2, 3, 4, 5]}), ["k"]).to_pylist()
    [{'k': 'b', 'v': 2}, {'k': 'a', 'v': 3}, {'k': None, 'v': 5}]
    """
    grouped = numbered(equal_keys(rows, key)).group_by(list(key), use_threads=False)
    last = grouped.aggregate([(NUMBER, "max")]).column(f"{NUMBER}_max")
    return rows.take(last.combine_chunks().sort())


def equal_keys(rows: pa.Table, key: Sequence[str]) -> pa.Table:
    """The rows with keys that are one bit for bit when they are equal: of a float there is one zero, and one NaN.

    >>> equal_keys(pa.table({"k": [-0.0, 1.5, None]}), ["k"])["k"].to_pylist()
    [0.0, 1.5, None]
    """
    for name in key:
        column = rows[name]
        if pa.types.is_floating(column.type):
            zero, nan = (pa.scalar(value, column.type) for value in (0.0, math.nan))
            same = pc.if_else(pc.is_nan(column), nan, pc.add(column, zero))
            rows = rows.set_column(rows.schema.get_field_index(name), rows.schema.field(name), same)
    return rows
