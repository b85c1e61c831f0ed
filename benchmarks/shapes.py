"""The statements that `benchmarks.engine` measures, as they stand for `rollup.Engine` and for Esper."""

from __future__ import annotations

from dataclasses import dataclass

SCHEMA = (
    "create schema S(symbol string, price double, volume int); create context C partition by symbol from S; "
    "create schema R(symbol string, price double, volume int);"
)


@dataclass(frozen=True)
class Shape:
    """A module, how many symbols events have, how many copies there are: `{i}` in the text is a copy's number.

    Batches go to the `streams` by turns.
    """

    text: str
    keys: int
    copies: int = 1
    streams: tuple[str, ...] = ("S",)

    @property
    def statements(self) -> list[str]:
        """The text of each copy."""
        return [self.text.replace("{i}", str(i)) for i in range(self.copies)]


def _many(n: int) -> Shape:
    return Shape("select * from S(symbol='K{i}')", n, n)


SHAPES = {
    "filter": Shape("select symbol, price * volume as notional from S(price > 50)", 100),
    "length": Shape("select symbol, sum(price) from S#length(1000) group by symbol", 100),
    "time": Shape("select symbol, avg(price) from S#time(60) group by symbol", 100),
    "pattern": Shape(
        "select * from pattern [every a=S(price>90) -> b=S(symbol=a.symbol, price<10) where timer:within(10 sec)]", 100
    ),
    "rises": Shape(
        "select a.price as p, b.price as q from pattern [every a=S(price>90) -> "
        "b=S(symbol=a.symbol, price > a.price * 1.05) where timer:within(10 sec)]",
        100,
    ),
    "two": Shape(
        "select a.price as p, b.price as q from pattern [every a=S(price>90) -> "
        "b=R(symbol=a.symbol, price<10) where timer:within(10 sec)]",
        100,
        streams=("S", "R"),
    ),
    "top": Shape("select symbol, price from S#length_batch(100) order by price desc limit 10", 100),
    "top-groups": Shape(
        "select symbol, sum(price) as s from S#time(60) group by symbol output snapshot every 1 sec "
        "order by sum(price) desc limit 10",
        100,
    ),
    "statements-1": _many(1),
    "statements-100": _many(100),
    "statements-10000": _many(10_000),
    "context": Shape("context C select symbol, count(*) as c, avg(price) as p from S output last every 1 sec", 10_000),
    "join": Shape(
        "select a.price as x, b.price as y from S(volume<50)#time(1 sec) as a, S(volume>=50)#time(1 sec) as b "
        "where a.symbol = b.symbol",
        100,
    ),
    "unique": Shape("select sum(price) as s, count(*) as n from S#unique(symbol)", 1000),
    "sort": Shape("select sum(price) as s, count(*) as n from S#sort(100, price desc)", 100),
    "extremes": Shape("select symbol, min(price) as a, max(price) as b from S#length(1000) group by symbol", 100),
    "irstream": Shape("select irstream symbol, sum(price) as s from S#length(1000) group by symbol", 100),
    "both": Shape("select * from pattern [every (a=S(price>98) and b=S(price<2))]", 100),
    "named": Shape(
        "create window W#length(1000) as S; insert into W select * from S; select sum(price) as s from W", 100
    ),
    "table": Shape(
        "create table T(symbol string primary key, total double); "
        "on S as s merge T as t where t.symbol = s.symbol when matched then update set total = t.total + s.price "
        "when not matched then insert select s.symbol as symbol, s.price as total",
        10_000,
    ),
    "sub-query": Shape(
        "select symbol, price - (select avg(price) from S(volume<10)#length(100)) as d from S(volume>=10)", 100
    ),
    "chain": Shape(
        "insert into T select symbol, price * volume as notional from S(price > 20); "
        "insert into U select symbol, sum(notional) as total from T#length(1000) group by symbol; "
        "select * from U(total > 100000)",
        100,
    ),
    "division": Shape("select symbol, (price - 50) / (volume + 1) as r from S(symbol like 'K1%' or volume > 10)", 100),
    "keys": Shape("select symbol, volume, sum(price) as s from S#length(1000) group by symbol, volume", 100),
    "leaving": Shape("select irstream symbol, price from S#length(1000)", 100),
    "output": Shape("select symbol, avg(price) as a from S#time(60) group by symbol output last every 1 sec", 100),
    "output-events": Shape("select symbol, price * volume as notional from S(price > 50) output every 100 events", 100),
    "first": Shape("select symbol, sum(price) as s from S#length(1000) group by symbol output first every 1 sec", 100),
    "partitions": Shape("context C select symbol, sum(price) as s from S(price > 20)", 100),
    "until": Shape("select * from pattern [every (a=S(price>95) until b=S(price<5))]", 100),
    "not": Shape(
        "select * from pattern [every (a=S(price>95) -> "
        "(b=S(symbol=a.symbol, price<20) and not S(symbol=a.symbol, price>80)))]",
        100,
    ),
    "batch": Shape("select symbol, sum(price) as s from S#length_batch(100) group by symbol", 100),
    "time-batch": Shape(
        "select symbol, sum(price) as s from S#time_batch(1 sec) group by symbol output last every 5 sec", 100
    ),
    "groupwin": Shape("select symbol, avg(price) as a from S#groupwin(symbol)#length(10) group by symbol", 100),
    "merge": Shape(
        "create window W#unique(symbol) as S; on S as s merge W as w where w.symbol = s.symbol "
        "when matched then update set price = w.price + s.price when not matched then insert select *",
        100,
    ),
    "initiated": Shape(
        "create context I initiated by S(price>99) terminated after 1 sec; "
        "context I select count(*) as n, sum(price) as p from S(volume>90) output snapshot when terminated",
        100,
    ),
    "join-3": Shape(
        "select a.price as x, b.price as y, c.price as z from S(volume<5)#time(1 sec) as a, "
        "S(volume>=95)#time(1 sec) as b, S(volume between 10 and 14)#time(1 sec) as c "
        "where a.symbol = b.symbol and b.symbol = c.symbol",
        100,
    ),
    "levels": Shape("select symbol, volume, sum(price) as s from S#length(1000) group by rollup(symbol, volume)", 100),
    "rate": Shape("select symbol, sum(price) as s from S#length(1000) group by symbol output last every 1 sec", 100),
    "previous": Shape("select symbol, price - prev(1, price) as d from S#length(10)", 100),
    "prior": Shape("select symbol, price - prior(1, price) as d from S", 100),
    "prior-average": Shape("select symbol, avg(price - prior(1, price)) as d from S#time(1 sec) group by symbol", 100),
    "outer": Shape(
        "select a.symbol as s, a.price as x, b.price as y from S(volume<50)#length(100) as a "
        "full outer join S(volume>=50)#length(100) as b on a.symbol = b.symbol",
        100,
    ),
    "lookup": Shape(
        "create table T(symbol string primary key, total double); "
        "on S(volume<10) as s merge T as t where t.symbol = s.symbol "
        "when matched then update set total = t.total + s.price "
        "when not matched then insert select s.symbol as symbol, s.price as total; "
        "select s.symbol as k, t.total as x from S(volume>=10) as s, T as t where s.symbol = t.symbol",
        100,
    ),
}

_LATEST = "create window W#unique(symbol) as S; insert into W select * from S(volume<10); "
_LAST_1000 = "create window W#length(1000) as S; insert into W select * from S(volume<10); "
SHAPES |= {
    name: Shape(text, 100)
    for name, text in {
        "previous-by": "select symbol, price - prev(1, price) as d from S#groupwin(symbol)#length(10)",
        "ask-latest": _LATEST
        + "select s.price - (select w.price from W as w where w.symbol = s.symbol) as d from S(volume>=10) as s",
        "ask-average": _LAST_1000
        + "select s.price - (select avg(w.price) from W as w where w.symbol = s.symbol) as d from S(volume>=10) as s",
        "exists": "select symbol, price from S(volume>=10) as s "
        "where exists (select * from S(volume<10)#length(100) as w where w.symbol = s.symbol)",
        "on-select": _LATEST
        + "on S(volume>=10) as s select w.symbol as k, w.price - s.price as d from W as w where w.symbol = s.symbol",
        "on-update": _LATEST
        + "on S(volume>=10) as s update W as w set price = w.price + s.price where w.symbol = s.symbol",
        "on-delete": _LATEST + "on S(volume>=90) as s delete from W as w where w.symbol = s.symbol",
        "join-latest": _LATEST
        + "select w.price - s.price as d from S(volume>=10) as s unidirectional, W as w where w.symbol = s.symbol",
        "into-table": "create table T(symbol string primary key, total sum(double)); "
        "into table T select sum(price) as total from S(volume<10) group by symbol; "
        "select symbol, T[symbol].total as x from S(volume>=10)",
        "split": "create schema A(symbol string, price double); create schema B(symbol string, price double); "
        "on S insert into A select symbol, price where price > 70 insert into B select symbol, price; "
        "select * from A; select symbol, price * 2 as d from B",
        "inserts": "insert into A select symbol, price, volume from S(price > 20); "
        "insert into B select symbol, price * volume as notional from A(volume > 5); "
        "insert into C2 select symbol, notional from B(notional > 1000); select symbol, notional as n from C2",
        "distinct": "select distinct symbol from S#length_batch(100)",
        "expression": "select symbol, price, sum(price) as s from S#expr(newest_timestamp - oldest_timestamp < 1000)",
        "ends": "select symbol, first(price) as f, last(price) as l from S#length(1000) group by symbol",
        "rows-of": "select symbol, window(price) as w from S#length(10)",
        "median": "select symbol, median(price) as m from S#length(1000) group by symbol",
        "deviation": "select symbol, stddev(price) as d, avedev(price) as a from S#length(1000) group by symbol",
        "ever": "select symbol, maxever(price) as m from S group by symbol",
        "count-distinct": "select symbol, count(distinct volume) as n from S#length(1000) group by symbol",
        "set": "create variable double last_price = 0; on S(volume<10) set last_price = price; "
        "select symbol, price - last_price as d from S(volume>=10)",
    }.items()
}
