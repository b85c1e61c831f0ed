"""The filter index against looking at every filter: the same events to the same receivers in the same order, and the cost
of an event by how many conditions were tested, not by time.
"""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollup.engine.index import Entry, FilterIndex, Test
from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.lang.epl.deployer import Deployer
from rollup.live import Engine
from tests.profiles import examples


class Log:
    order = (0, 0)

    def receive(self, inputs: Any, row: Row) -> None: ...


numbers = st.one_of(st.none(), st.integers(-3, 12), st.floats(-3, 12), st.just(float("nan")))
bounds = st.one_of(st.none(), st.integers(0, 9))
ways = st.lists(st.tuples(st.just(0), bounds, bounds).filter(lambda way: way[1:] != (None, None)), max_size=3)
entries = st.lists(st.tuples(st.booleans(), ways), max_size=60)


def _passes(found: list[tuple[int, Any, Any]]) -> Any:
    """A condition that is one of the ways."""

    def test(row: Row) -> bool:
        value = row.values[0]
        if not found:
            return True
        if value is None:
            return False
        return any((low is None or low <= value) and (high is None or value <= high) for _, low, high in found)

    return test


@settings(deadline=None)
@given(found=entries, gone=st.sets(st.integers(0, 59)), values=st.lists(numbers, max_size=8))
def test_the_index_finds_what_a_look_at_every_filter_finds(found: Any, gone: set[int], values: list[Any]) -> None:
    index, made = FilterIndex(), list[Entry]()
    for equal, which in found:
        entry = Entry(Log(), len(made), {1: "k"} if equal else {}, _passes(which), ways=tuple(which))
        index.add(entry)
        made.append(entry)
    list(index.matches(Row(0, (5, "k"))))
    for place in gone & set(range(len(made))):
        index.remove(made[place])
        index.remove(made[place])
    assert len(index) == len(made) - len(gone & set(range(len(made))))
    for value in values:
        row = Row(1, (value, "k"))
        wanted = [e for i, e in enumerate(made) if i not in gone and e.test is not None and e.test(row)]
        assert index.matches(row) == wanted


FILTERS = {
    "price > {n}": 1,
    "price < {n}": 1,
    "{n} <= price and price < {n} + 1": 1,
    "price between {n} and {n} + 2": 1,
    "symbol = 'K{n}' or price > 1000 + {n}": 2,
    "(symbol = 'K{n}' and volume > 1) or (volume = {n} and price > 0)": 2,
    "symbol = 'all' and price > 1000000 + {n}": 1,
}


@pytest.mark.parametrize("text", FILTERS)
@pytest.mark.few(3)
def test_filters_that_do_not_match_are_not_tested(text: str) -> None:
    """Three hundred filters of one shape: an event that few of them concern has few of them tested."""
    component = Component()
    deployer = Deployer(component)
    deployer.deploy("create schema S(symbol string, price double, volume int)")
    for n in range(300):
        deployer.deploy(f"select symbol from S({text.format(n=n)})", f"s{n}")
    index, tested = component.runner.indexes["S"], [0]

    def counting(own: Test | None) -> Test:
        def test(row: Row) -> bool:
            tested[0] += 1
            return own is None or own(row)

        return test

    buckets = [index._others, *(each for lookup in index._lookups.values() for each in lookup.values())]  # pyright: ignore[reportPrivateUsage]
    for family in [each for bucket in buckets for each in bucket.families.values()]:
        family.test = counting(family.test)
    chance = random.Random(7)
    for _ in range(20):
        price = {"price > {n}": 3.5, "price < {n}": 296.5}.get(text, chance.uniform(0, 299))
        row = Row(1, (f"K{chance.randrange(300)}", price, chance.randrange(3, 300)))
        index.matches(row)
        tested[0] = 0
        found = index.matches(row)
        assert len(found) <= tested[0] <= len(found) + 3, (text, row)


@examples(30)
@given(
    texts=st.lists(
        st.sampled_from(
            [
                "price > {n}",
                "{n} < price and volume <= {n}",
                "price in [{n}:5]",
                "symbol = 'a' or volume = {n}",
                "symbol >= 'b' and price != {n}",
                "not (price > {n})",
                "price > {n} or volume is null",
                "price > volume",
                "symbol in ('a', 'c') and volume < {n}",
            ]
        ).flatmap(lambda text: st.integers(0, 6).map(lambda n: text.format(n=n))),
        min_size=1,
        max_size=12,
    ),
    events=st.lists(
        st.tuples(st.sampled_from(["a", "b", "c", None]), st.sampled_from([None, 0.0, 2.5, 5.0]), st.sampled_from([None, 0, 3, 6])),
        max_size=6,
    ),
)  # fmt: skip
def test_whatever_a_filter_says_it_lets_through_what_a_where_lets_through(texts: Any, events: Any) -> None:
    filtered, plain = Engine(columns=None), Engine(columns=None)
    for engine in (filtered, plain):
        engine.deploy("create schema S(symbol string, price double, volume int)")
    for number, text in enumerate(texts):
        filtered.deploy(f"select symbol from S({text})", f"s{number}")
        plain.deploy(f"select symbol from S where {text}", f"s{number}")
    for symbol, price, volume in events:
        for engine in (filtered, plain):
            engine.send("S", {"symbol": symbol, "price": price, "volume": volume})
    assert filtered.heard() == plain.heard()


def test_a_pattern_finds_its_next_event_by_a_range_that_its_first_has_bound() -> None:
    engine = Engine()
    engine.deploy("create schema A(k string, v double); create schema B(k string, v double);"
                  "@name('s') select a.v as x, b.v as y from pattern [every a=A -> b=B(v > a.v)]")  # fmt: skip
    for v in (1.0, 5.0, None, 3.0):
        engine.send("A", {"k": "k", "v": v})
    engine.send("B", {"k": "k", "v": 4.0})
    engine.send("B", {"k": "k", "v": 9.0})
    assert [row for each in engine.heard() for row in each.new] == [
        {"x": 1.0, "y": 4.0},
        {"x": 3.0, "y": 4.0},
        {"x": 5.0, "y": 9.0},
    ]
