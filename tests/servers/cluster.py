"""A real standalone Spark cluster for tests and benchmarks: a master and workers as processes on the loopback interface."""

from __future__ import annotations

import importlib.util
import os
import socket
import subprocess
import time
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Self

from rollup.java import java_home
from rollup.stores.postgres.server import free_port

_DEPLOY = "org.apache.spark.deploy"
_SECONDS = 120
"""Within which the master must listen."""


class Cluster:
    """Workers of one core each; `url` is the master's, `folder` has their logs and the work of the executors."""

    def __init__(self, folder: Path, workers: int = 2, memory: str = "700m") -> None:
        self.folder = folder
        self.workers = workers
        self.memory = memory
        self.url = ""
        self._running = ExitStack()

    def __enter__(self) -> Self:
        with self._running:
            port = self._master()
            self.url = f"spark://127.0.0.1:{port}"
            for number in range(self.workers):
                sizes = ["--cores", "1", "--memory", self.memory, "--work-dir", str(self.folder / f"w{number}")]
                self._daemon("worker.Worker", "--webui-port", str(free_port()), *sizes, self.url)
            self._running = self._running.pop_all()
        return self

    def __exit__(self, *problem: object) -> None:
        self._running.close()

    def settings(self, executor_memory: str = "512m") -> dict[str, str]:
        """What a job needs to run here: each executor is a process of its own, with this project's code."""
        return {
            "spark.master": self.url,
            "spark.driver.host": "127.0.0.1",
            "spark.executor.memory": executor_memory,
            "spark.cores.max": str(self.workers),
            "spark.executorEnv.PYTHONPATH": str(Path(__file__).resolve().parents[2]),
        }

    def _master(self) -> int:
        self.folder.mkdir(parents=True, exist_ok=True)
        port = free_port()
        master = self._daemon("master.Master", "--port", str(port), "--webui-port", str(free_port()))
        deadline = time.monotonic() + _SECONDS
        while True:
            with closing(socket.socket()) as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return port
            if master.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError((self.folder / "master.Master-0.log").read_text())
            time.sleep(0.2)

    def _daemon(self, name: str, *arguments: str) -> subprocess.Popen[bytes]:
        """A daemon of Spark, with pyspark's own start script; ended with the cluster."""
        spec = importlib.util.find_spec("pyspark")
        assert spec is not None and spec.origin is not None
        home = Path(spec.origin).parent
        own = {"SPARK_HOME": str(home), "JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
        with (self.folder / f"{name}-{len(list(self.folder.glob('*.log')))}.log").open("wb") as log:
            started = subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"{_DEPLOY}.{name}", "--host", "127.0.0.1", *arguments],
                env=os.environ | own | {"SPARK_DAEMON_MEMORY": "256m"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._running.callback(_end, started)
        return started


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
