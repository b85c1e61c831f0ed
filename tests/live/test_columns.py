"""The engine over columns against the engine on rows: the same statements, events, jumps of the clock and restarts.

`Engine(columns=None)` never leaves rows and is the oracle. The other engine goes over at a random batch and is taken out
and restored at random places. Deliveries are compared one by one, with their order and to the last bit.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.live import Engine
from tests.live.deploying import UNCOVERED, deployed, exact, run, send, steps
from tests.live.statements import COVERED, SCHEMA, SEVERAL
from tests.profiles import examples

pytestmark = pytest.mark.usefixtures("interpreted")


@pytest.mark.long
def test_everything_that_is_said_to_be_covered_runs_over_columns() -> None:
    for name in COVERED:
        engine = deployed([name], 1)
        assert [(each.executor, each.reason) for each in engine.plan()] == [("columns", None)], name
    assert {each.executor for each in deployed(list(UNCOVERED), 1).plan()} == {"rows"}


@pytest.mark.parametrize("names", SEVERAL, ids=["-".join(each) for each in SEVERAL])
@examples(8)
@given(found=steps, least=st.sampled_from([1, 1, 4]))
@pytest.mark.few(24)
def test_over_columns_an_engine_says_what_it_says_on_rows(names: list[str], found: Any, least: int) -> None:
    assert run(deployed(names, least), found, least) == run(deployed(names, None), found, None)


@pytest.mark.parametrize(
    "names",
    [
        ["keyed", "events of each", "snapshots"],
        ["events of each", "members"],
        ["partitions", "snapshots"],
        ["members", "events of each"],
        ["of two keys", "keys at last"],
        ["hash", "hash ahead"],
        ["categories", "categories at last"],
    ],
    ids=" then ".join,
)
@examples(8)
@given(before=steps, after=steps, least=st.sampled_from([1, 1, 4]))
def test_a_statement_that_comes_later_finds_the_partitions_of_its_context(
    names: list[str], before: Any, after: Any, least: int
) -> None:
    first, *later = names
    found = [*before, *(("deploy", "", name) for name in later), *after]
    assert run(deployed([first], least), found, least) == run(deployed([first], None), found, None)


@pytest.mark.parametrize("to", [25, 35, 100])
@pytest.mark.parametrize("name", [name for name, text in COVERED.items() if "#time(" in text and "output" in text])
def test_what_has_left_a_window_that_is_empty_goes_over_to_columns(name: str, to: int) -> None:
    event = {"symbol": "a", "price": 2.5, "volume": None}
    found: list[tuple[str, Any]] = [("dicts", "S", [(0, event)]), ("jump", "", to), ("dicts", "S", [(0, event)] * 4)]
    assert run(deployed([name], 4), found, 4) == run(deployed([name], None), found, None)


@pytest.mark.parametrize(
    "name", [name for name, text in COVERED.items() if text.startswith("context") and "output" in text]
)
@pytest.mark.parametrize("symbols", ["abc", "aaa"])
def test_what_waits_in_several_partitions_goes_over_to_columns(name: str, symbols: str) -> None:
    """Some events one by one, of each symbol and volume; then so many at once, of some, that the statement goes over."""
    events = [{"symbol": "abc"[n % 3], "price": 10.0 + n, "volume": n % 4} for n in range(12)]
    alone = [("timed", stream, [(1, event)]) for event in events[:7] for stream in ("S", "R")]
    batch = [(n % 2, {**event, "symbol": symbols[n % 3]}) for n, event in enumerate(events)]
    found = [*alone, ("timed", "S", batch), ("advance", "", 50), ("rows", "", None)]
    assert run(deployed([name], 8), found, 8) == run(deployed([name], None), found, None)


@pytest.mark.parametrize(
    "name", [name for name, text in COVERED.items() if "output" in text and not text.startswith("context")]
)
@pytest.mark.few(40)
def test_what_waits_for_an_output_goes_over_to_columns(name: str) -> None:
    """Some events one by one, with what the clock lets out between them; then so many at once that the statement goes over."""
    events = [{"symbol": "abc"[n % 3], "price": 10.0 + n, "volume": n % 4} for n in range(14)]
    alone = [("timed", stream, [(7, event)]) for event in events[:6] for stream in ("S", "R")]
    batch = ("timed", "S", [(n % 2, event) for n, event in enumerate(events)])
    found = [*alone, ("advance", "", 30), batch, ("advance", "", 1000), ("rows", "", None)]
    assert run(deployed([name], 8), found, 8) == run(deployed([name], None), found, None)


@pytest.mark.parametrize(
    "text",
    [
        "select symbol, avg(price) as a, count(*) as n from S#time(30 msec) group by symbol output every 100 msec",
        "select symbol, median(price) as a, max(volume) as m from S#time(30 msec) group by symbol output every 100 msec",
        "select symbol, price, sum(price) as s from S#time(30 msec) output every 100 msec",
        "select sum(price) as s from S#time(30 msec) output last every 100 msec order by sum(price)",
        "select symbol, sum(price) as s from S#ext_timed(volume, 30 msec) group by symbol output every 100 msec",
    ],
)
@pytest.mark.parametrize("late", [0, 4])
def test_what_the_last_output_counted_and_has_left_since_is_still_shown_over_columns(text: str, late: int) -> None:
    def events(*found: tuple[str, float, int]) -> tuple[str, str, Any]:
        names = ("symbol", "price", "volume")
        return "dicts", "S", [(0, dict(zip(names, each, strict=True))) for each in found]

    found: list[tuple[str, str, Any]] = [
        *(events(("a", 1.0, 0), ("b", 3.0, 1)), ("advance", "", 90), events(("a", 5.0, 90), ("b", 6.0, 90))),
        *(("advance", "", 20), events(("a", 7.0, 110)), ("advance", "", 10 + late), events(*[("c", 9.0, 125)] * 4)),
        *(("rows", "", None), ("restart", "", None), ("rows", "", None), ("advance", "", 200), ("rows", "", None)),
    ]
    said = list[Any]()
    for columns in (4, None):
        engine = Engine(columns=columns)
        engine.deploy(SCHEMA)
        engine.deploy(text, "late")
        said.append(run(engine, found, columns))
    assert said[0] == said[1]


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("context", ["Y", "B", "I", "D", "L"])
def test_a_statement_that_comes_later_sees_the_partitions_that_live_over_columns(context: str, restart: bool) -> None:
    first = [("a", 60.0, 1), ("b", 70.0, 2), ("a", 80.0, 3)]
    heard = list[Any]()
    for columns in (None, 1):
        engine = Engine(columns=columns)
        engine.deploy(SCHEMA)
        engine.deploy(f"@name('one') context {context} select context.id as i, count(*) as n from S")
        send(engine, first)
        engine.advance(10)
        if restart:
            engine = Engine.restored(engine.snapshot(), columns)
        engine.deploy(
            f"@name('two') context {context} select context.id as i, context.startTime as t, sum(price) as s from S"
        )
        for after in (15, 25, 30):
            send(engine, [("c", 90.0, 1), ("a", 10.0, 2)])
            engine.advance(engine.now + after)
        engine.undeploy("one")
        engine.deploy(f"@name('three') context {context} select context.id as i, count(*) as n from S")
        send(engine, first)
        heard.append([exact(each) for each in engine.heard()])
    assert heard[0] == heard[1]
