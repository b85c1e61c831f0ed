"""Messages that are lines of CSV or plain text: each gives its event, or is a dead letter that says why.

The oracle is Python's own writer of CSV: what was written is what is read.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError
from rollup.program import compile_app
from rollup.sources.kafka import Kafka
from tests.profiles import examples

TEXTS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


def source(attributes: str, **options: Any) -> Kafka:
    app = compile_app(f"define stream S ({attributes});")
    return Kafka(app.streams["S"], {"kind": "kafka", "servers": "none:1", "topic": "t", **options})


def read(
    origin: Kafka, values: Sequence[bytes | None]
) -> tuple[list[dict[str, Any]], list[tuple[str, str, str | None]]]:
    """The events of messages in their order, and of the others place, reason and text."""
    rows = pa.table(
        {
            "value": pa.array(values, pa.binary()),
            "timestamp": pa.array([1_700_000_000_000] * len(values), pa.int64()),
            "kafka_partition": pa.array([0] * len(values), pa.int32()),
            "kafka_offset": pa.array(range(len(values)), pa.int64()),
        }
    )
    engine, events, dead = ColumnEngine(threads=1), list[dict[str, Any]](), list[dict[str, Any]]()
    for part in origin.parts(engine, rows):
        if part.places:
            events += engine.run(f"FROM {part.view} ORDER BY __arrival").to_pylist()
        dead += part.dead.to_pylist()
    names = list(origin.stream.own)
    return [{name: event[name] for name in names} for event in events], [
        (each["position"], each["reason"], each["raw"]) for each in sorted(dead, key=lambda each: each["position"])
    ]


def test_fields_are_read_as_their_types_by_their_places() -> None:
    origin = source("symbol string, price decimal(10, 2), n long, at timestamp", values="csv")
    origin.check()
    events, dead = read(origin, [b'"a,b",1.50,7,2018-01-05T00:00:00Z', b"c,,8,\n", b"d,x,1,"])
    assert [(each["symbol"], str(each["price"]), each["n"]) for each in events] == [
        ("a,b", "1.50", 7),
        ("c", "None", 8),
    ]
    assert str(events[0]["at"])[:19] == "2018-01-05 00:00:00" and events[1]["at"] is None
    assert [place for place, *_ in dead] == ["t:0:2"] and "price" in dead[0][1]


def test_what_is_no_line_is_a_dead_letter_that_says_why() -> None:
    origin = source("k string, v long", separator=";", values="csv", null="-")
    events, dead = read(origin, [b"a;1", b"a;1;2", b"a", b"a;1\nb;2", b'"a;1', b"\xff;1", None, b"-;-", b""])
    assert events == [{"k": "a", "v": 1}, {"k": None, "v": None}]
    assert dead == [
        ("t:0:1", "it has 3 fields, and k, v are 2", "a;1;2"),
        ("t:0:2", "it has 1 field, and k, v are 2", "a"),
        ("t:0:3", "it has 2 lines, and an event is one", "a;1\nb;2"),
        ("t:0:4", "unexpected end of data", '"a;1'),
        ("t:0:5", "it is no UTF-8", "\ufffd;1"),
        ("t:0:6", "no value (a tombstone)", None),
        ("t:0:8", "it has 0 lines, and an event is one", ""),
    ]


@given(st.lists(st.tuples(TEXTS, TEXTS), min_size=1, max_size=5), st.sampled_from(",;\t|"))
@examples(60)
def test_what_pythons_writer_has_written_is_what_is_read(rows: list[tuple[str, str]], separator: str) -> None:
    values = list[bytes]()
    for row in rows:
        line = io.StringIO(newline="")
        csv.writer(line, delimiter=separator).writerow(row)
        values.append(line.getvalue().encode())
    events, dead = read(source("a string, b string", values="csv", separator=separator), values)
    assert [(each["a"], each["b"]) for each in events] == rows and not dead


def test_fields_may_be_named_and_left_out_and_a_message_gives_the_rest() -> None:
    origin = source(
        "v long, k string, topic string, more string",
        values="csv",
        fields=["k", "unused", "amount"],
        columns={"v": "amount"},
        message={"topic": "topic"},
        optional=["more"],
    )
    origin.check()
    assert read(origin, [b"a,x,3"]) == ([{"v": 3, "k": "a", "topic": "t", "more": None}], [])


def test_a_text_is_the_value_of_one_attribute() -> None:
    origin = source("line string, part long", values="text", message={"part": "partition"})
    origin.check()
    events, dead = read(origin, [b'{"no": "object"', b"", "ü,\n".encode(), b"\xff"])
    assert events == [{"line": text, "part": 0} for text in ('{"no": "object"', "", "ü,\n")]
    assert dead == [("t:0:3", "it is no UTF-8", "\ufffd")]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"values": "text"}, 'values is "text", and the stream has a, b'),
        ({"values": "csv", "separator": ";;"}, "separator is ';;'"),
        ({"values": "csv", "separator": '"'}, "separator is"),
        ({"values": "csv", "fields": ["a", "a"]}, "fields name a twice"),
        ({"values": "csv", "schema_file": "x.avsc"}, "has `schema_file` and `values`"),
        ({"values": "csv", "format": "debezium"}, "has `format` and `values`"),
        ({"separator": ";"}, 'has `separator` without `values = "csv"`'),
        ({"values": "text", "null": "x", "message": {"b": "key"}}, 'has `null` without `values = "csv"`'),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_begins(options: Mapping[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        source("a string, b string", **options).check()
