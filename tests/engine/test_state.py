"""A snapshot gives back what was put in: the same values, and one row where one row was held by several."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sortedcontainers import SortedList

from rollup.engine.row import Row
from rollup.engine.state import Live, Packer, State, Unpacker
from rollup.live import Engine
from tests.profiles import examples

PLAIN = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text() | st.decimals(allow_nan=False)
)
KEYS = st.text() | st.integers() | st.tuples(st.text(), st.integers() | st.none())
VALUES = st.recursive(
    PLAIN,
    lambda inner: st.lists(inner) | st.tuples(inner, inner) | st.dictionaries(KEYS, inner) | st.sets(st.integers()),
    max_leaves=12,
)


def back(**nodes: Any) -> dict[str, Any]:
    packer = Packer()
    for path, state in nodes.items():
        packer.node(path, state)
    unpacker = Unpacker(packer.state({}))
    return {path: unpacker.node(path) for path in nodes}


@examples(30)
@given(VALUES)
def test_a_state_of_plain_values_comes_back_equal_and_of_the_same_types(value: Any) -> None:
    found = back(node=value)["node"]
    assert found == value and repr(type(found)) == repr(type(value))


def test_a_row_held_by_two_nodes_is_one_row_again() -> None:
    row = Row(3, ("a", Decimal("1.50")))
    found = back(window=[row, Row(4, ("b", None))], match={"a": row})
    assert found["window"][0] is found["match"]["a"]
    assert found["window"][0].values == ("a", Decimal("1.50")) and found["window"][1].id == 4


def test_a_row_inside_a_row_comes_back() -> None:
    inner = Row(1, ("x",))
    found = back(node=[Row(2, (inner, 5))])["node"]
    assert found[0].values[0].values == ("x",) and found[0].values[1] == 5


def test_rows_without_an_identity_stay_apart() -> None:
    found = back(node=[Row(2, (Row(0, (1,)),)), Row(3, (Row(0, (2,)),)), Row(0, (3,))])["node"]
    assert [found[0].values[0].values, found[1].values[0].values, found[2].values] == [(1,), (2,), (3,)]


def test_a_sorted_list_stays_sorted() -> None:
    found = back(node=[SortedList([3, 1, 2])])["node"][0]
    found.add(0)
    assert isinstance(found, SortedList) and list(found) == [0, 1, 2, 3]


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_an_event_that_is_heard_as_one_of_what_it_inherits_keeps_both_forms(cut: int) -> None:
    engine = Engine(0)
    engine.deploy("create schema P(p int); create schema A(v int); create schema B(w int) inherits P, A;")
    engine.deploy("@name('a') select window(*) as rows from A#length(3)")
    engine.deploy("@name('p') select window(*) as rows from P#length(3)")
    engine.deploy("@name('j') select b.w as w, a.v as v from B#length(2) as b, A#length(2) as a where a.v = b.v")
    for place in range(3):
        if place == cut:
            engine = Engine.restored(engine.snapshot())
        engine.send("B", {"p": 7 + place, "v": place, "w": 10 * place})
    found = [(each.statement, each.new) for each in engine.heard()][-3:]
    assert sorted(found, key=lambda each: each[0]) == [
        ("a", [{"rows": [{"v": 0}, {"v": 1}, {"v": 2}]}]),
        ("j", [{"w": 20, "v": 2}]),
        ("p", [{"rows": [{"p": 7}, {"p": 8}, {"p": 9}]}]),
    ]


def test_the_tables_of_what_goes_on_are_made_only_for_who_asks_for_them() -> None:
    """To make them takes as long as the state is large, and a batch may ask for its own tables each time."""
    made = list[str]()

    def tables() -> dict[str, pa.Table]:
        made.append("made")
        return {"rows": pa.table({"x": [1]})}

    own = pa.table({"y": [2]})
    whole = State.holding({"main": Live(None, {}, tables)}, {"now": 5}, {"own": own})
    for state in (whole, whole.instead(whole.held())):
        assert (state.tables["own"], state.tables.get("another"), "third" in state.tables) == (own, None, False)
        assert made == []
    assert {*whole.tables} == {"0 rows", "own"} and whole.tables["0 rows"].to_pylist() == [{"x": 1}]
    assert made == ["made", "made"]
