-- One month (or day, or year) of a partitioned level: made beside the table and attached, so that readers and the job
-- are held up for a moment only. {low} and {high} are milliseconds since 1970.

create table if not exists {partition} (like {table} including all);

alter table {table} attach partition {partition} for values from ({low}) to ({high});
