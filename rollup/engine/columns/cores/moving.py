"""Statements over a window whose rows leave in any order.

A loop of the window says which rows come and leave with each change. Another loop, the same for all windows, makes the
rows of the statement.

State: as of a window whose rows leave in order. A union of windows also has `parts`, which windows have each row. Where
changes of keys come in the order of the keys, there is `keys`. Where rows stay until a time of their own, `leaves`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TypeVar

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.changes import Changes, Moved, Step
from rollup.engine.columns.cores.covering import KEYS, against, first, wide
from rollup.engine.columns.cores.declared import Lines
from rollup.engine.columns.cores.folded import shape_of, shifted, unfolded
from rollup.engine.columns.cores.marks import Marks, Order, ranks
from rollup.engine.columns.cores.moving_loop import NEVER, Part, Parts
from rollup.engine.columns.cores.moving_windows import parts_of
from rollup.engine.columns.cores.projecting import Made, Taken
from rollup.engine.columns.cores.queued import Queued, aggregates, whole_columns
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Expr
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.state import State
from rollup.engine.types import Kind, RowType

_RANKS = (Kind.STRING, Kind.INT, Kind.LONG, Kind.DOUBLE)
_MARKS = (*KEYS, Kind.DOUBLE)
_NOTHING = np.empty(0, np.int64)


M = TypeVar("M", bound="Moving")


@dataclass(frozen=True)
class Moves(Changes):
    """The same of rows in any order; and what stays."""

    entering: Ints
    leaving: Ints
    staying: Ints
    inside: int

    @property
    def listed(self) -> tuple[Ints, ...]:
        """Which rows come and which leave."""
        return self.entering, self.leaving

    def of(self, old: int, passes: np.ndarray) -> Moves:
        """Those by which any of some rows comes or leaves, and these alone."""
        come, gone = (passes[each] for each in self.listed)
        ends = (np.concatenate([[0], np.cumsum(each)]) for each in (come, gone))
        after = [each[until] for each, until in zip(ends, (self.come, self.gone), strict=True)]
        some = np.flatnonzero(np.logical_or(*(np.diff(each, prepend=0) > 0 for each in after)))
        comes, leaves = (each[some] for each in after)
        listed = self.entering[come], self.leaving[gone]
        return Moves(self.at[some], self.event[some], comes, leaves, *listed, self.staying, self.inside)

    def counts(self, old: int, passes: np.ndarray | None = None) -> tuple[Ints, Ints]:
        """How many rows come with each change and how many leave."""
        return np.diff(self.come, prepend=0), np.diff(self.gone, prepend=0)

    def stays(self, old: int) -> tuple[Ints, int]:
        """The rows that stay, and how many these are."""
        return self.staying, self.inside


@dataclass(frozen=True)
class Told:
    """What the loop is told of the rows of a part: `numbers` below `room` by which it tells them apart; their `rank`, and the
    places of the `held` ones that are in order of it. What a part does not ask for is empty.
    """

    part: Part
    numbers: Ints
    room: int
    rank: np.ndarray
    placed: Ints
    held: int

    def given(self) -> list[int | np.ndarray]:
        """The parameters of the loop that are of this part."""
        found: list[int | np.ndarray] = [number for _, number in self.part.numbers]
        found += [self.numbers, self.room] if self.part.keys else []
        found += [self.rank] if self.part.by else []
        found += [self.placed, self.held] if self.part.placed else []
        return found


@dataclass(frozen=True, kw_only=True)
class Moving(Queued):
    """The same over a window of `parts`."""

    parts: Parts

    @cached_property
    def lines(self) -> Lines:
        """The calls."""
        return Lines(self.calls, _in_order(self.window, self.parts, self.keys))

    @cached_property
    def _text(self) -> str:
        return self.text_of(True)

    @cached_property
    def _moving(self) -> str:
        return self.parts.text()

    @property
    def batches(self) -> bool:
        """Whether rows come when a batch is complete."""
        return self.parts.batches

    @cached_property
    def _known(self) -> list[tuple[Marks, Order]]:
        """What is at hand of the rows of each part."""
        return [(Marks(), Order()) for _ in self.parts.parts]

    @property
    def dated(self) -> bool:
        """When a row leaves next by itself is noted."""
        return True

    def stepped(self, state: State, taken: Taken, late: bool = False) -> tuple[State, Made]:
        """The same; of what had been due before the step, or `late` before its end, all leaves then."""
        since = taken.now if late else state.scalars["now"]
        step = self.given(state, taken)
        kept = np.full(len(step.times), self.parts.bits, np.uint16)
        told = [self._told(p, state, step) for p in range(len(self.parts.parts))]
        moves, due = self._moves(step, kept, since, told)
        after, made = self.through(state, step, Moved(moves, {"due": due}))
        content = after.tables["content"]
        for (marks, order), each in zip(self._known, told, strict=True):
            marks.keep(content, each.numbers[moves.staying])
            if each.part.placed:
                order.keep(content, each.placed, moves.staying)
        return after, made

    def due(self, state: State) -> int | None:
        """When a row leaves next by itself."""
        nothing = Batch.nothing([column.type for column in state.tables["content"].columns[2:]], state.scalars["now"])
        return self.made(state, self.taken(state, nothing))[0].scalars["due"]

    def _told(self, p: int, state: State, step: Step) -> Told:
        """What the loop is told of part `p`."""
        part, (marks, order) = self.parts.parts[p], self._known[p]
        numbers, rank, placed, held = self._numbers(part, marks, state, step), np.empty((0, 1), np.int64), _NOTHING, 0
        if part.by:
            rank = ranks(_values(part.by, step, 0), part.descending)
        if part.placed:
            placed, held = order.of(state.tables["content"], rank, part.late)
        return Told(part, numbers, marks.room, rank, placed, held)

    def _numbers(self, part: Part, marks: Marks, state: State, step: Step) -> Ints:
        """The numbers by which a part tells rows apart."""
        if not part.keys:
            return np.zeros(len(step.times), np.int64)
        return marks.of(state.tables["content"], lambda begin: _values(part.keys, step, begin))

    def _moves(self, step: Step, kept: np.ndarray, since: int, told: Sequence[Told]) -> tuple[Moves, int | None]:
        """The changes, and when a row leaves next by itself; what had been due before `since` leaves then. `kept` is changed."""
        total = len(step.times)
        entering, leaving = np.empty(total, np.int64), np.empty((len(self.parts.parts) + 1) * total, np.int64)
        at, event, come, gone = (np.empty(2 * total, np.int64) for _ in range(4))
        n, comes, leaves, due = loop(self._moving, self.parts.before)(
            step.held,
            step.taken.now,
            since,
            step.times,
            step.old,
            *(given for each in told for given in each.given()),
            kept,
            entering,
            leaving,
            at,
            event,
            come,
            gone,
        )
        changes = (at[:n], event[:n], come[:n], gone[:n], entering[:comes], leaving[:leaves])
        came = np.concatenate([np.arange(step.old), entering[:comes]])
        came = came[kept[came] > 0]
        waiting = kept > 0
        waiting[came] = False
        stays = np.concatenate([came, np.flatnonzero(waiting)]), len(came)
        return Moves(*changes, *stays), None if due == NEVER else int(due)


def _values(exprs: Sequence[Expr], step: Step, begin: int) -> list[pa.Array]:
    """The values of expressions over the rows from one on."""
    fields = [each[begin:] for each in step.fields]
    return [evaluate(expr, fields, len(step.times) - begin) for expr in exprs]


def moving(plan: Select, type: RowType) -> Moving | str:
    """The core of a statement over such a window of a stream, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or input.unnest or input.prior or plan.lookups:
        return "an input that is not a plain stream"
    parts = parts_of(input.window)
    if parts is None:
        return f"the window {input.window.__class__.__name__}"
    shape = shape_of(plan) if aggregates(plan) else ((), (), False)
    if isinstance(shape, str):
        return shape
    keys, calls, by_group = shape
    held = "queue" if _in_order(input.window, parts, keys) else "rows"
    reason = first(map(_against, parts.parts)) or unfolded(plan, input, shape, held, True)
    if reason is not None:
        return reason
    shown = shifted(whole_columns(plan.projection, type), 0 if by_group else len(type.fields))
    window, width = input.window, len(type.fields)
    return Moving(
        input.filter, plan.where, window, keys, calls, by_group, shown, width, plan.emitted, type=type, parts=parts
    )


def _against(part: Part) -> str | None:
    """The first reason against what a window tells rows apart by, or puts them in order by."""
    return first((*(_unknown(key, _MARKS) for key in part.keys), *(_unknown(each, _RANKS) for each in part.by)))


def _unknown(key: Expr, kinds: Sequence[Kind]) -> str | None:
    return against(key) or wide(key) or (None if key.type.kind in kinds else f"a window by a {key.type}")


def _in_order(window: WindowSpec | None, parts: Parts, keys: Sequence[Expr]) -> bool:
    """Whether the rows of a group leave in the order in which they came: those of equal keys do in each part."""
    return all(not part.by and set(part.keys) <= set(keys) for part in parts.parts)
