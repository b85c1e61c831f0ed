"""Statements of a row a row over `keepall`: those without a window, and the rows, which all stay to be shown.

State: that of the statement without a window; `stays`, the fields of the rows, in the order in which they came.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Self

import pyarrow as pa

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.projecting import FilterProject, Made, Taken, filter_project
from rollup.engine.columns.evaluate import carried, plain
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.state import State
from rollup.engine.types import RowType

_PIECES = 64
"""How many pieces rows may consist of before some are put together."""


def behind(held: pa.Table, columns: Sequence[pa.Array]) -> pa.Table:
    """Rows, and behind them those of some columns. Where they are in too many pieces, the last ones become one, so many of these
    that the piece before is longer: a row is copied no more often than the logarithm of their number.

    >>> table = pa.table({"n": [1, 2]})
    >>> behind(table, [pa.array([3])]).column("n").to_pylist()
    [1, 2, 3]
    """
    found = pa.concat_tables([held, pa.table([plain(column) for column in columns], schema=held.schema)])
    lengths = [len(piece) for piece in found.column(0).chunks] if found.num_columns else []
    if len(lengths) <= _PIECES:
        return found
    place, rest = len(lengths) - 1, 0
    while place > 0 and lengths[place - 1] <= rest + lengths[place]:
        rest += lengths[place]
        place -= 1
    begin = sum(lengths[:place])
    return pa.concat_tables([found.slice(0, begin), found.slice(begin).combine_chunks()])


@dataclass(frozen=True, kw_only=True)
class _Staying:
    """The rows of a stream of `type` that stay."""

    type: RowType

    def holding(self, state: State, rows: pa.Table) -> State:
        """A state of the statement without a window, and the rows."""
        kinds = [pa.field(f"field{place}", carried(kind)) for place, kind in enumerate(self.type.fields.values())]
        return State({**state.tables, "stays": pa.table(rows.columns, schema=pa.schema(kinds))}, state.scalars)

    def _begun(self, state: State) -> State:
        nothing = [pa.array([], carried(kind)) for kind in self.type.fields.values()]
        return self.holding(state, pa.table(nothing, names=[str(place) for place in range(len(nothing))]))

    @staticmethod
    def _come(before: State, after: State, taken: Taken) -> State:
        """The state after a step, in which these came."""
        return State({**after.tables, "stays": behind(before.tables["stays"], taken.columns)}, after.scalars)


@dataclass(frozen=True, kw_only=True)
class KeepingEach(_Staying, FilterProject):
    """Filter and project."""

    def start(self, now: int) -> State:
        """No rows."""
        return self._begun(super().start(now))

    def made(self, state: State, taken: Taken) -> tuple[State, Made]:
        """The rows before they are projected."""
        after, made = super().made(state, taken)
        return self._come(state, after, taken), made


@dataclass(frozen=True, kw_only=True)
class KeepingFolded(_Staying, Folded):
    """With aggregates."""

    @classmethod
    def of(cls, core: Folded, type: RowType) -> Self:
        """The same of a core."""
        given = {each.name: getattr(core, each.name) for each in fields(core) if each.init}
        return cls(**given, type=type)

    def start(self, now: int) -> State:
        """No rows."""
        return self._begun(super().start(now))

    def made(self, state: State, taken: Taken) -> tuple[State, Made]:
        """The rows before they are projected."""
        after, made = super().made(state, taken)
        return self._come(state, after, taken), made


def keeping(plan: Select, type: RowType) -> KeepingEach | str:
    """The core of a statement over `keepall` without aggregates, or the first reason against it."""
    (input,) = plan.inputs
    assert isinstance(input, StreamInput)
    core = filter_project(replace(plan, inputs=(replace(input, window=None),)))
    if isinstance(core, str):
        return core
    if not type.fields:
        return "events without fields that stay"
    return KeepingEach(core.filter, core.projection, core.where, type=type)
