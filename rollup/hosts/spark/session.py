"""The Spark session of a job, with the settings that small, frequent batches need."""

from __future__ import annotations

import atexit
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from rollup.archive import QUICK, java_options
from rollup.hosts.exchange import Scratch, place
from rollup.hosts.spark.launch import launch
from rollup.hosts.spark.tasks import daemon
from rollup.hosts.spark.watching.processes import ended_on_error
from rollup.jars import spark_jars_option
from rollup.java import use_java

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from rollup.conf import Conf

_SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.sql.session.timeZone": "UTC",
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
_MOMENT = 2.0
"""Seconds between a signal to one process of a job and to the others, at most."""
_DELTA = {
    "spark.databricks.delta.snapshotPartitions": "1",
    "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}

_WORKERS = {"spark.python.daemon.module": daemon.__name__}
"""For jobs alone: other sessions may have workers that want nothing of ours."""


class Coming:
    """A session that comes up: its Java boots while the caller does something else, until `session` is asked for.

    As a context it ends a Java that nobody has asked for, because the job was refused meanwhile or Ctrl-C came. `brief`
    says that it will not live for long, and no record passes through it.
    """

    def __init__(self, settings: Mapping[str, str], kafka: bool, delta: bool = True, brief: bool = False) -> None:
        use_java()
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")  # otherwise Spark warns about the machine's name
        os.environ.setdefault("SPARK_LAUNCHER_OPTS", QUICK)  # it only puts the other's command together
        self.made = False
        jars = spark_jars_option(kafka=kafka, delta=delta)
        settings = {**_submitted(jars), **settings}
        own = _scratch(settings)
        self._settings = _settings(settings, jars, delta, own, QUICK if brief else "")
        self._java = launch(self._settings, own)

    def __enter__(self) -> Coming:
        return self

    def __exit__(self, *_: object) -> None:
        if self._java is not None:
            self._java.end()

    def session(self) -> SparkSession:
        """The session, waited for; the active one, if there is one."""
        from py4j.protocol import Py4JError
        from pyspark.sql import SparkSession

        active = None if self._java is not None else SparkSession.getActiveSession()
        self.made = active is not None
        if active is not None:
            return active
        builder = SparkSession.builder
        for name, value in self._settings.items():
            builder = builder.config(name, value)
        with ended_on_error():
            try:
                if self._java is not None:
                    self._java.connect()
                made = builder.getOrCreate()
            except (Py4JError, OSError):
                if self._java is not None and self._java.killed():
                    time.sleep(_MOMENT)  # who ends Java ends this process too, whose signal may be on its way
                raise
        self._java = None  # from here on it is the session's
        made.sparkContext.setLogLevel("ERROR")
        self.made = True
        return made


def session(settings: Mapping[str, str], kafka: bool, delta: bool = True) -> SparkSession:
    """The active session, or a new one: `local[*]` unless spark-submit or the settings say otherwise.

    `delta` is for sessions whose Spark reads Delta tables itself, and takes a second of its start. The job does without:
    it streams the names of a table's files.
    """
    from pyspark.sql import SparkSession

    active = SparkSession.getActiveSession()
    if active is not None:
        return active
    with Coming(settings, kafka, delta) as coming:
        return coming.session()


def coming(conf: Conf, once: bool) -> Coming:
    """A session for a job, whose Java is started at once."""
    return Coming(conf.spark, _from_kafka(conf), delta=_in_catalog(conf), brief=once and not _from_kafka(conf))


def job_session(conf: Conf) -> SparkSession:
    """The session of a job: the active one, or a new one."""
    return session(conf.spark, _from_kafka(conf), delta=_in_catalog(conf))


def _in_catalog(conf: Conf) -> bool:
    """Whether Spark itself must know the tables: else a job only has their files written."""
    return "catalog" in conf.store


def _from_kafka(conf: Conf) -> bool:
    return any(options.get("kind") == "kafka" for options in conf.sources.values())


def _submitted(jars: str) -> Mapping[str, str]:
    """What spark-submit was told: its master, sizes and jars, to which ours are added. Nothing where this process was
    not submitted."""
    if "PYSPARK_GATEWAY_PORT" not in os.environ:
        return {}
    from pyspark import SparkConf, SparkContext

    SparkContext._ensure_initialized()  # pyright: ignore[reportPrivateUsage]
    told = dict(SparkConf().getAll())
    every = ",".join(filter(None, [told.get("spark.jars"), jars]))
    return {**told, "spark.jars": every} if every else told


def _settings(settings: Mapping[str, str], jars: str, delta: bool, own: str | None, more: str) -> Mapping[str, str]:
    """All settings of a session, those that are given last; `more` is for Java."""
    local = settings.get("spark.master", "local").startswith("local")
    found = _SETTINGS | {"spark.app.name": "rollup"} | (_DELTA if delta else {})
    if "MASTER" not in os.environ:
        found["spark.master"] = "local[*]"
    if jars:
        found["spark.jars"] = jars
    if not local:
        found = {name: value for name, value in found.items() if not name.startswith("spark.driver.")}
        found["spark.driver.maxResultSize"] = "0"
    if local and not delta and "spark.submit.pyFiles" not in settings:  # those are not on the path of a daemon
        found |= _WORKERS
    if not local or "PYSPARK_GATEWAY_PORT" in os.environ:
        found["spark.log.level"] = "ERROR"  # a Java that runs already, or elsewhere, has not read our file
    if local:
        logging = f"-Dlog4j2.configurationFile=file:{Path(__file__).with_name('log4j2.properties')}"
        told = [logging, "-Duser.timezone=UTC", java_options(), more, "" if own is None else f"-Djava.io.tmpdir={own}"]
        found["spark.driver.extraJavaOptions"] = " ".join(filter(None, told))
    if own is not None:
        found["spark.local.dir"] = own
    return {**found, **settings}


def disks_of(settings: Mapping[str, str]) -> Mapping[str, Path]:
    """Where Spark, its tasks and we put what is only for a while, by the name of who says so."""
    own = settings.get("spark.local.dir") or os.environ.get("SPARK_LOCAL_DIRS", "")
    found = {"spark.local.dir": Path(own.split(",")[0])} if own else {}
    return {**found, "temporary files": Path(tempfile.gettempdir()), "results of tasks": place()}


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
