"""The stores that every case is run on; a new store is one line in STORES."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from rollup.hosts.local import StoreFactory
from rollup.stores.delta import DeltaStore
from rollup.stores.memory import MemoryStore
from tests.conformance.siddhi_runner import Restart, Survives, restart_in_memory


@dataclass(frozen=True)
class StoreKind:
    """How a case gets an empty store of its own, and what is left of it when its process ends."""

    make: Callable[[pytest.FixtureRequest], StoreFactory]
    restart: Restart


def _delta(request: pytest.FixtureRequest) -> StoreFactory:
    folder = request.getfixturevalue("tmp_path")
    return lambda aggregation, engine: DeltaStore(aggregation, engine, folder)


def _reopened(store: Any, survives: Survives, anew: Callable[[], Any]) -> Any:
    """A store that keeps things elsewhere is opened again, as a new process does."""
    if survives == "tables":
        store.forget()
    if survives == "nothing":
        store.drop()
    return anew()


STORES: Mapping[str, StoreKind] = {
    "memory": StoreKind(lambda request: MemoryStore, restart_in_memory),
    "delta": StoreKind(_delta, _reopened),
}
