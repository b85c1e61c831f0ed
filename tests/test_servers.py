"""The servers the other tests lean on are real and behave: when one of these fails, look here before anywhere else.

They talk to each server through a client that is not ours, so that a fault of ours cannot hide in both ends.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg2
import pytest
import sqlalchemy
from confluent_kafka import Consumer

from rollup.core.errors import ConfigError, StoreError
from rollup.java import java_home, java_version
from rollup.stores.postgres.server import PgServer
from tests.servers.kafka import KafkaBroker
from tests.servers.postgres import PostgresServer

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def _rows(dsn: str, sql: str) -> list[tuple[object, ...]]:
    connection = psycopg2.connect(dsn)
    try:
        with connection, connection.cursor() as cursor:
            cursor.execute(sql)
            return cursor.fetchall() if cursor.description else []
    finally:
        connection.close()


def _consume(broker: KafkaBroker, topic: str, count: int) -> list[bytes | None]:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": topic, "auto.offset.reset": "earliest"}
    consumer = Consumer(settings)
    consumer.subscribe([topic])
    try:
        return [message.value() for message in consumer.consume(count, timeout=30)]
    finally:
        consumer.close()


def _fake_java(home: Path, version: str) -> Path:
    java = home / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f"#!/bin/sh\necho 'openjdk version \"{version}\"' >&2\n")
    java.chmod(0o755)
    return home


@pytest.fixture
def fresh_search() -> Iterator[None]:
    """The search for Java starts anew, in the test and after it."""
    java_home.cache_clear()
    yield
    java_home.cache_clear()


@pytest.mark.usefixtures("fresh_search")
def test_a_java_too_old_is_passed_over_for_a_newer_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old, new = _fake_java(tmp_path / "old", "1.8.0_402"), _fake_java(tmp_path / "new", "21.0.4")
    monkeypatch.setenv("JAVA_HOME", str(old))
    monkeypatch.setenv("PATH", f"{new / 'bin'}:/bin:/usr/bin")
    assert java_version(old / "bin" / "java") == 8
    assert java_home() == new


@pytest.mark.usefixtures("fresh_search")
def test_without_any_java_the_error_names_the_places_tried(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    with pytest.raises(ConfigError, match=r"no Java 17 or newer; tried .*nowhere \(no working Java\)"):
        java_home()


@pytest.mark.postgres
def test_postgres_creates_inserts_and_selects(postgres: PostgresServer) -> None:
    dsn = postgres.new_database()
    _rows(dsn, "CREATE TABLE t (a int PRIMARY KEY, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y')")
    assert _rows(dsn, "SELECT a, b FROM t ORDER BY a") == [(1, "x"), (2, "y")]
    assert _rows(dsn, "SHOW server_version")[0][0].startswith("18")  # type: ignore[attr-defined]


@pytest.mark.postgres
def test_postgres_answers_sqlalchemy_under_its_url(postgres: PostgresServer) -> None:
    engine = sqlalchemy.create_engine(postgres.url)
    with engine.connect() as connection:
        assert connection.execute(sqlalchemy.text("SELECT 40 + 2")).scalar_one() == 42
    engine.dispose()


@pytest.mark.postgres
def test_postgres_refuses_a_wrong_password(postgres: PostgresServer) -> None:
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(postgres.dsn.replace(postgres.password, "wrong"))


@pytest.mark.postgres
def test_postgres_keeps_committed_rows_over_kill_9() -> None:
    server = PostgresServer()
    try:
        dsn = server.start().dsn
        _rows(dsn, "CREATE TABLE t (a int); INSERT INTO t VALUES (7)")
        server.kill9()
        assert server.pid is None
        server.restart()
        assert _rows(server.dsn, "SELECT a FROM t") == [(7,)]
        assert server.dsn == dsn, "a restart keeps port and password"
    finally:
        server.remove()


@pytest.mark.postgres
def test_a_second_server_over_one_folder_is_refused() -> None:
    server = PostgresServer()
    try:
        server.start()
        with pytest.raises(StoreError, match="belongs to another running process"):
            PgServer(server.base).start()
        assert server.pid is not None
    finally:
        server.remove()


@pytest.mark.postgres
def test_a_server_whose_owner_was_killed_is_ended_before_the_next_starts() -> None:
    server = PostgresServer()
    heir = PgServer(server.base)
    try:
        server.start()
        _rows(server.dsn, "CREATE TABLE t (a int); INSERT INTO t VALUES (7)")
        assert server._lock is not None and server._process is not None
        server._lock.close()  # what the system does when the owner dies
        heir.start()
        assert _rows(heir.dsn, "SELECT a FROM t") == [(7,)]
        assert server._process.wait(timeout=10) == 0, "the left-over server ended cleanly"
    finally:
        heir.stop()
        server.remove()


@pytest.mark.kafka
def test_kafka_gives_back_in_order_what_was_produced_to_a_partition(kafka: KafkaBroker) -> None:
    topic = kafka.new_topic()
    kafka.produce(topic, [f"value {i}" for i in range(100)])
    assert _consume(kafka, topic, 100) == [f"value {i}".encode() for i in range(100)]


@pytest.mark.kafka
@pytest.mark.slow
def test_kafka_keeps_acknowledged_messages_over_kill_9() -> None:
    with KafkaBroker() as broker:
        topic = broker.new_topic()
        broker.produce(topic, ["before"])
        broker.kill9()
        assert broker.pid is None
        broker.start()
        broker.produce(topic, ["after"])
        assert _consume(broker, topic, 2) == [b"before", b"after"]


@pytest.mark.spark
@pytest.mark.slow
def test_spark_writes_merges_and_reads_a_delta_table(spark: SparkSession, tmp_path: Path) -> None:
    table = str(tmp_path / "t")
    spark.range(5).selectExpr("id", "id * 10 AS v").write.format("delta").save(table)
    spark.range(3, 7).createOrReplaceTempView("newer")
    spark.sql(
        f"MERGE INTO delta.`{table}` t USING newer n ON t.id = n.id "
        "WHEN MATCHED THEN UPDATE SET v = -1 WHEN NOT MATCHED THEN INSERT (id, v) VALUES (n.id, 0)"
    )
    rows = [(row.id, row.v) for row in spark.read.format("delta").load(table).orderBy("id").collect()]
    assert rows == [(0, 0), (1, 10), (2, 20), (3, -1), (4, -1), (5, 0), (6, 0)]


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_spark_streams_from_kafka_to_delta(spark: SparkSession, kafka: KafkaBroker, tmp_path: Path) -> None:
    topic = kafka.new_topic(partitions=2)
    kafka.produce(topic, ["a", "b"], partition=0)
    kafka.produce(topic, ["c"], partition=1)
    options = {"kafka.bootstrap.servers": kafka.bootstrap, "subscribe": topic, "startingOffsets": "earliest"}
    source = spark.readStream.format("kafka").options(**options).load()
    query = (
        source.selectExpr("partition", "offset", "CAST(value AS STRING) AS value")
        .writeStream.format("delta")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start(str(tmp_path / "table"))
    )
    assert query.awaitTermination(120), "the query reads what is there and ends"
    rows = spark.read.format("delta").load(str(tmp_path / "table")).orderBy("partition", "offset").collect()
    assert [tuple(row) for row in rows] == [(0, 0, "a"), (0, 1, "b"), (1, 0, "c")]
