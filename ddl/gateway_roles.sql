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

-- Large objects are writable by everybody unless these are closed.
revoke execute on function
    lo_creat(integer), lo_create(oid), lo_from_bytea(oid, bytea), lo_open(oid, integer), lo_put(oid, bigint, bytea),
    lo_truncate(integer, integer), lo_truncate64(integer, bigint), lo_unlink(oid), lowrite(integer, bytea),
    lo_import(text), lo_import(text, oid), lo_export(oid, text)
    from public;

-- Messages in the write-ahead log fill the disk. Advisory locks and notifications are shared with the writer, which a reader must not be able to hold up; and nobody
-- ends another one's query because both use the same role. (Cancelling one's own works: that is not a function.)
do $$ declare
    each regprocedure;
begin
    for each in
        select oid::regprocedure from pg_proc where pronamespace = 'pg_catalog'::regnamespace and (
            proname ~ '^pg_(try_)?advisory_'
            or proname in ('pg_notify', 'pg_cancel_backend', 'pg_terminate_backend', 'pg_logical_emit_message'))
    loop
        execute format('revoke execute on function %s from public', each);
        execute format('grant execute on function %s to {owner}', each);
    end loop;
end $$;

-- No blocks of procedural code.
revoke usage on language plpgsql from public;
grant usage on language plpgsql to {owner};

-- What is left: a role may always alter itself (password, settings, giving up its grants), notify, and take more memory
-- for its sorts. The gateway refuses that, and bounds the memory of a process where the server is its own.

-- Bounds that only a superuser can lift again, and defaults for the honest.
alter role {role} set temp_file_limit = '1GB';
alter role {role} set default_transaction_read_only = on;
alter role {role} set search_path = {schema};
