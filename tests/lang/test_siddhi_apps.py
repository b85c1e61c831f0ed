"""SiddhiQL apps beyond the recorded cases: what the reference engine ties to the clock on the wall, to a log, to chance."""

from __future__ import annotations

import json
import logging
import math
from typing import Any

import pytest

from rollup.core.errors import PlanError, QueryError, RollupError
from rollup.hosts.local import LocalHost
from rollup.lang.sections import sections
from rollup.lang.siddhi.statements import binding, semantics
from rollup.lang.siddhi.statements.app import Emitted, SiddhiApp
from rollup.plan import functions
from rollup.program import compile_app
from tests.conformance.compare import same_rows


def values(app: SiddhiApp, stream: str) -> list[tuple[object, ...]]:
    return [row.values for row in app.taken() if row.stream == stream]


def test_a_trigger_ticks_from_the_start_on_and_a_restored_one_goes_on() -> None:
    text = "define trigger Tick at every 2 sec; from Tick select triggered_time as t insert into Out;"
    app = SiddhiApp(text)
    app.advance(5000)
    assert values(app, "Out") == [(2000,), (4000,)]
    again = SiddhiApp(text)
    again.restore(app.snapshot())
    again.advance(6500)
    assert values(again, "Out") == [(6000,)]


def test_a_trigger_at_start_ticks_once_when_the_app_begins() -> None:
    app = SiddhiApp("define trigger Begin at 'start'; from Begin select triggered_time as t insert into Out;", 7)
    app.advance(5000)
    assert values(app, "Out") == [(7,)]


def test_a_trigger_ticks_by_a_calendar_and_a_restored_one_goes_on() -> None:
    text = "define trigger T at '*/5 * * * * ?'; from T select triggered_time as t insert into Out;"
    app = SiddhiApp(text, 1300)
    app.advance(10_000)
    assert values(app, "Out") == [(5000,), (10_000,)]
    again = SiddhiApp(text)
    again.restore(app.snapshot())
    again.advance(16_000)
    assert values(again, "Out") == [(15_000,)]


def test_a_window_by_a_calendar_lets_its_rows_out_in_batches_and_each_with_the_next_one() -> None:
    """The reference engine ties this window to the clock on the wall, ours to the events' time."""
    text = (
        "define stream S (v int);"
        "from S#window.cron('*/5 * * * * ?') select v insert all events into Out;"
        "from S#window.cron('*/5 * * * * ?') select sum(v) as s insert into Sum;"
    )
    app, taken = SiddhiApp(text), list[Emitted]()
    for at, value in ((1000, 1), (4900, 2), (5000, 3), (21_000, 4)):
        app.send("S", [(value,)], at)
        taken += app.taken()
        app, old = SiddhiApp(text), app  # a new process between any two events
        app.restore(old.snapshot())
    app.advance(30_000)
    taken += app.taken()
    assert [row.values[0] for row in taken if row.stream == "Out"] == [1, 2, 1, 2, 3, 3, 4]
    assert [row.values[0] for row in taken if row.stream == "Sum"] == [3, 3, 4]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("*/5 * * * *", "it has 5 parts, not 6"),
        ("*/5 * * * * 8", "'8' is no day of the week"),
        ("61 * * * * ?", "'61' is no second"),
        ("0 0 9-5 * * ?", "'9-5' is no run of a hour"),
        ("0 0/0 * * * ?", "'0/0' is no run of a minute"),
        ("0 0 9 ? MAI *", "'MAI' is no month"),
    ],
)
def test_a_text_that_is_no_crontab_is_refused_with_its_place(text: str, problem: str) -> None:
    with pytest.raises(RollupError, match=problem) as refusal:
        SiddhiApp(f"define stream S (k int);\ndefine trigger T at '{text}';")
    assert (refusal.value.line, refusal.value.column) == (2, 1)
    with pytest.raises(RollupError, match=problem):
        SiddhiApp(f"define stream S (k int);\nfrom S#window.cron('{text}') select k insert into Out;")


def test_log_writes_each_row_that_comes_by_and_lets_it_pass(caplog: pytest.LogCaptureFixture) -> None:
    app = SiddhiApp("define stream S (k string, v int); from S[v > 1]#log('seen')[v > 2] select k insert into Out;")
    with caplog.at_level(logging.INFO):
        app.send("S", [("a", 1), ("b", 2), ("c", 3)])
    assert values(app, "Out") == [("c",)]
    assert [record.getMessage() for record in caplog.records] == ["seen ['b', 2]", "seen ['c', 3]"]


def test_every_uuid_is_another() -> None:
    app = SiddhiApp("define stream S (k string); from S select UUID() as id insert into Out;")
    app.send("S", [("a",), ("b",)])
    (one,), (two,) = values(app, "Out")
    assert one != two and len(str(one)) == 36


def test_in_may_stand_without_parentheses_around_its_condition() -> None:
    app = SiddhiApp(
        "define stream S (k string); define table T (k string); from S[T.k == k in T] select k insert into Out;"
        "from S select k insert into T;"
    )
    app.send("S", [("a",)])
    app.send("S", [("a",)])
    assert values(app, "Out") == [("a",)]


def test_folding_a_number_with_and_is_refused() -> None:
    with pytest.raises(RollupError, match="and takes a bool, not int"):
        SiddhiApp("define stream S (v int); from S select and(v) as x insert into Out;")


def test_windows_have_the_aggregates_of_aggregations_whose_values_may_leave() -> None:
    app = SiddhiApp(
        "define stream S (k string, x int); from S#window.length(3) select quantiles(x, 0.5) as middle,"
        " quantiles(x) as ranks, topk(k, 1) as most, variance(x) as spread insert into Out;"
    )
    for event in (("a", 1), ("b", 3), ("b", None), ("c", 5)):
        app.send("S", [event])
    rows = values(app, "Out")
    assert [(row[0], row[2], row[3]) for row in rows] == [
        (1.0, '[["a", 1]]', 0.0),
        (3.0, '[["a", 1]]', 1.0),
        (3.0, '[["b", 2]]', 1.0),
        (5.0, '[["b", 2]]', 1.0),
    ]
    assert json.loads(str(rows[1][1])) == {"0.0": 1, "0.25": 1, "0.5": 3, "0.75": 3, "0.9": 3, "0.99": 3, "1.0": 3}


@pytest.mark.parametrize("name", ["first", "last", "hll"])
def test_an_aggregate_whose_values_do_not_leave_is_of_aggregations(name: str) -> None:
    with pytest.raises(RollupError, match=f"{name} is of aggregations: its values do not leave"):
        SiddhiApp(f"define stream S (x int); from S#window.length(3) select {name}(x) as y insert into Out;")


@pytest.mark.parametrize(
    ("call", "said"),
    [
        ("quantiles(x, 2)", "must be a rank from 0 to 1"),
        ("quantiles(x, x)", "must be a rank from 0 to 1"),
        ("topk(x, 0)", "topk must be a whole number from 1"),
        ("topk(x, 1.5)", "topk must be a whole number from 1"),
        ("topk(x)", "topk takes 2 argument"),
    ],
)
def test_what_stands_behind_the_argument_of_an_aggregate_is_checked_as_in_aggregations(call: str, said: str) -> None:
    with pytest.raises(RollupError, match=said):
        SiddhiApp(f"define stream S (x int); from S#window.length(3) select {call} as y insert into Out;")


@pytest.mark.parametrize(
    "window",
    [
        "time(10 sec)", "timeBatch(10 sec)", "timeLength(10 sec, 5)", "delay(10 sec)", "session(10 sec)",
        "cron('*/15 * * * * ?')", "externalTimeBatch(ts, 10 sec, 0, 10 sec)",
    ],
)  # fmt: skip
def test_a_key_is_not_forgotten_while_a_window_of_it_waits_for_an_instant(window: str) -> None:
    """What comes out of the window is what comes out without a purge, also in a new process."""
    outputs = list[list[object]]()
    for purge in ("", "@purge(enable='true', interval='1 sec', idle.period='2 sec') "):
        text = (
            f"define stream S (k string, v int, ts long); {purge}partition with (k of S) begin "
            f"from S#window.{window} select k, sum(v) as s insert all events into Out; end;"
        )
        app, taken = SiddhiApp(text), list[object]()
        for at, value in ((0, 1), (1500, 2)):
            app.send("S", [("a", value, at)], at)
        for at in range(2000, 60_000, 2000):
            app.advance(at)
            taken += [(at, row.values) for row in app.taken()]
            app, old = SiddhiApp(text), app
            app.restore(old.snapshot())
        outputs.append(taken)
    assert outputs[0] == outputs[1] != []


def test_a_key_may_be_forgotten_that_is_idle_for_no_less_than_its_queries_wait() -> None:
    app = SiddhiApp(
        "define stream S (k string); @purge(enable='true', interval='500 ms', idle.period='10 sec') "
        "partition with (k of S) begin from every e1=S -> not S for 10 sec select e1.k as k insert into Silent; end;"
    )
    assert app is not None


@pytest.mark.parametrize("name", ["@app:name", "@App:name", "@APP:Name"])
@pytest.mark.parametrize("query", ["from S select k insert into O;", "from S#window.length(1) select k insert into O;"])
def test_annotations_of_the_app_are_known_in_any_case_alone_and_in_a_job(name: str, query: str) -> None:
    text = f"{name}('mine') define stream S (k string); {query}"
    assert SiddhiApp(text).streams["O"]
    assert compile_app(text).app.name == "mine"


CIRCLES = {
    "from S insert into Out; from Out insert into S;": "S -> Out -> S",
    "define window W (v int) length(2); from S insert into W; from W select v + 1 as v insert into S;": "S -> W -> S",
    "partition with (v of S) begin from S insert into #M; from #M insert into #M; end;": "#M -> #M",
}


@pytest.mark.parametrize("circle", CIRCLES)
def test_an_endless_circle_is_stopped_with_its_path(circle: str) -> None:
    app = SiddhiApp(f"define stream S (v int); {circle}")
    with pytest.raises(QueryError, match=f"more often than can be followed: {CIRCLES[circle]} "):
        app.send("S", [(1,)])


def test_a_circle_that_a_filter_ends_goes_round_until_then() -> None:
    app = SiddhiApp("define stream S (v int); from S[v < 200] select v + 1 as v insert into S;")
    app.send("S", [(1,)])
    assert [row.values for row in app.taken()] == [(v,) for v in range(2, 201)]


@pytest.mark.parametrize(
    "values", [[1, "1", "1"], ["a", "a", "b"], [[1, "x"], [1, "x"], ["y"]], [{"k": 1}, {"k": 1}, "{k=2}"]]
)
def test_an_object_is_a_key_by_its_text(values: list[Any]) -> None:
    text = "define stream S (o object); from S select count() as n group by o insert into A;"
    app = SiddhiApp(text + "partition with (o of S) begin from S select count() as n insert into B; end;")
    for value in values:
        app.send("S", [(value,)])
    counted = [1, 2, 3 if len({str(value) for value in values}) == 1 else 1]
    found = app.taken()
    for stream in "AB":
        assert [row.values[0] for row in found if row.stream == stream] == counted


@pytest.mark.parametrize(
    ("call", "least", "none", "most"),
    [
        ("math:sqrt(d)", math.nan, 0.0, 1e154),
        ("math:ln(d)", math.nan, -math.inf, math.log(1e308)),
        ("math:exp(d)", math.exp(-8), 1.0, math.inf),
        ("math:power(d, 0.5)", math.nan, 0.0, 1e154),
        ("math:power(d, -1)", -0.125, math.inf, 1e-308),
        ("math:power(d, 401)", -math.inf, 0.0, math.inf),
        ("math:sin(d * 1e308)", math.nan, 0.0, math.nan),
        ("math:ceil(d * 1e308)", -math.inf, 0.0, math.inf),
        ("math:abs(i)", None, 0, 2**31 - 1),
        ("math:abs(l)", None, 0, 2**63 - 1),
    ],
)
def test_functions_of_numbers_have_an_answer_for_every_number(call: str, least: Any, none: Any, most: Any) -> None:
    """Doubles as IEEE 754 has them, as in declarations of rollups; a whole number beyond its type is null."""
    app = SiddhiApp(f"define stream S (i int, l long, d double); from S select {call} as x insert into Out;")
    app.send("S", [(-(2**31), -(2**63), -8.0), (0, 0, 0.0), (2**31 - 1, 2**63 - 1, 1e308)])
    assert same_rows([[least], [none], [most]], values(app, "Out"), ordered=True)


ALIKE = """math:power(d, 0.5)|math:power(d, -1)|math:sqrt(d)|math:ln(d)|math:exp(d)|math:ceil(d)|math:floor(d)|math:abs(i)
math:abs(l)|-i|i * i|l * l|i % 0|d / 0.0|maximum(i, 2)|minimum(l, 3L)|str:concat(k, i)|str:replace(k, 'b', 'cc')|str:replace(k, '', 'z')|str:length(k)|str:upper(k)
coalesce(i, 1)|default(k, 'x')|ifThenElse(i > 0, d, 0.0)|instanceOfFloat(f)|instanceOfString(k)|instanceOfLong(i)
f + d|i + f|convert(i, 'long')|convert(k, 'bool')|i is null|not (i > 0)|k == 'ab' or i > 0|i is not null
str:contains(k, 'b')|str:contains(k, '')|k in ('ab', 'x')|k not in ('x')|i between 0 and 5|i not between 0 and 5|k like 'a%'|k not like '_'
case when i > 0 then 'p' else k end|case k when 'x' then 1 when '' then 2 end"""


def test_a_function_means_the_same_in_a_plain_query_of_a_job_and_in_a_statement() -> None:
    calls = [call for line in ALIKE.splitlines() for call in line.split("|")]
    select = ", ".join(f"{call} as c{place}" for place, call in enumerate(calls))
    defined = "define stream S (k string, i int, l long, f float, d double);"
    events = [("ab", -(2**31), -(2**63), -1.5, -8.0), (None,) * 5, ("", 0, 0, 0.0, 0.0), ("x", 5, 2**63 - 1, 0.1, 1e99)]
    app = SiddhiApp(f"{defined} from S#window.length(9) select {select} insert into Out;")
    for event in events:
        app.send("S", [event])
    host = LocalHost.of(f"{defined} from S select {select} insert into Out;")
    host.send("S", events)
    plain = [list(row.values()) for stream, rows in host.emitted if stream == "Out" for row in rows.to_pylist()]
    for call, *pair in zip(calls, zip(*values(app, "Out"), strict=True), zip(*plain, strict=True), strict=True):
        assert same_rows([pair[0]], [pair[1]], ordered=True), call


def test_the_functions_of_statements_and_of_aggregations_are_the_same_but_for_these() -> None:
    """Clocks, chance and sets have no place in what a replay makes again; angles are there for `#pol2Cart`."""
    statements = {each.lower() for each in (*semantics.FUNCTIONS, *semantics.INSTANCES, *binding.SPECIAL)}
    aggregations = {each.lower() for each in functions.FUNCTIONS}
    angles = {"math:cos", "math:sin", "math:toradians"}
    assert statements - aggregations == {
        "uuid", "currenttimemillis", "eventtimestamp", "createset", "sizeofset", *angles,
    }  # fmt: skip
    assert aggregations - statements == {"time:dateformat"}


def test_a_query_that_asks_a_table_with_in_is_a_statement() -> None:
    text = "define stream S (k string); define table T (k string); from S[not (T.k == k in T)] select k insert into O;"
    assert compile_app(text).statements is not None


def test_a_question_to_an_aggregation_cannot_fill_a_table() -> None:
    text = """define stream S (k string, v double, ts long); define table T (k string);
define aggregation Agg from S select k, sum(v) as t group by k aggregate by ts every seconds...minutes;
from S join Agg on S.k == Agg.k within '2020-**-** **:**:**' per 'minutes' select Agg.k as k insert into T;"""
    with pytest.raises(PlanError, match="cannot fill T") as refused:
        sections(text)
    assert (refused.value.line, refused.value.hint is not None) == (3, True)


@pytest.mark.parametrize("define", ["define table T (k string);", "define window T (k string) length(2);"])
def test_a_plain_query_that_only_fills_a_table_or_window_is_a_statement(define: str) -> None:
    found = sections(f"define stream S (k string); {define} from S select k insert into T;")
    assert [part.language for part in found.statements] == ["siddhiql"]
    assert "from" not in found.rollups and "T" not in found.rollups
