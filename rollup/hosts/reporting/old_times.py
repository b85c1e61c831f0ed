"""Times that are read in the wrong unit: seconds taken for milliseconds are all in January 1970, and nothing fails."""

from __future__ import annotations

from datetime import UTC, datetime

from rollup.hosts.reporting.report import BatchReport
from rollup.plan.aggregation import Clock

_YEAR_1980, _YEAR_2100 = 315_532_800_000, 4_102_444_800_000


class OldTimes:
    """Warns once an aggregation whose events so far all lie before 1980."""

    def __init__(self) -> None:
        self._looked: set[str] = set()

    def observe(self, report: BatchReport) -> list[str]:
        """The warnings of a batch."""
        found = list[str]()
        for name in report.advances:
            pipeline = report.pipelines[name]
            clock = pipeline.clock
            if name in self._looked or clock is None or pipeline.aggregation.clock is Clock.ARRIVAL:
                continue
            self._looked.add(name)
            if clock < _YEAR_1980:
                found.append(_warning(name, report.stream, clock))
        return found


def _warning(name: str, stream: str, clock: int) -> str:
    newest = datetime.fromtimestamp(max(clock, 0) / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")
    seconds = _YEAR_1980 <= clock * 1000 < _YEAR_2100
    unit = (
        "they are probably seconds, and times are read as milliseconds" if seconds else "times are read as milliseconds"
    )
    cure = f"`from {stream} select …, ts * 1000L as ts insert into T` in the app makes milliseconds of seconds"
    return f"warning: {name}: all events so far lie before 1980, the newest at {newest}: {unit}. {cure}."
