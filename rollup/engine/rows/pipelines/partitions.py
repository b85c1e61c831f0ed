"""Streams that the partitions of a context hear, each event one of them: a pipeline within each, made once it has had some events.

What begins, ends or concerns several partitions goes the way of all other events.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from rollup.engine.index import Receiver
from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.engine.rows.contexts.levels import Context, Keyed
from rollup.engine.rows.contexts.nodes import Node
from rollup.engine.rows.contexts.partitions import Partition
from rollup.engine.rows.instance import Instance
from rollup.engine.rows.pipelines.planning import Planned
from rollup.engine.rows.pipelines.routing import within
from rollup.engine.rows.pipelines.steps import Take
from rollup.engine.rows.pipelines.tapes import Tape
from rollup.engine.rows.pipelines.wholly import Whole

_SOME = 16
"""After so many events a partition gets a pipeline, which costs as much as some ten of them."""
_FEW = 1024
"""So many pipelines of partitions are kept at least, before those of partitions that are over are looked for."""
_EXACT = (str, int)
"""Keys that are the same when they are equal."""


def in_partitions(component: Component, stream: str) -> Planned | None:
    """The pipeline of a stream that the partitions of one context hear, and nobody else; None of another stream."""
    index = component.runner.indexes[stream]
    if not component.contexts or component.runner.changes.get(stream):
        return None
    contexts = {_context(entry.receiver) for entry in index.entries} - {None}
    name = contexts.pop() if len(contexts) == 1 else None
    if not name:
        return None
    parts = _Parts(component, name, stream)
    return Planned(
        parts.take, False, parts.tapes, times=parts.times, clocked=True, wholes=parts.wholes, holds=lambda: parts.holds
    )


def _context(receiver: Receiver) -> str | None:
    """The context of one who hears events, empty for none; None for conditions, which are asked with each event."""
    match receiver:
        case Node():
            return receiver.runtime.context.name
        case Instance():
            return receiver.partition.context
        case _:
            return None


class _Parts:
    """The partitions of a context that have a pipeline. A statement has one tape in all of them; an event is of one alone, so
    that what a statement says of it has a place of its own.
    """

    def __init__(self, component: Component, context: str, stream: str) -> None:
        self._component, self._stream = component, stream
        self._runtime = component.contexts[context]
        self._index = component.runner.indexes[stream]
        self._stamp = component.changed
        self._seen = Counter[int]()
        self._takes: dict[int, Take] = {}
        self._key = _alone_by(self._runtime.context, stream)
        self._by_key: dict[Any, Take] = {}
        self._further: tuple[str, ...] = ()
        self._named: dict[str, Tape] = {}
        self._refused = False
        self.wholes = dict[int, Whole]()
        """Those of all partitions whose windows ask for instants."""
        self.tapes: list[Tape] = []
        """In the order in which they deliver; none before there is a pipeline."""
        self.times: list[int] = []

    @property
    def holds(self) -> bool:
        """Whether partitions still have such pipelines: nobody has begun to hear what they insert."""
        if self._refused or self._stamp != self._component.changed:
            return False
        indexes = self._component.runner.indexes
        return not any(len(indexes[stream]) for stream in self._further)

    @property
    def take(self) -> Take:
        """An event, where a partition that it does not begin or end alone hears it and has a pipeline."""
        key, known, take = self._key, self._by_key.get, self._take
        if key is None:
            return take

        def by_key(place: int, row: Row) -> bool:
            found = known(row.values[key])
            return take(place, row) if found is None else found(place, row)

        return by_key

    def _take(self, place: int, row: Row) -> bool:
        partition: Partition | None = None
        for entry in self._index.matches(row):
            match entry.receiver:
                case Node() as node if node.knows(self._stream, entry.inputs, row):
                    continue
                case Instance(partition=where) if partition is None or partition is where:
                    partition = where
                case _:
                    return False
        if partition is None:
            return True
        found = self._of(partition, row)
        return found is not None and found(place, row)

    def _of(self, partition: Partition, row: Row) -> Take | None:
        """The way within a partition; None before it has had some events, or where there is none in any."""
        number = partition.number
        found = self._takes.get(number)
        if found is not None or self._refused:
            return found
        self._seen[number] += 1
        if self._seen[number] < _SOME:
            return None
        del self._seen[number]
        found = self._made(partition)
        if found is None:
            self._refused = True
            return None
        self._takes[number] = found
        if self._key is not None and type(value := row.values[self._key]) in _EXACT and self._exactly(partition, value):
            self._by_key[value] = found
        if len(self._takes) > max(_FEW, 2 * len(self._runtime.partitions)):
            self._takes = {each: take for each, take in self._takes.items() if each in self._runtime.partitions}
            for each in [each for each, whole in self.wholes.items() if not whole.instance.alive]:
                del self.wholes[each]
        return found

    def _made(self, partition: Partition) -> Take | None:
        if any(each.has_patterns for each in partition.instances.values()):
            return None
        plan = within(partition, self._stream, self.times, self._tape_of)
        further = () if plan is None else plan.streams[1:]
        if plan is None or (self.tapes and (list(plan.tapes) != self.tapes or further != self._further)):
            return None
        self.tapes[:], self._further = plan.tapes, further
        self.wholes.update(plan.wholes)
        return plan.take

    def _tape_of(self, statement: str) -> Tape:
        return self._named.setdefault(statement, Tape(statement))

    def _exactly(self, partition: Partition, value: Any) -> bool:
        """Whether what hears events of a partition hears none but those with this key."""
        key = self._key
        entries = (entry for each in partition.instances.values() for entry in each.heard(self._stream))
        return key is not None and all(entry.equals.get(key) == value for entry in entries)


def _alone_by(context: Context, stream: str) -> int | None:
    """The place of the one field whose value says which partition an event is of, as long as that lives, which is for ever."""
    match context.levels:
        case ((_, Keyed(streams=streams, end=None)),):
            places = next((each.places for each in streams if each.filter.stream == stream), ())
            return places[0] if len(places) == 1 else None
        case _:
            return None
