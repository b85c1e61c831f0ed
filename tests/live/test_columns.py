"""The engine over columns against the engine on rows: the same statements, events, jumps of the clock and restarts.

`Engine(columns=None)` never leaves rows and is the oracle. The other engine goes over at a random batch and is taken out
and restored at random places. Deliveries are compared one by one, with their order and to the last bit.
"""

from __future__ import annotations

import math
import struct
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rollup.core.errors import QueryError
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.running.instance import ColumnInstance
from rollup.engine.rows.patterns import algebra
from rollup.live import Arrived, Engine, Heard
from tests.rereading import reread

pytestmark = pytest.mark.usefixtures("interpreted")

SCHEMA = """
create schema S(symbol string, price double, volume int);
create schema R(volume int, price double, symbol string);
create schema T(symbol string, p double, v int);
create schema U(symbol string, a double);
create context C partition by symbol from S;
create context K partition by symbol, volume from S(price > 20);
create context G group by price < 40 as low, group by price >= 20 as high, group by volume > 2 as much from S(volume >= 0);
create context H coalesce by consistent_hash_crc32(symbol) from S granularity 2;
create context P coalesce by hash_code(volume) from S(price > 1) granularity 3 preallocate;
create context N context A partition by symbol from S(volume >= 0), context B group by price < 40 as low, group by volume > 1 as much
from S(price > 1);
create context M context A coalesce by hash_code(volume) from S granularity 2, context B partition by symbol, volume from S(price > 1);
create context J partition by symbol from S, symbol from R(price > 10);
create context E context A coalesce by hash_code(volume) from S, hash_code(volume) from R granularity 2,
context B partition by symbol from S, symbol from R;
create context Y start @now end after 25 msec;
create context B start S(price > 50) as s end S(symbol = s.symbol, volume > 1);
create context I initiated by S(price > 50) as s terminated after 40 msec;
create context D initiated by distinct(symbol) S(volume >= 0) as s terminated after 30 msec;
create context L initiated by S(price > 20) as s terminated by S(symbol = s.symbol, volume < 2);
"""
COVERED = {
    "pairs of each": "context J select irstream s.symbol as s, s.volume as v, r.price as p, context.id as i "
    "from S#length(2) as s, R#time(20 msec) as r where s.volume = r.volume",
    "latest of each": "context J select irstream s.volume as v, r.price as p, context.key1 as k "
    "from S#lastevent as s full outer join R#unique(volume) as r on s.price = r.price where s.volume is null or r.volume > 0",
    "pairs of each in time": "context J select irstream s.price as p, r.price as q from S#time(15 msec) as s, R#time(20 msec) as r",
    "totals of pairs of each": "context J select irstream sum(s.price) as a, count(*) as n, context.key1 as k "
    "from S#time(25 msec) as s, R#length(3) as r having count(*) != 2",
    "groups of pairs of each": "context J select irstream r.volume as v, sum(s.price) as a, context.id as i "
    "from S#length(2) as s, R#time(15 msec) as r where s.volume >= r.volume group by r.volume",
    "rows of pairs of each": "context C select irstream a.price as p, b.volume as v, sum(a.volume) as n "
    "from S#unique(volume) as a, S(price < 50)#time(15 msec) as b where a.volume = b.volume group by b.symbol",
    "pairs of categories": "context G select irstream a.price as p, b.volume as v, context.label as l "
    "from S#firstunique(volume) as a, S#time(20 msec) as b where a.symbol = b.symbol",
    "events with those of each": "context J select s.price as p, r.price as q, context.id as i "
    "from S as s unidirectional left outer join R#length(2) as r on s.volume = r.volume",
    "pairs of hashes": "context E select irstream s.price as p, r.symbol as q, r.volume as v, context.id as i "
    "from S#time(20 msec) as s right outer join R#length(2) as r on s.volume = r.volume where s.price > 3 or r.price < 60",
    "totals of pairs within": "context N select irstream count(*) as n, sum(b.price) as s, context.id as i "
    "from S#length(3) as a, S#time(10 msec) as b where a.price < b.price",
    "pairs of a key": "select irstream s.symbol as s, r.price as p from S#groupwin(symbol)#length(2) as s, "
    "R#groupwin(volume)#length(1) as r where s.volume = r.volume",
    "pairs of batches": "select irstream s.symbol as s, r.price as p, r.volume as v from S#time_batch(20 msec) as s, "
    "R#length_batch(3) as r where s.symbol = r.symbol",
    "batches with themselves": "select irstream a.price as p, b.volume as v from S#length_batch(2) as a full outer join "
    "S#time_batch(15 msec) as b on a.symbol = b.symbol where a.price is null or b.price is null or a.price >= b.price",
    "first pairs of all": "select irstream s.price as p, r.price as q from S#firstunique(symbol) as s full outer join "
    "R#firstlength(4) as r on s.volume = r.volume",
    "best pairs": "select irstream s.price as p, r.volume as v from S#sort(3, price desc) as s, R#rank(symbol, 2, price) as r "
    "where s.symbol = r.symbol or r.volume > 2",
    "totals of pairs while": "select irstream count(*) as n, sum(r.price) as s from "
    "S#time_order(current_timestamp(), 15 msec) as s, R#expr(current_count < 3) as r where s.volume = r.volume",
    "pairs of a clock": "select s.symbol as s, r.price as p from S#ext_timed(current_timestamp(), 20 msec) as s "
    "left outer join R#firsttime(30 msec) as r on s.symbol = r.symbol",
    "pairs of batches every": "select irstream s.symbol as s, r.price as p from S#length_batch(2) as s, R#time(20 msec) as r "
    "where s.symbol = r.symbol output every 15 msec",
    "totals of pairs of batches": "select r.symbol as s, count(*) as n, sum(s.price) as a from S#time_batch(20 msec) as s, "
    "R#unique(symbol) as r where s.symbol = r.symbol group by r.symbol output last every 25 msec",
    "pairs of each into U": "context C insert into U select a.symbol as symbol, b.price as a from S#lastevent as a, S#length(2) as b",
    "filter": "select symbol, price * volume as n from S(price > 40)",
    "a": "select * from S(symbol = 'a')",
    "b": "select * from S(symbol = 'b')",
    "grouped": "select symbol, sum(price) as s, count(*) as n from S#length(3) group by symbol",
    "each": "select symbol, price, avg(price) as s from S#length(4) group by symbol",
    "time": "select symbol, avg(price) as a from S#time(20 msec) group by symbol",
    "rows": "select symbol, volume, sum(price) as s from S#time(30 msec) where price > 20 group by symbol",
    "total": "select sum(price) as s, count(*) as n from S#time(25 msec)",
    "ever": "select symbol, count(*) as n, sum(price) as s from S group by symbol",
    "sums of longs": "select irstream symbol, sum(cast(price * 1e17, long)) as s, avg(cast(price * 1e17, long)) as a "
    "from S#length(4) group by symbol",
    "most of all": "select symbol, max(price) as a, min(volume) as b from S group by symbol",
    "most of each": "context C select max(price) as a, min(volume) as b from S",
    "most ever in window": "select irstream maxever(price) as m, countever(*) as n, lastever(volume) as v from S#length(2)",
    "firsts ever in time": "select firstever(price) as f, minever(price) as m, countever(volume) as n from S#time(20 msec)",
    "extremes of longs": "select symbol, max(cast(price * 1e17, long)) as a, min(cast(volume, long)) as b from S#length(3) "
    "group by symbol",
    "sums of longs in all": "select sum(cast(price * 1e17, long)) as s, avg(cast(volume, long)) as a from S",
    "all": "select sum(volume) as s, avg(volume) as m from S#keepall",
    "beside": "select irstream symbol, sum(price, group_by: symbol) as s, count(*, group_by: volume) as n from S#length(4)",
    "beside in time": "select symbol, avg(price, group_by: ()) as a, sum(volume, group_by: symbol) as s from S#time(30 msec) "
    "having count(*, group_by: symbol) > 1",
    "numbers": "select irstream datapoints as n, average as a, stddev as d from S#length(4)#uni(price) where datapoints > 2",
    "line": "select slope as p, YIntercept as s from S#time(30 msec)#linest(price, volume)",
    "only some": "select symbol, sum(price, filter: volume > 1) as s, min(price, filter: volume < 3) as m, "
    "count(*, filter: price > 20) as n from S#time(30 msec) group by symbol",
    "levels": "select symbol, volume, sum(price) as s, count(*) as n from S#length(3) group by rollup(symbol, volume)",
    "levels of time": "select irstream symbol, volume, sum(price) as s from S#time(25 msec) group by cube(symbol, volume)",
    "levels of all": "select symbol, volume, sum(price) as s, grouping_id(symbol, volume) as g from S "
    "group by grouping sets((symbol), (volume), ()) having count(*) > 1",
    "levels of batches": "select rstream symbol, volume, max(price) as m from S#length_batch(3) "
    "group by rollup(symbol, volume) order by m desc limit 4",
    "levels by time": "select symbol, volume, min(price) as m, grouping(symbol) as g from S#time_batch(20 msec) "
    "group by grouping sets(symbol, (symbol, volume))",
    "levels kept": "select symbol, avg(price) as a from S#keepall group by rollup(symbol)",
    "levels of keys": "select irstream symbol, sum(volume) as a from S#unique(symbol) group by rollup(symbol)",
    "leaving": "select irstream symbol, sum(price) as s, count(*) as n from S#length(3) group by symbol",
    "left": "select rstream symbol, sum(price) as s from S#time(20 msec) group by symbol having sum(price) > 1",
    "changed": "select irstream sum(volume) as s from S#time(30 msec)",
    "extremes": "select symbol, min(price) as a, max(volume) as b from S#time(30 msec) group by symbol",
    "unique": "select symbol, sum(volume) as s from S#unique(symbol) group by symbol",
    "sorted": "select sum(price) as s, count(*) as n from S#sort(3, volume desc)",
    "pattern": "select a.price as p, b.volume as v from pattern [every a=S(price>50) -> "
    "b=S(symbol=a.symbol, price<40) where timer:within(30 msec)]",
    "rises": "select a.price as p, b.price as q from pattern [every a=S(volume > 0) -> "
    "b=S(symbol=a.symbol, price > a.price) where timer:within(30 msec)]",
    "S then R": "select a.price as p, b.volume as v from pattern [every a=S(price>50) -> "
    "b=R(symbol=a.symbol, price<40) where timer:within(30 msec)]",
    "S then R ever": "select * from pattern [every a=S -> b=R(volume=a.volume, symbol=a.symbol, price != a.price)]",
    "R then S": "select a.symbol as s, a.volume as v from pattern [every a=R(symbol = 'a') -> S(volume = a.volume)] "
    "where a.price > 1",
    "S then any R": "select a.symbol as symbol, b.price as a from pattern [every a=S(volume > 1) -> "
    "b=R(symbol != 'b') where timer:within(20 msec)] having b.price > a.price",
    "matches of groups": "select a.symbol as k, count(*) as n, sum(b.price) as s from pattern [every a=S(price>30) -> "
    "b=S(symbol=a.symbol, price<60) where timer:within(30 msec)] group by a.symbol",
    "matches in time": "select b.volume as v, max(a.price) as m, count(*) as n from pattern [every a=S(volume > 0) -> "
    "b=R(symbol=a.symbol)]#time(20 msec) group by b.volume",
    "last matches": "select avg(a.price) as p, count(*) as n from pattern [every a=S -> S(volume = 2)]#length(3)",
    "matches of a batch": "select a.symbol as k, sum(b.price) as s from pattern [every a=R -> b=S(symbol=a.symbol)]#length_batch(3) "
    "group by a.symbol",
    "matches by time": "select a.price as p, b.volume as v from pattern [every a=S -> b=S(symbol=a.symbol)]#time_batch(15 msec)",
    "each or each": "select a.price as p, b.volume as v from pattern [every (a=S(price > 50) or b=R(volume > 1) or S(symbol = 'a'))]",
    "either match": "select * from pattern [every (a=S or b=S(volume > 1))]",
    "tries": "select a.price as p, b.price as q, c.volume as v from pattern [every (a=S(price>20) -> (b=S(symbol=a.symbol) or "
    "c=R(volume=a.volume)) where timer:within(30 msec))]",
    "tries of both": "select * from pattern [every (a=S(volume > 0) -> (b=R(volume > 0) and c=S(price < a.price) and not S(volume = 3)))]",
    "tries until": "select a[0].price as p, a[1].volume as v, b.symbol as s from pattern [every ([1:] a=S(price > 1) until b=R)]",
    "sums of tries": "select a.symbol as k, sum(b[1].price) as s from pattern [every (a=S -> [2] b=S(volume > 0))]#time(30 msec) "
    "group by a.symbol",
    "tries of each": "context C select context.key1 as k, a[1].price as p, b.price as q from pattern [every ([2] a=S(volume > 0) -> "
    "b=S(price > 1))]",
    "third": "select a.price as p, c.volume as v from pattern [every a=S(price>30) -> b=R(symbol=a.symbol, price<60) -> "
    "c=S(symbol=b.symbol, volume > a.volume)]",
    "third in time": "select * from pattern [every a=S(price>30) -> (b=S(symbol=a.symbol) -> c=R(symbol=a.symbol) "
    "where timer:within(20 msec)) where timer:within(30 msec)]",
    "sums of thirds": "select a.symbol as k, sum(c.price) as s from pattern [every a=S -> S(symbol = a.symbol) -> c=S(volume = 2)]"
    "#length(3) group by a.symbol",
    "matches of each": "context C select context.key1 as k, a.price as p, b.price as q from pattern [every a=S(price > 30) -> "
    "b=S(price < 60, volume > a.volume) where timer:within(30 msec)]",
    "thirds of each": "context N select context.id as i, a.price as p, c.volume as v from pattern [every a=S -> b=S(volume > 0) -> "
    "c=S(price > 20)] where b.price > 1",
    "matches into U": "insert into U select a.symbol as symbol, avg(b.price) as a from pattern [every a=S(price>20) -> "
    "b=S(symbol=a.symbol, volume > 0)]#length(4) group by a.symbol",
    "pairs": "select a.price as x, b.price as y from S(volume < 2)#time(20 msec) as a, S(volume >= 2)#length(3) as b "
    "where a.symbol = b.symbol",
    "two": "select s.price as x, t.price as y, t.volume as v from S#time(30 msec) as s, R(price > 1)#time(15 msec) as t "
    "where s.symbol = t.symbol and s.price > t.volume",
    "both": "select s.symbol as s, t.price as y from S#length(4) as s inner join R#keepall as t on s.symbol = t.symbol",
    "latest": "select s.symbol as s, t.price as y from S(volume > 0) as s unidirectional, R#unique(symbol) as t "
    "where s.symbol = t.symbol",
    "latest or none": "select s.symbol as s, t.price as y from S#time(20 msec) as s right outer join R as t unidirectional "
    "on s.symbol = t.symbol",
    "all with all": "select irstream s.symbol as s, t.symbol as t, t.price as y from S(volume < 3)#time(20 msec) as s "
    "full outer join R#length(3) as t on s.symbol = t.symbol and s.volume = t.volume",
    "timed with timed": "select irstream s.volume as v, t.price as y from S#time(20 msec) as s "
    "left outer join R#time(15 msec) as t on s.symbol = t.symbol and s.price = t.price where s.volume > 0",
    "itself": "select irstream a.price as p, b.price as q from S#unique(symbol) as a full outer join S#time(15 msec) as b "
    "on a.symbol = b.symbol",
    "last two": "select irstream s.price - t.price as d from S#lastevent as s, R#lastevent as t",
    "range": "select s.price as x, t.price as y from S#unique(symbol, volume) as s, R#length(4) as t where s.price > t.price",
    "lost pairs": "select rstream s.symbol as s, t.volume as v from S#time(30 msec) as s, R#time(30 msec) as t "
    "where s.symbol = t.symbol order by t.volume limit 3",
    "pair groups": "select s.symbol as k, sum(t.price) as x, count(*) as n from S(volume > 0)#time(20 msec) as s, R#length(4) as t "
    "where s.symbol = t.symbol group by s.symbol",
    "pair total": "select irstream sum(s.price) as x, avg(t.volume) as m from S#unique(symbol) as s, R#time(25 msec) as t "
    "where s.symbol = t.symbol and s.price > t.volume having count(*) != 2",
    "pair rows": "select irstream s.price as p, t.symbol as t, sum(t.price) as x from S#length(3) as s, R#time(15 msec) as t "
    "where s.symbol = t.symbol group by t.symbol",
    "latest total": "select sum(t.price) as x, count(*) as n from S(volume > 0) as s unidirectional, R#length(4) as t "
    "where s.symbol = t.symbol",
    "latest groups": "select irstream t.volume as v, sum(t.price) as x from S as s unidirectional, R#length(4) as t group by t.volume",
    "latest rows": "select s.price as p, count(*) as n from S as s unidirectional left outer join R#length(4) as t "
    "on s.symbol = t.symbol",
    "pair groups last": "select irstream s.symbol as k, count(*) as n from S#time(20 msec) as s, R#time(20 msec) as t "
    "where s.symbol = t.symbol group by s.symbol output last every 20 msec",
    "pair groups all": "select s.symbol as k, sum(t.price) as x from S#length(3) as s, R#time(20 msec) as t "
    "where s.symbol = t.symbol group by s.symbol having count(*) > 1 output all every 3 events",
    "pair total last": "select irstream sum(t.price) as x from S#time(30 msec) as s, R#unique(symbol) as t "
    "where s.symbol = t.symbol output last every 15 msec",
    "pairs every": "select irstream s.volume as v, t.price as y from S#time(20 msec) as s full outer join R#time(15 msec) as t "
    "on s.symbol = t.symbol output every 15 msec",
    "last pairs": "select s.volume as v, t.price as y from S#length(2) as s, S#unique(symbol) as t where s.volume = t.volume "
    "output last every 2 events",
    "pairs every 3": "select s.symbol as s, t.price as y from S#time(20 msec) as s left outer join R#time(15 msec) as t "
    "on s.symbol = t.symbol output every 3 events",
    "latest last": "select t.symbol as k, sum(t.price) as x from S as s unidirectional, R#length(4) as t group by t.symbol "
    "output last every 20 msec",
    "latest total all": "select sum(t.price) as x from S as s unidirectional, R#length(4) as t output all every 3 events",
    "pairs into U": "insert into U select s.symbol as symbol, sum(t.price) as a from S#length(3) as s, S#unique(symbol) as t "
    "where s.symbol = t.symbol group by s.symbol",
    "keyed": "context C select symbol, count(*) as c, avg(price) as p from S output last every 15 msec",
    "partitions": "context C select symbol, sum(price) as s, count(*) as n from S(price > 20)",
    "snapshots": "context C select symbol, sum(price) as s from S(price > 20) output snapshot every 10 msec",
    "keys at last": "context K select context.key1 as k, context.id as i, sum(price) as s from S output last every 15 msec",
    "categories at last": "context G select context.label as l, count(*) as n from S output last every 15 msec",
    "hashes there": "context P select context.id as i, avg(price) as s from S where volume > 0 output snapshot every 12 msec",
    "changes of each": "context C select irstream symbol, sum(price) as s from S",
    "members in time": "context C select irstream symbol, price from S#time(25 msec)",
    "rows of each": "context C select irstream symbol, price from S#length(2)",
    "events of each": "context C select symbol, price, context.id as i from S(volume > 0)",
    "each in time": "context C select irstream symbol, sum(price) as s, max(volume) as m from S#time(20 msec)",
    "rows in time": "context C select irstream symbol, price, sum(price) as s from S#time(20 msec)",
    "groups of each": "context C select symbol, volume, sum(price) as s from S group by volume",
    "groups in time": "context C select volume, sum(price) as s, context.id as i from S#time(25 msec) where price > 1 group by volume",
    "groups of length": "context C select irstream volume, avg(price) as s from S#length(3) group by volume",
    "rows by volume": "context C select price, volume, sum(price) as s from S#groupwin(volume)#length(2) group by volume",
    "batches in each": "context C select sum(price) as s, count(*) as n from S(price > 1)#length_batch(2)",
    "rows of batches in each": "context C select irstream symbol, price from S#length_batch(3)",
    "groups of batches in each": "context G select irstream context.label as l, volume, avg(price) as s from S#length_batch(2) "
    "group by volume",
    "batches by volume in each": "context P select context.id as i, volume, sum(price) as s "
    "from S#groupwin(volume)#length_batch(2) group by volume",
    "previous in each": "context C select symbol, price, prev(1, price) as p from S(price > 1)#length(2)",
    "ends in each": "context G select volume, prevtail(volume) as t, prevcount(price) as n from S#length(3) "
    "where prev(1, price) > 20",
    "earlier in each": "context C select symbol, price - prior(2, price) as p, prior(1, volume) as v, context.id as i from S",
    "earlier in categories": "context G select irstream context.label as l, prior(1, price) as p, prior(1, symbol) as s "
    "from S(price > 1)",
    "earlier in time in each": "context N select context.id as i, prior(2, price) as p from S#time(20 msec) where volume > 0",
    "earlier and previous": "context C select prior(1, price) as p, prev(1, price) as q, prevcount(price) as n, context.key1 as k "
    "from S#length(2)",
    "previous of all in each": "context H select prev(2, price) as p, prevtail(symbol) as t from S(volume > 0)#keepall",
    "time batches in each": "context C select irstream symbol, sum(price) as s, count(*) as n from S(price > 1)#time_batch(15 msec)",
    "full or late in each": "context G select context.label as l, volume, max(price) as m "
    "from S#time_length_batch(20 msec, 3) group by volume",
    "accumulated in each": "context C select irstream symbol, price, sum(price) as s from S#time_accum(20 msec)",
    "first of each": "context N select context.id as i, price, sum(price) as s from S#firstlength(2)",
    "living in each": "context C select irstream symbol, price from S#time_order(current_timestamp, 20 msec)",
    "clock as time in each": "context G select irstream context.label as l, sum(price) as s from S#ext_timed(current_timestamp, 15 msec)",
    "carried batch in each": "context C select * from S#ext_timed_batch(current_timestamp, 15 msec)",
    "ranked in each": "context C select irstream symbol, price from S#rank(volume, 3, price)",
    "newest in time in each": "context G select irstream context.label as l, sum(price) as s from S#unique(volume)#sort(3, price)#time(15 msec)",
    "some of length in each": "context C select irstream symbol, price, sum(price) as s from S#length(3) where volume > 1",
    "some of batch in each": "context G select context.label as l, volume, max(price) as m, count(*) as n "
    "from S#time_batch(15 msec) where price > 20 group by volume",
    "some sorted until its end": "context B select irstream sum(price) as s from S#sort(3, price) where volume > 0",
    "either in each": "context C select irstream volume, price from S#length(3)#unique(volume) retain-union",
    "numbers in each": "context G select context.label as l, average as a, datapoints as n from S(volume > 0)#length(2)#uni(price)",
    "newest in each": "context C select irstream volume, max(price) as m from S#unique(volume) group by volume",
    "of two keys": "context K select context.key1 as k, context.key2 as v, sum(price) as s, count(*) as n from S(price < 50)",
    "categories": "context G select context.label as l, count(*) as n, sum(price) as s from S(price > 1)",
    "categories in time": "context G select irstream context.label as l, sum(price) as s from S#time(20 msec)",
    "categories of length": "context G select context.label as l, symbol, avg(price) as s from S#length(3) group by symbol",
    "rows of categories": "context G select rstream context.label as l, symbol, price from S#length(2)",
    "hash": "context H select context.id as i, symbol, sum(price) as s from S group by symbol",
    "hash ahead": "context P select context.id as i, sum(price) as s, count(*) as n from S(price > 10)#length(3)",
    "categories of keys": "context N select context.A.key1 as k, context.B.label as l, context.id as i, sum(price) as s from S",
    "categories of keys in time": "context N select irstream context.B.label as l, avg(price) as s from S#time(20 msec)",
    "categories of keys at last": "context N select context.id as i, context.A.key1 as k, count(*) as n from S output last every 15 msec",
    "keys of hashes": "context M select irstream context.B.key2 as k, context.id as i, symbol, price from S#length(2)",
    "keys of hashes at last": "context M select context.id as i, sum(price) as s from S output last every 15 msec",
    "into U before": "insert into U select symbol, price as a from S(volume > 1)",
    "of each into U": "context C insert into U select symbol, sum(price) as a from S",
    "of categories into U": "context G insert into U select context.label as symbol, max(price) as a from S#length(2)",
    "members": "context C select symbol, volume, avg(price) as a from S where volume > 1",
    "last of each": "context C select symbol, price, sum(price) as s, max(volume) as m, min(price) as n from S#length(2)",
    "totals of each": "context C select context.key1 as k, avg(price) as a, count(*) as n, min(price) as m "
    "from S(volume > 0)#length(3) having count(*) != 2",
    "asking": "select symbol, price - (select avg(price) from S(volume < 3)#length(3)) as d from S(volume >= 1)",
    "asking two": "select symbol, (select sum(price) from R#time(20 msec)) as r, (select count(*) from S#keepall) as n from S",
    "asking all": "select symbol from S where price > all (select price from S(volume < 3)#length(3)) "
    "or price < any (select price from R#time(20 msec))",
    "asking for one": "select symbol, (select price from R#lastevent) as p, "
    "(select w.price from S(volume < 3)#unique(symbol) as w where w.symbol = s.symbol) as q from S as s",
    "asking among": "select symbol, volume in (select volume from R#time(20 msec) as w where w.symbol = s.symbol) as v, "
    "symbol not in (select symbol from S(price > 20)#unique(volume)) as t from S as s",
    "asking whether": "select symbol from S as s where exists (select * from R#length(3) as w where w.volume = s.volume) "
    "or not exists (select * from S(volume > 2)#time(30 msec) as w where w.symbol = s.symbol and w.price > 20)",
    "earlier": "select symbol, price - prior(1, price) as d from S(volume > 0) where price > prior(3, price)",
    "previous": "select symbol, price - prev(1, price) as d, prev(2, symbol) as s, prior(4, volume) as v from S#length(3)",
    "previous in time": "select prev(2, price) as p, prior(1, symbol) as s from S#time(20 msec) where prev(1, volume) > 0",
    "previous of all": "select prev(3, volume) as v, price from S(price > 20)#keepall having volume < 4",
    "previous of a key": "select symbol, price - prev(1, price) as d, prior(2, volume) as v from S#groupwin(symbol)#length(3)",
    "ends of a key": "select symbol, prevcount(price) as n, prevtail(price) as t, prev(2, volume) as v "
    "from S(price > 3)#groupwin(volume)#length(2) where prev(1, symbol) is null",
    "previous of all of a key": "select prev(2, price) as p, prevtail(volume) as v from S#groupwin(symbol)#keepall",
    "ends of length": "select symbol, prevcount(price) as n, prevtail(price) as t, prev(1, price) as p from S#length(3)",
    "ends of a time": "select prevcount(symbol) as n, prevtail(symbol) as t from S(volume > 0)#time(20 msec) where prevcount(price) < 3",
    "ends of all": "select prevcount(price) as n, prevtail(price) as t, prior(1, price) as p from S#keepall",
    "comes": "select istream() as i, symbol, sum(price) as s from S#length(3) group by symbol output last every 20 msec",
    "every 3 earlier": "select symbol, price - prior(1, price) as d from S(price > 3) output every 3 events",
    "last earlier": "select symbol, prior(2, volume) as i from S where prior(1, volume) > 0 output last every 20 msec",
    "first earlier": "select symbol, prior(1, symbol) as t from S having prior(1, price) > 3 output first every 20 msec",
    "groups earlier": "select symbol, sum(price - prior(1, price)) as s from S group by symbol output every 3 events",
    "last of groups earlier": "select irstream symbol, avg(price - prior(1, price)) as s from S#time(25 msec) group by symbol "
    "output last every 20 msec",
    "total earlier": "select irstream sum(prior(2, volume)) as s from S#length(3) output last every 2 events",
    "order earlier": "select prior(1, price) as p, volume from S output every 25 msec order by prior(1, price), volume limit 3",
    "windows": "select prevwindow(price) as w, symbol from S#length(3) where volume > 0",
    "windows of a key": "select symbol, prevwindow(volume) as w, prevtail(price) as t from S(price > 3)#groupwin(symbol)#length(2)",
    "leaving earlier": "select irstream symbol, prior(2, price) as p from S#length(3)",
    "earlier total": "select irstream symbol, avg(price - prior(1, price)) as d from S#time(25 msec) group by symbol",
    "each earlier": "select symbol, prior(1, price) as p, sum(price) as s from S#length(3) group by symbol",
    "batch earlier": "select symbol, prior(1, price) as p, sum(prior(2, volume)) as s from S#length_batch(3) group by symbol",
    "time batch earlier": "select irstream symbol, prior(1, price) as p from S#time_batch(20 msec)",
    "earlier ever": "select symbol, sum(prior(1, volume)) as s, prior(3, price) as p from S group by symbol",
    "earlier into T": "insert into T select symbol, prior(1, price) as p, prior(1, volume) as v from S(volume > 1)",
    "previous into U": "insert into U select prev(1, symbol) as symbol, prev(2, p) as a from T#time(20 msec)",
    "into T": "insert into T select symbol, price * 2 as p, volume as v from S(price > 20)",
    "left into T": "insert rstream into T select symbol, price as p, volume as v from S(volume > 0)#length(2)",
    "removed into T": "insert into T select rstream symbol, price as p, volume as v from S#length_batch(2)",
    "both into U": "insert irstream into U select symbol, sum(price) as a from S#length(3) group by symbol having count(*) < 3",
    "in order into U": "insert rstream into U select irstream symbol, max(price) as a from S#length_batch(3) group by symbol "
    "order by max(price) desc limit 2",
    "pairs left into U": "insert rstream into U select s.symbol as symbol, t.price as a from S#length(3) as s, S#unique(symbol) as t "
    "where s.volume = t.volume",
    "left of each into U": "context C insert rstream into U select symbol, price as a from S#length(2)",
    "nothing left into U": "insert rstream into U select symbol, price as a from S(price > 20)",
    "left after into U": "insert rstream into U select symbol, prior(1, price) as a from S#length(2) output after 3 events",
    "S changed": "update istream S set price = price * 2, volume = null where symbol != 'b' and price < volume",
    "T changed": "update istream T as t set p = t.p / 2, symbol = 'a' where v > 1",
    "T changed first": "@Priority(2) update istream T set v = cast(p, int), p = v / 1.5",
    "ever in window": "select symbol, maxever(price) as m, countever(*) as n, lastever(volume) as v from S#length(2) group by symbol",
    "ever in time": "select symbol, minever(price) as m, firstever(volume) as v, sum(price) as s from S#time(20 msec) group by symbol",
    "each ever in window": "select symbol, price, countever(volume) as n, maxever(price) as m from S#unique(volume) "
    "group by symbol",
    "levels ever": "select symbol, volume, lastever(price) as l, countever(*) as n from S#length(3) group by rollup(symbol, volume)",
    "each ever at last": "select symbol, volume, maxever(price) as m from S#length(2) group by symbol output last every 10 msec",
    "length that ends at times": "context B select sum(price) as s, count(*) as n from S#length(3) output last every 10 msec",
    "length that ends all": "context I select context.id as i, sum(price) as s from S(symbol = context.s.symbol)#length(2) "
    "output all every 15 msec",
    "length that ends there": "context L select sum(price) as s, max(volume) as m from S#length(2) output snapshot every 12 msec",
    "length that ends by events": "context D select context.s.symbol as k, sum(volume) as v from S(symbol = context.s.symbol)#length(3) "
    "output every 3 events",
    "best that end": "context I select context.id as i, min(price) as a, max(price) as b from S#sort(2, price desc) output last every 3 events",
    "groups of length that end": "context L select symbol, sum(price) as s from S#length(3) group by symbol output last every 15 msec",
    "groups of keys that end": "context B select volume, count(*) as n from S#unique(symbol) group by volume output last every 2 events",
    "rows of length that end": "context I select context.id as i, symbol, price from S#length(2) output last every 10 msec",
    "rows of length that end every": "context L select symbol, price from S#length(2) output every 2 events",
    "totals of keys": "context C select sum(price) as s from S#unique(volume) output all every 10 msec",
    "first of length that ends": "context I select sum(price) as s from S#length(2) output first every 15 msec",
    "ends with a rate": "context Y select sum(price) as s from S#length(3) output last every 10 msec and when terminated",
    "average into U": "insert into U select symbol, avg(price) as a from S#time(20 msec) group by symbol",
    "last into U": "insert into U select symbol, sum(price) as a from S(volume > 0) group by symbol output last every 15 msec",
    "gone into U": "insert rstream into U select symbol, price as a from S#time(10 msec)",
    "batches into T": "insert into T select irstream symbol, price as p, volume as v from S#time_batch(20 msec)",
    "T on into U": "insert into U select symbol, max(p) as a from T#length(3) group by symbol",
    "greatest of U": "select symbol, max(a) as m, count(*) as n from U#length(4)",
    "some of U": "select a from U(a > 10)",
    "newest of U": "select irstream symbol, a from U#unique(symbol)",
    "more into T": "insert into T select symbol, price as p, volume as v from S(volume < 2)",
    "R into T": "insert into T select symbol, price as p, volume as v from R",
    "of T": "select symbol, sum(p) as s, count(*) as n from T#length(3) group by symbol",
    "T into U": "insert into U select symbol, avg(p) as a from T#length(4) group by symbol",
    "S into U": "insert into U select symbol, price as a from S(volume = 3)",
    "of U": "select * from U(a > 50)",
    "U in time": "select sum(a) as x from U#time(20 msec)",
    "U by U": "select a.a as x, b.a as y from pattern [every a=U(a>30) -> b=U(symbol=a.symbol, a<60) "
    "where timer:within(30 msec)]",
    "found": "insert into U select a.symbol as symbol, b.price as a from pattern [every a=S(price>50) -> "
    "b=S(symbol=a.symbol, price<40) where timer:within(30 msec)]",
    "keys": "select symbol, volume, sum(price) as s, count(*) as n from S#length(4) group by symbol, volume",
    "keys in time": "select irstream volume, symbol, avg(price) as s from S#time(20 msec) group by volume, symbol",
    "keys each": "select price, symbol, sum(volume) as s from S#length(5) group by symbol, volume",
    "divided": "select symbol, price / volume as x from S(symbol like 'a%' or volume in (1, 2))",
    "every 3": "select symbol, price from S(price > 20) having volume > 0 output every 3 events",
    "all rows": "select symbol, price from S having volume > 0 output all every 20 msec",
    "last row": "select symbol, price * 2 as x from S where volume > 0 output last every 10 msec",
    "first row": "select symbol, price from S having volume > 1 output first every 30 msec",
    "first three": "select irstream sum(price) as s from S#length(3) having count(*) < 3 output first every 3 events",
    "each every 3": "select symbol, price, sum(price) as s from S#length(4) group by symbol output every 3 events",
    "each last": "select symbol, price, sum(price) as s, max(volume) as m from S#time(30 msec) group by symbol "
    "having sum(price) > 10 output last every 20 msec",
    "each all": "select volume, max(price) as m from S#time(30 msec) output all every 3 events",
    "first of groups": "select symbol, price, count(*) as n from S group by symbol output first every 3 events",
    "first in time": "select symbol, sum(price) as s from S group by symbol output first every 25 msec",
    "first of length": "select symbol, sum(price) as s from S#length(3) group by symbol having count(*) < 3 "
    "output first every 2 events",
    "first of time": "select symbol, sum(price) as s from S#time(30 msec) group by symbol output first every 20 msec",
    "first of those in time": "select symbol, price, max(volume) as m from S#time(25 msec) where volume > 0 group by symbol "
    "output first every 2 events",
    "first of batch": "select symbol, volume, count(*) as n from S#length_batch(3) group by symbol, volume "
    "output first every 15 msec",
    "first total in time": "select irstream sum(price) as s, count(*) as n from S#time(25 msec) output first every 10 msec",
    "first leaving": "select rstream symbol, price from S#time(30 msec) having volume > 0 output first every 15 msec",
    "first rows of time": "select irstream symbol, price from S(price > 3)#time(20 msec) output first every 20 msec",
    "first each of time": "select symbol, price, max(price) as m from S#time(30 msec) output first every 5 msec",
    "first of time batch": "select irstream sum(price) as s from S#time_batch(20 msec) output first every 10 msec",
    "first three of time batch": "select irstream symbol, price from S#time_batch(15 msec) output first every 3 events",
    "first of keys in time": "select irstream symbol, price from S#time(30 msec)#unique(symbol) output first every 10 msec",
    "first three of keys in time": "select irstream sum(price) as s from S#time(25 msec)#length(3) output first every 3 events",
    "groups of time batch": "select symbol, sum(price) as s from S#time_batch(20 msec) group by symbol output first every 30 msec",
    "more groups of time batch": "select symbol, count(*) as n from S#time_batch(15 msec) group by symbol "
    "output first every 2 events",
    "first rows": "select symbol, price from S#length(3) group by symbol output first every 2 events",
    "totals": "select irstream sum(price) as s, max(price) as m, count(*) as n from S#time(25 msec) having count(*) != 2 "
    "output every 20 msec",
    "last total": "select irstream sum(price) as s from S#length(4) having count(*) > 1 output last every 20 msec",
    "rows there of length": "select symbol, price from S#length(4) where volume > 0 output snapshot every 15 msec order by price desc",
    "rows there of time": "select symbol, price from S#time(40 msec) output snapshot every 15 msec",
    "rows there of each": "select irstream * from S(price > 5)#unique(symbol) having volume is not null output snapshot every 12 msec",
    "first rows there": "select symbol, volume from S#firstunique(symbol, volume) output snapshot every 20 msec",
    "rows there at": "select volume from S#firstlength(5) output snapshot at (*, *, *, *, *, */2)",
    "rows there of accum": "select price from S#time_accum(20 msec) where price > 10 output snapshot every 15 msec",
    "total there": "select sum(price) as s from S#time(40 msec) having count(*) != 2 output snapshot every 15 msec",
    "groups every 3": "select irstream symbol, min(price) as s from S#length(4) group by symbol output every 3 events",
    "last of groups": "select irstream symbol, sum(price) as s from S#time(30 msec) group by symbol having count(*) < 3 "
    "output last every 20 msec",
    "all groups": "select irstream symbol, volume, sum(price) as s from S#length(4) group by symbol, volume "
    "having count(*) > 1 output all every 25 msec",
    "groups there": "select symbol, avg(price) as s from S#time(50 msec) group by symbol output snapshot every 20 msec",
    "groups ever": "select symbol, count(*) as n from S group by symbol output snapshot every 4 events",
    "rows after": "select symbol, price from S(price > 3) output after 4 events every 3 events",
    "rows after some time": "select irstream symbol, price from S#length(3) output after 20 msec all every 15 msec",
    "last after": "select irstream symbol, sum(price) as s from S#time(25 msec) group by symbol output after 4 events "
    "last every 20 msec",
    "each after": "select symbol, price, max(price) as m from S#time(30 msec) output after 30 msec every 2 events",
    "total after": "select irstream sum(price) as s from S#length(3) output after 20 msec last every 20 msec",
    "there after": "select symbol, avg(price) as s from S#time(50 msec) group by symbol output after 3 events snapshot every 20 msec",
    "after 3": "select symbol, price * 2 as x from S(price > 3) output after 3 events",
    "after some time": "select irstream symbol, sum(price) as s from S#time(30 msec) group by symbol output after 40 msec",
    "groups after": "select irstream symbol, sum(price) as s from S#length(3) group by symbol having count(*) < 3 "
    "output after 4 events",
    "leaving after": "select rstream symbol, price from S#time(25 msec) output after 3 events",
    "numbers after": "select average as a from S(price < 50)#length(2)#uni(price) output after 2 events",
    "each of those after": "select symbol, price, sum(price) as s from S#length(3) group by symbol output after 5 events",
    "batch after": "select irstream sum(price) as s from S#time_batch(20 msec) output after 2 events",
    "earlier after": "select symbol, prev(1, price) as p, prior(3, volume) as v from S#time(25 msec) output after 20 msec",
    "levels after": "select irstream symbol, volume, sum(price) as s from S#time(25 msec) group by rollup(symbol, volume) "
    "output after 8 events",
    "after into T": "insert into T select symbol, price as p, volume as v from S output after 3 events",
    "when three": "select symbol, price from S(price > 20) output when count_insert >= 3",
    "last when": "select irstream symbol, sum(price) as s from S#time(30 msec) group by symbol output last when count_remove > 1",
    "all when": "select symbol, sum(price) as s from S#length(4) group by symbol output all when count_insert_total > 3 "
    "and count_insert > 1",
    "total when": "select irstream sum(price) as s, count(*) as n from S#time(25 msec) having count(*) != 2 "
    "output last when count_insert > 2 or count_remove = 1",
    "each when": "select symbol, price, max(price) as m from S#length(3) group by symbol output when count_insert = 2",
    "when two have left": "select symbol, sum(price) as s from S#length(3) group by symbol output when count_remove > 1",
    "later": "select symbol, sum(price) as s from S#length(3) group by symbol output last when last_output_timestamp < 30",
    "rows at": "select symbol, price from S(price > 20) output at (*, *, *, *, *, *)",
    "last at": "select irstream symbol, sum(price) as s from S#time(700 msec) group by symbol output last at (*, *, *, *, *, *)",
    "all at": "select symbol, sum(price) as s from S#length(4) group by symbol output all at (*, *, *, *, *, [0, 1, 4])",
    "total at": "select irstream sum(price) as s from S#time(400 msec) output after 3 events last at (*, *, *, *, *, *)",
    "groups at": "select symbol, count(*) as n from S#time(900 msec) group by symbol output snapshot at (*, *, *, *, *, *)",
    "gone": "select irstream symbol, price from S(price > 3)#time(30 msec) where volume > 0",
    "gone by length": "select rstream symbol, price, max(price) as m from S#length(3) group by symbol",
    "batch": "select irstream symbol, price, sum(price) as s, min(volume) as m from S#length_batch(3) group by symbol",
    "batch total": "select irstream sum(price) as s, max(price) as m from S#time_batch(25 msec) having count(*) != 2",
    "batch groups": "select irstream symbol, min(price) as s, count(*) as n from S#time_batch(20 msec) group by symbol",
    "batch rows": "select * from S#time_batch(15 msec)",
    "batch keys": "select symbol, volume, avg(price) as s from S#length_batch(4) group by symbol, volume",
    "batch into T": "insert into T select symbol, price as p, volume as v from S#length_batch(2)",
    "three into T": "insert into T select symbol, price as p, volume as v from S output every 3 events",
    "two of each": "select irstream symbol, sum(price) as s, max(volume) as m from S#groupwin(symbol)#length(2) "
    "group by symbol",
    "some of each": "select sum(volume) as s from S(price > 1)#groupwin(volume)#length(3) output last every 20 msec",
    "rows every 3": "select irstream symbol, price from S#length(3) output every 3 events",
    "rows last": "select irstream symbol, price from S#time(30 msec) having volume > 0 output last every 20 msec",
    "each leaving": "select irstream symbol, price, sum(price) as s, max(volume) as m from S#time(30 msec) group by symbol "
    "output every 20 msec",
    "each leaving last": "select irstream symbol, price, sum(price) as s from S#length(3) group by symbol "
    "having sum(price) > 10 output last every 3 events",
    "each leaving first": "select irstream symbol, sum(price) as s from S#length(3) output first every 3 events",
    "groups leaving last": "select irstream symbol, price from S#length(1) group by symbol output last every 5 events",
    "groups last": "select symbol, sum(price) as s from S#length(4) group by symbol having sum(price) > 10 "
    "output last every 3 events",
    "groups last in time": "select symbol, sum(price) as s from S group by symbol having sum(price) > 10 "
    "output last every 20 msec",
    "group last": "select symbol, sum(price) as s from S#length(1) group by symbol output last every 5 events",
    "group all": "select symbol, sum(price) as s from S#length(1) group by symbol output all every 5 events",
    "batch last": "select symbol, sum(price) as s from S#time_batch(25 msec) group by symbol output last every 40 msec",
    "batch all": "select irstream symbol, sum(price) as s, count(*) as n from S#length_batch(3) group by symbol "
    "output all every 20 msec",
    "batch total last": "select irstream sum(price) as s, count(*) as n from S#time_batch(20 msec) output last every 30 msec",
    "batch rows every 4": "select irstream symbol, price from S#time_batch(15 msec) output every 4 events",
    "batch there": "select sum(price) as s from S#length_batch(3) output snapshot every 20 msec",
    "best of batch": "select symbol, price from S#length_batch(4) order by price desc, symbol limit 2",
    "best groups": "select symbol, sum(price) as s from S#time(50 msec) group by symbol output snapshot every 20 msec "
    "order by sum(price) desc limit 2",
    "best rows": "select irstream symbol, price from S#time(30 msec) order by volume desc limit 3",
    "best of output": "select * from S(volume > 0) output every 25 msec order by price desc limit 3 offset 1",
    "different": "select distinct symbol, price from S#time_batch(20 msec)",
    "groups in order": "select irstream symbol, count(*) as n from S#length(4) group by symbol output every 4 events "
    "order by count(*), symbol desc",
    "last in order": "select symbol, sum(price) as s from S#time(30 msec) group by symbol output last every 20 msec "
    "order by sum(price) desc, symbol",
    "all in order": "select irstream symbol, volume, count(*) as n from S#length(4) group by symbol, volume "
    "output all every 3 events order by count(*), symbol limit 3",
    "last total in order": "select irstream sum(price) as s from S#time(25 msec) output last every 20 msec order by sum(price)",
    "last each in order": "select symbol, price, max(price) as m from S#length(3) group by symbol output last every 3 events "
    "order by max(price), symbol",
    "total in order": "select irstream sum(price) as s from S#length(3) output every 2 events order by sum(price) limit 1",
    "pairs in order": "select s.price as x, t.volume as v from S#time(30 msec) as s, R#length(4) as t "
    "where s.symbol = t.symbol order by s.price limit 2",
    "matches in order": "select a.price as p, b.volume as v from pattern [every a=S -> b=R(symbol=a.symbol) "
    "where timer:within(30 msec)] order by a.volume desc",
    "best into T": "insert into T select symbol, price as p, volume as v from S#length_batch(3) order by price desc limit 2",
    "different last": "select distinct symbol, volume from S output last every 20 msec limit 2",
    "first in order": "select symbol, price from S output first every 3 events order by price",
    "most ever": "select symbol, maxever(price) as m, minever(volume) as n, lastever(volume) as v from S group by symbol",
    "firsts ever": "select firstever(price) as f, minever(price) as m from S#keepall group by symbol output last every 3 events",
    "ever of each": "context C select maxever(price) as m, firstever(volume) as v from S",
    "ends": "select symbol, first(price) as f, last(volume) as l, first(price, 1) as g from S#length(3) group by symbol",
    "ends in time": "select irstream first(volume) as f, last(price) as l from S#time(25 msec) output every 3 events",
    "ends of batch": "select symbol, last(price, 1) as l from S#length_batch(3) group by symbol",
    "ends of sort": "select first(price) as f, last(price) as l from S#sort(3, volume desc)",
    "rows at the ends": "select irstream symbol, maxby(price).volume as v, minby(volume, price desc).symbol as s from S#length(3)",
    "extremes of texts": "select volume, max(symbol) as m, first(symbol) as f, last(*).price as p from S#time(25 msec) group by volume",
    "texts of batches": "select last(symbol) as l, maxby(price).price as p, min(symbol) as m from S#time_batch(20 msec)",
    "texts in outputs": "select irstream symbol, maxby(price).volume as v, max(symbol) as m from S#length(4) group by symbol "
    "output last every 20 msec",
    "total of texts": "select min(symbol) as m, first(*).price as p from S#time(30 msec) output snapshot every 15 msec",
    "texts into T": "insert into T select max(symbol) as symbol, maxby(price).price as p, maxby(price).volume as v from S#length(3)",
    "texts of each": "context C select irstream maxby(price).volume as v, last(symbol) as s from S#length(2)",
    "texts of levels": "select symbol, volume, max(symbol) as m, maxby(price).volume as v from S#length(3) "
    "group by rollup(symbol, volume)",
    "texts beside": "select symbol, minby(price, group_by: volume).symbol as m, max(symbol, group_by: ()) as s from S#length(4)",
    "texts of keys": "select symbol, last(symbol) as l, maxby(price).volume as v from S#groupwin(symbol)#length(2) group by symbol",
    "lists": "select irstream window(price) as w, window(symbol) as s from S#length(3)",
    "lists of groups": "select symbol, window(volume) as w, sum(price) as s from S(price > 3)#length(4) group by symbol",
    "lists of batches": "select window(price) as w from S#time_batch(20 msec)",
    "lists in rows": "select price, window(volume) as w from S#groupwin(symbol)#length(2) group by symbol output every 3 events",
    "lists in outputs": "select window(symbol) as w from S#length(3) output snapshot every 15 msec",
    "elements": "select irstream window(*).where(x => x.price > 20).sumOf(x => x.price) as s, window(volume).max() as m from S#length(3)",
    "elements of groups": "select symbol, window(*).countOf(x => x.volume > 1) as n, window(*).anyOf(x => x.symbol = 'a') as a "
    "from S#time(25 msec) where price > 3 group by symbol output last every 20 msec",
    "elements of a total": "select window(*).average(x => x.volume) as a from S#time(30 msec) output snapshot every 15 msec",
    "elements into U": "insert into U select symbol, window(price).average() as a from S#length(2)",
    "whole rows": "select irstream window(*) as w, maxby(price) as m, first(*) as f, nth(*, 1) as n from S#length(3)",
    "whole rows of groups": "select symbol, last(*) as l, window(*).orderBy(x => x.price) as w from S#length(3) group by symbol "
    "output all every 15 msec",
    "whole rows of each": "context C select window(*).take(2) as w, minby(volume, price desc) as m from S#length(3)",
    "whole rows of levels": "select symbol, first(*) as f, maxby(price) as m from S#time(20 msec) group by rollup(symbol, volume)",
    "whole events": "select irstream s as r, new {p = s.price, a = s.symbol} as n from S#length(2) as s",
    "whole partners": "select a, b.price as p, b from S#length(2) as a, R#length(3) as b where a.symbol = b.symbol",
    "whole matches": "select b, a.price as p, a from pattern [every a=S(price > 20) -> b=S(symbol = a.symbol)]",
    "made of lists": "select window(*).where(x => x.price > 20).orderBy(x => x.volume).take(2).selectFrom(x => x.symbol) as a, "
    "window(*).orderByDesc(x => x.symbol) as b, window(*).takeLast(2).reverse() as c, window(*).distinctOf(x => x.price) as d, "
    "window(*).takeWhile(x => x.price > 1).countOf() as e, window(volume).takeWhileLast(x => x > 1) as f, window(*).distinctOf() as g, "
    "window(price).arrayOf() as h, window(*).selectFrom(x => new {p = x.price}).where(x => x.p > 20) as i from S#length(4)",
    "found in lists": "select window(*).firstOf(x => x.price > 20) as a, window(*).lastOf().symbol as b, window(*).minBy(x => x.symbol) as c, "
    "window(*).maxBy(x => x.price).volume as d, window(price).firstOf() as e, window(*).firstOf(x => x.price > 50) is null as f "
    "from S#time(20 msec)",
    "sought in order": "select symbol, sorted(price) as l, sorted(price).lowerKey(45.0) as a, sorted(price).floorEvents(price) as b, "
    "sorted(price desc).ceilingEvent(45.0) as c, sorted(volume).higherEvent(1).symbol as d, sorted(volume).getEvents(2) as e, "
    "sorted(volume).eventsBetween(1, true, 3, false) as f, sorted(volume).countKeys() as g, sorted(symbol).containsKey('b') as h, "
    "sorted(price).lastEvents().countOf() as i, sorted(price).where(x => x.volume > 1) as j from S#length(4) group by symbol",
    "rows by a filter": "select irstream first(*, filter: volume > 1) as f, last(symbol, filter: price > 20) as l, "
    "nth(symbol, 1, filter: volume > 0) as n, maxby(price, filter: volume > 1) as m, first(price) as p from S#length(4)",
    "sought in each": "context C select irstream sorted(price, volume desc) as l, sorted(price).floorKey(price) as k from S#length(2)",
    "elements of each": "context C select window(*).allOf(x => x.price > 20) as e, window(price).sumOf() as s from S#length(2)",
    "places": "select symbol, nth(price, 1) as p, nth(volume, 0, filter: price > 20) as v from S#length(4) group by symbol",
    "places in time": "select irstream nth(price, 1) as p, last(price) as l from S#time(25 msec) output last every 3 events",
    "medians": "select irstream symbol, median(price) as m, median(volume) as n from S#length(4) group by symbol",
    "median in time": "select median(price) as m, avedev(price) as a from S#time(30 msec) having count(*) != 2",
    "distances": "select symbol, avedev(price) as a, stddev(price) as d from S#length(5) group by symbol "
    "output last every 20 msec",
    "distances of batch": "select avedev(volume) as a, median(volume) as m from S#time_batch(20 msec)",
    "median of each": "context C select median(price) as m, last(price) as l, count(distinct volume) as n from S#length(3)",
    "kinds": "select symbol, count(distinct volume) as n, sum(distinct price) as s from S#length(4) group by symbol",
    "kinds in time": "select irstream avg(distinct volume) as a, stddev(distinct price) as d from S#time(30 msec) "
    "output every 20 msec",
    "rows of keys": "select irstream symbol, price from S#unique(symbol, volume)",
    "rows of price": "select rstream symbol, price from S#unique(price) having volume > 0",
    "total of keys": "select irstream sum(price) as s, count(*) as n from S#unique(symbol, volume)",
    "each of keys": "select symbol, price, sum(volume) as s from S(price > 1)#unique(symbol) group by symbol",
    "groups of keys": "select symbol, volume, max(price) as m from S#unique(volume, symbol) group by symbol, volume",
    "last two rows": "select irstream symbol, price from S#groupwin(symbol)#length(2)",
    "two of two keys": "select irstream symbol, avg(price) as a from S#groupwin(symbol, volume)#length(2) group by symbol",
    "newest of keys": "select irstream symbol, price from S#groupwin(symbol)#unique(volume)",
    "best three": "select irstream symbol, price from S#sort(3, price desc)",
    "best by two": "select symbol, sum(price) as s from S#sort(3, volume, price desc) group by symbol",
    "firsts": "select irstream symbol, price from S#firstunique(symbol)",
    "firsts of two": "select sum(price) as s, count(*) as n from S(price > 1)#firstunique(symbol, volume)",
    "keys every 3": "select irstream symbol, price from S#unique(symbol) output every 3 events",
    "total of keys in time": "select irstream sum(price) as s from S#unique(symbol, volume) output every 20 msec",
    "keys last": "select symbol, volume, sum(price) as s from S#unique(symbol, volume) group by symbol, volume "
    "output last every 20 msec",
    "keys first": "select rstream symbol, price from S#sort(2, price) output first every 3 events",
    "keys into T": "insert into T select symbol, price as p, volume as v from S#unique(symbol)",
    "levels of two keys": "select irstream symbol, sum(price) as s from S#unique(symbol, volume) group by rollup(symbol)",
    "ranked": "select irstream symbol, price from S#rank(symbol, 2, price desc)",
    "ranked total": "select sum(price) as s, count(*) as n from S(volume > 0)#rank(volume, 3, price) output every 3 events",
    "newest in time": "select irstream symbol, price from S#unique(symbol)#time(25 msec)",
    "newest of few": "select irstream symbol, max(price) as m from S#length(3)#unique(symbol) group by symbol",
    "best in time": "select rstream symbol, price, sum(volume) as s from S#sort(3, price)#time(30 msec)",
    "few best in time": "select sum(price) as s from S#time(40 msec)#sort(3, volume desc)#length(4) output last every 20 msec",
    "firsts in time": "select irstream symbol, price from S#firstunique(symbol)#time(20 msec)",
    "either": "select irstream symbol, price from S#unique(symbol)#length(2) retain-union",
    "either in time": "select irstream sum(price) as s, count(*) as n from S#unique(symbol)#time(20 msec) retain-union",
    "any of three": "select symbol, sum(price) as s from S#sort(2, price)#time(20 msec)#rank(symbol, 2, volume) retain-union "
    "group by symbol output last every 3 events",
    "levels of several": "select irstream symbol, count(*) as n from S#unique(symbol)#time(20 msec) group by rollup(symbol)",
    "carried time": "select irstream symbol, price from S(volume is not null)#ext_timed(volume, 2 msec)",
    "groups of carried time": "select irstream symbol, sum(price) as s, max(price) as m "
    "from S(volume is not null)#ext_timed(volume, 3 msec) where price > 20 group by symbol",
    "levels of carried time": "select symbol, volume, sum(price) as s from S(volume is not null)#ext_timed(volume, 2 msec) "
    "group by rollup(symbol, volume)",
    "carried time every 3": "select symbol, price, sum(price) as s from S(volume is not null)#ext_timed(volume, 2 msec) "
    "group by symbol output every 3 events",
    "carried time there": "select symbol, sum(price) as s from S(volume is not null)#ext_timed(volume, 2 msec) "
    "group by symbol output snapshot every 15 msec",
    "clock as time": "select irstream symbol, price from S#ext_timed(current_timestamp, 20 msec)",
    "carried batch": "select irstream symbol, price from S(volume is not null)#ext_timed_batch(volume, 2 msec)",
    "carried batch groups": "select symbol, sum(price) as s from S(volume is not null)#ext_timed_batch(volume, 2 msec, 1L) "
    "where price > 20 group by symbol",
    "accumulated": "select irstream symbol, price from S#time_accum(15 msec)",
    "accumulated groups": "select irstream symbol, sum(price) as s from S#time_accum(15 msec) where volume > 0 group by symbol",
    "accumulated last": "select irstream sum(price) as s from S#time_accum(15 msec) output last every 20 msec",
    "accumulated first": "select symbol, sum(price) as s from S#time_accum(15 msec) group by symbol output first every 20 msec",
    "accumulated levels": "select symbol, volume, max(price) as s from S#time_accum(15 msec) group by cube(symbol, volume)",
    "full or late": "select irstream symbol, price from S#time_length_batch(20 msec, 3)",
    "full or late groups": "select irstream symbol, sum(price) as s, count(*) as n from S#time_length_batch(10 msec, 4) "
    "where volume > 0 group by symbol",
    "full or late last": "select irstream sum(price) as s from S#time_length_batch(15 msec, 3) output last every 20 msec",
    "full or late first": "select irstream sum(price) as s from S#time_length_batch(15 msec, 3) output first every 20 msec",
    "accumulated first total": "select irstream sum(price) as s from S#time_accum(15 msec) output first every 20 msec",
    "full or late levels": "select symbol, volume, sum(price) as s from S#time_length_batch(15 msec, 3) "
    "group by rollup(symbol, volume)",
    "first of all": "select irstream symbol, price from S#firstlength(3)",
    "first groups": "select symbol, sum(price) as s from S#firstlength(4) where volume > 1 group by symbol",
    "first total": "select irstream sum(price) as s, count(*) as n from S(price > 20)#firsttime(30 msec)",
    "first while": "select irstream * from S#firsttime(20 msec) output every 2 events",
    "first sums": "select symbol, price, sum(price) as s from S#firstlength(5) group by symbol output every 3 events",
    "first into T": "insert into T select symbol, price as p, volume as v from S#firstlength(5)",
    "while": "select irstream symbol, price from S#expr(newest_timestamp - oldest_timestamp < 20)",
    "while few": "select symbol, sum(price) as s, max(price) as m from S#expr(sum(price) < 90 and current_count < 5) "
    "where volume > 1 group by symbol",
    "while rising": "select irstream sum(price) as s from S#expr(newest_event.price >= oldest_event.price or max(volume) < 3)",
    "while levels": "select symbol, volume, sum(price) as s from S#expr(avg(price) > 20 or expired_count > 1) "
    "group by rollup(symbol, volume)",
    "until": "select irstream symbol, price from S#expr_batch(sum(price) > 60)",
    "until before": "select irstream symbol, sum(price) as s from S#expr_batch(newest_timestamp - oldest_timestamp > 10, false) "
    "group by symbol",
    "until some": "select irstream sum(price) as s, count(*) as n from S#expr_batch(max(price) > 50 or expired_count > 1) "
    "where volume > 1",
    "until last": "select symbol, sum(price) as s from S#expr_batch(current_count >= 3) group by symbol "
    "output last every 20 msec",
    "while every 3": "select irstream symbol, price from S#expr(sum(price) < 90) output every 3 events",
    "some of length": "select irstream symbol, price from S#length(2) where volume > 1",
    "some groups of length": "select irstream symbol, sum(price) as s, max(price) as m from S#length(4) where volume > 1 "
    "group by symbol having sum(price) > 20",
    "some of batch": "select irstream sum(price) as s, count(*) as n from S#length_batch(3) where volume > 1",
    "some of time batch": "select irstream symbol, price from S#time_batch(20 msec) where volume > 1",
    "some each": "select irstream symbol, price, sum(price) as s from S#length(4) where volume > 1 group by symbol "
    "output every 3 events",
    "clock earlier": "select irstream symbol, prior(1, price) as p from S#ext_timed(current_timestamp, 20 msec)",
    "carried earlier": "select irstream symbol, prior(1, price) as p from S(volume is not null)#ext_timed(volume, 2 msec)",
    "carried batch earlier": "select symbol, sum(prior(2, price)) as s from S(volume is not null)#ext_timed_batch(volume, 2 msec) "
    "group by symbol",
    "while earlier": "select symbol, prior(2, price) as p, sum(prior(1, price)) as s from S#expr(sum(price) < 90) group by symbol",
    "until earlier": "select irstream symbol, prior(1, price) as p from S#expr_batch(max(price) > 50, false)",
    "accumulated earlier": "select irstream symbol, prior(1, price) as p from S#time_accum(15 msec) where prior(1, volume) > 0",
    "full or late earlier": "select irstream symbol, sum(prior(1, price)) as s from S#time_length_batch(15 msec, 3) "
    "group by symbol",
    "earlier for a time": "select symbol, prior(1, price) as p from S#firsttime(25 msec)",
    "some earlier": "select irstream symbol, prior(1, price) as p from S#length(3) where prior(1, volume) > 1",
    "some last": "select symbol, sum(price) as s from S#length(4) where volume > 1 group by symbol output last every 20 msec",
    "best of each": "select irstream symbol, max(price) as m, min(volume) as n from S#groupwin(symbol)#sort(2, price desc) group by symbol",
    "best rows of each": "select irstream symbol, price from S(volume > 0)#groupwin(volume)#sort(2, price, symbol desc)",
    "ends of the best": "select max(price) as a, min(price) as b, median(price) as m from S#sort(3, volume desc) output every 3 events",
    "each key in time": "select irstream symbol, price from S#groupwin(symbol)#time(20 msec)",
    "groups of keys in time": "select symbol, avg(price) as a, max(volume) as m from S#groupwin(symbol)#time(25 msec) group by symbol",
    "total of each in time": "select irstream count(*) as n from S(volume > 0)#groupwin(volume, symbol)#time(20 msec)",
    "keys in time last": "select volume, count(*) as n from S#groupwin(price)#time(20 msec) group by volume "
    "output last every 3 events",
    "keys in time first": "select sum(volume) as n from S#groupwin(symbol)#time(20 msec) output first every 2 events",
    "batch of each": "select irstream symbol, price from S#groupwin(symbol)#length_batch(2)",
    "batch groups of each": "select irstream symbol, sum(price) as s from S#groupwin(symbol)#length_batch(3) group by symbol",
    "batch totals of each": "select first(price) as f, count(*) as n from S(volume > 0)#groupwin(symbol)#length_batch(2)",
    "batch of each last": "select volume, sum(price) as s from S#groupwin(symbol)#length_batch(2) group by volume "
    "output last every 3 events",
    "batch of each into T": "insert into T select symbol, price as p, volume as v from S#groupwin(symbol)#length_batch(2)",
    "living": "select irstream symbol, price from S(volume is not null)#timetolive(current_timestamp + volume * 10)",
    "living groups": "select irstream symbol, sum(price) as s, count(*) as n from S(volume is not null)#time_order(volume, 15 msec) "
    "group by symbol",
    "living total": "select irstream sum(price) as s, count(*) as n from S#time_order(current_timestamp, 20 msec)",
    "living last": "select symbol, sum(price) as s from S(volume > 0)#timetolive(volume * 10 + current_timestamp) group by symbol "
    "output last every 15 msec",
    "living every 3": "select rstream symbol, price from S#time_order(current_timestamp, 10 msec) output every 3 events",
    "living levels": "select symbol, volume, sum(price) as s from S(volume > 0)#timetolive(current_timestamp + volume * 10) "
    "group by rollup(symbol, volume)",
    "living into T": "insert into T select symbol, price as p, volume as v from S#time_order(current_timestamp, 10 msec)",
    "size": "select irstream size from S#time(20 msec)#size",
    "size and newest": "select irstream size, volume, price from S(volume > 0)#length(4)#size(volume, price) where size > 1",
    "sizes after": "select * from S#time(15 msec)#size(volume) output after 3 events",
    "size into U": "insert into U select 'n' as symbol, size * 1.0 as a from S#length(5)#size",
    "kinds of keys": "select count(distinct volume) as n from S#unique(symbol)",
    "in turn": "context Y select sum(price) as s, count(*) as n, context.id as i from S output snapshot when terminated",
    "groups in turn": "context Y select symbol, sum(price) as s from S(volume > 0) group by symbol output snapshot when terminated",
    "until its end": "context B select context.s.symbol as k, context.s.price as p, count(*) as n from S(volume >= 0)",
    "groups until its end": "context B select symbol, sum(price) as p from S group by symbol output last when terminated",
    "rows until its end": "context B select irstream context.s.symbol as k, symbol, price from S#length(2)",
    "in time until its end": "context B select context.s.symbol as k, sum(price) as s from S#time(20 msec)",
    "batches in turn": "context Y select irstream symbol, price from S#time_length_batch(20 msec, 3)",
    "sorted in turn": "context Y select symbol, volume, sum(price) as s from S#sort(3, price) group by volume",
    "window in turn": "context Y select sum(price) as s, count(*) as n from S#time(12 msec) output snapshot when terminated",
    "windows of several": "context I select irstream symbol, price, sum(price) as s, context.id as i from S#length(2)",
    "batch of each of several": "context D select context.s.symbol as k, avg(price) as p "
    "from S(symbol = context.s.symbol)#time_batch(10 msec)",
    "windows of sessions": "context L select volume, sum(price) as s from S(symbol = context.s.symbol)#length(3) group by volume",
    "windows of sessions into U": "context L insert into U select symbol, price as a from S(symbol = context.s.symbol)#length(2)",
    "several at once": "context I select context.id as i, count(*) as n, context.endTime as e from S(volume > 0) "
    "output snapshot when terminated",
    "rows of several": "context I select *, context.s.price as i from S(price < 60)",
    "best of several": "context I select symbol, sum(volume) as v, context.id as i from S group by symbol "
    "output snapshot when terminated order by sum(volume) desc, symbol limit 2",
    "each of several": "context I select symbol, price, sum(price) as s, context.id as i from S",
    "groups of several": "context I select symbol, count(*) as n from S group by symbol",
    "one of each": "context D select context.s.symbol as k, sum(price) as p from S(symbol = context.s.symbol) "
    "output snapshot when terminated",
    "sessions": "context L select context.s.symbol as k, count(*) as n from S(symbol = context.s.symbol)",
    "groups of sessions": "context L select volume, context.s.price as q, avg(price) as n from S(symbol = context.s.symbol) "
    "group by volume output snapshot when terminated",
    "sessions into U": "context L insert into U select context.s.symbol as symbol, sum(price) as a "
    "from S(symbol = context.s.symbol)",
    "each at last": "context I select symbol, price, context.id as i from S output all when terminated",
    "nothing at last": "context I select symbol, count(*) as n from S output snapshot when terminated",
    "last of each life": "context B select symbol, price, sum(volume) as v from S output last when terminated",
    "totals of several": "context I select count(*) as n, sum(price) as s from S having sum(price) > 50 "
    "output every 2 events and when terminated",
    "total of each life": "context D select sum(price) as s, context.endTime as e from S(symbol = context.s.symbol) "
    "output last every 7 msec and when terminated",
    "groups of lives": "context L select volume, sum(price) as s from S(symbol = context.s.symbol) group by volume "
    "having count(*) > 1 output all every 10 msec and when terminated",
    "best of lives": "context D select symbol, max(price) as s from S group by symbol output every 10 msec order by symbol limit 2",
    "first of each life": "context B select symbol, price from S output first every 10 msec",
    "three of each life": "context L insert into U select symbol, price as a from S output first every 3 events",
    "last of length": "context C select symbol, sum(price) as p from S#length(2) output last every 10 msec",
    "total every 2": "context C select count(*) as n, sum(price) as s from S having count(*) > 1 output all every 2 events",
    "groups of hashes": "context H select symbol, sum(price) as s from S#length(3) group by symbol output last every 2 events",
    "best of categories": "context G select symbol, price, context.label as l from S output every 3 events order by price desc "
    "limit 2",
    "groups there of each": "context N select volume, sum(price) as s from S group by volume output snapshot every 10 msec",
    "ended into U": "context L insert into U select context.s.symbol as symbol, sum(price) as a "
    "from S(symbol = context.s.symbol) output snapshot when terminated",
}
UNCOVERED = {
    "seldom": "context C select symbol, count(*) as c from S having count(*) > 2 output first every 15 msec",
    "T at last": "select window(v).union(window(v)) as v from T#length(2)",
    "T into V": "insert into V select symbol, window(p) as m from T#length(3)",
    "last": "select leaving() as m, last(symbol) as v from S#length(2)",
    "ever in batch": "select symbol, maxever(price) as m from S#length_batch(2) group by symbol",
    "counted ever": "select irstream symbol, countever(*) as n from S#length(2) group by symbol",
    "removed": "select irstream symbol from S#length(1) where volume > -100 or current_timestamp < 0",
}
SEVERAL = [
    ["in turn", "groups in turn", "removed"],
    ["until its end", "groups until its end"],
    ["rows until its end", "in time until its end", "until its end", "removed"],
    ["batches in turn", "sorted in turn", "window in turn", "in turn"],
    ["windows of several", "several at once"],
    ["batch of each of several", "windows of sessions", "windows of sessions into U", "of U"],
    ["several at once", "rows of several", "groups of several", "each of several"],
    ["several at once", "best of several", "removed"],
    ["one of each", "sessions", "removed"],
    ["each at last", "several at once", "totals of several"],
    ["nothing at last", "rows of several", "total of each life", "best of lives"],
    ["last of each life", "first of each life", "groups of lives"],
    ["last of length", "total every 2", "keyed"],
    ["groups of hashes", "best of categories", "groups there of each"],
    ["three of each life", "of U"],
    ["sessions into U", "ended into U", "of U", "groups of sessions"],
    ["filter", "a", "b", "grouped", "time", "pattern"],
    ["each", "rows", "total", "ever", "all"],
    ["extremes", "unique", "sorted", "rises"],
    ["S then R", "R then S", "removed"],
    ["S then R ever", "two", "a"],
    ["S then any R", "into T", "of T", "S then R"],
    ["leaving", "changed", "left", "last"],
    ["time", "removed", "total", "a"],
    ["pairs", "two", "both", "a"],
    ["two", "removed"],
    ["latest", "latest or none", "removed"],
    ["pair groups", "pair total", "removed"],
    ["pair rows", "latest total", "latest groups", "latest rows"],
    ["pair groups last", "pair groups all", "removed"],
    ["pair total last", "pairs every"],
    ["last pairs", "pairs every 3"],
    ["latest last", "latest total all", "pairs into U", "of U"],
    ["all with all", "removed"],
    ["timed with timed", "itself"],
    ["last two", "range", "lost pairs", "removed"],
    ["keyed", "time", "total", "seldom"],
    ["partitions", "a", "last"],
    ["members"],
    ["sums of longs", "sums of longs in all", "removed"],
    ["extremes of longs", "removed"],
    ["most of all", "most of each", "removed"],
    ["most ever in window", "firsts ever in time", "removed"],
    ["keys", "keys in time", "keys each", "last"],
    ["asking", "asking two", "removed"],
    ["matches of groups", "matches in time", "last matches", "removed"],
    ["matches of a batch", "matches by time", "pattern"],
    ["matches into U", "of U", "U in time"],
    ["third", "third in time", "sums of thirds"],
    ["each or each", "either match", "removed"],
    ["tries", "tries of both", "tries until", "removed"],
    ["sums of tries", "tries of each", "pattern"],
    ["matches of each", "thirds of each", "members", "removed"],
    ["asking all", "asking for one", "asking among", "asking whether"],
    ["asking all", "asking for one", "into T", "of T"],
    ["last", "keyed", "grouped", "filter"],
    ["of T", "S into U", "into T", "T into U", "more into T", "R into T", "of U", "U in time", "U by U", "time", "a"],
    ["found", "U in time", "keyed", "divided", "of U"],
    ["levels", "levels of time", "levels of all", "levels kept"],
    ["levels of batches", "levels by time", "levels of keys", "grouped"],
    ["into T", "T into U", "of U", "T at last", "grouped"],
    ["of T", "into T", "T into V", "total"],
    ["every 3", "all rows", "last row", "first row", "first three", "removed"],
    ["each every 3", "each last", "each all", "grouped"],
    ["first of groups", "first in time", "totals", "last"],
    ["first of length", "first of time", "last"],
    ["first of those in time", "first of batch", "first rows", "removed"],
    ["first total in time", "first leaving", "removed"],
    ["first rows of time", "first each of time", "first of keys in time", "first three of keys in time"],
    ["first of time batch", "first three of time batch", "groups of time batch", "more groups of time batch"],
    ["last total", "total there", "groups every 3", "last of groups"],
    ["length that ends at times", "groups of keys that end", "removed"],
    ["length that ends all", "best that end", "rows of length that end", "first of length that ends"],
    ["length that ends there", "groups of length that end", "rows of length that end every"],
    ["length that ends by events", "totals of keys", "ends with a rate"],
    ["average into U", "greatest of U", "some of U", "last of groups"],
    ["last into U", "newest of U", "time", "gone into U", "some of U"],
    ["batches into T", "T on into U", "greatest of U", "some of U", "into T", "of T"],
    ["average into U", "last into U", "gone into U", "S into U", "newest of U", "removed"],
    ["best of each", "best rows of each", "ends of the best"],
    ["rows there of length", "rows there of time", "rows there of each", "first rows there"],
    ["rows there at", "rows there of accum", "rows there of each", "last of groups"],
    ["all groups", "groups there", "groups ever", "time"],
    ["three into T", "of T", "last of groups", "keyed"],
    ["rows after", "rows after some time", "last after"],
    ["each after", "total after", "there after", "removed"],
    ["after 3", "after some time", "groups after"],
    ["leaving after", "numbers after", "each of those after", "batch after", "removed"],
    ["earlier after", "levels after"],
    ["after into T", "of T", "removed"],
    ["when three", "last when", "all when", "when two have left"],
    ["total when", "each when", "later", "removed"],
    ["gone", "gone by length", "batch", "removed"],
    ["batch total", "batch groups", "batch rows", "last of groups"],
    ["batch keys", "batch into T", "of T", "time"],
    ["rows every 3", "rows last", "each leaving", "removed"],
    ["each leaving last", "each leaving first", "batch rows every 4"],
    ["two of each", "some of each", "unique", "removed"],
    ["keyed", "partitions", "members", "seldom"],
    ["members", "keyed", "partitions", "removed"],
    ["last of each", "removed"],
    ["totals of each", "partitions", "keyed"],
    ["groups leaving last", "removed"],
    ["groups last", "groups last in time"],
    ["group last", "group all", "removed"],
    ["best of batch", "best rows", "removed"],
    ["best groups", "best of output", "different"],
    ["groups in order", "pairs in order", "matches in order"],
    ["best into T", "of T", "different last", "total in order", "first in order"],
    ["last in order", "all in order", "removed"],
    ["last total in order", "last each in order"],
    ["earlier", "removed", "previous"],
    ["previous in time", "previous of all", "leaving earlier"],
    ["previous of a key", "ends of a key", "removed"],
    ["previous of all of a key", "ends of length", "comes"],
    ["windows", "windows of a key", "removed"],
    ["every 3 earlier", "last earlier", "first earlier", "removed"],
    ["groups earlier", "last of groups earlier", "total earlier", "order earlier"],
    ["ends of a time", "ends of all"],
    ["earlier total", "each earlier", "batch earlier", "last"],
    ["time batch earlier", "earlier ever"],
    ["earlier into T", "previous into U", "of T", "of U"],
    ["batch last", "batch all", "batch total last", "batch there"],
    ["rows of keys", "rows of price", "total of keys", "removed"],
    ["each of keys", "groups of keys", "last two rows"],
    ["two of two keys", "newest of keys", "firsts", "last"],
    ["best three", "best by two", "firsts of two", "removed"],
    ["keys every 3", "total of keys in time", "keys last", "keys first"],
    ["keys into T", "of T", "levels of two keys"],
    ["S changed", "grouped", "filter", "b", "time"],
    ["a", "each", "S changed", "S then R", "two", "pattern"],
    ["into T", "T changed", "T into U", "of T", "T changed first", "R into T", "of U"],
    ["S changed", "T changed", "left into T", "of T", "carried time"],
    ["ever in window", "ever in time", "removed"],
    ["levels ever", "each ever in window", "each ever at last"],
    ["left into T", "of T", "both into U", "U in time"],
    ["removed into T", "in order into U", "of T", "of U"],
    ["pairs left into U", "left of each into U", "of U", "into T", "of T"],
    ["nothing left into U", "left after into U", "of U", "removed"],
    ["ranked", "ranked total", "newest in time", "removed"],
    ["newest of few", "best in time", "few best in time"],
    ["living", "living groups", "living total", "removed"],
    ["living last", "living every 3", "living levels"],
    ["living into T", "of T"],
    ["size", "size and newest", "sizes after", "removed"],
    ["size into U", "of U"],
    ["firsts in time", "levels of several"],
    ["either", "either in time", "any of three", "last"],
    ["each key in time", "groups of keys in time", "total of each in time"],
    ["keys in time last", "keys in time first", "removed"],
    ["batch of each", "batch groups of each", "batch totals of each", "last"],
    ["batch of each last", "batch of each into T", "of T"],
    ["most ever", "firsts ever", "ever in batch"],
    ["ends", "ends in time", "ends of batch", "ends of sort"],
    ["places", "places in time", "removed"],
    ["medians", "median in time", "removed"],
    ["distances", "distances of batch", "counted ever"],
    ["kinds", "kinds in time", "kinds of keys", "removed"],
    ["carried time", "groups of carried time", "removed"],
    ["levels of carried time", "carried time every 3", "carried time there"],
    ["clock as time", "carried batch", "carried batch groups"],
    ["accumulated", "accumulated groups", "accumulated last", "removed"],
    ["accumulated first", "accumulated levels", "accumulated first total"],
    ["full or late", "full or late groups", "full or late last"],
    ["full or late levels", "full or late first", "first into T", "of T"],
    ["first of all", "first groups", "first total", "first while", "first sums"],
    ["while", "while few", "while rising"],
    ["while levels", "until", "until before", "removed"],
    ["until some", "until last", "while every 3"],
    ["clock earlier", "while earlier", "until earlier"],
    ["carried earlier", "carried batch earlier", "removed"],
    ["accumulated earlier", "full or late earlier", "earlier for a time", "removed"],
    ["some of length", "some groups of length", "some of batch"],
    ["some of time batch", "some each", "some last", "some earlier"],
    ["ever of each"],
    ["rows at the ends", "extremes of texts", "texts of batches", "removed"],
    ["texts in outputs", "total of texts", "texts into T", "of T"],
    ["texts of each"],
    ["lists", "lists of groups", "lists of batches", "removed"],
    ["lists in rows", "lists in outputs"],
    ["elements", "elements of groups", "elements of a total", "removed"],
    ["elements into U", "of U", "elements of each"],
    ["whole rows", "whole rows of groups", "made of lists", "removed"],
    ["whole rows of each", "whole rows of levels", "found in lists"],
    ["sought in order", "sought in each", "rows by a filter"],
    ["whole events", "whole partners", "whole matches", "removed"],
    ["texts of levels", "texts beside", "texts of keys"],
    ["median of each"],
    ["snapshots", "keys at last", "keyed"],
    ["a", "partitions", "members", "removed"],
    ["of U", "into U before", "of each into U", "a"],
    ["categories at last", "hashes there", "removed"],
    ["changes of each", "rows of each", "events of each"],
    ["each in time", "rows in time", "removed"],
    ["members in time", "categories"],
    ["groups of each", "groups in time", "groups of length", "rows by volume"],
    ["of two keys", "categories", "hash", "hash ahead"],
    ["batches in each", "rows of batches in each", "removed"],
    ["previous in each", "ends in each", "numbers in each", "removed"],
    ["earlier in each", "earlier in categories", "removed"],
    ["time batches in each", "full or late in each", "accumulated in each", "removed"],
    ["first of each", "ranked in each", "living in each"],
    ["clock as time in each", "carried batch in each"],
    ["some of length in each", "some of batch in each", "some sorted until its end"],
    ["newest in time in each", "either in each", "removed"],
    ["earlier in time in each", "earlier and previous", "previous of all in each"],
    ["groups of batches in each", "batches by volume in each", "newest in each"],
    ["categories in time", "categories of length", "rows of categories", "removed"],
    ["of each into U", "of categories into U", "of U", "categories"],
    ["categories of keys", "removed"],
    ["keys of hashes", "removed"],
    ["categories of keys in time", "categories of keys at last", "hash"],
    ["pairs of each", "latest of each", "pairs of each in time", "removed"],
    ["totals of pairs of each", "groups of pairs of each", "rows of pairs of each", "events of each"],
    ["pairs of categories", "events with those of each", "pairs of each into U", "of U"],
    ["pairs of batches", "batches with themselves", "first pairs of all"],
    ["best pairs", "totals of pairs while", "pairs of a clock"],
    ["pairs of batches every", "totals of pairs of batches"],
    ["pairs of hashes", "totals of pairs within", "pairs of a key", "categories of keys"],
]

row = st.fixed_dictionaries(
    {
        "symbol": st.sampled_from(["a", "b", "c", None]),
        "price": st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.3, 1e16, 45.0, 55.5]), st.floats(0, 100)),
        "volume": st.one_of(st.none(), st.integers(-1, 5)),
    }
)
gaps = st.sampled_from([0, 0, 1, 3, 10, 40])
sends = st.tuples(
    st.sampled_from(["dicts", "table", "timed"]),
    st.sampled_from(["S", "S", "R"]),
    st.lists(st.tuples(gaps, row), max_size=8),
)
clocks = st.tuples(st.sampled_from(["advance", "jump"]), st.just(""), st.sampled_from([1, 5, 20, 100]))
others = st.sampled_from([("restart", "", None), ("rows", "", None)])
steps = st.lists(st.one_of(sends, sends, clocks, others, others), max_size=9)


def _deployed(names: list[str], columns: int | None) -> Engine:
    engine = Engine(columns=columns)
    engine.deploy(SCHEMA)
    for name in names:
        engine.deploy({**COVERED, **UNCOVERED}[name], name)
    return engine


def _run(engine: Engine, found: list[tuple[str, Any]], columns: int | None) -> list[Any]:
    said: list[Any] = []
    for what, stream, value in found:
        match what:
            case "deploy":
                engine.deploy(COVERED[value], value)
            case "dicts":
                engine.send(stream, [event for _, event in value])
            case "table" | "timed":
                table = pa.Table.from_pylist([event for _, event in value], TYPES)
                at = engine.now
                times = [at := at + gap for gap, _ in value]
                engine.send(stream, table, at=times if what == "timed" else None)
            case "advance":
                engine.advance(engine.now + value)
            case "jump":
                engine.jump(engine.now + value)
                said += sorted(engine.heard(), key=lambda each: each.statement)  # which one tells first is not said
            case "restart":
                said += engine.heard()
                if columns is not None:
                    engine = Engine.restored(reread(engine.snapshot()), columns)
            case _:
                for each in engine.plan():
                    found_rows = sorted(map(_bits, engine.rows(each.statement)), key=repr)
                    said.append((each.statement, engine.now, found_rows))
        said += engine.heard()
    return [_exact(each) for each in said]


TYPES = pa.schema([("symbol", pa.string()), ("price", pa.float64()), ("volume", pa.int32())])


def _exact(each: Any) -> Any:
    return (each.statement, each.at, _bits(each.new), _bits(each.old)) if isinstance(each, Heard) else each


def _bits(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _bits(each) for name, each in value.items()}
    if isinstance(value, list):
        return [_bits(each) for each in value]
    return struct.pack("<d", value) if isinstance(value, float) else value


def test_everything_that_is_said_to_be_covered_runs_over_columns() -> None:
    for name in COVERED:
        engine = _deployed([name], 1)
        assert [(each.executor, each.reason) for each in engine.plan()] == [("columns", None)], name
    assert {each.executor for each in _deployed(list(UNCOVERED), 1).plan()} == {"rows"}


@pytest.mark.parametrize("names", SEVERAL, ids=["-".join(each) for each in SEVERAL])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(found=steps, least=st.sampled_from([1, 1, 4]))
def test_over_columns_an_engine_says_what_it_says_on_rows(names: list[str], found: Any, least: int) -> None:
    assert _run(_deployed(names, least), found, least) == _run(_deployed(names, None), found, None)


@pytest.mark.parametrize(
    "names",
    [
        ["keyed", "events of each", "snapshots"],
        ["partitions", "snapshots"],
        ["members", "events of each"],
        ["of two keys", "keys at last"],
        ["hash", "hash ahead"],
        ["categories", "categories at last"],
        ["categories of keys", "categories of keys at last"],
        ["keys of hashes", "keys of hashes at last"],
    ],
    ids=" then ".join,
)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(before=steps, after=steps, least=st.sampled_from([1, 1, 4]))
def test_a_statement_that_comes_later_finds_the_partitions_of_its_context(
    names: list[str], before: Any, after: Any, least: int
) -> None:
    first, *later = names
    found = [*before, *(("deploy", "", name) for name in later), *after]
    assert _run(_deployed([first], least), found, least) == _run(_deployed([first], None), found, None)


@pytest.mark.parametrize("names", [["rows at", "last at", "groups at"], ["all at", "total at", "removed"]])
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(found=steps, least=st.sampled_from([1, 1, 4]))
def test_a_schedule_brings_over_columns_what_it_brings_on_rows(names: list[str], found: Any, least: int) -> None:
    slower = [
        (what, stream, [(25 * gap, event) for gap, event in value] if isinstance(value, list) else 25 * (value or 0))
        for what, stream, value in found
    ]
    assert _run(_deployed(names, least), slower, least) == _run(_deployed(names, None), slower, None)


@pytest.mark.parametrize("to", [25, 35, 100])
@pytest.mark.parametrize("name", [name for name, text in COVERED.items() if "#time(" in text and "output" in text])
def test_what_has_left_a_window_that_is_empty_goes_over_to_columns(name: str, to: int) -> None:
    event = {"symbol": "a", "price": 2.5, "volume": None}
    found: list[tuple[str, Any]] = [("dicts", "S", [(0, event)]), ("jump", "", to), ("dicts", "S", [(0, event)] * 4)]
    assert _run(_deployed([name], 4), found, 4) == _run(_deployed([name], None), found, None)


@pytest.mark.parametrize(
    "text",
    [
        "select symbol, avg(price) as a, count(*) as n from S#time(30 msec) group by symbol output every 100 msec",
        "select symbol, median(price) as a, max(volume) as m from S#time(30 msec) group by symbol output every 100 msec",
        "select symbol, price, sum(price) as s from S#time(30 msec) output every 100 msec",
        "select sum(price) as s from S#time(30 msec) output last every 100 msec order by sum(price)",
        "select symbol, sum(price) as s from S#ext_timed(volume, 30 msec) group by symbol output every 100 msec",
    ],
)
@pytest.mark.parametrize("late", [0, 4])
def test_what_the_last_output_counted_and_has_left_since_is_still_shown_over_columns(text: str, late: int) -> None:
    def events(*found: tuple[str, float, int]) -> tuple[str, str, Any]:
        names = ("symbol", "price", "volume")
        return "dicts", "S", [(0, dict(zip(names, each, strict=True))) for each in found]

    found: list[tuple[str, str, Any]] = [
        *(events(("a", 1.0, 0), ("b", 3.0, 1)), ("advance", "", 90), events(("a", 5.0, 90), ("b", 6.0, 90))),
        *(("advance", "", 20), events(("a", 7.0, 110)), ("advance", "", 10 + late), events(*[("c", 9.0, 125)] * 4)),
        *(("rows", "", None), ("restart", "", None), ("rows", "", None), ("advance", "", 200), ("rows", "", None)),
    ]
    said = list[Any]()
    for columns in (4, None):
        engine = Engine(columns=columns)
        engine.deploy(SCHEMA)
        engine.deploy(text, "late")
        said.append(_run(engine, found, columns))
    assert said[0] == said[1]


@pytest.mark.parametrize("rate", ["", "output last every 2 events"])
@pytest.mark.parametrize(
    "window",
    [
        "#ext_timed(volume, 2 msec)",
        "#ext_timed_batch(volume, 2 msec)",
        "#time_order(volume, 2 msec)",
        "#timetolive(volume + current_timestamp)",
    ],
)
def test_the_very_event_whose_time_is_null_is_refused(window: str, rate: str) -> None:
    text = f"select symbol, sum(price) as s from S(price > 1){window} group by symbol {rate}"
    events = [{"symbol": "a", "price": 2.0 * i, "volume": None if i == 7 else i} for i in range(12)]
    events[0]["volume"] = None  # which does not pass the filter
    said = list[Any]()
    for columns in (1, None):
        engine = Engine(columns=columns)
        engine.deploy(SCHEMA)
        engine.deploy(text, "carried")
        engine.send("S", pa.Table.from_pylist(events[:5], TYPES))
        with pytest.raises(QueryError, match="no time"):
            engine.send("S", pa.Table.from_pylist(events[5:], TYPES))
        engine.send("S", pa.Table.from_pylist(events[8:], TYPES))
        said.append([_exact(each) for each in engine.heard()])
        assert engine.plan()[0].executor == "columns"
    assert said[0] == said[1]


@pytest.mark.parametrize("window", ["#ext_timed(volume, 2 msec)", "#time_order(volume, 2 msec)"])
def test_an_event_that_is_refused_has_begun_its_partition(window: str) -> None:
    events = [{"symbol": "abacxadxe"[i], "price": 2.0 * i, "volume": None if i == 4 else i} for i in range(9)]
    said = list[Any]()
    for columns in (1, None):
        engine = Engine(columns=columns)
        engine.deploy(SCHEMA)
        engine.deploy("select symbol from S", "before")
        engine.deploy(f"context C select context.id as i, symbol, sum(price) as s from S{window}", "carried")
        engine.deploy("select price from S", "after")
        engine.send("S", pa.Table.from_pylist(events[:2], TYPES))
        with pytest.raises(QueryError, match="no time"):
            engine.send("S", pa.Table.from_pylist(events[2:], TYPES))
        engine.send("S", pa.Table.from_pylist(events[5:], TYPES))
        said.append([_exact(each) for each in engine.heard()])
        assert {each.executor for each in engine.plan()} == {"columns"}
    assert said[0] == said[1]


@pytest.mark.parametrize("columns", [1, None])
@pytest.mark.parametrize(
    "window",
    [
        "ext_timed(volume, 9 msec)",
        "ext_timed_batch(volume, 1 msec)",
        "time_order(volume, 9 msec)",
        "timetolive(cast(volume, long))",
    ],
)
def test_what_its_window_refuses_is_no_earlier_event(window: str, columns: int | None) -> None:
    events = [{"symbol": "a", "price": float(i), "volume": None if i == 3 else 10 * i} for i in range(1, 8)]
    engine = Engine(columns=columns)
    engine.deploy(SCHEMA)
    engine.deploy(f"select price, prior(1, price) as p from S#{window}", "earlier")
    with pytest.raises(QueryError, match="no time"):
        engine.send("S", pa.Table.from_pylist(events, TYPES))
    engine.send("S", pa.Table.from_pylist(events[3:], TYPES))
    found = [(row["price"], row["p"]) for each in engine.heard() for row in each.new]
    expected = [(1.0, None), (2.0, 1.0), (4.0, 2.0), (5.0, 4.0), (6.0, 5.0), (7.0, 6.0)]
    assert found == expected[: 5 if "batch" in window else 6]  # as in Esper; the last batch is open


def test_an_event_is_refused_for_the_time_that_it_was_changed_to() -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    events = pa.Table.from_pylist([{"symbol": "a", "price": 2.0, "volume": i} for i in range(12)], TYPES)
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy("select symbol, price from S#ext_timed(volume, 2 msec)", "carried")
        engine.deploy("update istream S set volume = null where volume = 7", "change")
        engine.send("S", events.slice(0, 5))
        with pytest.raises(QueryError, match="no time"):
            engine.send("S", events.slice(5))
        engine.send("S", events.slice(8))
    assert engines[0].heard() == engines[1].heard()
    assert {each.executor for each in engines[0].plan()} == {"columns"}


def test_what_is_inserted_into_a_window_by_a_time_comes_event_by_event() -> None:
    engine = Engine(columns=1)
    engine.deploy(SCHEMA)
    engine.deploy("insert into T select symbol, price as p, volume as v from S", "into")
    engine.deploy("select sum(p) as s from T#ext_timed(v, 2 msec)", "carried")
    assert {each.executor for each in engine.plan()} == {"rows"}
    assert all("a window by a time over what is inserted" in (each.reason or "") for each in engine.plan())


@settings(max_examples=20, deadline=None)
@given(found=st.lists(st.tuples(gaps, row), min_size=1, max_size=20), cut=st.integers(0, 20))
def test_tables_hold_what_dicts_hold(found: Any, cut: int) -> None:
    names = ["grouped", "a", "b", "removed", "leaving", "left"]
    one, other = _deployed(names, 1), _deployed(names, None)
    arrived: list[Arrived] = []
    one.listen_arrow(arrived.append)
    events = [event for _, event in found]
    for part in (events[:cut], events[cut:]):
        one.send("S", part)
        other.send("S", part)
    given: dict[str, list[Any]] = {name: [] for name in names}
    for each in arrived:
        marks = zip(each.statement.to_pylist(), each.sign.to_pylist(), each.rows.to_pylist(), strict=True)
        for name, sign, values in marks:
            given[name].append((sign, _bits(values)))
    wanted: dict[str, list[Any]] = {name: [] for name in names}
    for heard in other.heard():
        wanted[heard.statement] += [(1, _bits(values)) for values in heard.new]
        wanted[heard.statement] += [(-1, _bits(values)) for values in heard.old]
    assert given == wanted
    assert one.heard() == []


def test_functions_hear_what_is_theirs_and_the_rest_is_kept() -> None:
    engine, heard = _deployed(["filter", "grouped", "removed"], 1), dict[str, list[Any]]()
    for name in ("filter", "removed"):
        engine.listen(name, lambda new, old, name=name: heard.setdefault(name, []).append((new, old)))
    engine.send("S", _events(1))
    assert heard["filter"] == [([{"symbol": "a", "n": 60.0}], [])]
    assert heard["removed"][1] == ([{"symbol": "b"}], [{"symbol": "a"}])
    assert [(each.statement, each.new[0]["n"]) for each in engine.heard()] == [("grouped", 1), ("grouped", 1)]


def test_tables_of_one_statement_of_a_family_are_its_own() -> None:
    engine, arrived = _deployed(["a", "b", "removed"], 1), list[Arrived]()
    engine.listen_arrow(arrived.append, "b", "removed")
    engine.send("S", _events(2))
    assert [(each.statement[0].as_py(), each.rows.column("symbol").to_pylist()) for each in arrived] == [
        ("removed", ["a", "b", "a", "a", "b", "b", "a"]),
        ("b", ["b", "b"]),
    ]
    assert {each.statement for each in engine.heard()} == {"a"}
    with pytest.raises(QueryError, match="no statement is called `z`"):
        engine.listen_arrow(arrived.append, "z")


def _events(n: int) -> pa.Table:
    return pa.table({"symbol": ["a", "b"] * n, "price": [60.0, 1.0] * n, "volume": pa.array([1, 2] * n, pa.int32())})


def test_a_statement_on_rows_that_inserts_later_makes_the_events_of_its_stream_come_one_by_one() -> None:
    engines = [_deployed(["grouped", "a"], 1), _deployed(["grouped", "a"], None)]
    for engine in engines:
        engine.send("S", _events(3))
        engine.deploy(
            "insert into S select symbol, sorted(p, filter: p > 0).floorKey(50.0) as price, 7 as volume from T#length(2)",
            "x",
        )
        engine.send("T", {"symbol": "a", "p": 2.0})
        engine.send("S", _events(2))
    assert engines[0].heard() == engines[1].heard()
    reasons = {each.statement: each.reason for each in engines[0].plan()}
    assert reasons["x"], "what inserts goes over columns by now: this test wants a statement that stays on rows"
    assert reasons["grouped"] == f"`S`, whose events statements insert or change, with `x` on rows: {reasons['x']}"


def test_a_join_of_a_stream_into_which_a_statement_inserts_stays_where_it_was() -> None:
    engines = [_deployed(["two", "filter"], 1), _deployed(["two", "filter"], None)]
    for engine in engines:
        engine.send("S", _events(2))
        engine.deploy("insert into R select symbol, 2.0 as price, volume from S(volume = 1)", "x")
        engine.send("S", _events(2))
    heard = [engine.heard() for engine in engines]
    assert heard[0] == heard[1]
    assert "two" in {each.statement for each in heard[0]}
    reasons = {each.statement: each.reason for each in engines[0].plan()}
    why = "`R`, whose events statements insert or change, with `two` on rows: several streams, some of them by inserts"
    assert reasons == {"two": why, "x": why, "filter": None}


CHAINS = {
    "insert into V select symbol from S; insert into S select symbol, 1.0 as price, 1 as volume from V": "a circle of inserts",
    "insert into V select symbol, sum(price) as s from S#time(5 msec) group by symbol; select s from V#time(5 msec)": (
        "insert into, of rows that the clock brings, for one who hears of the clock too"
    ),
    "insert into V select symbol, sum(price) as s from S group by symbol output last every 5 msec; insert into W select * from V; "
    "select s from W output every 5 msec": "insert into, of rows that the clock brings, for one who hears of the clock too",
    "insert into V select symbol, price from S#time(5 msec) group by symbol output first every 2 events": (
        "insert into, of rows that the clock brings"
    ),
    "insert into V select sum(volume) as s from S": "arithmetic of whole numbers, which may leave their type",
    "insert into U select symbol, volume as a from S": "insert into, of int as double",
    "insert rstream into V select symbol from S output every 3 events": "insert into, of rows that leave, with an output rate",
    "insert rstream into V select a.symbol as symbol from S#time(5 msec) as a, S#length(2) as b where a.volume = b.volume": (
        "insert into, of rows that the clock brings"
    ),
    "create window W#length(2) as S; insert into W select * from S": "insert into a store",
    "insert into V select symbol from S; create context V1 partition by symbol from V; context V1 select * from V": "a context that hears it",
    "insert into V select symbol from S; create table K(k string primary key); "
    "on V as v merge K where K.k = v.symbol when not matched then insert select v.symbol as k": "the statement Merge",
    "insert into V select symbol from S; select a.symbol as x from pattern [every a=V -> b=S]": "over what is inserted",
    "insert into V select * from S; update istream S set price = 1": "a double that is set to int",
    "update istream S set volume = volume + 1": "arithmetic of whole numbers, which may leave their type",
    "update istream S set price = (select max(price) from R#length(2))": "look-ups in a change of events",
    "context C update istream S set price = 1.0": "a change of events in a context",
    "update istream S set price = 1.0; context C select * from S": "a context that hears it",
    "update istream S set price = 1.0; select window(price).union({1.0}) as p from S#length(2)": "the operator union",
}


@pytest.mark.parametrize("text", CHAINS)
def test_what_hangs_together_by_inserts_is_on_rows_as_a_whole_and_the_plan_says_why(text: str) -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(f"@name('x') {text}", "m")
        assert [each.executor for each in engine.plan() if each.statement == "x"] == ["rows"]
        if "circle" not in CHAINS[text]:
            engine.send("S", _events(3))
    assert engines[0].heard() == engines[1].heard()
    assert any(CHAINS[text] in (each.reason or "") for each in engines[0].plan())


def test_a_batch_that_is_stopped_inserts_what_had_come_before() -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(COVERED["into T"], "first")
        engine.deploy("create table K(k string primary key, v int); create unique index U on K(v);", "k")
        engine.deploy(
            "on S as s merge K where K.k = s.symbol when not matched then insert select s.symbol as k, 1 as v", "m"
        )
        engine.deploy(COVERED["of T"], "of T")
        with pytest.raises(QueryError):
            engine.send(
                "S", pa.table({"symbol": ["a", "b"] * 2, "price": [50.0] * 4, "volume": pa.array([1] * 4, pa.int32())})
            )
    assert engines[0].heard() == engines[1].heard() != []
    assert engines[0].rows("of T") == engines[1].rows("of T")


def test_what_a_statement_on_rows_refuses_stops_the_batch_there_for_everybody() -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy("select sum(volume) as s from S#length(9)", "sum")
        engine.deploy("create table W(k string primary key, v int); create unique index U on W(v);", "w")
        engine.deploy(
            "on S as s merge W where W.k = s.symbol when not matched then insert select s.symbol as k, 1 as v", "m"
        )
        engine.deploy("select sum(volume) as s from S#length(9)", "after")
        with pytest.raises(QueryError):
            engine.send("S", _events(3))
    assert engines[0].heard() == engines[1].heard() != []
    assert [engine.rows("sum") for engine in engines] == [[{"s": 3}]] * 2
    assert [engine.rows("after") for engine in engines] == [[{"s": 1}]] * 2


@pytest.mark.parametrize(
    "text",
    [
        "select a.price as p, b.price as q from pattern [every a=S(volume > 0) -> b=R(symbol=a.symbol)]",
        "select a.price as p, b.price as q from pattern [every a=S(volume > 0) -> b=R(symbol=a.symbol) "
        "where timer:within(30 msec)]",
        "select a.price as p, c.price as q from pattern [every a=S(volume > 0) -> (b=S(symbol=a.symbol) -> c=R(symbol=a.symbol)) "
        "where timer:within(30 msec)]",
        "context C select a.price as p, b.price as q from pattern [every a=S(volume > 0) -> b=S(volume = 1)]",
    ],
)
@settings(max_examples=40, deadline=None)
@given(
    found=st.lists(st.tuples(st.sampled_from(["S", "S", "R"]), st.lists(st.tuples(gaps, row), max_size=8)), max_size=9)
)
def test_a_pattern_that_is_full_refuses_the_events_that_are_too_many_and_no_others(text: str, found: Any) -> None:
    said: list[list[Any]] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(algebra, "Pattern", partial(algebra.Pattern, limit=10))
        for least in (1, 4, None):
            engine, heard = Engine(columns=least), list[Any]()
            engine.deploy(SCHEMA)
            engine.deploy(COVERED["grouped"], "grouped")
            engine.deploy(text, "full")
            engine.deploy(COVERED["each"], "each")
            for stream, events in found:
                at = [engine.now + sum(gap for gap, _ in events[: i + 1]) for i in range(len(events))]
                try:
                    engine.send(stream, pa.Table.from_pylist([event for _, event in events], TYPES), at=at)
                except QueryError as problem:
                    heard.append(str(problem))
                heard += [_exact(each) for each in engine.heard()]
            said.append(heard)
            assert len({each.executor for each in engine.plan()}) == 1
    assert said[0] == said[2] and said[1] == said[2]


@settings(max_examples=40, deadline=None)
@given(found=st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from([1, 2])), max_size=12), max_size=5))
def test_an_event_that_ends_a_partial_match_makes_no_room_for_the_one_it_would_begin(found: Any) -> None:
    """On rows a first filter with conditions is asked before what waits."""
    said: list[list[Any]] = []
    text = (
        "select a.price as p, b.price as q from pattern [every a=S(volume > 0) -> b=S(symbol = a.symbol, volume = 1)]"
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(algebra, "Pattern", partial(algebra.Pattern, limit=6))
        for least in (1, None):
            engine, heard = Engine(columns=least), list[Any]()
            engine.deploy(SCHEMA)
            engine.deploy(text, "full")
            for events in found:
                rows = [
                    {"symbol": symbol, "price": float(n), "volume": volume} for n, (symbol, volume) in enumerate(events)
                ]
                try:
                    engine.send("S", pa.Table.from_pylist(rows, TYPES))
                except QueryError as problem:
                    heard.append(str(problem))
                heard += [_exact(each) for each in engine.heard()]
            said.append(heard)
    assert said[0] == said[1]


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many rows each batch has that statements over columns take."""
    found, take = list[int](), ColumnInstance.take

    def counted(instance: ColumnInstance, batch: Batch) -> Output:
        found.append(batch.rows)
        return take(instance, batch)

    monkeypatch.setattr(ColumnInstance, "take", counted)
    return found


def test_a_pattern_that_is_nearly_full_takes_events_that_begin_nothing_as_one_batch(
    taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(algebra, "Pattern", partial(algebra.Pattern, limit=10))
    engine = Engine(columns=1)
    engine.deploy(SCHEMA)
    engine.deploy("select a.price as p from pattern [every a=S(volume > 0) -> b=R(symbol = a.symbol)]", "full")
    engine.send("S", [{"symbol": "a", "price": 1.0, "volume": 1}] * 5)
    engine.send("R", [{"symbol": "b", "price": 1.0, "volume": 1}] * 50)
    assert taken == [5, 50]


@pytest.mark.parametrize(
    ("name", "gap"), [("in turn", 1000), ("several at once", 1)], ids=["by the clock", "with events"]
)
def test_a_batch_that_would_begin_too_many_partitions_comes_event_by_event(
    name: str, gap: int, taken: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rollup.engine.columns.cores.living._MOST", 8)
    events = [("timed", "S", [(gap, {"symbol": "a", "price": 60.0 + n, "volume": 1}) for n in range(5)])]
    said = _run(_deployed([name], 1), events, 1)
    assert taken == [1] * 5
    assert said == _run(_deployed([name], None), events, None)


def test_components_are_statements_that_share_something() -> None:
    engine = Engine()
    engine.deploy(SCHEMA)
    engine.deploy("@name('in') insert into X select symbol from S; @name('out') select symbol from X; "
                  "@name('alone') select symbol from S", "m")  # fmt: skip
    found = {each.statement: each for each in engine.plan()}
    assert found["in"].component == found["out"].component != found["alone"].component
    assert {each.executor for each in found.values()} == {"columns"}


def test_instants_that_go_back_or_are_missing_are_refused() -> None:
    engine = _deployed(["filter"], 1)
    for at in ([5, 4, 3, 2, 1, 0], [1, 2], [None] * 6):
        with pytest.raises(QueryError, match="instants"):
            engine.send("S", _events(3), at=at)  # type: ignore[arg-type]
    with pytest.raises(QueryError, match="price"):
        engine.send("S", _events(3), at="price")
    engine.send("S", _events(3), at=[1, 2, 3, 4, 5, 6])
    assert engine.now == 6


def test_a_column_of_another_width_is_read_as_its_fields_type_and_one_that_does_not_fit_is_refused() -> None:
    engine = _deployed(["filter"], 1)
    engine.send("S", pa.table({"symbol": pa.array(["a"], pa.large_string()), "price": [50], "volume": pa.array([2])}))
    assert [each.new for each in engine.heard()] == [[{"symbol": "a", "n": 100.0}]]
    with pytest.raises(QueryError, match=r"S\.volume"):
        engine.send("S", pa.table({"volume": pa.array([1, 2**40])}))
    with pytest.raises(QueryError, match="`S` has no property `x`"):
        engine.send("S", pa.table({"x": [1]}))


def test_a_batch_window_that_goes_over_takes_the_groups_of_its_waiting_rows_with_it() -> None:
    engine = Engine(columns=3)
    engine.deploy(SCHEMA)
    engine.deploy("@name('sums') select symbol, sum(price) as s from S#length_batch(4) group by symbol")
    for symbol, price in (("a", 1.0), ("b", 2.0)):
        engine.send("S", {"symbol": symbol, "price": price, "volume": 1})
    assert engine.heard() == []
    table = pa.Table.from_pylist(
        [{"symbol": s, "price": p, "volume": 1} for s, p in (("c", 4.0), ("b", 8.0), ("d", 16.0))], TYPES
    )
    engine.send("S", table)
    assert [each.new for each in engine.heard()] == [
        [{"symbol": "a", "s": 1.0}, {"symbol": "b", "s": 10.0}, {"symbol": "c", "s": 4.0}]
    ]
    assert [each.executor for each in engine.plan()] == ["columns"]


def test_groups_whose_rows_wait_for_an_output_keep_their_numbers_where_none_of_them_is_in_the_window_any_more() -> None:
    engines = [Engine(columns=4), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(COVERED["groups leaving last"], "x")
        for symbols in ("abc", "cbaba"):
            engine.send("S", [{"symbol": symbol, "price": float(n), "volume": 1} for n, symbol in enumerate(symbols)])
    assert engines[0].heard() == engines[1].heard() != []
    assert [each.executor for each in engines[0].plan()] == ["columns"]


def test_rows_that_wait_for_an_output_are_counted_where_some_of_it_was_made_on_rows() -> None:
    """A loop that leaves the latest row of each interval alone knows no events, of which leaving rows would ask."""
    for name in ("group last", "group all"):
        engines = [Engine(columns=4), Engine(columns=None)]
        for engine in engines:
            engine.deploy(SCHEMA)
            engine.deploy(COVERED[name], "x")
            for symbols in ("abb", "cbabacabb"):
                rows = [{"symbol": symbol, "price": float(n), "volume": 1} for n, symbol in enumerate(symbols)]
                engine.send("S", rows)
        assert engines[0].heard() == engines[1].heard() != []


@pytest.mark.parametrize("window", ["length(3)", "time(30 msec)", "time_batch(30 msec)", "length_batch(3)", "keepall"])
def test_a_limit_of_groups_that_are_shown_takes_them_as_the_window_has_them(window: str) -> None:
    engines = [Engine(columns=4), Engine(columns=None)]
    text = f"select symbol, count(*) as n from S#{window} group by symbol order by count(*) desc limit 2"
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(text, "x")
        rows = [{"symbol": symbol, "price": 1.0, "volume": 1} for symbol in "abcba"]
        engine.send("S", pa.Table.from_pylist(rows, TYPES), at=[0, 5, 20, 25, 33])
    assert [each.executor for each in engines[0].plan()] == ["columns"]
    assert engines[0].rows("x") == engines[1].rows("x") != []


@pytest.mark.parametrize("rate", ["every 4 events", "every 20 msec"])
@pytest.mark.parametrize("kind", ["", "irstream "])
def test_a_window_for_each_key_that_waits_for_an_output_goes_over(kind: str, rate: str) -> None:
    engines = [Engine(columns=6), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(
            f"select {kind}symbol, count(*) as n from S#groupwin(symbol)#length(2) group by symbol output {rate}", "x"
        )
        for symbols in ("aaba", "c", "abcabcba", "aacb"):
            rows = [{"symbol": symbol, "price": 1.0, "volume": 1} for symbol in symbols]
            engine.send("S", pa.Table.from_pylist(rows, TYPES), at=[engine.now + 7 * n for n in range(len(rows))])
    assert [each.executor for each in engines[0].plan()] == ["columns"]
    assert engines[0].heard() == engines[1].heard() != []


@pytest.mark.parametrize("text", ["distinct price - price as p", "distinct -price as p", "price as p"])
@pytest.mark.parametrize("after", ["", " order by price limit 3", " order by price desc, volume limit 3 offset 1"])
def test_nan_is_one_value_that_is_above_all_numbers_in_what_is_put_in_order(text: str, after: str) -> None:
    engines, prices = [Engine(columns=1), Engine(columns=None)], [math.inf, math.nan, -math.inf, -math.nan, 1.0, None]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(f"select {text} from S#length_batch(6){after}", "x")
        engine.send("S", [{"symbol": "a", "price": price, "volume": n} for n, price in enumerate(prices)])
    assert [each.executor for each in engines[0].plan()] == ["columns"]
    over, rows = ([repr((each.new, each.old)) for each in engine.heard()] for engine in engines)
    assert over == rows != []


def test_what_is_shown_of_a_window_has_nan_above_all_numbers_too() -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy("@name('x') select max(price) as m, min(price) as n from S#length(3)")
        engine.send("S", [{"symbol": "a", "price": price, "volume": 1} for price in (math.nan, 1.0, 0.5)])
    assert [each.executor for each in engines[0].plan()] == ["columns"]
    (over,), (rows,) = (engine.rows("x") for engine in engines)
    assert math.isnan(over["m"]) and math.isnan(rows["m"]) and over["n"] == rows["n"] == 0.5


@pytest.mark.parametrize("literal", ["9007199254740993", "9007199254740992", "3"])
def test_a_double_equals_a_whole_number_where_it_is_that_number(literal: str) -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy(f"select price from S(price = {literal})")
        engine.send("S", [{"symbol": "a", "price": price, "volume": 1} for price in (2.0**53, 3.0, None)])
    over, rows = (list(map(_exact, engine.heard())) for engine in engines)
    assert over == rows and bool(rows) == (literal != "9007199254740993")


def test_an_output_that_a_jump_made_late_shows_what_had_not_left_its_window_by_then() -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy(SCHEMA)
        engine.deploy("@name('x') select count(*) as n from S#time(25 msec) output every 20 msec")
        engine.send("S", _events(2))
        engine.advance(19)
        engine.jump(25)
    assert engines[0].rows("x") == engines[1].rows("x") == [{"n": 4}]
    assert [each.executor for each in engines[0].plan()] == ["columns"]


FLOATS = [
    "select * from F(f > 1.1f)",
    "select k, f, d * f as x, d - g as y from F where f != g and g <= 16777217",
    "select k from F(cast(f, double) > 16777216, not (g is null))",
    "select k, count(f) as n, sum(d + f) as s from F#length(3) group by k",
    "select a.f as f, b.g as g from pattern [every a=F -> b=F(k = a.k, g < a.f) where timer:within(1 sec)]",
]
number = st.sampled_from([None, 1.1, 1, -0.0, 16777216, 16777217, 3.5e38, 0.1])


@settings(max_examples=40, deadline=None)
@given(
    events=st.lists(st.fixed_dictionaries({"k": st.sampled_from("ab"), "f": number, "g": number, "d": number})),
    cut=st.integers(0, 5),
)
def test_floats_are_carried_and_compared_as_on_rows(events: list[Any], cut: int) -> None:
    engines = [Engine(columns=1), Engine(columns=None)]
    for engine in engines:
        engine.deploy("create schema F(k string, f float, g float, d double)")
        for place, text in enumerate(FLOATS):
            engine.deploy(text, f"s{place}")
        for part in (events[:cut], events[cut:]):
            engine.send("F", part)
    assert {each.executor for each in engines[0].plan()} == {"columns"}
    over, rows = (list(map(_exact, engine.heard())) for engine in engines)
    assert over == rows


OPEN = {
    "filter": "select k, x * 2 as y from F(x > 20)",
    "grouped": "select irstream k, sum(x) as s from F#length(3) group by k",
    "rows": "select irstream k, x from F#time(20 msec)",
    "batch": "select k, sum(x) as s from F#length_batch(2) group by k output last every 3 events",
    "pattern": "select a.x as p, b.x as q from pattern [every a=F(x > 20) -> b=F(k = a.k) where timer:within(30 msec)]",
    "joined": "select a.x as p, b.k as q from F#length(3) as a, F#time(30 msec) as b where a.k = b.k",
    "asking": "select k, (select max(x) from F#length(2)) as m from F",
    "keyed": "context K select k, count(*) as n from F",
    "into": "insert into G select k, x from F",
    "of": "select k, sum(x) as s from G#length(2) group by k",
}
OPEN_ON_ROWS = {
    "whole": "select * from F(x > 50)",
    "decimals": "select k, sum(d) as s from F#length(2) group by k",
    "equal": "select k from F(d = 1)",
    "lists": "select k, l[0] as first from F",
}


@settings(max_examples=8, deadline=None)
@given(
    events=st.lists(
        st.fixed_dictionaries(
            {
                "k": st.sampled_from(["a", "b", None]),
                "d": st.sampled_from([None, "1", "0.50", "12345678901234567890.1"]),
                "l": st.sampled_from([None, [], [1, 2]]),
                "x": st.one_of(st.none(), st.floats(0, 100)),
            }
        )
    ),
    cut=st.integers(0, 5),
    restart=st.booleans(),
)
def test_fields_that_nobody_reads_may_be_of_any_type(events: list[Any], cut: int, restart: bool) -> None:
    engines, said = list[Engine](), list[list[Any]]()
    for columns in (2, None):
        engine = Engine(columns=columns)
        engine.deploy(
            "create schema F(d bigdecimal, k string, l int[], x double); create schema G(k string, x double); "
            "create context K partition by k from F"
        )
        for name, text in {**OPEN, **OPEN_ON_ROWS}.items():
            engine.deploy(text, name)
        heard = list[Heard]()
        for part in (events[:cut], events[cut:], events):
            engine.send("F", part)
            engine.advance(engine.now + 15)
            heard += engine.heard()
            engine = Engine.restored(reread(engine.snapshot()), columns) if restart else engine
        engines.append(engine)
        said.append(sorted(map(_exact, heard), key=lambda each: each[0]))  # who tells first of a partition is not said
    assert said[0] == said[1]
    assert {each.statement for each in engines[0].plan() if each.executor == "columns"} == OPEN.keys()
    for name in (*OPEN, *OPEN_ON_ROWS):
        shown = [sorted(map(_bits, engine.rows(name)), key=repr) for engine in engines]
        assert shown[0] == shown[1], name


@pytest.mark.parametrize("restart", [False, True])
@pytest.mark.parametrize("context", ["Y", "B", "I", "D", "L"])
def test_a_statement_that_comes_later_sees_the_partitions_that_live_over_columns(context: str, restart: bool) -> None:
    first = [("a", 60.0, 1), ("b", 70.0, 2), ("a", 80.0, 3)]
    heard = list[Any]()
    for columns in (None, 1):
        engine = Engine(columns=columns)
        engine.deploy(SCHEMA)
        engine.deploy(f"@name('one') context {context} select context.id as i, count(*) as n from S")
        _send(engine, first)
        engine.advance(10)
        if restart:
            engine = Engine.restored(engine.snapshot(), columns)
        engine.deploy(
            f"@name('two') context {context} select context.id as i, context.startTime as t, sum(price) as s from S"
        )
        for after in (15, 25, 30):
            _send(engine, [("c", 90.0, 1), ("a", 10.0, 2)])
            engine.advance(engine.now + after)
        engine.undeploy("one")
        engine.deploy(f"@name('three') context {context} select context.id as i, count(*) as n from S")
        _send(engine, first)
        heard.append([_exact(each) for each in engine.heard()])
    assert heard[0] == heard[1]


def _send(engine: Engine, events: list[tuple[str, float, int]]) -> None:
    engine.send("S", [dict(zip(("symbol", "price", "volume"), each, strict=True)) for each in events])
