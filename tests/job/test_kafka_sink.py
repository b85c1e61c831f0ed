"""What leaves to Kafka is acknowledged or an error: on a real broker, on one that is killed, and for a row it refuses."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pyarrow as pa
import pytest
from confluent_kafka import Consumer

from rollup.core.errors import StoreError
from rollup.sinks.base import Held
from rollup.sinks.kafka import KafkaSink
from tests.servers.kafka import KafkaBroker

pytestmark = pytest.mark.kafka


@pytest.fixture
def own() -> Iterator[KafkaBroker]:
    """A broker of this test's own, to kill."""
    broker = KafkaBroker()
    try:
        yield broker.start()
    finally:
        broker.remove()


def received(broker: KafkaBroker, topic: str, count: int) -> list[int]:
    """The values of `n` in a topic."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    try:
        found = consumer.consume(count, timeout=30)
        return [json.loads(message.value() or b"")["n"] for message in found]
    finally:
        consumer.close()


def rows(*numbers: int) -> pa.Table:
    return pa.table({"n": numbers})


@pytest.mark.slow
def test_rows_that_the_broker_did_not_take_are_an_error_and_are_not_sent_behind_those_that_come_after(
    own: KafkaBroker,
) -> None:
    topic = own.new_topic()
    sink = KafkaSink({"servers": own.bootstrap, "topic": topic, "timeout": 5})
    sink.write(rows(1, 2), "q", Held(2))
    own.kill9()
    with pytest.raises(StoreError, match=r"did not take rows 3 to 3 for topic t-\w+: .*\(the job's next start"):
        sink.write(rows(3), "q", Held(3))
    own.start()
    with pytest.raises(
        StoreError, match=r"^the sink for topic t-\w+ gave up, and does not take rows 4 to 4: .* rows 3 to 3 "
    ):
        sink.write(rows(4), "q", Held(4))
    again = KafkaSink({"servers": own.bootstrap, "topic": topic, "timeout": 30})
    again.write(rows(3), "q", Held(3))
    assert received(own, topic, 3) == [1, 2, 3]


def test_a_row_that_is_larger_than_a_message_may_be_is_an_error_and_no_start_sends_those_before_it_again(
    kafka: KafkaBroker,
) -> None:
    topic = kafka.new_topic()
    sink = KafkaSink({"servers": kafka.bootstrap, "topic": topic, "timeout": 10})
    said = r"row 2 for topic t-\w+ makes a message of 2,000,009 bytes, and the sink sends 1,000,000 at most"
    with pytest.raises(StoreError, match=said):
        sink.write(pa.table({"n": ["1", "x" * 2_000_000]}), "q", Held(2))
    with pytest.raises(StoreError, match=f"gave up, and does not take rows 3 to 3: {said}"):
        sink.write(rows(2), "q", Held(3))
    larger = {"message.max.bytes": 3_000_000}
    sink = KafkaSink({"servers": kafka.bootstrap, "topic": topic, "timeout": 10, "options": larger})
    with pytest.raises(StoreError, match=r"Message size too large \(let both take larger ones.*`max.message.bytes`"):
        sink.write(pa.table({"n": ["x" * 2_000_000]}), "q", Held(2))
    for number in range(1, 4):
        with pytest.raises(
            StoreError, match=rf"gave up, and does not take rows {number} to {number}: .* Message size too large \("
        ):
            sink.write(rows(2), "q", Held(number))
    KafkaSink({"servers": kafka.bootstrap, "topic": topic}).write(rows(1), "q", Held(1))  # as the next start does
    assert received(kafka, topic, 1) == [1], "and nothing before it"


def test_a_topic_that_is_not_there_is_named_with_what_to_do(kafka: KafkaBroker) -> None:
    options = {"topic.metadata.propagation.max.ms": 500}
    sink = KafkaSink({"servers": kafka.bootstrap, "topic": "no-such-topic", "timeout": 10, "options": options})
    with pytest.raises(StoreError, match=r"for topic no-such-topic: .* \(make the topic, or mend its name; the job's"):
        sink.write(rows(1), "q", Held(1))


def test_a_topic_that_is_deleted_is_named_also_where_only_time_ran_out(kafka: KafkaBroker) -> None:
    topic = kafka.new_topic()
    sink = KafkaSink({"servers": kafka.bootstrap, "topic": topic, "timeout": 3})
    sink.write(rows(1), "q", Held(1))
    kafka.delete_topic(topic)
    with pytest.raises(
        StoreError, match=r"for topic t-\w+: .*Unknown topic or partition \(make the topic, or mend its"
    ):
        sink.write(rows(2), "q", Held(3))


def test_a_batch_that_was_broken_off_closes_the_sink(kafka: KafkaBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = kafka.new_topic()
    sink = KafkaSink({"servers": kafka.bootstrap, "topic": topic, "options": {"linger.ms": 30_000}})
    with monkeypatch.context() as broken:
        broken.setattr(sink, "_messages", broken_off)
        with pytest.raises(KeyboardInterrupt):
            sink.write(rows(1), "q", Held(1))
    with pytest.raises(
        StoreError, match=r"gave up, .* rows 1 to 1 were not sent to the end: KeyboardInterrupt \(the job's"
    ):
        sink.write(rows(2), "q", Held(3))
    KafkaSink({"servers": kafka.bootstrap, "topic": topic}).write(rows(3), "q", Held(1))
    assert received(kafka, topic, 1) == [3], "and nothing that it still held"


def broken_off(*_: object) -> Iterator[tuple[None, bytes]]:
    yield None, b'{"n": 1}'
    raise KeyboardInterrupt


def test_more_rows_than_the_queue_of_the_client_holds_are_all_sent(kafka: KafkaBroker) -> None:
    topic = kafka.new_topic()
    sink = KafkaSink({"servers": kafka.bootstrap, "topic": topic, "options": {"queue.buffering.max.messages": 100}})
    sink.write(rows(*range(1000)), "q", Held(1000))
    assert received(kafka, topic, 1000) == list(range(1000))
