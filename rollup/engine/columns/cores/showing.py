"""Rows that a statement over columns would show now, one by one: nothing here is hot."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rollup.engine.columns.evaluate import plain
from rollup.engine.compiling import compiled_row, predicate
from rollup.engine.expressions import Expr
from rollup.engine.row import Row


def with_properties(values: Sequence[tuple[Any, ...]], properties: Sequence[pa.Array]) -> list[Any]:
    """Rows with the properties of their partitions behind them."""
    own = zip(*(plain(each).to_pylist() for each in properties), strict=True) if properties else [()] * len(values)
    return [((Row(0, (*row, *further)),), ()) for row, further in zip(values, own, strict=True)]


def shown(columns: tuple[Expr, ...], having: Expr | None, found: list[Any]) -> list[tuple[Any, ...]]:
    """What rows are shown as, those that `having` takes."""
    values, passes = compiled_row(columns), predicate(having)
    return [values(r, s, None) for r, s in found if passes(r, s, None)]
