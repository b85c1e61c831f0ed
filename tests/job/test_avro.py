"""Messages in Avro, and in JSON, that a schema registry describes: what was written is what is read, whoever reads it, and
exactly the messages that hold no record are dead letters.

The oracle is what was written, by fastavro; schemas stand in a real registry.
"""

from __future__ import annotations

import io
import json
import math
from collections.abc import Sequence
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import fastavro
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, SourceError
from rollup.program import compile_app
from rollup.sources import looking
from rollup.sources.kafka import Kafka
from rollup.sources.topics.avro import Schema
from tests.job.jobs import Job, answers
from tests.profiles import examples

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker
    from tests.servers.registry import SchemaRegistry

_numbers = count()
NAMES = ["k", "price", "ts", "a_b", "Ärger"[1:], "Value", "select", "r"]
DAY = date(1970, 1, 1)
LONG = st.integers(-(2**63), 2**63 - 1)
TIMES = st.integers(-(10**14), 10**14).map(
    lambda ms: datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=ms // 100)
)
PLAIN: list[tuple[Any, st.SearchStrategy[Any]]] = [
    ("string", st.text(max_size=5)),
    ("long", LONG),
    ("int", st.integers(-(2**31), 2**31 - 1)),
    ("double", st.floats(allow_nan=False)),
    ("float", st.floats(width=32, allow_nan=False)),
    ("boolean", st.booleans()),
    ("bytes", st.binary(max_size=5)),
    ({"type": "long", "logicalType": "timestamp-millis"}, TIMES),
    ({"type": "long", "logicalType": "timestamp-micros"}, TIMES),
    ({"type": "int", "logicalType": "date"}, st.integers(-(10**5), 10**5).map(lambda day: DAY + timedelta(day))),
    ({"type": "bytes", "logicalType": "decimal", "precision": 12, "scale": 2}, st.decimals(-(10**9), 10**9, places=2)),
    ({"type": "string", "logicalType": "uuid"}, st.uuids().map(str)),
]


@st.composite
def fields(draw: st.DrawFn, depth: int = 1) -> tuple[Any, st.SearchStrategy[Any]]:
    """A record's type, and values of it."""
    found = dict[str, tuple[Any, st.SearchStrategy[Any]]]()
    for name in draw(st.lists(st.sampled_from(NAMES), min_size=1, max_size=4, unique=True)):
        kind, values = (
            draw(fields(depth - 1)) if depth and draw(st.integers(0, 4)) == 0 else draw(st.sampled_from(PLAIN))
        )
        if draw(st.integers(0, 5)) == 0:
            kind, values = {"type": "array", "items": ["null", kind]}, st.lists(st.none() | values, max_size=3)
        match draw(st.integers(0, 5)):
            case 0:
                kind, values = ["null", kind], st.none() | values
            case 1:
                kind, values = [kind, "null"], st.none() | values
            case 2:
                kind, values = {"type": "array", "items": kind}, st.lists(values, max_size=3)
            case 3:
                kind, values = (
                    {"type": "enum", "name": f"E{next(_numbers)}", "symbols": ["A", "B"]},
                    st.sampled_from("AB"),
                )
            case _:
                pass
        found[name] = (kind, values)
    given = [{"name": name, "type": kind} for name, (kind, _) in found.items()]
    return {"type": "record", "name": f"R{next(_numbers)}", "fields": given}, st.fixed_dictionaries(
        {name: values for name, (_, values) in found.items()}
    )


def written(schema: Any, record: Any) -> bytes:
    """A record as a producer writes it."""
    data = io.BytesIO()
    fastavro.schemaless_writer(data, fastavro.parse_schema(schema), record)
    return data.getvalue()


def bare(value: Any) -> Any:
    """A value without what tells nothing: in which of two classes the same text or time is."""
    if isinstance(value, dict):
        return {name: bare(each) for name, each in value.items()}
    if isinstance(value, list):
        return [bare(each) for each in value]
    if isinstance(value, datetime):
        return value.timestamp()
    return value if isinstance(value, bool | bytes | int | float | Decimal | date | None) else str(value)


@examples(30)
@given(st.data())
def test_what_was_written_is_what_is_read_together_and_one_by_one(data: st.DataObject) -> None:
    schema, values = data.draw(fields())
    records = data.draw(st.lists(values, min_size=1, max_size=6))
    messages = [written(schema, record) for record in records]
    reader = Schema(json.dumps(schema))
    for found, wrong in (reader.read(pa.array(messages)), reader._each(pa.array(messages))):
        assert not wrong and bare(found.to_pylist()) == bare(records)


@examples(30)
@given(st.data())
def test_exactly_the_messages_that_hold_no_record_are_none(data: st.DataObject) -> None:
    schema, values = data.draw(fields())
    records = data.draw(st.lists(values, min_size=2, max_size=6))
    messages = [written(schema, record) for record in records]
    at = data.draw(st.integers(0, len(messages) - 1))
    whole = messages[at]
    messages[at] = data.draw(st.sampled_from([whole + b"\0", whole[:-1], b"\xff" * 12, whole + whole]))
    found, wrong = Schema(json.dumps(schema)).read(pa.array(messages))
    others = [bare(record) for place, record in enumerate(records) if place != at]
    assert [bare(record) for place, record in enumerate(found.to_pylist()) if place != at] == others
    assert set(wrong) <= {at}
    if messages[at] == whole + b"\0":
        assert wrong == {at: "not a record of its schema: 1 bytes stand behind it"}


def test_a_type_that_is_used_twice_is_that_type_both_times() -> None:
    inner = {
        "type": "record",
        "name": "I",
        "fields": [{"name": "side", "type": {"type": "enum", "name": "E", "symbols": ["A", "B"]}}],
    }
    fields = [{"name": "a", "type": inner}, {"name": "b", "type": ["null", "I"]}, {"name": "c", "type": "E"}]
    schema = {"type": "record", "name": "T", "fields": fields}
    record = {"a": {"side": "A"}, "b": {"side": "B"}, "c": "B"}
    reader, messages = Schema(json.dumps(schema)), pa.array([written(schema, record)])
    for found, wrong in (reader.read(messages), reader._each(messages)):
        assert not wrong and bare(found.to_pylist()) == [record]


def test_what_cancels_out_is_still_seen() -> None:
    """A byte too many in one message and one too few in the next: together they are as long as two records."""
    schema = {"type": "record", "name": "T", "fields": [{"name": "a", "type": "bytes"}, {"name": "b", "type": "long"}]}
    good = written(schema, {"a": b"xy", "b": 1})
    found, wrong = Schema(json.dumps(schema)).read(pa.array([good + good[:1], good[1:], good]))
    assert sorted(wrong) == [0, 1] and found.to_pylist()[2] == {"a": b"xy", "b": 1}


@pytest.mark.parametrize(
    ("kind", "value", "read"),
    [
        ({"type": "map", "values": "long"}, {"a": 1}, {"a": 1}),
        (["null", "string", "long"], 7, "7"),
        (["null", "string", "long"], "x", "x"),
        ({"type": "long", "logicalType": "local-timestamp-millis"}, datetime(2018, 1, 5), datetime(2018, 1, 5)),
        ({"type": "fixed", "name": "F", "size": 2}, b"ab", b"ab"),
        ("null", None, None),
    ],
)  # fmt: skip
def test_types_that_few_programs_write(kind: Any, value: Any, read: Any) -> None:
    schema = {"type": "record", "name": "T", "fields": [{"name": "x", "type": kind}, {"name": "k", "type": "string"}]}
    found, wrong = Schema(json.dumps(schema)).read(pa.array([written(schema, {"x": value, "k": "a"})] * 2))
    (one, two) = found.to_pylist()
    assert not wrong and one == two and one["k"] == "a"
    assert (dict(one["x"]) if isinstance(read, dict) else one["x"]) == read


# In a source

APP = """define stream S (k string, price double, n long, ts long);
define aggregation A from S select k, sum(price) as total group by k aggregate by ts every sec ... day;"""
FIELDS = [
    {"name": "k", "type": "string"},
    {"name": "price", "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2}},
    {"name": "n", "type": ["null", "long"]},
    {"name": "ts", "type": {"type": "long", "logicalType": "timestamp-millis"}},
]
MOMENT = datetime(2018, 1, 5, 12, 30, 0, 250_000, tzinfo=UTC)
MS = 1_515_155_400_250
RECORD = {"k": "a", "price": Decimal("12.34"), "n": None, "ts": MOMENT}


def record_of(*fields: Any, name: str = "Trade") -> Any:
    return {"type": "record", "name": name, "fields": list(fields)}


def framed(number: int, schema: Any, record: Any) -> bytes:
    """A message as a client of the registry writes it."""
    return b"\0" + number.to_bytes(4, "big") + written(schema, record)


def source(**options: Any) -> Kafka:
    return Kafka(compile_app(APP).streams["S"], {"kind": "kafka", "servers": "none:1", "topic": "t", **options})


def taken(origin: Kafka, values: Sequence[bytes | None]) -> tuple[list[dict[str, Any]], list[dict[str, Any]], int]:
    """The events of a batch in their order, its dead letters, and how many records its parts have."""
    numbers = range(len(values))
    batch = pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([MS] * len(values), pa.int64()),
            "kafka_partition": pa.array([0] * len(values), pa.int32()),
            "kafka_offset": pa.array(numbers, pa.int64()),
        }
    )
    engine, events, dead, count = ColumnEngine(), list[dict[str, Any]](), list[dict[str, Any]](), 0
    for part in origin.parts(engine, batch):
        events += engine.run(f"FROM {part.view}").to_pylist()
        dead += part.dead.to_pylist()
        count += part.rows
    events.sort(key=lambda event: event["__arrival"])
    return [{name: event[name] for name in ("k", "price", "n", "ts")} for event in events], dead, count


def test_a_registry_says_what_each_message_holds(registry: SchemaRegistry) -> None:
    schema = record_of(*FIELDS)
    older = record_of(
        {"name": "k", "type": "string"}, {"name": "price", "type": "float"}, {"name": "ts", "type": "long"}
    )
    newer = record_of(
        {"name": "more", "type": {"type": "array", "items": "string"}}, *FIELDS, {"name": "x", "type": "int"}
    )
    described = json.dumps({"type": "object", "properties": {"k": {"type": "string"}}})
    numbers = [registry.register(each) for each in (schema, older, newer)]
    of_json = registry.register(described, "JSON")
    document = json.dumps({"k": "d", "price": 1.5, "n": 9, "ts": MS}).encode()
    values = [
        framed(numbers[0], schema, RECORD),
        framed(numbers[1], older, {"k": "b", "price": 0.5, "ts": MS}),
        b"\0" + of_json.to_bytes(4, "big") + document,
        framed(numbers[2], newer, {**RECORD, "k": "c", "n": 3, "more": ["z"], "x": 1}),
        None,
        document,
        b"\0\0",
        b"\0" + (10**6).to_bytes(4, "big") + b"x",
        framed(numbers[0], schema, RECORD) + b"!",
        b"\0" + numbers[0].to_bytes(4, "big"),
    ]
    events, dead, count = taken(source(registry=registry.url), values)
    assert count == len(values)
    assert events == [
        {"k": "a", "price": 12.34, "n": None, "ts": MS},
        {"k": "b", "price": 0.5, "n": None, "ts": MS},
        {"k": "d", "price": 1.5, "n": 9, "ts": MS},
        {"k": "c", "price": 12.34, "n": 3, "ts": MS},
    ]
    said = {int(letter["position"].rpartition(":")[2]): (letter["reason"], letter["raw"]) for letter in dead}
    prefix = "no number of a schema (byte 0 and four more) stands before it"
    assert said == {
        4: ("no value (a tombstone)", None),
        5: (prefix, f"0x{document.hex()}"),
        6: (prefix, "0x0000"),
        7: (f"its schema 1000000 is not in {registry.url}", "0x78"),
        8: ("not a record of its schema: 1 bytes stand behind it", f"0x{values[8][5:].hex()}"),
        9: ("not a record of its schema: EOFError", "0x"),
    }


def test_schemas_refer_to_others(registry: SchemaRegistry) -> None:
    from confluent_kafka.schema_registry import Schema as Described

    money = record_of({"name": "amount", "type": "double"}, name="org.money")
    subject = registry.subject()
    registry.registered(subject, Described(json.dumps(money), "AVRO"))
    outer = record_of(
        {"name": "k", "type": "string"}, {"name": "paid", "type": "org.money"}, {"name": "ts", "type": "long"}
    )
    number = registry.register(outer, referring=[("org.money", subject)])
    whole = record_of({"name": "k", "type": "string"}, {"name": "paid", "type": money}, {"name": "ts", "type": "long"})
    message = framed(number, whole, {"k": "a", "paid": {"amount": 2.5}, "ts": MS})
    origin = source(registry=registry.url, columns={"price": "paid.amount"}, optional=["n"])
    assert taken(origin, [message]) == ([{"k": "a", "price": 2.5, "n": None, "ts": MS}], [], 1)


def test_a_value_that_does_not_fit_is_a_letter_that_can_be_read_again(registry: SchemaRegistry) -> None:
    schema = record_of({"name": "k", "type": "string"}, {"name": "price", "type": "string"}, FIELDS[3])
    messages = [
        framed(registry.register(schema), schema, {"k": "a", "price": each, "ts": MOMENT}) for each in ("7", "dear")
    ]
    events, dead, _ = taken(source(registry=registry.url), messages)
    assert [event["price"] for event in events] == [7.0]
    (letter,) = dead
    assert (letter["reason"], letter["position"]) == ("price is not a double", "t:0:1")
    assert json.loads(letter["raw"]) == {"k": "a", "price": "dear", "ts": MS}, "as its stream has the time"


def test_a_registry_that_does_not_answer_is_no_fault_of_the_messages() -> None:
    from rollup.stores.postgres.server import free_port

    url = f"http://127.0.0.1:{free_port()}"
    origin = source(registry=url, registry_settings={"max.retries": 0})
    with pytest.raises(SourceError, match=f"cannot ask {url} for schema 7"):
        taken(origin, [b"\0\0\0\0\7x"])


def test_avro_without_a_registry_is_read_by_a_file(tmp_path: Path) -> None:
    schema = record_of(*FIELDS)
    (tmp_path / "trade.avsc").write_text(json.dumps(schema))
    origin = source(schema_file=str(tmp_path / "trade.avsc"))
    events, dead, count = taken(origin, [written(schema, RECORD), None, b"", written(schema, {**RECORD, "n": 4})])
    assert count == 4 and [event["n"] for event in events] == [None, 4]
    assert [letter["position"] for letter in dead] == ["t:0:1", "t:0:2"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"registry": "http://a:1", "schema_file": "x"}, "has `registry` and `schema_file`"),
        ({"registry": "a:1"}, "registry is no address"),
        ({"registry_settings": {"timeout": 3}}, "has `registry_settings` and no `registry`"),
        ({"registry": "http://a:1", "registry_settings": {"basic.auth.user.info_env": "NOT_SET"}}, "no variable NOT_SET"),
        ({"registry": "http://a:1", "registry_settings": {"tiemout": 3}}, "tiemout"),
        ({"schema_file": "/none.avsc"}, "cannot read /none.avsc"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_by_is_refused_before_anything_is_started(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        source(**options).check()


@pytest.mark.parametrize(
    ("text", "said"), [("{", "no schema of Avro"), ('{"type": "record", "name": "T", "fields": [{"name": "x", "type": {"type": "array", "items": "null"}}]}', "take no bytes"), ('"string"', "no schema of a record"), ('{"type": "recrod"}', "no schema")]
)  # fmt: skip
def test_a_file_that_holds_no_schema_is_refused(tmp_path: Path, text: str, said: str) -> None:
    (tmp_path / "x.avsc").write_text(text)
    with pytest.raises(ConfigError, match=said):
        source(schema_file=str(tmp_path / "x.avsc")).check()


def test_doubles_that_are_no_numbers_stay_what_they_are() -> None:
    schema = record_of({"name": "x", "type": "double"})
    messages = [written(schema, {"x": each}) for each in (math.nan, math.inf, -math.inf, -0.0)]
    for found in (
        Schema(json.dumps(schema)).read(pa.array(messages))[0],
        Schema(json.dumps(schema))._each(pa.array(messages))[0],
    ):
        assert [repr(row["x"]) for row in found.to_pylist()] == ["nan", "inf", "-inf", "-0.0"]


# In a job


@pytest.mark.spark
@pytest.mark.kafka
@pytest.mark.parametrize("way", ["tasks", "spark"])
@pytest.mark.few("tasks")
def test_a_job_takes_each_message_once_over_a_change_of_the_schema(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker, registry: SchemaRegistry, way: str
) -> None:
    """Decimals at first, then texts, one of which is no number."""
    topic, app = (
        kafka.new_topic(2),
        APP.replace("S (", "Trades (").replace("from S", "from Trades").replace("A from", "TradeAgg from"),
    )
    texts = [{**each, "type": "string"} if each["name"] == "price" else each for each in FIELDS]
    options = {"kind": "kafka", "servers": kafka.bootstrap, "topic": topic, "registry": registry.url, "read": way}
    job, producer, total = Job(tmp_path, options, app=app), kafka.producer(), Decimal(0)
    for schema in (record_of(*FIELDS), record_of(*texts)):
        number = registry.register(schema)
        for i in range(40):
            price = Decimal(i) / 4
            total += price
            value: Any = price if schema["fields"] == FIELDS else str(price) if i else "dear"
            record = {"k": f"k{i % 3}", "price": value, "n": i, "ts": MOMENT + timedelta(seconds=i)}
            producer.produce(topic, framed(number, schema, record), partition=i % 2)
        producer.produce(topic, b"plain", partition=0)
        assert producer.flush(30) == 0
        job.run(spark)
    assert sum(row[0] for row in answers(job.conf, "total")) == float(total)
    prefix = "no number of a schema (byte 0 and four more) stands before it"
    assert sorted(letter["reason"] for letter in job.letters()) == [prefix, prefix, "price is not a double"]


def test_a_decimal_is_exact(tmp_path: Path) -> None:
    kind = {"type": "bytes", "logicalType": "decimal", "precision": 28, "scale": 8}
    schema = record_of({"name": "k", "type": "string"}, {"name": "price", "type": kind}, FIELDS[3])
    (tmp_path / "trade.avsc").write_text(json.dumps(schema))
    stream = compile_app(APP.replace("price double, n long", "price decimal(28, 8)")).streams["S"]
    options = {"kind": "kafka", "servers": "none:1", "topic": "t", "schema_file": str(tmp_path / "trade.avsc")}
    price = Decimal("12345678901234567890.01234567")
    engine, message = ColumnEngine(), written(schema, {"k": "a", "price": price, "ts": MOMENT})
    batch = pa.table(
        {
            "value": pa.array([message]),
            "timestamp": pa.array([MS]),
            "kafka_partition": pa.array([0], pa.int32()),
            "kafka_offset": pa.array([0]),
        }
    )
    for part in Kafka(stream, options).parts(engine, batch):
        assert engine.run(f"FROM {part.view}")["price"].to_pylist() == [price]


UNIONS = [
    (["null", "string", "long"], ["a", 1, None, "12", 2**60 + 1], ["a", "1", None, "12", str(2**60 + 1)]),
    (["null", "int", "double"], [1, 2.5, 2.0], ["1", "2.5", "2.0"]),
    (["boolean", "string"], [True, "x"], ["true", "x"]),
    (["bytes", "long"], [b"ab", 5], ["ab", "5"]),
    (["long", {"type": "array", "items": "int"}], [[1, 2], 3], ["[1, 2]", "3"]),
    (["string", {"type": "int", "logicalType": "date"}], ["x", date(2026, 3, 1)], ["x", "2026-03-01"]),
    (
        ["long", {"type": "record", "name": "R", "fields": [{"name": "x", "type": ["int", "string"]}]}],
        [{"x": 1}, 2, {"x": "y"}],
        ['{"x": 1}', "2", '{"x": "y"}'],
    ),
]
"""Unions, values, and the text of each."""


@pytest.mark.parametrize("kind", ["string", "long", "double", "bool"])
@pytest.mark.parametrize(("union", "values", "texts"), UNIONS)
def test_what_a_union_holds_is_read_alike_whatever_stands_beside_it(
    tmp_path: Path, kind: str, union: Any, values: list[Any], texts: list[str | None]
) -> None:
    """All at once and each on its own; a text where that is asked for, and a number where the text is one."""
    schema = record_of({"name": "k", "type": union}, FIELDS[3])
    (tmp_path / "s.avsc").write_text(json.dumps(schema))
    app = APP.replace("k string, price double, n long", f"k {kind}, price double, n long")
    options = {"kind": "kafka", "servers": "none:1", "topic": "t", "schema_file": str(tmp_path / "s.avsc")}
    origin = Kafka(compile_app(app).streams["S"], {**options, "optional": ["price", "n"]})
    messages = [written(schema, {"k": value, "ts": MOMENT}) for value in values]
    together, alone = taken(origin, messages), [taken(origin, [message]) for message in messages]
    found = [event["k"] for event in together[0]]
    assert found == [event["k"] for events, *_ in alone for event in events]
    assert len(found) + len(together[1]) == len(values) == sum(len(events) + len(dead) for events, dead, _ in alone)
    if kind == "string":
        assert found == texts
    if kind == "double":
        assert found == [None if text is None else float(text) for text in texts if text is None or _is_number(text)]


def _is_number(text: str) -> bool:
    try:
        return float(text) is not None
    except ValueError:
        return False


def test_a_union_of_several_types_is_said_by_its_name(tmp_path: Path) -> None:
    schema = record_of({"name": "k", "type": ["null", "string", "long"]}, FIELDS[3])
    (tmp_path / "s.avsc").write_text(json.dumps(schema))
    messages = [written(schema, {"k": value, "ts": MOMENT}) for value in ("a", 1)]
    records, remarks = looking._of_values(  # pyright: ignore[reportPrivateUsage]
        messages, "t", {"schema_file": str(tmp_path / "s.avsc")}
    )
    assert [record["k"] for record in records] == ["a", "1"]
    assert len(remarks) == 1 and remarks[0].startswith("k holds string, long, which are read as texts")
