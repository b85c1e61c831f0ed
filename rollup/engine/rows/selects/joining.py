"""Joins: which combinations of rows a change of the inputs makes and unmakes.

The combinations of a row are those of the whole join in which it stands. So an outer join gives null-extended rows only
when the row itself comes or leaves. A null-extended row that was emitted is not removed when a partner arrives.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from rollup.engine.compiling import compiled, predicate
from rollup.engine.conjunctions import conjuncts
from rollup.engine.expressions import Ask, Call, Expr, RowOf, Slot, inputs_read, walk
from rollup.engine.operators import EQUAL, SAME, Operator
from rollup.engine.row import Delta, Row, Rows
from rollup.engine.rows.runner import Environment
from rollup.engine.types import Kind


@dataclass(frozen=True)
class Side:
    """How an input joins those before it; `condition` sees all inputs up to this one."""

    kind: Literal["inner", "left", "right", "full"] = "inner"
    condition: Expr | None = None


@dataclass(frozen=True)
class JoinSpec:
    """The inputs after the first, in order; `only`: the one input that brings rows about; `alone`: each by itself."""

    sides: tuple[Side, ...]
    only: int | None = None
    alone: bool = False


WHOLE = ("left", "full"), ("right", "full")
"""The joins of two of which each row of the first, and of the second, is in, be it without a partner."""


class Join:
    """The combinations of the rows of several inputs."""

    def __init__(self, spec: JoinSpec, environment: Environment) -> None:
        self._spec, self._environment = spec, environment
        self._width = len(spec.sides) + 1
        self._steps = [_Step(place + 1, side, environment) for place, side in enumerate(spec.sides)]

    def change(
        self, deltas: Mapping[int, Delta], content: Callable[[int], Sequence[Row]]
    ) -> tuple[list[Rows], list[Rows]]:
        """The combinations that come and that leave; `content` gives what an input holds after the change."""
        moved = {place: d for place, d in deltas.items() if self._spec.only is None or place == self._spec.only}
        after = [content(place) for place in range(self._width)] if any(d.new or d.old for d in moved.values()) else []
        new = self._combinations({place: d.new for place, d in moved.items()}, after)
        if self._spec.only is not None or not any(d.old for d in moved.values()):
            return new, []
        before = [_before(rows, deltas.get(place)) for place, rows in enumerate(after)]
        return new, self._combinations({place: d.old for place, d in moved.items()}, before)

    def all(self, content: Callable[[int], Sequence[Row]]) -> list[Rows]:
        """Every combination of what the inputs hold."""
        return self._joined([content(place) for place in range(self._width)])

    def _combinations(self, rows: Mapping[int, Sequence[Row]], content: Sequence[Sequence[Row]]) -> list[Rows]:
        found: dict[tuple[int | None, ...], Rows] = {}
        for place, moved in rows.items():
            if not moved:
                continue
            chosen = {row.id for row in moved}
            inputs = [moved if each == place else held for each, held in enumerate(content)]
            for r in self._joined(inputs):
                row = r[place]
                if row is not None and row.id in chosen:
                    found.setdefault(tuple(None if each is None else each.id for each in r), r)
        return list(found.values())

    def _joined(self, inputs: Sequence[Sequence[Row]]) -> list[Rows]:
        rows: list[Rows] = [(row,) for row in inputs[0]]
        for step, right in zip(self._steps, inputs[1:], strict=True):
            rows = step.joined(rows, right)
        return rows


def _before(rows: Sequence[Row], delta: Delta | None) -> Sequence[Row]:
    """What an input held before it changed."""
    if delta is None or not delta:
        return rows
    came = {row.id for row in delta.new}
    return [*(row for row in rows if row.id not in came), *(row for row in delta.old if row.id not in came)]


class _Step:
    """One input joined to those before it: by a hash of the equalities between them, then the rest of the condition."""

    def __init__(self, place: int, side: Side, environment: Environment) -> None:
        self._place, self._kind, self._environment = place, side.kind, environment
        self._test = predicate(side.condition) if side.condition is not None else None
        pairs = [
            pair for part in conjuncts(side.condition) if (pair := equality(part, place, (EQUAL, SAME))) is not None
        ]
        self._left = [compiled(left) for left, _ in pairs]
        self._right = [compiled(right) for _, right in pairs]

    def joined(self, rows: Sequence[Rows], right: Sequence[Row]) -> list[Rows]:
        """The combinations, null-extended where the kind of join says so."""
        find = self._finder(right)
        matched: set[int] = set()
        out = list[Rows]()
        for r in rows:
            partners = [row for row in find(r) if self._holds((*r, row))]
            matched.update(row.id for row in partners)
            out += [(*r, row) for row in partners]
            if not partners and self._kind in WHOLE[0]:
                out.append((*r, None))
        if self._kind in WHOLE[1]:
            nothing = (None,) * self._place
            out += [(*nothing, row) for row in right if row.id not in matched]
        return out

    def _holds(self, r: Rows) -> bool:
        return self._test is None or self._test(r, (), self._environment)

    def _finder(self, right: Sequence[Row]) -> Callable[[Rows], Iterable[Row]]:
        if not self._right or len(right) < 2:
            return lambda r: right
        e, nothing = self._environment, (None,) * self._place
        table: dict[tuple[Any, ...], list[Row]] = {}
        for row in right:
            table.setdefault(tuple(key((*nothing, row), (), e) for key in self._right), []).append(row)
        return lambda r: table.get(tuple(key(r, (), e) for key in self._left), ())


def equality(part: Expr, place: int, by: Collection[Operator] = (EQUAL,)) -> tuple[Expr, Expr] | None:
    """The two sides of `left = right`, or of what else they are compared `by`, where one reads only the input at `place` and
    the other only those before it."""
    if not isinstance(part, Call) or part.op not in by:
        return None
    one, other = part.args
    if one.type.numeric != other.type.numeric or {Kind.LIST, Kind.ANY} & {one.type.kind, other.type.kind}:
        return None  # a value of any type may be a list, which is no key
    for left, right in ((one, other), (other, one)):
        known = inputs_read([left])
        if inputs_read([right]) == {place} and known and max(known) < place and _plain(part):
            return left, right
    return None


def _plain(expr: Expr) -> bool:
    """Whether an expression reads fields and nothing else."""
    return not any(isinstance(each, (Ask, RowOf, Slot)) for each in walk(expr))
