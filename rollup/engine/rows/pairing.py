"""The join of windows, or of a unidirectional stream with windows; two inputs may be joined outer.

Each window, named ones included, has its rows by what they have in common with those of others. Insert and remove rows
keep this current, so a change costs what it brings and not what is held. Partners stand in the order in which they came,
whatever order a window has of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from rollup.engine.compiling import Evaluate, compiled_row, predicate, row_values
from rollup.engine.conjunctions import conjuncts
from rollup.engine.expressions import Expr, inputs_read, unchanging
from rollup.engine.operators import EQUAL, SAME
from rollup.engine.row import Delta, Row, Rows
from rollup.engine.rows.keyed import EXACT
from rollup.engine.rows.plans import Input, StoreInput, StreamInput
from rollup.engine.rows.runner import Environment
from rollup.engine.rows.selects.joining import WHOLE, JoinSpec, equality
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import FirstLength, KeepAll, Length, LengthBatch
from rollup.engine.rows.windows.expressed import Expressed
from rollup.engine.rows.windows.external import ExternalTime, TimeOrder
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.ranked import Ranked, Sorted
from rollup.engine.rows.windows.timed import FirstTime, Time, TimeAccumulating, TimeBatch

_ROW_BY_ROW = (
    *(KeepAll, Length, FirstLength, Time, FirstTime, TimeAccumulating, ExternalTime, TimeOrder),
    *(Unique, Sorted, Ranked, Expressed),
)
"""Windows that say of each row, as it comes, that it has come."""
_IN_BATCHES = LengthBatch, TimeBatch
"""Windows that say it of all rows of a batch at once; of several keys that is not the order in which the rows came."""

Bucket = dict[int, Row]


class Equal(NamedTuple):
    """What a condition says to be equal of two inputs; `nulls`: also where both are null."""

    sides: Mapping[int, Expr]
    nulls: bool


class Side(NamedTuple):
    """The rows of an input by the fields that it has in common with some others; null equals nothing where the key is `strict`."""

    place: int
    key: Callable[[Row], tuple[Any, ...]]
    rows: dict[Any, Bucket]
    strict: tuple[int, ...]

    def matches(self, key: tuple[Any, ...]) -> bool:
        """Whether anything may equal a key."""
        return None not in key or not any(key[at] is None for at in self.strict)


class Step(NamedTuple):
    """Where the partners of rows are found, and their key out of the inputs that are known by then."""

    side: Side
    known: Evaluate


class Begin(NamedTuple):
    """Where the first partners of a row are found, and their key."""

    side: Side
    key: Callable[[Row], tuple[Any, ...]]


def pairs(
    inputs: Sequence[Input], spec: JoinSpec | None, where: Expr | None, e: Environment, told: Callable[[str], bool]
) -> Pairs | None:
    """The combinations of a join that can be kept so; None for another. `told`: whether a store says of each row that it comes,
    and that it leaves."""
    if spec is None:
        return None
    outer = any(side.kind != "inner" for side in spec.sides)
    if outer and len(inputs) > 2:
        return None
    if not all(_bare(each) if place == spec.only else _keeps(each) for place, each in enumerate(inputs)):
        return None
    stores = [each.store for each in inputs if isinstance(each, StoreInput)]
    if stores and (spec.only is not None or not all(map(told, stores))):
        return None
    conditions = [side.condition for side in spec.sides if side.condition is not None]
    asked = conditions if outer else [*conditions, where]  # among what is null-extended `where` only chooses
    parts = [part for each in asked for part in conjuncts(each)]
    equals = [found for part in parts if (found := _equal(part, len(inputs))) is not None]
    moving = range(len(inputs)) if spec.only is None else (spec.only,)
    if len(inputs) > 2 and any(_order(place, len(inputs), equals) is None for place in moving):
        return None
    exact = len(equals) == len(parts) and all(
        side.type.kind in EXACT for each in equals for side in each.sides.values()
    )
    exact = exact and (where is None or not outer)
    whole = {place for place, kinds in enumerate(WHOLE) if spec.sides[0].kind in kinds}
    return Pairs(len(inputs), equals, [] if exact else conditions, exact, whole, moving, e)


def _keeps(input: Input) -> bool:
    if isinstance(input, StoreInput):
        return input.follow and not input.prior and (input.condition is None or unchanging(input.condition))
    if not isinstance(input, StreamInput):
        return False
    return isinstance(input.window, _IN_BATCHES) or _row_by_row(input.window)


def _row_by_row(window: WindowSpec | None) -> bool:
    return _row_by_row(window.inner) if isinstance(window, Grouped) else isinstance(window, _ROW_BY_ROW)


def _bare(input: Input) -> bool:
    return isinstance(input, StreamInput) and input.window is None


def _equal(part: Expr, inputs: int) -> Equal | None:
    """What is equal of two inputs, where a part of the condition says that and no more."""
    if not unchanging(part):
        return None
    for place in range(1, inputs):
        for operator in (EQUAL, SAME):
            sides = equality(part, place, (operator,))
            if sides is not None and len(known := inputs_read([sides[0]])) == 1:
                return Equal({known.pop(): sides[0], place: sides[1]}, operator is SAME)
    return None


def _order(start: int, inputs: int, equals: Sequence[Equal]) -> list[int] | None:
    """The other inputs, each joined to one that is known by then; None where one is joined to none."""
    known, order = {start}, list[int]()
    while len(known) < inputs:
        reached = {place for each in equals if known & each.sides.keys() for place in each.sides.keys() - known}
        if not reached:
            return None
        order.append(min(reached))
        known.add(min(reached))
    return order


class Pairs:
    """The combinations of rows, found by what they have in common; what else `conditions` say is tested on each.

    `exact`: rows of equal keys are a combination by that alone, and no condition has to be asked, the statement's neither.
    `whole`: the inputs whose rows are in without a partner too; `moving`: those that bring combinations about.
    """

    def __init__(
        self,
        inputs: int,
        equals: Sequence[Equal],
        conditions: Sequence[Expr],
        exact: bool,
        whole: Collection[int],
        moving: Collection[int],
        environment: Environment,
    ) -> None:
        self._environment, self.exact, self._inputs, self._whole = environment, exact, inputs, whole
        self._tests = [predicate(each) for each in conditions]
        self._sides: dict[tuple[int, ...], Side] = {}
        self._begins: dict[int, Begin] = {}
        self._steps = {start: self._plan(start, equals) for start in moving}
        self._of_input = [[side for side in self._sides.values() if side.place == place] for place in range(inputs)]

    def _plan(self, start: int, equals: Sequence[Equal]) -> list[Step]:
        """The steps after the first."""
        known, steps, e = {start}, list[Step](), self._environment
        for place in _order(start, self._inputs, equals) or [1 - start]:  # two may have nothing in common
            used = [n for n, each in enumerate(equals) if place in each.sides and each.sides.keys() - {place} <= known]
            others = [next(side for at, side in equals[n].sides.items() if at != place) for n in used]
            strict = tuple(at for at, n in enumerate(used) if not equals[n].nulls)
            made = Side(place, row_values([equals[n].sides[place] for n in used], place)(e), {}, strict)
            side = self._sides.setdefault((place, *used), made)
            if known == {start}:
                self._begins[start] = Begin(side, row_values(others, start)(e))
            else:
                steps.append(Step(side, compiled_row(others)))
            known.add(place)
        return steps

    def clear(self) -> None:
        """Nothing is held."""
        for side in self._sides.values():
            side.rows.clear()

    def fill(self, place: int, rows: Sequence[Row]) -> None:
        """Rows that a window holds from now on."""
        self._move(place, rows, ())

    def drop(self, place: int, rows: Sequence[Row]) -> None:
        """Rows that a window holds no longer."""
        self._move(place, (), rows)

    def _move(self, place: int, came: Sequence[Row], left: Sequence[Row]) -> None:
        for side in self._of_input[place]:
            key_of, held = side.key, side.rows
            for row in came:
                key = key_of(row)
                if None in key and not side.matches(key):
                    continue
                bucket = held.get(key)
                if bucket is None:
                    held[key] = {row.id: row}
                else:
                    bucket[row.id] = row
            for row in left:
                key = key_of(row)
                bucket = held.get(key)
                if bucket is not None:
                    bucket.pop(row.id, None)
                    if not bucket:
                        del held[key]

    def change(self, deltas: Mapping[int, Delta], leaving: bool = True) -> tuple[Sequence[Rows], Sequence[Rows]]:
        """The combinations that come and that leave; the latter only if somebody wants them: `leaving`."""
        for place, (came, left, _) in deltas.items():
            self._move(place, came, left)
        new: Sequence[Rows] = ()
        if self._some(deltas):
            new = self._combinations({place: each.new for place, each in deltas.items()}, _held)
        old = {place: each.old for place, each in deltas.items() if each.old} if leaving else {}
        if not old:
            return new, ()
        return new, self._combinations(old, lambda side, key: self._before(deltas.get(side.place), side, key))

    def _some(self, deltas: Mapping[int, Delta]) -> bool:
        """Whether rows that have come may be in combinations: one that is there is what their first partners need."""
        for place, (came, _, _) in deltas.items():
            if came and place in self._whole:
                return True
            if came and place in self._begins:
                side, key_of = self._begins[place]
                held = side.rows
                for row in came:
                    if key_of(row) in held:
                        return True
        return False

    def _before(self, delta: Delta | None, side: Side, key: Any) -> Collection[Row]:
        """What an input held of a key before it changed."""
        held = _held(side, key)
        if not delta:
            return held
        came = {row.id for row in delta.new}
        gone = (row for row in delta.old if row.id not in came and side.key(row) == key)
        return sorted([*(row for row in held if row.id not in came), *gone], key=lambda row: row.id)

    def _combinations(
        self, moved: Mapping[int, Sequence[Row]], partners: Callable[[Side, Any], Collection[Row]]
    ) -> Sequence[Rows]:
        parts = [
            found
            for place, rows in sorted(moved.items())
            if place in self._begins
            for row in rows
            if (found := self._of(place, row, partners))
        ]
        if len(parts) < 2:
            return parts[0] if parts else ()
        every: dict[tuple[int | None, ...], Rows] = {}  # those of several rows may be the same
        for part in parts:
            for r in part:
                every.setdefault(tuple([None if each is None else each.id for each in r]), r)
        return list(every.values())

    def _of(self, place: int, row: Row, partners: Callable[[Side, Any], Collection[Row]]) -> Sequence[Rows]:
        """The combinations of one row, in the order in which the rows of the inputs came."""
        side, key_of = self._begins[place]
        key = key_of(row)
        found = partners(side, key) if None not in key or side.matches(key) else ()
        if not found:
            return [self._alone(place, row)] if place in self._whole else ()
        e, alone, at = self._environment, self._alone(place, row), side.place
        combinations = [(*alone[:at], other, *alone[at + 1 :]) for other in found]
        for step, known in self._steps[place]:
            longer, at = list[Rows](), step.place
            for r in combinations:
                key = known(r, (), e)
                if step.matches(key):
                    longer += [(*r[:at], other, *r[at + 1 :]) for other in partners(step, key)]
            combinations = longer
            if not longer:
                break
        if self._inputs > 2 and len(combinations) > 1:
            combinations.sort(key=_ids)
        for test in self._tests:
            combinations = [r for r in combinations if test(r, (), e)]
        return combinations or ([alone] if place in self._whole else ())

    def _alone(self, place: int, row: Row) -> Rows:
        return (*(None,) * place, row, *(None,) * (self._inputs - place - 1))


def _ids(r: Rows) -> list[int]:
    return [row.id for row in r if row is not None]


def _held(side: Side, key: Any) -> Collection[Row]:
    bucket = side.rows.get(key)
    return () if bucket is None else bucket.values()
