"""Aggregates by group: a statement's levels, each a grouping with calls of its own, and the values they give a row.

An ordinary statement has one level. Aggregates with a grouping of their own add levels; a rollup, cube or list of
grouping sets has a level for each set. The slots of a row are the values of its group in every level, level by level.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from rollup.engine.compiling import compiled_key
from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall, Fold, Group
from rollup.engine.row import Rows
from rollup.engine.rows.runner import Environment

Key = tuple[Any, ...]


@dataclass(frozen=True)
class Level:
    """Aggregate calls by keys; no key: one group over all rows."""

    keys: tuple[Expr, ...]
    calls: tuple[AggregateCall, ...]


class Groups:
    """The groups of a level. A group whose rows have all left is forgotten when the next row comes, of whatever group."""

    def __init__(self, level: Level, environment: Environment) -> None:
        self._key, self._fold, self._environment = compiled_key(level.keys), Fold(level.calls), environment
        self._forgets = bool(level.keys)
        self.groups: dict[Key, list[Any]] = {}
        self._emptied: dict[Key, None] = {}

    def key(self, r: Rows) -> Key:
        """The group of a row."""
        return self._key(r, (), self._environment)

    def enter(self, key: Key, r: Rows) -> None:
        """A row comes into its group."""
        if self._emptied:
            for emptied in self._emptied:
                self.groups.pop(emptied, None)
            self._emptied.clear()
        entry = self.groups.get(key)
        if entry is None:
            entry = self.groups[key] = [self._fold.start(), 0]
        entry[1] += 1
        self._fold.enter(entry[0], r, self._environment)

    def leave(self, key: Key, r: Rows) -> None:
        """A row leaves its group. One that an outer join lets go twice takes nothing from a group without rows."""
        entry = self.groups.get(key)
        if entry is not None and (entry[1] > 0 or not self._forgets):
            entry[1] -= 1
            self._fold.leave(entry[0], r, self._environment)
            if entry[1] <= 0 and self._forgets:  # the group over all rows stays
                self._emptied[key] = None

    def values(self, key: Key) -> tuple[Any, ...]:
        """The values of a group; of one that is not there, those of an empty one."""
        entry = self.groups.get(key)
        return self._fold.values(entry[0] if entry is not None else self._fold.start())

    def __contains__(self, key: Key) -> bool:
        """Whether a group has rows."""
        entry = self.groups.get(key)
        return entry is not None and entry[1] > 0

    def clear(self) -> None:
        """All groups are gone."""
        self.groups.clear()
        self._emptied.clear()

    def snapshot(self) -> Any:
        """Key, slots and number of rows of each group."""
        return [[key, entry[0], entry[1]] for key, entry in self.groups.items()]

    def restore(self, state: Any) -> None:
        """The groups."""
        self.groups = {key: [group, count] for key, group, count in state}
        self._emptied = {key: None for key, _, count in state if count <= 0 and self._forgets}


class Aggregation:
    """All levels of a statement."""

    def __init__(self, levels: Iterable[Groups]) -> None:
        self.levels = list(levels)

    def change(self, new: Iterable[Rows], old: Iterable[Rows]) -> None:
        """Rows come in, then rows leave."""
        for level in self.levels:
            for r in new:
                level.enter(level.key(r), r)
            for r in old:
                level.leave(level.key(r), r)

    def slots(self, r: Rows) -> tuple[Any, ...]:
        """The values of a row's groups."""
        if not self.levels:
            return ()
        if len(self.levels) == 1:
            level = self.levels[0]
            return level.values(level.key(r))
        return tuple(value for level in self.levels for value in level.values(level.key(r)))

    def clear(self) -> None:
        """All groups are gone."""
        for level in self.levels:
            level.clear()

    def snapshot(self) -> Any:
        """The groups of every level."""
        return [level.snapshot() for level in self.levels]

    def restore(self, state: Any) -> None:
        """The groups of every level."""
        for level, inner in zip(self.levels, state, strict=True):
            level.restore(inner)


def groups_of(levels: Iterable[Level], environment: Environment) -> list[Groups]:
    """The groups of levels, empty."""
    return [Groups(level, environment) for level in levels]


def fold_of(calls: Iterable[AggregateCall], rows: Iterable[Rows], environment: Environment) -> tuple[Any, ...]:
    """The values of calls over some rows, from nothing."""
    fold = Fold(tuple(calls))
    group: Group = fold.start()
    for r in rows:
        fold.enter(group, r, environment)
    return fold.values(group)
