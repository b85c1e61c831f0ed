"""Framing of the PostgreSQL protocol, version 3, without any I/O.

A byte stream is cut into *pieces*: runs of bytes that pass as they are, and whole messages of the few kinds
somebody wants to look at. Everything here is a function of bytes alone, so it can be fuzzed without a socket.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from rollup.core.errors import RollupError

HEADER = 5
STARTUP_LIMIT = 10_000
PROTOCOL_3 = 3 << 16
CANCEL_REQUEST = 80877102
SSL_REQUEST = 80877103
GSS_REQUEST = 80877104

_head = struct.Struct(">BI").unpack_from
_uint32 = struct.Struct(">I").unpack_from
_int32 = struct.Struct(">i").unpack_from
_int16 = struct.Struct(">h").unpack_from

Parameter = str | bytes | None


class ProtocolViolation(RollupError):
    """Bytes that no PostgreSQL client sends; the connection cannot go on, because its framing is lost."""


@dataclass(frozen=True, slots=True)
class Message:
    """One typed message with its header. `whole` is false for one over the limit, whose rest is thrown away.

    >>> Message(message(b"Q", b"select 1\\0")).body
    b'select 1\\x00'
    """

    raw: bytes
    whole: bool = True

    @property
    def kind(self) -> bytes:
        """The one-letter type."""
        return self.raw[:1]

    @property
    def body(self) -> bytes:
        """What follows the length."""
        return self.raw[HEADER:]


def message(kind: bytes, body: bytes) -> bytes:
    """A typed message as it travels."""
    return kind + struct.pack(">I", len(body) + 4) + body


class Splitter:
    """Cuts one direction of a connection into passing runs and whole messages of the `watched` kinds.

    A watched message longer than `limit` bytes is never held in memory: with `drop_long` its first bytes come as a
    `Message` that is not `whole` and the rest vanishes; without it, it passes unlooked at.

    >>> splitter = Splitter(b"Q", limit=100)
    >>> splitter.feed(message(b"S", b"") + message(b"Q", b"select 1\\0")[:-2])
    [b'S\\x00\\x00\\x00\\x04']
    >>> [piece.body for piece in splitter.feed(b"1\\0")]
    [b'select 1\\x00']
    """

    def __init__(self, watched: bytes, *, limit: int, drop_long: bool = False) -> None:
        self._watched = frozenset(watched)
        self._limit = limit
        self._drop_long = drop_long
        self._held = bytearray()
        self._need = 0
        self._skip = 0
        self._dropping = False

    @property
    def at_boundary(self) -> bool:
        """Whether everything passed on so far ends with a whole message, so that another may be put after it."""
        return not self._skip or self._dropping

    def feed(self, data: bytes) -> list[bytes | Message]:
        """The pieces that `data` completes, in order. Raises `ProtocolViolation` on a length below four."""
        data = self._with_held(data)
        pieces: list[bytes | Message] = []
        run, position = self._after_skip(data)
        watched, last = self._watched, len(data) - HEADER
        while position <= last:
            kind, length = _head(data, position)
            if kind in watched or length < 4:
                stop = position + length + 1
                if length >= self._limit:
                    run = self._long(data, run, position, stop, pieces)
                elif stop > len(data):
                    self._need = length + 1
                    break
                else:
                    pieces += _run(data, run, position)
                    pieces.append(Message(_checked(data[position:stop], length)))
                    run = stop
            position += length + 1
        return pieces + self._rest(data, run, position)

    def _long(self, data: bytes, run: int, position: int, stop: int, pieces: list[bytes | Message]) -> int:
        """Passes or drops a watched message over the limit; returns where the run goes on."""
        if not self._drop_long:
            return run
        pieces += _run(data, run, position)
        pieces.append(Message(data[position : position + HEADER], whole=False))
        self._dropping = stop > len(data)
        return min(stop, len(data))

    def _with_held(self, data: bytes) -> bytes:
        """`data` after what was held back; nothing as long as a long message is known to be incomplete."""
        if not self._held:
            return data
        self._held += data
        if len(self._held) < self._need:
            return b""
        data = bytes(self._held)
        self._held.clear()
        self._need = 0
        return data

    def _after_skip(self, data: bytes) -> tuple[int, int]:
        """Where the current run and the next message begin, after the tail of a message from earlier chunks."""
        position = min(self._skip, len(data))
        self._skip -= position
        run = position if self._dropping else 0
        self._dropping = self._dropping and self._skip > 0
        return run, position

    def _rest(self, data: bytes, run: int, position: int) -> list[bytes | Message]:
        """The last run; remembers how far the last message still goes, or holds back its unfinished start."""
        if position < len(data):
            self._held += data[position:]
            return _run(data, run, position)
        self._skip += position - len(data)
        return _run(data, run, len(data))


def _checked(raw: bytes, length: int) -> bytes:
    if length < 4:
        raise ProtocolViolation(f"a message {raw[:1]!r} with length {length}", hint="4 or more")
    return raw


def _run(data: bytes, start: int, stop: int) -> list[bytes | Message]:
    return [data[start:stop]] if start < stop else []


def cstring(data: bytes, start: int = 0) -> tuple[bytes, int]:
    """The zero-terminated bytes at `start` and where they end; `ProtocolViolation` when nothing terminates them."""
    stop = data.find(b"\0", start)
    if stop < 0:
        raise ProtocolViolation("a string without its terminating zero byte")
    return data[start:stop], stop + 1


def fields(body: bytes) -> dict[str, bytes]:
    """The fields of an ErrorResponse or NoticeResponse by their letter.

    >>> fields(b"SERROR\\0C42601\\0\\0")
    {'S': b'ERROR', 'C': b'42601'}
    """
    return {part[:1].decode("latin-1"): part[1:] for part in body.split(b"\0") if part}


def error(severity: str, sqlstate: str, text: bytes, extra: Mapping[str, bytes] | None = None) -> bytes:
    """An ErrorResponse; `extra` are further fields by letter, such as `P` for the position."""
    return _report(
        b"E", {"S": severity.encode(), "V": severity.encode(), "C": sqlstate.encode(), "M": text, **(extra or {})}
    )


def notice(text: bytes) -> bytes:
    """A NoticeResponse.

    >>> fields(notice(b"look")[5:])["M"]
    b'look'
    """
    return _report(b"N", {"S": b"NOTICE", "V": b"NOTICE", "C": b"00000", "M": text})


def _report(kind: bytes, parts: Mapping[str, bytes]) -> bytes:
    return message(kind, b"".join(key.encode() + value + b"\0" for key, value in parts.items()) + b"\0")


def copy_out(columns: int) -> bytes:
    """A CopyOutResponse of lines of text.

    >>> copy_out(2)
    b'H\\x00\\x00\\x00\\x0b\\x00\\x00\\x02\\x00\\x00\\x00\\x00'
    """
    return message(b"H", struct.pack(f">bh{columns}h", 0, columns, *[0] * columns))


def startup_parameters(packet: bytes) -> dict[bytes, bytes]:
    """The parameters of a StartupMessage (whole packet, length and version included).

    >>> startup_parameters(startup({b"user": b"ann"}))
    {b'user': b'ann'}
    """
    parameters: dict[bytes, bytes] = {}
    position = 8
    while packet[position : position + 1] not in (b"\0", b""):
        key, position = cstring(packet, position)
        parameters[key], position = cstring(packet, position)
    if position != len(packet) - 1 or b"user" not in parameters:
        raise ProtocolViolation("a startup packet without its end or without a user")
    return parameters


def startup(parameters: Mapping[bytes, bytes], version: int = PROTOCOL_3) -> bytes:
    """A StartupMessage."""
    body = b"".join(key + b"\0" + value + b"\0" for key, value in parameters.items()) + b"\0"
    return struct.pack(">II", len(body) + 8, version) + body


def code(packet: bytes) -> int:
    """The protocol version or request code of an untyped packet of at least eight bytes."""
    return _uint32(packet, 4)[0]


def without_channel_binding(body: bytes) -> bytes:
    """An AuthenticationSASL body that offers no `-PLUS` mechanism: two TLS connections have nothing to bind to."""
    offered = [name for name in body[4:].split(b"\0") if name and not name.endswith(b"-PLUS")]
    return body[:4] + b"".join(name + b"\0" for name in offered) + b"\0"


@dataclass(frozen=True, slots=True)
class Bind:
    """What a Bind message says: the statement's name and its parameters, text as `str`, binary as `bytes`."""

    statement: bytes
    parameters: tuple[Parameter, ...]


def bind(body: bytes, encoding: str) -> Bind:
    """Reads a Bind message; `ProtocolViolation` when it is cut short."""
    try:
        _, position = cstring(body)
        statement, position = cstring(body, position)
        formats, position = _formats(body, position)
        return Bind(statement, tuple(_parameters(body, position, formats, encoding)))
    except (struct.error, IndexError) as problem:
        raise ProtocolViolation("a Bind message that is cut short") from problem


def _formats(body: bytes, position: int) -> tuple[list[int], int]:
    count = _int16(body, position)[0]
    stop = position + 2 + 2 * max(count, 0)
    return [_int16(body, at)[0] for at in range(position + 2, stop, 2)], stop


def _parameters(body: bytes, position: int, formats: list[int], encoding: str) -> Iterable[Parameter]:
    count = _int16(body, position)[0]
    position += 2
    for index in range(count):
        size = _int32(body, position)[0]
        position += 4
        value = None if size < 0 else body[position : position + size]
        position += max(size, 0)
        binary = (formats[index] if len(formats) > 1 else formats[0]) if formats else 0
        yield value if value is None or binary else value.decode(encoding, "surrogateescape")


_CODECS = {
    "SQL_ASCII": "utf-8", "UTF8": "utf-8", "UNICODE": "utf-8", "MULE_INTERNAL": "ascii",
    "LATIN5": "iso8859-9", "LATIN6": "iso8859-10", "LATIN7": "iso8859-13", "LATIN8": "iso8859-14",
    "LATIN9": "iso8859-15", "LATIN10": "iso8859-16", "EUC_CN": "gb2312", "UHC": "cp949", "WIN949": "cp949",
    "SJIS": "cp932", "EUC_JP": "euc_jp", "EUC_JIS_2004": "euc_jis_2004", "SHIFT_JIS_2004": "shift_jis_2004",
    "EUC_TW": "ascii", "KOI8R": "koi8-r", "KOI8U": "koi8-u",
}  # fmt: skip


def codec(client_encoding: str) -> str:
    """Python's name for a PostgreSQL `client_encoding`; `ascii` for one it does not have (bytes then pass escaped).

    >>> codec("UTF8"), codec("WIN1251"), codec("ISO_8859_5"), codec("LATIN2")
    ('utf-8', 'cp1251', 'iso8859_5', 'latin2')
    """
    import codecs

    name = client_encoding.upper()
    guess = _CODECS.get(name) or name.replace("WIN", "cp").replace("ISO_8859_", "iso8859_").lower()
    try:
        codecs.lookup(guess)
    except LookupError:
        return "ascii"
    return guess
