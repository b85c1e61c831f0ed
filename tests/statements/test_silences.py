"""Silences, and events far ahead of all others: what is due meanwhile is gone through up to an end, and that is said."""

from __future__ import annotations

from typing import Any

import pytest
from structlog.testing import capture_logs

from rollup.core.columns import ColumnEngine
from rollup.hosts.statements.running import Running
from rollup.program import compile_app
from rollup.statements.component import Event

NOON, DAY = 1_700_000_000_000, 86_400_000
STATEMENTS = {
    "every hour": "insert into Out select 'x' as k, count(*) as n from S output every 1 hour;",
    "every second": "insert into Out select k as k, count(*) as n from S output every 1 sec;",
    "snapshots": "insert into Out select k as k, count(*) as n from S#keepall group by k output snapshot every 1 sec;",
    "a timer": "insert into Out select 'x' as k, 1L as n from pattern [every timer:interval(1 sec)];",
    "times of day": "insert into Out select 'x' as k, 1L as n from pattern [every timer:at(*, *, *, *, *, *)];",
    "forced batches": "insert into Out select 'x' as k, count(*) as n from S#time_batch(1 sec, 'FORCE_UPDATE');",
    "a context": "create context Each start @now end after 1 sec; context Each insert into Out select 'x' as k, count(*) as n from S output when terminated;",
}

SIDDHI = {
    "a trigger": "define trigger T at every 1 sec; from T select 'x' as k, 1L as n insert into Out;",
    "a calendar": "define trigger T at '*/1 * * * * ?'; from T select 'x' as k, 1L as n insert into Out;",
    "every second": "from S select k, count() as n output every 1 sec insert into Out;",
    "snapshots": "from S#window.time(10000 day) select k, count() as n output snapshot every 1 sec insert into Out;",
    "a silence": "from every not S for 1 sec select 'x' as k, 1L as n insert into Out;",
    "batches": "from S#window.timeBatch(1 sec) select k, count() as n insert into Out;",
}


def given(text: str, *batches: list[int]) -> tuple[list[dict[str, Any]], list[Any]]:
    """What a statement gives for events at some instants, and the warnings."""
    engine = ColumnEngine(threads=1)
    block = f"@lang('epl') {{ {text} }}" if text in STATEMENTS.values() else text
    running = Running(compile_app(f"define stream S (k string);\n{block}"), {})
    running.start(engine)
    found = list[dict[str, Any]]()
    with capture_logs() as logs:
        for times in batches:
            events = [Event((n, 0), at, "S", (f"k{n}",)) for n, at in enumerate(times)]
            found += running.advance(engine, events, {}).streams["Out"].to_pylist()
    return found, [log for log in logs if "instants and more" in log["event"]]


@pytest.mark.parametrize("statement", [each for each in STATEMENTS if each != "every hour"])
@pytest.mark.parametrize(
    "to", [NOON * 1000, NOON + 30 * DAY, 32_503_680_000_000], ids=["microseconds", "30 days", "year 3000"]
)
@pytest.mark.few(6)
def test_it_ends_and_is_said(statement: str, to: int) -> None:
    found, said = given(STATEMENTS[statement], [NOON, NOON + 1], [to, to + 10], [to + 20])
    assert len(found) < 40_010 and len(said) == 1
    assert said[0]["end"] == to


@pytest.mark.parametrize("statement", SIDDHI)
@pytest.mark.parametrize("to", [NOON + 30 * DAY, 32_503_680_000_000], ids=["30 days", "year 3000"])
def test_in_siddhiql_what_is_told_once_costs_nothing_and_what_is_told_each_time_has_an_end(
    statement: str, to: int
) -> None:
    found, said = given(SIDDHI[statement], [NOON, NOON + 1], [to, to + 10], [to + 2000])
    assert len(said) == (statement == "a silence")
    assert 1 <= len(found) <= 6 if statement != "a silence" else 20_000 <= len(found) < 20_010


def test_a_silence_with_little_in_it_is_gone_through_whole() -> None:
    text = STATEMENTS["every hour"]
    found, said = given(text, [NOON, NOON + 1], [NOON + 30 * DAY])
    assert [row["n"] for row in found[:1]] and said == []
