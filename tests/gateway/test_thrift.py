"""`rollup serve --thrift`: Spark's own server, asked by the Beeline client that comes with Spark.

The whole command runs, in a process of its own, because the server lives in the JVM of its session and ends with it.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pyspark
import pytest

from rollup.java import java
from rollup.stores.postgres.server import free_port
from tests.gateway.trades import configuration, events, folder, host

pytestmark = [pytest.mark.spark, pytest.mark.slow]


def _beeline(port: int, sql: str) -> str:
    home = Path(pyspark.__file__).parent
    command = [str(java()), "-cp", f"{home}/jars/*", "org.apache.hive.beeline.BeeLine"]
    command += ["-u", f"jdbc:hive2://127.0.0.1:{port}/", "--silent=true", "--outputformat=csv2", "-e", sql]
    done = subprocess.run(command, capture_output=True, text=True, timeout=180, check=False)
    return done.stdout + done.stderr


def test_a_hive_client_asks_the_functions_and_sees_the_next_commit() -> None:
    with folder() as made:
        port = free_port()
        conf = configuration(made, serve=f"port = 0\nthrift_port = {port}")
        job = host(conf)
        job.send("Trades", events("2018-01"))
        environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2])}
        command = [sys.executable, "-m", "rollup.cli.main", "serve", str(conf.path), "--thrift"]
        log = (made / "log").open("w")
        with subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, env=environment, cwd=made) as running:
            try:
                deadline = time.monotonic() + 180
                while "listening on" not in (made / "log").read_text():
                    assert running.poll() is None and time.monotonic() < deadline, (made / "log").read_text()
                    time.sleep(0.5)
                source = "TradeAgg('2018-**-** **:**:**', 'days')"
                ask = f"select symbol, sum(total) as s from {source} group by symbol order by symbol"
                assert "A,1218.0\nB,2436.0" in _beeline(port, ask)
                job.send("Trades", events("2018-02", days=10))
                deadline = time.monotonic() + 60
                while "A,1383.0\nB,2766.0" not in (said := _beeline(port, ask)):
                    assert time.monotonic() < deadline, said
            finally:
                running.terminate()
                running.wait(60)
