"""SiddhiQL: conditions that say what a table's column equals find the rows by that, and find what a look at all rows finds."""

from __future__ import annotations

import math
from itertools import product
from random import Random
from typing import Any

import pytest

from rollup.engine.rows.deliveries.tables import Table
from rollup.lang.siddhi.statements.app import SiddhiApp

DEFINED = "define stream S (k string, i int, l long, d double, n int);\n"
TABLE = "define table T (k string, i int, l long, d double, n int);\n"
FILL = "define stream F (k string, i int, l long, d double, n int); from F select * insert into T;\n"
CHANGES = """define stream U (k string, i int, l long, d double, n int);
from U[n < 0] delete T on T.k == k and T.i == i;
from U[n >= 0] select k, i, l, d, n update T set T.k = k, T.d = d on T.l == l;
"""
Values = tuple[Any, ...]
KEYS = {
    "k": ("a", "b", "", None),
    "i": (0, 1, -1, None),
    "l": (0, 1, 2**53 + 1, 2**53, None),
    "d": (0.0, -0.0, 1.0, float(2**53), math.nan, None),
}
NAMES = [*KEYS, "n"]


def drawn(draw: Random, number: int) -> Values:
    return (*(draw.choice(values) for values in KEYS.values()), number)


def equal(left: Any, right: Any) -> bool:
    """As SiddhiQL has it: numbers are compared as what they are, and nothing equals null."""
    return left is not None and right is not None and left == right


def outputs(app: SiddhiApp) -> list[Values]:
    return [row.values for row in app.taken()]


@pytest.mark.parametrize(("left", "right"), [("k", "k"), *product("ild", repeat=2)])
def test_a_join_a_filter_and_changes_by_key_find_what_a_look_at_all_rows_finds(left: str, right: str) -> None:
    text = f"""{DEFINED}{TABLE}{FILL}{CHANGES}
from S join T on S.{left} == T.{right} and T.n >= 0 select S.n as s, T.n as t insert into Joined;
from T join S on T.{right} == S.{left} select S.n as s, T.n as t insert into Turned;
from S[({left} == T.{right}) in T] select n as s, 0 as t insert into Known;"""
    draw, app, rows = Random(f"{left}{right}"), SiddhiApp(text), list[Values]()
    at = dict(zip(NAMES, range(5), strict=True))
    for number in range(120):
        event, form = drawn(draw, number), draw.choice("FFSSSU")
        if form == "F":
            rows.append(event)
            app.send("F", [event])
            outputs(app)
        elif form == "U":
            event = (*event[:4], draw.choice((number, -number - 1)))
            app.send("U", [event])
            if event[4] < 0:
                rows = [row for row in rows if not (equal(row[0], event[0]) and equal(row[1], event[1]))]
            else:
                rows = [(event[0], *row[1:3], event[3], row[4]) if equal(row[2], event[2]) else row for row in rows]
            assert sorted(map(str, app.stored("T"))) == sorted(map(str, rows))
        else:
            app.send("S", [event])
            met = [(number, row[4]) for row in rows if equal(event[at[left]], row[at[right]])]
            assert outputs(app) == [*met, *met, *([(number, 0)] if met else [])]


def test_an_event_looks_at_the_rows_of_its_key_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    text = f"""{DEFINED}{TABLE}{FILL}{CHANGES}
from S join T on S.k == T.k select S.n as s, T.n as t insert into Joined;
from S[(k == T.k) in T] select n as s, 0 as t insert into Known;"""
    app = SiddhiApp(text, filled={"T": [(f"k{n}", n, n, 0.5, n) for n in range(1000)]})
    monkeypatch.setattr(Table, "content", lambda table: pytest.fail("all rows were looked at"))
    app.send("S", [("k7", 0, 0, 0.0, 1)])
    app.send("U", [("k8", 0, 7, 0.0, 1)])
    app.send("S", [("k8", 0, 0, 0.0, 2)])
    assert outputs(app) == [(1, 7), (1, 0), (2, 7), (2, 8), (2, 0)]
