-- One level of an aggregation: one row a bucket, zone and group keys. Only the job writes it.
--
-- The words in braces are filled in by the caller: table and index as quoted names in their schema, columns as a list
-- with types, identity as the columns AGG_TIMESTAMP, AGG_TIMEZONE and the group keys, partitioning as a clause or nothing.

create table if not exists {table} (
{columns}
){partitioning};

-- The primary key. Group keys may be null, which PRIMARY KEY refuses, so it is a unique index to which nulls are equal
-- (PostgreSQL 15 or later).
create unique index if not exists {index} on {table} ({identity}) nulls not distinct;
