"""The join of what comes with the rows of a store, which are found by what the condition says they equal: a row costs the same
however many the store holds."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from rollup.engine.compiling import predicate
from rollup.engine.expressions import All, Expr
from rollup.engine.row import NOTHING, Delta, Row, Rows
from rollup.engine.rows.keyed import ByKey
from rollup.engine.rows.plans import Input, StoreInput
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.selects.joining import WHOLE, JoinSpec, Side

HeldFor = Callable[[int, ByKey, Rows], Sequence[Row]]
"""The rows that an input holds, without those that cannot fulfil a condition over these rows and them."""


def seeking(inputs: Sequence[Input], spec: JoinSpec | None, where: Expr | None, e: Environment) -> Seeking | None:
    """The combinations of a join of two where a store's changes bring nothing about; None for another."""
    if spec is None or len(inputs) != 2:
        return None
    for place in (1, 0):
        store = inputs[place]
        if isinstance(store, StoreInput) and (not store.follow or spec.only == 1 - place):
            return Seeking(place, spec.sides[0], where, spec.only is None, e)
    return None


class Seeking:
    """The combinations of rows with those of the store, which is the input at `store`."""

    def __init__(self, store: int, side: Side, where: Expr | None, leaving: bool, environment: Environment) -> None:
        self.store, self._leaving, self._environment = store, leaving, environment
        self._whole = side.kind in WHOLE[1 - store]
        self._test = predicate(side.condition) if side.condition is not None else None
        asked = (side.condition, where) if side.kind == "inner" else (side.condition,)
        self._by_key = ByKey(All(tuple(each for each in asked if each is not None)), store)

    def change(self, deltas: Mapping[int, Delta], held_for: HeldFor) -> tuple[list[Rows], list[Rows]]:
        """The combinations that come and that leave."""
        moved = deltas.get(1 - self.store, NOTHING)
        new = [r for row in moved.new for r in self._of(row, held_for)]
        return new, [r for row in moved.old for r in self._of(row, held_for)] if self._leaving else []

    def _of(self, row: Row, held_for: HeldFor) -> Sequence[Rows]:
        test, e = self._test, self._environment
        if self.store:
            found: list[Rows] = [(row, other) for other in held_for(1, self._by_key, (row,))]
        else:
            found = [(other, row) for other in held_for(0, self._by_key, (None, row))]
        if test is not None:
            found = [r for r in found if test(r, (), e)]
        return found or self._alone(row)

    def _alone(self, row: Row) -> Sequence[Rows]:
        """The combinations of a row without a partner."""
        return [(row, None) if self.store else (None, row)] if self._whole else ()
