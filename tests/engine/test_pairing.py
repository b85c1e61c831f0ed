"""Short ways against the long ones: the kept pairs of a join against joining the whole windows anew, rows that leave at
once against those that an output would be given, what is put off until somebody looks against what is done at once, turns of a
repeat that wait on against those that begin anew, clocks of many keys that are not all looked at.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rollup.engine.expressions import Field
from rollup.engine.row import Row
from rollup.engine.rows import select
from rollup.engine.rows.patterns import matcher
from rollup.engine.rows.runner import Runner
from rollup.engine.rows.selects import grouping, pergroup, selecting
from rollup.engine.rows.stores.named import NamedWindow
from rollup.engine.rows.stores.tables import Table
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.rows.windows.sessions import Session
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import LONG
from rollup.live import Engine
from tests.profiles import examples

SCHEMA = "create schema A(k string, v int); create schema B(k string, v int);"
JOINS = [
    "select irstream a.v as x, b.v as y from A#time(10 msec) as a, B#time(7 msec) as b where a.k = b.k",
    "select irstream a.v as x, b.v as y from A#length(2) as a inner join B#keepall as b on a.k = b.k where a.v < b.v",
    "select irstream a.v as x, b.v as y from A#time(5 msec) as a, A#length(3) as b where a.v = b.v and a.k != b.k",
    "select irstream a.v as x, b.v as y from A#length(2) as a, B#length(1) as b",
    "create variable int q = 1; on B as b set q = b.v; "
    "@name('s') select a.v as x, b.v as y from A as a unidirectional, B#length(3) as b where a.v = b.v + q and a.k = b.k",
    "create variable int q = 1; on A as c set q = c.v; "
    "@name('s') select irstream a.v as x, b.v as y from A#length(3) as a, B#length(3) as b where a.v = b.v + q and a.k = b.k",
    "select a.v as x, b.v as y from A as a unidirectional, B#length(3) as b where a.v = current_timestamp - b.v",
    "select irstream count(*) as n, sum(b.v) as s from A#length(3) as a, B#time(6 msec) as b where a.k = b.k",
    "select irstream a.v as x, b.v as y, c.v as z from A#length(2) as a, B#length(3) as b, A#time(6 msec) as c "
    "where a.k = b.k and b.v = c.v",
    "select irstream a.v as x, b.v as y, c.v as z from A#time(5 msec) as a inner join B#length(2) as b on a.k = b.k "
    "inner join B#time(5 msec) as c on c.k = a.k and c.v = b.v where a.v < c.v or a.v = 2",
    "select irstream a.v as x, b.v as y from A#length(2) as a left outer join B#length(3) as b on a.k = b.k",
    "select irstream a.v as x, b.v as y from A#time(5 msec) as a right outer join B#time(7 msec) as b on b.k = a.k and a.v = b.v",
    "select irstream a.v as x, b.v as y from A#length(2) as a full outer join B#time(4 msec) as b on a.k = b.k where b.v = a.v or a.v = 1",
    "select irstream a.v as x, b.k as y from A#length(2) as a full outer join A#length(3) as b on a.v = b.v where a.k != b.k or b.k is null",
    "select count(*) as n, sum(b.v) as s from A#time(6 msec) as a left outer join B#keepall as b on a.v = b.v and a.k = b.k",
    "select a.v as x, b.v as y from A#time(6 msec) as a full outer join B#time(4 msec) as b on a.k = b.k",
    "select irstream a.v as x, b.v as y from A as a unidirectional, A#length(3) as b where a.k = b.k and a.v <= b.v",
    "select a.v as x, b.v as y from B#time(5 msec) as b right outer join A as a unidirectional on a.k = b.k where b.v is null",
    "select count(*) as n, sum(c.v) as s from A#length(2) as a, B as b unidirectional, A#time(5 msec) as c "
    "where a.k = b.k and c.v = b.v",
    *(
        f"select irstream a.v as x, b.v as y from A#{window} as a {kind} B#{other} as b {word} a.k = b.k"
        for window, other, kind, word in [
            ("unique(k)", "unique(v)", "full outer join", "on"),
            ("lastevent", "groupwin(v)#length(2)", "left outer join", "on"),
            ("groupwin(k)#time(5 msec)", "time_accum(4 msec)", "inner join", "on"),
            ("sort(2, v)", "rank(v, 2, k desc)", "full outer join", "on"),
            ("length_batch(2)", "unique(k, v)", "left outer join", "on"),
            ("time_batch(4 msec)", "length_batch(3)", "full outer join", "on"),
            ("firstunique(k)", "firstlength(4)", "right outer join", "on"),
            ("ext_timed(coalesce(v, 3), 1)", "expr(current_count <= 2)", "inner join", "on"),
            ("time_order(coalesce(v, 3), 3 msec)", "firsttime(20 msec)", "full outer join", "on"),
            ("time_length_batch(3 msec, 2)", "length(2)#time(6 msec)", "inner join", "on"),
            ("groupwin(k)#unique(v)", "groupwin(k)#length_batch(2)", "inner join", "on"),
        ]
    ),
    "select irstream a.k as k, sum(a.v) as s, count(*) as n from A#length(4) as a, B#unique(k) as b where a.k = b.k group by a.k",
    "select irstream a.v as x, b.v as y, c.v as z from A#unique(v) as a, B#lastevent as b, A#groupwin(k)#length(2) as c "
    "where a.k = b.k and b.v = c.v",
    "select count(*) as n from A as a unidirectional, B#sort(2, v desc) as b, B#unique(k) as c where a.k = b.k and c.v = b.v",
    "select a.v as x, b.v as y from A#unique(k) as a left outer join B as b unidirectional on a.k = b.k",
]
NAMED = """
create window U#unique(k) as A; insert into U select * from A(v > 0);
create window W#length(3) as A; insert into W select * from A; insert into W select k, 1 as v from B(v = 2);
create window V#time(6 msec) as B; insert into V select * from B;
on B(k = 'y') as b delete from W where W.v = b.v;
on B(v = 1) as b update U set v = U.v + 1 where U.k = b.k;
"""
NAMED_JOINS = [
    "select irstream u.v as x, b.v as y from U as u, B#length(3) as b where u.k = b.k",
    "select irstream w.v as x, b.v as y from B#time(5 msec) as b full outer join W as w on w.k = b.k and w.v = b.v",
    "select irstream u.v as x, w.v as y from U as u, W(v < 2) as w where u.k = w.k and u.v != w.v",
    "select irstream w.k as x, v.v as y from W as w left outer join V as v on v.k = w.k",
    "select count(*) as n, sum(w.v) as s from W as w, V as v, A#length(2) as a where w.k = v.k and a.v = v.v",
    "select a.v as x, b.v as y from W as a, W as b where a.k = b.k",
    "create variable int q = 1; on B as b set q = b.v; "
    "@name('s') select w.v as x, b.v as y from W(v = q) as w, B#length(2) as b where w.k = b.k",
    "select irstream w.v as x, b.v as y from W as w, B#length(2) as b where w.k = b.k output last every 5 msec",
]
STORES = """
create table T(k string primary key, v int);
on A(v is not null) as a merge T as t where t.k is a.k when matched then update set v = t.v + a.v
  when not matched then insert select a.k as k, a.v as v;
create window W#length(3) as A; insert into W select * from A;
"""
SEEKS = [
    "select irstream b.v as x, t.v as y from B#length(2) as b, T as t where t.k = b.k",
    "select irstream t.v as x, b.v as y from T as t, B#time(5 msec) as b where b.k = t.k and t.v > b.v",
    "select b.v as x, w.v as y from B as b unidirectional, W as w where b.k = w.k",
    "select w.v as x, b.v as y from W as w inner join B as b unidirectional on b.v = w.v where w.k is null or b.k = 'x'",
    "select b.v as x, t.v as y from B as b left outer join T as t on t.k = b.k",
    "select b.v as x, w.v as y from W as w right outer join B as b unidirectional on w.k = b.k and w.v = b.v "
    "where w.v is null or b.v = 1",
    "select count(*) as n, sum(w.v) as s from B as b unidirectional, W as w where w.v = b.v and w.k != b.k",
    "select irstream t.v as x, w.v as y from W as w, T as t where t.k = w.k",
    "select b.v as x, t.v as y from B#length_batch(2) as b full outer join T as t on t.k = b.k",
]
WAYS = [
    "select irstream * from A(v > 0)#length(2)",
    "select irstream k, v + 1 as w from A#time(5 msec) where v is not null",
    "select irstream k, sum(v) as s from A#length(3) group by k",
    "select k, sum(v) as s, count(*) as n from A#time(6 msec) group by k having count(*) > 1",
    "select irstream k, v, avg(v) as m, istream() as i from A#length(2) group by k",
    "select irstream max(v) as m, count(*) as n, istream() as i from A#length(3) having count(v) > 0",
    "select irstream k, v, count(*) as n from A#length_batch(2) group by rollup(k, v)",
    "select irstream k, sum(v, group_by:(k)) as s, sum(v) as t from A#time_batch(4 msec)",
    "select irstream a.v as x, count(*) as n from pattern [every a=A -> b=B(k=a.k)]#length(2) group by a.v",
    "select irstream k, (select count(*) from B#length(2) as b where b.k = a.k) as n from A#length(2) as a group by k",
    "create window W#length(3) as A; insert into W select * from A; @name('s') select k, max(v) as m from W group by k",
    "select k, count(*) as n from A output last every 4 msec",
    "select irstream count(*) as n from A output last every 3 events",
    "select k, sum(v) as s from A#length(2) group by k output snapshot every 3 msec",
]
OUTPUTS = [
    "select sum(v) as s, count(*) as n from A(k = 'x') output snapshot every 3 msec",
    "select sum(v) as s from A where v > 1 output last every 4 msec",
    "select min(v) as a, max(v) as b from A(v > 0) having count(*) > 1 output snapshot every 3 msec",
    "create context C initiated by A(v=1) terminated after 5 msec; "
    "@name('s') context C select count(*) as n, sum(v) as t from B(v > 0) output snapshot when terminated",
    "create context C initiated by B as b terminated by A(k = b.k); "
    "@name('s') context C select context.b.v as v, count(*) as n, avg(v) as m from A(v = context.b.v) "
    "output snapshot when terminated",
    "select k, v, sum(v) as s, count(*) as n from A(v < 3) group by k, v having sum(v) > 1 output snapshot every 4 msec",
    "create context C start @now end after 7 msec; "
    "@name('s') context C select max(v) as m, k from A group by k output snapshot when terminated",
    "select a.v as x, b.v as y from A#time(5 msec) as a, B#time(3 msec) as b where a.k = b.k",
    "select a.v as x, b.v as y, c.v as z from A#time(4 msec) as a, B#time(3 msec) as b, A(v=1)#time(9 msec) as c "
    "where a.k = b.k and b.v = c.v",
    "select a.v as x, b.v as y from A#time(4 msec) as a left outer join B#time(3 msec) as b on a.k = b.k",
    "select k, v from A#time(4 msec)",
    "select rate(0.006) as r, count(*) as n from A output last every 4 msec",
    "select rate(0.003, v > 1) as r from A(v < 3) where k = 'x' output snapshot every 5 msec",
    "select k, rate(0.004) as r from A group by k output snapshot every 3 msec",
]
OUTPUTS_OVER_TIME = [
    "select irstream sum(v) as s, count(*) as n from A(k = 'x')#time(5 msec) output last every 3 msec",
    "select min(v) as a, max(v) as b from A#time(6 msec) where v > 0 having count(*) > 1 output snapshot every 4 msec",
    "select irstream k, v, sum(v) as s, count(*) as n from A#time(4 msec) group by k, v output snapshot every 3 msec",
    "select irstream k, max(v) as m from A(v < 3)#time(5 msec) group by k having max(v) > 1 output last every 3 msec",
    "select irstream k, v, avg(v) as m from A#time(5 msec) output last every 4 msec",
    "select k, v, count(*) as n from A#time(5 msec) group by k output all every 4 msec",
    "select irstream v, count(*) as n from A#time(3 msec) group by k output every 5 msec order by v",
    "select irstream k, v from A#time(3 msec) where v > 1 output every 4 msec",
    "select k, sum(v) as s from A#time(4 msec) group by rollup(k) output snapshot every 3 msec",
    "create context C partition by k from A; @name('s') context C select context.key1 as c, sum(v) as s, count(*) as n "
    "from A#time(5 msec) output last every 3 msec",
    "create context C partition by k from A(v > 0); @name('s') context C select v, count(*) as n from A#time(5 msec) "
    "group by v output snapshot every 3 msec",
    "create context C start @now end after 9 msec; @name('s') context C select irstream sum(v) as s from A#time(4 msec) "
    "output last every 3 msec and when terminated",
]
EARLIER_ROWS = [
    "select prev(1, v) as p, prevcount(v) as n, k from A#time(4 msec) where v > 0",
    "create context C partition by k from A; @name('s') context C select v, prev(1, a) as p from A#time(5 msec) as a "
    "where v >= prev(1, v)",
]
REPEATS = [
    "select * from pattern [every (a=A until b=B)]",
    "select * from pattern [every ([2] a=A(v > 0))]",
    "select * from pattern [every ([1:2] a=A(v=1) until b=B(v=2))]",
    "select * from pattern [every (c=B -> [:3] a=A(k=c.k) until b=B(k=c.k))]",
    "select * from pattern [every (([2:] a=A(v > 0) until b=B) and c=A(v=1))]",
    "select * from pattern [every ([2] (a=A or b=B(v=1)) until c=A(v=2))]",
]
events = st.tuples(st.sampled_from("AB"), st.sampled_from(["x", "y", None]), st.sampled_from([1, 2, None]))
steps = st.lists(st.one_of(events, events, st.integers(1, 8), st.just("restart")), max_size=25)
jumps = st.tuples(st.just("jump"), st.integers(1, 12))
_A, _B = ("A", "x", 2), ("A", "x", 1)
SEVERAL_LEAVE = [_A, 1, _B, ("jump", 1), _A, 1, _B, ("jump", 12), _A, 9, _B, 1, _A, 7, _A, 20, "look"]
LEAVES_BEFORE_ONE_COMES = [
    _A,
    6,
    _B,
    3,
    _A,
    3,
    _B,
    3,
    _A,
    _B,
    9,
    _A,
    "restart",
    5,
    _B,
    7,
    _A,
    ("jump", 5),
    _B,
    20,
    "look",
]
JUMPS_FOLLOW_JUMPS = [
    _A,
    _B,
    ("jump", 7),
    _B,
    ("jump", 6),
    _A,
    2,
    _B,
    ("jump", 3),
    ("jump", 2),
    ("jump", 5),
    "look",
    20,
]
looks = st.lists(st.one_of(events, events, st.integers(1, 8), jumps, st.sampled_from(["restart", "look"])), max_size=30)


def _run(text: str, found: list[Any], restarts: bool, order: Callable[[list[Any]], list[Any]]) -> list[Any]:
    engine, said = Engine(), []
    engine.deploy(SCHEMA)
    engine.deploy(text, "s")
    for step in found:
        if step == "restart":
            engine = Engine.restored(engine.snapshot()) if restarts else engine
        elif step == "look":
            said.append(order(engine.rows("s")))
        elif isinstance(step, int):
            engine.advance(engine.now + step)
        elif step[0] == "jump":
            engine.jump(engine.now + step[1])
        else:
            engine.send(step[0], {"k": step[1], "v": step[2]})
        said += [(each.at, order(each.new), order(each.old)) for each in engine.heard()]
    return said


def _sorted(rows: list[Any]) -> list[Any]:
    return sorted(rows, key=repr)


@pytest.mark.parametrize("text", JOINS)
@examples(40)
@given(found=steps)
@pytest.mark.few(10)
def test_pairs_that_are_kept_are_those_of_the_whole_windows(text: str, found: Any) -> None:
    kept = _run(text, found, restarts=True, order=_sorted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "pairs", lambda *_: None)
        assert _run(text, found, restarts=False, order=_sorted) == kept


@pytest.mark.parametrize("text", NAMED_JOINS)
@examples(30)
@given(found=steps, first=st.lists(events, max_size=6))
def test_pairs_of_named_windows_are_those_of_what_they_show(text: str, found: Any, first: Any) -> None:
    kept = _run_late(text, first, found, restarts=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "pairs", lambda *_: None)
        assert _run_late(text, first, found, restarts=False) == kept


def _run_late(text: str, first: list[Any], found: list[Any], restarts: bool) -> list[Any]:
    """What a statement says that begins when the named windows hold something already."""
    engine, said = Engine(), []
    engine.deploy(SCHEMA)
    engine.deploy(NAMED)
    for stream, k, v in first:
        engine.send(stream, {"k": k, "v": v})
    engine.deploy(text, "s")
    engine.heard()
    for step in found:
        if step == "restart":
            engine = Engine.restored(engine.snapshot()) if restarts else engine
        elif isinstance(step, int):
            engine.advance(engine.now + step)
        else:
            engine.send(step[0], {"k": step[1], "v": step[2]})
        said += [(each.statement, each.at, _sorted(each.new), _sorted(each.old)) for each in engine.heard()]
    return said


def test_partners_stand_in_the_order_in_which_they_came_whatever_the_order_of_their_window() -> None:
    """Recorded of Esper; the recorded cases are compared without the order of rows."""
    case = json.loads((Path(__file__).parents[1] / "conformance/epl/join_order_of_partners.json").read_text())
    engine = Engine()
    for text in [*case["schemas"], *(each["text"] for each in case["epl"])]:
        engine.deploy(text)
    for step, recorded in zip(case["steps"], case["expected"]["steps"], strict=True):
        engine.send(step["send"], step["data"])
        heard = [(each.new, each.old) for each in engine.heard()]
        assert heard == [(each["insert"], each["remove"]) for each in recorded["out"]]


@pytest.mark.parametrize("kept", [True, False])
def test_a_named_window_joined_with_itself_changes_once(kept: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Esper says it: what comes is in both places at once."""
    if not kept:
        monkeypatch.setattr(select, "pairs", lambda *_: None)
    engine = Engine()
    engine.deploy(SCHEMA + "create window W#length(2) as A; insert into W select * from A;")
    engine.deploy("@name('s') select irstream a.v as x, b.v as y from W as a, W as b where a.k = b.k")
    for k, v in (("x", 1), ("x", 2), ("x", 4)):
        engine.send("A", {"k": k, "v": v})
    heard = [each for each in engine.heard() if each.statement == "s"]
    pairs = [[_sorted([(row["x"], row["y"]) for row in rows]) for rows in (each.new, each.old)] for each in heard]
    assert pairs == [
        [[(1, 1)], []],
        [[(1, 2), (2, 1), (2, 2)], []],
        [[(2, 4), (4, 2), (4, 4)], [(1, 1), (1, 2), (2, 1)]],
    ]


@pytest.mark.parametrize("text", SEEKS)
@examples(25)
@given(found=steps)
def test_rows_of_a_store_that_are_found_are_those_of_the_whole_store(text: str, found: Any) -> None:
    sought = _run(STORES + text, found, restarts=True, order=_sorted)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "seeking", lambda *_: None)
        assert _run(STORES + text, found, restarts=False, order=_sorted) == sought


@pytest.mark.parametrize("text", [SEEKS[1], SEEKS[2], SEEKS[4]])
def test_a_join_with_a_store_does_not_look_through_it(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine()
    engine.deploy(SCHEMA)
    engine.deploy(STORES + text)
    for v in (1, 2, 3):
        engine.send("A", {"k": f"k{v}", "v": v})
    engine.send("B", {"k": "k2", "v": 1})
    engine.heard()
    for store in (NamedWindow, Table):
        monkeypatch.setattr(store, "content", lambda self: pytest.fail("looked through"))
    engine.send("B", {"k": "k3", "v": 1})
    found, other = (1, 3) if "b.v as x" in text else (3, 1)
    assert [row for each in engine.heard() for row in each.new] == [{"x": found, "y": other}]


@pytest.mark.parametrize("text", WAYS)
@examples(25)
@given(found=steps)
def test_rows_that_leave_at_once_are_those_that_an_output_would_be_given(text: str, found: Any) -> None:
    short = _run(text, found, restarts=True, order=list)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(select, "_sole", lambda plan: False)
        patch.setattr(grouping.Aggregation, "only", None)
        for kind in (selecting.PerRow, selecting.Total, pergroup.PerGroup):
            patch.setattr(kind, "at_once", lambda self, new, old: selecting.rows_of(self.update(new, old)))
        assert _run(text, found, restarts=False, order=list) == short


@pytest.mark.parametrize("text", REPEATS)
@examples(25)
@given(found=steps)
def test_a_turn_of_a_repeat_that_waits_on_is_one_that_begins_anew(text: str, found: Any) -> None:
    short = _run(text, found, restarts=True, order=list)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matcher.Matcher, "waits_for_the_same", lambda self, node: False)
        assert _run(text, found, restarts=False, order=list) == short


@pytest.mark.parametrize("text", [*OUTPUTS, *OUTPUTS_OVER_TIME, *EARLIER_ROWS])
@examples(25)
@example(SEVERAL_LEAVE)
@example(LEAVES_BEFORE_ONE_COMES)
@example(JUMPS_FOLLOW_JUMPS)
@given(found=looks)
@pytest.mark.few(10)
def test_a_look_or_a_restart_changes_nothing(text: str, found: Any) -> None:
    assert _run(text, found, restarts=True, order=list) == _run(text, found, restarts=False, order=list)


def test_an_output_counts_all_events_since_the_last() -> None:
    engine = Engine()
    engine.deploy(SCHEMA)
    engine.deploy("select count(*) as n, sum(v) as s from A output snapshot every 10 msec", "s")
    for v in range(2000):
        engine.send("A", {"k": "x", "v": v})
    engine.advance(10)
    assert [each.new for each in engine.heard()] == [[{"n": 2000, "s": sum(range(2000))}]]


@pytest.mark.parametrize(
    "join",
    [
        "A#keepall as a, B#keepall as b where",
        "A#keepall as a left outer join B#keepall as b on",
        "A as a unidirectional, B#keepall as b where",
        "A#unique(k) as a, B#unique(v) as b where",
        "A#lastevent as a left outer join B#groupwin(k)#length(2) as b on",
        "A#time(1 sec) as a full outer join B#sort(100, v) as b on",
        "A#time(1 sec) as a, W as b where",
        "W as b full outer join A#length(100) as a on",
    ],
)
def test_a_change_of_a_join_costs_what_it_brings_and_not_what_the_windows_hold(
    join: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = Engine()
    engine.deploy(SCHEMA + "create window W#keepall as B; insert into W select * from B;")
    engine.deploy(f"@name('s') select a.v as x from {join} a.k = b.k", "s")
    looked: list[int] = []
    monkeypatch.setattr(select.SelectInstance, "held", lambda self, number: looked.append(number) or [])
    for n in range(50):
        engine.send("B", {"k": f"k{n}", "v": n})
        engine.send("A", {"k": f"k{n}", "v": n})
    heard = [row for each in engine.heard() if each.statement == "s" for row in each.new]
    assert [row["x"] for row in heard if row["x"] is not None] == list(range(50))
    assert looked == []


def test_values_of_any_type_are_compared_and_are_no_keys() -> None:
    engine = Engine()
    engine.deploy("create schema A(o java.lang.Object, v int); create schema B(o java.lang.Object, v int);")
    engine.deploy("select a.v as x, b.v as y from A as a unidirectional, B#length(3) as b where a.o = b.o", "once")
    engine.deploy(
        "select a.v as x, b.v as y from A#length(3) as a left outer join B#length(3) as b on a.o = b.o", "outer"
    )
    for stream, value in (("B", [1]), ("B", {"a": 1}), ("A", [1])):
        engine.send(stream, {"o": value, "v": 5})
    assert [(each.statement, each.new) for each in engine.heard()] == [
        (name, [{"x": 5, "y": 5}]) for name in ("once", "outer")
    ]


def test_a_window_of_many_keys_looks_only_at_those_that_are_due(monkeypatch: pytest.MonkeyPatch) -> None:
    window, asked = Grouped((Field(0, 0, LONG),), Time(1000)).build(Runner()), [0]
    for key in range(500):
        window.enter([Row(key, (key,))], key)
    kind = type(window._windows[0])  # type: ignore[attr-defined]
    own = kind.due.fget
    monkeypatch.setattr(kind, "due", property(lambda self: (asked.__setitem__(0, asked[0] + 1), own(self))[1]))
    for key in range(500):
        assert window.due == key + 1000
        assert [row.id for row in window.fire(key + 1000).old] == [key]
    assert window.due is None
    assert asked[0] <= 1000


def test_sessions_end_by_their_last_row_and_those_that_end_together_as_they_began() -> None:
    window = Session(10, (Field(0, 0, LONG),)).build(Runner())
    for number, (key, at) in enumerate([(1, 0), (2, 1), (3, 2), (1, 5), (2, 5), (1, 7)]):
        window.enter([Row(number, (key,))], at)
    ended: list[tuple[int | None, Any]] = []
    while (due := window.due) is not None:
        ended.append((due, [row.values[0] for row in window.fire(due).old]))
    assert ended == [(12, [3]), (15, [2, 2]), (17, [1, 1, 1])]
