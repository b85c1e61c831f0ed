"""One client and its own connection to the server: bytes pass both ways, SQL text goes through the rewriter."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from rollup.core.errors import RollupError
from rollup.gateway.protocol import refusal, wire
from rollup.gateway.protocol.forbidden import SHORT, forbidden
from rollup.gateway.protocol.limits import Activity, Limits, Overdue
from rollup.gateway.protocol.refusal import Missing, Refusal
from rollup.gateway.protocol.startup import CHUNK
from rollup.gateway.protocol.turns import Turns
from rollup.gateway.protocol.wire import Message, Splitter

log = logging.getLogger(__name__)

Rewrite = Callable[[str], Awaitable[str]]
"""Text of a Query or Parse to the text the server gets; may load data first; raises RollupError to refuse."""

BindHook = Callable[[str, Sequence[wire.Parameter]], Awaitable[None]]
"""Called with the client's text and the parameters before a Bind of it goes on; raises RollupError to refuse."""

NoticeHook = Callable[["Session", bytes], Awaitable[None]]
"""Called with the session and the payload of a notice that begins with `ASKS`; the client does not see such a one."""

Guard = Callable[[bytes], Awaitable[bool]]
"""Says of a long text of a Query or Parse whether it may change the role that runs it."""

ASKS = b"rollup_ask:"

VISITOR: ContextVar[Session] = ContextVar("VISITOR")
"""The session whose text is being rewritten, for a rewriter that has to know."""

Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]

_T = TypeVar("_T")
_WATCHED_OF_CLIENT = b"QPBECSFX"
_WORK = b"QPBEF"
"""Messages for which the server works."""
_WATCHED_OF_SERVER = b"RSKZEN"
_LINGER = 1.0
_WRONG_PASSWORD = b"28P01"
_SASL = (10).to_bytes(4, "big")
_LONGEST_ANSWER_LOOKED_AT = 1 << 20
_FIRST = asyncio.FIRST_COMPLETED
_GOOD_BYE = wire.message(b"X", b"")
_SOON = 0.01
_NO_STATEMENT = b"rollup refused"
"""A name of our own: a Parse without a name would drop the client's statement that has none."""
_SIMPLE = Refusal(
    "a SUBSCRIBE is answered as a COPY, which has no prepared form",
    "0A000",
    hint="send it as a simple query: copy_expert of psycopg2, cursor.copy of psycopg, copy_from_query of asyncpg",
)
_TURN = 128
"""Messages of one client after which the others have their turn: a chunk may hold 50,000 of them."""


async def guarded(text: bytes) -> bool:
    """The guard that decides at once."""
    return forbidden(text)


@dataclass(frozen=True, slots=True)
class Rewriting:
    """The injected half of the gateway: which texts concern it, what becomes of them, what their parameters mean."""

    rewrite: Rewrite
    needs: Callable[[str], bool]
    guard: Guard
    bind: BindHook | None = None
    notice: NoticeHook | None = None
    missing: Missing | None = None
    copied: Callable[[str], Copied | None] | None = None


class Copied(Protocol):
    """A COPY to the client that the gateway makes itself, and that does not end by itself."""

    async def begin(self) -> int:
        """Check what is asked; the number of columns. Raises a RollupError."""
        ...

    def rows(self) -> AsyncIterator[list[str]]:
        """Lines of text, some at once; no lines now and then while there is nothing to say. Raises a RollupError."""
        ...


class Session:
    """The life of one connection after its StartupMessage was let in. `run` returns when it is over."""

    def __init__(
        self, client: Pipe, server: Pipe, rewriting: Rewriting, limits: Limits, user: str, turns: Turns
    ) -> None:
        self.user = user
        self._turns = turns
        self._has_turn = False
        self._reader, self._writer = client
        self._server_reader, self._server_writer = server
        self._rewriting = rewriting
        self._limits = limits
        self._secret = "rollup_refused_" + secrets.token_hex(8)
        self._from_client = Splitter(_WATCHED_OF_CLIENT, limit=limits.max_query_bytes, drop_long=True)
        self._from_server = Splitter(_WATCHED_OF_SERVER, limit=_LONGEST_ANSWER_LOOKED_AT)
        self._encoding = "utf-8"
        self._statements: dict[bytes, str] = {}
        self._open = asyncio.Event()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._work: asyncio.Future[Any] | None = None
        self._moved = list[tuple[str, str]]()
        """What the client has sent since the server was last idle, and what the server got instead."""
        self._farewell: bytes | None = None
        self._ended_by_server = False
        self._leaving = False
        self._early = b""
        self._reading: asyncio.Future[bytes] | None = None
        self._errands: set[asyncio.Future[None]] = set()
        self._holds: list[Callable[[], None]] = []
        self._answered: list[Callable[[], None]] = []
        self._remarks, self._remarked = list[str](), set[str]()
        self.simple = False
        self.moment: tuple[str, dict[Any, int]] = ("", {})
        self.zone = ""
        """The zone of its clocks, as the server says it."""
        self.isolated = False
        """Whether some transaction of it may be isolated from later commits; only the server knows of which that is so."""
        self.cancel_key = b""
        self.judged: Callable[[bool], None] = lambda passed: None
        """Called when the server has let the client in, or has found the password wrong."""
        self.activity = Activity(time.monotonic())

    async def run(self, rest: bytes = b"") -> None:
        """Passes bytes until the server has closed its side or the client broke the protocol."""
        VISITOR.set(self)
        upstream = asyncio.ensure_future(self._upstream(rest))
        downstream = asyncio.ensure_future(self._downstream())
        try:
            await asyncio.wait({upstream, downstream, self._ended}, return_when=asyncio.FIRST_COMPLETED)
            if upstream.done() and not self._ended.done() and upstream.exception() is None:
                await asyncio.wait({downstream, self._ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (upstream, downstream, *self._errands, *([] if self._reading is None else [self._reading])):
                task.cancel()
            self._let_go()
            results = await asyncio.gather(upstream, downstream, return_exceptions=True)
            self._give_turn_back()
            self._server_writer.close()
            await self._part(next((each for each in results if isinstance(each, wire.ProtocolViolation)), None))

    @property
    def logged_in(self) -> bool:
        """Whether the server has let the client in."""
        return bool(self.activity.status)

    @property
    def pid(self) -> int:
        """The server's process that works for it; 0 before there is one."""
        return int.from_bytes(self.cancel_key[:4], "big")

    def cancel_work(self) -> bool:
        """Stops the rewriter when it works for this session (the client then reads 57014); false when it does not."""
        return self._work is not None and self._work.cancel()

    def hold(self, release: Callable[[], None]) -> None:
        """Call `release` once the server has answered all and no transaction is open, or the session is over."""
        self._holds.append(release)

    def after_answer(self, action: Callable[[], None]) -> None:
        """Call `action` once the server has answered all that the client has asked so far, or the session is over."""
        self._answered.append(action)

    def remark(self, remarks: Iterable[str]) -> None:
        """Tell the client, each once in a session, as notices behind the answer that comes next."""
        fresh = [each for each in dict.fromkeys(remarks) if each not in self._remarked]
        self._remarks += fresh
        self._remarked.update(fresh)

    def _let_go(self, transaction: bool = True) -> None:
        due, self._answered = self._answered, []
        if transaction:
            due, self._holds = [*due, *self._holds], []
        for action in due:
            action()

    def end(self, sqlstate: str, text: str) -> None:
        """Ends the session from our side with a FATAL error."""
        self._farewell = self._farewell or wire.error("FATAL", sqlstate, text.encode())
        if not self._ended.done():
            self._ended.set_result(None)

    def overdue(self, now: float) -> Overdue | None:
        """What the session has waited too long for by `now`, in seconds of the monotonic clock."""
        return self.activity.overdue(now, self._limits)

    # client to server

    async def _upstream(self, rest: bytes) -> None:
        data = rest or await self._read()
        while data:
            for index, piece in enumerate(self._from_client.feed(data), start=1):
                if index % _TURN == 0:
                    await asyncio.sleep(0)
                if self._server_writer.is_closing():  # each write would be a line in the log
                    return
                if isinstance(piece, bytes):
                    self._server_writer.write(piece)
                else:
                    self._server_writer.write(await self._outgoing(piece))
            await self._server_writer.drain()
            data = await self._read()
        self._leaving = True
        self._server_writer.write_eof()

    async def _read(self) -> bytes:
        """What the client sends next, or has sent during a COPY of ours."""
        reading, self._reading = self._reading, None
        early, self._early = self._early, b""
        if reading is not None and (reading.done() or not early):
            return early + await reading
        self._reading = reading
        return early or await self._reader.read(CHUNK)

    async def _outgoing(self, piece: Message) -> bytes:
        """What the server gets for one message of the client."""
        self.activity.sent(time.monotonic(), piece.kind)
        self._leaving = self._leaving or piece.kind == b"X"
        self.simple = piece.kind == b"Q"
        if piece.kind in _WORK:
            # A text may make the rewriter load data, so nobody gets that far before the server let him in.
            await self._open.wait()
            no = None if self._has_turn else await self._turn()
            if no is not None:
                return self._refused(piece, no)
        if not piece.whole:
            return self._too_long(piece)
        if piece.kind == b"Q":
            return await self._query(piece)
        if piece.kind == b"P":
            return await self._parse(piece)
        if piece.kind == b"B" and self._statements:
            return await self._bind(piece)
        if piece.kind == b"C" and self._statements:
            self._statements.pop(piece.body[1:-1], None) if piece.body[:1] == b"S" else None
        return piece.raw

    def _too_long(self, piece: Message) -> bytes:
        limit = self._limits.max_query_bytes
        return self._refused(piece, Refusal(f"a message of more than {limit} bytes is not taken", refusal.TOO_LONG))

    def _refused(self, piece: Message, no: Refusal) -> bytes:
        """What the server gets in the place of a message; only those of a kind that has no Sync are answered at once."""
        return no.as_query(self._secret) if piece.kind in b"QF" else no.as_parse(self._secret, _NO_STATEMENT)

    async def _turn(self) -> Refusal | None:
        """Wait until one more statement of this user may run, unless the client cancels it or goes."""
        if self._turns.may(self.user):
            return await self._take_turn()
        return await self._listened(self._worked(self._take_turn(), ""))

    async def _take_turn(self) -> None:
        await self._turns.take(self.user)
        self._has_turn = True

    def _give_turn_back(self) -> None:
        if self._has_turn:
            self._has_turn = False
            self._turns.give_back(self.user)

    async def _query(self, piece: Message) -> bytes:
        text, end = wire.cstring(piece.body)
        copied = self._copied(text)
        if copied is not None:
            refused = copied if isinstance(copied, Refusal) else await self._copy(copied, self._decoded(text))
            return refused.as_query(self._secret)
        changed = await self._rewritten(text)
        if isinstance(changed, Refusal):
            return changed.as_query(self._secret)
        return piece.raw if changed is None else wire.message(b"Q", changed + piece.body[end - 1 :])

    async def _parse(self, piece: Message) -> bytes:
        name, start = wire.cstring(piece.body)
        text, end = wire.cstring(piece.body, start)
        if self._copied(text) is not None:
            return _SIMPLE.as_parse(self._secret, name)
        changed = await self._rewritten(text)
        self._statements.pop(name, None)
        if isinstance(changed, Refusal):
            return changed.as_parse(self._secret, name)
        if changed is None:
            return piece.raw
        if self._rewriting.bind is not None:
            self._statements[name] = self._decoded(text)
        return wire.message(b"P", name + b"\0" + changed + piece.body[end - 1 :])

    async def _bind(self, piece: Message) -> bytes:
        bound = wire.bind(piece.body, self._encoding)
        text = self._statements.get(bound.statement)
        if text is None or self._rewriting.bind is None:
            return piece.raw
        no = await self._worked(self._rewriting.bind(text, bound.parameters), text)
        return self._refused(piece, no) if isinstance(no, Refusal) else piece.raw

    async def _rewritten(self, raw: bytes) -> bytes | Refusal | None:
        """The new text in the client's encoding, None to leave the message as it is, or why it is refused."""
        no = forbidden(raw) if len(raw) <= SHORT else await self._worked(self._rewriting.guard(raw), "")
        if isinstance(no, Refusal):
            return no
        if no:
            hint = "it must not change a role, notify, or set how much memory a query takes"
            return Refusal("permission denied for this statement through this endpoint", "42501", hint=hint)
        sql = self._decoded(raw)
        self.isolated = self.isolated or b"isolation" in raw.lower()
        try:
            if not self._rewriting.needs(sql):
                return None
        except Exception:
            log.exception("the prefilter failed; the text passes")
            return None
        changed = await self._worked(self._rewriting.rewrite(sql), sql)
        if isinstance(changed, Refusal):
            return changed
        if changed == sql:
            return raw
        self._moved.append((sql, changed))
        try:
            return changed.encode(self._encoding, "surrogateescape")
        except UnicodeEncodeError as problem:
            return Refusal(f"the rewritten query does not fit the client's encoding: {problem}", "22P05")

    async def _worked(self, work: Awaitable[_T], sql: str) -> _T | Refusal:
        """The rewriter's result or its refusal. No failure of the rewriter ends the session."""
        self._work = running = asyncio.ensure_future(work)
        try:
            return await running
        except RollupError as problem:
            return refusal.refusal(problem, sql)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is not None and task.cancelling():
                raise
            return Refusal("canceling statement due to user request", refusal.CANCELED)
        except Exception:
            log.exception("the rewriter failed")
            return Refusal("internal error while the query was rewritten; see the log", refusal.INTERNAL)
        finally:
            self._work = None

    def _copied(self, raw: bytes) -> Copied | Refusal | None:
        """The COPY of ours that a text asks for, or why it is refused."""
        if self._rewriting.copied is None:
            return None
        sql = self._decoded(raw)
        try:
            return self._rewriting.copied(sql)
        except RollupError as problem:
            return refusal.refusal(problem, sql)

    async def _copy(self, copied: Copied, sql: str) -> Refusal:
        """Send rows until the client cancels or goes; the refusal ends the COPY, and the server answers with it."""
        while self.activity.owed > 1:  # what the client has asked before is answered before
            await asyncio.sleep(_SOON)
        if self.activity.status == b"E":
            return Refusal("current transaction is aborted, commands ignored until end of transaction block", "25P02")
        self._give_turn_back()  # it takes nothing of the server, for as long as it lasts
        return await self._listened(self._worked(self._sent(copied), sql))

    async def _listened(self, work: Coroutine[Any, Any, _T]) -> _T:
        """What work of ours gives, while it is heard what the client sends."""
        working = asyncio.ensure_future(work)
        try:
            while not working.done():
                await self._listen(working)
            return working.result()
        finally:
            working.cancel()

    async def _listen(self, work: asyncio.Future[Any]) -> None:
        """Wait for the end of work of ours or for what the client sends; the work is canceled where that is good-bye."""
        if self._reading is None and len(self._early) < CHUNK:
            self._reading = asyncio.ensure_future(self._reader.read(CHUNK))
        reading = self._reading
        await asyncio.wait({work} if reading is None else {work, reading}, return_when=_FIRST)
        if reading is None or not reading.done() or work.done():
            return
        data = b"" if reading.exception() is not None else reading.result()
        if data and data != _GOOD_BYE:
            self._early, self._reading = self._early + data, None
            return
        self.cancel_work()
        await work

    async def _sent(self, copied: Copied) -> Refusal:
        head = wire.copy_out(await copied.begin())
        async for lines in copied.rows():
            self._writer.write(head)
            head = b""
            try:
                self._writer.write(b"".join(wire.message(b"d", line.encode(self._encoding)) for line in lines))
            except UnicodeEncodeError as problem:
                return Refusal(f"a row does not fit the client's encoding: {problem}", "22P05")
            await self._writer.drain()
            self.activity.since = time.monotonic()  # a client that reads may go on for ever
        return Refusal("the subscription has ended", refusal.INTERNAL)

    def _decoded(self, raw: bytes) -> str:
        return raw.decode(self._encoding, "surrogateescape")

    # server to client

    async def _downstream(self) -> None:
        while data := await self._server_reader.read(CHUNK):
            pieces = self._from_server.feed(data)
            for begin in range(0, len(pieces), _TURN):
                turn = pieces[begin : begin + _TURN]
                self._writer.write(b"".join([p if isinstance(p, bytes) else self._incoming(p) for p in turn]))
                if begin:
                    await asyncio.sleep(0)
            await self._writer.drain()

    def _incoming(self, piece: Message) -> bytes:
        """What the client gets for one message of the server."""
        match piece.kind:
            case b"Z":
                self._ready(piece.body)
                said, self._remarks = self._remarks, []
                return b"".join(wire.notice(each.encode(self._encoding, "replace")) for each in said) + piece.raw
            case b"E":
                return self._error(piece)
            case b"S":
                self._status(piece.body)
            case b"K":
                self.cancel_key = piece.body
            case b"N" if self._rewriting.notice is not None and b"M" + ASKS in piece.body:
                return self._asked(self._rewriting.notice, wire.fields(piece.body)["M"].removeprefix(ASKS))
            case b"R" if piece.body[:4] == _SASL:
                return wire.message(b"R", wire.without_channel_binding(piece.body))
            case _:
                pass
        return piece.raw

    def _asked(self, notice: NoticeHook, payload: bytes) -> bytes:
        """Sees to a question of the server's without holding up the stream; the client gets nothing of it."""
        errand = asyncio.ensure_future(notice(self, payload))
        self._errands.add(errand)
        errand.add_done_callback(self._errands.discard)
        return b""

    def _ready(self, status: bytes) -> None:
        if not self.logged_in:
            self.judged(True)
        self.activity.ready(time.monotonic(), status)
        self._open.set()
        if not self.activity.busy:
            self._give_turn_back()
            self._let_go(status == b"I")
        self._moved = self._moved if self.activity.busy else []

    def _status(self, body: bytes) -> None:
        name, start = wire.cstring(body)
        if name == b"client_encoding":
            self._encoding = wire.codec(wire.cstring(body, start)[0].decode("latin-1"))
        elif name == b"TimeZone":
            self.zone = wire.cstring(body, start)[0].decode("latin-1")

    def _error(self, piece: Message) -> bytes:
        ours = refusal.found(piece.body, self._secret)
        if ours is not None:
            return ours.as_error(self._encoding)
        fields = wire.fields(piece.body)
        self._ended_by_server = self._ended_by_server or fields.get("V") in (b"FATAL", b"PANIC")
        if not self.logged_in and fields.get("C") == _WRONG_PASSWORD:
            self.judged(False)
        told = dict(fields)
        if self._rewriting.missing is not None:
            told = refusal.explained(told, self._rewriting.missing, self._encoding)
        if self._moved and "P" in told:
            place = refusal.place_in(*self._moved[0], int(told.pop("P"))) if len(self._moved) == 1 else None
            told |= {} if place is None else {"P": str(place).encode()}
        if told == fields:
            return piece.raw
        return wire.message(b"E", b"".join(k.encode() + v + b"\0" for k, v in told.items()) + b"\0")

    # the end

    async def _part(self, violation: wire.ProtocolViolation | None) -> None:
        """Tells the client why it is over, unless it knows, and closes its side without losing that message."""
        last = self._farewell
        if violation is not None:
            last = wire.error("FATAL", "08P01", f"protocol violation: {violation.message}".encode())
        elif last is None and not (self._leaving or self._ended_by_server):
            last = wire.error("FATAL", "08006", b"the server behind this endpoint closed the connection")
        if last is not None and self._from_server.at_boundary:
            self._writer.write(last)
        await hang_up(self._reader, self._writer)


async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Closes a connection; what the client still sends is read for a moment, for a reset would eat our last message."""
    with contextlib.suppress(OSError, RuntimeError, TimeoutError):
        async with asyncio.timeout(_LINGER):
            await writer.drain()
            if writer.can_write_eof():
                writer.write_eof()
                while await reader.read(CHUNK):
                    pass
    writer.close()
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_LINGER):
            await writer.wait_closed()
