"""Workers that a job's first batch would wait for are begun while its queries start, and load and plan what it needs.

Not what one job over columns loads in Java: begun as early as that, it takes the cores that the queries start on.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from py4j.protocol import Py4JError

from rollup.hosts.spark.tasks.task import TaskSpec, rehearse

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_AS_IN_SQL = {"SPARK_SIMPLIFIED_TRACEBACK": "1"}
"""What Spark sets for tasks over columns alone. A worker serves tasks of its own environment, and no others."""


def warm(spark: SparkSession, specs: Sequence[TaskSpec]) -> threading.Thread:
    """Begin to let as many tasks as run at once rehearse; no batch waits for them. What fails, fails in a batch too.

    A job that ends waits for the thread: Spark prints stack traces for tasks that its end meets at work.
    """
    spark.sparkContext.environment.update(_AS_IN_SQL)
    warming = threading.Thread(target=_warm, args=(spark, specs), name="warming", daemon=True)
    warming.start()
    return warming


def _warm(spark: SparkSession, specs: Sequence[TaskSpec]) -> None:
    from pyspark.errors import PySparkException

    count = max(1, spark.sparkContext.defaultParallelism)
    with suppress(Py4JError, PySparkException, OSError):
        # A job of no columns is planned in no time.
        spark.sparkContext.parallelize(range(count), count).foreachPartition(lambda _: rehearse(specs))
