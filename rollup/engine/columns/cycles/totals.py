"""Aggregates over a window of time by keys: in each cycle the changed row of each key that something happened to.

State: `rows`, those of the window and those that wait (instant, time, group, arguments); `groups`: keys, rows in the
window, when it began among all, whether a row is shown, the values last shown, slots. A window that is empty is gone,
unless it is pinned; when it comes back it begins behind the others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Output
from rollup.engine.columns.cores.declared import Lines
from rollup.engine.columns.cores.keys import KeyCodes, whole
from rollup.engine.columns.cycles.clocked import CYCLES, Chained, Events, Lined, next_due, rows_schema
from rollup.engine.columns.evaluate import Columns, arrow, evaluate, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import block, loop
from rollup.engine.expressions import Expr
from rollup.engine.state import State
from rollup.engine.types import DataType, Kind

_PROLOGUE = """
    touched = np.empty(len(begun), np.int64)
    seen = np.zeros(len(begun), np.int64)
    stamp = 0
    for k in range(len(begun)):
        numbered = max(numbered, begun[k])
"""
_CYCLE = """
        stamp, t = stamp + 1, 0
        for j in range(i, last):
            k = codes[j]
            if begun[k] == 0:
                numbered += 1
                begun[k] = numbered
            if seen[k] != stamp:
                seen[k] = stamp
                touched[t] = k
                t += 1
        for j in range(out):
            q = leaving[j]
            k = codes[q]
            if seen[k] != stamp:
                seen[k] = stamp
                touched[t] = k
                t += 1
            rows[k] -= 1
{leave}
        for q in range(i, last):
            k = codes[q]
            rows[k] += 1
{enter}
        if t > 16:
            touched[:t] = touched[:t][np.argsort(begun[touched[:t]])]
        else:
            for a in range(1, t):
                k, b = touched[a], a
                while b > 0 and begun[touched[b - 1]] > begun[k]:
                    touched[b] = touched[b - 1]
                    b -= 1
                touched[b] = k
        for j in range(t):
            k = touched[j]
            at[n], group[n] = now, k
            if rows[k] == 0 and not pinned:
                if dead and shown[k]:
{before}
                    n += 1
                shown[k] = False
                begun[k] = 0
{forget}
                continue
{value}
            changed = not shown[k]
{compare}
            if changed:
                said = shown[k] or not dead
                shown[k] = True
{replace}
                if said:
                    n += 1
"""


@dataclass(frozen=True)
class Totals:
    """`dead`: the rows that are replaced, not those that replace them. `entrance` calls have nothing leave; of a call in
    `differences` the change is shown. The select sees the keys, then the calls."""

    chain: Chained
    keys: tuple[tuple[int, DataType], ...]
    lines: Lines
    differences: frozenset[int]
    pinned: bool
    dead: bool
    test: Expr | None
    columns: tuple[Expr, ...]
    _codes: KeyCodes = field(default_factory=KeyCodes, compare=False, repr=False)

    @property
    def streams(self) -> tuple[str, ...]:
        """The one stream."""
        return (self.chain.stream,)

    @cached_property
    def _text(self) -> str:
        lines, calls = self.lines, range(len(self.lines.calls))
        shown = "".join(f"p{c}, pok{c}, " for c in calls)
        cycle = _CYCLE.format(
            leave=block(lines.change("leave", "q"), 3),
            enter=block(lines.change("enter", "q"), 3),
            value=block(lines.value(), 3),
            forget=block([*lines.forget(), *(f"pok{c}[k] = False" for c in calls)], 4),
            before=block([f"r{c}[n], ok{c}[n] = p{c}[k], pok{c}[k]" for c in calls], 5),
            compare=block([line for c in calls for line in _compared(c)], 3),
            replace=block([line for c in calls for line in self._replaced(c)], 4),
        )
        given = (
            f"codes, {lines.names['given']}rows, begun, shown, {shown}{lines.names['slots']}pinned, dead, at, group, "
        )
        return CYCLES.format(given=given + lines.names["results"], prologue=_PROLOGUE, cycle=cycle)

    def _replaced(self, call: int) -> list[str]:
        """The lines that keep the new value of a call, and show it, the change or what was there."""
        keep = [f"now_{call}, now_ok = r{call}[n], ok{call}[n]"]
        if call in self.differences:
            keep += [f"r{call}[n] = (r{call}[n] if now_ok else 0) - (p{call}[k] if pok{call}[k] else 0)"]
            keep += [f"ok{call}[n] = True"]
        else:
            keep += ["if dead:", f"    r{call}[n], ok{call}[n] = p{call}[k], pok{call}[k]"]
        return [*keep, f"p{call}[k], pok{call}[k] = now_{call}, now_ok"]

    @cached_property
    def _schemas(self) -> tuple[pa.Schema, pa.Schema]:
        last = [pa.field(f"last{c}", kind) for c, kind in enumerate(self._last_types)]
        slots = [pa.field(f"slot{i}", kind) for i, kind in enumerate(self.lines.slot_types())]
        keys = [pa.field(f"key{i}", arrow(kind)) for i, (_, kind) in enumerate(self.keys)]
        own = [pa.field("rows", pa.int64()), pa.field("begun", pa.int64()), pa.field("shown", pa.bool_())]
        return rows_schema([pa.int64(), *self.lines.given_types()]), pa.schema([*keys, *own, *last, *slots])

    @property
    def _last_types(self) -> list[pa.DataType]:
        whole = [call.type.kind in (Kind.INT, Kind.LONG) for call in self.lines.calls]
        return [kind for each in whole for kind in (pa.int64() if each else pa.float64(), pa.bool_())]

    def start(self) -> State:
        """No rows, no keys."""
        rows, groups = self._schemas
        return State({"rows": rows.empty_table(), "groups": groups.empty_table()}, {"held": 0})

    def due(self, state: State) -> int | None:
        """When the next row leaves."""
        return next_due([state.tables["rows"]], [state.scalars["held"]], [self.chain.span])

    def waits(self, state: State) -> bool:
        """Whether rows wait."""
        return bool(state.tables["rows"].num_rows > state.scalars["held"])

    def step(self, state: State, events: Mapping[str, Events], until: int) -> tuple[State, Output]:
        """The changed rows of all cycles up to `until`."""
        groups = state.tables["groups"]
        columns, arrive, time = self.chain.taken(events.get(self.chain.stream))
        codes, keys = self._numbered(groups, columns, len(arrive))
        rows = [np.array(column) for column in state.tables["rows"].columns]
        if len(arrive):
            fresh = [arrive, time, codes, *self.lines.given(columns, len(arrive))]
            rows = [np.concatenate(pair) for pair in zip(rows, fresh, strict=True)]
        table = pa.table([*map(pa.array, rows[:2])], names=["at", "time"])
        lined = Lined.of([table], [state.scalars["held"]], [self.chain.span])
        kept = self._grown(groups.columns[len(self.keys) :], len(keys[0]) if keys else 1)
        gone, size = np.zeros(len(codes := rows[2]), bool), 2 * len(rows[0]) + 1
        at, group, results = np.empty(size, np.int64), np.empty(size, np.int64), self.lines.room(size)
        n, taken = loop(self._text)(
            lined.held, until, False, lined.arrive, lined.due, lined.time, lined.chain, lined.order, gone,
            codes, *rows[3:], *kept, self.pinned, self.dead, at, group, *results,
        )  # fmt: skip
        left = [each[~gone] for each in rows]
        after = self._state(left, taken - int(gone.sum()), keys, kept)
        return after, self._output(at[:n], group[:n], keys, self.lines.results(results, n))

    def _numbered(self, groups: pa.Table, columns: Columns, rows: int) -> tuple[Ints, list[pa.Array]]:
        """The group of each row, and the keys that are known then."""
        known = [whole(groups.column(i)) for i in range(len(self.keys))]
        if not self.keys or not rows:
            return np.zeros(rows, np.int64), known
        if len(self.keys) == 1:
            codes, keys = self._codes.codes(known[0], columns[self.keys[0][0]])
            return codes, [keys]
        together = [pa.concat_arrays([k, plain(columns[p])]) for k, (p, _) in zip(known, self.keys, strict=True)]
        codes, first = _combined(together)
        return codes[groups.num_rows :], [column.take(pa.array(first)) for column in together]

    def _grown(self, columns: Sequence[pa.ChunkedArray], groups: int) -> list[np.ndarray]:
        """What is known of each group in arrays of their own, with room for more groups."""
        kinds = [np.int64, np.int64, np.bool_, *(kind.to_pandas_dtype() for kind in self._last_types)]
        grown: list[np.ndarray] = []
        for kind, column in zip(kinds, columns, strict=False):
            array = np.zeros(groups, kind)
            array[: len(column)] = column.to_numpy()
            grown.append(array)
        return grown + self.lines.grown(columns[len(kinds) :], groups)

    def _state(self, rows: list[np.ndarray], held: int, keys: list[pa.Array], kept: list[np.ndarray]) -> State:
        """The state; groups without a window leave it once they are the greater part."""
        live = kept[1] > 0
        live[rows[2]] = True
        if self.keys and len(live) > 1024 and int(live.sum()) * 2 < len(live):
            rows[2] = (np.cumsum(live) - 1)[rows[2]]
            keys, kept = [key.filter(pa.array(live)) for key in keys], [each[live] for each in kept]
        content, groups = self._schemas
        tables = {
            "rows": pa.table([pa.array(each) for each in rows], schema=content),
            "groups": pa.table([*keys, *(pa.array(each) for each in kept)], schema=groups),
        }
        return State(tables, {"held": held})

    def _output(self, at: Ints, group: Ints, keys: list[pa.Array], made: Sequence[pa.Array]) -> Output:
        columns = [*(key.take(pa.array(group)) for key in keys), *made]
        found = Output(at, np.full(len(at), TIMER), tuple(evaluate(each, columns, len(at)) for each in self.columns))
        mask = passing(self.test, columns, len(at))
        return found if mask is None else found.where(mask)


def _compared(call: int) -> list[str]:
    """The lines that see whether a value is another one; one that is not a number is the same one again."""
    new, old = f"r{call}[n]", f"p{call}[k]"
    return [
        f"if ok{call}[n] != pok{call}[k]:",
        "    changed = True",
        f"elif ok{call}[n] and {new} != {old} and not ({new} != {new} and {old} != {old}):",
        "    changed = True",
    ]


def _combined(columns: Sequence[pa.Array]) -> tuple[Ints, Ints]:
    """A number for each different combination, by first appearance, and the place of the first row of each."""
    codes = np.zeros(len(columns[0]), np.int64)
    for column in columns:
        encoded = column.dictionary_encode(null_encoding="encode")
        codes = codes * len(encoded.dictionary) + encoded.indices.to_numpy()
        found = pa.array(codes).dictionary_encode()
        codes = found.indices.to_numpy().astype(np.int64)
    first = np.empty(codes.max() + 1 if len(codes) else 0, np.int64)
    first[codes[::-1]] = np.arange(len(codes) - 1, -1, -1)
    return codes, first
