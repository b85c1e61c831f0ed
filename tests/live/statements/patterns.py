"""Patterns."""

STATEMENTS = {
    "by order": "select a.symbol as s, a.price as p, b.price as q from pattern [every a=S(volume > 0) -> b=S(price > a.price)]",
    "pattern": "select a.price as p, b.volume as v from pattern [every a=S(price>50) -> "
    "b=S(symbol=a.symbol, price<40) where timer:within(30 msec)]",
    "rises": "select a.price as p, b.price as q from pattern [every a=S(volume > 0) -> "
    "b=S(symbol=a.symbol, price > a.price) where timer:within(30 msec)]",
    "S then R": "select a.price as p, b.volume as v from pattern [every a=S(price>50) -> "
    "b=R(symbol=a.symbol, price<40) where timer:within(30 msec)]",
    "S then R ever": "select * from pattern [every a=S -> b=R(volume=a.volume, symbol=a.symbol, price != a.price)]",
    "R then S": "select a.symbol as s, a.volume as v from pattern [every a=R(symbol = 'a') -> S(volume = a.volume)] "
    "where a.price > 1",
    "S then any R": "select a.symbol as symbol, b.price as a from pattern [every a=S(volume > 1) -> "
    "b=R(symbol != 'b') where timer:within(20 msec)] having b.price > a.price",
    "matches of groups": "select a.symbol as k, count(*) as n, sum(b.price) as s from pattern [every a=S(price>30) -> "
    "b=S(symbol=a.symbol, price<60) where timer:within(30 msec)] group by a.symbol",
    "matches in time": "select b.volume as v, max(a.price) as m, count(*) as n from pattern [every a=S(volume > 0) -> "
    "b=R(symbol=a.symbol)]#time(20 msec) group by b.volume",
    "last matches": "select avg(a.price) as p, count(*) as n from pattern [every a=S -> S(volume = 2)]#length(3)",
    "matches of a batch": "select a.symbol as k, sum(b.price) as s from pattern [every a=R -> b=S(symbol=a.symbol)]#length_batch(3) "
    "group by a.symbol",
    "matches by time": "select a.price as p, b.volume as v from pattern [every a=S -> b=S(symbol=a.symbol)]#time_batch(15 msec)",
    "either match": "select * from pattern [every (a=S or b=S(volume > 1))]",
    "tries": "select a.price as p, b.price as q, c.volume as v from pattern [every (a=S(price>20) -> (b=S(symbol=a.symbol) or "
    "c=R(volume=a.volume)) where timer:within(30 msec))]",
    "tries of both": "select * from pattern [every (a=S(volume > 0) -> (b=R(volume > 0) and c=S(price < a.price) and not S(volume = 3)))]",
    "tries until": "select a[0].price as p, a[1].volume as v, b.symbol as s from pattern [every ([1:] a=S(price > 1) until b=R)]",
    "sums of tries": "select a.symbol as k, sum(b[1].price) as s from pattern [every (a=S -> [2] b=S(volume > 0))]#time(30 msec) "
    "group by a.symbol",
    "third": "select a.price as p, c.volume as v from pattern [every a=S(price>30) -> b=R(symbol=a.symbol, price<60) -> "
    "c=S(symbol=b.symbol, volume > a.volume)]",
    "third in time": "select * from pattern [every a=S(price>30) -> (b=S(symbol=a.symbol) -> c=R(symbol=a.symbol) "
    "where timer:within(20 msec)) where timer:within(30 msec)]",
    "sums of thirds": "select a.symbol as k, sum(c.price) as s from pattern [every a=S -> S(symbol = a.symbol) -> c=S(volume = 2)]"
    "#length(3) group by a.symbol",
    "U by U": "select a.a as x, b.a as y from pattern [every a=U(a>30) -> b=U(symbol=a.symbol, a<60) "
    "where timer:within(30 msec)]",
    "matches in order": "select a.price as p, b.volume as v from pattern [every a=S -> b=R(symbol=a.symbol) "
    "where timer:within(30 msec)] order by a.volume desc",
    "whole matches": "select b, a.price as p, a from pattern [every a=S(price > 20) -> b=S(symbol = a.symbol)]",
}
