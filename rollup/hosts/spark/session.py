"""The Spark session of a job, with the settings that small, frequent batches need."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rollup.hosts.exchange import Scratch
from rollup.hosts.spark.watching.processes import ended_on_error
from rollup.jars import spark_jars_option
from rollup.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.python.worker.reuse": "true",
    # Tasks hold their results as Arrow; the driver must take a whole batch of partial rows.
    "spark.driver.maxResultSize": "0",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "65536",
    # New files are named, not read, so their size must not decide how many tasks share them: one task a core.
    "spark.sql.files.openCostInBytes": "134217728",
    "spark.sql.files.maxPartitionBytes": "1099511627776",
    # Spark writes three small files a batch beside the checkpoint. With checksums beside them these are six, and for
    # each the JVM starts a `chmod`.
    "spark.hadoop.fs.AbstractFileSystem.file.impl": "org.apache.hadoop.fs.local.RawLocalFs",
    "spark.sql.streaming.numRecentProgressUpdates": "10",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
}


def session(settings: Mapping[str, str], kafka: bool) -> SparkSession:
    """The active session, or a new one: `local[*]` unless spark-submit or the settings say otherwise."""
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    use_java()
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # otherwise Spark warns about the machine's name
    builder = SparkSession.builder.appName("rollup")
    if "MASTER" not in os.environ and "spark.master" not in settings:
        builder = builder.master("local[*]")
    logging = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
    defaults = {
        **_SETTINGS,
        "spark.driver.extraJavaOptions": f"{logging} -Duser.timezone=UTC",
        "spark.jars": spark_jars_option(kafka=kafka),
    }
    if "spark.master" in settings and not settings["spark.master"].startswith("local"):
        defaults = {name: value for name, value in defaults.items() if not name.startswith("spark.driver.")} | {
            "spark.driver.maxResultSize": "0"
        }
    if "PYSPARK_GATEWAY_PORT" in os.environ or "spark.driver.extraJavaOptions" not in defaults:
        defaults["spark.log.level"] = "ERROR"  # a Java that runs already, or elsewhere, has not read our file
    own = _scratch(settings)
    if own is not None:
        defaults |= {"spark.local.dir": own}
        defaults["spark.driver.extraJavaOptions"] += f" -Djava.io.tmpdir={own}"
    for name, value in {**defaults, **settings}.items():
        builder = builder.config(name, value)
    with ended_on_error():
        made = builder.getOrCreate()
    made.sparkContext.setLogLevel("ERROR")
    return made


def _scratch(settings: Mapping[str, str]) -> str | None:
    """A folder for the temporary files of Java and Spark, which a killed job leaves behind: the next one removes it.

    None where Spark runs elsewhere, or already, or has been told where to put them.
    """
    elsewhere = not settings.get("spark.master", os.environ.get("MASTER", "local")).startswith("local")
    told = "spark.local.dir" in settings or "SPARK_LOCAL_DIRS" in os.environ or "PYSPARK_GATEWAY_PORT" in os.environ
    if elsewhere or told or " " in tempfile.gettempdir():
        return None
    own = Scratch("rollup-spark-", Path(tempfile.gettempdir()))
    atexit.register(own.close)
    return own.path
