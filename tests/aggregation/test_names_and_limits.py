"""No name of a column and no value of a field may stop a stream, fail an answer or change a meaning.

Names are drawn from every alias the project writes into SQL and from every keyword of DuckDB, values from the limits of
every type; the truth is the event-at-a-time oracle, which has neither SQL nor columns of a fixed width.
"""

from __future__ import annotations

import math
from functools import cache
from typing import Any

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.core.errors import PlanError
from rollup.hosts.local import LocalHost
from rollup.program import compile_app
from tests.conformance.siddhi.compare import Rows
from tests.oracle.answers import App
from tests.oracle.event_at_a_time import Refused
from tests.profiles import examples

INTS = (-(2**31), 2**31 - 1, -1, 0, 1, 46_341)
LONGS = (-(2**63), 2**63 - 1, 2**62, -1, 0, 3_037_000_500)
DOUBLES = (0.0, -0.0, 1.5, -1.7976931348623157e308, 1.7976931348623157e308, 5e-324)
TEXTS = ("", "a", "'", '"', "\\", "%(start)s", "$start", "'__c0'", "{end}", "\x01", "é", "null", "rollup_hll_")
ALIASES = [
    "a",
    "b",
    "c",
    "d",
    "e",
    "g",
    "h",
    "j",
    "k",
    "l",
    "m",
    "n",
    "p",
    "r",
    "s",
    "t",
    "u",
    "w",
    "x",
    "now",
    "late",
    "late_bucket",
    "late_key_0",
    "one",
    "two",
    "three",
    "closed",
    "open",
    "grid",
    "request",
    "events",
    "batch",
    "sent",
    "parts",
    "merged",
    "clock",
    "done",
    "rows",
    "known",
    "zone",
    "newest",
    "query",
    "parameters",
    "tables",
    "self",
    "start",
    "end",
    "stored",
    "expected",
    "per",
    "within",
    "agg",
    "level",
    "number",
    "commit",
    "kind",
    "count",
    "sum",
    "min",
    "max",
    "first",
    "last",
    "value",
    "values",
    "arrival",
    "ts",
    "timestamp",
    "EVENT_TIMESTAMP",
    "ARRIVAL",
    "data_0",
    "item",
    "unnest",
]


@cache
def names() -> list[str]:
    """Every alias and keyword, each once whatever its case."""
    keywords = [row[0] for row in duckdb.connect().execute("SELECT keyword_name FROM duckdb_keywords()").fetchall()]
    return list({name.lower(): name for name in (*keywords, *ALIASES)}.values())


def expressions(i: str, j: str, m: str) -> list[str]:
    """Arithmetic over two ints and a long, as it overflows; some parts are shared, as an optimizer likes them."""
    return [
        f"{m}*4",
        f"{m}*4+1",
        f"{i}*{i}",
        f"{i}*{j}-1",
        f"{m}/({i}*{i})",
        f"{m}%({i}*{j})",
        f"{m}/{i}",
        f"{m}%{i}",
        f"{i}/{j}",
        f"{i}%{j}",
        f"-{i}",
        f"-{m}",
        f"math:abs({m})",
        f"math:abs({i})+{j}",
        f"coalesce({i}*{j}, 7)",
        f"ifThenElse({i}*{j} > 5, {m}-{i}, {m}+{i})",
        f"convert({m}, 'int')+{i}",
        f"maximum({i}, {j})-1",
    ]


@st.composite
def cases(draw: st.DrawFn) -> tuple[str, list[list[Any]], list[str]]:
    """An app, its events, and questions; the names are whatever was drawn."""
    drawn = draw(st.lists(st.sampled_from(names()), min_size=12, max_size=12, unique_by=str.lower))
    k, i, j, m, d, ts, *aliases = (f"`{name}`" for name in drawn)
    pool = st.sampled_from(expressions(i, j, m))
    chosen = draw(st.lists(pool, min_size=3, max_size=4, unique=True))
    where = draw(st.sampled_from(["", f"[{i}*{j} != 5 or {i} is null]", f"[{m}*2 != 1 or {m} is null]"]))
    keys = draw(st.sampled_from([k, f"{k}, {i}"]))
    items = ", ".join(
        f"{draw(st.sampled_from(['sum', 'avg', 'min', 'max', 'last', 'count', 'distinctCount']))}({each}) as {alias}"
        for each, alias in zip(chosen, aliases, strict=False)
    )
    app = f"""define stream S ({k} string, {i} int, {j} int, {m} long, {d} double, {ts} long);
    @OutOfOrder('{draw(st.sampled_from(["merge", "correct"]))}') define aggregation A from S{where}
    select {keys}, {items}, max({d}) as {aliases[4]}, {d} as {aliases[5]} group by {keys} aggregate by {ts} every sec ... year;"""
    row = st.tuples(
        *(st.sampled_from([None, *pool]) for pool in (TEXTS, INTS, INTS, LONGS, DOUBLES)),
        st.sampled_from([0, 400, 1000, 61_000, 86_400_000, 40_000_000_000, None]),
    )
    rows = draw(st.lists(row.map(list), min_size=1, max_size=8))
    text = draw(st.sampled_from([text for text in TEXTS if "'" not in text]))
    low = "from A {} within -1000, 50000000000 per '{}' select {}"
    asked = [
        low.format("", per, f"{k}, {a}, {b}, {aliases[5]}, AGG_EVENTS")
        for per, a, b in (("sec", *aliases[:2]), ("days", aliases[2], aliases[4]), ("years", *aliases[:2]))
    ]
    asked.append(low.format(f"on {k} == '{text}' or {k} == '__c0'", "months", f"{k}, {aliases[0]}, {aliases[1]}"))
    return app, rows, asked


@examples(12)
@given(cases())
def test_whatever_the_names_and_values_are_every_event_counts_and_every_answer_is_the_oracles(
    drawn: tuple[str, list[list[Any]], list[str]],
) -> None:
    app, rows, questions = drawn
    host, judge = LocalHost.of(app), App(app)
    refused = 0
    for row in rows:
        try:
            judge.send("S", list(row))
        except Refused:
            refused += 1
    host.send("S", rows)
    assert len(host.dead) == refused
    for question in questions:
        wanted, found = judge.query(question), host.query(question)
        same(Rows(found.schema.names, [list(row.values()) for row in found.to_pylist()]), wanted, question)


def same(found: Rows, wanted: Rows, question: str) -> None:
    """Equal rows in any order; NaN is itself, doubles may differ in their last digits."""
    assert found.names == wanted.names, question
    assert len(found.rows) == len(wanted.rows), (question, found.rows, wanted.rows)
    for left, right in zip(sorted(found.rows, key=_order), sorted(wanted.rows, key=_order), strict=True):
        assert all(map(_alike, left, right)), (question, left, right)


def _order(row: list[Any]) -> Any:
    return [(value is not None, str(type(value) is str), value if value == value else math.inf) for value in row]


def _alike(left: Any, right: Any) -> bool:
    if isinstance(left, float) and isinstance(right, float):
        return math.isclose(left, right, rel_tol=1e-9) or (math.isnan(left) and math.isnan(right))
    return left == right


D = "define stream S (k string, i int, l long, d double, ts long);"


def answer(app: str, rows: list[tuple[Any, ...]], question: str) -> list[dict[str, Any]]:
    """What an app of stream S says after events."""
    host = LocalHost.of(app)
    host.send("S", rows)
    return host.query(question).to_pylist()


def test_shared_expressions_that_overflow_are_null_each_for_itself() -> None:
    app = (
        D
        + "define aggregation A from S select sum(l*4) as x, max(l*4+1) as y, count(l*4) as n aggregate by ts every sec;"
    )
    rows = [("a", 1, 2**63 - 1, 0.0, 0), ("a", 1, 3, 0.0, 0)]
    assert answer(app, rows, "from A within 0, 1 per 'sec' select x, y, n") == [{"x": 12, "y": 13, "n": 1}]


def test_a_filter_and_a_derived_column_that_overflow_do_not_stop_the_stream() -> None:
    app = D + (
        "define stream T (n int, l long, ts long);"
        "define aggregation A from T select sum(n) as s, count() as c aggregate by ts every sec;"
        "from S[i*i > 5] select str:length(k)+i as n, l, ts insert into T;"
    )
    host = LocalHost.of(app)
    host.send("S", [("ab", 2**31 - 1, 1, 0.0, 0), ("ab", 46_340, 1, 0.0, 0), ("ab", 1, 1, 0.0, 0)])
    assert host.query("from A within 0, 1 per 'sec' select s, c").to_pylist() == [{"s": 46_342, "c": 1}]


@pytest.mark.parametrize(
    ("select", "found"),
    [
        ("k, a*a as x order by k", [{"k": "p", "x": None}, {"k": "q", "x": 9}]),
        ("sum(b)+sum(b) as x", [{"x": None}]),
        ("sum(b) as x", [{"x": None}]),
        ("sum(a) as x", [{"x": None}]),
        ("k, coalesce(i*i, 7) as x order by k", [{"k": "p", "x": 7}, {"k": "q", "x": 4}]),
        ("k having max(a) > 4", [{"k": "q"}]),
        ("k group by k having max(a) > 4 ", [{"k": "p"}]),
    ],
)
def test_an_answer_that_overflows_is_null_and_never_an_error(select: str, found: list[dict[str, Any]]) -> None:
    app = (
        D
        + "define aggregation A from S select k, last(l) as a, sum(l) as b, last(i) as i group by k aggregate by ts every sec;"
    )
    rows = [("p", 2**31 - 1, 2**63 - 1, 0.0, 0), ("q", 2, 3, 0.0, 1000)]
    assert answer(app, rows, f"from A within 0, 5000 per 'sec' select {select}") == found


def test_an_expression_has_one_name_for_all_its_partials_whatever_stands_beside_it() -> None:
    app = D + "define aggregation A from S select {} aggregate by ts every sec;"
    one = "avg(i*l) as x, stdDev(i/l) as y, sum(i-l) as z, sum(i+l) as w"
    other = "sum(i+l) as w, stdDev(i/l) as y, sum(i-l) as z, avg(i*l) as x"
    kinds = [dict(compile_app(app.format(items)).aggregations["A"].kinds) for items in (one, other)]
    assert kinds[0] == kinds[1]
    rows = [("a", 6, None, 0.0, 0), ("a", 6, 2, 0.0, 0), ("a", 6, 0, 0.0, 0)]
    found = answer(app.format(one), rows, "from A within 0, 1 per 'sec' select x, y, z, w")
    assert found == [{"x": 6.0, "y": 0.0, "z": 10, "w": 14}]


def test_an_expression_alone_keeps_the_name_it_has_always_had() -> None:
    aggregation = compile_app(D + "define aggregation A from S select sum(i*l) as x aggregate by ts every sec;")
    assert "AGG_SUM_i_l" in aggregation.aggregations["A"].kinds


@pytest.mark.parametrize(
    ("app", "message"),
    [
        ("define stream S (a int, A int, ts long);", "the attributes of S: 'a' and 'A' differ only in case"),
        (
            D + "define aggregation A from S select sum(l) as x, max(l) as X aggregate by ts every sec;",
            "'x' and 'X' differ",
        ),
        (
            D + "define aggregation A from S select l as K, k group by k aggregate by ts every sec;",
            "'K' and 'k' differ",
        ),
        (
            D + "define aggregation A from S select l + 9223372036854775808 as x aggregate by ts every sec;",
            "is no long",
        ),
        (
            D + "define aggregation A from S select sum(l) as x group by k, k aggregate by ts every sec;",
            "is there twice",
        ),
        (
            D + "define aggregation A from S select quantiles(l, 1.5) as x aggregate by ts every sec;",
            "a rank from 0 to 1",
        ),
        (
            D + "define aggregation A from S select topK(l, 0.5) as x aggregate by ts every sec;",
            "a whole number from 1",
        ),
    ],
)
def test_an_app_that_cannot_run_is_refused_when_it_is_read(app: str, message: str) -> None:
    with pytest.raises(PlanError, match=message):
        compile_app(app)


def test_the_least_long_is_a_number_and_divides_by_minus_one_to_null() -> None:
    app = D + "define aggregation A from S select last(l) as a aggregate by ts every sec;"
    question = "from A within 0, 1 per 'sec' select a == -9223372036854775808 as x, a / -1 as y, a % -1 as z, -a as w"
    assert answer(app, [("a", 1, -(2**63), 0.0, 0)], question) == [{"x": True, "y": None, "z": 0, "w": None}]


def test_an_event_whose_expression_leaves_its_type_counts_and_one_more_column_tells_how_many_did() -> None:
    """As docs/language.md says: the value is null, as in SQL, and the event is in every other column."""
    app = (
        D + "define aggregation A from S select count() as events, count(l * 4) as known, sum(l * 4) as total,"
        " sum(l) as whole aggregate by ts every sec ... year;"
    )
    rows = [("a", 1, 2**62, 0.0, 0), ("a", 1, 1, 0.0, 1000), ("a", 1, 2, 0.0, 86_400_000)]
    for level, left in (("sec", [1, 0, 0]), ("days", [1, 0]), ("years", [1])):
        question = f"from A within 0, 100000000 per '{level}' select events - known as left, total, whole"
        found = answer(app, rows, f"{question} order by AGG_TIMESTAMP")
        assert [row["left"] for row in found] == left
        assert sum(row["whole"] for row in found) == 2**62 + 3
        assert sum(row["total"] or 0 for row in found) == 12


def test_quantiles_of_nothing_but_nan_are_null_and_hll_counts_the_empty_text_and_one_zero() -> None:
    app = (
        "define stream S (d double, s string, ts long); define aggregation A from S select quantiles(d) as q,"
        " quantiles(d, 0.5) as m, hll(d) as h, hll(s) as t aggregate by ts every sec;"
    )
    rows = [(math.nan, "", 0), (0.0, "", 1000), (-0.0, "x", 1000), (0.0, None, 1000)]
    found = answer(app, rows, "from A within 0, 5000 per 'sec' select q is null as q, m, h, t order by AGG_TIMESTAMP")
    assert found == [{"q": True, "m": None, "h": 1, "t": 1}, {"q": False, "m": 0.0, "h": 1, "t": 2}]


def test_a_dead_letter_has_its_event_whatever_the_attributes_are_called() -> None:
    host = LocalHost.of(
        "define stream S (e int, ts long); define aggregation A from S select sum(e) as s aggregate by ts every sec;"
    )
    host.send("S", [(5, None)])
    assert '"e":5' in host.dead[0]["raw"]


def test_a_level_by_arrival_time_closes_when_an_event_of_later_comes_before_the_tick() -> None:
    host = LocalHost.of(
        "define stream S (v int); define aggregation A from S select sum(v) as s aggregate every sec ... hour;"
    )
    host.now = 59_500
    host.send("S", [(1,)])
    host.now = 60_200
    host.send("S", [(2,)])
    assert host.query("from A within 0, 60000 per 'min' select s, AGG_FINAL").to_pylist() == [
        {"s": 1, "AGG_FINAL": True}
    ]
