"""The job with a life around it: a lease before it starts, its declaration settled, and chores between its batches."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

from rollup.conf import Conf
from rollup.core.errors import StoreError
from rollup.hosts.reporting.progress import Reporter
from rollup.hosts.spark.driver import SparkHost
from rollup.hosts.spark.session import Coming
from rollup.lifecycle.book import Book
from rollup.lifecycle.change import settle
from rollup.lifecycle.lease.holding import TIMEOUT
from rollup.lifecycle.lease.places import leases_of
from rollup.lifecycle.maintenance.between_batches import Chores
from rollup.lifecycle.status import newest_state

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Job(SparkHost):
    """A `SparkHost` that holds the leases of its aggregations, or without one that of its statements.

    `standby` waits for a lease that another job holds; otherwise such a job is an error. `takeover` is the seconds
    without a heartbeat after which the other counts as gone.
    """

    def __init__(
        self,
        conf: Conf,
        spark: SparkSession | Coming | None = None,
        reporter: Reporter | None = None,
        *,
        standby: bool = False,
        takeover: float = TIMEOUT,
    ) -> None:
        super().__init__(conf, spark, reporter)
        self.standby = standby
        self.leases = leases_of(conf, self.program, "run", takeover)
        self.chores = [Chores(conf, self.program, pipeline) for pipeline in self.pipelines.values()]

    def run(self, once: bool = False) -> None:
        """As `SparkHost.run`, under the leases. Raises FencedError when another job has taken over."""
        try:
            if self._acquire():
                self._settle()
                super().run(once)
        finally:
            for lease in self.leases:
                lease.release()

    def _acquire(self) -> bool:
        """Take every lease; False when told to stop while waiting."""
        said = False
        for lease in self.leases:
            until = time.monotonic() + lease.timeout + 1
            while not lease.take():
                if not self.standby and time.monotonic() > until:
                    raise StoreError(
                        f"{lease.holder()} writes {lease.name} already",
                        hint="`rollup run CONF --standby` waits until it is gone",
                    )
                if not said:
                    print(f"rollup: {lease.holder()} is at work; waiting", file=sys.stderr, flush=True)
                    said = True
                    _ = self.spark  # made by the time that the other is gone
                if self._stop.wait(min(0.5, lease.timeout / 8)):
                    return False
        return True

    def _settle(self) -> None:
        for name, pipeline in self.pipelines.items():
            state = newest_state(pipeline.store)
            for line in settle(Book.of(self.conf, name), pipeline.store, pipeline.aggregation, state).lines:
                print(f"rollup: {name}: {line}", file=sys.stderr, flush=True)

    def _tick(self) -> None:
        super()._tick()
        for lease in self.leases:
            lease.check()
        for chores in self.chores:
            if chores.waiting:
                with self._between_batches() as free:
                    for line in chores.run() if free else ():
                        print(f"rollup: {line}", file=sys.stderr, flush=True)
