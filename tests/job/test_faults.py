"""A fault that passes costs no event: each class of it happens to the real job, passes, and the events are all there.

Faults are real: a share that is away is a folder that was moved, a permission is a mode that the kernel enforces, limits
of open files are set on Spark's Python workers from outside. What the job would wait is only noted.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from rollup.core.errors import FencedError, RollupError
from rollup.hosts.spark import patience
from rollup.hosts.spark.watching.failures import cause
from tests.job.jobs import ROOT, Job, answers
from tests.job.test_files import ODD_NAMES, written
from tests.job.test_sources import delta

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark


def events(job: Job) -> int:
    """How many events the tables have."""
    return sum(n for (n,) in answers(job.conf, "events", per="years"))


def filled(folder: Path, kind: str, names: str = "abc") -> Path:
    """A folder of one trade for each name."""
    folder.mkdir(exist_ok=True)
    for name in names:
        if kind == "delta":
            delta(folder, (name, 1.0, 1, 1000))
        else:
            written(folder, kind, name)
    return folder


def run_with(
    job: Job,
    spark: SparkSession,
    monkeypatch: pytest.MonkeyPatch,
    begins: Callable[[], None],
    passes: Callable[[], None],
) -> list[float]:
    """Run the job; a fault begins when a batch is planned, and passes when the job has seen it; the waits of the job."""
    host, waits, begun = job.host(spark), list[float](), list[bool]()
    planned = host._batches._planned

    def then_begins(*arguments: Any) -> Any:
        found = planned(*arguments)
        if not begun:
            begins()
        begun.append(True)
        return found

    def pause(stop: threading.Event, seconds: float) -> bool:
        waits.append(seconds)
        passes()
        return stop.is_set()

    monkeypatch.setattr(host._batches, "_planned", then_begins)
    monkeypatch.setattr(patience, "pause", pause)
    host.run(once=True)
    return waits


@pytest.mark.parametrize("kind", ["parquet", "csv", "json", "delta"])
@pytest.mark.few(1)
def test_a_share_that_is_away_for_a_moment_costs_no_event(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    share, away = filled(tmp_path / "share", kind), tmp_path / "away"
    job = Job(tmp_path, {"kind": kind, "path": "share"})
    waits = run_with(job, spark, monkeypatch, lambda: share.rename(away), lambda: away.rename(share))
    assert (waits, events(job), job.letters()) == ([1], 3, [])


def workers() -> list[int]:
    """The Python workers of this process's Spark."""
    parents, daemons = dict[int, int](), set[int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                pid, fields = int(entry.name), (entry / "stat").read_text().rpartition(")")[2].split()
                parents[pid] = int(fields[1])
                if b"pyspark.daemon" in (entry / "cmdline").read_bytes():
                    daemons.add(pid)
            except (OSError, IndexError):
                continue

    def ours(pid: int) -> bool:
        return pid == os.getpid() or (pid in parents and ours(parents[pid]))

    return [pid for pid in daemons if parents[pid] in daemons and ours(pid)]


def limited(pid: int, what: int, to: int) -> None:
    with suppress(ProcessLookupError):
        resource.prlimit(pid, what, (to, resource.prlimit(pid, what)[1]))


def no_more_files(pid: int) -> None:
    limited(pid, resource.RLIMIT_NOFILE, 0)


def killed(pid: int) -> None:
    with suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)


def whole_again(pid: int) -> None:
    with suppress(ProcessLookupError):
        limited(pid, resource.RLIMIT_NOFILE, resource.prlimit(pid, resource.RLIMIT_NOFILE)[1])


@pytest.mark.parametrize("fault", [no_more_files, killed])
@pytest.mark.few(1)
def test_a_worker_without_files_or_life_costs_no_event(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch, fault: Callable[[int], None]
) -> None:
    share = filled(tmp_path / "share", "json")
    for number in range(4):
        (share / f"many{number}.json").write_text((share / "a.json").read_text() * 300_000)
    job, passed = Job(tmp_path, {"kind": "json", "path": "share"}), threading.Event()

    def strike() -> None:
        while not passed.wait(0.02):
            for pid in workers():
                fault(pid)

    def passes() -> None:
        passed.set()
        thread.join()
        for pid in workers():
            whole_again(pid)

    thread = threading.Thread(target=strike)
    try:
        waits = run_with(job, spark, monkeypatch, thread.start, passes)
    finally:
        passes()
    assert waits[:1] == [1], "the fault was met"
    assert (events(job), job.letters()) == (3 + 4 * 300_000, [])


@pytest.mark.slow
def test_a_file_that_may_not_be_read_yet_costs_no_event(tmp_path: Path) -> None:
    share = filled(tmp_path / "share", "parquet")
    job = Job(tmp_path, {"kind": "parquet", "path": "share"})
    (share / "b.parquet").chmod(0)
    # Root reads everything; without these capabilities the kernel asks it, too, for the file's mode.
    without = ["setpriv", "--bounding-set=-dac_override,-dac_read_search", "--inh-caps=-dac_override,-dac_read_search"]
    process = subprocess.Popen(
        [
            *(without if os.geteuid() == 0 else []),
            sys.executable,
            "-m",
            "rollup.cli.main",
            "run",
            str(job.path),
            "--once",
        ],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
    )
    said = list[str]()
    try:
        assert process.stdout is not None
        for line in process.stdout:
            said.append(line)
            if "is tried again" in line:
                (share / "b.parquet").chmod(0o644)
        assert process.wait(60) == 0, said
    finally:
        process.kill()
    tried = [line for line in said if "is tried again" in line]
    assert tried and f"cannot read {share}/b.parquet: Permission denied" in tried[0]
    assert (events(job), job.letters()) == (3, [])


@pytest.mark.slow
def test_a_fault_that_stays_stops_the_job_with_the_name_of_the_file_and_nothing_is_lost(
    tmp_path: Path, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    share = filled(tmp_path / "share", "csv")
    job, held = Job(tmp_path, {"kind": "csv", "path": "share"}), tmp_path / "held.csv"
    with pytest.raises(Exception) as problem:
        run_with(job, spark, monkeypatch, lambda: (share / "b.csv").rename(held) and None, lambda: None)
    found = cause(problem.value)
    assert isinstance(found, RollupError)
    assert str(found).startswith(f"cannot read {share}/b.csv: No such file or directory")
    held.rename(share / "b.csv")
    job.run(spark)
    assert (events(job), job.letters()) == (3, [])


# Files that were passed over


def test_every_file_is_read_whatever_its_name_and_age(tmp_path: Path, spark: SparkSession) -> None:
    folder = tmp_path / "in[1]*#%41"
    folder.mkdir()
    beside = tmp_path / "in1x#%41"
    beside.mkdir()
    written(beside, "json", "not ours")
    job = Job(tmp_path, {"kind": "json", "path": str(folder)})
    for number, age in enumerate([1_893_456_000, -1_000_000_000, 1_000_000_000]):
        os.utime(written(folder, "json", f"aged{number}"), (age, age))
        job.run(spark)
    for name in ODD_NAMES:
        written(folder, "json", name)
        assert answers(job.conf, "events", per="years"), "an index of the tables' files is kept, and brought up to date"
    job.run(spark)
    found = [symbol for symbol, n in answers(job.conf, "symbol, events", per="years") if n == 1]
    assert sorted(found) == sorted([*ODD_NAMES, "aged0", "aged1", "aged2"])
    assert job.letters() == []


def test_an_empty_parquet_file_leaves_a_letter(tmp_path: Path, spark: SparkSession) -> None:
    share = filled(tmp_path / "share", "parquet")
    (share / "empty.parquet").write_bytes(b"")
    job = Job(tmp_path, {"kind": "parquet", "path": "share"})
    job.run(spark)
    assert events(job) == 3
    assert [letter["position"] for letter in job.letters()] == [f"{share}/empty.parquet"]


def test_a_job_begins_where_a_full_disk_left_half_of_its_first_plan(tmp_path: Path, spark: SparkSession) -> None:
    filled(tmp_path / "share", "csv")
    job = Job(tmp_path, {"kind": "csv", "path": "share"})
    plans = job.conf.checkpoint / "Trades" / "offsets"
    plans.mkdir(parents=True)
    for name in (".0.6a1b.tmp", "..0.6a1b.tmp.crc"):
        (plans / name).write_bytes(b"")
    job.run(spark)
    assert (events(job), job.letters()) == (3, [])


def test_a_job_that_meets_another_in_sparks_log_has_been_replaced() -> None:
    said = "[CONCURRENT_STREAM_LOG_UPDATE] Concurrent update to the log. Multiple streaming jobs detected for 2."
    found = cause(Exception(f"Query x terminated with exception: {said} SQLSTATE: 40000"))
    assert isinstance(found, FencedError) and "another job goes on" in str(found)
