"""Rows that statements insert into streams, as batches: which can be, and in which order they come."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Output
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.covering import wide
from rollup.engine.columns.evaluate import carried
from rollup.engine.columns.groups import Ints
from rollup.engine.rows.plans import Select, Target
from rollup.engine.timers import Phase
from rollup.engine.types import Kind, RowType

Path = tuple[Ints, ...]
"""Where rows come from: what caused them (`Cause`, four numbers), how many inserts lie between, then for each of them the place
of its statement among all and the number of its row. In that order the rows of one cause are told. Events that were sent
have none.
"""
SENT: Path = ()
_CAUSE = 4
_EVENT = sys.maxsize
"""As the phase of what an event caused, which is told behind all who hear the event."""


def inserting(plan: Select, core: Core, into: RowType | None) -> str | None:
    """The first reason why what a core gives cannot go into a stream as a batch; `into` None: it is no stream."""
    if into is None:
        return "insert into a store"
    assert plan.target is not None
    if plan.rate.limited and plan.tells_what_leaves:
        return "insert into, of rows that leave, with an output rate"
    if core.clock_brings and not core.clock_inserts:
        return "insert into, of rows that the clock brings"
    made = list(plan.type.fields.values())
    columns = None if plan.projection.whole else plan.projection.columns
    for place, kind in zip(plan.target.columns, into.fields.values(), strict=True):
        if place is None:
            continue
        given = made[place].kind
        if given in (Kind.LIST, Kind.ROW):
            return f"insert into, of {made[place]}"
        if given is not kind.kind and (given, kind.kind) != (Kind.INT, Kind.LONG):
            return f"insert into, of {made[place]} as {kind}"
        if columns is not None and (reason := wide(columns[place])) is not None:
            return f"insert into, of {reason}"
    return None


@dataclass(frozen=True)
class Cause:
    """Of what a statement gives: the instants of the events that were sent, the phase of its timers, and its place among all.

    An event at the place n is 2n + 1, its instant, `_EVENT`, 0; what the clock brings before it 2n, its instant, phase, place.
    """

    times: Ints
    phase: Phase
    order: int

    def of(self, output: Output, path: Path) -> Path:
        """The path of what each row is made of: of an event that was sent or inserted, or by the clock."""
        clock, event = output.event < 0, np.maximum(output.event, 0)
        nothing = np.zeros(output.rows, np.int64)
        if path:
            heard = tuple(each[event] for each in path) if len(path[0]) else (nothing,) * len(path)
        else:
            heard = 2 * event + 1, output.at, np.full(output.rows, _EVENT), nothing, nothing
        if not clock.any():
            return heard
        before = 2 * np.searchsorted(self.times, output.at)
        own = before, output.at, np.full(output.rows, int(self.phase)), np.full(output.rows, self.order)
        own += (nothing,) * (len(heard) - _CAUSE)
        return tuple(np.where(clock, brought, of_event) for brought, of_event in zip(own, heard, strict=True))


@dataclass(frozen=True)
class Inserted:
    """Rows on their way into a stream, in order."""

    columns: tuple[pa.Array, ...]
    times: Ints
    path: Path

    @classmethod
    def of(cls, output: Output, target: Target, into: RowType, orders: Ints, path: Path, cause: Cause) -> Inserted:
        """What a statement gave for rows with that path; `orders`: where each is among those that an event makes."""
        kinds = [carried(kind) for kind in into.fields.values()]
        columns = [
            # Whole numbers wrap at the width of their attribute, as those of the language do.
            pa.nulls(output.rows, kind)
            if place is None
            else output.columns[place].cast(kind, safe=not pa.types.is_integer(kind))
            for place, kind in zip(target.columns, kinds, strict=True)
        ]
        found = cause.of(output, path)
        own = (*found[:_CAUSE], found[_CAUSE] + 1, *found[_CAUSE + 1 :], orders, np.arange(output.rows))
        return cls(tuple(columns), output.at, own)

    def padded(self, length: int) -> list[Ints]:
        """The path, as long as others: rows that went by other ways differ before its end."""
        nothing = np.zeros(len(self.times), np.int64)
        return [*self.path, *[nothing] * (length - len(self.path))]


def together(found: Sequence[Inserted], before: int) -> Inserted | None:
    """What several statements inserted, in order, of events `before` a place; None where there is nothing."""
    kept = [each for each in (_before(each, before) for each in found) if len(each.times)]
    if len(kept) < 2:
        return kept[0] if kept else None
    longest = max(len(each.path) for each in kept)
    paths = [np.concatenate(parts) for parts in zip(*(each.padded(longest) for each in kept), strict=True)]
    order = np.lexsort(paths[::-1])
    columns = tuple(
        pa.concat_arrays([each.columns[i] for each in kept]).take(pa.array(order)) for i in range(len(kept[0].columns))
    )
    return Inserted(columns, np.concatenate([each.times for each in kept])[order], tuple(each[order] for each in paths))


def _before(found: Inserted, place: int) -> Inserted:
    rows = int(np.searchsorted(found.path[0], 2 * place, "right"))
    if rows == len(found.times):
        return found
    columns = tuple(column.slice(0, rows) for column in found.columns)
    return Inserted(columns, found.times[:rows], tuple(each[:rows] for each in found.path))
