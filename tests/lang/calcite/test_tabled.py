"""HOP in queries over tables against the windows counted one by one: window k is [origin + k * emit, + retain)."""

from __future__ import annotations

import random
from collections import Counter
from datetime import datetime, timedelta
from decimal import Decimal

import pytest

from rollup.core.errors import PlanError, QueryError
from rollup.lang.calcite.model import Model
from rollup.lang.calcite.session import Session

EPOCH = datetime(1970, 1, 1)
COLUMNS = {"rowtime": "TIMESTAMP", "k": "VARCHAR", "u": "INTEGER"}


def _session(rows: list[tuple[datetime | None, str, int]]) -> Session:
    session = Session(Model.of({"tables": {"T": {"columns": COLUMNS}, "N": {"columns": {"k": "VARCHAR"}}}}))
    session.load("T", rows)
    session.load("N", [("a",), ("b",)])
    return session


def _asked(session: Session, text: str) -> list[tuple[object, ...]]:
    return [tuple(row.values()) for row in session.ask(session.prepare(text)).to_pylist()]


@pytest.mark.parametrize(
    ("emit", "retain", "align"), [(10, 60, 0), (60, 60, 7), (25, 60, 3), (60, 10, 11), (7, 20, 0), (3600, 7200, 720)]
)
def test_a_row_is_in_every_window_that_contains_it(emit: int, retain: int, align: int) -> None:
    pick = random.Random(emit * retain)
    rows = [
        (EPOCH + timedelta(seconds=pick.randrange(-200, 200)), pick.choice("abc"), pick.randrange(9)) for _ in range(60)
    ]
    wanted = Counter[tuple[datetime, datetime, str]]()
    for time, key, units in rows:
        seconds = int((time - EPOCH).total_seconds())
        for k in range(-400, 400):
            begin = align + k * emit
            if begin <= seconds < begin + retain:
                window = (EPOCH + timedelta(seconds=begin), EPOCH + timedelta(seconds=begin + retain), key)
                wanted[window] += 100 + units
    hop = f"HOP(rowtime, INTERVAL '{emit}' SECOND, INTERVAL '{retain}' SECOND, TIME '0:{align // 60}:{align % 60}')"
    ends = "HOP_START(rowtime), " + hop.replace("HOP(", "HOP_END(")
    text = f"SELECT {ends}, k, SUM(100 + u) FROM T GROUP BY {hop}, k"
    given = _asked(_session([*rows, (None, "a", 1)]), text)
    assert sorted(given, key=str) == sorted(((*window, total) for window, total in wanted.items()), key=str)


def test_hop_stands_beside_joins_conditions_views_and_ends_inside_aggregates() -> None:
    session = _session(
        [(EPOCH + timedelta(seconds=s), key, 1) for s, key in [(5, "a"), (15, "a"), (15, "c"), (25, "b")]]
    )
    hop = "HOP(t.rowtime, INTERVAL '10' SECOND, INTERVAL '20' SECOND)"
    session.prepare("CREATE VIEW V AS SELECT rowtime, k FROM T WHERE u > 0")
    text = (
        f"SELECT HOP_START(t.rowtime) AS s, COUNT(*) AS c, MAX(EXTRACT(SECOND FROM HOP_END(t.rowtime)) - EXTRACT(SECOND "
        f"FROM t.rowtime)) AS age FROM V AS t JOIN N AS n ON t.k = n.k WHERE t.k <> 'x' GROUP BY {hop} "
        "HAVING COUNT(*) > 0 ORDER BY s"
    )
    at = [EPOCH + timedelta(seconds=s) for s in (-10, 0, 10, 20)]
    # of 5 and 15 (a) and 25 (b): [-10, 10) has 5; [0, 20) has 5 and 15; [10, 30) has 15 and 25; [20, 40) has 25
    assert _asked(session, text) == [(at[0], 1, 5), (at[1], 2, 15), (at[2], 2, 15), (at[3], 1, 15)]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT HOP_START(rowtime) FROM T GROUP BY k", "needs one HOP in GROUP BY"),
        ("SELECT COUNT(*) FROM T GROUP BY HOP(rowtime, INTERVAL '1' HOUR)", "HOP has 2 arguments"),
        ("SELECT COUNT(*) FROM T GROUP BY HOP(rowtime, INTERVAL '0' HOUR, INTERVAL '1' HOUR)", "intervals above zero"),
        (
            "SELECT HOP_END(rowtime, INTERVAL '1' HOUR, INTERVAL '1' HOUR) FROM T "
            "GROUP BY HOP(rowtime, INTERVAL '1' HOUR, INTERVAL '2' HOUR)",
            "must have matching call",
        ),
    ],
)
def test_what_hop_over_a_table_cannot_be_is_refused_by_name(text: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        _session([]).prepare(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SELECT k,\n  SUM(v) AS s FROM W GROUP BY k", "line 2, column 3: the sum is beyond 64 bits"),
        ("SELECT SUM(v) FILTER (WHERE k = 'b'), SUM(v) FILTER (WHERE k = 'a') FROM W", "line 1, column 39: the sum"),
        ("SELECT v, SUM(v) OVER (PARTITION BY k) AS s FROM W", "line 1, column 11: the sum"),
        ("WITH w2 AS (SELECT SUM(v) AS s FROM W) SELECT s FROM w2", "line 1, column 20: the sum"),
        ("SELECT k FROM W WHERE v <= (SELECT SUM(v) FROM W)", "line 1, column 36: the sum"),
        ("SELECT SUM(v), CAST(k AS BIGINT) FROM W GROUP BY k", "Could not convert string 'a'"),
        ("SELECT SUM(v), MAX(v) + 1 FROM W", "Overflow in addition"),
    ],
)
def test_a_sum_beyond_64_bits_is_an_error_at_its_place(text: str, said: str) -> None:
    session = _wide()
    with pytest.raises(QueryError) as problem:
        session.ask(session.prepare(text))
    assert str(problem.value).startswith(said)


def test_a_sum_beyond_64_bits_is_exact_as_a_decimal_and_harms_no_other() -> None:
    session = _wide()
    assert _asked(session, "SELECT SUM(CAST(v AS DECIMAL(38, 0))) AS s FROM W WHERE k = 'a'") == [(Decimal(2**63),)]
    assert _asked(session, "SELECT SUM(v) AS s FROM W WHERE k = 'b'") == [(5,)]
    assert _asked(session, "SELECT SUM(v) AS s FROM W WHERE k = 'c'") == [(None,)]


def _wide() -> Session:
    session = Session(Model.of({"tables": {"W": {"columns": {"k": "VARCHAR", "v": "BIGINT"}}}}))
    session.load("W", [("a", 2**63 - 1), ("a", 1), ("b", 5)])
    return session
