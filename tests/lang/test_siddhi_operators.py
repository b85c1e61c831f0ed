"""What SiddhiQL says beyond Siddhi's own signs (`in` a list, `between`, `like`, `case`, `filter`) means the same in filters
of streams, in selects, and in aggregations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from rollup.core.errors import RollupError
from rollup.hosts.local import LocalHost
from rollup.lang.siddhi.statements.app import SiddhiApp

STREAM = "define stream S (k string, v int, x double, ts long)"
EVENTS: list[tuple[str | None, int | None, float | None]] = [
    ("ann", 1, 0.5), ("bob", 5, -1.0), ("anna", 10, 2.5), (None, 7, None), ("", None, 3.0), ("a%", 6, 0.0),
]  # fmt: skip
CONDITIONS: dict[str, Callable[[Any, Any, Any], bool | None]] = {
    "k in ('ann', 'bob')": lambda k, v, x: k in ("ann", "bob"),
    "k not in ('ann', 'bob')": lambda k, v, x: None if k is None else k not in ("ann", "bob"),
    "v in (5)": lambda k, v, x: v == 5,
    "v between 5 and 7 and x is not null": lambda k, v, x: v is not None and 5 <= v <= 7 and x is not None,
    "v not between 5 and 7": lambda k, v, x: None if v is None else not 5 <= v <= 7,
    "k like 'ann%'": lambda k, v, x: k is not None and k.startswith("ann"),
    "k like '_ob' or k like ''": lambda k, v, x: k in ("bob", ""),
    "k not like '%n%'": lambda k, v, x: None if k is None else "n" not in k,
    "case when v > 5 then k like 'a%' else k == 'bob' end": lambda k, v, x: (
        k is not None and (k.startswith("a") if v is not None and v > 5 else k == "bob")
    ),
    "case k when 'ann' then true when 'bob' then x < 0.0 else false end": lambda k, v, x: (
        k == "ann" or (k == "bob" and x < 0)
    ),
}


@pytest.mark.parametrize("condition", CONDITIONS)
def test_a_filter_lets_the_same_events_through_in_statements_and_aggregations(condition: str) -> None:
    expected = [event for event in EVENTS if CONDITIONS[condition](*event)]
    app = SiddhiApp(f"{STREAM}; from S[{condition}] select k, v, x insert into O;")
    app.send("S", [(*event, 1000) for event in EVENTS])
    assert [row.values for row in app.taken()] == expected
    one = LocalHost.of(
        f"{STREAM}; define aggregation A from S[{condition}] select count() as n, sum(v) as s aggregate by ts every sec;"
    )
    one.send("S", [(*event, 1000) for event in EVENTS])
    found = one.query("from A within 0L, 5000L per 'seconds' select n, s").to_pylist()
    values = [v for _, v, _ in expected if v is not None]
    assert found == [{"n": len(expected), "s": sum(values) if values else None}][: len(expected)]


def test_aggregates_of_statements_have_filters_and_different_values() -> None:
    app = SiddhiApp(
        f"{STREAM}; from S select sum(v) filter (where k like 'a%') as s, count(distinct k) as d, count() as n insert into O;"
    )
    for event in EVENTS:
        app.send("S", [(*event, 1000)])
    sums, expected, different = list[int](), list[tuple[Any, ...]](), set[str]()
    for n, (k, v, _) in enumerate(EVENTS, 1):
        sums += [v] if k is not None and k.startswith("a") and v is not None else []
        different |= {k} if k is not None else set()
        expected.append((sum(sums), len(different), n))
    assert [row.values for row in app.taken()] == expected


@pytest.mark.parametrize(
    ("query", "told"),
    [
        ("from S[v like 'a%'] select k insert into O", "line 1, column 62: like takes a string, not int"),
        ("from S[k like 'a\\%'] select k insert into O", "a pattern of like has no backslash"),
        ("from S select str:upper(k) filter (where v > 1) as u insert into O", "str:upper is no aggregate, and has no filter"),
        ("from S select sum(distinct v) as u insert into O", "distinct stands in count(distinct x)"),
        ("from S select sum(v) filter (where k) as u insert into O", "the filter of an aggregate must be a bool, not string"),
    ],
)  # fmt: skip
def test_what_does_not_fit_is_named_at_its_place(query: str, told: str) -> None:
    with pytest.raises(RollupError) as refused:
        SiddhiApp(f"{STREAM}; {query};")
    assert told in str(refused.value)


def test_case_is_a_name_where_no_when_follows() -> None:
    app = SiddhiApp("define stream S (case string, end int); from S[case == 'a'] select case, end insert into O;")
    app.send("S", [("a", 1)])
    assert [row.values for row in app.taken()] == [("a", 1)]
