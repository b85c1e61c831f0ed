"""Windows by a condition over their own content: a loop of the condition says which rows have left with each arrival, or which
close a batch.

State: `measured`, the slots of the aggregates over the content, one row; there is none where the condition has no such.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.changes import Changes, Moved, Step
from rollup.engine.columns.cores.covering import first
from rollup.engine.columns.cores.declared import Lines, arrays_of, reach_of, uncountable
from rollup.engine.columns.cores.terms import Term, number, numeric, test
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.columns.groups import Ints
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
    ExpressedBatch,
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
_BATCHES = """
{functions}def core(old, expired, times, codes, {fields}{given}rows, {slots}{results}event, come, gone):
    n, head, k = 0, 0, 0
{prologue}
    for i in range(old, len(times)):
{enter}
{value}
        if {holds}:
            end = {end}
            if end > head or expired > 0:
                event[n], come[n], gone[n] = i - old, end, head
                n += 1
            for j in range(head, i + 1):
{leave}
{forget}
            expired, head = end - head, end
            if end == i:
{again}
    return n
"""
"""A row that closes a batch and is not in it begins the next one."""


@dataclass(frozen=True)
class Condition:
    """The condition of a window; it sees the newest row (input 0), the oldest (input 1), counts, and the calls over the content.
    `inclusive`: it closes batches, and whether the row that makes it true is in the batch; None: rows leave while it is not.
    """

    expr: Expr
    calls: tuple[AggregateCall, ...]
    inclusive: bool | None

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
        lines, enter = self.lines, self.lines.change("enter", "i")
        prologue, fields = block(lines.prologue(), 1), "".join(f"y{i}, w{i}, " for i in range(len(self._fields)))
        if not self.batches:
            let_out = block(self._let_out(), 2)
            return _RUNNING.format(
                let_out=let_out, fields=fields, functions=lines.functions, prologue=prologue, **lines.names
            )
        parts = {
            "prologue": prologue,
            "enter": block(enter, 2),
            "value": block(lines.value("0"), 2),
            "leave": block(lines.change("leave", "j") if lines.held else [], 4),
            "forget": block(lines.forget(), 3),
            "again": block(enter, 4),
            "end": "i + 1" if self.inclusive else "i",
        }
        return _BATCHES.format(holds=self._holds, fields=fields, functions=lines.functions, **parts, **lines.names)

    def _let_out(self) -> list[str]:
        """The lines by which row `i` comes and others leave."""
        text = _LET_OUT.format(
            holds=self._holds,
            enter=block(self.lines.change("enter", "i"), 0),
            value=block(self.lines.value("0"), 1),
            leave=block(self.lines.change("leave", "head"), 1),
        )
        return text.strip("\n").splitlines()

    @property
    def batches(self) -> bool:
        """Whether rows come when a batch is complete."""
        return self.inclusive is not None

    def start(self) -> dict[str, pa.Table]:
        """The table of no content."""
        return self.table(self.lines.fold.start())

    def table(self, group: Group) -> dict[str, pa.Table]:
        """The table of a group of the row executor."""
        return {MEASURED: pa.table(self.lines.slots_in([group]), schema=self._schema)} if self.lines.slots else {}

    def changes(self, step: Step, tables: Mapping[str, pa.Table]) -> Moved:
        """The changes of a step; those of batches look at the rows behind the one that has come last."""
        base = 0 if self.inclusive is None else step.old
        times, fields = step.times[base:], [field[base:] for field in step.fields]
        codes, rows = np.zeros(len(times), np.int64), np.zeros(1, np.int64)
        given = self.lines.arranged(self.lines.given(fields, len(times)), codes)
        read = [array for each in self._fields for array in arrays_of(each, evaluate(each, fields, len(times)))]
        measured = tables[MEASURED].columns if self.lines.slots else []
        slots = self.lines.grown(measured, 1)
        inner = [times, codes, *read, *given, rows, *slots, *self.lines.room(1)]
        changes = self._left(step, inner) if self.inclusive is None else self._closed(step, inner)
        after = {MEASURED: pa.table(list(map(pa.array, slots)), schema=self._schema)} if slots else {}
        return Moved(changes, {}, after)

    def _left(self, step: Step, inner: Sequence[Ints]) -> Changes:
        gone = np.empty(len(step.taken.times), np.int64)
        loop(self._text)(step.held, *inner, gone)
        return step.each(gone)

    def _closed(self, step: Step, inner: Sequence[Ints]) -> Changes:
        event, come, gone = (np.empty(len(step.taken.times), np.int64) for _ in range(3))
        n = loop(self._text)(step.held - step.old, step.old, *inner, event, come, gone)
        return Changes(step.taken.times[event[:n]], event[:n], step.old + come[:n], step.old + gone[:n])


def condition_of(window: WindowSpec | None) -> Condition | None:
    """The condition of a window that goes by one."""
    match window:
        case Expressed(condition=expr, calls=calls):
            return Condition(expr, calls, None)
        case ExpressedBatch(condition=expr, calls=calls, inclusive=inclusive, early=False):
            return Condition(expr, calls, inclusive)
        case _:
            return None
