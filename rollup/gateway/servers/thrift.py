"""Spark's own Thrift server in a session that knows the aggregations, for tools that speak Hive or Spark drivers."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from rollup.conf import Conf
from rollup.core.errors import ConfigError
from rollup.gateway.rewriting.loader import delta_folders

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.sql.hive.thriftServer.singleSession": "true",  # the functions are the session's, and all clients share it
    "spark.sql.catalogImplementation": "in-memory",
}
_LOOK_EVERY = 1.0
_PORT = 10000


def serve_thrift(conf: Conf) -> None:
    """Serve until SIGINT or SIGTERM, on the host of `[serve]` and its `thrift_port`.

    The server has no passwords of its own, so it listens beyond loopback only when `[serve] host` says so.
    """
    from rollup.hosts.spark.session import session

    limited = [user for user, said in conf.serve.get("users", {}).items() if {"reads", "where"} & set(said)]
    if limited:
        raise ConfigError(
            f"--thrift knows no users, so {', '.join(limited)} could read everything there",
            hint="take `reads` and `where` out of [serve.users], or serve without --thrift",
        )
    host, port = str(conf.serve.get("host", "127.0.0.1")), int(conf.serve.get("thrift_port", _PORT))
    address = {"spark.hive.server2.thrift.bind.host": host, "spark.hive.server2.thrift.port": str(port)}
    spark = session({**_SETTINGS, **address, **conf.spark}, kafka=False)
    renew = start_thrift(spark, conf)
    print(f"listening on {host}:{port} for Hive and Spark drivers", flush=True)
    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())
    while not stopped.wait(_LOOK_EVERY):
        renew()
    spark.stop()


def start_thrift(spark: SparkSession, conf: Conf) -> Callable[[], bool]:
    """Start the server in a session that has a table function for each aggregation.

    Returns what renews the functions when there has been a commit since, and says whether it did: a function reads the
    commit that was the newest when it was made. Raises ConfigError when Spark has no Thrift server.
    """
    from rollup.hosts.spark.read import register_functions

    folders = delta_folders(conf, conf.program())
    seen: list[dict[str, int]] = [{}]

    def renew() -> bool:
        newest = {name: max(folder.numbers(), default=0) for name, folder in folders.items()}
        if newest == seen[0]:
            return False
        try:
            register_functions(spark, conf)
        except Exception as problem:  # whatever it is, the functions that there are go on answering
            print(f"the functions could not be renewed: {problem}", flush=True)
            return False
        seen[0] = newest
        return True

    register_functions(spark, conf)
    jvm: Any = spark._jvm  # pyright: ignore[reportPrivateUsage]
    session: Any = spark._jsparkSession  # pyright: ignore[reportPrivateUsage]
    server = jvm.org.apache.spark.sql.hive.thriftserver.HiveThriftServer2
    try:
        server.startWithContext(session.sqlContext())
    except TypeError:
        raise ConfigError(
            "this Spark has no Thrift server", hint="a Spark built with Hive and its Thrift server"
        ) from None
    renew()
    return renew
