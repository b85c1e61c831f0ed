"""Statements over one window, or several beside one another, and without one."""

from __future__ import annotations

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
NUMBERS = [
    "select datapoints, total, average, stddev, stddevpa, variance from S#length(4)#uni(price)",
    "select irstream * from S(volume > 0)#time(30 msec)#uni(volume) where datapoints > 1",
    "select correlation as c from S#length(5)#correl(price, volume) having correlation > 0",
    "select irstream slope, YIntercept, XVariance, YStandardDeviationPop, sumXY, n from S#length(6)#linest(price, volume)",
    "select average * 2 as a from S#keepall#weighted_avg(price, volume)",
    "select rstream average from S#time(25 msec)#weighted_avg(price, volume)",
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
    "select irstream sum(price) as s from S#unique(symbol)#time(25 msec) output all every 20 msec",
]
BY_KEY = [
    "select irstream max(price + 0.0) as m, min(price + 0.0) as n, median(price + 0.0) as d from S#sort(3, volume)",
    "select irstream symbol, min(volume) as n, max(id) as m from S#unique(id) group by symbol",
    "select id, max(price) as m, avedev(price) as a from S#rank(symbol, 3, volume desc) group by id",
    "select symbol, sum(price) as a from S#groupwin(symbol)#length_batch(2) group by symbol",
    "select irstream symbol, price from S#groupwin(symbol)#length_batch(3)",
    "select irstream symbol, flag, sum(price) as s, max(price) as m from S#groupwin(flag)#length_batch(2) group by symbol, flag",
    "select irstream first(price) as f, last(price) as l, count(*) as n from S(volume > 0)#groupwin(symbol)#length_batch(2)",
    "select symbol, price from S#groupwin(symbol, id)#length_batch(2) output every 3 events",
    "select symbol, sum(price) as s from S#groupwin(id)#length_batch(2) group by symbol output last every 20 msec",
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
STAYING = [
    "select symbol, price from S#keepall",
    "select irstream * from S(id > 0)#keepall where volume > 0",
    "select price - avg(price) as d, symbol from S#keepall having price > avg(price)",
    "select irstream symbol, price, sum(price) as s from S#keepall group by symbol",
    "select symbol, max(volume) as m, min(price) as n, max(price, filter: volume > 1) as x from S#keepall group by symbol",
    "select irstream max(price) as m, count(*) as n from S#keepall where volume > 0",
    "select id, price, max(price) as a, min(id) as b from S#keepall group by id",
]
"""Over windows that nothing leaves."""
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
    "select irstream symbol, price from S#firstlength(3)",
    "select irstream sum(price) as s from S#firstlength(4) where volume > 1 having count(*) != 2",
    "select symbol, price, sum(price) as s from S#firstevent group by symbol",
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
]
BEHIND = [
    "select irstream symbol from S#unique(id) where volume > 1",
    "select sum(price) as s, max(id) as m from S#sort(3, price) where volume > 1",
    "select symbol, price, avg(price) as a from S#groupwin(symbol)#length(2) where id > 0 group by volume",
    "select symbol, count(*) as n from S#length(3)#time(20 msec) where flag group by symbol output last every 3 events",
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
