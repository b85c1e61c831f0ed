"""What hangs or is ended from outside: said in one line, exit code 2 or a clean end, and nothing in silence.

The watch itself runs under a clock of its own; that real signals to real processes come out as promised, on Spark.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest

from rollup.hosts.exchange import place, sweep
from rollup.hosts.spark.tasks.daemon import EARLY
from rollup.hosts.spark.watching.processes import ended_on_error, spent
from rollup.hosts.spark.watching.watchdog import ENDED, SAID, Watchdog
from tests.job.jobs import ROOT, Job


class World:
    """A clock, and processor time that goes by as it is told."""

    def __init__(self, busy: float | None) -> None:
        self.now, self.used, self.busy = 1000.0, 0.0, busy

    def spent(self) -> float | None:
        return None if self.busy is None else self.used

    def watch(self, dog: Watchdog, seconds: float, step: float = 0.5) -> str | None:
        """Look again and again; what it ended with."""
        for _ in range(int(seconds / step)):
            self.now += step
            self.used += step * (self.busy or 0)
            problem = dog.look()
            if problem is not None:
                return str(problem)
        return None


def test_idle_processes_are_said_and_then_end_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    world = World(busy=0.02)
    dog = Watchdog(world.spent, lambda: world.now)
    with dog.asking("stream S: a batch"):
        assert world.watch(dog, SAID - 4) is None
        assert "no answer" not in capsys.readouterr().out
        assert world.watch(dog, 10) is None
        assert capsys.readouterr().out.count("no answer from Spark") == 1
        said = world.watch(dog, ENDED)
    assert said is not None and said.startswith("stream S: a batch: for 6") and "start the job again" in said


@pytest.mark.parametrize("busy", [0.1, 2.0])
def test_a_batch_may_take_hours_while_somebody_works_on_it(busy: float) -> None:
    world = World(busy)
    dog = Watchdog(world.spent, lambda: world.now)
    with dog.asking("stream S: a batch"):
        assert world.watch(dog, 7200) is None


def test_between_requests_nothing_is_watched_and_each_has_its_own_time() -> None:
    world = World(busy=0.0)
    dog = Watchdog(world.spent, lambda: world.now)
    assert world.watch(dog, 1000) is None
    for _ in range(10):
        with dog.asking("stream S: a batch"):
            assert world.watch(dog, ENDED - 5) is None


def test_where_the_workers_cannot_be_seen_it_is_only_said(capsys: pytest.CaptureFixture[str]) -> None:
    world = World(busy=None)
    dog = Watchdog(world.spent, lambda: world.now)
    with dog.asking("stream S: a batch"):
        assert world.watch(dog, 1000) is None
    assert "no answer from Spark" in capsys.readouterr().out


def test_a_pause_of_the_whole_machine_is_not_taken_for_idleness() -> None:
    world = World(busy=0.0)
    dog = Watchdog(world.spent, lambda: world.now)
    with dog.asking("stream S: a batch"):
        world.now += 3600
        assert dog.look() is None


def test_processor_time_is_that_of_a_process_and_all_below_it() -> None:
    work = "import time\nend = time.monotonic() + 60\nwhile time.monotonic() < end: pass"
    shell = subprocess.Popen(["sh", "-c", f"python3 -c '{work}' & wait"], start_new_session=True)
    try:
        end = time.monotonic() + 60
        while (spent(shell.pid) or 0.0) < 0.2:
            assert time.monotonic() < end, "the child of the child counts"
            time.sleep(0.05)
    finally:
        os.killpg(shell.pid, signal.SIGKILL)
        shell.wait()
    assert spent(shell.pid) is None


def test_what_was_started_ends_with_the_error_that_stops_its_start_and_nothing_else() -> None:
    before = subprocess.Popen(["sleep", "300"])
    try:
        with pytest.raises(KeyboardInterrupt), ended_on_error():
            started = subprocess.Popen(["sh", "-c", "sleep 300 & wait"])
            raise KeyboardInterrupt
        assert started.wait(30) == -signal.SIGKILL and before.poll() is None
        with ended_on_error():
            pass
        assert before.poll() is None
    finally:
        before.kill()
        before.wait()


def test_results_go_through_memory_only_where_it_has_room(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path))
    monkeypatch.setattr("rollup.hosts.exchange._MEMORY", tmp_path / "shm")
    (tmp_path / "shm").mkdir()
    for free, wanted in ((64 << 20, tmp_path), (8 << 30, tmp_path / "shm")):
        with monkeypatch.context() as sized:
            sized.setattr(shutil, "disk_usage", lambda _, free=free: SimpleNamespace(free=free))
            assert place() == wanted
    (tmp_path / "shm").rmdir()
    assert place() == tmp_path


def test_folders_of_jobs_that_are_gone_are_swept_and_others_left_alone(tmp_path: Path) -> None:
    code = (
        "import sys, time; from pathlib import Path; from rollup.hosts.exchange import Scratch;"
        "made = Scratch('rollup-spark-', Path(sys.argv[1])); Path(made.path, 'liblz4.so').touch();"
        "print(made.path, flush=True); time.sleep(60)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    (tmp_path / "spark-of-another").mkdir()
    jobs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) for _ in range(2)]
    try:
        folders = [Path(job.stdout.readline().strip()) for job in jobs if job.stdout is not None]
        jobs[0].kill()
        jobs[0].wait()
        assert sweep(tmp_path) == [], "of another prefix"
        assert sweep(tmp_path, "rollup-spark-") == [folders[0]]
        assert not folders[0].exists() and folders[1].exists() and (tmp_path / "spark-of-another").exists()
    finally:
        for job in jobs:
            job.kill()
            job.wait()


@pytest.mark.spark
@pytest.mark.slow
def test_what_a_killed_job_left_among_temporary_files_is_gone_after_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    (tmp_path / "incoming").mkdir()
    job = Job(tmp_path, {"kind": "rate", "rows_per_second": 100})
    metrics = tmp_path / "metrics.jsonl"
    process = job.process("--metrics-json", str(metrics), start_new_session=True)
    end = time.monotonic() + 240
    while not metrics.exists() or metrics.read_text().count("\n") < 2:
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    left = sorted(path.name for path in temporary.iterdir())
    assert left and all(name.startswith(("rollup-spark-", "hsperfdata")) for name in left), left
    again = Job(tmp_path, {"kind": "parquet", "path": "incoming"}, top="")
    shutil.rmtree(tmp_path / "checkpoint")
    code, said = again.finish("--once")
    assert code == 0, said
    assert not [path for path in temporary.iterdir() if path.name.startswith(("rollup-spark-", "spark-", "lib"))]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A job process in a process group of its own, with a few batches behind it."""
    job = Job(tmp_path, {"kind": "rate", "rows_per_second": 100})
    metrics = tmp_path / "metrics.jsonl"
    process = job.process("--metrics-json", str(metrics), start_new_session=True)
    try:
        end = time.monotonic() + 240
        while not metrics.exists() or metrics.read_text().count("\n") < 3:
            assert process.poll() is None and time.monotonic() < end
            time.sleep(0.2)
        yield process, metrics
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def java(process: subprocess.Popen[str]) -> int:
    """Its Java."""
    return next(pid for pid in children(process.pid) if "java" in Path(f"/proc/{pid}/comm").read_text())


def early(pid: int) -> int:
    """The daemon of workers that was begun beside Java, which is below it as all that works for a batch."""
    words = {child: Path(f"/proc/{child}/cmdline").read_bytes().split(b"\0") for child in children(pid)}
    return next(child for child, said in words.items() if EARLY.encode() in said)


def group(process: subprocess.Popen[str]) -> None:
    os.killpg(process.pid, signal.SIGTERM)


def kill_java(process: subprocess.Popen[str]) -> None:
    os.kill(java(process), signal.SIGKILL)


@pytest.mark.spark
@pytest.mark.parametrize(("end", "code", "lines"), [(group, 0, 0), (kill_java, 2, 1)])
@pytest.mark.slow
def test_a_job_whose_java_is_ended_says_so_in_a_line_and_all_at_once_end_cleanly(
    running: tuple[subprocess.Popen[str], Path], end: Callable[[subprocess.Popen[str]], None], code: int, lines: int
) -> None:
    process, _ = running
    assert children(early(java(process))), "the workers of the first batch had loaded before it"
    end(process)
    _, said = process.communicate(timeout=120)
    assert process.returncode == code, said
    assert "Traceback" not in said and "py4j" not in said.replace("jars", "")
    assert said.count("rollup: Java, which Spark runs in, was ended by signal 9") == lines
