"""Sequences: patterns whose events follow one another with nothing between, over the streams that they read.

An event either extends a partial match or ends it. It goes to the next step, when the present step has enough and the
next takes it, else to the present step. There are two exceptions. A match that has one side of an `and` waits for the
other, whatever comes between. A step that is a silence is over when its time has passed without any event that a step may
take or that must not come.
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
    """`low` to `high` events of one of the filters; `many`: the tag is bound to a list.

    `together`: one event of each filter, in any order. `never`: an event that one of these takes does not belong here.
    `silence`: so many ms without an event that `never` takes; with filters, both are wanted (`together`) or one of them.
    """

    filters: tuple[FilterNode, ...]
    low: int = 1
    high: int | None = 1
    many: bool = False
    together: bool = False
    never: tuple[FilterNode, ...] = ()
    silence: int | None = None

    @property
    def nodes(self) -> tuple[FilterNode, ...]:
        """All filters that it has."""
        return (*self.filters, *self.never)


@dataclass(frozen=True)
class Sequence:
    """Steps in a row. `every`: every event may open a try, unless one still waits for more events of the first step;
    else only the very first event may. `span`: first event to last."""

    steps: tuple[Step, ...]
    tags: int
    every: bool
    span: int | None = None


class Try(NamedTuple):
    """The step that a try stands at, how many events that step has taken, its match, when its first event came, the
    steps that it waits for, and the end of the silence that it waits for."""

    at: int
    many: int
    match: Match
    since: int
    waits: list[int]
    due: int | None = None


class Sequencer:
    """The tries of a sequence. Each step has room for one try that waits for it, the oldest; a younger one that finds
    no room at any step that it may go on with is given up."""

    def __init__(self, spec: Sequence, host: Host) -> None:
        self._spec, self._host = spec, host
        self._streams = {node.stream for step in spec.steps for node in step.nodes}
        self._taking = {node.stream for step in spec.steps for node in step.filters}
        self._tests: dict[int, Callable[[Any, Any, Any], bool]] = {
            id(node): predicate(node.test) for step in spec.steps for node in step.nodes
        }
        self._tries: list[Try] = []
        self._open = True
        self._begin_silence(host.environment.now)

    @property
    def due(self) -> int | None:
        """The next end of a silence."""
        return min((each.due for each in self._tries if each.due is not None), default=None)

    def event(self, stream: str, row: Row, time: int) -> list[Match]:
        """The matches that an event completes."""
        if stream not in self._streams:
            return []
        tries, self._tries, found = [each for each in self._tries if self._young(each, time)], [], list[Match]()
        if self._open and self._spec.steps[0].silence is None and not any(0 in each.waits for each in tries):
            self._open = self._spec.every
            tries.append(self._fresh(time, self._free(0, 0, tries)))
        for place in reversed(range(len(self._spec.steps))):
            for each in [each for each in tries if place in each.waits]:
                taken = self._taken(place, each, (stream, row))
                if taken is not None and self._keeps_silence(each):
                    tries[tries.index(each)] = each._replace(many=1, match=taken[0], waits=[])
                elif taken is not None:
                    tries.remove(each)
                    self._went(place, (taken[0], taken[1] + self._silent(place)), each.since, time, found)
                    if place and each.at == 0 and self._spec.every and not self._spec.steps[0].low:
                        tries.append(self._fresh(time, [0]))  # a first step that may be passed over can have it as well
        self._tries = [each for each in tries if self._kept(each, (stream, row))] + self._tries  # the oldest first
        self._begin_silence(time)
        return found

    def fire(self, now: int) -> list[Match]:
        """The matches that silences complete whose time has passed."""
        over = [each for each in self._tries if each.due is not None and each.due <= now]
        self._tries, found = [each for each in self._tries if each not in over], list[Match]()
        for each in over:
            if not self._young(each, each.due or now):
                continue
            if self._silent(each.at) and not each.many:
                self._tries.append(each._replace(due=None))  # the event may come now
                continue
            self._open = self._open and (self._spec.every or each.at > 0)
            self._went(each.at, (each.match, each.many + 1), each.since, now, found)
            self._begin_silence(each.due or now)
        return found

    def _begin_silence(self, time: int) -> None:
        """A sequence that begins with a silence waits for it from the beginning, or from the last event, on."""
        silence = self._spec.steps[0].silence
        if silence is None or not self._open or any(each.at == 0 for each in self._tries):
            return
        self._tries.append(self._fresh(time, self._waits(0))._replace(due=time + silence))

    def _half(self, each: Try) -> bool:
        """Whether a try has one side of an `and`: an event, or the silence."""
        step = self._spec.steps[each.at]
        return step.together and (each.many == 1 or (self._silent(each.at) and each.many == 0 and each.due is None))

    def _silent(self, at: int) -> bool:
        """Whether a silence is one side of the `and` of a step."""
        step = self._spec.steps[at]
        return step.together and step.silence is not None

    def _keeps_silence(self, each: Try) -> bool:
        """Whether a try that an event fits has yet to wait for the end of a silence."""
        return self._spec.steps[each.at].together and each.due is not None

    def _kept(self, each: Try, event: tuple[str, Row]) -> bool:
        """Whether a try goes on that an event adds nothing to.

        A silence goes on when the event is of a stream that no step takes, and not of those that must not be.
        """
        step = self._spec.steps[each.at]
        broken = each.due is not None and any(self._fits(node, each.match, event) for node in step.never)
        goes_on = each.due is not None and event[0] not in self._taking
        waits = self._half(each) and not self._missed(step, each.match, event)
        return not broken and (goes_on or waits)

    @staticmethod
    def _missed(step: Step, match: Match, event: tuple[str, Row]) -> bool:
        """Whether a side of an `and` that is not there yet is of an event's stream, and so had to be that event."""
        return any(
            node.stream == event[0] and node.tag is not None and match[node.tag] is None for node in step.filters
        )

    def _waits(self, at: int) -> list[int]:
        """The steps that an event may belong to while a silence is kept."""
        return [at] if self._spec.steps[at].filters else []

    def _fresh(self, time: int, waits: list[int]) -> Try:
        return Try(0, 0, (None,) * self._spec.tags, time, waits)

    def _young(self, each: Try, time: int) -> bool:
        return self._spec.span is None or time - each.since <= self._spec.span

    def _free(self, at: int, count: int, tries: list[Try]) -> list[int]:
        """Of the steps that the next event of a try may belong to, those for which no other try waits."""
        waiting = {place for each in tries if not self._half(each) for place in each.waits}
        return [place for place in self._reachable(at, count) if place not in waiting]

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

    def _taken(self, place: int, each: Try, event: tuple[str, Row]) -> tuple[Match, int] | None:
        """The match with an event in it, and how many events the step has then; None: it does not belong there."""
        step, match, count = self._spec.steps[place], each.match, each.many if place == each.at else 0
        if any(self._fits(node, match, event) for node in step.never):
            return None
        before = count
        for node in step.filters:
            new = not step.together or node.tag is None or match[node.tag] is None
            if new and self._fits(node, match, event):
                match, count = self._bound(match, node, step, event[1]), count + 1
                if not step.together:
                    break
        if count == before or (step.together and self._missed(step, match, event)):
            return None
        return match, count

    def _fits(self, node: FilterNode, match: Match, event: tuple[str, Row]) -> bool:
        stream, row = event
        return node.stream == stream and self._tests[id(node)]((*match, row), (0,), self._host.environment)

    @staticmethod
    def _bound(match: Match, node: FilterNode, step: Step, row: Row) -> Match:
        if node.tag is None:
            return match
        return bind(match, node.tag, [*(match[node.tag] or ()), row] if step.many else row)

    def _went(self, at: int, taken: tuple[Match, int], since: int, time: int, found: list[Match]) -> None:
        """A try has taken an event of that time, or a silence: it is a match, or goes on."""
        step, (match, count) = self._spec.steps[at], taken
        rest = self._spec.steps[at + 1 :]
        if count >= step.low and not any(each.low for each in rest):
            found.append(match)
            self._open = self._spec.every
        elif rest and count >= step.low and rest[0].silence is not None:
            self._tries.append(Try(at + 1, 0, match, since, self._waits(at + 1), time + rest[0].silence))
        elif (waits := self._free(at, count, self._tries)) or (step.together and count == 1):
            self._tries.append(Try(at, count, match, since, waits or [at]))

    def snapshot(self) -> Any:
        """The tries."""
        return [[list(each) for each in self._tries], self._open]

    def restore(self, state: Any) -> None:
        """Go on."""
        self._tries, self._open = [Try(*each) for each in state[0]], state[1]
