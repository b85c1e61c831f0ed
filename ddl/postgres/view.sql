-- One level with final values, stored and open buckets in one. {view}, {query} and {comment} are filled in by the caller.

create or replace view {view} as
{query};

comment on view {view} is {comment};
