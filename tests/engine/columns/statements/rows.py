"""Patterns, sub-queries, and statements that read what came before."""

from __future__ import annotations

from tests.engine.columns.statements.windows import CARRIED

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
ASKING = [
    "select symbol, price not in (select price from S(volume > 0)#time(20 msec)) as z from S",
    "select (select id from S(flag)#lastevent as t where t.price = s.price) as p from S as s",
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
BY_ORDER = [
    "select * from pattern [every a=S -> b=S(price > a.price)]",
    "select a.id as i, b.id as j from pattern [every a=S(volume > 0) -> b=S(price <= a.price, volume != a.volume) where timer:within(25 msec)]",
    "select a.symbol as s, b.symbol as t from pattern [every a=S -> b=S(symbol < a.symbol, id >= a.id)]",
    "select a.price as p, c.price as q from pattern [every a=S -> b=S(price >= a.price) -> c=S(price < b.price, volume > 0)]",
    "context C select a.price as p, b.price as q from pattern [every a=S -> b=S(price > a.price)]",
    "select count(*) as n from pattern [every a=S(price > 20) -> b=S(price * 2 < a.price + 3)]",
    "context C select * from pattern [every a=S -> b=S]",
    "context C select * from pattern [every a=S(volume > 0) -> b=S(price >= a.price) where timer:within(30 msec)] where b.id > 0",
    "context C select * from pattern [every (a=S(volume > 0) -> b=S(volume < 3))]",
]
"""Patterns whose events are compared by order, without a key."""
CORRELATED = [
    "select id, (select sum(price) from S#length(4) as t where t.symbol = s.symbol) as p from S as s",
    "select id, (select avg(price) from S(volume > 0)#time(25 msec) as t where t.symbol = s.symbol and t.price < s.price) as a, "
    "(select count(*) from S#time(40 msec) as t where t.volume = s.volume) as n from S as s",
    "select id, (select max(price) - min(price) from S#length(5) as t where t.id = s.id and t.volume <= s.volume) as m from S(flag) as s",
    "select id, (select sum(volume) + 1 from S#unique(symbol) as t where t.id != s.id) as v, "
    "(select count(price, filter: volume > 1) from S#unique(id, flag) as t where t.symbol = s.symbol) as n from S as s "
    "having price > 3 or (select stddev(price) from S#length(4) as t where t.id > s.id) > 1",
    "select id, price - (select avg(t.price) from S#length(4) as t where t.symbol = s.symbol) as d from S as s "
    "where price > (select min(price) from S(flag)#time(30 msec) as t where t.flag = s.flag)",
    "select symbol from S as s where not exists (select * from S#time(25 msec) as t where t.symbol = s.symbol and t.price > s.price)",
    "select id, exists (select * from S(volume > 1)#length(3) as t where t.price + t.volume < s.price or t.volume = s.volume - 1) as e "
    "from S as s",
    "select id, (select t.price - s.price from S(volume > 1)#lastevent as t) as d, (select t.symbol from S#length(2) as t "
    "where t.id <= s.id) as k from S as s",
    "select (select median(price) from S#length(3) as t where t.symbol = s.symbol) as p from S as s",
    "select symbol from S as s where exists (select * from S#keepall as w where w.id = s.id and w.volume = s.volume)",
    "select id from S as s where exists (select * from S#keepall as w where w.price = s.price)",
    "select (select price from S#length(3) as t where t.id > s.id) as p, (select volume + 1 from S#lastevent) as v from S as s",
    "select id, (select last(volume) from S#length(3)) as l, (select sum(id) from S#time(25 msec) as t where t.flag = s.flag "
    "and s.price > 3) as f from S as s",
]
"""Sub-queries that look at each row beside the one outside."""
EARLIER = [
    "select symbol, prevtail(0, price) as p, prevtail(2, id) as i, prevcount(price) as n from S#length(4)",
    "select prevtail(1, symbol) as t, prev(1, price) as p from S#time(25 msec) where prevtail(3, volume) is null",
    "select prevtail(2, price) as t from S(volume > 0)#keepall",
    "select prevtail(0, price) as t from S#groupwin(symbol)#length(3)",
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
EARLIER_IN_ORDER = [
    f"select irstream symbol, prior(1, price) as p, prior(2, id) as q from {CARRIED}",
    f"select symbol, sum(prior(1, price)) as s from {CARRIED} where prior(1, volume) > 1 group by symbol",
    "select symbol, prior(1, price) as p from S(id is not null)#ext_timed_batch(id, 2 msec)",
    "select irstream symbol, prior(1, price) as p from S#ext_timed(current_timestamp, 20 msec)",
    "select symbol, sum(prior(1, price)) as s from S#expr(sum(price) < 100) where prior(2, volume) > 1 group by symbol",
    "select prior(1, price) as p, symbol from S#firstlength(3)",
    "select symbol, prior(1, price) as p, sum(price) as s from S#ext_timed_batch(current_timestamp, 10 msec) group by symbol",
]
