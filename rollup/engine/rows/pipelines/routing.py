"""Streams that several statements hear, or whose statements insert into other streams: what an event causes, in the runner's
order. All who hear the event come first; then row by row what they have inserted, into named windows before streams.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from rollup.engine.compiling import compiled_row, predicate
from rollup.engine.index import Entry, Test
from rollup.engine.rows.acting import MergeInstance, OnSelectInstance, SetInstance, SplitInstance
from rollup.engine.rows.component import Component
from rollup.engine.rows.contexts.partitions import Partition
from rollup.engine.rows.instance import Instance, plain
from rollup.engine.rows.lazy import Awaiting, Gathering, Leaving
from rollup.engine.rows.pipelines.acting import (
    Telling,
    anew,
    askable,
    asking,
    changing,
    finds_one,
    newest,
    setting,
    taking,
)
from rollup.engine.rows.pipelines.causing import (
    Branch,
    Put,
    Waiting,
    draining,
    entering,
    putting,
    routed,
    splitting,
    with_what_it_causes,
)
from rollup.engine.rows.pipelines.choosing import (
    Counted,
    nothing,
    passing,
    to_those_concerned,
    to_those_known,
    to_those_within,
    unless,
)
from rollup.engine.rows.pipelines.combining import Apart, combines, combining, pairing_events, pairs_events
from rollup.engine.rows.pipelines.following import Follow, follow, gather
from rollup.engine.rows.pipelines.merging import merging, of_table
from rollup.engine.rows.pipelines.planning import (
    Planned,
    alone,
    gathers_here,
    here,
    merged_store,
    owned,
    stays,
    straight,
    timed,
    window,
    with_others,
)
from rollup.engine.rows.pipelines.reading import keeping, pairing, seeks, silent
from rollup.engine.rows.pipelines.steps import Take, Told, of_stream, waiting
from rollup.engine.rows.pipelines.tapes import Tape, TapeOf
from rollup.engine.rows.plans import StoreInput, StreamInput
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.selecting import PerRow, Total
from rollup.engine.rows.stores.named import Store
from rollup.engine.rows.stores.tables import Table
from rollup.engine.rows.windows.counted import KeepAll, Length

_MOST = 64
"""So many statements hear a stream at most: a pipeline is made anew whenever one of them comes or goes."""
_SEVERAL = 4 * _MOST
"""Among so many statements at most those are looked for that hear a stream."""
_CAUSED = 1000
"""So many rows an event may cause at most: what may cause more is counted by the runner."""


def planned(component: Component, stream: str) -> Planned | None:
    """The pipeline of a stream; None where there is none."""
    found = alone(component, stream)
    if found is not None:
        return with_others(found, component, Apart(found.times))
    try:
        routes = _Routes(component.root)
        return with_others(routes.planned(stream), component, routes.apart)
    except _Apart:
        return None


def planned_for_some(component: Component, stream: str) -> Planned | None:
    """The pipeline of those events of a stream that concern nothing but statements, such as patterns; None where there is none."""
    counted = Counted()
    try:
        routes = _Routes(component.root, counted=counted)
        found = with_others(routes.planned(stream), component, routes.apart)
    except _Apart:
        return None
    return replace(found, holds=lambda: counted.pays)


def within(where: Partition, stream: str, times: list[int], tape_of: TapeOf) -> Planned | None:
    """The way of a stream's events within a partition of a context, which alone hears them; None where there is none."""
    try:
        routes = _Routes(where, times, tape_of)
        found = routes.planned(stream)
    except _Apart:
        return None
    return replace(found, wholes={id(each.instance): each for each in routes.apart.whole if each.timed})


class _Apart(Exception):
    """Something is not the same for every event."""


class _Routes:
    """The streams and named windows that rows go through from one stream on, as a partition sees them: that of all statements
    without a context, or one of a context, where others hear the stream too. `counted`: those events of the stream that concern
    nothing but statements, which others may hear.
    """

    def __init__(
        self,
        where: Partition,
        times: list[int] | None = None,
        tape_of: TapeOf = Tape,
        counted: Counted | None = None,
    ) -> None:
        self._counted, self._first = counted, ""
        self._where, self._component, self._runner = where, where.component, where.component.runner
        self._inserts, self._waiting = Waiting(), Waiting()
        self._times, self._tape_of = list[int]() if times is None else times, tape_of
        self._telling = Telling(self._times)
        self.apart = Apart(self._times, tape_of)
        self.apart.routed = self._from_window
        self._tapes: list[Tape] = []
        self._windows: dict[str, tuple[Told, Take] | None] = {}
        """Each with how a row comes into it; None while it is looked at."""
        self._stores: dict[str, Store] = {}
        self._variables: dict[str, Tape] = {}
        self._hearers: list[Instance] = []
        self._guards: list[Test] = []
        self._known: dict[Instance, Take] = {}
        self._clocked = False
        self._streams: dict[str, tuple[Take | None, int] | None] = {}
        """What is done with a row of each, and how many rows that causes at most; None while it is looked at."""

    def planned(self, stream: str) -> Planned:
        """The pipeline of a stream."""
        self._first = stream
        take, most = self._of(stream)
        if take is None or most > _CAUSED:
            raise _Apart
        self._telling.read = any(map(_reads, self._hearers))
        whole = take
        if self._windows or len(self._streams) > 1:
            whole = with_what_it_causes(take, self._inserts, self._waiting, self._telling, self._times)
        stores = tuple(self._stores.values())
        if self._guards:
            whole = unless(self._guards, whole)
        conditions = self._component.hearing_variables if self._variables or self._guards else ()
        windows = [each[0] for each in self._windows.values() if each is not None]
        self.apart.routed = lambda instance, change: None  # where rows go is known by now
        return Planned(
            whole,
            False,
            tuple(self._tapes),
            stores,
            tuple(self._streams),
            self._times,
            conditions,
            self._clocked or any(told.clocked for told in windows),
            timed(windows),
            draining(self._inserts, self._waiting, self._telling, self._times),
        )

    def _of(self, stream: str) -> tuple[Take | None, int]:
        if stream in self._streams:
            known = self._streams[stream]
            if known is None:
                raise _Apart  # a circle
            return known
        self._streams[stream] = None
        takes, most = dict[Entry, Take](), 1
        entries, receivers = _in_turn(self._entries(stream)), dict[int, Instance]()
        for entry in entries:
            if not isinstance(entry.receiver, Instance):
                raise _Apart
            receivers[id(entry.receiver)] = entry.receiver
        self._hearers += receivers.values()
        tapes = {each: self._tape_of(instance.name) for each, instance in receivers.items()}
        for each, instance in receivers.items():
            if instance in self.apart.followed:
                raise _Apart  # its tape stands where it follows
            self.apart.heard(instance, tapes[each])
        for each in receivers.values():
            if isinstance(each, MergeInstance) and not isinstance(self._store(each.plan.store), Table):
                self._window(each.plan.store)  # says what changes before who has changed it
        for each, tape in tapes.items():  # they deliver before those who hear what they insert
            if isinstance(receiver := receivers[each], SetInstance) and not self._component.hearing_variables:
                self._variables_of(receiver)
            self._tapes.append(tape)
        changed = False
        for entry in entries:
            if (apart := self._apart_from(entry)) is not None:
                self._guards.append(apart)
                if isinstance(entry.receiver, SetInstance):
                    continue
            same = [each for each in entries if each.receiver is entry.receiver]
            hearing, causes = self._hearing(entry, tapes[id(entry.receiver)], same)
            most += causes
            taken = isinstance(entry.receiver, OnSelectInstance) and entry.receiver.deletes
            if taken and entry is not entries[-1]:
                raise _Apart  # what others say of the event comes after what leaves the window
            changes = takes and (taken or isinstance(entry.receiver, MergeInstance))
            takes[entry] = anew(hearing, self._times) if changes else hearing
            if changed and not changes and hearing is not nothing:
                takes[entry] = newest(hearing, self._times)
            changed = changed or changes
        made = self._streams[stream] = (self._to_those_concerned(stream, takes) if takes else None, most)
        return made

    def _entries(self, stream: str) -> list[Entry]:
        """What hears a stream: of a context, or where not all events are, of the first stream statements of the partition alone."""
        index, where = self._runner.indexes[stream], self._where
        if self._runner.changes.get(stream):
            raise _Apart
        if (where.context or self._counted is not None) and stream == self._first:
            if len(where.instances) > _SEVERAL:
                raise _Apart
            return [entry for each in where.instances.values() for entry in each.heard(stream)]
        if len(index) > (0 if where.context else _MOST):
            raise _Apart
        return index.entries

    def _apart_from(self, entry: Entry) -> Test | None:
        """The events that go one by one on a statement's account: those that set variables while outputs wait for some, and
        those that may bring such an output. None where there are none.
        """
        match entry.receiver:
            case SetInstance() if self._component.hearing_variables:
                found = passing(entry)
            case Awaiting() as instance:
                found = instance.may_bring
            case _:
                return None
        if found is None or len(self._streams) > 1 or self._where.context:
            raise _Apart
        return found

    def _to_those_concerned(self, stream: str, takes: Mapping[Entry, Take]) -> Take:
        if self._counted is not None and stream == self._first:
            return to_those_known(self._runner.indexes[stream], takes, self._counted)
        if not self._where.context:
            return to_those_concerned(self._runner.indexes[stream], takes)
        narrowed = self._where.narrow(stream)[0]
        return to_those_within(narrowed, takes)

    def _hearing(self, entry: Entry, tape: Tape, same: Sequence[Entry]) -> tuple[Take, int]:
        """What a statement does with an event, and how many rows that causes at most; `same`: all by which it hears the event."""
        match entry.receiver:
            case Gathering() as instance if here(instance, self._where):
                self._clocked = self._clocked or instance.plan.rate.ticks
                return waiting(instance), 0
            case SelectInstance() as instance if len(same) == 1 and gathers_here(instance, self._where):
                self._clocked = True
                return of_stream(instance, gather(instance)), 0
            case SelectInstance() as instance if not instance.asked and here(instance, self._where):
                if pairs_events(instance) or not _by_steps(instance):
                    return self._at_once(instance, tape, entry, same), 0
                if entry.input < len(instance.plan.inputs):
                    return self._select(instance, tape)
                return keeping(instance, entry.input), 0
            case SplitInstance() as instance if here(instance, self._where):
                return self._split(instance, tape)
            case MergeInstance() as instance if here(instance, self._where):
                return self._merge(instance, tape)
            case SetInstance() as instance if here(instance, self._where):
                return setting(instance, self._variables, tape), 0
            case OnSelectInstance() as instance if here(instance, self._where):
                return self._ask(instance, tape)
            case _:
                raise _Apart

    def _at_once(self, instance: SelectInstance, tape: Tape, entry: Entry, same: Sequence[Entry]) -> Take:
        """A join that hears an event, be it as several inputs, or a select that does all by itself."""
        inputs = {each.input: passing(each) for each in same}
        if entry is not same[0]:
            return self._known[instance] if any(inputs.values()) else nothing
        if len(same) == 1 and silent(instance, entry.input):
            found = keeping(instance, entry.input)
        elif pairs_events(instance):
            found = pairing_events(instance, inputs, tape)
        elif (whole := self.apart.by_itself(instance)) is not None:
            found = whole.taking(inputs)
        else:
            raise _Apart
        self._known[instance] = found
        return found

    def _merge(self, instance: MergeInstance, tape: Tape) -> tuple[Take, int]:
        store = merged_store(instance, self._where)
        if store is None:
            raise _Apart
        if isinstance(store, Table):
            return merging(instance, store, of_table(instance, store, tape)), 0
        told, _ = self._window(store.name)
        return changing(instance, told, tape, self._telling), 1

    def _variables_of(self, instance: SetInstance) -> None:
        """The variables that it sets say so before it does, each through a tape of its own."""
        plan, component, shared = instance.plan, self._component, self._runner.environment.variables
        if not plain(plan.trigger) or plan.lookups or plan.own_inputs or component.hearing_variables:
            raise _Apart
        if self._where.context:
            raise _Apart  # of which some may be its own
        for variable, _ in plan.settings:
            if variable in self._variables or variable not in shared:
                raise _Apart
            tape = self._variables[variable] = self._tape_of(component.said_by(variable))
            self._tapes.append(tape)

    def _ask(self, instance: OnSelectInstance, tape: Tape) -> tuple[Take, int]:
        plan = instance.plan
        if not askable(instance):
            raise _Apart
        if instance.deletes:
            if plan.target is not None or isinstance(self._store(instance.asks_of), Table):
                raise _Apart
            told, _ = self._window(instance.asks_of)
            if self._tapes.index(told.tape) < self._tapes.index(tape):
                raise _Apart  # a merge of the window has it say what changes before others do
            return taking(instance, told, tape, self._telling), 1
        store = self._store(instance.asks_of)
        if plan.target is None:
            return asking(instance, store, tape, None), 0
        if not finds_one(instance, store) or not plan.target.arriving or plan.target.leaving:
            raise _Apart  # nobody knows how many rows there will be
        put, most = self._into(plan.target.name)
        of, make = plan.target.of, instance.runner.row
        return asking(instance, store, tape, put and (lambda values: put(make(of(values))))), most

    def _select(self, instance: SelectInstance, tape: Tape) -> tuple[Take, int]:
        plan, target = instance.plan, instance.plan.target
        if (number := combines(instance)) is not None:
            return of_stream(instance, combining(instance, number, tape), number), 0
        input = plan.inputs[0 if plan.join is None else seeks(instance) or 0]
        assert isinstance(input, StreamInput)
        change = follow(instance, tape) if plan.join is None else pairing(instance, tape)
        if target is None:
            return of_stream(instance, change), 0
        if plan.join is not None:
            raise _Apart  # nobody knows how many rows there will be
        single = plan.grouping is None or len(plan.grouping.sets) == 1
        if not (single and plan.emitted == "new" and target.arriving and not target.leaving):
            raise _Apart
        if input.window is not None and type(input.window) not in (Length, KeepAll):
            raise _Apart  # one row comes and one leaves at most
        put, most = self._into(target.name, instance)
        most *= 1 if input.window is None or isinstance(instance.kind, (PerRow, Total)) else 2
        return of_stream(instance, change if put is None else routed(instance, change, put, tape)), most

    def _from_window(self, instance: SelectInstance, change: Follow) -> Follow | None:
        """One who follows a named window and inserts what it shows of rows that come."""
        plan, target = instance.plan, instance.plan.target
        single = plan.grouping is None or len(plan.grouping.sets) == 1
        if target is None or not (single and plan.emitted == "new" and target.arriving and not target.leaving):
            return None
        put, _ = self._into(target.name)
        return change if put is None else routed(instance, change, put)

    def _split(self, instance: SplitInstance, tape: Tape) -> tuple[Take, int]:
        plan = instance.plan
        if not plain(plan.trigger) or plan.lookups or plan.own_inputs or plan.same:
            raise _Apart
        branches, most = list[Branch](), 0
        for branch in plan.branches:
            if branch.unnest is not None:
                raise _Apart
            put, causes = self._into(branch.target)
            most += causes
            branches.append((predicate(branch.where), compiled_row(branch.columns), put))
        return splitting(instance, branches, tape), most

    def _into(self, target: str, source: SelectInstance | None = None) -> tuple[Put | None, int]:
        """How a row goes into a stream or a named window; None where nobody hears of it.

        `source`: of which statement over events it is; within a context others' rows may be those of other partitions.
        """
        if target not in self._component.stores:
            take, most = self._of(target)
            return (None if take is None else putting(self._waiting, take)), most
        if self._where.context and (source is None or not stays(source, target)):
            raise _Apart
        return putting(self._inserts, self._window(target)[1]), 1

    def _store(self, name: str) -> Store:
        """A store that is the partition's, or of no context one for all."""
        if not owned(name, self._where):
            raise _Apart
        return self._stores.setdefault(name, self._component.store(name, self._where))

    def _window(self, name: str) -> tuple[Told, Take]:
        """A named window with all who follow it, and how a row comes into it."""
        if name in self._windows:
            known = self._windows[name]
            if known is None:
                raise _Apart  # a circle
        else:
            self._windows[name] = None
            found = window(self._where, name, self._times, self.apart, self._tape_of)
            if found is None:
                raise _Apart
            told, tapes = found
            self._tapes += tapes
            self._stores[name] = told.store
            self._hearers += [consumer for consumer, _ in told.store.consumers]
            known = self._windows[name] = told, entering(told, self._telling)
        return known


def _by_steps(instance: SelectInstance) -> bool:
    """Whether what a select does with an event of its inputs, or of its sub-queries, is known step by step."""
    plan = instance.plan
    if type(instance) is not SelectInstance and (type(instance) is not Leaving or plan.join is not None):
        return False
    if combines(instance) is not None:
        return True
    input = plan.inputs[0 if plan.join is None else seeks(instance) or 0]
    followed = isinstance(input, StoreInput) and plan.join is None
    return straight(instance) and (followed or (isinstance(input, StreamInput) and not input.unnest))


def _reads(instance: Instance) -> bool:
    """Whether it may look at a named window."""
    return isinstance(instance, SelectInstance) and bool(instance.plan.lookups or instance.plan.join)


def _in_turn(entries: Sequence[Entry]) -> Sequence[Entry]:
    """As an event is told to them: their receivers as they stand, and of one receiver what its sub-queries keep first."""
    return sorted(entries, key=lambda each: (each.receiver.order, -each.input))
