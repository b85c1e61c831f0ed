"""Seconds that are taken for milliseconds are said, once, with the unit and the cure; nothing else is."""

from __future__ import annotations

import pytest

from rollup.hosts.reporting.old_times import OldTimes
from tests.job.test_late_events import Told
from tests.retrieval.trades import START, app


@pytest.mark.parametrize(
    ("times", "says"),
    [
        ([START // 1000, START // 1000 + 60], "they are probably seconds, and times are read as milliseconds"),
        ([5, 7], "times are read as milliseconds"),
        ([START // 1000, START], None),
        ([315_532_800_000], None),
    ],
)
def test_events_that_all_lie_before_1980_are_said_once(times: list[int], says: str | None) -> None:
    told, host = OldTimes(), Told.of(app())
    warnings = told.observe(host.batch(0, [("k", 1, ts) for ts in times]))
    assert len(warnings) == (says is not None)
    if says is not None:
        assert says in warnings[0] and "before 1980" in warnings[0] and "ts * 1000L" in warnings[0]
    assert told.observe(host.batch(1, [("k", 1, ts) for ts in times])) == []
