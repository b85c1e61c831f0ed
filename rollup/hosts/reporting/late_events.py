"""What a run says of late events: a warning when a batch has many, and a summary at its end.

The default policy never fails and never loses an event, so a source that is not sorted by time looks like success while
most of its events count in buckets that are not theirs. Numbers, the likely reason and the cure are said instead.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from rollup.hosts.pipeline import Advance
from rollup.hosts.reporting.future_times import ahead
from rollup.hosts.reporting.report import BatchReport

SHARE = 0.01
"""Of a batch, moved or dropped: more is worth a warning."""
AGAIN = 600.0
"""Seconds until an aggregation is warned about again."""
_DONE = {
    "moved": "were merged into later buckets (totals are right, their buckets are not)",
    "dropped": "were dropped and count nowhere",
}
_FILES = "the files are probably not sorted by time"
_REASONS = {
    "csv": _FILES,
    "json": _FILES,
    "parquet": _FILES,
    "kafka": "the topic's partitions are probably at different times, or its producers send late",
    "delta": "the table was probably not filled in the order of time",
}
CURE = (
    "`[late] policy = \"correct\"` in the configuration, or @OutOfOrder('correct') where the app declares a policy, counts "
    "late events in their own buckets"
)


def misplaced(counts: Mapping[str, int]) -> int:
    """Late events that are not where they belong."""
    return sum(counts.get(kind, 0) for kind in _DONE)


def told(counts: Mapping[str, int], events: int) -> str:
    """Late events as words: how many of how many, and what was done with them.

    >>> told({"moved": 17410}, 26115)
    '17,410 of 26,115 events (66.7 %) were late and were merged into later buckets (totals are right, their buckets are not)'
    """
    parts = [
        f"{counts[kind]:,} of {events:,} events ({share(counts[kind], events)}) were late and {done}"
        for kind, done in _DONE.items()
        if counts.get(kind)
    ]
    return "; ".join(parts)


def share(part: int, whole: int) -> str:
    """A share in per cent.

    >>> share(1, 3), share(0, 0)
    ('33.3 %', '0.0 %')
    """
    return f"{100 * part / whole if whole else 0:.1f} %"


def length(ms: int) -> str:
    """A length of time in the largest unit that it fills twice, rounded up, as `lateness` takes it.

    >>> length(1_500), length(5_400_000), length(150_000_000), length(200_000_000)
    ('2 seconds', '90 minutes', '42 hours', '3 days')
    """
    for unit, size in (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000)):
        if ms >= 2 * size:
            return f"{-(-ms // size)} {unit}"
    return f"{max(1, -(-ms // 1000))} seconds"


def age(seconds: float) -> str:
    """How long ago something was, in seconds up to two minutes.

    >>> age(90.4), age(5_400)
    ('90 s', '90 minutes')
    """
    return f"{seconds:,.0f} s" if seconds < 120 else length(int(seconds * 1000))


@dataclass
class _Total:
    events: int = 0
    counts: dict[str, int] = field(default_factory=dict[str, int])
    warned: float = -AGAIN

    def add(self, counts: Mapping[str, int], events: int) -> None:
        self.events += events
        for kind, late in counts.items():
            self.counts[kind] = self.counts.get(kind, 0) + late


class LateEvents:
    """Counts the late events of a run; `kinds` has the kind of each stream's source."""

    def __init__(self, kinds: Mapping[str, str] | None = None, now: Callable[[], float] = time.monotonic) -> None:
        self._kinds = kinds or {}
        self._now = now
        self._totals: dict[str, _Total] = {}

    def observe(self, report: BatchReport) -> list[str]:
        """The warnings of a batch; at most one an aggregation in ten minutes."""
        warnings: list[str] = []
        for name, advance in report.advances.items():
            total = self._totals.setdefault(name, _Total())
            total.add(advance.counts, report.events)
            if misplaced(advance.counts) <= SHARE * report.events or self._now() < total.warned + AGAIN:
                continue
            total.warned = self._now()
            warnings.append(self._warning(name, report, advance))
        return warnings

    def summary(self) -> list[str]:
        """A line an aggregation that has moved or dropped events in this run."""
        return [
            f"{name}: {told(total.counts, total.events)}"
            + (f"; {CURE}" if misplaced(total.counts) > SHARE * total.events else "")
            for name, total in self._totals.items()
            if misplaced(total.counts)
        ]

    def _warning(self, name: str, report: BatchReport, advance: Advance) -> str:
        if jumped := ahead(report.pipelines[name].clock, time.time()):
            counted = told(advance.counts, report.events)
            return f"warning: {name}: of batch {report.number}, {counted}: the clock stands at {jumped}. {CURE}."
        reason = _REASONS.get(self._kinds.get(report.stream, ""), "the source probably sends late")
        behind = advance.admitted.behind
        far = "" if behind is None else f", by up to {length(behind)}"
        wait = (
            ""
            if behind is None
            else f'; `lateness = "{length(behind)}"` in [sources.{report.stream}] would wait for them'
        )
        return f"warning: {name}: of batch {report.number}, {told(advance.counts, report.events)}{far}: {reason}. {CURE}{wait}."
