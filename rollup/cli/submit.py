"""What the files of jobs/ share: a command of `rollup` as an application of `spark-submit`.

Java runs already when `spark-submit` starts Python, so settings of a session no longer bring jars to the driver. They
are added to its class loader here, which spares every scheduler a `--jars` with a path of the user's cache.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from rollup.cli.main import app
from rollup.core.errors import RollupError
from rollup.hosts.spark.compiled import prefer_compiled
from rollup.jars import spark_jars


def submitted(command: str, spark: bool = True) -> None:
    """Run a command with the arguments of this process; `--conf` may stand before the configuration.

    `spark` False is for commands that need no Spark, and so no jars.
    """
    prefer_compiled()
    sys.argv = [sys.argv[0], command, *(argument for argument in sys.argv[1:] if argument != "--conf")]
    if spark and "PYSPARK_GATEWAY_PORT" in os.environ:
        try:
            add_jars()
        except RollupError as problem:
            print(f"rollup: {problem}", file=sys.stderr)
            raise SystemExit(2) from None
    app()


def add_jars() -> None:
    """Let the Java that runs this application find Delta and the Kafka source. Raises ConfigError."""
    from pyspark import SparkContext

    SparkContext._ensure_initialized()  # pyright: ignore[reportPrivateUsage]
    jvm: Any = SparkContext._jvm  # pyright: ignore[reportPrivateUsage]
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if loader.getClass().getSimpleName().endswith("URLClassLoader"):  # Spark's, which takes more
        for jar in spark_jars():
            loader.addURL(jvm.java.io.File(str(jar)).toURI().toURL())
