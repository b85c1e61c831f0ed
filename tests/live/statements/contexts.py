"""Statements in contexts."""

STATEMENTS = {
    "most of each": "context C select max(price) as a, min(volume) as b from S",
    "tries of each": "context C select context.key1 as k, a[1].price as p, b.price as q from pattern [every ([2] a=S(volume > 0) -> "
    "b=S(price > 1))]",
    "whole matches of each": "context C select * from pattern [every a=S(price > 30) -> b=S(volume <= a.volume)]",
    "matches of each": "context C select context.key1 as k, a.price as p, b.price as q from pattern [every a=S(price > 30) -> "
    "b=S(price < 60, volume > a.volume) where timer:within(30 msec)]",
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
    "earlier and previous": "context C select prior(1, price) as p, prev(1, price) as q, prevcount(price) as n, context.key1 as k "
    "from S#length(2)",
    "previous of all in each": "context H select prev(2, price) as p, prevtail(symbol) as t from S(volume > 0)#keepall",
    "staying in each": "context C select symbol, price, context.key1 as k from S#keepall",
    "aggregates of what stays in each": "context G select symbol, price, max(price) as m, count(*) as n from S#keepall group by symbol "
    "having count(*) < 5",
    "numbers in each": "context G select context.label as l, average as a, datapoints as n from S(volume > 0)#length(2)#uni(price)",
    "newest in each": "context C select irstream volume, max(price) as m from S#unique(volume) group by volume",
    "of two keys": "context K select context.key1 as k, context.key2 as v, sum(price) as s, count(*) as n from S(price < 50)",
    "categories": "context G select context.label as l, count(*) as n, sum(price) as s from S(price > 1)",
    "categories in time": "context G select irstream context.label as l, sum(price) as s from S#time(20 msec)",
    "categories of length": "context G select context.label as l, symbol, avg(price) as s from S#length(3) group by symbol",
    "rows of categories": "context G select rstream context.label as l, symbol, price from S#length(2)",
    "hash": "context H select context.id as i, symbol, sum(price) as s from S group by symbol",
    "hash ahead": "context P select context.id as i, sum(price) as s, count(*) as n from S(price > 10)#length(3)",
    "of each into U": "context C insert into U select symbol, sum(price) as a from S",
    "of categories into U": "context G insert into U select context.label as symbol, max(price) as a from S#length(2)",
    "members": "context C select symbol, volume, avg(price) as a from S where volume > 1",
    "last of each": "context C select symbol, price, sum(price) as s, max(volume) as m, min(price) as n from S#length(2)",
    "totals of each": "context C select context.key1 as k, avg(price) as a, count(*) as n, min(price) as m "
    "from S(volume > 0)#length(3) having count(*) != 2",
    "left of each into U": "context C insert rstream into U select symbol, price as a from S#length(2)",
    "ever of each": "context C select maxever(price) as m, firstever(volume) as v from S",
    "texts of each": "context C select irstream maxby(price).volume as v, last(symbol) as s from S#length(2)",
    "median of each": "context C select median(price) as m, last(price) as l, count(distinct volume) as n from S#length(3)",
    "in turn": "context Y select sum(price) as s, count(*) as n, context.id as i from S output snapshot when terminated",
    "groups in turn": "context Y select symbol, sum(price) as s from S(volume > 0) group by symbol output snapshot when terminated",
    "until its end": "context B select context.s.symbol as k, context.s.price as p, count(*) as n from S(volume >= 0)",
    "groups until its end": "context B select symbol, sum(price) as p from S group by symbol output last when terminated",
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
    "ended into U": "context L insert into U select context.s.symbol as symbol, sum(price) as a "
    "from S(symbol = context.s.symbol) output snapshot when terminated",
    "first of keys in time": "context C select irstream volume, price from S#groupwin(volume)#time(15 msec) output first every 15 msec",
}
