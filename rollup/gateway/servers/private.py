"""The private PostgreSQL before a Delta store: made, set up, and started again when it was killed.

What it holds can be computed again, so nothing of it is synced to disk; but tables are ordinary ones. Unlogged tables
would be empty after one of the server's processes was killed, and a query would read no rows instead of the right ones.
"""

from __future__ import annotations

import logging
import os
import shutil
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import psycopg2
from psycopg2 import sql

from rollup.core.errors import InUseError, StoreError
from rollup.gateway.protocol.anteroom import WAITING
from rollup.gateway.rewriting.catalog import INNER, SCHEMA, aggregation_ddl, kept_ddl, setup_ddl
from rollup.gateway.servers.options import ServeOptions
from rollup.program import Program
from rollup.retrieval.tables import Tables
from rollup.stores.postgres.server import PgServer
from rollup.stores.sql.ddl import TEMPLATES

log = logging.getLogger(__name__)

DATABASE = "rollup"
OWNER = "rollup_owner"
_SPARE = 16 + WAITING
_SHARED = 512 << 20
"""Address space of a process for what all share, with the libraries."""
_TEMPORARY = 4 << 30
"""Bytes in temporary files of all sessions; one may have a quarter, by its role."""

_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "256MB",
    "autovacuum_naptime": "5min",
    "jit": "off",
    "max_prepared_transactions": "0",
    "shared_buffers": "256MB",
    # What clients make the server write down, and tell each other, has no bound of their own.
    "log_min_messages": "fatal",
    "max_notify_queue_pages": "64",
}


class Contents(Protocol):
    """What one database of the server has."""

    @property
    def database(self) -> str:
        """Its name."""
        ...

    @property
    def users(self) -> Sequence[str]:
        """Who may log in to it."""
        ...

    @property
    def program(self) -> Program:
        """The aggregations that stand there."""
        ...

    @property
    def tables(self) -> Tables:
        """What stands beside them."""
        ...


class PrivateServer:
    """The server and the folder through which its functions get replies."""

    def __init__(self, options: ServeOptions, contents: Sequence[Contents]) -> None:
        self.options = options
        self.contents = contents
        self.mail = options.data / "mail"
        connections = {"max_connections": str(options.max_connections + _SPARE)}
        self.server = PgServer(
            options.data, settings=_SETTINGS | connections, memory=_SHARED + (options.query_mb << 19)
        )

    @property
    def dsn(self) -> str:
        """The superuser, in the first database."""
        return self.dsn_of(DATABASE)

    def dsn_of(self, database: str) -> str:
        """For the loader: the superuser, in one of the databases."""
        return f"{self.server.dsn.rpartition('/')[0]}/{database}"

    @property
    def running(self) -> bool:
        """Whether its process is alive."""
        return self.server.pid is not None

    def give_way(self) -> None:
        """Let queries that compute for long go behind those that are done at once. Called at intervals."""
        self.server.give_way()

    def greediest(self) -> int | None:
        """The process whose query takes most, when all queries together take more memory or disk than they may."""
        for taken, most in ((self.server.memory(), self.options.query_mb << 20), (self.server.temporary(), _TEMPORARY)):
            if sum(taken.values()) > most:
                return self._leader(max(taken, key=taken.__getitem__))
        return None

    def readers(self, database: str, tables: Sequence[str]) -> list[int]:
        """The processes of the sessions whose transactions read some of the loaded tables of a database."""
        with self._working(database) as cursor:
            cursor.execute(
                "select distinct coalesce(leader_pid, pid) from pg_locks join pg_stat_activity using (pid)"
                " join pg_class on relation = pg_class.oid where relname = any(%s) and granted",
                (list(tables),),
            )
            return [int(pid) for (pid,) in cursor.fetchall()]

    def _leader(self, pid: int) -> int:
        """The process of the session that a process works for: one of several at a query is no session of its own."""
        with self._working(DATABASE) as cursor:
            cursor.execute("select leader_pid from pg_stat_activity where pid = %s and leader_pid is not null", (pid,))
            found = cursor.fetchone()
        return int(found[0]) if found else pid

    def start(self) -> None:
        """Start and set up. Data that a crash of the machine has left unreadable is made anew. Raises StoreError."""
        try:
            self.server.start()
        except InUseError:
            raise
        except StoreError as problem:
            if not self.server.data.exists():
                raise
            log.warning("the private server's data cannot be used and is made anew: %s", problem.message)
            self.server.stop()
            shutil.rmtree(self.server.data)
            self.server.start()
        self.set_up()

    def restart(self) -> None:
        """After a crash: the same port, everything set up anew."""
        self.server.restart()
        self.set_up()

    def stop(self) -> None:
        """End it."""
        self.server.stop()

    def set_up(self) -> None:
        """Schemas, functions, views and roles; what earlier runs had loaded goes."""
        shutil.rmtree(self.mail, ignore_errors=True)
        self.mail.mkdir(parents=True)
        self.mail.chmod(0o755)
        self._databases()
        with self._working(DATABASE) as cursor:
            self._drop_roles(cursor)
        for contents in self.contents:
            with self._working(contents.database) as cursor:
                self._fill(cursor, contents)

    @contextmanager
    def _working(self, database: str) -> Generator[Any]:
        """A transaction of the superuser in a database."""
        connection = psycopg2.connect(self.dsn_of(database))
        try:
            with connection, connection.cursor() as cursor:
                yield cursor
        finally:
            connection.close()

    def _fill(self, cursor: Any, contents: Contents) -> None:
        for statement in setup_ddl(f"{self.mail}/", self.options.statement_timeout):
            cursor.execute(statement)
        for aggregation in contents.program.aggregations.values():
            for statement in aggregation_ddl(aggregation):
                cursor.execute(statement)
        for name, table in contents.tables.items():
            for statement in kept_ddl(table, contents.tables.reader(name).note):
                cursor.execute(statement)
        self._roles(cursor, contents)

    def _databases(self) -> None:
        """Make those that are missing. Those of other users' grants go, and with them what they gave to roles."""
        connection = psycopg2.connect(self.server.dsn)
        connection.autocommit = True
        wanted = [contents.database for contents in self.contents]
        try:
            with connection.cursor() as cursor:
                cursor.execute("select datname from pg_database where datname ~ %s", (f"^{DATABASE}(_[0-9]+)?$",))
                there = {str(row[0]) for row in cursor.fetchall()}
                for name in sorted(there - {DATABASE}):
                    cursor.execute(sql.SQL("drop database {} (force)").format(sql.Identifier(name)))
                for name in wanted if DATABASE not in there else wanted[1:]:
                    cursor.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        finally:
            connection.close()

    def _drop_roles(self, cursor: Any) -> None:
        """Roles are made anew with each database; who is not named any more cannot log in."""
        cursor.execute("select rolname from pg_roles where not rolsuper and rolname !~ '^pg_'")
        there = {str(row[0]) for row in cursor.fetchall()}
        if OWNER not in there:
            cursor.execute(f"create role {OWNER} nologin")
        for user in there - {OWNER} - set(self.options.users):
            cursor.execute(sql.SQL("alter role {} nologin").format(sql.Identifier(user)))
        for user in there & set(self.options.users):
            cursor.execute(sql.SQL("drop owned by {role}; drop role {role}").format(role=sql.Identifier(user)))

    def _roles(self, cursor: Any, contents: Contents) -> None:
        """A role for each user, as `ddl/gateway_roles.sql` makes it."""
        script = sql.SQL((TEMPLATES / "gateway_roles.sql").read_text(encoding="utf-8"))
        for user in contents.users:
            names = {"role": user, "database": contents.database, "schema": SCHEMA, "owner": OWNER}
            parts = {key: sql.Identifier(value) for key, value in names.items()}
            cursor.execute(script.format(password=sql.Literal(self.options.users[user]), **parts))
            cursor.execute(
                sql.SQL("grant usage on schema {inner} to {role}").format(inner=sql.Identifier(INNER), **parts)
            )


class Mail:
    """Replies to the server's functions: files that appear whole and go when they have been read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def send(self, token: str, content: bytes) -> None:
        """Make a reply appear."""
        draft = self.folder / f".{token}"
        draft.write_bytes(content)
        draft.chmod(0o644)
        os.rename(draft, self.folder / token)

    def clear(self, token: str) -> None:
        """Remove a reply that has been read, or never will be."""
        (self.folder / token).unlink(missing_ok=True)
