"""What a comparison with all or any of the values of groups asks of them: how many groups there are, how many of their values
are no null, how many of these are numbers, and the least or greatest of those, after each change of a group.

State: of the groups that there are (table `there`) keys and value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.evaluate import plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.columns.numbering import told_apart, valid

ANSWERS = 4
"""How many things are told."""
_CHANGES = """
def core(size, codes, values, kinds, least, rows, known, numbers, best, ok):
    tree = np.full(2 * size, -1, np.int64)
    value, kind = np.zeros(size, values.dtype), np.zeros(size, np.int64)
    there, valid, finite = 0, 0, 0
    for i in range(len(codes)):
        code, new = codes[i], kinds[i]
        old = kind[code]
        there += int(new > 0) - int(old > 0)
        valid += int(new > 1) - int(old > 1)
        finite += int(new > 2) - int(old > 2)
        value[code], kind[code] = values[i], new
        if new > 2 or old > 2:
            place = size + code
            tree[place] = code if new > 2 else -1
            while place > 1:
                place //= 2
                left, right = tree[2 * place], tree[2 * place + 1]
                if left < 0 or right < 0:
                    tree[place] = max(left, right)
                elif least:
                    tree[place] = left if value[left] <= value[right] else right
                else:
                    tree[place] = left if value[left] >= value[right] else right
        rows[i], known[i], numbers[i], ok[i] = there, valid, finite, tree[1] >= 0
        if ok[i]:
            best[i] = value[tree[1]]
"""
"""Changes of groups, one after the other; of what `kinds` a value is: none (0: the group is gone), null, no number, a number. The
best of each pair of groups is kept, and of each pair of those."""


@dataclass(frozen=True)
class OfGroups:
    """Changes of groups, each `keys` columns, the value and whether there is the group; `least`: the least of the values counts."""

    keys: int
    least: bool

    def step(self, there: pa.Table, changes: Sequence[pa.Array]) -> tuple[list[pa.Array], pa.Table]:
        """The answers after each change, and the groups that there are then; `there`: those before."""
        held, *together = there.num_rows, *zip(there.columns, changes[:-1], strict=True)
        *keys, value = (pa.concat_arrays([*known.chunks, plain(new).cast(known.type)]) for known, new in together)
        exists = np.concatenate([np.ones(held, bool), changes[-1].to_numpy(zero_copy_only=False)])
        codes = told_apart(keys, np.zeros(len(exists), np.int64))
        answers = self._answers(codes, value, exists)
        last = np.zeros(int(codes.max(initial=-1)) + 1, np.int64)
        last[codes] = np.arange(len(codes))
        stays = pa.array(last[exists[last]])
        kept = [each.take(stays) for each in (*keys, value)]
        return [each[held:] for each in answers], pa.table(kept, schema=there.schema)

    def _answers(self, codes: Ints, value: pa.Array, exists: np.ndarray) -> list[pa.Array]:
        values = pc.fill_null(value, 0).to_numpy(zero_copy_only=False)
        kinds = np.where(exists, 1 + valid(value) * (1 + (values == values)), 0).astype(np.int64)
        size = 1 << max(int(codes.max(initial=0)), 1).bit_length()
        rows, known, numbers = (np.empty(len(codes), np.int64) for _ in range(3))
        best, ok = np.zeros(len(codes), values.dtype), np.empty(len(codes), bool)
        loop(_CHANGES)(size, codes, values, kinds, self.least, rows, known, numbers, best, ok)
        return [pa.array(rows), pa.array(known), pa.array(numbers), pa.array(best, mask=~ok)]
