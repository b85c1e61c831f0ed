"""Workers are forked from a process that has loaded all that a task needs, which must have one thread and no compiling to do.

Java is played here: it starts the daemon with Spark's zips first on the path, reads a port from its standard output, and
connects to it for a worker. A worker's first task is played in a process of its own, so that what it loads is known.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from rollup.hosts.spark.compiled import prefer_compiled
from rollup.hosts.spark.tasks.daemon import EARLY
from rollup.hosts.spark.tasks.early import PLACE
from rollup.jars import spark_home

ROOT = Path(__file__).parents[2]
DAEMON = "rollup.hosts.spark.tasks.daemon"
linux = pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="elsewhere pyspark's own daemon serves")
_TASK = """
import json, sys
from rollup.hosts.spark.tasks.daemon import load
load()
import pyarrow as pa
from rollup.hosts.spark.tasks.task import TaskSpec, rehearse, run
from rollup.program import Declaration
app = "define stream S (k string, n long, ts long); " \
    "define aggregation A from S select k, sum(n) as n group by k aggregate by ts every sec ... year;"
spec = TaskSpec(Declaration(app, "UTC"), "S", {"kind": "json", "path": "."})
rehearse([spec])
there = set(sys.modules)
batch = pa.record_batch([["a.json"], pa.array([0]), pa.array([-1])], ["path", "modified", "place"])
results = [row for batch in run(spec, iter([batch])) for row in batch.to_pylist()]
assert [row["rows"] for row in results if row["kind"] == "part"] == [1], results
print(json.dumps(sorted(set(sys.modules) - there)))
"""


def zips() -> list[str]:
    """What Spark puts on the path of a worker, before all else."""
    return sorted(map(str, (spark_home() / "python" / "lib").glob("*.zip")))


def test_a_batch_finds_in_a_worker_all_that_its_task_needs(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"k": "a", "n": 1, "ts": 1600000000000}\n')
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", _TASK]
    ran = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == []


def told() -> dict[str, str]:
    """What both processes are told alike; pytest would tell each in what moment of a test it is."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}


class Java:
    """What Java does with a daemon: it starts one, reads a port, connects for a worker, and closes the input at the end."""

    def __init__(self, **more: str) -> None:
        environment = {**told(), "PYTHONPATH": os.pathsep.join([*zips(), str(ROOT)]), "SPARK_REUSE_WORKER": "1"}
        environment |= {"PYTHON_WORKER_FACTORY_SECRET": "secret", **more}
        command = [sys.executable, "-m", DAEMON, "pyspark.worker"]
        self.daemon = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        assert self.daemon.stdin is not None and self.daemon.stdout is not None
        self.input, self.output = self.daemon.stdin, self.daemon.stdout
        self.port = int.from_bytes(self.output.read(4), "big")

    def parent_of_a_worker(self) -> int:
        """The process that a worker is forked from."""
        with socket.create_connection(("127.0.0.1", self.port)) as connected:
            worker = int.from_bytes(connected.recv(4), "big")
            return int((Path("/proc") / str(worker) / "stat").read_text().rpartition(")")[2].split()[1])

    def __enter__(self) -> Java:
        return self

    def __exit__(self, *_: object) -> None:
        self.input.close()
        self.output.close()
        self.daemon.wait(30)


@pytest.fixture
def early(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Mapping[str, str]]]:
    """A daemon that is begun beside Java, before that asks for one, and where it is to be found."""
    more = {PLACE: str(tmp_path / "daemon"), "PYTHONHASHSEED": "0"}
    command = [sys.executable, "-m", DAEMON, EARLY]
    environment = {**told(), **more, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdin=subprocess.PIPE) as begun:
        end = time.monotonic() + 60
        while not (tmp_path / "daemon").exists():
            assert time.monotonic() < end and begun.poll() is None
            time.sleep(0.01)
        yield begun, more


@linux
def test_the_daemon_forks_workers_out_of_one_thread_and_ends_with_java() -> None:
    with Java() as java:
        process = Path("/proc") / str(java.daemon.pid)
        assert DAEMON.encode() in (process / "cmdline").read_bytes(), "it has not become pyspark's own"
        assert len(list((process / "task").iterdir())) == 1
        assert java.parent_of_a_worker() == java.daemon.pid


@linux
def test_a_daemon_that_has_loaded_already_takes_the_place_of_javas_and_ends_with_java(
    early: tuple[subprocess.Popen[bytes], Mapping[str, str]],
) -> None:
    begun, more = early
    with Java(**more) as java:
        assert java.parent_of_a_worker() == begun.pid
        assert java.daemon.poll() is None, "for Java it is the daemon"
        with Java(**more) as second:
            assert second.parent_of_a_worker() == second.daemon.pid, "there is one only"
    begun.wait(30)


@linux
@pytest.mark.parametrize("other", [{"LD_LIBRARY_PATH": "/nowhere"}, {"PYTHONPATH": f"/nowhere{os.pathsep}{ROOT}"}])
def test_a_daemon_that_would_load_something_else_serves_itself(
    early: tuple[subprocess.Popen[bytes], Mapping[str, str]], other: Mapping[str, str]
) -> None:
    begun, more = early
    with Java(**more, **other) as java:
        assert java.parent_of_a_worker() == java.daemon.pid
    assert begun.wait(30) == 0


@linux
def test_an_early_daemon_that_java_never_asks_for_ends_with_the_input_that_both_have(
    early: tuple[subprocess.Popen[bytes], Mapping[str, str]],
) -> None:
    begun, more = early
    assert begun.stdin is not None
    begun.stdin.close()
    assert begun.wait(60) == 0
    with Java(**more) as java:
        assert java.parent_of_a_worker() == java.daemon.pid


def test_an_early_daemon_whose_place_has_too_long_a_name_ends_in_silence(tmp_path: Path) -> None:
    environment = {**told(), PLACE: str(tmp_path / ("n" * 120)), "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", DAEMON, EARLY]
    ran = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")


@linux
def test_an_early_daemon_that_was_killed_is_not_missed(
    early: tuple[subprocess.Popen[bytes], Mapping[str, str]],
) -> None:
    begun, more = early
    begun.kill()
    begun.wait()
    with Java(**more) as java:
        assert java.parent_of_a_worker() == java.daemon.pid


def test_the_installed_pyspark_is_taken_instead_of_the_same_in_a_zip_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = [*zips(), *sys.path]
    monkeypatch.setattr(sys, "path", list(path))
    prefer_compiled()
    assert sys.path == path[len(zips()) :]
    other = ["/opt/spark/python/lib/pyspark.zip", *sys.path]
    monkeypatch.setattr(sys, "path", list(other))
    prefer_compiled()
    assert sys.path == other
