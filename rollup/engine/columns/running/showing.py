"""What a statement over columns would show now: its groups, or the rows of its window, row by row; nothing here is hot."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Core
from rollup.engine.columns.cores.lifecycle_statement import LifecycleStatement
from rollup.engine.columns.cores.of_matches import OfMatches
from rollup.engine.columns.cores.partition_totals import PartitionTotals
from rollup.engine.columns.cores.partitioned import Partitioned
from rollup.engine.columns.cores.prior_access import PriorAccess
from rollup.engine.columns.cores.prior_values import PriorValue
from rollup.engine.columns.cores.selected import Selected
from rollup.engine.columns.evaluate import evaluate, plain
from rollup.engine.compiling import compiled, compiled_row, predicate
from rollup.engine.expressions import Expr
from rollup.engine.row import Row
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.state import State


def contents(core: Core, state: State) -> list[list[tuple[Any, ...]]]:
    """The same as `content`, of each partition."""
    match core:
        case LifecycleStatement():
            return core.contents(state)
        case Partitioned():
            return _of_partitions(core, state)
        case _:
            return [content(core, state)]


def content(core: Core, state: State) -> list[tuple[Any, ...]]:
    """The values of the rows as they are now; of single events nothing is known."""
    match core:
        case PriorAccess(window=None) | OfMatches():
            return content(core.main, state.held()["main"])
        case PriorAccess():
            return _reading(core, state)
        case PartitionTotals():
            return _totals(core, state)
        case Selected():
            return core.content(state)
        case _:
            return []


def _reading(core: PriorAccess, state: State) -> list[tuple[Any, ...]]:
    """The rows of the window: what is `prior` to each, and what is read of them all, the newest of which is the last."""
    held = state.tables["content"]
    width = len(core.type.fields)
    columns = [column.to_pylist() for column in held.columns[1:]]
    windows = _windows(core, held)
    for place, each in enumerate(core.recalled, width):
        if each.inside:
            values = columns[each.value.index]
            columns[place] = [_recalled(each, [values[row] for row in rows]) for rows in windows]
    values, passes = [((Row(0, row),), ()) for row in zip(*columns, strict=True)], predicate(core.plan.where)
    found = [each for each in values if passes(*each, None)]
    return _shown(core.plan.projection.columns, core.plan.projection.having, found)


def _windows(core: PriorAccess, held: pa.Table) -> list[list[int]]:
    """For each row the rows of its window, oldest first."""
    if not isinstance(core.window, Grouped):
        return [list(range(held.num_rows))] * held.num_rows
    (key,) = core.window.key
    keys = evaluate(key, [column.combine_chunks() for column in held.columns[1:]], held.num_rows).to_pylist()
    rows = dict[Any, list[int]]()
    for number, each in enumerate(keys):
        rows.setdefault(each, []).append(number)
    return [rows[each] for each in keys]


def _recalled(each: PriorValue, values: Sequence[Any]) -> Any:
    """What is read of the rows of a window."""
    if each.what == "count":
        return len(values)
    if each.what == "tail":
        return values[each.offset] if each.offset < len(values) else None
    if each.what == "window":
        return list(values[::-1])
    return values[-1 - each.offset] if each.offset < len(values) else None


def _totals(core: PartitionTotals, state: State) -> list[tuple[Any, ...]]:
    """A row a partition."""
    totals, known = state.tables["totals"], core.known(state)
    columns = zip(*(column.to_pylist() for column in totals.columns), strict=True)
    values = [core.lines.fold.values(core.lines.group(each)) for each in columns]
    rows = _with(values, core.division.of_partitions(core.properties, np.arange(totals.num_rows), known))
    return _shown(core.columns, None, rows)


def _with(values: Sequence[tuple[Any, ...]], properties: Sequence[pa.Array]) -> list[Any]:
    """Rows with the properties of their partitions behind them."""
    own = zip(*(plain(each).to_pylist() for each in properties), strict=True) if properties else [()] * len(values)
    return [((Row(0, (*row, *further)),), ()) for row, further in zip(values, own, strict=True)]


def _of_partitions(core: Partitioned, state: State) -> list[list[tuple[Any, ...]]]:
    """The rows of each partition, one of a total."""
    if core.number is None:  # matches of a pattern are not kept
        return []
    inner, now = core.inner, state.held()["core"]
    if isinstance(inner, PriorAccess):
        rows = [] if inner.window is None else _reading(inner, now)
    elif isinstance(inner, Selected):
        rows = inner.content(now)
    else:
        rows = []
    if core.nothing is not None:
        there, every = {row[0]: row for row in rows}, range(core.division.count(core.known(state)))
        rows = [there.get(number, (number, *core.nothing)) for number in every]
    number = compiled(core.number)
    found = sorted(((number((Row(0, row),), (), None), row) for row in rows), key=lambda each: each[0])
    numbers = np.array([number for number, _ in found], np.int64)
    whole = _with([row for _, row in found], core.division.of_partitions(core.properties, numbers, core.known(state)))
    begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
    parts = (whole[begin:end] for begin, end in pairwise([*begins, len(whole)]))
    return [_shown(core.projection.columns, core.projection.having, part) for part in parts]


def _shown(columns: tuple[Expr, ...], having: Expr | None, found: list[Any]) -> list[tuple[Any, ...]]:
    values, passes = compiled_row(columns), predicate(having)
    return [values(r, s, None) for r, s in found if passes(r, s, None)]
