"""Silences, and events far ahead of all others: what is due meanwhile is gone through up to an end, and that is said."""

from __future__ import annotations

import time
from typing import Any

import pytest
from structlog.testing import capture_logs

from rollup.core.columns import ColumnEngine
from rollup.hosts.statements.running import Running
from rollup.program import compile_app
from rollup.statements.component import Event

NOON, DAY = 1_700_000_000_000, 86_400_000
STATEMENTS = {
    "every second": "insert into Out select k as k, count(*) as n from S output every 1 sec;",
    "snapshots": "insert into Out select k as k, count(*) as n from S#keepall group by k output snapshot every 1 sec;",
    "a timer": "insert into Out select 'x' as k, 1L as n from pattern [every timer:interval(1 sec)];",
    "times of day": "insert into Out select 'x' as k, 1L as n from pattern [every timer:at(*, *, *, *, *, *)];",
    "forced batches": "insert into Out select 'x' as k, count(*) as n from S#time_batch(1 sec, 'FORCE_UPDATE');",
    "a context": "create context Each start @now end after 1 sec; context Each insert into Out select 'x' as k, count(*) as n from S output when terminated;",
}


def given(text: str, *batches: list[int]) -> tuple[list[dict[str, Any]], list[Any]]:
    """What a statement gives for events at some instants, and the warnings."""
    engine = ColumnEngine(threads=1)
    running = Running(compile_app(f"define stream S (k string);\n@lang('epl') {{ {text} }}"), {})
    running.start(engine)
    found = list[dict[str, Any]]()
    with capture_logs() as logs:
        for times in batches:
            events = [Event((n, 0), at, "S", (f"k{n}",)) for n, at in enumerate(times)]
            found += running.advance(engine, events, {}).streams["Out"].to_pylist()
    return found, [log for log in logs if "instants and more" in log["event"]]


@pytest.mark.parametrize("statement", STATEMENTS)
@pytest.mark.parametrize(
    "to", [NOON * 1000, NOON + 30 * DAY, 32_503_680_000_000], ids=["microseconds", "30 days", "year 3000"]
)
def test_it_ends_and_is_said(statement: str, to: int) -> None:
    began = time.monotonic()
    found, said = given(STATEMENTS[statement], [NOON, NOON + 1], [to, to + 10], [to + 20])
    assert time.monotonic() - began < 60
    assert len(found) < 40_010 and len(said) == 1
    assert said[0]["end"] == to


def test_a_silence_with_little_in_it_is_gone_through_whole() -> None:
    text = "insert into Out select 'x' as k, count(*) as n from S output every 1 hour;"
    found, said = given(text, [NOON, NOON + 1], [NOON + 30 * DAY])
    assert [row["n"] for row in found[:1]] and said == []
