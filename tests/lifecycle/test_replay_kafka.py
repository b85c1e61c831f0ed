"""Replay and verification from a Kafka topic as the raw source, on a real broker: offsets found by time, what a broker
has deleted, and which messages the job has taken are things that only a broker and Spark's own log can say."""

from __future__ import annotations

import json
import random
import threading
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from rollup.lifecycle.replay.compare import readable
from rollup.sources.kafka_offsets import offsets
from rollup.sources.topics.ranges import Topics
from tests.job.jobs import Job
from tests.job.test_debezium import APP as CHANGES
from tests.job.test_debezium import START, Table, asked, in_json
from tests.lifecycle.filejob import APP, MIDNIGHT
from tests.lifecycle.opened import Opened, commands, everything, spoil

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker

pytestmark = [pytest.mark.spark, pytest.mark.kafka]
Cli = Callable[..., tuple[int, str]]
HOUR = 3_600_000
STEP = 5 * 60_000
EVENTS = 700
"""Two and a half days of events, one each five minutes."""
LATE = 20 * 60_000


def send(broker: KafkaBroker, topic: str, numbers: range, partitions: int = 2, seed: int = 1) -> list[dict[str, Any]]:
    """Events that happen every five minutes and reach the broker at once, some of them up to 20 minutes late."""
    chance, producer, sent = random.Random(seed), broker.producer(), list[dict[str, Any]]()
    for i in numbers:
        stamp = MIDNIGHT + i * STEP
        event = {
            "symbol": f"s{i % 3}",
            "price": i % 32 / 4,
            "quantity": i,
            "ts": stamp - chance.choice([0, 0, 0, LATE]),
        }
        sent.append(event)
        producer.produce(topic, json.dumps(event), partition=chance.randrange(partitions), timestamp=stamp)
    assert producer.flush(30) == 0
    return sent


def job_of(folder: Path, broker: KafkaBroker, topic: str, policy: str = "@OutOfOrder('correct') ", **more: Any) -> Job:
    """A job over a topic."""
    folder.mkdir(exist_ok=True)
    options = {"kind": "kafka", "servers": broker.bootstrap, "topic": topic, **more}
    return Job(folder, options, app=APP.format(annotations=policy, extra=""))


def topic_of(broker: KafkaBroker, keep: int = -1) -> str:
    """A topic of two partitions that keeps messages for so many ms, as it stands for ever: those here are of 2018."""
    admin, name = AdminClient({"bootstrap.servers": broker.bootstrap}), f"kept-{uuid.uuid4().hex[:12]}"
    admin.create_topics([NewTopic(name, 2, 1, config={"retention.ms": str(keep)})])[name].result(timeout=30)
    return name


def delete(broker: KafkaBroker, topic: str, partition: int, before: int) -> None:
    """Let the broker forget messages, as retention does."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    for done in admin.delete_records([TopicPartition(topic, partition, before)]).values():
        done.result(timeout=30)


def runbook(rollup: Cli, folder: Path, word: str) -> list[str]:
    """Run the commands of a kind of block; what they said."""
    said = list[str]()
    for command, expected in commands("replay.md", word):
        placed = [str(folder / "job.toml") if a.endswith(".toml") else a for a in command[1:]]
        code, output = rollup(*(str(folder / a) if a == "archive" else a for a in placed))
        assert code == expected, f"{command}\n{output}"
        said.append(output)
    return said


@pytest.mark.slow
@pytest.mark.parametrize("by_pattern", [False, True])
def test_a_replay_reads_each_topic_of_several(
    by_pattern: bool, tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, rollup: Cli
) -> None:
    one, two = topic_of(kafka), topic_of(kafka)
    topics = {"topic_pattern": f"{one}|{two}"} if by_pattern else {"topics": [one, two]}
    options = {"kind": "kafka", "servers": kafka.bootstrap, **topics, "max_events_per_batch": 300}
    job = Job(tmp_path, options, app=APP.format(annotations="@OutOfOrder('correct') ", extra=""))
    send(kafka, one, range(0, EVENTS, 2))
    send(kafka, two, range(1, EVENTS, 2), partitions=1, seed=2)
    job.run(spark)
    before = everything(job.path)
    assert rollup("verify", job.path, "--raw")[0] == 0
    spoil(job.path, MIDNIGHT + 24 * HOUR, MIDNIGHT + 48 * HOUR)
    assert rollup("verify", job.path, "--raw")[0] == 1
    span = ("--from", readable(MIDNIGHT + 24 * HOUR), "--to", readable(MIDNIGHT + 48 * HOUR))
    assert rollup("replay", job.path, *span)[0] == 0
    assert everything(job.path) == before


@pytest.mark.slow
def test_a_replay_of_changes_takes_back_what_the_job_took_back(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, rollup: Cli
) -> None:
    topic, table, producer = topic_of(kafka), Table(4, in_json), kafka.producer()
    options = {"kind": "kafka", "servers": kafka.bootstrap, "topic": topic, "format": "debezium", "slack": "all"}
    job = Job(tmp_path, options, app=CHANGES, streams=("Orders",))
    for message in table.changes(300):
        producer.produce(topic, message, partition=0)
    assert producer.flush(30) == 0
    job.run(spark)
    before = asked(job)
    code, output = rollup("verify", job.path, "--raw")
    assert code == 0, output
    code, output = rollup(
        "replay", job.path, "--from", readable(START // HOUR * HOUR), "--to", readable(START + 24 * HOUR)
    )
    assert code == 0, output
    assert asked(job) == before


@pytest.mark.slow
def test_a_replay_from_a_topic_reads_offsets_by_time_and_brings_back_what_the_job_wrote(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, rollup: Cli
) -> None:
    topic = topic_of(kafka)
    job, conf = job_of(tmp_path, kafka, topic, max_events_per_batch=400), tmp_path / "job.toml"
    sent = send(kafka, topic, range(EVENTS))
    kafka.produce(topic, ['{"symbol": "no time", "price": 1, "quantity": 1}'], partition=1)
    job.run(spark)
    assert [letter["position"].split(":")[:2] for letter in job.letters()] == [[topic, "1"]]
    assert int(job.letters()[0]["position"].split(":")[2]) > 0, "an offset"
    before = everything(conf)
    assert rollup("verify", conf, "--raw")[0] == 0

    start = spoil(conf, MIDNIGHT + 24 * HOUR, MIDNIGHT + 48 * HOUR)
    code, output = rollup("verify", conf, "--raw", "--json")
    assert code == 1 and start in {json.loads(line)["start"] for line in output.splitlines()}
    said = runbook(rollup, tmp_path, "topic")
    assert "AGG_SUM_quantity" in said[0], "the dry run shows what would change"
    assert f"{26 * HOUR // STEP} events of" in said[1], "a day and an hour on each side"
    assert everything(conf) == before

    ends = next(event["ts"] for i, event in enumerate(sent) if i > 100 and event["ts"] < MIDNIGHT + i * STEP) + 1000
    code, output = rollup(
        "replay", conf, "--from", readable(ends - HOUR), "--to", readable(ends), "--slack", "10 minutes"
    )
    assert code == 2 and "the tables have" in output and "--slack all" in output, "a late event would be lost"

    for partition in range(2):  # as retention does
        delete(kafka, topic, partition, EVENTS // 4)
    code, output = rollup("verify", conf, "--raw")
    assert code == 2 and f"of topic {topic} no longer has all that this needs" in output
    (tmp_path / "archive").mkdir()
    (tmp_path / "archive" / "all.json").write_text("\n".join(map(json.dumps, sent)))
    said = runbook(rollup, tmp_path, "expired")
    assert "no longer has all that this needs" in said[0] and "choose a range from" in said[0]
    assert f"{EVENTS} events of 1 files" in said[-1]
    assert everything(conf) == before


def test_raw_verification_follows_the_batches_of_the_job_where_late_events_are_merged(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, rollup: Cli
) -> None:
    topic = topic_of(kafka)
    job = job_of(tmp_path, kafka, topic, policy="@BufferSize('120') ", max_events_per_batch=150)
    send(kafka, topic, range(300))
    job.run(spark)
    assert len(list((job.conf.checkpoint / "Trades" / "offsets").glob("[0-9]*"))) >= 2, "several batches"
    assert rollup("verify", job.path, "--raw") == (
        0,
        f"TradeAgg, commit {Opened.of(job.path).pipeline.number}: every level is right\n",
    )
    with offsets(spark, job.conf.sources["Trades"], Topics((topic,), 256)) as found:
        assert found.kept_since() is None, "it keeps all, so only a hand can have removed something"
        assert found.begin() == {0: 0, 1: 0} and sum(found.end().values()) == 300
        stamps = {partition: stamp for partition, (_, stamp) in found.at(MIDNIGHT + HOUR).items()}
        assert min(stamps.values()) == MIDNIGHT + HOUR
    spoil(job.path, MIDNIGHT, MIDNIGHT + 24 * HOUR)
    assert rollup("verify", job.path, "--raw")[0] == 1


@pytest.mark.slow
def test_a_topic_that_is_kept_by_time_has_lost_nothing_of_the_time_it_is_kept_for(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, rollup: Cli
) -> None:
    years = 40 * 366 * 24 * HOUR
    topic = topic_of(kafka, years)
    job = job_of(tmp_path, kafka, topic)
    send(kafka, topic, range(200))
    job.run(spark)
    before = everything(job.path)
    with offsets(spark, job.conf.sources["Trades"], Topics((topic,), 256)) as found:
        since = found.kept_since()
        assert since is not None and abs(time.time() * 1000 - years - since) < 60_000
    delete(kafka, topic, 0, 60)  # the broker would not; a partition that is rarely written to looks the same
    span = ("--from", readable(MIDNIGHT + 14 * HOUR), "--to", readable(MIDNIGHT + 15 * HOUR))
    code, output = rollup("replay", job.path, *span, "--slack", "1 hour")
    assert code == 0, output
    code, output = rollup("replay", job.path, "--from", "2018-01-01", "--to", "2018-01-02")
    assert code == 2 and "the tables have" in output, "what a hand has removed shows in the number of events"
    assert everything(job.path) == before


@pytest.mark.slow
def test_a_live_job_completes_a_replay_with_what_it_has_taken_since(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, rollup: Cli
) -> None:
    from rollup.hosts.reporting.progress import Reporter
    from rollup.lifecycle.job import Job as Live

    topic = topic_of(kafka)
    job, whole = job_of(tmp_path / "live", kafka, topic), job_of(tmp_path / "whole", kafka, topic)
    send(kafka, topic, range(200))
    job.run(spark)
    spoil(job.path, MIDNIGHT, MIDNIGHT + 24 * HOUR)
    live = Live(job.conf, spark, Reporter(terminal=False))
    working = threading.Thread(target=live.run)
    working.start()
    try:
        deadline = time.monotonic() + 60
        while not any((job.conf.tables / "_rollup" / "TradeAgg").glob("lease-*.json")):
            assert time.monotonic() < deadline
            time.sleep(0.1)
        send(kafka, topic, range(200, 300), seed=2)
        span = ("--from", readable(MIDNIGHT - HOUR), "--to", readable(MIDNIGHT + EVENTS * STEP))
        code, output = rollup("replay", job.path, *span, "--slack", "all")
        assert code == 0 and "is at work: the replay waits" in output and "replay is commit" in output
        while sum(row[3] for row in everything(job.path)["years"]) != sum(range(300)):
            assert time.monotonic() < deadline + 60
            time.sleep(0.5)
    finally:
        live.stop()
        working.join(60)
    whole.run(spark)
    assert everything(job.path) == everything(whole.path)
