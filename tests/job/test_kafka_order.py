"""Arrival numbers of Kafka: whatever a broker's timestamps say, a partition keeps its order and no batch runs out of bits.

The numbers are checked against what they promise, over drawn timestamps at all limits; the job, over a real broker that
was told to take any timestamp.
"""

from __future__ import annotations

import json
import random
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from hypothesis import example, given
from hypothesis import strategies as st

from rollup.aggregation.partials import FIRST, LAST
from rollup.core.columns import ColumnEngine
from rollup.core.packing import unpack
from rollup.hosts.spark.numbering import Numbering
from rollup.hosts.spark.tasks.task import TaskSpec, run
from rollup.plan.aggregation import EVENTS
from rollup.program import Declaration
from rollup.sources.kafka import BY_OFFSET
from tests.job.jobs import Job, answers
from tests.job.test_sources import GOOD, messages, topic
from tests.profiles import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker

_NOW = 1_800_000_000_000
TIMES = st.one_of(
    st.sampled_from([-1, 0, 1, 1 << 41, (1 << 42) - 1, 1 << 42, _NOW * 1000, -(1 << 63), (1 << 63) - 1]),
    st.integers(_NOW, _NOW + 5),
)
Messages = list[tuple[int, int]]


def arrivals(rows: Messages, **options: Any) -> dict[tuple[int, int], int]:
    """The arrival of each message (partition, offset), for messages (timestamp, partition) of rising offsets."""
    batch = messages(*((time, partition, offset, "{}") for offset, (time, partition) in enumerate(rows)))
    engine = ColumnEngine(threads=1)
    for _ in topic(**options).parts(engine, batch):
        found = engine.run("SELECT __position, __arrival FROM __places").to_pylist()
    return {tuple(map(int, row["__position"].split(":")[1:])): row["__arrival"] for row in found}  # type: ignore[misc]


@pytest.mark.parametrize("copies", [1, 2, 4, 5, 6, 9])
def test_however_many_copies_of_an_event_reach_a_stream_its_numbers_fit(copies: int) -> None:
    query = "from S select k, ts insert into T;\n"
    app = "define stream S (k string, ts long);\ndefine stream T (k string, ts long);\n" + query * copies
    app += "define aggregation A from T select k, count() as n group by k aggregate by ts every sec;"
    times = [_NOW, _NOW + 1, (1 << 42) - 1, (1 << 41) - 1, -1]
    batch = messages(*((time, 0, n, '{"k": "a", "ts": 0}') for n, time in enumerate(times)))
    options = {"kind": "kafka", "servers": "-", "topic": "t"}
    (partial,) = (
        unpack(row["payload"])
        for result in run(TaskSpec(Declaration(app), "S", options), iter(batch.to_batches()))
        for row in result.to_pylist()
        if row["kind"] == "partials"
    )
    (group,) = partial.to_pylist()
    assert group[EVENTS] == copies * len(times)
    assert 0 <= group[FIRST] < group[LAST] < 1 << 63
    if copies < 5:
        assert group[FIRST] >= (_NOW << 20) * copies, "those of today go by their timestamps"


@examples(30)
@example(rows=[(-1, 0), (0, 0)], plain=False)
@given(st.lists(st.tuples(TIMES, st.integers(0, 3)), min_size=1, max_size=60), st.booleans())
def test_a_partition_keeps_its_order_and_no_number_is_given_twice(rows: Messages, plain: bool) -> None:
    found = arrivals(rows, **({BY_OFFSET: True} if plain else {}))
    assert len(found) == len(rows) == len(set(found.values()))
    for partition in range(4):
        own = [found[p, o] for p, o in sorted(found) if p == partition]
        assert own == sorted(own)
    assert all(0 <= number < 1 << 63 for number in found.values())


@examples(30)
@given(st.lists(st.tuples(st.integers(_NOW, _NOW + 5), st.integers(0, 3)), min_size=1, max_size=60))
def test_messages_of_clocks_that_only_rise_arrive_by_time(rows: Messages) -> None:
    rows = sorted(rows)
    found = arrivals(rows)
    times = {(partition, offset): time for offset, (time, partition) in enumerate(rows)}
    assert [times[key] for key in sorted(found, key=lambda key: found[key])] == sorted(times.values())


@examples(15)
@given(st.lists(st.tuples(TIMES, st.integers(0, 3)), min_size=1, max_size=60), st.randoms(use_true_random=False))
def test_the_order_is_a_function_of_the_messages_not_of_how_they_are_handed_over(
    rows: Messages, chance: random.Random
) -> None:
    whole = messages(*((time, partition, offset, "{}") for offset, (time, partition) in enumerate(rows)))
    shuffled = whole.take(chance.sample(range(len(rows)), len(rows)))
    engine, seen = ColumnEngine(threads=1), list[dict[str, int]]()
    for batch in (whole, shuffled):
        for _ in topic().parts(engine, batch):
            found = engine.run("SELECT __position, __arrival FROM __places").to_pylist()
            seen.append({row["__position"]: row["__arrival"] for row in found})
    assert seen[0] == seen[1]
    each: dict[str, int] = {}
    for partition in range(4):  # a task may have any of the partitions
        share = whole.filter(pa.array([p == partition for p in whole["kafka_partition"].to_pylist()]))
        for _ in topic().parts(engine, share):
            each |= {r["__position"]: r["__arrival"] for r in engine.run("SELECT * FROM __places").to_pylist()}
    assert each == seen[0]


def test_any_number_of_messages_share_a_millisecond() -> None:
    rows = [(_NOW, 0)] * 100_000 + [(_NOW + 1_000, 0), (_NOW + 1_000, 1)]
    found = arrivals(rows)
    own = [found[0, offset] for offset in range(100_001)]
    assert all(low < high for low, high in pairwise(own))
    assert found[1, 100_001] > own[99_999], "a second later is later, whatever came in the millisecond"


@pytest.mark.parametrize("known", [0, 7_500_000_000_000_000_000])
@pytest.mark.slow
def test_batches_whose_timestamps_are_far_apart_never_run_out_of_numbers(known: int) -> None:
    rows, narrow = [(0, 0), (_NOW, 1)], 0
    for _ in range(50):
        for options in ({}, {BY_OFFSET: True}):
            found = sorted(arrivals(rows, **options).values())
            partials = [pa.table({"__first": found, "__last": found})]
            numbering = Numbering({"t": 0}, len(rows), numbered=True)
            if options or not numbering.too_wide(partials, known):
                break
        base, following = numbering.bounds(partials, known)
        assert base + found[0] >= known and following < 1 << 63
        known, narrow = following, narrow + bool(options)
    assert narrow > 40, "the plain order of offsets was needed"


@pytest.mark.spark
@pytest.mark.kafka
def test_the_job_counts_every_message_whatever_its_timestamp(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker
) -> None:
    name = "any-time"
    unlimited = {
        "message.timestamp.after.max.ms": str((1 << 63) - 1),
        "message.timestamp.before.max.ms": str((1 << 63) - 1),
    }
    unlimited["retention.ms"] = "-1"
    admin = AdminClient({"bootstrap.servers": kafka.bootstrap})
    admin.create_topics([NewTopic(name, num_partitions=2, replication_factor=1, config=unlimited)])[name].result(30)
    job = Job(tmp_path, {"kind": "kafka", "servers": kafka.bootstrap, "topic": name})
    producer = kafka.producer()
    for _ in range(4):
        for time in [1, _NOW, _NOW * 1000, 1 << 42, _NOW + 5, _NOW * 1_000_000]:
            for partition in (0, 1):
                producer.produce(name, json.dumps(GOOD), partition=partition, timestamp=time)
        assert producer.flush(30) == 0
        job.run(spark)
    assert answers(job.conf, "symbol, events", per="years") == [("a", 48)]
    assert job.letters() == []
