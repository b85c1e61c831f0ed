"""Changes of the rows of a database's table: aggregates are at any time those of the rows that the table has then.

The oracle is a dict of the rows, aggregated in plain Python.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from functools import cache
from pathlib import Path
from statistics import pvariance
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import rollup
from rollup.conf import check
from rollup.core.columns import ColumnEngine
from rollup.core.errors import ConfigError, PlanError
from rollup.hosts.local import LocalHost, StoreFactory
from rollup.plan.app import SIGN
from rollup.program import Declaration, Program
from rollup.sources.kafka import Kafka
from rollup.stores.databases import store_of
from rollup.stores.delta.store import DeltaStore
from rollup.stores.memory import MemoryStore
from tests.job.jobs import Job
from tests.job.test_avro import record_of, written

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tests.servers.kafka import KafkaBroker
    from tests.servers.postgres import NewUrl

Row = dict[str, Any]
Encode = Callable[[str, Row | None, Row | None], bytes]
ROWS = "define stream Orders (id long, k string, n long, x double, d decimal(12, 2), ts long);"
FEW = "k, sum(n) as total, count() as orders, avg(x) as mean, stdDev(x) as spread, sum(d) as paid"
MORE = f"""{FEW}, count(x) as measured, sum(x) as length, variance(n) as variance, avg(d) as price,
weightedAvg(x, n) as weighted, histogram(n, 0, 2) as steps, covariance(x, n) as together, mode(n) as usual"""
BY = "group by k aggregate by ts every sec ... hour;"
APP = f"{ROWS}\n@OutOfOrder('correct') @BufferSize('1') define aggregation Agg from Orders select {FEW} {BY}"
DERIVED = f"""{ROWS}
define stream Dear (k string, n long, x double, d decimal(12, 2), ts long);
from Orders[n > 0 or n is null] select k, n, x, d, ts insert into Dear;
@OutOfOrder('correct') define aggregation Agg from Dear select {FEW} {BY}"""
START = 1_514_764_790_000  # ten seconds before 2018


def in_json(op: str, before: Row | None, after: Row | None) -> bytes:
    return json.dumps({"before": before, "after": after, "op": op, "ts_ms": 7}).encode()


def wrapped(op: str, before: Row | None, after: Row | None) -> bytes:
    return json.dumps({"schema": {"op": "x"}, "payload": {"before": before, "after": after, "op": op}}).encode()


NULLABLE = {"k": "string", "n": "long", "x": "double", "d": "string"}
ORDER = record_of(
    {"name": "id", "type": "long"},
    *({"name": name, "type": ["null", kind]} for name, kind in NULLABLE.items()),
    {"name": "ts", "type": "long"},
    name="Value",
)
ENVELOPE = record_of(
    {"name": "before", "type": ["null", ORDER]},
    {"name": "after", "type": ["null", "Value"]},
    {"name": "op", "type": "string"},
    name="Envelope",
)


def in_avro(op: str, before: Row | None, after: Row | None) -> bytes:
    return written(ENVELOPE, {"before": before, "after": after, "op": op})


PROTO = """syntax = "proto3";
message Envelope { optional Value before = 1; optional Value after = 2; string op = 3; }
message Value { int64 id = 1; optional string k = 2; optional int64 n = 3; optional double x = 4; optional string d = 5; int64 ts = 6; }
"""


@cache
def envelope() -> Any:
    from google.protobuf.message_factory import GetMessageClass

    from rollup.sources.topics.protobuf import Schema

    return GetMessageClass(Schema(PROTO, placed=False)._types["Envelope"])  # pyright: ignore[reportPrivateUsage]


def in_protobuf(op: str, before: Row | None, after: Row | None) -> bytes:
    given = {"before": before, "after": after}
    rows = {
        side: {name: value for name, value in row.items() if value is not None}
        for side, row in given.items()
        if row is not None
    }
    return envelope()(op=op, **rows).SerializeToString()


WRITTEN: dict[str, tuple[Encode, str, str]] = {
    "json": (in_json, "", ""),
    "wrapped": (wrapped, "", ""),
    "avro": (in_avro, "orders.avsc", json.dumps(ENVELOPE)),
    "protobuf": (in_protobuf, "orders.proto", PROTO),
}


def row(rng: random.Random, number: int, now: int) -> Row:
    """A row of the table; its values are added without rounding."""
    return {
        "id": number,
        "k": rng.choice(["a", "b", None]),
        "n": rng.choice([None, -3, 0, 1, 2**10]),
        "x": rng.choice([None, 0.25, -7.5, 1000.0]),
        "d": rng.choice([None, "0.10", "-12.35"]),
        "ts": now - rng.choice([0, 0, 900, 40_000, 86_400_000 * 40]),
    }


class Table:
    """A table and what Debezium says of it."""

    def __init__(self, seed: int, encode: Encode) -> None:
        self.rng, self.encode, self.now, self.made = random.Random(seed), encode, START, 0
        self.rows: dict[int, Row] = {}

    def changes(self, count: int) -> list[bytes | None]:
        """Messages of so many changes, each of them made."""
        said: list[bytes | None] = []
        for _ in range(count):
            self.now += self.rng.choice([0, 10, 800, 70_000, 4_000_000])
            what = self.rng.choice("ccruudd")
            if what in "cr" or not self.rows:
                self.made += 1
                self.rows[self.made] = after = row(self.rng, self.made, self.now)
                said.append(self.encode(what if what in "cr" else "c", None, after))
                continue
            number = self.rng.choice(sorted(self.rows))
            before = self.rows.pop(number)
            if what == "d":
                said += [self.encode("d", before, None), None]  # the second is a tombstone
            else:
                after = row(self.rng, number, self.now)
                if self.rng.random() < 0.5:  # the bucket stays, and most often the key
                    after |= {"ts": before["ts"], "k": before["k"]}
                self.rows[number] = after
                said.append(self.encode("u", before, after))
        return said


class Topic:
    """A topic whose messages a host takes without a broker."""

    def __init__(self, program: Program, **options: Any) -> None:
        self.source = Kafka(
            program.streams["Orders"], {"servers": "none:1", "topic": "t", "format": "debezium", **options}
        )
        self.source.check()
        self.engine, self.offset, self.letters = ColumnEngine(threads=1), 0, list[Row]()

    def send(self, host: LocalHost, messages: Sequence[bytes | None]) -> None:
        count = len(messages)
        numbers = range(self.offset, self.offset + count)
        self.offset += count
        columns = {
            "value": pa.array(messages, pa.binary()),
            "timestamp": pa.array([START + number for number in numbers], pa.int64()),
            "kafka_partition": pa.array([0] * count, pa.int32()),
            "kafka_offset": pa.array(numbers, pa.int64()),
        }
        events = list[pa.Table]()
        for part in self.source.parts(self.engine, pa.table(columns)):
            self.letters += part.dead.to_pylist()
            events.append(self.engine.run(f"FROM {part.view}"))
        host.process("Orders", pa.concat_tables(events).sort_by("__arrival"))


def program(text: str) -> Program:
    return Declaration(text, changes=("Orders",)).program()


WIDTHS = {"seconds": 19, "minutes": 16, "hours": 13}


def started(time: int, per: str) -> str:
    return datetime.fromtimestamp(time / 1000, UTC).isoformat()[: WIDTHS[per]]


class Expected(dict[str, Any]):
    """All aggregates of a group, of which an answer may have some."""

    def __eq__(self, other: object) -> bool:
        return isinstance(other, dict) and len(other) > 4 and all(self[name] == other[name] for name in other)

    def __repr__(self) -> str:
        return repr(sorted(self.items()))

    __hash__ = None  # type: ignore[assignment]


def expected(rows: Sequence[Row], per: str) -> dict[tuple[str, Any], Row]:
    """The aggregates of rows, by the start of the bucket as a text cut to its level, and key."""
    groups = defaultdict[tuple[str, Any], list[Row]](list)
    for each in rows:
        start = started(each["ts"], per)
        groups[start, each["k"]].append(each)
    return {place: Expected(aggregated(group)) for place, group in groups.items()}


def aggregated(group: Sequence[Row]) -> Row:
    def there(name: str) -> list[Any]:
        return [each[name] for each in group if each[name] is not None]

    n, x, d = there("n"), there("x"), [Decimal(each) for each in there("d")]
    pairs = [(each["x"], each["n"]) for each in group if each["x"] is not None]
    weight = [w for _, w in pairs if w is not None]
    return {
        "total": sum(n) if n else None,
        "orders": len(group),
        "measured": len(x),
        "length": sum(x) if x else None,
        "mean": sum(x) / len(x) if x else None,
        "spread": pytest.approx(pvariance(x) ** 0.5, rel=1e-6, abs=1e-3) if x else None,
        "variance": pytest.approx(pvariance(n), rel=1e-9, abs=1e-3) if n else None,
        "paid": sum(d) if d else None,
        "price": pytest.approx(sum(d) / len(d), abs=Decimal("0.00000001")) if d else None,
        "weighted": pytest.approx(sum(a * b for a, b in pairs if b is not None) / sum(weight), rel=1e-9)
        if weight and sum(weight)
        else None,
        "together": pytest.approx(_covariance([p for p in pairs if p[1] is not None]), rel=1e-6, abs=1e-3)
        if weight
        else None,
        "usual": min(n, key=lambda v: (-n.count(v), v), default=None),
        "steps": f"[{sum(v < 0 for v in n)}, {sum(0 <= v < 2 for v in n)}, {sum(v >= 2 for v in n)}]",
    }


def _covariance(pairs: Sequence[tuple[float, int]]) -> float:
    x, y = (sum(Fraction(pair[side]) for pair in pairs) / len(pairs) for side in (0, 1))
    return float(sum((Fraction(a) - x) * (b - y) for a, b in pairs) / len(pairs))


def found(host: LocalHost, per: str) -> dict[tuple[str, Any], Row]:
    made = dict[tuple[str, Any], Row]()
    for each in host.query(
        f"from Agg within '2017-01-01 00:00:00', '2020-01-01 00:00:00' per '{per}' select *"
    ).to_pylist():
        start = started(each.pop("AGG_TIMESTAMP"), per)
        place = start, each.pop("k")
        assert place not in made
        made[place] = each
    return made


@pytest.fixture(params=["delta", "sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> StoreFactory:
    if request.param == "delta":
        return lambda a, e: DeltaStore(a, e, tmp_path)
    if request.param == "sqlite":
        return lambda a, e: store_of(a, e, f"sqlite:///{tmp_path}/agg.db")
    new_url: NewUrl = request.getfixturevalue("new_url")
    url = new_url()
    return lambda a, e: store_of(a, e, url, patience=20)


@pytest.mark.parametrize("text", [APP, DERIVED], ids=["stream", "derived"])
@pytest.mark.few("delta-stream", "sqlite-derived", "postgresql-stream")
def test_aggregates_are_those_of_the_rows_that_are_there(text: str, store: StoreFactory) -> None:
    made = program(text)
    table, topic, host = Table(3, in_json), Topic(made), LocalHost(made, store)
    for number, widths in enumerate((["seconds"], ["minutes"], WIDTHS)):
        topic.send(host, table.changes(60))
        if number == 1:
            host = LocalHost(made, store)
        rows = [r for r in table.rows.values() if text == APP or r["n"] is None or r["n"] > 0]
        for per in widths:
            assert found(host, per) == expected(rows, per), (number, per)
    assert not topic.letters
    topic.send(host, [table.encode("d", each, None) for each in table.rows.values()])
    assert not found(host, "hours"), "of an empty table there are no rows"


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.few(2)
def test_changes_are_read_however_they_are_written(kind: str, tmp_path: Path) -> None:
    encode, file, schema = WRITTEN[kind]
    (tmp_path / (file or "none")).write_text(schema)
    made = program(APP.replace(FEW, MORE))
    options = {"schema_file": str(tmp_path / file)} if file else {}
    table, topic, host = Table(5, encode), Topic(made, **options), LocalHost(made, MemoryStore)
    for count in (1, 60, 60):
        topic.send(host, table.changes(count))
    assert found(host, "hours") == expected(list(table.rows.values()), "hours")
    assert not topic.letters


def test_what_cannot_be_taken_back_or_read_is_a_letter_with_the_cure() -> None:
    made = program(APP)
    topic, host = Topic(made), LocalHost(made, MemoryStore)
    one = row(random.Random(1), 1, START)
    odd = {**one, "n": "many"}
    topic.send(
        host,
        [
            in_json("c", None, one),
            in_json("u", None, one),
            in_json("d", None, None),
            in_json("c", None, None),
            in_json("t", None, None),
            b'{"k": "a"}',
            b"none",
            None,
            in_json("u", one, odd),
            in_json("u", odd, one),
        ],
    )
    said = [(each["position"], each["reason"].partition(":")[0]) for each in topic.letters]
    assert sorted(said) == [
        ("t:0:1", "a change without `before`"),
        ("t:0:2", "a change without `before`"),
        ("t:0:3", "a change without `after`"),
        ("t:0:4", "no change of a row"),
        ("t:0:5", "not a change event of Debezium"),
        ("t:0:6", "not a change event of Debezium"),
        ("t:0:8", "n is not a long"),
        ("t:0:9", "n is not a long"),
    ]
    assert any("REPLICA IDENTITY FULL" in each["reason"] for each in topic.letters)
    taken = [json.loads(each["raw"])[SIGN] for each in topic.letters if each["reason"] == "n is not a long"]
    assert sorted(taken) == [-1, 1], "each of the two says whether it comes"
    assert found(host, "hours") == expected([one], "hours"), "what is no row now did not stay as it was"


def test_a_row_that_never_came_is_seen_when_it_is_taken_back() -> None:
    made = program(APP)
    topic, host = Topic(made), LocalHost(made, MemoryStore)
    topic.send(host, [in_json("d", row(random.Random(1), 1, START), None)])
    assert [each["orders"] for each in found(host, "hours").values()] == [-1]


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("select min(n) as m aggregate by ts every sec", "what min keeps of a bucket does not tell"),
        ("select max(n) as m aggregate by ts every sec", "what max keeps"),
        ("select distinctCount(k) as m aggregate by ts every sec", "what distinctCount keeps"),
        ("select hll(k) as m aggregate by ts every sec", "what hll keeps"),
        ("select median(n) as m aggregate by ts every sec", "what quantiles keeps"),
        ("select topK(k, 2) as m aggregate by ts every sec", "what topK keeps"),
        ("select last(n) as m aggregate by ts every sec", "what last keeps"),
        ("select n, count() as m aggregate by ts every sec", "n is the value of the latest event"),
        ("select count() as m aggregate every sec", "by the time of arrival"),
    ],
)
def test_what_keeps_no_inverse_is_refused_by_name(more: str, said: str) -> None:
    with pytest.raises(PlanError, match=said) as problem:
        program(f"{ROWS} @OutOfOrder('correct') define aggregation Agg from Orders {more};")
    assert problem.value.line is not None


@pytest.mark.parametrize("policy", ["", "@OutOfOrder('merge')", "@IgnoreEventsOlderThanBuffer('true')"])
def test_a_policy_that_moves_late_rows_is_refused(policy: str) -> None:
    with pytest.raises(PlanError, match="from another bucket than its own"):
        program(APP.replace("@OutOfOrder('correct')", policy))


JOIN = """define stream Ask (k string);
from Orders as o join Agg as a on a.k == o.k within '2017-01-01 00:00:00', '2020-01-01 00:00:00' per 'hours' select o.k, a.orders insert into Told;"""


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ("@lang('epl') { select count(*) as n from Orders; }", "read or feed Orders, a stream of changes"),
        ("@lang('epl') { select orders from Agg_SECONDS; }", "what Agg closes of Orders, a stream of changes"),
        (JOIN.partition("\n")[2], "Orders is a stream of changes, and cannot ask an aggregation"),
    ],
)
def test_who_takes_no_row_back_is_refused(more: str, said: str) -> None:
    with pytest.raises(PlanError, match=said):
        program(f"{APP}\n{more}".replace(" d decimal(12, 2),", "").replace(", sum(d) as paid", ""))


def test_a_sink_of_changes_and_values_that_a_row_does_not_keep_are_refused(tmp_path: Path) -> None:
    options = {"kind": "kafka", "servers": "none:1", "topic": "t", "format": "debezium"}
    job = Job(tmp_path, options, app=APP, streams=("Orders",), more='[sinks.Orders]\nkind = "console"')
    with pytest.raises(ConfigError, match="Orders is a stream of changes, and a sink takes no row back"):
        check(job.conf, job.conf.program())
    with pytest.raises(ConfigError, match="message gives ts the timestamp of a message"):
        Topic(program(APP), message={"ts": "timestamp"})


@pytest.mark.spark
@pytest.mark.kafka
def test_a_job_takes_nothing_back_twice(tmp_path: Path, spark: SparkSession, kafka: KafkaBroker) -> None:
    """Not even when it was killed after its commit, and Spark gives the batch once more."""
    topic, table, producer = kafka.new_topic(1), Table(9, in_json), kafka.producer()
    options = {"kind": "kafka", "servers": kafka.bootstrap, "topic": topic, "format": "debezium"}
    job = Job(tmp_path, options, app=APP, streams=("Orders",))
    for number in range(2):
        for message in table.changes(60):
            producer.produce(topic, message)
        assert producer.flush(30) == 0
        job.run(spark)
        (tmp_path / f"checkpoint/Orders/commits/{number}").unlink()
        (tmp_path / f"checkpoint/Orders/commits/.{number}.crc").unlink(missing_ok=True)
    producer.produce(topic, None)
    assert producer.flush(30) == 0
    job.run(spark)
    assert not job.letters(), "nor is a batch of tombstones alone"
    rows = expected(list(table.rows.values()), "hours")
    totals = sorted((start, str(key), each["total"], each["orders"]) for (start, key), each in rows.items())
    assert asked(job) == totals


def asked(job: Job) -> list[tuple[str, str, Any, Any]]:
    question = "from Agg within '2017-01-01 00:00:00', '2020-01-01 00:00:00' per 'hours' select AGG_TIMESTAMP, k, total, orders"
    rows = rollup.query(job.path, question).to_pylist()
    return sorted(
        (started(each["AGG_TIMESTAMP"], "hours"), str(each["k"]), each["total"], each["orders"]) for each in rows
    )
