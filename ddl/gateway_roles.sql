-- The role BI tools log in with through the gateway. Run once by a superuser, connected to the database to be served.
--
-- The words in braces are filled in by the caller: role, database, schema and owner (who writes the tables) as quoted
-- identifiers without quotes in them, password as a string constant.
--
-- A setting can be undone by the session it is made for, so nothing here rests on one: what the role may not do, it has
-- no right to. Rights given to PUBLIC cannot be taken from one role alone, so they are taken from PUBLIC.

create role {role} login password {password}
    nosuperuser nocreatedb nocreaterole noinherit noreplication nobypassrls;

-- Only this database, no schemas of its own, no temporary tables (they fill the disk, and functions hide in pg_temp).
revoke all on database {database} from public;
grant connect on database {database} to {role}, {owner};
grant temporary, create on database {database} to {owner};
do $$ begin
    -- The other databases of the server keep PUBLIC's rights; there the role could make temporary tables.
    execute (select coalesce(string_agg(format('revoke connect on database %I from public', datname), '; '), 'select')
             from pg_database where datname <> current_database());
end $$;

-- One schema, to read.
revoke all on schema public from public;
grant usage on schema {schema} to {role};
grant select on all tables in schema {schema} to {role};
alter default privileges for role {owner} in schema {schema} grant select on tables to {role};

-- What a function of PostgreSQL does beside giving a value is declared: it is volatile. It sets a parameter, runs a text,
-- locks, notifies, ends sessions, writes large objects or the log. So all of those are closed, also those that a later
-- PostgreSQL brings, but for the ones named here: random values, clocks, sizes, what is locked, own sequences, and a sleep,
-- which holds no more than its own session. One that runs a text (`query_to_xml`, `ts_stat`) could hide no other one, as
-- the right is asked for where a function runs. The owner, who writes, keeps those that need no superuser.
do $$ declare
    closed text;
    kept text;
begin
    select string_agg(oid::regprocedure::text, ', '),
           string_agg(oid::regprocedure::text, ', ') filter (where
               proname ~ '^(pg_(try_)?advisory_|lo_(?!import|export)|loread|lowrite)' or proname in ('set_config',
               'pg_notify', 'pg_cancel_backend', 'pg_terminate_backend', 'pg_logical_emit_message', 'pg_export_snapshot'))
    into closed, kept
    from pg_proc where pronamespace = 'pg_catalog'::regnamespace and provolatile = 'v' and prokind = 'f' and proname not in (
        'random', 'random_normal', 'setseed', 'array_sample', 'array_shuffle', 'gen_random_uuid', 'uuidv4', 'uuidv7',
        'clock_timestamp', 'timeofday', 'current_query', 'pg_is_in_recovery', 'pg_jit_available', 'pg_lock_status',
        'nextval', 'currval', 'lastval', 'setval', 'pg_sequence_last_value', 'pg_sleep', 'pg_sleep_for', 'pg_sleep_until',
        'pg_relation_size', 'pg_table_size', 'pg_indexes_size', 'pg_total_relation_size', 'pg_database_size',
        'pg_partition_ancestors', 'pg_partition_tree', 'pg_collation_actual_version', 'pg_database_collation_actual_version');
    execute format('revoke execute on function %s from public', closed);
    execute format('grant execute on function %s to {owner}', kept);
end $$;

-- Pools of drivers (asyncpg, Npgsql) give up a session's locks when they take it back; there are none.
grant execute on function pg_catalog.pg_advisory_unlock_all() to {role};

-- Drivers set a few harmless parameters by that function; the schema comes before PostgreSQL's own, so they find this one.
create or replace function {schema}.set_config(text, text, boolean) returns text
    volatile security definer language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if lower($1) in ('jit', 'bytea_output', 'extra_float_digits', 'application_name', 'datestyle', 'intervalstyle', 'timezone')
    then return pg_catalog.set_config($1, $2, $3); end if;
    raise exception 'permission denied to set parameter "%" by set_config', $1 using errcode = '42501';
end $$;
revoke execute on function {schema}.set_config(text, text, boolean) from public;
grant execute on function {schema}.set_config(text, text, boolean) to {role};

-- No blocks of procedural code.
revoke usage on language plpgsql from public;
grant usage on language plpgsql to {owner};

-- What is left, as PostgreSQL has no right for it: a role may always alter itself (password, settings, giving up its
-- grants), notify, and take more memory for its sorts. The gateway refuses the statements that do; where the server is
-- its own, it bounds the memory of queries, and the queue of notifications is small.

-- Bounds that only a superuser can lift again, and defaults for the honest.
alter role {role} set temp_file_limit = '1GB';
alter role {role} set default_transaction_read_only = on;
alter role {role} set search_path = {schema}, pg_catalog;
