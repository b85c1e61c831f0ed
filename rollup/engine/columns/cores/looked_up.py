"""Aggregates whose value is that of a row of the window and no number: a loop finds the row, and the value is looked up in it.

So it is with the least and the greatest of texts, with the ends of anything but numbers, with the row that stands first by some
of its values, and with the list of all values. Cores must hold the rows of the window whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.aggregates import known
from rollup.engine.columns.cores.covering import against, first, wide
from rollup.engine.columns.cores.marks import ranks
from rollup.engine.columns.evaluate import Columns, carried, evaluate, flags, passing
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Expr, RowOf, children
from rollup.engine.folding import AggregateCall, Fold, Group
from rollup.engine.row import Row
from rollup.engine.types import DataType, Kind

EXTREMES = (known.MIN.name, known.MAX.name)
NUMBERS = (Kind.DOUBLE, Kind.INT, Kind.LONG)
"""The kinds of values that a loop is given as they are."""
_ORDERED = (*NUMBERS, Kind.STRING)


@dataclass(frozen=True)
class Order:
    """By what rows are put in order, as an argument of a call: the loop is given numbers, the least of which stands first.

    `skips`: a row whose value is null does not stand in it; else null is below all. `where` says which rows stand in it.
    """

    by: tuple[Expr, ...]
    descending: tuple[bool, ...]
    skips: bool = False
    where: Expr | None = None

    def arrays(self, columns: Columns, rows: int) -> tuple[Ints, np.ndarray]:
        """The numbers, equal where the values are, and which rows stand in the order."""
        values = [evaluate(each, columns, rows) for each in self.by]
        found, there = ranks(values, self.descending), flags(passing(self.where, columns, rows), rows)
        if self.skips and values[0].null_count:
            there = pc.is_valid(values[0]).to_numpy(zero_copy_only=False)
        together = found[:, 0] if len(values) == 1 else np.unique(found, axis=0, return_inverse=True)[1]
        return np.ascontiguousarray(together, np.int64), there


def looked_up(call: AggregateCall) -> bool:
    """Whether the value of a call is looked up in a row that a loop finds."""
    found = call.aggregate.foremost is not None or standing(call) or call.aggregate.name in EXTREMES
    return found and call.type.kind not in NUMBERS


def standing(call: AggregateCall) -> bool:
    """Whether the value of a call is of the rows as they stand one after the other."""
    return call.aggregate.at is not None or call.aggregate.listed


def skipping(call: AggregateCall) -> bool:
    """Whether rows of which a call's value is null have no place among those that stand; a row itself is no null."""
    return call.aggregate.skips and not isinstance(call.args[-1], RowOf)


def foremost(call: AggregateCall) -> Order:
    """The order in which the row stands first whose value a call has."""
    if call.aggregate.foremost is not None:
        return Order(children(call.args[1]), call.aggregate.foremost, where=call.where)
    return Order(call.args, (call.aggregate.name == known.MAX.name,), True)


def against_looking_up(call: AggregateCall, whole: bool, in_order: bool) -> str | None:
    """The first reason against a call whose value is looked up; `whole`: rows are held whole; `in_order`: they leave as they came."""
    name, end = call.aggregate.name, standing(call)
    if not whole or call.distinct or not (call.aggregate.at is not None or in_order):
        plain = call.aggregate.foremost is None and not call.aggregate.listed
        return f"{name} of {call.args[-1].type}" if plain else f"the aggregate {name}"
    if call.aggregate.listed and call.aggregate.foremost is not None:
        return f"the aggregate {name}"
    if call.where is not None and call.aggregate.listed:
        return f"the aggregate {name} with a filter"
    by = () if end and call.aggregate.foremost is None else foremost(call).by
    value = call.args[-1]
    if isinstance(value, RowOf) and value.input:
        return f"the aggregate {name} of a row of several"
    unknown = (None if each.type.kind in _ORDERED else f"{name} by {each.type}" for each in by)
    read = by if isinstance(value, RowOf) else (*by, value)
    return against(call.where) or first((*unknown, *(against(each) or wide(each) for each in read)))


def looked_up_in(call: AggregateCall, places: pa.Array, columns: Columns, codes: Ints) -> pa.Array:
    """The values of a call in the rows at some places; of rows the values are looked up only where they are shown. `codes`: the
    groups of all rows.
    """
    rows = len(codes)
    order = np.argsort(codes, kind="stable") if call.aggregate.listed else None
    taken = places if order is None else pa.array(order)
    if (row := call.args[-1].type.row) is None:
        values = _lazily(taken, evaluate(call.args[-1], columns, rows))
    else:
        fields = [_lazily(taken, column) for column in columns[: len(row.fields)]]
        values = pa.StructArray.from_arrays(
            fields, list(row.fields), mask=taken.is_null() if taken.null_count else None
        )
    return values if order is None else _lists(places, values, order)


def _lists(places: pa.StructArray, values: pa.Array, order: Ints) -> pa.Array:
    """Lists of so many values from a row on; the values are in order of their groups, where they are one behind the other."""
    standing = np.empty(len(order), np.int32)
    standing[order] = np.arange(len(order), dtype=np.int32)
    begin, count = (each.to_numpy() for each in places.flatten())
    sizes, missing = pa.array(count, pa.int32()), pa.array(count == 0)
    return pa.ListViewArray.from_arrays(pa.array(standing[begin]), sizes, values, mask=missing)


def _lazily(places: pa.Array, values: pa.Array) -> pa.Array:
    return pa.nulls(len(places)) if pa.types.is_null(values.type) else pa.DictionaryArray.from_arrays(places, values)


def nothing(kind: DataType) -> pa.Array:
    """The value of a call that has none, as a column of one row."""
    return pa.nulls(1, _held(kind))


def _held(kind: DataType) -> pa.DataType:
    if kind.element is not None:
        return pa.list_view(_held(kind.element))
    if kind.row is None:
        return carried(kind)
    return pa.struct([pa.field(name, carried(each)) for name, each in kind.row.fields.items()])


def enter_rows(call: AggregateCall, begin: int, groups: Sequence[Group], rows: Iterator[tuple[int, Row]]) -> None:
    """Rows enter groups of the row executor, each the one of its number, where the slots of a call begin at a place; in a partition
    they have its number behind their fields.
    """
    fold, end = Fold((call,)), begin + len(call.aggregate.slots)
    width = None if (kind := call.args[-1].type.row) is None else len(kind.fields)
    for number, row in rows:
        own = groups[number][begin:end]
        fold.enter(own, (Row(row.id, row.values[:width]),), None)
        groups[number][begin:end] = own
