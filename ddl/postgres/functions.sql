-- What every aggregation of a schema shares. {schema} is filled in by the caller as a quoted name.
-- Times and zones are read as `rollup.core.calendar` reads them; tests compare the two.

-- A set is a sorted array of distinct values; the union of sets, null when there is none.
create or replace function {schema}.rollup_sorted_set(items anycompatiblearray) returns anycompatiblearray
    immutable parallel safe language sql
    as $$ select case when items is not null then array(select distinct item from unnest(items) as item order by item) end $$;

create or replace aggregate {schema}.rollup_union(anycompatiblearray) (
    sfunc = array_cat, stype = anycompatiblearray, finalfunc = {schema}.rollup_sorted_set, parallel = safe
);

-- The sum of doubles that are sorted, with a second double for what rounding leaves out, as Neumaier does it. Infinities have
-- no such rest.
create or replace function {schema}.rollup_sum(addends double precision[]) returns double precision
    immutable parallel safe language plpgsql
    as $$
declare
    total double precision := 0;
    lost double precision := 0;
    addend double precision;
    reached double precision;
begin
    foreach addend in array array_remove(addends, null) loop
        reached := total + addend;
        lost := lost + ((total - (reached - (reached - total))) + (addend - (reached - total)));
        total := reached;
    end loop;
    return case when lost = 'NaN' then total else total + lost end;
end $$;

-- Counts of values are JSON in bytes: whether the values are numbers, and how often each of them came.
create or replace function {schema}.rollup_counts_together(parts bytea[]) returns bytea
    immutable parallel safe language sql
    as $$
    with part as (select convert_from(bytes, 'UTF8')::json as said from unnest(parts) as bytes where bytes is not null),
    total as (
        select value.key, sum(value.value::bigint) as times from part, json_each_text(said -> 1) as value group by 1
    )
    select convert_to(json_build_array(
        (select bool_or((said ->> 0)::boolean) from part), json_object_agg(key, times order by key collate "C")
    )::text, 'UTF8') from total having count(*) > 0
    $$;

create or replace aggregate {schema}.rollup_counts(bytea) (
    sfunc = array_append, stype = bytea[], finalfunc = {schema}.rollup_counts_together, parallel = safe
);

-- The value that came most often; of several the least. NaN is greater than every number.
create or replace function {schema}.rollup_counts_mode(counts bytea) returns text
    immutable parallel safe language sql
    as $$
    with part as (select convert_from(counts, 'UTF8')::json as said)
    select value.key from part, json_each_text(said -> 1) as value
    order by value.value::bigint desc, case when (said ->> 0)::boolean then value.key::numeric end, value.key collate "C"
    limit 1
    $$;

-- The least and the greatest of truths, which PostgreSQL knows by other names: false is below true.
create or replace aggregate {schema}.min(boolean) (
    sfunc = booland_statefunc, stype = boolean, combinefunc = booland_statefunc, parallel = safe
);

create or replace aggregate {schema}.max(boolean) (
    sfunc = boolor_statefunc, stype = boolean, combinefunc = boolor_statefunc, parallel = safe
);

-- The zone as PostgreSQL takes it: an interval text for an offset (+05:30, -0330, +01, Z), otherwise a name.
create or replace function {schema}.rollup_offset(zone text) returns interval
    immutable parallel safe language plpgsql
    as $$
declare
    part text[];
    shift interval;
begin
    if zone in ('Z', 'z', 'UTC', 'GMT') then
        return interval '0';
    end if;
    part := regexp_match(zone, '^([+-])(\d{2})(?::?(\d{2}))?$');
    if part is null then
        return null;
    end if;
    shift := make_interval(hours => part[2]::int, mins => coalesce(part[3], '0')::int);
    if coalesce(part[3], '0')::int > 59 or shift > interval '18 hours' then
        raise exception 'impossible offset "%"', zone using errcode = '22023', hint = 'offsets go from -18:00 to +18:00';
    end if;
    return case part[1] when '-' then - shift else shift end;
end $$;

-- What the clocks of a zone show: of the zones that cut buckets here, by the database of zones that cuts them; null of others.
create or replace function {schema}.rollup_clocks(zone text, out since bigint[], out shift bigint[], out walls bigint[], out ends bigint[])
    stable parallel safe language plpgsql
    as $$
declare
    known regprocedure := to_regprocedure($s${schema}.$s$ || quote_ident('rollup_zone ' || zone) || '()');
begin
    if known is not null then
        execute format('select * from %s', known) into since, shift, walls, ends;
    end if;
end $$;

-- The instant at which the clocks of a zone show `wall`, in milliseconds. Of an hour that comes twice, the first.
create or replace function {schema}.rollup_at(wall timestamp, zone text) returns bigint
    immutable parallel safe language plpgsql
    as $$
declare
    shift interval := {schema}.rollup_offset(zone);
    clocks record;
    shown bigint := (extract(epoch from wall) * 1000)::bigint;
    found timestamp;
    earlier timestamp;
begin
    if shift is not null then
        return (extract(epoch from wall - shift) * 1000)::bigint;
    end if;
    clocks := {schema}.rollup_clocks(zone);
    if clocks.since is not null then
        return shown - clocks.shift[width_bucket(shown, clocks.walls) + 1];
    end if;
    found := (wall at time zone zone) at time zone 'UTC';
    shift := ((found - interval '1 day') at time zone 'UTC' at time zone zone) - (found - interval '1 day');
    earlier := wall - shift;
    if earlier < found and (earlier at time zone 'UTC' at time zone zone) = wall then
        found := earlier;
    end if;
    return (extract(epoch from found) * 1000)::bigint;
end $$;

-- The instant a timestamp names: yyyy-MM-dd[ HH:mm[:ss[.fff]]][ zone] in ISO 8601's spellings; 24:00:00 is the next midnight.
-- `zone` is that of a timestamp without one.
create or replace function {schema}.rollup_instant(stamp text, zone text) returns bigint
    immutable parallel safe language plpgsql
    as $$
declare
    part text[] := regexp_match(stamp, '^\s*(\d{4})-(\d{2})-(\d{2})(?:[T ](\d{2}):(\d{2})(?::(\d{2})(?:[.,](\d{1,9}))?)?)?'
        || '\s*(Z|z|[+-]\d{2}(?::?\d{2})?|[A-Za-z]+(?:/[\w+-]+)+)?\s*$');
    hour int := coalesce(part[4], '0');
    minute int := coalesce(part[5], '0');
    second int := coalesce(part[6], '0');
    next_day boolean := (hour, minute, second) = (24, 0, 0);
    wall timestamp;
begin
    if stamp is null then
        raise exception 'a `within` bound is null' using errcode = '22004', hint = 'a text, a timestamp or milliseconds';
    end if;
    if part is null then
        raise exception '"%" is not a timestamp', stamp using errcode = '22007',
            hint = 'yyyy-MM-dd HH:mm:ss, with an optional zone such as +05:30';
    end if;
    if minute > 59 or second > 59 or (hour > 23 and not next_day) then
        raise exception '"%" names no instant', stamp using errcode = '22008';
    end if;
    wall := make_timestamp(part[1]::int, part[2]::int, part[3]::int, case when next_day then 0 else hour end, minute, second);
    return {schema}.rollup_at(wall + case when next_day then interval '1 day' else interval '0' end, coalesce(part[8], zone))
        + rpad(left(coalesce(part[7], '0'), 3), 3, '0')::bigint;
end $$;

create or replace function {schema}.rollup_instant(stamp text) returns bigint
    immutable parallel safe language sql
    as $$ select {schema}.rollup_instant(stamp, 'Z') $$;

-- The first instant of a local date, also where summer time skips midnight.
create or replace function {schema}.rollup_midnight(day date, zone text) returns bigint
    immutable parallel safe language plpgsql
    as $$
declare
    instant bigint := {schema}.rollup_at(day::timestamp, zone);
    clocks record := {schema}.rollup_clocks(zone);
    wall bigint := (extract(epoch from day::timestamp) * 1000)::bigint;
    place int := width_bucket(wall, clocks.ends) + 1;
    shown timestamp;
    skipped bigint;
begin
    if {schema}.rollup_offset(zone) is not null then
        return instant;
    end if;
    if clocks.since is not null then
        return greatest(clocks.since[place], wall - clocks.shift[place]);
    end if;
    shown := to_timestamp(instant / 1000.0) at time zone zone;
    skipped := (extract(epoch from shown - day::timestamp) * 1000)::bigint;
    if skipped <> 0 and (to_timestamp((instant - skipped) / 1000.0) at time zone zone)::date = day then
        return instant - skipped;
    end if;
    return instant;
end $$;

-- Start and end (exclusive) of the time a pattern names: '2018-01-** **:**:**', '2018-01-05 12:**:** +05:30'. `zone` is
-- that of a pattern without one.
create or replace function {schema}.rollup_within(pattern text, zone text) returns bigint[]
    immutable parallel safe language plpgsql
    as $$
declare
    begun text[] := regexp_match(pattern, '^\s*(\d{4}(?:-\d\d){0,2})(?:[T ](\d\d(?::\d\d){0,2}))?\s*$');
    shown text := case when begun is null or (begun[2] is not null and length(begun[1]) < 10) then pattern
        else begun[1] || repeat('-**', (10 - length(begun[1])) / 3) || ' '
            || coalesce(begun[2] || repeat(':**', (8 - length(begun[2])) / 3), '**:**:**') end;
    part text[] := regexp_match(shown, '^\s*(\d{4})-(\d{2}|\*\*)-(\d{2}|\*\*) (\d{2}|\*\*):(\d{2}|\*\*):(\d{2}|\*\*)'
        || '(?:\s+(Z|[+-]\d{2}:\d{2}|[A-Za-z]+(?:/[\w+-]+)+))?\s*$');
    given int := coalesce(array_position(part[1:6], '**') - 1, 6);
    place text := coalesce(part[7], zone);
    start bigint;
    day date;
begin
    if pattern is null then
        raise exception 'a `within` bound is null' using errcode = '22004', hint = 'a text, a timestamp or milliseconds';
    end if;
    if part is null or exists (select from generate_series(given + 1, 6) as i where part[i] <> '**') then
        raise exception '"%" is no time pattern', pattern using errcode = '22023',
            hint = 'e.g. 2018-01-** **:**:** or 2018-01-05 12:**:** +05:30; stars only from the right';
    end if;
    start := {schema}.rollup_instant(format('%s-%s-%s %s:%s:%s %s', part[1], replace(part[2], '**', '01'),
        replace(part[3], '**', '01'), replace(part[4], '**', '00'), replace(part[5], '**', '00'),
        replace(part[6], '**', '00'), place));
    if given > 3 then
        return array[start, start + case given when 4 then 3600000 when 5 then 60000 else 1000 end];
    end if;
    day := make_date(part[1]::int, replace(part[2], '**', '01')::int, replace(part[3], '**', '01')::int)
        + case given when 3 then interval '1 day' when 2 then interval '1 month' else interval '1 year' end;
    return array[start, {schema}.rollup_midnight(day, place)];
end $$;

create or replace function {schema}.rollup_within(pattern text) returns bigint[]
    immutable parallel safe language sql
    as $$ select {schema}.rollup_within(pattern, 'Z') $$;

-- The number of the level that a word after `per` names (0 seconds … 5 years), among those that are aggregated.
create or replace function {schema}.rollup_per(word text, levels int[], low bigint, high bigint) returns int
    immutable parallel safe language plpgsql
    as $$
declare
    names text[] := array['seconds', 'minutes', 'hours', 'days', 'months', 'years'];
    asked text := lower(trim(word));
    level int := array_position(names, asked) - 1;
begin
    level := coalesce(level, array_position(names, asked || 's') - 1);
    level := coalesce(level, case asked when 'sec' then 0 when 'min' then 1 end);
    if level is null or not level = any (levels) then
        raise exception 'not aggregated per "%"', word using errcode = '22023',
            hint = 'a parameter, a column and a call in the database say one of '
                || (select string_agg(names[l + 1], ', ' order by l) from unnest(levels) as l)
                || '; `rollup serve` answers other periods where the text itself names them';
    end if;
    if low is null or high is null then
        raise exception 'a `within` bound is null' using errcode = '22004', hint = 'a text, a timestamp or milliseconds';
    end if;
    if low >= high then
        raise exception 'the range starts at %, which is not before its end %', low, high using errcode = '22023';
    end if;
    return level;
end $$;

-- A bound of a range whose type nobody has given: a driver that asks the server for the types of its parameters is told
-- of this domain, and not of text, so it sends a number or a time as the text of what it is.
do $$ begin
    create domain {schema}.rollup_bound as text;
exception when duplicate_object then null;
end $$;

-- The instant that a bound names, of whatever type it is. `zone` is that of a bound without one. A short number is none:
-- somebody who writes '2018' means a year.
create or replace function {schema}.rollup_moment(bound {schema}.rollup_bound, zone text) returns bigint
    immutable parallel safe language sql
    as $$ select case when bound ~ '^(0|-?[1-9][0-9]{8,18})$' then bound::bigint else {schema}.rollup_instant(bound, zone) end $$;

create or replace function {schema}.rollup_moment(bound bigint, zone text) returns bigint
    immutable parallel safe language sql
    as $$ select bound $$;

create or replace function {schema}.rollup_moment(bound timestamptz, zone text) returns bigint
    immutable parallel safe language sql
    as $$ select floor(extract(epoch from bound) * 1000)::bigint $$;

create or replace function {schema}.rollup_moment(bound timestamp, zone text) returns bigint
    immutable parallel safe language sql
    as $$ select {schema}.rollup_at(bound, zone) $$;

create or replace function {schema}.rollup_moment(bound date, zone text) returns bigint
    immutable parallel safe language sql
    as $$ select {schema}.rollup_midnight(bound, zone) $$;
