"""The first events of a component's streams. A statement goes on over columns by taking those that it has heard once more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rollup.engine.row import Row

MOST = 4096
"""So many events of a stream are kept; behind them its statements stay where they are."""
Heard = tuple[str, Row, int]
"""The stream of an event, its row and its instant."""


class Journal:
    """What was heard since the component began, in order, and where in it each statement began."""

    def __init__(self) -> None:
        self._streams: dict[str, list[tuple[int, Row, int]] | None] = {}
        self._begun: dict[str, tuple[int, int]] = {}
        self._contexts: dict[str, tuple[int, int]] = {}
        self._count = 0
        self.assigned = False
        """Whether a variable was set meanwhile."""

    def begin(self, statement: str, context: str | None, now: int) -> None:
        """A statement begins. Of a context's statements only those are known that begin together with the first."""
        here = self._count, now
        if context is None or self._contexts.setdefault(context, here) == here:
            self._begun[statement] = here
        else:
            self._begun.pop(statement, None)

    def note(self, stream: str, row: Row, now: int) -> bool:
        """Keep an event; whether that of any stream is kept."""
        kept = self._streams.setdefault(stream, [])
        if kept is None:
            return True
        if len(kept) < MOST:
            self._count += 1
            kept.append((self._count, row, now))
            return True
        self._streams[stream] = None
        return any(each is not None for each in self._streams.values())

    @property
    def full(self) -> int:
        """How many streams have had more events than are kept."""
        return sum(each is None for each in self._streams.values())

    def fills(self, stream: str, events: int) -> bool:
        """Whether so many events more are too many to be kept."""
        return len(self._streams.get(stream) or ()) + events > MOST

    def knows(self, statement: str, reads: Iterable[str]) -> bool:
        """Whether all that a statement has heard is kept."""
        return statement in self._begun and all(self._streams.get(stream, ()) is not None for stream in reads)

    def heard(self, statement: str, reads: Iterable[str]) -> tuple[int, list[Heard]]:
        """When a statement began, and what it has heard since."""
        place, begun = self._begun[statement]
        found = [
            (n, stream, row, at) for stream in reads for n, row, at in self._streams.get(stream) or () if n > place
        ]
        return begun, [(stream, row, at) for _, stream, row, at in sorted(found, key=lambda each: each[0])]

    def snapshot(self) -> Any:
        """All of it."""
        return [self._count, self.assigned, self._streams, self._begun, self._contexts]

    def restore(self, state: Any) -> None:
        """Go on from a snapshot."""
        self._count, self.assigned, self._streams, self._begun, self._contexts = state
