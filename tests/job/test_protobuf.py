"""Messages in Protobuf: what Google's library and Confluent's client have written is what is read, and exactly the messages
that hold no record are dead letters. Schemas stand in a real registry.
"""

from __future__ import annotations

import json
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema as Described
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf.message_factory import GetMessageClass
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.errors import ConfigError
from rollup.sources.topics.protobuf import Schema
from tests.job.test_avro import MS, source, taken
from tests.profiles import examples

if TYPE_CHECKING:
    from tests.servers.registry import SchemaRegistry

HEAD = 'syntax = "proto3";\n'
TRADE = HEAD + "message T { string k = 1; double price = 2; optional int64 n = 3; int64 ts = 4; }"
SCALARS: dict[str, st.SearchStrategy[Any]] = {
    "string": st.text(max_size=5),
    "double": st.floats(allow_nan=False),
    "float": st.floats(width=32, allow_nan=False),
    "bool": st.booleans(),
    "bytes": st.binary(max_size=5),
    **dict.fromkeys(("int32", "sint32", "sfixed32"), st.integers(-(2**31), 2**31 - 1)),
    **dict.fromkeys(("int64", "sint64", "sfixed64"), st.integers(-(2**63), 2**63 - 1)),
    **dict.fromkeys(("uint32", "fixed32"), st.integers(0, 2**32 - 1)),
    "uint64": st.integers(0, 2**63 - 1),
}


def message(schema: Schema, values: dict[str, Any], kind: str = "T") -> bytes:
    """A message of a type, as Google's library writes it."""
    return GetMessageClass(schema._types[kind])(**values).SerializeToString()


@examples(25)
@given(st.data())
def test_what_was_written_is_what_is_read(data: st.DataObject) -> None:
    kinds = data.draw(st.lists(st.sampled_from(sorted(SCALARS)), min_size=1, max_size=5))
    labels = [data.draw(st.sampled_from(["", "optional ", "repeated "])) for _ in kinds]
    fields = "".join(
        f"  {label}{kind} f{at} = {at + 1};\n" for at, (label, kind) in enumerate(zip(labels, kinds, strict=True))
    )
    schema = Schema(f"{HEAD}message T {{\n{fields}}}", placed=False)
    written, wanted = list[bytes](), list[dict[str, Any]]()
    for _ in range(data.draw(st.integers(1, 4))):
        record = dict[str, Any]()
        for at, (label, kind) in enumerate(zip(labels, kinds, strict=True)):
            one = SCALARS[kind]
            value = data.draw(st.lists(one, max_size=3) if label == "repeated " else one)
            record[f"f{at}"] = None if label == "optional " and data.draw(st.booleans()) else value
        written.append(message(schema, {name: each for name, each in record.items() if each is not None}))
        wanted.append(record)
    found, wrong = schema.read(pa.array(written))
    assert not wrong and found.to_pylist() == wanted


STANDING = (
    HEAD
    + """
import "google/protobuf/timestamp.proto";
import "google/protobuf/duration.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "google/type/date.proto";
import "google/type/decimal.proto";
import "confluent/type/decimal.proto";
message T {
  enum Side { UNKNOWN = 0; BUY = 1; }
  message Inner { double amount = 1; T again = 2; }
  google.protobuf.Timestamp at = 1;
  google.protobuf.Duration took = 2;
  google.protobuf.Int64Value many = 3;
  google.protobuf.Struct free = 4;
  google.type.Date day = 5;
  google.type.Decimal exact = 6;
  confluent.type.Decimal paid = 7;
  Side side = 8;
  Inner inner = 9;
  map<string, int32> counts = 10;
  oneof either { string text = 11; int32 number = 12; }
}
"""
)


def test_types_that_stand_for_something_are_that() -> None:
    schema = Schema(STANDING, placed=False)
    kind = GetMessageClass(schema._types["T"])
    whole = kind(side=1, inner={"amount": 2.5}, counts={"b": 2, "a": 1}, number=0)
    whole.at.FromDatetime(datetime(2018, 1, 5, 12, 30, 0, 250_000))
    whole.took.FromMilliseconds(1500)
    whole.many.value = 7
    whole.free.update({"x": 1.5})
    whole.day.year, whole.day.month, whole.day.day = 2018, 1, 5
    whole.exact.value = "-1.10"
    whole.paid.value, whole.paid.scale = (-1234).to_bytes(2, "big", signed=True), 2
    found, wrong = schema.read(pa.array([whole.SerializeToString(), b""]))
    assert not wrong
    first, second = found.to_pylist()
    assert json.loads(first.pop("free")) == {"x": 1.5} and json.loads(first.pop("counts")) == {"a": 1, "b": 2}
    assert first == {
        "at": datetime(2018, 1, 5, 12, 30, 0, 250_000, tzinfo=UTC), "took": 1.5, "many": 7, "day": date(2018, 1, 5),
        "exact": Decimal("-1.10"), "paid": Decimal("-12.34"), "side": "BUY", "inner": {"amount": 2.5, "again": None},
        "text": None, "number": 0,
    }  # fmt: skip
    assert second.pop("counts") == "{}" and second.pop("side") == "UNKNOWN" and set(second.values()) == {None}


@pytest.mark.parametrize(
    ("bad", "said"),
    [
        (b"\n\5ab", "not a record of its schema"),
        (b"\n\1\xff", "not a record of its schema"),  # a text that is no UTF-8
    ],
)
def test_what_is_no_record_is_said_and_takes_nobody_with_it(bad: bytes, said: str) -> None:
    schema = Schema(TRADE, placed=False)
    good = message(schema, {"k": "a"})
    found, wrong = schema.read(pa.array([good, bad, good]))
    assert [record and record["k"] for record in found.to_pylist()] == ["a", None, "a"]
    assert set(wrong) == {1} and wrong[1].startswith(said)


@pytest.mark.parametrize("place", [b"", b"\x80", b"\2\4", b"\2\3", b"\2", b"\6\0\0\0", b"\xfe\xff\xff\xff\x0f"])
def test_a_place_of_a_type_that_is_not_there_is_no_record(place: bytes) -> None:
    assert set(Schema(TRADE).read(pa.array([place]))[1]) == {0}


def test_a_clients_messages_of_any_type_of_a_schema(registry: SchemaRegistry) -> None:
    """Confluent's own serializer registers the schema and writes the number, the places of the type and the message."""
    text = (
        HEAD
        + "package a.b; message Other { message T { string k = 1; double price = 2; int64 ts = 4; } } message U { string k = 1; }"
    )
    schema = Schema(text)
    client = SchemaRegistryClient({"url": registry.url})
    messages = list[bytes]()
    for kind, values in (
        (schema._types["Other"].nested_types_by_name["T"], {"k": "a", "price": 2.5, "ts": MS}),
        (schema._types["U"], {"k": "b"}),
    ):
        made = GetMessageClass(kind)
        topic = registry.subject()
        messages.append(
            ProtobufSerializer(made, client, {"use.deprecated.format": False})(
                made(**values), SerializationContext(topic, MessageField.VALUE)
            )
        )
    events, dead, count = taken(source(registry=registry.url, optional=["n", "price", "ts"]), messages)
    assert (count, dead) == (2, [])
    assert events == [
        {"k": "a", "price": 2.5, "n": None, "ts": MS},
        {"k": "b", "price": None, "n": None, "ts": None},
    ]


def test_schemas_import_others_of_the_registry(registry: SchemaRegistry) -> None:
    subject = registry.subject()
    registry.registered(subject, Described(HEAD + "package money; message Paid { double amount = 1; }", "PROTOBUF"))
    text = HEAD + 'import "shared/paid.proto"; message T { string k = 1; money.Paid paid = 2; int64 ts = 3; }'
    number = registry.register(text, "PROTOBUF", referring=[("shared/paid.proto", subject)])
    body = b"\n\1a" + b"\x12\x09\x09" + b"\0\0\0\0\0\0\4\x40" + b"\x18\5"
    origin = source(registry=registry.url, columns={"price": "paid.amount"}, optional=["n"])
    found = taken(origin, [b"\0" + number.to_bytes(4, "big") + b"\0" + body])
    assert found == ([{"k": "a", "price": 2.5, "n": None, "ts": 5}], [], 1)


def test_a_schema_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "trade.proto").write_text(TRADE)
    origin = source(schema_file=str(tmp_path / "trade.proto"))
    events, dead, count = taken(origin, [b"\n\1a\x18\7\x20\5", b"\xff", None])
    assert count == 3 and {each["reason"][:26] for each in dead} == {
        "not a record of its schema",
        "no value (a tombstone)",
    }
    assert events == [{"k": "a", "price": 0.0, "n": 7, "ts": 5}]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("message {", "no schema of Protobuf: it:1:"),
        (HEAD + 'import "none.proto"; message T {}', "none.proto"),
        (HEAD, "a schema without a message"),
    ],
)
def test_a_text_that_is_no_schema_is_refused(text: str, said: str, tmp_path: Path) -> None:
    (tmp_path / "t.proto").write_text(text)
    with pytest.raises(ConfigError, match=said):
        source(schema_file=str(tmp_path / "t.proto")).check()


def test_a_schema_may_not_write_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="it imports"):
        Schema(TRADE, {"../../x.proto": HEAD})
