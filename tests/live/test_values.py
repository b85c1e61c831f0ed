"""Values that columns carry as rows have them, whatever their type."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.errors import QueryError
from rollup.live import Arrived, Engine, Heard
from tests.live.deploying import bits, deployed, exact, gaps, row, some_events
from tests.live.statements import SCHEMA
from tests.profiles import examples
from tests.rereading import reread

pytestmark = pytest.mark.usefixtures("interpreted")


@examples(20)
@given(found=st.lists(st.tuples(gaps, row), min_size=1, max_size=20), cut=st.integers(0, 20))
def test_tables_hold_what_dicts_hold(found: Any, cut: int) -> None:
    names = ["grouped", "a", "b", "removed", "leaving", "left"]
    one, other = deployed(names, 1), deployed(names, None)
    arrived: list[Arrived] = []
    one.listen_arrow(arrived.append)
    events = [event for _, event in found]
    for part in (events[:cut], events[cut:]):
        one.send("S", part)
        other.send("S", part)
    given: dict[str, list[Any]] = {name: [] for name in names}
    for each in arrived:
        marks = zip(each.statement.to_pylist(), each.sign.to_pylist(), each.rows.to_pylist(), strict=True)
        for name, sign, values in marks:
            given[name].append((sign, bits(values)))
    wanted: dict[str, list[Any]] = {name: [] for name in names}
    for heard in other.heard():
        wanted[heard.statement] += [(1, bits(values)) for values in heard.new]
        wanted[heard.statement] += [(-1, bits(values)) for values in heard.old]
    assert given == wanted
    assert one.heard() == []


def test_functions_hear_what_is_theirs_and_the_rest_is_kept() -> None:
    engine, heard = deployed(["filter", "grouped", "removed"], 1), dict[str, list[Any]]()
    for name in ("filter", "removed"):
        engine.listen(name, lambda new, old, name=name: heard.setdefault(name, []).append((new, old)))
    engine.send("S", some_events(1))
    assert heard["filter"] == [([{"symbol": "a", "n": 60.0}], [])]
    assert heard["removed"][1] == ([{"symbol": "b"}], [{"symbol": "a"}])
    assert [(each.statement, each.new[0]["n"]) for each in engine.heard()] == [("grouped", 1), ("grouped", 1)]


def test_tables_of_one_statement_of_a_family_are_its_own() -> None:
    engine, arrived = deployed(["a", "b", "removed"], 1), list[Arrived]()
    engine.listen_arrow(arrived.append, "b", "removed")
    engine.send("S", some_events(2))
    assert [(each.statement[0].as_py(), each.rows.column("symbol").to_pylist()) for each in arrived] == [
        ("removed", ["a", "b", "a", "a", "b", "b", "a"]),
        ("b", ["b", "b"]),
    ]
    assert {each.statement for each in engine.heard()} == {"a"}
    with pytest.raises(QueryError, match="no statement is called `z`"):
        engine.listen_arrow(arrived.append, "z")


@pytest.mark.parametrize("literal", ["9007199254740993", "9007199254740992", "3"])
def test_a_whole_number_is_a_double_beside_one(literal: str) -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(f"select price from S(price = {literal})")
        engine.send("S", [{"symbol": "a", "price": price, "volume": 1} for price in (2.0**53, 3.0, None)])
    over, rows = (list(map(exact, engine.heard())) for engine in engines)
    assert over == rows and len(rows) == 1


FLOATS = [
    "select * from F(f > 1.1f)",
    "select k, f, d * f as x, d - g as y from F where f != g and g <= 16777217",
    "select k from F(cast(f, double) > 16777216, not (g is null))",
    "select k, count(f) as n, sum(d + f) as s from F#length(3) group by k",
    "select a.f as f, b.g as g from pattern [every a=F -> b=F(k = a.k, g < a.f) where timer:within(1 sec)]",
]

number = st.sampled_from([None, 1.1, 1, -0.0, 16777216, 16777217, 3.3e38, 0.1])


@examples(40)
@given(
    events=st.lists(st.fixed_dictionaries({"k": st.sampled_from("ab"), "f": number, "g": number, "d": number})),
    cut=st.integers(0, 5),
)
@pytest.mark.slow
def test_floats_are_carried_and_compared_as_on_rows(events: list[Any], cut: int) -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy("create schema F(k string, f float, g float, d double)")
        for place, text in enumerate(FLOATS):
            engine.deploy(text, f"s{place}")
        for part in (events[:cut], events[cut:]):
            engine.send("F", part)
    assert {each.executor for each in engines[0].plan()} == {"columns"}
    over, rows = (list(map(exact, engine.heard())) for engine in engines)
    assert over == rows


OPEN = {
    "filter": "select k, x * 2 as y from F(x > 20)",
    "grouped": "select irstream k, sum(x) as s from F#length(3) group by k",
    "rows": "select irstream k, x from F#time(20 msec)",
    "batch": "select k, sum(x) as s from F#length_batch(2) group by k output last every 3 events",
    "pattern": "select a.x as p, b.x as q from pattern [every a=F(x > 20) -> b=F(k = a.k) where timer:within(30 msec)]",
    "joined": "select a.x as p, b.k as q from F#length(3) as a, F#time(30 msec) as b where a.k = b.k",
    "asking": "select k, (select max(x) from F#length(2)) as m from F",
    "keyed": "context K select k, count(*) as n from F",
    "into": "insert into G select k, x from F",
    "of": "select k, sum(x) as s from G#length(2) group by k",
}

OPEN_ON_ROWS = {
    "whole": "select * from F(x > 50)",
    "decimals": "select k, sum(d) as s from F#length(2) group by k",
    "equal": "select k from F(d = 1)",
    "lists": "select k, l[0] as first from F",
}


@examples(8)
@given(
    events=st.lists(
        st.fixed_dictionaries(
            {
                "k": st.sampled_from(["a", "b", None]),
                "d": st.sampled_from([None, "1", "0.50", "12345678901234567890.1"]),
                "l": st.sampled_from([None, [], [1, 2]]),
                "x": st.one_of(st.none(), st.floats(0, 100)),
            }
        )
    ),
    cut=st.integers(0, 5),
    restart=st.booleans(),
)
def test_fields_that_nobody_reads_may_be_of_any_type(events: list[Any], cut: int, restart: bool) -> None:
    engines, said = list[Engine](), list[list[Any]]()
    for columns in (2, None):
        engine = Engine(columns=columns)
        engine.deploy(
            "create schema F(d bigdecimal, k string, l int[], x double); create schema G(k string, x double); "
            "create context K partition by k from F"
        )
        for name, text in {**OPEN, **OPEN_ON_ROWS}.items():
            engine.deploy(text, name)
        heard = list[Heard]()
        for part in (events[:cut], events[cut:], events):
            engine.send("F", part)
            engine.advance(engine.now + 15)
            heard += engine.heard()
            engine = Engine.restored(reread(engine.snapshot()), columns) if restart else engine
        engines.append(engine)
        said.append(sorted(map(exact, heard), key=lambda each: each[0]))  # who tells first of a partition is not said
    assert said[0] == said[1]
    assert {each.statement for each in engines[0].plan() if each.executor == "columns"} == OPEN.keys()
    for name in (*OPEN, *OPEN_ON_ROWS):
        shown = [sorted(map(bits, engine.rows(name)), key=repr) for engine in engines]
        assert shown[0] == shown[1], name
