"""Selects that put off what nobody sees of an event: what waits is done before anybody looks.

A total that only its rate shows is told nothing in between: the events wait, and enter the aggregates together. So it is
with groups, all of which are shown. A join of windows by time whose rows leave unheard lets them out when the next event
comes, and asks for no timer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rollup.engine.row import Delta, Row, Rows
from rollup.engine.rows.plans import Select
from rollup.engine.rows.select import SelectInstance
from rollup.engine.timers import Order, Phase

if TYPE_CHECKING:
    from rollup.engine.rows.contexts.partitions import Partition

_TOGETHER = 512
"""So many events wait at most."""
_UNKNOWN = object()


class Lazy(SelectInstance):
    """A select with something to do before anybody looks at it."""

    def settle(self) -> None:
        """Do it."""
        raise NotImplementedError

    def fire(self, phase: Phase, now: int) -> None:
        """Timers."""
        self.settle()
        super().fire(phase, now)

    def end(self) -> None:
        """What is shown at the end."""
        self.settle()
        super().end()

    def rows(self) -> list[Row]:
        """What the statement would show now."""
        self.settle()
        return super().rows()

    def snapshot(self) -> Any:
        """As if nothing had been put off."""
        self.settle()
        return super().snapshot()


class Gathering(Lazy):
    """A total, or groups, shown by a rate alone: events wait until one is due."""

    _came: list[Row] | None = None
    """What waits; None before the first event, which makes the clock of the outputs start."""

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event."""
        if self._came is None:
            super().receive(inputs, row)
            if self.alive and (self.outputs.due is not None or not self.plan.rate.ticks):
                self._came = []
            return
        self.gather(row)

    def gather(self, row: Row) -> None:
        """An event that brings nothing waits."""
        came = self._came
        assert came is not None
        came.append(row)
        if len(came) >= _TOGETHER:
            self.settle()

    def stop(self) -> None:
        """The partition ends."""
        super().stop()
        self._came = None

    def settle(self) -> None:
        """What waits enters the aggregates, in the order in which it came."""
        if self._came:
            came, self._came = self._came, []
            self._moved(Delta(came, ()))


class Dating(Gathering):
    """The same where an aggregate asks for the time: events wait with the instants at which they came."""

    def __init__(self, name: str, plan: Select, where: Partition, order: Order) -> None:
        super().__init__(name, plan, where, order)
        self._instants = list[int]()

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event."""
        if self._came is not None:
            self._instants.append(self.environment.clock.now)
        super().receive(inputs, row)

    def stop(self) -> None:
        """The partition ends."""
        super().stop()
        self._instants = []

    def settle(self) -> None:
        """What waits enters the aggregates, that of each instant by the clock of then."""
        if not self._came:
            return
        came, self._came = self._came, []
        instants, self._instants = self._instants, []
        where, e = self._where, self.environment
        e.arriving = True
        dated = [(at, (row,)) for at, row in zip(instants, came, strict=True) if where is None or where((row,), (), e)]
        self.outputs.take_dated(dated)


class Lapsing(Dating):
    """A select over a window that goes by the clock, of whose rows nobody sees anything before an output: what leaves while events
    wait leaves when they enter, each in its turn. Once the clock of the outputs runs, it asks for no other timer.
    """

    def __init__(self, name: str, plan: Select, where: Partition, order: Order) -> None:
        super().__init__(name, plan, where, order)
        ((_, self._window),) = self._windows = self._timed
        alone = self.outputs.alone()
        self._comes_alone, self._leaves_alone = (None, None) if alone is None else alone[:2]

    def listen(self) -> None:
        """Before the clock jumps, and when it has, what has been put off is done."""
        super().listen()
        self.runner.put_off[id(self)] = self

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event."""
        waited = self._came is not None
        super().receive(inputs, row)
        if not waited and self._came is not None:
            self._timed = []
            self.runner.timers.ask(self, self.window_phase, None)

    def stop(self) -> None:
        """The partition ends."""
        super().stop()
        self.runner.put_off.pop(id(self), None)
        self._timed = self._windows

    def settle(self) -> None:
        """What waits enters, and what is due leaves."""
        self._settle(0)

    def fire(self, phase: Phase, now: int) -> None:
        """An output. It shows what there was before windows of keys let out what is due at the same instant."""
        self._settle(1 if self._window.keyed else 0)
        SelectInstance.fire(self, phase, now)

    def _settle(self, before: int) -> None:
        """What is due so much before now, or before the timer that is heard, leaves."""
        if self._came is None:
            return
        self._enter()
        firing, now = self.runner.firing, self.environment.clock.now
        by = (now if firing is None else firing) - before
        if not self.runner.jumping:
            self._lapse(by)
        elif (due := self._window.due) is not None and due <= by:
            self.jumped()  # over a timer that was due later, which is heard now

    def jumped(self) -> None:
        """All that is due by now leaves at once."""
        if self._came is None:
            return
        now = self.environment.clock.now
        while (due := self._window.due) is not None and due <= now:
            self._left(now)

    def _enter(self) -> None:
        """What waits enters, after what has left before it, each as the clock stood then."""
        if not self._came:
            return
        came, self._came = self._came, []
        instants, self._instants = self._instants, []
        window, clock = self._window, self.environment.clock
        come, where, e = self._comes_alone, self._where, self.environment
        now = clock.now
        try:
            for at, row in zip(instants, came, strict=True):
                if (due := window.due) is not None and due <= at:
                    self._lapse(at)
                clock.now = at
                delta = window.enter((row,), at)
                if come is None or delta.old or len(delta.new) != 1:
                    self._moved(delta)
                    continue
                e.arriving = True
                if where is None or where((delta.new[0],), (), e):
                    come((delta.new[0],))
        finally:
            clock.now = now

    def _lapse(self, by: int) -> None:
        """What is due by then leaves, that of each instant together."""
        window, clock = self._window, self.environment.clock
        now = clock.now
        while (due := window.due) is not None and due <= by:
            clock.now = due
            self._left(due)
        clock.now = now

    def _left(self, at: int) -> None:
        delta, leave = self._fired(self._window, at), self._leaves_alone
        if leave is None or delta.new:
            self._moved(delta)
            return
        left: Sequence[Rows] = [*zip(delta.old)]
        for r in left if self._where is None else self._passing(left, False):
            leave(r)


class Awaiting(Gathering):
    """The same where variables bring an output: events wait as long as those stay as they were when they last brought none."""

    def __init__(self, name: str, plan: Select, where: Partition, order: Order) -> None:
        super().__init__(name, plan, where, order)
        self._read = itemgetter(*sorted(self.outputs.variables))
        self._known: Any = _UNKNOWN
        """The variables with which there was no output; unknown while any event may bring one."""

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event."""
        if self._read(self.environment.variables) == self._known:
            self.gather(row)
            return
        self.settle()
        SelectInstance.receive(self, inputs, row)
        if self.alive:
            self._came = []
            self._known = _UNKNOWN if self.outputs.holds else self._read(self.environment.variables)

    def variables_set(self, names: Collection[str]) -> None:
        """What came before is of the variables as they were."""
        self.settle()
        super().variables_set(names)


class Leaving(Lazy):
    """Rows of windows by time of which nobody hears that they leave: they do when the next event comes."""

    def __init__(self, name: str, plan: Select, where: Partition, order: Order) -> None:
        super().__init__(name, plan, where, order)
        self._windows, self._timed = self._timed, []

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event, after what was due before it has left."""
        self.settle()
        super().receive(inputs, row)

    def settle(self) -> None:
        """What is due leaves."""
        now = self.environment.clock.now
        for number, window in self._windows:
            due = window.due
            if due is not None and due <= now:
                self.left(number, window.fire(now).old)
