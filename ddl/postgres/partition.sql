-- One hour, day, month or year of a partitioned level, made and filled inside the transaction of the commit whose rows need
-- it: filled before it is attached, it gets its index in one go, and nobody sees or waits for it until then. {low} and
-- {high} are milliseconds since 1970.

create table {partition} (like {table} including all excluding indexes);

-- The rows are copied in here.

alter table {table} attach partition {partition} for values from ({low}) to ({high});
