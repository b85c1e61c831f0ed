"""A gateway in a thread of its own with a rewriter small enough to see through, for clients that block."""

from __future__ import annotations

import asyncio
import socket
import struct
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

from rollup.core.errors import QueryError, SyntaxProblem
from rollup.gateway.protocol import wire
from rollup.gateway.protocol.proxy import Gateway

T = TypeVar("T")
VALUES = "FROM (VALUES (42)) AS answer(n)"


def needs(sql: str) -> bool:
    return "ANSWER" in sql


async def rewrite(sql: str) -> str:
    """`FROM ANSWER` is 42; other words make it refuse, wait or break."""
    at = sql.find("REFUSED")
    if at >= 0:
        line = sql[:at].count("\n") + 1
        column = at - (sql.rfind("\n", 0, at) + 1) + 1
        raise SyntaxProblem("this is refused: ÄÖ€", line=line, column=column, hint="say FROM ANSWER")
    if "UNKNOWN LEVEL" in sql:
        raise QueryError("unknown level")
    if "BROKEN" in sql:
        raise RuntimeError("a bug")
    if "SLOW" in sql:
        await asyncio.sleep(30)
    await asyncio.sleep(0)
    return sql.replace("FROM ANSWER", VALUES)


class Running:
    """`with Running(("127.0.0.1", 5432)) as gateway:` serves on `gateway.port` until the block ends."""

    def __init__(self, backend: tuple[str, int], **options: Any) -> None:
        self._backend, self._options = backend, options
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self.port = 0

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(30)

    def __enter__(self) -> Running:
        self._thread.start()

        async def start() -> int:
            options = {"rewrite": rewrite, "needs": needs} | self._options
            self.gateway = Gateway(self._backend, **options)
            return await self.gateway.start("127.0.0.1", 0)

        self.port = self.run(start())
        return self

    def __exit__(self, *_: object) -> None:
        self.run(self.gateway.close())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)


class Raw:
    """A client of bytes: says exactly what a test wants to say and reads whole messages."""

    def __init__(self, port: int, user: str = "trusting", database: str = "served", *, login: bool = True) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self._stream = self.socket.makefile("rb")
        if login:
            self.send(wire.startup({b"user": user.encode(), b"database": database.encode()}))
            self.until(b"Z")

    def send(self, *messages: bytes) -> None:
        self.socket.sendall(b"".join(messages))

    def read(self) -> tuple[bytes, bytes]:
        """One message: kind and body; two empty ones at the end of the stream."""
        head = self._stream.read(5)
        if len(head) < 5:
            return b"", b""
        return head[:1], self._stream.read(struct.unpack(">I", head[1:])[0] - 4)

    def until(self, kind: bytes) -> list[tuple[bytes, bytes]]:
        """The messages up to the first of `kind` or the end of the stream."""
        seen: list[tuple[bytes, bytes]] = []
        while not seen or seen[-1][0] not in (kind, b""):
            seen.append(self.read())
        return seen

    def close(self) -> None:
        self._stream.close()
        self.socket.close()

    def __enter__(self) -> Raw:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def query(sql: str) -> bytes:
    return wire.message(b"Q", sql.encode() + b"\0")


def parse(sql: str, name: str = "") -> bytes:
    return wire.message(b"P", name.encode() + b"\0" + sql.encode() + b"\0\0\0")


def bind(name: str = "", *parameters: str) -> bytes:
    values = b"".join(struct.pack(">I", len(each.encode())) + each.encode() for each in parameters)
    return wire.message(b"B", b"\0" + name.encode() + b"\0\0\0" + struct.pack(">H", len(parameters)) + values + b"\0\0")


EXECUTE = wire.message(b"E", b"\0\0\0\0\0")
SYNC = wire.message(b"S", b"")
FLUSH = wire.message(b"H", b"")
TERMINATE = wire.message(b"X", b"")


def kinds(messages: list[tuple[bytes, bytes]]) -> str:
    return b"".join(kind for kind, _ in messages).decode()
