"""Joins."""

STATEMENTS = {
    "pairs of a key": "select irstream s.symbol as s, r.price as p from S#groupwin(symbol)#length(2) as s, "
    "R#groupwin(volume)#length(1) as r where s.volume = r.volume",
    "pairs": "select a.price as x, b.price as y from S(volume < 2)#time(20 msec) as a, S(volume >= 2)#length(3) as b "
    "where a.symbol = b.symbol",
    "two": "select s.price as x, t.price as y, t.volume as v from S#time(30 msec) as s, R(price > 1)#time(15 msec) as t "
    "where s.symbol = t.symbol and s.price > t.volume",
    "latest": "select s.symbol as s, t.price as y from S(volume > 0) as s unidirectional, R#unique(symbol) as t "
    "where s.symbol = t.symbol",
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
    "pair groups last": "select irstream s.symbol as k, count(*) as n from S#time(20 msec) as s, R#time(20 msec) as t "
    "where s.symbol = t.symbol group by s.symbol output last every 20 msec",
    "pair groups all": "select s.symbol as k, sum(t.price) as x from S#length(3) as s, R#time(20 msec) as t "
    "where s.symbol = t.symbol group by s.symbol having count(*) > 1 output all every 3 events",
    "pair total last": "select irstream sum(t.price) as x from S#time(30 msec) as s, R#unique(symbol) as t "
    "where s.symbol = t.symbol output last every 15 msec",
    "last pairs": "select s.volume as v, t.price as y from S#length(2) as s, S#unique(symbol) as t where s.volume = t.volume "
    "output last every 2 events",
    "latest last": "select t.symbol as k, sum(t.price) as x from S as s unidirectional, R#length(4) as t group by t.symbol "
    "output last every 20 msec",
    "latest total all": "select sum(t.price) as x from S as s unidirectional, R#length(4) as t output all every 3 events",
    "pairs in order": "select s.price as x, t.volume as v from S#time(30 msec) as s, R#length(4) as t "
    "where s.symbol = t.symbol order by s.price limit 2",
    "whole partners": "select a, b.price as p, b from S#length(2) as a, R#length(3) as b where a.symbol = b.symbol",
}
