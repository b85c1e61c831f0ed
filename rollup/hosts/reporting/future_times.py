"""Times far ahead of the machine's clock: one such event moves a clock that never goes back, and nothing fails."""

from __future__ import annotations

import time
from collections.abc import Callable
from datetime import UTC, datetime

from rollup.hosts.reporting.report import BatchReport
from rollup.plan.aggregation import Clock

_FAR = 86_400_000
"""Ahead by more than a day is no clock that is set wrong by an hour or a zone."""
_LAST = 253_402_300_799_000
"""The last second of the year 9999."""
FILTER = "a filter `[ts < …]` in the app keeps such events out"


def ahead(instant: int | None, now: float) -> str | None:
    """An instant (ms since 1970) and how far it lies ahead of `now` (s), in words; None when that is less than a day.

    >>> ahead(1_731_536_000_000, 1_700_000_000), ahead(1_700_000_000_000, 1_700_000_000)
    ('2024-11-13 22:13:20, 365 days ahead of the clock of this machine', None)
    """
    if instant is None or instant - now * 1000 <= _FAR:
        return None
    shown = datetime.fromtimestamp(min(instant, _LAST) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    return f"{shown}, {round((instant / 1000 - now) / 86_400)} days ahead of the clock of this machine"


class FutureTimes:
    """Warns of an aggregation whose clock an event has moved far ahead; once, until it is a day further than that."""

    def __init__(self, now: Callable[[], float] = time.time) -> None:
        self._now = now
        self._said: dict[str, int] = {}

    def observe(self, report: BatchReport) -> list[str]:
        """The warnings of a batch."""
        found = list[str]()
        for name in report.advances:
            pipeline = report.pipelines[name]
            clock = pipeline.clock
            far = None if pipeline.aggregation.clock is Clock.ARRIVAL else ahead(clock, self._now())
            if clock is None or far is None or clock <= self._said.get(name, 0) + _FAR:
                continue
            self._said[name] = clock
            found.append(
                f"warning: {name}: an event of {report.stream} has moved the clock to {far}: all buckets before it are "
                "closed, and events before it are late from now on. If its time is wrong, take it out of the source and "
                f"`rollup replay` the buckets since; {FILTER}."
            )
        return found
