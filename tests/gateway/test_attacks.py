"""What a client must not be able to do with the role of `ddl/gateway_roles.sql`, tried through the gateway.

Every attack first switches read-only off, as an attacker would: only rights that were never given count.
"""

from __future__ import annotations

import psycopg
import pytest

from tests.gateway.conftest import PASSWORD
from tests.gateway.toys import Running

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
