"""What users write beside the shapes of `benchmarks.shapes`: statements by topic, for `rollup.Engine` and for "
"Esper."""

from __future__ import annotations

_LAST_1000 = "create window W#length(1000) as S; insert into W select * from S; "
_LAST_SECOND = "create window W#time(1 sec) as S; insert into W select * from S; "
_LATEST = "create window W#unique(symbol) as S; insert into W select * from S(volume<10); "

WRITTEN = {
    "windows": {
        "time order": "select sum(price) as s from S#time_order(current_timestamp, 1 sec)",
        "time accum": "select symbol, sum(price) as s from S(volume<3)#time_accum(50 msec) group by symbol",
        "ext timed": "select symbol, sum(price) as s from S#ext_timed(current_timestamp, 1 sec) group by symbol",
        "ext timed rows": "select irstream symbol, price from S#ext_timed(current_timestamp, 1 sec)",
        "ext batch": "select symbol, sum(price) as s from S#ext_timed_batch(current_timestamp, 1 sec) group by symbol",
        "ttl": "select sum(price) as s from S#timetolive(current_timestamp + volume * 10)",
        "rank": "select sum(price) as s, count(*) as n from S#rank(symbol, 20, price desc)",
        "rank rows": "select irstream symbol, price from S#rank(symbol, 20, price desc)",
        "sort rows": "select irstream symbol, price from S#sort(100, price desc)",
        "sort2": "select sum(price) as s from S#sort(100, symbol, price desc)",
        "unique2": "select sum(price) as s from S#unique(symbol, volume)",
        "unique rows": "select irstream symbol, price from S#unique(symbol)",
        "firstunique": "select sum(price) as s from S#firstunique(symbol, volume)",
        "firstlength": "select symbol, price from S#firstlength(1000)",
        "firsttime": "select symbol, price from S#firsttime(10 sec)",
        "lastevent": "select symbol, price from S#lastevent",
        "groupwin rows": "select irstream symbol, price from S#groupwin(symbol)#length(10)",
        "groupwin time": "select symbol, avg(price) as a from S#groupwin(symbol)#time(1 sec) group by symbol",
        "groupwin2": "select symbol, volume, avg(price) as a from S#groupwin(symbol, volume)#length(10) group by "
        "symbol, volume",
        "groupwin batch": "select symbol, sum(price) as a from S#groupwin(symbol)#length_batch(10) group by symbol",
        "intersection": "select sum(price) as s from S#unique(symbol)#time(1 sec)",
        "intersection rows": "select irstream symbol, price from S#unique(symbol)#length(50)",
        "union": "select sum(price) as s from S#unique(symbol)#length(50) retain-union",
        "expr count": "select sum(price) as s from S#expr(current_count <= 100)",
        "expr sum": "select sum(price) as s from S#expr(sum(price) < 1000)",
        "expr batch": "select sum(price) as s from S#expr_batch(current_count >= 100)",
        "time length batch": "select symbol, sum(price) as s from S#time_length_batch(1 sec, 100) group by symbol",
        "uni": "select datapoints, average, stddev from S#length(1000)#uni(price)",
        "correl": "select correlation from S#length(1000)#correl(price, volume)",
        "linest": "select slope, YIntercept from S#length(1000)#linest(price, volume)",
        "weighted avg": "select average from S#length(1000)#weighted_avg(price, volume)",
        "size": "select size from S#length(1000)#size",
    },
    "aggregates": {
        "filtered": "select symbol, sum(price, filter: volume > 50) as s, count(*, filter: volume < 10) as n from "
        "S#length(1000) group by symbol",
        "group by local": "select symbol, sum(price, group_by: symbol) as s, sum(price, group_by: ()) as t from "
        "S#length(1000)",
        "rate": "select rate(10) as r from S output last every 1 sec",
        "nth": "select symbol, nth(price, 2) as s from S#length(1000) group by symbol",
        "leaving agg": "select leaving() as l, count(*) as n from S#length(1000)",
        "maxby": "select maxby(price).symbol as s, minby(price).symbol as m from S#length(1000)",
        "min text": "select max(symbol) as m from S#length(1000)",
        "window agg": "select window(price) as w from S#length(10)",
        "sum volume long": "select sum(cast(volume, long)) as s from S#length(1000)",
        "countever": "select symbol, countever(*) as n from S#length(1000) group by symbol",
        "maxever window": "select symbol, maxever(price) as n from S#length(1000) group by symbol",
    },
    "outputs": {
        "istream": "select istream(price) as a from S",
        "prevwindow": "select prevwindow(price) as w from S#length(10)",
        "prevcount": "select symbol, prevcount(price) as w, prevtail(price) as t from S#length(100)",
        "output when": "select symbol, sum(price) as s from S#length(1000) group by symbol output last when "
        "count_insert >= 100",
        "output at": "select symbol, sum(price) as s from S#length(1000) group by symbol output last at (*, *, *, *, "
        "*)",
        "output after": "select symbol, price from S output after 10 events",
        "output after last": "select symbol, sum(price) as s from S#length(1000) group by symbol output after 5 sec "
        "last every 1 sec",
        "first total": "select sum(price) as s from S#time(1 sec) output first every 100 msec",
        "order rate": "select symbol, sum(price) as s from S#length(1000) group by symbol output last every 1 sec "
        "order by symbol",
        "leaving having": "select irstream symbol, sum(price) as s from S#time(1 sec) group by symbol having "
        "sum(price) > 300",
    },
    "sub-queries": {
        "in select": "select symbol, price from S(volume>=10) as s where volume in (select volume from "
        "S(volume<50)#length(100))",
        "all select": "select symbol, price from S(volume>=10) as s where price > all (select price from "
        "S(volume<10)#length(10))",
        "any select": "select symbol, price from S(volume>=10) as s where price > any (select price from "
        "S(volume<10)#length(10))",
        "not exists": "select symbol, price from S(volume>=10) as s where not exists (select * from "
        "S(volume<3)#time(1 sec) as w where w.symbol = s.symbol)",
        "sub last": "select symbol, price - (select price from S(volume<10)#lastevent) as d from S(volume>=10)",
        "sub unique": "select symbol, price - (select w.price from S(volume<10)#unique(symbol) as w where w.symbol = "
        "s.symbol) as d from S(volume>=10) as s",
    },
    "joins": {
        "join group": "select a.symbol as k, sum(b.price) as s from S(volume<50)#length(100) as a, "
        "S(volume>=50)#length(100) as b where a.symbol = b.symbol group by a.symbol",
        "join last": "select a.price - b.price as d from S(volume<50)#lastevent as a, S(volume>=50)#lastevent as b",
        "join unique": "select a.symbol as k, a.price - b.price as d from S(volume<50)#unique(symbol) as a, "
        "S(volume>=50)#unique(symbol) as b where a.symbol = b.symbol",
        "join left": "select a.symbol as k, b.price as p from S(volume<50)#time(1 sec) as a left outer join "
        "S(volume>=50)#unique(symbol) as b on a.symbol = b.symbol",
        "join uni": "select a.symbol as k, b.price as p from S(volume>=50) as a unidirectional, "
        "S(volume<50)#unique(symbol) as b where a.symbol = b.symbol",
        "join uni group": "select a.symbol as k, sum(b.price) as p from S(volume>=90) as a unidirectional, "
        "S(volume<50)#length(100) as b where a.symbol = b.symbol group by a.symbol",
        "join range": "select a.price as x, b.price as y from S(volume<5)#length(20) as a, S(volume>=95)#length(20) "
        "as b where a.price > b.price",
        "join irstream": "select irstream a.price as x, b.price as y from S(volume<50)#length(100) as a, "
        "S(volume>=50)#length(100) as b where a.symbol = b.symbol",
        "join rate": "select a.symbol as k, count(*) as n from S(volume<50)#time(1 sec) as a, S(volume>=50)#time(1 "
        "sec) as b where a.symbol = b.symbol group by a.symbol output last every 1 sec",
    },
    "patterns": {
        "followed3": "select a.price as x, c.price as y from pattern [every a=S(price>95) -> b=S(symbol=a.symbol, "
        "price<50) -> c=S(symbol=a.symbol, price>50)]",
        "followed3 within": "select a.price as x, c.price as y from pattern [every a=S(price>95) -> "
        "(b=S(symbol=a.symbol, price<50) -> c=S(symbol=a.symbol, price>50)) where timer:within(1 sec)]",
        "or": "select a.price as x, b.price as y from pattern [every (a=S(price>98) or b=S(price<2))]",
        "repeat": "select a[0].price as x from pattern [every [3] a=S(price>90)]",
        "every distinct": "select a.price as x from pattern [every-distinct(a.symbol, 10 sec) a=S(price>50)]",
        "absence": "select a.symbol as s from pattern [every a=S(price>95) -> (timer:interval(1 sec) and not "
        "S(symbol=a.symbol, price<50))]",
        "while": "select a.price as x from pattern [(every a=S(price>90)) while (a.price < 99.9)]",
        "interval": "select * from pattern [every timer:interval(10 msec)]",
        "pattern window": "select sum(a.price) as s from pattern [every a=S(price>90) -> b=S(symbol=a.symbol, "
        "price<10)]#length(100)",
        "pattern group": "select a.symbol as k, count(*) as n from pattern [every a=S(price>90) -> "
        "b=S(symbol=a.symbol, price<10) where timer:within(10 sec)] group by a.symbol",
        "every a every b": "select a.price as x, b.price as y from pattern [every a=S(price>95) -> every "
        "b=S(symbol=a.symbol, price<10) where timer:within(1 sec)]",
    },
    "contexts": {
        "category": "create context K group by price < 30 as low, group by price >= 30 and price < 70 as middle, "
        "group by price >= 70 as high from S; context K select context.label as l, count(*) as n, sum(price) as s "
        "from S",
        "category window": "create context K group by price < 50 as low, group by price >= 50 as high from S; "
        "context K select context.label as l, avg(price) as s from S#length(100)",
        "hash": "create context H coalesce by consistent_hash_crc32(symbol) from S granularity 16 preallocate; "
        "context H select context.id as i, symbol, sum(price) as s from S group by symbol",
        "session": "create context I initiated by S(price>99) as s terminated by S(symbol = s.symbol, price<1); "
        "context I select context.s.symbol as k, count(*) as n from S(symbol = context.s.symbol)",
        "distinct init": "create context I initiated by distinct(symbol) S as s terminated after 1 sec; context I "
        "select context.s.symbol as k, sum(price) as p from S(symbol = context.s.symbol) output snapshot when "
        "terminated",
        "start end": "create context I start S(price>99) end after 1 sec; context I select sum(price) as p, count(*) "
        "as n from S",
        "keyed rows": "context C select irstream symbol, price from S#length(3)",
        "keyed time": "context C select symbol, sum(price) as p from S#time(1 sec)",
        "keyed group": "context C select symbol, volume, sum(price) as p from S group by volume",
        "keyed pattern": "context C select a.price as x, b.price as y from pattern [every a=S(price>90) -> "
        "b=S(price<10)]",
        "keyed prev": "context C select symbol, price - prev(1, price) as d from S#length(2)",
        "keyed snapshot": "context C select symbol, sum(price) as p from S output snapshot every 1 sec",
        "keyed batch": "context C select symbol, sum(price) as p from S#length_batch(10)",
        "nested": "create context N context A partition by symbol from S, context B group by price < 50 as low, "
        "group by price >= 50 as high from S; context N select context.A.key1 as k, context.B.label as l, "
        "sum(price) as s from S",
        "nonoverlap time": "create context I start @now end after 1 sec; context I select symbol, sum(price) as p "
        "from S group by symbol output snapshot when terminated",
    },
    "stores": {
        "named group": _LAST_1000 + "select symbol, sum(price) as s from W group by symbol",
        "named ir": _LAST_1000 + "select irstream symbol, price from W",
        "named filter": _LAST_1000 + "select symbol, price from W(price > 90)",
        "named snapshot": _LAST_1000 + "select symbol, sum(price) as s from W group by symbol output snapshot every "
        "1 sec",
        "named join": _LATEST + "select w.symbol as k, s.price as p from W as w, S(volume>=90)#length(10) as s where "
        "w.symbol = s.symbol",
        "ins max": "insert into M select symbol, max(price) as m from S#length(100) group by symbol; select symbol, "
        "m from M(m > 90)",
        "rstream into": "insert rstream into M select symbol, price from S#length(100); select symbol, sum(price) as "
        "s from M#length(100) group by symbol",
        "into count": "create table T(symbol string primary key, n count(*), s sum(double)); into table T select "
        "count(*) as n, sum(price) as s from S group by symbol",
        "on merge table": "create table T(symbol string primary key, n int, s double); on S as s merge T as t where "
        "s.symbol = t.symbol when matched then update set n = t.n + 1, s = t.s + s.price when not matched then "
        "insert select s.symbol as symbol, 1 as n, s.price as s",
        "on select del": _LATEST + "on S(volume>=90) as s select and delete w.symbol as k from W as w where w.symbol "
        "= s.symbol",
    },
    "rest": {
        "update istream": "update istream S set price = price * 2 where volume > 50; select symbol, price from S",
        "variable filter": "create variable double limit_ = 50; select symbol, price from S(price > limit_)",
        "expression decl": "create expression notional { s => s.price * s.volume }; select notional(s) as n from S "
        "as s",
        "enumeration": "select window(*).where(x => x.price > 50).sumOf(x => x.price) as s from S#length(10)",
        "window filter": "select symbol, price from S#length(100) where price > 90",
        "split3": "on S insert into A select symbol, price where price > 70 insert into B select symbol, price where "
        "price > 40 insert into D select symbol, price; select count(*) as n from A; select count(*) as n from B; "
        "select count(*) as n from D",
        "dedup": "select symbol, price from S#firstunique(symbol)",
        "topn": "select symbol, sum(price) as s from S#time_batch(1 sec) group by symbol order by sum(price) desc "
        "limit 3",
        "percentile": "select symbol, median(price) as m from S#time(1 sec) group by symbol",
        "case": "select symbol, case when price > 50 then 'high' else 'low' end as c from S",
        "concat": "select symbol || '-' || cast(volume, string) as c from S",
        "method": "select symbol.toUpperCase() as c, Math.round(price) as r from S",
        "having total": "select avg(price) as a from S#time(1 sec) having avg(price) > 51",
    },
    "named windows": {
        "named time": _LAST_SECOND + "select symbol, sum(price) as s from W group by symbol",
        "named time total": _LAST_SECOND + "select sum(price) as s from W",
        "named time irstream": _LAST_SECOND + "select irstream symbol, price from W",
        "named time filter": _LAST_SECOND + "select symbol, sum(price) as s from W(volume > 50) group by symbol",
        "named time having": _LAST_SECOND
        + "select symbol, sum(price) as s from W group by symbol having sum(price) > 500",
        "named time last": _LAST_SECOND
        + "select symbol, sum(price) as s from W group by symbol output last every 1 sec",
        "named time snapshot": _LAST_SECOND
        + "select symbol, sum(price) as s from W group by symbol output snapshot every 1 sec",
        "named time asked": _LAST_SECOND + "select symbol, (select sum(price) from W) as s from S",
        "named time delete": _LAST_SECOND
        + "on R as r delete from W where W.symbol = r.symbol; select symbol, sum(price) as s from W group by symbol",
        "named time batch": "create window W#time_batch(1 sec) as S; insert into W select * from S; select symbol, "
        "sum(price) as s from W group by symbol",
        "named length batch": "create window W#length_batch(100) as S; insert into W select * from S; select "
        "symbol, sum(price) as s from W group by symbol",
        "named ext timed": "create window W#ext_timed(current_timestamp(), 1 sec) as S; insert into W select * "
        "from S; select symbol, sum(price) as s from W group by symbol",
        "named sort": "create window W#sort(100, price desc) as S; insert into W select * from S; select symbol, "
        "sum(price) as s from W group by symbol",
        "named unique": "create window W#unique(symbol) as S; insert into W select * from S; select symbol, "
        "sum(price) as s from W group by symbol",
        "named in a context": "create context X partition by symbol from S; context X create window W#length(10) "
        "as S; context X insert into W select * from S; context X select sum(price) as s from W",
        "named keepall": "create window W#keepall as S; insert into W select * from S(volume<50); on S(volume>=50) "
        "delete from W where W.symbol = S.symbol; select count(*) as n from W",
        "named asked on": "create window W#length(100) as S; insert into W select * from S; on S(volume>90) as e "
        "select w.symbol as y, sum(w.price) as s from W as w group by w.symbol",
        "named merge delete": "create window W#unique(symbol) as S; on S as e merge W as w where w.symbol = "
        "e.symbol when matched and e.volume > 90 then delete when matched then update set price = w.price + "
        "e.price when not matched then insert select *",
    },
    "in contexts": {
        "keyed prior": "context C select price - prior(1, price) as d from S",
        "keyed time batch": "context C select symbol, sum(price) as s from S#time_batch(1 sec)",
        "keyed sort": "context C select symbol, sum(price) as s from S#sort(10, price desc)",
        "keyed unique": "context C select symbol, sum(price) as s from S#unique(volume)",
        "keyed join": "context C select a.price as x, b.price as y from S(volume<50)#length(10) as a, "
        "S(volume>=50)#length(10) as b where a.volume = b.volume + 50",
        "keyed sub-query": "context C select price from S where price > (select avg(price) from S#length(10))",
        "keyed window rate": "context C select symbol, sum(price) as s from S#length(10) output last every 1 sec",
        "keyed first": "context C select symbol, price from S output first every 100 msec",
        "keyed table": "context C create table T(n count(*)); context C into table T select count(*) as n from S",
        "when terminated": "create context X initiated by S(volume=0) as s terminated after 1 sec; context X "
        "select symbol, count(*) as n from S group by symbol output snapshot when terminated",
        "rate that ends": "create context X start @now end after 10 sec; context X select symbol, sum(price) as s "
        "from S group by symbol output last every 1 sec",
        "window that ends": "create context X start S(volume<10) as s end after 1 sec; context X select sum(price) "
        "as s from S#length(10)",
        "begun by pattern": "create context X initiated by pattern [every a=S(volume=0)] terminated after 1 sec; "
        "context X select count(*) as n from S",
    },
    "shown": {
        "window shown": "select window(*) as w from S#length(10)",
        "maxby shown": "select maxby(price) as m from S#length(1000)",
        "sorted shown": "select sorted(price) as l from S#length(20)",
        "sorted asked": "select sorted(price).lowerKey(50.0) as k from S#length(100)",
        "first of all shown": "select first(*) as f, last(*) as l from S#length(10)",
        "where shown": "select window(*).where(x => x.price > 50) as w from S#length(10)",
        "prev shown": "select prev(1, s) as p from S#length(10) as s",
        "events shown": "select a, b from pattern [every a=S(price>90) -> b=S(symbol=a.symbol, price<10)]",
    },
    "variables": {
        "constant": "create constant variable double most = 50; select symbol, sum(price) as s from S#length(1000) "
        "group by symbol having sum(price) > most",
        "variable having": "create variable double most = 50; select symbol, sum(price) as s from S#length(1000) "
        "group by symbol having sum(price) > most",
        "variable set": "create variable double most = 50; on S(volume>95) set most = price; select symbol, price "
        "from S(price > most)",
        "variable rate": "create variable int n = 0; on S(volume=0) set n = n + 1; select symbol, sum(price) as s "
        "from S group by symbol output last when n > 5 then set n = 0",
    },
    "compared": {
        "all of groups": "select symbol from S as s where price > all (select avg(price) from S#length(100) group "
        "by symbol)",
        "sub-query of another": "select symbol, (select avg(price) from R#length(100) as r where r.symbol = "
        "s.symbol) as a from S as s",
        "join three": "select a.symbol from S#unique(symbol) as a, R#unique(symbol) as b, S#lastevent as c where "
        "a.symbol = b.symbol and b.symbol = c.symbol",
        "and": "select a.price as x, b.price as y from pattern [every (a=S(price>98) and b=S(price<2))]",
        "and not": "select a.price as x, b.price as y from pattern [every a=S(price>95) -> (b=S(symbol=a.symbol, "
        "price<20) and not S(symbol=a.symbol, price>80))]",
        "limited": "select a.price as x, b.price as y from pattern [every a=S(price>95) -[10]> "
        "b=S(symbol=a.symbol, price<10)]",
        "discarding": "select a.price as x, b.price as y from pattern @DiscardPartialsOnMatch [every a=S(price>95) "
        "-> b=S(symbol=a.symbol, price<10)]",
        "pattern joined": "select p.a.price as x, w.price as y from pattern [every a=S(price>98) -> "
        "b=S(symbol=a.symbol, price<10)] as p unidirectional, S#length(10) as w",
        "groupwin sort": "select symbol, max(price) as m from S#groupwin(symbol)#sort(3, price desc) group by symbol",
        "rows snapshot": "select symbol, price from S#unique(symbol) output snapshot every 1 sec",
        "rate of a second": "select rate(1) as r, count(*) as n from S#time(1 sec) output snapshot every 1 sec",
        "average inserted": "insert into A select symbol, avg(price) as p from S#time(1 sec) group by symbol; "
        "select symbol, p from A where p > 50; select max(p) as m from A#length(100)",
    },
}
