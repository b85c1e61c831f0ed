"""What the property tests of the pipeline share: random events, the pipeline cut anywhere, its outputs as dicts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import pyarrow as pa
from hypothesis import settings
from hypothesis import strategies as st

from rollup.aggregation.state import State
from rollup.core.columns import ColumnEngine
from rollup.hosts.pipeline import Pipeline
from rollup.program import compile_app
from rollup.stores.memory import MemoryStore
from tests.oracle import local_time as time
from tests.oracle.answers import App
from tests.oracle.event_at_a_time import Oracle, Refused

ZONES = ("+00:00", "+05:30", "-11:00", "+14:00", "America/Havana", "America/Sao_Paulo", "Australia/Lord_Howe")
UNITS = {"sec": 1_000, "min": 60_000, "hour": 3_600_000, "day": 86_400_000, "month": 31 * 86_400_000}
BASES = {
    "new year": 1_546_300_790_000,
    "Havana springs forward": 1_520_746_000_000,
    "Sao Paulo falls back": 1_518_915_600_000,
    "before 1970": -86_400_000,
}
_EVENT = "k string, g int, i int, l long, d double, s string"
_VALUES = (
    "k, g, sum(i) as si, sum(d) as sd, avg(l) as al, count() as n, count(i) as ci, min(i) as mi, max(d) as ma,"
    " min(s) as ms,"
    " first(i) as fi, last(s) as la, stdDev(i) as sdev, distinctCount(s) as ds, d as plain, (i + 1) as next"
)
Row = tuple[Any, ...]
Identity = tuple[int, str, Any, Any]


@dataclass(frozen=True)
class Setup:
    """An aggregation to be tried: levels, buffer, policy, whether time is a long or a text with zones, a declared zone."""

    levels: str = "sec ... year"
    buffer: int = 0
    policy: str = "merge"
    text: bool = False
    zone: str = ""

    @property
    def app(self) -> str:
        """The declaration."""
        stamp = "stamp string" if self.text else "stamp long"
        zone = f"@zone('{self.zone}') " if self.zone else ""
        return (
            f"define stream S ({_EVENT}, {stamp}); {zone}@BufferSize('{self.buffer}') @OutOfOrder('{self.policy}') "
            f"define aggregation A from S select {_VALUES} group by k, g aggregate by stamp every {self.levels};"
        )

    @property
    def unit(self) -> int:
        """Milliseconds of the finest level, about."""
        return UNITS[self.levels.split()[0].rstrip(",")]


ALL_SETUPS = [
    Setup(levels, buffer if levels != "month, year" else 0, policy, text)
    for levels in ("sec ... year", "sec", "min ... hour", "hour ... month", "day ... year", "month, year")
    for buffer in (0, 1, 3)
    for policy in ("merge", "drop", "correct")
    for text in (False, True)
]
DECLARED = [
    Setup("sec ... year", 1, "merge", True, "America/Havana"),
    Setup("hour ... month", 0, "drop", True, "Australia/Lord_Howe"),
    Setup("day ... year", 3, "correct", True, "America/Sao_Paulo"),
    Setup("day ... year", 1, "merge", False, "America/Havana"),
]
SETUPS = DECLARED + ALL_SETUPS if settings.get_current_profile_name() == "long" else DECLARED + ALL_SETUPS[::7]
"""By default every seventh: they meet each level, buffer, policy and kind of time. A rig costs 0.2 s."""


@st.composite
def events(draw: st.DrawFn, setup: Setup, most: int = 24) -> list[Row]:
    """Events in order of arrival: with ties, late ones, jumps, null values and keys, unreadable times."""
    return [_event(draw, setup, at) for at in draw(_times(setup, most))]


@st.composite
def _times(draw: st.DrawFn, setup: Setup, most: int) -> list[int]:
    """Instants in order of arrival; in half of the sequences none is late, for what is only done then."""
    base = BASES[draw(st.sampled_from(sorted(BASES)))]
    jumps = st.sampled_from([0] * 9 + [7, 60, -40])
    found: list[int] = []
    for _ in range(draw(st.integers(1, most))):
        halves = draw(st.integers(0, 12)) + 2 * draw(jumps)
        found.append(base + halves * setup.unit // 2 + draw(st.sampled_from([0, 0, 0, 1, 499])))
    return sorted(found) if draw(st.booleans()) else found


def _event(draw: st.DrawFn, setup: Setup, at: int) -> Row:
    key = (draw(st.sampled_from(["a", "a", "a", "b", "null", None])), draw(st.sampled_from([1, 1, 1, None])))
    whole = draw(st.one_of(st.none(), st.integers(-9, 9)))
    real = draw(st.sampled_from([None, 0.25, 0.5, 2.0, -8.0, 1024.0]))
    text = draw(st.sampled_from([None, "x", "y", "é"]))
    stamp = _stamp(at, draw(st.sampled_from(ZONES))) if setup.text else at
    if draw(st.integers(0, 30)) == 30:
        stamp = None
    return (*key, whole, None if whole is None else whole * 1_000_000_007, real, text, stamp)


def _stamp(instant: int, zone: str) -> str:
    wall = time.local(instant, zone).replace(tzinfo=None)
    return f"{wall.isoformat(timespec='milliseconds')} {zone}"


@dataclass
class Outputs:
    """What a run leaves: merged tables and open rows by level and identity, clocks, ledger, resume."""

    tables: dict[int, dict[Identity, dict[str, Any]]]
    running: dict[int, dict[Identity, dict[str, Any]]]
    clocks: dict[int, int | None]
    ledger: Counter[Any]
    resume: int | None = None


class Rig:
    """The pipeline of a setup, made once (its SQL is), started anew for every run."""

    def __init__(self, setup: Setup) -> None:
        self.engine = shared_engine()
        self.aggregation = compile_app(setup.app).aggregations["A"]
        self.names = [part.split()[0] for part in _EVENT.split(", ")] + ["stamp"]
        kinds = [
            pa.string(),
            pa.int32(),
            pa.int32(),
            pa.int64(),
            pa.float64(),
            pa.string(),
            pa.string() if setup.text else pa.int64(),
        ]
        self.schema = pa.schema(
            [*zip(self.names, kinds, strict=True), ("__arrival", pa.int64()), ("__received", pa.int64())]
        )
        self.pipeline = Pipeline(self.aggregation, MemoryStore(self.aggregation, self.engine), self.engine)

    def fresh(self) -> Rig:
        """The same rig with nothing in it."""
        self.pipeline.store = MemoryStore(self.aggregation, self.engine)
        self.pipeline.number, self.pipeline.state, self.pipeline.source = 0, State.empty(self.aggregation), {}
        return self

    @property
    def store(self) -> MemoryStore:
        """The store of the run."""
        assert isinstance(self.pipeline.store, MemoryStore)
        return self.pipeline.store

    def send(self, rows: Sequence[Row], first: int, tasks: Sequence[int]) -> None:
        """One batch whose event `n` arrived as number `first + n` and was folded by the task `tasks[n]`."""
        shares: dict[str, pa.Table] = {}
        for task in sorted(set(tasks)):
            own = [(*row, first + n, 0) for n, row in enumerate(rows) if tasks[n] == task]
            columns = [
                pa.array(column, kind) for column, kind in zip(zip(*own, strict=True), self.schema.types, strict=True)
            ]
            shares[f"task{task}"] = pa.table(columns, schema=self.schema)
        partials, engine = self.pipeline.partials, self.engine
        with engine.tables(shares):
            folded = [partials.fold(engine, name) for name in shares]
            self.pipeline.advance(
                folded, lambda steps, which: [partials.fold_by_step(engine, name, steps, which) for name in shares], {}
            )

    def outputs(self) -> Outputs:
        """What the run has left, parts of corrected rows put together."""
        state, cascade = self.pipeline.state, self.pipeline.cascade
        tables = {}
        for level in self.aggregation.levels:
            rows = self.store.tables[level].cast(self.aggregation.state_schema)
            tables[int(level)] = self._by_identity(cascade.merge(self.engine, self.aggregation.root, [rows]))
        ledger: Counter[Any] = Counter()
        for table in self.store.ledgers:
            for row in table.to_pylist():
                ledger[row["AGG_TIMESTAMP"], row["AGG_TIMEZONE"], (row["k"], row["g"]), row["AGG_KIND"]] += row[
                    "AGG_EVENTS"
                ]
        running = {int(level): self._by_identity(rows) for level, rows in state.open.items()}
        clocks = {int(level): clock for level, clock in state.clocks.items()}
        return Outputs(tables, running, clocks, ledger, state.resume)

    def _by_identity(self, table: pa.Table) -> dict[Identity, dict[str, Any]]:
        found = {tuple(row[name] for name in self.aggregation.identity): row for row in table.to_pylist()}
        assert len(found) == table.num_rows, "each (bucket, zone, keys) is there once"
        return found


@cache
def shared_engine() -> ColumnEngine:
    """One engine for all runs: a run owns no tables in it."""
    return ColumnEngine(threads=1)


@cache
def rig(setup: Setup) -> Rig:
    """The rig of a setup."""
    return Rig(setup)


def oracle(setup: Setup) -> Oracle:
    """A fresh oracle of a setup."""
    return App(setup.app).oracles["A"]


def tell(judge: Oracle, rows: Sequence[Row], first: int) -> int:
    """Hand events to the oracle; how many it could not read."""
    refused = 0
    for n, row in enumerate(rows):
        try:
            judge.send(list(row), first + n, 0)
        except Refused:
            refused += 1
    return refused


def oracle_outputs(judge: Oracle) -> Outputs:
    """The oracle's outputs in the same form."""
    names = ("AGG_TIMESTAMP", "AGG_TIMEZONE", *judge.keys)

    def rows(found: list[dict[str, Any]]) -> dict[Identity, dict[str, Any]]:
        return {tuple(row[name] for name in names): row for row in found}

    tables = {level: rows(judge.stored(level)) for level in judge.levels}
    running = {level: rows(judge.running(level)) for level in judge.levels}
    return Outputs(tables, running, judge.clocks, judge.ledger, judge.resume)


def conserved(outputs: Outputs, sent: int) -> Mapping[int, int]:
    """For each level, how many events are in neither its table, nor an open row up to it, nor dropped, nor re-sent."""
    lost = sum(events for (*_, kind), events in outputs.ledger.items() if kind in ("dropped", "resent"))
    missing: dict[int, int] = {}
    for level, table in outputs.tables.items():
        open_rows = [row for finer, rows in outputs.running.items() if finer <= level for row in rows.values()]
        missing[level] = sent - lost - sum(row["AGG_EVENTS"] for row in [*table.values(), *open_rows])
    return missing
