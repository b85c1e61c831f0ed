"""Statements that no core covers, and the first reason against each."""

from __future__ import annotations

REFUSED = {
    "select irstream symbol, leaving() as l from S#time(20 msec) group by symbol": (
        "the aggregate leaving by groups with the remove stream, or of batches"
    ),
    "select leaving(filter: price > 3) as l from S#length(3)": "the aggregate leaving with a filter",
    "select sum(price) as s from S#expr(not leaving())": "the aggregate leaving by groups with the remove stream, or of batches",
    "select symbol, rate(20 msec) as r from S#length(3) group by symbol": "the aggregate rate over 20",
    "select rate(20 msec, filter: price > 3) as r from S": "the aggregate rate over 20",
    "select symbol, first(price, filter: volume > 1) as f from S#length(3) group by symbol": "the aggregate first with a filter",
    "select max(symbol) as m from S#unique(id)": "max of string",
    "select max(flag) as m from S#length(3)": "max by bool",
    "select maxby(price).id as i from S#sort(3, id)": "the aggregate maxby",
    "select sorted(price, filter: volume > 1) as i from S#length(3)": "the aggregate sorted",
    "select sorted(price, id).firstEvent() as m from S#unique(id)": "the aggregate minby",
    "select window(price) as w from S#time(3 msec)": "lists of what a window holds, other than one of at most 256 rows, of all or of a key",
    "select window(price) as w from S#unique(id)": "the aggregate window",
    "select id, window(price).take(volume) as w from S#length(3)": "the operator take",
    "select window(*).orderBy(x => x.flag) as w from S#length(3)": "the operator orderby",
    "select window(*).except(window(*)) as w from S#length(3)": "the operator except",
    "select window(*).where((x, i) => i > 0).countOf() as w from S#length(3)": "the operator where",
    "select price, window(*).countOf(x => x.price > price) as w from S#length(3)": "a value of type S[]",
    "select symbol, window(*).countOf() as w from S#length(3) group by rollup(symbol)": (
        "lists of what a window holds in grouping sets"
    ),
    "select window(*) as w from S#length(300)": "lists of what a window holds, other than one of at most 256 rows, of all or of a key",
    "select window(price, filter: id > 1) as w from S#length(3)": "the aggregate window with a filter",
    "select max(distinct symbol) as m from S#length(3)": "max of string",
    "select rstream symbol from S": "the remove stream",
    "select rstream symbol, price, sum(price) as s from S#keepall group by symbol": "the remove stream of one row a row",
    "select rstream symbol, price from S#keepall": "the remove stream",
    "select a.price as p from pattern [every (a=S(id > 0) -> b=S(price=a.price))]": (
        "a key of type double, where one match is looked for at a time"
    ),
    "select symbol from S#sort(3, price) limit 1": "a limit over a window of keys",
    "select irstream symbol from S#sort(3, flag)": "a window by a bool",
    "select symbol from S#time_batch(3, 'FORCE_UPDATE')": "the window TimeBatch",
    "select symbol from S limit 0": "order by, limit or distinct of rows that come one by one",
    "select * from pattern [every a=S -> b=S(id=a.id)] limit 3": "limit or distinct of a pattern without order by",
    "select * from pattern [every a=S -> b=S(id=a.id)] order by a.id": "order by, limit or distinct of whole rows",
    "select sum(price) from S#groupwin(symbol)#time_batch(10)": "the window Grouped",
    "select symbol, nth(price, 1) from S group by symbol": "the aggregate nth",
    "select irstream symbol, maxever(price) from S#length(3) group by symbol": (
        "the aggregate maxever by groups with the remove stream, or of batches"
    ),
    "select symbol, countever(*) from S#groupwin(symbol)#length_batch(3) group by symbol": (
        "the aggregate countever by groups with the remove stream, or of batches"
    ),
    "select symbol, lastever(price) from S#length(3) group by symbol output all every 3 events": (
        "aggregates of all that ever came by groups, which an output may show when they have emptied"
    ),
    "select symbol, median(price) from S#keepall group by symbol": "the aggregate median",
    "select count(distinct symbol) as n from S#length(3)": "count of different values of type string",
    "select irstream symbol, price, sum(price) as s from S#unique(id) group by symbol output first every 2 events": (
        "output first by groups with the remove stream"
    ),
    "select sum(price) from S#time_length_batch(3, 3, 'FORCE_UPDATE')": "the window TimeLengthBatch",
    "select sum(price) from S#expr(symbol = 'a')": "a window by a condition that no loop can ask",
    "select sum(price) from S#expr_batch(current_timestamp > 3)": "the window ExpressedBatch",
    "select sum(price) from S#expr(median(price) < 3) output every 2 events": "aggregates of such a window that an output works out",
    "select sum(price) from S#time(9223372036854775000 msec)": "a span of more than 62 bits",
    "select sum(price) from S output last every 9223372036854775 sec": "a span of more than 62 bits",
    "select sum(price) from S#ext_timed(price, 3 msec)": "a window by a time that is a double",
    "select size, symbol from S#length(3)#size(symbol)": "the window Derived",
    "context C select size from S#length(3)#size": "the window Derived in a context",
    "context N select sum(price) as s from S#firsttime(20 msec)": "a context of several levels",
    "context C select sum(price) as s from S#expr(median(price) < 5)": "the window Expressed in a context",
    "select sum(price) from S#time_order(price, 3 msec)": "the window TimeOrder",
    "select sum(price) from S#time_order(id, 3 msec)#unique(symbol)": "the window Intersection",
    "select prior(1, price) as p from S#time_order(id, 3 msec)": "earlier events over the window TimeOrder",
    "select irstream symbol, sum(price) as s from S#length(3) where volume > 0 group by symbol output all every 3 events": (
        "output all by groups with where behind a window"
    ),
    "select irstream prev(1, price) as p from S#length(3)": "prev beside aggregates, with the remove stream, or over a "
    "window other than length, time, keepall, a key's",
    "select prev(1, price) as p, sum(price) as s from S#time(20 msec)": "prev beside aggregates, with the remove stream, or "
    "over a window other than length, time, keepall, a key's",
    "select prev(1, price) as p from S#length_batch(3)": "prev beside aggregates, with the remove stream, or over a "
    "window other than length, time, keepall, a key's",
    "select prev(volume, price) as p from S#length(3)": "an earlier event other than a field of the one that is so many before",
    "select istream() as a from S where istream()": "the look-up Arriving",
    "select irstream istream() as a from S": "the look-up Arriving",
    "select prevtail(1, price) as p from S#groupwin(symbol)#length(3)": "another row of a key's window than its oldest one",
    "select prevwindow(price) as p from S#keepall": "lists of what a window holds, other than one of at most 256 rows, of all "
    "or of a key",
    "select prevwindow(price) as p from S#length(300)": "lists of what a window holds, other than one of at most 256 rows, of "
    "all or of a key",
    "select distinct prevwindow(price) as p from S#length(3)": "distinct rows with lists or rows",
    "select prevwindow(price).countOf() as p from S#length(3)": "a value of type double[]",
    "select prior(1, price) as p from S#unique(symbol)": "earlier events over the window Unique",
    "select prior(1, price) as p from S#length(3) output every 3 events": (
        "earlier events of rows that wait for an output, over a window that they may leave before"
    ),
    "select prior(1, price) as p, sum(price) as s from S#keepall": "the window KeepAll",
    "select * from pattern [a=S -> b=S(symbol=a.symbol)]": "a pattern other than every a -> b -> …, within a time or not",
    "select * from pattern [every a=S -> b=S(symbol=a.symbol) where timer:withinmax(1 sec, 2)]": (
        "a pattern other than every a -> b -> …, within a time or not"
    ),
    "select * from pattern [every a=S -> b=S where timer:within(9223372036854775000 msec)]": "a span of more than 62 bits",
    "select * from pattern [every ([2] a=S -> b=S)]": "whole rows of a pattern in which a tag is several events or none",
    "select a[0] as e from pattern [every ([2] a=S -> b=S)]": "the operator element",
    "select b.id as i from pattern [every ([2] a=S -> b=S(id=a[0].id))]": "a filter with a value that is not a literal",
    "select b.id as i from pattern [every (a=S -> (b=S and c=S(id=b.id)))]": "a condition of an event on another that need not have come",
    "select c.id as i from pattern [every (a=S -> b=S -> c=S(price > a.price + b.price))]": "a condition of an event on several earlier "
    "ones at once",
    "select a.id as i from pattern [every (a=S -> b=S) where timer:within(1 sec)]": (
        "a pattern other than every a -> b -> …, within a time or not"
    ),
    "select * from pattern [every a=S -> (b=S and c=S)]": "a pattern other than every a -> b -> …, within a time or not",
    "select * from pattern [every a=S -> every b=S(symbol=a.symbol)]": "a pattern other than every a -> b -> …, within a time or not",
    "context C select count(*) as n from pattern [every a=S -> b=S]": (
        "a window, aggregates or an output rate over a pattern in a context"
    ),
    "select * from pattern [every a=S -> b=S(price != a.price)]": (
        "a condition of an event on an earlier one without a key or an order"
    ),
    "select * from pattern [every a=S -> b=S(symbol=a.symbol, price - a.price > 1) where timer:within(1 sec)]": (
        "a condition of an event on an earlier one that is no comparison of one with the other"
    ),
    "context C select sum(price) as s from S output after 3 events": "output after something",
    "select symbol from S output first at (*, *, *, *, *)": "output first at",
    "select symbol from S output first when count_insert > 2": "output when something holds",
    "select sum(a.price) as s from pattern [every a=S -> b=S(symbol=a.symbol)]#unique(a.symbol)": (
        "a pattern with the window Unique"
    ),
    "select a.id as i, sum(b.price) as s from pattern [every a=S -> b=S(symbol=a.symbol)]#length(3)": (
        "one row a row over a window of a pattern"
    ),
    "select irstream count(*) as n from pattern [every a=S -> b=S(symbol=a.symbol)]#length(3)": "the remove stream",
    "select count(*) as n from pattern [every a=S -> b=S(symbol=a.symbol)] output every 3 events": (
        "whole rows, look-ups or an output rate over a pattern with a window or aggregates"
    ),
    "select a.symbol as k, count(*) as n from pattern [every a=S -> b=S(symbol=a.symbol)] group by a.symbol order by a.symbol": (
        "order by of aggregates or a window over a pattern"
    ),
    "context C select symbol, id, sum(price) as s from S#length(3) group by symbol output all every 1 sec order by id": "an output rate over a window, in a context",
    "select symbol, id, sum(price) as s from S#length(3) group by symbol output all every 1 sec order by id": (
        "output all of one row a row by groups"
    ),
    "select irstream symbol, sum(price) as s from S group by symbol output first every 1 sec": (
        "output first by groups with the remove stream"
    ),
    "context Y select volume, sum(price) as s from S group by volume output first every 1 sec and when terminated": "a rate other than output last or snapshot when terminated, in a context whose partitions end",
    "context C select count(*) as c from S output last when count_insert > 2": "a rate other than output last or snapshot every so often, in a context",
    "context I select irstream count(*) as n from S": "the remove stream without a window, in a context whose partitions end",
    "context D select count(*) as n from S(volume = context.s.volume)": (
        "partitions by several keys, or by what is no plain field"
    ),
    "context D select count(*) as n from S(id = context.s.volume)": "a filter with a value that is not a literal",
    "context W select context.endTime as e, count(*) as n from S": "the end of a partition that no clock ends",
    "context Z select count(*) as n from S": "a span of more than 62 bits",
    "context X select count(*) as n from S": (
        "a context whose partitions end otherwise than by an event or after a span of time"
    ),
    "context C select symbol, volume, sum(price) as s from S group by rollup(volume)": "grouping sets in a context",
    "context C select prevwindow(price) as p from S#length(2)": "lists of what came before in a context",
    "context C select prev(1, price) as p from S#time(20 msec)": "prev in a context over a window other than length or keepall",
    "select (select price from S#length(3) as t where t.symbol > s.symbol) as p from S as s": (
        "a sub-query with a function (> of texts)"
    ),
    "select (select s.symbol || t.symbol from S#length(2) as t) as k from S as s": "a sub-query with a function (|| of texts)",
    "select symbol from S where price in (select id from S#length(3))": "a sub-query that asks for keys of other types",
    "select symbol from S where volume > all (select volume from S#unique(id))": "the aggregate max",
    "select symbol from S where price > all (select avg(price) from S#length(3))": (
        "aggregates of a sub-query in a comparison with all or any"
    ),
    "select symbol from S where volume = all (select volume from S#length(3))": "a list of values that is not asked whether "
    "a value is in it, or compares with all or any of it",
    "select (select * from S#lastevent) as p from S": "a sub-query of several columns",
    "select (select symbol, price from S#lastevent) as p from S": "a sub-query of several columns",
    "select (select sum(price) from S#length(3) group by symbol) as p from S": "a sub-query of groups",
    "context C select symbol, (select price from S#lastevent) as s from S": "a sub-query in a context",
    "select a.price from S#length(2) as a, S#sort(3, flag) as b where a.id = b.id": "a join with the window (Sorted in a join)",
    "select a.price from S#length(2) as a, S#ext_timed(id, 3 sec) as b where a.id = b.id": "a join with the window (ExternalTime in a join)",
    "select a.price from S#time_length_batch(3 sec, 2) as a, S#length(3) as b where a.id = b.id": (
        "a join with the window (TimeLengthBatch in a join)"
    ),
    "select a.price from S#groupwin(symbol)#length_batch(2) as a, S#length(3) as b where a.id = b.id": (
        "a join with the window (Grouped of LengthBatch)"
    ),
    "select a.price from S#rank(id, 2, price) as a, S#length(3) as b where a.id = b.id order by a.price limit 1": "a join with the window (Ranked in a join)",
    "select a.price from S#length(3) as a, S#unique(id) as b where a.id = b.id order by a.price limit 1": (
        "a limit over a window of keys"
    ),
    "select avedev(a.price) as s from S#length(2) as a, S#length(3) as b where a.id = b.id": (
        "an aggregate over a join that goes by its rows"
    ),
    "select sum(a.price) as s from S#length(2) as a left outer join S#length(3) as b on a.id = b.id": (
        "aggregates over an outer join"
    ),
    "select a.id, count(*) as n from S#length(2) as a full outer join S#length(3) as b on a.id = b.id group by a.id": (
        "aggregates over an outer join"
    ),
    "select count(*) as n from S#length(2) as a full outer join S as b unidirectional on a.id = b.id": (
        "aggregates over an outer join"
    ),
    "select a.price from S#length(2) as a, S#length(3) as b where a.id = b.id group by a.id output last every 3 events": (
        "groups without aggregates over a join"
    ),
    "select prior(1, a.price) as s from S#length(2) as a, S#length(3) as b where a.id = b.id": "look-ups beside a join",
    "select sum(a.price) as s from S#time(2) as a, S#length(3) as b where a.id = b.id output every 3 events": (
        "aggregates over a join of windows by time that an output works out"
    ),
    "select max(a.price) as s from S#length(2) as a, S#length(3) as b where a.id = b.id output last every 3 events": (
        "aggregates that go by more than sums over a join, with an output rate"
    ),
    "select a.price as s from S#length(2) as a, S#length(3) as b where a.id = b.id output first every 3 events": (
        "output first over a join"
    ),
    "select sum(a.price) as s from S#length(2) as a, S#length(3) as b where a.id = b.id output snapshot every 1 sec": (
        "output snapshot over a join"
    ),
    "select a.price from S#length(2) as a, S#length(3) as b, S#length(1) as c where a.id = b.id": (
        "a join of more than two"
    ),
    "context C select a.price from S#length(2) as a, S#length(3) as b where a.id = b.id output every 2 events": "a join in a context",
    "context I select context.s.price as p, prev(1, volume) as v from S#length(3)": (
        "what came before, or another input than a stream, in a context whose partitions end"
    ),
    "select symbol, sum(volume) as s from S#unique(price) group by symbol output snapshot every 20 msec": "output snapshot over a window of keys",
    "context C select price, sum(volume) as v from S group by price output last every 20 msec": "having, groups, a row a row, or the remove stream, with an output rate in a context",
    "context C select irstream volume, price, sum(price) as s from S#groupwin(volume)#time(20 msec)": "the window Grouped in a context",
    "context G select irstream symbol, max(price) as m from S#expr_batch(sum(volume) > 4, false) group by symbol": "the window ExpressedBatch in a context",
    "context V select irstream id, price from S#keepall": "a window in a context whose partitions end",
    "select sum(price) as s from S#unique(symbol)#length(3) output every 20 msec": "aggregates of several windows, or of one by time, that an output works out",
    "select symbol, sum(price) as s from S#time_accum(30 msec) where volume > 0 group by symbol output first every 3 events": "the window TimeAccumulating",
    "select price, sum(volume, group_by: price) as v, count(*, group_by: symbol) as n from S#length(3)": "aggregates with keys of their own",
    "select window(*).where(x => x.price > 20).sumOf(x => x.price) as s, window(*).countOf(x => x.volume > 1) as n, window(price).average() as a from S#length(4)": "the operator sumof",
    "select symbol, window(*).average(x => x.volume) as a, window(price).min() as l, window(symbol).countOf() as c from S#length_batch(3) where volume > 0 output last every 3 events": "the operator average",
    "select window(*).min(x => x.price) as m, window(*).countOf(x => x.symbol = 'a') as n, window(id).max() as i from S#length(3) output snapshot every 20 msec": "the operator min",
    "select a.id as i, max(b.price + 1) as m from S#length_batch(3) as a, S#keepall as b where a.id = b.volume group by b.flag": "a join with the window (LengthBatch in a join)",
    "select symbol, sum(price) as s from S#firsttime(40 msec) group by symbol output first every 2 events": "the window FirstTime",
    "select irstream prior(2, price) as p, sum(volume) as s from S#time_length_batch(20 msec, 3)": "earlier events over the window TimeLengthBatch",
    "select irstream symbol, price from S#unique(symbol)#length(2) retain-union": "the window Union",
}
