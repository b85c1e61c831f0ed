"""A batch of one stream through a component: what columns cover as cores, all else event by event, told in one order."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from rollup.core.errors import RollupError
from rollup.engine.columns.cores.batches import TIMER, Batch, Core, Output
from rollup.engine.columns.cores.families import Family, families, may_join
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.running.adopting import adopted
from rollup.engine.columns.running.instance import ColumnInstance
from rollup.engine.columns.running.placing import Placed, Placing, TypeOf
from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.engine.rows.contexts.partitions import Partition
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.plans import Select
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
        """Each delivery as statement, instant, what comes and what leaves, with its place."""
        of = self.output.statement
        if of is None:
            for at, event, new, old in self.output.deliveries(self.apart):
                yield _place(times, at, event, self.orders[0]), (self.names[0], at, new, old)
        else:
            for (at, event, new, old), place in zip(self.output.deliveries(True), of.tolist(), strict=True):
                yield _place(times, at, event, self.orders[place]), (self.names[place], at, new, old)

    @cached_property
    def concerned(self) -> tuple[str, ...]:
        """The statements that have rows."""
        of = self.output.statement
        return self.names if of is None else tuple(self.names[place] for place in np.unique(of).tolist())

    def parts(self) -> Iterator[tuple[str, Output]]:
        """The rows of each statement that has some."""
        of, output = self.output.statement, self.output
        if of is None:
            yield self.names[0], output
            return
        order = np.argsort(of, kind="stable")
        for places in np.split(order, np.flatnonzero(np.diff(of[order])) + 1):
            yield self.names[int(of[places[0]])], replace(output.at_places(places), statement=None)


@dataclass(frozen=True)
class Readers:
    """Who reads a stream over columns, until statements begin or end: those that keep something, and the others, which
    make a heap each with the places of their statements among all. `resting` are the instances of those others.

    However many there are, a batch looks at none of them by itself.
    """

    stateful: tuple[str, ...]
    stateless: tuple[tuple[Core | Family, tuple[str, ...], tuple[int, ...]], ...]
    resting: frozenset[int]


@dataclass(frozen=True)
class Stopped:
    """A batch was stopped at an event: statements `before` had it, the others had not."""

    place: int
    before: Order
    problem: RollupError


@dataclass(frozen=True)
class Told:
    """What a batch brought: the deliveries of rows, each with its place in the batch, and the heaps of columns.

    `problem`: what was refused in the middle, at the event `stopped`.
    """

    rows: list[tuple[Place, Delivery]]
    heaps: list[Heap]
    times: Ints
    problem: RollupError | None = None
    stopped: int = -1

    def merged(self, heaps: Sequence[Heap]) -> list[Any]:
        """The deliveries of rows and of those heaps in order: by instant and event; at one of them, by deployment."""
        return [each for _, each in self.placed(heaps)]

    def placed(self, heaps: Sequence[Heap]) -> list[tuple[Place, Any]]:
        """The same, each with its place."""
        found: list[tuple[Place, Any]] = list(self.rows)
        for heap in heaps:
            found += heap.deliveries(self.times)
        if heaps:
            found.sort(key=lambda each: each[0])
        return found


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
        self._known: dict[str, tuple[int, Readers]] = {}

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
        reads = self._placing.reads(deployed)

        def build(where: Partition, order: Order) -> Instance:
            made = ColumnInstance(name, plan, core, reads, where, order)
            if start:
                made.state, held = adopted(core, self._component, name, next(iter(reads.values())))
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
        readers = self._readers(stream)
        return bool(self._stateless(readers, events)) or any(self._wanted(name, events) for name in readers.stateful)

    def _wanted(self, name: str, events: int) -> bool:
        assert self._least is not None
        gone = isinstance(self._component.root.instances.get(name), ColumnInstance)
        return events >= (min(self._least, _STATEFUL) if gone else self._least)

    def _stateless(
        self, readers: Readers, events: int
    ) -> tuple[tuple[Core | Family, tuple[str, ...], tuple[int, ...]], ...]:
        assert self._least is not None
        return readers.stateless if events >= min(self._least, _STATELESS) else ()

    def send(self, stream: str, batch: Batch, rows: Callable[[], Sequence[Sequence[Any]]], timed: bool) -> Told:
        """A batch of a stream, `timed` when the clock goes with its events; `rows` gives them as values.

        Where a statement on rows refuses an event, the batch stops for everybody as it would have event by event.
        """
        began = self._component.runner.now
        readers = self._readers(stream)
        instances: list[ColumnInstance] = []
        for name in readers.stateful:
            if not self._wanted(name, batch.rows):
                continue
            if not isinstance(self._component.root.instances.get(name), ColumnInstance):
                self.go_over(name)
            found = self._component.root.instances[name]
            assert isinstance(found, ColumnInstance)
            instances.append(found)
        stateless = self._stateless(readers, batch.rows)
        resting = readers.resting if stateless else frozenset[int]()
        resting = resting | set(map(id, instances)) if instances else resting
        deliveries, stopped = self._by_rows(stream, batch, rows, timed, resting, instances)
        heaps: list[Heap] = []
        for each in instances:
            output = each.take(self._part(batch, each.name, stopped))
            heaps.append(Heap((each.name,), output, each.apart, (self._component.statements[each.name].order,)))
            each.ask_timers()
        for core, names, orders in stateless if stopped is None else self._singly(stateless):
            part = self._part(batch, names[0], stopped)
            heaps.append(Heap(names, core.step(core.start(began), part)[1], False, orders))
        told = Told(deliveries, [heap for heap in heaps if heap.output.rows], batch.times)
        return told if stopped is None else replace(told, problem=stopped.problem, stopped=stopped.place)

    def _part(self, batch: Batch, name: str, stopped: Stopped | None) -> Batch:
        """What a statement has of a batch that was stopped."""
        if stopped is None:
            return batch
        had = (self._component.statements[name].order, 0) < stopped.before
        rows = stopped.place + had
        return replace(batch.part(0, rows), now=self._component.runner.now)

    def _singly(
        self, found: Sequence[tuple[Any, tuple[str, ...], tuple[int, ...]]]
    ) -> list[tuple[Any, tuple[str, ...], tuple[int, ...]]]:
        """The statements of families one by one."""
        return [
            (self._placing.core(name), (name,), (order,))
            for _, names, orders in found
            for name, order in zip(names, orders, strict=True)
        ]

    def _readers(self, stream: str) -> Readers:
        """Who reads a stream; statements without state that differ in a literal are one."""
        known = self._known.get(stream)
        if known is not None and known[0] == self._component.changed:
            return known[1]
        stateful: list[str] = []
        projecting: dict[str, FilterProject] = {}
        for name in self._placing.readers(stream):
            core = self._placing.core(name)
            if isinstance(core, FilterProject):
                projecting[name] = core
            else:
                stateful.append(name)
        stateless = [
            (core, names, tuple(self._component.statements[name].order for name in names))
            for core, names in self._together(stream, projecting)
        ]
        resting = frozenset(id(self._component.root.instances[name]) for name in projecting)
        found = Readers(tuple(stateful), tuple(stateless), resting)
        self._known[stream] = (self._component.changed, found)
        return found

    def _together(
        self, stream: str, projecting: dict[str, FilterProject]
    ) -> Iterator[tuple[Core | Family, tuple[str, ...]]]:
        kinds = self._type_of(stream)
        assert kinds is not None or not projecting
        if kinds is None:
            return
        alike = {name: core for name, core in projecting.items() if may_join(core, kinds) is None}
        for name, core in projecting.items():
            if name not in alike:
                yield core, (name,)
        for family, names in families(alike, kinds):
            yield (family, tuple(names)) if len(names) > 1 else (alike[names[0]], (names[0],))

    def _by_rows(
        self,
        stream: str,
        batch: Batch,
        rows: Callable[[], Sequence[Sequence[Any]]],
        timed: bool,
        resting: frozenset[int],
        instances: Sequence[ColumnInstance],
    ) -> tuple[list[tuple[Place, Delivery]], Stopped | None]:
        """The events one by one to everybody else, and the timers of everybody else."""
        runner = self._component.runner
        found: list[tuple[Place, Delivery]] = []
        stopped: Stopped | None = None
        alone = len(runner.indexes[stream]) <= len(resting)
        for each in instances:
            each.rest()
        runner.resting = resting
        try:
            if not alone:
                stopped = self._one_by_one(stream, batch, rows(), timed, found)
            if timed and stopped is None:
                runner.advance_span(batch.now)
                self._collect(found, 2 * batch.rows)
            runner.rows += batch.rows if alone else 0
        finally:
            runner.resting = frozenset()
            for each in instances:
                each.listen()
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
