"""StreamCruncher in an app: a batch that is handed over as tables gives what its events give one by one.

The step over one event at a time is the oracle; random events of three streams (one of them not read: it only moves the
clock), late ones among them, are cut at random, with the state handed on as files between the batches.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from rollup.engine.state import State
from rollup.program import compile_app
from rollup.statements.component import Component, Event
from tests.conformance.uql.targets import reopened

STREAMS = """define stream S (k string, v int);
define stream U (k string, v int);
define stream L (k string, v long);
define stream Other (n long);
"""
QUERIES = {
    "columns": (
        "define stream T (k string, n long, s long);",
        "select k, n, s from S (partition by k store last 40 milliseconds with count(v) as n, sum(v) as s) as x "
        "where x.$row_status is new;",
    ),
    "sums of longs": (
        "define stream T (k string, s long);",
        "select k, s from L (partition by k store last 2 with sum(v) as s) as x where x.$row_status is new;",
    ),
    "rows": (
        "define stream T (k string, v int);",
        "select k, v from S (partition by k store last 2) as x where x.$row_status is dead;",
    ),
    "an alert": (
        "define stream T (k string, v int);",
        "select i, w from alert a.k as i, b.v as w using S (partition store last 30 milliseconds) as a correlate on k, "
        "U (partition store last 20 milliseconds) as b correlate on k when present(a and b) or present(a and not b);",
    ),
}


def _block(name: str) -> Component:
    target, query = QUERIES[name]
    statements = compile_app(f"{STREAMS}{target}\n@lang('streamcruncher', into='T') {{ {query} }}").statements
    assert statements is not None
    (part,) = statements.parts
    return part.component


def _events(chance: random.Random, count: int) -> list[Event]:
    at, found = 1000, list[Event]()
    for number in range(count):
        at += chance.choice([0, 0, 0, 1, 2, 7, 60])
        stream = chance.choice(["S", "S", "U", "Other"])
        values: tuple[Any, ...] = (
            (number,) if stream == "Other" else (chance.choice("abc"), chance.choice([1, 2, None]))
        )
        found.append(Event((number,), at - chance.choice([0, 0, 0, 5]), stream, values))
    return found


def _run(component: Component, events: list[Event], sizes: list[int]) -> list[Any]:
    state: State | None = None
    given, at = list[Any](), 0
    for size in sizes:
        state, taken = component.step(state, events[at : at + size])
        assert not taken.refused
        given += [(event.key, event.at, event.stream, event.values) for event in taken.events]
        (state,) = reopened((state,)) if state is not None else (None,)
        at += size
    return given


@pytest.mark.parametrize("name", ["columns", "rows", "an alert"])
@pytest.mark.few(1)
def test_a_batch_of_tables_gives_what_its_events_give_one_by_one(name: str) -> None:
    component = _block(name)
    assert component.described.executor == ("rows" if name == "rows" else "columns")
    for seed in range(2):
        chance = random.Random(seed)
        events = _events(chance, 700)
        by_one = _run(component, events, [31] * (len(events) // 31 + 1))
        assert len(by_one) > 100
        sizes = [chance.choice([1, 40, 300]) for _ in range(len(events))]
        assert _run(component, events, sizes) == by_one


@pytest.mark.parametrize("sizes", [[1] * 90, [90], [7, 40, 43]])
@pytest.mark.few(1)
def test_sums_beyond_64_bits_are_counted_once_however_the_events_are_cut(sizes: list[int]) -> None:
    component = _block("sums of longs")
    values = [(f"a{key}", v) for v in (2**62, 2**62, 2**62, 1, 2**62, 2**62) for key in range(10)]
    values += [(f"b{key}", v) for v in (-(2**62), -(2**62), -(2**62) - 1) for key in range(10)]
    events = [Event((n,), 1000 + n, "L", row) for n, row in enumerate(values)]
    state, at, beyond, rows = None, 0, 0, list[Any]()
    for size in [*sizes, 1]:
        state, taken = component.step(state, [*events, Event((90,), 5000, "Other", (1,))][at : at + size])
        assert state is not None
        (state,) = reopened((state,))
        at, beyond, rows = at + size, beyond + taken.beyond, rows + [event.values for event in taken.events]
    assert [s for k, s in rows if k == "a3"] == [2**62, None, 2**62 + 1, None]
    assert [s for k, s in rows if k == "b3"] == [-(2**62), -(2**63), None]
    assert beyond == sum(s is None for _, s in rows) == 30


def test_a_value_that_does_not_fit_is_refused_alone_also_in_a_large_batch() -> None:
    events = [Event((n,), 1000 + n, "S", ("a", 2**40 if n == 50 else n)) for n in range(100)]
    _, taken = _block("rows").step(None, events)
    assert [refused.event.key for refused in taken.refused] == [(50,)]
    assert len(taken.events) == 96
