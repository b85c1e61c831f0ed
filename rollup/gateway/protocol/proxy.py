"""The gateway: listens, lets clients in, and gives each its own connection to the PostgreSQL server behind it.

Catalog, types, passwords and transactions are that server's own; of all that passes, only the SQL text of Query and
Parse messages is looked at, and only what `needs` says is ours is changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import ssl as tls
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import partial

from rollup.core.calendar import GMT, normal_zone, offset_ms
from rollup.gateway.protocol import wire
from rollup.gateway.protocol.anteroom import Failures, Guest, make_room, may_sit
from rollup.gateway.protocol.limits import Limits, Overdue
from rollup.gateway.protocol.refusal import Missing
from rollup.gateway.protocol.session import (
    BindHook,
    Guard,
    NoticeHook,
    Pipe,
    Rewrite,
    Rewriting,
    Session,
    guarded,
    hang_up,
)
from rollup.gateway.protocol.startup import CHUNK, Door, Opening, Rejected, opening
from rollup.gateway.protocol.turns import Turns

log = logging.getLogger(__name__)

READ_ONLY = {"default_transaction_read_only": "on"}
"""The settings sessions start with unless others are given."""

_TICK = 0.25
_GRACE = 10.0
_CANCEL_TIMEOUT = 5.0


def session_zone(zone: str) -> str:
    """A zone as the server's `TimeZone` takes it: POSIX counts bare offsets to the west.

    >>> session_zone("+05:30"), session_zone("+00:00"), session_zone("Europe/Berlin")
    ('<+05:30>-05:30', 'UTC', 'Europe/Berlin')
    """
    if not offset_ms(zone):
        return zone if offset_ms(zone) is None else "UTC"
    name = normal_zone(zone)
    return f"<{name}>{'-' if name[0] == '+' else '+'}{name[1:]}"


class Gateway:
    """An asyncio proxy in front of `backend` (host, port; may be changed when that server moves).

    `needs(sql)` says cheaply whether a text may concern `rewrite`; all others pass byte for byte. `rewrite(sql)` gives
    the text the server gets, after loading what it needs; a `RollupError` from it becomes an ERROR of that statement
    and the session goes on. `bind(sql, parameters)` is called before the parameters of such a statement go on.
    `guard(text)` says of every text whether it may change the role that runs it. `notice(session, payload)` is called for the notices by which functions of ours in the server ask for something.
    `missing(name)` may say more of a relation that does not exist. `of_user(user)` gives these for one user, where they
    differ, and `inner` the databases of users whose sessions are in another one than they name.
    """

    def __init__(
        self,
        backend: tuple[str, int],
        rewrite: Rewrite,
        *,
        needs: Callable[[str], bool],
        guard: Guard = guarded,
        bind: BindHook | None = None,
        notice: NoticeHook | None = None,
        missing: Missing | None = None,
        ssl: tls.SSLContext | None = None,
        max_connections: int | None = None,
        limits: Limits | None = None,
        users: Collection[str] | None = None,
        database: str | None = None,
        settings: Mapping[str, str] | None = None,
        zone: str = GMT,
        inner: Mapping[str, str] | None = None,
        of_user: Callable[[str], Rewriting] | None = None,
    ) -> None:
        self.backend = backend
        common = Rewriting(rewrite, needs, guard, bind, notice, missing)
        self._rewriting: Callable[[str], Rewriting] = of_user or (lambda user: common)
        self._ssl = ssl
        self._limits = limits or Limits()
        if max_connections is not None:
            self._limits = replace(self._limits, max_connections=max_connections)
        self._door = Door(
            users,
            database,
            inner or {},
            READ_ONLY if settings is None else settings,
            {"TimeZone": session_zone(zone)},
        )
        self._sessions: set[Session] = set()
        self._guests: dict[asyncio.Task[None], Guest] = {}
        self._failures = Failures()
        most = self._limits.max_connections
        self._turns = Turns(most, self._limits.user_statements or most)
        self._listener: asyncio.Server | None = None
        self._watch: asyncio.Task[None] | None = None

    @property
    def connections(self) -> int:
        """How many sessions are open or being opened."""
        return len(self._sessions)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> int:
        """Begins to listen; returns the port, which the system chooses for 0. Raises OSError when it is taken."""
        self._listener = await asyncio.start_server(self._connected, host, port, limit=CHUNK, backlog=512)
        self._watch = asyncio.create_task(self._watching())
        return int(self._listener.sockets[0].getsockname()[1])

    async def serve_forever(self) -> None:
        """Serves until cancelled; call `start` first."""
        if self._listener is None:
            raise RuntimeError("the gateway has not been started")
        await self._listener.serve_forever()

    async def close(self) -> None:
        """Stops listening and ends every session with FATAL 57P01."""
        if self._listener is not None:
            self._listener.close()
        if self._watch is not None:
            self._watch.cancel()
        for session in tuple(self._sessions):
            session.end("57P01", "terminating connection due to administrator command")
        if self._guests:
            _, stuck = await asyncio.wait(self._guests, timeout=_CANCEL_TIMEOUT)
            for task in stuck:
                task.cancel()
            await asyncio.gather(*stuck, return_exceptions=True)

    def end(self, pid: int, sqlstate: str, text: str) -> bool:
        """End the session that a process of the server works for; false when there is none."""
        found = [each for each in self._sessions if each.pid == pid]
        for session in found:
            session.end(sqlstate, text)
        return bool(found)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._guests[task] = guest = Guest(writer)
        make_room(self._guests.values())
        try:
            await self._served(reader, guest)
        except (Rejected, wire.ProtocolViolation) as problem:
            sqlstate = problem.sqlstate if isinstance(problem, Rejected) else "08P01"
            writer.write(wire.error("FATAL", sqlstate, problem.message.encode()))
            await hang_up(reader, writer)
        except (OSError, TimeoutError) as problem:
            log.debug("a connection ended: %s", problem)
        except Exception:
            log.exception("a connection failed")
        finally:
            del self._guests[task]
            writer.transport.abort()

    async def _served(self, reader: asyncio.StreamReader, guest: Guest) -> None:
        async with asyncio.timeout(self._limits.startup_timeout):
            begun = await opening(reader, guest.writer, self._ssl)
        if begun is None:
            return
        if begun.is_cancel:
            # A key that no session of ours has would cost the server a process each, whoever makes them up.
            if any(each.cancel_key == begun.packet[8:] for each in self._sessions if each.cancel_key):
                await self._cancel(begun.packet)
            return
        packet, guest.user = self._door.checked(begun.packet)
        if not self._may_sit(guest):
            raise Rejected(*self._full(guest))
        await asyncio.sleep(self._failures.patience(guest.address, guest.user))
        await self._session(reader, guest, Opening(packet, begun.rest))

    def _may_sit(self, guest: Guest) -> bool:
        return may_sit(guest, self._guests.values(), self._door.users or (), self._limits.max_connections)

    def _full(self, guest: Guest) -> tuple[str, str]:
        most = self._limits.max_connections
        kept = "" if len(self._door.users or ()) < 2 else f", and of these some are kept for others than {guest.user}"
        return "53300", f"sorry, too many clients already: {most} are allowed{kept}"

    def _judged(self, guest: Guest, passed: bool) -> None:
        """The server has let a guest in, or not. Others may have come in since it was let begin."""
        guest.judged = True
        self._failures.note(guest.address, guest.user, passed)
        if passed and guest.session is not None and not self._may_sit(guest):
            guest.session.end(*self._full(guest))
            guest.gone = True

    async def _session(self, reader: asyncio.StreamReader, guest: Guest, begun: Opening) -> None:
        server = await self._server()
        server[1].write(begun.packet)
        guest.session = session = Session(
            (reader, guest.writer), server, self._rewriting(guest.user), self._limits, guest.user, self._turns
        )
        session.judged = partial(self._judged, guest)
        session.isolated = b"isolation" in begun.packet.lower()
        self._sessions.add(session)
        try:
            await session.run(begun.rest)
        finally:
            self._sessions.discard(session)
            server[1].transport.abort()
            if not guest.judged:  # a process of the server for nothing, as a wrong password costs one
                self._failures.note(guest.address, guest.user, False)
            if session.activity.busy and session.cancel_key:
                # A client that has gone must not leave its query running; the server looks only when it next writes.
                await self._cancel(_cancel_packet(session.cancel_key))

    async def _server(self) -> Pipe:
        try:
            return await asyncio.open_connection(*self.backend, limit=CHUNK)
        except OSError as problem:
            log.warning("the server at %s:%d cannot be reached: %s", *self.backend, problem)
            raise Rejected("08006", "the server behind this endpoint cannot be reached") from problem

    async def _cancel(self, packet: bytes) -> None:
        """Stops the rewriter of the session the packet names; otherwise the server is asked to stop its query."""
        key = packet[8:]
        if any(each.cancel_key == key and each.cancel_work() for each in self._sessions):
            return
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CANCEL_TIMEOUT):
                reader, writer = await asyncio.open_connection(*self.backend)
                writer.write(packet)
                await reader.read()
                writer.close()

    async def _watching(self) -> None:
        while True:
            await asyncio.sleep(_TICK)
            now = time.monotonic()
            await asyncio.gather(*(self._check(session, now) for session in tuple(self._sessions)))

    async def _check(self, session: Session, now: float) -> None:
        """Ends a session that waited too long; one whose statement did is first asked to stop it."""
        verdict = session.overdue(now)
        if verdict is Overdue.STATEMENT and session.overdue(now - _GRACE) is None:
            await self._cancel(_cancel_packet(session.cancel_key))
        elif verdict is not None:
            # A client that does not read its answer keeps the server from hearing the cancel request.
            session.end(*verdict.value)


def _cancel_packet(key: bytes) -> bytes:
    return (len(key) + 8).to_bytes(4, "big") + wire.CANCEL_REQUEST.to_bytes(4, "big") + key
