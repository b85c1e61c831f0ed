"""Joins."""

from __future__ import annotations

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
]
BY_DOUBLES = [
    "select a.id as i, b.id as j, a.price as p from S#length(3) as a inner join S(flag)#length(4) as b on a.price = b.price",
    "select a.price as p, b.id as i from pattern [every a=S -> b=S(price=a.price)]",
    "context C select a.price as p, b.id as i from pattern [every a=S -> b=S(price=a.price)]",
]
"""Joins and patterns whose keys are doubles."""
FOLDED_JOINS = [
    "select irstream max(a.volume) as m, min(b.id) as n from S#length(3) as a, S(flag)#length(4) as b where a.volume = b.volume",
    "select a.symbol as k, count(distinct b.id) as n, median(a.price + 1) as m from S#time(20 msec) as a, S#unique(symbol) as b "
    "where a.volume = b.volume group by a.symbol",
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
    "select a.symbol as k, sum(b.volume) as m from S#length(3) as a, S(flag)#length(4) as b where a.id = b.id group by a.symbol "
    "output every 3 events",
    "select irstream sum(b.price) as m, count(*) as n from S#unique(symbol) as a, S#keepall as b where a.id = b.volume "
    "output every 20 msec",
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
