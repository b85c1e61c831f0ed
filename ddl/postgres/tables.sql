-- What an aggregation has beside its levels. The words in braces are filled in by the caller.

-- The buckets that are still open: what a restart loads and what a reader adds to the stored rows. AGG_IN_<level> is the
-- start of the row's bucket at each level from its own. Levels that change are deleted and copied anew in every
-- transaction, so dead rows come fast; the job also vacuums now and then.
create table if not exists {open} (
{open_columns}
) with (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 20000);

-- Events that came too late, counted: by their own bucket, zone and keys, and what was done with them.
create table if not exists {late} (
{late_columns}
);

-- One row a transaction of the job, newest last; its number is what keeps two jobs from writing both.
-- `clocks` are the greatest bucket starts seen by level, `source` says what has been read, `resume` is set after a rebuild,
-- `written` is when, in seconds since 1970.
create table if not exists {commit} (
    number bigint primary key,
    token text not null,
    clocks text not null,
    source text not null,
    resume bigint,
    written double precision not null default extract(epoch from clock_timestamp())
);
