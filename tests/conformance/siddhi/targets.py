"""What the cases of SiddhiQL aggregation run on: every store; a new one is one line in STORES."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from rollup.hosts.local import StoreFactory
from rollup.stores.databases import store_of
from rollup.stores.delta.store import DeltaStore
from rollup.stores.memory import MemoryStore
from tests.conformance.compare import Case
from tests.conformance.language import Language, Target
from tests.conformance.siddhi.on_spark import run_on_spark
from tests.conformance.siddhi.runner import Restart, Survives, restart_in_memory, run_case


@dataclass(frozen=True)
class StoreKind:
    """How a case gets an empty store of its own, and what is left of it when its process ends."""

    make: Callable[[pytest.FixtureRequest], StoreFactory]
    restart: Restart
    marks: tuple[str, ...] = ()
    costly: bool = False

    @property
    def target(self) -> Target:
        """The cases on a local host with this store."""

        def run(case: Case, request: pytest.FixtureRequest) -> int:
            return run_case(case, self.make(request), self.restart)

        return Target(run, self.marks, self.costly)


def _delta(request: pytest.FixtureRequest) -> StoreFactory:
    folder = request.getfixturevalue("tmp_path")
    return lambda aggregation, engine: DeltaStore(aggregation, engine, folder)


def _sqlite(request: pytest.FixtureRequest) -> StoreFactory:
    url = f"sqlite:///{request.getfixturevalue('tmp_path')}/case.db"
    return lambda aggregation, engine: store_of(aggregation, engine, url)


def _postgres(request: pytest.FixtureRequest) -> StoreFactory:
    url = request.getfixturevalue("new_url")()
    request.addfinalizer(gc.collect)  # a store's connections end with it, and there are more cases than connections
    return lambda aggregation, engine: store_of(aggregation, engine, url)


def _reopened(store: Any, survives: Survives, anew: Callable[[], Any]) -> Any:
    """A store that keeps things elsewhere is opened again, as a new process does."""
    if survives == "tables":
        store.forget()
    if survives == "nothing":
        store.drop()
    return anew()


STORES: Mapping[str, StoreKind] = {
    "memory": StoreKind(lambda request: MemoryStore, restart_in_memory),
    "delta": StoreKind(_delta, _reopened, costly=True),
    "sqlite": StoreKind(_sqlite, _reopened, costly=True),
    "postgresql": StoreKind(_postgres, _reopened, ("postgres",), costly=True),
}
SIDDHI = Language(
    name="siddhi",
    title="SiddhiQL incremental aggregation",
    targets={name: kind.target for name, kind in STORES.items()}
    | {"spark": Target(run_on_spark, ("spark",), costly=True)},
    topics={
        "buffer": "Buffer: late events, gaps, jumps, too-late events merged or ignored",
        "buffer_errors": "Buffer: what is refused",
        "buffer_random": "Buffer: random event sequences",
        "durations": "Durations: single ones, ranges, lists",
        "durations_errors": "Durations: what is refused",
        "durations_random": "Durations: random event sequences",
        "join": "Requests from a stream (`join … within … per`)",
        "ondemand": "On-demand queries: on, having, group by, order by, limit, offset",
        "ondemand_errors": "On-demand queries: what is refused",
        "per": "`per`: spellings",
        "per_errors": "`per`: what is refused",
        "recovery": "Restart: rebuilt from the tables, or from a snapshot",
        "recovery_random": "Restart: random event sequences",
        "retrieval": "Retrieval of stored and open buckets in one answer",
        "status": "Tables and open buckets after every event",
        "time": "Timestamps, zones, calendar edges",
        "time_errors": "Timestamps: what is refused",
        "types": "Aggregates, types, nulls, keys, filters",
        "types_errors": "Aggregates and types: what is refused",
        "within": "`within`: pairs and patterns",
        "within_errors": "`within`: what is refused",
    },
)
