"""An event far ahead of the machine's clock moves a clock that never goes back: that is said once, and what is late then
is not blamed on its source."""

from __future__ import annotations

import re

import pytest

from rollup.hosts.local import LocalHost
from rollup.hosts.reporting.future_times import FutureTimes
from rollup.hosts.reporting.late_events import LateEvents
from rollup.program import compile_app
from tests.job.test_late_events import Told
from tests.retrieval.trades import START, app

DAY = 86_400_000
FAR = 4_102_444_800_000
"""The year 2100."""


def test_a_clock_that_one_event_has_moved_far_ahead_is_said_once_until_it_goes_further() -> None:
    told, host = FutureTimes(lambda: START / 1000), Told.of(app())
    assert told.observe(host.batch(0, [("k", 1, START), ("k", 1, START + DAY)])) == [], "a day is a zone or two"
    (said,) = told.observe(host.batch(1, [("k", 1, START + 365 * DAY), ("k", 1, START)]))
    assert re.search(
        r"warning: \w+: an event of S has moved the clock to 20\d\d-.*, 365 days ahead of the clock of", said
    )
    assert "late from now on" in said and "rollup replay" in said and "[ts < …]" in said
    assert told.observe(host.batch(2, [("k", 1, START + 365 * DAY + 60_000)])) == []
    assert len(told.observe(host.batch(3, [("k", 1, START + 700 * DAY)]))) == 1


def test_late_events_behind_such_a_clock_are_not_blamed_on_the_source_nor_to_be_waited_for() -> None:
    told, host = LateEvents({"S": "csv"}), Told.of(app())
    told.observe(host.batch(0, [("k", 1, START), ("k", 1, FAR)]))
    (said,) = told.observe(host.batch(1, [("k", 1, START + n) for n in range(10)]))
    assert "the clock stands at 2100-01-01 00:00:00, " in said and "days ahead of the clock of this machine" in said
    assert "sorted" not in said and "lateness" not in said


@pytest.mark.parametrize("moved", [False, True])
def test_statements_say_it_too(moved: bool, capsys: pytest.CaptureFixture[str]) -> None:
    text = "define stream S (k string, ts long);\nfrom S#window.time(1 min) select k, count() as n insert into T;"
    text += "define aggregation A from S select count() as n aggregate by ts every sec, min;"
    host = LocalHost(compile_app(text))
    for at in (START, FAR if moved else START + 1, START + 2, FAR + 1 if moved else START + 3):
        host.send("S", [("k", at)])
    said = capsys.readouterr().out
    assert said.count("an event has moved the clock of statements to 2100-01-01") == moved
    assert not moved or "stream=S" in said
