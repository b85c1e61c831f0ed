"""Statements that insert into streams which others read, over columns: together or not at all."""

from __future__ import annotations

import pytest

from rollup.live import Engine
from tests.live.deploying import deployed, some_events
from tests.live.statements import SCHEMA

pytestmark = pytest.mark.usefixtures("interpreted")


def test_a_statement_on_rows_that_inserts_later_makes_the_events_of_its_stream_come_one_by_one() -> None:
    engines = [deployed(["grouped", "a"], 1), deployed(["grouped", "a"], None)]
    for engine in engines:
        engine.send("S", some_events(3))
        engine.deploy(
            "insert into S select symbol, sorted(p, filter: p > 0).floorKey(50.0) as price, 7 as volume from T#length(2)",
            "x",
        )
        engine.send("T", {"symbol": "a", "p": 2.0})
        engine.send("S", some_events(2))
    assert engines[0].heard() == engines[1].heard()
    reasons = {each.statement: each.reason for each in engines[0].plan()}
    assert reasons["x"], "what inserts goes over columns by now: this test wants a statement that stays on rows"
    assert reasons["grouped"] == f"`S`, whose events statements insert or change, with `x` on rows: {reasons['x']}"


def test_a_join_of_a_stream_into_which_a_statement_inserts_stays_where_it_was() -> None:
    engines = [deployed(["two", "filter"], 1), deployed(["two", "filter"], None)]
    for engine in engines:
        engine.send("S", some_events(2))
        engine.deploy("insert into R select symbol, 2.0 as price, volume from S(volume = 1)", "x")
        engine.send("S", some_events(2))
    heard = [engine.heard() for engine in engines]
    assert heard[0] == heard[1]
    assert "two" in {each.statement for each in heard[0]}
    reasons = {each.statement: each.reason for each in engines[0].plan()}
    why = "`R`, whose events statements insert or change, with `two` on rows: several streams, some of them by inserts"
    assert reasons == {"two": why, "x": why, "filter": None}


CHAINS = {
    "insert into V select symbol from S; insert into S select symbol, 1.0 as price, 1 as volume from V": "a circle of inserts",
    "insert into V select symbol, sum(price) as s from S#time(5 msec) group by symbol; select s from V#time(5 msec)": (
        "insert into, of rows that the clock brings, for one who hears of the clock too"
    ),
    "insert into V select symbol, sum(price) as s from S group by symbol output last every 5 msec; insert into W select * from V; "
    "select s from W output every 5 msec": "insert into, of rows that the clock brings, for one who hears of the clock too",
    "insert into V select sum(volume) as s from S": "arithmetic of whole numbers, which may leave their type",
    "insert rstream into V select symbol from S output every 3 events": "insert into, of rows that leave, with an output rate",
    "insert rstream into V select a.symbol as symbol from S#time(5 msec) as a, S#length(2) as b where a.volume = b.volume": (
        "insert into, of rows that the clock brings"
    ),
    "create window W#length(2) as S; insert into W select * from S": "insert into a store",
    "insert into V select symbol from S; create context V1 partition by symbol from V; context V1 select * from V": "a context that hears it",
    "insert into V select symbol from S; create table K(k string primary key); "
    "on V as v merge K where K.k = v.symbol when not matched then insert select v.symbol as k": "the statement Merge",
    "insert into V select symbol from S; select a.symbol as x from pattern [every a=V -> b=S]": "over what is inserted",
    "insert into V select * from S; update istream S set price = 1.0": "a change of events",
    "update istream S set price = 1.0; context C select * from S": "a change of events",
}


@pytest.mark.parametrize("text", CHAINS)
def test_what_hangs_together_by_inserts_stays_off_columns_as_a_whole_and_the_plan_says_why(text: str) -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(f"@name('x') {text}", "m")
        assert [each.executor for each in engine.plan() if each.statement == "x"] != ["columns"]
        if "circle" not in CHAINS[text]:
            engine.send("S", some_events(3))
    assert engines[0].heard() == engines[1].heard()
    assert any(CHAINS[text] in (each.reason or "") for each in engines[0].plan())


@pytest.mark.parametrize("columns", [1, None])
def test_a_whole_number_in_a_column_of_doubles_is_a_double(columns: int | None) -> None:
    engine = Engine(columns=columns)
    engine.deploy(SCHEMA)
    engine.deploy("@name('in') insert into U select symbol, volume as a from S; @name('out') select a from U", "m")
    sent = some_events(40)
    engine.send("S", sent)
    found = [row["a"] for heard in engine.heard() if heard.statement == "out" for row in heard.new]
    assert [*map(repr, found)] == [repr(None if v is None else float(v)) for v in sent["volume"].to_pylist()]
    assert {each.executor for each in engine.plan()} == {"columns"}


def test_components_are_statements_that_share_something() -> None:
    engine = Engine()
    engine.deploy(SCHEMA)
    engine.deploy("@name('in') insert into X select symbol from S; @name('out') select symbol from X; "
                  "@name('alone') select symbol from S", "m")  # fmt: skip
    found = {each.statement: each for each in engine.plan()}
    assert found["in"].component == found["out"].component != found["alone"].component
    assert {each.executor for each in found.values()} == {"columns"}
