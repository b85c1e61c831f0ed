"""The state of a statement in a context whose partitions are shown each by itself, read from the row executor."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.apart import Apart
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.living import Living
from rollup.engine.columns.cores.parts import REST
from rollup.engine.columns.rates.beats import Beats, Clocks
from rollup.engine.columns.rates.each_content import EachContent
from rollup.engine.columns.rates.each_first import EachFirst, EachFirstOfGroups
from rollup.engine.columns.rates.each_others import EachOthers
from rollup.engine.columns.rates.each_part import EachPart
from rollup.engine.columns.rates.of_each import OfEach
from rollup.engine.columns.rates.units import Units
from rollup.engine.columns.running.adopting_folds import INPUTS, KEPT
from rollup.engine.columns.running.adopting_lives import living_state
from rollup.engine.columns.running.adopting_partitions import groups_in, partitioned_state
from rollup.engine.compiling import compiled_row
from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.engine.rows.lazy import Lazy
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.pergroup import PerGroup
from rollup.engine.rows.selects.projecting import Out
from rollup.engine.rows.selects.rates import INSERTED, REMOVED, Saved
from rollup.engine.rows.windows.keyed import Grouped
from rollup.engine.state import State

Key = tuple[Any, ...]
Found = tuple[int, Key | None, Out | None, int]
"""A row of a partition and a group (None: that is the partition) that comes (1) or leaves (-1); None is one that does not
fulfil `having`."""
Seen = tuple[int, Key, Sequence[Any]]
"""Of a partition and a group (nothing: that is the partition) the values of its aggregates."""


def of_each_state(core: OfEach, component: Component, name: str) -> State:
    """The partitions, with what their outputs keep."""
    context = component.statements[name].context
    partitions = {0: component.root} if context is None else component.contexts[context].partitions
    numbers = sorted(partitions)
    instances = [each for number in numbers if isinstance(each := partitions[number].instances[name], SelectInstance)]
    for each in instances:
        if isinstance(each, Lazy):
            each.settle()
    own = Adopted(component, name, numbers, instances)
    match core:
        case EachPart():
            return _each_part(core, own)
        case EachContent():
            return _content(core, own)
        case EachOthers():
            return _others(core, own)
        case EachFirst():
            return core.state(_inner(core, own, ()), _clocks(core.beats, own.outputs))
        case EachFirstOfGroups():
            return _first_of_groups(core, own)
        case _:
            raise NotImplementedError(type(core).__name__)


@dataclass(frozen=True)
class Adopted:
    """The instances of a statement in the partitions with those numbers."""

    component: Component
    name: str
    numbers: Sequence[int]
    instances: Sequence[SelectInstance]

    @cached_property
    def outputs(self) -> list[Any]:
        """What is kept of the outputs of each, by now."""
        return [each.snapshot()[KEPT][1] for each in self.instances]

    def named(self, found: Sequence[Seen]) -> list[Key]:
        """The groups that are not partitions, by their partitions and keys."""
        return [(self.numbers[place], *key) for place, key, _ in found if key]

    def placed(self, found: Sequence[Seen], units: dict[Key, int]) -> list[tuple[int, int]]:
        """The places of partitions with the numbers of the groups."""
        return [(place, units[self.numbers[place], *key] if key else place) for place, key, _ in found]


def _each_part(core: EachPart, own: Adopted) -> State:
    """The partitions with their clocks, what waits for their outputs, and what is there."""
    instances = own.instances
    shown = [each.kind.current(None) for each in instances] if core.total else []
    changed = [place for place, each in enumerate(instances) if each.outputs.waiting]
    before = _aggregates(core, own)
    for each in instances:
        each.outputs.settle()
    now = _aggregates(core, own, before)
    if core.total and not core.lazy:
        shown = [each.kind.current(None) for each in instances]
    waiting = [
        found for place, each in enumerate(instances) for found in _waiting(core, place, each, own.outputs[place])
    ]
    if core.total and core.lazy and core.shows != "everything":  # what is shown next, be it that nothing more comes
        waiting += [(place, None, instances[place].kind.current(None), 1) for place in changed]
    latest = [(place, None, out, 1) for place, out in enumerate(shown)]
    if core.of_groups and core.shows == "there":
        latest = [found for place, each in enumerate(instances) for found in _groups(place, each)]
    wanted = [(own.numbers[place], *key) for place, key, _, _ in (*waiting, *latest) if key is not None]
    inner = _inner(core, own, [*wanted, *own.named([*before, *now])])
    units = _units(core, inner)
    tables = [_table(core, found, own.numbers, units) for found in (waiting, latest)]
    if core.values:
        tables = [
            pa.concat_tables([table, _seen(core, own.placed(found, units), found)])
            for table, found in zip(tables, (now, before), strict=True)
        ]
    return core.state(inner, _clocks(core.beats, own.outputs), *tables)


def _content(core: EachContent, own: Adopted) -> State:
    """The partitions with their clocks, and the aggregates of their groups."""
    found = _aggregates(core, own)
    inner = _inner(core, own, own.named(found))
    latest = core.rows(own.placed(found, _units(core, inner)), [values for *_, values in found])
    keys = list(_standing(core, own)) if core.keys else []
    known = core.known([place for place, _ in keys], [key for _, key in keys])
    return core.state(inner, _clocks(core.beats, own.outputs), latest, known)


def _others(core: EachOthers, own: Adopted) -> State:
    """The partitions with their clocks, what waits for their outputs, and the newest row of each group."""
    waiting, newest = list[Found](), list[tuple[int, Key, Row, bool]]()
    for place, (each, outputs) in enumerate(zip(own.instances, own.outputs, strict=True)):
        (come, leave, _), seen = outputs[Saved.COLLECTED]
        waiting += [(place, None, out, sign) for outs, sign in ((come, 1), (leave, -1)) for out in outs]
        there = {tuple(key) for key in seen}
        newest += [(place, tuple(key), row, tuple(key) in there) for key, (row,) in each.snapshot()[KEPT][0][1]]
    named = [(own.numbers[place], *key) for place, key, *_ in newest]
    inner = _inner(core, own, named)
    units, folded = _units(core, inner), core.core.inner
    assert isinstance(folded, Folded)
    fold = folded.lines.fold
    values = {
        key: fold.values(slots)
        for place, each in enumerate(own.instances)
        for key, slots, rows in groups_in(folded, own.numbers[place], each.snapshot()[KEPT][0], False)
        if rows > 0 or not folded.forgets
    }
    empty = core.start(0).tables
    shown = [out.row.values for *_, out, _ in waiting if out is not None]
    kept = core.rows(
        empty["waiting"], [(place, place, sign) for place, _, _, sign in waiting], shown, [True] * len(shown)
    )
    rows = [
        (*row.values, own.numbers[place], *values.get(key, fold.values(fold.start())))
        for key, (place, _, row, _) in zip(named, newest, strict=True)
    ]
    places = [(place, units[key], 1) for key, (place, *_) in zip(named, newest, strict=True)]
    latest = core.rows(empty["latest"], places, rows, [seen for *_, seen in newest])
    return core.state(inner, _clocks(core.beats, own.outputs), kept, latest)


def _standing(core: EachContent, own: Adopted) -> Iterator[tuple[int, Key]]:
    """The keys of the windows of partitions, as they came."""
    inner = core.core.inner
    assert isinstance(inner, Apart)
    told_by = compiled_row(core.keys)
    for place, each in enumerate(own.instances):
        kept = each.snapshot()[INPUTS][0][0] or ()
        if isinstance(inner.of_one, Grouped):
            yield from ((place, tuple(key)) for key, _ in kept)
        else:
            yield from ((place, told_by((row,), (), None)) for row in kept)


def _aggregates(core: EachPart | EachContent, own: Adopted, before: Sequence[Seen] = ()) -> list[Seen]:
    """The values of the groups of each partition, where one sees them as they were at an output; with those that were there
    `before`, and have emptied since.
    """
    inner, found = core.core.inner, list[Seen]()
    if not core.values:
        return found
    assert isinstance(inner, Folded)
    for place, each in enumerate(own.instances):
        for (_, *key), slots, rows in groups_in(inner, place, each.snapshot()[KEPT][0], False):
            if rows or not inner.forgets:
                found.append((place, tuple(key), inner.lines.fold.values(slots)))
    there, fold = {(place, key) for place, key, _ in found}, inner.lines.fold
    gone = [(place, key) for place, key, _ in before if (place, key) not in there]
    return [*found, *((*each, fold.values(fold.start())) for each in gone)]


def _seen(core: EachPart, places: Sequence[tuple[int, int]], found: Sequence[Seen]) -> pa.Table:
    """Rows that are not shown, of which the values of their groups are seen."""
    return core.rows([(*each, 1) for each in places], [None] * len(found), [values for *_, values in found])


def _first_of_groups(core: EachFirstOfGroups, own: Adopted) -> State:
    """The partitions, with the interval of each group."""
    by_group = isinstance(core.core.inner, Folded) and core.core.inner.by_group
    found = [
        ((number, *(unit[1] if by_group else unit)), counts)
        for number, outputs in zip(own.numbers, own.outputs, strict=True)
        for unit, counts in outputs[Saved.UNITS]
    ]
    inner = _inner(core, own, [key for key, _ in found])
    units = _units(core, inner)
    columns = [np.zeros(len(units), bool), *(np.zeros(len(units), np.int64) for _ in range(3))]
    for key, (come, left, since) in found:
        for column, value in zip(columns, (True, come, since, left), strict=True):
            column[units[key]] = value
    return core.state(inner, Units.of(columns))


def _inner(core: OfEach, own: Adopted, wanted: Sequence[Key]) -> State:
    if isinstance(core.core, Living):
        return living_state(core.core, own.component, own.name, wanted)
    return partitioned_state(core.core, own.component, own.name, wanted)


def _units(core: OfEach, state: State) -> dict[Key, int]:
    """The numbers of groups by their partitions and keys, where they are not the partitions."""
    inner = core.core.inner
    if not isinstance(inner, Folded) or len(inner.keys) < 2:
        return {}
    keys = whole(state.held()["core"].tables["groups"].column("key")).to_pylist()
    return {tuple(key.values()): place for place, key in enumerate(keys)}


def _table(core: EachPart, found: Sequence[Found], numbers: Sequence[int], units: dict[Key, int]) -> Any:
    inner = core.core.inner
    rows = isinstance(inner, Folded) and not inner.keys  # of a window, which are of no group and so all of one
    places = [
        (place, -1 if core.values else 0 if rows else place if key is None else units[numbers[place], *key], sign)
        for place, key, _, sign in found
    ]
    return core.rows(places, [None if out is None else (*out.row.values, *out.order) for _, _, out, _ in found])


def _clocks(beats: Beats, outputs: Sequence[Any]) -> Clocks:
    """When each partition is due next, how many rows have come and left since its last output, where these bring one, and whether
    its interval has been shown.
    """
    found = list[tuple[int, int, int, int]]()
    for each in outputs:
        due, counts = each[Saved.DUE], each[Saved.COUNTS]
        inserted, removed = (counts[INSERTED], counts[REMOVED]) if beats.limit else (0, 0)
        found.append((due if beats.span and due is not None else REST, inserted, removed, int(not each[Saved.OPEN])))
    return Clocks(*np.array(found, np.int64).reshape(-1, 4).T.copy())


def _waiting(core: EachPart, place: int, instance: SelectInstance, outputs: Any) -> Iterator[Found]:
    """The rows of a partition that its next output may show."""
    collected = outputs[Saved.COLLECTED]
    match core.shows:
        case "everything":
            come, leave, touched = collected
            if core.total and touched:  # be it that nothing passed
                yield place, None, None, 1
            for outs, sign in ((come, 1), (leave, -1)):
                for out in outs:
                    yield place, None, out, sign
        case "last" if core.of_groups:
            for unit, _ in collected:
                yield place, unit[1], instance.kind.current(unit), 1
        case "last" if not core.total:
            for outs, sign in zip(collected, (1, -1), strict=True):
                for key, out in outs:
                    yield place, key or None, out, sign
        case _:
            return


def _groups(place: int, instance: SelectInstance) -> Iterator[Found]:
    """The row of each group of a partition."""
    kind = instance.kind
    assert isinstance(kind, PerGroup)
    for unit in kind.groups():
        yield place, unit[1], kind.current(unit), 1
