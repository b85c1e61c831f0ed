"""A filter with a projection that reads sub-queries: aggregates over windows of their own, or the rows of a key in one.

The windows are of the same stream or another. An event sees what the windows hold when it comes, itself included.
Sub-queries with aggregates are cores of their own. Their rows are their answers one after the other, or changes of
groups, which are compared by `all` or `any`. An event's answer is the last one that came by then.

State: that of each sub-query by its number; with aggregates it has a table `answer`, the last one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.folded import Folded, folded
from rollup.engine.columns.cores.projecting import FilterProject, filter_project
from rollup.engine.columns.cores.quantified import compared
from rollup.engine.columns.cores.rewriting import calls_of, of_one_event
from rollup.engine.columns.cores.window_sub_query import window_sub_query
from rollup.engine.columns.evaluate import carried, evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Ask, Call, Expr, Field, Slot, children, inside, walk
from rollup.engine.operators import NOT, Operator
from rollup.engine.quantifiers import AMONG, Quantifier
from rollup.engine.rows.plans import Select, StreamInput, Subquery
from rollup.engine.rows.running import stands_alone
from rollup.engine.rows.selects.grouping import Level
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Unique
from rollup.engine.rows.windows.ranked import Sorted
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.types import BOOL, INT, LONG, DataType, RowType

_WINDOWS = Length | Time | KeepAll | Unique | Sorted
"""Those whose changes are answers as they come."""


@dataclass(frozen=True)
class SubQueryAggregates:
    """A sub-query with aggregates: its core, and the type of its stream."""

    core: Folded
    type: RowType

    @property
    def width(self) -> int:
        """How many answers there are."""
        return len(self.core.projection.columns)

    def start(self, now: int) -> State:
        """An empty window."""
        return self.holding(self.core.start(now), self.answers())

    @staticmethod
    def holding(inner: State, answers: Sequence[pa.Array]) -> State:
        """The state, from that of the core and the last answers."""
        return State({**inner.tables, "answer": answers_in(answers)}, inner.scalars)

    def answers(self, slots: list[Any] | None = None) -> list[pa.Array]:
        """The answers of a group, by default of an empty one, as columns of one row."""
        columns = self.core.nothing() if slots is None else self.core.lines.of_slots(slots)
        return [evaluate(each, columns, 1) for each in self.core.projection.columns]

    def step(self, state: State, batch: Batch, asking: bool) -> tuple[State, list[pa.Array]]:
        """The state after a batch; and, where its events are `asking`, the answers for each."""
        inner, output, since = heard(self.core, self.type, state, batch)
        pairs = zip(state.tables["answer"].columns, output.columns, strict=True)
        answers = [pa.concat_arrays([*known.chunks, new]) for known, new in pairs]
        after = self.holding(inner, [each.slice(len(each) - 1) for each in answers])
        come = np.searchsorted(since, np.arange(batch.rows), "right")  # so many answers, by each event
        seen = pa.array(come)
        return after, [each.take(seen) for each in answers] if asking else []


class Part(Protocol):
    """One sub-query."""

    def start(self, now: int) -> State:
        """An empty window."""
        ...

    def step(self, state: State, batch: Batch, asking: bool) -> tuple[State, list[pa.Array]]:
        """The state after a batch; and, where its events are `asking`, the answers for each."""
        ...


@dataclass(frozen=True)
class WithSubQueries:
    """The statement; `main` reads the fields of its stream, then the answers."""

    main: FilterProject
    asked: tuple[Part, ...]

    def start(self, now: int) -> State:
        """Empty windows."""
        return self.holding([each.start(now) for each in self.asked], now)

    def holding(self, parts: Sequence[State], now: int) -> State:
        """The state of the whole, from that of each sub-query."""
        return State.holding({str(number): each for number, each in enumerate(parts)}, {"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """A row for each event that passes."""
        before: int = state.scalars["now"]
        asking = batch.stream == self.main.filter.stream
        stepped = [each.step(kept, batch, asking) for each, kept in zip(self.asked, state.held().values(), strict=True)]
        after = self.holding([inner for inner, _ in stepped], max(before, batch.now))
        if not asking:
            return after, Output(np.empty(0, np.int64), np.empty(0, np.int64), self._no_rows())
        answers = [answer for _, answers in stepped for answer in answers]
        given = replace(batch, columns=(*batch.columns, *answers))
        return after, self.main.step(State(scalars={"now": before}), given)[1]

    def _no_rows(self) -> tuple[pa.Array, ...]:
        """The columns of no rows; what is not a field is not read of them."""
        shown = self.main.projection.columns
        return tuple(pa.array([], carried(each.type)) if isinstance(each, Field) else pa.nulls(0) for each in shown)


def answers_in(columns: Sequence[pa.Array]) -> pa.Table:
    """Answers as a state has them."""
    return pa.table([*columns], names=[f"answer{place}" for place in range(len(columns))])


def heard(core: Folded, type: RowType, state: State, batch: Batch) -> tuple[State, Output, Ints]:
    """A step of a sub-query's core, be the events of another stream; and from which event on each of its rows is seen: what time
    lets out at an instant leaves before the events of it.
    """
    times = np.maximum(batch.times, state.scalars["now"])
    inner, output = core.step(state, batch.on(core.filter.stream, type))
    return inner, output, np.where(output.event >= 0, output.event, np.searchsorted(times, output.at))


def with_sub_queries(plan: Select, reads: Mapping[str, RowType]) -> WithSubQueries | str:
    """The core of a statement with sub-queries, or the first reason against it."""
    input = plan.inputs[0]
    if len(plan.inputs) != 1 or not isinstance(input, StreamInput):
        return "a sub-query in a join, or over a pattern"
    fields = list(reads[input.filter.stream].fields.values())
    found, shown, width = list[Part](), list[Expr](), len(fields)
    for number in range(len(plan.lookups)):
        part = _part(plan, number, reads, width)
        if isinstance(part, str):
            return part
        asked, answer = part
        found.append(asked)
        shown.append(answer)
        width += asked.width if isinstance(asked, SubQueryAggregates) else 1
    projection, where = plan.projection, plan.where
    columns = tuple(Field(0, i, kind) for i, kind in enumerate(fields)) if projection.whole else projection.columns
    columns = tuple(_answered(column, shown) for column in columns)
    having = None if projection.having is None else _answered(projection.having, shown)
    where = None if where is None else _answered(where, shown)
    projection = replace(projection, columns=columns, having=having, whole=False)
    main = filter_project(replace(plan, projection=projection, where=where, lookups=(), own_inputs=()))
    return main if isinstance(main, str) else WithSubQueries(main, tuple(found))


def _part(plan: Select, number: int, reads: Mapping[str, RowType], at: int) -> tuple[Part, Expr] | str:
    """One sub-query, and what stands for it where the answers are fields from `at` on."""
    lookup = plan.lookups[number]
    if not isinstance(lookup, Subquery):
        return "a look-up beside a sub-query"
    input = plan.own_inputs[lookup.input - len(plan.inputs)]
    if not isinstance(input, StreamInput) or lookup.mode == "rows":
        return "a sub-query over a store, or of several rows"
    if lookup.mode != "exists" and (lookup.whole or len(lookup.columns) != 1):
        return "a sub-query of several columns"
    stream = reads[input.filter.stream]
    if lookup.calls and lookup.mode == "value" and stands_alone(lookup, input, 1):
        return _aggregated(lookup, input, stream, at)
    (outside,) = (each.filter.stream for each in plan.inputs if isinstance(each, StreamInput))
    if lookup.mode != "list":
        found = window_sub_query(lookup, input, outside, None)
        return found if isinstance(found, str) else (found, Field(0, at, found.type))
    match _use(plan, number):
        case Call(op=Quantifier(sign="<" | "<=" | ">" | ">=") as op, args=(value, _)):
            return _quantified(lookup, input, stream, op, value, at)
        case Call(op=op, args=(value, _)) if (member := _membership(op)) is not None:
            found, answer = window_sub_query(lookup, input, outside, value), Field(0, at, BOOL)
            return found if isinstance(found, str) else (found, answer if member else Call(NOT, (answer,), BOOL))
        case _:
            return "a list of values that is not asked whether a value is in it, or compares with all or any of it"


def _membership(op: Operator) -> bool | None:
    """Whether an operator on a value and a list says that the value is in it; False: that it is not; None: something else."""
    match op:
        case Quantifier(sign="=", every=False):
            return True
        case Quantifier(sign="!=", every=True):
            return False
        case _:
            return True if op is AMONG else None


def _use(plan: Select, number: int) -> Expr | None:
    """The one call in which the list of a sub-query stands."""
    parts = [*plan.projection.columns, plan.projection.having, plan.where]
    calls = {each for part in parts if part is not None for each in walk(part) if number in _listed(each)}
    return calls.pop() if len(calls) == 1 else None


def _listed(expr: Expr) -> list[int]:
    """The look-ups that stand directly in an expression."""
    return [each.index for each in children(expr) if isinstance(each, Ask)]


def _quantified(
    lookup: Subquery, input: StreamInput, stream: RowType, op: Quantifier, value: Expr, at: int
) -> tuple[SubQueryAggregates, Expr] | str:
    """A comparison with all or any of the values of a window: with what its aggregates say of them."""
    calls, answer = compared(op, value, lookup.columns[0], at)
    if lookup.calls or lookup.keys or lookup.having is not None:
        return "aggregates of a sub-query in a comparison with all or any"
    columns = tuple(Slot(place, call.type) for place, call in enumerate(calls))
    found = _aggregated(replace(lookup, mode="value", calls=calls, columns=columns), input, stream, at)
    return found if isinstance(found, str) else (found[0], answer)


def _aggregated(
    lookup: Subquery, input: StreamInput, stream: RowType, at: int
) -> tuple[SubQueryAggregates, Expr] | str:
    """A sub-query with aggregates, and the first of its answers."""
    if lookup.having is not None or lookup.keys:
        return "a sub-query of groups"
    if (reason := unaggregated(lookup, input)) is not None:
        return reason
    inner = Select((input,), stream, Projection(lookup.columns), levels=(Level((), calls_of(lookup)),), total=True)
    core = folded(replace(inner, where=where_of(lookup)), len(stream.fields))
    kind = answer_type(lookup.columns[0].type)
    return core if isinstance(core, str) else (SubQueryAggregates(core, stream), Field(0, at, kind))


def unaggregated(lookup: Subquery, input: StreamInput) -> str | None:
    """The first reason against a sub-query with aggregates."""
    if not (isinstance(input.window, _WINDOWS | None) and stands_alone(lookup, input, 1)):
        return "aggregates of a sub-query that asks for the row outside, or over another window"
    read = (*lookup.columns, *([] if lookup.having is None else [lookup.having]))
    if any(isinstance(each, Field) for column in read for each in walk(column)):
        return "a column of a sub-query that is no aggregate"
    return None


def answer_type(kind: DataType) -> DataType:
    """The type of an answer: a sum may be wider than its type says."""
    return LONG if kind == INT else kind


def where_of(lookup: Subquery) -> Expr | None:
    """Its condition, over the same."""
    return None if lookup.where is None else of_one_event(lookup.where)


def _answered(expr: Expr, shown: Sequence[Expr]) -> Expr:
    """An expression with what stands for each sub-query."""
    match expr:
        case Ask(index=index):
            return shown[index]
        case Call(op=op, args=(_, Ask(index=index))) if op is AMONG or isinstance(op, Quantifier):
            return shown[index]
        case _:
            return inside(expr, lambda inner: _answered(inner, shown))
