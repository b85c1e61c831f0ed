"""What outputs over columns show of rows that wait, and in which order."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

from rollup.live import Engine
from tests.live.deploying import TYPES, some_events
from tests.live.statements import COVERED, SCHEMA

pytestmark = pytest.mark.usefixtures("interpreted")


def test_a_batch_window_that_goes_over_takes_the_groups_of_its_waiting_rows_with_it() -> None:
    engine = Engine(columns=3)
    engine.deploy(SCHEMA)
    engine.deploy("@name('sums') select symbol, sum(price) as s from S#length_batch(4) group by symbol")
    for symbol, price in (("a", 1.0), ("b", 2.0)):
        engine.send("S", {"symbol": symbol, "price": price, "volume": 1})
    assert engine.heard() == []
    table = pa.Table.from_pylist(
        [{"symbol": s, "price": p, "volume": 1} for s, p in (("c", 4.0), ("b", 8.0), ("d", 16.0))], TYPES
    )
    engine.send("S", table)
    assert [each.new for each in engine.heard()] == [
        [{"symbol": "a", "s": 1.0}, {"symbol": "b", "s": 10.0}, {"symbol": "c", "s": 4.0}]
    ]
    assert [each.executor for each in engine.plan()] == ["columns"]


def test_groups_whose_rows_wait_for_an_output_keep_their_numbers_where_none_of_them_is_in_the_window_any_more() -> None:
    engines = [Engine(columns=4), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(COVERED["groups leaving last"], "x")
        for symbols in ("abc", "cbaba"):
            engine.send("S", [{"symbol": symbol, "price": float(n), "volume": 1} for n, symbol in enumerate(symbols)])
    assert engines[0].heard() == engines[1].heard() != []
    assert [each.executor for each in engines[0].plan()] == ["columns"]


def test_rows_that_wait_for_an_output_are_counted_where_some_of_it_was_made_on_rows() -> None:
    """A loop that leaves the latest row of each interval alone knows no events, of which leaving rows would ask."""
    for name in ("group last", "group all"):
        engines = [Engine(columns=4), Engine(columns=None)]
        for engine in engines:
            engine.deploy(SCHEMA)
            engine.deploy(COVERED[name], "x")
            for symbols in ("abb", "cbabacabb"):
                rows = [{"symbol": symbol, "price": float(n), "volume": 1} for n, symbol in enumerate(symbols)]
                engine.send("S", rows)
        assert engines[0].heard() == engines[1].heard() != []


@pytest.mark.parametrize("window", ["length(3)", "time(30 msec)", "time_batch(30 msec)", "length_batch(3)", "keepall"])
def test_a_limit_of_groups_that_are_shown_takes_them_as_the_window_has_them(window: str) -> None:
    engines = [Engine(columns=4), Engine(columns=None)]
    text = f"select symbol, count(*) as n from S#{window} group by symbol order by count(*) desc limit 2"
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(text, "x")
        rows = [{"symbol": symbol, "price": 1.0, "volume": 1} for symbol in "abcba"]
        engine.send("S", pa.Table.from_pylist(rows, TYPES), at=[0, 5, 20, 25, 33])
    assert [each.executor for each in engines[0].plan()] == ["columns"]
    assert engines[0].rows("x") == engines[1].rows("x") != []


@pytest.mark.parametrize("rate", ["every 4 events", "every 20 msec"])
@pytest.mark.parametrize("kind", ["", "irstream "])
def test_a_window_for_each_key_that_waits_for_an_output_goes_over(kind: str, rate: str) -> None:
    engines = [Engine(columns=6), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(
            f"select {kind}symbol, count(*) as n from S#groupwin(symbol)#length(2) group by symbol output {rate}", "x"
        )
        for symbols in ("aaba", "c", "abcabcba", "aacb"):
            rows = [{"symbol": symbol, "price": 1.0, "volume": 1} for symbol in symbols]
            engine.send("S", pa.Table.from_pylist(rows, TYPES), at=[engine.now + 7 * n for n in range(len(rows))])
    assert [each.executor for each in engines[0].plan()] == ["columns"]
    assert engines[0].heard() == engines[1].heard() != []


@pytest.mark.parametrize("text", ["distinct price - price as p", "distinct -price as p", "price as p"])
@pytest.mark.parametrize("after", ["", " order by price limit 3", " order by price desc, volume limit 3 offset 1"])
def test_nan_is_one_value_that_is_above_all_numbers_in_what_is_put_in_order(text: str, after: str) -> None:
    engines, prices = [Engine(columns=1), Engine(columns=None)], [math.inf, math.nan, -math.inf, -math.nan, 1.0, None]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(f"select {text} from S#length_batch(6){after}", "x")
        engine.send("S", [{"symbol": "a", "price": price, "volume": n} for n, price in enumerate(prices)])
    assert [each.executor for each in engines[0].plan()] == ["columns"]
    over, rows = ([repr((each.new, each.old)) for each in engine.heard()] for engine in engines)
    assert over == rows != []


def test_what_is_shown_of_a_window_has_nan_above_all_numbers_too() -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy("@name('x') select max(price) as m, min(price) as n from S#length(3)")
        engine.send("S", [{"symbol": "a", "price": price, "volume": 1} for price in (math.nan, 1.0, 0.5)])
    assert [each.executor for each in engines[0].plan()] == ["columns"]
    (over,), (rows,) = (engine.rows("x") for engine in engines)
    assert math.isnan(over["m"]) and math.isnan(rows["m"]) and over["n"] == rows["n"] == 0.5


def test_an_output_that_a_jump_made_late_shows_what_had_not_left_its_window_by_then() -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy("@name('x') select count(*) as n from S#time(25 msec) output every 20 msec")
        engine.send("S", some_events(2))
        engine.advance(19)
        engine.jump(25)
    assert engines[0].rows("x") == engines[1].rows("x") == [{"n": 4}]
    assert [each.executor for each in engines[0].plan()] == ["columns"]


def test_a_jump_that_brings_an_output_of_a_join_lets_its_windows_out_behind_it() -> None:
    text = "select a.symbol as k, b.price as p, sum(b.price) as s from S#length(3) as a, S#time(20 msec) as b "
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(text + "where a.volume = b.volume group by a.symbol output last every 20 msec", "x")
        engine.send("S", pa.Table.from_pylist([{"symbol": "a", "price": 2.0, "volume": 1}], TYPES))
        assert engine.rows("x") == [{"k": "a", "p": 2.0, "s": 2.0}]
        engine.jump(50)
        assert [each.new for each in engine.heard()] == [[{"k": "a", "p": 2.0, "s": 2.0}]]
        assert engine.rows("x") == []
    assert [each.executor for each in engines[0].plan()] == ["columns"]
