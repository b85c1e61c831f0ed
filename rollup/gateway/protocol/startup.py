"""The first packets of a connection: TLS or not, cancel or session, and who may open one."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from rollup.core.errors import RollupError
from rollup.gateway.protocol import wire
from rollup.gateway.protocol.forbidden import forbidden_at_start

CHUNK = 1 << 18


class Rejected(RollupError):
    """A connection that is not let in; `sqlstate` goes to the client with the message."""

    def __init__(self, sqlstate: str, message: str) -> None:
        self.sqlstate = sqlstate
        super().__init__(message)


@dataclass(frozen=True, slots=True)
class Opening:
    """How a connection begins: a cancel request or a StartupMessage, and the bytes that came after it."""

    packet: bytes
    rest: bytes = b""

    @property
    def is_cancel(self) -> bool:
        """Whether this connection only asks to cancel another one's query."""
        return wire.code(self.packet) == wire.CANCEL_REQUEST


@dataclass(frozen=True, slots=True)
class Door:
    """Who may open a session and with what: None lets every user or database of the server in.

    `settings` are server settings every session starts with, whatever the client asked for. They keep honest clients
    from mistakes; what a session may do at all is up to the grants of its role (`ddl/gateway_roles.sql`).
    `defaults` are those of a client that says nothing of them. `inner` has the users whose sessions are in another
    database of the server than the one they name.
    """

    users: Collection[str] | None = None
    database: str | None = None
    inner: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    settings: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())
    defaults: Mapping[str, str] = field(default_factory=lambda: dict[str, str]())

    def checked(self, packet: bytes) -> tuple[bytes, str]:
        """The StartupMessage to forward, and its user; raises `Rejected` for a user or database that is not served."""
        if wire.code(packet) >> 16 != 3:
            raise Rejected("0A000", f"protocol version {wire.code(packet) >> 16} is not spoken here, only version 3")
        parameters = wire.startup_parameters(packet)
        user = parameters[b"user"].decode("utf-8", "replace")
        database = parameters.get(b"database", b"").decode("utf-8", "replace") or user
        if self.users is not None and user not in self.users:
            raise Rejected("28000", f'role "{user}" is not permitted to log in through this endpoint')
        if self.database not in (None, database):
            raise Rejected("3D000", f'database "{database}" is not served here, only "{self.database}"')
        if forbidden_at_start(parameters):
            raise Rejected("42501", "a session must not set how much memory a query takes")
        if user in self.inner:
            parameters[b"database"] = self.inner[user].encode()
            packet = wire.startup(parameters, wire.code(packet))
        return self._with_settings(packet, parameters), user

    def _with_settings(self, packet: bytes, parameters: dict[bytes, bytes]) -> bytes:
        if not self.settings and not self.defaults:
            return packet
        said = {key.lower() for key in parameters} | {parameters.get(b"options", b"").lower()}
        free = {key for key in self.defaults if not any(key.lower().encode() in each for each in said)}
        forced = {key.lower().encode(): value.encode() for key, value in self.settings.items()}
        forced |= {key.lower().encode(): self.defaults[key].encode() for key in free}
        kept = {key: value for key, value in parameters.items() if key.lower() not in forced}
        # Given as parameters of their own, they are applied after the client's `options` and so win over them.
        return wire.startup(kept | forced, wire.code(packet))


async def opening(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, context: ssl.SSLContext | None
) -> Opening | None:
    """Answers the requests for encryption and reads the first real packet; None when the client just leaves.

    Raises `wire.ProtocolViolation` on bytes that are no such packet.
    """
    data = b""
    encrypted = False
    while True:
        data = await _packet(reader, data)
        if not data:
            return None
        size = int.from_bytes(data[:4], "big")
        packet, data = data[:size], data[size:]
        asked = wire.code(packet)
        if asked not in (wire.SSL_REQUEST, wire.GSS_REQUEST):
            return Opening(packet, data)
        if data:
            # Bytes sent in the open before TLS must never count as part of the encrypted session.
            raise wire.ProtocolViolation("data after an encryption request and before its answer")
        if asked == wire.SSL_REQUEST and context is not None and not encrypted:
            writer.write(b"S")
            await writer.start_tls(context)
            encrypted = True
        else:
            writer.write(b"N")
            await writer.drain()


async def _packet(reader: asyncio.StreamReader, data: bytes) -> bytes:
    """`data` and more until it holds an untyped packet; nothing at the end of the stream."""
    while True:
        if len(data) >= 4:
            size = int.from_bytes(data[:4], "big")
            if not 8 <= size <= wire.STARTUP_LIMIT:
                raise wire.ProtocolViolation(f"a startup packet of {size} bytes", hint=f"8 to {wire.STARTUP_LIMIT}")
            if len(data) >= size:
                return data
        more = await reader.read(CHUNK)
        if not more:
            return b""
        data += more
