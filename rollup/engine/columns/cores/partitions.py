"""How the events of a stream fall into the partitions of a level of a context: by their keys, by a hash, into categories.

Partitions are numbered in the order in which they begin. What tells one from the others is its key (of several fields a
struct), its remainder of the hash, or its label.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.covering import KEYS, against, filtered, first
from rollup.engine.columns.cores.keys import KeyCodes
from rollup.engine.columns.cores.projecting import Taken
from rollup.engine.columns.evaluate import arrow, evaluate, flags, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Expr
from rollup.engine.rows.contexts.levels import Categories, Context, Hashed, Keyed, Level, Lived
from rollup.engine.rows.plans import Filter
from rollup.engine.types import DataType, RowType


@dataclass(frozen=True)
class Division(ABC):
    """The context, its one level or its last one, and the events that belong to some partition."""

    context: str
    level: str
    filter: Filter
    codes: KeyCodes = field(default_factory=KeyCodes, compare=False, repr=False, kw_only=True)
    """What numbers the partitions that begin with events; those of several streams have one."""

    @abstractmethod
    def start(self) -> pa.Array:
        """The partitions that there are from the beginning."""

    def count(self, known: pa.Array) -> int:
        """How many partitions there are where so much is known."""
        return len(known)

    @abstractmethod
    def divided(self, known: pa.Array, taken: Taken) -> tuple[Ints | None, Ints, pa.Array]:
        """Which event is in which partition: places among those taken (None: each is in one), and the partition's number;
        and what is known then.
        """

    def wider(self, known: pa.Array, taken: Taken, stream: str) -> tuple[Batch, Ints | None, pa.Array]:
        """The events with the numbers of their partitions as a further field, one of several as often; the place of each
        among those taken (None: its own); and the partitions that there are then.
        """
        places, numbers, known = self.divided(known, taken)
        columns, times = taken.columns, taken.times
        if places is not None:
            columns = tuple(column.take(pa.array(places)) for column in columns)
            times = times[places]
        return Batch((*columns, pa.array(numbers)), np.ascontiguousarray(times), taken.now, stream), places, known

    def of_partitions(self, properties: Sequence[str], numbers: Ints, known: pa.Array) -> list[pa.Array]:
        """Some properties of the partitions with those numbers, which are looked up only for what is shown."""
        found = [self.property(name, known) for name in properties]
        return [pa.DictionaryArray.from_arrays(pa.array(numbers), each, safe=False) for each in found]

    def begins(self, known: pa.Array, wider: Batch) -> Ints:
        """The places of the events with which partitions begin, where those are `known` that there were before."""
        numbers = wider.columns[-1].to_numpy()
        before = np.maximum.accumulate(np.concatenate([[len(known) - 1], numbers]))[:-1]
        return np.flatnonzero(numbers > before)

    @abstractmethod
    def begun(self, keys: list[object]) -> pa.Array:
        """The partitions with those keys of the row executor, as they began."""

    def paths(self, known: pa.Array) -> list[tuple[Any, ...]]:
        """The partitions as the row executor tells them apart: a key of each level."""
        return [(key,) for key in self.keys_of(known)]

    @abstractmethod
    def keys_of(self, known: pa.Array) -> list[Any]:
        """The keys that the row executor has for what is known."""

    @property
    def all_at_once(self) -> bool:
        """Whether no partition begins with an event."""
        return True

    @property
    def names(self) -> set[str]:
        """The properties of a partition, without those that only some contexts have."""
        return {"name", "id"}

    def has(self, name: str) -> bool:
        """Whether it has a property, by its name or that with the level before it."""
        level, _, own = name.rpartition(".")
        return level in ("", self.level) and own in self.names

    def property(self, name: str, known: pa.Array) -> pa.Array:
        """A property of each partition."""
        level, _, own = name.rpartition(".")
        if own == "id":
            return pa.array(np.arange(self.count(known), dtype=np.int32))
        return pa.repeat(self.level if level else self.context, len(known)) if own == "name" else self.own(own, known)

    def own(self, name: str, known: pa.Array) -> pa.Array:
        """One of the further properties."""
        raise LookupError(name)


@dataclass(frozen=True)
class ByKeys(Division):
    """A partition is the values of some fields; null is a value like others."""

    places: tuple[int, ...]
    kinds: tuple[DataType, ...]

    @property
    def all_at_once(self) -> bool:
        """Each begins with one."""
        return False

    def start(self) -> pa.Array:
        """None."""
        return pa.array([], self._type)

    @property
    def _type(self) -> pa.DataType:
        kinds = [arrow(kind) for kind in self.kinds]
        return kinds[0] if len(kinds) == 1 else pa.struct([(f"key{i}", kind) for i, kind in enumerate(kinds, 1)])

    def keys_of(self, known: pa.Array) -> list[Any]:
        """The values of each."""
        return [tuple(key.values()) if isinstance(key, dict) else (key,) for key in known.to_pylist()]

    def keys(self, taken: Taken) -> pa.Array:
        """The key of each event."""
        columns = [taken.columns[place] for place in self.places]
        if len(columns) == 1:
            return columns[0]
        return pa.StructArray.from_arrays([*map(plain, columns)], fields=list(self._type))

    def divided(self, known: pa.Array, taken: Taken) -> tuple[Ints | None, Ints, pa.Array]:
        """By the fields."""
        return None, *self.codes.codes(known, self.keys(taken))

    def begun(self, keys: list[object]) -> pa.Array:
        """From the values of each."""
        rows = [tuple(key) for key in keys if isinstance(key, list | tuple)]
        if len(self.places) == 1:
            return pa.array([key for (key,) in rows], self._type)
        columns = [pa.array([row[place] for row in rows], each.type) for place, each in enumerate(self._type)]
        return pa.StructArray.from_arrays(columns, fields=list(self._type))

    @property
    def names(self) -> set[str]:
        """With the keys."""
        return {"name", "id", *(f"key{number}" for number in range(1, len(self.places) + 1))}

    def own(self, name: str, known: pa.Array) -> pa.Array:
        """A key."""
        return known if len(self.places) == 1 else known.field(int(name.removeprefix("key")) - 1)


@dataclass(frozen=True)
class ByHash(Division):
    """A partition is a remainder of a number; `ahead`: all of them begin at once."""

    value: Expr
    granularity: int
    ahead: bool

    @property
    def all_at_once(self) -> bool:
        """Where they begin ahead."""
        return self.ahead

    def start(self) -> pa.Array:
        """All of them or none."""
        return pa.array(np.arange(self.granularity if self.ahead else 0))

    def keys_of(self, known: pa.Array) -> list[Any]:
        """The remainders."""
        return known.to_pylist()

    def keys(self, taken: Taken) -> pa.Array:
        """The remainder of each event."""
        hashes = evaluate(self.value, taken.columns, len(taken.times))
        return pa.array(np.mod(hashes.to_numpy(zero_copy_only=False).astype(np.int64), self.granularity))

    def divided(self, known: pa.Array, taken: Taken) -> tuple[Ints | None, Ints, pa.Array]:
        """By the remainder."""
        shards = self.keys(taken)
        return (None, shards.to_numpy(), known) if self.ahead else (None, *self.codes.codes(known, shards))

    def begun(self, keys: list[object]) -> pa.Array:
        """From the remainders."""
        return pa.array(keys, pa.int64())


@dataclass(frozen=True)
class ByCategory(Division):
    """A partition is a condition; an event may meet several, or none."""

    categories: tuple[tuple[str, Expr], ...]

    def start(self) -> pa.Array:
        """Each of them."""
        return pa.array([label for label, _ in self.categories], pa.string())

    def divided(self, known: pa.Array, taken: Taken) -> tuple[Ints | None, Ints, pa.Array]:
        """By the conditions, of one event in their order."""
        rows = len(taken.times)
        met = np.empty((rows, len(self.categories)), bool)
        for place, (_, test) in enumerate(self.categories):
            met[:, place] = flags(passing(test, taken.columns, rows), rows)
        places, numbers = np.nonzero(met)
        return places, numbers, known

    def keys_of(self, known: pa.Array) -> list[Any]:
        """The places of their conditions."""
        return list(range(len(known)))

    def begun(self, keys: list[object]) -> pa.Array:
        """Each of them."""
        return self.start()

    @property
    def names(self) -> set[str]:
        """With the label."""
        return {"name", "id", "label"}

    def own(self, name: str, known: pa.Array) -> pa.Array:
        """The label."""
        return known


def of_level(
    context: str, name: str, level: Level, stream: str, kinds: list[DataType]
) -> ByKeys | ByHash | ByCategory | str:
    """How a level divides a stream whose fields are of those types, or the first reason against it."""
    found = _of_level(context, name, level, stream, kinds)
    if isinstance(found, str):
        return found
    return "a look-up in a context" if level.lookups else filtered(found.filter) or found


def _of_level(
    context: str, name: str, level: Level, stream: str, kinds: list[DataType]
) -> ByKeys | ByHash | ByCategory | str:
    match level:
        case Keyed(streams=streams, initiated=(), end=None):
            (one,) = [each for each in streams if each.filter.stream == stream]
            keys = tuple(kinds[place] for place in one.places)
            unknown = (f"a key of type {kind}" for kind in keys if kind.kind not in KEYS)
            return next(unknown, None) or ByKeys(context, name, one.filter, one.places, keys)
        case Hashed(streams=streams):
            ((filter, value),) = [each for each in streams if each[0].stream == stream]
            return against(value) or ByHash(context, name, filter, value, level.granularity, level.preallocate)
        case Categories():
            reason = first(against(test) for _, test in level.categories)
            return reason or ByCategory(context, name, level.filter, level.categories)
        case Keyed():
            return "a context with beginnings or ends"
        case _:
            return "a context that is neither keyed nor by a hash or categories"


def streams_of(level: Level) -> list[str]:
    """The streams whose events a level divides, each as often as it says how."""
    match level:
        case Keyed(streams=streams):
            return [each.filter.stream for each in streams]
        case Hashed(streams=streams):
            return [filter.stream for filter, _ in streams]
        case Categories(filter=filter):
            return [filter.stream]
        case _:
            return []


def division(context: Context, stream: str, type: RowType) -> Division | str:
    """How a context divides a stream of that type, which is the only one it divides, or the first reason against it: any other
    would begin partitions unheard.
    """
    if len(context.levels) != 1:
        return "a context of several levels"
    ((name, level),) = context.levels
    if not isinstance(level, Lived) and (divided := streams_of(level)) != [stream]:
        return "a context of several streams" if stream in divided else "a stream outside the context"
    return of_level(context.name, name, level, stream, list(type.fields.values()))
