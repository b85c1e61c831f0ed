"""Components with named windows go over to their programs with large batches and back again: whatever is asked in between,
listeners hear the same as on rows, and in the same order.
"""

from __future__ import annotations

from collections.abc import Iterator
from random import Random
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rollup.engine.programs.runtime import residence
from rollup.live import Engine
from rollup.live.hearing import Arrived
from tests.engine.programs.test_statements import SCHEMA, STATEMENTS

CARRIED = [title for title, text in STATEMENTS.items() if "create window" in text and "group by" not in text]
"""The statements of named windows whose state can be carried between rows and a program."""


@pytest.fixture(autouse=True, params=["checked", "compiled"])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Any batch of three events or more goes to the program, whose machine code is waited for."""
    monkeypatch.setattr(residence, "_LEAST", 3)
    monkeypatch.setattr(residence, "_WORTH", 0)
    monkeypatch.setattr(residence.Residence, "waits", True)
    monkeypatch.setattr(residence.Residence, "mode", request.param)


def resident(engine: Engine) -> bool:
    return engine._residence._running is not None  # pyright: ignore[reportPrivateUsage]


def batches(seed: int) -> Iterator[tuple[pa.Table, list[int]]]:
    random, at = np.random.default_rng(seed), 1
    for n in random.choice([1, 2, 3, 17, 60], 14).tolist():
        times = at + np.cumsum(random.choice([0, 0, 1, 2, 3, 40], n))
        at = int(times[-1])

        def some(values: Any, kind: pa.DataType, n: int = n) -> pa.Array:
            return pa.array(values, kind, mask=random.random(n) < 0.06)

        yield (
            pa.table(
                {
                    "symbol": some([f"K{i}" for i in random.integers(0, 5, n)], pa.string()),
                    "price": some(random.integers(0, 1000, n) / 100, pa.float64()),
                    "volume": some(random.integers(0, 8, n), pa.int32()),
                }
            ),
            times.tolist(),
        )


class Heard(dict[str, list[Any]]):
    """What statements said: the rows of each with instant and sign, and the types of its columns."""

    def __call__(self, each: Arrived) -> None:
        told = (each.statement, each.at, each.sign, each.rows)
        for statement, *row in zip(*(part.to_pylist() for part in told), strict=True):
            self.setdefault(statement, []).append(row)
            self.setdefault(f"types of {statement}", [each.rows.schema])


Engines = tuple[Engine, Engine]
Both = tuple[Heard, Heard]


def engines(text: str) -> tuple[Engines, Both]:
    """The engine on rows and one that may go over, with what their statements say."""
    found, heard = (Engine(columns=None), Engine(columns=1)), (Heard(), Heard())
    for each, listener in zip(found, heard, strict=True):
        each.deploy(SCHEMA)
        each.deploy(text, "s")
        each.listen_arrow(listener)
    return found, heard


def other(random: Random, rows: Engine, engine: Engine, at: int, heard: Both) -> Engines:
    """What else may be asked of an engine between two batches."""
    names = list(rows._deployer.types)  # pyright: ignore[reportPrivateUsage]
    kind = random.randrange(8)
    if kind == 0:
        name = random.choice(names)
        assert engine.rows(name) == rows.rows(name)
    elif kind == 1:
        assert engine.query("select * from W") == rows.query("select * from W")
    elif kind == 2:
        for each in (rows, engine):
            each.query("delete from W where volume = 4")
    elif kind == 3:
        for each in (rows, engine):
            each.advance(at + 7)
    elif kind == 4:
        for each in (rows, engine):
            each.send("S", {"symbol": "K1", "price": 3.25, "volume": 3})
    elif kind == 5:
        made = Engine.restored(rows.snapshot(), None), Engine.restored(engine.snapshot(), 1)
        for each, listener in zip(made, heard, strict=True):
            each.listen_arrow(listener)
        return made
    elif kind == 6:
        for each in (rows, engine):
            each.deploy("select symbol from S(price > 9)", "more")
            each.undeploy("more")
    return rows, engine


@pytest.mark.parametrize("title", CARRIED)
def test_a_component_that_goes_over_and_back_says_what_rows_say(title: str) -> None:
    random = Random(title)
    for seed in range(4):
        (rows, engine), heard = engines(STATEMENTS[title])
        for table, at in batches(seed):
            for each in (rows, engine):
                each.send("S", table, at=[max(time, each.now) for time in at])
            assert resident(engine) is (table.num_rows >= 3)
            assert engine.now == rows.now
            rows, engine = other(random, rows, engine, at[-1], heard)
            assert heard[1] == heard[0]
        for each in (rows, engine):
            each.advance(at[-1] + 1000)
        assert heard[1] == heard[0]
        assert engine.query("select * from W") == rows.query("select * from W")


def test_a_listener_may_deploy_send_and_ask_while_it_is_told() -> None:
    got: list[list[Any]] = []
    for engine in engines(STATEMENTS["on update"])[0]:
        seen: list[Any] = []

        def hear(each: Arrived, engine: Engine = engine, seen: list[Any] = seen) -> None:
            seen.append(each.rows.num_rows)
            if len(seen) == 4:
                engine.deploy("select * from W", "later")
                engine.send("S", {"symbol": "K1", "price": 1.0, "volume": 1})
                engine.undeploy("later")

        engine.listen_arrow(hear, "s-3")
        for table, at in batches(5):
            engine.send("S", table, at=at)
        got.append([sum(seen), engine.query("select * from W")])
    assert got[0][1] == got[1][1]


def test_a_listener_to_rows_keeps_a_component_on_rows() -> None:
    (_, engine), _ = engines(STATEMENTS["on update"])
    for table, at in batches(2):
        engine.send("S", table, at=at)
    assert resident(engine) is (table.num_rows >= 3)
    engine.listen("s-3", lambda new, old: None)
    engine.send("S", table, at=[engine.now] * table.num_rows)
    assert not resident(engine)


def test_a_stream_that_changes_no_window_does_not_take_a_component_over() -> None:
    text = "create window W#unique(symbol) as S; insert into W select * from S; create schema R(n int); select * from R"
    (_, engine), _ = engines(text)
    engine.send("R", pa.table({"n": pa.array([1, 2, 3, 4], pa.int32())}))
    assert not resident(engine)


def test_a_small_batch_beside_a_large_state_stays_on_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residence, "_WORTH", 4)
    (_, engine), _ = engines("create window W#keepall as S; insert into W select * from S")
    table = pa.table({"symbol": ["a", "b"] * 20, "price": [1.0, 2.0] * 20, "volume": pa.array([1, 2] * 20, pa.int32())})
    engine.send("S", table)
    assert resident(engine)
    engine.advance(5)
    engine.send("S", table)
    assert not resident(engine)


@pytest.mark.parametrize(
    "more",
    [
        "create unique index I on W(symbol)",
        "select symbol, count(*) as n from W group by symbol",
        "select * from S#length(3)",
        "select a.price as p from S as a unidirectional, W as w where a.symbol = w.symbol",
    ],
)
def test_a_component_with_a_statement_that_cannot_go_over_stays(more: str) -> None:
    (_, engine), _ = engines(
        f"create window W#unique(symbol) as S; insert into W select * from S(volume > 100); {more}"
    )
    for table, at in batches(1):
        engine.send("S", table, at=at)
        assert not resident(engine)
