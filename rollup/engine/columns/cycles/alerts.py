"""Alerts over windows of time of several streams: which identities are present in which windows, and what follows.

State: for each window `rows0 rows1 …` (instant, time, identity, the columns of an alert), those that are in before
those that wait. `known`: each identity that some window holds. It has bits for each pattern (armed, tainted, fired) and
the place of its row in each window. The meaning is that of `rows/cycles/correlation.py`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Output
from rollup.engine.columns.cycles.clocked import CYCLES, Chained, Events, Lined, next_due, rows_schema
from rollup.engine.columns.evaluate import arrow, evaluate, passing
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.expressions import Expr, Field
from rollup.engine.state import State

_FIRE = """
def fire(f, k, n, now, present, fired, row, at, which, pick):
    if fired[k] >> f & 1:
        return n
    fired[k] |= 1 << f
    at[n], which[n] = now, f
    for c in range(row.shape[0]):
        pick[n, c] = row[c, k] if present[f] >> c & 1 else -1
    return n + 1


@compiled"""
_GIVEN = "codes, present, absent, armed, tainted, fired, row, at, which, pick"
_PROLOGUE = """
    patterns, chains = len(present), row.shape[0]
    inside = np.zeros(len(armed), np.int64)
    for k in range(len(armed)):
        for c in range(chains):
            if row[c, k] >= 0:
                inside[k] |= 1 << c
    touched = np.empty(len(armed), np.int64)
    seen = np.zeros(len(armed), np.int64)
    stamp = 0
"""
_CYCLE = """
        begin, t, stamp = n, 0, stamp + 1
        for j in range(out):
            q = leaving[j]
            c, k = chain[q], codes[q]
            if row[c, k] < 0:
                continue
            for f in range(patterns):
                if armed[k] >> f & 1 and present[f] >> c & 1:
                    armed[k] &= ~(1 << f)
                    n = fire(f, k, n, now, present, fired, row, at, which, pick)
            row[c, k] = -1
            inside[k] &= ~(1 << c)
            for f in range(patterns):
                if not inside[k] & (present[f] | absent[f]):
                    armed[k] &= ~(1 << f)
                    tainted[k] &= ~(1 << f)
                    fired[k] &= ~(1 << f)
        for j in range(i, last):
            c, k = chain[j], codes[j]
            row[c, k] = j
            inside[k] |= 1 << c
            for f in range(patterns):
                if absent[f] >> c & 1:
                    tainted[k] |= 1 << f
                    armed[k] &= ~(1 << f)
            if seen[k] != stamp:
                seen[k] = stamp
                touched[t] = k
                t += 1
        for j in range(t):
            k = touched[j]
            for f in range(patterns):
                if (fired[k] | tainted[k]) >> f & 1 or inside[k] & present[f] != present[f]:
                    continue
                if absent[f]:
                    armed[k] |= 1 << f
                else:
                    n = fire(f, k, n, now, present, fired, row, at, which, pick)
        if n - begin > 1 and patterns > 1:
            by_pattern = begin + np.argsort(which[begin:n], kind="mergesort")
            pick[begin:n] = pick[by_pattern]
"""


@dataclass(frozen=True)
class Alerts:
    """`identity`: its column in each stream; `patterns`: bits of the windows that must hold it and that must not;
    `shown`: the alert's columns as (window, column, type). The select sees those."""

    chains: tuple[Chained, ...]
    identity: tuple[Field, ...]
    patterns: tuple[tuple[int, int], ...]
    shown: tuple[tuple[int, Field], ...]
    test: Expr | None
    columns: tuple[Expr, ...]

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams of the windows."""
        return tuple(dict.fromkeys(chain.stream for chain in self.chains))

    @cached_property
    def kept(self) -> tuple[tuple[Field, ...], ...]:
        """What is kept of the rows of each window: the identity, then each column that is shown."""
        return tuple(
            tuple(dict.fromkeys((identity, *(field for chain, field in self.shown if chain == place))))
            for place, identity in enumerate(self.identity)
        )

    @property
    def _spans(self) -> list[int]:
        return [chain.span for chain in self.chains]

    @cached_property
    def _known(self) -> pa.Schema:
        own = [pa.field(name, pa.int64()) for name in ("armed", "tainted", "fired")]
        rows = [pa.field(f"row{place}", pa.int64()) for place in range(len(self.chains))]
        return pa.schema([pa.field("identity", arrow(self.identity[0].type)), *own, *rows])

    def start(self) -> State:
        """Nothing is known."""
        tables = {f"rows{place}": _empty(kept) for place, kept in enumerate(self.kept)}
        return State({**tables, "known": self._known.empty_table()}, {"held": [0] * len(self.chains)})

    def _tables(self, state: State) -> list[pa.Table]:
        return [state.tables[f"rows{place}"] for place in range(len(self.chains))]

    def due(self, state: State) -> int | None:
        """When the next row leaves a window."""
        return next_due(self._tables(state), state.scalars["held"], self._spans)

    def waits(self, state: State) -> bool:
        """Whether rows wait."""
        sizes = [table.num_rows for table in self._tables(state)]
        return any(size > held for size, held in zip(sizes, state.scalars["held"], strict=True))

    def step(self, state: State, events: Mapping[str, Events], until: int) -> tuple[State, Output]:
        """The alerts of all cycles up to `until`."""
        parts = zip(self.chains, self._tables(state), self.kept, strict=True)
        tables = [chain.kept(table, events.get(chain.stream), kept) for chain, table, kept in parts]
        held, known = list(state.scalars["held"]), state.tables["known"]
        lined = Lined.of(tables, held, self._spans)
        codes, identities = _numbered(known, tables)
        begins = np.cumsum([0, *(table.num_rows for table in tables)])
        line = np.empty_like(lined.place)  # where in the line each row stands
        line[lined.place] = np.arange(len(line))
        bits = [_longer(known.column(name), len(identities), 0) for name in ("armed", "tainted", "fired")]
        row = np.stack([_longer(column, len(identities), -1) for column in known.columns[4:]])
        for place, begin in enumerate(begins[:-1]):
            row[place] = _of(line[begin:], row[place])
        gone = np.zeros(len(line), bool)
        at, pick, taken = self._looped(lined, until, gone, codes[lined.place], [*bits, row])
        after = self._state(tables, lined, gone, taken, identities, [*bits, row])
        return after, self._output(tables, lined, at, pick)

    def _looped(
        self, lined: Lined, until: int, gone: np.ndarray, codes: Ints, known: Sequence[np.ndarray]
    ) -> tuple[Ints, np.ndarray, int]:
        """Instants and rows of the alerts, and how many rows are no longer waiting."""
        present, absent = (np.array([each[side] for each in self.patterns], np.int64) for side in range(2))
        size = 2 * len(codes) * len(present)
        at, which = np.empty(size, np.int64), np.empty(size, np.int64)
        pick = np.empty((size, len(self.chains)), np.int64)
        text = _FIRE + CYCLES.format(given=_GIVEN, prologue=_PROLOGUE, cycle=_CYCLE)
        n, taken = loop(text)(
            lined.held, until, len(self.chains) > 1, lined.arrive, lined.due, lined.time, lined.chain, lined.order, gone,
            codes, present, absent, *known, at, which, pick,
        )  # fmt: skip
        return at[:n], pick[:n], taken

    def _state(
        self,
        tables: Sequence[pa.Table],
        lined: Lined,
        gone: np.ndarray,
        taken: int,
        identities: pa.Array,
        known: Sequence[np.ndarray],
    ) -> State:
        """What is left: rows, and the identities that one of them has."""
        begins = np.cumsum([0, *(table.num_rows for table in tables)])
        stays, inside = np.empty(len(gone), bool), np.empty(len(gone), bool)
        stays[lined.place] = ~gone
        inside[lined.place] = np.arange(len(gone)) < taken
        parts = [slice(a, b) for a, b in pairwise(begins)]
        left = {f"rows{c}": table.filter(pa.array(stays[parts[c]])) for c, table in enumerate(tables)}
        *bits, row = known
        live = (row >= 0).any(axis=0) if len(row) else np.zeros(len(identities), bool)
        columns = [identities.filter(pa.array(live)), *(pa.array(each[live]) for each in bits)]
        for place, part in enumerate(parts):
            number = np.cumsum(stays[part]) - 1  # the place of a row among those that stay
            columns.append(pa.array(_of(number, _of(lined.place - part.start, row[place][live]))))
        held = [int((stays[part] & inside[part]).sum()) for part in parts]
        return State({**left, "known": pa.table(columns, schema=self._known)}, {"held": held})

    def _output(self, tables: Sequence[pa.Table], lined: Lined, at: Ints, pick: np.ndarray) -> Output:
        """The alerts' columns: of a window that does not hold the identity they are null."""
        begins = np.cumsum([0, *(table.num_rows for table in tables)])
        columns: list[pa.Array] = []
        for chain, field in self.shown:
            kept = tables[chain].column(2 + self.kept[chain].index(field))
            columns.append(_taken(kept, _of(lined.place - begins[chain], pick[:, chain])))
        rows = len(at)
        made = Output(at, np.full(rows, TIMER), tuple(evaluate(each, columns, rows) for each in self.columns))
        mask = passing(self.test, columns, rows)
        return made if mask is None else made.where(mask)


def _of(values: Ints, places: Ints) -> Ints:
    """The values at places, -1 for a place that is none."""
    found, there = np.full(len(places), -1, np.int64), places >= 0
    found[there] = values[places[there]]
    return found


def _taken(column: pa.ChunkedArray, places: Ints) -> pa.Array:
    """The values at places, null for a place that is none."""
    found = column.take(pa.array(places, mask=places < 0))
    return pa.concat_arrays(found.chunks) if found.num_chunks else pa.array([], found.type)


def _empty(kept: Sequence[Field]) -> pa.Table:
    return rows_schema([arrow(field.type) for field in kept]).empty_table()


def _numbered(known: pa.Table, tables: Sequence[pa.Table]) -> tuple[Ints, pa.Array]:
    """The number of the identity of each row, chain after chain, and the identities; those known before come first."""
    chunks = [chunk for column in (known.column(0), *(t.column(2) for t in tables)) for chunk in column.chunks]
    column = pa.concat_arrays(chunks) if chunks else pa.array([], known.schema.field(0).type)
    encoded = column.dictionary_encode(null_encoding="encode")
    return encoded.indices.to_numpy()[known.num_rows :].astype(np.int64), encoded.dictionary


def _longer(column: pa.ChunkedArray, length: int, filler: int) -> Ints:
    found = np.full(length, filler, np.int64)
    found[: len(column)] = column.to_numpy()
    return found
