"""Sums of whole numbers that 64 bits do not hold: they are null, and counted, since a null alone says nothing.

Each node that sums up has their number in its state, under `BEYOND`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from rollup.core.untyped import pc
from rollup.engine.state import State

BEYOND = "beyond"
_LOST = "__lost"


def with_lost(values: Sequence[exp.Expr]) -> list[exp.Expr]:
    """An item more of a query, how many of a row's values are such sums; none where no value can be.

    A sum is narrowed by a TRY_CAST of its own, which stands above all else.
    """
    flags = [
        exp.cast(exp.and_(exp.Is(this=value.this.copy(), expression=exp.Null()).not_(), _is_null(value)), "INTEGER")
        for value in values
        if isinstance(value, exp.TryCast)
    ]
    if not flags:
        return []
    total = flags[0]
    for flag in flags[1:]:
        total = exp.Add(this=total, expression=flag)
    return [exp.alias_(total, _LOST, quoted=True)]


def _is_null(value: exp.Expr) -> exp.Expr:
    return exp.Is(this=value.copy(), expression=exp.Null())


@dataclass
class Narrowing:
    """Sums of sub-queries over tables: their values are asked for by rows, so what does not fit is counted where it is cut.

    DuckDB calls it with a column of sums; it knows no connection, which keeps it alive.
    """

    lost: int = 0

    def __call__(self, sums: pa.ChunkedArray) -> pa.Array:
        values = [None if each is None else int(each) for each in sums.to_pylist()]
        found = pa.array([each if each is None or -(2**63) <= each < 2**63 else None for each in values], pa.int64())
        self.lost += found.null_count - sums.null_count
        return found


def carried(before: State, after: State, lost: int) -> State:
    """The state of a node after a step in which sub-queries lost so many sums: they count once, since how often one is
    asked is up to the cuts of the input. A node that sums up itself counts its own."""
    said = BEYOND not in after.scalars and (lost or before.scalars.get(BEYOND))
    return State(after.tables, {**after.scalars, BEYOND: 1}) if said else after


def counted(rows: pa.Table) -> tuple[pa.Table, int]:
    """The answer of a query without that item, and the sum of it."""
    if _LOST not in rows.column_names:
        return rows, 0
    return rows.drop_columns([_LOST]), pc.sum(rows.column(_LOST)).as_py() or 0


def beyond(states: Iterable[State]) -> int:
    """How many such sums there were before some states."""
    return sum(state.scalars.get(BEYOND, 0) for state in states)
