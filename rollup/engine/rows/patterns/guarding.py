"""States that time or a condition ends: absence, guards, alarms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rollup.engine.expressions import Const, Expr
from rollup.engine.rows.patterns.algebra import (
    AbsentNode,
    IntervalNode,
    ScheduleNode,
    SilenceNode,
    WhileNode,
    WithinNode,
)
from rollup.engine.rows.patterns.combining import OrState
from rollup.engine.rows.patterns.state import Match, One, Parent, State

if TYPE_CHECKING:
    from rollup.engine.rows.patterns.matcher import Matcher


class AbsentState(One):
    """Until when there must be no event. One that an alarm begins counts from that alarm's instant, so a clock that jumps
    passes over none; one that an event begins from the time of that event, which may be late."""

    node: AbsentNode
    at = -(2**63)

    def start(self, begin: Match) -> None:
        self.begin = begin
        since = self.matcher.came if self.node.late else self.matcher.instant
        self.at = max(self.at, since + self.node.span)  # an event that is late does not end the silence earlier
        self.matcher.alarm(self, self.at)
        self.begin_child(begin)

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead:
            return
        self.child = None
        if self.node.again:
            self.start(self.begin)
        else:
            self.fail()

    def false(self, child: State) -> None:
        self.child = None

    def due(self) -> None:
        """The time has passed, unless this is the alarm of a time that an event has started anew since."""
        if self.matcher.instant >= self.at:
            self.quit()
            self.parent.true(self.begin, self, True)

    def own(self) -> Any:
        return self.at

    def restore(self, own: Any, children: Sequence[State]) -> None:
        super().restore(own, children)
        self.at = own
        self.matcher.alarm(self, self.at)


class SilenceState(State):
    """Waits for the next edge of its node's raster; beside `or` for one that is not sooner than `span` after the event with
    which it began again."""

    node: SilenceNode
    since: int | None = None

    def start(self, begin: Match) -> None:
        self.begin = begin
        self.since = self.matcher.event_time if isinstance(self.parent, OrState) else None
        self.matcher.raster(self.node).wait(self)

    def rung(self) -> None:
        """The raster has an edge."""
        if self.since is None or self.matcher.instant >= self.since + self.node.span:
            self.quit()
            self.parent.true(self.begin, self, True)

    def own(self) -> Any:
        return self.since

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.since = own
        self.matcher.raster(self.node).waiting = self


class Raster(One):
    """The edges of a silence, of which one state at a time waits for the next. An event that must not come puts off the
    edge after it, unless there is a match before that edge."""

    node: SilenceNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.waiting: SilenceState | None = None
        self.last: int | None = None
        self.at = 0

    def start(self, begin: Match) -> None:
        self.begin = begin
        self._ask(self.matcher.came + self.node.span)
        self.begin_child(begin)

    def _ask(self, at: int) -> None:
        self.at = at
        self.matcher.alarm(self, at)

    def wait(self, state: SilenceState) -> None:
        """A state waits from now on."""
        self.waiting = state
        if state.since is None:
            self.last = None

    def true(self, match: Match, child: State, quit: bool) -> None:
        self.last = self.matcher.came
        self.begin_child(self.begin)

    def due(self) -> None:
        """The next edge counts from the clock, which may have jumped over this one."""
        if self.matcher.root is None:
            self.quit()
        elif self.last is not None and self.matcher.instant < self.last + self.node.span:
            self._ask(self.last + self.node.span)
        else:
            self.last = None
            self._ask(self.matcher.now + self.node.span)
            if self.waiting is not None and not self.waiting.dead:
                self.waiting.rung()

    def own(self) -> Any:
        return [self.at, self.last]

    def restore(self, own: Any, children: Sequence[State]) -> None:
        super().restore(own, children)
        self.last = own[1]
        self._ask(own[0])


class WithinState(One):
    """Its child, until the time is over or there were enough matches."""

    node: WithinNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.end, self.count = 0, 0

    def start(self, begin: Match) -> None:
        self.begin = begin
        span = self.node.span
        self.end = self.matcher.now + (span if isinstance(span, int) else self._span(span))
        self.matcher.alarm(self, self.end)
        self.begin_child(begin)

    def _span(self, span: Expr) -> int:
        return self.matcher.values(self.node, (span,), self.begin)[0] or 0

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead or child is not self.child:
            return
        self.count += 1
        if quit:
            self.child = None
            self.quit()
        self.parent.true(match, self, quit)
        if self.node.most is not None and self.count >= self.node.most:
            self.fail()

    def false(self, child: State) -> None:
        self.child = None
        self.fail()

    def due(self) -> None:
        """The time is over."""
        self.fail()

    def own(self) -> Any:
        return [self.end, self.count]

    def restore(self, own: Any, children: Sequence[State]) -> None:
        super().restore(own, children)
        self.end, self.count = own
        self.matcher.alarm(self, self.end)


class WhileState(One):
    """Its child, until a match of which the condition is not true."""

    node: WhileNode

    def start(self, begin: Match) -> None:
        self.begin = begin
        self.begin_child(begin)

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead or child is not self.child:
            return
        if quit:
            self.child = None
        holds = self.matcher.values(self.node, (self.node.condition,), match)[0]
        if holds is None:  # nothing is known: neither a match nor the end
            return
        if not holds:
            self.fail()
            return
        if quit:
            self.quit()
        self.parent.true(match, self, quit)

    def false(self, child: State) -> None:
        self.child = None
        self.fail()


class AlarmState(State):
    """True at an instant."""

    node: IntervalNode | ScheduleNode
    at = 0

    def start(self, begin: Match) -> None:
        self.begin, now = begin, self.matcher.now
        if isinstance(self.node, IntervalNode):
            span = self.node.span
            given = span.value if isinstance(span, Const) else self.matcher.values(self.node, (span,), begin)[0]
            self.at = now + (given or 0)
        else:
            self.at = self.node.schedule.after(now)
        if self.at <= now:
            self.due()
        else:
            self.matcher.alarm(self, self.at)

    def due(self) -> None:
        """The instant has come."""
        self.quit()
        self.parent.true(self.begin, self, True)

    def own(self) -> Any:
        return self.at

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.at = own
        self.matcher.alarm(self, self.at)
