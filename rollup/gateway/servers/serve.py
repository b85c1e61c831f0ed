"""`rollup serve`: the endpoint for BI tools, before a Delta store or before PostgreSQL.

Before Delta every text of a client goes to a private server, which gets the rows it asks for from here. Before a
PostgreSQL store the rows are computed in that server, by the functions the store made there.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, Protocol
from weakref import WeakKeyDictionary

import psycopg2
import sqlalchemy as sa
from sqlalchemy.exc import SQLAlchemyError

from rollup.ask_mistakes import without_quotes, without_range
from rollup.conf import Conf
from rollup.core.errors import ConfigError, RollupError, StoreError
from rollup.dimensions import dimensions
from rollup.gateway.protocol import refusal
from rollup.gateway.protocol.proxy import Gateway
from rollup.gateway.protocol.session import VISITOR, Session
from rollup.gateway.protocol.wire import Parameter
from rollup.gateway.rewriting.buckets import in_whole_hours
from rollup.gateway.rewriting.catalog import call_of
from rollup.gateway.rewriting.kept import KeptTables
from rollup.gateway.rewriting.loaded import Budget, Moment, Slices, request
from rollup.gateway.rewriting.loader import Loader, delta_folders
from rollup.gateway.rewriting.mentions import Reader, Source, Template
from rollup.gateway.rewriting.readers import Readers
from rollup.gateway.servers.options import ServeOptions
from rollup.gateway.servers.private import DATABASE, Mail, PrivateServer
from rollup.hosts.statements.outlets import sinks_of
from rollup.lang.sql.within import mentions
from rollup.plan.aggregation import Aggregation
from rollup.program import Program
from rollup.retrieval.tables import Tables
from rollup.statements.committed.kept import Kept
from rollup.stores.sql.options import StoreOptions

log = logging.getLogger(__name__)

_WATCH = 0.1
_SETS_ZONE = re.compile(r"\bset\b.*\btime\s*zone\b|\bset_config\b", re.IGNORECASE | re.DOTALL)


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


class DeltaEndpoint:
    """Before Delta, and any other store that is no PostgreSQL: rows are loaded into a private server when asked for."""

    database = DATABASE

    def __init__(self, conf: Conf, options: ServeOptions | None = None) -> None:
        program = conf.program()
        self.options = options or ServeOptions.of(conf)
        self.zone = conf.zone_of(program)
        self.reader = Reader(program.aggregations)
        self.readers = Readers(program.aggregations)
        self.loader = Loader(conf, program, lambda: self.private.dsn, self.options.row_limit)
        self.private = PrivateServer(self.options, program.aggregations, self.loader.tables)
        budget = Budget(self.options.memory_mb << 20)
        self.slices = Slices(program.aggregations, self.loader, budget, delta_folders(conf, program))
        self.mail = Mail(self.private.mail)
        self.port = 0
        self._gateway: Gateway | None = None
        self._guard: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start the private server, then listen. Raises StoreError or ConfigError."""
        context = self.options.context()
        await asyncio.gather(asyncio.to_thread(self.private.start), self.readers.start())
        await asyncio.gather(*(self._warmed() for _ in range(self.loader.WARM)))
        self._gateway = Gateway(
            ("127.0.0.1", self.private.server.port),
            self.rewrite,
            needs=self.reader.needs,
            guard=self.readers.forbidden,
            notice=self.notice,
            missing=lambda name: _missing(name, self.reader.aggregations, self.loader.tables),
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
        await asyncio.to_thread(self.loader.close)
        await asyncio.to_thread(self.private.stop)

    async def rewrite(self, sql: str) -> str:
        """The text the private server gets.

        What it runs at once reads tables by name. What it keeps (a prepared statement, whichever way it was made) must
        not: it would read them for ever, or after they are gone. Nor may a transaction that is isolated from later
        commits, of which only the server knows: there each function asks, and says since when it sees what it sees.
        """
        session = VISITOR.get(None)
        template: Template = await self.readers.read(sql, _whole(session, sql))
        if not template.sources:
            return sql
        at_once = session is not None and session.simple and not session.isolated and "prepare" not in sql.casefold()
        moment: Moment = {}
        places: list[str] = []
        for source in template.sources:
            await asyncio.sleep(0)  # others have their turn, however many sources there are
            if at_once and source.values is not None:
                places.append(await self._table(session, moment, source))
            else:
                places.append(call_of(source))
        return template.filled(places)

    async def _table(self, session: Session | None, moment: Moment, source: Source) -> str:
        assert source.values is not None
        try:
            return f"({await self.slices.query(session, moment, source.aggregation, source.given, source.values)})"
        except RollupError as problem:
            raise problem.at(*source.position) from None

    async def notice(self, session: Session, payload: bytes) -> None:
        """Answer a function of the private server that is being executed for a session."""
        asked = request(payload)
        token = str(uuid.UUID(asked["token"]))
        reply = await self._reply(session, asked)
        session.after_answer(lambda: self.mail.clear(token))
        self.mail.send(token, json.dumps(reply).encode())

    async def _reply(self, session: Session, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        if session.moment[0] != asked["at"]:
            session.moment = (asked["at"], {})
        values = (asked["low"], asked["high"], asked["per"])
        try:
            sql = await self.slices.query(session, session.moment[1], asked["name"], asked["spec"], values)
        except RollupError as problem:
            found = refusal.refusal(problem, "")
            return {"error": found.message, "sqlstate": found.sqlstate, "hint": found.hint}
        except Exception:
            log.exception("a question could not be answered")
            return {"error": "internal error; see the log of rollup serve", "sqlstate": refusal.INTERNAL}
        return {"sql": sql}

    async def _warmed(self) -> None:
        try:
            await asyncio.get_running_loop().run_in_executor(self.loader.pool, self.loader.warm)
        except RollupError as problem:
            log.info("nothing to warm up: %s", problem)

    async def _guarding(self) -> None:
        """Starts the private server again when its process has gone, and ends the query that takes most of too much."""
        while True:
            await asyncio.sleep(_WATCH)
            if self.private.running:
                with contextlib.suppress(psycopg2.Error, OSError):  # it may go at any moment
                    await self._end_greediest(await asyncio.to_thread(self.private.greediest))
                continue
            log.warning("the private server has gone; it is started again")
            try:
                await asyncio.to_thread(self.private.restart)
                self.slices.forget()
            except (StoreError, OSError, ValueError) as problem:
                log.error("the private server does not start: %s", problem)
                await asyncio.sleep(1)

    async def _end_greediest(self, pid: int | None) -> None:
        assert self._gateway is not None
        if pid is not None and self._gateway.end(
            pid,
            "53200",
            "terminating connection because all queries together take too much memory or disk, this one most",
        ):
            log.warning("queries take more than they may: the session that takes most (process %d) is ended", pid)


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
        self._prepared = WeakKeyDictionary[Session, set[str]]()
        """What the texts that a session has given to PREPARE may read."""
        self.database = store.url.database or ""
        self.port = 0
        self._gateway: Gateway | None = None

    async def start(self) -> None:
        """Look up where the store's functions are, then listen. Raises StoreError."""
        context = self.options.context()
        self.readers = Readers(self.program.aggregations, await asyncio.to_thread(self._schema))
        await asyncio.gather(asyncio.to_thread(self.kept.prepare), self.readers.start())
        self._gateway = Gateway(
            (self.store.url.host or "127.0.0.1", self.store.url.port or 5432),
            self.rewrite,
            needs=lambda sql: self.kept.needs(sql) or self.reader.needs(sql),
            guard=self.readers.forbidden,
            bind=self.bind,
            missing=lambda name: _missing(name, self.program.aggregations, self.kept.tables),
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
        await asyncio.to_thread(self.kept.close)

    async def rewrite(self, sql: str) -> str:
        """The text the store's server gets, once the named windows and tables that it reads are there."""
        assert self.readers is not None
        session = VISITOR.get(None)
        if session is not None and mentions(sql, ["prepare"]):
            self._prepared.setdefault(session, set()).update(self.kept.mentioned(sql))
        if session is None or session.simple:  # what is only prepared is filled when it runs
            await self.bind(sql, ())
        return str(await self.readers.read(sql, _whole(session, sql))) if self.reader.needs(sql) else sql

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


def _whole(session: Session | None, sql: str) -> bool:
    """Whether the clocks of a session are whole hours from UTC while a text runs; not known where the text sets them."""
    return session is None or (in_whole_hours(session.zone) and _SETS_ZONE.search(sql) is None)


def _missing(name: str, aggregations: Mapping[str, Aggregation], tables: Tables) -> tuple[str, str] | None:
    """Message and hint for a relation that the server does not have."""
    return without_range(name, aggregations) or without_quotes(name, tables)


async def _listening(gateway: Gateway, options: ServeOptions) -> int:
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
