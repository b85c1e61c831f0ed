"""The inner join of two windows that keep their rows in order of arrival: each side's rows by their key, kept up to date
by what comes and leaves, so that a change costs what it brings and not what the windows hold.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from rollup.engine.compiling import compiled_row, predicate
from rollup.engine.conjunctions import conjuncts
from rollup.engine.expressions import Expr
from rollup.engine.row import Delta, Row, Rows
from rollup.engine.rows.plans import Input, StreamInput
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.selects.joining import JoinSpec, equality
from rollup.engine.rows.windows.counted import KeepAll, Length
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import Kind

Bucket = dict[int, Row]
_EXACT = (Kind.STRING, Kind.INT, Kind.LONG, Kind.BOOL)
"""Of these, values are equal where `=` says so: no value differs from itself."""


def pairs(inputs: Sequence[Input], spec: JoinSpec | None, where: Expr | None, e: Environment) -> Pairs | None:
    """The pairs of a join that can be kept so; None for another."""
    if spec is None or spec.only is not None or len(inputs) != 2 or spec.sides[0].kind != "inner":
        return None
    kept = all(isinstance(each, StreamInput) and isinstance(each.window, (Length, KeepAll, Time)) for each in inputs)
    return Pairs(spec.sides[0].condition, where, e) if kept else None


class Pairs:
    """Both sides by the fields that a pair has in common; what else the condition says is tested on each pair."""

    def __init__(self, condition: Expr | None, where: Expr | None, environment: Environment) -> None:
        parts = (*conjuncts(condition), *conjuncts(where))
        found = [pair for part in parts if (pair := equality(part, 1)) is not None]
        self._keys = compiled_row([left for left, _ in found]), compiled_row([right for _, right in found])
        self.exact = len(found) == len(parts) and all(each.type.kind in _EXACT for pair in found for each in pair)
        """Whether rows of one key are pairs by that alone, and no condition has to be asked."""
        self._test = predicate(condition) if condition is not None and not self.exact else None
        self._environment = environment
        self._sides: tuple[dict[Any, Bucket], dict[Any, Bucket]] = ({}, {})

    def fill(self, place: int, rows: Iterable[Row]) -> None:
        """Rows that a window holds already."""
        side = self._sides[place]
        for row in rows:
            key = self._key(place, row)
            if None not in key:  # which equals nothing
                side.setdefault(key, {})[row.id] = row

    def change(self, deltas: Mapping[int, Delta], leaving: bool = True) -> tuple[list[Rows], list[Rows]]:
        """The pairs that come and that leave; the latter only if somebody wants them: `leaving`."""
        for place, delta in deltas.items():
            self.fill(place, delta.new)
            for row in delta.old:
                self._drop(place, row)
        came = {place: delta.new for place, delta in deltas.items() if delta.new}
        left = {place: delta.old for place, delta in deltas.items() if delta.old}
        new = self._pairs(came, self._held) if came else []
        if not leaving:
            return new, []
        return new, self._pairs(left, lambda place, key: self._before(deltas.get(place), place, key)) if left else []

    def _key(self, place: int, row: Row) -> tuple[Any, ...]:
        return self._keys[place]((row, row), (), self._environment)

    def _drop(self, place: int, row: Row) -> None:
        key = self._key(place, row)
        bucket = self._sides[place].get(key)
        if bucket is not None:
            bucket.pop(row.id, None)
            if not bucket:
                del self._sides[place][key]

    def _held(self, place: int, key: Any) -> Iterable[Row]:
        bucket = self._sides[place].get(key)
        return () if bucket is None else bucket.values()

    def _before(self, delta: Delta | None, place: int, key: Any) -> Iterable[Row]:
        """What a side held of a key before it changed."""
        held = self._held(place, key)
        if not delta:
            return held
        came = {row.id for row in delta.new}
        gone = (row for row in delta.old if row.id not in came and self._key(place, row) == key)
        return [*(row for row in held if row.id not in came), *gone]

    def _pairs(self, moved: Mapping[int, Sequence[Row]], partners: Callable[[int, Any], Iterable[Row]]) -> list[Rows]:
        found: dict[tuple[int, int], Rows] = {}
        test, e = self._test, self._environment
        for place, rows in moved.items():
            for row in rows:
                key = self._key(place, row)
                for other in partners(1 - place, key) if None not in key else ():
                    pair = (row, other) if place == 0 else (other, row)
                    if test is None or test(pair, (), e):
                        found.setdefault((pair[0].id, pair[1].id), pair)
        return list(found.values())
