"""Aggregates of all events that come to a group, which lets none go.

State: `groups`: key, slots.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.covering import KEYS, against, filtered, first, unshown, wide
from rollup.engine.columns.cores.declared import Lines, uncountable
from rollup.engine.columns.cores.keys import KeyCodes, whole
from rollup.engine.columns.cores.projecting import Made, Taken
from rollup.engine.columns.evaluate import Columns, arrow, evaluate, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import block, loop
from rollup.engine.expressions import Expr, Field, walk
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.plans import Filter, Select, StreamInput
from rollup.engine.state import State
from rollup.engine.types import Kind

_TEMPLATE = """
def core(codes, {given}{slots}{results}):
    for n in range(len(codes)):
        k = codes[n]
{enter}
{value}
"""


@dataclass(frozen=True)
class Folded:
    """Aggregates by `keys`. `by_group`: what is made of an event sees the keys and the calls, else its fields and the calls.
    `kept`: the groups are partitions, so their one key is their number.
    """

    filter: Filter
    where: Expr | None
    keys: tuple[Expr, ...]
    calls: tuple[AggregateCall, ...]
    by_group: bool
    kept: bool = False
    _codes: KeyCodes = field(default_factory=KeyCodes, compare=False, repr=False)

    @cached_property
    def lines(self) -> Lines:
        """The calls."""
        return Lines(self.calls)

    @cached_property
    def _text(self) -> str:
        """The text of the loop."""
        enter, value = block(self.lines.change("enter", "n"), 2), block(self.lines.value(), 2)
        return _TEMPLATE.format(enter=enter, value=value, **self.lines.names)

    @cached_property
    def _schema(self) -> pa.Schema:
        slots = [pa.field(f"slot{i}", kind) for i, kind in enumerate(self.lines.slot_types())]
        kinds = [arrow(key.type) for key in self.keys]
        key = kinds[0] if len(kinds) == 1 else pa.struct([(f"key{i}", kind) for i, kind in enumerate(kinds)])
        return pa.schema([pa.field("key", key), *slots])

    def start(self, now: int) -> State:
        """No groups."""
        return State({"groups": self._schema.empty_table()}, {"now": now})

    def taken(self, state: State, batch: Batch) -> Taken:
        """The events that pass."""
        return Taken.of(batch, state.scalars["now"], self.filter, self.where)

    def made(self, state: State, taken: Taken) -> tuple[State, Made]:
        """A row an event, before they are projected."""
        groups, rows = state.tables["groups"], len(taken.times)
        codes, keys = self.numbered(whole(groups.column("key")), taken.columns, rows)
        slots, results = self.lines.grown(groups.columns[1:], len(keys)), self.lines.room(rows)
        loop(self._text)(codes, *self.lines.given(taken.columns, rows), *slots, *results)
        made = self.lines.results(results, rows)
        columns = [*self._named(keys, codes), *made] if self.by_group else [*taken.columns, *made]
        after = State({"groups": pa.table([keys, *map(pa.array, slots)], schema=self._schema)}, {"now": taken.now})
        return after, Made(taken, taken.times, np.arange(rows), columns)

    def _named(self, keys: pa.Array, group: Ints) -> list[pa.Array]:
        """The keys of some groups, as columns that are looked up only for the rows that are shown."""
        parts = keys.flatten() if len(self.keys) > 1 else [keys]
        return [pa.DictionaryArray.from_arrays(pa.array(group), part, safe=False) for part in parts]

    def numbered(self, known: pa.Array, columns: Columns, rows: int) -> tuple[Ints, pa.Array]:
        """The number of each row's group, and the keys that are known then."""
        match self.keys:
            case (Field(index=index),) if self.kept:
                codes = plain(columns[index]).to_numpy(zero_copy_only=False)
                return codes, pa.array(np.arange(max(len(known), int(codes.max(initial=-1)) + 1)))
            case (key,):
                column = evaluate(key, columns, rows)
            case several:
                parts = [evaluate(key, columns, rows) for key in several]
                column = pa.StructArray.from_arrays(parts, fields=list(known.type))
        return self._codes.codes(known, column)


def folded(plan: Select) -> Folded | str:
    """The core of aggregates by keys over one stream without a window, or the first reason against it."""
    input, shape, used = plan.inputs[0], shape_of(plan), plan.projection.evaluated
    assert isinstance(input, StreamInput)
    if isinstance(shape, str):
        return shape
    keys, calls, by_group = shape
    own = by_group and any(isinstance(each, Field) for column in used for each in walk(column))
    reasons = (
        filtered(input.filter, plan.where),
        *(uncountable(call, "all stay", False) for call in calls),
        *map(unkeyed, keys),
        "a column that is neither a key nor an aggregate" if own else None,
        *map(unshown, used),
    )
    return first(reasons) or Folded(input.filter, plan.where, keys, calls, by_group)


def unkeyed(key: Expr) -> str | None:
    """The first reason against a key of groups."""
    known = key.type.kind in (*KEYS, Kind.DOUBLE)
    return against(key) or wide(key) or (None if known else f"groups by a {key.type}")


GroupedShape = tuple[tuple[Expr, ...], tuple[AggregateCall, ...], bool]
"""Keys, calls, and whether there is a row a group."""


def shape_of(plan: Select) -> GroupedShape | str:
    """Keys, calls, and whether there is a row a group."""
    grouping = plan.grouping
    if grouping is not None:
        if grouping.own or not grouping.whole:
            return "grouping sets"
        return (grouping.dimensions, grouping.calls, True) if grouping.calls else "a grouping without aggregates"
    if len(plan.levels) != 1 or plan.projection.whole:
        return "several levels of aggregates" if plan.levels else "no aggregates"
    level = plan.levels[0]
    return level.keys, level.calls, plan.total
