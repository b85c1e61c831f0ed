"""The order in which a window has its rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from rollup.engine.columns.groups import Ints
from rollup.engine.columns.numbering import ordered


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
        """Room for the places of all rows, with those of the rows held, and their number; `rank`: a number of each row."""
        if content is not self._content:
            rows = np.arange(content.num_rows)
            self._held = rows[np.lexsort([rows if late else ~rows, rank[rows]])]
        placed, held = np.full(len(rank) + 1, -1, np.int64), len(self._held)
        placed[:held] = self._held
        return placed, held

    def keep(self, content: pa.Table, placed: Ints, stays: Ints) -> None:
        """The places after a step, of the rows that stay: the first that are `placed`."""
        moved = np.empty(len(placed), np.int64)
        moved[stays] = np.arange(len(stays))
        self._content, self._held = content, moved[placed[: len(stays)]]


def ranks(values: Sequence[pa.Array], descending: Sequence[bool]) -> np.ndarray:
    """A row of numbers for each row: the rows are in the order of the first, among equal ones of the second, and so on."""
    found = [~places if down else places for places, down in zip(map(ordered, values), descending, strict=True)]
    return found[0].reshape(-1, 1) if len(found) == 1 else np.column_stack(found)
