"""A stream's answer is that of the table. Random rows, cut at random, restarted; then the same query without STREAM.

Nothing leaves before it is final: what has left after some rows stays part of the answer however the stream goes on.
"""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest

from rollup.engine.flows.flow import AT
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session
from tests.conformance.uql.targets import reopened
from tests.lang.calcite.test_refusals import TABLES

QUERIES = {
    "floor": "SELECT {s} FLOOR(rowtime TO HOUR) AS h, productId, COUNT(*) AS c, SUM(units) AS u, AVG(units) AS a, MIN(units) AS l FROM Orders GROUP BY FLOOR(rowtime TO HOUR), productId",
    "ceil, having": "SELECT {s} CEIL(rowtime TO MINUTE) AS m, MAX(units) AS u FROM Orders GROUP BY CEIL(rowtime TO MINUTE) HAVING COUNT(*) > 1",
    "tumble": "SELECT {s} TUMBLE_END(rowtime, INTERVAL '7' MINUTE) AS e, COUNT(DISTINCT productId) AS c FROM Orders GROUP BY TUMBLE(rowtime, INTERVAL '7' MINUTE)",
    "grouping sets": "SELECT {s} FLOOR(rowtime TO HOUR) AS h, productId, GROUP_ID() AS i, GROUPING(productId) AS g, COUNT(*) AS c FROM Orders GROUP BY GROUPING SETS ((FLOOR(rowtime TO HOUR), productId), (FLOOR(rowtime TO HOUR)))",
    "filter": "SELECT {s} orderId, units * 2 + 1 AS u, units / 2 AS d FROM Orders WHERE units > 3 AND productId <> 20",
    "range": "SELECT {s} orderId, SUM(units) OVER (PARTITION BY productId ORDER BY rowtime RANGE INTERVAL '10' MINUTE PRECEDING) AS u FROM Orders",
    "range following": "SELECT {s} orderId, COUNT(*) OVER (ORDER BY rowtime RANGE BETWEEN INTERVAL '5' MINUTE PRECEDING AND INTERVAL '3' MINUTE FOLLOWING) AS u FROM Orders",
    "rows": "SELECT {s} orderId, SUM(units) OVER (PARTITION BY productId ORDER BY rowtime, orderId ROWS 2 PRECEDING) AS u FROM Orders",
    "rows following": "SELECT {s} orderId, SUM(units) OVER (ORDER BY rowtime, orderId ROWS BETWEEN 1 PRECEDING AND 2 FOLLOWING) AS u FROM Orders",
    "rank": "SELECT {s} orderId, RANK() OVER (PARTITION BY FLOOR(rowtime TO HOUR) ORDER BY units DESC) AS r FROM Orders",
    "running": "SELECT {s} orderId, SUM(units) OVER (PARTITION BY FLOOR(rowtime TO HOUR) ORDER BY rowtime) AS u FROM Orders",
    "lag": "SELECT {s} orderId, LAG(units, 2, -1) OVER (PARTITION BY productId ORDER BY rowtime, orderId) AS u FROM Orders",
    "lead": "SELECT {s} orderId, LEAD(units) OVER (PARTITION BY productId ORDER BY rowtime, orderId) AS u FROM Orders",
    "sub-query of a table": "SELECT {s} orderId, (SELECT MAX(name) FROM Products AS p WHERE p.productId = o.productId) AS n FROM Orders AS o",
    "distinct": "SELECT {s} DISTINCT FLOOR(rowtime TO MINUTE) AS m, productId FROM Orders",
    "sorted": "SELECT {s} orderId, rowtime, units FROM Orders ORDER BY FLOOR(rowtime TO MINUTE), units",
    "table join": "SELECT {s} o.orderId, p.name FROM Orders AS o LEFT JOIN Products AS p ON o.productId = p.productId",
    "sub-query": "SELECT {s} h, c FROM (SELECT FLOOR(rowtime TO HOUR) AS h, COUNT(*) AS c FROM Orders GROUP BY FLOOR(rowtime TO HOUR)) WHERE c > 2",
    "groups over groups": "SELECT {s} FLOOR(m TO HOUR) AS h, MAX(c) AS c FROM (SELECT FLOOR(rowtime TO MINUTE) AS m, COUNT(*) AS c FROM Orders GROUP BY FLOOR(rowtime TO MINUTE)) GROUP BY FLOOR(m TO HOUR)",
    "groups over frames": "SELECT {s} FLOOR(rowtime TO HOUR) AS h, MAX(u) AS u FROM (SELECT rowtime, SUM(units) OVER (ORDER BY rowtime RANGE BETWEEN CURRENT ROW AND INTERVAL '3' MINUTE FOLLOWING) AS u FROM Orders) GROUP BY FLOOR(rowtime TO HOUR)",
    "self-join": "SELECT {s} a.orderId, b.orderId AS other FROM Orders AS a JOIN Orders AS b ON a.productId = b.productId AND b.rowtime BETWEEN a.rowtime - INTERVAL '2' MINUTE AND a.rowtime + INTERVAL '1' MINUTE",
    "outer self-join": "SELECT {s} a.orderId, b.orderId AS other FROM Orders AS a FULL JOIN Orders AS b ON a.productId = b.productId AND b.rowtime BETWEEN a.rowtime + INTERVAL '1' MINUTE AND a.rowtime + INTERVAL '3' MINUTE",
    "groups over a join": "SELECT {s} FLOOR(a.rowtime TO HOUR) AS h, COUNT(*) AS c FROM Orders AS a JOIN Orders AS b ON a.orderId <> b.orderId AND b.rowtime BETWEEN a.rowtime AND a.rowtime + INTERVAL '2' MINUTE GROUP BY FLOOR(a.rowtime TO HOUR)",
    "union": "SELECT {s} orderId FROM Orders WHERE units > 5 UNION ALL SELECT {s} orderId FROM Orders WHERE productId = 10",
}  # fmt: skip


def _rows(seed: int, count: int) -> list[list[Any]]:
    chance = random.Random(seed)
    now, rows = datetime(2015, 2, 15, 9, 50), list[list[Any]]()
    for number in range(count):
        now += timedelta(seconds=chance.choice([0, 0, 5, 60, 60, 240, 1900]))
        units = None if chance.random() < 0.1 else chance.randrange(12)
        rows.append([str(now), chance.choice([10, 20, 30]), number, units])
    return rows


def _session() -> Session:
    session = Session(Model.of({"tables": TABLES}))
    session.load("Products", [["2015-02-15 00:00:00", 10, "Beer", 0.25], ["2015-02-15 00:00:00", 30, "Cheese", 17.0]])
    return session


def _streamed(
    query: str, rows: list[list[Any]], cuts: list[int], restart: bool = False
) -> list[tuple[int, tuple[Any, ...]]]:
    session = _session()
    standing = session.prepare(query.format(s="STREAM")).standing
    assert standing is not None
    states, at, given = standing.start(), 0, list[tuple[int, tuple[Any, ...]]]()
    for size in [*cuts, 0]:
        ended = size == 0
        arrivals = session.arrivals("Orders", rows[at : at + size], list(range(at, at + size)), ended=ended)
        states, output, refused = standing.step(states, {"orders": arrivals}, session.engine)
        assert not refused
        given += [(row[AT], tuple(v for k, v in row.items() if k != AT)) for row in output.to_pylist()]
        if restart:
            states = dict(zip(states, reopened(tuple(states.values())), strict=True))
        at += size
    return given


def _asked(query: str, rows: list[list[Any]]) -> Counter[tuple[Any, ...]]:
    session = _session()
    session.load("Orders", rows)
    return Counter(tuple(row.values()) for row in session.ask(session.prepare(query.format(s=""))).to_pylist())


def _cuts(seed: int, count: int) -> list[int]:
    chance, cuts = random.Random(seed), list[int]()
    while count:
        cuts.append(min(count, chance.choice([1, 2, 3, 7])))
        count -= cuts[-1]
    return cuts


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.few(6)
def test_a_stream_gives_what_the_same_query_gives_over_the_table(query: str, seed: int) -> None:
    rows = _rows(seed, 40)
    whole = _streamed(query, rows, [len(rows)])
    assert Counter(row for _, row in whole) == _asked(query, rows)
    assert whole, "the query gives rows"
    assert Counter(_streamed(query, rows, _cuts(seed, len(rows)), restart=True)) == Counter(whole)


@pytest.mark.parametrize("query", QUERIES.values(), ids=QUERIES.keys())
@pytest.mark.few(8)
def test_what_has_left_stays_true_however_the_stream_goes_on(query: str) -> None:
    rows, other = _rows(3, 24), _rows(4, 24)
    shift = datetime.fromisoformat(rows[11][0]) - datetime.fromisoformat(other[11][0])
    going_on = [[str(datetime.fromisoformat(row[0]) + shift), *row[1:]] for row in other[12:]]
    early = Counter(row for at, row in _streamed(query, rows, [len(rows)]) if at < 12)
    assert not early - _asked(query, rows)
    assert not early - _asked(query, rows[:12] + going_on)
