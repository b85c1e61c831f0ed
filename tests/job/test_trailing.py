"""Commits that trail the job: made in order, waited for where that matters, and nothing behind one that failed."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from rollup.aggregation.state import State
from rollup.checkpoint.marks import none
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.hosts.trailing import TrailingFiles, TrailingStore
from rollup.hosts.trailing import trailing as trailing_over
from rollup.program import compile_app
from rollup.stores.base import Commit, Filed, Rewrite
from rollup.stores.delta.store import DeltaStore
from rollup.stores.memory import MemoryStore

AGGREGATION = compile_app("""define stream S (k string, v double, ts long);
define aggregation A from S select k, sum(v) as s group by k aggregate by ts every sec, min;""").aggregations["A"]


class Slow(MemoryStore):
    """A store that makes commits from the second on only as they are let through, and that can fail."""

    def __init__(self) -> None:
        super().__init__(AGGREGATION, ColumnEngine(threads=1))
        self.gate = threading.Semaphore(1)
        self.made: list[int] = []
        self.failing: int | None = None

    def begin(self, commit: Commit) -> Callable[[], None]:
        return partial(self._gated, commit)

    def _gated(self, commit: Commit) -> None:
        assert self.gate.acquire(timeout=20), "let through in time"
        if commit.number == self.failing:
            raise StoreError("the disk is full")
        super().commit(commit)
        self.made.append(commit.number)

    def open(self) -> None:
        """Let all through."""
        self.gate.release(99)


@pytest.fixture
def slow() -> Slow:
    return Slow()


@pytest.fixture
def trailing(slow: Slow) -> Iterator[TrailingStore]:
    store = TrailingStore(slow)
    store.commit(commit(1))
    yield store
    slow.open()
    store.close()


class SlowFiles(DeltaStore):
    """A Delta store that makes commits of rows from the second on only as they are let through."""

    def __init__(self, folder: Path) -> None:
        super().__init__(AGGREGATION, ColumnEngine(threads=1), folder)
        self.gate = threading.Semaphore(1)
        self.made: list[int] = []

    def commit(self, commit: Commit | Filed) -> None:
        assert isinstance(commit, Filed) or self.gate.acquire(timeout=20), "let through in time"
        super().commit(commit)
        self.made.append(commit.number)


@pytest.fixture
def files(tmp_path: Path) -> Iterator[tuple[SlowFiles, TrailingStore]]:
    slow = SlowFiles(tmp_path)
    store = trailing_over(slow)
    store.load()
    store.commit(commit(1))
    store.commit(commit(2))
    yield slow, store
    slow.gate.release(99)
    store.close()


def commit(number: int, query: str = "q", **more: Any) -> Commit:
    """A commit of one batch."""
    empty = dict.fromkeys(AGGREGATION.levels, AGGREGATION.table_schema.empty_table())
    return Commit(number, State.empty(AGGREGATION), empty, None, {"S": none(query, number)}, **more)


def begun(action: Callable[[], object]) -> threading.Thread:
    """An action in a thread; give it a moment to get stuck."""
    thread = threading.Thread(target=action, daemon=True)
    thread.start()
    thread.join(0.2)
    return thread


def test_the_first_commit_is_waited_for_and_two_are_on_their_way_at_most(slow: Slow, trailing: TrailingStore) -> None:
    assert slow.made == [1]
    trailing.commit(commit(2))
    trailing.commit(commit(3))
    assert slow.made == [1]
    third = begun(lambda: trailing.commit(commit(4)))
    assert third.is_alive(), "the job waits for the store"
    slow.gate.release()
    third.join(20)
    assert not third.is_alive() and slow.made == [1, 2]
    slow.open()
    trailing.settle()
    assert slow.made == [1, 2, 3, 4]


def test_whoever_reads_waits_and_sees_every_commit(slow: Slow, trailing: TrailingStore) -> None:
    trailing.commit(commit(2))
    numbers: list[int] = []
    reader = begun(lambda: numbers.append(trailing.snapshot().number))
    assert reader.is_alive()
    slow.open()
    reader.join(20)
    assert numbers == [2]


@pytest.mark.parametrize(
    "other",
    [
        commit(2, rewrites={Duration.SECONDS: Rewrite(None, 5, AGGREGATION.table_schema.empty_table())}),
        commit(2, query="another"),
        Commit(2, State.empty(AGGREGATION), {}, None, {}),
    ],
    ids=["a rewrite", "another query", "a rebuild"],
)
def test_a_commit_that_is_not_the_next_batch_is_waited_for(slow: Slow, trailing: TrailingStore, other: Commit) -> None:
    job = begun(lambda: trailing.commit(other))
    assert job.is_alive()
    slow.open()
    job.join(20)
    assert slow.made == [1, 2]


def test_behind_a_commit_that_failed_nothing_is_written_and_every_call_says_why(
    slow: Slow, trailing: TrailingStore
) -> None:
    slow.failing = 2
    trailing.commit(commit(2))
    trailing.commit(commit(3))
    trailing.check()
    slow.open()
    trailing.close()
    for call in (trailing.check, trailing.settle, trailing.snapshot, lambda: trailing.commit(commit(4))):
        with pytest.raises(StoreError, match="the disk is full"):
            call()
    assert slow.made == [1]


def test_a_commit_takes_no_less_than_no_time_where_the_clock_is_set_back(
    slow: Slow, trailing: TrailingStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    backwards = iter(range(1_700_000_000, 0, -7200))
    clocks = SimpleNamespace(time=lambda: float(next(backwards)), monotonic=time.monotonic)
    monkeypatch.setattr("rollup.hosts.trailing.time", clocks)
    trailing.commit(commit(2))
    slow.open()
    made = trailing.newest_commit
    assert made is not None and 0 <= made.result(60).seconds < 3600


def test_upkeep_does_not_wait_for_a_commit(slow: Slow, trailing: TrailingStore) -> None:
    trailing.commit(commit(2))
    assert trailing.maintain(1.0) == {}
    assert slow.made == [1]


def test_the_length_of_a_commit_is_that_of_the_store_s_work(slow: Slow, trailing: TrailingStore) -> None:
    trailing.commit(commit(2))
    second = trailing.newest_commit
    trailing.commit(commit(3))
    third = trailing.newest_commit
    assert second is not None and third is not None and second is not third
    slow.open()
    assert second.result(20).at <= third.result(20).at
    assert third.result().seconds <= third.result().at - second.result().at + 0.001, "waiting for its turn is no work"


def test_commits_may_be_looked_at_while_others_begin(slow: Slow, trailing: TrailingStore) -> None:
    slow.open()
    slow.gate.release(10_000)
    failed, done, pause = list[BaseException](), threading.Event(), sys.getswitchinterval()

    def look() -> None:
        try:
            while not done.is_set():
                trailing.check()
                assert trailing.newest_commit is not None
        except BaseException as problem:
            failed.append(problem)

    looking = threading.Thread(target=look)
    sys.setswitchinterval(1e-6)
    try:
        looking.start()
        for number in range(2, 1500):
            trailing.commit(commit(number))
    finally:
        done.set()
        looking.join(20)
        sys.setswitchinterval(pause)
    trailing.settle()
    assert not failed and slow.made[-1] == 1499


# Stores of files


@pytest.mark.parametrize(
    "next_one",
    [
        lambda store: store.next_batch(),
        lambda store: store.commit(commit(3)),
        lambda store: store.snapshot(),
        lambda store: store.last,
        lambda store: store.load(open_rows=False),
        lambda store: store.maintain(1.0),
        lambda store: store.commit(Filed(3, State.empty(AGGREGATION), {}, {}, {})),
    ],
    ids=["a batch", "a commit", "a reader", "its record", "a load", "upkeep", "rows of shards"],
)
def test_with_files_whatever_comes_next_waits_for_the_one_commit_on_its_way(
    files: tuple[SlowFiles, TrailingFiles], next_one: Callable[[TrailingFiles], object]
) -> None:
    slow, store = files
    assert slow.made == [1], "the second trails"
    waiting = begun(lambda: next_one(store))
    assert waiting.is_alive()
    slow.gate.release()
    waiting.join(20)
    assert not waiting.is_alive() and slow.made[:2] == [1, 2]


def test_a_reader_outside_sees_the_commit_before_until_the_one_on_its_way_is_whole(
    files: tuple[SlowFiles, TrailingFiles], tmp_path: Path
) -> None:
    slow, store = files
    outside = DeltaStore(AGGREGATION, ColumnEngine(threads=1), tmp_path)
    assert outside.snapshot().number == 1
    slow.gate.release()
    store.settle()
    assert outside.snapshot().number == 2
