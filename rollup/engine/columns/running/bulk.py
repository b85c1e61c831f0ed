"""A batch of one stream through a component: what columns cover as cores, all else event by event, told in one order."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from rollup.core.errors import RollupError, StoreError
from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.families import Family, families, may_join
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.evaluate import carried
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.running.inserting import SENT, Cause, Inserted, Path, together
from rollup.engine.columns.running.instance import ColumnInstance
from rollup.engine.columns.running.placing import Placed, Placing, TypeOf
from rollup.engine.columns.running.telling import Heap, Place, Told, timer_place
from rollup.engine.columns.running.varying import Varying, variables_in
from rollup.engine.columns.sieve import Sieve
from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.engine.rows.contexts.partitions import Partition
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.journal import Journal
from rollup.engine.rows.plans import Select
from rollup.engine.rows.runner import Delivery
from rollup.engine.timers import Order, Phase

_STATELESS = 32
"""From so many events on a statement that keeps nothing is quicker over columns."""
_STATEFUL = 8
"""From so many events on a statement that is over columns already gets them as one batch."""
_LATE = "statements that were there before: their first events came in small batches, or not all are known"
"""Why a statement stays on rows."""
_NO_TIMER = sys.maxsize, Phase.WINDOW
"""As one that fired behind all."""


Stateless = tuple[Varying[Core | Family], tuple[str, ...], tuple[int, ...]]
"""What makes one heap for some statements, their names, and their places among all."""


@dataclass(frozen=True)
class Readers:
    """Who reads a stream over columns: those that keep something, and the others, which make a heap each. `resting` are the
    instances of those others.

    However many there are, a batch looks at none of the others by itself.
    """

    stateful: tuple[str, ...] = ()
    stateless: tuple[Stateless, ...] = ()
    resting: frozenset[int] = frozenset()

    @property
    def some(self) -> bool:
        """Whether there are any."""
        return bool(self.stateful or self.stateless)

    def __add__(self, other: Readers) -> Readers:
        return Readers(self.stateful + other.stateful, self.stateless + other.stateless, self.resting | other.resting)


@dataclass(frozen=True)
class Stopped:
    """A batch was stopped at an event: statements `before` had it, the others had not."""

    place: int
    before: Order
    problem: RollupError


@dataclass(frozen=True)
class Given:
    """A batch on its way: the path of its events, the instant at which all began, and where it was stopped."""

    batch: Batch
    path: Path
    began: int
    stopped: Stopped | None = None


class Columns:
    """The columnar side of a component. From batches of `least` events on, what is covered goes over to columns for good.

    `least` None: nothing ever does.
    """

    def __init__(self, component: Component, type_of: TypeOf, least: int | None) -> None:
        self._component, self._type_of, self._least = component, type_of, least
        self._placing = Placing(component, type_of, self._late)
        component.runner.journal = None if least is None else Journal()
        self._full = 0
        self.sieve = Sieve(component)
        self._known: dict[str, tuple[int, tuple[Readers, Readers]]] = {}
        self._everybody: dict[str, tuple[int, list[tuple[str, Readers]]]] = {}

    def placed(self) -> list[Placed]:
        """Where each statement runs."""
        self._look()
        return self._placing.placed()

    def _look(self) -> None:
        """See whether more is lost of what statements have heard, so that they stay on rows."""
        journal = self._component.runner.journal
        full = -1 if journal is None else journal.full
        if full != self._full:
            self._full = full
            self._component.changed += 1

    def _late(self, name: str) -> str | None:
        """Why a statement does not go over any more; None where it can, or has gone."""
        if self._least is None or isinstance(self._component.root.instances.get(name), ColumnInstance):
            return None
        deployed, journal = self._component.statements[name], self._component.runner.journal
        if type(self._placing.core(name)) is FilterProject:
            return None
        if journal is None or not journal.knows(name, self._placing.reads(deployed)):
            return _LATE
        return "a variable, which was set" if journal.assigned and variables_in(deployed.plan) else None

    def settle(self) -> None:
        """Forget what statements have heard where none of them goes over."""
        if self._component.runner.journal is None:
            return
        self._look()
        gone, placing = {*self.gone_over()}, self._placing
        found = (name for name in self._component.statements if name not in gone and placing.against(name) is None)
        if all(type(placing.core(name)) is FilterProject for name in found):
            self._component.runner.journal = None

    def gone_over(self) -> list[str]:
        """The statements that keep their state in columns."""
        return [name for name, found in self._component.root.instances.items() if isinstance(found, ColumnInstance)]

    def go_over(self, name: str, start: bool = True) -> None:
        """A statement goes over to columns, which take what it has heard so far; to be restored when it is not started.

        Raises StoreError for one that columns do not cover here.
        """
        deployed, core = self._component.statements[name], self._placing.core(name)
        plan = deployed.plan
        if isinstance(core, str):  # only what was over columns in another version is restored so
            raise StoreError(f"`{name}` was over columns, and runs on rows here: {core}")
        assert isinstance(plan, Select)
        reads, journal = self._placing.reads(deployed), self._component.runner.journal

        def build(where: Partition, order: Order) -> Instance:
            made = ColumnInstance(name, plan, core, reads, where, order)
            if start:
                assert journal is not None
                made.catch_up(*journal.heard(name, reads))
            return made

        self._component.exchange(name, build, start)

    # batches

    def wants(self, stream: str, events: int) -> bool:
        """Whether a batch of so many events is to be sent as a whole."""
        if self._least is None or events < min(self._least, _STATEFUL):
            return False
        self._look()
        if self._placing.disturbed(stream):
            return False
        return any(readers.some for _, readers in self._takers(stream, events))

    def _takers(self, stream: str, events: int) -> list[tuple[str, Readers]]:
        """Who takes a batch of so many events as a whole, and for each stream that it goes on to by inserts who takes that.

        From `least` events on those are all.
        """
        assert self._least is not None
        if events < self._least:
            journal = self._component.runner.journal
            last = events >= _STATELESS and journal is not None and journal.fills(stream, events)
            return self._taking(stream, self._least if last else events)
        known = self._everybody.get(stream)
        if known is None or known[0] != self._component.changed:
            known = self._everybody[stream] = (self._component.changed, self._taking(stream, events))
        return known[1]

    def _taking(self, stream: str, events: int) -> list[tuple[str, Readers]]:
        alone, inserting = self._readers(stream)
        own = Readers(tuple(name for name in alone.stateful if self._wanted((name,), events)))
        if self._wanted((), events):
            own = replace(alone, stateful=own.stateful)
        if not inserting.some:
            return [(stream, own)]
        later = [(each, self._all(each)) for each in self._placing.after(stream)[1:]]
        concerned = (*inserting.stateful, *(name for _, readers in later for name in readers.stateful))
        return [(stream, own + inserting), *later] if self._wanted(concerned, events) else [(stream, own)]

    def _all(self, stream: str) -> Readers:
        alone, inserting = self._readers(stream)
        return alone + inserting

    def _wanted(self, stateful: Sequence[str], events: int) -> bool:
        """Whether so many events are enough for statements that go over, or have gone over; without any, for those that
        keep nothing.
        """
        assert self._least is not None
        if not stateful:
            return events >= min(self._least, _STATELESS)
        instances = self._component.root.instances
        gone = all(isinstance(instances.get(name), ColumnInstance) for name in stateful)
        return events >= (min(self._least, _STATEFUL) if gone else self._least)

    def send(self, stream: str, batch: Batch, timed: bool) -> Told:
        """A batch of a stream, `timed` when the clock goes with its events.

        Where a statement on rows refuses an event, the batch stops for everybody as it would have event by event. One that
        may be too much for a statement over columns comes event by event, so that the very event is refused.
        """
        began = self._component.runner.now
        takers = self._takers(stream, batch.rows)
        instances = {name: self._gone(name) for _, readers in takers for name in readers.stateful}
        given, heaps = Given(batch, SENT, began), list[Heap]()
        if not all(each.roomy(given.batch) for each in instances.values()):
            deliveries, stopped = self._by_rows(stream, batch, timed, frozenset(), [])
            return _told(deliveries, [], batch, stopped)
        first = takers[0][1]
        resting = first.resting | {id(instances[name]) for name in first.stateful}
        deliveries, stopped = self._by_rows(stream, batch, timed, resting, list(instances.values()))
        end = batch.rows
        if stopped is not None:
            given, end = replace(given, stopped=stopped), stopped.place
        inserted = dict[str, list[Inserted]]()
        for each, readers in takers:
            if each != stream:
                given = self._inserted(each, together(inserted.get(each, ()), end), began, batch.now)
            for heap in self._through(readers, given, instances):
                heaps.append(self._insert(heap, inserted, batch.times))
        return _told(deliveries, [heap for heap in heaps if heap.output.delivers], batch, stopped)

    def _gone(self, name: str) -> ColumnInstance:
        """The instance of a statement that keeps something, which goes over if it has not."""
        if not isinstance(self._component.root.instances.get(name), ColumnInstance):
            self.go_over(name)
        found = self._component.root.instances[name]
        assert isinstance(found, ColumnInstance)
        return found

    def _through(self, readers: Readers, given: Given, instances: dict[str, ColumnInstance]) -> Iterator[Heap]:
        """A batch through those that take it."""
        for name in readers.stateful:
            instance = instances[name]
            output = instance.take(self._part(given, name))
            order = self._component.statements[name].order
            yield Heap((name,), output, (order,), given.path, instance.core.phase, instance.context)
            instance.ask_timers()
        if not given.batch.rows:
            return
        for found, names, orders in readers.stateless if given.stopped is None else self._singly(readers.stateless):
            core = found.now
            output = core.step(core.start(given.began), self._part(given, names[0]))[1]
            yield Heap(names, output, orders, given.path)

    def _insert(self, heap: Heap, inserted: dict[str, list[Inserted]], times: Ints) -> Heap:
        """What a statement inserts goes on; what its listeners get is given back. `times`: those of the events that were sent."""
        plan = self._component.statements[heap.names[0]].plan
        if not isinstance(plan, Select) or plan.target is None:
            return heap
        sent, kinds = heap.shared(plan.made, plan.target.takes), self._type_of(plan.target.name)
        if kinds is not None:
            cause = Cause(times, sent.phase, sent.orders[0])
            found = Inserted.of(sent.output, plan.target, kinds, sent.row_orders, sent.path, cause)
            inserted.setdefault(plan.target.name, []).append(found)
        return heap.shared(plan.made, plan.emitted)

    def _inserted(self, stream: str, found: Inserted | None, began: int, now: int) -> Given:
        """What was inserted into a stream, as its batch; also without events it is a batch, since the clock goes on."""
        now = min(now, self._component.runner.now)
        if found is not None:
            return Given(Batch(found.columns, found.times, now, stream), found.path, began)
        kinds = self._type_of(stream)
        assert kinds is not None
        nothing = Batch.nothing([carried(kind) for kind in kinds.fields.values()], now)
        return Given(replace(nothing, stream=stream), SENT, began)

    def _part(self, given: Given, name: str) -> Batch:
        """What a statement has of a batch that was stopped."""
        stopped = given.stopped
        if stopped is None:
            return given.batch
        had = (self._component.statements[name].order, 0) < stopped.before
        rows = stopped.place + had
        return replace(given.batch.part(0, rows), now=self._component.runner.now)

    def _singly(self, found: Sequence[Stateless]) -> list[Stateless]:
        """The statements of families one by one."""
        cores: list[Stateless] = []
        for _, names, orders in found:
            for name, order in zip(names, orders, strict=True):
                core = self._placing.core(name)
                assert not isinstance(core, str)
                cores.append((self._varying(core), (name,), (order,)))
        return cores

    def _readers(self, stream: str) -> tuple[Readers, Readers]:
        """Who reads a stream without inserting, and who inserts; of the former those without state that differ in a literal
        are one.
        """
        known = self._known.get(stream)
        if known is not None and known[0] == self._component.changed:
            return known[1]
        stateful, inserting = list[str](), list[str]()
        projecting: dict[bool, dict[str, FilterProject]] = {True: {}, False: {}}
        for name in self._placing.readers(stream):
            core, inserts = self._placing.core(name), self._placing.target(name) is not None
            if type(core) is FilterProject:
                projecting[inserts][name] = core
            else:
                (inserting if inserts else stateful).append(name)
        alike = self._together(stream, projecting[False])
        alone = ((core, (name,)) for name, core in projecting[True].items())
        found = self._reading(stateful, alike), self._reading(inserting, alone)
        self._known[stream] = (self._component.changed, found)
        return found

    def _reading(self, stateful: Sequence[str], stateless: Iterable[tuple[Core | Family, tuple[str, ...]]]) -> Readers:
        statements, instances = self._component.statements, self._component.root.instances
        heaps = tuple(
            (self._varying(core), names, tuple(statements[name].order for name in names)) for core, names in stateless
        )
        return Readers(
            tuple(stateful), heaps, frozenset(id(instances[name]) for _, names, _ in heaps for name in names)
        )

    def _varying(self, core: Core | Family) -> Varying[Core | Family]:
        return Varying(core, self._component.runner.environment.variables)

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
        runner.resting, runner.direct, runner.fired, runner.early = resting, sys.maxsize, [], []
        try:
            if not alone:
                stopped = self._one_by_one(stream, batch, timed, found)
            if timed and stopped is None:
                runner.advance_span(batch.now)
                self._collect(found, None, batch.times)
            runner.rows += batch.rows if alone else 0
        finally:
            runner.resting, runner.fired = frozenset(), None
            for each in instances:
                each.listen()
        return found, stopped

    def _one_by_one(self, stream: str, batch: Batch, timed: bool, found: list[Any]) -> Stopped | None:
        """The events one by one, without those that concern nobody else."""
        runner, kinds = self._component.runner, self._type_of(stream)
        some = None if kinds is None else self.sieve.passing(kinds, batch.columns, runner.resting)
        places = np.arange(batch.rows) if some is None else np.flatnonzero(some)
        for place, at, values in zip(places.tolist(), batch.times[places].tolist(), batch.values(places), strict=True):
            sent: Row | None = None
            try:
                if timed:
                    runner.advance_span(at)
                    self._collect(found, None, batch.times)
                sent = runner.row(values)
                runner.route(stream, sent)
            except RollupError as problem:
                return Stopped(place, self._reached(sent), problem)
            finally:
                self._collect(found, place, batch.times)
        return None

    def _reached(self, sent: Row | None) -> Order:
        """Who came before these had the event that was refused; what it caused comes after all who read it."""
        refused = self._component.runner.refused
        if sent is None:
            return ()
        return refused[1] if refused is not None and refused[0] is sent else (sys.maxsize,)

    def _collect(self, found: list[Any], event: int | None, times: Ints) -> None:
        """What was delivered meanwhile, in the order in which it was, by an event or (None) by the clock."""
        runner = self._component.runner
        fired, runner.fired = runner.fired or (), []
        early, runner.early = runner.early, []
        direct, runner.direct = runner.direct, sys.maxsize
        if not runner.deliveries:
            return
        deliveries, runner.deliveries = runner.deliveries, []
        before, order = Place(), -1
        within = {number: place for begin, end, place in reversed(early) for number in range(begin, end)}
        timers = iter(fired)
        end, phase = next(timers, _NO_TIMER)
        for number, each in enumerate(deliveries):
            while number >= end:
                end, phase = next(timers, _NO_TIMER)
            place = (2 * event + 1, each.at) if event is not None else timer_place(times, each.at, phase)
            place = (*place, *within.get(number, ()))
            deployed = self._component.statements.get(each.statement)
            order = max(order if place == before else -1, deployed.order if deployed is not None else -1)
            before = place
            found.append(((*place, order if number < direct else sys.maxsize), each))


def _told(rows: list[tuple[Place, Delivery]], heaps: list[Heap], batch: Batch, stopped: Stopped | None) -> Told:
    told = Told(rows, heaps, batch.times)
    return told if stopped is None else replace(told, problem=stopped.problem, stopped=stopped.place)
