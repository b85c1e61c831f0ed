"""Sequences: patterns whose events follow one another with nothing between, over the streams that they read.

An event either extends a try or ends it; it goes to the step after, when the present one has enough and the next takes
it, else to the present one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from rollup.engine.compiling import predicate
from rollup.engine.row import Row
from rollup.engine.rows.patterns.algebra import FilterNode
from rollup.engine.rows.patterns.state import Match, bind
from rollup.engine.rows.windows.base import Host


@dataclass(frozen=True)
class Step:
    """`low` to `high` events of one of the filters; `many`: the tag is bound to a list."""

    filters: tuple[FilterNode, ...]
    low: int = 1
    high: int | None = 1
    many: bool = False


@dataclass(frozen=True)
class Sequence:
    """Steps in a row. `every`: every event may open a try, unless one still waits for more events of the first step;
    else only the very first event may. `span`: first event to last."""

    steps: tuple[Step, ...]
    tags: int
    every: bool
    span: int | None = None


class Try(NamedTuple):
    """The step that a try stands at, how many events that step has taken, its match, when its first event came, and the
    steps that it waits for."""

    at: int
    many: int
    match: Match
    since: int
    waits: list[int]


class Sequencer:
    """The tries of a sequence. Each step has room for one try that waits for it, the oldest; a younger one that finds
    no room at any step that it may go on with is given up."""

    def __init__(self, spec: Sequence, host: Host) -> None:
        self._spec, self._host = spec, host
        self._streams = {node.stream for step in spec.steps for node in step.filters}
        self._tests: dict[int, Callable[[Any, Any, Any], bool]] = {
            id(node): predicate(node.test) for step in spec.steps for node in step.filters
        }
        self._tries: list[Try] = []
        self._open = True

    def event(self, stream: str, row: Row, time: int) -> list[Match]:
        """The matches that an event completes."""
        if stream not in self._streams:
            return []
        tries, self._tries, found = [each for each in self._tries if self._young(each, time)], [], list[Match]()
        if self._open and not any(0 in each.waits for each in tries):
            self._open = self._spec.every
            tries.append(self._fresh(time, self._free(0, 0, tries)))
        for place in reversed(range(len(self._spec.steps))):
            for each in [each for each in tries if place in each.waits]:
                taken = self._taken(place, each.match, (stream, row))
                if taken is not None:
                    tries.remove(each)
                    self._went(place, each.many + 1 if place == each.at else 1, taken, each.since, found)
                    if place and each.at == 0 and self._spec.every and not self._spec.steps[0].low:
                        tries.append(self._fresh(time, [0]))  # a first step that may be passed over can have it as well
        return found

    def _fresh(self, time: int, waits: list[int]) -> Try:
        return Try(0, 0, (None,) * self._spec.tags, time, waits)

    def _young(self, each: Try, time: int) -> bool:
        return self._spec.span is None or time - each.since <= self._spec.span

    def _free(self, at: int, count: int, tries: list[Try]) -> list[int]:
        """Of the steps that the next event of a try may belong to, those for which no other try waits."""
        return [place for place in self._reachable(at, count) if not any(place in each.waits for each in tries)]

    def _reachable(self, at: int, count: int) -> list[int]:
        """The steps that the next event may belong to: this one while it is not full, and those behind it that may come."""
        step, places = self._spec.steps[at], list[int]()
        if step.high is None or count < step.high:
            places.append(at)
        enough = count >= step.low
        while enough and at + 1 < len(self._spec.steps):
            at += 1
            places.append(at)
            enough = self._spec.steps[at].low == 0
        return places

    def _taken(self, place: int, match: Match, event: tuple[str, Row]) -> Match | None:
        stream, row = event
        for node in self._spec.steps[place].filters:
            if node.stream == stream and self._tests[id(node)]((*match, row), (0,), self._host.environment):
                if node.tag is None:
                    return match
                known = match[node.tag]
                step = self._spec.steps[place]
                return bind(match, node.tag, [*(known or ()), row] if step.many else row)
        return None

    def _went(self, at: int, count: int, match: Match, since: int, found: list[Match]) -> None:
        step = self._spec.steps[at]
        rest = self._spec.steps[at + 1 :]
        if count >= step.low and not any(each.low for each in rest):
            found.append(match)
        elif waits := self._free(at, count, self._tries):
            self._tries.append(Try(at, count, match, since, waits))

    def snapshot(self) -> Any:
        """The tries."""
        return [[list(each) for each in self._tries], self._open]

    def restore(self, state: Any) -> None:
        """Go on."""
        self._tries, self._open = [Try(*each) for each in state[0]], state[1]
