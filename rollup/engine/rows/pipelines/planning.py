"""Which streams have a pipeline: those whose events are heard by statements that do the same with each of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from operator import itemgetter

from rollup.engine.expressions import Field
from rollup.engine.rows.acting import MergeInstance
from rollup.engine.rows.component import Component
from rollup.engine.rows.contexts.levels import Keyed
from rollup.engine.rows.contexts.partitions import Partition
from rollup.engine.rows.instance import Instance, plain
from rollup.engine.rows.keyed import ByKey
from rollup.engine.rows.lazy import Awaiting, Gathering, Leaving
from rollup.engine.rows.pipelines.combining import Apart
from rollup.engine.rows.pipelines.following import Follow, follow, gather, observing, of_passing
from rollup.engine.rows.pipelines.merging import against, merging, of_table, of_window
from rollup.engine.rows.pipelines.reading import idle, looks, seeks
from rollup.engine.rows.pipelines.steps import Take, Told, inserting, of_stream, waiting
from rollup.engine.rows.pipelines.tapes import Tape, TapeOf
from rollup.engine.rows.pipelines.wholly import Whole
from rollup.engine.rows.plans import Finish, Input, StoreInput, StreamInput
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.rows.stores.named import NamedWindow, Store
from rollup.engine.rows.stores.tables import Table


@dataclass(frozen=True)
class Planned:
    """The way of a stream's events; `filtered`: not all of them concern the statement; `stores`: what it changes.

    `times` get the instant of each place; `streams`: all through which rows go, where those are more than the one;
    `conditions`: who is told when variables are set; `clocked`: an event may make somebody ask for an instant; `timed`: who
    lets rows out of windows by the clock.
    """

    take: Take
    filtered: bool
    tapes: Sequence[Tape]
    stores: tuple[Store, ...] = ()
    streams: tuple[str, ...] = ()
    times: list[int] = field(default_factory=list[int])
    conditions: Collection[int] = ()
    clocked: bool = False
    timed: tuple[Told | Whole, ...] = ()
    caused: Callable[[int], None] | None = None
    """What rows that have left by the clock, at a place, have put on its way."""
    wholes: Mapping[int, Whole] = field(default_factory=dict[int, Whole])
    """By `id` of the select, those whose windows ask for instants by themselves."""
    holds: Callable[[], bool] | None = None
    """Of one that is for some of the events alone, whoever begins or ends to hear others: whether it still is for enough."""


def timed(some: Iterable[Told | Whole]) -> tuple[Told | Whole, ...]:
    """Those of some named windows and selects that let rows out by the clock."""
    return tuple(each for each in some if each.timed)


def with_others(plan: Planned, component: Component, apart: Apart) -> Planned:
    """A pipeline that lets rows out of the other named windows of the component, too: they do before an event comes."""
    stores, tapes, others = [*plan.stores], [*plan.tapes], list[Told]()
    for name in component.stores:
        store = _timed_window(component, name)
        if store is None or store in stores or (found := window(component.root, name, plan.times, apart)) is None:
            continue
        told, own = found
        stores.append(store)
        tapes += own
        others.append(told)
    all_timed = (*plan.timed, *others, *timed(apart.whole))
    clocked = plan.clocked or bool(apart.whole)
    return replace(plan, stores=tuple(stores), tapes=tuple(tapes), timed=all_timed, clocked=clocked)


def _timed_window(component: Component, name: str) -> NamedWindow | None:
    store = component.store(name, component.root) if component.context_of(name) is None else None
    return store if isinstance(store, NamedWindow) and store.window.timed else None


def alone(component: Component, stream: str) -> Planned | None:
    """The pipeline of a stream that one statement hears, which inserts into a named window at most; None where it has none."""
    runner = component.runner
    index = runner.indexes[stream]
    if len(index) != 1 or runner.changes.get(stream):
        return None
    (entry,) = index.entries
    narrowed = bool(entry.equals) or entry.test is not None
    match entry.receiver if entry.input == 0 else None:
        case Gathering() as instance if instance.alive and not isinstance(instance, Awaiting):
            return Planned(waiting(instance), narrowed, (Tape(instance.name),), clocked=instance.plan.rate.ticks)
        case SelectInstance() as instance if type(instance) is SelectInstance and instance.alive:
            return _select(instance, component) if here(instance, component.root) else _in_partition(instance, narrowed)
        case MergeInstance() as instance if here(instance, component.root):
            return _merge(instance, component)
        case _:
            return None


def here(instance: Instance, where: Partition) -> bool:
    """Whether it is the one of its statement in a partition."""
    return instance.alive and instance.partition is where


def owned(name: str, where: Partition) -> bool:
    """Whether a store is that of a partition; one for all is the root's."""
    return where.component.context_of(name) == (where.context or None)


def _select(instance: SelectInstance, component: Component) -> Planned | None:
    plan, tape = instance.plan, Tape(instance.name)
    (input, *others), target = plan.inputs, plan.target
    if others or not isinstance(input, StreamInput) or input.unnest or not straight(instance):
        return None
    change = follow(instance, tape)
    if target is None:
        return Planned(of_stream(instance, change), _filtered(input), (tape,))
    alone = plan.grouping is None or len(plan.grouping.sets) == 1
    single = plain(input) and alone and plan.emitted == "new"
    times = list[int]()
    found = window(component.root, target.name, times) if single and target.arriving and not target.leaving else None
    if found is None:
        return None
    told, tapes = found
    take = inserting(instance, change, told, tape)
    filtered = _filtered(input)
    return Planned(
        take, filtered, (tape, *tapes), (told.store,), times=times, clocked=told.clocked, timed=timed((told,))
    )


def _in_partition(instance: SelectInstance, narrowed: bool) -> Planned | None:
    """A select in the only partition that hears the stream; whether some events do not concern it."""
    plan, tape = instance.plan, Tape(instance.name)
    (input, *others) = plan.inputs
    if others or not isinstance(input, StreamInput) or input.unnest or plan.target is not None or plan.into is not None:
        return None
    if straight(instance):
        return Planned(of_stream(instance, follow(instance, tape)), narrowed, (tape,))
    if _gathers(instance) and plain(input):
        return Planned(of_stream(instance, gather(instance)), narrowed, (tape,), clocked=True)
    return None


def _merge(instance: MergeInstance, component: Component) -> Planned | None:
    plan, tape = instance.plan, Tape(instance.name)
    store = merged_store(instance, component.root)
    if isinstance(store, Table):
        take = merging(instance, store, of_table(instance, store, tape))
        return Planned(take, _filtered(plan.trigger), (tape,), (store,))
    times = list[int]()
    found = window(component.root, plan.store, times) if store is not None else None
    if found is None:
        return None
    told, (own, *rest) = found
    take = merging(instance, told.store, of_window(instance, told, tape))
    filtered, tapes = _filtered(plan.trigger), (own, tape, *rest)
    return Planned(take, filtered, tapes, (told.store,), times=times, clocked=told.clocked, timed=timed((told,)))


def merged_store(instance: MergeInstance, where: Partition) -> Store | None:
    """The store of a merge that does one thing to a row that is found by what it holds; None for another merge."""
    plan = instance.plan
    if not plain(plan.trigger) or not owned(plan.store, where):
        return None
    store = where.component.store(plan.store, where)
    keys = store.spec.keys if isinstance(store, Table) else ()
    if against(plan, keys) is not None or not (plan.always or ByKey(plan.where, 1).key(store)[0]):
        return None
    return None if isinstance(store, Table) and len(store.unique) > 1 else store


def window(
    where: Partition,
    name: str,
    times: list[int],
    apart: Apart | None = None,
    tape_of: TapeOf = Tape,
) -> tuple[Told, Sequence[Tape]] | None:
    """What happens to a named window that a partition sees, with its tape and those of all who follow it; None where not all of
    them can.

    `times`: the instant of each place; `apart`: who needs places of its own; None: nobody may; `tape_of`: that of a statement.
    """
    component = where.component
    if name not in component.stores or not owned(name, where) or name in component.runner.indexes:
        return None
    store = component.store(name, where)
    if not isinstance(store, NamedWindow) or store.window.forces:
        return None
    consumers: list[Follow] = [observing(each) for each in store.observers.values()]
    tapes, clocked, parted = [tape_of(store.statement)], False, False
    for consumer, places in groupby(store.consumers, itemgetter(0)):
        if type(consumer) is not SelectInstance or not here(consumer, where):
            return None
        numbers = [number for _, number in places if not idle(consumer, number)]
        if not numbers:
            continue
        change = _following(consumer, tapes, apart, tape_of)
        if change is None and apart is not None:
            change, parted = apart.following(consumer, numbers, tapes), True
        if change is None:
            return None
        consumers.append(apart.at_its_own(change) if apart is not None and parted else change)
        clocked = clocked or consumer.clocked
    return Told(store, tapes[0], consumers, times, clocked), tapes


def _following(consumer: SelectInstance, tapes: list[Tape], apart: Apart | None, tape_of: TapeOf) -> Follow | None:
    """What one who follows a named window does, with a tape where that says something; None where it is no such select."""
    plan = consumer.plan
    if len(plan.inputs) != 1 or (plan.target is not None and (apart is None or not straight(consumer))):
        return None
    if straight(consumer):
        tapes.append(tape_of(consumer.name))
        change = follow(consumer, tapes[-1])
        if plan.target is not None and apart is not None:
            change = apart.routed(consumer, change)
            if change is None:
                return None
    elif _gathers(consumer):
        change = gather(consumer)
    else:
        return None
    (input,) = plan.inputs
    return of_passing(consumer, input.condition if isinstance(input, StoreInput) else None, change)


def straight(instance: SelectInstance) -> bool:
    """Whether what a change makes is known from the change and what is there to look at, and leaves with it."""
    plan, window = instance.plan, instance.inputs[0].window
    if not looks(instance) or (plan.join is not None and seeks(instance) is None):
        return False
    whole = plan.rate == Rate() and plan.finish == Finish() and instance.outputs.direct
    quiet = window is None or not window.timed or isinstance(instance, Leaving)
    return whole and not instance.inputs[0].remembers and quiet


def _gathers(instance: SelectInstance) -> bool:
    """Whether what a change makes of one input waits until the clock brings it out."""
    plan = instance.plan
    waits = plan.rate.by_clock and plan.rate.mode != "first" and plan.join is None
    return waits and looks(instance) and not instance.inputs[0].remembers


def gathers_here(instance: SelectInstance, where: Partition) -> bool:
    """Whether it does, of a partition, with the events of a stream, and nobody lets rows out of its window meanwhile."""
    if type(instance) is not SelectInstance or instance.asked or not here(instance, where):
        return False
    window, input = instance.inputs[0].window, instance.plan.inputs[0]
    alone = isinstance(input, StreamInput) and not input.unnest and not instance.plan.own_inputs
    return alone and (window is None or not window.timed) and _gathers(instance)


def _filtered(input: Input) -> bool:
    return not isinstance(input, StreamInput) or bool(input.filter.equals) or input.filter.test is not None


def stays(instance: SelectInstance, window: str) -> bool:
    """Whether rows that a statement inserts into a window of its context, of events of a stream, are all of its partition: they
    have the values by which that is told from all others.
    """
    context, where = instance.component.context(instance.partition.context), instance.partition
    target, (input, *_) = instance.plan.target, instance.plan.inputs
    if context is None or not all(isinstance(level, Keyed) for _, level in context.levels):
        return False
    if target is None or not isinstance(input, StreamInput):
        return False
    equals, test = instance.store(window).narrowing()
    own, further = where.narrow(input.filter.stream)
    if not equals or test is not None or further is not None:
        return False
    return all(
        (source := _source(instance, target.columns[place])) is not None and own.get(source) == value
        for place, value in equals.items()
    )


def _source(instance: SelectInstance, column: int | None) -> int | None:
    """Where the event's field stands that a column is."""
    projection = instance.plan.projection
    if column is None or projection.whole:
        return column
    match projection.columns[column]:
        case Field(input=0, index=place):
            return place
        case _:
            return None
