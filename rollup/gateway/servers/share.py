"""What some users of the endpoint before Delta may read: a database of the private server that has nothing else.

Users of equal grants share one. A session cannot leave its database, so PostgreSQL itself keeps it from all else: the
catalog, EXPLAIN, COPY and every function see what stands there. Rows that a grant leaves out are never loaded.
"""

from __future__ import annotations

import asyncio
import json
import logging
import re
import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from rollup.ask import Asker
from rollup.ask_mistakes import without_quotes, without_range
from rollup.conf import Conf
from rollup.core.errors import RollupError
from rollup.gateway.protocol import refusal
from rollup.gateway.protocol.session import VISITOR, Rewriting, Session
from rollup.gateway.rewriting.buckets import in_whole_hours
from rollup.gateway.rewriting.catalog import call_of
from rollup.gateway.rewriting.loaded import Budget, Moment, Slices, request
from rollup.gateway.rewriting.loader import Loader, delta_folders
from rollup.gateway.rewriting.mentions import Reader, Source
from rollup.gateway.rewriting.readers import Readers
from rollup.gateway.rewriting.subscribing import Subscriptions
from rollup.gateway.servers.private import Mail, PrivateServer
from rollup.grants import Grant
from rollup.lang.sql.within import mentions
from rollup.plan.aggregation import Aggregation
from rollup.program import Program
from rollup.retrieval.tables import Tables

log = logging.getLogger(__name__)

_SET = re.compile(r"\bset(?:_config)?\b", re.IGNORECASE)
_ZONE = re.compile(r"\btime\s*zone\b", re.IGNORECASE)


class Share:
    """One database: who may log in to it, what stands there, what is loaded for it."""

    def __init__(
        self, conf: Conf, program: Program, grant: Grant | None, database: str, users: Sequence[str], row_limit: int
    ) -> None:
        self.grant, self.database, self.users = grant, database, users
        self.program = program if grant is None else grant.program(program)
        self.reader = Reader(self.program.aggregations)
        self.loader = Loader(conf, program, self._address, row_limit, grant=grant)
        self._conf = conf
        self.subscriptions = Subscriptions(lambda: Asker(conf, program, grant))

    def connect(self, private: PrivateServer, readers: Readers, budget: Budget) -> None:
        """Say where the database is, and who reads texts."""
        self._private, self._readers = private, readers
        self.slices = Slices(self.program.aggregations, self.loader, budget, delta_folders(self._conf, self.program))
        self._mail = Mail(private.mail)

    def _address(self) -> str:
        return self._private.dsn_of(self.database)

    @property
    def tables(self) -> Tables:
        """What stands beside the aggregations."""
        return self.loader.tables

    @property
    def rewriting(self) -> Rewriting:
        """What the gateway does for sessions of its users."""
        return Rewriting(
            self.rewrite,
            self.reader.needs,
            self._readers.forbidden,
            notice=self.notice,
            missing=lambda name: missing(name, self.reader.aggregations, self.tables),
            copied=self.subscriptions.copied,
        )

    async def rewrite(self, sql: str) -> str:
        """The text the private server gets.

        What it runs at once reads tables by name. What it keeps (a prepared statement, whichever way it was made) must
        not: it would read them for ever, or after they are gone. Nor may a transaction that is isolated from later
        commits, of which only the server knows: there each function asks, and says since when it sees what it sees.
        """
        session = VISITOR.get(None)
        names = None if self.grant is None else tuple(self.program.aggregations)
        template = await self._readers.read(sql, whole(session, sql), names)
        if session is not None:
            session.remark(template.remarks)
        if not template.sources:
            return sql
        at_once = session is not None and session.simple and not session.isolated and not mentions(sql, ["prepare"])
        moment: Moment = {}
        places: list[str] = []
        for source in template.sources:
            await asyncio.sleep(0)  # others have their turn, however many sources there are
            if at_once and source.values is not None:
                places.append(await self._table(session, moment, source))
            else:
                places.append(call_of(source, self.program.aggregations[source.aggregation]))
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
        session.after_answer(lambda: self._mail.clear(token))
        self._mail.send(token, json.dumps(reply).encode())

    async def _reply(self, session: Session, asked: Mapping[str, Any]) -> Mapping[str, Any]:
        if session.moment[0] != asked["at"]:
            session.moment = (asked["at"], {})
        values = (asked["low"], asked["high"], asked["per"])
        try:
            sql = await self.slices.query(session, session.moment[1], asked["name"], asked["spec"], values, True)
        except RollupError as problem:
            found = refusal.refusal(problem, "")
            return {"error": found.message, "sqlstate": found.sqlstate, "hint": found.hint}
        except Exception:
            log.exception("a question could not be answered")
            return {"error": "internal error; see the log of rollup serve", "sqlstate": refusal.INTERNAL}
        return {"sql": sql}

    async def warmed(self) -> None:
        """Open what the first questions would have to open."""

        async def once() -> None:
            try:
                await asyncio.get_running_loop().run_in_executor(self.loader.pool, self.loader.warm)
            except RollupError as problem:
                log.info("nothing to warm up: %s", problem)

        await asyncio.gather(*(once() for _ in range(self.loader.WARM)))


def whole(session: Session | None, sql: str) -> bool:
    """Whether the clocks of a session are whole hours from UTC while a text runs; not known where the text sets them."""
    return session is None or (in_whole_hours(session.zone) and not _sets_zone(sql))


def _sets_zone(sql: str) -> bool:
    """Whether a text may set its session's clocks; in time linear in its length."""
    found = _SET.search(sql) if mentions(sql, ["set"]) else None
    return found is not None and (mentions(sql, ["set_config"]) or _ZONE.search(sql, found.end()) is not None)


def missing(name: str, aggregations: Mapping[str, Aggregation], tables: Tables) -> tuple[str, str] | None:
    """Message and hint for a relation that the server does not have."""
    return without_range(name, aggregations) or without_quotes(name, tables)


def shares(
    conf: Conf, program: Program, grants: Mapping[str, Grant | None], database: str, row_limit: int
) -> dict[str, Share]:
    """The share of each user; the first has the database of that name, further ones a number behind it."""
    users = dict[Grant | None, list[str]]()
    for user, grant in grants.items():
        users.setdefault(grant, []).append(user)
    found = dict[str, Share]()
    for number, (grant, those) in enumerate(users.items(), start=1):
        name = database if number == 1 else f"{database}_{number}"
        found |= dict.fromkeys(those, Share(conf, program, grant, name, those, row_limit))
    return found
