"""Spark's own Thrift server in a session that knows the aggregations, for tools that speak Hive or Spark drivers."""

from __future__ import annotations

import importlib
import signal
import threading
from typing import TYPE_CHECKING

from rollup.conf import Conf
from rollup.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.sql.hive.thriftServer.singleSession": "true",  # the functions are the session's, and all clients share it
    "spark.sql.catalogImplementation": "in-memory",
}


def serve_thrift(conf: Conf) -> None:
    """Serve until SIGINT or SIGTERM; host and port are those of `[serve]` (port 10000 when none is given).

    The server has no passwords of its own, so it listens beyond loopback only when `[serve] host` says so.
    """
    from rollup.hosts.session import session

    host, port = str(conf.serve.get("host", "127.0.0.1")), int(conf.serve.get("port", 10000))
    address = {"spark.hive.server2.thrift.bind.host": host, "spark.hive.server2.thrift.port": str(port)}
    spark = session({**_SETTINGS, **address, **conf.spark}, kafka=False)
    start_thrift(spark, conf)
    print(f"listening on {host}:{port} for Hive and Spark drivers", flush=True)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    stopped.wait()
    spark.stop()


def start_thrift(spark: SparkSession, conf: Conf) -> None:
    """Register the aggregations in a session and start the server in it. Raises ConfigError when a part is missing."""
    try:
        register = importlib.import_module("rollup.hosts.spark_read").register_functions
    except (ImportError, AttributeError):
        raise ConfigError("this version has no table functions for Spark") from None
    register(spark, conf)
    jvm = spark._jvm  # pyright: ignore[reportPrivateUsage]
    assert jvm is not None
    server = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    session = spark._jsparkSession  # pyright: ignore[reportPrivateUsage]
    try:
        server.startWithContext(session.sqlContext())
    except TypeError:
        raise ConfigError("this Spark has no Thrift server", hint="a Spark built with Hive and its Thrift server") from None
