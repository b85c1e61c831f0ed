"""Apps and events the store tests share, and a comparison with the store in memory."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rollup.hosts.local import LocalHost, StoreFactory
from rollup.plan.aggregation import Aggregation
from rollup.program import compile_app

FIRST = 1_514_764_790_000  # ten seconds before 2018: all six levels close soon
STREAM = "define stream S (k string, i int, d double, s string, b bool, ts long);"
SELECT = """select k, sum(i) as total, avg(d) as mean, stdDev(d) as spread, count() as n, min(s) as low, max(d) as high,
    distinctCount(s) as kinds, distinctCount(i) as numbers, s as newest, last(i) as latest"""

NUL_EVENTS = [
    [
        ("x\x00", 1, 1.0, "a\x00b", True, FIRST),
        ("x\x01", 2, 2.0, "\x00", True, FIRST),
        ("x", 3, 3.0, "\x01", True, FIRST),
    ],
    [("x\x00", 4, 1.0, "\x01\x02", True, FIRST + 10**8), ("x\x00", 5, 1.0, "a\x00", True, FIRST + 5)],
]
"""Batches with the character NUL in keys and values, and with those that stand for it in PostgreSQL."""


def app(annotations: str = "", select: str = SELECT, by: str = "ts", group: str = "k") -> str:
    """An app with the aggregation Agg over the stream S."""
    stream = STREAM if by == "ts" else STREAM.replace("ts long", "ts string")
    tail = f"group by {group} aggregate by ts every sec ... year;"
    return f"{stream}\n{annotations} define aggregation Agg from S {select} {tail}"


def aggregation(annotations: str = "", select: str = SELECT) -> Aggregation:
    """The aggregation of `app`."""
    return compile_app(app(annotations, select)).aggregations["Agg"]


def batches(seed: int, number: int = 8, size: int = 40) -> list[list[tuple[Any, ...]]]:
    """Events that go on through the years, some late, some with nulls, quotes and other awkward values."""
    rng, now = random.Random(seed), FIRST
    texts = ["a", "", "NULL", 'q"u,o\\te', "ünï\n", None]
    made: list[list[tuple[Any, ...]]] = []
    for _ in range(number):
        rows: list[tuple[Any, ...]] = []
        for _ in range(size):
            now += rng.choice([0, 0, 100, 700, 3_000, 70_000])
            late = rng.choice([0, 0, 0, 2_000, 65_000])
            double = rng.choice([None, 0.1, -2.5, 1e300, 12.75])
            key = rng.choice(["x", "y", None])
            rows.append(
                (
                    key,
                    rng.choice([None, 1, -7, 2**31 - 1]),
                    double,
                    rng.choice(texts),
                    rng.choice([True, None]),
                    now - late,
                )
            )
        made.append(rows)
        now += rng.choice([1_000, 3_700_000, 90_000_000])
    return made


def host(text: str, store: StoreFactory) -> LocalHost:
    """A host of an app on a store."""
    return LocalHost(compile_app(text), store)


def added(old: LocalHost, new: Aggregation) -> pa.Schema:
    """The columns that the tables of a job's aggregation lack for a later declaration."""
    known = old.program.aggregations["Agg"].table_schema.names
    return pa.schema([field for field in new.table_schema if field.name not in known])


def answers(host: LocalHost, columns: str = "*") -> dict[str, list[tuple[Any, ...]]]:
    """What every level answers over all time, sorted; doubles to twelve digits."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    for level in host.program.aggregations["Agg"].levels:
        table = host.query(
            f"from Agg within '2000-01-01 00:00:00', '2100-01-01 00:00:00' per '{level.plural}' select {columns}"
        )
        found[level.plural] = sorted((tuple(map(_plain, row)) for row in rows(table)), key=repr)
    return found


def rows(table: Any) -> Sequence[tuple[Any, ...]]:
    """The rows of an Arrow table."""
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def _plain(value: Any) -> Any:
    return float(f"{value:.12g}") if isinstance(value, float) else value
