"""Tables of a configuration that statements read: filled when a job starts, and changed by no statement."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import pyarrow as pa

from rollup.core.errors import SourceError
from rollup.plan.app import StreamDef

MOST = 100_000
"""Rows that such a table may have: statements hold them as rows, and some conditions look through all of them."""


class Reader(Protocol):
    """Where the rows are; see `rollup.retrieval.tables.TableReader`."""

    def stream(self, name: str) -> StreamDef: ...
    def newest(self) -> int: ...
    def rows(self, shown: str, number: int) -> pa.Table: ...


@dataclass(frozen=True)
class Filled:
    """One such table. Its rows are read once, so all statements of a job see the same."""

    name: str
    reader: Reader | None = field(default=None, compare=False, repr=False)

    @cached_property
    def stream(self) -> StreamDef:
        """Its columns. Raises ConfigError where these cannot be known."""
        assert self.reader is not None
        return self.reader.stream(self.name)

    @cached_property
    def rows(self) -> list[tuple[Any, ...]]:
        """Its rows, as they are at the first call. Raises SourceError for those that cannot be read, or are too many."""
        assert self.reader is not None, "tasks have the columns alone: statements with a table run in the driver"
        found = self.reader.rows(self.name, self.reader.newest())
        if found.num_rows > MOST:
            raise SourceError(
                f"[tables.{self.name}] has {found.num_rows} rows, and statements join a table of {MOST} at most",
                hint="join it in a question, where it may have 10,000,000",
            )
        columns = (found[name].to_pylist() for name in self.stream.attributes)
        return list(zip(*columns, strict=True))

    def __getstate__(self) -> dict[str, Any]:
        return {"name": self.name, "reader": None, "stream": self.stream}


def names_of(tables: Collection[Filled]) -> frozenset[str]:
    """What they are called."""
    return frozenset(table.name for table in tables)
