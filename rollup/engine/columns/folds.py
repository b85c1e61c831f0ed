"""Aggregate functions over cells of columns: the declarations of `rollup.engine.aggregates`, a batch at a time.

A fold keeps a few columns, one value a cell. `fold` takes those of the open cells, followed by the rows of the
batch, and returns them for the cells of both. Doubles are added in the order of arrival. So a sum is bit for bit the one
of an engine that takes one row at a time, however the rows were cut into batches. `FOLDS` has the aggregates with a fold.
Of other aggregates with one argument the values are kept.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pyarrow as pa

from rollup.core.errors import PlanError, QueryError
from rollup.core.untyped import pc
from rollup.engine.aggregates import known
from rollup.engine.columns.groups import Groups, Ints, joined
from rollup.engine.columns.passes import SUMS, compiled
from rollup.engine.columns.sketches import CountsFold, DistinctFold, TopFold
from rollup.engine.expressions import Const, Field
from rollup.engine.folding import AggregateCall, Fold
from rollup.engine.operators import EXACT
from rollup.engine.row import Row
from rollup.engine.types import DataType, Kind

Slots = list[pa.Array]
_HALF = 32


class ColumnFold(Protocol):
    """One aggregate call over cells: what it keeps, and its value."""

    def slots(self) -> list[pa.DataType]:
        """The types of the columns it keeps."""
        ...

    def fold(self, groups: Groups, old: Sequence[pa.Array], args: Sequence[pa.Array]) -> Slots:
        """The columns of all cells, from those of the open cells and the arguments of the batch's rows."""
        ...

    def value(self, slots: Sequence[pa.Array]) -> pa.Array:
        """The value of each cell."""
        ...


class CountFold:
    """The number of rows, or of values that are not null."""

    def __init__(self, types: Sequence[DataType], constants: Sequence[Any]) -> None:
        self._skips = bool(types)

    def slots(self) -> list[pa.DataType]:
        return [pa.int64()]

    def fold(self, groups: Groups, old: Sequence[pa.Array], args: Sequence[pa.Array]) -> Slots:
        return [pa.array(_counted(groups, old[0], args[0] if self._skips else None))]

    def value(self, slots: Sequence[pa.Array]) -> pa.Array:
        return slots[0]


class DoubleSumFold:
    """The sum, or the mean, of doubles."""

    def __init__(self, types: Sequence[DataType], constants: Sequence[Any], mean: bool = False) -> None:
        self._mean = mean

    def slots(self) -> list[pa.DataType]:
        return [pa.int64(), pa.float64()]

    def fold(self, groups: Groups, old: Sequence[pa.Array], args: Sequence[pa.Array]) -> Slots:
        count = _counted(groups, old[0], args[0])
        codes, values = _present(groups.new, args[0])
        places = np.concatenate([groups.old, codes])
        weights = np.concatenate([old[1].to_numpy(), values])
        return [pa.array(count), pa.array(np.bincount(places, weights, groups.size))]

    def value(self, slots: Sequence[pa.Array]) -> pa.Array:
        count = slots[0].to_numpy()
        with np.errstate(all="ignore"):
            value = slots[1].to_numpy() / count if self._mean else slots[1].to_numpy()
        return pa.array(value, mask=count == 0)


class WholeSumFold:
    """The sum, or the mean, of whole numbers: exact at any size, kept in two halves; a sum beyond 64 bits is null."""

    def __init__(self, types: Sequence[DataType], constants: Sequence[Any], mean: bool = False) -> None:
        self._mean = mean

    def slots(self) -> list[pa.DataType]:
        return [pa.int64(), pa.int64(), pa.int64()]

    def fold(self, groups: Groups, old: Sequence[pa.Array], args: Sequence[pa.Array]) -> Slots:
        count = _counted(groups, old[0], args[0])
        codes, values = _present(groups.new, args[0])
        high, low = np.zeros(groups.size, np.int64), np.zeros(groups.size, np.int64)
        high[groups.old], low[groups.old] = old[1].to_numpy(), old[2].to_numpy()
        most = max(abs(int(values.max())), abs(int(values.min()))) if len(values) else 0
        if most * max(len(values), 1) < EXACT:
            one_pass = compiled(SUMS, len(values))
            found = (
                np.bincount(codes, values, groups.size) if one_pass is None else one_pass(codes, values, groups.size)
            )
            low += found.astype(np.int64, copy=False)
        else:
            for at in range(0, len(values), 2**20):  # so few that the halves add up exactly as doubles
                part, cells = values[at : at + 2**20], codes[at : at + 2**20]
                high += np.bincount(cells, part >> _HALF, groups.size).astype(np.int64)
                low += np.bincount(cells, part & (2**_HALF - 1), groups.size).astype(np.int64)
        return [pa.array(count), pa.array(high + (low >> _HALF)), pa.array(low & (2**_HALF - 1))]

    def beyond(self, slots: Sequence[pa.Array]) -> int:
        """How many sums leave 64 bits."""
        high = slots[1].to_numpy()
        return 0 if self._mean else int(((high < -(2 ** (63 - _HALF))) | (high >= 2 ** (63 - _HALF))).sum())

    def value(self, slots: Sequence[pa.Array]) -> pa.Array:
        count, high, low = (slot.to_numpy() for slot in slots)
        fits = (high >= -(2 ** (63 - _HALF))) & (high < 2 ** (63 - _HALF))
        if not self._mean:
            return pa.array((high << _HALF) + low, mask=(count == 0) | ~fits)
        with np.errstate(all="ignore"):
            value = ((high << _HALF) + low) / count
        for place in np.flatnonzero(~fits | (np.abs((high << _HALF) + low) >= EXACT)):
            value[place] = ((int(high[place]) << _HALF) + int(low[place])) / max(int(count[place]), 1)
        return pa.array(value, mask=count == 0)


class EdgeFold:
    """The first or the last value, null or not."""

    def __init__(self, types: Sequence[DataType], constants: Sequence[Any], last: bool = False) -> None:
        self._type, self._last = _arrow(types[0]), last

    def slots(self) -> list[pa.DataType]:
        return [self._type]

    def fold(self, groups: Groups, old: Sequence[pa.Array], args: Sequence[pa.Array]) -> Slots:
        places = groups.last if self._last else groups.first
        return [_decoded(joined(old[0], args[0]).take(pa.array(places)))]

    def value(self, slots: Sequence[pa.Array]) -> pa.Array:
        return slots[0]


class ExtremeFold:
    """The least or the most value; of `by` two arguments, the second of the row whose first is the least or the most."""

    def __init__(self, types: Sequence[DataType], constants: Sequence[Any], most: bool = False) -> None:
        self._types = [_arrow(kind) for kind in types]
        self._most = most

    def slots(self) -> list[pa.DataType]:
        return self._types

    def fold(self, groups: Groups, old: Sequence[pa.Array], args: Sequence[pa.Array]) -> Slots:
        values = [_decoded(joined(o, a)) for o, a in zip(old, args, strict=True)]
        best = self._numbers(groups, values[0]) if len(values) == 1 else None
        if best is not None:
            return [best]
        order = pc.array_sort_indices(values[0], order="descending" if self._most else "ascending").to_numpy()
        order = order[: len(order) - values[0].null_count].astype(np.int64)  # nulls are put at the end
        if len(values) > 1:  # of equal ones the first that came: the sort of texts and numbers is stable
            order = _stable(values[0], order)
        places = np.full(groups.size, -1, np.int64)
        places[groups.codes[order][::-1]] = order[::-1]
        return [value.take(pa.array(places, mask=places < 0)) for value in values]

    def _numbers(self, groups: Groups, values: pa.Array) -> pa.Array | None:
        if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
            return None
        codes, numbers = _present(groups.codes, values)
        floating = numbers.dtype.kind == "f"
        limit = np.inf if floating else np.iinfo(numbers.dtype).max
        low = -np.inf if floating else np.iinfo(numbers.dtype).min
        best = np.full(groups.size, low if self._most else limit, numbers.dtype)
        (np.fmax if self._most else np.fmin).at(best, codes, numbers)
        empty = np.ones(groups.size, bool)
        empty[codes] = False
        return pa.array(best, values.type, mask=empty)

    def value(self, slots: Sequence[pa.Array]) -> pa.Array:
        return slots[-1]


class KeptFold:
    """Any aggregate over one argument, by the lines of its declaration: the values are kept, and folded when asked."""

    def __init__(self, call: AggregateCall) -> None:
        kind = call.args[0].type
        self._argument, self._result = _arrow(kind), _arrow(call.type)
        self._name = call.aggregate.name
        self._fold = Fold([AggregateCall(call.aggregate, (Field(0, 0, kind),))])

    def slots(self) -> list[pa.DataType]:
        return [pa.list_(self._argument)]

    def fold(self, groups: Groups, old: Sequence[pa.Array], args: Sequence[pa.Array]) -> Slots:
        arg = _decoded(args[0])
        valid = pc.is_valid(arg)
        carried = np.repeat(groups.old, np.asarray(pc.list_value_length(old[0])))
        cells = np.concatenate([carried, groups.new[np.asarray(valid)]])
        values = pa.concat_arrays([old[0].flatten(), arg.filter(valid).cast(self._argument)])
        ends = np.cumsum(np.bincount(cells, minlength=groups.size))
        offsets = pa.array(np.concatenate([[0], ends]).astype(np.int32))
        return [pa.ListArray.from_arrays(offsets, values.take(pa.array(np.argsort(cells, kind="stable"))))]

    def value(self, slots: Sequence[pa.Array]) -> pa.Array:
        found = [self._of(values) for values in slots[0].to_pylist()]
        try:
            return pa.array(found, self._result)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError) as problem:
            raise QueryError(f"the aggregate {self._name} gave what is no {self._result}: {problem}") from None

    def _of(self, values: Sequence[Any]) -> Any:
        group = self._fold.start()
        for value in values:
            self._fold.enter(group, (Row(1, (value,)),), None)
        return self._fold.values(group)[0]


def _stable(keys: pa.Array, order: Ints) -> Ints:
    """The same order with equal keys by their place."""
    sorted_keys = keys.take(pa.array(order))
    changes = np.ones(len(order), np.int64)
    if len(order) > 1:
        changes[1:] = np.asarray(pc.not_equal(sorted_keys[1:], sorted_keys[:-1]))
    return order[np.lexsort((order, np.cumsum(changes)))]


def _counted(groups: Groups, old: pa.Array, values: pa.Array | None) -> Ints:
    if values is not None and values.null_count:
        count = np.bincount(groups.new[np.asarray(pc.is_valid(values))], minlength=groups.size)
    else:
        count = groups.sizes.copy()
    count[groups.old] += old.to_numpy()
    return count


def _present(codes: Ints, values: pa.Array) -> tuple[Ints, Any]:
    """The cells and the values of the rows that are not null."""
    if not values.null_count:
        return codes, values.to_numpy(zero_copy_only=False)
    return codes[np.asarray(pc.is_valid(values))], values.drop_null().to_numpy(zero_copy_only=False)


def _decoded(array: pa.Array) -> pa.Array:
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array


def _arrow(kind: DataType) -> pa.DataType:
    return kind.arrow or pa.string()


def _number(
    whole: Callable[..., ColumnFold], double: Callable[..., ColumnFold], mean: bool
) -> Callable[..., ColumnFold]:
    def build(types: Sequence[DataType], constants: Sequence[Any]) -> ColumnFold:
        return (double if types[0].kind in (Kind.FLOAT, Kind.DOUBLE) else whole)(types, constants, mean)

    return build


ADDED = (DoubleSumFold, WholeSumFold)
"""Folds whose slots are those of the same arguments whether a sum is wanted or a mean."""
FOLDS: Mapping[str, Callable[[Sequence[DataType], Sequence[Any]], ColumnFold]] = {
    known.COUNT.name: CountFold,
    known.SUM.name: _number(WholeSumFold, DoubleSumFold, mean=False),
    known.AVG.name: _number(WholeSumFold, DoubleSumFold, mean=True),
    known.FIRST_EVER.name: EdgeFold,
    known.LAST_EVER.name: lambda types, constants: EdgeFold(types, constants, last=True),
    known.MINEVER.name: ExtremeFold,
    known.MAXEVER.name: lambda types, constants: ExtremeFold(types, constants, most=True),
    known.LEAST_BY.name: ExtremeFold,
    known.MOST_BY.name: lambda types, constants: ExtremeFold(types, constants, most=True),
    known.DISTINCT_COUNT.name: DistinctFold,
    known.HLL.name: CountsFold,
    known.CMS.name: TopFold,
    known.CMS_OF.name: TopFold,
}
"""The fold of each aggregate that has one, built from the types of its arguments and those of them that are constants."""


def fold_of(call: AggregateCall) -> ColumnFold:
    """The fold of a call. Raises PlanError for one that cannot be computed over columns."""
    aggregate, args = call.aggregate, call.args
    if call.distinct or call.where is not None or (aggregate.name not in FOLDS and aggregate.arguments != (1, 1)):
        raise PlanError(f"{aggregate.name} cannot be computed over columns")
    if aggregate.name not in FOLDS:
        return KeptFold(call)
    return FOLDS[aggregate.name](
        [arg.type for arg in args], [arg.value if isinstance(arg, Const) else None for arg in args]
    )
