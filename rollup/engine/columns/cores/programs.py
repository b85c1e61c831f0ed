"""Cores that are programs: what a program gets of the events of streams as columns, and its state as that of the core."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.descriptions import exchanged
from rollup.core.untyped import pc
from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.covering import against, filtered, first, wide
from rollup.engine.columns.cores.keys import bits_of
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.cores.rewriting import of_one_event
from rollup.engine.columns.evaluate import carried, evaluate, plain
from rollup.engine.expressions import All, Call, Expr, Field, Now, RowOf, Slot, inputs_read, inside, walk
from rollup.engine.operators import EQUAL, IS_NULL
from rollup.engine.programs.lowering.components import Program
from rollup.engine.programs.runtime.running import Running
from rollup.engine.rows.plans import Filter, StreamInput
from rollup.engine.rows.windows.base import timeless
from rollup.engine.state import Live, State
from rollup.engine.timers import Phase
from rollup.engine.types import BOOL, DOUBLE, LONG, DataType, Kind, RowType

_KEYS = {Kind.INT: LONG, Kind.DOUBLE: LONG}
_FILLS: Mapping[Kind, object] = {Kind.STRING: "", Kind.BOOL: False}
_STANDS_FOR = {Kind.FLOAT: DOUBLE, Kind.DURATION: LONG}
"""Types whose values a program has as those of another."""


@dataclass(frozen=True)
class Column:
    """What a program gets of the events of a stream: a value, or whether an event passes; of a `key` what is equal where it is,
    `filled` where it is null.
    """

    of: Expr | Filter
    key: bool = False
    filled: bool = False
    needed: Filter | None = None
    """The filter of the events that must have a value."""

    @property
    def type(self) -> DataType:
        """The type of its values."""
        if isinstance(self.of, Filter):
            return BOOL
        return (_KEYS if self.key else _STANDS_FOR).get(self.of.type.kind, self.of.type)

    def values(self, batch: Batch) -> pa.Array:
        """Its values for a batch."""
        if isinstance(self.of, Filter):
            passes = accepted(self.of, None, batch.columns, batch.rows)
            assert passes is not None  # no column says of a filter that all events pass
            return passes
        found = plain(evaluate(self.of, batch.columns, batch.rows))
        if self.needed is not None and found.null_count:
            passes, missing = accepted(self.needed, None, batch.columns, batch.rows), found.is_null()
            if pc.any(missing if passes is None else pc.and_(passes, missing)).as_py():
                raise timeless()
        if self.filled:
            found = found.fill_null(_FILLS.get(self.of.type.kind, 0))
        if self.key and pa.types.is_floating(found.type):
            return bits_of(found, False)
        return found.cast(carried(self.type)) if self.of.type.kind in _STANDS_FOR else found


Given = tuple[tuple[str, tuple[Column, ...]], ...]
"""What a program gets of each stream."""


class Columns:
    """The columns that a program gets of the streams that it reads, by input, while its plan is made."""

    def __init__(self, *streams: str) -> None:
        self._streams = streams
        self._places: dict[str, dict[Column, int]] = {stream: {} for stream in streams}

    def of(self, made: Column, input: int, of: int | None = None) -> Field:
        """A column of an input; `of` says as which input it is read."""
        places = self._places[self._streams[input]]
        return Field(input if of is None else of, places.setdefault(made, len(places)), made.type)

    def input(self, source: StreamInput, number: int) -> StreamInput:
        """An input over the columns."""
        filter = source.filter
        passes = self.of(Column(filter), number, 0) if filter.test is not None or filter.equals else None
        return StreamInput(Filter(filter.stream, (), passes), self._window(source.window, filter, number))

    def _window(self, window: Any, filter: Filter, number: int) -> Any:
        """A window over the columns; the row that a condition calls the oldest is another input to it."""
        needed = filter if hasattr(window, "time") else None

        def own(each: Any) -> Any:
            read = inputs_read([each]) if isinstance(each, Expr) and not isinstance(each, Now) else ()
            if len(read) != 1 or any(isinstance(part, Slot) for part in walk(each)):
                return each
            return self.of(Column(of_one_event(each), needed=needed), number, *read)

        return exchanged(window, own)

    def equal(self, pair: Sequence[Expr], nulls: bool = False) -> Expr:
        """That expressions of both inputs are equal, which a hash tells; `nulls`: also where both are null."""
        own = [of_one_event(each) for each in pair]
        known = Call(EQUAL, tuple(self.of(Column(each, True, nulls), number) for number, each in enumerate(own)), BOOL)
        if not nulls:
            return known
        missing = (Column(Call(IS_NULL, (each,), BOOL)) for each in own)
        return All((known, Call(EQUAL, tuple(self.of(each, number) for number, each in enumerate(missing)), BOOL)))

    def over(self, expr: Expr, nullable: Collection[int] = ()) -> Expr:
        """An expression of both rows, in which the parts that read one alone are columns; of inputs that are `nullable`, whose
        row may be missing, only fields are."""
        read, plain = inputs_read([expr]), not any(isinstance(each, Slot | RowOf) for each in walk(expr))
        if isinstance(expr, Field) and expr.input in nullable:
            return replace(self.of(Column(of_one_event(expr)), expr.input), optional=True)
        if len(read) != 1 or wide(expr) or not plain or not read.isdisjoint(nullable):
            return inside(expr, lambda part: self.over(part, nullable))
        (input,) = read
        return self.of(Column(of_one_event(expr)), input)

    @property
    def found(self) -> Given:
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


def fed(
    program: Program,
    given: Given,
    state: State,
    batch: Batch,
    late: Phase | None = None,
    values: Mapping[str, int] = MappingProxyType({}),
) -> tuple[State, dict[str, Sequence[pa.Array]]]:
    """The state after a batch, and what the program makes: instants, events, signs and values, then the tables of operators.
    `late`: what is due of a phase comes all at once, at the end of the batch; `values`: those of fields from now on."""
    running, now = at_work(program, state), max(state.scalars["now"], batch.now)
    for field, value in values.items():
        running.set(field, value)
    for stream, columns in given:
        if stream == batch.stream and batch.rows:
            running, times = running.fit(batch.rows), pa.array(np.maximum(batch.times, state.scalars["now"]))
            running.send(stream, [each.values(batch) for each in columns], times)
    running.advance(now, late)
    return live(running, now), {**running.taken()}


def at_work(program: Program, state: State) -> Running:
    """The program of a state."""
    if isinstance(state, Live):
        return state.of
    running = Running(program)
    running.restore({**state.tables})
    return running


def live(running: Running, now: int) -> State:
    """The state of a program."""
    return Live(running, {"now": now}, running.save)


def values_of(columns: Sequence[pa.Array], kinds: Sequence[DataType]) -> list[pa.Array]:
    """What a program makes as columns of these types; texts stay numbers beside them."""
    return [
        each if kind.kind in (Kind.STRING, Kind.LIST) or each.type == carried(kind) else each.cast(carried(kind))
        for each, kind in zip(columns, kinds, strict=True)
    ]
