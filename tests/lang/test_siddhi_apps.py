"""SiddhiQL apps beyond the recorded cases: what the reference engine ties to the clock on the wall, to a log, to chance."""

from __future__ import annotations

import json
import logging

import pytest

from rollup.core.errors import RollupError
from rollup.lang.sections import sections
from rollup.lang.siddhi.statements.app import Emitted, SiddhiApp


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
    ("text", "problem"),
    [
        ("define function f[javascript] return int { return 1; };", r"scripts \(define function\) are not supported"),
        ("from !S select k insert into Out;", r"streams of faults \(!S\) are not supported"),
        ("from S select k return;", "queries that return are not supported"),
        ("from S#spread(v, v) select k insert into Out;", r"#spread\(…\) is not supported"),
        ("from S#pol2Cart(2.0) select k insert into Out;", "#pol2Cart takes 2 or 3 arguments, not 1"),
        (
            "from S#pol2Cart(2.0, 3.0)#pol2Cart(2.0, 3.0) select k insert into Out;",
            "#pol2Cart adds x, which the stream has",
        ),
        ("from S#pol2Cart(v, v) as a join S as b select a.x as x insert into Out;", "in a query over one stream"),
        (
            "from e=S#pol2Cart(v, v) -> f=S select e.k as k insert into Out;",
            "a stream function cannot stand in a pattern",
        ),
        ("from S#pol2Cart(2.0, v) select x insert into Out;", "takes doubles, not int"),
        ("from S#pol2Cart(k, 2.0) select x insert into Out;", "takes doubles, not string"),
        ("from S#window.hopping(1 sec, 2 sec) select k insert into Out;", "unknown window 'hopping'"),
    ],
)
def test_what_is_not_there_is_refused_by_its_name_and_place(text: str, problem: str) -> None:
    with pytest.raises(RollupError, match=problem) as refusal:
        SiddhiApp(f"define stream S (k string, v int);\n{text}")
    assert refusal.value.line == 2


TIMED = (
    "define stream S (k string, v int, ts long); define stream A (k string, v int); define table T (k string, v int);"
)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("from S#window.externalTime(v, 2 sec) select k insert into Out;", "a long attribute, the time"),
        ("from S#window.externalTimeBatch('ts', 2 sec) select k insert into Out;", "a long attribute, the time"),
        ("from S#window.session(2 sec, v) select k insert into Out;", "key of session is a string attribute"),
        ("define window W (k string, v int) time(1 sec); from W#window.length(2) insert into Out;", "one window"),
        ("@Index('w') define table U (k string);", "@Index names 'w'"),
        ("@Index('k', 'v') define table U (k string, v int);", "an @Index is of one attribute"),
        ("@Index('k') @Index('k') define table U (k string);", "there is one of each"),
        ("@PrimaryKey('k') @PrimaryKey('v') define table U (k string, v int);", "has two @PrimaryKey"),
        ("@PrimaryKey() define table U (k string);", "@PrimaryKey names ''"),
        ("from A select k update or insert into T on T.k == k;", "selects no v"),
        ("from A as a join S#window.length(2) as s on A.k == s.k select a.k insert into Out;", "'A.k' is not known"),
        ("from S select instanceOfLong(v, ts) as x insert into Out;", "takes 1 argument"),
        ("from every T select * insert into Out;", "is a table"),
    ],
)
def test_what_the_reference_engine_refuses_is_refused_with_its_place(text: str, problem: str) -> None:
    """Each of these texts was given to 5.1.21, which creates no app of it."""
    with pytest.raises(RollupError, match=problem) as refusal:
        SiddhiApp(f"{TIMED}\n{text}")
    assert refusal.value.line == 2


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("@store(type='rdbms') define table T (k string);", "@store of table T is not acted on"),
        ("define table T (k string); @cache(size='1') define table T (k string);", "@cache of table T is not acted on"),
        ("@PrimaryKey('k') define window W (k string) length(2);", "@PrimaryKey of window W is not acted on"),
        ("@dist(parallel='2') from S select k insert into Out;", "@dist of a query is not acted on"),
        ("@async partition with (k of S) begin from S select k insert into Out; end;", "@async of a partition is not"),
        (
            "@purge(interval='1 sec', idle.period='all') partition with (k of S) begin from S insert into Out; end;",
            "takes lengths of time",
        ),
    ],
)
def test_what_a_statement_says_and_is_not_acted_on_is_refused_at_its_place(statement: str, said: str) -> None:
    with pytest.raises(RollupError, match=said) as refused:
        SiddhiApp("define stream S (k string);\n" + statement)
    assert refused.value.line == 2
    assert refused.value.hint


@pytest.mark.parametrize("define", ["define table T (k string);", "define window T (k string) length(2);"])
def test_a_plain_query_that_only_fills_a_table_or_window_is_a_statement(define: str) -> None:
    found = sections(f"define stream S (k string); {define} from S select k insert into T;")
    assert [part.language for part in found.statements] == ["siddhiql"]
    assert "from" not in found.rollups and "T" not in found.rollups
