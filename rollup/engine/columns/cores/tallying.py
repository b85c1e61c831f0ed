"""The aggregate `rate(10)` over columns: how many events a second there have been is told with each, as a further field of it,
and the aggregate is that of the last one.

A table `lately` keeps what will be counted: of each group when its events of the longest time came, and the one before them,
which says that the time has passed once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.aggregates.known import LAST_EVER, Counting, counting
from rollup.engine.columns.cores.folded import shape_of, unkeyed
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.evaluate import carried, evaluate, flags, passing, plain
from rollup.engine.columns.loops import loop
from rollup.engine.columns.numbering import told_apart
from rollup.engine.expressions import Expr, Field
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import DOUBLE

_COUNT = """
def core(times, codes, span, most, count, stays):
    begin, early = 0, 0
    for i in range(len(times)):
        if i > 0 and codes[i] != codes[i - 1]:
            begin, early = i, i
        while times[early] <= times[i] - span:
            early += 1
        count[i] = i + 1 - early if early > begin else 0
        if most and (i + 1 == len(times) or codes[i + 1] != codes[i]):
            stays[max(early - 1, begin):i + 1] = True
"""
"""Rows of each group, one group behind the other: how many of the last `span` there are with each, 0 as long as none is older;
and, where that is the longest that is asked, which are counted with those to come."""


@dataclass(frozen=True)
class Tally:
    """What is told with each event that passes `where`: of its group, which `keys` say, for each of `counted` how many."""

    counted: tuple[Counting, ...]
    keys: tuple[Expr, ...]
    where: Expr | None

    @cached_property
    def schema(self) -> pa.Schema:
        """Of what is kept: instants and keys of events, those of each group together in the order in which they came."""
        keys = [pa.field(f"key{place}", carried(key.type)) for place, key in enumerate(self.keys)]
        return pa.schema([pa.field("time", pa.int64()), *keys])

    def table(self, events: Sequence[tuple[int, Sequence[Any]]]) -> pa.Table:
        """What is kept, of instants and keys."""
        columns = [[at for at, _ in events], *([key[place] for _, key in events] for place in range(len(self.keys)))]
        made = [pa.array(column, each.type) for column, each in zip(columns, self.schema, strict=True)]
        return pa.table(made, schema=self.schema)

    def step(self, lately: pa.Table, taken: Taken) -> tuple[list[pa.Array], pa.Table]:
        """What is told with each of the events taken, null where nothing is; and what is to be kept then."""
        rows = len(taken.times)
        mask = passing(self.where, taken.columns, rows)
        counts = flags(mask, rows)
        came = [evaluate(key, taken.columns, rows) for key in self.keys]
        came = came if mask is None else [key.filter(mask) for key in came]
        keys = [
            pa.concat_arrays([*held.chunks, plain(key)]) for held, key in zip(lately.columns[1:], came, strict=True)
        ]
        times = np.concatenate([lately.column("time").to_numpy(), taken.times[counts]])
        codes = told_apart(keys, np.zeros(len(times), np.int64))
        order = np.argsort(codes, kind="stable")
        times, codes = times[order], codes[order]
        stays, longest, found = np.zeros(len(times), bool), max(each.span for each in self.counted), list[pa.Array]()
        for each in self.counted:
            count, told = np.empty(len(times), np.int64), np.zeros(rows, np.int64)
            loop(_COUNT)(times, codes, each.span, each.span == longest, count, stays)
            in_turn = np.empty(len(times), np.int64)
            in_turn[order] = count
            told[counts] = in_turn[lately.num_rows :]
            found.append(pa.array(told * each.second / each.span, mask=told == 0))
        kept = pa.array(order[stays])
        return found, pa.table([pa.array(times[stays]), *(key.take(kept) for key in keys)], schema=self.schema)


def tallied(plan: Select, width: int) -> tuple[Select, Tally] | None:
    """A statement that reads what is told of it behind `width` fields of an event, and what that is; None where no aggregate asks
    for it, or not each event is counted when it comes.
    """
    shape, input = shape_of(plan), plan.inputs[0]
    if isinstance(shape, str) or len(plan.levels) > 1 or not isinstance(input, StreamInput):
        return None
    keys, calls, _ = shape
    asked = dict.fromkeys(found for call in calls if (found := _counting(call)) is not None)
    if not asked or not _counts_each(input.window, bool(keys)) or any(map(unkeyed, keys)):
        return None
    told = {each: Field(0, place, DOUBLE) for place, each in enumerate(asked, width)}

    def last(call: AggregateCall) -> AggregateCall:
        found = _counting(call)
        return call if found is None else AggregateCall(LAST_EVER, (told[found],))

    read = tuple(map(last, calls))
    grouping = None if plan.grouping is None else replace(plan.grouping, calls=read)
    levels = tuple(replace(level, calls=read) for level in plan.levels)
    return replace(plan, grouping=grouping, levels=levels), Tally(tuple(asked), keys, plan.where)


def _counts_each(window: WindowSpec | None, grouped: bool) -> bool:
    """Whether each event is counted when it comes, for as long as its group is known: one that empties is forgotten."""
    match window:
        case None | KeepAll():
            return True
        case Length() | Time(size=None):
            return not grouped
        case _:
            return False


def _counting(call: AggregateCall) -> Counting | None:
    return counting(call.aggregate) if call.where is None and not call.distinct else None
