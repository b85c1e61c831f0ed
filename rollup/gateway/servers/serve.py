"""`rollup serve`: the endpoint for BI tools, before a Delta store or before PostgreSQL.

Before Delta every text of a client goes to a private server, which gets the rows it asks for from here. Before a
PostgreSQL store the rows are computed in that server, by the functions the store made there.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sys
from collections.abc import Sequence
from functools import partial
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import psycopg2
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from rollup.ask import Asker
from rollup.conf import Conf
from rollup.core.errors import ConfigError, StoreError
from rollup.dimensions import dimensions
from rollup.gateway.protocol.proxy import Gateway
from rollup.gateway.protocol.session import VISITOR, Rewriting, Session
from rollup.gateway.protocol.wire import Parameter
from rollup.gateway.rewriting.catalog import INNER
from rollup.gateway.rewriting.kept import KeptTables
from rollup.gateway.rewriting.loaded import Budget
from rollup.gateway.rewriting.mentions import Reader
from rollup.gateway.rewriting.reader_process import Names
from rollup.gateway.rewriting.readers import Readers
from rollup.gateway.rewriting.subscribing import Subscriptions
from rollup.gateway.servers.options import ServeOptions
from rollup.gateway.servers.private import DATABASE, PrivateServer
from rollup.gateway.servers.row_security import enforce
from rollup.gateway.servers.share import Share, missing, shares, whole
from rollup.hosts.statements.outlets import sinks_of
from rollup.lang.sql.within import mentions
from rollup.program import Program
from rollup.retrieval.tables import Tables
from rollup.statements.committed.kept import Kept
from rollup.stores.sql.options import StoreOptions

log = logging.getLogger(__name__)

_WATCH, _TURN = 0.1, 0.0005
"""Seconds between two looks at the server, and for which a thread that loads keeps the loop waiting, each time it computes."""


class Endpoint(Protocol):
    """What listens for BI tools."""

    options: ServeOptions

    @property
    def database(self) -> str:
        """The one database it serves."""
        ...

    @property
    def port(self) -> int:
        """The port it listens on, once started."""
        ...

    async def start(self) -> None:
        """Begin to listen."""
        ...

    async def close(self) -> None:
        """End all sessions and what stands behind."""
        ...


_AGAIN = 1.0
"""Seconds until a server that did not start is tried for again."""


class DeltaEndpoint:
    """Before Delta, and any other store that is no PostgreSQL: rows are loaded into a private server when asked for."""

    database = DATABASE

    def __init__(self, conf: Conf, options: ServeOptions | None = None) -> None:
        program = conf.program()
        self.options = options or ServeOptions.of(conf)
        self.zone = conf.zone_of(program)
        self.readers = Readers(program.aggregations)
        grants = self.options.grants(conf, program, Asker(conf, program).tables)
        self.shares = shares(conf, program, grants, DATABASE, self.options.row_limit)
        self.private = PrivateServer(self.options, self.all_shares)
        budget = Budget((self.options.memory_mb << 20) // len(self.all_shares))
        for share in self.all_shares:
            share.connect(self.private, self.readers, budget)
        self.port = 0
        self._gateway: Gateway | None = None
        self._guard: asyncio.Task[None] | None = None

    @property
    def all_shares(self) -> list[Share]:
        """What there is for users of equal grants, the first database first."""
        return list(dict.fromkeys(self.shares.values()))

    async def start(self) -> None:
        """Start the private server, then listen. Raises StoreError or ConfigError."""
        context = self.options.context()
        await asyncio.gather(asyncio.to_thread(self.private.start), self.readers.start())
        for share in self.all_shares:
            await share.warmed()
        first = self.all_shares[0].rewriting
        self._gateway = Gateway(
            ("127.0.0.1", self.private.server.port),
            first.rewrite,
            needs=first.needs,
            of_user=lambda user: self.shares[user].rewriting,
            inner={user: share.database for user, share in self.shares.items()},
            ssl=context,
            limits=self.options.limits,
            users=set(self.options.users),
            database=DATABASE,
            zone=self.zone,
        )
        self.port = await _listening(self._gateway, self.options)
        self._guard = asyncio.create_task(self._guarding())

    async def close(self) -> None:
        """End all sessions, the threads and the private server."""
        if self._guard is not None:
            self._guard.cancel()
        if self._gateway is not None:
            await self._gateway.close()
        await self.readers.close()
        for share in self.all_shares:
            share.subscriptions.close()
            await asyncio.to_thread(share.loader.close)
        await asyncio.to_thread(self.private.stop)

    async def _guarding(self) -> None:
        """Keeps watch, whatever comes in between: a watch that has ended would tell nobody."""
        while True:
            await asyncio.sleep(_WATCH)
            try:
                await self._looked()
            except Exception as problem:
                log.error("the watch over the private server is kept again: %s", problem)
                await asyncio.sleep(_AGAIN)

    async def _looked(self) -> None:
        """Starts the private server again when its process has gone, and ends the query that takes most of too much."""
        if self.private.running:
            await asyncio.to_thread(self.private.give_way)
            with contextlib.suppress(psycopg2.Error, OSError):  # it may go at any moment
                await self._end_greediest(await asyncio.to_thread(self.private.greediest))
                await self._end_readers()
            return
        log.warning("the private server has gone; it is started again")
        await asyncio.to_thread(self.private.restart)
        for share in self.all_shares:
            share.slices.forget()

    async def _end_greediest(self, pid: int | None) -> None:
        if pid is not None:
            self._end(pid, "53200", "all queries together take too much memory or disk, this one most")

    async def _end_readers(self) -> None:
        """End transactions that read loaded rows by the name of their table, which keeps these from making room."""
        for share in self.all_shares:
            if tables := share.slices.overdue():
                for pid in await asyncio.to_thread(self.private.readers, share.database, tables):
                    self._end(pid, "53400", f"its transaction reads {', '.join(tables[:3])} in {INNER}, which must go")

    def _end(self, pid: int, sqlstate: str, why: str) -> None:
        assert self._gateway is not None
        if self._gateway.end(pid, sqlstate, f"terminating connection because {why}"):
            log.warning("the session of process %d is ended: %s", pid, why)


class PostgresEndpoint:
    """Before a PostgreSQL store: a proxy; the store's own functions and views in that server give the rows."""

    def __init__(self, conf: Conf, store: StoreOptions, options: ServeOptions | None = None) -> None:
        self.options = options or ServeOptions.of(conf, passwords=False)
        self.store = store
        self.program = conf.program()
        self.zone = conf.zone_of(self.program)
        self.reader = Reader(self.program.aggregations)
        self.readers: Readers | None = None
        self.kept = KeptTables(
            Tables([Kept(conf.tables, self.program), *dimensions(conf, self.program)]),
            store,
            self.options.row_limit,
            _sink_tables(conf, self.program),
        )
        self.grants = self.options.grants(conf, self.program, self.kept.tables)
        self.subscriptions = {
            grant: Subscriptions(partial(Asker, conf, self.program, grant)) for grant in set(self.grants.values())
        }
        self._prepared = WeakKeyDictionary[Session, set[str]]()
        """What the texts that a session has given to PREPARE may read."""
        self.database = store.url.database or ""
        self.port = 0
        self._gateway: Gateway | None = None

    async def start(self) -> None:
        """Look up where the store's functions are, then listen. Raises StoreError."""
        context = self.options.context()
        self.readers = Readers(self.program.aggregations, await asyncio.to_thread(self._schema))
        await asyncio.gather(asyncio.to_thread(self._prepare), self.readers.start())
        self._gateway = Gateway(
            (self.store.url.host or "127.0.0.1", self.store.url.port or 5432),
            self.rewrite,
            needs=self._needs,
            of_user=self._rewriting,
            ssl=context,
            limits=self.options.limits,
            users=set(self.options.users),
            database=self.database,
            zone=self.zone,
        )
        self.port = await _listening(self._gateway, self.options)

    async def close(self) -> None:
        """End all sessions."""
        if self._gateway is not None:
            await self._gateway.close()
        if self.readers is not None:
            await self.readers.close()
        for each in self.subscriptions.values():
            each.close()
        await asyncio.to_thread(self.kept.close)

    def _prepare(self) -> None:
        self.kept.prepare()
        enforce(self.store, self.program, self.grants)

    def _needs(self, sql: str) -> bool:
        return self.kept.needs(sql) or self.reader.needs(sql)

    def _rewriting(self, user: str) -> Rewriting:
        """What is done for a session of a user, who is told of nothing else than what is granted."""
        assert self.readers is not None
        grant = self.grants[user]
        known, tables = self.program.aggregations, self.kept.tables
        if grant is not None:
            known, tables = grant.program(self.program).aggregations, tables.only(grant.reads)
        names = None if grant is None else tuple(known)
        return Rewriting(
            lambda sql: self.rewrite(sql, names),
            self._needs,
            self.readers.forbidden,
            self.bind,
            missing=lambda name: missing(name, known, tables),
            copied=self.subscriptions[grant].copied,
        )

    async def rewrite(self, sql: str, names: Names = None) -> str:
        """The text the store's server gets, once the named windows and tables that it reads are there."""
        assert self.readers is not None
        session = VISITOR.get(None)
        if session is not None and mentions(sql, ["prepare"]):
            self._prepared.setdefault(session, set()).update(self.kept.mentioned(sql))
        if session is None or session.simple:  # what is only prepared is filled when it runs
            await self.bind(sql, ())
        if not self.reader.needs(sql):
            return sql
        read = await self.readers.read(sql, whole(session, sql), names)
        if session is not None:
            session.remark(read.remarks)
        return read.text

    async def bind(self, sql: str, parameters: Sequence[Parameter]) -> None:
        """A statement is about to run: what it reads, also by `EXECUTE`, holds the last commit."""
        if self.kept.needs(sql):
            session = VISITOR.get(None)
            prepared = self._prepared.get(session, ()) if session and mentions(sql, ["execute"]) else ()
            await asyncio.to_thread(self.kept.refresh, sql, prepared)

    def _schema(self) -> str:
        engine = sa.create_engine(self.store.url)
        try:
            with engine.connect() as connection:
                return str(connection.execute(sa.text("select current_schema()")).scalar())
        except SQLAlchemyError as problem:
            raise StoreError(f"{self.store.shown}: {problem.args[0]}") from None
        finally:
            engine.dispose()


async def _listening(gateway: Gateway, options: ServeOptions) -> int:
    sys.setswitchinterval(_TURN)
    try:
        return await gateway.start(options.host, options.port)
    except OSError as problem:
        raise ConfigError(
            f"cannot listen on {options.host}:{options.port}: {problem.strerror}", hint="[serve] port"
        ) from None


def endpoint(conf: Conf, options: ServeOptions | None = None) -> Endpoint:
    """The endpoint that fits a configuration's store; its own options unless some are given.

    Raises ConfigError or StoreError.
    """
    found = _stores(conf, conf.program())
    first = found[0] if found else None
    if first is not None and first.dialect == "postgresql" and all(each == first for each in found):
        return PostgresEndpoint(conf, first, options)
    return DeltaEndpoint(conf, options)


def _stores(conf: Conf, program: Program) -> list[StoreOptions | None]:
    """The database of each aggregation; None for one in Delta."""
    found: list[StoreOptions | None] = []
    for aggregation in program.aggregations.values():
        if aggregation.store.get("type") == "rdbms":
            found.append(StoreOptions.of(aggregation.store))
        else:
            found.append(StoreOptions.of({"url": conf.store["url"]}) if conf.store["kind"] == "sql" else None)
    return found


def _sink_tables(conf: Conf, program: Program) -> set[str]:
    """The tables that sinks of statements fill in databases."""
    sinks = {} if program.statements is None else sinks_of(conf, program)
    return {str(options["table"]) for options in sinks.values() if options["kind"] == "postgres"}


async def serve(conf: Conf, ready: Any = None) -> None:
    """Serve until cancelled; `ready(endpoint)` is called once it listens."""
    found = endpoint(conf)
    try:
        await found.start()
        if ready is not None:
            ready(found)
        await asyncio.Event().wait()
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(found.close())
