-- What an aggregation has beside its levels, in SQLite, MySQL or Oracle. The words in braces are filled in by the caller.

-- The buckets that are still open.
create table {open} (
{open_columns}
);

-- Events that came too late, counted.
create table {late} (
{late_columns}
);

-- One row a transaction of the job; its number keeps two jobs from writing both.
create table {commit} (
{commit_columns}
);
