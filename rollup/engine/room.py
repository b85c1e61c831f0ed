"""How much text the events of one step make: it is all held at once, so a batch that makes too much is taken in parts.

A text has a bound of its own, see `rollup.engine.sizes`. A thousand texts that are just below it fill the memory too.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

import duckdb
import pyarrow as pa
from duckdb.func import ARROW, SPECIAL

from rollup.core.untyped import pc

LONG, MOST_AT_ONCE = 1 << 14, 1 << 28
"""Characters from which on a text is counted, and of all such texts that the events of one step make."""
BEYOND = "beyond_room"
"""A function of DuckDB's: it counts a text of so many characters, and is false where there is room for it."""


class NoRoom(Exception):
    """The events of a step make more text than is held at once. It says nothing of any one of them."""


class _Room:
    """The characters that may still be made."""

    def __init__(self) -> None:
        self.left = MOST_AT_ONCE


_ROOM: ContextVar[_Room | None] = ContextVar("room", default=None)


@contextmanager
def room() -> Generator[None]:
    """In it long texts are counted. Raises NoRoom where they are too many.

    >>> with room():
    ...     for _ in range(3):
    ...         counts(100_000_000)
    Traceback (most recent call last):
    ...
    rollup.engine.room.NoRoom
    """
    outside = _ROOM.set(_Room())
    try:
        yield
    finally:
        _ROOM.reset(outside)


def counts(characters: int) -> None:
    """So many characters of texts are made. Raises NoRoom."""
    within = _ROOM.get()
    if within is not None and characters >= LONG:
        within.left -= characters
        if within.left < 0:
            raise NoRoom


class Counter:
    """The function `BEYOND` of a database. DuckDB calls it in threads of its own; it knows no connection, which keeps it alive."""

    def __init__(self, connection: duckdb.DuckDBPyConnection) -> None:
        self._room: _Room | None = None
        connection.create_function(
            BEYOND, self._count, ["HUGEINT"], "BOOLEAN", type=ARROW, null_handling=SPECIAL, side_effects=True
        )

    @contextmanager
    def counting(self) -> Generator[None]:
        """In it a query is asked. Raises NoRoom where its texts are too many."""
        self._room = within = _ROOM.get()
        try:
            yield
        except duckdb.Error:
            if within is not None and within.left < 0:
                raise NoRoom from None
            raise
        finally:
            self._room = None

    def _count(self, sizes: pa.ChunkedArray) -> pa.Array:
        if self._room is not None:
            self._room.left -= pc.sum(sizes).as_py() or 0
            if self._room.left < 0:
                raise NoRoom
        return pa.array([False] * len(sizes), pa.bool_())
