"""What the SQL store needs of a database, and how it waits for one that is gone."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol, TypeVar

import pyarrow as pa

from rollup.core.calendar import Duration
from rollup.core.errors import StoreError
from rollup.retrieval.questions import Question

Result = TypeVar("Result")
LOCKED = "55P03"
"""What PostgreSQL says of a lock that another session has not let go of in time."""
_LOST = {"57P01", "57P02", "57P03", "40001", "40P01", "25006", "53300", LOCKED}
"""Server going down or coming up, a conflict or a lock to try again, a server that is a standby now, or has as many
clients as it takes; and class 08."""
_AWAY = re.compile(
    "refused|could not connect|server closed|starting up|shutting down|not yet accepting|recovery mode|timeout expired"
    "|terminat|reset by peer|SSL SYSCALL|EOF|too many (clients|connections)|connection slots are reserved|could not fork"
)
_MEANWHILE = "tuple concurrently"
"""Begins what PostgreSQL says, as an internal error, of a table whose entry in its catalog another has just written."""


@dataclass(frozen=True)
class Record:
    """One row of the commit table."""

    number: int
    token: str
    clocks: str
    source: str
    resume: int | None


@dataclass(frozen=True)
class Range:
    """Rows with low <= `column` < high; either bound may be missing."""

    column: str
    low: int | None = None
    high: int | None = None


class Session(Protocol):
    """One transaction."""

    def make(self) -> None:
        """Make tables that are gone anew, empty, although there are commits."""
        ...

    def claim(self, record: Record) -> bool:
        """Write a commit record behind the newest one; False when that is not the one before it."""
        ...

    def latest(self, number: int | None = None) -> Record | None:
        """The newest commit record, or the one of a number."""
        ...

    def after(self, number: int) -> list[Record]:
        """The commit records behind the one of a number, in order."""
        ...

    def append(self, table: str, rows: pa.Table) -> None:
        """Add rows."""
        ...

    def like(self, table: str, schema: pa.Schema, rows: pa.Table) -> pa.Table:
        """The stored rows that have the identity of one of `rows`, nulls counting as equal; perhaps others with them."""
        ...

    def replace(self, table: str, rows: pa.Table) -> None:
        """Put rows in the place of those with the same identity."""
        ...

    def columns(self, table: str) -> set[str]:
        """The names of the columns a table has; none when there is no such table."""
        ...

    def evolve(self, added: Sequence[str]) -> None:
        """Give the levels and the open rows further columns, `before_added` in every row; those that are there stay.

        Raises StoreError, before anything is changed, when one that is there has another type.
        """
        ...

    def cut(self, table: str, within: Range) -> None:
        """Delete the rows of a range."""
        ...

    def remove(self, table: str, end: int) -> None:
        """Delete the rows with AGG_TIMESTAMP < end, for good: where they are stored may go with them."""
        ...

    def events(self, table: str, within: Range) -> int:
        """How many events are in the rows of a range."""
        ...

    def extent(self, table: str) -> tuple[int, int] | None:
        """The least and greatest AGG_TIMESTAMP."""
        ...

    def size(self, table: str) -> tuple[int, int]:
        """Rows and bytes."""
        ...

    def committed(self) -> float:
        """When the newest commit was made, seconds since the epoch; 0 before the first."""
        ...

    def clear(self, table: str, levels: Sequence[Duration] | None = None) -> None:
        """Delete all rows of a table, or the open rows of some levels (at least one)."""
        ...

    def read(self, table: str, schema: pa.Schema, within: Range | None = None) -> pa.Table:
        """The rows of a table."""
        ...

    def newest(self, level: Duration) -> dict[str, int]:
        """For each zone, the newest AGG_TIMESTAMP."""
        ...

    def answer(self, question: Question, tables: Mapping[str, pa.Table]) -> pa.Table | None:
        """The answer to a question, or None when this database cannot give it."""
        ...


class Database(Protocol):
    """A database that is there, with the tables of one aggregation; `apart` when it is a process of its own."""

    apart: bool

    def prepare(self) -> None:
        """Make the tables that are missing.

        Raises StoreError when one that is there has other columns, or when there are commits and one is gone.
        """
        ...

    def end_others(self) -> None:
        """End transactions of others that have begun to write a commit, where the database can."""
        ...

    def end_resting(self) -> None:
        """End transactions of other snapshots of ours that nobody reads from at this moment; they begin another."""
        ...

    def writing(self) -> AbstractContextManager[Session]:
        """A transaction that is committed at the end."""
        ...

    def reading(self) -> AbstractContextManager[Session]:
        """A transaction that sees one moment."""
        ...

    def after_commit(self, deleted: int) -> None:
        """Called outside a transaction with the number of open rows that were deleted."""
        ...


class ConnectionLost(Exception):
    """The database is gone or restarting; whether the last transaction was committed is not known."""


class Locked(ConnectionLost):
    """Another session has kept a lock for as long as one is waited for; the transaction was rolled back."""


class OutOfRange(Exception):
    """A number that the database cannot compute."""


class AlreadyThere(Exception):
    """A row that was thought to be new has been there; the transaction was rolled back."""


def lost(code: str, text: str) -> bool:
    """Whether an error of PostgreSQL, its SQLSTATE (may be empty) and text, says to try again later.

    >>> lost("57P01", ""), lost("", "connection refused"), lost("28P01", "password authentication failed")
    (True, True, False)
    """
    if not code:
        return _AWAY.search(text) is not None
    return code in _LOST or code.startswith("08") or text.startswith(_MEANWHILE)


def gone(table: str) -> StoreError:
    """The error for a table that commits have been written to and that is not there any more."""
    hint = "bring it back, or `rollup recover CONF --rebuild` makes it anew from the next finer table"
    hint += "; the finest keeps what it has, and a replay brings the rest"
    return StoreError(f"the table {table} is gone", hint=hint)


def lacks(table: str, column: str) -> StoreError:
    """The error for a column that is not there."""
    return StoreError(
        f"table {table!r} has no column {column!r}",
        hint="`rollup change CONF` says what is different, and with --accept brings it in line; a table of another owner must move away",
    )


def misfit(table: str, column: str, found: str, wanted: str) -> StoreError:
    """The error for a column of another type."""
    return StoreError(
        f"column {column!r} of table {table!r} is {found}, not {wanted}",
        hint="change its type, or move the table away",
    )


def patiently(what: str, patience: float, action: Callable[[], Result]) -> Result:
    """Repeat an action while the connection is lost, waiting twice as long each time, for `patience` seconds.

    Raises StoreError with the last reason after that.
    """
    deadline, pause = time.monotonic() + patience, 0.05
    while True:
        try:
            return action()
        except ConnectionLost as problem:
            if time.monotonic() + pause > deadline:
                if isinstance(problem, Locked):
                    raise StoreError(
                        f"{what}: {problem}", hint="nothing was changed; end what holds it, and go on"
                    ) from None
                raise StoreError(
                    f"{what}: the database does not answer: {problem}",
                    hint="nothing was lost; start again when it does",
                ) from None
        time.sleep(pause)
        pause = min(2 * pause, 2.0)
