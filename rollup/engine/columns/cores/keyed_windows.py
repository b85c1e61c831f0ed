"""A keyed context whose partitions have aggregates over the last so many rows of each.

State: `partitions`, key and slots of each in the order in which they began; `content`, the rows of all their windows, oldest
first: the partition's number and the fields. The loop is that of a window a key.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.folding_loop import KEYED, Shape, text
from rollup.engine.columns.cores.keyed import KeyedRows, KeyedTotals, keyed
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.evaluate import carried, evaluate, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.rows.contexts.levels import Context
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.windows.counted import Length
from rollup.engine.state import State
from rollup.engine.types import RowType


@dataclass(frozen=True, kw_only=True)
class KeyedWindows(KeyedRows):
    """The same over the last `size` rows of each partition; the fields of the stream are of `type`."""

    size: int
    type: RowType

    @cached_property
    def _text(self) -> str:
        return text(self.lines, Shape(KEYED, keyed=False, by_group=False))

    @cached_property
    def schema(self) -> pa.Schema:
        """What is kept of a row."""
        kept = [pa.field(f"field{i}", carried(kind)) for i, kind in enumerate(self.type.fields.values())]
        return pa.schema([pa.field("group", pa.int64()), *kept])

    def start(self, now: int) -> State:
        """No partitions."""
        tables = super().start(now).tables
        return State({**tables, "content": self.schema.empty_table()}, {"now": now})

    def inside(self, state: State) -> pa.Table:
        """The rows of the windows, with their partitions and what the aggregates are of."""
        held = state.tables["content"]
        given = self.lines.given([whole(column) for column in held.columns[1:]], held.num_rows)
        names = ["group", *(f"given{i}" for i in range(len(given)))]
        return pa.table([held.column("group"), *map(pa.array, given)], names=names)

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """A row for each event that passes."""
        taken, codes, keys = self.taken(state, batch)
        partitions, content = state.tables["partitions"], state.tables["content"]
        old, rows = content.num_rows, len(codes)
        both = np.concatenate([content.column("group").to_numpy(), codes])
        arrived = zip(content.columns[1:], taken.columns, strict=True)
        columns = [pa.concat_arrays([*held.chunks, plain(column)]) for held, column in arrived]
        slots, results = self.lines.grown(partitions.columns[1:], len(keys)), self.lines.room(rows)
        alive = self._looped(old, taken, both, columns, len(keys), slots, results)
        left = pa.table([pa.array(both), *columns], schema=self.schema).filter(pa.array(alive))
        seen: list[pa.Array] = [*taken.columns, keys.take(pa.array(codes)), *self.lines.results(results, rows)]
        found = Output(taken.times, taken.places, tuple(evaluate(each, seen, rows) for each in self.columns))
        passed = passing(self.having, seen, rows)
        after = State({"partitions": self.known(keys, slots), "content": left}, {"now": taken.now})
        return after, found if passed is None else found.where(passed)

    def _looped(
        self,
        old: int,
        taken: Taken,
        codes: Ints,
        columns: list[pa.Array],
        keys: int,
        slots: list[np.ndarray],
        results: list[np.ndarray],
    ) -> np.ndarray:
        """The loop, which fills slots and results; which of the rows stay in their windows."""
        alive, rows = np.ones(len(codes), bool), len(codes) - old
        times = np.concatenate([np.zeros(old, np.int64), taken.times])
        at, event, group = (np.empty(rows, np.int64) for _ in range(3))
        given = self.lines.arranged(self.lines.given(columns, len(codes)), codes)
        loop(self._text)(
            old, taken.now, self.size, 0, False, times, codes, codes, alive, *given,
            np.zeros(keys, np.int64), *slots, at, event, group, np.ones(0, np.int8), *results,
        )  # fmt: skip
        return alive


def in_context(plan: Select, context: Context, type: RowType) -> KeyedTotals | KeyedRows | str:
    """The core of aggregates in a keyed context, over the last rows of a partition or over all; or the first reason against."""
    input = plan.inputs[0]
    if not isinstance(input, StreamInput) or not isinstance(input.window, Length):
        return keyed(plan, context, type)
    if plan.where is not None or plan.rate.limited:
        return "where or an output rate over a window, in a context"
    over_all = replace(plan, inputs=(replace(input, window=None),))
    found = keyed(over_all, context, type, held="queue")
    if isinstance(found, str):
        return found
    assert isinstance(found, KeyedRows)
    same = {each.name: getattr(found, each.name) for each in fields(found) if each.init and each.name != "_codes"}
    return KeyedWindows(**same, size=input.window.size, type=type)
