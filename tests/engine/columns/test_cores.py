"""Statements over columns against the row executor: one meaning, two executors.

The row executor is the oracle: it takes one event at a time and is itself held to the recorded cases. Every core gets
random events with nulls, ties and gaps, cut into random batches, with a snapshot written to Arrow's format and read back
between any two of them. Values are compared bit for bit.
"""

from __future__ import annotations

import math
import os
import struct
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from rollup.core.errors import QueryError
from rollup.engine.columns.cores.batches import Batch, Core
from rollup.engine.columns.cores.families import families
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.finishing import Finishing
from rollup.engine.columns.loops import loop
from rollup.engine.columns.planning import core_of, covers
from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.engine.types import RowType
from rollup.lang.epl.deployer import Deployer
from tests.rereading import reread

pytestmark = pytest.mark.usefixtures("interpreted")

SCHEMA = "create schema S(symbol string, price double, volume int, flag boolean, id long)"
KINDS = [pa.string(), pa.float64(), pa.int32(), pa.bool_(), pa.int64()]
CONTEXT = """
create context C partition by symbol from S;
create context K partition by symbol, volume from S(price > 0);
create context G group by price < 30 as low, group by price >= 20 and price < 70 as middle, group by volume > 1 as high from S;
create context H coalesce by consistent_hash_crc32(symbol) from S granularity 2;
create context P coalesce by hash_code(volume) from S(id > 0) granularity 3 preallocate;
create context N context A partition by symbol from S(id > 0), context B group by price < 50 as low, group by volume > 1 as much
from S(price > 2);
create context M context A partition by symbol from S, context B partition by volume, flag from S(price > 2);
create context L context A coalesce by hash_code(volume) from S granularity 2, context B partition by symbol from S(id > 0),
context D coalesce by hash_code(id) from S(price > 2) granularity 3 preallocate;
create context O context A group by price < 50 as low, group by volume > 1 as much from S, context B coalesce by hash_code(id)
from S granularity 2 preallocate, context D group by flag as yes, group by not flag as no from S(price > 2);
create context Q context A group by price < 50 as low, group by price >= 50 as high from S, context B partition by symbol from S;
create context R context A partition by symbol from S, context B start @now end after 1 sec;
create context Y start @now end after 25 msec;
create context V start @now end S(volume = 1);
create context E start S(price > 40) end after 30 msec;
create context B start S(flag) as s end S(symbol = s.symbol, volume > 1);
create context I initiated by S(price > 50) as s terminated after 40 msec;
create context D initiated by distinct(symbol) S(volume >= 0) as s terminated after 30 msec;
create context T initiated by S(price > 20) as s terminated by S(symbol = s.symbol, volume < 2);
create context U initiated by distinct(symbol, id) S as s terminated by S(symbol = s.symbol, id = s.id, flag);
create context W initiated by S(volume > 3) as s;
create context X initiated by S(volume > 3) as s terminated after s.volume sec;
create context Z start S(price > 40) end after 9223372036854775 sec
"""

FILTERS = [
    "select symbol, price * volume as notional from S(price > 50)",
    "select irstream symbol from S",
    "select * from S(symbol = 'a', price > 50)",
    "select price + volume as x, flag from S where volume < 3 and (price > 2 or flag = true)",
    "select symbol from S(symbol >= 'b')",
    "select symbol from S(volume = price)",
    "select case when price > 50 then symbol else 'low' end as c, coalesce(symbol, 'none') as s from S",
    "select symbol from S(price != 45 or not flag)",
    "select id from S(id > volume) having volume > 0",
    "select id from S(price * volume > 40, price + 1 < volume * 20)",
    "select price / volume as x, volume / 2 as h, id / volume as i, -price as n, price / 0.0 as e, -volume as m from S",
    "select volume + 1 as x, volume * volume + 1 as y, -volume * 3 as z from S(volume * 2 > 1, price > -1)",
    "select price % 7 as x, volume % 3 as y, Math.abs(price) as a, cast(volume, string) as t, cast(price, int) as i from S",
    "select symbol || '!' as x, symbol.toUpperCase() as u, symbol.length() as n from S(symbol like '_%', symbol != 'b')",
    "select case when price > 40 then volume end as c, case volume when 1 then 'one' else symbol end as d from S",
    "select symbol is null as a, price is not null as b from S(symbol in ('a', 'ü') or volume in (1, 2))",
    "select volume from S(price between 1 and 50, not (volume in [4:7]), symbol regexp '[a-c]|ü')",
    "select symbol || '-' || cast(volume, string) as t, cast(volume, long) as l, cast(id, string) || symbol as u, "
    "cast(volume, double) as d, cast(id, double) as e, cast(cast(volume, long), string) as v from S",
    "expression cost { s => s.price * s.volume } select cost(s) as c, s.symbol as k from S as s where cost(s) > 40",
]
WINDOWS = [
    "select symbol, sum(price) from S#length(5) group by symbol",
    "select symbol, sum(volume), count(*), count(price), count(symbol) as n from S#length(3) group by symbol",
    "select symbol, price, sum(price) as s from S#length(4) group by symbol",
    "select volume, avg(price) as a from S(price > 20)#length(4)",
    "select avg(price), sum(volume) as s, avg(volume) as m from S#length(4) having count(*) > 2",
    "select stddev(price) as d, count(flag) as n from S#length(4)",
    "select symbol, stddev(price * volume) as d from S#length(7) group by symbol",
    "select symbol, avg(price) from S#time(60 msec) group by symbol",
    "select symbol, sum(price), count(*) as n from S(volume > 0)#time(25 msec) group by symbol having count(*) < 3",
    "select avg(price) as a, count(*) as n from S#time(40 msec)",
    "select symbol, price, sum(price) as s from S#time(40 msec) where price > 30 group by symbol",
    "select id, sum(price) as s from S#time(30 msec) group by id",
    "select flag, sum(volume) as s from S#length(6) group by flag",
    "select symbol, flag, id, sum(volume) as s, count(*) as n from S#length(6) group by symbol, flag, id",
    "select id, symbol, price, avg(price) as a from S#time(40 msec) group by symbol, id",
    "select symbol, volume, count(*) as n from S group by symbol, volume having count(*) > 1",
    "select symbol, sum(price) / count(*) as s, sum(volume) * 2 as d, max(price) - min(price) as r from S#length(4) "
    "group by symbol having sum(volume) / 2 > -1",
    "select symbol, sum(price), count(*) as n from S group by symbol",
    "select sum(price) as s from S",
    "select symbol, price, stddev(price) as s from S#keepall group by symbol",
    "select symbol, sum(price, filter: volume > 1) as s, count(*, filter: price > 20) as n, count(symbol, filter: flag) as m, "
    "min(price, filter: volume < 3) as l, avg(volume, filter: symbol = 'a') as a from S#length(4) group by symbol",
    "select stddev(price, filter: flag) as d, count(distinct volume, filter: price > 10) as n, max(volume, filter: not flag) as m, "
    "median(price, filter: volume > 0) as e, sum(price) as s from S#time(30 msec) having count(*, filter: flag) < 3",
    "select irstream symbol, count(*, filter: price is null) as n, sum(volume, filter: volume > 1) as s from S#unique(symbol) "
    "group by symbol",
    "select symbol, avg(price, filter: price > 30) as a, count(*, filter: volume > 1) as n from S group by symbol",
    "select symbol, nth(price, 1) as p, nth(volume, 0) as v, last(price, 1) as l, nth(price, 0, filter: flag) as f from S#length(4) "
    "group by symbol",
    "select irstream nth(id, 1) as i, nth(price, 2) as p from S#time(30 msec) having nth(id, 0) > 1",
    "select symbol, nth(price, 1) as p from S#unique(symbol, volume) group by symbol",
]
BESIDE = [
    "select symbol, sum(price, group_by: symbol) as s, sum(price, group_by: ()) as t, price as p from S#length(4)",
    "select irstream symbol, count(*, group_by: (symbol, volume)) as n, max(price, group_by: volume) as m from S#time(30 msec) "
    "where volume > 0",
    "select symbol, avg(price, group_by: symbol) - avg(price, group_by: ()) as d from S having count(*, group_by: volume) > 1",
    "select sum(volume, group_by: symbol) as s, count(*, group_by: id) as n, symbol from S#length_batch(3)",
    "select irstream symbol, sum(volume, group_by: symbol) as s, count(*, group_by: ()) as n from S#unique(symbol)",
]
NUMBERS = [
    "select datapoints, total, average, stddev, stddevpa, variance from S#length(4)#uni(price)",
    "select irstream * from S(volume > 0)#time(30 msec)#uni(volume) where datapoints > 1",
    "select correlation as c from S#length(5)#correl(price, volume) having correlation > 0",
    "select irstream slope, YIntercept, XVariance, YStandardDeviationPop, sumXY, n from S#length(6)#linest(price, volume)",
    "select average * 2 as a from S#keepall#weighted_avg(price, volume)",
    "select rstream average from S#time(25 msec)#weighted_avg(price, volume)",
]
SIZES = [
    "select size from S#length(3)#size",
    "select irstream size from S(volume > 0)#time(25 msec)#size where size != 2",
    "select irstream * from S#time(30 msec)#size(id, price)",
    "select rstream size * 1.5 as s, volume from S#length(4)#size(volume)",
    "select irstream size from S#keepall#size output after 3 events",
]
KEYED_WINDOWS = [
    "select symbol, avg(price) as a from S#groupwin(symbol)#length(2) group by symbol",
    "select sum(price) as s, count(*) as n from S(volume > 0)#groupwin(id)#length(3)",
    "select irstream symbol, sum(volume) as s, count(price) as n from S#groupwin(id)#length(2) group by symbol",
    "select irstream symbol, id, min(price) as a, max(volume) as b from S#groupwin(symbol)#length(2) group by symbol, id "
    "having count(*) > 1",
    "select symbol, max(volume) as b from S#unique(symbol) group by symbol",
    "select symbol, max(price) as a from S#groupwin(symbol)#length(2) group by symbol output last every 20 msec",
]
MOVING = [
    "select irstream symbol, price from S#unique(symbol)",
    "select rstream * from S(price > 3)#unique(symbol, id) having volume > 0",
    "select sum(price) as s, count(*) as n from S#unique(volume, flag)",
    "select irstream symbol, sum(volume) as s, count(price) as n from S#unique(price, symbol) group by symbol having count(*) > 1",
    "select irstream symbol, id, max(price) as m, min(volume) as n from S#unique(id, symbol) group by symbol, id",
    "select symbol, price, sum(price) as s from S#unique(id) group by symbol",
    "select irstream price, avg(price) as a from S#unique(price)",
    "select irstream symbol, price from S#groupwin(symbol)#length(2)",
    "select irstream symbol, price, sum(price) as s, max(price) as m from S#groupwin(symbol)#length(2) group by symbol",
    "select irstream symbol, flag, avg(price) as a from S#groupwin(symbol, flag)#length(2) group by flag, symbol",
    "select rstream sum(volume) as s from S(volume > 0)#groupwin(id, price)#length(1)",
    "select irstream symbol, volume from S#groupwin(symbol)#unique(id)",
    "select irstream symbol, price from S#sort(3, price desc)",
    "select irstream *, sum(volume) as s from S#sort(4, symbol, price desc)",
    "select sum(price) as s, count(*) as n from S#sort(3, volume desc, id)",
    "select irstream symbol, count(*) as n from S#sort(3, volume desc, price) group by symbol having count(*) > 1",
    "select symbol, price, last(price) as l from S#sort(3, id desc)",
    "select irstream symbol, price from S#firstunique(symbol)",
    "select sum(price) as s, count(*) as n from S(volume > 0)#firstunique(symbol, id)",
    "select irstream symbol, sum(price) as s from S#firstunique(id) group by symbol output last every 20 msec",
    "select irstream symbol, price from S#unique(symbol) output every 3 events",
    "select irstream symbol, price from S#sort(2, price) output last every 20 msec",
    "select irstream sum(price) as s from S#unique(symbol, id) output every 20 msec",
    "select rstream symbol, price from S#groupwin(symbol)#length(2) output first every 3 events",
    "select irstream symbol, id, sum(price) as s from S#unique(symbol, id) group by symbol, id output all every 3 events",
    "select symbol, id, sum(price) as s from S#sort(3, price, id) group by symbol, id output last every 20 msec",
    "select sum(price) as s from S#unique(symbol, id) output snapshot every 20 msec",
    "select symbol, price from S#unique(symbol) output snapshot every 20 msec",
    "select symbol, price from S#firstunique(symbol) having price > 3 output snapshot every 20 msec",
    "select symbol, id from S#length(4) where id > 1 output snapshot every 10 msec",
    "select id from S#time(30 msec) output snapshot every 20 msec",
    "select irstream * from S#firsttime(50 msec) output snapshot every 50 msec",
    "select irstream symbol, price from S#sort(3, price) order by price desc",
]
SEVERAL_WINDOWS = [
    "select irstream symbol, price from S#rank(symbol, 3, price desc)",
    "select sum(price) as s, count(*) as n from S(volume > 0)#rank(id, 2, price, volume desc)",
    "select irstream symbol, count(*) as n from S#rank(id, 3, volume) group by symbol output last every 20 msec",
    "select sum(price) as s, count(*) as n from S#unique(symbol)#time(30 msec)",
    "select irstream symbol, price from S#unique(symbol)#length(2)",
    "select irstream symbol, price, sum(price) as s from S#length(3)#unique(symbol)#time(25 msec) group by symbol",
    "select irstream symbol, price from S#firstunique(symbol)#length(3)",
    "select irstream symbol, price from S#time(30 msec)#firstunique(symbol)#sort(3, price)",
    "select irstream symbol, max(price) as m, count(*) as n from S#time(40 msec)#unique(symbol, id) group by symbol, id",
    "select rstream symbol, price from S#sort(3, price desc)#time(30 msec) output every 3 events",
    "select irstream symbol, price from S#rank(symbol, 3, price)#length(4)#unique(id)",
    "select irstream symbol, sum(price) as s from S#sort(3, price)#sort(3, volume desc) group by symbol",
    "select irstream symbol, price from S#unique(symbol)#length(2) retain-union",
    "select sum(price) as s, count(*) as n from S#unique(symbol)#time(25 msec) retain-union",
    "select irstream symbol, price, sum(price) as s from S#sort(2, price)#time(25 msec)#length(2) retain-union",
    "select irstream symbol, sum(volume) as s from S#sort(2, price)#rank(id, 2, volume) retain-union group by symbol",
    "select irstream sum(price) as s from S#unique(symbol)#time(25 msec) output all every 20 msec",
    "select irstream symbol, price from S#unique(symbol)#time(25 msec) retain-union output last every 2 events",
]
BY_KEY = [
    "select irstream symbol, price from S#groupwin(symbol)#time(25 msec)",
    "select symbol, max(price) as m, min(volume) as n from S#groupwin(symbol)#sort(2, price desc) group by symbol",
    "select irstream symbol, price from S#groupwin(symbol, flag)#sort(3, volume, price desc)",
    "select irstream max(price) as m, min(price) as n, median(price) as d from S#sort(3, volume)",
    "select irstream symbol, min(volume) as n, max(id) as m from S#unique(id) group by symbol",
    "select id, max(price) as m, avedev(price) as a from S#rank(symbol, 3, volume desc) group by id",
    "select max(volume) as m from S#groupwin(id)#sort(2, price) having max(volume) > 0 output last every 20 msec",
    "select symbol, avg(price) as a, max(volume) as m from S(volume > 0)#groupwin(symbol)#time(30 msec) group by symbol",
    "select irstream sum(price) as s, count(*) as n from S#groupwin(symbol, id)#time(25 msec) having count(*) != 2",
    "select rstream symbol, price, sum(price) as s from S#groupwin(id)#time(40 msec) group by symbol",
    "select irstream symbol, price from S#groupwin(price)#time(25 msec) output every 3 events",
    "select symbol, count(*) as n from S#groupwin(symbol)#time(30 msec) group by symbol output last every 3 events",
    "select count(*) as n from S#groupwin(symbol)#time(30 msec) output first every 3 events",
    "select symbol, sum(price) as a from S#groupwin(symbol)#length_batch(2) group by symbol",
    "select irstream symbol, price from S#groupwin(symbol)#length_batch(3)",
    "select irstream symbol, flag, sum(price) as s, max(price) as m from S#groupwin(flag)#length_batch(2) group by symbol, flag",
    "select irstream first(price) as f, last(price) as l, count(*) as n from S(volume > 0)#groupwin(symbol)#length_batch(2)",
    "select symbol, price from S#groupwin(symbol, id)#length_batch(2) output every 3 events",
    "select symbol, sum(price) as s from S#groupwin(id)#length_batch(2) group by symbol output last every 20 msec",
]
UNTIL = [
    "select irstream symbol, price from S#time_order(current_timestamp, 20 msec)",
    "select irstream sum(price) as s, count(*) as n from S(volume < 9)#timetolive(current_timestamp + volume * 10)",
    "select irstream symbol, price, sum(price) as s from S(id is not null)#time_order(id, 30 msec) group by symbol",
    "select symbol, avg(price) as a, last(price) as l from S(id is not null)#timetolive(id + current_timestamp) group by symbol "
    "having count(*) > 1",
    "select irstream symbol, sum(volume) as s from S(volume is not null)#time_order(volume * 5, 9223372036854770000 msec) "
    "group by rollup(symbol)",
    "select rstream symbol, price from S(volume < 9)#timetolive(current_timestamp + volume * 10) output every 3 events",
    "select irstream symbol, sum(price) as s from S(volume < 9)#timetolive(current_timestamp + volume * 10) group by symbol "
    "output last every 20 msec",
    "select sum(price) as s from S(volume < 9)#timetolive(current_timestamp + volume * 10) output first every 20 msec",
]
KEPT = [
    "select symbol, max(volume) as x, min(price + 1) as y, count(*) as n from S#length(4) group by symbol",
    "select symbol, price, min(volume) as x, max(volume) as y, sum(price) as s from S#length(3)",
    "select max(price + 1) as x, min(price + 1) as y from S#time(25 msec)",
    "select flag, min(volume) as x from S#time(40 msec) group by flag having min(volume) < 3",
    "select sum(price) as s, count(*) as n from S#unique(symbol)",
    "select symbol, sum(price) as s, count(volume) as n from S(price > 3)#unique(id) group by symbol",
    "select sum(volume) as s, avg(price) as a from S#sort(3, price desc)",
    "select symbol, count(*) as n, sum(volume) as s from S#sort(4, symbol) group by symbol",
    "select sum(volume) as s from S#sort(2, id desc) having count(*) > 1",
]
LEAVING = [
    "select irstream symbol, sum(price) as s, count(*) as n from S#length(3) group by symbol",
    "select irstream symbol, sum(volume) as s from S(price > 3)#time(25 msec) group by symbol having count(*) < 3",
    "select irstream avg(price) as a, count(*) as n from S#length(4) having count(*) > 1",
    "select irstream sum(price) as s from S#time(40 msec) where volume > 0",
    "select rstream symbol, sum(price) as s from S#time(30 msec) group by symbol",
    "select rstream sum(volume) as s, count(*) as n from S#length(2)",
    "select irstream symbol, max(volume) as x, min(price) as y from S#length(4) group by symbol",
    "select irstream flag, min(volume) as x, stddev(price) as d from S#time(40 msec) group by flag",
    "select irstream symbol, sum(price) as s, count(volume) as n from S#unique(id) group by symbol",
    "select irstream sum(price) as s from S#unique(symbol)",
    "select irstream symbol, sum(volume) as s from S#sort(3, price desc) group by symbol",
    "select irstream symbol, sum(price) as s from S group by symbol",
    "select irstream sum(price) as s from S#keepall",
]
PATTERNS = [
    "select * from pattern [every a=S(price>50) -> b=S(symbol=a.symbol, price<40) where timer:within(60 msec)]",
    "select a.symbol as s, a.price as p, b.volume as v, b.price * a.volume as x "
    "from pattern [every a=S(volume>2) -> b=S(symbol=a.symbol, volume > 1) where timer:within(30 msec)]",
    "select a.id as i, b.price as p from pattern [every a=S -> b=S(id=a.id, flag) where timer:within(1 sec)]",
    "select a.symbol as x, b.symbol as y from pattern [every a=S -> b=S(volume=a.volume, symbol < a.symbol) "
    "where timer:within(60 msec)]",
    "select a.price as p, b.price as q from pattern [every a=S -> b=S(symbol=a.symbol, price > a.price * 1.5, volume > 0) "
    "where timer:within(60 msec)]",
    "select a.id as i, b.id as j from pattern [every a=S(volume > 0) -> b=S(symbol=a.symbol, a.volume < volume, id >= a.id, "
    "flag != a.flag) where timer:within(1 sec)]",
    "select a.symbol as s, b.symbol as t from pattern [every a=S -> b=S(flag=a.flag, symbol != a.symbol, price <= a.volume) "
    "where timer:within(30 msec)]",
    "select a.id as i, b.id as j from pattern [every a=S(symbol='a') -> b=S(symbol='b', volume=a.volume)]",
    "select * from pattern [every a=S(flag, volume = 2) -> b=S(flag=a.flag, id=a.id, price >= a.price)] where b.volume > a.id",
    "select a.id as i, b.id as j from pattern [every a=S -> b=S(id=a.volume) where timer:within(60 msec)] having b.id > 0",
    "select a.id as i, b.id as j from pattern [every a=S(price > 50) -> b=S(volume > 1) where timer:within(30 msec)]",
    "select a.id as i, a.symbol as s from pattern [every a=S(price > 40) -> S(symbol = a.symbol || '')] where a.id > 0",
    "select * from pattern [every a=S(price > 40) -> S(id = 2)]",
    "select sum(a.price) as s, count(*) as n from pattern [every a=S(price>50) -> b=S(symbol=a.symbol, price<40)]#length(3)",
    "select a.symbol as k, count(*) as n, max(b.price - a.price) as m from pattern [every a=S(volume>0) -> b=S(symbol=a.symbol) "
    "where timer:within(60 msec)]#length(2) group by a.symbol having count(*) > 1",
    "select b.volume as v, a.flag as f, count(*) as n, avg(a.price) as m from pattern [every a=S(price > 20) -> "
    "b=S(volume=a.volume) where timer:within(30 msec)] group by b.volume, a.flag",
    "select a.id as i, sum(b.price) as s from pattern [every a=S -> b=S(symbol=a.symbol, volume > 1)]#time(25 msec) where b.id >= 0 group by a.id",
    "select count(*) as n, sum(a.volume) as s from pattern [every a=S(price > 40) -> S(id = 2)]#time(40 msec)",
    "select a.id as i, count(*) as n from pattern [every a=S -> b=S(symbol=a.symbol)] group by b.id",
    "select a.symbol as k, min(b.price) as m from pattern [every a=S -> b=S(symbol=a.symbol)]#length_batch(3) group by a.symbol",
    "select a.price as p, b.price as q from pattern [every a=S -> b=S(symbol=a.symbol)]#time_batch(20 msec) having a.id > 0",
    "select a.price as p, sum(b.price) as s from pattern [every a=S -> b=S(symbol=a.symbol)]#length_batch(2)",
    "select a.price as p, b.id as i from pattern [every a=S(volume > 0) -> b=S(symbol=a.symbol)]#length(3) having b.id > 0",
    "select a.price as p, sum(b.price) as s from pattern [every a=S(volume > 0) -> b=S(symbol=a.symbol)]",
    "select * from pattern [every a=S(price > 20) -> b=S(symbol=a.symbol, price < 60) -> c=S(symbol=a.symbol, price > b.price)]",
    "select a.id as i, c.price as p from pattern [every a=S(volume > 0) -> (b=S(symbol=a.symbol, id > a.id) -> c=S(id=b.id, volume >= a.volume)) "
    "where timer:within(60 msec)]",
    "select a.id as i, c.price as p from pattern [every a=S -> b=S(volume > 0) where timer:within(30 msec) -> c=S(symbol=b.symbol) "
    "where timer:within(10 msec)] where a.price < c.price",
    "select a.id as i, b.id as j, c.id as k from pattern [every a=S(flag) -> ((b=S(volume=a.volume) -> S(symbol = a.symbol) "
    "where timer:within(20 msec)) -> c=S(id = 2)) where timer:within(60 msec)]",
    "select a.id as i, a.price * a.volume as x from pattern [every a=S(price > 40)] where a.flag",
    "select a.id as i, b.id as j, coalesce(a.symbol, b.symbol) as s from pattern [every (a=S(volume > 1) or S(id = 1) or b=S(flag))]",
    "select * from pattern [every (a=S or b=S(price < 50))]",
    "select * from pattern [every (a=S(volume > 0) -> (b=S(symbol=a.symbol, price != a.price) or c=S(flag)))] where coalesce(b.id, 0) < 3",
    "select a.id as i, c.price as p from pattern [every (a=S -> (b=S(volume > 0) and c=S(symbol=a.symbol) and not S(price > a.price)) "
    "where timer:within(60 msec) -> S(flag))]",
    "select a[0].id as i, a[2].price as p, b.id as j from pattern [every ([1:3] a=S(volume > 0) until b=S(flag))] where a[1].id > 0",
    "select b[1].symbol as s, a.id as i from pattern [every (a=S(price > 20) -> [2] b=S(id=a.id))]",
    "select 1 as x from pattern [every (S(volume > 1) and not S)]",
    "select a.symbol as k, max(b[0].price) as m from pattern [every (b=S(volume > 1) until a=S(price > 40))]#length(3) group by a.symbol",
    "select a.symbol as k, count(*) as n, sum(c.price - a.price) as s from pattern [every a=S -> b=S(symbol=a.symbol) -> "
    "S(volume = b.volume) -> c=S(symbol=a.symbol)]#length(4) group by a.symbol",
]
KEYED = [
    "context C select context.key1 as k, a.price as p, b.price as q from pattern [every a=S(price > 40) -> b=S(price < 40)]",
    "context K select a.id as i, c.price as p, context.id as n from pattern [every a=S -> (b=S(id > a.id) -> c=S(id=b.id)) "
    "where timer:within(60 msec)] where a.flag having c.price > 0",
    "context K select a[1].price as p, b.id as j, context.id as n from pattern [every ([2:] a=S until b=S(flag))]",
    "context G select a.id as i, b.id as j, context.label as l from pattern [every (a=S(volume > 0) -> b=S(price > a.price))]",
    "context N select a.id as i, context.B.label as l from pattern [every a=S(volume > 0) -> S(flag) where timer:within(30 msec)]",
    "context C select symbol, count(*) as c, avg(price) as p from S output last every 50 msec",
    "context C select context.key1 as k, sum(volume) as c from S output last every 7 msec",
]
EACH = [
    "context C select symbol, sum(price) as s from S output snapshot every 10 msec",
    "context C select symbol, sum(price) as s from S(price > 20) where volume > 0 output last every 10 msec",
    "context K select context.key2 as v, context.id as i, count(*) as c from S output snapshot every 20 msec",
    "context G select context.label as l, sum(price) as s, count(*) as c from S output snapshot every 10 msec",
    "context G select context.label as l, avg(price) as s from S(volume > 0) output last every 25 msec",
    "context P select context.id as i, avg(price) as s from S output last every 25 msec",
    "context C select irstream symbol, price from S#length(2)",
    "context C select irstream symbol, price from S#groupwin(volume)#length(2)",
    "context C select irstream symbol, volume, sum(price) as s from S#unique(volume) group by volume",
    "context C select symbol, sum(price) as s from S(price > 20)",
    "context C select context.key1 as k, count(*) as c, avg(volume) as a from S having count(*) > 1",
    "context C select irstream count(*) as c from S",
    "context C select symbol, price from S(price > 10) where volume > 0",
    "context C select volume, sum(price) as s from S group by volume",
    "context C select symbol, volume, sum(price) as s, context.id as i from S group by volume having count(*) > 1",
    "context C select irstream symbol, volume, max(price) as m from S#length(3) group by volume",
    "context C select price, volume, sum(price) as s from S group by volume",
    "context C select symbol, sum(price) as s, min(volume) as m from S#time(25 msec)",
    "context C select irstream sum(price) as s, context.name as n from S#time(25 msec)",
    "context C select symbol, volume, sum(price) as s from S#time(15 msec) where id > 1 group by volume",
    "context C select price, sum(price) as s, avg(price) as a from S#time(15 msec)",
    "context C select irstream symbol, price from S#time(25 msec)",
    "context C select rstream price, sum(price) as s from S#time(25 msec)",
    "context C select irstream avg(price) as s, max(price) as m from S#length(2)",
    "context C select sum(price) as s from S#keepall",
    "context K select context.key1 as k, context.key2 as v, sum(price) as s from S",
    "context K select volume, id, context.id as i, avg(price) as s from S(price > 20) group by id",
    "context K select symbol, count(*) as n, sum(price) as s from S#time(30 msec)",
    "context G select context.label as l, count(*) as n, sum(price) as s from S",
    "context G select context.label as l, context.id as i, symbol, sum(price) as s from S(id > 0) group by symbol",
    "context G select irstream context.label as l, avg(price) as s from S#length(2)",
    "context G select irstream context.label as l, sum(price) as s from S#time(30 msec)",
    "context G select context.label as l, symbol, price from S where volume > 0",
    "context G select * from S",
    "context H select context.id as i, symbol, sum(price) as s from S group by symbol",
    "context H select context.id as i, context.name as n, count(*) as c, max(price) as m from S#length(4)",
    "context P select context.id as i, sum(price) as s from S(price > 0)",
    "context P select irstream context.id as i, symbol, avg(price) as s from S#time(20 msec) group by symbol",
    "context N select context.A.key1 as k, context.B.label as l, context.id as i, sum(price) as s from S",
    "context N select context.B.id as i, context.A.name as n, count(*) as c from S output last every 15 msec",
    "context M select irstream context.A.key1 as k, context.B.key2 as f, context.id as i, sum(price) as s from S#length(2)",
    "context M select context.B.key1 as v, price, context.name as n from S#time(20 msec) where id > 0",
    "context L select context.B.key1 as k, context.D.id as i, count(*) as c, sum(price) as s from S group by volume",
    "context L select context.id as i, sum(id) as s from S output snapshot every 20 msec",
    "context O select irstream context.A.label as a, context.D.label as d, context.id as i, price from S#length(2)",
    "context O select context.D.name as n, context.id as i, avg(price) as s from S",
    "context C select symbol, price, stddev(price) as d from S(id = 1) where volume > 0 having count(price) < 4",
    "context C select symbol, price, sum(price) as s, min(volume) as m from S#length(2)",
    "context C select context.key1 as k, stddev(price) as d, max(price) as m from S(volume > 0)#length(3)",
    "context C select sum(price) as s, count(*) as n from S#length_batch(3)",
    "context C select irstream symbol, price from S(price > 10)#length_batch(2)",
    "context C select irstream symbol, volume, max(price) as m from S#length_batch(3) group by volume",
    "context C select price, avg(price) as a from S#length_batch(2) having avg(price) > 20",
    "context K select context.key2 as v, first(price) as f, last(id) as l from S#length_batch(2)",
    "context G select irstream context.label as l, sum(price) as s from S#length_batch(2)",
    "context P select rstream context.id as i, symbol from S#groupwin(symbol)#length_batch(2)",
    "context H select context.id as i, symbol, sum(price) as s from S#groupwin(symbol)#length_batch(2) group by symbol",
    "context C select symbol, price - prev(1, price) as d from S#length(2)",
    "context G select prev(2, id) as i, prevtail(price) as t, prevcount(price) as n from S(price > 10)#length(3) "
    "where prev(1, volume) > 0",
    "context K select *, prev(1, price) as p from S#length(3) having prev(1, price) < 50",
]
LIVING = [
    "context Y select sum(price) as s, count(*) as n from S output snapshot when terminated",
    "context Y select symbol, volume, count(*) as n from S(id > 0) group by symbol, volume having count(*) > 1 "
    "output snapshot when terminated",
    "context V select symbol, last(price) as f, count(*) as n from S group by symbol output last when terminated",
    "context V select id, price from S",
    "context E select sum(price) as p, count(*) as n, context.startTime as t, context.endTime as e from S where volume > 0",
    "context B select context.s.symbol as k, context.s.price as p, count(*) as n from S(volume >= 0) having count(*) > 1",
    "context I select context.id as i, count(*) as n, sum(price) as s from S(volume > 0) output snapshot when terminated",
    "context I select *, context.s.id as i from S(price < 60)",
    "context I select symbol, sum(volume) as v from S group by symbol output snapshot when terminated order by sum(volume) desc limit 2",
    "context D select context.s.symbol as k, sum(price) as p, context.s.volume as v from S(symbol = context.s.symbol) "
    "output snapshot when terminated",
    "context D select symbol, price, sum(price) as p from S",
    "context T select context.s.symbol as k, count(*) as n from S(symbol = context.s.symbol)",
    "context T select context.name as m, context.id as i, sum(volume) as v from S output last when terminated",
    "context U select context.s.id as i, stddev(price) as p from S(symbol = context.s.symbol, id = context.s.id)",
    "context W select context.id as i, context.s.price as p, symbol, sum(price) as s from S group by symbol",
]
ASKING = [
    "select symbol, price - (select avg(price) from S(volume<2)#length(3)) as d from S(volume>=1)",
    "select * from S where price > (select avg(price) * 0.5 from S(flag)#time(25 msec))",
    "select id, (select count(*) from S#time(40 msec) where volume > 1) as n, "
    "(select max(price) from S(price < 60)#length(4)) as m from S having id > 0",
    "select symbol, (select sum(volume) from S#unique(symbol)) as u, (select sum(price) from S#sort(2, price)) as s from S",
    "select id from S(volume >= 0) as s where volume in (select volume from S(flag)#length(3))",
    "select id, volume in (select volume from S(price > 1)#time(25 msec) as w where w.symbol = s.symbol and w.id > 0) as a, "
    "symbol not in (select symbol from S#unique(id) as w where w.volume > 1) as b from S as s",
    "select id, id = any (select volume from S#length(4)) as a from S where volume > 0",
    "select id, price > all (select price from S(volume<2)#length(3)) as a, price <= all (select price from S#time(25 msec)) as b, "
    "volume >= all (select volume from S(flag)#length(3)) as c from S",
    "select id, price < any (select price from S(flag)#length(3)) as a, price > some (select price from S#time(25 msec) "
    "where volume > 1) as b, volume >= any (select volume from S#length(2)) as c from S",
    "select id from S as s where exists (select * from S(flag)#length(3) as w where w.symbol = s.symbol and w.volume = s.volume)",
    "select id from S(volume >= 0) as s where not exists (select * from S(volume < 3)#time(25 msec) as w where w.id = s.volume)",
    "select id, exists (select * from S(price > 50)#time(30 msec)) as e from S",
    "select id, exists (select id from S#unique(symbol, id) as w where w.volume = s.volume and w.price > 5) as e from S as s",
    "select id, price - (select price from S(volume < 2)#lastevent) as d, (select symbol from S(flag)#length(2)) as p from S",
    "select id, (select w.price from S(volume < 3)#unique(symbol) as w where w.symbol = s.symbol) as p from S as s",
    "select id, (select w.symbol || '!' from S#unique(id) as w where w.symbol = s.symbol and w.flag) as p from S as s "
    "having price > 3",
    "select id, (select w.volume from S#time(25 msec) as w where s.symbol = w.symbol) as p from S(price > 1) as s",
]
EARLIER = [
    "select symbol, price - prior(1, price) as d from S",
    "select id, prior(2, symbol) as s, prior(0, volume) as v, prior(5, flag) as f from S(volume > 0)",
    "select * from S where price > prior(1, price)",
    "select id from S(flag) where volume > 0 having price > prior(3, price)",
    "select symbol, price - prev(1, price) as d, prev(0, id) as i, prev(4, id) as j from S#length(4)",
    "select symbol, prev(price) as p, prior(5, price) as q from S(price > 3)#length(3) where prev(2, volume) > 0",
    "select prev(2, symbol) as s, prev(3, volume) as v, prior(3, volume) as w from S#time(25 msec)",
    "select * from S(id > 0)#time(40 msec) where price > prev(1, price) having volume > 0",
    "select prev(3, flag) as f, prior(3, flag) as g from S#keepall where id > 0",
    "select prev(1, price) as p from S#length(3) order by price",
    "select istream() as a, symbol from S(price > 3)",
    "select prevwindow(price) as w from S#length(3)",
    "select symbol, prevwindow(symbol) as s, id, prevwindow(flag) as f, prev(1, price) as p from S(price > 3)#length(4) where volume > 0",
    "select prevwindow(volume) as w, prevcount(id) as n from S#groupwin(symbol)#length(2) having prevcount(id) > 1 order by id",
    "select symbol, price - prior(1, price) as d from S output every 3 events",
    "select symbol, prior(2, id) as i from S(price > 3) where prior(1, volume) > 0 output last every 20 msec",
    "select prior(1, price) as p, volume from S output all every 25 msec order by prior(1, price), volume limit 3",
    "select symbol, prior(1, symbol) as t from S having prior(1, price) > 3 output first every 20 msec",
    "select symbol, sum(price - prior(1, price)) as s from S group by symbol output every 3 events",
    "select symbol, avg(price - prior(1, price)) as s from S#length(4) group by symbol output last every 20 msec",
    "select irstream sum(prior(2, volume)) as s from S#time(30 msec) output last every 2 events",
    "select symbol, sum(prior(1, price)) as s from S#length(3) group by symbol output first every 3 events",
    "select symbol, prior(1, price) as p from S output after 3 events every 2 events",
    "select symbol, prior(1, price) as p from S output when count_insert > 2",
    "select symbol, case when istream() then price end as p from S#length(3) having istream() and volume > 0",
    "select symbol, sum(price) as s, not istream() as i from S#time(25 msec) group by symbol output first every 2 events",
    "select symbol, price - prev(1, price) as d from S#groupwin(symbol)#length(3)",
    "select id, prev(2, symbol) as s, prev(0, id) as i, prev(3, id) as j, prior(2, price) as p from S(price > 3)#groupwin(id)#length(3)",
    "select prevcount(price) as n, prevtail(price) as t, prev(1, volume) as v from S#groupwin(flag)#length(4) where prev(1, id) > 0",
    "select prev(2, price) as p, prevtail(id) as t from S#groupwin(symbol)#keepall having prevcount(id) > 1",
    "select symbol, prevcount(price) as n, prevtail(price) as t from S#length(4)",
    "select prevcount(id) as n, prevtail(symbol) as t, prev(2, id) as i from S(volume > 0)#time(30 msec) where prevcount(id) > 1",
    "select prevtail(price) as t, prevcount(price) as n, prior(3, flag) as f from S#keepall",
    "select irstream symbol, prior(2, price) as p from S#length(3)",
    "select rstream symbol, price - prior(1, price) as p from S(volume > 0)#time(25 msec) where prior(1, volume) < 4",
    "select symbol, prior(1, price) as p, sum(price) as s from S#length(4) group by symbol",
    "select symbol, avg(price - prior(1, price)) as d from S#length(4) group by symbol having count(*) > 1",
    "select irstream sum(prior(1, volume)) as s, max(prior(2, price)) as m from S#time(40 msec)",
    "select symbol, prior(3, symbol) as t, count(*) as n from S group by symbol",
    "select sum(price - prior(1, price)) as s from S#keepall",
    "select irstream symbol, prior(1, price) as p from S#length_batch(3) order by prior(1, price) desc limit 2",
    "select symbol, prior(4, symbol) as t, sum(prior(1, price)) as s from S#time_batch(20 msec) group by symbol",
]
JOINS = [
    "select a.symbol as s, a.price as p, b.volume as v from S(volume<2)#time(30 msec) as a, S(volume>=2)#time(60 msec) as b "
    "where a.symbol = b.symbol",
    "select a.id as i, b.id as j, a.price * b.price as x from S#length(3) as a, S(price > 20)#length(5) as b "
    "where a.symbol = b.symbol and a.price > b.price",
    "select a.symbol as s, b.flag as f from S#time(25 msec) as a inner join S(flag)#keepall as b on a.id = b.volume",
    "select a.price as x, b.price as y from S#length(4) as a, S#time(40 msec) as b "
    "where a.symbol = b.symbol and a.volume = b.volume and (a.price > 1 or b.flag) having b.price < 50",
    "select a.symbol as s, b.price as p from S(volume>=2) as a unidirectional, S#unique(symbol) as b where a.symbol = b.symbol",
    "select a.symbol as s, b.price as p from S#length(3) as a left outer join S(flag) as b unidirectional on a.symbol = b.symbol",
    "select a.symbol as s, b.price as p from S as a unidirectional full outer join S(flag)#length(3) as b "
    "on a.symbol = b.symbol and a.price = b.price where a.volume > 0",
    "select irstream a.symbol as s, b.symbol as t, a.id as i, b.id as j from S(volume<2)#length(3) as a full outer join "
    "S(volume>=1)#time(30 msec) as b on a.symbol = b.symbol",
    "select irstream a.id as i, b.id as j, a.price as p, b.price as q from S#time(20 msec) as a full outer join "
    "S(flag)#time(20 msec) as b on a.symbol = b.symbol and a.price = b.price",
    "select rstream a.id as i, b.price as j from S#unique(symbol, volume) as a left outer join S#keepall as b on a.id = b.volume",
    "select irstream a.price - b.price as d from S(volume<2)#lastevent as a, S(volume>=1)#lastevent as b",
    "select irstream a.symbol as k, a.price - b.price as d from S#unique(symbol) as a, S#unique(symbol) as b "
    "where a.symbol = b.symbol",
    "select a.price as x, b.price as y from S(volume<2)#length(4) as a, S(volume>=2)#length(3) as b where a.price > b.price",
    "select a.price as x, b.price as y from S#unique(id) as a right outer join S(volume>=2)#length(3) as b on a.price = b.price",
    "select irstream a.price as x, b.price as y from S#time(15 msec) as a, S#time(30 msec) as b where a.symbol = b.symbol "
    "and a.price > b.price order by a.price desc, b.price limit 2",
    "select irstream distinct a.id as i from S#length(2) as a left outer join S#unique(id, flag) as b on a.id = b.id",
    "select irstream a.id as i, b.id as j from S#sort(3, price) as a left outer join S(volume>=1)#time_batch(20 msec) as b "
    "on a.symbol = b.symbol",
]
FOLDED_JOINS = [
    "select a.symbol as k, sum(b.price) as s, count(*) as n from S(volume<2)#length(4) as a, S(volume>=1)#length(3) as b "
    "where a.symbol = b.symbol group by a.symbol",
    "select irstream sum(a.price) as s, avg(b.volume) as m, count(b.flag) as n from S#time(20 msec) as a, S#unique(symbol) as b "
    "where a.symbol = b.symbol and a.id > b.volume having count(*) != 2",
    "select irstream a.symbol as k, b.volume as v, count(*) as n, stddev(a.price) as d from S(volume>0)#time(30 msec) as a, "
    "S#length(3) as b where a.symbol = b.symbol group by a.symbol, b.volume having count(*) > 1",
    "select irstream a.price as p, b.symbol as t, sum(b.price) as s from S(flag)#length(3) as a, S#time(25 msec) as b "
    "where a.id = b.id group by b.symbol",
    "select a.id as i, count(*) as n from S#lastevent as a, S(volume>0)#length(3) as b",
    "select a.symbol as k, sum(b.price) as p, count(*) as n from S(volume>=2) as a unidirectional, S(volume<4)#length(4) as b "
    "where a.symbol = b.symbol group by a.symbol",
    "select irstream b.id as i, avg(b.price) as p from S as a unidirectional, S(volume<4)#unique(id) as b group by b.id",
    "select irstream sum(b.price) as p, count(*) as n from S as a unidirectional, S(volume<4)#length(3) as b "
    "where a.symbol = b.symbol",
    "select a.id as i, b.id as j, sum(b.price) as p from S as a unidirectional left outer join S(volume<4)#time(20 msec) as b "
    "on a.symbol = b.symbol where a.volume > 0",
    "select distinct a.symbol as k, avg(b.price) as s from S#time(20 msec) as a, S#time(20 msec) as b "
    "where a.symbol = b.symbol group by a.symbol order by avg(b.price) desc",
]
RATED_JOINS = [
    "select a.symbol as k, count(*) as n from S(volume<2)#time(20 msec) as a, S(volume>=1)#time(20 msec) as b "
    "where a.symbol = b.symbol group by a.symbol output last every 20 msec",
    "select irstream a.symbol as k, sum(b.price) as s from S#time(20 msec) as a, S#length(4) as b where a.symbol = b.symbol "
    "group by a.symbol having count(*) > 1 output all every 30 msec",
    "select irstream sum(b.price) as s, count(*) as n from S#time(20 msec) as a, S#unique(id) as b where a.symbol = b.symbol "
    "output last every 10 msec",
    "select a.price as p, b.price as q from S#time(20 msec) as a, S#length(4) as b where a.symbol = b.symbol and a.price > b.price "
    "output every 20 msec",
    "select irstream a.price as p, b.price as q from S#time(20 msec) as a full outer join S#time(30 msec) as b "
    "on a.symbol = b.symbol output every 10 msec",
    "select irstream a.symbol as k, count(*) as n from S#length(3) as a, S#length(4) as b where a.symbol = b.symbol "
    "group by a.symbol output last every 3 events",
    "select irstream a.id as i, b.id as j from S#length(2) as a, S#length(3) as b where a.symbol = b.symbol "
    "output last every 4 events",
    "select b.symbol as k, sum(b.price) as s from S as a unidirectional, S(volume<4)#length(3) as b group by b.symbol "
    "output last every 20 msec",
    "select sum(b.price) as s from S as a unidirectional, S(volume<4)#length(3) as b where a.symbol = b.symbol "
    "output all every 3 events",
    "select a.id as i, b.price as q from S#length(3) as a, S#time(20 msec) as b where a.symbol = b.symbol "
    "output every 20 msec order by b.price limit 3",
]
RATES_LEAVING = [
    "select irstream symbol, price from S#length(3) output every 3 events",
    "select irstream symbol, price from S(price > 3)#time(30 msec) having volume > 0 output all every 20 msec",
    "select irstream symbol, price from S#time(30 msec) output last every 20 msec",
    "select rstream symbol, price from S#length(3) output first every 3 events",
    "select irstream symbol, price, sum(price) as s from S#length(4) group by symbol output every 3 events",
    "select irstream symbol, price, sum(price) as s, max(volume) as m from S#time(30 msec) group by symbol "
    "having sum(price) > 10 output last every 20 msec",
    "select irstream volume, sum(price) as s from S#time(30 msec) output all every 4 events",
    "select irstream symbol, sum(price) as s from S#length(3) output last every 2 events",
    "select irstream symbol, sum(price) as s from S#length(3) output first every 20 msec",
    "select irstream * from S output last every 3 events",
]
RATES_OF_BATCHES = [
    "select symbol, sum(price) as s from S#time_batch(25 msec) group by symbol output last every 40 msec",
    "select irstream symbol, sum(price) as s, count(*) as n from S#length_batch(3) group by symbol output all every 20 msec",
    "select irstream sum(price) as s, count(*) as n from S#time_batch(20 msec) output last every 30 msec",
    "select sum(price) as s from S#length_batch(3) output snapshot every 20 msec",
    "select irstream symbol, price from S#time_batch(15 msec) output every 4 events",
    "select * from S#length_batch(3) output last every 20 msec",
    "select irstream symbol, price from S#length_batch(2) output first every 3 events",
]
FIRST_IN_TIME = [
    "select sum(price) as s from S#time(30 msec) output first every 20 msec",
    "select irstream sum(price) as s, count(*) as n from S#time(20 msec) having count(*) != 1 output first every 10 msec",
    "select rstream symbol, price from S#time(30 msec) output first every 15 msec",
    "select irstream symbol, price from S(price > 3)#time(25 msec) where volume > 0 output first every 5 msec",
    "select symbol, price, max(price) as m from S#time(30 msec) output first every 30 msec",
    "select sum(price) as s from S#time_batch(20 msec) output first every 3 events",
    "select irstream sum(price) as s from S#time_batch(10 msec) output first every 20 msec",
    "select irstream symbol, price from S#time_batch(20 msec) output first every 10 msec",
    "select symbol, sum(price) as s from S#time_batch(20 msec) group by symbol output first every 3 events",
    "select symbol, count(*) as n from S#time_batch(15 msec) group by symbol output first every 30 msec",
    "select irstream symbol, price from S#time(30 msec)#unique(symbol) output first every 10 msec",
    "select irstream sum(price) as s from S#time(25 msec)#length(3) output first every 20 msec",
]
FIRST_OF_GROUPS = [
    "select symbol, sum(price) as s from S#length(3) group by symbol output first every 25 msec",
    "select symbol, max(price) as m, count(*) as n from S#length(4) group by symbol output first every 3 events",
    "select symbol, id, sum(volume) as s from S#length(3) group by symbol, id having sum(volume) > 1 output first every 2 events",
    "select symbol, sum(price) as s from S(volume > 0)#time(30 msec) group by symbol output first every 20 msec",
    "select symbol, min(price) as s from S#time(40 msec) where price > 1 group by symbol having count(*) < 3 "
    "output first every 2 events",
    "select symbol, sum(price) as s, count(*) as n from S#length_batch(4) group by symbol output first every 2 events",
    "select symbol, count(*) as n from S#length_batch(3) group by symbol having count(*) != 1 output first every 30 msec",
    "select symbol, price from S#length(3) group by symbol output first every 2 events",
    "select symbol, price, id from S#length_batch(4) group by symbol output first every 2 events",
    "select symbol, volume, sum(volume) as s from S#length_batch(3) group by symbol having sum(volume) > 0 output first every 1 events",
    "select symbol, price, sum(price) as s from S#time(25 msec) group by symbol having sum(price) > 1 output first every 30 msec",
    "select price, max(volume) as m from S#time(30 msec) group by symbol, flag output first every 2 events",
]
RATES = [
    "select symbol, price from S(price > 20) having volume > 0 output every 3 events",
    "select symbol, price from S(price > 20) having volume > 0 output all every 25 msec",
    "select * from S output last every 4 events",
    "select symbol, price * 2 as x from S where volume > 0 output last every 10 msec",
    "select symbol, price from S having volume > 1 output first every 3 events",
    "select symbol, price from S having volume > 1 output first every 30 msec",
    "select symbol, price, sum(price) as s from S#length(4) group by symbol output every 3 events",
    "select symbol, price, sum(price) as s from S#length(4) group by symbol having sum(price) > 10 output last every 20 msec",
    "select symbol, price, sum(price) as s from S#time(30 msec) output all every 3 events",
    "select symbol, price, count(*) as n from S group by symbol output first every 3 events",
    "select symbol, price, sum(price) as s from S#length(4) output first every 20 msec",
    "select sum(price) as s, count(*) as n from S#length(5) having count(*) > 2 output every 20 msec",
    "select irstream sum(price) as s from S#time(25 msec) output all every 3 events",
    "select irstream sum(price) as s from S#time(25 msec) having count(*) > 1 output last every 20 msec",
    "select rstream sum(volume) as s from S#length(3) output last every 2 events",
    "select sum(price) as s from S#time(40 msec) having count(*) != 2 output snapshot every 15 msec",
    "select irstream avg(price) as s from S#length(3) having count(*) < 3 output first every 3 events",
    "select rstream avg(price) as s from S#time(30 msec) having count(*) < 3 output first every 4 events",
    "select symbol, sum(price) as s from S#length(4) group by symbol output every 3 events",
    "select irstream symbol, sum(price) as s from S#time(30 msec) group by symbol having count(*) < 3 output every 5 events",
    "select irstream symbol, sum(price) as s from S#time(30 msec) group by symbol having count(*) < 3 output last every 20 msec",
    "select symbol, flag, sum(price) as s from S#length(5) group by symbol, flag output last every 4 events",
    "select irstream symbol, sum(price) as s from S#length(4) group by symbol having count(*) > 1 output all every 25 msec",
    "select symbol, avg(price) as s from S#time(30 msec) group by symbol output all every 3 events",
    "select symbol, avg(price) as s from S#time(50 msec) group by symbol output snapshot every 20 msec",
    "select symbol, sum(price) as s from S#length(4) group by symbol having count(*) > 1 output snapshot every 3 events",
    "select symbol, count(*) as n from S group by symbol output snapshot every 4 events",
    "select symbol, sum(price) as s from S#unique(id) group by symbol output last every 20 msec",
    "select symbol, count(*) as n from S#keepall group by symbol having count(*) > 1 output first every 25 msec",
    "select symbol, id, count(*) as n from S group by symbol, id output first every 2 events",
    *FIRST_OF_GROUPS,
    *FIRST_IN_TIME,
]
RATES_AFTER = [
    "select symbol, price from S output after 4 events every 3 events",
    "select symbol, price from S(price > 3) having volume > 0 output after 30 msec all every 20 msec",
    "select symbol, price from S output after 3 events all every 20 msec order by price, symbol",
    "select * from S output after 40 msec last every 3 events",
    "select irstream symbol, price from S#length(3) output after 4 events every 2 events",
    "select irstream symbol, price from S#time(30 msec) output after 60 msec every 2 events",
    "select symbol, price, sum(price) as s from S#length(3) group by symbol output after 4 events every 3 events",
    "select irstream symbol, sum(price) as s from S#time(25 msec) group by symbol output after 30 msec last every 20 msec",
    "select symbol, sum(price) as s from S#time(25 msec) group by symbol having count(*) < 3 "
    "output after 20 msec last every 2 events",
    "select symbol, count(*) as n from S#length(4) group by symbol output after 3 events last every 3 events",
    "select symbol, sum(volume) as s from S#unique(id) group by symbol output after 50 msec all every 20 msec",
    "select symbol, avg(price) as s from S#time(50 msec) group by symbol output after 3 events snapshot every 20 msec",
    "select irstream sum(price) as s from S#time(25 msec) output after 30 msec every 20 msec",
    "select irstream sum(price) as s from S#length_batch(3) output after 4 events last every 20 msec",
    "select irstream symbol, price from S#time_batch(15 msec) output after 3 events every 4 events",
]
AFTER = [
    "select symbol, price * 2 as x from S(price > 3) output after 3 events",
    "select * from S having volume > 0 output after 2 events",
    "select symbol from S output after 50 msec",
    "select symbol, sum(price) as s from S#length(3) group by symbol output after 4 events",
    "select irstream symbol, sum(price) as s from S#time(25 msec) group by symbol having count(*) < 3 output after 3 events",
    "select rstream symbol, count(*) as n from S#unique(id) group by symbol output after 3 events",
    "select irstream symbol, price from S#time(30 msec) output after 40 msec",
    "select rstream symbol, price from S#length(3) output after 3 events",
    "select symbol, price, sum(price) as s from S#time(40 msec) group by symbol output after 5 events",
    "select irstream sum(price) as s from S#time_batch(20 msec) output after 2 events",
    "select symbol, volume from S#length_batch(3) output after 4 events order by volume limit 2",
    "select irstream symbol, prior(2, price) as p from S#length(3) output after 2 events",
    "select symbol, price - prev(1, price) as d from S#time(25 msec) output after 20 msec",
    "select irstream symbol, flag, sum(price) as s from S#time(25 msec) group by rollup(symbol, flag) output after 30 msec",
    "select symbol, volume, count(*) as n from S#length(4) group by cube(symbol, volume) output after 10 events",
]
RATES_WHEN = [
    "select symbol, price from S output when count_insert >= 3",
    "select symbol, price from S(price > 20) having volume > 0 output last when count_insert_total > 5",
    "select irstream symbol, price from S#length(3) output when count_remove > 1 or count_insert = 2",
    "select irstream symbol, price from S#time(30 msec) output all when count_remove >= 2 and count_insert > 0",
    "select symbol, sum(price) as s from S#length(4) group by symbol output last when count_insert >= 3",
    "select irstream symbol, sum(price) as s from S#time(25 msec) group by symbol output all when count_remove = 1",
    "select irstream sum(price) as s, count(*) as n from S#time(25 msec) having count(*) != 2 output last when count_remove_total > 2",
    "select symbol, price, max(price) as m from S#length(3) group by symbol output when not (count_insert < 2)",
    "select symbol, count(*) as n from S#time(40 msec) group by symbol output snapshot when count_insert >= 3 and count_insert <= 4",
    "select symbol, sum(volume) as s from S#unique(id) group by symbol output after 3 events last when count_insert > 1",
    "select irstream sum(price) as s from S#time_batch(20 msec) output last when count_insert + count_remove > 2",
    "select symbol, volume from S output when count_insert > 2 order by volume, symbol",
    "select symbol, sum(price) as s from S#time(40 msec) group by symbol output last when last_output_timestamp < 100 order by s",
]
RATES_AT = [
    "select symbol, price from S(price > 20) output at (*, *, *, *, *, *)",
    "select symbol, sum(price) as s from S#length(4) group by symbol output last at (*, *, *, *, *, *)",
    "select irstream symbol, count(*) as n from S#time(700 msec) group by symbol output all at (*, *, *, *, *, *)",
    "select irstream sum(price) as s from S#time(400 msec) output after 3 events last at (*, *, *, *, *, [1, 3, 4])",
    "select symbol, count(*) as n from S#time(900 msec) group by symbol output snapshot at (*, *, *, *, *, */2)",
    "select symbol, price, max(price) as m from S#length(3) group by symbol output at (*, *, *, *, *, *) order by price, symbol",
]
HELD = [
    "select irstream symbol, price from S#length(3)",
    "select irstream * from S(price > 3)#time(30 msec) where volume > 0",
    "select rstream symbol, price * 2 as x from S#time(25 msec) having volume > 1",
    "select id from S#length(4) having price > 1",
    "select irstream symbol, price, sum(price) as s, max(volume) as m from S#length(3) group by symbol",
    "select rstream symbol, price, avg(price) as s, min(price) as m from S#time(30 msec)",
    "select symbol, price from S#length_batch(3)",
    "select irstream symbol, price, sum(price) as s, min(volume) as m from S#length_batch(3) group by symbol",
    "select irstream sum(price) as s, max(price) as m, count(*) as n from S#length_batch(4) having count(*) > 3",
    "select irstream symbol, sum(price) as s, min(price) as m from S(volume > 0)#length_batch(3) group by symbol",
    "select rstream symbol, id, count(*) as n from S#length_batch(4) group by symbol, id having count(*) > 1",
    "select irstream * from S#time_batch(20 msec)",
    "select symbol, avg(price) as s, max(price) as m from S(price > 2)#time_batch(20 msec) group by symbol",
    "select irstream sum(price) as s, count(*) as n from S#time_batch(30 msec)",
    "select irstream symbol, volume, sum(volume) as s from S#time_batch(25 msec, 7L) group by symbol",
    "select irstream symbol, stddev(price) as s from S#time_batch(40 msec) group by symbol having count(*) < 3",
]
FINISHED = [
    "select symbol, price from S#length_batch(5) order by price desc, symbol limit 3",
    "select irstream symbol, sum(price) as s from S#time_batch(20 msec) group by symbol order by sum(price) desc limit 2",
    "select * from S#length_batch(4) order by flag, volume desc",
    "select distinct symbol from S#length_batch(5)",
    "select distinct price, flag from S#time_batch(30 msec) order by volume limit 4",
    "select symbol, volume from S#time_batch(25 msec) order by id limit 2 offset 1",
    "select symbol, count(*) as n from S#time(40 msec) group by symbol order by count(*) desc, symbol",
    "select irstream symbol, avg(price) as a from S#time(30 msec) group by symbol having count(*) > 1 order by avg(price)",
    "select irstream symbol, price from S#time(30 msec) order by price desc limit 1",
    "select a.id as i, b.id as j, a.price as p from pattern [every a=S -> b=S(symbol=a.symbol, volume > 1) "
    "where timer:within(120 msec)] order by a.price desc, b.id limit 2",
    "select a.price as x, b.volume as y from S#length(4) as a, S#time(40 msec) as b where a.symbol = b.symbol order by b.price",
    "select distinct a.id as x, b.id as y from S#length(5) as a, S(volume > 0)#length(5) as b where a.symbol = b.symbol limit 3",
    "select symbol, sum(price) as s from S#time(60 msec) group by symbol output snapshot every 20 msec "
    "order by sum(price) desc limit 2",
    "select symbol, price, volume from S output every 25 msec order by volume desc, price limit 3",
    "select distinct symbol from S(price > 3) output every 5 events order by symbol",
    "select irstream symbol, sum(volume) as s, count(*) as n from S#length(4) group by symbol output every 4 events "
    "order by count(*), symbol desc",
    "select distinct symbol, volume from S output last every 20 msec limit 2",
    "select symbol, sum(price) as s from S#length(5) group by symbol output last every 20 msec limit 2",
    "select symbol, count(*) as n from S group by symbol output all every 30 msec limit 2 offset 1",
    "select symbol, price from S output first every 3 events order by price",
    "select symbol from S output last every 3 events order by symbol",
    "select symbol, sum(price) as s from S#length(4) group by symbol output last every 20 msec order by symbol",
    "select irstream symbol, count(*) as n from S#time(30 msec) group by symbol having count(*) < 3 output last every 3 events "
    "order by count(*) desc limit 2",
    "select symbol, volume, sum(price) as s from S#unique(symbol) group by symbol, volume output all every 20 msec "
    "order by sum(price), symbol",
    "select irstream sum(price) as s from S#time(25 msec) output last every 20 msec order by sum(price)",
    "select symbol, price, sum(price) as s from S#length(3) output all every 20 msec order by price desc limit 3",
    "select symbol, price, max(price) as m from S#length(3) group by symbol output last every 3 events order by max(price), symbol",
]
CARRIED = "S(id is not null)#ext_timed(id, 2 msec)"
IN_ORDER = [
    f"select irstream symbol, price from {CARRIED}",
    f"select symbol, sum(price) as s from {CARRIED} where volume > 0 group by symbol",
    f"select irstream symbol, price, max(price) as s, median(price) as m from {CARRIED} group by symbol having count(*) > 1",
    f"select irstream sum(price) as s from {CARRIED} having count(*) > 1",
    "select sum(price) as s from S(volume is not null)#ext_timed(volume * 2 + 1, 2 msec)",
    "select irstream symbol, price from S#ext_timed(current_timestamp, 20 msec)",
    "select irstream symbol, sum(price) as s from S(id is not null)#ext_timed_batch(id, 2 msec) group by symbol",
    "select * from S(volume is not null)#ext_timed_batch(volume, 2 msec, 1L) where price > 3",
    "select irstream sum(price) as s, count(*) as n from S#ext_timed_batch(current_timestamp, 20 msec)",
    "select irstream symbol, price from S#time_accum(10 msec)",
    "select irstream symbol, sum(price) as s, min(price) as m from S#time_accum(30 msec) where volume > 1 group by symbol",
    "select irstream sum(price) as s from S#time_length_batch(10 msec, 3)",
    "select irstream symbol, price, sum(price) as s from S(volume > 0)#time_length_batch(30 msec, 4) where price > 3",
    "select symbol, sum(price) as s, count(*) as n from S#time_length_batch(20 msec, 2) group by symbol",
    "select irstream symbol, price from S#firstlength(3)",
    "select irstream sum(price) as s from S#firstlength(4) where volume > 1 having count(*) != 2",
    "select symbol, price, sum(price) as s from S#firstevent group by symbol",
    "select irstream symbol, sum(price) as s from S#firsttime(20 msec) group by symbol",
    "select irstream * from S(id > 0)#firsttime(40 msec) where volume > 1",
]
BY_CONDITION = [
    "select sum(price) as s from S#expr(current_count <= 3)",
    "select irstream symbol, price from S#expr(sum(price) < 100)",
    "select irstream symbol, price, max(price) as m from S#expr(newest_timestamp - oldest_timestamp < 20) where volume > 1 "
    "group by symbol",
    "select irstream symbol, sum(price) as s from S#expr(newest_event.price > oldest_event.price or max(volume) > 3 and "
    "newest_event.id is not null) group by symbol having count(*) > 1",
    "select irstream symbol from S#expr(not (min(price) / 2 > 3 and current_count * 2 - 1 > 4) and "
    "(newest_event.volume * 2 < 8 or expired_count < 2))",
    "select irstream symbol, price, sum(price) as s from S(volume > 0)#expr(not (avg(volume) > 3 or min(price) is null))",
    "select sum(price) as s from S#expr_batch(current_count >= 3)",
    "select irstream symbol, price from S#expr_batch(sum(price) > 100, false)",
    "select irstream * from S#expr_batch(newest_event.id != oldest_event.id, false) where price > 3",
    "select symbol, count(*) as n from S#expr_batch(avg(price) > 40 or expired_count > 2 or median(price) < 3 or "
    "count(distinct volume) > 2) group by symbol",
    "select irstream sum(price) as s from S#expr_batch(newest_event.volume / oldest_event.volume > 1)",
]
EARLIER_IN_ORDER = [
    f"select irstream symbol, prior(1, price) as p, prior(2, id) as q from {CARRIED}",
    f"select symbol, sum(prior(1, price)) as s from {CARRIED} where prior(1, volume) > 1 group by symbol",
    "select symbol, prior(1, price) as p from S(id is not null)#ext_timed_batch(id, 2 msec)",
    "select irstream symbol, prior(1, price) as p from S#ext_timed(current_timestamp, 20 msec)",
    "select symbol, sum(prior(1, price)) as s from S#expr(sum(price) < 100) where prior(2, volume) > 1 group by symbol",
    "select prior(1, price) as p, symbol from S#firstlength(3)",
    "select irstream prior(2, price) as p, sum(volume) as s from S#time_length_batch(20 msec, 3)",
    "select symbol, prior(1, price) as p, sum(price) as s from S#ext_timed_batch(current_timestamp, 10 msec) group by symbol",
]
BEHIND = [
    "select irstream symbol, prior(1, price) as p from S#length_batch(3) where prior(1, volume) > 1",
    "select symbol, sum(price - prior(1, price)) as s from S#length(3) where volume > 1 group by symbol",
    "select a.symbol as s, sum(b.price) as p from pattern [every a=S(volume < 2) -> b=S(symbol=a.symbol)]#length(2) "
    "where b.price > 3 group by a.symbol",
    "select irstream symbol, price from S#length(2) where volume > 1",
    "select sum(price) as s from S#length(3) where price > 3",
    "select irstream symbol, sum(price) as s, max(price) as x, median(price) as m, count(distinct id) as n from S#length(4) "
    "where volume > 1 group by symbol",
    "select irstream symbol, price, sum(price) as s, first(price) as f from S#length(4) where volume > 1",
    "select symbol from S#length_batch(3) where price > 1",
    "select irstream symbol, count(*) as n, avedev(price) as d from S#time_batch(20 msec) where volume > 1 group by symbol",
    "select irstream sum(price) as s, last(price) as l from S#length_batch(3) where volume > 2",
]
RATES_IN_ORDER = [
    "select irstream symbol, price from S#expr(sum(price) < 100) output every 3 events",
    "select symbol, sum(price) as s from S#expr(current_count < 4) group by symbol output snapshot every 20 msec",
    "select irstream symbol, sum(price) as s from S#expr_batch(sum(price) > 60) group by symbol output last every 20 msec",
    "select symbol, sum(price) as s from S#expr(current_count < 4) group by symbol output first every 2 events",
    f"select irstream symbol, price from {CARRIED} output every 3 events",
    f"select irstream symbol, price, sum(price) as s from {CARRIED} group by symbol output every 3 events",
    f"select symbol, sum(price) as s from {CARRIED} group by symbol output last every 20 msec",
    f"select irstream symbol, sum(price) as s from {CARRIED} group by symbol output snapshot every 3 events",
    f"select symbol, sum(price) as s from {CARRIED} group by symbol output snapshot every 20 msec",
    f"select symbol, sum(price) as s from {CARRIED} group by symbol output first every 2 events",
    f"select sum(price) as s from {CARRIED} output first every 20 msec",
    "select symbol, sum(price) as s from S(id is not null)#ext_timed_batch(id, 2 msec) group by symbol "
    "output first every 2 events",
    "select symbol, sum(price) as s from S#time_accum(30 msec) group by symbol output snapshot every 20 msec",
    "select irstream symbol, sum(price) as s from S#time_accum(30 msec) group by symbol output last every 20 msec",
    "select irstream symbol, price from S#time_accum(20 msec) output first every 3 events",
    "select sum(price) as s from S#time_accum(10 msec) output first every 20 msec",
    "select irstream sum(price) as s from S#time_length_batch(10 msec, 3) output first every 20 msec",
    "select symbol, sum(price) as s from S#time_length_batch(20 msec, 3) group by symbol output first every 25 msec",
    "select irstream symbol, sum(price) as s from S#time_length_batch(30 msec, 3) group by symbol output all every 20 msec",
    "select symbol, sum(price) as s from S#firstlength(4) group by symbol output snapshot every 20 msec",
    "select symbol, price from S#firstlength(7) having volume > 0 output every 2 events",
    "select symbol, price, sum(price) as s from S#firstlength(7) group by symbol output every 3 events",
    "select symbol, sum(price) as s from S#firsttime(40 msec) group by symbol output first every 2 events",
    "select irstream symbol, price, sum(price) as s from S#length(4) where volume > 1 group by symbol output every 3 events",
    "select irstream sum(price) as s from S#length(4) where volume > 1 output first every 30 msec",
    "select sum(price) as s from S#length(4) where volume > 1 output last every 3 events",
    "select irstream symbol, sum(price) as s from S#length_batch(4) where volume > 1 group by symbol output last every 20 msec",
]
LONGS = [
    "select sum(id) as s, avg(id) as a, sum(cast(price * 1e17, long)) as b from S#length(3)",
    "select irstream symbol, sum(cast(price * 1e17, long)) as s, avg(cast(price * 1e17, long)) as a from S#time(25 msec) "
    "group by symbol having sum(id) > 0",
    "select symbol, sum(cast(price * -1e17, long)) as s, avg(id) as a from S group by symbol",
    "select volume, sum(cast(price * 1e18, long), filter: volume > 1) as s from S#keepall",
    "select sum(distinct id) as s, avg(distinct cast(price * 1e18, long)) as a from S#length(4)",
    "select symbol, avg(cast(price * 1e17, long)) as a from S#unique(volume) group by symbol",
    "select sum(cast(price * 1e17, long)) as s, avg(id) as a from S#length_batch(3) order by s",
    "select symbol, volume, sum(cast(price * 1e17, long)) as s from S#length(3) group by rollup(symbol, volume)",
    "select sum(cast(price * 1e17, long)) as s from S#length(4) output last every 20 msec",
    "select avg(id) as a, count(*) as n from S#expr(sum(id) < 5)",
    "select avg(id) as a from S#expr(sum(cast(price * 1e18, long)) >= 0)",
    "select a.symbol as k, sum(b.id) as s from S#length(3) as a, S#length(4) as b where a.volume = b.volume group by a.symbol",
    "context C select sum(cast(price * 1e17, long)) as s from S#length(3)",
    "select id, (select sum(cast(price * 1e17, long)) from S#length(3)) as s from S",
]
"""Sums of longs, which wrap."""
EXTREMES_OF_LONGS = [
    "select irstream symbol, max(id) as a, min(cast(price * 1e17, long)) as b from S#time(25 msec) group by symbol",
    "select max(cast(price * -1e17, long)) as a, min(id, filter: volume > 1) as b from S#length(3) having max(id) > 0",
]
EVER_IN_WINDOWS = [
    "select maxever(price) as m, countever(*) as n, minever(id) as i, sum(price) as s from S#length(3)",
    "select irstream firstever(price) as f, lastever(volume) as l, countever(price) as n from S#time(25 msec)",
    "select maxever(price) as m, countever(*) as n from S#length_batch(3)",
    "select symbol, maxever(price) as m, countever(volume) as n from S#length(3)",
    "select lastever(price) as l, countever(*) as n from S#unique(volume)",
    "select symbol, id, maxever(price) as m, countever(*) as n from S#time(25 msec) group by symbol, id",
    "select symbol, minever(volume) as m, firstever(price) as f from S#sort(3, price) group by symbol",
    "select maxever(price) as m, countever(*) as n from S#time(25 msec) where volume > 1 output last every 20 msec",
]
"""Over windows all that ever came."""
LOOKED_UP = [
    "select maxby(price).symbol as s, minby(price).price + 1 as m, minby(volume desc).id as i from S#length(4)",
    "select irstream symbol, max(symbol) as a, min(symbol, filter: volume > 1) as b, first(flag) as f, last(symbol) || '!' as l "
    "from S#time(30 msec) group by id, symbol having maxby(price, volume desc).id > 0",
    "select irstream price, maxby(id).price as p, first(*).symbol as f, last(*, 1).flag as l from S#length(3) where volume > 0",
    "select maxby(symbol, price desc).volume as v, nth(symbol, 1) as n, first(symbol, 2) as f from S#length_batch(3) "
    "order by nth(symbol, 1) desc",
    "select irstream symbol, last(symbol) as l, minby(price).id as m from S#groupwin(symbol)#length(2) group by symbol",
    "select symbol, first(symbol) as f, last(*).price as p from S#unique(id)",
    "select symbol, maxby(price).id as i, max(symbol) as m from S#time(30 msec) group by symbol output last every 20 msec",
    "select max(symbol) as m, minby(price).symbol as s from S#length(3) output snapshot every 20 msec",
    "select irstream symbol, minby(price).symbol as s, last(symbol) as l from S#time(25 msec) output every 3 events",
    "select symbol, maxby(price).id as i from S#length(3) group by symbol output first every 2 events",
    "select irstream symbol, volume, max(symbol) as m, maxby(price).id as i from S#length(3) group by rollup(symbol, volume)",
    "select max(symbol, group_by: volume) as m, maxby(price, group_by: symbol).id as i, sum(price) as s from S#length(4)",
    "select sorted(price).firstEvent().symbol as f, sorted(volume desc).lastKey() as k, sorted(price, id).maxBy().id as m "
    "from S#length(3)",
    "context C select max(symbol) as m, maxby(price).id as i, last(flag) as l from S#length(3)",
    "select window(price) as w, window(symbol) as s, sum(price) as p from S#length(3)",
    "select irstream symbol, window(price) as w, count(*) as n from S#length(4) where volume > 1 group by symbol having count(*) < 3",
    "select irstream id, window(flag) as w from S#length(3) group by symbol",
    "select irstream symbol, window(id) as w, maxby(price).id as i from S#time_batch(20 msec) group by symbol",
    "select irstream symbol, window(price) as w from S#groupwin(symbol)#length(2) group by symbol output every 3 events",
    "select window(volume) as w, max(symbol) as m from S#length(3) output last every 20 msec",
    "select window(*).where(x => x.price > 20).sumOf(x => x.price) as s, window(*).countOf(x => x.volume > 1) as n, "
    "window(price).average() as a from S#length(4)",
    "select irstream symbol, window(*).where(x => x.flag).where(x => x.volume > 0).max(x => x.id) as m, window(*).anyOf(x => x.flag) "
    "as o, window(volume).sumOf() + 1 as s from S#time(30 msec) group by symbol having window(*).allOf(x => x.price < 90)",
    "select symbol, window(*).average(x => x.volume) as a, window(price).min() as l, window(symbol).countOf() as c "
    "from S#length_batch(3) where volume > 0 output last every 3 events",
    "select window(*).min(x => x.price) as m, window(*).countOf(x => x.symbol = 'a') as n, window(id).max() as i from S#length(3) "
    "output snapshot every 20 msec",
    "context C select symbol, window(*).sumOf(x => x.volume) as s from S#groupwin(id)#length(2) group by id",
    "select window(price, group_by: symbol).sumOf() as s, window(*, group_by: id).countOf() as n from S#length(4)",
    "select max(a.symbol) as m, last(b.symbol) as l from pattern [every a=S -> b=S(id=a.id)]#length(3)",
]
"""Aggregates whose value is looked up in a row."""
COVERED = [
    *LOOKED_UP,
    *EXTREMES_OF_LONGS,
    *EVER_IN_WINDOWS,
    *LONGS,
    *IN_ORDER,
    *BY_CONDITION,
    *EARLIER_IN_ORDER,
    *BEHIND,
    *RATES_IN_ORDER,
    *FINISHED,
    *KEYED_WINDOWS,
    *FILTERS,
    *WINDOWS,
    *NUMBERS,
    *SIZES,
    *BESIDE,
    *MOVING,
    *BY_KEY,
    *UNTIL,
    *SEVERAL_WINDOWS,
    *KEPT,
    *LEAVING,
    *PATTERNS,
    *KEYED,
    *EACH,
    *LIVING,
    *ASKING,
    *EARLIER,
    *JOINS,
    *FOLDED_JOINS,
    *RATED_JOINS,
    *RATES,
    *HELD,
    *RATES_LEAVING,
    *RATES_OF_BATCHES,
    *RATES_AFTER,
    *AFTER,
    *RATES_WHEN,
]

Event = tuple[int, tuple[Any, ...]]
prices = st.one_of(st.none(), st.sampled_from([0.1, 0.2, 0.3, 1e16, -0.0, 45.0, 55.5]), st.floats(0, 100))
values = st.tuples(
    st.sampled_from(["a", "b", "c", None, "ü"]),
    prices,
    st.one_of(st.none(), st.integers(-1, 5), st.just(2**31 - 1)),
    st.one_of(st.none(), st.booleans()),
    st.one_of(st.none(), st.integers(0, 3)),
)
gaps = st.sampled_from([0, 0, 1, 1, 3, 10, 30, 120])
steps = st.lists(st.tuples(gaps, values), max_size=40)
cuts = st.lists(st.integers(0, 40), max_size=6)


@cache
def lowered(text: str) -> tuple[Any, Any, RowType]:
    """The plan of a statement, the context it may use, and its stream's type."""
    seen: list[Any] = []
    component = Component()
    deployer = Deployer(component)
    deployer.deploy(SCHEMA)
    deployer.deploy(CONTEXT)
    deploy = component.deploy

    def kept(name: str, plan: Any, context: str | None = None, start: bool = True) -> None:
        seen.append(plan)
        deploy(name, plan, context, start)

    component.deploy = kept  # type: ignore[method-assign]
    deployer.deploy(text, "statement")
    context = component.contexts[text.split()[1]].context if text.startswith("context") else None
    return seen[0], context, deployer.catalog.types["S"]


def core(text: str) -> Core:
    """The core that covers a statement."""
    plan, context, stream = lowered(text)
    found = core_of(plan, {"S": stream}, context)
    assert not isinstance(found, str), f"{text}: {found}"
    return found


def by_rows(text: str, events: list[Event], end: int) -> list[Any]:
    """What the row executor delivers."""
    plan, context, _ = lowered(text)
    component = Component()
    if context is not None:
        component.create_context(context)
    component.deploy("statement", plan, None if context is None else context.name)
    for at, row in events:
        component.runner.advance_span(at)
        component.runner.send("S", row)
    component.runner.advance_span(end)
    return [
        (each.at, sign, tuple(_bits(value) for value in row.values))
        for each in component.runner.deliveries
        for sign, rows in ((1, each.delta.new), (-1, each.delta.old))
        for row in rows
    ]


def by_columns(text: str, events: list[Event], end: int, batches: list[int], keep: bool) -> list[Any]:
    """What the core delivers; the batches end at these places, and a snapshot goes through a file between them."""
    found = core(text)
    finishing = Finishing.of(lowered(text)[0].finish)
    state, out = found.start(0), []
    for begin, stop in _spans(batches, len(events)):
        part = events[begin:stop]
        last = stop == len(events)
        columns = [pa.array([row[i] for _, row in part], kind) for i, kind in enumerate(KINDS)]
        batch = Batch.of(columns, [at for at, _ in part], end if last else None, "S")
        if keep:
            state, found = reread(state), core(text)
        state, output = found.step(state, batch)
        output = (output if finishing is None else finishing.finished(output)).delivered
        out += [
            (at, sign, tuple(map(_bits, row)))
            for at, _, new, old in output.deliveries()
            for sign, rows in ((1, new), (-1, old))
            for row in rows
        ]
    return out


def _spans(batches: list[int], n: int) -> Iterator[tuple[int, int]]:
    places = sorted({0, *(min(place, n) for place in batches), n})
    yield from pairwise(places) if n else [(0, 0)]


def _bits(value: Any) -> Any:
    """A value that equals only itself, to the last bit of a double."""
    if isinstance(value, Row):
        return tuple(_bits(each) for each in value.values)
    if isinstance(value, dict):
        return tuple(_bits(each) for each in value.values())
    if isinstance(value, list):
        return tuple(map(_bits, value))
    return struct.pack("<d", value) if isinstance(value, float) else value


def timed(found: list[tuple[int, tuple[Any, ...]]]) -> list[Event]:
    """Events at their instants."""
    at, out = 0, list[Event]()
    for gap, row in found:
        at += gap
        out.append((at, row))
    return out


@pytest.mark.parametrize("text", COVERED, ids=range(len(COVERED)))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(found=steps, batches=cuts, keep=st.booleans(), rest=gaps)
def test_a_core_delivers_what_the_row_executor_delivers(text: str, found: Any, batches: Any, keep: bool, rest: int):
    events = timed(found)
    end = (events[-1][0] if events else 0) + rest
    assert by_columns(text, events, end, batches, keep) == by_rows(text, events, end)


@pytest.mark.parametrize("text", RATES_AT)
@settings(max_examples=40, deadline=None)
@given(found=steps, batches=cuts, keep=st.booleans(), rest=gaps)
def test_outputs_by_a_schedule_show_what_those_of_the_row_executor_show(
    text: str, found: Any, batches: Any, keep: bool, rest: int
):
    events = timed([(25 * gap, row) for gap, row in found])
    end = (events[-1][0] if events else 0) + 25 * rest
    assert by_columns(text, events, end, batches, keep) == by_rows(text, events, end)


@pytest.mark.parametrize(
    "text",
    [
        "select irstream max(price) as x, min(price) as y from S#length(3)",
        "select symbol, max(price) as x, min(price) as y from S#time(25 msec) group by symbol",
        "select symbol, count(*) as n from S#sort(2, price desc) group by symbol",
        "select symbol, count(*) as n from S#sort(2, price) group by symbol",
        "select window(price).max() as x, window(*).min(x => x.price) as y, window(price).sumOf() as s from S#length(3)",
        "select maxby(price).id as a, minby(price, id desc).symbol as b from S#length(3)",
        *(
            f"select id, price {sign} {which} (select price from S(volume < 4)#length(3)) as b from S"
            for sign, which in (("<", "all"), (">=", "all"), ("<=", "any"), (">", "any"))
        ),
    ],
)
@settings(max_examples=40, deadline=None)
@given(found=st.lists(st.tuples(gaps, values, st.booleans()), max_size=30), batches=cuts, keep=st.booleans())
def test_nan_is_above_all_numbers(text: str, found: Any, batches: Any, keep: bool) -> None:
    events = timed([(gap, (row[0], math.nan if none else row[1], *row[2:])) for gap, row, none in found])
    end = events[-1][0] if events else 0
    assert by_columns(text, events, end, batches, keep) == by_rows(text, events, end)


FAMILY = [
    *(f"select * from S(symbol = '{value}')" for value in ("a", "c", "a", "z")),
    "select symbol, price * volume as n from S(symbol = 'a', price > 30)",
    "select symbol, price * volume as n from S(symbol = 'b', price > 30)",
    "select symbol from S(id = 2)",
]


@settings(max_examples=60, deadline=None)
@given(found=steps, batches=cuts)
def test_a_family_delivers_what_each_of_its_statements_delivers(found: Any, batches: Any):
    events = timed(found)
    alone = {f"s{i}": core(text) for i, text in enumerate(FAMILY)}
    assert all(isinstance(each, FilterProject) for each in alone.values())
    groups = families(alone, lowered(FAMILY[0])[2])  # type: ignore[arg-type]
    assert [names for _, names in groups] == [["s0", "s1", "s2", "s3"], ["s4", "s5"], ["s6"]]
    for family, names in groups:
        state, heard = family.start(0), {name: [] for name in names}
        for begin, stop in _spans(batches, len(events)):
            part = events[begin:stop]
            columns = [pa.array([row[i] for _, row in part], kind) for i, kind in enumerate(KINDS)]
            state, output = family.step(state, Batch.of(columns, [at for at, _ in part]))
            assert list(zip(output.event, output.statement, strict=True)) == sorted(
                zip(output.event, output.statement, strict=True)
            )
            rows = zip(*(column.to_pylist() for column in output.columns), strict=True)
            for at, statement, row in zip(output.at, output.statement, rows, strict=True):
                heard[names[statement]].append((int(at), 1, tuple(_bits(value) for value in row)))
        end = events[-1][0] if events else 0
        assert heard == {name: by_rows(FAMILY[int(name[1:])], events, end) for name in names}


REFUSED = {
    "select id + id as x, sum(price, group_by: symbol) as s, count(*, group_by: ()) as n from S#length(3)": "+ of whole numbers",
    "select symbol, first(price, filter: volume > 1) as f from S#length(3) group by symbol": "the aggregate first with a filter",
    "select max(symbol) as m from S#unique(id)": "max of string",
    "select max(flag) as m from S#length(3)": "max by bool",
    "select maxby(price).id as i from S#sort(3, id)": "the aggregate maxby",
    "select sorted(price, filter: volume > 1) as i from S#length(3)": "the aggregate sorted with a filter",
    "select sorted(price).lowerKey(3.0) as m from S#length(300)": "lists of what a window holds, other than one of at most 256 rows, "
    "of all or of a key",
    "select sorted(price, id).firstEvent() as m from S#unique(id)": "the aggregate minby",
    "select window(price) as w from S#time(3 msec)": "lists of what a window holds, other than one of at most 256 rows, of all or of a key",
    "select window(price) as w from S#unique(id)": "the aggregate window",
    "select id, window(price).take(volume) as w from S#length(3)": "so many elements of a list",
    "select window(*).orderBy(x => x.flag) as w from S#length(3)": "elements of a list by bool",
    "select window(*).except(window(*)) as w from S#length(3)": "the operator except",
    "select window(*).where((x, i) => i > 0).countOf() as w from S#length(3)": "a value of type S[]",
    "select price, window(*).countOf(x => x.price > price) as w from S#length(3)": "a function of more than an element of a list",
    "select window(*).sumOf(x => x.id) as w from S#length(3)": "numbers of a list that are long",
    "select symbol, window(*).countOf() as w from S#length(3) group by rollup(symbol)": (
        "lists of what a window holds in grouping sets"
    ),
    "select window(*) as w from S#length(300)": "lists of what a window holds, other than one of at most 256 rows, of all or of a key",
    "select window(price, filter: id > 1) as w from S#length(3)": "the aggregate window with a filter",
    "select max(distinct symbol) as m from S#length(3)": "max of string",
    "select rstream symbol from S": "the remove stream",
    "select irstream symbol, price, sum(price) as s from S#keepall group by symbol": "the remove stream of one row a row",
    "select irstream symbol from S#unique(id) where volume > 1": "where behind a window of keys",
    "select sum(price) as s from S#unique(symbol)#length(3) output every 20 msec": (
        "aggregates of several windows, or of one by time, that an output works out"
    ),
    "select symbol from S#sort(3, price) limit 1": "a limit over a window of keys",
    "select irstream symbol from S#sort(3, flag)": "a window by a bool",
    "select symbol from S#time_batch(3, 'FORCE_UPDATE')": "an input that is not a plain stream",
    "select symbol from S order by symbol": "order by, limit or distinct of rows that come one by one",
    "select sum(price) as s from S#length_batch(3) output last every 20 msec order by s": (
        "aggregates of batches that an output works out"
    ),
    "select * from pattern [every a=S -> b=S(id=a.id)] limit 3": "limit or distinct of a pattern without order by",
    "select * from pattern [every a=S -> b=S(id=a.id)] order by a.id": "order by, limit or distinct of whole rows",
    "context C select symbol, sum(price) as s from S order by symbol": (
        "order by, limit or distinct of rows that come one by one"
    ),
    "context C select symbol, sum(price) as s from S#length(3) order by symbol": (
        "order by, limit or distinct in a context without an output rate"
    ),
    "select sum(price) from S#groupwin(symbol)#time_batch(10)": "the window Grouped",
    "select symbol from S#groupwin(symbol)#time(10) output last every 20 msec": (
        "outputs by the clock, which are before what leaves a window of time for each key"
    ),
    "select sum(price) from S#groupwin(symbol)#length_batch(3) output every 20 msec": (
        "aggregates of batches that an output works out"
    ),
    "select symbol, nth(price, 1) from S group by symbol": "the aggregate nth",
    "select irstream symbol, maxever(price) from S#length(3) group by symbol": (
        "the aggregate maxever by groups with the remove stream, or of batches"
    ),
    "select symbol, countever(*) from S#groupwin(symbol)#length_batch(3) group by symbol": (
        "the aggregate countever by groups with the remove stream, or of batches"
    ),
    "select symbol, lastever(price) from S#length(3) group by symbol output all every 3 events": (
        "aggregates of all that ever came by groups, which an output may show when they have emptied"
    ),
    "select symbol, median(price) from S#keepall group by symbol": "the aggregate median",
    "select count(distinct symbol) as n from S#length(3)": "count of different values of type string",
    "select symbol, first(price) as f from S#unique(symbol, id) group by symbol output snapshot every 1 sec": (
        "output snapshot over a window of keys"
    ),
    "select irstream symbol, price, sum(price) as s from S#unique(id) group by symbol output first every 2 events": (
        "output first by groups with the remove stream"
    ),
    "select sum(price) as s from S#sort(3, price) where volume > 1": "where behind a window of keys",
    "select sum(price) from S#time_length_batch(3, 3, 'FORCE_UPDATE')": "the window TimeLengthBatch",
    "select sum(price) from S#expr(symbol = 'a')": "a window by a condition that no loop can ask",
    "select sum(price) from S#expr(newest_event.id - oldest_event.id < 3)": "a window by a condition that no loop can ask",
    "select sum(price) from S#expr(newest_event.id < avg(price))": "a window by a condition that no loop can ask",
    "select sum(price) from S#expr_batch(current_timestamp > 3)": "a window by a condition that no loop can ask",
    "select sum(price) from S#expr(current_count < 3) output every 2 events": "aggregates of such a window that an output works out",
    "select sum(price) from S#time(9223372036854775000 msec)": "a span of more than 62 bits",
    "select sum(price) from S output last every 9223372036854775 sec": "a span of more than 62 bits",
    "select sum(price) from S#ext_timed(price, 3 msec)": "a window by a time that is a double",
    "select sum(price) from S#ext_timed(id + 1, 3 msec)": "+ of whole numbers",
    "select size, symbol from S#length(3)#size(symbol)": "lastever of string",
    "select size from S#length(3)#size output every 3 events": "an input that is not a plain stream",
    "context C select size from S#length(3)#size": "the window Derived in a context",
    "select sum(price) from S#timetolive(id + 1)": "+ of whole numbers",
    "select sum(price) from S#timetolive(current_timestamp - volume)": "- of whole numbers",
    "select sum(price) from S#time_order(price, 3 msec)": "a window by a time that is a double",
    "select sum(price) from S#time_order(id, 3 msec)#unique(symbol)": "the window Intersection",
    "select sum(price) from S#time_order(id, 9223372036854775807 msec)": "a span of more than 64 bits",
    "select prior(1, price) as p from S#time_order(id, 3 msec)": "earlier events over the window TimeOrder",
    "select sum(price) from S#time_accum(3) output every 2 events": "aggregates of such a window that an output works out",
    "select symbol, sum(price) as s from S#time_accum(3 msec) where volume > 0 group by symbol output first every 3 events": (
        "output first by groups with where behind a window"
    ),
    "select symbol, sum(price) as s from S#length(3) where volume > 0 group by symbol output all every 3 events": (
        "output all by groups with where behind a window"
    ),
    "select sum(price) from S#length_batch(3) output every 2 events": "aggregates of batches that an output works out",
    "select irstream prev(1, price) as p from S#length(3)": "prev beside aggregates, with the remove stream, or over a "
    "window other than length, time, keepall, a key's",
    "select prev(1, price) as p, sum(price) as s from S#length(3)": "prev beside aggregates, with the remove stream, or "
    "over a window other than length, time, keepall, a key's",
    "select prev(1, price) as p from S#length_batch(3)": "prev beside aggregates, with the remove stream, or over a "
    "window other than length, time, keepall, a key's",
    "select prev(volume, price) as p from S#length(3)": "an earlier event other than a field of the one that is so many before",
    "select istream() as a from S where istream()": "the look-up Arriving",
    "select irstream istream() as a from S": "the look-up Arriving",
    "select prevtail(1, price) as p from S#length(3)": (
        "an earlier event other than a field of the one that is so many before"
    ),
    "select prevwindow(price) as p from S#keepall": "lists of what a window holds, other than one of at most 256 rows, of all "
    "or of a key",
    "select prevwindow(price) as p from S#length(300)": "lists of what a window holds, other than one of at most 256 rows, of "
    "all or of a key",
    "select distinct prevwindow(price) as p from S#length(3)": "distinct rows with lists or rows",
    "select prevwindow(price).countOf() as p from S#length(3)": "a value of type double[]",
    "select prior(1, price) as p from S#unique(symbol)": "earlier events over the window Unique",
    "select prior(1, price) as p from S#length(3) output every 3 events": (
        "earlier events of rows that wait for an output, over a window that they may leave before"
    ),
    "select prior(1, price) as p, sum(price) as s from S#keepall": "the window KeepAll",
    "select volume * volume * volume from S": "* of whole numbers",
    "select symbol from S(id > price)": "> between long and double",
    "select price, sum(volume) from S#length(3) group by price": "groups by a double",
    "select * from pattern [a=S -> b=S(symbol=a.symbol)]": "a pattern other than every a -> b -> …, within a time or not",
    "select * from pattern [every a=S -> b=S(symbol=a.symbol) where timer:withinmax(1 sec, 2)]": (
        "a pattern other than every a -> b -> …, within a time or not"
    ),
    "select * from pattern [every a=S -> b=S(price=a.price)]": "a key of type double",
    "select * from pattern [every a=S -> b=S where timer:within(9223372036854775000 msec)]": "a span of more than 62 bits",
    "select * from pattern [every ([2] a=S -> b=S)]": "whole rows of a pattern in which a tag is several events or none",
    "select a[0] as e from pattern [every ([2] a=S -> b=S)]": "the operator element",
    "select b.id as i from pattern [every ([2] a=S -> b=S(id=a[0].id))]": "a filter with a value that is not a literal",
    "select b.id as i from pattern [every (a=S -> (b=S and c=S(id=b.id)))]": "a condition of an event on another that need not have come",
    "select c.id as i from pattern [every (a=S -> b=S -> c=S(price > a.price + b.price))]": "a condition of an event on several earlier "
    "ones at once",
    "select a.id as i from pattern [every (a=S -> b=S) where timer:within(1 sec)]": (
        "a pattern other than every a -> b -> …, within a time or not"
    ),
    "select * from pattern [every a=S -> (b=S and c=S)]": "a pattern other than every a -> b -> …, within a time or not",
    "select * from pattern [every a=S -> every b=S(symbol=a.symbol)]": "a pattern other than every a -> b -> …, within a time or not",
    "context C select * from pattern [every a=S -> b=S]": "whole rows or look-ups over a pattern in a context",
    "context C select count(*) as n from pattern [every a=S -> b=S]": (
        "a window, aggregates or an output rate over a pattern in a context"
    ),
    "select * from pattern [every a=S -> b=S(price>a.price)]": (
        "a condition of an event on an earlier one without a key"
    ),
    "select * from pattern [every a=S -> b=S(symbol=a.symbol, price - a.price > 1) where timer:within(1 sec)]": (
        "a condition of an event on an earlier one that is no comparison of one with the other"
    ),
    "context C select sum(price) as s from S output after 3 events": "output after, over several streams or in a context",
    "select a.id as i from S#length(2) as a, S#length(3) as b where a.id = b.id output after 3 events": (
        "output after, over several streams or in a context"
    ),
    "select symbol from S output first at (*, *, *, *, *)": "output first after something, at, or when",
    "select symbol from S output first when count_insert > 2": "output first after something, at, or when",
    "select symbol from S output after 3 sec first every 1 sec": "output first after something, at, or when",
    "select symbol from S output when count_insert > 2.5": (
        "output when something holds other than of its counts and whole numbers"
    ),
    "select sum(a.price) as s from pattern [every a=S -> b=S(symbol=a.symbol)]#unique(a.symbol)": (
        "a pattern with the window Unique"
    ),
    "select a.id as i, sum(b.price) as s from pattern [every a=S -> b=S(symbol=a.symbol)]#length(3)": (
        "one row a row over a window of a pattern"
    ),
    "select irstream count(*) as n from pattern [every a=S -> b=S(symbol=a.symbol)]#length(3)": "the remove stream",
    "select count(*) as n from pattern [every a=S -> b=S(symbol=a.symbol)] output every 3 events": (
        "whole rows, look-ups or an output rate over a pattern with a window or aggregates"
    ),
    "select a.symbol as k, count(*) as n from pattern [every a=S -> b=S(symbol=a.symbol)] group by a.symbol order by a.symbol": (
        "order by of aggregates or a window over a pattern"
    ),
    "select symbol from S output snapshot every 1 sec": "output snapshot of one row a row with aggregates, or without a window",
    "select symbol from S#length(3) output snapshot every 3 events": "output snapshot of one row a row, other than by the clock",
    "select symbol from S#length_batch(3) output snapshot every 1 sec": "output snapshot of one row a row over a window of batches, or "
    "whose rows stand otherwise than they came",
    "select symbol from S#sort(3, id) output snapshot every 1 sec": "output snapshot of one row a row over a window of batches, or "
    "whose rows stand otherwise than they came",
    "select symbol, sum(price) as s from S#unique(id) group by symbol output snapshot every 1 sec": (
        "output snapshot over a window of keys"
    ),
    "select symbol, id, sum(price) as s from S#length(3) group by symbol output all every 1 sec": (
        "output all of one row a row by groups"
    ),
    "select symbol, sum(price) as s from S#unique(symbol) group by symbol output first every 1 sec": (
        "output first by groups over a window of keys"
    ),
    "select irstream symbol, sum(price) as s from S group by symbol output first every 1 sec": (
        "output first by groups with the remove stream"
    ),
    "context C select count(*) as c from S having count(*) > 1 output first every 1 sec": (
        "output first by groups or with having, in a context"
    ),
    "context C select count(*) as c from S output last when count_insert > 2": (
        "output at, or when something holds, in a context"
    ),
    "context C select count(*) as c from S output after 1 sec last every 1 sec": "output after something, in a context",
    "context C select irstream count(*) as c from S#length(2) output last every 1 sec": (
        "the remove stream with an output rate in a context"
    ),
    "context C select volume, sum(price) as s from S#length(2) group by volume output snapshot every 1 sec": (
        "output snapshot by groups or of one row a row over a window, in a context"
    ),
    "context C select volume, sum(price) as s from S#length(2) group by volume output every 3 events": (
        "aggregates by groups over a window that an output works out, in a context"
    ),
    "context C select symbol from S#length(2) output snapshot every 1 sec": (
        "output snapshot by groups or of one row a row over a window, in a context"
    ),
    "context C select volume, sum(price) as s from S group by volume output first every 1 sec": (
        "output first by groups or with having, in a context"
    ),
    "context C select sum(price) as s from S#time(1 sec) output last every 1 sec": (
        "an output rate over a pattern, previous rows or such a window, in a context"
    ),
    "context Y select count(*) as n from S output last when terminated and count_insert > 1": (
        "output when terminated under a condition, or that sets variables"
    ),
    "context I select irstream count(*) as n from S": "the remove stream without a window, in a context whose partitions end",
    "context D select count(*) as n from S(volume = context.s.volume)": (
        "partitions by several keys, or by what is no plain field"
    ),
    "context D select count(*) as n from S(id = context.s.volume)": "a filter with a value that is not a literal",
    "context W select context.endTime as e, count(*) as n from S": "the end of a partition that no clock ends",
    "context Z select count(*) as n from S": "a span of more than 62 bits",
    "context X select count(*) as n from S": (
        "a context whose partitions end otherwise than by an event or after a span of time"
    ),
    "select irstream symbol, price from S#groupwin(symbol)#time(10 msec) order by price": (
        "order by behind a window of time for each key, which makes one change of what leaves"
    ),
    "context C select volume, price from S#keepall group by volume": (
        "each row of keepall in a context, where none is kept to be shown"
    ),
    "context C select symbol, price, sum(volume) as s from S#keepall": (
        "each row of keepall in a context, where none is kept to be shown"
    ),
    "context Q select context.A.label as l, sum(price) as s from S": "a context of categories with other levels within them",
    "context R select context.A.key1 as k, sum(price) as s from S": "a context that is neither keyed nor by a hash or categories",
    "context C select symbol, volume, sum(price) as s from S group by rollup(volume)": "grouping sets in a context",
    "context C select prevwindow(price) as p from S#length(2)": "lists of what came before in a context",
    "context C select prev(1, price) as p from S#time(20 msec)": "prev in a context over a window other than length or keepall",
    "select (select sum(price) from S#length(3) as t where t.symbol = s.symbol) as p from S as s": (
        "aggregates of a sub-query that asks for the row outside, or over another window"
    ),
    "select (select price from S#length(3) as t where t.id > s.id) as p from S as s": (
        "a sub-query that asks more of the row outside than equal values"
    ),
    "select symbol from S where price in (select price from S#length(3))": "a sub-query that asks for keys of other types",
    "select symbol from S where volume > all (select volume from S#unique(id))": "the aggregate max",
    "select symbol from S where volume = all (select volume from S#length(3))": "a list of values that is not asked whether "
    "a value is in it, or compares with all or any of it",
    "select symbol from S as s where exists (select * from S#keepall as w where w.id = s.id)": (
        "a sub-query over the window KeepAll"
    ),
    "select (select volume + 1 from S#lastevent) as p from S": "arithmetic of whole numbers, which may leave their type",
    "select (select * from S#lastevent) as p from S": "a sub-query of several columns",
    "select (select symbol, price from S#lastevent) as p from S": "a sub-query of several columns",
    "select (select sum(price) from S#length(3) group by symbol) as p from S": "a sub-query of groups",
    "context C select symbol, (select sum(price) from S#keepall) as s from S": "a sub-query in a context",
    "select a.price from S#length(2) as a, S#sort(3, flag) as b where a.id = b.id": "a window by a bool",
    "select a.price from S#length(2) as a, S#ext_timed(id, 3 sec) as b where a.id = b.id": (
        "a join over a window by a time that rows carry"
    ),
    "select a.price from S#time_length_batch(3 sec, 2) as a, S#length(3) as b where a.id = b.id": (
        "a join over the window TimeLengthBatch"
    ),
    "select a.price from S#groupwin(symbol)#length_batch(2) as a, S#length(3) as b where a.id = b.id": (
        "a join over the window Grouped"
    ),
    "select a.price from S#rank(id, 2, price) as a, S#length(3) as b where a.id = b.id order by a.price limit 1": (
        "a limit over a window of keys"
    ),
    "select a.price from S#length(3) as a, S#unique(id) as b where a.id = b.id order by a.price limit 1": (
        "a limit over a window of keys"
    ),
    "select max(a.price) as s from S#length(2) as a, S#length(3) as b where a.id = b.id": "the aggregate max",
    "select sum(a.price) as s from S#length(2) as a left outer join S#length(3) as b on a.id = b.id": (
        "aggregates over an outer join"
    ),
    "select count(distinct a.volume) as n from S#length(2) as a, S#length(3) as b where a.id = b.id": (
        "an aggregate over a join that goes by more than sums"
    ),
    "select a.id, count(*) as n from S#length(2) as a full outer join S#length(3) as b on a.id = b.id group by a.id": (
        "aggregates over an outer join"
    ),
    "select count(*) as n from S#length(2) as a full outer join S as b unidirectional on a.id = b.id": (
        "aggregates over an outer join"
    ),
    "select a.price from S#length(2) as a, S#length(3) as b where a.id = b.id group by a.id output last every 3 events": (
        "groups without aggregates over a join"
    ),
    "select prior(1, a.price) as s from S#length(2) as a, S#length(3) as b where a.id = b.id": "look-ups beside a join",
    "select sum(a.price) as s from S#length(2) as a, S#length(3) as b where a.id = b.id output every 3 events": (
        "aggregates over a join that an output works out"
    ),
    "select a.price as s from S#length(2) as a, S#length(3) as b where a.id = b.id output first every 3 events": (
        "output first over a join"
    ),
    "select sum(a.price) as s from S#length(2) as a, S#length(3) as b where a.id = b.id output snapshot every 1 sec": (
        "output snapshot over a join"
    ),
    "select sum(a.price) as s from S#length(2) as a, S#length(3) as b where a.id = b.id output after 2 events": (
        "output after, over several streams or in a context"
    ),
    "select a.price as s from S#length(2) as a, S#length(3) as b where a.id = b.id output after 2 events every 3 events": (
        "output after something, at, or when, over a join"
    ),
    "select a.price from S#length(2) as a, S#length(3) as b, S#length(1) as c where a.id = b.id": (
        "a join of more than two"
    ),
    "context C select a.price from S#length(2) as a, S#length(3) as b where a.id = b.id output every 2 events": (
        "an output rate over a join in a context"
    ),
    "context C select sum(a.price) as s from S as a unidirectional, S#length(3) as b": (
        "aggregates over a unidirectional join in a context"
    ),
    "select rstream id from S output after 3 events": "the remove stream",
    "context C select a.price as p from S#length(2) as a, S#time_batch(3) as b": "a join over the window Grouped",
    "context C select a.price from S#length(2) as a, S#length(3) as b, S#length(1) as c where a.id = b.id": (
        "a join of more than two, or with what is not a plain stream"
    ),
}


@pytest.mark.parametrize("text", REFUSED)
def test_a_statement_that_no_core_covers_is_told_why(text: str):
    plan, context, stream = lowered(text)
    assert covers(plan, {"S": stream}, context) == REFUSED[text]


@pytest.mark.parametrize(
    "text",
    [
        WINDOWS[0],
        WINDOWS[7],
        PATTERNS[0],
        KEYED[0],
        JOINS[0],
        JOINS[7],
        JOINS[-1],
        SIZES[0],
        UNTIL[0],
        LOOKED_UP[0],
        "context I select * from S",
        "context Y select count(*) as n from S output snapshot when terminated",
        "context N select context.id as i, sum(price) as s from S",
        "select * from pattern [every a=S(price > 20) -> b=S(symbol=a.symbol) -> c=S(symbol=a.symbol)]",
        "select symbol, count(*) as n from S#sort(2, price) group by symbol",
    ],
)
def test_a_step_leaves_the_given_state_as_it_was(text: str):
    found = core(text)
    columns = [["a", "b", "a"], [60.0, 70.0, 80.0], [1, 2, 3], [True, False, True], [1, 2, 3]]
    batch = Batch.of([pa.array(each, kind) for each, kind in zip(columns, KINDS, strict=True)], [1, 2, 3], stream="S")
    state, _ = found.step(found.start(0), batch)
    before = reread(state)
    found.step(state, Batch(batch.columns, batch.times + 100, 200, "S"))
    assert before.scalars == state.scalars
    assert {name: table.equals(state.tables[name]) for name, table in before.tables.items()} == dict.fromkeys(
        before.tables, True
    )


@pytest.mark.parametrize("text", [JOINS[1], JOINS[7], JOINS[-1]])
@settings(max_examples=20, deadline=None)
@given(found=steps, most=st.sampled_from([0, 1, 3]))
def test_a_batch_that_makes_too_many_pairs_at_once_is_taken_in_halves(text: str, found: Any, most: int):
    events = timed(found)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollup.engine.columns.cores.joined._MOST", most)
        halved = by_columns(text, events, events[-1][0] if events else 0, [], False)
    assert halved == by_rows(text, events, events[-1][0] if events else 0)


EMPTYING = [
    "select symbol, id, sum(price) as s from S#length_batch(3) group by symbol, id",
    "select symbol, id, sum(price) as s from S#length(2) group by symbol, id output last every 20 msec",
    "select irstream id, symbol, count(*) as n from S#time(30 msec) group by id, symbol output every 3 events",
    "select symbol, id, sum(price) as s from S#length(2) group by symbol, id output first every 20 msec",
    "select symbol, id, price, sum(price) as s from S#time(15 msec) group by symbol, id output first every 30 msec",
    "select symbol, id, count(*) as n from S#length(3) group by symbol, id output first every 2 events",
    "select symbol, count(*) as n from S#length(2) group by symbol having count(*) = 1 output first every 25 msec",
]


@pytest.mark.parametrize("text", EMPTYING)
@settings(max_examples=20, deadline=None)
@given(found=steps, batches=cuts)
def test_groups_that_leave_the_state_while_others_wait_change_nothing(text: str, found: Any, batches: Any):
    events = timed(found)
    end = events[-1][0] if events else 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rollup.engine.columns.cores.folded._EMPTIED", 0)
        compacted = by_columns(text, events, end, batches, False)
    assert compacted == by_rows(text, events, end)


@pytest.mark.parametrize("rate", ["", "output first every 20 msec"])
def test_groups_that_have_emptied_leave_the_state(rate: str):
    found = core(f"select symbol, sum(price) from S#length(10) group by symbol {rate}")
    state = found.start(0)
    for begin in range(0, 40_000, 1_000):
        names = [f"k{i}" for i in range(begin, begin + 1_000)]
        columns = [pa.array(names), *(pa.array([1] * 1_000, kind) for kind in KINDS[1:3])]
        columns += [pa.array([True] * 1_000), pa.array([1] * 1_000)]
        state, _ = found.step(state, Batch.of(columns, range(begin, begin + 1_000)))
    tables = (state.held()["core"] if rate else state).tables
    assert tables["groups"].num_rows < 18_000
    assert not rate or state.tables["units"].num_rows == tables["groups"].num_rows


def test_times_that_go_back_are_refused():
    with pytest.raises(QueryError, match="go back"):
        Batch.of([pa.array([1, 2])], [5, 4])


def test_a_loop_whose_file_was_damaged_is_written_again(tmp_path: Any, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("ROLLUP_CACHE", str(tmp_path))
    text = "def core(n):\n    return n + 41\n"
    (tmp_path / "cores").mkdir()
    assert loop(text)(1) == 42
    (path,) = (tmp_path / "cores").glob("core_*.py")
    path.write_text("def core(n): return 0")
    loop.cache_clear()
    assert loop(text)(1) == 42


def test_a_new_process_loads_the_loops_that_another_has_compiled(tmp_path: Any):
    program = (
        "import numba, numpy as np\n"
        "from rollup.engine.columns.loops import loop\n"
        "found = loop('def core(x):\\n    return moments_without(1, 1.0, 1.0, x)[0] + 42\\n')\n"
        "print(found(1.0), sum(found.stats.cache_hits.values()))\n"
    )
    environment = {**os.environ, "ROLLUP_CACHE": str(tmp_path)}
    heard = [
        subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert [each.stdout.split() for each in heard] == [["42", "0"], ["42", "1"]]


@pytest.mark.parametrize("text", [FILTERS[1], WINDOWS[0], PATTERNS[0], KEYED[0]])
def test_a_dictionary_of_texts_with_values_that_no_event_has_is_its_texts(text: str):
    texts = pa.array(["b", "a", None, "b", "a"])
    coded = pa.DictionaryArray.from_arrays(pa.array([3, 1, None, 0, 1]), pa.array(["b", "a", "unused", "b"]))
    rest = [pa.array([60.0, 55.0, 70.0, 5.0, 1.0]), pa.array([1] * 5, pa.int32()), pa.array([True] * 5)]
    outputs = [
        core(text).step(core(text).start(0), Batch.of([column, *rest, pa.array(range(5))], range(5), 70))[1]
        for column in (texts, coded)
    ]
    shown = [(list(each.at), [column.to_pylist() for column in each.columns]) for each in outputs]
    assert shown[0] == shown[1] and outputs[0].rows


@settings(max_examples=60, deadline=None)
@given(total=st.integers(-(2**60), 2**60), n=st.integers(2**20, 2**31 - 1))
@example(total=15_963_050_747_720_250, n=1_045_523_946)
@example(total=2**53 + 1, n=2**31 - 1)
def test_the_mean_of_whole_numbers_is_rounded_once(total: int, n: int) -> None:
    total = max(-(2**31) * n, min(total, (2**31 - 1) * n))  # as many values of 32 bits as there are
    mean = loop("def core(total, n):\n    return mean_of_whole(total, n)\n")
    assert mean(total, n) == total / n
