"""The database of SQL statements is made anew after many queries: what is in it stays exactly as it was."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import pyarrow as pa
import pytest

from rollup.engine.flows import database
from rollup.engine.flows.database import Connection, Database
from rollup.engine.flows.flow import Relational
from rollup.hosts.local import LocalHost
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session
from tests.statements.test_tables import FOUR, JOINED, STREAMS, TOTALS, rows

VALUES = {
    "BOOLEAN": "true", "TINYINT": "-128", "BIGINT": "-9223372036854775808",
    "HUGEINT": "170141183460469231731687303715884105727", "UHUGEINT": "340282366920938463463374607431768211455",
    "FLOAT": "0.1", "DOUBLE": "'nan'", "DECIMAL(38, 10)": "1234567890123456789012345678.0123456789",
    "DATE": "'2024-02-29'", "TIME": "'12:34:56.123456'", "TIMETZ": "'12:34:56.123456+05:30'",
    "TIMESTAMP": "'2024-01-31 10:00:00.123456'", "TIMESTAMPTZ": "'2024-01-31 10:00:00.123456+02'",
    "TIMESTAMP_NS": "'2024-01-31 10:00:00.123456789'", "INTERVAL": "'3 months 4 days 5 microseconds'",
    "VARCHAR": "'ü and ''quotes'''", "BLOB": r"'\x00\xff'", "BIT": "'0101'",
    "UUID": "'550e8400-e29b-41d4-a716-446655440000'", "INTEGER[]": "[1, NULL, 3]",
    "STRUCT(a INTEGER, b VARCHAR)": "{'a': 1, 'b': NULL}", "MAP(VARCHAR, INTEGER)": "MAP {'k': 1}",
}  # fmt: skip
"""A value of each type of DuckDB that a table may have."""


def test_rows_of_every_type_stay_as_they_were_and_in_their_order() -> None:
    made = Database(lambda connection: connection.execute("SET TimeZone = 'UTC'"))
    made.define(f"CREATE TABLE t ({', '.join(f'c{n} {kind}' for n, kind in enumerate(VALUES))}, n INTEGER)")
    made.define('CREATE TABLE "odd "" name" (x INTEGER)')
    for n in range(3):
        made.connection.execute(f"INSERT INTO t VALUES ({', '.join(VALUES.values())}, {n})")
        made.connection.execute(f"INSERT INTO t VALUES ({', '.join(['NULL'] * len(VALUES))}, {n})")
    made.connection.execute('INSERT INTO "odd "" name" VALUES (7)')
    texts = ", ".join(f"typeof(c{n}), CAST(c{n} AS VARCHAR)" for n in range(len(VALUES)))
    before = made.connection.execute(f"SELECT {texts}, n FROM t").fetchall()
    for _ in range(3):
        made.renew()
        assert made.connection.execute(f"SELECT {texts}, n FROM t").fetchall() == before
    assert made.connection.execute('FROM "odd "" name"').fetchall() == [(7,)]


def test_views_of_relations_and_functions_stay() -> None:
    engine = Relational()
    engine.narrows()
    engine.database.show("r", pa.table({"x": [1]}))
    engine.database.define("CREATE TEMP VIEW v AS SELECT x + 1 AS y FROM r")
    engine.database.show("r", pa.table({"x": [2, 2**62]}))
    asked = "SELECT narrowed(CAST(SUM(y) AS HUGEINT) * 4), SUM(x) // 0 FROM v, r"
    for lost in (1, 2, 3):
        assert engine.connection.execute(asked).fetchall() == [(None, None)]
        assert engine.connection.execute("FROM v").fetchall() == [(3,), (2**62 + 1,)] and engine.lost == lost
        engine.database.renew()


def test_a_database_is_closed_when_it_is_used_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_MOST", 20)
    seen, begun = weakref.WeakSet[Connection](), list[int]()
    made = Database(seen.add, lambda _: begun.append(1))
    made.define("CREATE TABLE t (x INTEGER)")
    for n in range(100):
        with made.use(), made.use():
            made.connection.execute("CREATE TEMP TABLE own AS SELECT 1")
            made.connection.execute(f"INSERT INTO t VALUES ({n})")
            made.connection.execute("DROP TABLE own")  # a piece of work has one database
    gc.collect()
    assert len(seen) == 1 and 2 < len(begun) < 50
    assert made.connection.execute("FROM t").fetchall() == [(n,) for n in range(100)]


@pytest.mark.parametrize("most", [1, 8192])
def test_statements_over_tables_say_the_same_over_new_databases(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """The answers, worked out by hand, of events that come one by one."""
    monkeypatch.setattr(database, "_MOST", most)
    host = LocalHost.of(STREAMS + TOTALS + JOINED)
    for event in FOUR:
        host.send("S", [event])
    assert rows(host) == [("a", 1.0, None), ("b", 2.0, None), ("a", 2.0, 1.0), ("a", 3.0, 3.0)]


@pytest.mark.parametrize("most", [1, 8192])
def test_tables_of_a_session_keep_what_was_loaded_and_changed(monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    monkeypatch.setattr(database, "_MOST", most)
    columns: Any = {"k": "VARCHAR", "v": "DECIMAL(38, 10)"}
    session = Session(Model.of({"tables": {"T": {"columns": columns, "key": ["k"]}}}))
    found = list[Any]()
    for number in range(5):
        session.load("T", [(f"k{number}", f"{number}.0123456789")])
        session.prepare(f"UPDATE T SET v = v + 1 WHERE k = 'k{number}'")
        found.append(session.ask(session.prepare("SELECT SUM(v) AS s, COUNT(*) AS n FROM T")).to_pylist())
    sums = [sum(range(1, n + 2)) + (n + 1) * 123456789 / 10**10 for n in range(5)]
    assert [(float(row["s"]), row["n"]) for (row,) in found] == [
        (pytest.approx(s, abs=0), n) for n, s in enumerate(sums, 1)
    ]
