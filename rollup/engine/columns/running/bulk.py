"""A batch of one stream through a component: what columns cover as cores, all else event by event, told in one order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.core.errors import RollupError
from rollup.engine.columns.cores.batches import TIMER, Batch, Core, Output
from rollup.engine.columns.cores.families import Family, families, may_join
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.running.adopting import adopted
from rollup.engine.columns.running.instance import ColumnInstance
from rollup.engine.columns.running.placing import Placed, Placing, TypeOf, stream_of
from rollup.engine.rows.component import Component
from rollup.engine.rows.contexts.partitions import Partition
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.plans import Select
from rollup.engine.rows.row import Row
from rollup.engine.rows.runner import Delivery
from rollup.engine.timers import Order

Place = tuple[int, int, int]
"""Before the event 2n or at it 2n + 1; the instant; the statement's place among all."""

_STATELESS = 32
"""From so many events on a statement that keeps nothing is quicker over columns."""
_STATEFUL = 8
"""From so many events on a statement that is over columns already gets them as one batch."""


@dataclass(frozen=True)
class Heap:
    """What some statements brought for a batch; `output.statement` is the place of a row's statement in `names`.

    `apart`: each row is a delivery. `orders`: the statements' places among all.
    """

    names: tuple[str, ...]
    output: Output
    apart: bool
    orders: tuple[int, ...]

    def deliveries(self, times: Ints) -> Iterator[tuple[Place, Any]]:
        """Each delivery as statement, instant and values, with its place."""
        of = self.output.statement
        if of is None:
            for at, event, values in self.output.deliveries(self.apart):
                yield _place(times, at, event, self.orders[0]), (self.names[0], at, values)
        else:
            for (at, event, values), place in zip(self.output.deliveries(True), of.tolist(), strict=True):
                yield _place(times, at, event, self.orders[place]), (self.names[place], at, values)

    def only(self, place: int) -> Output:
        """The rows of one statement."""
        of, output = self.output.statement, self.output
        if of is None:
            return output
        places = np.flatnonzero(of == place)
        taken = pa.array(places)
        return Output(output.at[places], output.event[places], tuple(column.take(taken) for column in output.columns))


@dataclass(frozen=True)
class Stopped:
    """A batch was stopped at an event: statements `before` had it, the others had not."""

    place: int
    before: Order
    problem: RollupError


@dataclass(frozen=True)
class Told:
    """What a batch brought: the deliveries of rows, each with its place in the batch, and the heaps of columns.

    `problem`: what was refused in the middle.
    """

    rows: list[tuple[Place, Delivery]]
    heaps: list[Heap]
    times: Ints
    problem: RollupError | None = None

    def merged(self, heaps: Sequence[Heap]) -> list[Any]:
        """The deliveries of rows and of those heaps in order: by instant and event; at one of them, by deployment."""
        found: list[tuple[Place, Any]] = list(self.rows)
        for heap in heaps:
            found += heap.deliveries(self.times)
        if heaps:
            found.sort(key=lambda each: each[0])
        return [each for _, each in found]


def _place(times: Ints, at: int, event: int, order: int) -> Place:
    """Where a delivery stands: what the clock brings comes before the first event of its instant."""
    if event == TIMER:
        return 2 * int(np.searchsorted(times, at)), at, order
    return 2 * event + 1, at, order


class Columns:
    """The columnar side of a component. From batches of `least` events on, what is covered goes over to columns for good.

    `least` None: nothing ever does.
    """

    def __init__(self, component: Component, type_of: TypeOf, least: int | None) -> None:
        self._component, self._type_of, self._least = component, type_of, least
        self._placing = Placing(component, type_of)
        self._families: dict[str, tuple[int, list[tuple[Core | Family, tuple[str, ...]]]]] = {}

    def placed(self) -> list[Placed]:
        """Where each statement runs."""
        return self._placing.placed()

    def gone_over(self) -> list[str]:
        """The statements that keep their state in columns."""
        return [name for name, found in self._component.root.instances.items() if isinstance(found, ColumnInstance)]

    def go_over(self, name: str, start: bool = True) -> None:
        """A statement goes over to columns, with the state that it has; to be restored when it is not started."""
        deployed, core = self._component.statements[name], self._placing.core(name)
        plan = deployed.plan
        assert isinstance(plan, Select) and not isinstance(core, str)
        stream = stream_of(plan) or ""
        kinds = self._type_of(stream)
        assert kinds is not None

        def build(where: Partition, order: Order) -> Instance:
            made = ColumnInstance(name, plan, core, stream, kinds, where, order)
            if start:
                made.state, held = adopted(core, self._component, name, kinds)
                made.window = held if made.holds is not None else made.window
            return made

        self._component.exchange(name, build, start)

    # batches

    def wants(self, stream: str, events: int) -> bool:
        """Whether a batch of so many events is to be sent as a whole."""
        if self._least is None or events < min(self._least, _STATEFUL):
            return False
        if self._placing.disturbed(stream):
            return False
        return any(self._wanted(name, events) for name in self._placing.readers(stream))

    def _wanted(self, name: str, events: int) -> bool:
        assert self._least is not None
        if isinstance(self._placing.core(name), FilterProject):
            return events >= min(self._least, _STATELESS)
        gone = isinstance(self._component.root.instances.get(name), ColumnInstance)
        return events >= (min(self._least, _STATEFUL) if gone else self._least)

    def send(self, stream: str, batch: Batch, rows: Callable[[], Sequence[Sequence[Any]]], timed: bool) -> Told:
        """A batch of a stream, `timed` when the clock goes with its events; `rows` gives them as values.

        Where a statement on rows refuses an event, the batch stops for everybody as it would have event by event.
        """
        began = self._component.runner.now
        readers = [name for name in self._placing.readers(stream) if self._wanted(name, batch.rows)]
        instances: list[ColumnInstance] = []
        for name in readers:
            if isinstance(self._placing.core(name), FilterProject):
                continue
            if not isinstance(self._component.root.instances.get(name), ColumnInstance):
                self.go_over(name)
            found = self._component.root.instances[name]
            assert isinstance(found, ColumnInstance)
            instances.append(found)
        stateless = self._stateless(stream) if any(self._projects(name) for name in readers) else []
        resting = [*instances, *(self._component.root.instances[n] for _, names in stateless for n in names)]
        deliveries, stopped = self._by_rows(stream, batch, rows, timed, resting, instances)
        heaps: list[Heap] = []
        for each in instances:
            heaps.append(self._heap((each.name,), each.take(self._part(batch, each.name, stopped)), each.apart))
            each.ask_timers()
        for core, names in stateless if stopped is None else self._singly(stateless):
            part = self._part(batch, names[0], stopped)
            heaps.append(self._heap(names, core.step(core.start(began), part)[1], False))
        problem = None if stopped is None else stopped.problem
        return Told(deliveries, [heap for heap in heaps if heap.output.rows], batch.times, problem)

    def _part(self, batch: Batch, name: str, stopped: Stopped | None) -> Batch:
        """What a statement has of a batch that was stopped."""
        if stopped is None:
            return batch
        had = (self._component.statements[name].order, 0) < stopped.before
        rows = stopped.place + had
        return Batch(tuple(c.slice(0, rows) for c in batch.columns), batch.times[:rows], self._component.runner.now)

    def _singly(self, found: Sequence[tuple[Core | Family, tuple[str, ...]]]) -> list[tuple[Any, tuple[str, ...]]]:
        """The statements of families one by one."""
        return [(self._placing.core(name), (name,)) for _, names in found for name in names]

    def _projects(self, name: str) -> bool:
        return isinstance(self._placing.core(name), FilterProject)

    def _heap(self, names: tuple[str, ...], output: Output, apart: bool) -> Heap:
        orders = tuple(self._component.statements[name].order for name in names)
        return Heap(names, output, apart, orders)

    def _stateless(self, stream: str) -> list[tuple[Core | Family, tuple[str, ...]]]:
        """The statements without state over a stream; those that differ in a literal are one."""
        known = self._families.get(stream)
        if known is not None and known[0] == self._component.changed:
            return known[1]
        kinds = self._type_of(stream)
        assert kinds is not None
        found: list[tuple[Core | Family, tuple[str, ...]]] = []
        alike: dict[str, FilterProject] = {}
        for name in self._placing.readers(stream):
            core = self._placing.core(name)
            if isinstance(core, FilterProject):
                if may_join(core, kinds) is None:
                    alike[name] = core
                else:
                    found.append((core, (name,)))
        for family, names in families(alike, kinds):
            found.append((family, tuple(names)) if len(names) > 1 else (alike[names[0]], (names[0],)))
        self._families[stream] = (self._component.changed, found)
        return found

    def _by_rows(
        self,
        stream: str,
        batch: Batch,
        rows: Callable[[], Sequence[Sequence[Any]]],
        timed: bool,
        resting: Sequence[Instance],
        instances: Sequence[ColumnInstance],
    ) -> tuple[list[tuple[Place, Delivery]], Stopped | None]:
        """The events one by one to everybody else, and the timers of everybody else."""
        runner = self._component.runner
        found: list[tuple[Place, Delivery]] = []
        stopped: Stopped | None = None
        alone = len(runner.indexes[stream]) <= len(resting)
        for each in instances:
            each.rest()
        runner.resting = frozenset(map(id, resting))
        try:
            if not alone:
                stopped = self._one_by_one(stream, batch, rows(), timed, found)
            if timed and stopped is None:
                runner.advance_span(batch.now)
                self._collect(found, 2 * batch.rows)
            runner.rows += batch.rows if alone else 0
        finally:
            runner.resting = frozenset()
        return found, stopped

    def _one_by_one(
        self, stream: str, batch: Batch, rows: Sequence[Sequence[Any]], timed: bool, found: list[Any]
    ) -> Stopped | None:
        runner = self._component.runner
        for place, (at, values) in enumerate(zip(batch.times.tolist(), rows, strict=True)):
            sent: Row | None = None
            try:
                if timed:
                    runner.advance_span(at)
                    self._collect(found, 2 * place)
                sent = runner.row(values)
                runner.route(stream, sent)
            except RollupError as problem:
                return Stopped(place, self._reached(sent), problem)
            finally:
                self._collect(found, 2 * place + 1)
        return None

    def _reached(self, sent: Row | None) -> Order:
        """Who came before these had the event that was refused; what it caused comes after all who read it."""
        refused = self._component.runner.refused
        if sent is None:
            return ()
        return refused[1] if refused is not None and refused[0] is sent else (sys.maxsize,)

    def _collect(self, found: list[Any], place: int) -> None:
        """What was delivered meanwhile, in the order in which it was."""
        runner = self._component.runner
        if not runner.deliveries:
            return
        deliveries, runner.deliveries = runner.deliveries, []
        at = order = -1
        for each in deliveries:
            deployed = self._component.statements.get(each.statement)
            order = max(order if each.at == at else -1, deployed.order if deployed is not None else -1)
            at = each.at
            found.append(((place, at, order), each))
