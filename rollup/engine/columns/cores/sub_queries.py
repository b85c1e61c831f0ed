"""A filter with a projection that reads sub-queries: aggregates of windows, or rows of them.

The windows are of the same stream or another. An event sees what the windows hold when it comes, itself included.

State: that of each sub-query by its number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.projecting import FilterProject, filter_project
from rollup.engine.columns.cores.quantified import compared
from rollup.engine.columns.cores.window_sub_query import WindowSubQuery, window_sub_query
from rollup.engine.columns.evaluate import carried
from rollup.engine.expressions import Ask, Call, Expr, Field, children, inside, walk
from rollup.engine.operators import NOT, Operator
from rollup.engine.quantifiers import AMONG, Quantifier
from rollup.engine.rows.plans import Select, StreamInput, Subquery
from rollup.engine.state import State
from rollup.engine.types import BOOL, RowType


@dataclass(frozen=True)
class WithSubQueries(Core):
    """The statement; `main` reads the fields of its stream, then the answers."""

    main: FilterProject
    asked: tuple[WindowSubQuery, ...]

    hears_all: ClassVar[bool] = True

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


def with_sub_queries(plan: Select, reads: Mapping[str, RowType]) -> WithSubQueries | str:
    """The core of a statement with sub-queries, or the first reason against it."""
    input = plan.inputs[0]
    if len(plan.inputs) != 1 or not isinstance(input, StreamInput):
        return "a sub-query in a join, or over a pattern"
    fields = list(reads[input.filter.stream].fields.values())
    found, shown, width = list[WindowSubQuery](), list[Expr](), len(fields)
    for number in range(len(plan.lookups)):
        part = _part(plan, number, width)
        if isinstance(part, str):
            return part
        asked, answer = part
        found.append(asked)
        shown.append(answer)
        width += len(asked.types)
    projection, where = plan.projection, plan.where
    columns = tuple(Field(0, i, kind) for i, kind in enumerate(fields)) if projection.whole else projection.columns
    projection = replace(projection, columns=columns, whole=False).changed(lambda each: _answered(each, shown))
    where = None if where is None else _answered(where, shown)
    main = filter_project(replace(plan, projection=projection, where=where, lookups=(), own_inputs=()))
    return main if isinstance(main, str) else WithSubQueries(main, tuple(found))


def _part(plan: Select, number: int, at: int) -> tuple[WindowSubQuery, Expr] | str:
    """One sub-query, and what stands for it where the answers are fields from `at` on."""
    lookup = plan.lookups[number]
    if not isinstance(lookup, Subquery):
        return "a look-up beside a sub-query"
    input = plan.own_inputs[lookup.input - len(plan.inputs)]
    if not isinstance(input, StreamInput) or lookup.mode == "rows":
        return "a sub-query over a store, or of several rows"
    if lookup.mode != "exists" and (lookup.whole or len(lookup.columns) != 1):
        return "a sub-query of several columns"
    (outside,) = (each.filter.stream for each in plan.inputs if isinstance(each, StreamInput))
    if lookup.mode != "list":
        found = window_sub_query(lookup, input, outside)
        return found if isinstance(found, str) else (found, Field(0, at, found.types[0]))
    match _use(plan, number):
        case Call(op=Quantifier(sign="<" | "<=" | ">" | ">=") as op, args=(value, _)):
            if lookup.calls or lookup.keys or lookup.having is not None:
                return "aggregates of a sub-query in a comparison with all or any"
            calls, answer = compared(op, value, lookup.columns[0], at)
            found = window_sub_query(lookup, input, outside, calls=calls)
            return found if isinstance(found, str) else (found, answer)
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


def _answered(expr: Expr, shown: Sequence[Expr]) -> Expr:
    """An expression with what stands for each sub-query."""
    match expr:
        case Ask(index=index):
            return shown[index]
        case Call(op=op, args=(_, Ask(index=index))) if op is AMONG or isinstance(op, Quantifier):
            return shown[index]
        case _:
            return inside(expr, lambda inner: _answered(inner, shown))
