"""Aggregate over cells: the open groups of the open windows, and what each batch adds to them.

State: one table, a row a cell, in the order of windows and of first appearance in the window: `window`, the keys, and
the columns that the folds keep.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.evaluate import Columns, arrow, evaluate
from rollup.engine.columns.folds import ADDED, ColumnFold, Slots, fold_of
from rollup.engine.columns.groups import Ints, grouped, joined
from rollup.engine.expressions import Expr, Field
from rollup.engine.folding import AggregateCall
from rollup.engine.types import DataType


@dataclass(frozen=True)
class Aggregate:
    """Calls over the rows of each cell, which has one value of each key.

    Raises PlanError when built with an aggregate that has no fold over columns.
    """

    keys: tuple[Expr, ...]
    calls: tuple[AggregateCall, ...]

    def __post_init__(self) -> None:
        _ = self.folds  # what has none is refused here, and not with the first row

    @cached_property
    def folds(self) -> tuple[ColumnFold, ...]:
        """The fold of each call."""
        return tuple(map(fold_of, self.calls))

    @property
    def types(self) -> tuple[DataType, ...]:
        """The types of the keys and of the values."""
        return (*(key.type for key in self.keys), *(call.type for call in self.calls))

    @cached_property
    def schema(self) -> pa.Schema:
        """The columns of the state."""
        fields = [pa.field("window", pa.int64())]
        fields += [pa.field(f"key{i}", arrow(key.type)) for i, key in enumerate(self.keys)]
        slots = [slot for fold in self.folds for slot in fold.slots()]
        return pa.schema(fields + [pa.field(f"slot{i}", slot) for i, slot in enumerate(slots)])

    def add(
        self, open: pa.Table, rows: Ints | None, windows: Ints, columns: Columns, count: int, alone: bool = False
    ) -> pa.Table:
        """The open cells after rows were added. `windows`: the window of each; `rows`: their places in the columns.

        `rows` None: every row once, in order. `alone`: all rows of a window have the same keys.
        """
        if not len(windows):
            return open
        place = None if rows is None else pa.array(rows)
        old = open.combine_chunks()
        keys = [self._key(key, old.column(1 + i), columns, count, place) for i, key in enumerate(self.keys)]
        together = np.concatenate([old.column("window").to_numpy(), windows])
        groups = grouped(together, [] if alone else keys, open.num_rows)
        first = pa.array(groups.first)
        out = [pa.array(together).take(first)]
        out += [_plain(key.take(first)) for key in keys]
        at, sums = 1 + len(self.keys), dict[object, Slots]()
        for call, fold in zip(self.calls, self.folds, strict=True):
            width, slots = len(fold.slots()), sums.get(call.args)
            if slots is None or not isinstance(fold, ADDED):
                args = [_values(arg, columns, count, place) for arg in call.args]
                slots = fold.fold(groups, [_chunk(old.column(at + i)) for i in range(width)], args)
            if isinstance(fold, ADDED):  # a sum and a mean of the same keep the same
                sums[call.args] = slots
            out += slots
            at += width
        return pa.table(out, schema=self.schema)

    def _key(self, key: Expr, old: pa.ChunkedArray, columns: Columns, count: int, place: pa.Array | None) -> pa.Array:
        return joined(_chunk(old), _values(key, columns, count, place))

    def values(self, cells: pa.Table) -> list[pa.Array]:
        """The keys and the values of cells, as columns."""
        out = [_chunk(cells.column(1 + i)) for i in range(len(self.keys))]
        at = 1 + len(self.keys)
        for call, fold in zip(self.calls, self.folds, strict=True):
            width = len(fold.slots())
            out.append(fold.value([_chunk(cells.column(at + i)) for i in range(width)]).cast(arrow(call.type)))
            at += width
        return out

    def closed(self, open: pa.Table, before: int) -> tuple[pa.Table, pa.Table]:
        """The cells of windows with a number below `before`, and the others."""
        at = int(np.searchsorted(open.column("window").to_numpy(), before))
        return open.slice(0, at), open.slice(at)


def _values(expr: Expr, columns: Columns, count: int, place: pa.Array | None) -> pa.Array:
    # A field stays as it was read, codes of a dictionary included: grouping and first/last take codes as they are.
    value = columns[expr.index] if isinstance(expr, Field) else evaluate(expr, columns, count)
    return value if place is None else value.take(place)


def _chunk(column: pa.ChunkedArray) -> pa.Array:
    whole = column.combine_chunks()
    if isinstance(whole, pa.ChunkedArray):
        return whole.chunk(0) if whole.num_chunks else pa.array([], column.type)
    return whole


def _plain(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
