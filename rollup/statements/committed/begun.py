"""A batch of which only the first part is committed, see `Running.advancing`; a commit has it beside the marks of before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rollup.statements.component import Event, Key, Refused


@dataclass(frozen=True)
class Begun:
    """The place of the last event that is held, none at the start, and what was refused of those up to it."""

    upto: Key = ()
    refused: tuple[Refused, ...] = ()

    def rest(self, events: Sequence[Event]) -> Sequence[Event]:
        """The events of the batch behind that place.

        >>> [event.key for event in Begun((1, 0)).rest([Event((n, 0), 0, "S", ()) for n in range(4)])]
        [(2, 0), (3, 0)]
        """
        return [event for event in events if event.key > self.upto] if self.upto else events

    def packed(self) -> list[Any]:
        """Plain values, of which `unpacked` makes it again."""
        told = [
            [list(one.event.key), *one.event[1:3], list(one.event.values), one.reason, one.by] for one in self.refused
        ]
        return [list(self.upto), told]

    @classmethod
    def unpacked(cls, found: Sequence[Any]) -> Begun:
        """What was packed."""
        upto, told = found
        events = [(Event(tuple(key), at, stream, tuple(values)), *said) for key, at, stream, values, *said in told]
        return cls(tuple(upto), tuple(Refused(event, reason, by) for event, reason, by in events))
