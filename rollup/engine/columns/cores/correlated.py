"""A sub-query that compares its rows with the outer row, adds up those of a key, or gives an expression of both.

An event reads each row of its key that the window holds when it comes, as the row executor does. So sums of doubles are
equal to the last bit.

State: as that of a sub-query that asks for a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.core.untyped import pc
from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.covering import against, filtered, first
from rollup.engine.columns.cores.declared import Lines, arrays_of, uncountable
from rollup.engine.columns.cores.folded import fields_for_slots
from rollup.engine.columns.cores.joined import flat
from rollup.engine.columns.cores.rewriting import calls_of, of_one_event
from rollup.engine.columns.cores.sought import Sought, Window, parted, unequal, unheld
from rollup.engine.columns.cores.terms import Term, number, numeric, test
from rollup.engine.columns.evaluate import evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import CHAINS, block, loop
from rollup.engine.expressions import Const, Expr, Field, inputs_read, walk
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.plans import StreamInput, Subquery
from rollup.engine.types import BOOL, RowType

_OUTSIDE, _ROW = range(2)
_LOOP = """
def core(
    old, size, span, times, codes, before, places, came, wanted, keys, {fields}{given}{slots}{results}many, which,
):
    firsts, lasts = np.full(keys, -1, np.int64), np.full(keys, -1, np.int64)
    earlier, later = np.full(len(codes), -1, np.int64), np.full(len(codes), -1, np.int64)
    head = come = k = 0
    for i in range(len(came)):
        while come < len(times) and (come < old or places[come - old] <= i):
            if codes[come] >= 0:
                link(come, codes[come], firsts, lasts, later, earlier)
            gone = before[come]
            if gone >= 0 and codes[gone] >= 0:
                unlink(gone, codes[gone], firsts, lasts, later, earlier)
            come += 1
        while (size >= 0 and come - head > size) or (span >= 0 and head < come and times[head] + span <= came[i]):
            if codes[head] >= 0:
                unlink(head, codes[head], firsts, lasts, later, earlier)
            head += 1
        row = firsts[wanted[i]] if wanted[i] >= 0 else -1
{forget}
        while row >= 0:
            if {holds}:
                many[i] += 1
                which[i] = row
{enter}
            row = later[row]
{value}
"""


@dataclass(frozen=True)
class Correlated(Sought):
    """The sub-query. `test`: what a row (input 1) must fulfil beside the row outside (input 0); `calls`: what is added up of the
    rows that do, whose results `column` reads; without any it reads both rows.
    """

    test: Expr | None = None
    calls: tuple[AggregateCall, ...] = ()

    @cached_property
    def lines(self) -> Lines:
        """The calls; each event begins them anew."""
        return Lines(self.calls, stay=True)

    @cached_property
    def _fields(self) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
        """The fields that are read of the row outside, and of the other."""
        found = [each for part in (self.test, self.column) if part is not None for each in walk(part)]
        of_each = [[f for f in found if isinstance(f, Field) and f.input == input] for input in (_OUTSIDE, _ROW)]
        outside, row = (tuple(dict.fromkeys(each)) for each in of_each)
        return outside, row

    @property
    def read(self) -> tuple[Expr, ...]:
        """The fields, and what is added up."""
        return (
            *map(of_one_event, self._fields[_ROW]),
            *(each for each in self.lines.arguments if isinstance(each, Expr)),
        )

    def _leaf(self, expr: Expr) -> Term | None:
        if not isinstance(expr, Field) or not numeric(expr.type.kind):
            return None
        names, row = ("pq", "i") if expr.input == _OUTSIDE else ("yw", "row")
        place = self._fields[expr.input].index(expr)
        return number(f"{names[0]}{place}[{row}]", f"{names[1]}{place}[{row}]", expr.type.kind)

    @cached_property
    def _holds(self) -> str | None:
        return "True" if self.test is None else test(self.test, self._leaf)

    def against(self) -> str | None:
        """The first reason against it."""
        return unheld(self.input) or first(
            (
                filtered(self.input.filter, self.where),
                unequal(self.keys),
                *(uncountable(call, "all stay") for call in self.calls),
                against(self.column),
                None if self._holds is not None else "a sub-query that asks of the row outside what no loop can",
            )
        )

    @cached_property
    def _text(self) -> str:
        lines, fields = self.lines, list[str]()
        for names, found in zip(("pq", "yw"), self._fields, strict=True):
            fields += [f"{name}{place}" for place in range(len(found)) for name in names]
        enter = ["break"] if self.what == "exists" else lines.change("enter", "row")
        return _LOOP.format(
            fields="".join(f"{name}, " for name in fields),
            holds=self._holds,
            forget=block(lines.forget(), 2),
            enter=block(enter, 4),
            value=block(lines.value("i"), 2),
            **lines.names,
        )

    def answer(self, window: Window, batch: Batch, before: int) -> pa.Array:
        """The answer to each event."""
        outside = [evaluate(of_one_event(each), batch.columns, batch.rows) for each in self._fields[_OUTSIDE]]
        inside = window.read(len(self.read))
        many, which, results = self._looked(window, batch, before, outside, inside)
        if self.what == "exists":
            return pa.array(many > 0)
        if self.calls:
            return evaluate(fields_for_slots(self.column, 0), results, batch.rows)
        return self._shown(many, which, outside, inside)

    def _looked(
        self, window: Window, batch: Batch, before: int, outside: Sequence[pa.Array], inside: Sequence[pa.Array]
    ) -> tuple[Ints, Ints, list[pa.Array]]:
        """How many rows each event finds, the last of them, and what is added up of them."""
        outer = [evaluate(each, batch.columns, batch.rows) for _, each in self.keys]
        codes, wanted, keys = window.codes(outer, batch.rows)
        given = [*_arrays(self._fields[_OUTSIDE], outside), *_arrays(self.read, inside)]
        slots, results = [np.zeros(1, each.dtype) for each in self.lines.slots], self.lines.room(batch.rows)
        many, which = np.zeros(batch.rows, np.int64), np.zeros(batch.rows, np.int64)
        loop(self._text, CHAINS)(
            window.old, *self.bounds, window.times, codes, window.replaced, window.places,
            np.maximum(batch.times, before), wanted, keys, *given, *slots, *results, many, which,
        )  # fmt: skip
        return many, which, self.lines.results(results, batch.rows)

    def _shown(self, many: Ints, which: Ints, outside: Sequence[pa.Array], inside: Sequence[pa.Array]) -> pa.Array:
        """What is shown of each event and the one row that it has found; null where there is none, or another one, too."""
        alone = pa.array(many == 1)
        rows = [*outside, *(each.take(pa.array(which, mask=many != 1)) for each in inside)]
        fields = (each for of_side in self._fields for each in of_side)
        places = {(each.input, each.index): place for place, each in enumerate(fields)}
        shown = evaluate(flat(self.column, places), rows, len(many))
        return pc.if_else(alone, shown, pa.scalar(None, shown.type))


def _arrays(exprs: Sequence[Expr], columns: Sequence[pa.Array]) -> list[np.ndarray]:
    return [array for each, column in zip(exprs, columns, strict=True) for array in arrays_of(each, column)]


def correlated(lookup: Subquery, input: StreamInput, type: RowType) -> Correlated | str:
    """A sub-query of one value, or whether there is a row, or the first reason against it."""
    if lookup.keys or lookup.having is not None or (lookup.calls and lookup.mode != "value"):
        return "a sub-query of groups"
    keys, where, rest = parted(lookup)
    column = Const(True, BOOL) if lookup.mode == "exists" else lookup.columns[0]
    if lookup.calls and inputs_read([column]):
        return "a column of a sub-query that is no aggregate"
    added = [part for call in lookup.calls for part in (*call.args, call.where) if part is not None]
    if inputs_read(added) - {1}:
        return "aggregates of a sub-query over the row outside"
    calls, what = calls_of(lookup), "exists" if lookup.mode == "exists" else "value"
    made = Correlated(input, type, what, keys, column, where, test=rest, calls=calls)
    return made.against() or made
