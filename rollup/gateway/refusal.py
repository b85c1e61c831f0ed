"""How an error of ours reaches the client in its right place.

A client may have sent ten messages before the one that is refused, whose answers are still on their way, or one of
which may fail and make the server skip ours. So the gateway does not answer in the server's stead. It sends the server
a text that is no SQL: a string constant, which carries the error. The server refuses it with a syntax error exactly
where the refused statement would have answered, skips to the Sync, and keeps the transaction status; the gateway only
reads the error out of the server's message and puts it in its place. Nothing has to be remembered or counted for that.
"""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass

from rollup.errors import RollupError, StoreError, SyntaxProblem
from rollup.gateway import wire

SYNTAX_ERROR = "42601"
INVALID_PARAMETER = "22023"
TOO_LONG = "54000"
INTERNAL = "XX000"
CANCELED = "57014"
SYSTEM_ERROR = "58000"

_LONGEST = 8_000


@dataclass(frozen=True, slots=True)
class Refusal:
    """An error on its way to the client; `position` counts characters of the client's text from 1."""

    message: str
    sqlstate: str = SYNTAX_ERROR
    position: int | None = None
    hint: str | None = None

    def as_sql(self, secret: str) -> bytes:
        """The text that makes the server fail with this refusal in its message.

        >>> Refusal("no").as_sql("k").startswith(b"'k:")
        True
        """
        return f"'{secret}:{json.dumps(asdict(self)).encode().hex()}'".encode()

    def as_query(self, secret: str) -> bytes:
        """A Query message that fails with this refusal."""
        return wire.message(b"Q", self.as_sql(secret) + b"\0")

    def as_parse(self, secret: str, statement: bytes) -> bytes:
        """A Parse message that fails with this refusal; no statement comes of it."""
        return wire.message(b"P", statement + b"\0" + self.as_sql(secret) + b"\0\0\0")

    def as_error(self, encoding: str) -> bytes:
        """The ErrorResponse the client reads."""
        extra: dict[str, bytes] = {}
        if self.hint:
            extra["H"] = _encoded(self.hint, encoding)
        if self.position is not None:
            extra["P"] = str(self.position).encode()
        return wire.error("ERROR", self.sqlstate, _encoded(self.message, encoding), extra)


def _encoded(text: str, encoding: str) -> bytes:
    return text.replace("\0", " ").encode(encoding, "replace")


def found(error_body: bytes, secret: str) -> Refusal | None:
    """The refusal that an ErrorResponse of the server carries, or None when the error is the server's own."""
    if secret.encode() not in error_body:
        return None
    hidden = re.search(rb"'" + secret.encode() + rb":([0-9a-f]+)'", wire.fields(error_body).get("M", b""))
    return Refusal(**json.loads(bytes.fromhex(hidden[1].decode()))) if hidden else None


def refusal(problem: RollupError, sql: str) -> Refusal:
    """What the client reads of an error the rewriter raised about `sql`.

    >>> refusal(SyntaxProblem("no such thing", line=2, column=3), "select\\n  x")
    Refusal(message='no such thing', sqlstate='42601', position=10, hint=None)
    """
    return Refusal(problem.message[:_LONGEST], _sqlstate(problem), _position(problem, sql), problem.hint)


def _sqlstate(problem: RollupError) -> str:
    if isinstance(problem, StoreError):
        return SYSTEM_ERROR
    plain = type(problem) is RollupError and problem.line is not None
    return SYNTAX_ERROR if plain or isinstance(problem, SyntaxProblem) else INVALID_PARAMETER


def _position(problem: RollupError, sql: str) -> int | None:
    if problem.line is None:
        return None
    before = sql.splitlines(keepends=True)[: problem.line - 1]
    return max(1, min(sum(map(len, before)) + (problem.column or 1), len(sql)))
