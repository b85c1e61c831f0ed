"""What a statement over columns would show now: its groups, or the rows of its window, row by row; nothing here is hot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Core
from rollup.engine.columns.cores.declared import Lines
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.lifecycle_statement import LifecycleStatement
from rollup.engine.columns.cores.of_matches import OfMatches
from rollup.engine.columns.cores.partition_totals import PartitionTotals
from rollup.engine.columns.cores.partitioned import Partitioned
from rollup.engine.columns.cores.prior_access import PriorAccess
from rollup.engine.columns.cores.prior_values import PriorValue
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.cores.selected import Selected
from rollup.engine.columns.evaluate import evaluate, plain
from rollup.engine.compiling import compiled, compiled_row, predicate
from rollup.engine.expressions import Expr
from rollup.engine.row import Row
from rollup.engine.rows.plans import Select
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.state import State


def contents(core: Core, plan: Select, state: State, held: pa.Table) -> list[list[tuple[Any, ...]]]:
    """The same as `content`, of each partition."""
    match core:
        case LifecycleStatement():
            return core.contents(state)
        case Partitioned():
            return _of_partitions(core, plan, state)
        case _:
            return [content(core, plan, state, held)]


def content(core: Core, plan: Select, state: State, held: pa.Table) -> list[tuple[Any, ...]]:
    """The values of the rows as they are now; of groups without a window, and of single events, nothing is known."""
    match core:
        case PriorAccess(window=None) | OfMatches():
            return content(core.main, core.plan, state.held()["main"], held)
        case PriorAccess():
            return _reading(core, state)
        case PartitionTotals():
            return _totals(core, state)
        case Selected():
            return core.content(state)
        case Queued():
            return _waiting(core, plan, state, state)
        case Folded() if core.by_group:
            return _by_group(core, plan, state, state)
        case Folded() if not (core.window is None and held.num_rows == 0):
            return _by_row(core, plan, state, held)
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
    values = list(_slots(core.lines, totals, 0, None))
    rows = _with(values, core.division.of_partitions(core.properties, np.arange(totals.num_rows), known))
    return _shown(core.columns, None, rows)


def _with(values: Sequence[tuple[Any, ...]], properties: Sequence[pa.Array]) -> list[Any]:
    """Rows with the properties of their partitions behind them."""
    own = zip(*(plain(each).to_pylist() for each in properties), strict=True) if properties else [()] * len(values)
    return [((Row(0, (*row, *further)),), ()) for row, further in zip(values, own, strict=True)]


def _by_group(core: Folded, plan: Select, state: State, now: State) -> list[tuple[Any, ...]]:
    """The groups that have rows now, with the values that they have in a state."""
    found = list(_groups(core.lines, state.tables["groups"], 2, state.tables["content"]))
    if not core.keys:
        values = [((None,), values) for _, values in found] or [((None,), _nothing(core.lines))]
    elif plan.unbounded and plan.rate.mode != "snapshot":
        values = []
    else:
        known = {_key(key): slots for key, slots in found}
        every = now.tables["groups"].column("key").to_pylist()
        keys = [_key(every[number]) for number in _there(core, now)]
        values = [((None,), (*key, *(known.get(key) or _nothing(core.lines)))) for key in keys]
    return _shown(plan.projection.columns, plan.projection.having, values)


def _there(core: Folded, now: State) -> list[int]:
    """The groups that have rows, as these stand in the window: what comes first decides what a limit leaves."""
    if core.window is not None:
        return list(dict.fromkeys(now.tables["content"].column("group").to_pylist()))
    return np.flatnonzero(now.tables["groups"].column("rows").to_numpy()).tolist()


def _key(key: Any) -> tuple[Any, ...]:
    return tuple(key.values()) if isinstance(key, dict) else (key,)


def _waiting(core: Queued, plan: Select, state: State, now: State) -> list[tuple[Any, ...]]:
    """Of what is in the window now, or not yet out of it, with the values of a state."""
    if not core.by_group:
        return _by_row(core, plan, _inside(core, state), _rows(core, now))
    return _by_group(core, plan, _inside(core, state), _outside(core, now))


def _inside(core: Queued, state: State) -> State:
    """The rows that count, and the values of the groups."""
    return State({"content": core.inside(state), "groups": state.tables["groups"]})


def _outside(core: Queued, now: State) -> State:
    """The rows that are seen, and how many of them each group has."""
    held, groups = core.waiting(now), now.tables["groups"]
    counts = np.bincount(held.column("group").to_numpy(), minlength=groups.num_rows)
    return State({"content": held, "groups": groups.set_column(1, "rows", pa.array(counts))})


def _of_partitions(core: Partitioned, plan: Select, state: State) -> list[list[tuple[Any, ...]]]:
    """The rows of each partition, one of a total."""
    if core.number is None:  # matches of a pattern are not kept
        return []
    inner, now = core.inner, state.held()["core"]
    if isinstance(inner, PriorAccess):
        rows = [] if inner.window is None else _reading(inner, now)
    elif isinstance(inner, Selected):
        rows = inner.content(now)
    else:
        rows = _folded(inner, plan, now) if isinstance(inner, Folded) else []
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


def _folded(inner: Folded, plan: Select, now: State) -> list[tuple[Any, ...]]:
    """What the projection sees of aggregates in partitions: groups, or the rows that are held."""
    counting, seen = (_inside(inner, now), _outside(inner, now)) if isinstance(inner, Queued) else (now, now)
    groups = list(_groups(inner.lines, counting.tables["groups"], 2, counting.tables["content"]))
    if inner.by_group and inner.kept:
        return [(number, *values) for number, values in groups]
    if inner.by_group and not plan.unbounded:
        found = (groups[place] for place in _there(inner, seen))
        return [(*_key(key), *values) for key, values in found]
    if inner.by_group or not isinstance(inner, Queued):
        return []
    waiting = inner.waiting(now)
    held = zip(waiting.column("group").to_pylist(), _tuples(_rows(inner, now)), strict=True)
    return [(*row, *(groups[place][1] if inner.calls else ())) for place, row in held]


def _rows(core: Queued, now: State) -> pa.Table:
    """The fields of the rows that are seen in the window."""
    held = core.waiting(now)
    return held.select(held.column_names[2:])


def _tuples(held: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(column.to_pylist() for column in held.columns), strict=True))


def _by_row(core: Folded, plan: Select, state: State, held: pa.Table) -> list[tuple[Any, ...]]:
    pairs = zip(_tuples(held), _values(core, state, held), strict=True)
    found = [((Row(0, row),), values) for row, values in pairs]
    return _shown(plan.projection.columns, plan.projection.having, found)


def _values(core: Folded, state: State, held: pa.Table) -> list[tuple[Any, ...]]:
    """The values that the group of each row has in a state."""
    found = list(_groups(core.lines, state.tables["groups"], 2, state.tables["content"]))
    fields = [column.combine_chunks() for column in held.columns]
    keys = pa.array([key for key, _ in found], state.tables["groups"].schema.field("key").type)
    numbers = core.numbered(keys, fields, held.num_rows)[0].tolist()
    groups = dict(enumerate(group for _, group in found))  # one that has come since the last output has no values yet
    return [groups.get(number) or _nothing(core.lines) for number in numbers]


def _groups(lines: Lines, table: pa.Table, first: int, held: pa.Table | None) -> Iterator[tuple[Any, tuple[Any, ...]]]:
    """The key and the values of each group; its slots are the columns from `first` on, its rows those that are held."""
    yield from zip(table.column(0).to_pylist(), _slots(lines, table, first, held), strict=True)


def _slots(lines: Lines, table: pa.Table, first: int, held: pa.Table | None) -> Iterator[tuple[Any, ...]]:
    """The values of each group."""
    columns = [column.to_pylist() for column in table.columns[first:]]
    groups = [lines.group([column[number] for column in columns]) for number in range(table.num_rows)]
    if held is not None:
        lines.hold(groups, held)
    yield from map(lines.fold.values, groups)


def _nothing(lines: Lines) -> tuple[Any, ...]:
    return lines.fold.values(lines.fold.start())


def _shown(columns: tuple[Expr, ...], having: Expr | None, found: list[Any]) -> list[tuple[Any, ...]]:
    values, passes = compiled_row(columns), predicate(having)
    return [values(r, s, None) for r, s in found if passes(r, s, None)]
