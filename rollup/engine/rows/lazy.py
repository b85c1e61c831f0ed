"""Selects that put off what nobody sees of an event: what waits is done before anybody looks.

A total that only its rate shows is told nothing in between: the events wait, and enter the aggregates together. So it is
with groups, all of which are shown. A join of windows by time whose rows leave unheard lets them out when the next event
comes, and asks for no timer.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from rollup.engine import operators as op
from rollup.engine.aggregates.known import COUNT, MAXEVER, MIN, MINEVER, SUM, counting
from rollup.engine.expressions import All, Any_, Call, Const, Expr, Field, Now, Variable, walk
from rollup.engine.folding import AggregateCall
from rollup.engine.row import Delta, Row
from rollup.engine.rows.plans import Finish, Select, StreamInput
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.grouping import Level
from rollup.engine.rows.windows.timed import Time
from rollup.engine.timers import Order, Phase
from rollup.engine.types import Kind

if TYPE_CHECKING:
    from rollup.engine.rows.contexts.partitions import Partition

_TOGETHER = 512
"""So many events wait at most."""
_UNKNOWN = object()
_ENTERING = {each.enter for each in (COUNT, SUM, MIN, MINEVER, MAXEVER)}
"""How the values of most aggregates enter, whatever a language makes of them."""
_NUMBERS = (Kind.INT, Kind.LONG, Kind.DOUBLE)
_KEYS = (*_NUMBERS, Kind.STRING, Kind.BOOL)
_COMPARED = (op.EQUAL, op.UNEQUAL, op.LESS, op.LESS_EQUAL, op.GREATER, op.GREATER_EQUAL, op.BETWEEN)


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


class Awaiting(Gathering):
    """The same where variables bring an output: events wait as long as those stay as they were when they last brought none."""

    def __init__(self, name: str, plan: Select, where: Partition, order: Order) -> None:
        super().__init__(name, plan, where, order)
        self._read = itemgetter(*sorted(self.outputs.variables))
        self._known: Any = _UNKNOWN
        """The variables with which there was no output; unknown while any event may bring one."""

    def may_bring(self, row: Row) -> bool:
        """Whether an event may bring an output, whatever it is."""
        return self._read(self.environment.variables) != self._known

    def receive(self, inputs: Sequence[int], row: Row) -> None:
        """An event."""
        if not self.may_bring(row):
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


def made_by(plan: Select) -> type[SelectInstance]:
    """What runs a select."""
    if _gathers(plan):
        if plan.rate.when is not None:
            return Awaiting
        return Dating if any(_of_time(call) for level in _levels(plan) for call in level.calls) else Gathering
    return Leaving if _leaves_unheard(plan) else SelectInstance


def _gathers(plan: Select) -> bool:
    """Whether events only enter a total, or groups, until an output is due, and nothing that they bring can be refused."""
    match plan:
        case Select(inputs=(StreamInput(window=None, unnest=(), prior=0),), join=None, own_inputs=(), into=None):
            brought = plan.rate.by_clock or _by_variables(plan)
            shown = plan.finish == Finish() and brought and _certain(plan.where)
            calls = [call for level in _levels(plan) for call in level.calls]
            return shown and (_of_total(plan) or _of_groups(plan)) and all(map(_enters, calls))
        case _:
            return False


def _by_variables(plan: Select) -> bool:
    """Whether variables alone say when there is an output of what is then."""
    rate = plan.rate
    if rate.when is None or plan.tells_what_leaves or not any(isinstance(each, Variable) for each in walk(rate.when)):
        return False
    others = (rate.span, rate.events, rate.schedule, rate.after_span, rate.after_events)
    said = all(isinstance(each, (Variable, Const, All, Any_, Call)) for each in walk(rate.when))
    times = any(_of_time(call) for level in _levels(plan) for call in level.calls)
    return said and not times and all(each is None for each in others)


def _levels(plan: Select) -> Sequence[Level]:
    return plan.levels if plan.grouping is None else plan.grouping.levels


def _of_total(plan: Select) -> bool:
    """Whether it is one row in all that an output shows as it is then."""
    return plan.total and plan.rate.mode in ("snapshot", "last") and not any(level.keys for level in plan.levels)


def _of_groups(plan: Select) -> bool:
    """Whether an output shows all groups, which fields tell apart, as they are then."""
    grouping = plan.grouping
    modes = ("snapshot",) if plan.rate.when is None else ("snapshot", "last", "all")
    if grouping is None or not grouping.whole or grouping.own or plan.rate.mode not in modes:
        return False
    return all(isinstance(each, Field) and each.type.kind in _KEYS for each in grouping.dimensions)


def _leaves_unheard(plan: Select) -> bool:
    """Whether what the windows of a join, all by time, let out moves nothing but the windows."""
    inputs = [each for each in plan.inputs if isinstance(each, StreamInput) and not each.unnest and not each.prior]
    timed = len(inputs) == len(plan.inputs) and all(type(each.window) is Time for each in inputs)
    return timed and plan.join is not None and not plan.lookups and plan.comes_alone


def _enters(call: AggregateCall) -> bool:
    """Whether any value that a field has enters an aggregate."""
    known = call.aggregate.enter in _ENTERING and not call.distinct
    if _of_time(call):
        return not call.distinct and _certain(call.where)
    return known and _certain(call.where) and all(_value(each) and each.type.kind in _NUMBERS for each in call.args)


def _of_time(call: AggregateCall) -> bool:
    """Whether it is the rate of what comes, by the clock."""
    return counting(call.aggregate) is not None and call.args == (Now(),)


def _certain(condition: Expr | None) -> bool:
    """Whether a condition compares numbers of the event, or texts, and so has an answer that time does not change."""
    return condition is None or all(
        _value(each)
        or isinstance(each, (All, Any_))
        or (isinstance(each, Call) and any(each.op is known for known in _COMPARED) and _alike(each.args))
        for each in walk(condition)
    )


def _value(expr: Expr) -> bool:
    return isinstance(expr, (Field, Const))


def _alike(values: Sequence[Expr]) -> bool:
    kinds = [each.type.kind for each in values]
    return all(kind in _NUMBERS for kind in kinds) or all(kind is Kind.STRING for kind in kinds)
