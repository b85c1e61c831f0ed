-- One level of an aggregation in SQLite, MySQL or Oracle: one row a bucket, zone and group keys.
-- The words in braces are filled in by the caller.

create table {table} (
{columns}
);

-- Where a group key is null, SQLite and MySQL let this index pass a second row; the job merges rows itself before it writes.
create unique index {index} on {table} ({identity});
