"""Batches of which events that concern nobody are left out, against the same events as dicts, which come one by one."""

from __future__ import annotations

import random
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.engine.columns.sieve import Sieve
from rollup.engine.rows.component import Component
from rollup.engine.types import DOUBLE, RowType
from rollup.live import Engine
from tests.profiles import examples

SCHEMA = "create schema S(symbol string, price double, volume int); create variable int least = 4; "
STATEMENTS = {
    "followed": "select a.price as p, b.price as q from pattern [every a=S(price>80) -> "
    "b=S(symbol=a.symbol, price<30) where timer:within(30 msec)]",
    "not": "select a.price as p from pattern [every (a=S(price>80) -> (timer:interval(9 msec) and not S(price<5)))]",
    "until": "select * from pattern [every (a=S(volume < 1) until b=S(price<15))]",
    "join": "select a.price as x, b.price as y from S(volume<1)#time(20 msec) as a, "
    "S(volume between 3 and 4)#length(2) as b where a.symbol = b.symbol",
    "out": "select symbol, volume from S(volume not between 0 and 4)",
    "or": "select symbol, price from S(price > 90 or symbol = 'c' and price < 20)",
    "batch": "select symbol, sum(price) as s from S(symbol = 'a', volume > 1)#time_batch(15 msec) group by symbol",
    "asked": "select price, (select count(price) from S(volume=4)#time(9 msec)) as m from S(symbol='b', price<40)",
    "context": "create context I initiated by S(price>90) terminated after 20 msec; "
    "context I select count(*) as n, sum(price) as p from S(volume>3) output snapshot when terminated",
    "variable": "select price from S(price > 70, volume > least)",
    "window": "create window W#time(20 msec) as S; insert into W select * from S(volume in (2, 3)); "
    "select sum(price) as s from W",
}
FEW = [["followed", "join"], ["not", "batch"], ["until", "out"], ["or", "context"], ["asked"], ["variable"], ["window"]]
TYPES = pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("volume", pa.int32())])


def _events(seed: int, count: int) -> tuple[list[dict[str, Any]], list[int]]:
    pick, at = random.Random(seed), 0
    prices = [None, float("nan"), 0.0, 30.0, 90.0, *(pick.random() * 100 for _ in range(20))]
    events = [
        {
            "symbol": pick.choice(["a", "b", "c", None]),
            "price": pick.choice(prices),
            "volume": pick.choice([None, *range(-1, 6)]),
        }
        for _ in range(count)
    ]
    return events, [at := at + pick.choice([0, 0, 1, 1, 3, 25]) for _ in events]


@pytest.mark.parametrize("names", FEW, ids=["-".join(each) for each in FEW])
@examples(10)
@given(seed=st.integers(0, 10**9))
def test_who_is_not_concerned_hears_the_same(names: list[str], seed: int) -> None:
    events, times = _events(seed, 300)
    one, other = Engine(columns=None), Engine(columns=None)
    for engine in (one, other):
        engine.deploy(SCHEMA + "; ".join(STATEMENTS[name] for name in names))
    for begin, end in ((0, 100), (100, 300)):
        one.send("S", pa.Table.from_pylist(events[begin:end], TYPES), at=times[begin:end])
        other.send("S", events[begin:end], at=times[begin:end])
        assert one.now == other.now
    assert repr(one.heard()) == repr(other.heard())


@examples(15)
@given(seed=st.integers(0, 10**9), names=st.sets(st.sampled_from(sorted(STATEMENTS)), min_size=1, max_size=3))
def test_beside_statements_over_columns_too(seed: int, names: set[str]) -> None:
    over = "select symbol, sum(price) as s from S#length(5) group by symbol; select * from S(volume = 2); "
    events, times = _events(seed, 400)
    one, other = Engine(columns=1), Engine(columns=None)
    for engine in (one, other):
        engine.deploy(SCHEMA + over + "; ".join(STATEMENTS[name] for name in sorted(names)))
    for begin, end in ((0, 200), (200, 400)):
        one.send("S", pa.Table.from_pylist(events[begin:end], TYPES), at=times[begin:end])
        other.send("S", events[begin:end], at=times[begin:end])
        assert repr(one.heard()) == repr(other.heard())


def _passing(text: str, count: int = 100) -> list[bool] | None:
    engine = Engine(columns=None)
    engine.deploy(SCHEMA + "create context C partition by symbol from S; " + text)
    component: Component = engine._component  # type: ignore[reportPrivateUsage]
    table = pa.table({"price": [float(n) for n in range(count)]})
    kinds = RowType("S", {"symbol": DOUBLE, "price": DOUBLE})
    mask = Sieve(component).passing(kinds, [table["price"].combine_chunks()] * 2)
    return None if mask is None else mask.to_pylist()


def test_what_all_filters_say_of_an_event_alone_lets_few_through() -> None:
    assert _passing("select * from S(price < 2 or price >= 98)") == [n < 2 or n >= 98 for n in range(100)]
    assert _passing("select * from pattern [every a=S(price > 97) -> b=S(price < 1, symbol = a.symbol)]") == [
        n > 97 or n < 1 for n in range(100)
    ]
    assert _passing("select * from S(price > 97, volume > least)") == [n > 97 for n in range(100)]


def test_where_one_filter_takes_all_or_there_are_too_many_nothing_is_left_out() -> None:
    assert _passing("select * from S(price < 2); select * from S") is None
    assert _passing("select * from S(price < 2); context C select * from S(price < 1)") is None
    assert _passing("select * from S(price < 2); update istream S set price = 1") is None
    assert _passing("select * from pattern [a=S(price < 2) -> b=S(price > a.price)]") is None
    assert _passing("select * from S(price < 2)", 31) is None


@pytest.mark.parametrize("columns", [None, 1])
def test_an_engine_leaves_out_what_concerns_nobody(columns: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    passing, left_out = Sieve.passing, list[int]()

    def told(sieve: Sieve, *stream: Any) -> pa.Array | None:
        mask = passing(sieve, *stream)
        left_out.append(0 if mask is None else mask.to_pylist().count(False))
        return mask

    monkeypatch.setattr(Sieve, "passing", told)
    engine = Engine(columns=columns)
    engine.deploy(
        SCHEMA + "select rate(1, filter: volume > 0) as m from S(price > 97); select * from S(symbol = 'a', volume = 1)"
    )
    events, _ = _events(3, 200)
    engine.send("S", pa.Table.from_pylist(events, TYPES))
    assert sum(left_out) > 100
