"""Steps of time that no event brought, kept with how many events had come before: a commit has them (`Passed`), so that
statements meet them at the same place when a stream comes again from its start."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from rollup.statements.component import ELSEWHERE, Event

_LIVE = 60_000
"""Events that come no longer than this after their time are of a live stream, whose clock is that of the machine."""
_KEPT = 10_000
"""So many steps of time are kept."""
_BEHIND = 1 << 62
"""The place of a step among what an event causes."""


@dataclass(frozen=True)
class Step:
    """A step of time to `at`, after so many events of each stream; `told` says that rows came of it."""

    seen: Mapping[str, int]
    at: int
    told: bool = False

    def reached(self, seen: Mapping[str, int]) -> bool:
        """Whether the events that came before it have come."""
        return all(seen.get(name, 0) >= count for name, count in self.seen.items())

    @property
    def event(self) -> Event:
        """What statements are told."""
        return Event((0, 0), self.at, ELSEWHERE, ())


@dataclass(frozen=True)
class Passed:
    """The events of each stream that statements have had, the steps of time between them, and whether they are live."""

    seen: Mapping[str, int] = field(default_factory=dict[str, int])
    steps: tuple[Step, ...] = ()
    live: bool = False

    def after(self, events: Sequence[Event], now: int) -> tuple[Passed, list[Event]]:
        """After a batch; and its events, with those steps between them that came there when the stream came first.

        Events that are older than a step before them count at its time, in every language: they took a while to come.
        """
        if not events:
            return self, []
        live = abs(now - max(event.at for event in events)) <= _LIVE
        seen, found = Counter(self.seen), list[Event]()
        waiting = [step for step in self.steps if not step.reached(seen)]
        clock = max((step.at for step in self.steps if step.reached(seen)), default=-_BEHIND)
        for event in events:
            found.append(event if event.at >= clock else event._replace(at=clock))
            seen[event.stream] += 1
            while waiting and waiting[0].reached(seen):
                step = waiting.pop(0)
                clock = max(clock, step.at)
                found.append(step.event._replace(key=(*event.key, _BEHIND)))
        return replace(self, seen=dict(seen), live=live), found

    def stepped(self, at: int, told: bool) -> Passed:
        """After a step of time; one that nothing came of, and behind which no event did, is forgotten for the next."""
        last = self.steps[-1:]
        kept = self.steps[:-1] if last and not last[0].told and last[0].seen == self.seen else self.steps
        return replace(self, steps=(*kept, Step(dict(self.seen), at, told))[-_KEPT:])

    def packed(self) -> list[Any]:
        """Plain values, of which `unpacked` makes it again."""
        return [dict(self.seen), [[dict(step.seen), step.at, step.told] for step in self.steps], self.live]

    @classmethod
    def unpacked(cls, found: Sequence[Any]) -> Passed:
        """What was packed."""
        return cls(found[0], tuple(Step(*step) for step in found[1]), found[2])
