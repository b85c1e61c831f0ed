"""What a message has metadata its value (key, time, place, headers) as attributes of its event: the same whoever reads the
messages, and in the letters of those that are no events."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.program import compile_app
from rollup.sources.kafka import Kafka
from tests.job.jobs import Job, answers
from tests.job.test_avro import MS, record_of, written
from tests.profiles import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker

APP = """define stream Trades (who string, sent long, part int, place long, trace string, v long);
define aggregation TradeAgg from Trades select who, trace, sum(v) as total, max(place) as last group by who, trace
aggregate by sent every sec ... day;"""
MESSAGE = {"who": "key", "sent": "timestamp", "part": "partition", "place": "offset", "trace": "headers.trace-id"}


def source(**options: Any) -> Kafka:
    stream = compile_app(APP).streams["Trades"]
    return Kafka(stream, {"kind": "kafka", "servers": "-", "topic": "t", "message": MESSAGE, **options})


def events(origin: Kafka, rows: list[tuple[bytes | None, bytes | None, bytes | None]]) -> tuple[list[Any], list[Any]]:
    """Of messages (key, header, value) the events as lists, in their order, and the dead letters."""
    keys, headers, values = zip(*rows, strict=True)
    count = len(rows)
    batch = pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "beside_1": pa.array(keys, pa.binary()),
            "beside_0": pa.array(headers, pa.binary()),
            "timestamp": pa.array([MS] * count, pa.int64()),
            "kafka_partition": pa.array([2] * count, pa.int32()),
            "kafka_offset": pa.array(range(count), pa.int64()),
        }
    )
    engine, found, dead = ColumnEngine(), list[Any](), list[Any]()
    for part in origin.parts(engine, batch):
        found += engine.run(f"FROM {part.view} ORDER BY __arrival").to_pylist()
        dead += part.dead.to_pylist()
    return [list(row.values())[:6] for row in found], dead


def test_they_are_members_of_a_document() -> None:
    rows = [
        (b"ann", b"x", b'{"v": 1}'),
        (None, None, b'  {"v": 2, "who": "not me"}'),
        (b'quo"te\\', b"\xff", b'{"v": 3}'),
        (b"", b"", b"{ }"),
    ]
    found, dead = events(source(), rows)
    assert found == [
        ["ann", MS, 2, 0, "x", 1],
        [None, MS, 2, 1, None, 2],
        ['quo"te\\', MS, 2, 2, "0xff", 3],
        ["", MS, 2, 3, "", None],
    ]
    assert dead == []


def test_a_letter_has_them_and_what_is_no_object_stays_as_it_is() -> None:
    _, dead = events(source(), [(b"ann", b"x", b'{"v": "dear"}'), (b"bob", None, b"nonsense"), (b"cat", None, None)])
    assert json.loads(dead[0]["raw"]) == {"who": "ann", "sent": MS, "part": 2, "place": 0, "trace": "x", "v": "dear"}
    assert [(letter["reason"], letter["raw"]) for letter in dead[1:]] == [
        ("not a record", "nonsense"),
        ("no value (a tombstone)", None),
    ]


def test_they_are_members_of_a_record_of_avro(tmp_path: Path) -> None:
    schema = record_of({"name": "v", "type": "long"}, {"name": "who", "type": "string"})
    (tmp_path / "x.avsc").write_text(json.dumps(schema))
    message = written(schema, {"v": 7, "who": "not me"})
    found, _ = events(source(schema_file=str(tmp_path / "x.avsc")), [(b"ann", None, message), (None, b"y", message)])
    assert found == [["ann", MS, 2, 0, None, 7], [None, MS, 2, 1, "y", 7]]


JSON = st.recursive(
    st.none() | st.integers(-(10**20), 10**20) | st.text(max_size=5) | st.decimals(allow_nan=False, allow_infinity=False).map(str),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.lists(inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


@examples(30)
@given(st.lists(st.tuples(JSON, st.sampled_from([None, 2]), st.text(max_size=4)), min_size=1, max_size=5))
def test_a_document_keeps_its_own_members_as_they_are_written(made: list[tuple[Any, int | None, str]]) -> None:
    raw = [json.dumps(value, indent=indent) for value, indent, _ in made]
    batch = pa.table({"beside_0": pa.array([key.encode() for *_, key in made], pa.binary())})
    metadata = Kafka(source().stream, {**source().options, "message": {"who": "key"}}).metadata
    found = metadata.in_documents(ColumnEngine(), pa.chunked_array([raw]), batch).to_pylist()
    for text, before, (value, _, key) in zip(found, raw, made, strict=True):
        if isinstance(value, dict):
            assert json.loads(text) == {"who": key} | value
            assert text.endswith(before.lstrip()[1:].lstrip()), "not a sign of it is written anew"
        else:
            assert text == before


@pytest.mark.parametrize(
    ("message", "columns", "said"),
    [
        ({"who": "keys"}, {}, "message has 'keys' for who"),
        ({"nobody": "key"}, {}, "message names nobody, which is no attribute"),
        ({"who": "key"}, {"who": "x"}, "`columns` has it too"),
    ],
)
def test_a_field_that_is_none_is_refused(message: dict[str, str], columns: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        source(message=message, columns=columns).check()


@pytest.mark.spark
@pytest.mark.kafka
def test_tasks_and_spark_read_the_same_fields(tmp_path: Path, spark: SparkSession, kafka: KafkaBroker) -> None:
    topic, producer = kafka.new_topic(2), kafka.producer()
    for i in range(40):
        headers: Any = [
            [],
            [("trace-id", b"old"), ("other", b"-"), ("trace-id", b"t%d" % (i % 3))],
            [("trace-id", None)],
        ][i % 3]
        key = None if i % 4 == 0 else b"k%d" % (i % 4) if i % 4 < 3 else b"\xff"
        producer.produce(topic, b'{"v": %d}' % i, key, partition=i % 2, timestamp=MS + 1000 * i, headers=headers)
    assert producer.flush(30) == 0
    options = {"kind": "kafka", "servers": kafka.bootstrap, "topic": topic, "message": MESSAGE}
    both = list[Any]()
    for way in ("tasks", "spark"):
        (tmp_path / way).mkdir()
        job = Job(tmp_path / way, {**options, "read": way}, app=APP)
        job.run(spark)
        both.append(answers(job.conf, "AGG_TIMESTAMP, who, trace, total, last"))
    assert both[0] == both[1]
    wanted = [
        (
            (MS + 1000 * i) // 1000 * 1000,
            None if i % 4 == 0 else f"k{i % 4}" if i % 4 < 3 else "0xff",
            f"t{i % 3}" if i % 3 == 1 else None,
            i,
            i // 2,
        )
        for i in range(40)
    ]
    assert both[0] == sorted(wanted, key=repr)
