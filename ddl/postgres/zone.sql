-- What the clocks of a zone show, as `rollup.core.local_columns` has it: from since[i] on, shift[i] milliseconds more than
-- UTC's. `walls` say up to which time of the wall clock a stretch is meant, `ends` what the clocks show at most at its end.
create or replace function {schema}.{zone}(out since bigint[], out shift bigint[], out walls bigint[], out ends bigint[])
    immutable parallel safe language sql
    as $$ select {since}::bigint[], {shift}::bigint[], {walls}::bigint[], {ends}::bigint[] $$;
