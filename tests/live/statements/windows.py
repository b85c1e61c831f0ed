"""Statements over one window, or none."""

STATEMENTS = {
    "whether any left": "select symbol, leaving() as l, count(*) as n from S#length(3) group by symbol",
    "whether any left in time": "select irstream leaving() as l, sum(price) as s from S#time(20 msec)",
    "batches with themselves": "select irstream a.price as p, b.volume as v from S#length_batch(2) as a full outer join "
    "S#time_batch(15 msec) as b on a.symbol = b.symbol where a.price is null or b.price is null or a.price >= b.price",
    "first pairs of all": "select irstream s.price as p, r.price as q from S#firstunique(symbol) as s full outer join "
    "R#firstlength(4) as r on s.volume = r.volume",
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
    "most ever in window": "select irstream maxever(price) as m, countever(*) as n, lastever(volume) as v from S#length(2)",
    "firsts ever in time": "select firstever(price) as f, minever(price) as m, countever(volume) as n from S#time(20 msec)",
    "extremes of longs": "select symbol, max(cast(price * 1e17, long)) as a, min(cast(volume, long)) as b from S#length(3) "
    "group by symbol",
    "sums of longs in all": "select sum(cast(price * 1e17, long)) as s, avg(cast(volume, long)) as a from S",
    "all": "select sum(volume) as s, avg(volume) as m from S#keepall",
    "staying": "select irstream symbol, volume from S#keepall where price > 1",
    "staying by groups": "select symbol, price, max(price) as m, min(volume) as v from S#keepall group by symbol",
    "most of what stays": "select symbol, max(price) as m, min(volume) as v from S#keepall group by symbol",
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
    "both": "select s.symbol as s, t.price as y from S#length(4) as s inner join R#keepall as t on s.symbol = t.symbol",
    "latest or none": "select s.symbol as s, t.price as y from S#time(20 msec) as s right outer join R as t unidirectional "
    "on s.symbol = t.symbol",
    "all with all": "select irstream s.symbol as s, t.symbol as t, t.price as y from S(volume < 3)#time(20 msec) as s "
    "full outer join R#length(3) as t on s.symbol = t.symbol and s.volume = t.volume",
    "timed with timed": "select irstream s.volume as v, t.price as y from S#time(20 msec) as s "
    "left outer join R#time(15 msec) as t on s.symbol = t.symbol and s.price = t.price where s.volume > 0",
    "itself": "select irstream a.price as p, b.price as q from S#unique(symbol) as a full outer join S#time(15 msec) as b "
    "on a.symbol = b.symbol",
    "latest rows": "select s.price as p, count(*) as n from S as s unidirectional left outer join R#length(4) as t "
    "on s.symbol = t.symbol",
    "ever in window": "select symbol, maxever(price) as m, countever(*) as n, lastever(volume) as v from S#length(2) group by symbol",
    "ever in time": "select symbol, minever(price) as m, firstever(volume) as v, sum(price) as s from S#time(20 msec) group by symbol",
    "each ever in window": "select symbol, price, countever(volume) as n, maxever(price) as m from S#unique(volume) "
    "group by symbol",
    "levels ever": "select symbol, volume, lastever(price) as l, countever(*) as n from S#length(3) group by rollup(symbol, volume)",
    "greatest of U": "select symbol, max(a) as m, count(*) as n from U#length(4)",
    "some of U": "select a from U(a > 10)",
    "newest of U": "select irstream symbol, a from U#unique(symbol)",
    "of T": "select symbol, sum(p) as s, count(*) as n from T#length(3) group by symbol",
    "of U": "select * from U(a > 50)",
    "U in time": "select sum(a) as x from U#time(20 msec)",
    "keys": "select symbol, volume, sum(price) as s, count(*) as n from S#length(4) group by symbol, volume",
    "keys in time": "select irstream volume, symbol, avg(price) as s from S#time(20 msec) group by volume, symbol",
    "keys each": "select price, symbol, sum(volume) as s from S#length(5) group by symbol, volume",
    "divided": "select symbol, price / volume as x from S(symbol like 'a%' or volume in (1, 2))",
    "gone": "select irstream symbol, price from S(price > 3)#time(30 msec) where volume > 0",
    "gone by length": "select rstream symbol, price, max(price) as m from S#length(3) group by symbol",
    "batch": "select irstream symbol, price, sum(price) as s, min(volume) as m from S#length_batch(3) group by symbol",
    "batch total": "select irstream sum(price) as s, max(price) as m from S#time_batch(25 msec) having count(*) != 2",
    "batch groups": "select irstream symbol, min(price) as s, count(*) as n from S#time_batch(20 msec) group by symbol",
    "batch rows": "select * from S#time_batch(15 msec)",
    "batch keys": "select symbol, volume, avg(price) as s from S#length_batch(4) group by symbol, volume",
    "two of each": "select irstream symbol, sum(price) as s, max(volume) as m from S#groupwin(symbol)#length(2) "
    "group by symbol",
    "best of batch": "select symbol, price from S#length_batch(4) order by price desc, symbol limit 2",
    "best rows": "select irstream symbol, price from S#time(30 msec) order by volume desc limit 3",
    "different": "select distinct symbol, price from S#time_batch(20 msec)",
    "most ever": "select symbol, maxever(price) as m, minever(volume) as n, lastever(volume) as v from S group by symbol",
    "ends": "select symbol, first(price) as f, last(volume) as l, first(price, 1) as g from S#length(3) group by symbol",
    "ends of batch": "select symbol, last(price, 1) as l from S#length_batch(3) group by symbol",
    "ends of sort": "select first(price) as f, last(price) as l from S#sort(3, volume desc)",
    "rows at the ends": "select irstream symbol, maxby(price).volume as v, minby(volume, price desc).symbol as s from S#length(3)",
    "extremes of texts": "select volume, max(symbol) as m, first(symbol) as f, last(*).price as p from S#time(25 msec) group by volume",
    "texts of batches": "select last(symbol) as l, maxby(price).price as p, min(symbol) as m from S#time_batch(20 msec)",
    "texts of levels": "select symbol, volume, max(symbol) as m, maxby(price).volume as v from S#length(3) "
    "group by rollup(symbol, volume)",
    "texts beside": "select symbol, minby(price, group_by: volume).symbol as m, max(symbol, group_by: ()) as s from S#length(4)",
    "texts of keys": "select symbol, last(symbol) as l, maxby(price).volume as v from S#groupwin(symbol)#length(2) group by symbol",
    "lists": "select irstream window(price) as w, window(symbol) as s from S#length(3)",
    "lists of groups": "select symbol, window(volume) as w, sum(price) as s from S(price > 3)#length(4) group by symbol",
    "lists of batches": "select window(price) as w from S#time_batch(20 msec)",
    "elements": "select irstream window(*).where(x => x.price > 20).sumOf(x => x.price) as s, window(volume).max() as m from S#length(3)",
    "whole rows": "select irstream window(*) as w, maxby(price) as m, first(*) as f, nth(*, 1) as n from S#length(3)",
    "whole rows of levels": "select symbol, first(*) as f, maxby(price) as m from S#time(20 msec) group by rollup(symbol, volume)",
    "whole events": "select irstream s as r, new {p = s.price, a = s.symbol} as n from S#length(2) as s",
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
    "places": "select symbol, nth(price, 1) as p, nth(volume, 0, filter: price > 20) as v from S#length(4) group by symbol",
    "medians": "select irstream symbol, median(price) as m, median(volume) as n from S#length(4) group by symbol",
    "median in time": "select median(price) as m, avedev(price) as a from S#time(30 msec) having count(*) != 2",
    "distances of batch": "select avedev(volume) as a, median(volume) as m from S#time_batch(20 msec)",
    "kinds": "select symbol, count(distinct volume) as n, sum(distinct price) as s from S#length(4) group by symbol",
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
    "levels of two keys": "select irstream symbol, sum(price) as s from S#unique(symbol, volume) group by rollup(symbol)",
    "ranked": "select irstream symbol, price from S#rank(symbol, 2, price desc)",
    "newest in time": "select irstream symbol, price from S#unique(symbol)#time(25 msec)",
    "newest of few": "select irstream symbol, max(price) as m from S#length(3)#unique(symbol) group by symbol",
    "best in time": "select rstream symbol, price, sum(volume) as s from S#sort(3, price)#time(30 msec)",
    "firsts in time": "select irstream symbol, price from S#firstunique(symbol)#time(20 msec)",
    "either": "select irstream symbol, price from S#unique(symbol)#length(2) retain-union",
    "either in time": "select irstream sum(price) as s, count(*) as n from S#unique(symbol)#time(20 msec) retain-union",
    "levels of several": "select irstream symbol, count(*) as n from S#unique(symbol)#time(20 msec) group by rollup(symbol)",
    "carried time": "select irstream symbol, price from S(volume is not null)#ext_timed(volume, 2 msec)",
    "groups of carried time": "select irstream symbol, sum(price) as s, max(price) as m "
    "from S(volume is not null)#ext_timed(volume, 3 msec) where price > 20 group by symbol",
    "levels of carried time": "select symbol, volume, sum(price) as s from S(volume is not null)#ext_timed(volume, 2 msec) "
    "group by rollup(symbol, volume)",
    "clock as time": "select irstream symbol, price from S#ext_timed(current_timestamp, 20 msec)",
    "carried batch": "select irstream symbol, price from S(volume is not null)#ext_timed_batch(volume, 2 msec)",
    "carried batch groups": "select symbol, sum(price) as s from S(volume is not null)#ext_timed_batch(volume, 2 msec, 1L) "
    "where price > 20 group by symbol",
    "accumulated": "select irstream symbol, price from S#time_accum(15 msec)",
    "accumulated groups": "select irstream symbol, sum(price) as s from S#time_accum(15 msec) where volume > 0 group by symbol",
    "accumulated levels": "select symbol, volume, max(price) as s from S#time_accum(15 msec) group by cube(symbol, volume)",
    "full or late": "select irstream symbol, price from S#time_length_batch(20 msec, 3)",
    "full or late groups": "select irstream symbol, sum(price) as s, count(*) as n from S#time_length_batch(10 msec, 4) "
    "where volume > 0 group by symbol",
    "full or late levels": "select symbol, volume, sum(price) as s from S#time_length_batch(15 msec, 3) "
    "group by rollup(symbol, volume)",
    "first of all": "select irstream symbol, price from S#firstlength(3)",
    "first groups": "select symbol, sum(price) as s from S#firstlength(4) where volume > 1 group by symbol",
    "first total": "select irstream sum(price) as s, count(*) as n from S(price > 20)#firsttime(30 msec)",
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
    "some of length": "select irstream symbol, price from S#length(2) where volume > 1",
    "some groups of length": "select irstream symbol, sum(price) as s, max(price) as m from S#length(4) where volume > 1 "
    "group by symbol having sum(price) > 20",
    "some of batch": "select irstream sum(price) as s, count(*) as n from S#length_batch(3) where volume > 1",
    "some of time batch": "select irstream symbol, price from S#time_batch(20 msec) where volume > 1",
    "best of each": "select irstream symbol, max(price) as m, min(volume) as n from S#groupwin(symbol)#sort(2, price desc) group by symbol",
    "best rows of each": "select irstream symbol, price from S(volume > 0)#groupwin(volume)#sort(2, price, symbol desc)",
    "each key in time": "select irstream symbol, price from S#groupwin(symbol)#time(20 msec)",
    "groups of keys in time": "select symbol, avg(price) as a, max(volume) as m from S#groupwin(symbol)#time(25 msec) group by symbol",
    "total of each in time": "select irstream count(*) as n from S(volume > 0)#groupwin(volume, symbol)#time(20 msec)",
    "batch of each": "select irstream symbol, price from S#groupwin(symbol)#length_batch(2)",
    "batch groups of each": "select irstream symbol, sum(price) as s from S#groupwin(symbol)#length_batch(3) group by symbol",
    "batch totals of each": "select first(price) as f, count(*) as n from S(volume > 0)#groupwin(symbol)#length_batch(2)",
    "living": "select irstream symbol, price from S(volume is not null)#timetolive(current_timestamp + volume * 10)",
    "living groups": "select irstream symbol, sum(price) as s, count(*) as n from S(volume is not null)#time_order(volume, 15 msec) "
    "group by symbol",
    "living total": "select irstream sum(price) as s, count(*) as n from S#time_order(current_timestamp, 20 msec)",
    "living levels": "select symbol, volume, sum(price) as s from S(volume > 0)#timetolive(current_timestamp + volume * 10) "
    "group by rollup(symbol, volume)",
    "size": "select irstream size from S#time(20 msec)#size",
    "size and newest": "select irstream size, volume, price from S(volume > 0)#length(4)#size(volume, price) where size > 1",
    "kinds of keys": "select count(distinct volume) as n from S#unique(symbol)",
}
