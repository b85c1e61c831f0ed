"""A store whose commits trail the job: while one batch is written, Spark plans, reads and folds the next.

Spark counts a batch as done while its commit is on its way; should the job die then, the next start finds the tables
behind and reads the batch again (`rollup.hosts.spark.query_log`).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from rollup.checkpoint.records import Record, RecordFolder
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.plan.aggregation import Aggregation
from rollup.retrieval.as_of import AsOf
from rollup.stores.base import ApartStore, Commit, Filed, FiledStore, Loaded, Snapshot, Store


@dataclass(frozen=True)
class Made:
    """When a commit was made, seconds since the epoch, and how long it took."""

    at: float
    seconds: float


class TrailingStore:
    """A `Store` over another one: commits are made in a thread of their own, in order; all else waits for them.

    What a commit raised is raised by whatever comes next, and by everything after that. A commit that is not simply
    the next batch of the same queries, such as the first one or a rewrite, is waited for: then nothing is behind.
    """

    apart = None
    filed = None
    salvaged = None
    ahead = 2
    """Commits begun and not made, at most: one is written, one waits for its turn, so that neither side stands still."""

    def __init__(self, store: ApartStore) -> None:
        self._store = store
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="commit")
        # Never changed, only replaced: `check` looks at it from another thread while a batch begins its commit.
        self._begun: tuple[Future[Made], ...] = ()
        self._queries: set[tuple[str, str]] = set()

    @property
    def newest_commit(self) -> Future[Made] | None:
        """What comes of the commit that was begun last; None before the first."""
        begun = self._begun
        return begun[-1] if begun else None

    def check(self) -> None:
        """Raise what went wrong with a commit that has ended."""
        for commit in self._begun:
            if commit.done():
                commit.result()

    def settle(self) -> Store:
        """Wait for the commits that are on their way; the store, with everything in it."""
        for commit in self._begun:
            commit.result()
        return self._store

    def close(self) -> None:
        """Let the commits that are on their way end; what they raise waits for `settle`."""
        self._thread.shutdown()

    def next_batch(self) -> None:
        """To be called before the first of a batch's commits begins, in any aggregation."""

    def make_room(self) -> None:
        """Wait until no more than `ahead` commits are on their way with one that begins."""
        while len(self._begun) >= self.ahead:
            self._begun[0].result()
            self._begun = self._begun[1:]

    def commit(self, commit: Commit) -> None:
        """Begin a commit, when there is room for it."""
        make = self._store.begin(commit)
        self.make_room()
        self._begun = (*self._begun, self._thread.submit(_make, make, self.newest_commit))
        queries = {(stream, mark["query"]) for stream, mark in commit.source.items()}
        if commit.rewrites or not queries or not queries <= self._queries:
            self.settle()
        self._queries = queries

    def load(self) -> Loaded | None:
        return self.settle().load()

    def snapshot(self) -> Snapshot:
        return self.settle().snapshot()

    def as_of(self, moment: AsOf) -> Snapshot:
        return self.settle().as_of(moment)

    def newest(self, level: Duration) -> dict[str, int]:
        return self.settle().newest(level)

    def rows_after(self, level: Duration, start: int | None) -> pa.Table:
        return self.settle().rows_after(level, start)

    def forget(self) -> None:
        self.settle().forget()

    def evolve(self, added: pa.Schema, retired: Collection[str]) -> None:
        self.settle().evolve(added, retired)

    def maintain(self, budget: float) -> dict[str, int]:
        """As the store; it does not wait, so there is nothing to do while a commit is on its way."""
        return self.settle().maintain(budget) if all(commit.done() for commit in self._begun) else {}

    def release(self, pin: Callable[[], object]) -> int:
        return self.settle().release(pin)


class TrailingFiles(TrailingStore):
    """As `TrailingStore`, over a store of files, which is written by this process itself.

    A batch's commits begin when all of the one before have been made. So a start after a crash finds no tables more than
    one batch behind, whose plan is kept: it holds what it held, and what comes of it is the same to the last bit. Rows
    that shards have written are committed in line.
    """

    ahead = 1

    def __init__(self, store: ApartStore, filed: FiledStore) -> None:
        super().__init__(store)
        self._filed = filed
        self.aggregation: Aggregation = filed.aggregation
        self.engine: ColumnEngine = filed.engine
        self.root: Path = filed.root
        self.records: RecordFolder = filed.records

    @property
    def filed(self) -> FiledStore:  # pyright: ignore[reportIncompatibleVariableOverride]
        return self

    @property
    def last(self) -> Record | None:
        self.settle()
        return self._filed.last

    @property
    def retired(self) -> Mapping[str, Mapping[str, pa.DataType]]:
        return self._filed.retired

    def load(self, open_rows: bool = True) -> Loaded | None:
        self.settle()
        return self._filed.load(open_rows)

    def next_batch(self) -> None:
        """Wait for the commit of the batch before."""
        self.settle()

    def commit(self, commit: Commit | Filed) -> None:
        """As `TrailingStore.commit`; rows that are in files already cost next to nothing, and are waited for."""
        if isinstance(commit, Commit):
            super().commit(commit)
        else:
            self.settle()
            self._filed.commit(commit)

    def remake(self, damaged: Collection[str], aside: Path) -> Loaded:
        self.settle()
        return self._filed.remake(damaged, aside)

    def maintain(self, budget: float) -> dict[str, int]:
        """As the store. It waits for a commit, as in a job that catches up there is always one on its way."""
        return self.settle().maintain(budget)


def trailing(store: ApartStore) -> TrailingStore:
    """A store whose commits trail."""
    return TrailingStore(store) if store.filed is None else TrailingFiles(store, store.filed)


def _make(make: Callable[[], None], before: Future[Made] | None) -> Made:
    if before is not None:
        before.result()  # nothing is written behind a commit that failed
    began, clock = time.time(), time.monotonic()
    make()
    seconds = time.monotonic() - clock  # the clock of the machine may be set back meanwhile
    return Made(began + seconds, seconds)
