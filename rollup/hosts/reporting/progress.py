"""What a running job says of itself: a line on a terminal, structured logs elsewhere, metrics for Prometheus."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, start_http_server

from rollup.core.errors import ConfigError
from rollup.core.json_line import json_line
from rollup.hosts.reporting.dead_records import DeadRecords
from rollup.hosts.reporting.future_times import FutureTimes
from rollup.hosts.reporting.late_events import LateEvents
from rollup.hosts.reporting.many_zones import ManyZones
from rollup.hosts.reporting.old_times import OldTimes
from rollup.hosts.reporting.report import BatchReport

if TYPE_CHECKING:
    from rollup.hosts.listeners.listening import Listeners

_LATE = {"MERGE": "moved", "DROP": "dropped", "CORRECT": "corrected"}
"""What happens to a late event under each policy."""

_BUCKETS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3, 6, 12, 30, 60)


class Reporter:
    """Takes batch reports; `metrics_json` also writes one JSON line a batch to a file.

    `kinds` has the kind of each stream's source, for what is said of late events; `dead` says what is of dead ones.
    `json_logs` says that warnings go with the logs, which `as_json` makes lines of JSON; `listeners` emits
    batches to other systems.
    """

    def __init__(
        self,
        metrics_json: Path | None = None,
        port: int | None = None,
        terminal: bool | None = None,
        kinds: Mapping[str, str] | None = None,
        host: str = "127.0.0.1",
        dead: DeadRecords | None = None,
        json_logs: bool = False,
        listeners: Listeners | None = None,
    ) -> None:
        self._json_logs = json_logs
        self._dead = dead or DeadRecords()
        self._file: IO[str] | None = None if metrics_json is None else metrics_json.open("a")
        self._terminal = (sys.stderr.isatty() if terminal is None else terminal) and not json_logs
        self._log = structlog.get_logger("rollup")
        self._metrics = Metrics()
        self._late, self._old, self._future, self._zones = LateEvents(kinds), OldTimes(), FutureTimes(), ManyZones()
        self._listeners = listeners
        self._server = None if port is None else _serving(host, port, self._metrics.registry)
        self.events = 0

    def batch(self, report: BatchReport) -> None:
        """Say what a batch did."""
        self.events += report.events
        self._metrics.observe(report)
        if self._file is not None:
            row = {"batch": report.number, "events": report.events, "seconds": report.ended - report.began}
            row |= {"started": report.began, "finished": report.ended, "late": report.late, "dead": report.dead}
            print(json.dumps(row), file=self._file, flush=True)
        if self._terminal:
            print("\r\x1b[2K" + line(report), end="", file=sys.stderr, flush=True)
        elif report.events:
            self._log.info("batch", **fields(report))
        looked = filter(None, (self._dead, self._old, self._future, self._zones, self._late, self._listeners))
        self.warn(said for each in looked for said in each.observe(report))

    @property
    def nothing_taken(self) -> bool:
        """Whether every record of the run was dead."""
        return self._dead.nothing_taken

    def check(self) -> None:
        """Raise TooManyDead where the configuration says that a run ends with so many dead letters."""
        self._dead.check()

    def warn(self, warnings: Iterable[str]) -> None:
        """Say what is worth a line of its own."""
        for warning in warnings:
            if self._json_logs:
                self._log.warning(warning.removeprefix("warning: "))
                continue
            print(f"{self._end()}rollup: {warning}", file=sys.stderr, flush=True)

    def close(self) -> None:
        """End the line and the metrics server."""
        print(self._end(), end="", file=sys.stderr)
        self._terminal = False
        self.warn([*self._dead.summary(), *self._late.summary()])
        if self._file is not None:
            self._file.close()
        if self._server is not None:
            self._server[0].shutdown()

    def _end(self) -> str:
        """What ends the line that is rewritten on a terminal."""
        return "\n" if self._terminal and self.events else ""


def as_json() -> None:
    """Logs of this process as JSON, an object a line, with the time and the level."""
    said = structlog.processors.TimeStamper(fmt="iso", key="time")
    as_line = structlog.processors.JSONRenderer(serializer=lambda value, **_: json_line(value))
    structlog.configure(
        processors=[structlog.processors.add_log_level, said, structlog.processors.format_exc_info, as_line]
    )


def _serving(host: str, port: int, registry: CollectorRegistry) -> tuple[Any, Any]:
    """The metrics at an address of this machine. Raises ConfigError when that cannot be had."""
    try:
        return start_http_server(port, addr=host, registry=registry)
    except (OSError, OverflowError) as problem:
        said = problem.strerror if isinstance(problem, OSError) and problem.strerror else problem
        raise ConfigError(
            f"[metrics] port {port} cannot be listened on: {said}", hint="another port; or end what listens there"
        ) from None


def fields(report: BatchReport) -> dict[str, object]:
    """A batch as the values of a structured log line."""
    seconds = max(report.ended - report.began, 1e-6)
    clock = report.clock
    opened = {name: sum(p.state.open_rows.values()) for name, p in report.pipelines.items()}
    return {
        "stream": report.stream,
        "number": report.number,
        "events": report.events,
        "events_per_second": round(report.events / seconds),
        "clock": None if clock is None else datetime.fromtimestamp(clock / 1000, UTC).isoformat(),
        "lag_seconds": None if clock is None else round(time.time() - clock / 1000, 1),
        "late": report.late,
        "dead": report.dead,
        "open_rows": opened,
        "seconds": round(seconds, 3),
    }


def line(report: BatchReport) -> str:
    """A batch as one line for a terminal."""
    values = fields(report)
    late = ", ".join(f"{events} {kind}" for kind, events in report.late.items()) or "none"
    levels = {level: rows for p in report.pipelines.values() for level, rows in p.state.open_rows.items()}
    opened = " ".join(f"{level.unit}:{rows}" for level, rows in levels.items())
    return f"batch {report.number}  {values['events_per_second']:,} events/s  clock {values['clock']}  late {late}  open {opened}"


class Metrics:
    """The Prometheus metrics of a job, in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        named: Any = {"registry": self.registry}
        self.events = Counter("rollup_events", "Events taken from sources", ["stream"], **named)
        self.late = Counter(
            "rollup_late_events", "Late events by what happened to them", ["aggregation", "policy"], **named
        )
        self.dead = Counter("rollup_dead_letters", "Records that could not be used", ["stream"], **named)
        self.overflows = Counter(
            "rollup_sum_overflows", "Sums that left 64 bits and became null", ["aggregation"], **named
        )
        self.clock = Gauge(
            "rollup_clock_seconds", "Watermark of the finest level, seconds since the epoch", ["aggregation"], **named
        )
        self.lag = Gauge("rollup_lag_seconds", "Wall clock minus that watermark", ["aggregation"], **named)
        self.open = Gauge("rollup_open_rows", "Rows still open", ["aggregation", "level"], **named)
        self.commits = Counter("rollup_commits", "Commits made", ["aggregation"], **named)
        self.batch = Histogram("rollup_batch_seconds", "Length of a batch", ["stream"], buckets=_BUCKETS, **named)
        self.commit = Histogram(
            "rollup_commit_seconds", "Length of a commit", ["aggregation"], buckets=_BUCKETS, **named
        )

    def observe(self, report: BatchReport) -> None:
        """Count a batch."""
        self.events.labels(report.stream).inc(report.events)
        self.dead.labels(report.stream).inc(report.dead)
        self.batch.labels(report.stream).observe(report.ended - report.began)
        for name, advance in report.advances.items():
            self.commits.labels(name).inc()
            self.commit.labels(name).observe(advance.commit_seconds)
            self.overflows.labels(name).inc(advance.closed.overflows)
            for kind, events in advance.counts.items():
                self.late.labels(name, kind).inc(events)
        for name, pipeline in report.pipelines.items():
            self.late.labels(name, _LATE[pipeline.aggregation.policy.name])  # from the start, so that a rate is known
            clock = pipeline.clock
            if clock is not None:
                self.clock.labels(name).set(clock / 1000)
                self.lag.labels(name).set(time.time() - clock / 1000)
            for level, rows in pipeline.state.open_rows.items():
                self.open.labels(name, level.plural).set(rows)
