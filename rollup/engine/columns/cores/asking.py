"""A filter with a projection that asks sub-queries: aggregates over windows of their own, of the same stream or another.

An event sees what the windows hold when it comes, itself among it. Each sub-query is a core of its own, whose rows are its
answers one after the other; an event's answer is the last one that came by then.

State: that of each sub-query by its number, with a table `answer`, the last one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.folded import Folded, folded
from rollup.engine.columns.cores.projecting import FilterProject, filter_project
from rollup.engine.columns.cores.rewriting import inside, of_one_event
from rollup.engine.columns.evaluate import carried, evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Ask, Expr, Field, walk
from rollup.engine.rows.plans import Select, StreamInput, Subquery
from rollup.engine.rows.running import stands_alone
from rollup.engine.rows.selects.grouping import Level
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.state import State
from rollup.engine.types import INT, LONG, RowType


@dataclass(frozen=True)
class Asked:
    """A sub-query: its aggregates, the type of its stream, and which input of the statement is its window."""

    core: Folded
    type: RowType
    input: int

    def answer(self, slots: list[Any] | None = None) -> pa.Array:
        """The answer of a group, by default of an empty one, as a column of one row."""
        columns = self.core.nothing() if slots is None else self.core.lines.of_slots(slots)
        return evaluate(self.core.projection.columns[0], columns, 1)

    def of(self, batch: Batch) -> Batch:
        """What concerns the sub-query of a batch: its events, or the clock alone."""
        if batch.stream == self.core.filter.stream:
            return batch
        return Batch.nothing([carried(kind) for kind in self.type.fields.values()], batch.now)


@dataclass(frozen=True)
class Asking:
    """The statement; `main` reads the fields of its stream, then the answers."""

    main: FilterProject
    asked: tuple[Asked, ...]

    def start(self, now: int) -> State:
        """Empty windows."""
        return self.state([(each.core.start(now), each.answer()) for each in self.asked], now)

    def state(self, parts: list[tuple[State, pa.Array]], now: int) -> State:
        """The state of the whole, from the state and the last answer of each sub-query."""
        held = [
            State({**inner.tables, "answer": pa.table({"answer": answer})}, inner.scalars) for inner, answer in parts
        ]
        return State.holding({str(number): each for number, each in enumerate(held)}, {"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """A row for each event that passes."""
        before: int = state.scalars["now"]
        now = max(before, batch.now)
        times, columns = np.maximum(batch.times, before), list(batch.columns)
        parts = list[tuple[State, pa.Array]]()
        for each, kept in zip(self.asked, state.held().values(), strict=True):
            inner, output = each.core.step(kept, each.of(batch))
            known = kept.tables["answer"].column("answer").chunks
            answers = pa.concat_arrays([*known, *output.columns])
            columns.append(answers.take(pa.array(_seen(output, times))))
            parts.append((inner, answers.slice(len(answers) - 1)))
        after = self.state(parts, now)
        if batch.stream != self.main.filter.stream:
            return after, Output(np.empty(0, np.int64), np.empty(0, np.int64), ())
        given = replace(batch, columns=tuple(columns))
        return after, self.main.step(State(scalars={"now": before}), given)[1]


def _seen(output: Output, times: Ints) -> Ints:
    """How many answers have come by each event; what time lets out at an instant leaves before the events of it."""
    since = np.where(output.event >= 0, output.event, np.searchsorted(times, output.at))
    return np.searchsorted(since, np.arange(len(times)), "right")


def asking(plan: Select, reads: Mapping[str, RowType]) -> Asking | str:
    """The core of a statement with sub-queries, or the first reason against it."""
    input = plan.inputs[0]
    if len(plan.inputs) != 1 or not isinstance(input, StreamInput):
        return "a sub-query in a join, or over a pattern"
    found = list[Asked]()
    for lookup in plan.lookups:
        asked = _asked(plan, lookup, reads)
        if isinstance(asked, str):
            return asked
        found.append(asked)
    fields = list(reads[input.filter.stream].fields.values())
    projection, where = plan.projection, plan.where
    columns = tuple(Field(0, i, kind) for i, kind in enumerate(fields)) if projection.whole else projection.columns
    columns = tuple(_answered(column, len(fields)) for column in columns)
    having = None if projection.having is None else _answered(projection.having, len(fields))
    where = None if where is None else _answered(where, len(fields))
    projection = replace(projection, columns=columns, having=having, whole=False)
    main = filter_project(replace(plan, projection=projection, where=where, lookups=(), own_inputs=()))
    return main if isinstance(main, str) else Asking(main, tuple(found))


def _asked(plan: Select, lookup: object, reads: Mapping[str, RowType]) -> Asked | str:
    """One sub-query."""
    if not isinstance(lookup, Subquery):
        return "a look-up beside a sub-query"
    input = plan.own_inputs[lookup.input - len(plan.inputs)]
    if lookup.mode != "value" or lookup.whole or len(lookup.columns) != 1 or lookup.having is not None:
        return "a sub-query other than one value"
    if not stands_alone(lookup, input, 1) or not isinstance(input, StreamInput):
        return "a sub-query other than aggregates over a window, or that asks for the row outside"
    if any(isinstance(each, Field) for each in walk(lookup.columns[0])):
        return "a column of a sub-query that is no aggregate"
    stream = reads[input.filter.stream]
    calls = tuple(replace(call, args=tuple(map(of_one_event, call.args))) for call in lookup.calls)
    inner = Select(
        (input,),
        stream,
        Projection(lookup.columns),
        where=None if lookup.where is None else of_one_event(lookup.where),
        levels=(Level((), calls),),
        total=True,
    )
    core = folded(inner, len(stream.fields))
    return core if isinstance(core, str) else Asked(core, stream, lookup.input)


def _answered(expr: Expr, width: int) -> Expr:
    """An expression that reads the answers as fields behind those of the event."""
    if isinstance(expr, Ask):
        kind = LONG if expr.type == INT else expr.type  # a sum is wider than its arguments
        return Field(0, width + expr.index, kind)
    return inside(expr, lambda inner: _answered(inner, width))
