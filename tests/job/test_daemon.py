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
from pathlib import Path

import pytest

from rollup.hosts.spark.compiled import prefer_compiled
from rollup.jars import spark_home

ROOT = Path(__file__).parents[2]
DAEMON = "rollup.hosts.spark.tasks.daemon"
_TASK = """
import json, sys
from importlib import import_module
from rollup.hosts.spark.tasks.daemon import PRELOADED
for name in PRELOADED:
    import_module(name)
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


def test_the_daemon_forks_workers_out_of_one_thread_and_ends_with_java() -> None:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([*zips(), str(ROOT)]), "SPARK_REUSE_WORKER": "1"}
    environment["PYTHON_WORKER_FACTORY_SECRET"] = "secret"
    command = [sys.executable, "-m", DAEMON, "pyspark.worker"]
    with subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as daemon:
        assert daemon.stdin is not None and daemon.stdout is not None
        port = int.from_bytes(daemon.stdout.read(4), "big")
        process = Path("/proc") / str(daemon.pid)
        if process.is_dir():
            assert DAEMON.encode() in (process / "cmdline").read_bytes(), "it has not become pyspark's own"
            assert len(list((process / "task").iterdir())) == 1
        with socket.create_connection(("127.0.0.1", port)) as java:
            worker = int.from_bytes(java.recv(4), "big")
            assert worker not in (0, daemon.pid)
        daemon.stdin.close()
        daemon.wait(30)


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
