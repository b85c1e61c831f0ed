"""Batches whose commits are still on their way: each is reported when all of its commits have been made, in order."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Mapping
from concurrent.futures import Future

from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.reporting.report import BatchReport
from rollup.hosts.trailing import Made


class Unreported:
    """What a reporter will be told; any thread may add to it and look."""

    def __init__(self, reporter: Reporter) -> None:
        self._reporter = reporter
        self._lock = threading.Lock()
        self._waiting = deque[tuple[BatchReport, Mapping[str, Future[Made]]]]()

    def add(self, report: BatchReport, commits: Mapping[str, Future[Made]]) -> None:
        """A batch, and its commits that are on their way, by aggregation."""
        with self._lock:
            self._waiting.append((report, commits))
        self.report()

    def report(self) -> None:
        """Report the batches, in their order, whose commits have been made; the one of a failed commit never is."""
        with self._lock:
            while self._waiting and all(commit.done() for commit in self._waiting[0][1].values()):
                report, commits = self._waiting.popleft()
                if not any(commit.exception() for commit in commits.values()):
                    self._reporter.batch(report.completed({name: made.result() for name, made in commits.items()}))
