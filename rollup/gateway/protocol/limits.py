"""What a session of the gateway may use, and when it has used too much.

A client can undo every setting of its own session (`set statement_timeout = 0`), so the gateway keeps its own time.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of the gateway; times in seconds, sizes in bytes; None means no bound."""

    max_connections: int = 100
    user_statements: int | None = None
    """How many statements of one user run at once."""
    max_query_bytes: int = 4 << 20
    startup_timeout: float = 30.0
    statement_timeout: float | None = None
    idle_timeout: float | None = None
    idle_in_transaction_timeout: float | None = None

    def __post_init__(self) -> None:
        if self.max_connections < 1:
            raise ValueError(f"max_connections is {self.max_connections}; allowed is 1 or more")
        if self.max_query_bytes < 1024:
            raise ValueError(f"max_query_bytes is {self.max_query_bytes}; allowed is 1024 or more")


class Overdue(Enum):
    """What a session has waited too long for: its SQLSTATE and the sentence the client reads."""

    LOGIN = ("57014", "canceling authentication due to timeout")
    STATEMENT = ("57014", "canceling statement due to statement timeout")
    IDLE = ("57P05", "terminating connection due to idle-session timeout")
    IDLE_IN_TRANSACTION = ("25P03", "terminating connection due to idle-in-transaction timeout")


class Activity:
    """Whether a session is at work, and since when, told from the messages that pass.

    A Query, FunctionCall or Sync asks for one ReadyForQuery; Parse, Bind, Execute and Close keep the session at work until the
    Sync. The answer to the login counts as one more.
    """

    def __init__(self, now: float) -> None:
        self.since = now
        self.status = b""
        self._owed = 1
        self._unsynced = False

    @property
    def busy(self) -> bool:
        """Whether the backend owes the client an answer."""
        return self._owed > 0 or self._unsynced

    @property
    def owed(self) -> int:
        """The number of times that the backend will still say it is ready."""
        return self._owed

    def sent(self, now: float, kind: bytes) -> None:
        """The client sent a message of this kind."""
        if not self.busy:
            self.since = now
        if kind in b"QSF":
            self._owed += 1
        if kind in b"QSFPBEC":
            self._unsynced = kind in b"PBEC"

    def ready(self, now: float, status: bytes) -> None:
        """The backend sent ReadyForQuery. A Sync that COPY swallowed is never answered, so the debt ends at zero."""
        self._owed = max(0, self._owed - 1)
        self.status = status
        self.since = now

    def overdue(self, now: float, limits: Limits) -> Overdue | None:
        """What has run out by `now`.

        >>> activity = Activity(0.0)
        >>> activity.ready(1.0, b"I")
        >>> activity.overdue(70.0, Limits(idle_timeout=60))
        <Overdue.IDLE: ('57P05', 'terminating connection due to idle-session timeout')>
        """
        if not self.status:
            verdict, allowed = Overdue.LOGIN, limits.startup_timeout
        elif self.busy:
            verdict, allowed = Overdue.STATEMENT, limits.statement_timeout
        elif self.status == b"I":
            verdict, allowed = Overdue.IDLE, limits.idle_timeout
        else:
            verdict, allowed = Overdue.IDLE_IN_TRANSACTION, limits.idle_in_transaction_timeout
        return verdict if allowed is not None and now - self.since > allowed else None
