"""What a client must not be able to do with the role of `ddl/gateway_roles.sql`, tried through the gateway.

Every attack first switches read-only off, as an attacker would: only rights that were never given count.
"""

from __future__ import annotations

import struct

import psycopg
import pytest

from rollup.gateway.protocol import wire
from tests.gateway.conftest import PASSWORD
from tests.gateway.toys import Raw, Running, query

pytestmark = pytest.mark.postgres

DENIED = {
    "write a table": "insert into rollups.days values (1, 'x', 1)",
    "delete from a table": "delete from rollups.days",
    "write inside a query": "with gone as (delete from rollups.days returning 1) select * from gone",
    "lock rows": "select * from rollups.days for update",
    "lock out the writer": "lock table rollups.days in access exclusive mode",
    "drop a table": "drop table rollups.days",
    "truncate a table": "truncate rollups.days",
    "make a table": "create table rollups.mine (x int)",
    "make a table in public": "create table public.mine (x int)",
    "make a temporary table": "create temp table mine (x int)",
    "make a temporary table by select": "select 1 into temp mine",
    "make a schema": "create schema mine",
    "make a function": "create function pg_temp.f() returns int language sql as 'select 1'",
    "make an extension": "create extension vector",
    "make a role": "create role mine superuser",
    "make itself a superuser": "alter role reader superuser",
    "become the writer": "set role writer",
    "become a superuser": "set session authorization rollup",
    "change its own password": "alter role reader password 'mine'",
    "change it as the current user": "alter/* /* */ */user current_user password 'mine'",
    "store settings for later sessions": "alter role reader set statement_timeout = 0",
    "give up everybody's right to read": "drop -- x\n owned by reader",
    "change its default privileges": "ALTER\tDEFAULT PRIVILEGES grant select on tables to public",
    "wake the sessions that listen": "notify everybody",
    "wake them behind a comment": "select 1 /* ; */ ; -- x\n NOTIFY everybody",
    "take more memory": "set work_mem = '2GB'",
    "take more memory by a function": "select set_config('work_mem', '2GB', false)",
    "take more memory by a name in pieces": "select set_config('work' || '_mem', '1GB', false)",
    "take more memory by an escaped name": "set U&\"work\\005fmem\" = '900MB'",
    "take more memory by a text in a text": "select * from ts_stat('select set_con' || 'fig(''work_mem'', ''1GB'', false)::tsvector')",
    "take more memory in XML": "select query_to_xml('select set_con' || 'fig(''work_mem'', ''1GB'', false)', true, true, '')",
    "take more memory by a rewritten query": "select ts_rewrite('a'::tsquery, 'select set_con' || 'fig(''work_mem'', ''1GB'', false)')",
    "take more memory by a view": "update pg_settings set setting = '1GB' where name = 'work' || '_mem'",
    "take more memory by a prepared statement": "prepare p as select pg_catalog.set_config('work' || '_mem', $1, false); execute p('1GB')",
    "take more memory in a cursor": "declare c cursor for select pg_catalog.set_config('work' || '_mem', '1GB', false); fetch c",
    "make a function that sets it": "create function pg_temp.f() returns int language sql set work_me = 1 as 'select 1'",
    "put a function before PostgreSQL's": "create function set_config(text, text) returns text language sql as 'select 1'",
    "run code that runs a text": "do language plpgsql $$ begin execute 'select 1'; end $$",
    "wake them behind a return": "--x\rnotify everybody, 'hi'",
    "keep a snapshot for others": "select pg_export_snapshot()",
    "fill the disk with messages": "select pg_logical_emit_message(false, 'x', repeat('x', 1000000))",
    "read another schema": "select * from hidden.t",
    "read passwords": "select * from pg_authid",
    "read a file": "select pg_read_file('/etc/passwd')",
    "read a binary file": "select pg_read_binary_file('/etc/passwd')",
    "list a folder": "select pg_ls_dir('/')",
    "stat a file": "select pg_stat_file('/etc/passwd')",
    "copy from a file": "copy rollups.days from '/etc/passwd'",
    "copy to a file": "copy (select 1) to '/tmp/rollup-attack'",
    "copy to a program": "copy (select 1) to program 'id'",
    "import a large object": "select lo_import('/etc/passwd')",
    "make a large object": "select lo_create(0)",
    "make a full large object": "select lo_from_bytea(0, 'x')",
    "read somebody's large object": "select lo_get(4711)",
    "export a large object": "select lo_export(4711, '/tmp/rollup-attack')",
    "write somebody's large object": "select lo_put(4711, 0, 'x')",
    "run code": "do $$ begin perform 1; end $$",
    "load a library": "load '/tmp/evil.so'",
    "hold the writer's advisory lock": "select pg_advisory_lock(1)",
    "hold it in a transaction": "select pg_try_advisory_xact_lock(1, 2)",
    "end other sessions": "select pg_terminate_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()",
    "cancel other queries": "select pg_cancel_backend(pid) from pg_stat_activity where pid <> pg_backend_pid()",
    "notify the writer": "select pg_notify('x', 'y')",
    "change the server": "alter system set work_mem = '1GB'",
    "reload the server": "select pg_reload_conf()",
    "preload a library": "set session_preload_libraries = 'evil'",
    "fill the disk with temporary files": "set temp_file_limit = -1",
    "read the configuration": "select current_setting('data_directory')",
    "prepare a transaction": "prepare transaction 'x'",
    "replicate": "select pg_create_logical_replication_slot('x', 'test_decoding')",
    "read the log": "select pg_current_logfile()",
    "comment on a table": "comment on table rollups.days is 'mine'",
    "analyse into the statistics": "alter table rollups.days alter ts set statistics 1",
    "publish all tables": "create publication p for all tables",
    "subscribe to another server": "create subscription s connection 'host=127.0.0.1' publication p with (connect = false)",
    "watch what others define": "create event trigger t on ddl_command_start execute function suppress_redundant_updates_trigger()",
    "answer in a table's place": "create rule r as on insert to rollups.days do instead nothing",
    "add a policy": "create policy p on rollups.days using (true)",
    "switch policies off": "alter table rollups.days disable row level security",
    "make an index": "create index on rollups.days (symbol)",
    "make an operator": "create operator === (leftarg = int, rightarg = int, function = int4eq)",
    "make a cast": "create cast (int as text) with inout",
    "make an aggregate": "create aggregate mine (int) (sfunc = int4pl, stype = int)",
    "make a type": "create type mine as (a int)",
    "make a domain": "create domain mine as int",
    "make a collation": "create collation mine (locale = 'C')",
    "make an access method": "create access method mine type index handler bthandler",
    "make a procedure": "create procedure mine() language sql as 'select 1'",
    "read a file as stop words": "create text search dictionary d (template = simple, stopwords = '../../../etc/passwd')",
    "make a text search": "create text search configuration c (copy = simple)",
    "make a view": "create view mine as select 1",
    "keep rows": "create materialized view mine as select 1",
    "make a temporary view": "create temp view mine as select 1",
    "make a temporary sequence": "create temp sequence mine",
    "make a sequence": "create sequence mine",
    "read files as another role": "set role pg_read_server_files",
    "give itself a role": "grant pg_read_server_files to current_user",
    "give up what it has by an empty line": "reassign\nowned by current_user to writer",
    "write by a merge": "merge into rollups.days d using (select 1) s on false when not matched then insert default values",
    "write while it is explained": "explain analyze insert into rollups.days values (1, 'x', 1)",
    "write in a part of what is explained": "explain analyze with x as (delete from rollups.days returning *) select * from x",
    "copy in": "copy rollups.days from stdin",
    "rename a table": "alter table rollups.days rename to mine",
    "rename a schema": "alter schema public rename to mine",
    "own a table": "alter table rollups.days owner to reader",
    "set a parameter for a function": "alter function pg_catalog.lower(text) set a.b = 1",
    "skip triggers and policies": "set session_replication_role = 'replica'",
    "write all texts to the log": "set log_statement = 'all'",
    "read damaged pages as empty": "set zero_damaged_pages = on",
    "write to the catalog": "set allow_system_table_mods = on",
    "look for libraries elsewhere": "set dynamic_library_path = '/tmp'",
    "write stacks to the log": "set backtrace_functions = 'int4div'",
    "make each commit wait": "set commit_delay = 100000",
    "hide from those who watch": "set track_activities = off",
    "read passwords in a view": "select passwd from pg_shadow",
    "lock roles": "select * from pg_authid for key share",
    "read who may log in from where": "select * from pg_hba_file_rules",
    "read the configuration's files": "select * from pg_file_settings",
    "read how the server was built": "select * from pg_config",
    "read samples of all columns": "select * from pg_statistic",
    "read large objects as rows": "select * from pg_largeobject",
    "read the server's memory": "select * from pg_backend_memory_contexts",
    "write the server's memory to the log": "select pg_log_backend_memory_contexts(pg_backend_pid())",
    "forget statistics": "select pg_stat_reset()",
    "make others a standby": "select pg_promote()",
    "begin a backup": "select pg_backup_start('x')",
    "switch the log": "select pg_switch_wal()",
    "list the log's folder": "select pg_ls_waldir()",
    "list temporary files": "select pg_ls_tmpdir()",
    "keep the log for ever": "select pg_create_physical_replication_slot('x')",
    "take numbers of the catalog": "select pg_nextoid('pg_class', 'oid', 'pg_class_oid_index')",
    "import collations": "select pg_import_system_collations('public')",
    "change numbers of types": "select binary_upgrade_set_next_pg_type_oid(1)",
    "work on an index": "select brin_summarize_new_values('pg_class'::regclass)",
    "lock the catalog": "lock table pg_catalog.pg_class in share mode",
    "build the catalog's indexes anew": "reindex table pg_catalog.pg_class",
}


@pytest.fixture(scope="module")
def attacker(gateway: Running):
    login = {"host": "127.0.0.1", "port": gateway.port, "user": "reader", "password": PASSWORD, "dbname": "served"}
    with psycopg.connect(**login, autocommit=True) as connection:
        connection.execute("set default_transaction_read_only = off")
        connection.execute("set transaction_read_only = off")
        yield connection


@pytest.mark.parametrize("what", DENIED)
def test_a_client_cannot(attacker: psycopg.Connection, what: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        in_transaction = what != "change the server"
        attacker.execute(f"begin read write; {DENIED[what]}; commit" if in_transaction else DENIED[what])
    attacker.execute("rollback")
    # Prepared transactions are switched off (55000); everything else must fail for want of the right, not by chance.
    assert caught.value.sqlstate in ("42501", "55000"), f"refused for another reason: {caught.value}"


HARMLESS = {
    "array_sample", "array_shuffle", "clock_timestamp", "current_query", "currval", "gen_random_uuid", "lastval", "nextval",
    "pg_advisory_unlock_all", "pg_collation_actual_version", "pg_database_collation_actual_version",
    "pg_database_size", "pg_indexes_size", "pg_is_in_recovery", "pg_jit_available", "pg_lock_status", "pg_partition_ancestors", "pg_partition_tree",
    "pg_relation_size", "pg_sequence_last_value", "pg_sleep", "pg_sleep_for", "pg_sleep_until", "pg_table_size",
    "pg_total_relation_size", "random", "random_normal", "setseed", "setval", "timeofday", "uuidv4", "uuidv7",
}  # fmt: skip
"""Functions of PostgreSQL that do something, or give another value each time, and that a client may call."""


def test_of_functions_that_do_something_a_client_has_the_harmless(attacker: psycopg.Connection) -> None:
    """Whatever functions the server has: one that is declared to have effects is closed unless it is listed."""
    found = attacker.execute(
        "select proname, pronamespace::regnamespace::text from pg_proc where provolatile = 'v' and prokind <> 'a'"
        " and has_function_privilege(oid, 'execute') and has_schema_privilege(pronamespace, 'usage')"
    ).fetchall()
    assert {name for name, schema in found if schema == "pg_catalog"} <= HARMLESS
    assert {(name, schema) for name, schema in found if schema != "pg_catalog"} == {("set_config", "rollups")}
    definers = attacker.execute(
        "select proname from pg_proc where prosecdef and has_function_privilege(oid, 'execute')"
    ).fetchall()
    assert definers == [("set_config",)]


def test_a_driver_sets_what_does_no_harm(attacker: psycopg.Connection) -> None:
    kept = attacker.execute(
        "select current_setting('bytea_output'), set_config('bytea_output', 'escape', false)"
    ).fetchone()
    assert kept == ("hex", "escape")
    assert attacker.execute("show bytea_output").fetchone() == ("escape",)
    attacker.execute("reset bytea_output")


def test_a_call_past_sql_is_asked_for_its_right(gateway: Running) -> None:
    with Raw(gateway.port) as raw:
        raw.send(query("select 'pg_catalog.set_config(text,text,bool)'::regprocedure::oid"))
        [oid] = [int(body[6:]) for kind, body in raw.until(b"Z") if kind == b"D"]
        values = b"".join(struct.pack(">I", len(each)) + each for each in (b"work_mem", b"1GB", b"f"))
        raw.send(wire.message(b"F", struct.pack(">IHH", oid, 0, 3) + values + b"\0\0"))
        [error] = [wire.fields(body) for kind, body in raw.until(b"Z") if kind == b"E"]
        assert error["C"] == b"42501"


@pytest.mark.parametrize(
    "given",
    [
        {"options": "-c work_mem=1GB"},
        {"options": "--work-mem=1GB"},
        {"options": "-c wo\\\\rk_mem=1GB"},
        {"options": "-eS 1000000"},
        {"options": "-c hash_mem_multiplier=100"},
    ],
)
def test_no_session_begins_with_more_memory(gateway: Running, given: dict[str, str]) -> None:
    login = {"host": "127.0.0.1", "port": gateway.port, "user": "reader", "password": PASSWORD, "dbname": "served"}
    with pytest.raises(psycopg.OperationalError, match="must not set how much memory"):
        psycopg.connect(**login, **given)
    with Raw(gateway.port, login=False) as raw:
        raw.send(wire.startup({b"user": b"trusting", b"database": b"served", b"WORK_MEM": b"1GB"}))
        assert [wire.fields(body)["C"] for kind, body in raw.until(b"Z") if kind == b"E"] == [b"42501"]


def test_a_role_cannot_grant_itself_anything(attacker: psycopg.Connection) -> None:
    attacker.execute("grant insert on rollups.days to reader")  # a warning, no error
    assert attacker.execute("select has_table_privilege('rollups.days', 'insert')").fetchone() == (False,)


@pytest.mark.parametrize("setting", ["on", "off"])
def test_the_way_strings_are_read_hides_no_statement(attacker: psycopg.Connection, setting: str) -> None:
    attacker.execute(f"set standard_conforming_strings = {setting}")
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        attacker.execute("select '\\', '; alter role reader password ''x''; --'")
    attacker.execute("set standard_conforming_strings = on")


def test_nothing_was_written(server, attacker: psycopg.Connection) -> None:
    with psycopg.connect(server.dsn.rpartition("/")[0] + "/served") as admin:
        assert admin.execute("select count(*) from rollups.days").fetchone() == (20000,)
        assert admin.execute("select count(*) from pg_largeobject_metadata").fetchone() == (1,)
        assert admin.execute("select count(*) from pg_class where relname = 'mine'").fetchone() == (0,)


@pytest.mark.parametrize("database", ["other", "postgres", "template1"])
def test_no_other_database_opens(gateway: Running, database: str) -> None:
    with pytest.raises(psycopg.OperationalError, match="permission denied for database"):
        psycopg.connect(host="127.0.0.1", port=gateway.port, user="reader", password=PASSWORD, dbname=database)


def test_a_replication_connection_does_not_open(gateway: Running) -> None:
    login = {"host": "127.0.0.1", "port": gateway.port, "user": "reader", "password": PASSWORD, "dbname": "served"}
    with pytest.raises(psycopg.OperationalError, match="permission denied"):
        psycopg.connect(**login, replication="database")


def test_reading_what_is_meant_to_be_read_works(attacker: psycopg.Connection) -> None:
    assert attacker.execute("select count(*) from days").fetchone() == (20000,)
    assert attacker.execute("SELECT n FROM ANSWER").fetchone() == (42,)


def test_the_writer_still_can(server) -> None:
    dsn = server.dsn.rpartition("/")[0].replace(server.dsn.split("//")[1].split("@")[0], "writer:w") + "/served"
    with psycopg.connect(dsn) as writer:
        writer.execute("create temp table t (x int); create table rollups.more (x int); select pg_advisory_lock(1)")
        writer.execute("do $$ begin perform 1; end $$")
        writer.rollback()
