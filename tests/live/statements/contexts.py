"""Statements in contexts."""

STATEMENTS = {
    "asking each": "context C select price, context.id as i, (select avg(price) from S#length(3)) as a from S(volume >= 0) "
    "where price > (select min(price) from S#time(20 msec))",
    "asking of each": "context J select symbol, context.key1 as k, (select sum(price) from R#length(2)) as a "
    "from S where (select count(*) from R(volume > 0)#time(20 msec)) < 3 or volume > 1",
    "asking categories": "context G select context.label as l, (select sum(volume) from S where price > 3) as n from S",
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
    "pairs of each into U": "context C insert into U select a.symbol as symbol, b.price as a from S#lastevent as a, S#length(2) as b",
    "most of each": "context C select max(price) as a, min(volume) as b from S",
    "tries of each": "context C select context.key1 as k, a[1].price as p, b.price as q from pattern [every ([2] a=S(volume > 0) -> "
    "b=S(price > 1))]",
    "whole matches of each": "context C select * from pattern [every a=S(price > 30) -> b=S(volume <= a.volume)]",
    "matches of each": "context C select context.key1 as k, a.price as p, b.price as q from pattern [every a=S(price > 30) -> "
    "b=S(price < 60, volume > a.volume) where timer:within(30 msec)]",
    "thirds of each": "context N select context.id as i, a.price as p, c.volume as v from pattern [every a=S -> b=S(volume > 0) -> "
    "c=S(price > 20)] where b.price > 1",
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
    "staying in each": "context C select symbol, price, context.key1 as k from S#keepall",
    "aggregates of what stays in each": "context G select symbol, price, max(price) as m, count(*) as n from S#keepall group by symbol "
    "having count(*) < 5",
    "staying in each at last": "context H select symbol, volume, sum(volume) as s from S#keepall output last every 20 msec",
    "staying in lives": "context D select symbol, price, count(*) as n from S#keepall",
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
    "of each into U": "context C insert into U select symbol, sum(price) as a from S",
    "of categories into U": "context G insert into U select context.label as symbol, max(price) as a from S#length(2)",
    "members": "context C select symbol, volume, avg(price) as a from S where volume > 1",
    "last of each": "context C select symbol, price, sum(price) as s, max(volume) as m, min(price) as n from S#length(2)",
    "totals of each": "context C select context.key1 as k, avg(price) as a, count(*) as n, min(price) as m "
    "from S(volume > 0)#length(3) having count(*) != 2",
    "left of each into U": "context C insert rstream into U select symbol, price as a from S#length(2)",
    "length that ends at times": "context B select sum(price) as s, count(*) as n from S#length(3) output last every 10 msec",
    "length that ends all": "context I select context.id as i, sum(price) as s from S(symbol = context.s.symbol)#length(2) "
    "output all every 15 msec",
    "length that ends there": "context L select sum(price) as s, max(volume) as m from S#length(2) output snapshot every 12 msec",
    "length that ends by events": "context D select context.s.symbol as k, sum(volume) as v from S(symbol = context.s.symbol)#length(3) "
    "output every 3 events",
    "best that end": "context I select context.id as i, min(price) as a, max(price) as b from S#sort(2, price desc) output last every 3 events",
    "groups of length that end": "context L select symbol, sum(price) as s from S#length(3) group by symbol output last every 15 msec",
    "groups of keys that end": "context B select volume, count(*) as n from S#unique(symbol) group by volume output last every 2 events",
    "total of length by key": "context C select sum(price) as s from S#length(2) output last every 15 msec order by sum(price)",
    "rows of length by key": "context C select symbol, price, context.id as i from S#length(2) output last every 15 msec",
    "rows of length by hash": "context M select symbol, price from S(volume > 0)#unique(price) output last every 3 events",
    "rows of length that end": "context I select context.id as i, symbol, price from S#length(2) output last every 10 msec",
    "rows of length that end every": "context L select symbol, price from S#length(2) output every 2 events",
    "totals of keys": "context C select sum(price) as s from S#unique(volume) output all every 10 msec",
    "first of length that ends": "context I select sum(price) as s from S#length(2) output first every 15 msec",
    "ends with a rate": "context Y select sum(price) as s from S#length(3) output last every 10 msec and when terminated",
    "ever of each": "context C select maxever(price) as m, firstever(volume) as v from S",
    "texts of each": "context C select irstream maxby(price).volume as v, last(symbol) as s from S#length(2)",
    "whole rows of each": "context C select window(*).take(2) as w, minby(volume, price desc) as m from S#length(3)",
    "sought in each": "context C select irstream sorted(price, volume desc) as l, sorted(price).floorKey(price) as k from S#length(2)",
    "elements of each": "context C select window(*).allOf(x => x.price > 20) as e, window(price).sumOf() as s from S#length(2)",
    "median of each": "context C select median(price) as m, last(price) as l, count(distinct volume) as n from S#length(3)",
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
    "changes of rows at last": "context C select irstream symbol, price from S#length(2) output last every 15 msec",
    "left of each by twos": "context G select rstream symbol, price from S#length(3)#unique(volume) output every 2 events",
    "rows in time at last": "context C select symbol, price, context.id as i from S#time(20 msec) output last every 15 msec",
    "totals in time by threes": "context N select count(*) as n, sum(price) as s from S#time(20 msec) output every 3 events",
    "groups in time by twos": "context C select volume, sum(price) as s from S#time(15 msec) group by volume output last every 2 events",
    "first in time of each": "context C select irstream symbol, price from S#time(15 msec) output first every 20 msec",
    "first twos of batches": "context H select symbol, sum(price) as s from S#time_batch(15 msec) output first every 2 events",
    "batches there in each": "context P select context.id as i, sum(price) as s from S#length_batch(2) output snapshot every 12 msec",
    "accumulated in each, all": "context C select irstream symbol, price from S#time_accum(15 msec) output all every 20 msec",
    "in time that ends": "context B select irstream symbol, price from S#time(20 msec) output last every 2 events and when terminated",
    "batches that end": "context I select sum(price) as s from S#time_length_batch(15 msec, 3) output every 10 msec and when terminated",
    "left in time that end": "context D select rstream symbol, volume from S#length(3)#time(15 msec) output every 15 msec",
    "first of some": "context C select symbol, count(*) as c from S having count(*) > 2 output first every 15 msec",
    "first of groups of each": "context C select volume, sum(price) as s from S#time(20 msec) group by volume output first every 2 events",
    "first rows of groups": "context G select symbol, price, sum(price) as s from S#length(3) group by symbol output first every 15 msec",
    "first of groups that end": "context D select volume, count(*) as n from S#time_batch(10 msec) group by volume "
    "output first every 20 msec",
    "means of each, every": "context C select symbol, price, avg(price) as a, context.id as i from S#length(3) output every 15 msec",
    "groups of each, every": "context C select volume, sum(price) as s from S#unique(price) group by volume output every 3 events",
    "rows of groups, every": "context G select irstream symbol, volume, max(price) as m from S#time(20 msec) group by volume "
    "output every 2 events",
    "groups that end, every": "context D select volume, count(*) as n from S#time_batch(10 msec) group by volume "
    "having count(*) < 3 output every 20 msec",
    "there in each": "context C select symbol, price, context.id as i from S#time(20 msec) output snapshot every 15 msec",
    "means there in each": "context G select symbol, volume, avg(price) as a from S#length(3) group by volume output snapshot every 2 events",
    "first in time of each, all": "context C select symbol, price from S#firsttime(20 msec) output every 10 msec",
    "first in time that ends": "context I select symbol, sum(price) as s from S#firsttime(15 msec) group by symbol",
    "while few of each": "context C select irstream symbol, sum(price) as s from S#expr(current_count < 3)",
    "while they sum": "context D select irstream symbol, price from S#expr(sum(price) < 90) output last every 2 events",
    "until enough of each": "context G select symbol, sum(price) as s from S#expr_batch(sum(volume) > 4, false) group by symbol",
    "until the greatest": "context I select irstream symbol, price from S#expr_batch(max(price) > 40) output last every 20 msec",
    "all groups of each": "context C select volume, sum(price) as s from S#length(3) group by volume output all every 15 msec",
    "all groups that end": "context D select volume, count(*) as n from S#firstunique(symbol) group by volume output all every 2 events",
    "groups there in time": "context C select volume, sum(price) as s from S#time(20 msec) group by volume output snapshot every 10 msec",
    "newest there": "context I select volume, avg(price) as a from S#unique(volume) output snapshot every 10 msec",
    "newest there of keys": "context C select symbol, price from S#groupwin(volume)#length(2) output snapshot every 2 events",
    "sorted there": "context G select symbol, volume, count(*) as n from S#sort(2, price) output snapshot every 15 msec",
    "ordered there": "context H select symbol, price from S(volume >= 0)#time_order(current_timestamp() + volume, 15 msec) "
    "output snapshot every 10 msec",
    "keys in time of each": "context C select irstream volume, sum(price) as s from S#groupwin(volume)#time(15 msec)",
    "keys in time at last": "context G select irstream symbol, price from S#groupwin(symbol)#time(15 msec) output last every 15 msec",
    "keys in time that end": "context I select symbol, sum(price) as s from S#groupwin(volume)#time(20 msec) group by symbol "
    "output snapshot every 10 msec",
    "waiting there": "context C select symbol, price from S#length_batch(3) output snapshot every 10 msec",
    "waiting groups there": "context D select volume, sum(price) as s from S#time_batch(15 msec) group by volume output snapshot every 2 events",
    "rows and others": "context C select volume, price, sum(price) as s from S#length(3) group by volume output all every 10 msec",
    "rows and others that end": "context D select irstream symbol, price, count(*) as n from S#time(15 msec) group by symbol "
    "output all every 2 events",
    "first of keys in time": "context C select irstream volume, price from S#groupwin(volume)#time(15 msec) output first every 15 msec",
    "there in what ends": "context D select symbol, count(*) as n from S#length(2) output snapshot every 20 msec",
}
