"""`every a=S(A) -> b=S(k = a.k, B, C) where timer:within(t)`: partial matches are rows of a table, oldest first.

A partial match waits for the first later event of its key that passes B and, compared with its own event, C, until `t`
after that; all that an event matches are one delivery, the oldest first. The loop keeps a list of those that wait for each
key; what has expired or matched leaves the table at the end of the batch.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.core.errors import QueryError
from rollup.engine import operators as op
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.covering import KEYS, against, filtered, first
from rollup.engine.columns.cores.keys import ordered
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.cores.rewriting import inside, of_one_event
from rollup.engine.columns.evaluate import Columns, carried, evaluate, flags, plain
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import All, Call, Expr, Field, walk
from rollup.engine.rows.patterns.algebra import EveryNode, FilterNode, FollowedNode, Pattern, WithinNode
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
_EVENT = 2
"""Where a filter finds its event, behind the two rows of a match."""
_LOOP = """
def core(old, keys, span, times, codes, begins, ends, matched, {given}one, other):
    n, waiting = 0, len(codes)
    first = np.full(keys, -1, np.int64)
    last = np.full(keys, -1, np.int64)
    after = np.full(waiting, -1, np.int64)
    for i in range(waiting):
        k = codes[i]
        if k < 0:
            continue
        if i >= old and ends[i]:
            p, kept = first[k], -1
            first[k] = -1
            while p >= 0:
                if times[p] + span > times[i]:
                    if {condition}:
                        one[n], other[n] = p, i - old
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
        if begins[i]:
            if first[k] < 0:
                first[k] = i
            else:
                after[last[k]] = i
            last[k] = i
    return n
"""


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

    def given(self, columns: Columns, rows: int) -> list[np.ndarray]:
        """Values and validity of both sides for each of some events."""
        sides = [evaluate(side, columns, rows) for side in (self.one, self.other)]
        valid = [side.is_valid().to_numpy(zero_copy_only=False) for side in sides]
        if pa.types.is_string(sides[0].type) or pa.types.is_boolean(sides[0].type):
            both = pa.concat_arrays(sides)
            numbers = _codes(both) if self.operator in _EQUALITY else ordered(both)
            values = [numbers[:rows], numbers[rows:]]
        else:
            values = [side.fill_null(0).to_numpy(zero_copy_only=False) for side in sides]
        return [values[0], valid[0], values[1], valid[1]]


@dataclass(frozen=True)
class Matched:
    """The pattern; `compared`: what is asked of both events; `columns` see the fields of `a`, then those of `b`; `rows`: the projection is the two rows themselves."""

    begin: Filter
    end: Filter
    key: int
    span: int
    limit: int
    type: RowType
    columns: tuple[Expr, ...] | None
    compared: tuple[Compared, ...] = ()

    @cached_property
    def _text(self) -> str:
        given = "".join(f"x{i}, v{i}, y{i}, w{i}, " for i in range(len(self.compared)))
        condition = " and ".join(each.line(i) for i, each in enumerate(self.compared)) or "True"
        return _LOOP.format(given=given, condition=condition)

    @cached_property
    def _schema(self) -> pa.Schema:
        names = [f"field{i}" for i in range(len(self.type.fields))]
        kinds = [carried(kind) for kind in self.type.fields.values()]
        return pa.schema([("time", pa.int64()), *zip(names, kinds, strict=True)])

    def start(self, now: int) -> State:
        """Nothing waits."""
        return State({"partial": self._schema.empty_table()}, {"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The matches that the batch's events complete. Raises QueryError when too many partial matches wait."""
        before: int = state.scalars["now"]
        now = max(before, batch.now)
        partial = state.tables["partial"]
        old, begins, ends = partial.num_rows, self._mask(self.begin, batch), self._mask(self.end, batch)
        places = np.flatnonzero(begins | ends)  # an event that neither begins nor ends one changes nothing
        begins, ends, arrivals = begins[places], ends[places], np.maximum(batch.times[places], before)
        columns = batch.columns
        if len(places) < batch.rows:
            columns = tuple(column.take(pa.array(places)) for column in columns)
        events = pa.table([pa.array(arrivals), *(plain(column) for column in columns)], schema=self._schema)
        together = pa.concat_tables([partial, events]).combine_chunks()
        times = together.column("time").to_numpy().copy()
        codes, keys = self._numbered(together, old)
        begins = np.concatenate([np.ones(old, bool), begins])
        ends = np.concatenate([np.zeros(old, bool), ends])
        matched = np.zeros(len(times), bool)
        one, other = (np.empty(int(begins.sum()), np.int64) for _ in range(2))
        fields = [_array(column) for column in together.columns[1:]] if self.compared else []
        given = [each for compared in self.compared for each in compared.given(fields, len(times))]
        n = loop(self._text)(old, keys, self.span, times, codes, begins, ends, matched, *given, one, other)
        left = np.flatnonzero(begins & ~matched & (times + self.span > now))
        if len(left) > self.limit:
            raise QueryError(
                f"a pattern holds {self.limit} partial matches",
                hint="bound it with timer:within, every-distinct or a limit on ->",
            )
        after = State({"partial": together.take(pa.array(left))}, {"now": now})
        return after, self._output(together, one[:n], other[:n], old, places)

    def _mask(self, filter: Filter, batch: Batch) -> np.ndarray:
        return flags(accepted(filter, None, batch.columns, batch.rows), batch.rows)

    def _numbered(self, together: pa.Table, old: int) -> tuple[np.ndarray, int]:
        """The keys of partial matches and events as codes that hold for this batch; null is -1 and equals nothing."""
        column = together.column(1 + self.key).chunk(0) if together.num_rows else pa.array([], pa.string())
        encoded = column.dictionary_encode()
        return _codes(encoded), len(encoded.dictionary)

    def _output(self, together: pa.Table, one: np.ndarray, other: np.ndarray, old: int, places: np.ndarray) -> Output:
        """The matches of events `one` of all together with events `other` of the batch, which stood there at `places`."""
        times = together.column("time").to_numpy()
        sides = [[c.take(pa.array(at)).combine_chunks() for c in together.columns[1:]] for at in (one, other + old)]
        flat = [_array(column) for side in sides for column in side]
        if self.columns is None:
            names, width = list(self.type.fields), len(self.type.fields)
            columns = [pa.StructArray.from_arrays(part, names) for part in (flat[:width], flat[width:])]
        else:
            columns = [evaluate(each, flat, len(one)) for each in self.columns]
        return Output(times[other + old], places[other], tuple(columns))


def _codes(values: pa.Array) -> np.ndarray:
    """Numbers that are equal where the values are; null is -1."""
    return values.dictionary_encode().indices.fill_null(-1).to_numpy().astype(np.int64)


def _array(column: pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column


def matched(plan: Select, type: RowType) -> Matched | str:
    """The core of a pattern over a stream of that type, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, PatternInput) or input.window is not None or input.prior:
        return "a pattern with a window"
    if plan.where is not None or plan.levels or plan.grouping or plan.lookups or plan.rate.limited:
        return "where, aggregates, look-ups or an output rate over a pattern"
    if plan.projection.having is not None:
        return "having over a pattern"
    parts = _parts(input.pattern)
    if isinstance(parts, str):
        return parts
    begin, end, span = parts
    key, value = end.equals[0]
    if not (isinstance(value, Field) and value.input == 0 and value.index == key):
        return "a key that is not the same field of both events"
    if list(type.fields.values())[key].kind not in KEYS:
        return f"a key of type {list(type.fields.values())[key]}"
    asked = _asked(end.test)
    if isinstance(asked, str) or (begin.test is not None and _asks_before(begin.test)):
        return asked if isinstance(asked, str) else "a condition of the first event on another"
    own, compared = asked
    tests = [None if begin.test is None else of_one_event(begin.test), own]
    filters = [Filter(node.stream, (), test) for node, test in zip((begin, end), tests, strict=True)]
    columns = None if plan.projection.whole else tuple(_flat(c, len(type.fields)) for c in plan.projection.columns)
    reason = first(map(filtered, filters)) or first(map(against, columns or ()))
    limit = input.pattern.limit
    return reason or Matched(filters[0], filters[1], key, span, limit, type, columns, compared)


def _parts(pattern: Pattern) -> tuple[FilterNode, FilterNode, int] | str:
    match pattern:
        case Pattern(
            root=FollowedNode(
                children=(
                    EveryNode(child=FilterNode(tag=0, equals=()) as begin, keys=None),
                    WithinNode(child=FilterNode(tag=1, equals=(_,)) as end, span=int() as span, most=None),
                ),
                limits=(),
            ),
            tags=2, discard=False, suppress=False, span=None,
        ) if begin.stream == end.stream and not begin.consume and not end.consume:  # fmt: skip
            return begin, end, span
        case _:
            return "a pattern other than every a -> b of one stream with the same key, within a time"


def _asks_before(test: Expr) -> bool:
    """Whether a filter's condition reads events before the one that it is asked of."""
    return any(isinstance(part, Field) and part.input < _EVENT for part in walk(test))


def _asked(test: Expr | None) -> tuple[Expr | None, tuple[Compared, ...]] | str:
    """What the second event must fulfil by itself, and compared with the first; or the first reason against."""
    parts = () if test is None else test.args if isinstance(test, All) else (test,)
    own, compared = list[Expr](), list[Compared]()
    for part in parts:
        if not _asks_before(part):
            own.append(of_one_event(part))
        elif (found := _compared(part)) is not None:
            compared.append(found)
        else:
            return "a condition of the second event on the first that is no comparison of one with the other"
    return (All(tuple(own)) if len(own) > 1 else own[0] if own else None), tuple(compared)


def _compared(part: Expr) -> Compared | None:
    """A comparison with an expression over the first event on one side and one over the second on the other."""
    if not isinstance(part, Call) or part.op.name not in _OPERATORS or against(of_one_event(part)) is not None:
        return None
    inputs = [{each.input for each in walk(side) if isinstance(each, Field)} for side in part.args]
    one, other = (of_one_event(side) for side in part.args)
    match inputs:
        case [before, after] if before == {0} and after <= {_EVENT}:
            return Compared(part.op.name, one, other)
        case [after, before] if before == {0} and after <= {_EVENT}:
            return Compared(_TURNED[part.op.name], other, one)
        case _:
            return None


def _flat(expr: Expr, width: int) -> Expr:
    """A column of the result over the fields of `a`, then those of `b`."""
    if isinstance(expr, Call) and expr.op.name.startswith("field ") and isinstance(row := expr.args[0], Field):
        return Field(0, row.index * width + int(expr.op.name.removeprefix("field ")), expr.type)
    return inside(expr, lambda inner: _flat(inner, width))
