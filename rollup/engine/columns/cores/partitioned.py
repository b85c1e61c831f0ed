"""A statement in a context whose partitions never end: the same statement without a context, with the number of the partition
as one more field of its stream, by which its windows and its groups are.

State: `partitions`, what each is told by, in the order in which they began; and that of the other statement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch, Output
from rollup.engine.columns.cores.by_partition import by_partition, numbered, recalled_first, recalls, used
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.covering import first, unshown
from rollup.engine.columns.cores.held import unlisted
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.matched import Matched
from rollup.engine.columns.cores.partitions import Division, division
from rollup.engine.columns.cores.patterns import of_events, pattern_of, places_in
from rollup.engine.columns.cores.prior_access import PriorAccess
from rollup.engine.columns.cores.projecting import FilterProject, Made, Taken, projected
from rollup.engine.columns.cores.renewing import Renewing
from rollup.engine.columns.cores.rewriting import whole_columns
from rollup.engine.columns.cores.selected import Selected, flat
from rollup.engine.columns.cores.showing import shown, with_properties
from rollup.engine.columns.evaluate import evaluate, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.compiling import compiled
from rollup.engine.expressions import Ask, Expr, Field, Slot, inside
from rollup.engine.folding import Fold
from rollup.engine.row import Row
from rollup.engine.rows.contexts.levels import Context
from rollup.engine.rows.patterns.algebra import Pattern
from rollup.engine.rows.plans import ContextValue, Earlier, Emitted, PatternInput, Previous, Select, StreamInput
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.state import State
from rollup.engine.timers import Phase
from rollup.engine.types import LONG, RowType

_NEVER = 2**62


@dataclass(frozen=True)
class Partitioned(Core):
    """`inner`: the other statement, over a stream of `type` or the pairs of two, or the pattern, which has the number in its keys;
    each stream is divided. The projection sees what its projection would, then the `properties` of the partition; `number`:
    that of the partition, over the same (None: that of the event that brings a row). `nothing`: what the projection sees of the total
    of a partition without rows (None: a row is not one of a partition).
    """

    division: Division
    inner: FilterProject | Selected | PriorAccess | Matched | Renewing
    type: RowType
    number: Expr | None
    projection: Projection
    properties: tuple[str, ...]
    emitted: Emitted
    nothing: tuple[Any, ...] | None = None

    hears_all: ClassVar[bool] = True

    def start(self, now: int) -> State:
        """The partitions that there are from the beginning."""
        return self.state(self.inner.start(now), self.division.start())

    @staticmethod
    def state(inner: State, known: pa.Array) -> State:
        """The state of the whole."""
        partitions = pa.table([known], names=["key"])
        return State.holding({"core": inner}, {"now": inner.scalars["now"]}, {"partitions": partitions})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The rows of each event partition by partition, and so those that leave at an instant."""
        taken, wider, places, known = self._divided(state, batch)
        after, made = self._made(state.held()["core"], wider)
        event = made.places if places is None else _among(places, made.places)
        output = _in_turn(self._output(made, event if taken.everything else _among(taken.places, event), known))
        return self.state(after, known), replace(output, begins=self._begins(state, taken, wider, known))

    @property
    def clock_brings(self) -> bool:
        """Whether it brings rows of the other statement."""
        return self.inner.clock_brings

    def dues(self, state: State) -> dict[Phase, int | None]:
        """When rows leave next."""
        return {self.phase: self.inner.dues(state.held()["core"]).get(self.phase)}

    def late(self, state: State, phase: Phase, nothing: Batch) -> tuple[State, Output]:
        """What is due in partitions leaves late: that which was due first comes first."""
        if not isinstance(self.inner, Selected):
            return self.step(state, nothing)
        inner, (_, wider, _, known) = state.held()["core"], self._divided(state, nothing)
        dues = self._dues(inner)
        after, made = self.inner.late(inner, phase, wider)
        everything = Taken(wider.columns, wider.times, np.arange(0), wider.now, True)
        output = self._output(Made(everything, made.at, made.event, made.columns, made.sign), made.event, known)
        assert output.part is not None
        return self.state(after, known), output.at_places(np.lexsort((output.part, dues[output.part])))

    def _dues(self, inner: State) -> Ints:
        """When the oldest row came that the window of each partition holds."""
        assert isinstance(self.inner, Selected)
        ((_, columns),) = self.inner.given
        number = Field(0, len(self.type.fields) - 1, LONG)
        place = next(place for place, each in enumerate(columns) if each.of == number)
        rows, held = inner.tables["Row_stream0"], inner.tables["Stamped_window1"]
        parts = rows.column(f"f{place}").take(held.column("row")).to_numpy()
        dues = np.full(int(parts.max(initial=-1)) + 1, _NEVER)
        np.minimum.at(dues, parts, held.column("time").to_numpy())
        return dues

    def _divided(self, state: State, batch: Batch) -> tuple[Taken, Batch, Ints | None, pa.Array]:
        """The events that partitions take, the same with their numbers and their places among those (as `Division.wider` has
        them), and what partitions are told by then.
        """
        division = self.division
        taken = Taken.of(batch, state.scalars["now"], division.filter)
        return taken, *division.wider(self.known(state), taken, batch.stream)

    def _begins(self, state: State, taken: Taken, wider: Batch, known: pa.Array) -> Ints | None:
        """The events with which partitions begin; None where none does."""
        old = self.known(state)
        return taken.places[self.division.begins(old, wider)] if len(known) > len(old) else None

    def _made(self, before: State, wider: Batch) -> tuple[State, Made]:
        if isinstance(self.inner, FilterProject):
            return self.inner.made(before, self.inner.taken(before, wider))
        after, output = self.inner.step(before, wider)
        everything = Taken(wider.columns, wider.times, np.arange(wider.rows), wider.now, True)
        return after, Made(everything, output.at, output.event, output.columns, output.sign)

    def opens(self, state: State, batch: Batch) -> bool:
        """Whether a partition begins with one of the events."""
        return len(self._divided(state, batch)[-1]) > len(self.known(state))

    def opened(self, state: State, batch: Batch) -> State:
        """The state in which the partitions of some events have begun, which their statement has not had."""
        return self.state(state.held()["core"], self._divided(state, batch)[-1])

    @property
    def matches(self) -> bool:
        """Whether it is a pattern of each partition."""
        return self.inner.matches

    @property
    def needed(self) -> Expr | None:
        """What the window of each partition goes by."""
        return self.inner.needed

    def roomy(self, state: State, batch: Batch) -> bool:
        """Whether no pattern of a partition can have too many partial matches, and no event lacks a time."""
        inner = state.held()["core"]
        if isinstance(self.inner, Matched) and not self.inner.spare(inner, batch.rows):
            return self.inner.roomy(inner, self._divided(state, batch)[1])
        return super().roomy(state, batch)

    def contents(self, state: State) -> list[list[tuple[Any, ...]]]:
        """The rows of each partition, one of a total. Matches of a pattern are not kept."""
        if self.number is None:
            return []
        inner, known = state.held()["core"], self.known(state)
        rows = self.inner.kept(inner) if isinstance(self.inner, PriorAccess) else self.inner.content(inner)
        if self.nothing is not None:
            there = {row[0]: row for row in rows}
            rows = [there.get(number, (number, *self.nothing)) for number in range(self.division.count(known))]
        number = compiled(self.number)
        found = sorted(((number((Row(0, row),), (), None), row) for row in rows), key=lambda each: each[0])
        numbers = np.array([number for number, _ in found], np.int64)
        properties = self.division.of_partitions(self.properties, numbers, known)
        whole = with_properties([row for _, row in found], properties)
        begins = np.flatnonzero(np.diff(numbers, prepend=-1)).tolist()
        parts = (whole[begin:end] for begin, end in pairwise([*begins, len(whole)]))
        return [shown(self.projection.columns, self.projection.having, part) for part in parts]

    @property
    def context(self) -> str | None:
        """That of its partitions; one that has all events in one partition has none."""
        return self.division.context or None

    @property
    def begins_first(self) -> bool:
        """Unless all partitions are there from the beginning."""
        return not self.division.all_at_once

    def paths(self, state: State) -> Sequence[tuple[Any, ...]]:
        """Its partitions, which never end."""
        return self.division.paths(self.known(state))

    @staticmethod
    def known(state: State) -> pa.Array:
        """What the partitions are told by."""
        return whole(state.tables["partitions"].column("key"))

    def _output(self, made: Made, event: Ints, known: pa.Array) -> Output:
        rows, numbers = len(made.at), self._numbers(made)
        columns = [*made.columns, *self.division.of_partitions(self.properties, numbers, known)]
        shown = projected(self.projection, columns, rows)
        found = Output(made.at, event, shown, sign=made.sign, part=numbers)
        mask = passing(self.projection.having, columns, rows)
        return (found if mask is None else found.where(mask)).emitted(self.emitted)

    def _numbers(self, made: Made) -> Ints:
        """The partition of each row."""
        if self.number is None:
            return made.taken.columns[-1].to_numpy()[made.places]
        return plain(evaluate(self.number, made.columns, len(made.at))).to_numpy(zero_copy_only=False)


def _among(places: Ints, event: Ints) -> Ints:
    """Places of some of those that are at `places` of others; TIMER stays."""
    return np.where(event >= 0, places[np.maximum(event, 0)], TIMER) if len(places) else event


def _in_turn(found: Output) -> Output:
    """What the clock lets out at one instant, partition by partition."""
    assert found.part is not None
    clock = found.event == TIMER
    if not clock.any():
        return found
    moves = (np.diff(found.at, prepend=-1) != 0) | (np.diff(found.event, prepend=TIMER - 1) != 0)
    order = np.lexsort((np.where(clock, found.part, 0), np.cumsum(moves)))
    return found.at_places(order)


def partitioned(plan: Select, context: Context, stream: str, type: RowType) -> Partitioned | str:
    """The core of a statement in a context, or the first reason against it."""
    input = plan.inputs[0]
    if isinstance(input, PatternInput):
        return _pattern(plan, input, context, stream, type)
    if not isinstance(input, StreamInput) or plan.rate.limited:
        return "an input that is not a plain stream, or an output rate, in a context"
    found = division(context, input.filter.stream, type)
    if isinstance(found, str):
        return found
    if not known(plan, found):
        return "a look-up in a context"
    plan = recalled_first(replace(plan, projection=whole_columns(plan.projection, type)))
    wider = numbered(type)
    inner = by_partition(plan, input, wider)
    if isinstance(inner, str):
        return inner
    if (plan.grouping or plan.total) and any(isinstance(each, Field) for each in used(plan.projection)):
        return "a column that is neither a key nor an aggregate"
    reason = first(unshown(answered(each)) for each in plan.projection.evaluated)
    reason = reason or unlisted(plan.projection, input.window)
    if isinstance(inner, Selected):
        projection, place = of_leaves(plan.projection), 0
    else:
        projection, place = properties_behind(plan.projection, len(wider.fields)), len(type.fields)
    nothing = None
    if plan.total and len(plan.levels) == 1:
        nothing = (fold := Fold(plan.levels[0].calls)).values(fold.start())
        if isinstance(inner, Selected):
            nothing = tuple(nothing[each.index] for each in used(plan.projection))
    number, seen = Field(0, place, LONG), properties(plan)
    return reason or Partitioned(found, inner, wider, number, projection, seen, plan.emitted, nothing)


def known(plan: Select, found: Division) -> bool:
    """Whether all that a statement looks up are properties of the partition, and rows that came before in it."""
    return all(
        found.has(each.name) if isinstance(each, ContextValue) else isinstance(each, Earlier | Previous)
        for each in plan.lookups
    )


def properties(plan: Select) -> tuple[str, ...]:
    """The properties of a partition that a statement asks for."""
    return tuple(each.name for each in plan.lookups if isinstance(each, ContextValue))


def _pattern(plan: Select, input: PatternInput, context: Context, stream: str, type: RowType) -> Partitioned | str:
    """The core of a pattern of each partition, or the first reason against it."""
    if input.window is not None or input.prior or plan.levels or plan.grouping is not None or plan.rate.limited:
        return "a window, aggregates or an output rate over a pattern in a context"
    found = division(context, stream, type)
    if isinstance(found, str):
        return found
    if recalls(plan) or not known(plan, found):
        return "look-ups over a pattern in a context"
    wider = numbered(type)
    inner = pattern_of(plan, input.pattern, {stream: wider}, len(type.fields))
    if isinstance(inner, str):
        return inner
    kinds = [kind for each in inner.types for kind in each.fields.values()]
    every = replace(inner, columns=tuple(Field(0, place, kind) for place, kind in enumerate(kinds)))
    seen = properties_behind(of_events(_of_tags(plan, input.pattern, type), places_in(inner)), len(kinds))
    reason = first(map(unshown, seen.evaluated))
    return reason or Partitioned(found, every, wider, None, seen, properties(plan), plan.emitted)


def _of_tags(plan: Select, pattern: Pattern, type: RowType) -> Select:
    """A statement that shows each event of a match as a row of that type, where it shows them all."""
    if not plan.projection.whole:
        return plan
    tags = tuple(Field(0, tag, type.data_type) for tag in range(pattern.tags))
    return replace(plan, projection=replace(plan.projection, columns=tags, whole=False))


def properties_behind(projection: Projection, width: int) -> Projection:
    """A projection that sees what it asks for as the fields behind the first `width`."""

    def seen(expr: Expr) -> Expr:
        return Field(0, width + expr.index, expr.type) if isinstance(expr, Ask) else inside(expr, seen)

    return Projection(projection.columns, projection.having).changed(seen)


def of_leaves(projection: Projection) -> Projection:
    """A projection over what a program shows of the statement by partitions, and the properties of the partition behind that."""
    found = used(projection)
    places = {(each.input if isinstance(each, Field) else -1, each.index): at for at, each in enumerate(found, 1)}
    return properties_behind(projection.changed(lambda each: flat(each, places)), len(found) + 1)


def answered(expr: Expr) -> Expr:
    """An expression with what it asks for as values."""
    return Slot(expr.index, expr.type) if isinstance(expr, Ask) else inside(expr, answered)
