"""Several topics as one stream: each message once, at its own place, whatever topic it is of and whenever that was named."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from concurrent.futures import Future
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka import TopicCollection, Uuid
from structlog.testing import capture_logs

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, RollupError, StoreError
from rollup.hosts.spark.watching.failures import cause
from rollup.program import compile_app
from rollup.sources.kafka import Kafka
from rollup.sources.topics import identity, notes
from rollup.sources.topics.ranges import Range, Topics, planned
from tests.job.jobs import Job
from tests.job.test_topics import made_anew

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker

STREAM = "define stream S (k string, v long, origin string, part long);"
NOW = 1_700_000_000_000


def source(**options: Any) -> Kafka:
    return Kafka(compile_app(STREAM).streams["S"], {"kind": "kafka", "servers": "none:1", **options})


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "lacks `topic`"),
        ({"topics": []}, "lacks `topic`"),
        ({"topic": "a", "topics": ["b"]}, "has `topic` and `topics`"),
        ({"topics": ["a", "b", "a"]}, "names a topic twice"),
        ({"topics": ["a", "b"], "partitions": 7}, "has `topics` and `partitions`"),
        ({"topics": ["a", "b"], "read": "spark"}, "topics are read by tasks"),
        ({"topic_pattern": "a.*", "read": "spark"}, "topics are read by tasks"),
        ({"topic_pattern": "a.*", "topics": ["b"]}, "has `topics` and `topic_pattern`"),
        ({"topic_pattern": "a(", "topics": ["b"]}, "has `topics` and `topic_pattern`"),
        ({"topic_pattern": "a.*", "partitions": 7}, "has `topic_pattern` and `partitions`"),
        ({"topic_pattern": "a("}, r"topic_pattern is 'a\(', which is no regular expression"),
    ],
)
def test_what_names_no_topics_is_refused_before_anything_begins(options: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        source(**options).check()


def log(folder: Path, entry: str, offsets: Mapping[str, Mapping[str, int]]) -> None:
    path = folder / entry
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("v1\n{}\n" + json.dumps(offsets))


def test_a_batch_has_ranges_of_each_topic_and_one_that_is_new_begins_at_0(tmp_path: Path) -> None:
    log(tmp_path, "sources/0/0", {"a": {"0": 3}, "b": {"0": 5}})
    log(tmp_path, "offsets/0", {"a": {"0": 9}, "b": {"0": 6}})
    log(tmp_path, "offsets/1", {"a": {"0": 9, "1": 2}, "b": {"0": 8}, "c": {"2": 4}})
    both, all_three = Topics(("a", "b"), 1024), Topics(("a", "b", "c"), 1024)
    assert planned(tmp_path, 0, both) == [Range(0, 3, 9), Range(1024, 5, 6)]
    assert planned(tmp_path, 1, all_three) == [Range(1, 0, 2), Range(1024, 6, 8), Range(2050, 0, 4)]
    log(tmp_path, "offsets/1", {"a": {"0": 9}, "b": {"0": 4}})
    with pytest.raises(StoreError, match="topic b ends before what batch 1 begins with"):
        planned(tmp_path, 1, both)
    log(tmp_path, "offsets/1", {"a": {"0": 9}, "b": {"0": 8, "1024": 4}})
    with pytest.raises(StoreError, match="topic b has a partition 1024, and there is room for 1024 of each"):
        planned(tmp_path, 1, Topics(("a", "b"), 1024))


def test_events_have_their_topic_and_letters_their_place() -> None:
    origin = source(topics=["a", "b"], message={"origin": "topic", "part": "partition"})
    values = [b'{"k": "x", "v": 1}', b'{"k": "x", "v": 2}', b'{"k": "x", "v": "many"}', b"none"]
    columns = {
        "value": pa.array(values, pa.binary()),
        "timestamp": pa.array([NOW] * 4, pa.int64()),
        "kafka_partition": pa.array([3, 1027, 1027, 3], pa.int32()),
        "kafka_offset": pa.array([7, 7, 8, 8], pa.int64()),
    }
    engine, events, dead = ColumnEngine(threads=1), list[dict[str, Any]](), list[dict[str, Any]]()
    for part in origin.parts(engine, pa.table(columns)):
        events += engine.run(f"FROM {part.view}").to_pylist()
        dead += part.dead.to_pylist()
    assert len({each["__arrival"] for each in events}) == 2
    assert sorted((each["v"], each["origin"], each["part"]) for each in events) == [(1, "a", 3), (2, "b", 3)]
    assert sorted(each["position"] for each in dead) == ["a:3:8", "b:3:8"]


def test_topics_keep_their_order_and_more_stand_behind_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "EVERY", 0.0)
    known = {"a": 1, "b": 2, "c": 3}

    class Broker:
        def describe_topics(self, asked: TopicCollection, **_: Any) -> dict[str, Future[Any]]:
            answers = {name: Future[Any]() for name in known}
            for name, answer in answers.items():
                answer.set_result(SimpleNamespace(topic_id=Uuid(0, known[name])))
            return answers

    monkeypatch.setattr(identity, "_client", lambda _: Broker())
    for topics in (["a", "b"], ["a", "b"], ["a", "b", "c"]):
        identity.refuse_others(tmp_path, topics, {})
    with pytest.raises(StoreError, match="is also that of topic c, and the source no longer names it"):
        identity.refuse_others(tmp_path, ["a", "b"], {})
    with pytest.raises(StoreError, match="is that of topic a, and the source names b"):
        identity.refuse_others(tmp_path, ["b", "a", "c"], {})
    known["b"] = 9
    with pytest.raises(StoreError, match="topic b was made anew"):
        identity.refuse_others(tmp_path, ["a", "b", "c"], {})


def test_topics_of_a_pattern_keep_the_places_at_which_they_were_met(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(identity, "topic_id", lambda *_: None)
    options: Mapping[str, Any] = {"topic_pattern": "[a-z]"}
    topics = Topics.of("S", options, 256)
    log(tmp_path, "sources/0/0", {})
    log(tmp_path, "offsets/0", {"m": {"0": 9}})
    log(tmp_path, "offsets/1", {"c": {"1": 2}, "b": {"0": 1}, "m": {"0": 9}})
    log(tmp_path, "offsets/2", {"a": {"0": 4}, "c": {"1": 3}, "m": {"0": 9}})
    found = list[tuple[tuple[str, ...], list[Range]]]()
    for batch in (0, 1, 2, 2, 1):
        known = identity.matched(topics, tmp_path, batch, {})
        found.append((known.names, planned(tmp_path, batch, known)))
    first, second, third, again, before = found
    assert first == (("m",), [Range(0, 0, 9)])
    assert second == (("m", "b", "c"), [Range(1024, 0, 1), Range(2049, 0, 2)])
    assert third == again == (("m", "b", "c", "a"), [Range(2049, 2, 3), Range(3072, 0, 4)])
    assert before[1] == second[1]
    assert notes.with_topics(options, tmp_path) == {"topics": ("m", "b", "c", "a")}
    assert notes.with_topics({"topic": "m"}, tmp_path) == {"topic": "m"}


@pytest.mark.spark
@pytest.mark.kafka
def test_a_job_reads_each_message_of_its_topics_once(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One topic at first, then another behind it; at last the first is made anew."""
    monkeypatch.setattr(identity, "EVERY", 0.0)
    one, two = kafka.new_topic(2), kafka.new_topic(1)
    app = f"{STREAM[:-2]}, ts long);\ndefine aggregation A from S select origin, sum(v) as total, count() as events group by origin aggregate by ts every sec ... day;"

    def job(**topics: Any) -> Job:
        options = {"kind": "kafka", "servers": kafka.bootstrap, "message": {"origin": "topic"}, "optional": ["part"]}
        return Job(tmp_path, {**options, **topics}, app=app, streams=("S",))

    def send(topic: str, partition: int, numbers: range) -> None:
        kafka.produce(
            topic, [json.dumps({"k": "x", "v": n, "ts": NOW}) for n in numbers] + ["none"], partition=partition
        )

    send(one, 0, range(10))
    job(topic=one).run(spark)
    send(one, 1, range(5))
    send(two, 0, range(20))
    both = job(topics=[one, two])
    both.run(spark)
    both.run(spark)
    question = "from A within '2023-**-** **:**:**' per 'days' select origin, total, events"
    found = {each["origin"]: (each["total"], each["events"]) for each in rollup_rows(both, question)}
    assert found == {one: (55, 15), two: (190, 20)}
    assert sorted(each["position"] for each in both.letters()) == sorted([f"{one}:0:10", f"{one}:1:5", f"{two}:0:20"])
    made_anew(kafka, two, 30)
    with pytest.raises(Exception) as stopped:
        both.run(spark)
    said = cause(stopped.value)
    assert isinstance(said, RollupError) and f"topic {two} was made anew" in str(said)


@pytest.mark.spark
@pytest.mark.kafka
def test_a_job_reads_the_topics_of_a_pattern_whenever_they_are_made(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """None at first; of three one is deleted, and one was named alone between."""
    monkeypatch.setattr(identity, "EVERY", 0.0)
    stem = kafka.new_topic(1)
    names = [f"{stem}-{end}" for end in ("z", "b", "a")]
    app = f"{STREAM[:-2]}, ts long);\ndefine aggregation A from S select origin, sum(v) as total, count() as events group by origin aggregate by ts every sec ... day;"
    options = {"kind": "kafka", "servers": kafka.bootstrap, "message": {"origin": "topic"}, "optional": ["part"]}
    pattern = {"topic_pattern": re.escape(stem) + "-.*"}

    def run(**topics: Any) -> dict[str, tuple[int, int]]:
        job = Job(tmp_path, {**options, **topics}, app=app, streams=("S",))
        job.run(spark)
        question = "from A within '2023-**-** **:**:**' per 'days' select origin, total, events"
        return {each["origin"]: (each["total"], each["events"]) for each in rollup_rows(job, question)}

    def send(topic: str, partition: int, numbers: range) -> None:
        kafka.produce(topic, [json.dumps({"k": "x", "v": n, "ts": NOW}) for n in numbers], partition=partition)

    with capture_logs() as said:
        assert run(**pattern) == {}
    assert [each["nearest"][0] for each in said if each["event"] == "no topic has such a name yet"] == [stem]
    kafka.create_topic(names[0], 2)
    send(names[0], 1, range(10))
    assert run(**pattern) == run(topic=names[0]) == {names[0]: (45, 10)}
    for name in names[1:]:
        kafka.create_topic(name, 1)
        send(name, 0, range(3))
    assert run(**pattern) == {names[0]: (45, 10), names[1]: (3, 3), names[2]: (3, 3)}
    kafka.delete_topic(names[2])
    send(names[0], 0, range(2))
    with capture_logs() as said:
        assert run(**pattern) == {names[0]: (46, 12), names[1]: (3, 3), names[2]: (3, 3)}
    gone = [each for each in said if each["event"] == "a topic is no longer there"]
    assert [(each["topic"], each["read_to"]) for each in gone] == [(names[2], {"0": 3})]


def rollup_rows(job: Job, question: str) -> list[dict[str, Any]]:
    import rollup

    return rollup.query(job.path, question).to_pylist()
