"""A real HDFS for tests: Hadoop's mini cluster, a name node and a data node in one process on the loopback interface.

`python -m tests.servers.hdfs` fetches it, so that no test waits for that.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Self

from rollup.jars import resolve, spark_home
from rollup.java import java
from rollup.stores.postgres.server import free_port
from tests.servers.served import Served

_LIST = Path(__file__).with_name("hdfs.xml")


class HdfsServer(Served):
    """`with HdfsServer() as server:` or start() and stop(); it keeps its blocks in a folder that goes with it."""

    environment: Mapping[str, str] = {}
    """The variables by which a process reaches it: names say where it is."""

    def start(self) -> Self:
        """Start it and wait until files can be written."""
        folder = Path(self._held.enter_context(tempfile.TemporaryDirectory(prefix="rollup-hdfs-")))
        self.port, ready = free_port(), folder / "ready.json"
        beside = [*spark_home().glob("jars/slf4j-api-*.jar"), *spark_home().glob("jars/jcl-over-slf4j-*.jar")]
        classes = ":".join(map(str, [*(resolve(_LIST) / "hdfs").glob("*.jar"), *beside]))
        own = ["-Xmx256m", "-XX:TieredStopAtLevel=1", f"-Dtest.build.data={folder}", "-cp", classes]
        options = ["-format", "-datanodes", "1", "-nnport", str(self.port), "-httpport", str(free_port())]
        self._process = subprocess.Popen(
            [str(java()), *own, "org.apache.hadoop.test.MiniDFSClusterManager", *options, "-writeDetails", str(ready)],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        until = time.monotonic() + 90
        while not ready.exists():
            assert self._process.poll() is None, "HDFS has ended"
            assert time.monotonic() < until, "HDFS does not start"
            time.sleep(0.1)
        return self

    def new_bucket(self) -> str:
        """A folder that is not there yet, as `hdfs://host:port/name`."""
        return f"hdfs://127.0.0.1:{self.port}/bucket-{next(self._numbers)}"


if __name__ == "__main__":
    resolve(_LIST)
