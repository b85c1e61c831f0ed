"""A sub-query that looks rows of a window up, as a program: whether there is one, the value of the only one, an aggregate of
them, or whether a value is among theirs.

What reads one row alone, be it that inside or the one outside, is a column. The program has the window, finds rows by what
must be equal, and tests what reads both rows.

State: that of the program.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.covering import equated, first, wide
from rollup.engine.columns.cores.declared import uncountable
from rollup.engine.columns.cores.programs import Column, Columns, Given, fed, live, values_of
from rollup.engine.columns.cores.rewriting import of_one_event
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Ask, Call, Const, Expr, Slot
from rollup.engine.folding import AggregateCall
from rollup.engine.operators import EQUAL, IS_NULL
from rollup.engine.programs.lowering.components import Program, lowered_select
from rollup.engine.programs.lowering.unsupported import Unsupported
from rollup.engine.programs.runtime.running import Running
from rollup.engine.rows.plans import Filter, Select, StreamInput, Subquery
from rollup.engine.rows.selects.joining import equality
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.state import State
from rollup.engine.types import BOOL, INT, LONG, DataType, RowType


@dataclass(frozen=True)
class WindowSubQuery:
    """The sub-query. `columns`: what the program gets of the events of each stream; `types`: those of its answers.

    `value`: what is looked for among the values of the rows. The program then says whether it is there, whether any row is,
    and whether one without a value is.
    """

    program: Program
    columns: Given
    types: tuple[DataType, ...]
    value: Expr | None = None

    def start(self, now: int) -> State:
        """An empty window."""
        return live(Running(self.program, start=now), now)

    def step(self, state: State, batch: Batch, asking: bool) -> tuple[State, list[pa.Array]]:
        """The state after a batch; and, where its events are `asking`, the answers for each."""
        after, made = fed(self.program, self.columns, state, batch)
        return after, self._answers(made[""][3:], batch) if asking else []

    def _answers(self, found: Sequence[pa.Array], batch: Batch) -> list[pa.Array]:
        if self.value is None:
            return values_of(found, self.types)
        there, some, nulls = found
        missing = evaluate(self.value, batch.columns, batch.rows).is_null()
        unknown = pc.and_(pc.and_(some, pc.invert(there)), pc.or_(nulls, missing))
        return [pc.if_else(unknown, pa.scalar(None, pa.bool_()), there)]


def window_sub_query(
    lookup: Subquery, input: StreamInput, outside: str, value: Expr | None = None, calls: Sequence[AggregateCall] = ()
) -> WindowSubQuery | str:
    """A sub-query asked by the events of a stream, or the first reason against it; `value`: what is looked for among its rows;
    `calls`: the aggregates of its values that are wanted in the place of its own."""
    if lookup.keys or lookup.having is not None:
        return "a sub-query of groups"
    if input.unnest or input.prior:
        return "a sub-query over an input that is not a plain stream"
    columns = Columns(outside, input.filter.stream)
    own = columns.input(input, 1)
    where = [_condition(part, columns) for part in conjuncts(lookup.where)]
    one = replace(lookup, input=1, where=conjunction(where))
    of_calls = [replace(one, mode="value", calls=(call,), columns=(Slot(0, call.type),)) for call in calls]
    lookups = (
        _lookups(one, value, columns) if value is not None else [_over(each, columns) for each in of_calls or [one]]
    )
    if isinstance(lookups, str):
        return lookups
    shown = Projection(tuple(Ask(number, each.columns[0].type) for number, each in enumerate(lookups)))
    types = RowType("", {f"f{number}": each.columns[0].type for number, each in enumerate(lookups)})
    plan = Select((StreamInput(Filter(outside)),), types, shown, lookups=tuple(lookups), own_inputs=(own,))
    reason = first(uncountable(call, "rows", False) for each in lookups for call in each.calls) or columns.against()
    if reason is not None:
        return reason
    program = lowered_select(plan, columns.types())
    if isinstance(program, Unsupported):
        return f"a sub-query with {program.feature} ({program.detail})"
    types = (BOOL,) if value is not None or lookup.mode == "exists" else tuple(map(_answer_type, of_calls or [lookup]))
    return WindowSubQuery(program, columns.found, types, value)


def _condition(part: Expr, columns: Columns) -> Expr:
    """A part of what the rows must fulfil; what must be equal is compared by a hash, where one can tell."""
    pair = equality(part, 1)
    if pair is None or not equated(of_one_event(pair[0]), of_one_event(pair[1])):
        return columns.over(part)
    return columns.equal(pair)


def _answer_type(lookup: Subquery) -> DataType:
    """The type of an answer: a sum may be wider than its type says."""
    (shown,) = lookup.columns
    return LONG if shown.type == INT and (lookup.calls or wide(shown)) else shown.type


def _over(lookup: Subquery, columns: Columns) -> Subquery:
    """What the program looks up: whether there is a row, the value of one, or aggregates."""
    shown = (Const(True, BOOL),) if lookup.mode == "exists" else tuple(map(columns.over, lookup.columns))
    calls = tuple(
        replace(
            call,
            args=tuple(map(columns.over, call.args)),
            where=None if call.where is None else columns.over(call.where),
        )
        for call in lookup.calls
    )
    return replace(lookup, columns=shown, calls=calls)


def _lookups(lookup: Subquery, value: Expr, columns: Columns) -> Sequence[Subquery] | str:
    """What the program looks up to say whether a value is there."""
    column = of_one_event(lookup.columns[0])
    if lookup.calls or not equated(column, value):
        return "a sub-query that asks for keys of other types"
    there = columns.equal((value, lookup.columns[0]))
    nothing = Call(EQUAL, (columns.of(Column(Call(IS_NULL, (column,), BOOL)), 1), Const(True, BOOL)), BOOL)
    exists = Subquery(1, "exists", (Const(True, BOOL),))
    return [replace(exists, where=conjunction([*conjuncts(lookup.where), *more])) for more in ([there], [], [nothing])]
