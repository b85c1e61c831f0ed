"""The systems that follow commands and batches, as a configuration names them, and what is said when one cannot be reached.

Nothing of it can stop a job or hold it up: they are sent to beside it, and what cannot be sent is a warning.
"""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable
from typing import Protocol, Self

from rollup.conf import Conf
from rollup.hosts.listeners.kinds import Kind, classes
from rollup.hosts.reporting.late_events import AGAIN
from rollup.hosts.reporting.report import BatchReport
from rollup.program import Program


class Listener(Protocol):
    """A system that follows a command: its begin and end (seconds since 1970), and each batch with events."""

    address: str
    """What it is called when it cannot be reached."""

    def begin(self, at: float) -> None: ...

    def end(self, at: float, problem: BaseException | None) -> None: ...

    def batch(self, report: BatchReport) -> None: ...


class Listeners:
    """All listeners of one command, as a context: its end says how the command ended."""

    def __init__(self, conf: Conf, program: Program, command: str) -> None:
        self._listeners: list[tuple[Listener, Unsent]] = []
        for kind, made in classes(conf):
            listener = made(conf, program, command)
            self._listeners.append((listener, Unsent(kind, listener.address)))

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

    def __init__(self, kind: Kind, address: str) -> None:
        super().__init__(logging.WARNING)
        self._kind, self._address = kind, address
        self._count, self._said, self._last = 0, -AGAIN, ""
        found = logging.getLogger(kind.logger)
        found.handlers, found.propagate = [self], False

    def emit(self, record: logging.LogRecord) -> None:
        problem = record.exc_info[1] if record.exc_info else None
        self.add(record.getMessage() if problem is None else f"{type(problem).__name__}: {problem}")

    def add(self, problem: str) -> None:
        """Count a problem."""
        self._count, self._last = self._count + 1, problem.strip().partition("\n")[0]

    def warnings(self, again: float) -> list[str]:
        """What to say of it; at most once in so many seconds."""
        if not self._count or time.monotonic() < self._said + again:
            return []
        where = f"[{self._kind.table}] {self._kind.key}"
        said = f"warning: {where}: {self._count} times {self._address} could not be reached: {self._last}"
        self._count, self._said = 0, time.monotonic()
        return [said]
