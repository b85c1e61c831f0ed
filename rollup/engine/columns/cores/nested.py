"""How the events of a stream fall into the partitions of a context, and of one of several levels: a partition is one of each.

The partitions of an outer level begin with events, each of which is in one; within one, those of the levels behind begin
all at once, and are numbered one behind the other.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch
from rollup.engine.columns.cores.partitions import ByCategory, ByHash, ByKeys, Division, of_level, streams_of
from rollup.engine.columns.cores.projecting import Taken, accepted
from rollup.engine.columns.evaluate import flags, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.rows.contexts.levels import Context, Lived
from rollup.engine.types import RowType


@dataclass(frozen=True)
class Nested(Division):
    """`outer`: the levels down to the last one whose partitions begin with events; `inner`: those within, which have all of
    theirs at once. What is known is what the partitions of the outer levels are told by.
    """

    outer: tuple[ByKeys | ByHash, ...]
    inner: tuple[ByHash | ByCategory, ...]

    @property
    def all_at_once(self) -> bool:
        """Whether it is so of all levels."""
        return not self.outer

    @cached_property
    def _sizes(self) -> tuple[int, ...]:
        """How many partitions each of the inner levels has."""
        return tuple(len(level.start()) for level in self.inner)

    @cached_property
    def _within(self) -> int:
        """How many there are within one of the outer levels."""
        return math.prod(self._sizes)

    @property
    def _unseeing(self) -> bool:
        """Whether the event with which partitions begin is in none of them: so it is within categories that begin."""
        return bool(self.outer) and any(isinstance(level, ByCategory) for level in self.inner)

    def start(self) -> pa.Array:
        """Those of the inner levels, where there is no other."""
        return self._joined([level.start().slice(0, 0) for level in self.outer]) if self.outer else pa.nulls(1)

    @staticmethod
    def _joined(keys: Sequence[pa.Array]) -> pa.Array:
        """The keys of the outer levels as one."""
        if len(keys) == 1:
            return keys[0]
        return pa.StructArray.from_arrays([*map(plain, keys)], names=[f"level{i}" for i in range(len(keys))])

    def count(self, known: pa.Array) -> int:
        """Each of the outer levels as often as there are within."""
        return len(known) * self._within

    def divided(self, known: pa.Array, taken: Taken) -> tuple[Ints | None, Ints, pa.Array]:
        """By one level after the other."""
        found = replace(taken, places=np.arange(len(taken.times)), everything=True)
        numbers, before = np.zeros(len(taken.times), np.int64), len(known)
        if self.outer:
            for level in self.outer[1:]:
                found = _at(found, _passing(level, found))
            numbers, known = self.codes.codes(known, self._joined([level.keys(found) for level in self.outer]))
        if self._unseeing and len(known) > before:
            seen = np.flatnonzero(~_fresh(before, numbers))
            found, numbers = _at(found, seen), numbers[seen]
        for place, (level, size) in enumerate(zip(self.inner, self._sizes, strict=True)):
            if self.outer or place:
                some = _passing(level, found)
                found, numbers = _at(found, some), numbers if some is None else numbers[some]
            places, own, _ = level.divided(level.start(), found)
            found, numbers = _at(found, places), (numbers if places is None else numbers[places]) * size + own
        return None if found.everything else found.places, numbers, known

    def begins(self, known: pa.Array, wider: Batch) -> Ints:
        """The first of each partition of the outer levels."""
        if self._unseeing:
            return np.empty(0, np.int64)
        return np.flatnonzero(_fresh(len(known), wider.columns[-1].to_numpy() // self._within))

    def begun(self, keys: list[object]) -> pa.Array:
        """From the keys of all levels."""
        if not self.outer:
            return self.start()
        paths = [path for path in keys[:: self._within] if isinstance(path, list | tuple)]
        return self._joined([level.begun([path[i] for path in paths]) for i, level in enumerate(self.outer)])

    def keys_of(self, known: pa.Array) -> list[Any]:
        """Of the outer levels a key each."""
        if not self.outer:
            return [()]
        columns = [known] if len(self.outer) == 1 else known.flatten()
        return list(zip(*(level.keys_of(each) for level, each in zip(self.outer, columns, strict=True)), strict=True))

    def paths(self, known: pa.Array) -> list[tuple[Any, ...]]:
        """A key of each level; those within stand one behind the other."""
        within = list(product(*(level.keys_of(level.start()) for level in self.inner)))
        return [(*outer, *inner) for outer in self.keys_of(known) for inner in within]

    def has(self, name: str) -> bool:
        """Of the context its name and number, of a level what it has by itself; the number is that of the last."""
        level, _, own = name.rpartition(".")
        if not level:
            return own in ("name", "id")
        found = self._level(level)
        return found is not None and own in found.names and (own != "id" or level == self.level)

    def _level(self, name: str) -> ByKeys | ByHash | ByCategory | None:
        return next((each for each in (*self.outer, *self.inner) if each.level == name), None)

    def property(self, name: str, known: pa.Array) -> pa.Array:
        """A property of each partition."""
        level, _, own = name.rpartition(".")
        if own == "name":
            return pa.repeat(level or self.context, self.count(known))
        return super().property(own, known) if own == "id" else self._own(level, own, known)

    def _own(self, level: str, name: str, known: pa.Array) -> pa.Array:
        """What the partitions of a level have, for each that lies in one."""
        numbers = np.arange(self.count(known))
        for each, within in zip(self.inner, self._behind, strict=True):
            if each.level == level:
                values = each.own(name, each.start())
                return values.take(pa.array(numbers // within % len(values)))
        place = next(place for place, each in enumerate(self.outer) if each.level == level)
        keys = known if len(self.outer) == 1 else known.field(place)
        return self.outer[place].own(name, keys).take(pa.array(numbers // self._within))

    @cached_property
    def _behind(self) -> tuple[int, ...]:
        """How many partitions lie within one of each inner level."""
        return tuple(math.prod(self._sizes[place + 1 :]) for place in range(len(self._sizes)))


def _passing(level: Division, taken: Taken) -> Ints | None:
    """The places of the events that belong to some partition of a level; None: of all."""
    mask = accepted(level.filter, None, taken.columns, len(taken.times))
    return None if mask is None else np.flatnonzero(flags(mask, len(taken.times)))


def _at(taken: Taken, places: Ints | None) -> Taken:
    """The events at some places."""
    if places is None:
        return taken
    columns = tuple(column.take(pa.array(places)) for column in taken.columns)
    return Taken(columns, taken.times[places], taken.places[places], taken.now)


def _fresh(known: int, numbers: Ints) -> np.ndarray:
    """Which numbers are the first of theirs, where so many have been before."""
    return numbers > np.maximum.accumulate(np.concatenate([[known - 1], numbers]))[:-1]


def division(context: Context, stream: str, type: RowType) -> Division | str:
    """How a context divides a stream of that type, or the first reason against it."""
    found = divisions(context, {stream: type})
    return found if isinstance(found, str) else found[0]


def divisions(context: Context, reads: Mapping[str, RowType]) -> tuple[Division, ...] | str:
    """How a context divides some streams, or the first reason against it; they are all that it divides, as any other would begin
    partitions unheard.
    """
    for _, level in context.levels:
        if isinstance(level, Lived) or sorted(divided := streams_of(level)) == sorted(reads):
            continue
        return "a stream outside the context" if set(reads) - set(divided) else "a context of several streams"
    found = list[Division]()
    for stream, type in reads.items():
        each = _division(context, stream, type)
        if isinstance(each, str):
            return each
        if found and each.start().type != found[0].start().type:
            return "a context by keys of several types"
        found.append(replace(each, codes=found[0].codes) if found else each)
    return tuple(found)


def _division(context: Context, stream: str, type: RowType) -> Division | str:
    levels = list[ByKeys | ByHash | ByCategory]()
    for name, level in context.levels:
        found = of_level(context.name, name, level, stream, list(type.fields.values()))
        if isinstance(found, str):
            return found
        levels.append(found)
    return levels[0] if len(levels) == 1 else _nested(levels)


def _nested(levels: Sequence[ByKeys | ByHash | ByCategory]) -> Nested | str:
    """Levels within each other, or the first reason against them."""
    begin = max((place for place, level in enumerate(levels, 1) if not level.all_at_once), default=0)
    outer = [level for level in levels[:begin] if not isinstance(level, ByCategory)]
    inner = [level for level in levels[begin:] if not isinstance(level, ByKeys)]
    middle = any(isinstance(level, ByCategory) for level in levels[1:-1])
    if len(outer) < begin or middle:
        return "a context of categories with other levels within them"
    return Nested(levels[-1].context, levels[-1].level, levels[0].filter, tuple(outer), tuple(inner))
