"""Answers as DataFrames of a session whose Spark is on the other end of a wire (Spark Connect), which has no Java here."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rollup.jars import spark_home
from rollup.java import use_java
from rollup.stores.postgres.server import free_port

pytestmark = [pytest.mark.spark, pytest.mark.slow]
CLIENT = """
import json, sys
from pyspark.sql import SparkSession
import rollup
spark = SparkSession.builder.remote(sys.argv[1]).getOrCreate()
within = "2018-01-** **:**:**"
for per, fill in (("days", None), ("hours", None), ("hours", "zero")):
    print(json.dumps([tuple(row) for row in rollup.read(spark, sys.argv[2], "A", within, per, fill).collect()]))
for _ in range(4):  # the views of an older commit are dropped
    rollup.register_functions(spark, sys.argv[2])
print(json.dumps([tuple(row) for row in spark.sql(f"select * from A('{within}', 'days')").collect()]))
"""


@pytest.fixture
def address() -> Iterator[str]:
    """A server of Spark Connect on the loopback interface."""
    use_java()
    port = free_port()
    settings = {
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.session.timeZone": "UTC",
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
    }
    options = [word for name, value in settings.items() for word in ("--conf", f"{name}={value}")]
    server = "org.apache.spark.sql.connect.service.SparkConnectServer"
    home = spark_home()
    process = subprocess.Popen(
        [f"{home}/bin/spark-submit", "--master", "local[2]", *options, "--class", server, "spark-internal"],
        env={**os.environ, "SPARK_HOME": str(home), "PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        until = time.monotonic() + 120
        while True:
            with suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                break
            assert process.poll() is None and time.monotonic() < until, "the server does not come up"
            time.sleep(0.2)
        yield f"sc://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(30)


def test_a_dataframe_and_a_table_function_have_the_rows_of_the_answer(address: str, trades: Any) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", CLIENT, address, str(trades.conf.path)],
        capture_output=True,
        text=True,
        timeout=240,
        cwd=Path(__file__).parents[2],
    )
    assert ended.returncode == 0, ended.stderr[-3000:]
    days, hours, filled, function = (
        sorted(map(tuple, json.loads(line)), key=repr) for line in ended.stdout.splitlines()
    )

    def answer(per: str) -> list[tuple[Any, ...]]:
        found = trades.query(f"from A within '2018-01-** **:**:**' per {per}").to_pylist()
        return sorted((tuple(row.values()) for row in found), key=repr)

    assert days == function == answer("'days'") and hours == answer("'hours'")
    assert filled == answer("'hours' fill(zero)") and len(filled) > len(hours) > len(days) > 0
