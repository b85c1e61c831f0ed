"""The join of two windows, or of a stream with a window, inner or outer, as a program: an arrival meets what the other side holds
then.

State: that of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.covering import against, equated, filtered, first, unshown
from rollup.engine.columns.cores.programs import Column, Columns, Given, at_work, fed, live, values_of
from rollup.engine.columns.cores.rewriting import of_one_event
from rollup.engine.columns.evaluate import Columns as Values
from rollup.engine.columns.evaluate import evaluate, passing
from rollup.engine.columns.groups import Ints
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Expr, Field, inside, walk
from rollup.engine.operators import EQUAL, SAME
from rollup.engine.programs.lowering.components import Program, lowered_select
from rollup.engine.programs.lowering.unsupported import Unsupported
from rollup.engine.programs.runtime.running import Running
from rollup.engine.rows.plans import Emitted, Input, Select, StreamInput
from rollup.engine.rows.selects.joining import WHOLE, JoinSpec, Side, equality
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.types import DataType, RowType


@dataclass(frozen=True)
class Found:
    """What a batch makes of a join. Of each change with pairs: its instant, the event of the batch that brings it or TIMER; of
    each pair: its change, whether it comes (1) or leaves (-1), and the fields of both rows, null where there is none.
    """

    at: Ints
    event: Ints
    change: Ints
    sign: np.ndarray
    columns: Values


@dataclass(frozen=True)
class Join:
    """The pairs of the rows of two inputs, with fields of these `kinds`. `columns`: what the program gets of the streams."""

    program: Program
    columns: Given
    kinds: tuple[DataType, ...]
    inputs: tuple[StreamInput, ...]
    spec: JoinSpec

    @property
    def timed(self) -> bool:
        """Whether the clock lets rows out."""
        return any(isinstance(each.window, Time) for each in self.inputs)

    def start(self, now: int) -> State:
        """Two empty windows."""
        return live(Running(self.program, start=now), now)

    def due(self, state: State) -> int | None:
        """When the next row leaves by itself."""
        return at_work(self.program, state).due

    def step(self, state: State, batch: Batch, late: bool = False) -> tuple[State, Found]:
        """The pairs that a batch of one of the streams makes; `late`: what is due leaves at the instant the clock has then."""
        after, (at, event, sign, *fields) = fed(self.program, self.columns, state, batch, late)
        times, events = at.to_numpy(), event.to_numpy()
        begins = np.flatnonzero((np.diff(times, prepend=-1) != 0) | (np.diff(events, prepend=-2) != 0))
        change = np.zeros(len(times), np.int64)
        change[begins[1:]] = 1
        found = times[begins], events[begins], np.cumsum(change), sign.to_numpy()
        return after, Found(*found, values_of(fields, self.kinds))

    def held(self, state: State) -> tuple[Values, int]:
        """The fields of the pairs that the windows hold now, and how many there are; nothing here is hot."""
        at, _, _, *fields = at_work(self.program, state).shown()
        return values_of(fields, self.kinds), len(at)


@dataclass(frozen=True)
class Joined:
    """The rows that a join makes, each with its `columns`, of those that fulfil the condition `chosen`."""

    join: Join
    chosen: Expr | None
    columns: tuple[Expr, ...]
    emitted: Emitted

    def start(self, now: int) -> State:
        """Two empty windows."""
        return self.join.start(now)

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """A row for each pair."""
        after, found = self.join.step(state, batch)
        return after, self._output(found)

    def late(self, state: State, nothing: Batch) -> tuple[State, Output]:
        """What is due leaves at the instant the clock has now."""
        after, found = self.join.step(state, nothing, True)
        return after, self._output(found)

    def _output(self, found: Found) -> Output:
        output = self._shown(found.columns, found.at[found.change], found.event[found.change], found.sign)
        return output.emitted(self.emitted) if self.emitted != "new" else replace(output, sign=None)

    def _shown(self, fields: Values, at: Ints, event: Ints, sign: np.ndarray) -> Output:
        """The rows of some pairs."""
        output = Output(at, event, tuple(evaluate(each, fields, len(at)) for each in self.columns), sign=sign)
        mask = passing(self.chosen, fields, len(at))
        return output if mask is None else output.where(mask)

    def content(self, state: State) -> list[tuple[Any, ...]]:
        """The values of the rows that there are now."""
        fields, rows = self.join.held(state)
        nothing = np.zeros(rows, np.int64)
        shown = self._shown(fields, nothing, nothing, nothing)
        return list(zip(*(column.to_pylist() for column in shown.columns), strict=True))


def joined(plan: Select, reads: Mapping[str, RowType]) -> Joined | str:
    """The core of a join, without aggregates, of streams with those fields, or the first reason against it."""
    if plan.lookups:
        return "look-ups beside a join"
    found = join_of(plan, reads, plan.projection.columns)
    if isinstance(found, str):
        return found
    join, chosen, places = found
    columns = tuple(flat(each, places) for each in plan.projection.columns)
    return first(map(unshown, columns)) or Joined(join, chosen, columns, plan.emitted)


Places = Mapping[tuple[int, int], int]
"""Where a field of an input stands among those of a pair."""


def join_of(
    plan: Select, reads: Mapping[str, RowType], shown: Sequence[Expr]
) -> tuple[Join, Expr | None, Places] | str:
    """The join of a statement, what else its pairs must fulfil to be shown, and where the fields of a pair are, of those that
    are needed and `shown`; or the first reason against it.
    """
    spec = plan.join
    if spec is None or len(plan.inputs) != 2:
        return "a join of more than two"
    reason = first(_unplain(input, place, spec) for place, input in enumerate(plan.inputs))
    if reason is not None:
        return reason
    (side,) = spec.sides
    tested, chosen = [*conjuncts(side.condition)], [*conjuncts(plan.where), *conjuncts(plan.projection.having)]
    if side.kind == "inner":
        tested, chosen = [*tested, *chosen], []
    made = _joined(plan, reads, tested, chosen, shown)
    if isinstance(made, str) and side.kind == "inner":  # what no program tests is tested afterwards
        keys = [part for part in tested if _key(part) is not None]
        made = _joined(plan, reads, keys, [part for part in tested if part not in keys], shown)
    return made


def _joined(
    plan: Select, reads: Mapping[str, RowType], tested: Sequence[Expr], chosen: Sequence[Expr], shown: Sequence[Expr]
) -> tuple[Join, Expr | None, Places] | str:
    """The same of pairs that are `tested`, and then `chosen`."""
    assert plan.join is not None
    (side,), only = plan.join.sides, plan.join.only
    inputs = [each for each in plan.inputs if isinstance(each, StreamInput)]
    columns = Columns(*(each.filter.stream for each in inputs))
    own = tuple(columns.input(each, number) for number, each in enumerate(inputs))
    condition = conjunction([_condition(part, columns) for part in tested])
    used = {each for expr in (*chosen, *shown) for each in walk(expr) if isinstance(each, Field)}
    fields = sorted({(each.input, each.index): each for each in used}.items())
    places = {field: place for place, (field, _) in enumerate(fields)}
    given = [columns.of(Column(of_one_event(each)), each.input) for _, each in fields]
    given = [replace(each, optional=side.kind in WHOLE[1 - each.input]) for each in given]
    types = RowType("", {f"f{place}": each.type for place, each in enumerate(given)})
    spec, leaves = JoinSpec((Side(side.kind, condition),), only), only is None and not plan.comes_alone
    program = lowered_select(
        Select(own, types, Projection(tuple(given)), spec, emitted="both" if leaves else "new"), columns.types().get
    )
    choice = conjunction([flat(each, places) for each in chosen])
    reason = columns.against() or first(filtered(each.filter) for each in inputs) or against(choice)
    if reason is not None:
        return reason
    if isinstance(program, Unsupported):
        return f"a join with {program.feature} ({program.detail})"
    return Join(program, columns.found, tuple(each.type for _, each in fields), tuple(inputs), spec), choice, places


def _condition(part: Expr, columns: Columns) -> Expr:
    """A part of the condition; what must be equal is compared by a hash, where one can tell."""
    key = _key(part)
    return columns.over(part) if key is None else columns.equal(*key)


def _unplain(input: Input, place: int, spec: JoinSpec) -> str | None:
    """The first reason against an input, whatever its window."""
    if not isinstance(input, StreamInput) or input.unnest or input.prior:
        return "a join with what is not a plain stream"
    if place == spec.only:
        return None if input.window is None else "a unidirectional join of a window"
    return "a join of a stream without a window" if input.window is None else None


def _key(part: Expr) -> tuple[tuple[Expr, Expr], bool] | None:
    """What must be equal on the left and on the right, where a hash can tell, and whether null equals null."""
    for operator in (EQUAL, SAME):
        pair = equality(part, 1, (operator,))
        if pair is not None and equated(*map(of_one_event, pair)):
            return pair, operator is SAME
    return None


def flat(expr: Expr, places: Places) -> Expr:
    """An expression over the fields that are kept of both sides."""
    if isinstance(expr, Field):
        return Field(0, places[expr.input, expr.index], expr.type)
    return inside(expr, lambda inner: flat(inner, places))
