"""Messages that tasks read themselves are, field by field, those that Spark's Kafka source hands over.

Spark's own reader is the oracle, over a real broker: bytes that are no text, no value at all, messages of transactions
that were taken back. What is not there any more, or does not come, fails the read in bounded time.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import TopicCollection, TopicPartition, Uuid
from confluent_kafka.admin import AdminClient, NewPartitions
from hypothesis import given
from hypothesis import strategies as st

from rollup.cli.inspect import plan
from rollup.core.errors import ConfigError, RollupError, SourceError, StoreError
from rollup.hosts.spark.watching.failures import cause
from rollup.sources.kafka import Kafka
from rollup.sources.topics import identity, messages
from rollup.sources.topics.messages import MESSAGES, read
from rollup.sources.topics.ranges import Range, Topics, dealt, planned
from rollup.sources.topics.values import texts
from rollup.sources.topics.ways import Way, way
from tests.job.jobs import Job, answers
from tests.job.test_sources import GOOD, STREAM
from tests.profiles import examples

if TYPE_CHECKING:
    from confluent_kafka import Producer
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker

NOW = int(time.time() * 1000) - 60_000
PIECES = [b"a", b"{}", "é€😀".encode(), b"\0", b"\xff", b"\xc3", b"\xe2\x82", b"\xf0\x9f\x98", b"\x80", b"\xed\xa0\x80"]
PIECES += [b"\xc0\xaf", b"\xe0\x80\x80", b"\xf4\x90\x80\x80", b"\xf8\x88\x80\x80\x80", b'{"symbol": "\xf0\x28"}']
"""Text, and what is none: cut characters, surrogates, too long a form, beyond the last character."""


def nasty(seed: int, count: int) -> list[bytes | None]:
    """Values that are hard to take."""
    chance = random.Random(seed)
    made: list[bytes | None] = [None, b"", *PIECES]
    while len(made) < count:
        made.append(b"".join(chance.choices(PIECES, k=chance.randrange(1, 6))))
    return made


def options(broker: KafkaBroker, topic: str, **more: Any) -> dict[str, Any]:
    """A source's."""
    return {"kind": "kafka", "servers": broker.bootstrap, "topic": topic, **more}


def by_tasks(source: Mapping[str, Any], *ranges: Range) -> pa.Table:
    """What tasks read."""
    settings = way(source).settings
    assert settings is not None
    return ordered(read(ranges, source["topic"], settings))


def by_spark(spark: SparkSession, source: Mapping[str, Any], *ranges: Range) -> pa.Table:
    """What Spark hands over of the same offsets."""
    starts, ends = ({each.partition: each[at] for each in ranges} for at in (1, 2))
    frame = Kafka(STREAM, {**source, "read": "spark"}).between(spark, starts, ends)
    return ordered(frame.toArrow().select(MESSAGES.names).cast(MESSAGES))


def ordered(table: pa.Table) -> pa.Table:
    return table.sort_by([("kafka_partition", "ascending"), ("kafka_offset", "ascending")])


def ends(broker: KafkaBroker, topic: str, partitions: int) -> list[Range]:
    """All of a topic."""
    from confluent_kafka import Consumer

    # Uncommitted, or what stands behind a transaction whose end is not marked yet would not be counted.
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": "-", "isolation.level": "read_uncommitted"}
    consumer = Consumer(settings)
    try:
        found = [(p, *consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=10)) for p in range(partitions)]
    finally:
        consumer.close()
    return [Range(*each) for each in found]


def send(producer: Producer, topic: str, values: Sequence[bytes | None], partition: int) -> None:
    """With a key, a header and a timestamp each; some timestamps go back, one is the beginning of all time."""
    for number, value in enumerate(values):
        when = (1, NOW, NOW - number)[number % 3]
        producer.produce(topic, value, b"key", partition, timestamp=when, headers={"h": b"\xff"})
        producer.poll(0)


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("isolation", ["read_uncommitted", "read_committed"])
@pytest.mark.few(1)
def test_tasks_read_what_spark_hands_over(spark: SparkSession, kafka: KafkaBroker, isolation: str) -> None:
    topic = kafka.new_topic(partitions=3)
    for codec, partition in (("none", 0), ("zstd", 1), ("lz4", 0), ("snappy", 1), ("gzip", 2)):
        producer = kafka.producer(compression_codec=codec)
        send(producer, topic, nasty(partition, 60), partition)
        assert producer.flush(30) == 0
    producer = kafka.producer(transactional_id=f"{topic}-x")
    producer.init_transactions(30)
    for number, kept in enumerate((True, False, True, False)):
        producer.begin_transaction()
        send(producer, topic, nasty(number, 40), number % 3)
        assert producer.flush(30) == 0  # what is aborted is in the topic
        producer.commit_transaction(30) if kept else producer.abort_transaction(30)
    source = options(kafka, topic, options={"kafka.isolation.level": isolation})
    whole = ends(kafka, topic, 3)
    found = by_tasks(source, *whole)
    assert found.schema == MESSAGES
    taken_back = 80 if isolation == "read_committed" else 0
    assert found.num_rows == 60 * 5 + 40 * 4 - taken_back < sum(each.end - each.start for each in whole)
    assert found.to_pylist() == by_spark(spark, source, *whole).to_pylist()
    inner = [Range(p, 7 + p, end - 9) for p, _, end in whole]
    assert by_tasks(source, *inner).to_pylist() == by_spark(spark, source, *inner).to_pylist()


@examples(100)
@given(st.lists(st.one_of(st.none(), st.binary(max_size=8), st.text(max_size=4).map(str.encode)), max_size=20))
def test_values_are_texts_where_python_can_read_them(values: list[bytes | None]) -> None:
    raw, readable = texts(pa.array(values, pa.binary()))
    assert raw.to_pylist() == [None if each is None else each.decode(errors="replace") for each in values]
    assert readable.to_pylist() == [
        each is not None and each == each.decode(errors="ignore").encode() for each in values
    ]


@pytest.mark.kafka
def test_a_range_in_pieces_is_the_range(kafka: KafkaBroker) -> None:
    topic = kafka.new_topic()
    producer = kafka.producer()
    send(producer, topic, [b"%d" % number for number in range(40_000)], 0)
    assert producer.flush(30) == 0
    source = options(kafka, topic)
    whole = by_tasks(source, Range(0, 0, 40_000))
    assert gc.isenabled(), "as it was before"
    assert whole["value"].to_pylist() == [b"%d" % number for number in range(40_000)]
    cuts = [0, 1, 2, 700, 20_001, 39_999, 40_000]
    pieces = [by_tasks(source, Range(0, low, high)) for low, high in pairwise(cuts)]
    assert pa.concat_tables(pieces).to_pylist() == whole.to_pylist()


# What is not there


@pytest.mark.kafka
def test_offsets_that_retention_has_removed_fail_the_read(kafka: KafkaBroker) -> None:
    topic = kafka.new_topic()
    kafka.produce(topic, [b"{}"] * 20, partition=0)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    (removed,) = admin.delete_records([TopicPartition(topic, 0, 5)]).values()
    removed.result(30)
    source = options(kafka, topic)
    with pytest.raises(SourceError, match=f"partition 0 of topic {topic} from offset 0 to 20: the topic no longer has"):
        by_tasks(source, Range(0, 0, 20))
    assert by_tasks(source, Range(0, 5, 20)).num_rows == 15


@pytest.mark.kafka
def test_offsets_that_do_not_come_fail_the_read_in_time(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "PATIENCE", 0.5)
    topic = kafka.new_topic()
    kafka.produce(topic, [b"{}"] * 20, partition=0)
    with pytest.raises(SourceError, match=r"from offset 20 to 21: nothing has come for 0\.5 s"):
        by_tasks(options(kafka, topic), Range(0, 0, 21))
    with pytest.raises(SourceError, match="from offset 30 to 31: the topic no longer has"):
        by_tasks(options(kafka, topic), Range(0, 30, 31))
    with pytest.raises(SourceError, match="no-such-topic"):
        by_tasks(options(kafka, "no-such-topic"), Range(0, 0, 1))


@pytest.mark.kafka
@pytest.mark.parametrize("sign", [signal.SIGSTOP, signal.SIGKILL])
def test_a_broker_that_hangs_or_is_gone_fails_the_read_in_time_and_the_next_one_goes_on(
    kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch, sign: signal.Signals
) -> None:
    topic = kafka.new_topic()
    kafka.produce(topic, [b"{}"] * 20, partition=0)
    source = options(kafka, topic)
    assert by_tasks(source, Range(0, 0, 10)).num_rows == 10
    assert kafka.pid is not None
    os.kill(kafka.pid, sign)
    try:
        monkeypatch.setattr(messages, "PATIENCE", 0.5)
        with pytest.raises(SourceError, match=r"from offset 10 to 20: nothing has come for 0\.5 s"):
            by_tasks(source, Range(0, 10, 20))
    finally:
        if sign is signal.SIGSTOP and kafka.pid is not None:
            os.kill(kafka.pid, signal.SIGCONT)
        monkeypatch.undo()
        kafka.start()
    assert by_tasks(source, Range(0, 10, 20)).num_rows == 10


@pytest.mark.spark
@pytest.mark.kafka
def test_a_job_whose_next_offsets_are_gone_says_so_and_counts_nothing(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollup.hosts.spark.patience.WAITS", (0.1,))
    topic = kafka.new_topic()
    kafka.produce(topic, [json.dumps(GOOD)] * 10, partition=0)
    job = Job(tmp_path, options(kafka, topic))
    job.run(spark)
    kafka.produce(topic, [json.dumps(GOOD)] * 10, partition=0)
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    (removed,) = admin.delete_records([TopicPartition(topic, 0, 15)]).values()
    removed.result(30)
    with pytest.raises(Exception) as stopped:
        job.run(spark)
    found = cause(stopped.value)
    assert isinstance(found, RollupError)
    assert f"partition 0 of topic {topic} from offset 10 to 20: the topic no longer has all of that" in str(found)
    assert answers(job.conf, "events", per="years") == [(10,)]


def made_anew(broker: KafkaBroker, topic: str, *messages: int) -> None:
    """Delete a topic and make it again, with so many messages in each partition."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap})
    admin.delete_topics([topic])[topic].result(30)
    deadline = time.monotonic() + 30
    while topic in admin.list_topics(timeout=10).topics:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    broker.create_topic(topic, partitions=len(messages))
    for partition, count in enumerate(messages):
        broker.produce(topic, [json.dumps(GOOD)] * count, partition=partition)


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("messages", [(3, 3), (12,), (12, 3)], ids=["shorter", "a partition less", "longer"])
@pytest.mark.few(1)
def test_a_topic_that_was_made_anew_ends_the_job_with_what_to_do_and_nothing_of_it_counts(
    tmp_path: Path,
    spark: SparkSession,
    kafka: KafkaBroker,
    monkeypatch: pytest.MonkeyPatch,
    messages: tuple[int, ...],
) -> None:
    monkeypatch.setattr(identity, "EVERY", 0.0)
    topic = kafka.new_topic(partitions=2)
    kafka.produce(topic, [json.dumps(GOOD)] * 10, partition=0)
    job = Job(tmp_path, options(kafka, topic))
    job.run(spark)
    made_anew(kafka, topic, *messages)
    with pytest.raises(Exception) as stopped:
        job.run(spark)
    said = cause(stopped.value)
    assert isinstance(said, RollupError)
    assert re.search("was made anew since it was read|no longer has what is to be read of it", str(said)), said
    assert re.search(r"remove .*checkpoint", str(said)), said
    assert answers(job.conf, "events", per="years") == [(10,)]
    shutil.rmtree(job.conf.checkpoint / "Trades")
    job.run(spark)
    assert answers(job.conf, "events", per="years") == [(sum(messages),)], (
        "those of the old one were all in open buckets"
    )


def test_another_topic_is_told_from_one_that_was_made_anew_and_an_old_broker_tells_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "EVERY", 0.0)

    class Broker:
        id = Uuid(0, 0)

        def describe_topics(self, asked: TopicCollection, **_: Any) -> dict[str, Future[Any]]:
            answer = Future[Any]()
            answer.set_result(SimpleNamespace(topic_id=self.id))
            return dict.fromkeys(("a", "b"), answer)

    monkeypatch.setattr(identity, "_client", lambda _: Broker())
    identity.refuse_others(tmp_path, ["a"], {})  # of a broker that knows no ids
    Broker.id = Uuid(1, 2)
    identity.refuse_others(tmp_path, ["a"], {})
    with pytest.raises(StoreError, match="is that of topic a, and the source names b"):
        identity.refuse_others(tmp_path, ["b"], {})
    Broker.id = Uuid(1, 3)
    with pytest.raises(StoreError, match="topic a was made anew"):
        identity.refuse_others(tmp_path, ["a"], {})


@pytest.mark.spark
@pytest.mark.kafka
def test_a_topic_is_begun_at_a_time(tmp_path: Path, spark: SparkSession, kafka: KafkaBroker) -> None:
    topic = kafka.new_topic(partitions=2)
    old, new = NOW - 86_400_000, NOW
    kafka.produce(topic, [json.dumps(GOOD)] * 10, partition=0, timestamp=old)
    kafka.produce(topic, [json.dumps(GOOD)] * 3, partition=0, timestamp=new)
    kafka.produce(topic, [json.dumps(GOOD)] * 10, partition=1, timestamp=old)
    since = datetime.fromtimestamp((NOW - 1000) / 1000, UTC).isoformat()
    job = Job(tmp_path, options(kafka, topic, starting_offsets=since), top='trigger = "0 seconds"')
    job.run(spark)
    assert answers(job.conf, "events", per="years") == [(3,)]
    kafka.produce(topic, [json.dumps(GOOD)] * 2, partition=1, timestamp=old)
    job.run(spark)
    assert answers(job.conf, "events", per="years") == [(5,)], "what comes later is read, whatever its time"


@pytest.mark.parametrize("start", ["erliest", "2018-01-05 12:00:00", "yesterday", "1515153600000"])
def test_a_start_that_is_none_is_refused_before_anything_begins(start: str) -> None:
    source = Kafka(STREAM, {"kind": "kafka", "servers": "a:1", "topic": "t", "starting_offsets": start})
    with pytest.raises(ConfigError, match=rf"starting_offsets is '{start}'.*a time with its offset"):
        source.check()


@pytest.mark.spark
@pytest.mark.kafka
def test_partitions_that_are_added_are_read_from_their_start(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker
) -> None:
    topic = kafka.new_topic()
    kafka.produce(topic, [json.dumps(GOOD)] * 10, partition=0)
    source = options(kafka, topic, options={"kafka.metadata.max.age.ms": "1000"})
    job = Job(tmp_path, source, top='trigger = "0 seconds"')

    def add(partitions: int) -> None:
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
        admin.create_partitions([NewPartitions(topic, partitions)])[topic].result(30)
        kafka.produce(topic, [json.dumps(GOOD)] * 10, partition=partitions - 1)

    job.run(spark)
    add(2)
    job.run(spark)
    assert answers(job.conf, "events", per="years") == [(20,)]
    add(3)
    added = list[int]()

    def all_there() -> bool:
        found = sum(n for (n,) in answers(job.conf, "events", per="years"))
        if found == 30 and not added:
            added.append(4)
            add(4)  # while it runs
        return found == 40

    job.run_until(spark, all_there, seconds=120)
    assert job.letters() == []


# Which way


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({"kafka.fetch.max.bytes": 1000, "kafka.receive.buffer.bytes": -1}, {}),
        ({"KAFKA.Check.CRCs": False}, {"check.crcs": "false"}),
        (
            {"kafka.request.timeout.ms": "900000", "kafka.isolation.level": "read_committed"},
            {"isolation.level": "read_committed"},
        ),
        ({"kafka.group.id": "mine"}, {"group.id": "mine"}),
        ({"groupIdPrefix": "ours"}, {"group.id": "ours-tasks"}),
        ({"kafka.security.protocol": "PLAINTEXT", "minPartitions": 9, "failOnDataLoss": True}, {}),
        ({"kafka.max.poll.records": 9}, {}),
    ],
)
def test_options_of_sparks_source_are_taken_over(given: dict[str, Any], wanted: dict[str, str]) -> None:
    plain = way({"servers": "s:1"}).settings
    found = way({"servers": "s:1", "options": given}).settings
    assert plain is not None and found == {**plain, **wanted}
    from confluent_kafka import Consumer

    Consumer(dict(found)).close()  # which takes no setting that it does not know


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("kafka.sasl.jaas.config", "x"),
        ("kafka.security.protocol", "SASL_SSL"),
        ("kafka.ssl.truststore.location", "/t.jks"),
        ("failOnDataLoss", False),
        ("kafka.bootstrap.servers", "elsewhere:1"),
        ("subscribePattern", "x.*"),
        ("kafka.interceptor.classes", "x"),
    ],
)
def test_a_topic_with_an_option_that_tasks_cannot_take_is_read_by_spark(name: str, value: Any) -> None:
    source = {"kind": "kafka", "servers": "s:1", "topic": "t", "options": {name: value}}
    assert way(source) == Way(None, f"tasks cannot take its option {name}")
    with pytest.raises(ConfigError, match=f'read is "tasks": tasks cannot take its option {name}'):
        Kafka(STREAM, {**source, "read": "tasks"}).check()
    Kafka(STREAM, source).check()


def test_the_plan_says_who_reads_a_topic_and_why(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = {"kind": "kafka", "servers": "s:1", "topic": "t"}
    for more, said in (
        ({}, "tasks read the messages"),
        ({"read": "spark"}, 'Spark reads the messages: `read = "spark"`'),
        (
            {"options": {"kafka.ssl.truststore.location": "/t"}},
            "Spark reads the messages: tasks cannot take its option kafka.ssl.truststore.location",
        ),
    ):
        plan(Job(tmp_path, {**source, **more}).path)
        assert f"stream Trades from kafka: {said}\n" in capsys.readouterr().out


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.slow
def test_a_topic_that_spark_reads_gives_the_same_rows_and_letters(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker
) -> None:
    topic, found = kafka.new_topic(partitions=2), list[Any]()
    producer = kafka.producer()
    send(producer, topic, nasty(5, 30), 0)
    send(producer, topic, [json.dumps(GOOD | {"symbol": f"é{n}"}).encode() for n in range(9)], 1)
    assert producer.flush(30) == 0
    for who in ("spark", "tasks"):
        (tmp_path / who).mkdir()
        job = Job(tmp_path / who, options(kafka, topic, read=who, max_events_per_batch=16))
        job.run(spark)
        letters = [{**letter, "query": None} for letter in job.letters()]
        found.append((answers(job.conf, "symbol, total, events", per="years"), letters))
    assert found[0] == found[1]
    assert len(found[0][0]) == 9 and len(found[0][1]) >= 29


# Which offsets


@examples(50)
@given(st.lists(st.integers(1, 1000), max_size=20), st.integers(1, 6))
def test_every_range_is_dealt_once_and_no_task_has_much_more_than_its_share(sizes: list[int], tasks: int) -> None:
    ranges = [Range(partition, 5, 5 + size) for partition, size in enumerate(sizes)]
    found = [Range(*row.values()) for row in dealt(ranges, tasks).to_pylist()]
    assert sorted(found) == ranges
    count = min(tasks, len(found))
    slices = [found[at * len(found) // count : (at + 1) * len(found) // count] for at in range(count)]
    loads = [sum(each.end - each.start for each in one) for one in slices]
    if len(set(sizes)) == 1 and loads:
        assert max(loads) - min(loads) <= sizes[0]


def log(folder: Path, entry: str, **partitions: int) -> None:
    """An entry of a query's log, as Spark writes it."""
    path = folder / entry
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('v1\n{"batchWatermarkMs":0}\n' + json.dumps({"t": partitions}))


def test_a_batch_goes_from_the_end_of_the_one_before_and_new_partitions_begin_at_0(tmp_path: Path) -> None:
    log(tmp_path, "sources/0/0", **{"0": 3, "1": 0})
    log(tmp_path, "offsets/0", **{"0": 9, "1": 0})
    log(tmp_path, "offsets/1", **{"0": 9, "1": 4, "2": 2})
    assert planned(tmp_path, 0, Topics(("t",), 256)) == [Range(0, 3, 9)]
    assert planned(tmp_path, 1, Topics(("t",), 256)) == [Range(1, 0, 4), Range(2, 0, 2)]


def test_a_log_that_does_not_say_what_a_batch_has_is_refused(tmp_path: Path) -> None:
    log(tmp_path, "offsets/0", **{"0": 9})
    with pytest.raises(StoreError, match="does not say what batch 0 has"):
        planned(tmp_path, 0, Topics(("t",), 256))
    for partitions in ({"0": 10}, {"0": -2}, {"0": 1, "1": 1}):
        log(tmp_path, "sources/0/0", **partitions)
        with pytest.raises(StoreError, match="topic t ends before what batch 0 begins with"):
            planned(tmp_path, 0, Topics(("t",), 256))
    log(tmp_path, "sources/0/0", **{"0": 1})
    assert planned(tmp_path, 0, Topics(("t",), 256)) == [Range(0, 1, 9)]
    with pytest.raises(StoreError, match="are no offsets of topic u"):
        planned(tmp_path, 0, Topics(("u",), 256))
