"""Aggregates by group: a statement's levels, each a grouping with calls of its own, and the values they give a row.

An ordinary statement has one level. Aggregates with a grouping of their own add levels; a rollup, cube or list of
grouping sets has a level for each set. The slots of a row are the values of its group in every level, level by level.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from rollup.engine.compiling import Same, as_keys
from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall, Fold, Group
from rollup.engine.row import Rows
from rollup.engine.rows.runner import Environment

Key = tuple[Any, ...]
OfRows = Callable[[Rows], Key]


@dataclass(frozen=True)
class Level:
    """Aggregate calls by keys; no key: one group over all rows."""

    keys: tuple[Expr, ...]
    calls: tuple[AggregateCall, ...]


class Groups:
    """The groups of a level. A group whose rows have all left is forgotten when the next row comes, of whatever group.

    `key(r)` is the group of a row; `enter(r)` and `leave(r)` let it in and out of it and say which it was. A row that an
    outer join lets go twice takes nothing from a group without rows.
    """

    def __init__(self, level: Level, environment: Environment) -> None:
        self.level, self._environment = level, environment
        self._forgets = bool(level.keys)
        self.groups: dict[Key, list[Any]] = {}
        self.emptied: dict[Key, None] = {}
        made = _functions(Same(level.keys), Same(level.calls))
        self._fold = made.fold
        self.key, self.enter, self.leave = made.bind(environment, self.groups, self.emptied)

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
        self.emptied.clear()

    def snapshot(self) -> Any:
        """Key, slots and number of rows of each group."""
        return [[key, entry[0], entry[1]] for key, entry in self.groups.items()]

    def restore(self, state: Any) -> None:
        """The groups."""
        self.clear()
        self.groups.update((key, [group, count]) for key, group, count in state)
        self.emptied.update((key, None) for key, _, count in state if count <= 0 and self._forgets)


class _Functions(NamedTuple):
    """What is generated once for a level: `bind(e, groups, emptied)` gives `key`, `enter` and `leave` of its groups."""

    fold: Fold
    bind: Callable[..., tuple[OfRows, OfRows, OfRows]]


@lru_cache(maxsize=4096)
def _functions(keys: Same, calls: Same) -> _Functions:
    fold = Fold(calls.items)
    source, own = fold.source(), as_keys(keys.items)
    source.objects["start"] = fold.start

    def key() -> str:
        return f"({''.join(f'{source.emit(each)}, ' for each in own)})"

    def enter() -> None:
        source.line(f"k = {key()}")
        source.block("if emptied:", forget)
        source.line("h = groups.get(k)")
        source.line("if h is None: h = groups[k] = [start(), 0]")
        source.line("h[1] += 1")
        source.line("g = h[0]")
        fold.changes(source, "enter")
        source.line("return k")

    def forget() -> None:
        source.line("for each in emptied: groups.pop(each, None)")
        source.line("emptied.clear()")

    def leave() -> None:
        source.line(f"k = {key()}")
        source.line("h = groups.get(k)")
        source.block("if h is not None and h[1] > 0:" if own else "if h is not None:", take)
        source.line("return k")

    def take() -> None:
        source.line("h[1] -= 1")
        source.line("g = h[0]")
        fold.changes(source, "leave")
        if own:  # the group over all rows stays
            source.line("if h[1] <= 0: emptied[k] = None")

    source.line("s = ()")
    source.block("def key(r):", lambda: source.line(f"return {key()}"))
    source.block("def enter(r):", enter)
    source.block("def leave(r):", leave)
    source.line("return key, enter, leave")
    return _Functions(fold, source.function("bind", "e, groups, emptied"))


class Aggregation:
    """All levels of a statement."""

    def __init__(self, levels: Iterable[Groups]) -> None:
        self.levels = list(levels)

    @property
    def only(self) -> Groups | None:
        """The level, where there is one alone that keeps its groups itself."""
        sole = self.sole
        return sole if type(sole) is Groups else None

    @property
    def sole(self) -> Groups | None:
        """The level, where there is one alone, also where a table keeps its groups."""
        return self.levels[0] if len(self.levels) == 1 else None

    def change(self, new: Iterable[Rows], old: Iterable[Rows]) -> None:
        """Rows come in, then rows leave."""
        for level in self.levels:
            for r in new:
                level.enter(r)
            for r in old:
                level.leave(r)

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
