"""Whether the content of a file is proven to be damaged: only then may it be left out.

That a library fails on a file proves nothing: memory, a share that is away, a permission or too many open files give
the same kinds of errors. So the bytes are read first, where every error is the system's, and then looked through by a
library that is not the one which failed.
"""

from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rollup.core.errors import SourceError

_CHUNK = 8 << 20
PASSING = (OSError, MemoryError, RuntimeError, pa.ArrowException)
"""Beside DuckDB's own, what reading a file may raise without its content being at fault."""


def proven(path: str, kind: str) -> str | None:
    """Why the content of a file cannot be read; None when nothing is wrong with it. Raises OSError, MemoryError."""
    with open(path, "rb") as file:
        while file.read(_CHUNK):
            pass
    try:
        (_parquet if kind in ("parquet", "delta") else _packed)(path)
    except pa.ArrowNotImplementedError:
        return None
    except pa.ArrowInvalid as problem:
        return _first_line(problem)
    except OSError as problem:
        if problem.errno is not None:
            raise
        return _first_line(problem)
    return None


def damaged(path: str, kind: str, problem: BaseException, name: str | None = None) -> str:
    """The reason of the dead letter of a file on which reading failed. Raises SourceError unless damage is proven.

    `name` is that of the object whose copy the file is.
    """
    try:
        found = proven(path, kind)
    except (OSError, MemoryError) as fault:
        raise unreadable(name or path, fault) from None
    if found is None:
        raise unreadable(name or path, problem) from None
    return f"the file cannot be read: {found}"


def unreadable(path: str, problem: BaseException) -> SourceError:
    """The error that fails a batch: a file that is not damaged and cannot be read now."""
    said = problem.strerror if isinstance(problem, OSError) and problem.strerror else _first_line(problem)
    return SourceError(
        f"cannot read {path}: {said}", hint="nothing of it is counted; the job goes on when it can be read"
    )


class Unchanged:
    """Raises SourceError when a file is not the same after it was read: it is still being written.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as file, Unchanged(file.name):
    ...     pass
    """

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        self._before = self._look()

    def __exit__(self, kind: object, problem: object, trace: object) -> None:
        if kind is None and self._look() != self._before:
            raise SourceError(
                f"{self._path} was written while it was read", hint="write a file aside and rename it when it is whole"
            )

    def _look(self) -> tuple[int, int, int]:
        try:
            found = os.stat(self._path)
        except OSError as problem:
            raise unreadable(self._path, problem) from None
        return found.st_ino, found.st_size, found.st_mtime_ns


def _parquet(path: str) -> None:
    with Path(path).open("rb") as opened:
        file = pq.ParquetFile(opened)
        for group in range(file.num_row_groups):
            file.read_row_group(group, use_threads=False).validate(full=True)


def _packed(path: str) -> None:
    with pa.input_stream(path, compression="detect") as file:
        while file.read(_CHUNK):
            pass


def _first_line(problem: BaseException) -> str:
    return next(iter(str(problem).strip().splitlines()), type(problem).__name__)
