"""The real servers and the one Spark session of a test run; each is started when the first test asks for it."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote
from zoneinfo import reset_tzpath

import pytest

import tests.profiles  # noqa: F401  # the hypothesis profiles that --hypothesis-profile names
from tests.conformance.results import Collector

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.hdfs import HdfsServer
    from tests.servers.kafka import KafkaBroker
    from tests.servers.postgres import NewUrl, PostgresServer
    from tests.servers.registry import SchemaRegistry
    from tests.servers.s3 import S3Server

_schemas = count()
_ROOT = Path(__file__).parents[1]
_UNIT_VARIANTS = 2
_no_processes = False


def pytest_configure(config: pytest.Config) -> None:
    """The outcomes of the conformance cases are collected here, since only this file is read in every process."""
    reset_tzpath([])  # what tests expect comes from the pinned package of zones, as what they get
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # the processes that tests start would compile every module anew
    config.pluginmanager.register(Collector())
    sys.addaudithook(_refuse_processes)
    config.addinivalue_line("markers", "unit: set here on what `make unit` runs; it takes a part of it")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """`-m unit` takes the folders of the layers below the hosts, as pyproject.toml has them, and no others."""
    if config.option.markexpr != "unit" or not collection_path.is_relative_to(_ROOT):
        return None
    inside = collection_path.relative_to(_ROOT).parts[1:2]
    return True if inside and collection_path.is_dir() and inside[0] not in _below_the_hosts() else None


@cache
def _below_the_hosts() -> set[str]:
    contracts = tomllib.loads((_ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers: list[str] = contracts[0]["layers"]
    return set(re.findall(r"\w+", " ".join(layers[layers.index("(hosts)") + 1 :])))


@pytest.hookimpl(tryfirst=True)  # before what `-m` leaves out is left out
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Of the variants of a test with `few`, those named, or so many evenly spread, are left; the others are slow.

    What is neither slow nor long is `unit`, but of many variants of a test only a few evenly spread.
    """
    variants = defaultdict[object, list[pytest.Item]](list)
    for item in items:
        if not item.get_closest_marker("slow"):
            name = item.originalname if isinstance(item, pytest.Function) else item.nodeid
            variants[item.parent, name].append(item)
    for those in variants.values():
        taken = those
        if (marker := those[0].get_closest_marker("few")) is not None:
            if isinstance(marker.args[0], str):
                taken = [item for item in those if item.callspec.id in marker.args]
            else:
                taken = _spread(those, marker.args[0])
            for item in those:
                if item not in taken:
                    item.add_marker(pytest.mark.slow)
        for item in _spread(taken, _UNIT_VARIANTS) if not those[0].get_closest_marker("long") else ():
            item.add_marker(pytest.mark.unit)


def _spread(items: list[pytest.Item], number: int) -> list[pytest.Item]:
    """At most so many of the items, evenly spread."""
    number = min(number, len(items))
    return [items[len(items) * index // number] for index in range(number)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """With `-m unit` a test that starts a process, be it a server, a JVM or a browser, is skipped where it starts it."""
    global _no_processes
    _no_processes = item.config.option.markexpr == "unit"
    try:
        return (yield)
    finally:
        _no_processes = False


def _refuse_processes(event: str, _: tuple[object, ...]) -> None:
    """An audit hook of Python. It cannot be taken off again, so a variable says when it acts."""
    if _no_processes and event in ("subprocess.Popen", "os.posix_spawn", "os.fork"):
        pytest.skip("it starts a process")


def pytest_report_header() -> str | None:
    """Which further cases a run takes; a folder that holds none ends it."""
    from tests.conformance.languages import further_folders

    try:
        known, unknown = further_folders()
    except ValueError as problem:
        raise pytest.UsageError(str(problem)) from None
    said = f"further cases: {', '.join(known)}" + (f"; not run: {', '.join(unknown)}" if unknown else "")
    return said if known else None


@pytest.fixture(scope="module")
def interpreted() -> Iterator[None]:
    """Loops run as they are written: to compile those of a statement takes longer than its few events do."""
    import numpy as np

    from rollup.engine.columns.loops import loop

    with pytest.MonkeyPatch.context() as patch, np.errstate(all="ignore"):  # as compiled code has it
        patch.setattr("numba.config.DISABLE_JIT", True)
        loop.cache_clear()
        yield
    loop.cache_clear()


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running PostgreSQL. Tests share it: take `postgres.new_database()`, and start one of your own to kill it."""
    from tests.servers.postgres import PostgresServer

    server = PostgresServer()
    try:
        yield server.start()
    finally:
        server.remove()


@pytest.fixture(scope="session")
def database(postgres: PostgresServer) -> str:
    """The DSN of a database for stores; each takes a schema of its own there, quicker than databases."""
    return postgres.new_database()


@pytest.fixture
def new_url(database: str) -> NewUrl:
    """Makes an empty schema; gives the URL of a connection that works in it."""
    from tests.servers.postgres import execute

    def make() -> str:
        schema = f"s{next(_schemas)}"
        execute(database, f"create schema {schema}")
        return f"{database}?options={quote(f'-csearch_path={schema}')}"

    return make


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """A test that names `s3` or `bucket` runs on each S3 server, one that names `afar` on HDFS too; one that asks for
    them in its midst, on the quick one."""
    if "object_server" in metafunc.fixturenames:
        servers = ["moto", pytest.param("versitygw", marks=pytest.mark.slow)]
        if "afar" in metafunc.fixturenames:
            servers.append(pytest.param("hdfs", marks=pytest.mark.slow))
        metafunc.parametrize("object_server", servers, indirect=True, scope="session")


@pytest.fixture(scope="session")
def object_server(request: pytest.FixtureRequest) -> Iterator[S3Server | HdfsServer]:
    """A running server of objects by name. Tests share it: take a `bucket`, or a place `afar`."""
    from tests.servers.hdfs import HdfsServer
    from tests.servers.s3 import S3_SERVERS

    server = {**S3_SERVERS, "hdfs": HdfsServer}[getattr(request, "param", "moto")]()
    try:
        yield server.start()
    finally:
        server.stop()


@pytest.fixture
def afar(object_server: S3Server | HdfsServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """An empty place, as `s3://name` or `hdfs://host:port/name`, which this process and those that it starts can reach."""
    for name, value in {**object_server.environment, "ROLLUP_CACHE_OBJECTS": str(tmp_path / "copies")}.items():
        monkeypatch.setenv(name, value)
    return object_server.new_bucket()


@pytest.fixture(scope="session")
def s3(object_server: S3Server) -> S3Server:
    """A running S3 server."""
    return object_server


@pytest.fixture
def bucket(s3: S3Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """An empty bucket as `s3://name`, which this process and those that it starts can reach."""
    for name, value in {**s3.environment, "ROLLUP_CACHE_OBJECTS": str(tmp_path / "copies")}.items():
        monkeypatch.setenv(name, value)
    return s3.new_bucket()


@pytest.fixture(scope="session")
def registry() -> Iterator[SchemaRegistry]:
    """A running schema registry. Tests share it: take `registry.register()`."""
    from tests.servers.registry import SchemaRegistry

    with SchemaRegistry() as server:
        yield server


@pytest.fixture(scope="session")
def kafka() -> Iterator[KafkaBroker]:
    """A running Kafka broker. Tests share it: take `kafka.new_topic()`, and start one of your own to kill it."""
    from tests.servers.kafka import KafkaBroker

    broker = KafkaBroker()
    try:
        yield broker.start()
    finally:
        broker.remove()


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The Spark session of the run: two cores, Delta, the Kafka source; the network interface is loopback."""
    from pyspark.sql import SparkSession

    from rollup.archive import QUICK, java_options
    from rollup.jars import spark_jars_option
    from rollup.java import use_java

    use_java()
    os.environ["PYSPARK_PYTHON"] = sys.executable  # the workers' Python, whatever `python3` is on the PATH
    home = tmp_path_factory.mktemp("spark")
    settings = {
        "spark.jars": spark_jars_option(),
        "spark.sql.extensions": "io.delta.sql.DeltaSparkSessionExtension",
        "spark.sql.catalog.spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
        "spark.sql.shuffle.partitions": "2",
        "spark.databricks.delta.snapshotPartitions": "1",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.warehouse.dir": str(home / "warehouse"),
        "spark.local.dir": str(home / "local"),
        "spark.driver.memory": "2g",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        # As for a short job: the second compiler and the loading of classes take more than most tests.
        "spark.driver.extraJavaOptions": f"-Dderby.system.home={home} -Duser.timezone=UTC {QUICK} {java_options()}",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }
    builder = SparkSession.builder.master("local[2]").appName("rollup-tests")
    for name, value in settings.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    yield session
    session.stop()
