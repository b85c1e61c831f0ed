"""Batches through a pipeline against the same events one by one, which are told from statement to statement.

Deliveries are compared one by one with their order, between timers that fire meanwhile, refused events and restarts; and what
stores and statements hold at the end.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rollup.core.errors import QueryError
from rollup.live import Arrived, Engine
from tests.live.one_by_one import EVENTS, FOLLOWED, SCHEMA, engine_of, left, said, sent

TABLE = "create table T(k string primary key, v double, c int);"
MERGE = """
@name('merge') on S(v > 5) as s merge W as w where w.k = s.k and s.n = w.n
  when matched and s.v > 90 then delete
  when matched and s.v > 8 then update set v = w.v + s.v, n = s.n, v = w.v * 2 + initial.v
  when not matched and s.v < 70 then insert select *
  when not matched then insert select s.k as k, 7 as n, s.v as v;
"""
LATEST = "@name('W') create window W#unique(k) as S; @name('in') insert into W select * from S(v < 40); "
LAST = "@name('W') create window W#length(4) as S; @name('in') insert into W select * from S(v < 90); "
T = (
    TABLE + "@name('of R') on R as r merge T as t where t.k = r.k when matched then update set c = t.c + 1 "
    "when not matched then insert select r.k as k, 1.5 as v, 2 as c; "
)
READING = {
    "asks the latest": LATEST
    + "@name('value') select k, v - (select w.v from W as w where w.k = s.k) as d from S(v > 4) as s; "
    "@name('row') select (select w from W as w where w.k = s.k and w.n = s.n) as w from S as s; "
    "@name('there') select k from S as s where exists (select * from W as w where w.k = s.k and w.v > s.v)",
    "asks an average": LAST
    + "@name('average') select k, (select avg(w.v) from W as w where w.k = s.k) as a from S(v > 4) as s; "
    "@name('several') select (select sum(w.v) + max(w.n) from W as w where w.k = s.k and w.n >= s.n having count(*) > 1) as d "
    "from S(n > 0) as s; @name('of two') select (select count(*) from W as w where w.k = s.k and w.n = s.n) as c from S as s; "
    + FOLLOWED,
    "asks of several": LAST
    + "@name('one') select (select w.v from W as w where w.k = s.k) as v, (select w.v from W as w where w.k = s.k and w.v > 4) as x "
    "from S as s; @name('list') select k from S as s where s.n in (select w.n from W as w where w.k = s.k); "
    "@name('groups') select (select w.n, sum(w.v) as s from W as w where w.k = s.k group by w.n) as g from S as s",
    "asks of events": "@name('exists') select k, v from S(v >= 4) as s where exists (select * from S(v < 40)#length(3) as w "
    "where w.k = s.k); @name('own') select k, (select count(*) from S(n = 1)#length(2) as w where w.k = s.k) as c, "
    "(select sum(v) from S#unique(k)) as u, (select count(*) from R) as r from S(v > 3) as s; "
    "@name('of R') select k, (select last(v) from S) as v from R",
    "asks in its window": "@name('d') select irstream k, sum(v - (select avg(w.v) from S(n > 0)#length(3) as w where w.k = s.k)) as d "
    "from S#length(3) as s group by k; @name('batch') select (select sum(v) from S#length_batch(3)) as b from S(v > 3)",
    "asks and inserts": LATEST
    + "@name('s a') insert into A select k, n, v - (select w.v from W as w where w.k = s.k) as v from S(v > 3) as s; "
    "@name('a') select k, v, (select w.v from W as w where w.k = a.k) as w from A as a; "
    "@name('a w') insert into W select k, n, v from A(v > 0)",
    "a follower asks": LAST + "@name('follows') select irstream k, (select count(*) from W as w where w.k = f.k) as c, "
    "(select count(*) from S(n = 1)#length(2) as w where w.k = f.k) as s from W as f",
    "joins the latest": LATEST
    + "@name('inner') select w.v - s.v as d from S(v > 4) as s unidirectional, W as w where w.k = s.k; "
    "@name('left') select s.k as k, w.v as v from S as s unidirectional left outer join W as w on w.k = s.k and w.n = s.n; "
    "@name('store first') select w.v as v, s.n as n from W as w, S(n > 0) as s unidirectional where w.k = s.k and w.v < s.v; "
    + FOLLOWED,
    "joins several": LAST
    + "@name('pairs') select w.v as v, s.n as n from S as s unidirectional, W as w where w.k = s.k and (w.n = s.n or w.v > 6); "
    "@name('all') select w.v as v from S(v > 40) as s unidirectional, W as w; "
    "@name('some') select w.v as v from S as s unidirectional, W(n > 0) as w where w.k = s.k",
    "joins a table": T
    + "@name('inner') select s.v as v, t.v as w from S(v > 4) as s, T as t where t.k = s.k and t.c < 3; "
    "@name('left') select s.k as k, t.c as c from S as s left outer join T as t on t.k = s.k; "
    "@name('row') select T[k].v as v, T[k].c as c, (select t.c from T as t where t.k = s.k) as d from S as s",
    "asks beside a merge": "@name('W') create window W#unique(k, n) as S; @name('before') select k, (select sum(w.v) from W as w "
    "where w.k = s.k) as v from S as s; "
    + MERGE
    + "@name('value') select (select w.v from W as w where w.k = s.k and w.n = s.n) "
    "as v from S(v > 3) as s; @name('join') select w.v - s.v as d from S as s unidirectional, W as w where w.k = s.k and w.n = s.n; "
    + FOLLOWED,
    "asks of what nobody follows": "@name('W') create window W#unique(k) as S; @name('in') insert into W select * from S(v < 40); "
    "@name('update') on S(v > 3) as s update W as w set v = w.v + s.v where w.k = s.k; "
    "@name('value') select k, (select w.v from W as w where w.k = s.k) as v, (select count(*) from W) as c from S(n >= 0) as s; "
    "@name('s a') insert into A select k, v from S(n = 1); @name('a') select (select sum(w.v) from W as w) as v from A; "
    "@name('ask') on S(n = 2) as s select w.v as v from W as w where w.k = s.k",
    "reads a merged table": TABLE
    + "@name('before') select T[k].c as c from S; @name('merge') on S(v > 4) as s merge T as t "
    "where t.k = s.k when matched and s.v > 90 then delete when matched then update set v = t.v + s.v, c = t.c + 1 "
    "when not matched then insert select s.k as k, s.v as v, 1 as c; "
    "@name('after') select s.k as k, t.v as v, t.c as c from S(n >= 0) as s, T as t where s.k = t.k; "
    "@name('asks') select (select t.c from T as t where t.k = s.k and t.v > 9) as c from S as s",
    "asks what was refused": "@name('W') create window W#length(3) as S; create unique index I on W(k, n); "
    "@name('asks') select k, (select count(*) from W as w where w.k = s.k) as c, "
    "(select sum(o.v) from S(v > 3)#length(2) as o where o.k = s.k) as o from S as s; "
    "@name('in') insert into W select * from S; @name('join') select w.v as v from S as s unidirectional, W as w where w.k = s.k; "
    + FOLLOWED,
}
JOINING = {
    "a join of both": "@name('before') select k from S; @name('W') create window W#length(3) as S; "
    "@name('in') insert into W select * from S; @name('first') select v from W; "
    "@name('join') select a.v as x, b.v as y from W as a, S#length(2) as b where a.k = b.k; @name('after') select v from S; "
    + FOLLOWED,
    "joins of some": LATEST
    + "@name('apart') select a.k as k, b.v as v from W as a, S(v >= 40)#length(3) as b where a.k = b.k; "
    "@name('beside') select irstream b.v as v, a.n as n from S(v > 3 and v < 90)#length(2) as b, W as a "
    "where a.k = b.k and a.v <= b.v having a.n != 1; "
    "@name('gone') select rstream a.v as v, b.n as n from W as a, S#keepall as b where a.k = b.k; " + FOLLOWED,
    "joins that keep what is alone": "@name('W') create window W#keepall as S; @name('in') insert into W select * from S(n > 0); "
    "@name('left') select irstream a.k as k, b.v as v from W as a left outer join S(v > 6)#unique(k) as b on a.k = b.k; "
    "@name('full') select irstream a.v as v, b.n as n from S#length_batch(3) as b full outer join W as a on a.k = b.k and a.n = b.n; "
    "@name('all') select a.v as v, b.v as o from W as a, S(v > 40)#length(2) as b",
    "a join beside changes": "@name('before') select k from S; @name('W') create window W#keepall as S; "
    "@name('in') insert into W select * from S(v < 40); "
    "@name('join') select irstream a.v as x, b.v as y from W as a, S(v > 3)#length(2) as b where a.k = b.k; "
    + MERGE
    + "@name('last') select irstream a.v as x, b.v as y from S#length(3) as b, W as a where a.k = b.k and a.n = b.n; "
    "@name('delete') on S(n = 2) as s delete from W where W.k = s.k; @name('after') select n from S; " + FOLLOWED,
    "a join of what is refused": "@name('W') create window W#length(3) as S; create unique index I on W(k, n); "
    "@name('in') insert into W select * from S; @name('join') select a.v as v from W as a, S#length(2) as b where a.k = b.k; "
    + FOLLOWED,
    "a join of an event with itself": "@name('join') select a.v as v, b.v as w from S#length(2) as a, S(v > 3)#length(2) as b "
    "where a.k = b.k order by a.v; @name('s') select v from S; "
    "@name('rate') select a.v as v, b.n as n from S(v > 3)#length(2) as a, S(n > 0)#length(2) as b where a.k = b.k output every 2 events",
    "joins of three": "@name('self') select a.v as x, b.v as y, c.n as n from S#unique(k) as a, S#length(2) as b, S#lastevent as c "
    "where a.k = b.k and b.n = c.n and a.v <= b.v; @name('between') select v from S(n > 0); "
    "@name('both') select irstream a.v as x, b.n as n from S(v > 3)#keepall as a, S(n = 1)#length(2) as b, R#length(1) as r "
    "where a.k = b.k and b.k = r.k",
    "outer joins of events": "@name('left') select irstream a.v as x, b.v as y from S#length(2) as a left outer join S#unique(k) as b "
    "on a.n = b.n and a.k = b.k; @name('full') select irstream a.v as x, b.k as k from S(v > 3)#length(2) as a "
    "full outer join R#length(1) as b on a.k = b.k; "
    "@name('only') select a.v as x, b.v as y from S(v > 6) as a unidirectional, S(v > 3)#length_batch(3) as b where a.k = b.k",
    "a join on the way": "@name('s a') insert into A select k, v from S(v > 3); @name('W') create window W#length(3) as S; "
    "@name('in') insert into W select * from S; @name('first') select v from W; "
    "@name('join') select w.v as v, a.v as o from W as w, A#length(2) as a where w.k = a.k; @name('a') select v from A; "
    "@name('of R') select w.v as v from R#length(2) as r, W as w where w.k = r.k; " + FOLLOWED,
}


def _over(*windows: str) -> str:
    """Named windows side by side, with those who follow them."""
    return "".join(
        f"@name('W{i}') create window W{i}{window} as S; @name('in {i}') insert into W{i} select * from S(v < 90 or n = {i}); "
        f"@name('sum {i}') select irstream sum(v) as s, count(*) as c from W{i}; "
        f"@name('groups {i}') select {'irstream ' * (i % 2)}k, sum(v) as s from W{i}(n >= 0) group by k having count(*) > 1; "
        f"@name('rows {i}') select irstream n, v, max(v) as m from W{i} where v > 3 group by n; "
        for i, window in enumerate(windows)
    )


LEAVING = {
    "rows that leave by the clock": _over(
        "#time(20 msec)",
        "#groupwin(k)#time(20 msec)",
        "#time_accum(20 msec)",
        "#timetolive(current_timestamp() + cast(v, long))",
        "#time_order(current_timestamp() - cast(v, long), 50 msec)",
        "#time(20 msec)#unique(k) retain-union",
        "#time(40 msec)#length(3) retain-intersection",
        "#firsttime(50 msec)",
    ),
    "batches": _over(
        "#time_batch(20 msec)",
        "#groupwin(k)#length_batch(2)",
        "#time_length_batch(20 msec, 3)",
        "#length_batch(3)",
        "#expr_batch(current_count > 2)",
        "#ext_timed_batch(current_timestamp() + n, 20 msec)",
    ),
    "rows that events drive out": _over(
        "#ext_timed(current_timestamp() + n, 20 msec)",
        "#sort(3, v desc)",
        "#rank(k, 2, v)",
        "#lastevent",
        "#firstunique(k)",
        "#firstlength(3)",
        "#expr(sum(v) < 90)",
        "#groupwin(k)#length(2)",
    ),
    "what changes a window beside its clock": "@name('W') create window W#time(30 msec) as S; "
    "@name('before') select k, (select sum(w.v) from W as w where w.k = s.k) as v from S as s; "
    + MERGE
    + "@name('delete') on S(n = 2) as s delete from W where W.k = s.k; "
    "@name('V') create window V#groupwin(k)#time(20 msec) as S; @name('in') insert into V select * from S(v > 3); "
    "@name('last') select irstream a.v as x, b.v as y from S#length(3) as b, V as a where a.k = b.k and a.n = b.n; "
    + FOLLOWED,
    "asked of what has no keys": "@name('W') create window W#time_batch(20 msec) as S; @name('in') insert into W select * from S; "
    "@name('count') on S(n = 1) as s insert into A select count(*) as c, max(w.v) as m "
    "from W as w where w.k = s.k; @name('A') select c, m from A; " + FOLLOWED,
}
_TWO = (
    "@name('W') create window W#time(20 msec) as S; @name('in') insert into W select * from S(v < 90); "
    "@name('V') create window V#groupwin(k)#length_batch(2) as S; @name('in V') insert into V select * from S(n = 1 or v > 30); "
)
GOING_ON = {
    "what follows a window goes on": _TWO
    + "@name('w v') insert into V select * from W(n = 0); @name('W2') select irstream v from W; "
    "@name('x') insert into X select k, sum(v) as s from W group by k; @name('sums') select k, s from X; "
    "@name('y') insert into Y select k, n, v from V; @name('U') create window U#unique(k) as S; "
    "@name('merge') on Y as y merge U as u where u.k = y.k when matched then update set v = u.v + y.v "
    "when not matched then insert select *; @name('U2') select irstream v from U; @name('asks') select (select count(*) from U) as c from Y; "
    "@name('split') on Y insert into A select k where n = 1 insert into B select v; @name('a') select k from A; @name('b') select v from B",
}
WHOLE = {
    "who waits for events": _TWO + "@name('last') select k, v from W output last every 3 events; "
    "@name('groups') select irstream k, sum(v) as s from V group by k output every 4 events; "
    "@name('all') select irstream sum(v) as s from W output all every 2 events; @name('between') select k from W; "
    "@name('first') select k, count(*) as c from W group by k output first every 30 msec; "
    "@name('of S') select v from S output last every 3 events; @name('V2') select irstream v from V",
    "who orders": _TWO
    + "@name('order') select irstream k, v from W order by v desc; @name('once') select distinct k from V; "
    "@name('best') select irstream k, sum(v) as s from W group by k order by k limit 2; @name('last') select n from W; "
    "@name('prior') select k, v, prior(1, v) as p from W; @name('of S') select irstream v from S#length(3) order by v",
    "who keeps rows for a time": _TWO + "@name('sum') select k, sum(v) as s from S#time(15 msec) group by k; "
    "@name('asks') select k, (select sum(v) from S#time(15 msec)) as s from W; @name('V2') select irstream v from V; "
    "@name('some') select k, (select count(*) from S(n = 1)#time(10 msec) as x where x.k = w.k) as c from W as w; "
    "@name('join') select irstream a.v as x, b.v as y from W as a, S#time(15 msec) as b where a.k = b.k; "
    "@name('outer') select irstream a.v as v, b.v as w from S(v > 3)#time(10 msec) as a left outer join W as b on a.k = b.k; "
    "@name('after') select v from W",
    "who joins": _TWO + "@name('of two') select irstream a.v as x, b.v as y from W as a, V as b where a.k = b.k; "
    "@name('self') select a.v as x, b.v as y from W as a, W as b where a.k = b.k and a.n < b.n; "
    "@name('total') select a.k as k, sum(b.v) as s from W as a, S#length(3) as b where a.k = b.k group by a.k; "
    "@name('waits') select a.v as x from W as a, S#length(2) as b where a.k = b.k output last every 20 msec; "
    "@name('delete') on S(n = 2) as s delete from W where W.k = s.k; " + FOLLOWED,
}
MODULES = {
    **READING,
    **JOINING,
    **LEAVING,
    **WHOLE,
    **GOING_ON,
    "length": "@name('W') create window W#length(3) as S; @name('in') insert into W select * from S; " + FOLLOWED,
    "keepall": "@name('W') create window W#keepall as S; @name('in') insert into W select k, n, v * 2 as v from S(v > 3); "
    + FOLLOWED,
    "some of what follows": "@name('W') create window W#length(3) as S; @name('in') insert into W select * from S; "
    "@name('sum') select irstream sum(v) as s from W(v > 3); @name('rows') select k, v from W(n > 0) where v < 90; "
    "@name('gone') select rstream k from W(k != 'a'); @name('groups') select irstream k, count(*) as c from W(v < 90) group by k",
    "waits for the clock": "@name('W') create window W#length(4) as S; @name('in') insert into W select * from S; "
    "@name('there') select k, sum(v) as s from W group by k output snapshot every 50 msec; "
    "@name('total') select sum(v) as s, count(*) as c from W(n > 0) output snapshot every 20 msec; "
    "@name('last') select irstream k, max(v) as m from W where v < 90 group by k having count(*) < 3 output last every 30 msec; "
    "@name('all') select irstream k, v from W output all every 40 msec order by v; "
    "@name('first') select k, v from S; @name('rows') select irstream k, v, count(*) as c from W(v > 3) group by k "
    "output last every 25 msec",
    "aggregates in a table": "create table T(k string primary key, v sum(double), c count(*)); "
    "@name('before') select T[k].v as v, T[k].c as c from S(n >= 0); "
    "@name('sums') into table T select sum(v) as v from S(v > 3)#length(3) group by k; "
    "@name('counts') into table T select count(*) as c from S group by k having count(*) > 1; "
    "@name('after') select k, T[k].v as v, T[k].c as c from S; "
    "@name('rows') select t.k as k, t.c as c from S as s unidirectional, T as t where t.k = s.k",
    "groups in a table": "create table T(k string primary key, v sum(double), x double, c count(*), d count(distinct int), m maxever(double)); "
    "@name('sums') into table T select sum(v, filter: n > 0) as v, count(distinct n) as d from S(v > 3) group by k; "
    "@name('reads') select T[k].v as v, T[k].c as c, T[k].d as d, T[k].m as m from S; "
    "@name('most') into table T select maxever(v) as m, count(*) as c from S where v < 90 group by k",
    "groups by two in a table": "create table T(n int primary key, k string primary key, c count(*), a avg(double)); "
    "@name('means') into table T select avg(v) as a, count(*) as c from S group by n, k; @name('of T') select (select count(*) from T) as t from S",
    "a total in a table": "create table T(v sum(double), c count(*)); @name('W') create window W#length(3) as S; "
    "@name('in') insert into W select * from S(v > 3); @name('total') into table T select sum(v) as v, count(*) as c from W; "
    "@name('reads') select T.v as v, T.c as c from S",
    "unique": "@name('W') create window W#unique(k) as (v double, k string, n int); "
    "@name('in') insert into W select k, v from S having v > 2; " + FOLLOWED,
    "counted": "@name('W') create window W#length(4) as (k string, n long, v double); "
    "@name('in') insert into W select k, count(*) as n, sum(v) as v from S group by k; " + FOLLOWED,
    "total": "@name('W') create window W#length(4) as (n long, s double); "
    "@name('in') insert into W select count(*) as n, sum(v) as s from S having sum(v) > 4; @name('sum') select sum(s) as s from W",
    "merge W": "@name('W') create window W#unique(k, n) as S; " + MERGE + FOLLOWED,
    "merge all": "@name('W') create window W#keepall as S; " + MERGE + FOLLOWED,
    "merge last": "@name('W') create window W#length(4) as S; " + MERGE + FOLLOWED,
    "indexed": "@name('W') create window W#length(3) as S; create unique index I on W(k, n); "
    "@name('in') insert into W select * from S; " + FOLLOWED,
    "merge T": TABLE
    + "@name('merge') on S(v > 4) as s merge T as t where t.k = s.k when matched and s.v > 90 then delete "
    "when matched then update set v = t.v + s.v, c = t.c + 1, v = t.v + t.c + initial.c "
    "when not matched and s.n > 0 then insert select s.k as k, s.v as v, 1 as c",
    "some of T": TABLE
    + "@name('merge') on S as s merge T as t where t.k = s.k and t.c < 3 when matched then update set "
    "c = t.c + 1 when not matched then insert select s.k as k, s.v as v, 0 as c",
    "into T": TABLE + "@name('merge') on S as s merge T insert select s.k as k, s.v as v, s.n as c",
    "update T": TABLE + "insert into T select k, 1.5 as v, 1 as c from R; "
    "@name('update') on S(n = 1) as s update T as t set v = s.v where t.k = s.k",
    "delete T": TABLE + "insert into T select k, 1.5 as v, 1 as c from R; @name('delete') on S as s delete from T as t "
    "where t.k = s.k",
    "select": "@name('groups') select irstream k, sum(v) as s from S(v > 2)#length(3) group by k having sum(v) > 3",
    "ever": "@name('ever') select k, count(*) as c, sum(v) as s from S group by k",
    "batch": "@name('batch') select irstream sum(v) as s, count(*) as c from S#length_batch(3)",
    "previous": "@name('previous') select irstream k, v - prev(1, v) as d, prevcount(v) as c, prevtail(v) as t, istream() as i "
    "from S(v > 2)#length(3) where prev(2, n) is null or n > 0 having prev(1, v) > 2 or v > 6",
    "previous by key": "@name('previous') select k, v - prev(1, v) as d, prevwindow(n) as w from S#groupwin(k)#length(2)",
    "previous in time": "@name('previous') select k, v - prev(1, v) as d, prevcount(n) as c from S(v > 2)#time(20 msec) "
    "where prev(2, n) is null or n > 0",
    "a time that the clock shows": "@name('total') select irstream sum(v) as s, count(*) as c from S#time(20 msec) "
    "output last every 15 msec; @name('groups') select k, max(v) as m from S(v < 90)#time(30 msec) group by k output snapshot "
    "every 10 msec; @name('rows') select k, v, avg(v) as a from S#time(40 msec) where n > 0 output every 15 msec",
    "several": "@name('a') select k, sum(v) as s from S#length(3) group by k; @name('b') select irstream v from S(v > 3)#length(2); "
    "@name('c') select count(*) as c from S; @name('d') select k from S(k = 'a' or n = 1); @name('e') select n from S(k = 'b')",
    "several into W": "@name('W') create window W#length(3) as S; @name('one') insert into W select * from S(v > 3); "
    "@name('hears') select k, v from S; @name('two') insert into W select k, n + 1 as n, v from S(n > 0); " + FOLLOWED,
    "split": "@name('split') on S insert into A select k, v where v > 40 insert into B select k, n where n = 1; "
    "@name('a') select sum(v) as s from A#length(3); @name('b') select k, count(*) as c from B group by k; "
    "@name('B2') select k from B(k = 'a'); @name('hears') select v from S",
    "split all": "@name('W') create window W#length(3) as S; @name('split') on S insert into W select * where v > 40 "
    "insert into B select k, n where n = 1 insert into Nobody select k where n = 2 output all; @name('b') select k from B; "
    + FOLLOWED,
    "chain": "@name('one') insert into A select k, v * 2 as v from S(v > 3); "
    "@name('two') insert into B select k, sum(v) as s from A#length(3) group by k having sum(v) > 9; "
    "@name('three') select k, s from B(s > 20); @name('of A') select irstream v from A#length(2); @name('all B') select * from B",
    "by two ways": "@name('s a') insert into A select k, v from S(n > 0); @name('s b') insert into B select k, v from S; "
    "@name('a d') insert into D select k, v, 1 as way from A; @name('b d') insert into D select k, v, 2 as way from B(v > 3); "
    "@name('D') select way, sum(v) as s from D#length(4) group by way; @name('W') create window W#length(3) as (k string, n int, v double); "
    "@name('s w') insert into W select * from S; @name('d w') insert into W select k, way as n, v from D; " + FOLLOWED,
    "refused on the way": "@name('W') create window W#length(3) as S; create unique index I on W(k, n); "
    "@name('s a') insert into A select * from S; @name('a w') insert into W select * from A; "
    "@name('s b') insert into B select * from S(v > 3); @name('a') select v from A; @name('b') select v from B; "
    + FOLLOWED,
    "heard for a while": "create context C start after 40 msec end after 70 msec; @name('s a') insert into A select k, v from S; "
    "@name('a') select sum(v) as s from A; @name('s') select k from S; @name('while') context C select count(*) as c from A",
    "merges of one W": "@name('W') create window W#unique(k, n) as S; @name('before') select k from S; "
    "@name('in') insert into W select * from S(n = 1); " + MERGE + "@name('between') select v from S; "
    "@name('update') on S(v > 3) as s update W set v = W.v + 1, n = W.n where W.n = s.n; "
    "@name('delete') on S(n = 2) as s delete from W where W.k = s.k; @name('after') select n from S; " + FOLLOWED,
    "merges that nobody follows": "@name('W') create window W#unique(k) as S; @name('V') create window V#length(3) as S; "
    "@name('in') insert into W select * from S(v < 40); @name('update') on S(v > 3) as s update W as w set v = w.v + s.v where w.k = s.k; "
    "@name('in V') insert into V select * from S(v > 6); @name('delete') on S(n = 2) as s delete from W as w where w.k = s.k; "
    "@name('V2') on S(n = 1) as s update V set v = 2.5 where V.k = s.k; @name('sum') select k, sum(v) as s from V; "
    "@name('ask') on S(n = 0) as s select w.v as v from W as w where w.k = s.k; @name('last') select k from S",
    "merges of several": TABLE + "@name('W') create window W#keepall as S; create unique index I on W(k, n); "
    "@name('V') create window V#length(3) as S; @name('v') select sum(v) as s from V; @name('in') insert into V select * from S(v > 6); "
    + MERGE
    + "@name('t') on S as s merge T as t where t.k = s.k when matched then update set v = t.v + s.v "
    "when not matched then insert select s.k as k, s.v as v, 1 as c; "
    "@name('merge V') on S(n = 0) as s merge V insert select *; @name('V2') on S(n > 0) as s update V set v = 2.5 where V.k = s.k; "
    "@name('into') insert into W select * from S(v < 6); @name('all of V') select * from V; " + FOLLOWED,
    "merges on the way": "@name('W') create window W#length(4) as S; @name('s a') insert into A select k, n, v + 1 as v from S(v > 3); "
    "@name('s b') insert into W select * from S; @name('of a') on A as a update W set v = a.v where W.k = a.k; "
    "@name('a') select v from A; @name('a b') insert into B select k, n from A; @name('of b') on B as b delete from W where W.n = b.n; "
    + FOLLOWED,
    "asked": TABLE + "@name('W') create window W#unique(k) as S; @name('in') insert into W select * from S(n > 0); "
    "@name('t') on S(v > 30) as s merge T as t where t.k = s.k when matched then delete "
    "when not matched then insert select s.k as k, s.v as v, 1 as c; "
    "@name('ask') on S as s select w.v as v, s.v - w.v as d from W as w where w.k = s.k and w.v > 3; "
    "@name('ask T') on S(v < 80) as s insert into A select t.v as v, s.v as o from T as t where t.k = s.k; "
    "@name('all') on S(n = 1) as s select w.k as k, w.v as v from W as w; @name('A') select v, o from A; "
    "@name('sum') on S as s insert into B select count(*) as c, sum(w.v) as v from W as w where w.n = s.n; @name('B') select c, v from B; "
    "@name('first') on S as s select w.k as k from W as w order by w.v desc limit 2; "
    "@name('groups') on S as s select w.n as n, count(*) as c from W as w where w.v > s.v group by w.n having count(*) > 1",
    "asked after a merge": "@name('W') create window W#keepall as S; @name('in') insert into W select * from S(v < 30); "
    "@name('before') on S as s select w.v as v from W as w where w.k = s.k; "
    "@name('update') on S(v > 3) as s update W set v = W.v + 1 where W.k = s.k; "
    "@name('after') on S as s select w.v as v from W as w where w.k = s.k; @name('last') select k from S; " + FOLLOWED,
    "taken": "@name('W') create window W#unique(k) as S; @name('in') insert into W select * from S(v < 40); "
    "@name('take') on S(v > 3) as s select and delete w.v as v from W as w where w.k = s.k and w.n = s.n having w.v > 3; "
    + FOLLOWED,
    "taken of several": "@name('before') select k from S; @name('W') create window W#keepall as S; "
    "@name('in') insert into W select * from S(n > 0); "
    "@name('asks') select (select count(*) from W) as c from S; @name('V') create window V#length(3) as S; "
    "@name('in V') insert into V select * from S(v < 80); @name('v') select irstream v from V; "
    "@name('take') on S as s select and delete count(*) as c, sum(w.v) as s from W as w where w.k = s.k and w.v < s.v",
    "sets": "create variable double x = 0.5; create variable int m; create variable string q = 'a'; "
    "@name('before') select v - x as d, m from S(n >= 0); @name('set') on S(v < 80) set x = v, m = n; "
    "@name('asks') select irstream k, sum(v + x) as s from S(v > x or m = 1)#length(3) group by k; "
    "@name('set q') on S(k = 'b' or v > 40) set q = k || q; @name('after') select q, k, m from S",
    "sets on the way": "create variable double x = 1; create variable double y = 0; @name('W') create window W#unique(k) as S; "
    "@name('in') insert into W select * from S(v > x); @name('s a') insert into A select k, n, v + y as v from S(v > 3); "
    "@name('set') on A(v > x) as a set x = a.v / 2; @name('a') select k, x + y as z from A(n > 0 or v < x); "
    "@name('update') on S(v > 5) as s update W as w set v = w.v + x where w.k = s.k; "
    "@name('set y') on S(n = 1) set y = y + x; @name('last') select x, y from S; " + FOLLOWED,
    "sets while somebody waits": "create variable double x = 0; create context C start after 40 msec end after 200 msec; "
    "@name('set') on S(v > 3) set x = v; @name('s') select x, k from S; "
    "@name('while') context C select count(*) as c from R output when x > 40",
    "one comes as another leaves": LAST
    + "@name('group') select k, n, sum(v) as s, count(*) as c, max(v) as m from W group by k, n; "
    "@name('having') select k, avg(v) as a from W(v > 3) group by k having count(*) > 1 and k != 'b'; "
    "@name('row') select k, v, sum(v) as s, min(n) as m from W group by k; @name('total') select sum(v) as s, last(v) as l from W; "
    "@name('some') select v, count(*) as c from W(v < 80 and n >= 0) having count(*) > 1; "
    "@name('worked out') select v > 6 as big, sum(v * 2) as s, prevcount(v) as p from S(v < 90)#length(2) group by v > 6; "
    "@name('ever') select k, maxever(v) as m, sum(v) as s from S#length(2) group by k; @name('groups of a few') "
    "select n, count(*) as c, leaving() as l from S(v > 3)#length(2) group by n",
    "patterns beside": "@name('p') select a.v as v, b.n as n from pattern [every a=S(v > 40) -> b=S(k = a.k, v < 30)]; "
    "@name('s') select k, sum(v) as s from S group by k; @name('some') select v from S(v > 6 and v < 90); "
    + LAST
    + FOLLOWED,
    "a pattern joined with a window": "@name('join') select p.a.v as v, w.v as w from pattern [every a=S(v > 40) -> b=S(v < 4)] as p "
    "unidirectional, S(n > 0)#length(3) as w where w.n = p.b.n; @name('s') select sum(v) as s from S(v < 90)",
    "a pattern that inserts": "@name('p') insert into A select a.k as k, a.v as v from pattern [every a=S(v > 80)]; "
    "@name('a') select k, v from A; @name('s a') insert into A select k, v from S(n = 1); @name('s') select max(v) as m from S#length(3); "
    "@name('r') select a.v as v from pattern [every (a=S(v < 4) -> timer:interval(2 msec))]",
    "partitions beside": "create context C partition by k from S(v > 40); @name('c') context C select count(*) as c from S; "
    "@name('s') select k, sum(v) as s from S(v < 90) group by k",
    "sets that others wait for": "create variable double x = 1; @name('set') on S(v > 3) set x = v; @name('s') select x from S(n >= 0); "
    "@name('waits') select k from R output when x > 40",
    "sets that bring groups": "create variable int x = 0; create variable int y = 0; @name('set') on S(n = 1) set x = x + 1; "
    "@name('last') select k, sum(v) as s from S group by k output last when x > 2 then set x = 0, y = y + 1; "
    "@name('y') select y from S(v > 6); @name('set y') on S(k = 'b') set y = 0; "
    "@name('all') select k, count(*) as c from S(v > 3) group by k output all when y > 1 and x < 2 then set y = 0; "
    "@name('snapshot') select k, max(v) as m from S(v < 90) group by k output snapshot when y = 1",
    "sets that bring a total": "create variable double x = 0; create variable double y = 0; @name('set') on S(v > 40) set x = v, y = x; "
    "@name('total') select sum(v) as s, count(*) as c from S(n >= 0) output last when x > 80; "
    "@name('reset') on S(v < 2) set x = 0; @name('snapshot') select min(v) as m from S output snapshot when x > y then set y = x",
    "sorted": "@name('sorted') select rstream k, v from S#sort(2, v)",
}
LATER = "later"


@pytest.mark.parametrize("name", MODULES)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_a_batch_brings_what_its_events_bring_one_by_one(name: str, data: st.DataObject) -> None:
    whole, single = engine_of(MODULES[name]), engine_of(MODULES[name])
    now = 0
    for _ in range(data.draw(st.integers(1, 3))):
        events = data.draw(EVENTS)
        at = [now := now + data.draw(st.sampled_from([0, 1, 30])) for _ in events]
        assert sent(whole, events, at, together=True) == sent(single, events, at, together=False)
        assert left(whole) == left(single)
        if data.draw(st.booleans()):
            for engine in (whole, single):
                if LATER not in [each.statement for each in engine.plan()]:
                    engine.deploy(f"@name('{LATER}') select irstream k, n from S#length(2)", LATER)
                else:
                    engine.undeploy(LATER)
        if data.draw(st.booleans()):
            whole, single = (
                Engine.restored(whole.snapshot(), columns=None),
                Engine.restored(single.snapshot(), columns=None),
            )


def test_rows_leave_by_the_clock_without_leaving_the_pipeline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before an event comes, be it of a stream that has nothing to do with the window; until the clock is due for others."""
    engine, jumps = engine_of(LEAVING["rows that leave by the clock"]), list[int]()
    runner = engine._component.runner  # pyright: ignore[reportPrivateUsage]
    advance = runner.advance
    monkeypatch.setattr(runner, "advance", lambda to: (jumps.append(to), advance(to)))
    events = [{"k": "ab"[n % 2], "n": n % 3, "v": float(n)} for n in range(60)]
    engine.send("S", events, at=range(1, 61))
    assert jumps == []
    engine.send("R", [{"k": "a"}] * 30, at=range(61, 91))
    assert jumps == [70]
    gone = [(each.at, each.old) for each in engine.heard() if each.statement == "W0" and each.old]
    assert gone == [(n + 21, [events[n]]) for n in range(60)]


def test_of_a_refused_event_nobody_knows_who_comes_later() -> None:
    """What an event has changed before it was refused is told with the next change, in a batch as by itself."""
    text = (
        "@name('W') create window W#keepall as S; @name('V') create window V#keepall as S; create unique index I on V(k); "
        "@name('merge') on S(v > 0) as s merge W insert select *; @name('in') insert into V select * from S(n = 1)"
    )
    later = "@name('count') select (select count(*) from W) as c from S"
    events = [{"k": "a", "n": int(i in (5, 9)), "v": 1.0} for i in range(12)]
    whole, single = engine_of(text), engine_of(text)
    told = [sent(engine, events, list(range(12)), together=engine is whole) for engine in (whole, single)]
    assert told[0] == told[1]
    assert "unique" in told[0][-1]
    for engine in (whole, single):
        engine.deploy(later)
        engine.send("S", [{"k": "b", "n": 0, "v": 0.0}], at=[20])
    assert said(whole) == said(single) == [("count", 20, [{"c": 9}], [])]


CHANGES = (
    "delete from {store} where n = 1 or k = 'b'",
    "update {store} set v = 44.5 where k = 'a'",
    "insert into {store} select 'a' as k, 7.5 as v",
)


@pytest.mark.parametrize("name", READING)
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_what_is_read_may_change_between_batches(name: str, data: st.DataObject) -> None:
    whole, single = engine_of(MODULES[name]), engine_of(MODULES[name])
    now = 0
    for _ in range(data.draw(st.integers(2, 4))):
        events = data.draw(EVENTS)
        at = [now := now + 1 for _ in events]
        assert sent(whole, events, at, together=True) == sent(single, events, at, together=False)
        change, key = data.draw(st.sampled_from(CHANGES)), data.draw(st.sampled_from(["a", "c"]))
        for engine in (whole, single):
            for store in engine.stores:
                try:
                    engine.query(change.format(store=store).replace("n = 1", "v > 40" if store == "T" else "n = 1"))
                except QueryError as problem:  # the table has a row of that key
                    assert "already" in str(problem)
            engine.send("R", {"k": key})
        assert said(whole) == said(single)
        assert left(whole) == left(single)


@pytest.mark.parametrize("name", MODULES)
def test_these_modules_have_a_pipeline(name: str) -> None:
    engine = engine_of(MODULES[name])
    pipelines = engine._pipelines  # pyright: ignore[reportPrivateUsage]
    assert pipelines.of("S") is not None


def test_a_pipeline_that_few_events_are_for_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rollup.engine.rows.pipelines.choosing._TRIED", 4)
    engine = engine_of("@name('p') select a.v as v from pattern [every a=S(v > 40)]; @name('s') select k from S")
    pipelines = engine._pipelines  # pyright: ignore[reportPrivateUsage]
    for v, there in ((1.0, True), (50.0, False), (1.0, False)):
        engine.send("S", [{"k": "a", "n": 1, "v": v}] * 10)
        assert (pipelines.of("S") is not None) is there
    engine.deploy("@name('t') select n from S")
    assert pipelines.of("S") is not None


APART = {
    "one variable twice": "create variable double x = 1; on S(v > 3) set x = v; on S(n = 1) set x = x + 1; select x from S",
    "a variable from what is there": "create variable double x = 1; select v from S; "
    "on S(v > 3) set x = (select sum(n) from S(v > 6)#length(2))",
    "a join that hears later": "create window W#length(3) as S; insert into W select * from S; "
    "insert into A select k, v from S; select a.v as x from W as a, A#length(2) as b where a.k = b.k",
    "a table beside": "create table T(k string, v double); insert into T select k, v from S; select v from S",
    "a pattern of a route": "insert into A select k, v from S; select v from A; select a.v as v from pattern [every a=A(v > 3)]",
    "what says that there is nothing": "create window W#time_batch(10 msec, 'FORCE_UPDATE') as S; insert into W select * from S",
    "who waits for a variable over the window": "create variable int x; create window W#length(3) as S; insert into W select * from S; "
    "select k from W output when x > 2 then set x = 0; select v from S",
    "a circle through a window": "create window W#length(3) as S; insert into W select * from S; "
    "insert into X select k, n, v from W(v < 2); insert into W select k, n, v + 3 as v from X; select v from W",
    "a circle": "insert into A select k, n, v from S(v > 3); insert into S select k, n, v - 30 as v from A",
    "a batch that goes on": "insert into A select v from S#length_batch(3); select v from A",
    "an update on the way": "insert into A select k, v from S; update istream A set v = 1.5 where v > 3; select v from A",
    "an heir": "create schema P(v double); create schema A(k string) inherits P; insert into A select v, k from S; select v from P",
    "too many rows": 2 * "insert into A0 select k, v from S(v > 95); "
    + "".join(2 * f"insert into A{n + 1} select k, v from A{n}; " for n in range(9))
    + "select v from A9",
    "a pattern over the window": "create window W#length(3) as S; insert into W select * from S; "
    "select a.v as v from pattern [every a=W]",
    "what leaves": "create window W#length(3) as S; insert rstream into W select rstream * from S#length(2)",
    "a sub-query": TABLE
    + "on S as s merge T as t where t.k = s.k and s.n > (select count(*) from R) when not matched then "
    "insert select s.k as k, s.v as v, 1 as c",
    "several actions": TABLE
    + "on S as s merge T as t where t.k = s.k when matched then update set v = 1.0 then delete",
    "taken before others hear": "create window W#length(4) as S; insert into W select * from S; "
    "on S(n = 1) as s select and delete w.* from W as w where w.k = s.k; select k from S; select sum(v) as s from W",
    "taken and updated": "create window W#keepall as S; insert into W select * from S(n > 0); "
    "on S(n = 2) as s update W as w set v = w.v + 1 where w.k = s.k; "
    "on S as s select and delete count(*) as c, sum(w.v) as s from W as w where w.k = s.k and w.v < s.v",
    "no key": TABLE + "on S as s merge T as t where t.v < s.v when matched then delete",
    "a set key": TABLE + "on S as s update T as t set k = 'x' where t.k = s.k",
}


@pytest.mark.parametrize("why", APART)
@settings(max_examples=3, deadline=None)
@given(events=EVENTS)
def test_what_has_none_goes_one_by_one(why: str, events: list[dict[str, Any]]) -> None:
    whole, single = engine_of(APART[why]), engine_of(APART[why])
    pipelines = whole._pipelines  # pyright: ignore[reportPrivateUsage]
    assert pipelines.of("S") is None
    at = list(range(len(events)))
    assert sent(whole, events, at, together=True) == sent(single, events, at, together=False)


@pytest.mark.parametrize("window", ["", "#length(3)"])
def test_events_inside_others_are_those_that_are_selected(window: str) -> None:
    engine = Engine(columns=None)
    engine.deploy(f"create schema I(a int); create schema S(k string, inside I[]); select a from S[inside]{window}")
    engine.send("S", [{"k": "x", "inside": [{"a": n}, {"a": -n}]} for n in range(10)])
    assert [each.new for each in engine.heard()] == [[{"a": n}, {"a": -n}] for n in range(10)]


def test_what_is_deployed_later_is_told_too() -> None:
    engine = engine_of(MODULES["length"])
    events = [{"k": "a", "n": 1, "v": float(i)} for i in range(10)]
    engine.send("S", events)
    engine.deploy("@name('later') select max(v) as m from W")
    engine.heard()
    engine.send("S", events)
    greatest = [each.new for each in engine.heard() if each.statement == "later"]
    assert greatest == [[{"m": m}] for m in (9.0, 9.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0)]


def test_a_listener_may_end_and_begin_who_hears_a_stream() -> None:
    engine = engine_of("@name('s a') insert into A select k, v from S; @name('s') select v from S;")
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


@pytest.mark.parametrize("name", MODULES)
def test_tables_of_a_pipeline_are_its_deliveries(name: str) -> None:
    engine, other = engine_of(MODULES[name]), engine_of(MODULES[name])
    found = list[Arrived]()
    engine.listen_arrow(found.append)
    events = [{"k": "ab"[i % 2], "n": i % 3, "v": float(i)} for i in range(40)]
    other.heard()
    for each in (engine, other):
        try:
            each.send("S", events, at=range(0, 80, 2))
        except QueryError as problem:
            assert "already" in str(problem)
    wanted = dict[str, list[Any]]()
    for each in other.heard():
        for sign, rows in ((1, each.new), (-1, each.old)):
            wanted.setdefault(each.statement, []).extend((each.at, sign, row) for row in rows)
    told = dict[str, list[Any]]()
    for each in found:
        rows = zip(
            each.statement.to_pylist(), each.at.to_pylist(), each.sign.to_pylist(), each.rows.to_pylist(), strict=True
        )
        for statement, at, sign, row in rows:
            told.setdefault(statement, []).append((at, sign, row))
    assert told == wanted


def _events(count: int) -> list[dict[str, Any]]:
    return [{"k": "a", "n": n, "v": float(n)} for n in range(count)]


@pytest.mark.parametrize("kind", ["rows", "tables"])
def test_a_listener_may_send_events_of_the_stream_that_it_is_told_of(kind: str) -> None:
    engine, heard = Engine(columns=None), list[float]()
    engine.deploy(SCHEMA + MODULES["length"])

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


def test_what_a_listener_fails_over_is_not_told_again() -> None:
    engine, heard = Engine(columns=None), list[float]()
    engine.deploy(SCHEMA + MODULES["length"])

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
