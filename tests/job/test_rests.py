"""The rest of a batch trails `foreachBatch` in a run over all that is there, and what that must not change.

Over a model of Spark; `test_kills.py` kills such runs at every point.
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rollup.core.errors import SourceError, StoppedError, StoreError
from rollup.hosts.spark.batches import Batches
from rollup.hosts.spark.driver import SparkHost
from rollup.hosts.spark.query_log import newest_done
from rollup.stores.base import Commit, Filed
from rollup.stores.delta.store import DeltaStore
from tests.job.jobs import Job, answers
from tests.job.model_spark import ModelSpark

BATCHES = 5
APP = """define stream S (k string, v double, ts long);
define aggregation A from S select k, sum(v) as s, count() as c group by k aggregate by ts every sec, min;"""
Making = Callable[[DeltaStore, Commit | Filed], None]


@pytest.fixture
def job(tmp_path: Path) -> Job:
    """Five batches of ten events and a record that is none, a second each."""
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(BATCHES):
        events = [{"k": f"k{i % 2}", "v": i / 4, "ts": 1_600_000_000_000 + 1000 * number + i} for i in range(10)]
        lines = [*map(json.dumps, events), f"odd {number}"]
        (folder / f"{number}.json").write_text("\n".join(lines) + "\n")
        os.utime(folder / f"{number}.json", (1_600_000_000 + number,) * 2)
    source = {"kind": "json", "path": "in", "max_files_per_batch": 1}
    return Job(tmp_path, source, app=APP, streams=("S",), more="[cascade]\nhost = 'driver'")


@pytest.fixture
def log(job: Job) -> Path:
    """Spark's log of the stream."""
    return job.conf.checkpoint / "S"


def making(monkeypatch: pytest.MonkeyPatch, before: Making) -> None:
    """Do something before every commit."""
    made = DeltaStore.commit

    def commit(store: DeltaStore, commit: Commit | Filed) -> None:
        before(store, commit)
        made(store, commit)

    monkeypatch.setattr(DeltaStore, "commit", commit)


def asking(monkeypatch: pytest.MonkeyPatch, before: Callable[[int], None]) -> None:
    """Do something before the tasks of a batch are begun ahead of its turn."""
    ask = Batches.ask

    def asked(batches: Batches, batch: Any) -> Any:
        before(batch.number)
        return ask(batches, batch)

    monkeypatch.setattr(Batches, "ask", asked)


def run(job: Job) -> SparkHost:
    host = job.host(ModelSpark())  # type: ignore[arg-type]
    host.run(once=True)
    return host


def batch_of(commit: Commit | Filed) -> int:
    return int(commit.source["S"]["batch"])


def events(job: Job) -> int:
    return sum(int(count) for (count,) in answers(job.conf, "c", aggregation="A"))


def test_tasks_of_a_batch_begin_before_the_one_before_is_committed_and_spark_s_log_is_one_ahead_at_most(
    job: Job, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, ahead = {number: threading.Event() for number in range(BATCHES + 1)}, list[int]()

    def before(_: DeltaStore, commit: Commit | Filed) -> None:
        number = batch_of(commit)
        ahead.append(newest_done(log) - number)
        if 0 < number < BATCHES - 1:
            assert begun[number + 1].wait(60), "nothing waits for a commit to read the next batch"
            ahead.append(newest_done(log) - number)

    making(monkeypatch, before)
    asking(monkeypatch, lambda number: begun[number].set())
    run(job)
    assert max(ahead) == 0, "when a commit is made Spark has its batch behind it, and no later one"
    assert events(job) == 10 * BATCHES
    assert [letter["raw"] for letter in job.letters()] == [f"odd {number}" for number in range(BATCHES)]
    assert [letter["batch"] for letter in job.letters()] == list(range(BATCHES))


def test_the_dead_letters_of_a_batch_are_written_before_its_commit(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    known = list[tuple[int, set[int]]]()
    making(
        monkeypatch,
        lambda _, commit: known.append((batch_of(commit), {letter["batch"] for letter in job.letters()})),
    )
    run(job)
    assert len(known) == BATCHES
    assert all(batch in there for batch, there in known), "Spark may never give a batch again that is committed"


@pytest.mark.parametrize("batch", [2, BATCHES - 1])
@pytest.mark.parametrize("where", ["tasks", "commit"])
@pytest.mark.few(2)
def test_what_goes_wrong_behind_foreach_batch_ends_the_run_and_the_next_one_takes_the_batch_again(
    job: Job, monkeypatch: pytest.MonkeyPatch, where: str, batch: int
) -> None:
    with monkeypatch.context() as fault:

        def fail(number: int, problem: Exception) -> None:
            if number == batch:
                raise problem

        if where == "tasks":
            asking(fault, lambda number: fail(number, SourceError("the share is away")))
        else:
            making(fault, lambda _, commit: fail(batch_of(commit), StoreError("the disk is full")))
        with pytest.raises((SourceError, StoreError), match=r"the share is away|the disk is full"):
            run(job)
    assert events(job) == 10 * batch
    run(job)
    assert events(job) == 10 * BATCHES
    assert [letter["raw"] for letter in job.letters()] == [f"odd {number}" for number in range(BATCHES)]


def test_a_run_that_is_stopped_commits_what_spark_has_behind_it(
    job: Job, log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [job.host(ModelSpark())]  # type: ignore[arg-type]

    def stop(number: int) -> None:
        if number == 2:
            hosts[0].stop()

    asking(monkeypatch, stop)
    hosts[0].run(once=True)
    assert newest_done(log) == 2
    assert events(job) == 30


def test_a_batch_that_was_stopped_while_its_tasks_were_tried_again_comes_again(
    job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    hosts = [job.host(ModelSpark())]  # type: ignore[arg-type]

    def stop(number: int) -> None:
        if number == 2:
            hosts[0].stop()
            raise StoppedError("stopped before a new try")

    with monkeypatch.context() as fault:
        asking(fault, stop)
        hosts[0].run(once=True)
    assert events(job) == 20
    run(job)
    assert events(job) == 10 * BATCHES


def test_chores_between_batches_find_none_in_progress(job: Job, monkeypatch: pytest.MonkeyPatch) -> None:
    host = job.host(ModelSpark())  # type: ignore[arg-type]
    making_now, found, looked = threading.Event(), list[bool](), threading.Event()

    def before(_: DeltaStore, commit: Commit | Filed) -> None:
        if batch_of(commit) == 2:
            making_now.set()
            assert looked.wait(60)

    def tick(self: SparkHost) -> None:
        if making_now.is_set() and not looked.is_set():
            with self._between_batches() as free:
                found.append(free)
            looked.set()

    making(monkeypatch, before)
    monkeypatch.setattr(SparkHost, "_tick", tick)
    host.run(once=True)
    assert found == [False]
    assert events(job) == 10 * BATCHES
