"""Statements as programs: joins, and what waits for an output. Aggregates, and outputs that wait, are part of the program.

State: that of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.covering import against, equated, filtered, first, unshown
from rollup.engine.columns.cores.declared import uncountable
from rollup.engine.columns.cores.folded import unkeyed
from rollup.engine.columns.cores.held import time_in, unlisted
from rollup.engine.columns.cores.programs import Columns, Given, at_work, fed, live, values_of
from rollup.engine.columns.cores.projecting import FilterProject, filter_project
from rollup.engine.columns.cores.rewriting import aggregates, of_one_event, rewritten, whole_columns
from rollup.engine.columns.evaluate import evaluate, passing, plain
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Const, Expr, Field, Slot, Variable, inside, walk
from rollup.engine.folding import AggregateCall
from rollup.engine.operators import EQUAL, SAME
from rollup.engine.programs.lowering.components import Program, lowered_select
from rollup.engine.programs.lowering.grouping import LISTED
from rollup.engine.programs.lowering.rates import CLOCK, MANY
from rollup.engine.programs.lowering.unsupported import Unsupported
from rollup.engine.programs.runtime.running import Running
from rollup.engine.rows.plans import Emitted, Select, StreamInput
from rollup.engine.rows.selects.joining import WHOLE, equality
from rollup.engine.state import State
from rollup.engine.timers import Phase
from rollup.engine.types import INT, LONG, DataType, RowType


@dataclass(frozen=True)
class Selected(Core):
    """What a program makes of a statement, with values of these `kinds`; of it the rows that fulfil `chosen`, each with its `columns`.

    `given`: what the program gets of the streams. `timed`: the clock brings rows; `clocked`: it brings outputs; `joins`: of
    several streams; `hears`: the clock changes what is there. `time`: what the window needs of each event; `many`: how many of
    them bring an output, where a variable says so. `lists`: the tables with the values of those of `kinds` that are lists.
    """

    program: Program
    given: Given
    kinds: tuple[DataType, ...]
    chosen: Expr | None
    columns: tuple[Expr, ...]
    emitted: Emitted
    timed: bool
    clocked: bool
    joins: bool
    hears: bool
    time: Expr | None
    many: Expr | None
    lists: tuple[str, ...]

    def start(self, now: int) -> State:
        """Nothing has come."""
        return live(Running(self.program, start=now), now)

    @property
    def phase(self) -> Phase:
        """When rows leave, or outputs come."""
        return Phase.OUTPUT if self.clocked else Phase.WINDOW

    @property
    def clock_brings(self) -> bool:
        """Whether the clock brings rows."""
        return self.timed

    @property
    def clock_inserts(self) -> bool:
        """Those of joins may not."""
        return not self.joins

    @property
    def clock_concerns(self) -> bool:
        """Whether it changes what is there."""
        return self.hears

    @property
    def needed(self) -> Expr | None:
        """What the window goes by."""
        return self.time

    def dues(self, state: State) -> dict[Phase, int | None]:
        """When the next row leaves by itself, and when the next output is due."""
        return dict(zip((Phase.WINDOW, Phase.OUTPUT), at_work(self.program, state).dues, strict=True))

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """What a batch of one of the streams makes."""
        return self._step(state, batch, None)

    def late(self, state: State, phase: Phase, nothing: Batch) -> tuple[State, Output]:
        """What is due of a phase comes at the instant the clock has now."""
        return self._step(state, nothing, phase)

    def _step(self, state: State, batch: Batch, late: Phase | None) -> tuple[State, Output]:
        after, made = fed(self.program, self.given, state, batch, late, self._values)
        return after, self._shown(made).emitted(self.emitted)

    @property
    def _values(self) -> Mapping[str, int]:
        """By its field, how many events bring an output: a variable that is null says nothing, and none less than one."""
        if not isinstance(self.many, Const) or self.many.value is None:
            return {}
        return {each: max(self.many.value, 1) for each in self.program.constants if each.endswith(MANY)}

    def _shown(self, made: Mapping[str, Sequence[pa.Array]]) -> Output:
        """The rows of what the program makes, at the outputs that the clock brings."""
        rows, lists = made[""], iter(self.lists)
        columns = [
            each if kind.element is None else listed(each, made[next(lists)][0])
            for each, kind in zip(rows[3:], self.kinds, strict=True)
        ]
        (at, event, sign), fields = (each.to_numpy() for each in rows[:3]), values_of(columns, self.kinds)
        shown = tuple(evaluate(each, fields, len(at)) for each in self.columns)
        ticks = tuple(each.to_numpy() for each in made[CLOCK]) if self.clocked else None
        output = Output(at, event, shown, sign=None if self.emitted == "new" else sign, ticks=ticks)
        mask = passing(self.chosen, fields, len(at))
        return output if mask is None else output.where(mask)

    def content(self, state: State) -> list[tuple[Any, ...]]:
        """The values of the rows that there are now."""
        shown = self._shown(at_work(self.program, state).shown())
        return list(zip(*(column.to_pylist() for column in shown.columns), strict=True))


def listed(counts: pa.Array, values: pa.Array) -> pa.Array:
    """Lists of so many of some values, one behind the other; one of none is null.

    >>> listed(pa.array([2, 0]), pa.array(["a", "b"])).to_pylist()
    [['a', 'b'], None]
    """
    ends = np.cumsum(counts.to_numpy())
    missing = pa.array(counts.to_numpy() == 0)
    return pa.ListArray.from_arrays(pa.array(np.concatenate([[0], ends]), pa.int32()), plain(values), mask=missing)


def selected(plan: Select, stream: RowType, ordered: bool) -> Selected | str:
    """The core of a statement over one stream, or the first reason against it; `ordered`: the rows of an output are put in order,
    for which changes wait until then as they are.
    """
    (input,) = plan.inputs
    if not isinstance(input, StreamInput) or input.unnest or input.prior or plan.lookups:
        return "an input that is not a plain stream"
    shown, chosen = whole_columns(plan.projection, stream), ()
    plan = replace(plan, projection=shown)
    reason = uncounted(plan) or filtered(input.filter, plan.where) or against(shown.having)
    reason = reason or unlisted(shown, input.window, plan.grouping is not None or plan.total)
    if not plan.rate.limited:  # what no program can ask is asked of its rows
        plan, chosen = replace(plan, projection=replace(shown, having=None)), conjuncts(shown.having)
    return reason or of_program(plan, {stream.name: stream}, (), conjuncts(plan.where), chosen, ordered)


def over_stream(plan: Select, stream: RowType, ordered: bool = False) -> FilterProject | Selected | str:
    """The core of a statement over one stream, or the first reason against it; `ordered` as of `selected`."""
    input = plan.inputs[0]
    bare = isinstance(input, StreamInput) and input.window is None and not aggregates(plan) and not plan.rate.limited
    return filter_project(plan) if bare else selected(plan, stream, ordered)


def calls_of(plan: Select) -> list[AggregateCall]:
    """The aggregates of a statement."""
    grouping = plan.grouping
    return [*(call for each in plan.levels for call in each.calls), *(() if grouping is None else grouping.calls)]


def uncounted(plan: Select) -> str | None:
    """The first reason against groups and aggregates, and what is shown of them."""
    grouping, projection = plan.grouping, plan.projection
    keys = [key for each in plan.levels for key in each.keys] if grouping is None else grouping.dimensions
    emptied = bool(keys) and plan.emitted != "new"
    fields = any(isinstance(part, Field) for each in projection.evaluated for part in walk(each))
    reasons = (
        *(uncountable(call, "rows", emptied) for call in calls_of(plan)),
        *map(unkeyed, keys),
        "a column that is neither a key nor an aggregate" if fields and (grouping or plan.total) else None,
        *map(unshown, projection.evaluated),
    )
    return first(reasons)


def of_program(
    plan: Select,
    reads: Mapping[str, RowType],
    tested: Sequence[Expr],
    where: Sequence[Expr],
    chosen: Sequence[Expr],
    ordered: bool,
) -> Selected | str:
    """The core of a statement, or the first reason why it has no program: of pairs that are `tested`, of those that are
    null-extended too `where`, and of rows that are then `chosen`. `ordered`: as of `selected`."""
    sides = () if plan.join is None else plan.join.sides
    inputs = [each for each in plan.inputs if isinstance(each, StreamInput)]
    columns = Columns(*(each.filter.stream for each in inputs))
    own = tuple(columns.input(each, number) for number, each in enumerate(inputs))
    condition = conjunction([_condition(part, columns) for part in tested])
    parts = (each for expr in (*chosen, *plan.projection.columns) for each in walk(expr))
    used = dict.fromkeys(each for each in parts if isinstance(each, Field | Slot))  # in order: code is kept by its text
    fields = sorted((each for each in used if isinstance(each, Field)), key=lambda each: (each.input, each.index))
    fields = list({(each.input, each.index): each for each in fields}.values())
    slots = list({each.index: each for each in used if isinstance(each, Slot)}.values())
    nullable = [place for side in sides for place in range(2) if side.kind in WHOLE[1 - place]]
    given = [columns.over(each, nullable) for each in fields]
    places = {**{(each.input, each.index): at for at, each in enumerate(fields)}}
    places |= {(-1, each.index): at for at, each in enumerate(slots, len(fields))}
    bare = replace(plan, inputs=own, where=conjunction(where), projection=replace(plan.projection, columns=()))
    inner = rewritten(bare, lambda expr: columns.over(expr, nullable))
    counts = [LONG if each.type.element else each.type for each in slots]
    kinds = [*(each.type for each in fields), *(LONG if each.type == INT else each.type for each in slots)]
    width = 0 if plan.grouping is None else len(plan.grouping.dimensions)
    inner = replace(
        inner,
        projection=replace(inner.projection, columns=(*given, *slots), whole=False),
        type=RowType("", {f"f{at}": kind for at, kind in enumerate((*(each.type for each in given), *counts))}),
        join=plan.join and replace(plan.join, sides=tuple(replace(each, condition=condition) for each in sides)),
        target=None,
    )
    program, choice = (
        lowered_select(inner, columns.types(), ordered),
        conjunction([flat(each, places) for each in chosen]),
    )
    reason = columns.against() or first(filtered(each.filter) for each in inputs) or against(choice)
    if reason is not None:
        return reason
    if isinstance(program, Unsupported):
        return f"{program.feature} ({program.detail})"
    shown = tuple(flat(each, places) for each in plan.projection.columns)
    begins = plan.rate.mode == "first"
    clocked = plan.rate.span is not None and not begins
    stirs = plan.tells_what_leaves or (plan.rate.limited and not begins) or plan.total or plan.grouping or plan.grouped
    time = time_in(inputs[0].window)
    by_clock = any(hasattr(each.window, "span") and not hasattr(each.window, "time") for each in inputs)
    timed, joins = clocked or (bool(stirs) and by_clock), plan.join is not None
    many = plan.rate.events if isinstance(plan.rate.events, Variable) else None
    lists = tuple(f"{LISTED}{each.index - width}" for each in slots if each.type.element)
    hears = by_clock or joins or plan.rate.span is not None
    return Selected(
        program,
        columns.found,
        tuple(kinds),
        choice,
        shown,
        plan.emitted,
        timed,
        clocked,
        joins,
        hears,
        time,
        many,
        lists,
    )


def _condition(part: Expr, columns: Columns) -> Expr:
    """A part of the condition; what must be equal is compared by a hash, where one can tell."""
    key = hashed(part)
    return columns.over(part) if key is None else columns.equal(*key)


def hashed(part: Expr) -> tuple[tuple[Expr, Expr], bool] | None:
    """What must be equal on the left and on the right, where a hash can tell, and whether null equals null."""
    for operator in (EQUAL, SAME):
        pair = equality(part, 1, (operator,))
        if pair is not None and equated(*map(of_one_event, pair)):
            return pair, operator is SAME
    return None


def flat(expr: Expr, places: Mapping[tuple[int, int], int]) -> Expr:
    """An expression over what the program makes: fields of both sides by input and place, slots of groups with -1 for the input."""
    match expr:
        case Field():
            return Field(0, places[expr.input, expr.index], expr.type)
        case Slot():
            return Field(0, places[-1, expr.index], expr.type)
        case _:
            return inside(expr, lambda inner: flat(inner, places))
