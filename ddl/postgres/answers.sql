-- Answers of one aggregation for any PostgreSQL client, open buckets included:
--
--     select * from "TradeAgg"('2018-01-** **:**:**', 'days');
--     select * from "TradeAgg"('2018-01-01 00:00:00', '2018-02-01 00:00:00 +05:30', 'hours');
--     select * from "TradeAgg"(1514764800000, 1517443200000, 'months');
--
-- The words in braces are filled in by the caller: name and schema as quoted names, start, "end" and per as the names of the
-- parameters, columns as names with types, query as one select a level of which only the
-- asked one runs, zone as the text of the zone that times without one are in.
-- The bodies are parsed here, once, so they do not depend on the search path of whoever calls.

create or replace function {name}({start} bigint, {end} bigint, {per} text) returns table ({columns})
    stable parallel safe rows 1000 language sql
begin atomic
{query};
end;

create or replace function {name}({start} text, {end} text, {per} text) returns table ({columns})
    stable parallel safe rows 1000 language sql
begin atomic
select * from {name}({schema}.rollup_instant($1, {zone}), {schema}.rollup_instant($2, {zone}), $3);
end;

create or replace function {name}({within} text, {per} text) returns table ({columns})
    stable parallel safe rows 1000 language sql
begin atomic
select * from {name}(({schema}.rollup_within($1, {zone}))[1], ({schema}.rollup_within($1, {zone}))[2], $2);
end;

comment on function {name}(text, text) is {comment};
