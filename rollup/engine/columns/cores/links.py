"""A link of a pattern of events that follow one another: what a partial match waits for next, and the loop that finds it.

A partial match waits for the first later event that has its keys (without keys, for any event). The event must pass the
link's own conditions and those that compare it with earlier events, before the time of the match is over. Of the partial
matches of one event the oldest comes first. The loop keeps a list of partial matches for each key.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine import operators as op
from rollup.engine.columns.cores.keys import matching, whole
from rollup.engine.columns.evaluate import Columns, carried, evaluate
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.columns.numbering import codes_of, ordered
from rollup.engine.expressions import Expr
from rollup.engine.rows.plans import Filter
from rollup.engine.types import RowType

OPERATORS = {
    op.EQUAL.name: "==",
    op.UNEQUAL.name: "!=",
    op.LESS.name: "<",
    op.LESS_EQUAL.name: "<=",
    op.GREATER.name: ">",
    op.GREATER_EQUAL.name: ">=",
}
_EQUALITY = (op.EQUAL.name, op.UNEQUAL.name)
_EVER = 2**62
_LOOP = """
def core(keys, until, begun, codes, came, wanted, ends, matched, {given}one, other):
    n, row, rows = 0, 0, len(codes)
    first = np.full(keys, -1, np.int64)
    last = np.full(keys, -1, np.int64)
    after = np.full(rows, -1, np.int64)
    for i in range(-1, len(came)):
        if i >= 0 and ends[i] and wanted[i] >= 0:
            k = wanted[i]
            p, kept = first[k], -1
            first[k] = -1
            while p >= 0:
                if until[p] > came[i]:
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
        while row < rows and begun[row] == i:
            k = codes[row]
            if k >= 0:
                if first[k] < 0:
                    first[k] = row
                else:
                    after[last[k]] = row
                last[k] = row
            row += 1
    return n
"""
"""Rows that wait, or begin to with an event: `until`, `begun`, `codes`; the batch's events: `came`, `wanted`, `ends`."""
_BY_BLOCKS = """
def core(until, begun, came, ends, matched, {given}one, other):
    n, row, rows = 0, 0, len(begun)
    waits = np.zeros(rows, np.bool_)
    some = np.zeros((rows >> 8) + 1, np.bool_)
    best = np.zeros((rows >> 8) + 1, {x}.dtype)
    for i in range(-1, len(came)):
        for b in range((row + 255) >> 8 if i >= 0 and ends[i] and {known}[i] else 0):
            if some[b] and best[b] {operator} {y}[i]:
                some[b] = False
                for p in range(b << 8, min((b + 1) << 8, row)):
                    if waits[p] and until[p] <= came[i]:
                        waits[p] = False
                    elif waits[p] and {condition}:
                        one[n], other[n] = p, i
                        n, matched[p], waits[p] = n + 1, True, False
                    elif waits[p] and (not some[b] or {x}[p] {better} best[b]):
                        some[b], best[b] = True, {x}[p]
        while row < rows and begun[row] == i:
            if {valid}[row] and {x}[row] == {x}[row]:
                b, waits[row] = row >> 8, True
                if not some[b] or {x}[row] {better} best[b]:
                    some[b], best[b] = True, {x}[row]
            row += 1
    return n
"""
"""The loop over rows without a key, one of whose values is compared by order.

For each 256 rows it has the value that an event meets first, so an event reads only those blocks in which it meets one.
"""


@dataclass(frozen=True)
class Compared:
    """A condition that compares something of what has come with something of the event, each an expression over its own."""

    operator: str
    one: Expr
    other: Expr

    def line(self, number: int, row: str = "p") -> str:
        """The condition on a row and event `i`, in a loop; null is neither equal nor unequal to anything."""
        x, y = f"x{number}[{row}]", f"y{number}[i]"
        return f"v{number}[{row}] and w{number}[i] and {x} {OPERATORS[self.operator]} {y}"

    def given(self, before: Columns, waiting: int, columns: Columns, rows: int) -> list[np.ndarray]:
        """Values and validity of one side for each of some partial matches, and of the other for each of some events."""
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
class Guard:
    """`timer:within`: the match must go on before `span` ms after its event number `since` came; `node`: its number in the
    pattern.
    """

    since: int
    span: int
    node: int


@dataclass(frozen=True)
class Link:
    """`keys`: what must be equal, over the fields that a partial match has and over those of the event; `compared`: what
    else is asked of both. `types`: of the events of which a partial match has the fields; `events`: how many have come;
    `binds`: the type of the event, where it has a name. `states`: what the row executor counts for one that waits; `node`:
    the number of the filter in the pattern.
    """

    filter: Filter
    keys: tuple[tuple[Expr, Expr], ...]
    compared: tuple[Compared, ...]
    guards: tuple[Guard, ...]
    types: tuple[RowType, ...]
    events: int
    binds: RowType | None
    states: int
    node: int

    @cached_property
    def _text(self) -> str:
        given = "".join(f"x{i}, v{i}, y{i}, w{i}, " for i in range(len(self.compared)))
        condition = " and ".join(each.line(i) for i, each in enumerate(self.compared)) or "True"
        if (i := self._by_order) is None:
            return _LOOP.format(given=given, condition=condition)
        operator = OPERATORS[self.compared[i].operator]
        names = {"x": f"x{i}", "valid": f"v{i}", "y": f"y{i}", "known": f"w{i}"}
        return _BY_BLOCKS.format(given=given, condition=condition, operator=operator, better=operator[0], **names)

    @cached_property
    def _by_order(self) -> int | None:
        """Which comparison is by order, where there is no key."""
        found = (place for place, each in enumerate(self.compared) if each.operator not in _EQUALITY)
        return None if self.keys else next(found, None)

    @property
    def searchable(self) -> bool:
        """Whether an event need not look at all that waits."""
        return bool(self.keys) or not self.compared or self._by_order is not None

    @cached_property
    def schema(self) -> pa.Schema:
        """A partial match: when its events came, and the fields of those that have names."""
        fields = [kind for each in self.types for kind in each.fields.values()]
        times = [(f"time{i}", pa.int64()) for i in range(self.events)]
        return pa.schema([*times, *((f"field{i}", carried(kind)) for i, kind in enumerate(fields))])

    def fields(self, waiting: pa.Table) -> list[pa.Array]:
        """The fields of partial matches."""
        return [whole(column) for column in waiting.columns[self.events :]]

    def until(self, waiting: pa.Table) -> Ints:
        """The instant from which on a partial match can no longer become true."""
        found = np.full(waiting.num_rows, _EVER)
        for each in self.guards:
            found = np.minimum(found, waiting.column(each.since).to_numpy() + each.span)
        return found

    def matches(
        self, waiting: pa.Table, until: Ints, begun: Ints, columns: Columns, came: Ints, ends: np.ndarray
    ) -> tuple[np.ndarray, Ints, Ints]:
        """Which partial matches, in the order of the events that they have `begun` with (-1: before the batch), have gone on,
        each before `until`; and the pairs of them and the events that they have gone on with.
        """
        rows, events = waiting.num_rows, len(came)
        matched = np.zeros(rows, bool)
        if not rows or not ends.any():
            return matched, np.empty(0, np.int64), np.empty(0, np.int64)
        fields = self.fields(waiting)
        one, other = (np.empty(rows, np.int64) for _ in range(2))
        given = [each for compared in self.compared for each in compared.given(fields, rows, columns, events)]
        if self._by_order is not None:
            n = loop(self._text)(until, begun, came, ends, matched, *given, one, other)
        else:
            codes, wanted, keys = self._numbered(fields, begun, columns, events)
            n = loop(self._text)(keys, until, begun, codes, came, wanted, ends, matched, *given, one, other)
        return matched, one[:n], other[:n]

    def _numbered(
        self, fields: Sequence[pa.Array], begun: Ints, columns: Columns, events: int
    ) -> tuple[Ints, Ints, int]:
        """The keys of rows and of events as codes that hold for this batch; null is -1 and equals nothing."""
        if not self.keys:
            return np.zeros(len(begun), np.int64), np.zeros(events, np.int64), 1
        same = self.events == 1 and all(one == other for one, other in self.keys)
        # What begins with an event of the batch has the keys of that event, where both sides of each are the same.
        held = int(np.count_nonzero(begun < 0)) if same else len(begun)
        before = [each.slice(0, held) for each in fields]
        pairs = ((evaluate(one, before, held), evaluate(other, columns, events)) for one, other in self.keys)
        codes, wanted, keys = matching(pairs)
        return np.concatenate([codes, wanted[begun[held:]]]), wanted, keys
