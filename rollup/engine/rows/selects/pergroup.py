"""One row for each group that a change of the input touches, in every level of a rollup; see `selecting.py`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall
from rollup.engine.row import Rows
from rollup.engine.rows.selects.grouping import Aggregation, Groups, Key, Level, OfRows
from rollup.engine.rows.selects.projecting import Out, Projector
from rollup.engine.rows.selects.selecting import AtOnce, Change, Changes, Made, rows_of


@dataclass(frozen=True)
class Grouping:
    """The dimensions of a grouped statement and the sets of them that make levels, finest first.

    The slots of a row begin with the values of all dimensions, null where its set has not the dimension. Then come the
    calls of its level, the values of the levels with their own grouping, and the number of its set.
    """

    dimensions: tuple[Expr, ...]
    sets: tuple[tuple[int, ...], ...]
    calls: tuple[AggregateCall, ...]
    own: tuple[Level, ...] = ()

    @property
    def whole(self) -> bool:
        """Whether the only level is that of all dimensions."""
        return self.sets == (tuple(range(len(self.dimensions))),)

    @property
    def levels(self) -> list[Level]:
        """The level of each set."""
        return [Level(tuple(self.dimensions[d] for d in each), self.calls) for each in self.sets]


def _touched(new: Sequence[Rows], old: Sequence[Rows], come: OfRows, leave: OfRows) -> Collection[tuple[Any, Rows]]:
    """The groups that rows come into and leave, each with the row that it is shown with."""
    if len(new) == 1 and len(old) < 2:  # as nearly always
        (r,) = new
        entered, left = come(r), (leave(old[0]) if old else None)
        return ((entered, r),) if not old or left == entered else ((entered, r), (left, old[0]))
    came: dict[Any, Rows] = {come(r): r for r in new}
    return _newest(came, {leave(r): r for r in old}).items()


def _newest(came: dict[Any, Rows], left: Mapping[Any, Rows]) -> dict[Any, Rows]:
    """Groups with the row that each is shown with, the newest: first those into which rows came. `came` grows."""
    for key, r in left.items():
        came.setdefault(key, r)
    return came


UnitKey = tuple[int, Key]
"""A group: level and key."""
UnitRow = tuple[UnitKey, Rows]
"""A row of the input with a group it belongs to: level and key."""


class PerGroup:
    """One row for each group that a change touches, in every level: the values after it, and those before it."""

    grouped = True

    def __init__(
        self,
        projector: Projector,
        grouping: Grouping,
        levels: Aggregation,
        own: Aggregation,
        ever: bool,
        leaving: bool = True,
        stepwise: bool = False,
    ):
        self._projector, self._grouping, self._ever, self._leaving = projector, grouping, ever, leaving
        self._stepwise = stepwise
        self.whole = grouping.whole
        """Whether there is one set of keys."""
        self._levels, self._own = levels, own
        self._level = levels.only if self.whole and not own.levels else None
        """The level, where it is the only one."""
        self._shown = None if self._level is None else projector.of_group(self._level, keyed=True)
        self._rows: dict[Any, Rows] = {}
        """A row of the input for each group, by level and key."""

    def update(self, new: Sequence[Rows], old: Sequence[Rows]) -> Changes:
        levels = self._levels.levels
        gained, lost = self._units(new), self._units(old)
        touched = _newest(dict(gained), dict(lost))
        units = list(touched)
        if len(levels) > 1:
            units.sort(key=lambda unit: unit[0])  # level by level, groups by first appearance
        before: list[Change] = []
        if self._leaving:
            outs = [(unit, self._out(unit, touched[unit], False)) for unit in units]
            before = [Change(unit, out) for unit, out in outs if out is not None]
        self._rows.update(touched)
        steps = self._steps(new, old) if self._stepwise else self._counted(new, old)
        after = [Change(unit, out) for unit in units if (out := self._out(unit, touched[unit], True)) is not None]
        if not self._ever:
            self.forget(units)
        units_in, units_out = [unit for unit, _ in gained], [unit for unit, _ in lost]
        return Changes(after, before, len(new), len(old), units_in, units_out, steps)

    def at_once(self, new: Sequence[Rows], old: Sequence[Rows]) -> AtOnce:
        if self._shown is None or self._level is None or self._stepwise:
            return rows_of(self.update(new, old))
        return self._both(self._level, self._shown, new, old)

    def _both(
        self, level: Groups, shown: Callable[[Key, Rows], Made | None], new: Sequence[Rows], old: Sequence[Rows]
    ) -> tuple[list[Made], list[Made]]:
        """What is made of each group after a change, and before it."""
        before = list[Made]()
        if self._leaving:
            self._projector.environment.arriving = False
            touched = _touched(new, old, level.key, level.key)
            before = [made for key, r in touched if (made := shown(key, r)) is not None]
        return self._after(level, shown, new, old), before

    def _after(
        self, level: Groups, shown: Callable[[Key, Rows], Made | None], new: Sequence[Rows], old: Sequence[Rows]
    ) -> list[Made]:
        """What is made of each group after a change."""
        touched = _touched(new, old, level.enter, level.leave)
        self._projector.environment.arriving = True
        after = [made for key, r in touched if (made := shown(key, r)) is not None]
        self._note(level, touched)
        return after

    def count(self, new: Sequence[Rows], old: Sequence[Rows]) -> None:
        """The input has changed, and nobody asks what the groups are now."""
        self.touched(new, old)

    def touched(self, new: Sequence[Rows], old: Sequence[Rows]) -> Iterable[Any]:
        """The same; which groups have changed."""
        level = self._level
        if level is None:
            changes = self.update(new, old)
            return (*changes.gained, *changes.lost)
        if len(new) == 1 and len(old) == 1:
            return self.exchange(new[0], old[0])
        if len(new) + len(old) != 1:
            touched = _touched(new, old, level.enter, level.leave)
            self._note(level, touched)
            return [(0, key) for key, _ in touched]
        return (self.come(new[0]) if new else self.leave(old[0]),)

    def come(self, r: Rows) -> UnitKey:
        """A row comes and is all that does, into this group, which is not empty then."""
        assert self._level is not None
        unit = 0, self._level.enter(r)
        self._rows[unit] = r
        return unit

    def leave(self, r: Rows) -> UnitKey:
        """A row leaves and is all that does, out of this group."""
        assert self._level is not None
        level = self._level
        key = level.leave(r)
        self._note(level, ((key, r),))
        return 0, key

    def exchange(self, r: Rows, old: Rows) -> tuple[UnitKey, UnitKey]:
        """A row comes as another leaves, and these are all: the group of the first, and that of the other."""
        assert self._level is not None
        level = self._level
        entered, emptier = level.enter(r), level.leave(old)
        self._rows[0, entered] = r
        if emptier != entered:
            self._note(level, ((emptier, old),))
        elif not level.groups[entered][1] and not self._ever:
            self._rows.pop((0, entered), None)
        return (0, entered), (0, emptier)

    def _note(self, level: Groups, touched: Collection[tuple[Key, Rows]]) -> None:
        """The row that each group is shown with; one that has emptied is no longer known."""
        rows, ever, groups = self._rows, self._ever, level.groups
        for key, r in touched:
            entry = groups.get(key)
            if ever or (entry is not None and entry[1] > 0):
                rows[0, key] = r
            else:
                rows.pop((0, key), None)

    def _counted(self, new: Sequence[Rows], old: Sequence[Rows]) -> Sequence[tuple[Any, bool, Out | None]]:
        """The rows come in, then others leave."""
        self._levels.change(new, old)
        self._own.change(new, old)
        return ()

    def _steps(self, new: Sequence[Rows], old: Sequence[Rows]) -> list[tuple[Any, bool, Out | None]]:
        """The change row by row, each seen before it counts."""
        steps = list[tuple[Any, bool, Out | None]]()
        for r in new:
            units = self._units([r])
            steps += [(unit, True, self._out(unit, r, False)) for unit, _ in units]
            self._counted([r], ())
        for r in old:
            units = self._units([r])
            steps += [(unit, False, self._out(unit, r, False)) for unit, _ in units]
            self._counted((), [r])
        return steps

    def groups(self) -> list[Any]:
        """All groups that are known, by level."""
        return sorted(self._rows, key=lambda unit: unit[0])

    def current(self, unit: Any) -> Out | None:
        return self._out(unit, self._rows[unit], True) if unit in self._rows else None

    def previous(self, unit: Any) -> Out | None:
        """The row of a group as it is now, as one that leaves."""
        return self._out(unit, self._rows[unit], False) if unit in self._rows else None

    def content(self, rows: Iterable[Rows] | None) -> list[Change]:
        if rows is None:
            shown = {unit: self._rows[unit] for unit in self.groups()}
        else:
            held = list(rows)
            levels = enumerate(self._levels.levels)
            shown = {(place, level.key(r)): r for place, level in levels for r in held}
        return [Change(unit, out) for unit, r in shown.items() if (out := self._out(unit, r, True)) is not None]

    def fill(self, rows: Sequence[Rows]) -> None:
        self.update(rows, ())

    def clear(self) -> None:
        self._levels.clear()
        self._own.clear()
        self._rows.clear()

    def snapshot(self) -> Any:
        rows = [[place, key, r] for (place, key), r in self._rows.items()]
        return [self._levels.snapshot(), self._own.snapshot(), rows]

    def restore(self, state: Any) -> None:
        self._levels.restore(state[0])
        self._own.restore(state[1])
        self._rows.clear()  # the same dict: who shows a row alone notes it there
        self._rows.update(((place, key), r) for place, key, r in state[2])

    def _units(self, rows: Sequence[Rows]) -> list[UnitRow]:
        return [((place, level.key(r)), r) for place, level in enumerate(self._levels.levels) for r in rows]

    def forget(self, units: Iterable[Any]) -> None:
        """Groups that have emptied are no longer known."""
        for unit in units:
            if unit[1] not in self._levels.levels[unit[0]]:
                self._rows.pop(unit, None)

    def _out(self, unit: Any, r: Rows, arriving: bool) -> Out | None:
        place, key = unit
        if self._shown is not None:
            self._projector.environment.arriving = arriving
            row = self._shown(key, r)
            return None if row is None else Out(row)
        if self.whole:
            s = (*key, *self._levels.levels[0].values(key), *self._own.slots(r))
            return self._projector.out(r, s, arriving)
        dimensions: list[Any] = [None] * len(self._grouping.dimensions)
        for dimension, value in zip(self._grouping.sets[place], key, strict=True):
            dimensions[dimension] = value
        s = (*dimensions, *self._levels.levels[place].values(key), *self._own.slots(r), place)
        return self._projector.out(r, s, arriving)
