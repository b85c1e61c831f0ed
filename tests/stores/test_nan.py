"""NaN in a group key: greater than every number and equal to itself, on every store, whatever its files say of bounds."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from rollup.stores.databases import store_of
from rollup.stores.delta.store import DeltaStore
from rollup.stores.memory import MemoryStore

APP = """define stream S (k double, v int, ts long);
define aggregation A from S select k, sum(v) as total group by k aggregate by ts every sec ... min;"""
VALUES = [1.0, 4.0, 5.0, 7.0, math.nan, math.inf, -math.inf]


@pytest.fixture(params=["memory", "delta", "sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    """What makes a store of each kind."""
    make: Any = MemoryStore
    if request.param == "delta":
        make = lambda a, engine: DeltaStore(a, engine, tmp_path)  # noqa: E731
    elif request.param != "memory":
        server = request.param == "postgres" and request.getfixturevalue("postgres")
        url = server.new_database() if server else f"sqlite:///{tmp_path}/store.db"
        make = lambda a, engine: store_of(a, engine, url)  # noqa: E731
    return make


@pytest.fixture
def host(store: Any) -> LocalHost:
    """Closed rows in two files, one whose numbers are all below 5, and a NaN in each."""
    made = LocalHost(compile_app(APP), store)
    made.send("S", [(k, 1, 0) for k in (1.0, 4.0, math.nan)])
    made.send("S", [(k, 1, 1000) for k in VALUES])
    made.send("S", [(1.0, 1, 5000)])
    return made


@pytest.mark.parametrize(
    ("on", "first", "second"),
    [
        ("k < 5.0", [1.0, 4.0], [-math.inf, 1.0, 4.0]),
        ("k > 5.0", [math.nan], [7.0, math.inf, math.nan]),
        ("k >= 5.0", [math.nan], [5.0, 7.0, math.inf, math.nan]),
        ("k != 4.0", [1.0, math.nan], [-math.inf, 1.0, 5.0, 7.0, math.inf, math.nan]),
    ],
)
def test_nan_is_greater_than_every_number(host: LocalHost, on: str, first: list[float], second: list[float]) -> None:
    found = host.query(
        f"from A on {on} within 0L, 2000L per 'seconds' select k, AGG_TIMESTAMP order by AGG_TIMESTAMP, k"
    )
    assert list(map(str, found["k"].to_pylist())) == list(map(str, first + second))


def test_negative_zero_keeps_its_sign_in_values_and_is_zero_in_keys(store: Any) -> None:
    """The group key 0.0 has one row, whatever its sign."""
    text = """define stream S (k double, v double, ts long);
define aggregation A from S select k, min(v) as v, count() as n group by k aggregate by ts every sec ... min;"""
    made = LocalHost(compile_app(text), store)
    made.send("S", [(0.0, -0.0, 0), (-0.0, -0.0, 1), (1.0, math.nan, 2), (1.0, 0.0, 1000)])
    found = made.query("from A within 0L, 2000L per 'seconds' select k, v, n order by AGG_TIMESTAMP, k").to_pylist()
    assert [str(row["v"]) for row in found] == ["-0.0", "nan", "0.0"]
    assert [(row["k"], row["n"]) for row in found] == [(0.0, 2), (1.0, 1), (1.0, 1)]
