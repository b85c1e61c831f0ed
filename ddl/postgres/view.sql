-- One level with final values, stored and open buckets in one, with the rights of whoever reads it. {view}, {query} and {comment} are filled in by the caller.

create or replace view {view} with (security_invoker = true) as
{query};

comment on view {view} is {comment};
