"""Statements over a window that lets rows out in any order: a loop of the window says which rows come and leave with each
change, and one that all windows share makes the rows of the statement.

State: as of a window that lets rows out in order; of a union of windows also `parts`, which of them have each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.changes import Changes, Moved
from rollup.engine.columns.cores.covering import KEYS, against, first, wide
from rollup.engine.columns.cores.folded import shape_of, shifted, unfolded
from rollup.engine.columns.cores.keys import RowCodes, ordered
from rollup.engine.columns.cores.moving_windows import NEVER, Part, Parts, parts_of
from rollup.engine.columns.cores.projecting import Made, Pace, Taken
from rollup.engine.columns.cores.queued import Queued, aggregates, whole_columns
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Expr
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Union
from rollup.engine.state import State
from rollup.engine.types import Kind, RowType

_RANKS = (Kind.STRING, Kind.INT, Kind.LONG, Kind.DOUBLE)
_MARKS = (*KEYS, Kind.DOUBLE)


@dataclass(frozen=True)
class Moves(Changes):
    """The same of rows in any order; and what stays."""

    entering: Ints
    leaving: Ints
    staying: Ints

    @property
    def listed(self) -> tuple[Ints, ...]:
        """Which rows come and which leave."""
        return self.entering, self.leaving

    def counts(self, old: int, passes: np.ndarray | None = None) -> tuple[Ints, Ints]:
        """How many rows come with each change and how many leave."""
        return np.diff(self.come, prepend=0), np.diff(self.gone, prepend=0)

    def stays(self, old: int) -> tuple[Ints, int]:
        """The rows that stay, and how many these are."""
        return self.staying, len(self.staying)


@dataclass(frozen=True, kw_only=True)
class Moving(Queued):
    """The same over a window of `parts`."""

    parts: Parts

    def _new_text(self, paced: int) -> str:
        return self.text_of(True)

    @cached_property
    def _moving(self) -> str:
        return self.parts.text()

    @property
    def oldest_first(self) -> bool:
        """Rows leave in any order."""
        return False

    @property
    def dated(self) -> bool:
        """When a row leaves next by itself is noted."""
        return True

    def start(self, now: int) -> State:
        """An empty window."""
        state = super().start(now)
        return State({**state.tables, **self.having(np.empty(0, np.int64))}, state.scalars)

    def having(self, bits: Ints) -> dict[str, pa.Table]:
        """The table of the parts that have each row, where these may be some of them."""
        return {"parts": pa.table({"bits": bits})} if self.parts.together == "any" else {}

    def made(self, state: State, taken: Taken, pace: Pace | None = None) -> tuple[State, Made]:
        """The rows before they are projected."""
        return self._moved(state, taken, state.scalars["now"])

    def released(self, state: State, taken: Taken) -> tuple[State, Made]:
        """What is due leaves, late, and no event comes."""
        return self._moved(state, taken, taken.now)

    def _moved(self, state: State, taken: Taken, since: int) -> tuple[State, Made]:
        """A step; what had been due before `since` leaves then."""
        step = self.given(state, taken)
        kept = np.full(len(step.times), self.parts.bits, np.int64)
        if "parts" in state.tables:
            kept[: state.scalars["come"]] = state.tables["parts"].column("bits").to_numpy()
        moves, due = self._moves(step.times, step.fields, kept, (step.held, taken.now, since))
        return self.through(state, step, Moved(moves, {"due": due}, self.having(kept[moves.staying])))

    def due(self, state: State) -> int | None:
        """When a row leaves next by itself."""
        nothing = Batch.nothing([column.type for column in state.tables["content"].columns[2:]], state.scalars["now"])
        return self.made(state, self.taken(state, nothing))[0].scalars["due"]

    def _moves(
        self, times: Ints, fields: Sequence[pa.Array], kept: Ints, clock: tuple[int, int, int]
    ) -> tuple[Moves, int | None]:
        """The changes, and when a row leaves next by itself; `kept` is changed. `clock`: rows held, now, since when."""
        total = len(times)
        entering, leaving = np.empty(total, np.int64), np.empty((len(self.parts.parts) + 1) * total, np.int64)
        at, event, come, gone = (np.empty(2 * total, np.int64) for _ in range(4))
        given = [each for part in self.parts.parts for each in _given(part, fields, total)]
        n, comes, leaves, due = loop(self._moving)(
            *clock, times, *given, kept, entering, leaving, at, event, come, gone
        )  # fmt: skip
        moves = Moves(at[:n], event[:n], come[:n], gone[:n], entering[:comes], leaving[:leaves], np.flatnonzero(kept))
        return moves, None if due == NEVER else int(due)


def _given(part: Part, fields: Sequence[pa.Array], rows: int) -> list[int | Ints]:
    """What the loop is given of a part: its numbers, and what it tells rows apart by."""
    found: list[int | Ints] = [number for _, number in part.numbers]
    if part.keys:
        found.append(_marks([evaluate(key, fields, rows) for key in part.keys]))
    if part.by:
        found.append(_ranks([evaluate(by, fields, rows) for by in part.by], part.descending))
    return found


def _marks(keys: Sequence[pa.Array]) -> Ints:
    """Numbers below that of the rows which are equal where all keys are."""
    keys = [pa.array(ordered(key)) if pa.types.is_floating(key.type) else key for key in keys]
    if len(keys) == 1:
        return keys[0].dictionary_encode(null_encoding="encode").indices.to_numpy().astype(np.int64)
    return RowCodes().codes(pa.StructArray.from_arrays(keys, [f"key{i}" for i in range(len(keys))]))[0]


def _ranks(values: Sequence[pa.Array], descending: Sequence[bool]) -> Ints:
    """Numbers in the order of some values: of the first, among equal ones of the second, and so on."""
    ranks = [~places if down else places for places, down in zip(map(ordered, values), descending, strict=True)]
    if len(ranks) == 1:
        return ranks[0]
    order = np.lexsort(ranks[::-1])
    changes = np.any([np.diff(each[order], prepend=each[order[:1]]) != 0 for each in ranks], axis=0)
    found = np.empty(len(order), np.int64)
    found[order] = np.cumsum(changes)
    return found


def moving(plan: Select, type: RowType) -> Moving | str:
    """The core of a statement over such a window of a stream, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or input.unnest or input.prior or plan.lookups:
        return "an input that is not a plain stream"
    window, parts = input.window, parts_of(input.window)
    if parts is None:
        return f"the window {window.__class__.__name__}"
    if plan.where is not None:
        return "where behind a window of keys"
    shape = shape_of(plan) if aggregates(plan) else ((), (), False)
    if isinstance(shape, str):
        return shape
    keys, calls, by_group = shape
    held = "queue" if _in_order(window, parts, keys) else "rows"
    reason = first(map(_against, parts.parts)) or unfolded(plan, input, shape, held)
    if reason is not None:
        return reason
    shown = shifted(whole_columns(plan.projection, type), 0 if by_group else len(type.fields))
    return Moving(
        input.filter, None, window, keys, calls, by_group, shown, len(type.fields), plan.emitted, type=type, parts=parts
    )


def _against(part: Part) -> str | None:
    """The first reason against what a window tells rows apart by, or puts them in order by."""
    return first((*(_unknown(key, _MARKS) for key in part.keys), *(_unknown(each, _RANKS) for each in part.by)))


def _unknown(key: Expr, kinds: Sequence[Kind]) -> str | None:
    return against(key) or wide(key) or (None if key.type.kind in kinds else f"a window by a {key.type}")


def _in_order(window: WindowSpec | None, parts: Parts, keys: Sequence[Expr]) -> bool:
    """Whether the rows of a group leave in the order in which they came: those of equal keys do in each part."""
    if isinstance(window, Union):
        return False
    return all(not part.by and set(part.keys) <= set(keys) for part in parts.parts)
