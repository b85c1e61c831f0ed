-- One aggregation before the gateway. The words in braces: schema of the inner functions, ask, function and inner as quoted names with their schema,
-- name and comment as string constants, columns as names with types.
--
-- The rows stand in a table made for this question and this commit. Should it be evicted between the reply and the
-- look-up of its name, the question is asked again.

create function {ask}(text, jsonb, jsonb, text) returns table ({columns})
    stable security definer language plpgsql rows 1000 set search_path = pg_catalog, pg_temp
    as $$
begin
    for attempt in 1..5 loop
        begin
            return query execute {schema}.wait(jsonb_build_object(
                'name', {name}, 'spec', $1::jsonb, 'low', $2, 'high', $3, 'per', $4)) ->> 'sql';
            return;
        exception when undefined_table then
            if attempt = 5 then raise; end if;
        end;
    end loop;
end $$;
