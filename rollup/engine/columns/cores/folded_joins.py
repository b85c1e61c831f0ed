"""Aggregates over a join: its pairs come and leave, in any order, as rows of a window do.

State: the rows of both windows; `groups` as of a window. The pairs themselves are not kept: `content` is empty.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.declared import Lines
from rollup.engine.columns.cores.folded import GroupedShape, shape_of, shifted, unfolded
from rollup.engine.columns.cores.holding import Different, Ordered
from rollup.engine.columns.cores.joined import Found, Join, Joined, Places, flat, join_of, joined
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.looked_up import looked_up
from rollup.engine.columns.cores.moving import Moves
from rollup.engine.columns.cores.projecting import Made, Pace, Taken
from rollup.engine.columns.cores.projecting import Moves as Counted
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.cores.rewriting import rewritten
from rollup.engine.columns.evaluate import Columns, flags, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.plans import Filter, Select, StreamInput
from rollup.engine.rows.selects.grouping import Level
from rollup.engine.rows.selects.joining import WHOLE
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.types import RowType

_MOVES = """
def core(change, sign, changes, entering, leaving, come, gone):
    n, e, l = 0, 0, 0
    for i in range(len(change)):
        if n == 0 or change[i] != changes[n - 1]:
            changes[n], n = change[i], n + 1
        if sign[i] > 0:
            entering[e], e = i, e + 1
        else:
            leaving[l], l = i, l + 1
        come[n - 1], gone[n - 1] = e, l
    return n, e, l
"""
"""Which of some pairs come and which leave; of each change that has any how many have by then."""


@dataclass(frozen=True)
class Whole(Taken):
    """All events of a batch, of which each side takes its own."""

    batch: Batch | None = None


@dataclass(frozen=True, kw_only=True)
class FoldedJoin(Queued):
    """Aggregates over the pairs that fulfil `chosen`: a row for each group, for all, or for each pair.

    `apart`: the aggregates are of one change alone, as pairs that one input causes are not kept. `plan`: the statement
    over the pairs.
    """

    join: Join
    chosen: Expr | None
    apart: bool
    plan: Select

    def _new_text(self, paced: int) -> str:
        return self.text_of(True)

    @cached_property
    def lines(self) -> Lines:
        """The calls."""
        return _lines(self.calls)

    @property
    def keyed(self) -> bool:
        """Whether there is more than one group."""
        return bool(self.keys) or self.apart

    @property
    def oldest_first(self) -> bool:
        """Pairs leave in any order."""
        return False

    @property
    def dated(self) -> bool:
        """The clock lets rows out of the windows."""
        return True

    def start(self, now: int) -> State:
        """Two empty windows."""
        return self._holding(self.join.start(now), super().start(now).tables)

    @staticmethod
    def _holding(windows: State, tables: Mapping[str, pa.Table]) -> State:
        """The state of the whole, from that of the windows."""
        return State.holding({"join": windows}, {"now": windows.scalars["now"]}, tables)

    def taken(self, state: State, batch: Batch) -> Taken:
        """Every event."""
        now = max(state.scalars["now"], batch.now)
        return Whole(batch.columns, batch.times, np.arange(batch.rows), now, True, batch)

    def made(self, state: State, taken: Taken, pace: Pace | None = None) -> tuple[State, Made]:
        """The rows before they are projected."""
        return self._of_pairs(state, taken, False)

    def released(self, state: State, taken: Taken) -> tuple[State, Made]:
        """What is due leaves, late, and no event comes."""
        return self._of_pairs(state, taken, True)

    def _of_pairs(self, state: State, taken: Taken, late: bool) -> tuple[State, Made]:
        assert isinstance(taken, Whole) and taken.batch is not None
        held = self._held(state)  # before the windows go on
        windows, found = self.join.step(state.held()["join"], taken.batch, late)
        found = self._chosen(found)
        fields = (
            [pa.concat_arrays([*map(plain, each)]) for each in zip(held, found.columns, strict=True)] if held else []
        )
        fields, old = fields or list(found.columns), len(held[0]) if held else 0
        codes, keys, counts, slots = self._grouped(state.tables["groups"], found, fields)
        moves = _moves(found, old)
        change, group, source, sign, made = self._looped(old, moves, codes, fields, counts, slots)
        codes = codes[old:]
        columns = self._named(keys, group) if self.by_group else [each.take(pa.array(source)) for each in fields]
        made = Made(
            taken, moves.at[change], moves.event[change], [*columns, *made], sign if self.emitted != "new" else None, group,
            codes=codes, moves=Counted(moves.at, moves.event, *moves.counts(0), change),
        )  # fmt: skip
        tables = {name: state.tables[name] for name in ("content", "groups")}
        if len(found.change):
            groups = pa.table([keys, *map(pa.array, (counts, *slots))], schema=self._schemas[1])
            last = np.unique(codes[found.change == found.change[-1]]) if self.apart else None
            tables["groups"] = groups if last is None else groups.take(pa.array(last))
        return self._holding(windows, tables), made

    def _held(self, state: State) -> Columns:
        """The fields of the pairs that there are, where aggregates go by them."""
        if self.apart or not self.lines.held:
            return ()
        return [whole(each) for each in self.waiting(state).columns[2:]]

    def _grouped(
        self, groups: pa.Table, found: Found, fields: Columns
    ) -> tuple[Ints, pa.Array, Ints, list[np.ndarray]]:
        """The group of each pair, of all that there are; the keys of all groups, their rows and slots."""
        codes, keys = self.numbered(
            whole(groups.column("key")), fields, len(fields[0]) if fields else len(found.change)
        )
        if self.apart:
            each, codes = np.unique(found.change * len(keys) + codes, return_inverse=True)
            keys, groups = keys.take(pa.array(each % len(keys))), groups.slice(0, 0)
        counts = np.zeros(len(keys), np.int64)
        counts[: groups.num_rows] = groups.column("rows").to_numpy()
        return codes, keys, counts, self.lines.grown(groups.columns[2:], len(keys))

    def _chosen(self, found: Found) -> Found:
        mask = passing(self.chosen, found.columns, len(found.change))
        if mask is None:
            return found
        columns, kept = [column.filter(mask) for column in found.columns], flags(mask, len(mask))
        return Found(found.at, found.event, found.change[kept], found.sign[kept], columns)

    def waiting(self, state: State) -> pa.Table:
        """The pairs that there are, with their groups."""
        fields, rows = self.join.held(state.held()["join"])
        nothing = np.zeros(rows, np.int64)
        shown = self._chosen(Found(nothing, nothing, nothing, nothing, fields))
        known = whole(state.tables["groups"].column("key"))
        codes, _ = self.numbered(known, shown.columns, len(shown.change))
        names = [f"field{i}" for i in range(len(fields))]
        return pa.table([pa.array(shown.change), pa.array(codes), *shown.columns], names=["time", "group", *names])

    def inside(self, state: State) -> pa.Table:
        """The same."""
        return self.counting(self.waiting(state))


def _lines(calls: tuple[AggregateCall, ...]) -> Lines:
    """The calls over pairs, which leave in any order; which one of equal values leaves is not known."""
    return Lines(calls, in_order=False, by_value=True)


def _moves(found: Found, old: int) -> Moves:
    """The pairs as rows behind `old` others that come and leave, with the changes that make or unmake any."""
    changes, entering, leaving, come, gone = (np.empty(len(found.change), np.int64) for _ in range(5))
    n, comes, leaves = loop(_MOVES)(found.change, found.sign, changes, entering, leaving, come, gone)
    at, event = found.at[changes[:n]], found.event[changes[:n]]
    listed = entering[:comes] + old, leaving[:leaves] + old
    return Moves(at, event, come[:n], gone[:n], *listed, np.empty(0, np.int64), 0)


def over_join(plan: Select, reads: Mapping[str, RowType]) -> Joined | FoldedJoin | str:
    """The core of a join without an output rate, or the first reason against it."""
    return folded_join(plan, reads, False) if plan.levels or plan.grouping is not None else joined(plan, reads)


def folded_join(plan: Select, reads: Mapping[str, RowType], adds_up: bool) -> FoldedJoin | str:
    """The core of aggregates over a join, or the first reason against it; `adds_up`: what one input alone brings about counts
    on between its events.
    """
    if plan.lookups:
        return "look-ups beside a join"
    unasked = replace(plan, projection=replace(plan.projection, having=None))  # it is of the groups
    found = join_of(unasked, reads, _used(plan))
    if isinstance(found, str):
        return found
    join, chosen, places = found
    inner = _over_pairs(plan, places)
    shape = shape_of(inner) if _levels(plan) else ((), (), False)
    if isinstance(shape, str):
        return shape
    (input,), alone = inner.inputs, plan.join is not None and plan.join.only is not None
    assert isinstance(input, StreamInput)
    reason = unfolded(inner, input, shape, "rows", True) or _against(join, shape, alone)
    if reason is not None:
        return reason
    keys, calls, by_group = shape
    type = RowType("pairs", {f"field{at}": kind for at, kind in enumerate(join.kinds)})
    columns = shifted(inner.projection, 0 if by_group else len(places))
    return FoldedJoin(
        input.filter, None, input.window, keys, calls, by_group, columns, len(places), plan.emitted,
        type=type, join=join, chosen=chosen, apart=alone and not adds_up, plan=inner,
    )  # fmt: skip


def _against(join: Join, shape: GroupedShape, alone: bool) -> str | None:
    """The first reason against groups of pairs; `alone`: one input brings them about."""
    keys, calls, _ = shape
    if keys and not calls:
        return "groups without aggregates over a join"
    by_value = (
        isinstance(each, Different) or (isinstance(each, Ordered) and not each.linked) for each in _lines(calls).held
    )
    if any(map(looked_up, calls)) or not all(by_value):
        return "an aggregate over a join that goes by its rows"
    if _lines(calls).held and (alone or not all(_lets_in(side.window) for side in join.inputs)):
        return "an aggregate that goes by more than sums over a join of one input, or of a window that rows do not get into"
    # A row that was alone does not leave when it gets a partner, so that groups are left by rows that they have not.
    (side,) = join.spec.sides
    outer = any(side.kind in WHOLE[place] and place != join.spec.only for place in range(2))
    return "aggregates over an outer join" if outer and calls else None


def _lets_in(window: WindowSpec | None) -> bool:
    """Whether all rows get into a window: then the pairs that there are are those that have come and not left."""
    match window:
        case Length() | Time(size=None) | KeepAll() | Unique(first=False):
            return True
        case Grouped(inner=Length()):
            return True
        case _:
            return False


def _used(plan: Select) -> list[Expr]:
    """What of a statement reads the pairs."""
    projection = plan.projection
    found = [*projection.columns, *([] if projection.having is None else [projection.having])]
    for level in _levels(plan):
        found += level.keys
        for call in level.calls:
            found += [*call.args, *([] if call.where is None else [call.where])]
    return found


def _levels(plan: Select) -> list[Level]:
    """The keys and calls of a statement."""
    grouping = plan.grouping
    return [*plan.levels, *([] if grouping is None else [Level(grouping.dimensions, grouping.calls), *grouping.own])]


def _over_pairs(plan: Select, places: Places) -> Select:
    """The statement over the pairs, whose fields stand there, as one over a stream."""
    pairs = (StreamInput(Filter(""), KeepAll()),)
    return rewritten(
        replace(plan, inputs=pairs, join=None, where=None, unbounded=False), lambda expr: flat(expr, places)
    )
