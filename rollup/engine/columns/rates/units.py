"""Groups that have intervals of their own, of which what comes first is shown: whether one has begun, rows that came since, since
when, rows that left since.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.projecting import Made
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.intervals import first_of_units, steps_of

_NAMES = ("seen", "count", "since", "left")


@dataclass(frozen=True)
class Units:
    """The intervals of groups by the numbers of these, of a span or of so many rows (`pace`), one of them 0."""

    table: pa.Table
    pace: tuple[int, int]

    @staticmethod
    def of(columns: Any) -> pa.Table:
        """The table of some groups.

        >>> Units.of([[True], [1], [5], [0]]).column_names
        ['seen', 'count', 'since', 'left']
        """
        kinds = (pa.bool_(), pa.int64(), pa.int64(), pa.int64())
        return pa.table([pa.array(each, kind) for each, kind in zip(columns, kinds, strict=True)], names=_NAMES)

    def waiting(self, now: int) -> Ints:
        """The groups whose next row does not begin an interval anyway; by rows each is waited for."""
        (span, limit), waits = self.pace, self.table["seen"].to_numpy()
        if limit == 0:
            waits = waits & (now - self.table["since"].to_numpy() < span)
        return np.flatnonzero(waits)

    def picked(self, made: Made, begin: int, passes: np.ndarray, by_group: bool, known: int) -> tuple[Ints, pa.Table]:
        """The rows that begin an interval of their group, of so many that are `known`, and the intervals then; `begin`, `passes`
        and `by_group` as in `steps_of`.
        """
        assert made.group is not None
        grown = [np.zeros(known, bool), *(np.zeros(known, np.int64) for _ in range(3))]
        for each, column in zip(grown, self.table.columns, strict=False):  # of earlier states what left was not counted
            each[: len(column)] = column.to_numpy()
        steps = steps_of(made, begin, passes, by_group)
        picks = first_of_units(made.at[steps.row], made.group[steps.row], steps, self.pace, grown)
        return steps.row[picks], self.of(grown)


def renumbered(units: pa.Table, numbers: Ints | None) -> pa.Table:
    """The intervals of the groups that stay, by their new numbers; None: all do."""
    return units if numbers is None else units.filter(pa.array(np.diff(numbers, prepend=-1) > 0))
