"""The levels as Iceberg tables, listed beside a command: at its begin, behind its batches, and at its end.

A thread does it, at most every few seconds, for what the newest commits have; so it holds up no batch.
"""

from __future__ import annotations

import logging
import threading
from functools import cached_property

from pyiceberg.catalog import Catalog
from pyiceberg.exceptions import CommitFailedException

from rollup.conf import Conf
from rollup.core.catalogs import opened
from rollup.core.columns import ColumnEngine
from rollup.core.errors import NoCommitError
from rollup.core.options import beside
from rollup.hosts.reporting.report import BatchReport
from rollup.program import Program
from rollup.stores.delta.iceberg import listed
from rollup.stores.delta.read import DeltaReader

log = logging.getLogger("pyiceberg.rollup")

_EVERY = 10.0
"""Seconds between two times."""
_SECONDS = 10.0
"""How long the end of a command waits for the last time."""


class Iceberg:
    """The tables of one command's aggregations in the catalog of `[store.iceberg]`; those in databases are left out."""

    def __init__(self, conf: Conf, program: Program, command: str) -> None:
        self._conf, self._options = conf, dict(conf.store["iceberg"])
        namespace = str(self._options.pop("namespace"))
        self.address, self._namespace = f"the catalog of {namespace}", namespace.split(".")
        self._aggregations = [each for each in program.aggregations.values() if not each.store]
        self._news, self._over = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._follow, name="iceberg", daemon=True)
        self._thread.start()

    def begin(self, at: float) -> None:
        """List what an earlier command has left out."""
        self._news.set()

    def batch(self, report: BatchReport) -> None:
        """List what the commits of a batch have."""
        self._news.set()

    def end(self, at: float, problem: BaseException | None) -> None:
        """List what the command has committed at last."""
        self._over.set()
        self._news.set()
        self._thread.join(_SECONDS)
        if self._thread.is_alive():
            log.warning("the command ended before the last commit was listed; the next one lists it")

    @cached_property
    def _catalog(self) -> Catalog:
        given = self._options
        uri = {"uri": beside(given["uri"], self._conf.path.parent)} if "uri" in given else {}
        return opened("rollup", {**given, **uri})

    @cached_property
    def _readers(self) -> list[DeltaReader]:
        engine = ColumnEngine()
        return [DeltaReader(each, engine, self._conf.tables) for each in self._aggregations]

    def _follow(self) -> None:
        over = False
        while not over or self._news.is_set():
            self._news.wait()
            over = self._over.is_set()
            self._news.clear()
            for reader in self._readers:
                try:
                    listed(self._catalog, self._namespace, reader)
                except NoCommitError:
                    pass
                except CommitFailedException:  # another command lists the same
                    self._news.set()
                except Exception as problem:  # of whatever kind: it is tried again, and stops no job
                    log.warning("%s: %s", type(problem).__name__, problem)
            self._over.wait(0 if over else _EVERY)
