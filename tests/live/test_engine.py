"""EPL beyond the recorded cases: what a statement delivers for three events, worked out by hand, and the engine's manners.

Each row of CASES is a sentence, statements over A(id, v) and B(id, v), events, and what the statement `s` delivers. Every
one also runs with its state taken out and put into a new engine before each event.
"""

from __future__ import annotations

import math
from contextlib import suppress
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rollup.core.errors import PlanError, QueryError, StoreError
from rollup.engine.rows.patterns import algebra
from rollup.engine.state import State
from rollup.live import Arrived, Engine

SCHEMAS = "create schema A(id string, v int); create schema B(id string, v int);"
THREE = [("A", "x", 1), ("A", "y", 2), ("A", "x", 3)]
CASES: list[tuple[str, str, list[tuple[str, str, int]], list[dict[str, Any]]]] = [
    (
        "a filter follows its variable",
        "create variable int lim = 1; on B set lim = v; @name('s') select v from A where v > lim",
        [*THREE, ("B", "q", 2), *THREE],
        [{"v": 2}, {"v": 3}, {"v": 3}],
    ),
    (
        "in with null is unknown, ranges are half open as written",
        "@name('s') select v in (1, 3) as i, v not in (1, null) as n, v in [1:2) as r from A",
        THREE,
        [{"i": True, "n": False, "r": True}, {"i": False, "n": None, "r": False}, {"i": True, "n": None, "r": False}],
    ),
    (
        "any of nothing is false, all of nothing is true",
        "@name('s') select v > any (select v from B#keepall) as a, v > all (select v from B#keepall) as b from A",
        THREE[:1],
        [{"a": False, "b": True}],
    ),
    (
        "a correlated sub-query sees its own stream first",
        "@name('s') select (select max(v) from B#keepall as b where b.id = a.id) as m from A as a",
        [("B", "x", 7), ("B", "y", 9), *THREE[:2]],
        [{"m": 7}, {"m": 9}],
    ),
    (
        "declared expressions stand for their bodies",
        "create expression twice { x => x.v * 2 }; create expression big alias for { v > 1 }; "
        "@name('s') select twice(a) as t, big as b from A as a",
        THREE[:2],
        [{"t": 2, "b": False}, {"t": 4, "b": True}],
    ),
    (
        "lambdas run over the window",
        "@name('s') select window(*).where(x => x.v > 1).countOf() as c, window(*).sumOf(x => x.v) as s from A#length(2)",
        THREE,
        [{"c": 0, "s": 1}, {"c": 1, "s": 3}, {"c": 2, "s": 5}],
    ),
    (
        "an aggregate takes only the rows of its filter",
        "@name('s') select count(*, filter: v > 1) as c, sum(v, filter: id = 'x') as s from A",
        THREE,
        [{"c": 0, "s": 1}, {"c": 1, "s": 1}, {"c": 2, "s": 4}],
    ),
    (
        "a cube has every set, the finest first",
        "@name('s') select id, v, count(*) as c from A#keepall group by cube(id, v)",
        THREE[:1],
        [
            {"id": "x", "v": 1, "c": 1},
            {"id": "x", "v": None, "c": 1},
            {"id": None, "v": 1, "c": 1},
            {"id": None, "v": None, "c": 1},
        ],
    ),
    (
        "an event is updated before anybody sees it",
        "update istream A set v = v * 10 where v > 1; @name('s') select v from A",
        THREE,
        [{"v": 1}, {"v": 20}, {"v": 30}],
    ),
    (
        "a pattern in a keyed context sees the events of its key",
        "create context C partition by id from A, id from B; "
        "@name('s') context C select a.v as x, b.v as y from pattern [every a=A -> b=B]",
        [*THREE, ("B", "x", 9), ("B", "z", 1)],
        [{"x": 1, "y": 9}, {"x": 3, "y": 9}],
    ),
    (
        "an aggregate inside a declared expression is the statement's own",
        "@name('s') expression toll { (x, more) => sum(x.v) + more } select toll(a, 10) as t from A#length(2) as a",
        THREE,
        [{"t": 11}, {"t": 13}, {"t": 15}],
    ),
    (
        "an alias of an aggregate may stand in having",
        "@name('s') expression total alias for { sum(v) } select v from A#length(2) having total > 2",
        THREE,
        [{"v": 2}, {"v": 3}],
    ),
    (
        "a join of a stream with itself pairs each event with all before it",
        "@name('s') select a.v as x, b.v as y from A#keepall as a, A#keepall as b where a.v < b.v",
        THREE,
        [{"x": 1, "y": 2}, {"x": 1, "y": 3}, {"x": 2, "y": 3}],
    ),
]


def _heard(engine: Engine) -> list[dict[str, Any]]:
    return [row for each in engine.heard() if each.statement == "s" for row in each.new]


@pytest.mark.parametrize("restart", [False, True], ids=["goes on", "restored before every event"])
@pytest.mark.parametrize(("text", "events", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_a_statement_delivers(
    text: str, events: list[tuple[str, str, int]], expected: list[dict[str, Any]], restart: bool
) -> None:
    engine = Engine()
    engine.deploy(SCHEMAS + text)
    engine.heard()
    given: list[dict[str, Any]] = []
    for stream, id, v in events:
        if restart:
            engine = Engine.restored(engine.snapshot())
        engine.send(stream, {"id": id, "v": v})
        given += _heard(engine)
    assert given == expected


@pytest.mark.parametrize("end", ["after 4 sec", "pattern [timer:interval(4 sec)]"])
def test_the_output_of_the_instant_at_which_a_partition_ends_comes_before_the_end(end: str) -> None:
    engine = Engine(0)
    engine.deploy(SCHEMAS + f"create context C start A end {end};")
    engine.deploy("context C select count(*) as n from B#time(10 sec) output snapshot every 2 sec", "s")
    engine.send("A", {"id": "x", "v": 0})
    engine.send("B", {"id": "x", "v": 1})
    engine.advance(10_000)
    assert [(each.at, each.new) for each in engine.heard()] == [(2_000, [{"n": 1}]), (4_000, [{"n": 1}])]


@pytest.mark.long
def test_an_endless_circle_is_stopped_with_its_path_and_the_engine_goes_on() -> None:
    engine = Engine()
    engine.deploy(SCHEMAS + "insert into X select v from A; insert into X select v from X; @name('s') select v from B")
    with pytest.raises(QueryError, match="X -> …"):
        engine.send("A", {"id": "x", "v": 1})
    engine.heard()
    engine.send("B", {"id": "b", "v": 2})
    assert _heard(engine) == [{"v": 2}]


def test_an_event_that_does_not_fit_is_refused_by_name_and_changes_nothing() -> None:
    engine = Engine()
    engine.deploy(SCHEMAS + "@name('s') select count(*) as c from A")
    for event, said in (({"id": "x", "v": "one"}, "A.v"), ({"v": 1.5}, "A.v"), ({"id": "x", "v": 2**31}, "A.v")):
        with pytest.raises(QueryError, match=said):
            engine.send("A", event)
    with pytest.raises(QueryError, match="no stream is called `Z`"):
        engine.send("Z", {})
    engine.send("A", {"id": "x", "v": 1})
    assert _heard(engine) == [{"c": 1}]


def test_an_expression_that_calls_itself_is_refused_by_name() -> None:
    engine = Engine()
    engine.deploy(SCHEMAS)
    for text in (
        "expression f { f() } select f() from A",
        "expression f { g() } expression g { f() } select 1 from A where f()",
    ):
        with pytest.raises(PlanError, match="calls itself"):
            engine.deploy(text)


def test_a_module_with_one_wrong_statement_leaves_nothing_behind() -> None:
    engine = Engine()
    engine.deploy(SCHEMAS)
    with pytest.raises(PlanError, match="nosuch"):
        engine.deploy("create window W#keepall as A; create variable int x = 1; select nosuch from W", "half")
    assert engine.deploy("create window W#keepall as A; create variable int x = 1", "whole").name == "whole"


def test_modules_without_a_name_are_numbered_and_a_number_that_is_free_is_given_again() -> None:
    engine = Engine()
    engine.deploy(SCHEMAS, "schemas")
    names = [engine.deploy("select v from A").name for _ in range(3)]
    engine.undeploy(names[1])
    assert names == ["module", "module-2", "module-3"]
    assert [engine.deploy("select v from A").name for _ in range(2)] == ["module-2", "module-4"]


def test_an_arrow_table_is_its_rows_one_after_the_other() -> None:
    engine = Engine()
    engine.deploy(SCHEMAS + "@name('s') select sum(v) as s from A#length(2)")
    engine.send("A", pa.table({"id": ["x", "y", "z"], "v": pa.array([1, 2, 3], pa.int32())}))
    assert _heard(engine) == [{"s": 1}, {"s": 3}, {"s": 5}]


def test_a_float_is_of_32_bits_however_it_is_sent() -> None:
    engine = Engine()
    engine.deploy("create schema S(f float); @name('A') select f, sum(f) as total from S(f = 0.1f)")
    engine.send("S", {"f": 0.1})
    engine.send("S", pa.table({"f": pa.array([0.1, 0.2])}))
    tenth = float(np.float32(0.1))
    assert [each.new for each in engine.heard()] == [
        [{"f": tenth, "total": tenth}],
        [{"f": tenth, "total": float(np.float32(0.1) + np.float32(0.1))}],
    ]


def test_a_sum_of_longs_wraps_as_in_esper_and_their_mean_is_of_it() -> None:
    for columns in (None, 1):
        engine = Engine(columns=columns)
        engine.deploy("create schema S(v long); @name('A') select sum(v) as s, avg(v) as a from S#length(3)")
        engine.send("S", pa.table({"v": [2**63 - 1, 2**63 - 1, 3, 5]}))
        said = [each.new for each in engine.heard()]
        assert said[1:3] == [[{"s": -2, "a": -1.0}], [{"s": 1, "a": 1 / 3}]]
        assert said[3] == [{"s": -9223372036854775801, "a": -3.0744573456182584e18}]


def test_a_request_takes_parameters_by_order_and_by_name() -> None:
    engine = Engine()
    engine.deploy(SCHEMAS + "create window W#keepall as A; insert into W select * from A")
    for _, id, v in THREE:
        engine.send("A", {"id": id, "v": v})
    assert engine.query("select v from W where id = ? and v > ?", ["x", 1]) == [{"v": 3}]
    assert engine.query("select v from W where id = ?:who", {"who": "y"}) == [{"v": 2}]


def test_a_statement_goes_on_from_a_state_without_the_aggregates_of_its_sub_queries() -> None:
    text = "select v, (select sum(v) from S#length(2)) as s from S"
    engines = [Engine(columns=None) for _ in range(2)]
    for engine in engines:
        engine.deploy("create schema S(v int)")
        engine.deploy(text, "asks")
    instances = [engine._component.root.instances["asks"] for engine in engines]  # pyright: ignore[reportPrivateUsage]
    engines[0].send("S", [{"v": v} for v in (1, 2, 4)])
    engines[0].heard()
    instances[1].stop()
    instances[1].restore(instances[0].snapshot()[:4])
    for engine in engines:
        engine.send("S", {"v": 8})
    assert [[each.new for each in engine.heard()] for engine in engines] == [[[{"v": 8, "s": 12}]]] * 2


def test_statements_of_one_shape_are_told_in_one_table_as_long_as_their_values_have_its_types() -> None:
    engine, found = Engine(columns=None), list[Arrived]()
    engine.deploy(
        "create schema L(v long); @name('v') select v as s from L; @name('n') select count(*) as s from L(v > 1)"
    )
    engine.deploy("@name('text') select cast(v, string) as s from L")
    engine.listen_arrow(found.append)
    engine.send("L", [{"v": 1}, {"v": 2**62}])
    told = [(each.statement.to_pylist(), each.rows["s"].to_pylist()) for each in found]
    assert told == [(["v", "v", "n"], [1, 2**62, 1]), (["text", "text"], ["1", str(2**62)])]
    engine.deploy("create schema I(v int); @name('once') select v as s from I; @name('twice') select v + v as s from I")
    found.clear()
    engine.send("I", [{"v": 2**31 - 1}] * 2)
    types = {each.statement[0].as_py(): each.rows.schema.types for each in found}
    assert types["once"] == [pa.int32()] and types["twice"] != types["once"]


@pytest.mark.parametrize(
    "pattern",
    [
        "every a=A -> b=B",
        "every a=A and every b=B",
        "every (every a=A and b=B)",
        "every-distinct(a.v) a=A",
        "every-distinct(a.v, 1 min) a=A",
    ],
)
def test_a_pattern_that_holds_more_than_its_limit_refuses_the_event(
    pattern: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algebra, "Pattern", partial(algebra.Pattern, limit=5))
    engine = Engine(0)
    engine.deploy("create schema A(v int); create schema B(v int);")
    engine.deploy(f"select * from pattern [{pattern}]")
    with pytest.raises(QueryError, match="a pattern holds 5 partial matches"):
        for v in range(20):
            engine.send("A", {"v": v})


def test_what_a_refused_event_has_completed_is_told_with_it_and_not_with_a_later_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(algebra, "Pattern", partial(algebra.Pattern, limit=10))
    engine = Engine(0)
    engine.deploy("create schema A(v int); create schema B(v int);")
    engine.deploy("select a.v as v from pattern [every a=A or (every c=A -> d=B)]", "seen")
    for v in range(9):
        engine.advance(10 * v)
        with suppress(QueryError):
            engine.send("A", {"v": v})
    engine.advance(1000)
    with suppress(QueryError):
        engine.send("B", {"v": 0})
    assert {(each.at, row["v"]) for each in engine.heard() for row in each.new if row["v"] is not None} == {
        (10 * v, v) for v in range(9)
    }


def test_every_distinct_forgets_values_whose_span_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(algebra, "Pattern", partial(algebra.Pattern, limit=5))
    engine = Engine(0)
    engine.deploy("create schema A(v int);")
    engine.deploy("select a.v as v from pattern [every-distinct(a.v, 3 sec) a=A]", "seen")
    for v in range(20):
        engine.advance(1000 * v)
        engine.send("A", {"v": v})
    assert [row["v"] for each in engine.heard() for row in each.new] == list(range(20))


def test_rows_and_lists_in_tables_are_those_that_functions_hear() -> None:
    engine, dicts, tables = Engine(), list[dict[str, Any]](), list[dict[str, Any]]()
    engine.deploy(SCHEMAS)
    engine.deploy(
        "select *, {1, 2} as n from pattern [every (([:2] a=A until b=B) or c=A(v=7))]; "
        "select window(*) as w, last(*) as l, prev(1, a) as p from A#length(2) as a",
        "s",
    )
    for name in ("s-1", "s-2"):
        engine.listen(name, lambda new, old: dicts.extend(new))
        engine.listen_arrow(lambda arrived: tables.extend(arrived.rows.to_pylist()), name)
    arrived = [("A", "x", 1), ("B", "y", None), ("A", None, 7), *[("A", "z", 3)] * 3, ("B", "", 9)]
    for stream, name, v in [("B", None, 0), *arrived]:
        engine.send(stream, {"id": name, "v": v})
    assert len(dicts) > 8
    assert tables == dicts


def test_a_row_of_a_table_may_take_the_key_that_another_leaves() -> None:
    engine = Engine()
    engine.deploy("""
        create schema E(k int, v int);
        create schema U(k int);
        create table T(k int primary key, v int, n count(*));
        into table T select count(*) as n from E group by k;
        on E merge T where T.k = E.k when matched then update set v = E.v;
        on U update T set k = T.k + U.k;
    """)
    engine.send("E", [{"k": 1, "v": 10}, {"k": 2, "v": 20}, {"k": 3, "v": 30}, {"k": 2, "v": 21}])
    for step in (1, -1, 1):
        engine.send("U", {"k": step})
    assert [tuple(row.values()) for row in engine.query("select k, v, n from T order by k")] == [
        (2, 10, 1),
        (3, 21, 2),
        (4, 30, 1),
    ]


def test_events_without_properties_are_counted_and_heard_alike_over_columns_and_on_rows() -> None:
    heard = []
    for columns in (256, None):
        engine = Engine(columns=columns)
        engine.deploy(
            "create schema E(); @name('n') select count(*) as n from E; @name('m') select 1 as x from pattern [every E -> E]"
        )
        engine.send("E", [{} for _ in range(300)])
        heard.append([(each.statement, each.new) for each in engine.heard()])
    assert heard[0] == heard[1] and len(heard[0]) > 300


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_no_decimal_either(value: float) -> None:
    engine = Engine()
    engine.deploy(
        "create schema E(x double); @name('s') select cast(x, bigdecimal) as d, cast(cast(x, bigdecimal), int) as i from E"
    )
    engine.send("E", {"x": value})
    assert [each.new for each in engine.heard()] == [[{"d": None, "i": None}]]


HEARS = ("rows", "table", "all tables")


@pytest.mark.parametrize("hears", HEARS)
@pytest.mark.parametrize(("events", "columns"), [(1, None), (20, None), (1500, None), (300, 4)])
def test_who_is_told_may_undeploy_what_is_still_to_be_told(hears: str, events: int, columns: int | None) -> None:
    engine, told, gone = Engine(columns=columns), list[tuple[str, int]](), list[str]()
    engine.deploy(SCHEMAS)
    for name, what in (("a", "v"), ("b", "v as x, v * 2 as y"), ("c", "sum(v) as total")):
        engine.deploy(f"@name('{name}') select {what} from A", name)

    def hear(name: str, rows: int) -> None:
        told.append((name, rows))
        if name == "a" and not gone:
            gone.extend("ab")
            engine.undeploy("a")
            engine.undeploy("b")
            engine.deploy("@name('b') select 'another' as other from B")

    def listen(name: str) -> None:
        def to_rows(new: list[Any], old: list[Any]) -> None:
            hear(name, len(new))

        def to_table(arrived: Arrived) -> None:
            hear(arrived.statement[0].as_py(), arrived.rows.num_rows)

        if hears == "rows":
            engine.listen(name, to_rows)
        elif hears == "table":
            engine.listen_arrow(to_table, name)
        elif name == "a":
            engine.listen_arrow(to_table)

    for name in "abc":
        listen(name)
    engine.send("A", [{"id": "x", "v": number} for number in range(events)])
    engine.send("A", {"id": "x", "v": 1})
    assert gone and sum(rows for name, rows in told if name == "c") == events + 1
    assert {name for name, _ in told} == {"a", "c"}, "b was to be told after a, at the earliest"
    assert len([name for name, _ in told if name == "a"]) == 1
    engine.send("B", {"id": "x", "v": 1})
    assert told[-1] == ("b", 1)


@pytest.mark.parametrize("columns", [None, 4])
def test_of_a_statement_that_a_listener_undeploys_nothing_is_kept_either(columns: int | None) -> None:
    engine = Engine(columns=columns)
    engine.deploy(SCHEMAS)
    engine.deploy("@name('a') select v from A(v >= 0)", "a")
    engine.deploy("@name('b') select sum(v) as x from A", "b")
    heard = list[Arrived]()

    def hear(arrived: Arrived) -> None:
        if not heard:
            engine.undeploy("b")
        heard.append(arrived)

    engine.listen_arrow(hear, "a")
    engine.send("A", [{"id": "x", "v": number} for number in range(50)])
    assert heard and _heard(engine) == []


@pytest.mark.parametrize("columns", [None, 4])
def test_what_was_kept_of_a_statement_stays_when_it_is_undeployed(columns: int | None) -> None:
    engine = Engine(columns=columns)
    engine.deploy(SCHEMAS)
    engine.deploy("@name('s') select v from A", "first")
    engine.send("A", [{"id": "x", "v": number} for number in range(300)])
    engine.undeploy("first")
    engine.deploy("@name('s') select id as other, 1 as one from A")
    engine.send("A", {"id": "x", "v": 1})
    assert _heard(engine) == [*({"v": number} for number in range(300)), {"other": "x", "one": 1}]


def test_a_snapshot_that_does_not_fit_is_told_with_what_to_do() -> None:
    engine = Engine()
    engine.deploy(SCHEMAS + "@name('s') select count(*) as n from A#length(3)")
    state = engine.snapshot()
    without = {name: value for name, value in state.scalars.items() if name != "now"}
    for other in (State(), State(state.tables, without), State({}, state.scalars)):
        with pytest.raises(StoreError, match=r"the snapshot does not fit this version of rollup: .*begin anew"):
            Engine.restored(other)


def test_a_snapshot_of_a_statement_that_was_over_columns_and_is_not_any_more_is_told_with_what_to_do() -> None:
    engine = Engine()
    engine.deploy(SCHEMAS + "@name('s') select id from A output after 3 events")
    state = engine.snapshot()
    with pytest.raises(StoreError, match=r"`s` was over columns, and runs on rows here: output after.*begin anew"):
        Engine.restored(State(state.tables, {**state.scalars, "columns": ["s"]}))
