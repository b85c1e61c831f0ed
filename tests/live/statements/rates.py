"""Statements with output rates."""

STATEMENTS = {
    "pairs every": "select irstream s.volume as v, t.price as y from S#time(20 msec) as s full outer join R#time(15 msec) as t "
    "on s.symbol = t.symbol output every 15 msec",
    "pairs every 3": "select s.symbol as s, t.price as y from S#time(20 msec) as s left outer join R#time(15 msec) as t "
    "on s.symbol = t.symbol output every 3 events",
    "comes": "select istream() as i, symbol, sum(price) as s from S#length(3) group by symbol output last every 20 msec",
    "each ever at last": "select symbol, volume, maxever(price) as m from S#length(2) group by symbol output last every 10 msec",
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
    "total there": "select sum(price) as s from S#time(40 msec) having count(*) != 2 output snapshot every 15 msec",
    "groups every 3": "select irstream symbol, min(price) as s from S#length(4) group by symbol output every 3 events",
    "last of groups": "select irstream symbol, sum(price) as s from S#time(30 msec) group by symbol having count(*) < 3 "
    "output last every 20 msec",
    "all groups": "select irstream symbol, volume, sum(price) as s from S#length(4) group by symbol, volume "
    "having count(*) > 1 output all every 25 msec",
    "groups there": "select symbol, avg(price) as s from S#time(50 msec) group by symbol output snapshot every 20 msec",
    "groups ever": "select symbol, count(*) as n from S group by symbol output snapshot every 4 events",
    "rows at": "select symbol, price from S(price > 20) output at (*, *, *, *, *, *)",
    "last at": "select irstream symbol, sum(price) as s from S#time(700 msec) group by symbol output last at (*, *, *, *, *, *)",
    "all at": "select symbol, sum(price) as s from S#length(4) group by symbol output all at (*, *, *, *, *, [0, 1, 4])",
    "batches at": "select irstream symbol, price from S#time_batch(20 msec) output at (*, *, *, *, *, *)",
    "groups at": "select symbol, count(*) as n from S#time(900 msec) group by symbol output snapshot at (*, *, *, *, *, *)",
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
    "best groups": "select symbol, sum(price) as s from S#time(50 msec) group by symbol output snapshot every 20 msec "
    "order by sum(price) desc limit 2",
    "best of output": "select * from S(volume > 0) output every 25 msec order by price desc limit 3 offset 1",
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
    "different last": "select distinct symbol, volume from S output last every 20 msec limit 2",
    "first in order": "select symbol, price from S output first every 3 events order by price",
    "staying last": "select symbol, price from S#keepall output last every 20 msec",
    "firsts ever": "select firstever(price) as f, minever(price) as m from S#keepall group by symbol output last every 3 events",
    "ends in time": "select irstream first(volume) as f, last(price) as l from S#time(25 msec) output every 3 events",
    "texts in outputs": "select irstream symbol, maxby(price).volume as v, max(symbol) as m from S#length(4) group by symbol "
    "output last every 20 msec",
    "total of texts": "select min(symbol) as m, first(*).price as p from S#time(30 msec) output snapshot every 15 msec",
    "lists in rows": "select price, window(volume) as w from S#groupwin(symbol)#length(2) group by symbol output every 3 events",
    "lists in outputs": "select window(symbol) as w from S#length(3) output snapshot every 15 msec",
    "places in time": "select irstream nth(price, 1) as p, last(price) as l from S#time(25 msec) output last every 3 events",
    "distances": "select symbol, avedev(price) as a, stddev(price) as d from S#length(5) group by symbol "
    "output last every 20 msec",
    "kinds in time": "select irstream avg(distinct volume) as a, stddev(distinct price) as d from S#time(30 msec) "
    "output every 20 msec",
    "keys every 3": "select irstream symbol, price from S#unique(symbol) output every 3 events",
    "total of keys in time": "select irstream sum(price) as s from S#unique(symbol, volume) output every 20 msec",
    "keys last": "select symbol, volume, sum(price) as s from S#unique(symbol, volume) group by symbol, volume "
    "output last every 20 msec",
    "keys first": "select rstream symbol, price from S#sort(2, price) output first every 3 events",
    "ranked total": "select sum(price) as s, count(*) as n from S(volume > 0)#rank(volume, 3, price) output every 3 events",
    "few best in time": "select sum(price) as s from S#time(40 msec)#sort(3, volume desc)#length(4) output last every 20 msec",
    "carried time every 3": "select symbol, price, sum(price) as s from S(volume is not null)#ext_timed(volume, 2 msec) "
    "group by symbol output every 3 events",
    "carried time there": "select symbol, sum(price) as s from S(volume is not null)#ext_timed(volume, 2 msec) "
    "group by symbol output snapshot every 15 msec",
    "first sums": "select symbol, price, sum(price) as s from S#firstlength(5) group by symbol output every 3 events",
    "while every 3": "select irstream symbol, price from S#expr(sum(price) < 90) output every 3 events",
    "some each": "select irstream symbol, price, sum(price) as s from S#length(4) where volume > 1 group by symbol "
    "output every 3 events",
    "some last": "select symbol, sum(price) as s from S#length(4) where volume > 1 group by symbol output last every 20 msec",
    "ends of the best": "select max(price) as a, min(price) as b, median(price) as m from S#sort(3, volume desc) output every 3 events",
    "batch of each last": "select volume, sum(price) as s from S#groupwin(symbol)#length_batch(2) group by volume "
    "output last every 3 events",
    "first of newest": "select symbol, sum(price) as s from S#unique(volume) group by symbol output first every 2 events",
}
