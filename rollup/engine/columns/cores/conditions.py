"""Windows by a condition over their own content: a loop of the condition says which rows have left with each arrival.

State: `measured`, the slots of the aggregates over the content, one row; there is none where the condition has no such.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.changes import Moved, Step
from rollup.engine.columns.cores.covering import first
from rollup.engine.columns.cores.declared import Lines, arrays_of, reach_of, uncountable
from rollup.engine.columns.cores.terms import Term, number, numeric, test
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.columns.loops import block, loop
from rollup.engine.expressions import Expr, Field, Slot, walk
from rollup.engine.folding import AggregateCall, Group
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.expressed import (
    AGGREGATES,
    CURRENT,
    EXPIRED,
    NEWEST,
    OLDEST,
    Expressed,
)

MEASURED = "measured"
_BUILT_IN = {CURRENT: "i - head + 1", EXPIRED: "expired", NEWEST: "times[i]", OLDEST: "times[head]"}
_RUNNING = """
{functions}def core(old, times, codes, {fields}{given}rows, {slots}{results}gone):
    head, k = 0, 0
{prologue}
    for i in range(old, len(times)):
{let_out}
        gone[i - old] = head
"""
_LET_OUT = """
{enter}
expired = 0
while head <= i:
{value}
    if {holds}:
        break
{leave}
    head += 1
    expired += 1
"""


@dataclass(frozen=True)
class Condition:
    """The condition of a window; it sees the newest row (input 0), the oldest (input 1), counts, and the calls over the content."""

    expr: Expr
    calls: tuple[AggregateCall, ...]

    @cached_property
    def lines(self) -> Lines:
        """The calls."""
        return Lines(self.calls)

    @cached_property
    def _fields(self) -> tuple[Field, ...]:
        """The fields that are read of the newest and the oldest row."""
        return tuple(dict.fromkeys(Field(0, e.index, e.type) for e in walk(self.expr) if isinstance(e, Field)))

    @cached_property
    def _schema(self) -> pa.Schema:
        return pa.schema([pa.field(f"slot{i}", kind) for i, kind in enumerate(self.lines.slot_types())])

    def against(self) -> str | None:
        """The first reason against it."""
        reason = first(uncountable(call, "queue") for call in self.calls)
        return reason or ("a window by a condition that no loop can ask" if self._holds is None else None)

    @cached_property
    def _holds(self) -> str | None:
        return test(self.expr, self._leaf)

    def _leaf(self, expr: Expr) -> Term | None:
        match expr:
            case Slot(index=index) if index in _BUILT_IN:
                return Term(f"({_BUILT_IN[index]})", reach=2**53)
            case Slot(index=index):
                call = index - AGGREGATES
                return Term(f"r{call}[0]", f"ok{call}[0]", reach_of(self.calls[call]))
            case Field() if numeric(expr.type.kind):
                place = self._fields.index(Field(0, expr.index, expr.type))
                row = "head" if expr.input else "i"
                return number(f"y{place}[{row}]", f"w{place}[{row}]", expr.type.kind)
            case _:
                return None

    @cached_property
    def _text(self) -> str:
        lines, fields = self.lines, "".join(f"y{i}, w{i}, " for i in range(len(self._fields)))
        return _RUNNING.format(
            let_out=block(self._let_out(), 2), fields=fields, functions=lines.functions,
            prologue=block(lines.prologue(), 1), **lines.names,
        )  # fmt: skip

    def _let_out(self) -> list[str]:
        """The lines by which row `i` comes and others leave."""
        text = _LET_OUT.format(
            holds=self._holds,
            enter=block(self.lines.change("enter", "i"), 0),
            value=block(self.lines.value("0"), 1),
            leave=block(self.lines.change("leave", "head"), 1),
        )
        return text.strip("\n").splitlines()

    def start(self) -> dict[str, pa.Table]:
        """The table of no content."""
        return self.table(self.lines.fold.start())

    def table(self, group: Group) -> dict[str, pa.Table]:
        """The table of a group of the row executor."""
        return {MEASURED: pa.table(self.lines.slots_in([group]), schema=self._schema)} if self.lines.slots else {}

    def changes(self, step: Step, tables: Mapping[str, pa.Table]) -> Moved:
        """The changes of a step."""
        times, fields = step.times, list(step.fields)
        codes, rows = np.zeros(len(times), np.int64), np.zeros(1, np.int64)
        given = self.lines.arranged(self.lines.given(fields, len(times)), codes)
        read = [array for each in self._fields for array in arrays_of(each, evaluate(each, fields, len(times)))]
        measured = tables[MEASURED].columns if self.lines.slots else []
        slots = self.lines.grown(measured, 1)
        inner = [times, codes, *read, *given, rows, *slots, *self.lines.room(1)]
        gone = np.empty(len(step.taken.times), np.int64)
        loop(self._text)(step.held, *inner, gone)
        after = {MEASURED: pa.table(list(map(pa.array, slots)), schema=self._schema)} if slots else {}
        return Moved(step.each(gone), {}, after)


def condition_of(window: WindowSpec | None) -> Condition | None:
    """The condition of a window that goes by one."""
    return Condition(window.condition, window.calls) if isinstance(window, Expressed) else None
