"""Variables over columns against variables on rows: constants, those that other events set, and those that the same ones do."""

from __future__ import annotations

import struct
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.live import Engine
from tests.profiles import examples

SCHEMA = """
create schema S(symbol string, price double, volume int);
create schema R(price double, least int);
create context C partition by symbol from S;
create constant variable int FEW = 2;
create constant variable double HIGH = 50;
create variable double lim = 50;
create variable int least;
create variable string word = 'a';
on R(price < 90) set lim = price, least = R.least, word = case when price < 30 then 'b' else word end;
"""
CONSTANT = {
    "filter": "select symbol, HIGH as h, price > HIGH as x, volume + FEW as y from S(price > HIGH or volume = FEW)",
    "window": "select irstream symbol, sum(price * HIGH) as s from S#length(FEW) group by symbol having count(*) >= FEW",
    "rate": "select symbol, max(price) as m from S#time(20 msec) where price < HIGH group by symbol output every FEW events",
    "pattern": "select a.price as p, b.price as q from pattern [every a=S(price > HIGH) -> b=S(symbol = a.symbol, volume < FEW)]",
    "context": "context C select min(price) as m from S#length(3) having min(price) < HIGH",
}
READ = {
    "columns": "select symbol, lim, least, word || symbol as w, volume + least as n, least * 7 as m, least is null as u, "
    "coalesce(least, volume) as c, case when volume > least then lim else price end as x from S(price > lim or least > 1)",
    "groups": "select symbol, sum(price) as s, lim as l from S#length(4) group by symbol having sum(price) > lim",
    "in time": "select irstream sum(price) as s, lim as l from S(volume > least)#time(20 msec) having sum(price) > lim",
    "by where": "select symbol, price from S where price > lim and symbol != word",
    "rows": "select irstream symbol, price - lim as d from S(price > lim)#length(3)",
    "equal": "select price from S(symbol = word)",
    "pairs": "select a.price as p, b.price as q, lim as l from S(price > lim)#length(3) as a, S(price < 60)#length(4) as b "
    "where a.symbol = b.symbol having a.price + b.price > lim",
    "asked": "select symbol, (select max(price) from S(price > lim)#length(4)) as m from S",
    "counted": "select symbol, price from S output every least events",
    "last counted": "select symbol, sum(price) as s from S#length(3) group by symbol output last every least events",
    "all counted": "select irstream sum(price) as s from S#time(20 msec) output all every least events",
    "each": "context C select symbol, sum(price) as s from S(price > lim) having sum(price) > least",
}
ON_ROWS = {
    "summed": "select sum(price * lim) as s from S#length(2)",
    "behind": "select sum(price) as s from S#length(2) where price > lim",
    "waiting": "select symbol, sum(price) as s, lim from S#length(2) group by symbol output every 2 events",
    "first": "select price from S output first every least events",
    "after": "select price from S output when count_insert >= least",
    "matched": "select a.price as p from pattern [every a=S(price > lim)]",
    "joined": "select S.price as p from S#lastevent as S, R#lastevent as R having S.price > lim",
    "own": "context C create variable int here = 1; context C select price from S(volume > here)",
    "changed": "update istream S set volume = least",
}
KINDS = pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("volume", pa.int32())])

prices = st.one_of(st.none(), st.sampled_from([0.1, 45.0, 50.0, 55.5]), st.floats(0, 100))
wholes = st.one_of(st.none(), st.integers(-1, 4), st.just(2**31 - 1))
event = st.fixed_dictionaries({"symbol": st.sampled_from(["a", "b", None]), "price": prices, "volume": wholes})
steps = st.lists(
    st.one_of(
        st.tuples(st.just("S"), st.lists(st.tuples(st.sampled_from([0, 3, 15]), event), min_size=1, max_size=8)),
        st.tuples(
            st.just("R"), st.lists(st.fixed_dictionaries({"price": prices, "least": wholes}), min_size=1, max_size=3)
        ),
        st.tuples(st.just("advance"), st.sampled_from([5, 30])),
        st.sampled_from([("restart", None), ("rows", None), ("late", None)]),
    ),
    max_size=12,
)


def _deployed(shapes: dict[str, str], columns: int | None) -> Engine:
    engine = Engine(columns=columns)
    engine.deploy(SCHEMA)
    for name, text in shapes.items():
        engine.deploy(text, name)
    return engine


def _run(engine: Engine, found: list[tuple[str, Any]], columns: int | None) -> list[Any]:
    said: list[Any] = []
    for what, value in found:
        match what:
            case "S":
                at = engine.now
                times = [at := at + gap for gap, _ in value]
                engine.send("S", pa.Table.from_pylist([each for _, each in value], KINDS), at=times)
            case "R":
                engine.send("R", value)
            case "advance":
                engine.advance(engine.now + value)
            case "restart":
                said += engine.heard()
                engine = Engine.restored(engine.snapshot(), columns)
            case "late" if "late" not in [each.statement for each in engine.plan()]:
                engine.deploy("on S(volume = 2) set lim = price, least = volume", "late")
            case _:
                names = [each.statement for each in engine.plan()]
                said += [(name, sorted(map(_bits, engine.rows(name)), key=repr)) for name in names]
        said += engine.heard()
    return [_bits(each) for each in said]


def _bits(value: Any) -> Any:
    """A value with its kind, to the last bit."""
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {name: _bits(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_bits(each) for each in value]
    return [type(value).__name__, _bits(vars(value))] if hasattr(value, "statement") else (type(value), value)


def test_constants_are_literals_and_variables_are_read_where_nothing_is_kept_by_what_they_were_worth() -> None:
    for shapes, where in (({**CONSTANT, **READ}, "columns"), (ON_ROWS, "rows")):
        for name, text in shapes.items():
            plan = {each.statement: each.executor for each in _deployed({name: text}, 1).plan()}
            assert list(plan.values())[-1] == ("program" if name == "summed" else where), name


@pytest.mark.parametrize("shapes", [CONSTANT, READ], ids=["constant", "read"])
@examples(20)
@given(found=steps)
def test_variables_are_worth_over_columns_what_they_are_worth_on_rows(shapes: dict[str, str], found: Any) -> None:
    assert _run(_deployed(shapes, 1), found, 1) == _run(_deployed(shapes, None), found, None)


@pytest.mark.parametrize(
    "late", ["on S set lim = price", "select price from S output when count_insert > 1 then set lim = 1"]
)
def test_a_batch_whose_own_events_may_set_a_variable_comes_event_by_event(late: str) -> None:
    engine = _deployed({"groups": READ["groups"]}, 1)
    engine.deploy(late, "late")
    reasons = {each.statement: each.reason for each in engine.plan()}
    assert reasons["groups"] == "the variable `lim`, which may be set between the events that it hears"


@pytest.mark.parametrize(
    "text",
    ["insert into S select 'a' as symbol, price, 1 as volume from R", "insert into R select price, 1 as least from S"],
)
def test_so_does_one_that_is_inserted_beside_or_sets_it_on_its_way(text: str) -> None:
    engine = _deployed({"groups": READ["groups"]}, 1)
    engine.deploy(text)
    assert next(each.executor for each in engine.plan() if each.statement == "groups") == "program"


def test_a_constant_of_a_variable_is_what_it_was_when_it_was_made_and_not_when_it_goes_on() -> None:
    engine = _deployed({}, 1)
    engine.send("R", [{"price": 7.0, "least": 3}])
    engine.deploy("create constant variable double ONCE = lim; @name('s') select ONCE as t, price > ONCE as x from S")
    engine = Engine.restored(engine.snapshot(), 1)
    engine.send("S", [{"symbol": "a", "price": 8.0, "volume": 1}])
    assert [each.new for each in engine.heard() if each.statement == "s"] == [[{"t": 7.0, "x": True}]]


def test_a_variable_holds_values_of_its_type() -> None:
    engine = _deployed({"s": "select lim, HIGH as h from S"}, None)
    engine.deploy("on S set lim = volume", "sets")
    engine.send("S", [{"symbol": "a", "price": 8.0, "volume": 3}] * 2)
    shown = [each.new[0] for each in engine.heard() if each.statement == "s"]
    assert [[type(value) for value in row.values()] for row in shown] == [[float, float]] * 2
    assert [row["lim"] for row in shown] == [50.0, 3.0]
