"""When a statement goes over to columns: it takes the events once more that it has heard on rows, as long as all are known."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pytest

from rollup.core.errors import StoreError
from rollup.engine.programs.runtime import running
from rollup.engine.rows import journal
from rollup.live import Engine
from tests.live.deploying import exact

pytestmark = pytest.mark.usefixtures("interpreted")
SCHEMA = "create schema S(symbol string, price double); create schema R(symbol string, price double);"
MEAN = "@name('m') select symbol, avg(price) as a, count(*) as n from S#length(5) group by symbol;"
PAIRS = (
    "@name('p') select S.price as a, R.price as b from S#length(3) as S, R#length(3) as R where S.symbol = R.symbol;"
)
CHAIN = "insert into T select symbol, price from S; @name('t') select sum(price) as s from T#time(50 msec);"


@pytest.fixture(autouse=True)
def few(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal, "MOST", 40)


def event(n: int) -> dict[str, Any]:
    return {"symbol": "abc"[n * n % 3], "price": n / 10}


def sent(engine: Engine, batches: list[tuple[str, int]], begin: int = 0) -> list[Any]:
    """Batches of so many events, each event at an instant of its own; what they bring."""
    found = list[Any]()
    for stream, size in batches:
        engine.send(stream, [event(begin + n) for n in range(size)], at=[begin + n for n in range(size)])
        begin += size
        found += [exact(each) for each in engine.heard()]
    return found


def two(text: str) -> tuple[Engine, Engine]:
    engines = Engine(columns=16), Engine(columns=None)
    for engine in engines:
        engine.deploy(SCHEMA + text)
    return engines


def over(engine: Engine) -> list[str]:
    return engine.snapshot().scalars["columns"]


@pytest.mark.parametrize(
    ("text", "batches", "goes"),
    [
        (MEAN, [("S", 1)] * 30 + [("S", 20)], ["m"]),
        (MEAN, [("S", 1)] * 41 + [("S", 20), ("S", 40)], []),
        (MEAN, [("R", 1)] * 60 + [("S", 1)] * 5 + [("S", 20)], ["m"]),
        (PAIRS, [("S", 1), ("R", 1)] * 20 + [("R", 20)], ["p"]),
        (PAIRS, [("S", 1)] * 41 + [("R", 1), ("R", 20)], []),
        (CHAIN, [("S", 1)] * 9 + [("S", 20)], ["t"]),
    ],
    ids=["few singly", "too many singly", "many of another stream", "a join", "too many of one side", "inserted"],
)
@pytest.mark.parametrize("restarts", [False, True])
def test_events_that_are_known_are_taken_again(text: str, batches: Any, goes: list[str], restarts: bool) -> None:
    engine, rows = two(text)
    half = len(batches) // 2
    said = sent(engine, batches[:half])
    if restarts:
        engine = Engine.restored(engine.snapshot(), 16)
    said += sent(engine, batches[half:], sum(size for _, size in batches[:half]))
    assert said == sent(rows, batches)
    assert over(engine) == goes
    assert (engine.plan()[-1].executor == "columns") == bool(goes)
    assert engine.plan()[-1].reason is None if goes else "in small batches" in str(engine.plan()[-1].reason)


def test_the_last_batch_that_is_worth_it_goes_over_before_events_are_lost() -> None:
    engine, rows = Engine(columns=100), Engine(columns=None)
    for each in (engine, rows):
        each.deploy(SCHEMA + MEAN)
    batches = [("S", 30), ("S", 33), ("S", 10)]
    assert sent(engine, batches) == sent(rows, batches)
    assert over(engine) == ["m"]


@pytest.mark.parametrize("what", ["jump", "variable", "context"])
def test_a_statement_stays_where_what_it_has_heard_says_too_little(what: str) -> None:
    text = {
        "jump": MEAN,
        "variable": "create variable int v = 1; on R set v = 2; @name('m') select sum(price) * v as s from S#length(2);",
        "context": "create context C partition by symbol from S; context C select count(*) as n from S;",
    }[what]
    engine, rows = two(text)
    said = list[Any]()
    for each in (engine, rows):
        found = sent(each, [("S", 1)] * 3)
        if what == "jump":
            each.jump(10)
        if what == "variable":
            found += sent(each, [("R", 1)], 3)
        if what == "context":
            each.deploy("@name('m') context C select context.id as i, sum(price) as s from S#length(2);")
        found += sent(each, [("S", 20), ("S", 2)], 10)
        said.append(found)
    assert said[0] == said[1]
    assert "m" not in over(engine)


@pytest.mark.parametrize(
    "text",
    [
        "select v, exists (select * from S(v < 9)#length(3) as w where w.v = s.v) as e from S as s",
        "select a.v as v, b.v as w from S#length(3) as a, S(v < 9)#time(9 sec) as b where a.v = b.v",
    ],
)
def test_the_state_of_a_program_that_another_version_took_is_refused(
    text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine(columns=1)
    engine.deploy(f"create schema S(v int); {text}")
    engine.send("S", [{"v": 1}] * 300)
    with monkeypatch.context() as patch:
        patch.setattr(running, "save", lambda mode: {"content": pa.table({"time": [1]})})
        snapshot = engine.snapshot()
    with pytest.raises(StoreError, match="does not fit this version"):
        Engine.restored(snapshot)
    assert Engine.restored(engine.snapshot()).plan()[0].executor == "columns"
