"""Modules of several statements in batches, through their programs, against the same events one by one on rows.

Deliveries are compared one by one with their order, between restarts and statements that begin and end; and what stores and
statements hold at the end.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollup.engine import residence
from rollup.engine.columns.running.bulk import Columns
from rollup.live import Engine
from tests.live.one_by_one import EVENTS, FOLLOWED, left, sent
from tests.profiles import examples

SCHEMA = "create schema S(k string, n int, v double); create schema R(k string);"
MERGE = """
@name('merge') on S(v > 5) as s merge W as w where w.k = s.k and s.n = w.n
  when matched and s.v > 90 then delete
  when matched and s.v > 8 then update set v = w.v + s.v, n = s.n, v = w.v * 2 + initial.v
  when not matched and s.v < 70 then insert select *
  when not matched then insert select s.k as k, 7 as n, s.v as v;
"""
MODULES = {
    "length": "@name('W') create window W#length(3) as S; @name('in') insert into W select * from S; " + FOLLOWED,
    "keepall": "@name('W') create window W#keepall as S; @name('in') insert into W select k, n, v * 2 as v from S(v > 3); "
    + FOLLOWED,
    "some of what follows": "@name('W') create window W#length(3) as S; @name('in') insert into W select * from S; "
    "@name('sum') select irstream sum(v) as s from W(v > 3); @name('rows') select k, v from W(n > 0) where v < 90; "
    "@name('gone') select rstream k from W(k != 'a'); @name('groups') select irstream k, count(*) as c from W(v < 90) group by k",
    "unique": "@name('W') create window W#unique(k) as (v double, k string, n int); "
    "@name('in') insert into W select k, v from S having v > 2; " + FOLLOWED,
    "counted": "@name('W') create window W#length(4) as (k string, n long, v double); "
    "@name('in') insert into W select k, count(*) as n, sum(v) as v from S group by k; " + FOLLOWED,
    "total": "@name('W') create window W#length(4) as (n long, s double); "
    "@name('in') insert into W select count(*) as n, sum(v) as s from S having sum(v) > 4; @name('sum') select sum(s) as s from W",
    "merge W": "@name('W') create window W#unique(k, n) as S; " + MERGE + FOLLOWED,
    "merge all": "@name('W') create window W#keepall as S; " + MERGE + FOLLOWED,
    "merge last": "@name('W') create window W#length(4) as S; " + MERGE + FOLLOWED,
    "select": "@name('groups') select irstream k, sum(v) as s from S(v > 2)#length(3) group by k having sum(v) > 3",
    "ever": "@name('ever') select k, count(*) as c, sum(v) as s from S group by k",
    "several": "@name('a') select k, sum(v) as s from S#length(3) group by k; @name('b') select irstream v from S(v > 3)#length(2); "
    "@name('c') select count(*) as c from S; @name('d') select k from S(k = 'a' or n = 1); @name('e') select n from S(k = 'b')",
    "several into W": "@name('W') create window W#length(3) as S; @name('one') insert into W select * from S(v > 3); "
    "@name('hears') select k, v from S; @name('two') insert into W select k, n + 1 as n, v from S(n > 0); " + FOLLOWED,
    "chain": "@name('one') insert into A select k, v * 2 as v from S(v > 3); "
    "@name('two') insert into B select k, sum(v) as s from A#length(3) group by k having sum(v) > 9; "
    "@name('three') select k, s from B(s > 20); @name('of A') select irstream v from A#length(2); @name('all B') select * from B",
    "by two ways": "@name('s a') insert into A select k, v from S(n > 0); @name('s b') insert into B select k, v from S; "
    "@name('a d') insert into D select k, v, 1 as way from A; @name('b d') insert into D select k, v, 2 as way from B(v > 3); "
    "@name('D') select way, sum(v) as s from D#length(4) group by way; @name('W') create window W#length(3) as (k string, n int, v double); "
    "@name('s w') insert into W select * from S; @name('d w') insert into W select k, way as n, v from D; " + FOLLOWED,
    "merges of one W": "@name('W') create window W#unique(k, n) as S; @name('before') select k from S; "
    "@name('in') insert into W select * from S(n = 1); " + MERGE + "@name('between') select v from S; "
    "@name('update') on S(v > 3) as s update W set v = W.v + 1, n = W.n where W.n = s.n; "
    "@name('delete') on S(n = 2) as s delete from W where W.k = s.k; @name('after') select n from S; " + FOLLOWED,
    "merges on the way": "@name('W') create window W#length(4) as S; @name('s a') insert into A select k, n, v + 1 as v from S(v > 3); "
    "@name('s b') insert into W select * from S; @name('of a') on A as a update W set v = a.v where W.k = a.k; "
    "@name('a') select v from A; @name('a b') insert into B select k, n from A; @name('of b') on B as b delete from W where W.n = b.n; "
    + FOLLOWED,
    "split first": "@name('x') on S insert into A select k, v where v > 40 insert into B select k, n where v > 6; "
    "@name('a') select * from A; @name('b') select k, sum(n) as s from B group by k; "
    "@name('s') select n from S;",
    "split all": "@name('s') select n from S; "
    "@name('x') on S(n > 0) insert into A select k, v where v > 40 insert into B select k, n insert into A select k, n + 0.5 as v where n = 2 output all; "
    "@name('a') select * from A; @name('b') select k, sum(n) as s from B group by k;",
    "split into window": "create window W#length(3) as (k string, v double); "
    "@name('x') on S insert into W select k, v where v > 4 insert into B select k, n where n = 1; "
    "@name('w') select irstream k, sum(v) as t from W group by k; select * from B;",
    "set": "create variable double x = 1; create variable int y; @name('b') select v from S(v > x); "
    "@name('set') on S(n > 0) set y = n, x = v; @name('a') select k, v - x as d, y from S(v >= x);",
    "set twice": "create variable double x = 1; @name('set') on S(n > 0) set x = v; "
    "@name('set2') on S(v > x) set x = x + v; @name('a') select x from S(v < x); "
    "create window W#keepall as S; "
    "on S(v > x) as s merge W as w where w.k = s.k when matched then update set v = x when not matched then insert select *;",
    "constant": "create constant variable double x = 6.1; create variable string t = 'a'; "
    "@name('set') on S(v = x) set t = k; @name('a') select k, v from S(k = t, v > x);",
    "on select": "@name('W') create window W#unique(k) as S; @name('in') insert into W select * from S(v < 40); "
    "@name('s') select n from S; "
    "@name('ask') on S(v > 3) as s select w.k as k, w.v - s.v as d from W as w where w.k = s.k; "
    "@name('last') select k from S",
    "on select of several": "@name('W') create window W#length(5) as S; @name('in') insert into W select * from S(v < 40); "
    "@name('ask') on S(v > 3) as s insert into A select w.k as k, w.v as v from W as w where w.n = s.n and w.v < s.v having w.v > 2; "
    "@name('a') select sum(v) as t from A",
    "on select and delete": "@name('W') create window W#keepall as S; @name('in') insert into W select * from S(v < 40); "
    "@name('ask') on S(n = 2) as s select and delete w.k as k, w.v as v from W as w where w.k = s.k; "
    "@name('w') select irstream k, count(*) as c from W group by k; @name('last') select k from S",
}
LATER = "later"


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns carry no statement; with two events a component goes over to its program."""
    placed = Columns.placed
    monkeypatch.setattr(Columns, "placed", lambda self: [replace(each, executor="rows") for each in placed(self)])
    monkeypatch.setattr(residence, "_LEAST", 2)
    monkeypatch.setattr(residence, "_WORTH", 0)


def engine_of(text: str, columns: int | None) -> Engine:
    engine = Engine(columns=columns)
    engine.deploy(SCHEMA + text)
    return engine


@pytest.mark.parametrize("name", MODULES)
@examples(5)
@given(data=st.data())
@pytest.mark.few(10)
def test_a_batch_through_a_program_brings_what_its_events_bring_one_by_one(name: str, data: st.DataObject) -> None:
    program, rows = engine_of(MODULES[name], 1), engine_of(MODULES[name], None)
    assert {each.executor for each in program.plan()} == {"program"}
    now = 0
    for _ in range(data.draw(st.integers(1, 3))):
        events = data.draw(EVENTS)
        at = [now := now + data.draw(st.sampled_from([0, 1, 30])) for _ in events]
        assert sent(program, events, at, together=True) == sent(rows, events, at, together=False)
        assert left(program) == left(rows)
        if data.draw(st.booleans()):
            for engine in (program, rows):
                if LATER not in [each.statement for each in engine.plan()]:
                    engine.deploy(f"@name('{LATER}') select irstream k, n from S#length(2)", LATER)
                else:
                    engine.undeploy(LATER)
        if data.draw(st.booleans()):
            program, rows = Engine.restored(program.snapshot(), 1), Engine.restored(rows.snapshot(), None)


def _events(count: int) -> list[dict[str, Any]]:
    return [{"k": "a", "n": n, "v": float(n)} for n in range(count)]


@pytest.mark.parametrize("columns", [None, 1])
def test_what_is_deployed_later_is_told_too(columns: int | None) -> None:
    engine = engine_of(MODULES["length"], columns)
    events = [{"k": "a", "n": 1, "v": float(i)} for i in range(10)]
    engine.send("S", events)
    engine.deploy("@name('later') select max(v) as m from W")
    engine.heard()
    engine.send("S", events)
    greatest = [each.new for each in engine.heard() if each.statement == "later"]
    assert greatest == [[{"m": m}] for m in (9.0, 9.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)]


@pytest.mark.parametrize("columns", [None, 1])
def test_a_listener_may_end_and_begin_who_hears_a_stream(columns: int | None) -> None:
    engine = engine_of("@name('s a') insert into A select k, v from S; @name('s') select v from S;", columns)
    engine.deploy("@name('a') select sum(v) as s from A", "ends")
    calls = list[int]()

    def exchange(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> None:
        if not calls:
            engine.undeploy("ends")
            engine.deploy("@name('b') select max(v) as m from A", "begins")
        calls.append(len(new))

    engine.listen("s", exchange)
    engine.send("S", _events(10))
    assert len(calls) == 10
    assert "b" not in {each.statement for each in engine.heard()}
    engine.send("S", _events(10))
    told = [(each.statement, each.new) for each in engine.heard() if each.statement in ("a", "b")]
    assert told == [("b", [{"m": float(n)}]) for n in range(10)]


@pytest.mark.parametrize("columns", [None, 1])
@pytest.mark.parametrize("kind", ["rows", "tables"])
def test_a_listener_may_send_events_of_the_stream_that_it_is_told_of(kind: str, columns: int | None) -> None:
    engine, heard = engine_of(MODULES["length"], columns), list[float]()

    def told(sums: list[float]) -> None:
        heard.extend(sums)
        if len(heard) == len(sums):
            engine.send("S", _events(8))

    if kind == "rows":
        more = list[dict[str, Any]]()

        def listener(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> None:
            heard.extend(row["s"] for row in new)
            if not more:
                more.extend(_events(8))
                engine.send("S", more)

        engine.listen("sum", listener)
    else:
        engine.listen_arrow(lambda arrived: told(arrived.rows["s"].to_pylist()), "sum")
    engine.send("S", _events(10))
    assert len(heard) == 18


@pytest.mark.parametrize("columns", [None, 1])
def test_what_a_listener_fails_over_is_not_told_again(columns: int | None) -> None:
    engine, heard = engine_of(MODULES["length"], columns), list[float]()

    def listener(new: list[dict[str, Any]], old: list[dict[str, Any]]) -> None:
        heard.extend(row["s"] for row in new)
        if len(heard) == 1:
            raise ValueError("the listener's own")

    engine.listen("sum", listener)
    with pytest.raises(ValueError, match="own"):
        engine.send("S", _events(10))
    before = len(heard)
    engine.send("S", _events(10))
    assert len(heard) == before + 10
