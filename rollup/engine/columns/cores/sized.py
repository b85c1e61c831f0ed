"""The number of rows in a window, and properties of the newest of them, shown whenever the number is another one.

State: as of a total over that window; and `last`, the row that was shown last.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.over_stream import over_stream
from rollup.engine.columns.cores.projecting import Made
from rollup.engine.rows.plans import Emitted, Select
from rollup.engine.state import State
from rollup.engine.types import RowType


@dataclass(frozen=True, kw_only=True)
class Sized(Folded):
    """A total, of which those rows are left whose first value differs from that of the row before, which leaves by them; `tells`
    which of these are shown.
    """

    tells: Emitted

    def start(self, now: int) -> State:
        """An empty window, and the row of no rows."""
        state = super().start(now)
        return State({**state.tables, "last": self._table(self.nothing())}, state.scalars)

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The rows that are left."""
        total, made = self.made(state, self.taken(state, batch))
        last = list(map(whole, state.tables["last"].columns))
        sizes = np.concatenate([last[0].to_numpy(), made.columns[0].to_numpy()])
        left = made.at_places(np.flatnonzero(np.diff(sizes)))
        shown = [pa.concat_arrays([old, new]) for old, new in zip(last, left.columns, strict=True)]
        after = State({**total.tables, "last": self._table([each[-1:] for each in shown])}, total.scalars)
        told = left if self.tells == "new" else _paired(left, shown)
        return after, told.output(self.projection).emitted(self.tells)

    def having(self, total: State, last: Sequence[Any] | None) -> State:
        """The state where the total has one, and a row of these values (None: of no rows) was shown last."""
        nothing = self.nothing()
        values = nothing if last is None else [pa.array([v], of.type) for v, of in zip(last, nothing, strict=True)]
        return State({**total.tables, "last": self._table(values)}, total.scalars)

    @staticmethod
    def _table(values: Sequence[pa.Array]) -> pa.Table:
        return pa.table(list(values), names=[f"value{i}" for i in range(len(values))])


def _paired(made: Made, shown: Sequence[pa.Array]) -> Made:
    """Some rows, each with the one shown before it, which leaves; `shown`: that before the first, and these."""
    rows = np.arange(len(made.at)).repeat(2)
    sign = np.tile(np.array([1, -1], np.int8), len(made.at))
    columns = [each.take(pa.array(rows + (sign > 0))) for each in shown]
    assert made.event is not None
    return Made(made.taken, made.at[rows], made.event[rows], columns, sign)


def sized(plan: Select, emitted: Emitted, stream: RowType) -> Sized | str:
    """The core of a statement over the number of rows in a window, from that of the total; or the first reason against it."""
    total = over_stream(plan, stream)
    if not isinstance(total, Folded):
        return total if isinstance(total, str) else "a number of rows without a total"
    return Sized(
        total.filter, total.where, total.window, total.keys, total.calls, total.by_group, total.projection, total.width,
        tells=emitted,
    )  # fmt: skip
