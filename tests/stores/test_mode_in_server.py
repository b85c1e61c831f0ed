"""`mode` inside PostgreSQL: views, functions and questions put counts together there as our own functions do."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import psycopg
import pytest

from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from rollup.stores.databases import store_of
from rollup.stores.sql.ddl import answerable
from tests.servers.postgres import NewUrl

pytestmark = pytest.mark.postgres
START, DAY = 1_514_764_800_000, 86_400_000
APP = """define stream S (k string, t string, d double, i long, b bool, ts long);
@OutOfOrder('correct') define aggregation A from S
select k, mode(t) as t, mode(d) as d, mode(i) as i, mode(b) as b group by k aggregate by ts every sec ... year;"""
VALUES: dict[str, list[Any]] = {
    "t": ["9", "10", 'a "b"', "ä", "Z", "it's\\n\n", "", None],
    "d": [9.0, 10.0, -1.5, 1e300, float("nan"), float("inf"), 0.0, None],
    "i": [9, 10, -(2**62), 2**53 + 1, 2**53, None, 0, 1],
    "b": [True, False, None, True, False, None, True, False],
}


def usual(values: list[Any]) -> Any:
    """The value that came most often, of several the least; NaN is greater than every number."""
    counts = Counter("nan" if value != value else value for value in values if value is not None)
    if not counts:
        return None
    order = (lambda v: (False, v.encode())) if any(isinstance(v, str) and v != "nan" for v in counts) else _number
    return min(counts, key=lambda value: (-counts[value], order(value)))


def _number(value: Any) -> Any:
    return (value == "nan", 0 if value == "nan" else value)


def _plain(value: Any) -> Any:
    return "nan" if isinstance(value, float) and value != value else value


def test_views_and_questions_give_the_value_that_came_most_often(new_url: NewUrl) -> None:
    url, draw = new_url(), random.Random(7)
    host = LocalHost(compile_app(APP), lambda aggregation, engine: store_of(aggregation, engine, url))
    events = [
        (draw.choice("xy"), *(draw.choice(VALUES[name]) for name in "tdib"), START + draw.randrange(40) * DAY)
        for _ in range(160)
    ]
    for begin in range(0, len(events), 40):
        host.send("S", events[begin : begin + 40])
    aggregation = host.program.aggregations["A"]
    assert not answerable(aggregation)[1], "PostgreSQL has all of it"
    months = {START: 0, START + 31 * DAY: 1}
    found = {
        (start, key): [
            usual([event[place] for event in events if event[0] == key and (event[5] - START) // DAY // 31 == month])
            for place in range(1, 5)
        ]
        for start, month in months.items()
        for key in "xy"
    }
    with psycopg.connect(url, autocommit=True) as client:
        told = client.execute('select "AGG_TIMESTAMP", k, t, d, i, b from "A_per_months"').fetchall()
        assert {row[:2]: [*map(_plain, row[2:])] for row in told} == found
        asked = host.query("from A within '2018' per 'months' select AGG_TIMESTAMP, k, t, d, i, b").to_pylist()
        here = {(row["AGG_TIMESTAMP"], row["k"]): [_plain(row[name]) for name in "tdib"] for row in asked}
        assert here == found
        client.execute("drop aggregate rollup_counts(bytea) cascade")
    asked = host.query("from A within '2018' per 'months' select AGG_TIMESTAMP, k, t, d, i, b").to_pylist()
    assert len(asked) == len(found), "where the server has it not, our own functions do it"
