"""The stores that every case is run on; a new store is one line in STORES."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from rollup.hosts.local import StoreFactory
from rollup.stores.delta import DeltaStore
from rollup.stores.memory import MemoryStore
from tests.conformance.siddhi_runner import Forget, forget


@dataclass(frozen=True)
class StoreKind:
    """How a case gets an empty store of its own, and how a store loses its commit record but not its tables."""

    make: Callable[[pytest.FixtureRequest], StoreFactory]
    forget: Forget


def _delta(request: pytest.FixtureRequest) -> StoreFactory:
    folder = request.getfixturevalue("tmp_path")
    return lambda aggregation, engine: DeltaStore(aggregation, engine, folder)


def _own_way(store: Any) -> None:
    store.forget()


STORES: Mapping[str, StoreKind] = {
    "memory": StoreKind(lambda request: MemoryStore, forget),
    "delta": StoreKind(_delta, _own_way),
}
