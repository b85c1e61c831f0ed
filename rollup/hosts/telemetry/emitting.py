"""`[telemetry]` of a configuration: where commands and batches are emitted to, and what is said when that fails.

Nothing of it can stop a job or hold it up: events are sent beside it, and what cannot be sent is a warning.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Protocol, Self

from rollup.conf import Conf
from rollup.core.entries import loaded
from rollup.core.packages import needed_by
from rollup.hosts.reporting.late_events import AGAIN
from rollup.hosts.reporting.report import BatchReport
from rollup.program import Program

LISTENERS = {
    "lineage": ("rollup.hosts.telemetry.lineage:Lineage", "openlineage"),
    "traces": ("rollup.hosts.telemetry.traces:Traces", "opentelemetry"),
}
"""By the key of the table that has its address: the listener, and where its library logs."""


class Listener(Protocol):
    """A system that follows a command: its begin and end (seconds since 1970), and each batch with events."""

    def begin(self, at: float) -> None: ...

    def end(self, at: float, problem: BaseException | None) -> None: ...

    def batch(self, report: BatchReport) -> None: ...


class Telemetry:
    """All listeners of one command, as a context: its end says how the command ended."""

    def __init__(self, conf: Conf, program: Program, command: str) -> None:
        self._listeners: list[tuple[Listener, Unsent]] = []
        with needed_by("[telemetry]", "telemetry"):
            for key, (entry, logger) in LISTENERS.items():
                if key in conf.telemetry:
                    listener = loaded(entry)(conf, program, command)
                    self._listeners.append((listener, Unsent(logger, conf.telemetry[key])))

    def __enter__(self) -> Self:
        now = time.time()
        self._each(lambda listener: listener.begin(now))
        return self

    def __exit__(self, _kind: object, problem: BaseException | None, _trace: object) -> None:
        code = getattr(problem, "exit_code", getattr(problem, "code", None))
        now, failed = time.time(), None if code == 0 else problem if code is None else RuntimeError(f"exit code {code}")
        self._each(lambda listener: listener.end(now, failed))
        for line in self._warnings(0):
            print(f"rollup: {line}", file=sys.stderr)

    def observe(self, report: BatchReport) -> list[str]:
        """Emit a batch; the warnings of what could not be sent."""
        if report.events:
            self._each(lambda listener: listener.batch(report))
        return self._warnings(AGAIN)

    def _each(self, act: Callable[[Listener], None]) -> None:
        for listener, unsent in self._listeners:
            try:
                act(listener)
            except Exception as problem:  # a library that cannot send must not stop the job
                unsent.add(repr(problem))

    def _warnings(self, again: float) -> list[str]:
        return [line for _, unsent in self._listeners for line in unsent.warnings(again)]


class Unsent(logging.Handler):
    """Counts what a library logs because it cannot send; its own lines, one for every try, are not shown."""

    def __init__(self, logger: str, address: str) -> None:
        super().__init__(logging.WARNING)
        self._address = address
        self._count, self._said, self._last = 0, -AGAIN, ""
        found = logging.getLogger(logger)
        found.handlers, found.propagate = [self], False

    def emit(self, record: logging.LogRecord) -> None:
        problem = record.exc_info[1] if record.exc_info else None
        self.add(record.getMessage() if problem is None else f"{type(problem).__name__}: {problem}")

    def add(self, problem: str) -> None:
        """Count a problem."""
        self._count, self._last = self._count + 1, problem

    def warnings(self, again: float) -> list[str]:
        """What to say of it; at most once in so many seconds."""
        if not self._count or time.monotonic() < self._said + again:
            return []
        said = f"warning: [telemetry]: {self._count} times something could not be sent to {self._address}: {self._last}"
        self._count, self._said = 0, time.monotonic()
        return [said]
