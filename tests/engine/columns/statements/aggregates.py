"""Statements whose aggregates reach the ends of their numbers, remember all that came, or are looked up in a row."""

from __future__ import annotations

LEFT = [
    "select leaving() as l, count(*) as n from S#length(3)",
    "select irstream leaving() as l, sum(price) as s from S#time(20 msec) having not leaving() or count(*) > 1",
    "select leaving() as l, sum(id) as s from S#unique(id) output last every 20 msec",
    "select leaving() as l, max(volume) as m from S(price > 3)#length_batch(2)",
    "select volume, leaving() as l from S#groupwin(symbol)#length(2)",
    "select leaving() as l from S#sort(2, price) output snapshot every 20 msec",
    "select leaving() as l, symbol from S",
    "context C select symbol, leaving() as l from S#time(15 msec)",
    "select a.symbol as k, leaving() as l from S#length(2) as a, S#lastevent as b where a.id = b.id group by a.symbol",
]
"""Whether any row has left."""
GROUPS_BY_DOUBLES = [
    "select price, sum(volume) as v, count(*) as n from S#length(3) group by price",
    "select irstream price * 0.5 as p, symbol, max(id) as m from S#time(25 msec) group by price * 0.5, symbol",
    "select price, id, sum(volume) as v from S group by price",
    "select price, count(*) as n from S#length_batch(4) group by price having count(*) > 0",
    "select price / price as z, count(*) as n from S group by price / price output last every 20 msec",
    "select price, sum(volume) as v from S#time(30 msec) group by price output snapshot every 20 msec",
    "select price, sum(volume) as v from S#length(3) group by price output all every 2 events order by price",
    "select price, volume, min(id) as m from S#unique(symbol) group by price, volume output first every 20 msec",
    "select irstream price, count(*) as n from S#keepall group by price output every 3 events",
    "select price, symbol, count(*) as n from S#length(4) group by rollup(price, symbol)",
    "context C select price, sum(volume) as v from S#length(3) group by price",
    "context C select irstream price, count(*) as n from S#time(20 msec) group by price",
    "context I select price, count(*) as n from S group by price",
    "select a.price as p, count(*) as n from S#length(3) as a, S#length(2) as b where a.symbol = b.symbol group by a.price",
    "select a.price as p, count(*) as n from pattern [every a=S -> b=S(symbol=a.symbol)] group by a.price",
]
"""Groups by doubles."""
LONGS = [
    "select symbol, max(volume * 2) as m, min(volume * volume) as l from S#length(3) group by symbol having max(volume * 2) > 3",
    "select max(volume * 2) as m, minever(-volume) as l, last(volume + 1) as b from S",
    "select max(volume * volume) as m from S#keepall output last every 20 msec",
    "select irstream min(volume - 1) as m from S#unique(symbol)",
    "select case when price > 50 then volume * 1000 else 0 end as c, coalesce(volume * volume, 1) as d from S",
    "select symbol, sum(volume * 2) as s, avg(volume + 1) as a from S#length(3) group by symbol having sum(volume * 2) > avg(price)",
    "select sum(volume * volume) as s, avg(volume * volume - 1) as a from S#time(25 msec)",
    "select irstream symbol, sum(volume * volume * volume) as s from S group by symbol output last every 20 msec",
    "select sum(case when price > 50 then volume * 1000 else 0 end) as s, sum(distinct volume * 3) as d from S#unique(symbol)",
    "select sum(price) as s from S#expr(sum(volume * volume) < 9)",
    "select a.symbol as k, sum(a.volume * b.volume) as s from S#length(3) as a, S#length(2) as b where a.id = b.id group by a.symbol",
    "context C select sum(-volume) as s from S#length_batch(2)",
    "select volume * volume * volume as x, id + id as y, id - volume as z, -id as n from S",
    "select volume * volume * volume * id as x, cast(price * 1e17, long) * id + volume as y from S(id + 1 > volume)",
    "select symbol, sum(id + volume) as s, max(cast(price * 1e17, long) * 7) as m from S#time(25 msec) group by symbol having sum(id) + 1 > 2",
    "select sum(price) as s from S#expr(newest_event.id - oldest_event.id < 3)",
    "select sum(price) as s from S#expr(newest_event.volume * 5000000000 * newest_event.id > oldest_event.id)",
    "select sum(price) as s from S(id is not null)#ext_timed(id + 1, 3 msec)",
    "select symbol from S where id > price",
    "select sum(price) as s from S#expr(newest_event.id < avg(price))",
    "select symbol, id = price as e, id < 1.5 as l, cast(price * 1e17, long) > price * 1e17 as g from S",
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
    "select sorted(price).firstEvent().symbol as f, sorted(volume desc).lastKey() as k, sorted(price, id).maxBy().id as m "
    "from S#length(3)",
    "context C select max(symbol) as m, maxby(price).id as i, last(flag) as l from S#length(3)",
    "select window(price) as w, window(symbol) as s, sum(price) as p from S#length(3)",
    "select irstream symbol, window(price) as w, count(*) as n from S#length(4) where volume > 1 group by symbol having count(*) < 3",
    "select irstream id, window(flag) as w from S#length(3) group by symbol",
    "select irstream symbol, window(id) as w, maxby(price).id as i from S#time_batch(20 msec) group by symbol",
    "select irstream symbol, window(price) as w from S#groupwin(symbol)#length(2) group by symbol output every 3 events",
    "select window(volume) as w, max(symbol) as m from S#length(3) output last every 20 msec",
    "select max(a.symbol) as m, last(b.symbol) as l from pattern [every a=S -> b=S(id=a.id)]#length(3)",
]
"""Aggregates whose value is looked up in a row."""
