"""Sub-queries, and statements that read what came before."""

STATEMENTS = {
    "asking": "select symbol, price - (select avg(price) from S(volume < 3)#length(3)) as d from S(volume >= 1)",
    "asking two": "select symbol, (select sum(price) from R#time(20 msec)) as r, (select count(*) from S#keepall) as n from S",
    "asking beside": "select symbol, (select sum(price) from R#length(4) as r where r.symbol = s.symbol and r.volume < s.volume) as r, "
    "price - (select t.price from S(volume > 1)#time(20 msec) as t where t.symbol = s.symbol) as d from S as s "
    "where not exists (select * from R#lastevent as r where r.price > s.price)",
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
    "ends of length": "select symbol, prevcount(price) as n, prevtail(price) as t, prevtail(1, volume) as u, prev(1, price) as p from S#length(3)",
    "ends of a time": "select prevcount(symbol) as n, prevtail(symbol) as t from S(volume > 0)#time(20 msec) where prevcount(price) < 3",
    "ends of all": "select prevcount(price) as n, prevtail(price) as t, prior(1, price) as p from S#keepall",
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
    "clock earlier": "select irstream symbol, prior(1, price) as p from S#ext_timed(current_timestamp, 20 msec)",
    "carried earlier": "select irstream symbol, prior(1, price) as p from S(volume is not null)#ext_timed(volume, 2 msec)",
    "carried batch earlier": "select symbol, sum(prior(2, price)) as s from S(volume is not null)#ext_timed_batch(volume, 2 msec) "
    "group by symbol",
    "while earlier": "select symbol, prior(2, price) as p, sum(prior(1, price)) as s from S#expr(sum(price) < 90) group by symbol",
    "some earlier": "select irstream symbol, prior(1, price) as p from S#length(3) where prior(1, volume) > 1",
}
