"""What begins or ends a partition: an event, a match of a pattern, a span of time, a calendar; and the watch for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rollup.engine.compiling import compiled
from rollup.engine.expressions import Expr
from rollup.engine.row import Row
from rollup.engine.rows.inputs import Listening, entry_of
from rollup.engine.rows.patterns.algebra import Pattern
from rollup.engine.rows.patterns.matcher import Matcher
from rollup.engine.rows.plans import Filter, Narrow
from rollup.engine.rows.runner import Environment, Runner
from rollup.engine.timers import Order, Phase


class Schedule(Protocol):
    """Instants by a calendar."""

    def after(self, instant: int) -> int | None:
        """The first instant strictly after that one."""
        ...


@dataclass(frozen=True)
class NowCondition:
    """At once."""


@dataclass(frozen=True)
class EventCondition:
    """An event; `tag` is the property under which it stands."""

    filter: Filter
    tag: str | None = None


@dataclass(frozen=True)
class PatternCondition:
    """A match of a pattern; its events stand under their tags, or within a row that has the name of the whole match.

    `inclusive`: the partition that it begins sees them.
    """

    pattern: Pattern
    tags: tuple[str, ...]
    name: str | None = None
    inclusive: bool = False


@dataclass(frozen=True)
class AfterCondition:
    """A span of time."""

    span: Expr


@dataclass(frozen=True)
class ScheduleCondition:
    """The next instant of a calendar."""

    schedules: tuple[Schedule, ...]

    def after(self, now: int) -> int | None:
        """The first instant after that one."""
        return min((at for each in self.schedules if (at := each.after(now)) is not None), default=None)


Condition = NowCondition | EventCondition | PatternCondition | AfterCondition | ScheduleCondition


class Watch:
    """Waits for a condition; `found` gets what it brings: rows by tag.

    `phase`: when a pattern's own alarms are heard at one instant. That of an end waits for the outputs of what it ends.
    """

    def __init__(
        self,
        condition: Condition,
        runner: Runner,
        order: Order,
        environment: Environment,
        narrow: Narrow,
        found: Callable[[dict[str, Any]], None],
        phase: Phase = Phase.WINDOW,
    ) -> None:
        self._condition, self._runner, self.order = condition, runner, order
        self._environment, self._narrow, self._found, self._phase = environment, narrow, found, phase
        self._listening = Listening(runner)
        self._matcher: Matcher | None = None
        self._due: int | None = None
        self._alive = False
        self._from, self._heard = -(2**63), runner.current
        """When what no new event brings may be found, and the event at hand when the wait began."""

    def starts(self, least: int = 0) -> int | None:
        """Begin to wait; what no new event brings is found `least` ms later. The instant that the clock brings, if known."""
        self._alive = True
        condition, now = self._condition, self._runner.now
        self._from, self._heard = now + least, self._runner.current
        match condition:
            case AfterCondition():
                self._ask(now + (compiled(condition.span)((), (), self._environment) or 0))
            case ScheduleCondition():
                self._ask(condition.after(now))
            case _:
                self._listen()
                if self._matcher is not None:
                    self._matcher.start()
        return self._due

    def stop(self) -> None:
        """Wait no longer."""
        self._alive = False
        self._listening.stop()
        if self._matcher is not None:
            self._matcher.stop()
            self._matcher = None
        self._runner.timers.forget(self)

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """The event."""
        if self._alive and isinstance(self._condition, EventCondition):
            tag = self._condition.tag
            self._found({tag: row} if tag else {})

    def fire(self, phase: Phase, now: int) -> None:
        """The clock. A calendar goes on, and so does a span of time."""
        if not self._alive:
            return
        match self._condition:
            case ScheduleCondition():
                self._ask(self._condition.after(now))
            case AfterCondition():
                span = compiled(self._condition.span)((), (), self._environment)
                self._ask(now + span if (span or 0) > 0 else None)
            case _:
                pass
        self._found({})

    def snapshot(self) -> Any:
        """The instant, and the pattern's state."""
        return [self._alive, self._due, self._matcher.snapshot() if self._matcher is not None else None]

    def restore(self, state: Any) -> None:
        """Go on."""
        self._alive, due, matcher = state
        if not self._alive:
            return
        self._listen()
        if self._matcher is not None:
            self._matcher.restore(matcher)
        if due is not None:
            self._ask(due)

    def _listen(self) -> None:
        condition = self._condition
        if isinstance(condition, EventCondition):
            entry = entry_of(condition.filter, self, 0, self._environment, self._narrow)
            self._listening.add(condition.filter.stream, entry)
        elif isinstance(condition, PatternCondition):
            self._matcher = Matcher(
                condition.pattern,
                self._runner,
                self.order,
                self._matched,
                self._narrow,
                self._environment,
                self._phase,
            )

    def _matched(self, matches: Sequence[Any]) -> None:
        assert isinstance(self._condition, PatternCondition)
        if self._runner.now < self._from and self._runner.current is self._heard:
            self._ask(self._from)
            return
        name = self._condition.name
        for match in matches:
            if self._alive:
                self._found({name: Row(0, match)} if name else dict(zip(self._condition.tags, match, strict=True)))

    def _ask(self, due: int | None) -> None:
        self._due = due = None if due is None else max(due, self._from)
        self._runner.timers.ask(self, Phase.CONTEXT, due)
