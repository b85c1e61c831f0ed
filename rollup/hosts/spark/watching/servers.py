"""Servers that sources read from and that have gone away: Spark tries for minutes, says nothing, and then names no address."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Protocol

from rollup.core.errors import SourceError
from rollup.sources.base import Remote

_ASKING = "Getting offsets"
"""What Spark says of a query that asks its server for what is new."""
_EVERY = 5.0
"""Seconds between two looks."""


class Query(Protocol):
    """What is looked at of a streaming query."""

    @property
    def name(self) -> Any:
        """The stream."""
        ...

    @property
    def status(self) -> Mapping[str, Any]:
        """What Spark says that it is doing."""
        ...


class Servers:
    """The servers of the sources of streams, as `remote` has them by their streams."""

    def __init__(self, remote: Mapping[str, Remote]) -> None:
        self._remote = remote
        self._away = set[str]()
        self._next = 0.0

    def look(self, queries: Iterable[Query]) -> Iterator[str]:
        """A warning for each server that is away while its query asks it; once, until it is there again."""
        if not self._remote or time.monotonic() < self._next:
            return
        for query in queries:
            stream = str(query.name)
            asks = stream in self._remote and str(query.status["message"]).startswith(_ASKING)
            away = self.lost(stream) if asks else None
            if away is None:
                self._away.discard(stream)
            elif stream not in self._away:
                self._away.add(stream)
                yield f"warning: {away.message}; the job waits for it"
        self._next = time.monotonic() + _EVERY

    def lost(self, stream: str) -> SourceError | None:
        """Why the server of a stream cannot be reached; None when it can, or the stream has none."""
        try:
            if stream in self._remote:
                self._remote[stream].reach(0)
        except SourceError as problem:
            return problem
        return None
