"""A sub-query that looks rows of a window up, as a program: whether there is one, the value of the only one, an aggregate of
them, or whether a value is among theirs.

What reads one row alone, be it that inside or the one outside, is a column. The program has the window, finds rows by what
must be equal, and tests what reads both rows.

State: that of the program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.covering import against, equated, filtered, first, wide
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.cores.rewriting import of_one_event
from rollup.engine.columns.evaluate import carried, evaluate, plain
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Ask, Call, Const, Expr, Field, inputs_read, inside
from rollup.engine.operators import EQUAL, IS_NULL
from rollup.engine.programs.lowering.components import Program, lowered_select
from rollup.engine.programs.lowering.unsupported import Unsupported
from rollup.engine.programs.runtime.running import Running
from rollup.engine.rows.plans import Filter, Select, StreamInput, Subquery
from rollup.engine.rows.selects.joining import equality
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.state import Live, State
from rollup.engine.types import BOOL, INT, LONG, DataType, Kind, RowType

_WHOLE = (Kind.INT, Kind.LONG)


@dataclass(frozen=True)
class Column:
    """What a program gets of the events of a stream: a value, or whether an event passes; of a `key` what is equal where it is."""

    of: Expr | Filter
    key: bool = False

    @property
    def type(self) -> DataType:
        """The type of its values."""
        if isinstance(self.of, Filter):
            return BOOL
        return LONG if self.key and self.of.type.kind in (*_WHOLE, Kind.DOUBLE) else self.of.type

    def values(self, batch: Batch) -> pa.Array:
        """Its values for a batch."""
        if isinstance(self.of, Filter):
            mask = accepted(self.of, None, batch.columns, batch.rows)
            return pa.repeat(True, batch.rows) if mask is None else mask
        found = plain(evaluate(self.of, batch.columns, batch.rows))
        return _bits(found) if self.key and pa.types.is_floating(found.type) else found


def _bits(values: pa.Array) -> pa.Array:
    """Doubles as whole numbers that are equal where they are: one zero, and what is no number equals nothing."""
    found = values.to_numpy(zero_copy_only=False) + 0.0
    return pa.array(found.view(np.int64), mask=np.isnan(found))


@dataclass(frozen=True)
class Sought:
    """The sub-query. `columns`: what the program gets of the events of each stream; `type`: that of the answers.

    `value`: what is looked for among the values of the rows. The program then says whether it is there, whether any row is,
    and whether one without a value is.
    """

    program: Program
    columns: tuple[tuple[str, tuple[Column, ...]], ...]
    type: DataType
    value: Expr | None = None

    def start(self, now: int) -> State:
        """An empty window."""
        return _live(Running(self.program, start=now), now)

    def step(self, state: State, batch: Batch, asking: bool) -> tuple[State, list[pa.Array]]:
        """The state after a batch; and, where its events are `asking`, the answer for each."""
        now: int = state.scalars["now"]
        running = state.of if isinstance(state, Live) else Running(self.program)
        if not isinstance(state, Live):
            running.restore({**state.tables})
        for stream, columns in self.columns:
            if stream == batch.stream and batch.rows:
                running, times = running.fit(batch.rows), pa.array(np.maximum(batch.times, now))
                running.send(stream, [each.values(batch) for each in columns], times)
        running.advance(batch.now)
        (output,) = running.taken().values()
        return _live(running, max(now, batch.now)), [self._answer(output[3:], batch)] if asking else []

    def _answer(self, found: Sequence[pa.Array], batch: Batch) -> pa.Array:
        if self.value is None:
            answer = plain(found[0])
            return answer if answer.type == carried(self.type) else answer.cast(carried(self.type))
        there, some, nulls = found
        missing = evaluate(self.value, batch.columns, batch.rows).is_null()
        unknown = pc.and_(pc.and_(some, pc.invert(there)), pc.or_(nulls, missing))
        return pc.if_else(unknown, pa.scalar(None, pa.bool_()), there)


def _live(running: Running, now: int) -> State:
    return Live(running, {"now": now}, running.save)


class _Columns:
    """The columns that a program gets, while its plan is made; the event outside is input 0, and the row inside input 1."""

    def __init__(self, outside: str, inside: str) -> None:
        self._streams = outside, inside
        self._places: dict[str, dict[Column, int]] = {outside: {}, inside: {}}

    def of(self, made: Column, input: int, of: int | None = None) -> Field:
        """A column of an input; `of` says as which input it is read."""
        places = self._places[self._streams[input]]
        return Field(input if of is None else of, places.setdefault(made, len(places)), made.type)

    def key(self, expr: Expr, input: int) -> Field:
        """An expression that is compared by a hash."""
        return self.of(Column(of_one_event(expr), True), input)

    def over(self, expr: Expr) -> Expr:
        """An expression of both rows, in which the parts that read one alone are columns."""
        read = inputs_read([expr])
        if len(read) != 1 or wide(expr):
            return inside(expr, self.over)
        (input,) = read
        return self.of(Column(of_one_event(expr)), input)

    @property
    def found(self) -> tuple[tuple[str, tuple[Column, ...]], ...]:
        """Those of each stream."""
        return tuple((stream, tuple(places)) for stream, places in self._places.items())

    def types(self) -> Mapping[str, RowType]:
        """The types of the events that the program gets."""
        return {
            stream: RowType(stream, {f"f{place}": each.type for each, place in places.items()})
            for stream, places in self._places.items()
        }

    def against(self) -> str | None:
        """The first reason against one of them."""
        return first(
            filtered(each.of) if isinstance(each.of, Filter) else against(each.of) or wide(each.of)
            for _, columns in self.found
            for each in columns
        )


def sought(lookup: Subquery, input: StreamInput, outside: str, value: Expr | None) -> Sought | str:
    """A sub-query asked by the events of a stream, or the first reason against it; `value`: what is looked for among its rows."""
    if input.unnest or input.prior or lookup.keys or lookup.having is not None:
        return "a sub-query of groups, or over an input that is not a plain stream"
    columns = _Columns(outside, input.filter.stream)
    window = input.window
    for name in ("key", "by"):
        if found := getattr(window, name, ()):
            of_window = tuple(columns.of(Column(of_one_event(each)), 1, 0) for each in found)
            window = replace(window, **{name: of_window})  # type: ignore[type-var]
    passes = columns.of(Column(input.filter), 1, 0)
    own = StreamInput(Filter(input.filter.stream, (), passes), window)
    where = [_condition(part, columns) for part in conjuncts(lookup.where)]
    lookups = _lookups(lookup, where, value, columns)
    if isinstance(lookups, str):
        return lookups
    kind = BOOL if value is not None or lookup.mode == "exists" else lookup.columns[0].type
    shown = Projection(tuple(Ask(number, each.columns[0].type) for number, each in enumerate(lookups)))
    types = RowType("", {f"f{number}": each.columns[0].type for number, each in enumerate(lookups)})
    plan = Select((StreamInput(Filter(outside)),), types, shown, lookups=lookups, own_inputs=(own,))
    reason = columns.against()
    if reason is not None:
        return reason
    program = lowered_select(plan, columns.types().get)
    wider = lookup.mode == "value" and kind == INT and (lookup.calls or wide(lookup.columns[0]))
    if isinstance(program, Unsupported):
        return f"a sub-query with {program.feature} ({program.detail})"
    return Sought(program, columns.found, LONG if wider else kind, value)


def _condition(part: Expr, columns: _Columns) -> Expr:
    """A part of what the rows must fulfil; what must be equal is compared by a hash, where one can tell."""
    pair = equality(part, 1)
    if pair is None or not equated(of_one_event(pair[0]), of_one_event(pair[1])):
        return columns.over(part)
    return Call(EQUAL, (columns.key(pair[0], 0), columns.key(pair[1], 1)), BOOL)


def _lookups(
    lookup: Subquery, where: Sequence[Expr], value: Expr | None, columns: _Columns
) -> tuple[Subquery, ...] | str:
    """What the program looks up."""
    if value is None:
        shown = (Const(True, BOOL),) if lookup.mode == "exists" else tuple(map(columns.over, lookup.columns))
        calls = tuple(
            replace(
                call,
                args=tuple(map(columns.over, call.args)),
                where=None if call.where is None else columns.over(call.where),
            )
            for call in lookup.calls
        )
        return (replace(lookup, input=1, columns=shown, where=conjunction(where), calls=calls),)
    column = of_one_event(lookup.columns[0])
    if lookup.calls or not equated(column, value):
        return "a sub-query that asks for keys of other types"
    there = Call(EQUAL, (columns.key(value, 0), columns.key(lookup.columns[0], 1)), BOOL)
    nothing = Call(EQUAL, (columns.of(Column(Call(IS_NULL, (column,), BOOL)), 1), Const(True, BOOL)), BOOL)
    exists = Subquery(1, "exists", (Const(True, BOOL),))
    return tuple(replace(exists, where=conjunction([*where, *more])) for more in ([there], [], [nothing]))
