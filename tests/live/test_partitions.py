"""Partitions of contexts in batches: pipelines within them, against the same events one by one."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollup.live import Engine
from tests.live.one_by_one import EVENTS, FOLLOWED, engine_of, left, sent

BY_KEY = "create context C partition by k from S; "
WINDOW = "@name('W') context C create window W#length(3) as S; "
FILLED = "@name('in') context C insert into W select * from S(v < 90); "
FOLLOWING = "".join(f"{line.replace(') select', ') context C select')}" for line in FOLLOWED.splitlines())
TABLES = "@name('T') context C create table T(n int primary key, c count(*), s sum(double)); "
MANY = {
    "a table's total": BY_KEY + "context C create table T(c count(*), s sum(double), m max(double)); "
    "@name('in') context C into table T select irstream count(*) as c, sum(v) as s, max(v) as m from S(n >= 0)#length(3); "
    "@name('all') context C into table T select count(*) as c from S; "
    "@name('shown') context C into table T select sum(v) as s from S(v > 40)",
    "a table's groups": BY_KEY
    + TABLES
    + "@name('in') context C into table T select n, count(*) as c, sum(v) as s from S group by n; "
    "@name('row') context C select T[n].c as c, k from S; "
    "@name('ask') context C on S(v < 40) as s select t.c as c, t.n as n from T as t where t.n = s.n",
    "a merged table": BY_KEY + "@name('T') context C create table T(n int primary key, v double); "
    "@name('merge') context C on S as s merge T as t where t.n = s.n when matched and s.v > 90 then delete "
    "when matched then update set v = t.v + s.v when not matched then insert select s.n as n, s.v as v; "
    "@name('there') context C select (select t.v from T as t where t.n = s.n) as v, s.k as k from S as s",
    "a named window": BY_KEY + WINDOW + FILLED + FOLLOWING,
    "windows in a row": BY_KEY
    + WINDOW
    + FILLED
    + "@name('V') context C create window V#unique(n) as S; @name('in V') context C insert into V select * from S(n > 0); "
    "@name('v') context C select irstream n, sum(v) as s from V group by n; @name('w') context C select k, v from W(v > 3)",
    "a window by parts": BY_KEY + "@name('W') context C create window W#keepall as S; "
    "@name('in') context C insert into W select k, n + 1 as n, v from S(v < 90); "
    "@name('other') context C insert into W select 'a' as k, n, v from S(v > 90); " + FOLLOWING,
    "a window by the clock": BY_KEY + WINDOW.replace("length(3)", "time(20 msec)") + FILLED + FOLLOWING,
    "a window that is changed": BY_KEY
    + WINDOW.replace("length(3)", "keepall")
    + FILLED
    + "@name('merge') context C on S(v > 5) as s merge W as w where s.n = w.n when matched and s.v > 90 then delete "
    "when matched then update set v = w.v + s.v; " + FOLLOWING,
    "a window of which is taken": BY_KEY
    + WINDOW
    + FILLED
    + "@name('take') context C on S(n = 2) as s select and delete w.v as v from W as w where w.v > s.v; "
    + FOLLOWING,
    "joined with its window": BY_KEY
    + WINDOW
    + FILLED
    + "@name('join') context C select w.v as v, s.v as x from S(v > 3) as s unidirectional, W as w where w.n = s.n; "
    "@name('both') context C select a.v as v, b.v as x from W as a, S#length(2) as b where a.n = b.n",
    "what asks": BY_KEY + "@name('sub') context C select k, (select sum(v) from S(n > 0)#length(2)) as s, "
    "(select count(*) from R) as r from S(v > 3); "
    "@name('exists') context C select v from S as s where exists (select * from S(v > 6)#length(3) as w where w.n = s.n)",
    "inserted for nobody": BY_KEY
    + "@name('in') context C insert into A select k, sum(v) as s from S#length(2); @name('s') context C select v from S(n = 1)",
    "inserted for one without": BY_KEY
    + "@name('in') context C insert into A select k, sum(v) as s from S#length(2); @name('a') select count(*) as c from A",
    "inserted for partitions": "create schema A(k string, s double); create context C partition by k from S, k from A; "
    "@name('in') context C insert into A select k, v as s from S(n = 1); @name('a') context C select count(*) as c from A; "
    "@name('s') context C select sum(v) as s from S",
    "outputs": BY_KEY + "@name('last') context C select k, sum(v) as s from S#length(3) output last every 3 events; "
    "@name('clock') context C select k, sum(v) as s from S#time(20 msec) output last every 10 msec; "
    "@name('snapshot') context C select k, v from S#length(2) output snapshot every 15 msec; "
    "@name('first') context C select n, count(*) as c from S group by n output first every 2 events",
    "previous in time": BY_KEY
    + "@name('previous') context C select v, prev(1, v) as d, prevtail(n) as c from S(v > 2)#time(20 msec) "
    "having prev(2, n) is null or n > 0; @name('s') context C select n from S(v < 90)",
    "a time that the clock shows": BY_KEY + "@name('total') context C select irstream sum(v) as s, count(*) as c "
    "from S#time(20 msec) output last every 15 msec; @name('groups') context C select n, max(v) as m from S(v < 90)#time(30 msec) "
    "group by n output snapshot every 10 msec; @name('rows') context C select k, v, avg(v) as a from S#time(40 msec) where n > 0 "
    "output every 15 msec",
    "joined by rates": BY_KEY
    + "@name('join') context C select a.v as v, b.v as x from S(v > 3)#length(2) as a, S(n > 0)#length(2) as b where a.n = b.n "
    "output every 2 events; @name('s') context C select count(*) as c from S",
    "by a number": "create context C partition by n from S; context C create table T(c count(*)); "
    "@name('in') context C into table T select count(*) as c from S(v > 1)",
    "by two": "create context C partition by k, n from S; context C create table T(s sum(double)); "
    "@name('in') context C into table T select sum(v) as s from S",
    "of some": "create context C partition by k from S(v > 1); context C create table T(s sum(double)); "
    "@name('in') context C into table T select sum(v) as s from S(v < 90)",
    "until an event": "create context C partition by k from S terminated by S(v > 90); context C create table T(s sum(double)); "
    "@name('in') context C into table T select sum(v) as s from S; @name('end') context C select count(*) as c from S "
    "output snapshot when terminated",
    "begun by some": "create context C partition by k from S initiated by S(v > 6) as i; context C create table T(s sum(double)); "
    "@name('in') context C into table T select sum(v) as s from S",
    "by a hash": "create context C coalesce by hash_code(k) from S granularity 2; context C create table T(s sum(double)); "
    "@name('in') context C into table T select sum(v) as s from S(v > 1)",
    "a window of a hash": "create context C coalesce by hash_code(k) from S granularity 2; "
    "context C create window W#length(2) as S; @name('in') context C insert into W select * from S; "
    "@name('w') context C select count(*) as c from W",
    "by categories": "create context C group v < 7 as low, group v > 3 as high from S; context C create table T(s sum(double)); "
    "@name('in') context C into table T select sum(v) as s from S; @name('s') context C select count(*) as c from S",
    "two levels": "create context C context A partition by k from S, context B partition by n from S; "
    "context C create table T(s sum(double)); @name('in') context C into table T select sum(v) as s from S; "
    "@name('W') context C create window W#length(2) as S; @name('to W') context C insert into W select * from S; "
    "@name('w') context C select sum(v) as s from W",
    "a category of a key": "create context C context A partition by k from S, context B group v < 7 as low, group v > 3 as high from S; "
    "context C create table T(s sum(double)); @name('in') context C into table T select sum(v) as s from S",
    "overlapping": "create context C initiated by S(v > 40) as b terminated after 20 msec; context C create table T(s sum(double)); "
    "@name('in') context C into table T select sum(v) as s from S(n >= 0)",
    "beside one without": BY_KEY
    + TABLES
    + "@name('in') context C into table T select n, count(*) as c from S group by n; "
    "@name('s') select count(*) as c from S",
    "in two contexts": BY_KEY
    + TABLES
    + "@name('in') context C into table T select n, count(*) as c from S group by n; create context D partition by n from S; "
    "context D create table U(c count(*)); @name('in U') context D into table U select count(*) as c from S",
    "patterns beside": BY_KEY
    + TABLES
    + "@name('in') context C into table T select n, count(*) as c from S group by n; "
    "@name('p') context C select a.v as v from pattern [every a=S(v > 3) -> (S(n = a.n) or S(v < 3))]",
    "variables": BY_KEY + "context C create variable double x = 1; create variable double y = 2; "
    "@name('set') context C on S(v > 40) set x = v, y = v; @name('s') context C select x + y + v as z from S",
    "refused": BY_KEY + "@name('W') context C create window W#keepall as S; create unique index I on W(n); "
    "@name('in') context C insert into W select * from S(v < 7); @name('w') context C select count(*) as c from W",
}


@pytest.mark.parametrize("name", MANY)
@settings(max_examples=12, deadline=None)
@given(data=st.data())
def test_partitions_bring_in_a_batch_what_they_bring_one_by_one(name: str, data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollup.engine.rows.pipelines.partitions._SOME", 2)
        patch.setattr("rollup.engine.rows.pipelines.partitions._FEW", 1)
        whole, single, now = engine_of(MANY[name]), engine_of(MANY[name]), 0
        for _ in range(data.draw(st.integers(1, 3))):
            events = data.draw(EVENTS)
            at = [now := now + data.draw(st.sampled_from([0, 1, 30])) for _ in events]
            assert sent(whole, events, at, together=True) == sent(single, events, at, together=False)
            assert _left(whole) == _left(single)
            if data.draw(st.booleans()):
                whole, single = (Engine.restored(each.snapshot(), columns=None) for each in (whole, single))
            if name == "inserted for nobody" and data.draw(st.booleans()):
                for engine in (whole, single):
                    if not any(each.statement == "later" for each in engine.plan()):
                        engine.deploy("@name('later') select count(*) as c from A")


ONE_BY_ONE = {
    "a window by parts": "rows of another key",
    "inserted for one without": "who hears them is in no partition",
    "inserted for partitions": "who hears them may be in another",
    "a window of a hash": "rows may be of another partition",
    "overlapping": "an event begins some",
    "beside one without": "in no partition",
    "in two contexts": "two contexts",
    "patterns beside": "a pattern",
    "variables": "variables of their own",
}
"""Those whose events go one by one, and why."""


@pytest.mark.parametrize("name", MANY)
def test_these_partitions_have_pipelines(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollup.engine.rows.pipelines.partitions._SOME", 2)
    monkeypatch.setattr("rollup.engine.rows.pipelines.choosing._TRIED", 4)
    engine = engine_of(MANY[name])
    engine.send("S", [{"k": "a", "n": n if name == "refused" else 1, "v": 1.0 + n % 7} for n in range(15)])
    pipeline = engine._pipelines.of("S")  # pyright: ignore[reportPrivateUsage]
    assert (pipeline is None or not pipeline.tapes) is (name in ONE_BY_ONE)


def _left(engine: Engine) -> list[Any]:
    names = sorted(placed.statement for placed in engine.plan())
    return [engine.rows(name) for name in names]


ALONE = {
    "from an event on": "create context C start S(v > 40) as s end after 20 msec; "
    "context C select context.s.k as b, k, sum(v) as t, count(*) as c from S",
    "told at the end": "create context C start @now end after 25 msec; "
    "context C select k, sum(v) as t from S(n >= 0) group by k output snapshot when terminated",
    "a window of some": "create context C start S(v > 40) as s end after 50 msec; "
    "context C select irstream k, v from S(k = context.s.k)#length(2) where v > 3",
    "until an event": "create context C start S(v > 40) end S(v < 3); context C select max(v) as m from S#length(3)",
    "several at once": "create context C initiated by S(v > 40) as s terminated after 20 msec; "
    "context C select context.s.v as b, count(*) as c from S(n >= 1) output last every 10 msec",
    "over time": "create context C start S(v > 6) end after 30 msec; context C select sum(v) as s from S#time(10 msec)",
    "groups every so often": "create context C start S(v > 40) end after 50 msec; "
    "context C select k, n, v, sum(v) as t from S(n >= 0) group by k, n having count(*) > 1 output snapshot every 20 msec",
    "a total every so often": "create context C start S(v > 40) end after 50 msec; "
    "context C insert into Q select sum(v) as t from S(v < 50) output last every 20 msec",
    "several of one": "create context C start @now end after 30 msec; context C select k from S; context C select v from S(n = 1)",
    "what may be refused": "create context C start S(v > 6) as s end after 30 msec; "
    "context C select n.compareTo(1) as c, count(*) as t from S",
}


@pytest.mark.parametrize("name", ALONE)
@pytest.mark.parametrize("again", [1, 3, 64])
@settings(max_examples=15, deadline=None)
@given(data=st.data())
def test_partitions_that_begin_and_end_in_a_batch_hear_what_they_hear_one_by_one(
    name: str, again: int, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollup.live.engine._AGAIN", again)
        whole, single = engine_of(ALONE[name]), engine_of(ALONE[name])
        now = 0
        for _ in range(data.draw(st.integers(1, 3))):
            events = data.draw(EVENTS)
            at = [now := now + data.draw(st.sampled_from([0, 1, 1, 30])) for _ in events]
            assert sent(whole, events, at, together=True) == sent(single, events, at, together=False)
            assert left(whole) == left(single)


def test_the_only_partition_that_hears_a_stream_has_a_pipeline() -> None:
    engine = engine_of(ALONE["told at the end"])
    pipelines = engine._pipelines  # pyright: ignore[reportPrivateUsage]
    assert pipelines.of("S") is not None
    assert pipelines.begun("S") is not None
    engine = engine_of(ALONE["from an event on"])
    pipelines = engine._pipelines  # pyright: ignore[reportPrivateUsage]
    assert pipelines.begun("S") is None
    engine.send("S", {"k": "a", "n": 1, "v": 50.0})
    assert pipelines.begun("S") is not None


def test_rows_leave_by_the_clock_without_leaving_the_pipelines_of_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollup.engine.rows.pipelines.partitions._SOME", 2)
    text = BY_KEY + "@name('s') context C select v, k from S#time(20 msec) output every 2 events"
    events = [{"k": "ab"[n % 2], "n": 1, "v": float(n)} for n in range(60)]
    whole, single, moves = engine_of(text), engine_of(text), list[int]()
    found = sent(whole, events[:20], range(1, 21), together=True)
    runner = whole._component.runner  # pyright: ignore[reportPrivateUsage]
    advance = runner.advance
    monkeypatch.setattr(runner, "advance", lambda to: (moves.append(to), advance(to)))
    assert found == sent(single, events[:20], range(1, 21), together=False)
    found = sent(whole, events[20:], range(21, 61), together=True)
    assert moves == []
    assert found == sent(single, events[20:], range(21, 61), together=False)
    assert found
