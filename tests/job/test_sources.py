"""What comes in: every kind of source, on good, odd and broken records.

The half of a source that runs in a task needs no Spark, so most of these are tables of small cases over real files;
one run of the real job a kind proves the other half, with the dead letters it leaves.
"""

from __future__ import annotations

import gzip
import json
import os
import random
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from deltalake import DeltaTable, write_deltalake

from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, StoreError
from rollup.core.packing import unpack
from rollup.hosts.spark.tasks.task import TaskSpec, run
from rollup.program import Declaration, compile_app
from rollup.sources.base import Part, Source
from rollup.sources.delta import Delta
from rollup.sources.file_log import listed
from rollup.sources.files import Files
from rollup.sources.new_files import NewFiles
from rollup.sources.registry import source
from tests.job.jobs import TRADES, Job, answers

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker

STREAM = compile_app(TRADES).streams["Trades"]
NAMES = list(STREAM.attributes)
GOOD = {"symbol": "a", "price": 1.5, "quantity": 3, "ts": 1000}
Read = tuple[list[dict[str, Any]], list[dict[str, Any]]]


def of(kind: str, folder: Path, **options: Any) -> Source:
    """The source of the trades stream over a folder."""
    return source(STREAM, {"kind": kind, "path": str(folder), **options})


def read(origin: Source, *files: Path) -> Read:
    """(events, dead letters) of files, as a task reads them."""
    rows = [{"path": str(file), "modified": int(file.stat().st_mtime * 1_000_000)} for file in files]
    return drained(origin, pa.Table.from_pylist(rows))


def drained(origin: Source, batch: pa.Table) -> Read:
    """(events, dead letters) of a task's share of a batch."""
    engine = ColumnEngine(threads=1)
    events, dead = list[dict[str, Any]](), list[dict[str, Any]]()
    for part in origin.parts(engine, batch):
        events += engine.run(f"SELECT * FROM {part.view} ORDER BY __arrival").to_pylist()
        dead += part.dead.to_pylist()
        assert part.rows >= len(events[-part.rows :]) if part.rows else True
    return events, dead


def values(events: Iterable[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Events without our own columns."""
    return [tuple(event[name] for name in NAMES) for event in events]


def lines(path: Path, *texts: str) -> Path:
    """A text file of lines."""
    path.write_text("".join(text + "\n" for text in texts))
    return path


# Parquet


def parquet(path: Path, **columns: pa.Array) -> Path:
    """A Parquet file of two good trades, some columns replaced or, with None, left out."""
    table: dict[str, Any] = {
        "symbol": ["a", "b"],
        "price": [1.5, 2.0],
        "quantity": [3, 4],
        "ts": [1000, 2000],
    } | columns
    pq.write_table(pa.table({name: values for name, values in table.items() if values is not None}), path)
    return path


def test_parquet_columns_of_the_right_type_are_read_as_they_are(tmp_path: Path) -> None:
    events, dead = read(of("parquet", tmp_path), parquet(tmp_path / "f.parquet"))
    assert values(events) == [("a", 1.5, 3, 1000), ("b", 2.0, 4, 2000)]
    assert [event["__arrival"] for event in events] == [0, 1]
    assert dead == []


@pytest.mark.parametrize(
    ("column", "given", "wanted"),
    [
        ("price", pa.array([1, 2], pa.int32()), [1.0, 2.0]),
        ("price", pa.array(["1.25", "2"]), [1.25, 2.0]),
        ("quantity", pa.array([3.0, 4.0]), [3, 4]),
        ("quantity", pa.array([3, None], pa.int16()), [3, None]),
        ("symbol", pa.array([7, 8]), ["7", "8"]),
        ("ts", pa.array([1, 2], pa.timestamp("s")), [1000, 2000]),
        ("ts", pa.array([1, 2], pa.timestamp("ms")), [1, 2]),
        ("ts", pa.array([1000, 2999], pa.timestamp("us")), [1, 2]),
        ("ts", pa.array([1000, 2000], pa.timestamp("ms", tz="+05:00")), [1000, 2000]),
        ("ts", pa.array([1_000_000, 2_000_000], pa.timestamp("ns")), [1, 2]),
        ("ts", pa.array([0, 1], pa.date32()), [0, 86_400_000]),
    ],
)
def test_parquet_columns_of_another_type_are_converted(
    tmp_path: Path, column: str, given: pa.Array, wanted: list[Any]
) -> None:
    events, dead = read(of("parquet", tmp_path), parquet(tmp_path / "f.parquet", **{column: given}))
    assert ([event[column] for event in events], dead) == (wanted, [])


@pytest.mark.parametrize(
    ("column", "given", "reason"),
    [
        ("quantity", pa.array(["3", "many"]), "quantity is not a long"),
        ("quantity", pa.array([3.0, 4.5]), "quantity is not a long"),
        ("price", pa.array(["1", "-"]), "price is not a double"),
        ("ts", pa.array(["1", "1970-01-01"]), "ts is not a long"),
    ],
)
def test_a_parquet_value_that_does_not_fit_is_a_dead_letter(
    tmp_path: Path, column: str, given: pa.Array, reason: str
) -> None:
    file = parquet(tmp_path / "f.parquet", **{column: given})
    events, dead = read(of("parquet", tmp_path), file)
    assert [event["symbol"] for event in events] == ["a"]
    assert [(letter["stream"], letter["reason"], letter["position"]) for letter in dead] == [
        ("Trades", reason, f"{file}:1")
    ]
    assert json.loads(dead[0]["raw"])["symbol"] == "b"


def test_a_parquet_file_without_a_column_is_one_dead_letter_that_names_it(tmp_path: Path) -> None:
    bad, good = parquet(tmp_path / "a.parquet", price=None), parquet(tmp_path / "b.parquet")
    events, dead = read(of("parquet", tmp_path), bad, good)
    assert len(events) == 2
    assert dead == [
        {
            "stream": "Trades",
            "reason": "the file has no column price; it has symbol, quantity, ts",
            "position": str(bad),
            "raw": "",
        }
    ]


@pytest.mark.parametrize("content", [b"", b"PAR1", b"no parquet at all"], ids=["empty", "magic only", "text"])
def test_a_broken_parquet_file_is_one_dead_letter_and_the_next_is_read(tmp_path: Path, content: bytes) -> None:
    bad, good = tmp_path / "a.parquet", parquet(tmp_path / "b.parquet")
    bad.write_bytes(content)
    events, dead = read(of("parquet", tmp_path), bad, good)
    assert len(events) == 2
    assert [letter["position"] for letter in dead] == [str(bad)]
    assert dead[0]["reason"].startswith("the file cannot be read: ")


def test_a_parquet_file_damaged_inside_is_one_dead_letter_and_none_of_its_rows_count(tmp_path: Path) -> None:
    bad, good = tmp_path / "a.parquet", parquet(tmp_path / "b.parquet")
    rows = {"symbol": [f"s{i % 97}" for i in range(20_000)], "price": [i / 8 for i in range(20_000)]}
    pq.write_table(
        pa.table(rows | {"quantity": list(range(20_000)), "ts": list(range(20_000))}), bad, use_dictionary=False
    )
    content = bytearray(bad.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 4000] = bytes(4000)
    bad.write_bytes(bytes(content))
    batch = pa.RecordBatch.from_pylist([{"path": str(file), "modified": 0} for file in (bad, good)])
    spec = TaskSpec(Declaration(TRADES), "Trades", {"kind": "parquet", "path": str(tmp_path)})
    found = [row for result in run(spec, iter([batch])) for row in result.to_pylist()]
    letters = [letter for row in found if row["kind"] == "dead" for letter in unpack(row["payload"]).to_pylist()]
    assert [(letter["position"], letter["reason"][:24]) for letter in letters] == [
        (str(bad), "the file cannot be read:")
    ]
    assert [row["origin"] for row in found if row["kind"] == "partials"] == [str(good)]


def test_renamed_columns_and_odd_file_names_are_read(tmp_path: Path) -> None:
    file = parquet(tmp_path / "a b'ü%20.parquet", price=None, cost=pa.array([8.0, 9.0]))
    events, dead = read(of("parquet", tmp_path, columns={"price": "cost"}), file)
    assert ([event["price"] for event in events], dead) == ([8.0, 9.0], [])


# CSV


def test_csv_columns_are_found_by_their_header(tmp_path: Path) -> None:
    file = lines(tmp_path / "f.csv", "ts,extra,quantity,price,symbol", "1000,x,3,1.5,a", "2000,y,,2,b")
    events, dead = read(of("csv", tmp_path), file)
    assert values(events) == [("a", 1.5, 3, 1000), ("b", 2.0, None, 2000)]
    assert dead == []


def test_csv_without_header_takes_the_attributes_in_order(tmp_path: Path) -> None:
    events, dead = read(of("csv", tmp_path, header=False, separator=";"), lines(tmp_path / "f.csv", "a;1.5;3;1000"))
    assert (values(events), dead) == ([("a", 1.5, 3, 1000)], [])


@pytest.mark.parametrize(
    ("row", "symbol"),
    [
        ('"x, ""y""",1.5,3,1000', 'x, "y"'),
        ('"two\nlines",1.5,3,1000', "two\nlines"),
        ("żółć 雪 🎈,1.5,3,1000", "żółć 雪 🎈"),
        ("it's,1.5,3,1000", "it's"),
        ("NULL,1.5,3,1000", "NULL"),
    ],
)
def test_csv_quotes_and_every_script_are_read(tmp_path: Path, row: str, symbol: str) -> None:
    events, dead = read(of("csv", tmp_path), lines(tmp_path / "f.csv", ",".join(NAMES), row))
    assert (values(events), dead) == ([(symbol, 1.5, 3, 1000)], [])


@pytest.mark.parametrize(
    ("row", "reason", "position"),
    [
        ("b,1.5,3", "Expected Number of Columns: 4 Found: 3", "line 3"),
        ("b,1.5,3,1000,9", "Expected Number of Columns: 4 Found: 5", "line 3"),
        ("b,dear,3,1000", "price is not a double", "1"),
        ("b,1.5,3.5,1000", "quantity is not a long", "1"),
        ("b,1.5,9223372036854775808,1000", "quantity is not a long", "1"),
    ],
)
def test_a_csv_row_that_does_not_fit_is_a_dead_letter_and_the_others_are_read(
    tmp_path: Path, row: str, reason: str, position: str
) -> None:
    file = lines(tmp_path / "f.csv", ",".join(NAMES), "a,1.5,3,1000", row, "c,1.5,3,1000")
    events, dead = read(of("csv", tmp_path), file)
    assert [event["symbol"] for event in events] == ["a", "c"]
    assert len(dead) == 1
    assert (dead[0]["reason"], dead[0]["position"]) == (reason, f"{file}:{position}")
    assert "b" in dead[0]["raw"]


def test_a_csv_row_that_is_no_utf8_is_a_dead_letter(tmp_path: Path) -> None:
    file = tmp_path / "f.csv"
    file.write_bytes(b"symbol,price,quantity,ts\n\xff\xfe,1,1,1\nok,1,1,1\n")
    events, dead = read(of("csv", tmp_path), file)
    assert [event["symbol"] for event in events] == ["ok"]
    assert [letter["position"] for letter in dead] == [f"{file}:line 2"]
    assert "utf-8" in dead[0]["reason"]


@pytest.mark.parametrize("bad", [[], ["b,2.5,many,2000,9,"]], ids=["whole", "with a dead letter"])
@pytest.mark.parametrize("together", [True, False])
def test_csv_columns_are_those_of_their_places_whatever_their_names_are(
    tmp_path: Path, together: bool, bad: list[str]
) -> None:
    texts = ["symbol,Price,price,TS,ts,", "a,1.5,3,1000,7,", *bad]
    files = [lines(tmp_path / name, *texts) for name in ("a.csv", "b.csv")]
    columns = {"price": "Price", "quantity": "price", "ts": "TS"}
    rows = [{"path": str(file), "modified": 0, "place": place} for place, file in enumerate(files)]
    batch = pa.Table.from_pylist(rows) if together else pa.Table.from_pylist(rows).drop(["place"])
    events, dead = drained(of("csv", tmp_path, columns=columns), batch)
    assert values(events) == [("a", 1.5, 3, 1000)] * 2
    raw = {"symbol": "b", "Price": "2.5", "price": "many", "TS": "2000", "ts": "9", "": None}
    assert [(json.loads(one["raw"]), one["reason"]) for one in dead] == [(raw, "quantity is not a long")] * 2 * len(bad)


def test_several_texts_may_stand_for_no_value(tmp_path: Path) -> None:
    rows = ["a,,-,1000", "b,N/A,,1000", "c,1.5,3,1000", "-,x,3,1000"]
    for together in ({}, {"place": 0}):
        files = [lines(tmp_path / f"{name}.csv", ",".join(NAMES), *rows) for name in "ab"]
        given = [{"path": str(file), "modified": 0} | {key: at for key in together} for at, file in enumerate(files)]
        events, dead = drained(of("csv", tmp_path, null=["", "-", "N/A"]), pa.Table.from_pylist(given))
        assert values(events) == [("a", None, None, 1000), ("b", None, None, 1000), ("c", 1.5, 3, 1000)] * 2
        assert [one["reason"] for one in dead] == ["price is not a double"] * 2


def test_a_separator_at_the_end_of_each_line_is_no_field(tmp_path: Path) -> None:
    events, dead = read(of("csv", tmp_path), lines(tmp_path / "f.csv", ",".join(NAMES), *["a,1.5,3,1000,"] * 3))
    assert (values(events), dead) == ([("a", 1.5, 3, 1000)] * 3, [])
    events, dead = read(of("csv", tmp_path), lines(tmp_path / "f.csv", ",".join(NAMES), "a,1.5,3,1000,x"))
    assert (events, [one["reason"] for one in dead]) == ([], ["Expected Number of Columns: 4 Found: 5"])


def test_a_csv_column_that_is_there_twice_is_read_where_the_configuration_names_each(tmp_path: Path) -> None:
    file = lines(tmp_path / "f.csv", "symbol,price,quantity,ts,price", "a,1.5,3,1000,2.5")
    events, dead = read(of("csv", tmp_path), file)
    assert not events and "two columns price: `columns` may name price and price:4" in dead[0]["reason"]
    second = of("csv", tmp_path, columns={"price": "price:4"})
    assert values(read(second, file)[0]) == [("a", 2.5, 3, 1000)]
    both = Files(
        compile_app(TRADES.replace("price double", "price double, last double")).streams["Trades"],
        {"kind": "csv", "path": str(tmp_path), "columns": {"last": "price:4"}},
    )
    assert [(row["price"], row["last"]) for row in read(both, file)[0]] == [(1.5, 2.5)]


@pytest.mark.parametrize("names", [["Price", "price"], ["price", "PRICE"]])
def test_parquet_columns_that_differ_by_case_alone_are_refused_as_that(tmp_path: Path, names: list[str]) -> None:
    columns = {"symbol": ["a"], names[0]: [1.5], names[1]: [2.5], "quantity": ["3"], "ts": [1000]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    events, dead = read(of("parquet", tmp_path, columns={"price": names[1]}), tmp_path / "a.parquet")
    assert not events and dead[0]["reason"].startswith(f"the columns {', '.join(names)} differ by case alone")


def test_several_csv_files_compressed_or_not_are_read_one_after_another(tmp_path: Path) -> None:
    plain = lines(tmp_path / "a.csv", ",".join(NAMES), "a,1,1,1", "broken")
    packed = tmp_path / "b.csv.gz"
    packed.write_bytes(gzip.compress(b"symbol,price,quantity,ts\nb,1,1,1\nbroken too\n"))
    empty = lines(tmp_path / "c.csv")
    events, dead = read(of("csv", tmp_path), plain, packed, empty)
    assert [event["symbol"] for event in events] == ["a", "b"]
    assert [letter["raw"] for letter in dead] == ["broken", "broken too", ""]
    assert dead[2]["reason"] == "the file is empty; its first line names the columns"


# JSON lines


def test_json_attributes_are_found_by_name_and_missing_ones_are_null(tmp_path: Path) -> None:
    file = lines(tmp_path / "f.json", json.dumps(GOOD), '{"ts": 5, "symbol": "b", "more": [1]}', "", '{"symbol": null}')
    events, dead = read(of("json", tmp_path), file)
    assert values(events) == [("a", 1.5, 3, 1000), ("b", None, None, 5), (None, None, None, None)]
    assert [event["__arrival"] for event in events] == [0, 1, 2], "an empty line is no record"
    assert dead == []


BROKEN_JSON = [
    ("{bad", "not a record"),
    ('{"symbol": "b"', "not a record"),
    ("[1, 2]", "not a record"),
    ("3", "not a record"),
    ("null", "not a record"),
    ('{"symbol": "b", "price": "dear"}', "price is not a double"),
    ('{"symbol": "b", "quantity": 1.5}', "quantity is not a long"),
    ('{"symbol": "b", "quantity": {"n": 1}}', "quantity is not a long"),
    ('{"symbol": "b", "ts": "2018-01-01"}', "ts is not a long"),
]


@pytest.mark.parametrize(("line", "reason"), BROKEN_JSON)
def test_a_json_line_that_does_not_fit_is_a_dead_letter_with_its_text(tmp_path: Path, line: str, reason: str) -> None:
    file = lines(tmp_path / "f.json", json.dumps(GOOD), line, json.dumps(GOOD | {"symbol": "c"}))
    events, dead = read(of("json", tmp_path), file)
    assert [event["symbol"] for event in events] == ["a", "c"]
    assert dead == [{"stream": "Trades", "reason": reason, "position": f"{file}:1", "raw": line}]


def test_nested_json_is_text_for_a_string_and_can_be_reached_by_path(tmp_path: Path) -> None:
    file = lines(tmp_path / "f.json", '{"symbol": {"name": "ü\\n"}, "trade": {"price": 2.5}, "quantity": 1, "ts": 1}')
    events, _ = read(of("json", tmp_path), file)
    assert json.loads(events[0]["symbol"]) == {"name": "ü\n"}
    events, dead = read(of("json", tmp_path, columns={"symbol": "$.symbol.name", "price": "$.trade.price"}), file)
    assert (values(events), dead) == ([("ü\n", 2.5, 1, 1)], [])


def test_a_json_line_that_is_no_utf8_is_a_dead_letter(tmp_path: Path) -> None:
    file = tmp_path / "f.json"
    file.write_bytes(b'{"symbol": "\xff"}\n' + json.dumps(GOOD).encode() + b"\n")
    events, dead = read(of("json", tmp_path), file)
    assert ([event["symbol"] for event in events], len(dead)) == (["a"], 1)


# Kafka


def messages(*rows: tuple[int, int, int, str | None]) -> pa.Table:
    """What Spark hands to a task: (timestamp, partition, offset, text)."""
    times, partitions, offsets, raw = zip(*rows, strict=True)
    columns = {"value": pa.array([None if text is None else text.encode() for text in raw], pa.binary())}
    return pa.table(
        columns
        | {"timestamp": list(times), "kafka_partition": pa.array(partitions, pa.int32()), "kafka_offset": list(offsets)}
    )


def topic(**options: Any) -> Source:
    """The source of the trades stream over a topic."""
    return source(STREAM, {"kind": "kafka", "servers": "-", "topic": "t", **options})


def test_kafka_messages_arrive_by_time_then_offset_then_partition() -> None:
    rows = [
        (5, 1, 0, '{"symbol": "d"}'),
        (5, 1, 1, '{"symbol": "e"}'),
        (4, 0, 7, '{"symbol": "a"}'),
        (5, 0, 8, '{"symbol": "b"}'),
        (5, 2, 3, '{"symbol": "c"}'),
    ]
    events, dead = drained(topic(), messages(*rows))
    assert [event["symbol"] for event in events] == ["a", "b", "d", "c", "e"]
    assert len({event["__arrival"] for event in events}) == 5
    assert [event["__received"] for event in events] == [4, 5, 5, 5, 5]
    assert dead == []


def test_a_partition_keeps_its_order_when_its_clock_goes_back() -> None:
    rows = [
        (9, 0, 0, '{"symbol": "a"}'),
        (3, 0, 1, '{"symbol": "b"}'),
        (9, 0, 2, '{"symbol": "c"}'),
        (8, 1, 0, '{"symbol": "z"}'),
    ]
    events, _ = drained(topic(), messages(*rows))
    assert [event["symbol"] for event in events] == ["z", "a", "b", "c"]


def test_kafka_garbage_is_dead_letters_with_topic_partition_and_offset() -> None:
    rows = [(1, 0, offset, line) for offset, (line, _) in enumerate(BROKEN_JSON)]
    rows += [(1, 3, 70, None), (2, 3, 71, json.dumps(GOOD))]
    events, dead = drained(topic(), messages(*rows))
    assert values(events) == [("a", 1.5, 3, 1000)]
    found = {letter["position"]: (letter["raw"], letter["reason"]) for letter in dead}
    wanted = {f"t:0:{offset}": case for offset, case in enumerate(BROKEN_JSON)} | {
        "t:3:70": (None, "no value (a tombstone)")
    }
    assert found == wanted


def test_an_empty_share_of_a_batch_has_no_parts() -> None:
    assert list(topic().parts(ColumnEngine(), messages((1, 0, 0, "{}")).slice(0, 0))) == []


def test_columns_in_structs_are_read_by_their_path(tmp_path: Path) -> None:
    paid = pa.array([{"in": {"amount": 2.5}}, {"in": None}, None])
    table = pa.table(
        {"symbol": ["a", "b", "c"], "paid": paid, "quantity": [1, 2, 3], "ts": pa.array([1, 2, 3], pa.timestamp("us"))}
    )
    pq.write_table(table, tmp_path / "x.parquet")
    events, dead = read(of("parquet", tmp_path, columns={"price": "paid.in.amount"}), tmp_path / "x.parquet")
    assert [(event["symbol"], event["price"]) for event in events] == [("a", 2.5), ("b", None), ("c", None)]
    assert dead == []
    _, dead = read(of("parquet", tmp_path, columns={"price": "paid.out"}), tmp_path / "x.parquet")
    assert dead[0]["reason"] == "the file has no column paid.out; it has symbol, paid, quantity, ts"


def test_a_letter_of_a_file_has_times_as_its_stream_has_them(tmp_path: Path) -> None:
    table = pa.table(
        {"symbol": ["a"], "price": ["dear"], "quantity": [1], "ts": pa.array([1_500_500], pa.timestamp("us"))}
    )
    pq.write_table(table, tmp_path / "x.parquet")
    (letter,) = read(of("parquet", tmp_path), tmp_path / "x.parquet")[1]
    assert json.loads(letter["raw"])["ts"] == 1500, "so that it is taken in again as it would have been"


# Delta


def delta(path: Path, *rows: tuple[str, float, int, int], **options: Any) -> None:
    """Append rows to a Delta table."""
    columns = zip(*rows, strict=True)
    write_deltalake(str(path), pa.table(dict(zip(NAMES, map(list, columns), strict=True))), mode="append", **options)


def log(table: Path, *versions: int) -> pa.Table:
    """What Spark hands to a task for versions of a table."""
    files = [table / "_delta_log" / f"{version:020d}.json" for version in versions]
    return pa.Table.from_pylist([{"path": str(file), "modified": 7_000_000} for file in files])


def test_rows_appended_to_a_delta_table_arrive_by_version(tmp_path: Path) -> None:
    table = tmp_path / "t"
    for number in range(3):
        delta(table, (f"s{number}", 1.0, number, number))
    DeltaTable(str(table)).optimize.compact()
    delta(table, ("s3", 1.0, 3, 3))
    parts = list[tuple[int, str]]()
    engine, origin = ColumnEngine(), of("delta", table)
    for part in origin.parts(engine, log(table, 4, 2, 0, 3, 1)):
        parts += [(part.order, row["symbol"]) for row in engine.run(f"SELECT * FROM {part.view}").to_pylist()]
    assert [symbol for _, symbol in sorted(parts)] == ["s0", "s1", "s2", "s3"], "a compaction adds no rows"


def test_the_columns_a_delta_table_is_partitioned_by_are_read(tmp_path: Path) -> None:
    table = tmp_path / "t"
    delta(table, ("a/ü x", 1.0, 3, 1), ("b", 2.0, 4, 2), partition_by=["symbol", "quantity"])
    events, dead = drained(of("delta", table), log(table, 0))
    assert sorted(values(events)) == [("a/ü x", 1.0, 3, 1), ("b", 2.0, 4, 2)]
    assert dead == []


def test_a_version_that_changes_old_rows_is_one_dead_letter(tmp_path: Path) -> None:
    table = tmp_path / "t"
    delta(table, ("a", 1.0, 3, 1), ("b", 2.0, 4, 2))
    DeltaTable(str(table)).update(updates={"price": "9.0"}, predicate="symbol = 'a'")
    delta(table, ("c", 2.0, 4, 2))
    events, dead = drained(of("delta", table), log(table, 0, 1, 2))
    assert [event["symbol"] for event in events] == ["a", "b", "c"]
    assert [letter["reason"] for letter in dead] == [
        "version 1 changes rows that were there; only appended rows are taken"
    ]


def test_a_delta_table_whose_early_log_is_gone_is_refused_at_the_start_unless_told_where_to_begin(
    tmp_path: Path,
) -> None:
    table = tmp_path / "t"
    delta(table, ("a", 1.0, 3, 1))
    delta(table, ("b", 1.0, 3, 1))
    (table / "_delta_log" / f"{0:020d}.json").unlink()
    with pytest.raises(ConfigError, match=r"begins at version 1.*`starting_version = 1`"):
        of("delta", table).begin()  # type: ignore[attr-defined]
    told = of("delta", table, starting_version=1)
    told.begin()  # type: ignore[attr-defined]
    assert [event["symbol"] for event in drained(told, log(table, 1))[0]] == ["b"]


# The real job, once a kind


def write_parquet(folder: Path) -> None:
    folder.mkdir()
    parquet(folder / "a.parquet", quantity=pa.array([3.0, 4.5]))
    (folder / "b.parquet").write_bytes(b"nothing")


def write_csv(folder: Path) -> None:
    folder.mkdir()
    lines(folder / "a.csv", ",".join(NAMES), "a,1.5,3,1000", "b,2", "c,x,1,1")


def write_json(folder: Path) -> None:
    folder.mkdir()
    lines(folder / "a.json", json.dumps(GOOD), "{bad", '{"symbol": "b", "ts": "x"}')


def write_delta(folder: Path) -> None:
    delta(folder, ("a", 1.5, 3, 1000))
    DeltaTable(str(folder)).delete("symbol = 'a'")
    delta(folder, ("a", float("nan"), 0, 400_000_000_000_000))


@pytest.mark.spark
@pytest.mark.parametrize(
    "write", [write_parquet, write_csv, write_json, write_delta], ids=["parquet", "csv", "json", "delta"]
)
@pytest.mark.few(2)
def test_the_job_over_files_keeps_good_records_and_writes_dead_letters(
    tmp_path: Path, spark: SparkSession, write: Callable[[Path], None]
) -> None:
    write(tmp_path / "incoming")
    job = Job(tmp_path, {"kind": write.__name__.removeprefix("write_"), "path": "incoming"})
    job.run(spark)
    assert answers(job.conf, "symbol, total") == [("a", 3)]
    letters = job.letters()
    assert len(letters) == 2
    assert {letter["stream"] for letter in letters} == {"Trades"}
    assert all(letter["reason"] and letter["position"].startswith(str(tmp_path / "incoming")) for letter in letters)
    job.run(spark)
    assert job.letters() == letters, "a second start finds nothing new"


@pytest.mark.spark
def test_the_job_over_the_rate_source_counts_every_row(tmp_path: Path, spark: SparkSession) -> None:
    job = Job(tmp_path, {"kind": "rate", "rows_per_second": 500, "keys": 4})
    job.run_until(
        spark, lambda: job.committed() and sum(n for _, n in answers(job.conf, "symbol, events", per="years")) >= 500
    )
    found = answers(job.conf, "symbol, events", per="years")
    assert {symbol for symbol, _ in found} == {"k0", "k1", "k2", "k3"}
    assert max(n for _, n in found) - min(n for _, n in found) <= 1


@pytest.mark.spark
@pytest.mark.kafka
def test_the_job_over_kafka_keeps_good_messages_and_writes_dead_letters(
    tmp_path: Path, spark: SparkSession, kafka: KafkaBroker
) -> None:
    name = kafka.new_topic(partitions=2)
    kafka.produce(name, [json.dumps(GOOD), b'{"symbol": "\xff\xfe"}', "{bad"], partition=0)
    kafka.produce(name, [json.dumps(GOOD | {"symbol": "b"}), b"\x00\x01\x02"], partition=1)
    job = Job(tmp_path, {"kind": "kafka", "servers": kafka.bootstrap, "topic": name})
    job.run(spark)
    assert answers(job.conf, "symbol, total") == [("a", 3), ("b", 3)]
    assert sorted(letter["position"] for letter in job.letters()) == [f"{name}:0:1", f"{name}:0:2", f"{name}:1:1"]


def stamp(text: str) -> int:
    """Milliseconds since the epoch of a UTC time."""
    return int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp() * 1000)


@pytest.mark.spark
def test_files_of_one_second_come_batch_after_batch_in_the_order_of_their_names(
    tmp_path: Path, spark: SparkSession
) -> None:
    folders = ["", "a", "b/c", "d/e/f/g/h/i/j", "k=1", "_k=1", "p[1]{x,y}"]
    names = [f"{folder}/{n}2:30 é.json".lstrip("/") for folder in folders for n in range(2)]
    odd = ["_hidden/f.json", "_f.json", ".f.json", "f.json._COPYING_", "other.txt"]
    for n, name in enumerate(random.Random(7).sample([*names, *odd], len(names) + len(odd))):
        file = tmp_path / "in" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(json.dumps({**GOOD, "ts": 1000 + n}) + "\n")
        os.utime(file, ns=(0, 1_600_000_000_000_000_000 + (n * 7919 % 1000) * 1_000_000))
    os.utime(tmp_path / "in" / names[5], (1_500_000_000, 1_500_000_000))
    job = Job(tmp_path, {"kind": "json", "path": str(tmp_path / "in"), "max_files_per_batch": 1})
    job.run(spark)
    taken = sorted(listed(job.conf.checkpoint / "Trades", None), key=lambda file: file.entry)
    found = [os.path.relpath(file.path, tmp_path / "in") for file in taken]
    assert found == [names[5], *sorted(name for name in names if name != names[5])]
    assert [file.entry for file in taken] == list(range(len(names)))


def entries(origin: Files, checkpoint: Path, most: int) -> list[list[str]]:
    """The names that a log has by entry when it is written with a restart before each."""
    found = list[list[str]]()
    while NewFiles(origin.folder, origin.order, checkpoint, most).after(len(found) - 1) == len(found):
        found.append([Path(file.path).name for file in listed(checkpoint, range(len(found), len(found) + 1))])
    return found


def test_versions_of_a_copied_table_come_by_their_number(tmp_path: Path) -> None:
    log = tmp_path / "table" / "_delta_log"
    log.mkdir(parents=True)
    for age, version in enumerate([7, 3, 11, 0]):
        (log / f"{version:020}.json").write_text("{}")
        os.utime(log / f"{version:020}.json", (0, 1_600_000_000 + 60 * age))
    (log / f"{3:020}.checkpoint.parquet").touch()
    delta = Delta(STREAM, {"kind": "delta", "path": str(tmp_path / "table")})
    found = entries(delta, tmp_path / "checkpoint", 2)
    assert [[int(name[:20]) for name in names] for names in found] == [[0, 3], [7, 11]]


def test_the_log_of_files_goes_on_behind_what_it_has_summed_up(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    names = [f"{n:02}.json" for n in range(25)]
    for name in names:
        (tmp_path / "in" / name).touch()
        os.utime(tmp_path / "in" / name, (1_600_000_000, 1_600_000_000))
    files = Files(STREAM, {"kind": "json", "path": str(tmp_path / "in")})
    assert entries(files, tmp_path / "checkpoint", 1) == [[name] for name in names]
    log = tmp_path / "checkpoint" / "sources" / "0"
    assert sorted(path.name for path in log.glob("*.compact")) == ["19.compact", "9.compact"]
    (tmp_path / "in" / "late.json").touch()
    assert NewFiles(files.folder, files.order, tmp_path / "checkpoint", 1).after(24) == 25
    for path in log.iterdir():
        path.unlink()
    with pytest.raises(StoreError, match="ends with entry -1, and batches have read up to 24"):
        NewFiles(files.folder, files.order, tmp_path / "checkpoint", 1).after(24)


@pytest.mark.parametrize("glob", ["[a-.json", "{a,b.json", "a}.json"])
def test_a_pattern_that_is_none_is_refused(glob: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="which is no pattern of names"):
        Files(STREAM, {"kind": "json", "path": str(tmp_path), "glob": glob}).check()


@pytest.mark.spark
def test_files_arrive_by_their_modification_time_not_by_their_name(tmp_path: Path, spark: SparkSession) -> None:
    incoming = tmp_path / "incoming"
    incoming.mkdir()
    for name, age, price in (("z", 50, 1.0), ("m", 40, 2.0), ("a", 30, 4.0)):
        file = lines(incoming / f"{name}.json", json.dumps(GOOD | {"price": price}))
        os.utime(file, (1_600_000_000 - age, 1_600_000_000 - age))
    job = Job(
        tmp_path,
        {"kind": "json", "path": "incoming"},
        app=TRADES.replace("sum(quantity) as total", "price as newest, sum(quantity) as total"),
    )
    job.run(spark)
    assert answers(job.conf, "newest") == [(4.0,)]


def test_parts_say_how_many_records_they_have(tmp_path: Path) -> None:
    file = lines(tmp_path / "f.json", json.dumps(GOOD), "{bad", json.dumps(GOOD))
    batch = pa.Table.from_pylist([{"path": str(file), "modified": 3_000_000}])
    parts: list[Part] = list(of("json", tmp_path).parts(ColumnEngine(), batch))
    assert [(part.rows, part.order, part.origin) for part in parts] == [(3, 3, str(file))], "the second of its time"
