"""Distinct counts and frequencies over cells: exact for a few thousand values of a cell, then estimates of bounded size.

Both estimates are functions of what was seen and not of its order or its cut into batches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.aggregates import sketches
from rollup.engine.columns.groups import Groups, key_codes
from rollup.engine.types import DataType


class _Values:
    """For each cell a list of its different values with how often each came, or the state of a sketch in its place."""

    def __init__(self, types: Sequence[DataType], constants: Sequence[Any]) -> None:
        self._type = types[0].arrow or pa.string()

    def slots(self) -> list[pa.DataType]:
        return [pa.list_(self._type), pa.list_(pa.int64()), pa.binary()]

    def fold(self, groups: Groups, old: Sequence[pa.Array], args: Sequence[pa.Array]) -> list[pa.Array]:
        codes, values, counts = self._all(groups, old, args[0])
        numbers, size = key_codes(values)
        pairs, place, inverse = np.unique(codes * max(size, 1) + numbers, return_index=True, return_inverse=True)
        summed = np.bincount(inverse, counts, len(pairs)).astype(np.int64)
        order = np.lexsort((place, codes[place]))  # values in the order in which they first came
        cells, taken, summed = codes[place][order], place[order], summed[order]
        kept_sketches = self._sketches(groups, old[2])
        lengths = np.bincount(cells, minlength=groups.size)
        large = lengths > self._limit()
        large[[cell for cell, sketch in enumerate(kept_sketches) if sketch is not None]] = True
        if large.any():
            self._overflow(large, kept_sketches, cells, values.take(pa.array(taken)), summed)
            keep = ~large[cells]
            cells, taken, summed = cells[keep], taken[keep], summed[keep]
            lengths = np.bincount(cells, minlength=groups.size)
        offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]).astype(np.int32))
        kept = values.take(pa.array(taken)).cast(self._type)
        return [
            pa.ListArray.from_arrays(offsets, kept),
            pa.ListArray.from_arrays(offsets, pa.array(summed)),
            pa.array(kept_sketches, pa.binary()),
        ]

    def _all(self, groups: Groups, old: Sequence[pa.Array], arg: pa.Array) -> tuple[Any, pa.Array, Any]:
        arg = arg.dictionary_decode() if pa.types.is_dictionary(arg.type) else arg
        valid = np.asarray(pc.is_valid(arg))
        carried = np.repeat(groups.old, np.asarray(pc.list_value_length(old[0])))
        values = pa.concat_arrays([old[0].flatten(), arg.filter(pa.array(valid)).cast(self._type)])
        new = groups.new[valid]
        counts = np.concatenate([old[1].flatten().to_numpy(), np.ones(len(new), np.int64)])
        return np.concatenate([carried, new]), values, counts

    def _sketches(self, groups: Groups, old: pa.Array) -> list[bytes | None]:
        found: list[bytes | None] = [None] * groups.size
        for cell, sketch in zip(groups.old.tolist(), old.to_pylist(), strict=True):
            found[cell] = sketch
        return found

    def _limit(self) -> int:
        return sketches.EXACT

    def _overflow(self, large: Any, found: list[bytes | None], cells: Any, values: pa.Array, counts: Any) -> None:
        for cell in np.flatnonzero(large).tolist():
            mine = np.flatnonzero(cells == cell)
            found[cell] = self._sketched(found[cell], values.take(pa.array(mine)).to_pylist(), counts[mine].tolist())

    def _sketched(self, sketch: bytes | None, values: Sequence[Any], counts: Sequence[int]) -> bytes:
        raise NotImplementedError

    def value(self, slots: Sequence[pa.Array]) -> pa.Array:
        """The number of values; sketches are asked one by one."""
        lengths = pc.fill_null(pc.list_value_length(slots[0]), 0).cast(pa.int64())
        return self._with_sketches(lengths.to_numpy(zero_copy_only=False).copy(), slots[2], self._estimate)

    def _with_sketches(self, value: Any, found: pa.Array, ask: Callable[[bytes], int]) -> pa.Array:
        if found.null_count < len(found):
            for cell, sketch in enumerate(found.to_pylist()):
                if sketch is not None:
                    value[cell] = ask(sketch)
        return pa.array(value, pa.int64())

    def _estimate(self, sketch: bytes) -> int:
        raise NotImplementedError


class DistinctFold(_Values):
    """The exact number of different values."""

    def _limit(self) -> int:
        return 2**62


class CountsFold(_Values):
    """The number of different values: exact, then a HyperLogLog estimate well within 2 %."""

    def _sketched(self, sketch: bytes | None, values: Sequence[Any], counts: Sequence[int]) -> bytes:
        return sketches.sketched(sketch, values)

    def _estimate(self, sketch: bytes) -> int:
        return sketches.estimate(sketch)


class TopFold(_Values):
    """How often the most frequent value came, or a given one: exact, then a count-min estimate, never below the truth."""

    def __init__(self, types: Sequence[DataType], constants: Sequence[Any]) -> None:
        super().__init__(types, constants)
        self._of = constants[1] if len(constants) > 1 else None
        self._asked = len(types) > 1

    def value(self, slots: Sequence[pa.Array]) -> pa.Array:
        value = np.zeros(len(slots[0]), np.int64)
        cells = np.repeat(np.arange(len(value)), np.asarray(pc.fill_null(pc.list_value_length(slots[0]), 0)))
        counts = slots[1].flatten().to_numpy()
        if self._asked:
            match = np.asarray(pc.equal(slots[0].flatten(), pa.scalar(self._of, self._type)))
            cells, counts = cells[match], counts[match]
        np.maximum.at(value, cells, counts)
        return self._with_sketches(value, slots[2], self._estimate)

    def _sketched(self, sketch: bytes | None, values: Sequence[Any], counts: Sequence[int]) -> bytes:
        return sketches.counted(sketch, values, counts)

    def _estimate(self, sketch: bytes) -> int:
        return sketches.frequency(sketch, self._of) if self._asked else sketches.top_frequency(sketch)
