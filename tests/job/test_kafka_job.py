"""The job on a real broker ends with what one process computes from the same events in the order of arrival.

That order is the Kafka source's: batch by batch, and within a batch (timestamp, offset, partition). A restart in the
middle must not show, and late events must be judged by it, over partitions and over the edge of batches.
"""

from __future__ import annotations

import json
import random
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from rollup.hosts.local import LocalHost
from tests.job.jobs import Job, answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker

APP = """define stream Trades (symbol string, price double, quantity long, ts long);
{policy}
define aggregation TradeAgg from Trades
select symbol, sum(quantity) as total, min(price) as low, avg(price) as mean, count() as events, price as newest
group by symbol aggregate by ts every sec ... day;
"""
POLICIES = ["", "@BufferSize('2')", "@IgnoreEventsOlderThanBuffer('true')", "@OutOfOrder('correct')"]
PARTITIONS = 3
BEGAN = int(time.time() * 1000) - 10_000
"""Near the present: a broker deletes what is older than a week."""
COLUMNS = "AGG_TIMESTAMP, symbol, total, low, mean, events, newest"

pytestmark = [pytest.mark.spark, pytest.mark.kafka]


def send(broker: KafkaBroker, topic: str, numbers: range, seed: int) -> None:
    """Events with their own Kafka timestamps; some are late, and several share a millisecond of arrival."""
    chance, producer = random.Random(seed), broker.producer()
    for i in numbers:
        late = chance.choice([0, 0, 0, 0, 1_500, 20_000])
        event = {"symbol": f"s{i % 4}", "price": i % 32 / 4, "quantity": i, "ts": 1_600_000_000_000 + i * 150 - late}
        where = chance.randrange(PARTITIONS)
        producer.produce(topic, json.dumps(event), partition=where, timestamp=BEGAN + i // 5)
        producer.poll(0)
    assert producer.flush(30) == 0


def consumed(broker: KafkaBroker, topic: str) -> list[tuple[int, int, int, dict[str, Any]]]:
    """Every message of a topic, by a client that is not ours: (partition, offset, timestamp, event)."""
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": topic, "enable.auto.commit": False})
    found: list[tuple[int, int, int, dict[str, Any]]] = []
    try:
        for partition in range(PARTITIONS):
            low, high = consumer.get_watermark_offsets(TopicPartition(topic, partition), timeout=10)
            consumer.assign([TopicPartition(topic, partition, low)])
            for message in consumer.consume(high - low, timeout=30):
                value = message.value()
                assert value is not None
                found.append((partition, message.offset() or 0, message.timestamp()[1], json.loads(value)))
    finally:
        consumer.close()
    return found


def offsets(job: Job) -> list[dict[int, int]]:
    """The end of every batch in each partition, as Spark's own log has it."""
    files = sorted((job.conf.checkpoint / "Trades" / "offsets").glob("[0-9]*"), key=lambda file: int(file.name))
    ends = [json.loads(file.read_text().splitlines()[-1]) for file in files]
    return [{int(partition): end for partition, end in next(iter(each.values())).items()} for each in ends]


def expected(job: Job, app: str, messages: list[tuple[int, int, int, dict[str, Any]]]) -> list[tuple[Any, ...]]:
    """What one process says of the events in their order of arrival."""
    host, begun = LocalHost.of(app), dict.fromkeys(range(PARTITIONS), 0)
    for ends in offsets(job):
        batch = [m for m in messages if begun[m[0]] <= m[1] < ends.get(m[0], begun[m[0]])]
        host.send("Trades", [tuple(event.values()) for _, _, _, event in sorted(batch, key=_arrival(batch))])
        begun |= ends
    found = host.query(f"from TradeAgg within 0L, 253402300799000L per 'seconds' select {COLUMNS}")
    return sorted(zip(*(found[name].to_pylist() for name in found.schema.names), strict=True), key=repr)


def _arrival(batch: list[tuple[int, int, int, dict[str, Any]]]) -> Any:
    """(timestamp, place among those of its partition and timestamp, partition)."""
    places = {(p, o): sum(1 for q, r, s, _ in batch if (q, s) == (p, t) and r < o) for p, o, t, _ in batch}
    return lambda m: (m[2], places[m[0], m[1]], m[0])


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.slow
def test_partitions_late_events_and_a_restart_give_what_one_process_gives(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, policy: str
) -> None:
    app, topic = APP.format(policy=policy), kafka.new_topic(PARTITIONS)
    options = {"kind": "kafka", "servers": kafka.bootstrap, "topic": topic, "max_events_per_batch": 130}
    job = Job(tmp_path, options, app=app)
    send(kafka, topic, range(300), seed=1)
    job.run(spark)
    send(kafka, topic, range(300, 500), seed=2)
    job.run(spark)
    found, messages = answers(job.conf, COLUMNS), consumed(kafka, topic)
    assert len(messages) == 500
    assert len(offsets(job)) >= 4, "several batches"
    assert found == expected(job, app, messages)
    total = sum(row[5] for row in found)
    assert total == 500 if "Ignore" not in policy else 100 < total < 500


@pytest.mark.slow
def test_the_job_goes_on_where_it_was_after_the_broker_was_away(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker
) -> None:
    app, topic = APP.format(policy=""), kafka.new_topic(PARTITIONS)
    job = Job(
        tmp_path, {"kind": "kafka", "servers": kafka.bootstrap, "topic": topic}, app=app, top='trigger = "0 seconds"'
    )
    send(kafka, topic, range(100), seed=3)

    def all_of(wanted: int) -> bool:
        return job.committed() and sum(row[0] for row in answers(job.conf, "events")) == wanted

    job.run_until(spark, lambda: all_of(100))
    kafka.kill9()
    kafka.start()
    send(kafka, topic, range(100, 200), seed=4)
    job.run_until(spark, lambda: all_of(200))
    assert answers(job.conf, COLUMNS) == expected(job, app, consumed(kafka, topic))
