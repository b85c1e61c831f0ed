"""Statements that insert into streams or change events."""

STATEMENTS = {
    "matches into U": "insert into U select a.symbol as symbol, avg(b.price) as a from pattern [every a=S(price>20) -> "
    "b=S(symbol=a.symbol, volume > 0)]#length(4) group by a.symbol",
    "pairs into U": "insert into U select s.symbol as symbol, sum(t.price) as a from S#length(3) as s, S#unique(symbol) as t "
    "where s.symbol = t.symbol group by s.symbol",
    "into U before": "insert into U select symbol, price as a from S(volume > 1)",
    "earlier into T": "insert into T select symbol, prior(1, price) as p, prior(1, volume) as v from S(volume > 1)",
    "previous into U": "insert into U select prev(1, symbol) as symbol, prev(2, p) as a from T#time(20 msec)",
    "into T": "insert into T select symbol, price * 2 as p, volume as v from S(price > 20)",
    "left into T": "insert rstream into T select symbol, price as p, volume as v from S(volume > 0)#length(2)",
    "removed into T": "insert into T select rstream symbol, price as p, volume as v from S#length_batch(2)",
    "both into U": "insert irstream into U select symbol, sum(price) as a from S#length(3) group by symbol having count(*) < 3",
    "in order into U": "insert rstream into U select irstream symbol, max(price) as a from S#length_batch(3) group by symbol "
    "order by max(price) desc limit 2",
    "pairs left into U": "insert rstream into U select s.symbol as symbol, t.price as a from S#length(3) as s, S#unique(symbol) as t "
    "where s.volume = t.volume",
    "nothing left into U": "insert rstream into U select symbol, price as a from S(price > 20)",
    "average into U": "insert into U select symbol, avg(price) as a from S#time(20 msec) group by symbol",
    "last into U": "insert into U select symbol, sum(price) as a from S(volume > 0) group by symbol output last every 15 msec",
    "gone into U": "insert rstream into U select symbol, price as a from S#time(10 msec)",
    "batches into T": "insert into T select irstream symbol, price as p, volume as v from S#time_batch(20 msec)",
    "T on into U": "insert into U select symbol, max(p) as a from T#length(3) group by symbol",
    "more into T": "insert into T select symbol, price as p, volume as v from S(volume < 2)",
    "R into T": "insert into T select symbol, price as p, volume as v from R",
    "T into U": "insert into U select symbol, avg(p) as a from T#length(4) group by symbol",
    "S into U": "insert into U select symbol, price as a from S(volume = 3)",
    "found": "insert into U select a.symbol as symbol, b.price as a from pattern [every a=S(price>50) -> "
    "b=S(symbol=a.symbol, price<40) where timer:within(30 msec)]",
    "batch into T": "insert into T select symbol, price as p, volume as v from S#length_batch(2)",
    "three into T": "insert into T select symbol, price as p, volume as v from S output every 3 events",
    "best into T": "insert into T select symbol, price as p, volume as v from S#length_batch(3) order by price desc limit 2",
    "texts into T": "insert into T select max(symbol) as symbol, maxby(price).price as p, maxby(price).volume as v from S#length(3)",
    "keys into T": "insert into T select symbol, price as p, volume as v from S#unique(symbol)",
    "first into T": "insert into T select symbol, price as p, volume as v from S#firstlength(5)",
    "batch of each into T": "insert into T select symbol, price as p, volume as v from S#groupwin(symbol)#length_batch(2)",
}
