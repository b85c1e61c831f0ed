"""Sub-queries with aggregates in a context whose partitions never end: each as one by the numbers of the partitions, of whose rows
those of an event's own partition are answers to it.

The event with which a partition begins is told to the statement before its sub-queries have it, so it sees nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.asking import Asking, answer_type, answers_in, heard, unaggregated, where_of
from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.by_partition import by_partition, numbered
from rollup.engine.columns.cores.covering import first, unshown
from rollup.engine.columns.cores.folded import Folded, fields_for_slots
from rollup.engine.columns.cores.joined import flat
from rollup.engine.columns.cores.nested import divisions
from rollup.engine.columns.cores.partitioned import Partitioned, known, properties, properties_behind, shown
from rollup.engine.columns.cores.partitions import Division
from rollup.engine.columns.cores.projecting import filter_project
from rollup.engine.columns.cores.queued import whole_columns
from rollup.engine.columns.cores.rewriting import calls_of
from rollup.engine.columns.evaluate import carried, evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import All, Ask, Expr, Field, inside, walk
from rollup.engine.rows.contexts.levels import Context
from rollup.engine.rows.plans import Select, StreamInput, Subquery
from rollup.engine.rows.selects.grouping import Level
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.keyed import Unique
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.types import LONG, RowType


@dataclass(frozen=True)
class AskedOfEach:
    """A sub-query: its core, whose rows are a partition's number and what the answers then are; the type of its stream with
    numbers; and how many partitions there are from the beginning.
    """

    core: Folded
    type: RowType
    ahead: int

    @property
    def width(self) -> int:
        """How many answers there are."""
        return len(self.core.projection.columns) - 1

    def start(self, now: int) -> State:
        """Empty windows."""
        return self.holding(self.core.start(now), self._nothing(self.ahead))

    def holding(self, inner: State, answers: Sequence[pa.Array]) -> State:
        """The state, from that of the core and the last answers of each partition."""
        return State({**inner.tables, "answer": answers_in(answers)}, inner.scalars)

    def told(self, groups: Sequence[list[Any]]) -> list[pa.Array]:
        """The answers of each partition, from the slots of its aggregates."""
        found = [self._answers(self.core.lines.of_slots(slots)) for slots in groups]
        return [pa.concat_arrays(each) for each in zip(*found, strict=True)] if found else self._nothing(0)

    def _answers(self, columns: Sequence[pa.Array]) -> list[pa.Array]:
        """The answers of one partition."""
        numbered = [pa.array([0], pa.int64()), *columns]
        return self._as_answers(evaluate(each, numbered, 1) for each in self.core.projection.columns[1:])

    def _as_answers(self, columns: Iterable[pa.Array]) -> list[pa.Array]:
        """Columns as answers are kept, whose type is that of the widest."""
        kinds = (carried(answer_type(each.type)) for each in self.core.projection.columns[1:])
        return [column.cast(kind) for column, kind in zip(columns, kinds, strict=True)]

    def _nothing(self, parts: int) -> list[pa.Array]:
        """Those of empty windows."""
        return [pa.repeat(each[0], parts) for each in self._of_empty]

    @cached_property
    def _of_empty(self) -> list[pa.Array]:
        return self._answers(self.core.nothing())

    def step(self, state: State, batch: Batch, asking: bool) -> tuple[State, list[pa.Array]]:
        """The state after a batch, whose last column says the partitions; and, where its events are `asking`, the answers for each."""
        inner, output, since = heard(self.core, self.type, state, batch)
        before, numbers = state.tables["answer"], batch.columns[-1].to_numpy()
        parts = max(before.num_rows, int(numbers.max(initial=-1)) + 1)
        fresh = self._nothing(parts - before.num_rows)
        columns = zip(before.columns, fresh, self._as_answers(output.columns[1:]), strict=True)
        together = [pa.concat_arrays([*old.chunks, empty, new]) for old, empty, new in columns]
        part = np.concatenate([np.arange(parts), output.columns[0].to_numpy(zero_copy_only=False)])
        last = np.zeros(parts, np.int64)
        last[part] = np.arange(len(part))
        after = self.holding(inner, [each.take(pa.array(last)) for each in together])
        if not asking:
            return after, []
        seen = pa.array(_latest(part, parts, since, numbers, before.num_rows))
        return after, [each.take(seen) for each in together]


def _latest(part: Ints, parts: int, since: Ints, numbers: Ints, known: int) -> Ints:
    """The place of the answer that each event sees among all, of which the first are those of each partition before; an event with
    which one begins that was not `known` sees that.
    """
    most = len(numbers) + 2  # rows that are seen by none stand behind the last event
    come = np.concatenate([np.zeros(parts, np.int64), since + 1])
    turn = part * most + come
    order = np.argsort(turn, kind="stable")
    asked = numbers * most + np.arange(1, len(numbers) + 1)
    begun = np.maximum.accumulate(np.concatenate([[known - 1], numbers]))[:-1]
    asked[numbers > begun] = numbers[numbers > begun] * most
    return order[np.searchsorted(turn[order], asked, "right") - 1]


def asking_in_context(plan: Select, context: Context, reads: Mapping[str, RowType]) -> Partitioned | str:
    """The core of a statement with sub-queries in a context, or the first reason against it."""
    input = plan.inputs[0]
    if len(plan.inputs) != 1 or not isinstance(input, StreamInput) or plan.rate.limited:
        return "a sub-query in a join, over a pattern or with an output rate, in a context"
    found = divisions(context, reads)
    if isinstance(found, str):
        return found
    if not known(
        replace(plan, lookups=tuple(each for each in plan.lookups if not isinstance(each, Subquery))), found[0]
    ):
        return "a look-up in a context"
    wider, ahead = {name: numbered(type) for name, type in reads.items()}, found[0].count(found[0].start())
    asked, answers, width = list[AskedOfEach](), dict[int, Expr](), len(wider[input.filter.stream].fields)
    for place, lookup in enumerate(plan.lookups):
        if not isinstance(lookup, Subquery):
            continue
        part = _part(plan, lookup, wider, ahead)
        if isinstance(part, str):
            return part
        asked.append(part)
        answers[place] = Field(0, width, answer_type(lookup.columns[0].type))
        width += part.width
    return _asking(plan, found, reads[input.filter.stream], tuple(asked), answers)


def _part(plan: Select, lookup: Subquery, wider: Mapping[str, RowType], ahead: int) -> AskedOfEach | str:
    """One sub-query, over streams with numbers."""
    input = plan.own_inputs[lookup.input - len(plan.inputs)]
    if (
        not lookup.calls
        or lookup.keys
        or lookup.mode != "value"
        or lookup.having is not None
        or len(lookup.columns) != 1
    ):
        return "a sub-query in a context that is no aggregate of all its rows"
    if not isinstance(input, StreamInput) or not isinstance(input.window, Length | Time | KeepAll | Unique | None):
        return "a sub-query in a context over a store or another window"
    if (reason := unaggregated(lookup, input)) is not None:
        return reason
    type = wider[input.filter.stream]
    levels = (Level((), calls_of(lookup)),)
    total = Select((input,), type, Projection(()), where=where_of(lookup), levels=levels, total=True)
    core = by_partition(total, input, type)
    if isinstance(core, str):
        return core
    if not isinstance(core, Folded) or not core.kept:
        return "a sub-query in a context whose rows are no totals"
    shown = (Field(0, 0, LONG), *(fields_for_slots(each, 1) for each in lookup.columns))
    return AskedOfEach(replace(core, projection=Projection(shown)), type, ahead)


def _asking(
    plan: Select,
    found: tuple[Division, ...],
    type: RowType,
    asked: tuple[AskedOfEach, ...],
    answers: Mapping[int, Expr],
) -> Partitioned | str:
    """The core over a stream of a type, which shows what is read of an event and the answers; conditions come behind it."""
    rest = [place for place in range(len(plan.lookups)) if place not in answers]

    def told(expr: Expr) -> Expr:
        if isinstance(expr, Ask):
            return answers.get(expr.index) or Ask(rest.index(expr.index), expr.type)
        return inside(expr, told)

    given = whole_columns(plan.projection, type)
    columns = tuple(map(told, given.columns))
    conditions = tuple(told(each) for each in (plan.where, given.having) if each is not None)
    number = Field(0, len(type.fields), LONG)
    used = [each for expr in (*columns, *conditions) for each in walk(expr) if isinstance(each, Field)]
    read = tuple(dict.fromkeys((number, *used)))
    places = {(0, each.index): place for place, each in enumerate(read)}
    having = flat(All(conditions), places) if conditions else None
    seen = properties_behind(Projection(tuple(flat(each, places) for each in columns), having), len(read))
    main = filter_project(replace(plan, projection=Projection(read), where=None, lookups=(), own_inputs=()))
    if isinstance(main, str):
        return main
    reason = first(map(unshown, shown(seen)))
    core = Asking(main, asked)
    return reason or Partitioned(found, core, numbered(type), Field(0, 0, LONG), seen, properties(plan), plan.emitted)
