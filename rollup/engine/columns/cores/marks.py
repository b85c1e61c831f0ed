"""Numbers by which windows tell rows apart, or put them in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.keys import PairCodes, RowCodes
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.numbering import ordered

Values = Callable[[int], Sequence[pa.Array]]
"""The values of each key, of the rows from one on."""
_FORGOTTEN = 65_536
"""So many keys that no row has any more may be known."""


class Marks:
    """Numbers of rows that are equal where all their keys are, below `room`. Those of the rows that a state holds are kept at
    hand for the step after it.

    >>> marks, held = Marks(), pa.table({"time": [1, 2]})
    >>> marks.of(held, lambda begin: [pa.array(["b", "a", "b"])[begin:]]).tolist(), marks.room
    ([0, 1, 0], 2)
    """

    def __init__(self) -> None:
        self._content: pa.Table | None = None
        self._held = np.empty(0, np.int64)
        self._codes: RowCodes | PairCodes = RowCodes()
        self.room = 0

    def of(self, content: pa.Table, values: Values) -> Ints:
        """The number of each row that is held and of each arrival."""
        if content is not self._content or self.room > content.num_rows + _FORGOTTEN:
            self._held, self.room = np.empty(0, np.int64), 0
            kinds = [each.type for each in values(0)]
            self._codes = PairCodes() if len(kinds) == 1 and _narrow(kinds[0]) else RowCodes()
        return np.concatenate([self._held, self._numbers(values(len(self._held)))])

    def keep(self, content: pa.Table, numbers: Ints) -> None:
        """The numbers of the rows that are held after a step."""
        self._content, self._held = content, numbers

    def _numbers(self, values: Sequence[pa.Array]) -> Ints:
        if isinstance(self._codes, PairCodes):
            found = self._codes.codes(ordered(values[0]))[0]
        else:
            columns = [pa.array(ordered(each)) if pa.types.is_floating(each.type) else each for each in values]
            found = self._codes.codes(pa.StructArray.from_arrays(columns, [str(i) for i in range(len(columns))]))[0]
        self.room = max(self.room, int(found.max(initial=-1)) + 1)
        return found


class Order:
    """The places of rows in the order of their ranks; of equal ones the newest is the first, or the last if `late`. Those of the
    rows that a state holds are kept at hand for the step after it, so that a step does not put them in order again.

    >>> order, held = Order(), pa.table({"time": [1, 2, 3]})
    >>> places, rows = order.of(held, np.array([5, 4, 5, 1]), False)
    >>> places[:rows].tolist(), len(places)
    ([1, 2, 0], 5)
    """

    def __init__(self) -> None:
        self._content: pa.Table | None = None
        self._held = np.empty(0, np.int64)

    def of(self, content: pa.Table, rank: np.ndarray, late: bool) -> tuple[Ints, int]:
        """Room for the places of all rows, with those of the rows held, and their number; `rank`: a number of each row, or
        several.
        """
        if content is not self._content:
            rows = np.arange(content.num_rows)
            by = [rows if late else ~rows, *np.atleast_2d(rank[rows].T)[::-1]]  # the last counts most
            self._held = rows[np.lexsort(by)]
        placed, held = np.full(len(rank) + 1, -1, np.int64), len(self._held)
        placed[:held] = self._held
        return placed, held

    def keep(self, content: pa.Table, placed: Ints, stays: Ints) -> None:
        """The places after a step, of the rows that stay: the first that are `placed`."""
        moved = np.empty(len(placed), np.int64)
        moved[stays] = np.arange(len(stays))
        self._content, self._held = content, moved[placed[: len(stays)]]


def _narrow(kind: pa.DataType) -> bool:
    """Whether the numbers in which values stand do not depend on the other values."""
    return pa.types.is_floating(kind) or (pa.types.is_integer(kind) and kind.bit_width < 64)


def ranks(values: Sequence[pa.Array], descending: Sequence[bool]) -> np.ndarray:
    """A row of numbers for each row: the rows are in the order of the first, among equal ones of the second, and so on."""
    found = [~places if down else places for places, down in zip(map(ordered, values), descending, strict=True)]
    return found[0].reshape(-1, 1) if len(found) == 1 else np.column_stack(found)
