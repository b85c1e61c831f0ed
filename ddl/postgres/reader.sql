-- A role that may ask and nothing else. Run once by the owner of the tables or a superuser.
--
-- The words in braces are filled in by the caller: role, schema and owner (the role of the job) as quoted names,
-- password as a string constant. For clients that come through the gateway see ../gateway_roles.sql, which is stricter.

create role {role} login password {password} nosuperuser nocreatedb nocreaterole noinherit noreplication nobypassrls;

grant usage on schema {schema} to {role};
revoke create on schema {schema} from public;

-- The functions run with the rights of whoever calls, so reading the tables is all that is needed.
grant select on all tables in schema {schema} to {role};
alter default privileges for role {owner} in schema {schema} grant select on tables to {role};

alter role {role} set default_transaction_read_only = on;
alter role {role} set search_path = {schema};
alter role {role} set statement_timeout = '5min';
