"""An event with which a statement cannot compute is set aside with the reason, and the others are what they would be without it."""

from __future__ import annotations

from typing import Any

import pytest

from rollup.core.columns import ColumnEngine
from rollup.core.errors import RollupError
from rollup.hosts.statements.running import Running
from rollup.program import compile_app
from rollup.statements.component import Event

NOON, NANOSECONDS = 1_700_000_040_000, 1_700_000_040_000_000_000
STREAM = "define stream S (symbol string, q int, l long, x double);\n"
BLOCKS = {
    "a cast of a text": (
        "@lang('sql', into='Out') { SELECT STREAM CAST(symbol AS INTEGER) AS v FROM S }",
        ("no number", 1, 1, 1.0),
    ),
    "a product": ("@lang('sql', into='Out') { SELECT STREAM q * q AS v FROM S }", ("1", 2_000_000_000, 1, 1.0)),
    "a sum": ("@lang('sql', into='Out') { SELECT STREAM l + 1 AS v FROM S }", ("1", 1, 2**63 - 1, 1.0)),
    "no number": (
        "@lang('sql', into='Out') { SELECT STREAM CAST(x AS INTEGER) AS v FROM S }",
        ("1", 1, 1, float("nan")),
    ),
    "a total by rows": (
        "@lang('sql', into='Out') { SELECT STREAM SUM(CAST(symbol AS INTEGER)) OVER (ORDER BY rowtime ROWS UNBOUNDED PRECEDING) AS v FROM S }",
        ("no number", 1, 1, 1.0),
    ),
}
TIMED = {
    "sql": "@lang('sql', into='Out') { SELECT STREAM q AS v FROM S }",
    "uql": "@lang('uql') { from S window slice 1 rows aggregate sum(q) as v append v to Out }",
}


def given(text: str, events: list[tuple[int, tuple[Any, ...]]], stops: bool = False) -> tuple[list[Any], list[Any]]:
    """What the statements give for events in one batch, and which they refuse, each with the reason."""
    engine = ColumnEngine(threads=1)
    running = Running(compile_app(STREAM + text), {})
    running.flow.stops = stops
    running.start(engine)
    found = running.advance(engine, [Event((n, 0), at, "S", values) for n, (at, values) in enumerate(events)], {})
    return found.streams["Out"]["v"].to_pylist(), [(each.event.key[0], each.reason) for each in found.refused]


def good(count: int) -> list[tuple[int, tuple[Any, ...]]]:
    return [(NOON + n, (str(n), n, n, float(n))) for n in range(count)]


@pytest.mark.parametrize("name", BLOCKS)
def test_a_value_that_cannot_be_computed_with_is_set_aside_alone(name: str) -> None:
    text, bad = BLOCKS[name]
    events = good(40)
    wanted = given(text, events)[0]
    for place in (29, 12):
        events.insert(place, (events[place][0], bad))
    values, refused = given(text, events)
    assert values == wanted and [place for place, _ in refused] == [12, 30] and all(reason for _, reason in refused)


@pytest.mark.parametrize("language", TIMED)
def test_a_time_in_nanoseconds_is_set_aside_alone(language: str) -> None:
    events = good(20)
    wanted = given(TIMED[language], events)[0]
    events.insert(7, (NANOSECONDS, events[0][1]))
    values, refused = given(TIMED[language], events)
    assert values == wanted and [place for place, _ in refused] == [7]


def test_what_only_fails_when_its_window_closes_is_an_error_and_no_refusal_of_all_that_follows() -> None:
    text = "@lang('sql', into='Out') { SELECT STREAM SUM(CAST(symbol AS INTEGER)) AS v FROM S GROUP BY TUMBLE(rowtime, INTERVAL '1' SECOND) }"
    with pytest.raises(Exception, match="Could not convert string 'no number'"):
        given(text, [(NOON, ("no number", 1, 1, 1.0)), *((NOON + n * 500, (str(n), n, n, 1.0)) for n in range(9))])


def test_where_it_is_asked_for_it_is_an_error() -> None:
    text, bad = BLOCKS["a cast of a text"]
    with pytest.raises((RollupError, Exception), match="no number"):
        given(text, [*good(3), (NOON + 3, bad)], stops=True)
