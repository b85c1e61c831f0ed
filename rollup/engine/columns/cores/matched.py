"""`every a=A(…) -> b=B(k = a.k, …) where timer:within(t)`, of one stream or of two: partial matches are rows of a table, oldest
first.

A partial match waits for the first later event that has its keys (without any, for any event), passes B's own conditions,
and those that compare it with the first event, until `t` after that event, or for ever; all that an event matches are one
delivery, the oldest first. The loop keeps a list of those that wait for each key; what has expired or matched leaves the
table at the end of the batch.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine import operators as op
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.covering import against, equated, filtered, first
from rollup.engine.columns.cores.keys import codes_of, matching, ordered, whole
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.cores.rewriting import inside, of_one_event
from rollup.engine.columns.evaluate import Columns, carried, evaluate, flags, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Call, Expr, Field, walk
from rollup.engine.rows.patterns.algebra import EveryNode, FilterNode, FollowedNode, Pattern, WithinNode, too_many
from rollup.engine.rows.plans import Filter, PatternInput, Select
from rollup.engine.state import State
from rollup.engine.types import RowType

_OPERATORS = {
    op.EQUAL.name: "==",
    op.UNEQUAL.name: "!=",
    op.LESS.name: "<",
    op.LESS_EQUAL.name: "<=",
    op.GREATER.name: ">",
    op.GREATER_EQUAL.name: ">=",
}
_EQUALITY = (op.EQUAL.name, op.UNEQUAL.name)
_TURNED = {
    **{each: each for each in _EQUALITY},
    op.LESS.name: op.GREATER.name,
    op.LESS_EQUAL.name: op.GREATER_EQUAL.name,
    op.GREATER.name: op.LESS.name,
    op.GREATER_EQUAL.name: op.LESS_EQUAL.name,
}
"""The same comparison with its sides exchanged."""
_EVER = 2**62
_STANDING = 3
"""What the row executor counts for the limit of a pattern beside what waits: `->`, `every`, and the filter of `a`."""
_LOOP = """
def core(old, keys, span, times, came, codes, wanted, begins, ends, matched, {given}one, other):
    n, rows = 0, len(codes)
    first = np.full(keys, -1, np.int64)
    last = np.full(keys, -1, np.int64)
    after = np.full(rows, -1, np.int64)
    for i in range(-old, len(came)):
        if i >= 0 and ends[i] and wanted[i] >= 0:
            k = wanted[i]
            p, kept = first[k], -1
            first[k] = -1
            while p >= 0:
                if times[p] + span > came[i]:
                    if {condition}:
                        one[n], other[n] = p, i
                        n += 1
                        matched[p] = True
                    else:
                        if kept < 0:
                            first[k] = p
                        else:
                            after[kept] = p
                        kept = p
                p = after[p]
            if kept >= 0:
                after[kept], last[k] = -1, kept
        row = old + i
        if row < rows and begins[row] and codes[row] >= 0:
            k = codes[row]
            if first[k] < 0:
                first[k] = row
            else:
                after[last[k]] = row
            last[k] = row
    return n
"""
"""Rows that wait or may begin to: `times`, `codes`, `begins`; the batch's events: `came`, `wanted`, `ends`."""


@dataclass(frozen=True)
class Compared:
    """A condition that compares something of the first event with something of the second, each an expression over its event."""

    operator: str
    one: Expr
    other: Expr

    def line(self, number: int) -> str:
        """The condition on events `p` and `i`, in a loop; null is neither equal nor unequal to anything."""
        x, y = f"x{number}[p]", f"y{number}[i]"
        return f"v{number}[p] and w{number}[i] and {x} {_OPERATORS[self.operator]} {y}"

    def given(self, before: Columns, waiting: int, columns: Columns, rows: int) -> list[np.ndarray]:
        """Values and validity of one side for each of some first events, and of the other for each of some second ones."""
        sides = [evaluate(self.one, before, waiting), evaluate(self.other, columns, rows)]
        valid = [side.is_valid().to_numpy(zero_copy_only=False) for side in sides]
        if pa.types.is_string(sides[0].type) or pa.types.is_boolean(sides[0].type):
            both = pa.concat_arrays(sides)
            numbers = codes_of(both)[0] if self.operator in _EQUALITY else ordered(both)
            values = [numbers[:waiting], numbers[waiting:]]
        else:
            values = [side.fill_null(0).to_numpy(zero_copy_only=False) for side in sides]
        return [values[0], valid[0], values[1], valid[1]]


@dataclass(frozen=True)
class Matched:
    """The pattern: which events begin and end it, and their streams' fields.

    `keys`: what must be equal, over the first event and over the second; `compared`: what else is asked of both. `columns`
    and `test` see the fields of `a`, then those of `b`; without `columns` the result is the rows that have one of the `tags`.
    """

    begin: Filter
    end: Filter
    keys: tuple[tuple[Expr, Expr], ...]
    span: int
    limit: int
    tags: int
    types: tuple[RowType, RowType]
    columns: tuple[Expr, ...] | None
    compared: tuple[Compared, ...] = ()
    test: Expr | None = None

    @cached_property
    def _text(self) -> str:
        given = "".join(f"x{i}, v{i}, y{i}, w{i}, " for i in range(len(self.compared)))
        condition = " and ".join(each.line(i) for i, each in enumerate(self.compared)) or "True"
        return _LOOP.format(given=given, condition=condition)

    @cached_property
    def most(self) -> int:
        """How many may wait at once; the row executor counts the filter of `b` and what ends it in time."""
        return (self.limit - _STANDING) // (1 if self.span == _EVER else 2)

    @cached_property
    def _schema(self) -> pa.Schema:
        fields = self.types[0].fields.values()
        return pa.schema([("time", pa.int64()), *((f"field{i}", carried(kind)) for i, kind in enumerate(fields))])

    def start(self, now: int) -> State:
        """Nothing waits."""
        return State({"partial": self._schema.empty_table()}, {"now": now})

    def roomy(self, state: State, batch: Batch) -> bool:
        """Whether the events of a batch cannot make too many partial matches."""
        room = self.most - state.tables["partial"].num_rows
        return batch.rows <= room or np.count_nonzero(self._mask(self.begin, batch)) <= room

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The matches that the batch's events complete. Raises QueryError when too many partial matches wait."""
        before: int = state.scalars["now"]
        now = max(before, batch.now)
        partial = state.tables["partial"]
        old, begins, ends = partial.num_rows, self._mask(self.begin, batch), self._mask(self.end, batch)
        places = np.flatnonzero(begins | ends)  # an event that neither begins nor ends one changes nothing
        begins, ends, came = begins[places], ends[places], np.maximum(batch.times[places], before)
        columns = batch.columns
        if len(places) < batch.rows:
            columns = tuple(column.take(pa.array(places)) for column in columns)
        columns = tuple(map(plain, columns))
        together = partial
        if begins.any():
            together = pa.concat_tables([partial, pa.table([pa.array(came), *columns], schema=self._schema)])
        waiting = together.combine_chunks()
        begins = np.concatenate([np.ones(old, bool), begins[: waiting.num_rows - old]])
        matched, one, other = self._matches(waiting, old, columns, came, begins, ends)
        times = waiting.column("time").to_numpy()
        left = begins & ~matched & (times + self.span > now)
        # The row executor asks a filter with conditions before what waits, so before the event makes room.
        full = left if not self.begin.equals and self.begin.test is None else begins & (times + self.span > now)
        if begins[old:].any() and np.count_nonzero(full) > self.most:
            raise too_many(self.limit)
        after = State({"partial": waiting if left.all() else waiting.filter(pa.array(left))}, {"now": now})
        return after, self._output(waiting, one, columns, other, came, places)

    def _mask(self, filter: Filter, batch: Batch) -> np.ndarray:
        """Which events pass; those of one stream need not say that they are of it."""
        if batch.stream != filter.stream and self.begin.stream != self.end.stream:
            return np.zeros(batch.rows, bool)
        return flags(accepted(filter, None, batch.columns, batch.rows), batch.rows)

    def _matches(
        self, waiting: pa.Table, old: int, columns: Columns, came: Ints, begins: np.ndarray, ends: np.ndarray
    ) -> tuple[np.ndarray, Ints, Ints]:
        """Which rows have matched, and the pairs of rows and events in the order in which they did."""
        matched, rows, events = np.zeros(waiting.num_rows, bool), waiting.num_rows, len(came)
        if not rows or not ends.any():
            return matched, np.empty(0, np.int64), np.empty(0, np.int64)
        fields = [whole(column) for column in waiting.columns[1:]]
        codes, wanted, keys = self._numbered(fields, rows, columns, events, old)
        one, other = (np.empty(int(begins.sum()), np.int64) for _ in range(2))
        given = [each for compared in self.compared for each in compared.given(fields, rows, columns, events)]
        times = waiting.column("time").to_numpy()
        n = loop(self._text)(
            old, keys, self.span, times, came, codes, wanted, begins, ends, matched, *given, one, other
        )  # fmt: skip
        return matched, one[:n], other[:n]

    def _numbered(self, fields: Columns, rows: int, columns: Columns, events: int, old: int) -> tuple[Ints, Ints, int]:
        """The keys of rows and of events as codes that hold for this batch; null is -1 and equals nothing."""
        if not self.keys:
            return np.zeros(rows, np.int64), np.zeros(events, np.int64), 1
        if rows == old + events and len(self.keys) == 1 and self.keys[0][0] == self.keys[0][1]:
            codes, keys = codes_of(evaluate(self.keys[0][0], fields, rows))
            return codes, codes[old:], keys
        return matching((evaluate(one, fields, rows), evaluate(other, columns, events)) for one, other in self.keys)

    def _output(self, waiting: pa.Table, one: Ints, columns: Columns, other: Ints, came: Ints, places: Ints) -> Output:
        """The matches of waiting rows with events, which stood in the batch at `places`."""
        taken = pa.array(one), pa.array(other)
        flat = [whole(column.take(taken[0])) for column in waiting.columns[1:]]
        flat += [column.take(taken[1]) for column in columns] if len(other) else self._nothing
        if self.columns is None:
            width = len(self.types[0].fields)
            parts = list(zip(self.types, (flat[:width], flat[width:]), strict=True))[: self.tags]
            shown = [pa.StructArray.from_arrays(part, list(kinds.fields)) for kinds, part in parts]
        else:
            shown = [evaluate(each, flat, len(one)) for each in self.columns]
        mask, found = passing(self.test, flat, len(one)), Output(came[other], places[other], tuple(shown))
        return found if mask is None else found.where(mask)

    @cached_property
    def _nothing(self) -> list[pa.Array]:
        """The fields of no second event; a batch may be one of first events."""
        return [pa.array([], carried(kind)) for kind in self.types[1].fields.values()]


def matched(plan: Select, reads: Mapping[str, RowType]) -> Matched | str:
    """The core of a pattern over streams with those fields, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, PatternInput) or input.window is not None or input.prior:
        return "a pattern with a window"
    if plan.levels or plan.grouping or plan.lookups or plan.rate.limited:
        return "aggregates, look-ups or an output rate over a pattern"
    pattern = pattern_of(input.pattern, reads)
    if isinstance(pattern, str):
        return pattern
    width, projection = len(pattern.types[0].fields), plan.projection
    columns = None if projection.whole else tuple(flat(each, width) for each in projection.columns)
    test = conjunction([flat(each, width) for each in (plan.where, projection.having) if each is not None])
    return first(map(against, (*(columns or ()), test))) or replace(pattern, columns=columns, test=test)


def pattern_of(pattern: Pattern, reads: Mapping[str, RowType]) -> Matched | str:
    """The core of a pattern whose matches are shown as whole rows, or the first reason against it."""
    parts = _parts(pattern)
    if isinstance(parts, str):
        return parts
    begin, end, span = parts
    types, tags = (reads[begin.stream], reads[end.stream]), pattern.tags
    asked = _asked(end, types[1], tags)
    if isinstance(asked, str) or _asks_before((begin.test, *(value for _, value in begin.equals)), tags):
        return asked if isinstance(asked, str) else "a condition of the first event on another"
    ending, keys, compared = asked
    if not keys and compared:
        return "a condition of the second event on the first without a key"
    beginning = Filter(begin.stream, begin.equals, None if begin.test is None else of_one_event(begin.test))
    filters = zip((beginning, ending), types, strict=True)
    lasts = _EVER if span is None else span
    found = Matched(beginning, ending, keys, lasts, pattern.limit, tags, types, None, compared)
    return first(_unfiltered(*each) for each in filters) or found


def _parts(pattern: Pattern) -> tuple[FilterNode, FilterNode, int | None] | str:
    match pattern:
        case Pattern(
            root=FollowedNode(
                children=(EveryNode(child=FilterNode(tag=0) as begin, keys=None), followed), limits=()
            ),
            discard=False, suppress=False, span=None,
        ) if not begin.consume:  # fmt: skip
            match followed:
                case FilterNode(tag=1 | None, consume=0) as end:
                    return begin, end, None
                case WithinNode(child=FilterNode(tag=1 | None, consume=0) as end, span=int(span), most=None):
                    return begin, end, span
                case _:
                    pass
        case _:
            pass
    return "a pattern other than every a -> b, within a time or not"


def _unfiltered(filter: Filter, type: RowType) -> str | None:
    """The first reason against a filter of events of that type."""
    kinds = list(type.fields.values())
    return first(against(Field(0, place, kinds[place])) for place, _ in filter.equals) or filtered(filter)


def _asks_before(parts: Iterable[Expr | None], tags: int) -> bool:
    """Whether something that is asked of an event, behind the `tags` rows of a match, is about those before it."""
    return any(
        isinstance(each, Field) and each.input < tags for part in parts if part is not None for each in walk(part)
    )


Asked = tuple[Filter, tuple[tuple[Expr, Expr], ...], tuple[Compared, ...]]
"""What the second event must fulfil by itself, what must be equal in both, and what else is compared."""


def _asked(end: FilterNode, type: RowType, tags: int) -> Asked | str:
    """What is asked of the second event, or the first reason against."""
    own, compared, keys = list[Expr](), list[Compared](), list[tuple[Expr, Expr]]()
    for part in conjuncts(end.test):
        if not _asks_before((part,), tags):
            own.append(of_one_event(part))
        elif (found := _compared(part, tags)) is not None:
            compared.append(found)
        else:
            return "a condition of the second event on the first that is no comparison of one with the other"
    alone = tuple(each for each in end.equals if not _asks_before((each[1],), tags))
    for place, value in end.equals:
        if (place, value) not in alone:
            pair = (of_one_event(value), Field(0, place, list(type.fields.values())[place]))
            if not equated(*pair):
                return f"a key of type {pair[1].type}"
            keys.append(pair)
    return Filter(end.stream, alone, conjunction(own)), tuple(keys), tuple(compared)


def _compared(part: Expr, tags: int) -> Compared | None:
    """A comparison with an expression over the first event on one side and one over the second on the other."""
    if not isinstance(part, Call) or part.op.name not in _OPERATORS or against(of_one_event(part)) is not None:
        return None
    inputs = [{each.input for each in walk(side) if isinstance(each, Field)} for side in part.args]
    one, other = (of_one_event(side) for side in part.args)
    match inputs:
        case [before, after] if before == {0} and after <= {tags}:
            return Compared(part.op.name, one, other)
        case [after, before] if before == {0} and after <= {tags}:
            return Compared(_TURNED[part.op.name], other, one)
        case _:
            return None


def flat(expr: Expr, width: int) -> Expr:
    """A column of the result over the fields of `a`, then those of `b`."""
    if isinstance(expr, Call) and expr.op.name.startswith("field ") and isinstance(row := expr.args[0], Field):
        return Field(0, row.index * width + int(expr.op.name.removeprefix("field ")), expr.type)
    return inside(expr, lambda inner: flat(inner, width))
