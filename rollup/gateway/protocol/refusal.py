"""How an error of ours reaches the client in its right place.

A client may have sent ten messages before the refused one. Their answers are still on their way, or one of them may fail
and make the server skip ours. So the gateway does not answer in the server's stead. It sends the server
a text that is no SQL: a string constant, which carries the error. The server refuses it with a syntax error exactly
where the refused statement would have answered, skips to the Sync, and keeps the transaction status. The gateway only
reads the error out of the server's message and puts it in its place. This needs no state and no count.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import asdict, dataclass

from rollup.core.errors import RollupError, StoreError, SyntaxProblem
from rollup.gateway.protocol import wire

SYNTAX_ERROR = "42601"
INVALID_PARAMETER = "22023"
TOO_LONG = "54000"
INTERNAL = "XX000"
CANCELED = "57014"
SYSTEM_ERROR = "58000"

UNDEFINED_TABLE = b"42P01"

Missing = Callable[[str], tuple[str, str] | None]
"""Of the name of a relation that does not exist: a message and a hint; None where the server's own will do."""

_LONGEST = 8_000
_QUOTED = re.compile(rb'"([^"]+)"')


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


def place_in(sent: str, changed: str, place: int) -> int | None:
    """Where in the client's text a character of the rewritten one stands, both from 1; None within what was put in.

    Texts begin and end alike. What lies between the first and the last source of several has no place.

    >>> sent, changed = "select x from A(1) where y", "select x from (select 1) AS A where y"
    >>> [place_in(sent, changed, 1 + changed.index(word)) for word in ("x", "(sel", "y")]
    [8, None, 26]
    """
    begins = _alike(sent, changed)
    if place <= begins:
        return place
    ends = min(_alike(sent[::-1], changed[::-1]), len(sent) - begins)
    behind = len(changed) - place
    return len(sent) - behind if behind < ends else None


def _alike(one: str, other: str) -> int:
    """The length of what two texts have in common from their start on."""
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


def explained(fields: dict[str, bytes], missing: Missing, encoding: str) -> dict[str, bytes]:
    """The fields of a server's error; for a relation that does not exist, with what `missing` says of its name.

    >>> fields = {"C": b"42P01", "M": b'relation "a" does not exist', "P": b"15"}
    >>> explained(fields, lambda name: (f"{name} needs a range", "WITHIN"), "utf-8")
    {'C': b'42P01', 'M': b'a needs a range', 'P': b'15', 'H': b'WITHIN'}
    """
    name = _QUOTED.search(fields.get("M", b"")) if fields.get("C") == UNDEFINED_TABLE else None
    said = missing(name[1].decode(encoding, "replace").rpartition(".")[2]) if name else None
    if said is None:
        return fields
    return fields | {"M": _encoded(said[0], encoding), "H": _encoded(said[1], encoding)}


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
