-- The start of the bucket that an instant lies in, as in TimescaleDB: buckets count from Monday, 2000-01-03, those of months
-- from 2000-01-01, by the clocks of a zone.

create function {schema}.time_bucket(width interval, at timestamptz, zone text default 'UTC') returns timestamptz
    stable strict parallel safe language sql set search_path = pg_catalog, pg_temp
    return (case
        when width >= interval '1 month' then make_date(2000, 1, 1) + make_interval(months => (floor(
            ((extract(year from at at time zone zone) - 2000) * 12 + extract(month from at at time zone zone) - 1)
            / (extract(year from width) * 12 + extract(month from width)))
            * (extract(year from width) * 12 + extract(month from width)))::int)
        else date_bin(width, at at time zone zone, timestamp '2000-01-03')
    end) at time zone zone;

comment on function {schema}.time_bucket is 'the start of the bucket of a width that an instant lies in; "Agg" is read per the level that it needs'
