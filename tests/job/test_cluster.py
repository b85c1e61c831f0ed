"""The job on a real standalone cluster, master and workers as processes of their own, leaves what the local job leaves.

Executors of another process see nothing of the driver's memory and take no part in its exchange folder, so this is
where a hidden dependence on one process would show.
"""

from __future__ import annotations

import importlib.util
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from rollup.java import java_home
from rollup.stores.pgserver import free_port
from tests.job.contents import contents
from tests.job.jobs import ROOT, Job

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

DEPLOY = "org.apache.spark.deploy"


def spark_class(name: str, folder: Path, *arguments: str) -> subprocess.Popen[bytes]:
    """A daemon of Spark, with pyspark's own start script."""
    spec = importlib.util.find_spec("pyspark")
    assert spec is not None and spec.origin is not None
    home = Path(spec.origin).parent
    environment = os.environ | {
        "SPARK_HOME": str(home),
        "JAVA_HOME": str(java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_DAEMON_MEMORY": "256m",
    }
    with (folder / f"{name}-{len(list(folder.glob('*.log')))}.log").open("wb") as log:
        return subprocess.Popen(
            [str(home / "bin" / "spark-class"), f"{DEPLOY}.{name}", *arguments],
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )


def ended(process: subprocess.Popen[bytes]) -> None:
    """End a daemon."""
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[str]:
    """A master and two workers of one core each; the master's URL."""
    folder, port = tmp_path / "cluster", free_port()
    folder.mkdir()
    with ExitStack() as running:
        master = spark_class(
            "master.Master", folder, "--host", "127.0.0.1", "--port", str(port), "--webui-port", str(free_port())
        )
        running.callback(ended, master)
        deadline = time.monotonic() + 120
        while True:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            assert master.poll() is None and time.monotonic() < deadline, (folder / "master.Master-0.log").read_text()
            time.sleep(0.2)
        for number in range(2):
            options = [
                "--host",
                "127.0.0.1",
                "--cores",
                "1",
                "--memory",
                "700m",
                "--webui-port",
                str(free_port()),
                "--work-dir",
                str(folder / f"w{number}"),
            ]
            running.callback(ended, spark_class("worker.Worker", folder, *options, f"spark://127.0.0.1:{port}"))
        yield f"spark://127.0.0.1:{port}"


def events(folder: Path) -> None:
    """Four files, some events late, a broken line in each."""
    folder.mkdir()
    for number in range(4):
        rows = [
            {
                "symbol": f"s{i % 3}",
                "price": i % 8 / 4,
                "quantity": i,
                "ts": 1_600_001_910_000 + i * 97 - (9_000 if i % 11 == 0 else 0),
            }
            for i in range(number * 300, number * 300 + 300)
        ]
        file = folder / f"{number}.json"
        file.write_text("{broken\n" + "".join(json.dumps(row) + "\n" for row in rows))
        os.utime(file, (1_600_000_000 + number, 1_600_000_000 + number))


@pytest.mark.spark
@pytest.mark.cluster
def test_a_job_on_a_cluster_leaves_what_a_local_one_leaves(tmp_path: Path, spark: SparkSession, cluster: str) -> None:
    events(tmp_path / "events")
    source = {"kind": "json", "path": str(tmp_path / "events"), "max_files_per_batch": 2}
    settings = {
        "spark.master": cluster,
        "spark.driver.host": "127.0.0.1",
        "spark.executor.memory": "512m",
        "spark.cores.max": "2",
        "spark.executorEnv.PYTHONPATH": str(ROOT),
    }
    more = "[spark]\n" + "\n".join(f'"{name}" = "{value}"' for name, value in settings.items())
    (tmp_path / "there").mkdir()
    (tmp_path / "here").mkdir()
    there, here = Job(tmp_path / "there", source, more=more), Job(tmp_path / "here", source)
    code, said = there.finish("--once", seconds=400)
    assert code == 0, said
    here.run(spark)
    found = contents(tmp_path / "there" / "tables", there.conf.program())
    assert found == contents(tmp_path / "here" / "tables", here.conf.program())
    assert len(found["letters"]) == 4
    executors = list((tmp_path / "cluster").glob("w*/app-*/*"))
    assert len(executors) == 2, "both workers have run an executor"
