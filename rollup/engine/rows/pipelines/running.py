"""The pipelines of a component: which streams have one, and their events through it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import inf
from operator import itemgetter
from typing import Any

from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.engine.rows.pipelines.partitions import in_partitions
from rollup.engine.rows.pipelines.planning import Planned
from rollup.engine.rows.pipelines.routing import planned, planned_for_some
from rollup.engine.rows.pipelines.steps import Told
from rollup.engine.rows.pipelines.tapes import Tape, merged
from rollup.engine.rows.pipelines.wholly import Whole
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.stores.named import NamedWindow

_NEVER = 1 << 63
"""Behind every instant."""


class Pipelines:
    """Those of a component, each made when its stream is asked for."""

    def __init__(self, component: Component) -> None:
        self._component = component
        self._known: dict[str, tuple[tuple[int, int, int], Pipeline | None]] = {}
        self._tried: dict[str, int] = {}

    def of(self, stream: str) -> Pipeline | None:
        """The pipeline of a stream; None where its events have to be told one by one."""
        index = self._component.runner.indexes[stream]
        stamp = self._component.changed, index.number, len(index)
        known = self._known.get(stream)
        if known is None or not (known[0] == stamp if known[1] is None else known[1].holds):
            known = self._known[stream] = (stamp, self._made(stream))
        pipeline = known[1]
        return None if pipeline is not None and pipeline.behind else pipeline

    def begun(self, stream: str) -> Pipeline | None:
        """The pipeline of a stream, where the only one that hears it now is in a partition: such a one begins with an event."""
        index = self._component.runner.indexes[stream]
        if len(index) != 1:
            return None
        receiver = index.entries[0].receiver
        return self.of(stream) if isinstance(receiver, SelectInstance) and receiver.partition.context else None

    def _made(self, stream: str) -> Pipeline | None:
        plan = planned(self._component, stream) or self._of_some(stream)
        return None if plan is None else Pipeline(self._component, stream, plan)

    def _of_some(self, stream: str) -> Planned | None:
        """One for those events that it is for. As long as no statement begins or ends it is not tried again."""
        changed = self._component.changed
        if self._tried.get(stream) == changed:
            return None
        self._tried[stream] = changed
        return in_partitions(self._component, stream) or planned_for_some(self._component, stream)


class Pipeline:
    """Everything that the events of one stream cause: the statements that hear it, and the streams and named windows that they
    insert into with all who hear or follow those. Between `send_each` and `taken` what was delivered is on the tapes, unless a timer was due meanwhile.
    """

    def __init__(self, component: Component, stream: str, plan: Planned) -> None:
        self._component, self._runner, self._stream, self._plan = component, component.runner, stream, plan
        self._stamp = self._now()
        self.tapes = plan.tapes
        """One a statement, in the order in which they deliver for one event."""
        self._others: dict[str, Tape] = {}
        """What the clock has brought, by statement."""
        self.times = plan.times
        """The instants of what is on the tapes, by place."""
        self._windows = [each.store.window if isinstance(each, Told) else each for each in plan.timed]
        self._only = self._windows[0] if len(self._windows) == 1 else None
        """The one that lets rows out by the clock, where nobody else does: as nearly always."""

    def send_each(self, events: Iterable[tuple[Sequence[Any], int | None]]) -> bool:
        """Events one after the other, each at its instant (None: whenever that is); False: no pipeline any more after the
        event that was taken last."""
        self._watch(True)
        try:
            return self._send_each(events)
        finally:
            self._watch(False)

    def _send_each(self, events: Iterable[tuple[Sequence[Any], int | None]]) -> bool:
        runner, take, times, only = self._runner, self._plan.take, self.times, self._only
        clock, index, timers = runner.environment.clock, runner.indexes[self._stream], runner.timers
        filtered, clocked, until = self._plan.filtered, self._plan.clocked, self._quiet_until()
        for values, at in events:
            if at is not None:
                if not clock.now <= at < until and (at < clock.now or (until := self._let_out(at)) <= at):
                    if not self._advanced(at):
                        self.deliver()
                        runner.send(self._stream, values)
                        return False
                    until = self._quiet_until()
                if at > clock.now:
                    clock.now = at
            runner.rows = number = runner.rows + 1
            row = Row(number, tuple(values))
            if filtered and not index.matches(row):
                continue
            times.append(clock.now)
            if not take(len(times) - 1, row):
                times.pop()
                self.deliver()
                runner.route(self._stream, row)
                until = self._quiet_until()
            elif clocked and only is not None:
                due, until = only.due, timers.quiet_until
                until = until if due is None or until < due else due
            elif clocked:
                until = self._quiet_until()
        return True

    def _watch(self, watched: bool) -> None:
        """Look after the instants of the named windows, or no longer."""
        for each in self._plan.timed:
            each.watched(watched)

    def _quiet_until(self) -> float:
        """Before which instant nothing is due, as long as no event comes."""
        due, other = self._next_due(), self._runner.timers.quiet_until
        return due if due < other else other

    def _next_due(self) -> int:
        """When a named window lets rows out next."""
        found = _NEVER
        if self._only is not None:
            due = self._only.due
            return found if due is None else due
        for window in self._windows:
            due = window.due
            if due is not None and due < found:
                found = due
        return found

    def _let_out(self, at: int) -> float:
        """Named windows let out what is due up to an instant, as long as nothing else is due as well; before which instant
        nothing is due then.
        """
        timers, clock, times = self._runner.timers, self._runner.environment.clock, self.times
        caused, wholes = self._plan.caused, self._plan.wholes
        while wholes and (found := timers.take_window(wholes, at)) is not None:
            clock.now = max(clock.now, found[0])
            found[1].fire(clock.now)
        if self._only is not None:  # as nearly always
            (only,), window, other = self._plan.timed, self._only, timers.quiet_until
            while (due := window.due) is not None and clock.now <= due <= at and due < other:
                clock.now = due
                only.fire(due)
                if caused is not None:
                    caused(len(times) - 1)
                other = timers.quiet_until
            if at < other and (due is None or due > at):
                return other if due is None or other < due else due
        while True:
            due, other = self._next_due(), timers.quiet_until
            now = due if due > clock.now else clock.now
            by = now if now < at else at
            if other <= by:
                other = inf if (asked := timers.next) is None else asked
            if other <= by or now > at:
                return due if due < other else other
            clock.now = now
            for each in self._due_by(now):
                each.fire(now)
                if caused is not None:
                    caused(len(times) - 1)

    def _due_by(self, now: int) -> Sequence[Told | Whole]:
        """Whose window lets rows out at an instant at which one of them does, in order."""
        timed = self._plan.timed
        if len(timed) == 1:
            return timed
        found = [(due, each.order, each) for each in timed if (due := each.due) is not None and due <= now]
        return [each for _, _, each in sorted(found)]

    def _advanced(self, at: int) -> bool:
        """Go on to an instant as without a pipeline; False: there is none any more."""
        self._watch(False)
        begin = len(self._runner.deliveries)
        self._runner.advance_span(at)
        if len(self._runner.deliveries) > begin:
            self._note(begin)
        holds = self.holds
        if holds:
            self._watch(True)
        return holds

    def _note(self, begin: int) -> None:
        """What was delivered beside the tapes, from a place among the deliveries on, goes onto tapes, each with a place of its own;
        where something was said that is nothing, all that is on them goes on before."""
        new = self._runner.deliveries[begin:]
        del self._runner.deliveries[begin:]
        if not all(each.delta.new or each.delta.old for each in new):
            self.deliver()
            self._runner.deliveries += new
            return
        for statement, at, delta in new:
            place, note = len(self.times), self._beside(statement).note
            self.times.append(at)
            for row in delta.new:
                note((place, 1, row.values))
            for row in delta.old:
                note((place, -1, row.values))

    def _beside(self, statement: str) -> Tape:
        """The tape of a statement that the clock has deliver; one more where the events have none of it."""
        own = next((tape for tape in reversed(self.tapes) if tape.statement == statement), None)
        return own or self._others.setdefault(statement, Tape(statement))

    @property
    def behind(self) -> bool:
        """Whether an event that was refused has left a change that followers do not know, which the next one brings them."""
        return any(isinstance(store, NamedWindow) and store.untold for store in self._plan.stores)

    @property
    def holds(self) -> bool:
        """Whether those whom the events concern are the same as when the pipeline was made."""
        known = self._plan.holds
        return self._stamp == self._now() and (known is None or known())

    def _now(self) -> tuple[int, ...]:
        indexes, found = self._runner.indexes, [self._component.changed, len(self._plan.conditions)]
        for stream in self._plan.streams or (self._stream,):
            found.append(len(self._runner.changes.get(stream, ())))
            if stream != self._stream or self._plan.holds is None:
                found += indexes[stream].number, len(indexes[stream])
        for store in self._plan.stores:
            found += len(store.consumers), len(store.observers), len(store.unique), store.name in indexes
        return tuple(found)

    def taken(self) -> tuple[list[Tape], list[int]]:
        """What is on the tapes, which are empty from then on: who is told of it may send events of this stream."""
        found = [tape.taken() for tape in self.tapes]
        for other in self._others.values():
            taken = other.taken()
            own = next((tape for tape in found if tape.rows and tape.statement == taken.statement), None)
            if own is None:
                found.append(taken)
            else:  # what the events and the clock have brought
                own.rows = sorted([*own.rows, *taken.rows], key=itemgetter(0))
        times = [*self.times]
        self.times.clear()
        return found, times

    def deliver(self) -> None:
        """What is on the tapes becomes deliveries like others."""
        self._runner.deliveries += merged(*self.taken())
