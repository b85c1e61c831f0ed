"""What a run says once of the times of its events.

Seconds that are taken for milliseconds are said, once, with the unit and the cure; nothing else is. So are rows of several zones, where no zone is declared to cut them.
"""

from __future__ import annotations

import pytest

from rollup.hosts.reporting.many_zones import ManyZones
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


@pytest.mark.parametrize("zone", ["", "@zone('Europe/Berlin') "])
def test_rows_of_several_zones_are_said_once_unless_a_zone_is_declared(zone: str) -> None:
    text = (
        f"define stream S (t string); {zone}define aggregation A from S select count() as n aggregate by t every day;"
    )
    told, host = ManyZones(), Told.of(text)
    one, other = [("2026-03-01T00:30:00+01:00",)], [("2026-03-31T10:00:00+02:00",)]
    assert told.observe(host.batch(0, one)) == []
    warnings = told.observe(host.batch(1, other))
    assert len(warnings) == (not zone)
    if not zone:
        assert "2 zones (+01:00, +02:00)" in warnings[0] and "@zone('Europe/Berlin')" in warnings[0]
    assert told.observe(host.batch(2, one)) == []
