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

from rollup.engine import residence
from rollup.engine.columns.running.bulk import Columns
from rollup.engine.columns.running.placing import Placed
from rollup.engine.programs.runtime import running
from rollup.live import Engine
from rollup.live.hearing import Arrived
from tests.engine.programs.test_statements import SCHEMA, STATEMENTS

NOT_CARRIED = (
    "length_batch",
    "firstlength",
    "time_accum",
    "#sort",
    " as a, S",
    "outer join S",
    "distinct",
    "group by price",
)
CARRIED = [title for title, text in STATEMENTS.items() if not any(each in text for each in NOT_CARRIED)]
"""The statements whose state can be carried between rows and a program."""


@pytest.fixture(autouse=True, params=["interpreted", "checked"])
def at_once(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """A component goes over with a batch of three events, and is compiled, if at all, with the next one of so many. Columns
    carry no statement."""
    monkeypatch.setattr(Columns, "placed", lambda self: [Placed("", 0, "rows")])
    monkeypatch.setattr(residence, "_LEAST", 3)
    monkeypatch.setattr(running, "_COMPILED", 3)
    monkeypatch.setattr(residence, "_WORTH", 0)
    monkeypatch.setattr(running.Running, "waits", True)
    monkeypatch.setattr(running.Running, "best", request.param)


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
    kind, store = random.randrange(8), next(iter(rows.stores), None)
    if kind == 0:
        name = random.choice(names)
        assert engine.rows(name) == rows.rows(name)
    elif kind == 1 and store is not None:
        assert engine.query(f"select * from {store}") == rows.query(f"select * from {store}")
    elif kind == 2 and store is not None:
        for each in (rows, engine):
            each.query(f"delete from {store} where volume = 4")
    elif kind == 3:
        for each in (rows, engine):
            each.advance_at_most(at + 7, 10_000)
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


@pytest.mark.parametrize(
    ("title", "at_once"),
    [
        *((each, "interpreted") for each in CARRIED),
        *((each, "checked") for each in CARRIED if "create" in STATEMENTS[each]),
    ],
    indirect=["at_once"],
)
@pytest.mark.few(10)
def test_a_component_that_goes_over_and_back_says_what_rows_say(title: str) -> None:
    random, text = Random(title), STATEMENTS[title]
    for seed in range(2):
        (rows, engine), heard = engines(text)
        went = False
        for table, at in batches(seed):
            for each in (rows, engine):
                each.send("S", table, at=[max(time, each.now) for time in at])
            went |= table.num_rows >= 3
            assert resident(engine) is went
            assert engine.now == rows.now
            before = engine
            rows, engine = other(random, rows, engine, at[-1], heard)
            went = resident(engine) and before is engine
            assert heard[1] == heard[0]
        for each in (rows, engine):
            each.advance(at[-1] + 1000)
        assert heard[1] == heard[0]
        for name in rows.stores:
            assert engine.query(f"select * from {name}") == rows.query(f"select * from {name}")


@pytest.mark.parametrize("at_once", ["interpreted"], indirect=True)
@pytest.mark.parametrize("title", [each for each in CARRIED if ";" in STATEMENTS[each]])
def test_listeners_to_rows_are_told_in_the_order_of_rows(title: str) -> None:
    told: list[list[Any]] = []
    for engine in (Engine(columns=None), Engine(columns=1)):
        engine.deploy(SCHEMA)
        engine.deploy(STATEMENTS[title], "s")
        random = Random(title)
        said: list[Any] = []
        for table, at in batches(7):
            engine.send("S", table, at=[max(time, engine.now) for time in at])
            if random.random() < 0.2:
                engine.advance(at[-1] + 9)
            said += [each for each in engine.heard() if each.new or each.old]
        told.append(said)
    assert told[1] == told[0]


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


def test_a_small_batch_beside_a_large_state_stays_on_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(residence, "_WORTH", 4)
    (_, engine), _ = engines("create window W#keepall as S; insert into W select * from S")
    table = pa.table({"symbol": ["a", "b"] * 20, "price": [1.0, 2.0] * 20, "volume": pa.array([1, 2] * 20, pa.int32())})
    engine.send("S", table)
    assert resident(engine)
    engine.advance(5)
    engine.send("S", table)
    assert not resident(engine)
    while not resident(engine):  # the more it is sent, the more it is worth
        engine.send("S", table)
    assert len(engine.query("select * from W")) == 40 + 4 * 40, "four times the rows there were"


@pytest.mark.parametrize(
    "more",
    [
        "create unique index I on W(symbol)",
        "select * from S#length_batch(3)",
        "select a.price as p from S as a unidirectional left outer join W as w on a.symbol = w.symbol",
    ],
)
def test_a_component_with_a_statement_that_cannot_go_over_stays(more: str) -> None:
    (_, engine), _ = engines(
        f"create window W#unique(symbol) as S; insert into W select * from S(volume > 100); {more}"
    )
    for table, at in batches(1):
        engine.send("S", table, at=at)
        assert not resident(engine)
