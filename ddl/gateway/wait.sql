-- How a query asks the gateway it came through: the request leaves as a notice, which the gateway takes out of the
-- stream, and the reply comes as a file of the folder {mail}. Neither is bound to a transaction's snapshot; 'at' says
-- from which instant on the commits are one: the statement's, or the transaction's where it is isolated from later ones.

create function {schema}.wait(request jsonb) returns jsonb
    volatile language plpgsql set client_min_messages = notice set search_path = pg_catalog, pg_temp
    as $$
declare
    token text := gen_random_uuid();
    began timestamptz := clock_timestamp();
    reply text;
begin
    request := request || jsonb_build_object('token', token, 'at', case
        when current_setting('transaction_isolation') in ('repeatable read', 'serializable') then transaction_timestamp()
        else statement_timestamp() end);
    raise notice using message = 'rollup_ask:' || encode(convert_to(request::text, 'UTF8'), 'hex');
    loop
        reply := pg_read_file({mail} || token, 0, 1000000, true);
        exit when reply is not null;
        if clock_timestamp() > began + {patience} * interval '1 second' then
            raise exception 'no answer within % seconds', {patience}
                using errcode = '57014', hint = 'connect through the port of `rollup serve`, and ask for a shorter range';
        end if;
        perform pg_sleep(case when clock_timestamp() < began + interval '50 ms' then 0.001 else 0.005 end);
    end loop;
    if reply::jsonb ? 'error' then
        raise exception using message = reply::jsonb ->> 'error', errcode = reply::jsonb ->> 'sqlstate',
            hint = coalesce(reply::jsonb ->> 'hint', '');
    end if;
    return reply::jsonb;
end $$;

revoke execute on function {schema}.wait(jsonb) from public;
