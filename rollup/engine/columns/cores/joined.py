"""The join of two windows, or of a stream with a window, inner or outer: an arrival meets what the other side holds then.

State: `left` and `right`, the rows of each window, oldest first: arrival, keys, and the fields that the statement reads.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch, Output
from rollup.engine.columns.cores.covering import against, equated, filtered, first, unshown
from rollup.engine.columns.cores.keys import matching, whole
from rollup.engine.columns.cores.pairing import Pairs, Rules, paired
from rollup.engine.columns.cores.rewriting import of_one_event
from rollup.engine.columns.cores.sides import Moved, Moves, Side, side_of
from rollup.engine.columns.evaluate import Columns, evaluate, flags, passing
from rollup.engine.columns.groups import Ints, equals
from rollup.engine.columns.loops import loop
from rollup.engine.conjunctions import conjuncts
from rollup.engine.expressions import All, Expr, Field, inside, walk
from rollup.engine.operators import EQUAL, SAME
from rollup.engine.rows.plans import Emitted, Input, Select, StreamInput
from rollup.engine.rows.selects.joining import WHOLE, JoinSpec, equality
from rollup.engine.state import State
from rollup.engine.types import RowType

_MOST = 1 << 22
"""So many pairs are looked at together; a batch that makes more is taken in halves."""
_EVER = 2**62
SIDES = ("left", "right")
"""The tables of the state."""
_MERGED = """
def core(at_a, event_a, at_b, event_b, at, event, number_a, number_b):
    i, j, n = 0, 0, 0
    while i < len(at_a) or j < len(at_b):
        if j == len(at_b) or (
            i < len(at_a) and (at_a[i] < at_b[j] or (at_a[i] == at_b[j] and event_a[i] <= event_b[j]))
        ):
            at[n], event[n] = at_a[i], event_a[i]
        else:
            at[n], event[n] = at_b[j], event_b[j]
        while i < len(at_a) and at_a[i] == at[n] and event_a[i] == event[n]:
            number_a[i], i = n, i + 1
        while j < len(at_b) and at_b[j] == at[n] and event_b[j] == event[n]:
            number_b[j], j = n, j + 1
        n += 1
    return n
"""
"""The changes of two sides in order, of an instant that of the clock first; and which of them each change of a side is."""


@dataclass(frozen=True)
class Found:
    """What a batch makes of a join. Of each change: its instant, the event of the batch that brings it or TIMER; of each
    pair: its change, whether it comes (1) or leaves (-1), and the fields of both rows, null where there is none.
    """

    at: Ints
    event: Ints
    change: Ints
    sign: np.ndarray
    columns: Columns

    def followed(self, rest: Found, by: int) -> Found:
        """With what the events from the place `by` on made."""
        return Found(
            np.concatenate([self.at, rest.at]),
            np.concatenate([self.event, np.where(rest.event == TIMER, TIMER, rest.event + by)]),
            np.concatenate([self.change, rest.change + len(self.at)]),
            np.concatenate([self.sign, rest.sign]),
            [pa.concat_arrays(pair) for pair in zip(self.columns, rest.columns, strict=True)],
        )


@dataclass(frozen=True)
class Join:
    """The pairs of the rows of two sides that have equal keys and pass `test`, which sees the kept fields of the left row,
    then those of the right one. `nulls`: of which keys null equals null.
    """

    left: Side
    right: Side
    nulls: tuple[int, ...]
    test: Expr | None
    rules: Rules

    @property
    def sides(self) -> tuple[Side, Side]:
        """Left and right."""
        return self.left, self.right

    def start(self, now: int) -> State:
        """Two empty windows."""
        return self.holding([side.schema.empty_table() for side in self.sides], now)

    @staticmethod
    def holding(tables: Sequence[pa.Table], now: int) -> State:
        """The state, from the rows of each window."""
        return State(dict(zip(SIDES, tables, strict=True)), {"now": now})

    def _held(self, state: State) -> list[tuple[Side, pa.Table]]:
        """Each side with its rows."""
        return [(side, state.tables[name]) for side, name in zip(self.sides, SIDES, strict=True)]

    def due(self, state: State) -> int | None:
        """When the next row comes or leaves by itself."""
        dues = (side.due(held) for side, held in self._held(state))
        return min((at for at in dues if at is not None), default=None)

    def together(self, state: State, now: int) -> State:
        """The state in which the rows that are due by `now` leave then."""
        together = [side.together(held, now) for side, held in self._held(state)]
        return State({**state.tables, **dict(zip(SIDES, together, strict=True))}, state.scalars)

    def late(self, state: State, nothing: Batch) -> tuple[State, Found]:
        """What is due leaves at the instant the clock has now, and no event comes."""
        return self.step(self.together(state, nothing.now), nothing)

    def step(self, state: State, batch: Batch) -> tuple[State, Found]:
        """The pairs that a batch of one of the streams makes."""
        before: int = state.scalars["now"]
        arrived = [side.arrived(held, batch, before) for side, held in self._held(state)]
        tables = [each.table for each in arrived]
        codes, keys = self._numbered(tables)
        moved = [side.moved(rows, own) for side, rows, own in zip(self.sides, arrived, codes, strict=True)]
        at, event, moves = _merged([each for each, _ in moved])
        most = _MOST if batch.rows > 1 else _EVER
        pairs = paired(keys, [rows.old for rows in arrived], codes, moves, self.rules, most)
        if pairs is None:
            return self._in_halves(state, batch)
        pairs, columns = self._passing(tables, pairs)
        after = self.holding([own for _, own in moved], max(before, batch.now))
        return after, Found(at, event, pairs.change, pairs.sign, columns)

    def _in_halves(self, state: State, batch: Batch) -> tuple[State, Found]:
        middle = batch.rows // 2
        state, begun = self.step(state, batch.part(0, middle))
        state, rest = self.step(state, batch.part(middle, batch.rows))
        return state, begun.followed(rest, middle)

    def _numbered(self, tables: Sequence[pa.Table]) -> tuple[list[Ints], int]:
        """The keys of all rows of both sides as codes that hold for this batch; what equals nothing is -1."""
        if not self.left.keys:
            return [np.zeros(table.num_rows, np.int64) for table in tables], 1
        one, other, keys = matching(
            [
                (whole(tables[0].column(1 + place)), whole(tables[1].column(1 + place)))
                for place in range(len(self.left.keys))
            ],
            self.nulls,
        )
        return [one, other], keys

    def _passing(self, tables: Sequence[pa.Table], pairs: Pairs) -> tuple[Pairs, Columns]:
        """The pairs that there are, and the fields of their rows."""
        used = () if self.test is None else {each.index for each in walk(self.test) if isinstance(each, Field)}
        seen = self.fields(tables, pairs.one, pairs.other, used)
        mask = passing(self.test, seen, len(pairs.one))
        if mask is not None:
            pairs = pairs.at(pairs.kept(flags(mask, len(pairs.one))))
        return pairs, self.fields(tables, pairs.one, pairs.other)

    def fields(
        self, tables: Sequence[pa.Table], one: Ints, other: Ints, used: Collection[int] | None = None
    ) -> list[pa.Array]:
        """The fields of the rows at these places of both sides, null at -1; those that are not `used` are not looked up."""
        found = list[pa.Array]()
        for side, table, places in zip(self.sides, tables, (one, other), strict=True):
            rows = pa.array(places, mask=places < 0) if len(places) and places.min() < 0 else pa.array(places)
            for column in side.kept(table):
                wanted = used is None or len(found) in used
                found.append(whole(column).take(rows) if wanted else pa.nulls(0, column.type))
        return found

    def held(self, state: State) -> tuple[Columns, int]:
        """The fields of the pairs that the windows hold now, and how many there are; nothing here is hot."""
        tables = [held for _, held in self._held(state)]
        codes, _ = self._numbered(tables)
        one, other = equals(*codes)
        passed = passing(self.test, self.fields(tables, one, other), len(one))
        if passed is not None:
            kept = flags(passed, len(one))
            one, other = one[kept], other[kept]
        alone, left = (
            np.setdiff1d(np.arange(table.num_rows if whole else 0), partnered)
            for table, whole, partnered in zip(tables, self.rules.whole, (one, other), strict=True)
        )
        one, other = np.concatenate([one, alone]), np.concatenate([other, np.full(len(alone), -1)])
        order = np.argsort(one, kind="stable")
        one, other = np.concatenate([one[order], np.full(len(left), -1)]), np.concatenate([other[order], left])
        return self.fields(tables, one, other), len(one)


def _merged(moved: Sequence[Moved]) -> tuple[Ints, Ints, list[Moves]]:
    """The changes of both sides in order, each an event of the batch or an instant of the clock, or both sides': when, the event or
    TIMER, and what each side does with it.
    """
    one, other = moved
    for each, still in ((one, other), (other, one)):
        if not len(still.at):
            nothing = still.among(still.at, len(each.at))
            return each.at, each.event, [each, nothing] if each is one else [nothing, each]
    most = len(one.at) + len(other.at)
    at, event = np.empty(most, np.int64), np.empty(most, np.int64)
    numbers = [np.empty(len(each.at), np.int64) for each in moved]
    n = loop(_MERGED)(one.at, one.event, other.at, other.event, at, event, *numbers)
    return at[:n], event[:n], [each.among(own, n) for each, own in zip(moved, numbers, strict=True)]


@dataclass(frozen=True)
class Joined:
    """The rows that a join makes, each with its `columns`, of those that fulfil the condition `chosen`."""

    join: Join
    chosen: Expr | None
    columns: tuple[Expr, ...]
    emitted: Emitted

    def start(self, now: int) -> State:
        """Two empty windows."""
        return self.join.start(now)

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """A row for each pair."""
        after, found = self.join.step(state, batch)
        return after, self._output(found)

    def late(self, state: State, nothing: Batch) -> tuple[State, Output]:
        """What is due leaves at the instant the clock has now."""
        after, found = self.join.late(state, nothing)
        return after, self._output(found)

    def _output(self, found: Found) -> Output:
        output = self._shown(found.columns, found.at[found.change], found.event[found.change], found.sign)
        return output.emitted(self.emitted) if self.emitted != "new" else replace(output, sign=None)

    def _shown(self, fields: Columns, at: Ints, event: Ints, sign: np.ndarray) -> Output:
        """The rows of some pairs."""
        output = Output(at, event, tuple(evaluate(each, fields, len(at)) for each in self.columns), sign=sign)
        mask = passing(self.chosen, fields, len(at))
        return output if mask is None else output.where(mask)

    def content(self, state: State) -> list[tuple[Any, ...]]:
        """The values of the rows that there are now."""
        fields, rows = self.join.held(state)
        nothing = np.zeros(rows, np.int64)
        shown = self._shown(fields, nothing, nothing, nothing)
        return list(zip(*(column.to_pylist() for column in shown.columns), strict=True))


def joined(plan: Select, reads: Mapping[str, RowType]) -> Joined | str:
    """The core of a join, without aggregates, of streams with those fields, or the first reason against it."""
    if plan.lookups:
        return "look-ups beside a join"
    found = join_of(plan, reads, plan.projection.columns)
    if isinstance(found, str):
        return found
    join, chosen, places = found
    columns = tuple(flat(each, places) for each in plan.projection.columns)
    return first(map(unshown, columns)) or Joined(join, chosen, columns, plan.emitted)


Places = Mapping[tuple[int, int], int]
"""Where a field of an input stands among those of a pair."""


def join_of(
    plan: Select, reads: Mapping[str, RowType], shown: Sequence[Expr]
) -> tuple[Join, Expr | None, Places] | str:
    """The join of a statement, what else its pairs must fulfil to be shown, and where the fields of a pair are, of those that
    are needed and `shown`; or the first reason against it.
    """
    spec = plan.join
    if spec is None or len(plan.inputs) != 2:
        return "a join of more than two"
    reason = first(_unplain(input, place, spec) for place, input in enumerate(plan.inputs))
    if reason is not None:
        return reason
    (side,) = spec.sides
    tested, chosen = [*conjuncts(side.condition)], [*conjuncts(plan.where), *conjuncts(plan.projection.having)]
    if side.kind == "inner":
        tested, chosen = [*tested, *chosen], []
    keys = [pair for part in tested if (pair := _key(part)) is not None]
    rest = [part for part in tested if _key(part) is None]
    used = {
        (each.input, each.index) for expr in (*rest, *chosen, *shown) for each in walk(expr) if isinstance(each, Field)
    }
    places = {field: place for place, field in enumerate(sorted(used))}
    sides = list[Side]()
    for number, input in enumerate(plan.inputs):
        assert isinstance(input, StreamInput)
        own = [of_one_event(pair[number]) for pair, _ in keys]
        made = side_of(input, own, [at for place, at in places if place == number], reads[input.filter.stream])
        if isinstance(made, str):
            return made
        sides.append(made)
    test, choice = (_all([flat(each, places) for each in parts]) for parts in (rest, chosen))
    reason = first(filtered(each.filter) for each in sides) or first(map(against, (test, choice)))
    moving = [spec.only in (None, place) for place in range(2)]
    whole = [side.kind in kinds for kinds in WHOLE]
    leaving = spec.only is None and not plan.comes_alone
    rules = Rules((moving[0], moving[1]), (whole[0], whole[1]), test is not None, leaving)
    nulls = tuple(place for place, (_, equal) in enumerate(keys) if equal)
    return reason or (Join(sides[0], sides[1], nulls, test, rules), choice, places)


def _unplain(input: Input, place: int, spec: JoinSpec) -> str | None:
    """The first reason against an input, whatever its window."""
    if not isinstance(input, StreamInput) or input.unnest or input.prior:
        return "a join with what is not a plain stream"
    if place == spec.only:
        return None if input.window is None else "a unidirectional join of a window"
    return "a join of a stream without a window" if input.window is None else None


def _key(part: Expr) -> tuple[tuple[Expr, Expr], bool] | None:
    """What must be equal on the left and on the right, where a hash can tell, and whether null equals null."""
    for operator in (EQUAL, SAME):
        pair = equality(part, 1, (operator,))
        if pair is not None and equated(*map(of_one_event, pair), doubles=operator is EQUAL):
            return pair, operator is SAME
    return None


def _all(parts: Sequence[Expr]) -> Expr | None:
    return None if not parts else parts[0] if len(parts) == 1 else All(tuple(parts))


def flat(expr: Expr, places: Places) -> Expr:
    """An expression over the fields that are kept of both sides."""
    if isinstance(expr, Field):
        return Field(0, places[expr.input, expr.index], expr.type)
    return inside(expr, lambda inner: flat(inner, places))
