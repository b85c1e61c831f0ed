"""The errors a user can meet. Each names what was wrong, where, and what is allowed."""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Mapping

_COLOUR = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_FRAMES = re.compile(r"\n\s+0: <?[\w:]+>?\n.*", re.DOTALL)
"""Where a library says which of its functions called which."""
_SYSTEM = re.compile(r'^Error: Os \{.*message: "(.*)" \}$', re.MULTILINE)


class RollupError(Exception):
    """Base of all errors that are the user's to read; everything else is a bug of ours.

    `line` and `column` count from 1 and point into the text that was refused, and `file` is where that stands, if it is one;
    `hint` says what is allowed.

    >>> str(RollupError("unknown duration 'weeks'", line=3, column=7, hint="use sec, min, hour, day, month, year"))
    "line 3, column 7: unknown duration 'weeks' (use sec, min, hour, day, month, year)"
    """

    def __init__(
        self, message: str, *, line: int | None = None, column: int | None = None, hint: str | None = None
    ) -> None:
        self.message = _plain(message)
        self.file: str | None = None
        self.line = line
        self.column = column
        self.hint = hint
        super().__init__(str(self))

    def __str__(self) -> str:
        where = f"line {self.line}, column {self.column}: " if self.line is not None else ""
        where = f"{self.file}, {where}" if self.file and where else where
        allowed = f" ({self.hint})" if self.hint else ""
        return f"{where}{self.message}{allowed}"

    def at(self, line: int | None, column: int | None) -> RollupError:
        """The same error with a position, unless it has one already."""
        if self.line is None:
            self.line, self.column = line, column
            self.args = (str(self),)
        return self

    def of(self, file: str) -> RollupError:
        """The same error with the file that its position is in."""
        self.file = file
        self.args = (str(self),)
        return self


def _plain(message: str) -> str:
    """A message with what a library says for a terminal, in colours and lines with arrows, or as code, in one line.

    >>> _plain("cannot open t: a file system\\n  \\x1b[31m↳\\x1b[0m no space\\n")
    'cannot open t: a file system: no space'
    >>> _plain("cannot open t: Json error\\n   0: <unknown>\\n   1: start_thread\\n")
    'cannot open t: Json error'
    """
    message = _FRAMES.sub("", message)
    if "\x1b" not in message and not _SYSTEM.search(message):
        return message
    lines = (_COLOUR.sub("", line).replace("\x1b", "").strip(" ↳") for line in _SYSTEM.sub(r"\1", message).splitlines())
    return ": ".join(filter(None, lines))


class SyntaxProblem(RollupError):
    """The text of an app or a query does not follow the grammar."""


class PlanError(RollupError):
    """The text is well formed and still cannot run: an unknown name, a type that does not fit, a skipped duration."""


class QueryError(RollupError):
    """A retrieval that is refused before any data is read."""


class TimeError(RollupError):
    """A timestamp, zone or `within` pattern that names no instant."""


class ConfigError(RollupError):
    """A configuration file that cannot be used."""


class StoreError(RollupError):
    """The store refuses, is missing or damaged; the message says which part and what to do."""


class SystemFault(StoreError):
    """The operating system refuses a file now; that says nothing of what is in it, so nobody may take it for damage."""


class FencedError(StoreError):
    """Another job committed to this aggregation: this one must stop, and has written nothing that is visible."""


class NoCommitError(StoreError):
    """There is nothing to read yet: no job has committed to this aggregation."""


class LostCommitsError(StoreError):
    """There are tables with rows, and nothing says any more what of them is committed."""


class InUseError(StoreError):
    """Another process that runs has what is asked for, so it must not be taken or changed."""


class StoppedError(RollupError):
    """The host was asked to stop, and a batch did not begin: it comes again at the next start."""


class SourceError(RollupError):
    """A source that cannot be read now, though nothing says that its content is at fault: the batch is tried again."""


def said_by_system(problem: BaseException) -> str | None:
    """What the operating system refused, in its words, when an error of Python's or of a library's tells of that; None for
    one that is about what a file holds, or that it is not there.

    >>> said_by_system(PermissionError(13, "Permission denied")), said_by_system(FileNotFoundError(2, "No such file"))
    ('Permission denied', None)
    >>> said_by_system(ValueError("Unable to open file /t/0.json: Too many open files (os error 24)"))
    'Too many open files'
    """
    number = _number(problem)
    said = getattr(problem, "strerror", None)  # that of an object store is no word of the system's
    return (said or os.strerror(number)) if number is not None else None


def _number(problem: BaseException) -> int | None:
    """The number of what the operating system refused, from whoever tells of it: Python, a library, a database."""
    origin = getattr(problem, "orig", None) or problem  # SQLAlchemy's has that of the driver in it
    said = str(origin).strip()
    number = errno.ENOMEM if isinstance(origin, MemoryError) else getattr(origin, "errno", None)
    number = number or _OF_DATABASES.get(getattr(origin, "pgcode", None) or said)
    if number is None:
        numbered = _OS_ERROR.search(said)
        ending = (each for each in _REFUSALS if said.endswith(f": {os.strerror(each)}"))
        number = int(numbered[1]) if numbered else next(ending, None)
    return number if number in _REFUSALS else None


def refused_by_system(what: str, problem: BaseException, hint: str | None = None) -> SystemFault | None:
    """The error that says what could not be done ("cannot read t") when the system is why; None when it is not.

    `hint` says what becomes of it. Where a disk is full, its cure comes first.

    >>> print(refused_by_system("cannot write t", OSError(28, "No space left on device"), "the next start does"))
    cannot write t: No space left on device (make room there, then start again: the next start does)
    """
    said = said_by_system(problem)
    if said is None:
        return None
    if _number(problem) in (errno.ENOSPC, errno.EDQUOT):
        hint = f"{_ROOM}: {hint or 'what is committed is whole'}"
    return SystemFault(f"{what}: {said}", hint=hint or _NO_DAMAGE)


def not_done(what: str, problem: BaseException, hint: str | None = None) -> StoreError:
    """The error that says what could not be done: a SystemFault when the system is why, else with what the library said.

    >>> print(not_done("cannot write t", OSError(2, "No such file or directory"), "the next start does"))
    cannot write t: No such file or directory (the next start does)
    """
    said = problem.strerror or problem if isinstance(problem, OSError) else problem
    return refused_by_system(what, problem, hint) or StoreError(f"{what}: {said}", hint=hint)


_ROOM = "make room there, then start again"
_NO_DAMAGE = "nothing says that it is damaged: again once the system allows it"
_OF_DATABASES: Mapping[str, int] = {
    **{"53100": errno.ENOSPC, "53200": errno.ENOMEM, "58030": errno.EIO},
    **{"database or disk is full": errno.ENOSPC, "disk I/O error": errno.EIO},
}
"""What PostgreSQL says by a code, and SQLite in words of its own."""
_OS_ERROR = re.compile(r"\(os error (\d+)\)")
_REFUSALS = frozenset(
    {
        *(errno.EPERM, errno.EACCES, errno.EROFS),
        *(errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN, errno.EBUSY),
        *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG),
        *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT),
    }
)


def said_by_duckdb(problem: Exception) -> str:
    """What DuckDB said, as one sentence: without the kind of error, advice on its own settings
    and names of columns that may be ours.

    >>> said_by_duckdb(ValueError("Conversion Error: Could not convert 'x' to INT32. Use TRY_CAST\\nLINE 1: …"))
    "Could not convert 'x' to INT32"
    """
    return _KIND.sub("", str(problem).split("\n")[0].split(". Use ")[0].split(" when casting from")[0])


_KIND = re.compile(r"^[A-Z][\w ]*Error: ")
