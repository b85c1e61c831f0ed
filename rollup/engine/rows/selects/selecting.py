"""What rows a change of the input makes: one a row, one in all, or one a group; each with its columns and sort keys.

A kind takes the rows that come and leave, keeps the aggregates, and gives `Change`s: the unit a row stands for (its
group, None where there are no groups) with the row. How many of them leave, and when, is the rate's (`rates.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall
from rollup.engine.row import Row, Rows
from rollup.engine.rows.selects.grouping import Aggregation, Key, Level, OfRows
from rollup.engine.rows.selects.projecting import Out, Projector


class Change(NamedTuple):
    """A row on its way out, and the group it stands for."""

    unit: Any
    out: Out


class Changes(NamedTuple):
    """What comes and what leaves; `gained` and `lost` are the units of the rows of the input that came and left.

    A row of the input has a unit in each level of a rollup; without groups its unit is None. `arrived` and `left` count
    the rows of the input. `steps`, where they are asked for: the units as rows come and then leave, one row after the
    other, whether the row comes, and the row of the unit just before.
    """

    new: Sequence[Change]
    old: Sequence[Change]
    arrived: int
    left: int
    gained: Sequence[Any] = ()
    lost: Sequence[Any] = ()
    steps: Sequence[tuple[Any, bool, Out | None]] = ()


AtOnce = tuple[list[Row], list[Row]]
"""The rows that come and those that leave."""


def rows_of(changes: Changes) -> AtOnce:
    """The rows of changes."""
    return [change.out.row for change in changes.new], [change.out.row for change in changes.old]


class Kind(Protocol):
    """How changes of the input become rows."""

    grouped: bool

    def update(self, new: Sequence[Rows], old: Sequence[Rows]) -> Changes:
        """The input has changed."""
        ...

    def at_once(self, new: Sequence[Rows], old: Sequence[Rows]) -> AtOnce:
        """The same for one to whom the rows alone matter, in no order."""
        ...

    def current(self, unit: Any) -> Out | None:
        """The row of a unit as it is now."""
        ...

    def content(self, rows: Iterable[Rows] | None) -> list[Change]:
        """The rows as they are now, of an input that holds `rows`; None: of one that holds none, and groups go on."""
        ...

    def fill(self, rows: Sequence[Rows]) -> None:
        """Rows that were there before: they count, nothing is given out."""
        ...

    def clear(self) -> None:
        """As at the beginning."""
        ...

    def snapshot(self) -> Any:
        """The state."""
        ...

    def restore(self, state: Any) -> None:
        """Go on from a state."""
        ...


class PerRow:
    """One row a row of the input, each with the values of its groups after the whole change."""

    def __init__(
        self,
        projector: Projector,
        aggregation: Aggregation | None,
        grouped: bool,
        remember: bool,
        leaving: bool = True,
    ) -> None:
        self._projector, self._aggregation, self.grouped = projector, aggregation, grouped
        self._leaving = leaving
        self._remember = remember and grouped
        level = None if aggregation is None else aggregation.only
        self._shown = projector.of_group(level) if level is not None or aggregation is None else None
        self._enter, self._leave, self._key = (
            (None, None, None) if level is None else (level.enter, level.leave, level.key)
        )
        self.plain = aggregation is None and not grouped
        """Whether there are neither aggregates nor groups."""
        self._representatives: dict[Key, Rows] = {}

    def update(self, new: Sequence[Rows], old: Sequence[Rows]) -> Changes:
        if self._aggregation is not None:
            self._aggregation.change(new, old)
        if self._remember:
            self._representatives.update((self._unit(r), r) for r in new)
        gained, lost = ([self._unit(r) for r in rows] if self.grouped else () for rows in (new, old))
        before = self._changes(old, False) if self._leaving else []
        return Changes(self._changes(new, True), before, len(new), len(old), gained, lost)

    def at_once(self, new: Sequence[Rows], old: Sequence[Rows]) -> AtOnce:
        shown, e = self._shown, self._projector.environment
        if shown is None or self._remember:
            return rows_of(self.update(new, old))
        came, left = _keys(self._enter, new), _keys(self._leave, old)
        before: list[Row] = []
        if self._leaving and old:
            e.arriving = False
            before = [row for k, r in zip(left, old, strict=True) if (row := shown(k, r)) is not None]
        e.arriving = True
        return [row for k, r in zip(came, new, strict=True) if (row := shown(k, r)) is not None], before

    def representatives(self) -> Iterable[Key]:
        """All groups that were ever seen."""
        return self._representatives

    def current(self, unit: Any) -> Out | None:
        r = self._representatives.get(unit)
        return None if r is None else self._projector.out(r, self._slots(r), True)

    def content(self, rows: Iterable[Rows] | None) -> list[Change]:
        return self._changes(rows or (), True)

    def fill(self, rows: Sequence[Rows]) -> None:
        self.update(rows, ())

    def clear(self) -> None:
        if self._aggregation is not None:
            self._aggregation.clear()

    def snapshot(self) -> Any:
        aggregation = self._aggregation.snapshot() if self._aggregation is not None else None
        return [aggregation, [[key, r] for key, r in self._representatives.items()]]

    def restore(self, state: Any) -> None:
        if self._aggregation is not None:
            self._aggregation.restore(state[0])
        self._representatives = dict(state[1])

    def _changes(self, rows: Iterable[Rows], arriving: bool) -> list[Change]:
        shown, key = self._shown, self._key
        if shown is not None and not self._projector.ordered:
            self._projector.environment.arriving = arriving
            keyed = ((None if key is None else key(r), r) for r in rows)
            made = [(k if self.grouped else None, shown(k, r)) for k, r in keyed]
            return [Change(unit, Out(row)) for unit, row in made if row is not None]
        found = [(r, self._projector.out(r, self._slots(r), arriving)) for r in rows]
        return [Change(self._unit(r), out) for r, out in found if out is not None]

    def _slots(self, r: Rows) -> tuple[Any, ...]:
        return self._aggregation.slots(r) if self._aggregation is not None else ()

    def _unit(self, r: Rows) -> Any:
        return self._aggregation.levels[0].key(r) if self.grouped and self._aggregation is not None else None


def _keys(move: OfRows | None, rows: Sequence[Rows]) -> Sequence[Key | None]:
    """The groups that rows have entered or left, where there are groups."""
    return [None] * len(rows) if move is None else [move(r) for r in rows]


class Total:
    """One row in all: the values after the change, and those before it."""

    grouped = False

    def __init__(self, projector: Projector, aggregation: Aggregation, width: int, leaving: bool = True) -> None:
        self._projector, self._aggregation, self._leaving = projector, aggregation, leaving
        self._nothing: Rows = (None,) * width
        level = aggregation.only
        self._shown = projector.of_group(level) if level is not None and not level.level.keys else None

    def update(self, new: Sequence[Rows], old: Sequence[Rows]) -> Changes:
        before = self._row(False) if self._leaving else None
        self._aggregation.change(new, old)
        after = self._row(True)
        return Changes(
            [Change(None, after)] if after is not None else [],
            [Change(None, before)] if before is not None else [],
            len(new),
            len(old),
        )

    def at_once(self, new: Sequence[Rows], old: Sequence[Rows]) -> AtOnce:
        before = self._shown_as(False) if self._leaving else None
        self._aggregation.change(new, old)
        after = self._shown_as(True)
        return [] if after is None else [after], [] if before is None else [before]

    def _shown_as(self, arriving: bool) -> Row | None:
        if self._shown is None:
            out = self._row(arriving)
            return None if out is None else out.row
        self._projector.environment.arriving = arriving
        return self._shown((), self._nothing)

    def count(self, new: Sequence[Rows], old: Sequence[Rows]) -> None:
        """The input has changed, and nobody asks what the row is now."""
        self._aggregation.change(new, old)

    def current(self, unit: Any) -> Out | None:
        return self._row(True)

    def previous(self) -> Out | None:
        """The row as it is now, as one that leaves."""
        return self._row(False)

    def content(self, rows: Iterable[Rows] | None) -> list[Change]:
        row = self._row(True)
        return [Change(None, row)] if row is not None else []

    def fill(self, rows: Sequence[Rows]) -> None:
        self.count(rows, ())

    def clear(self) -> None:
        self._aggregation.clear()

    def snapshot(self) -> Any:
        return self._aggregation.snapshot()

    def restore(self, state: Any) -> None:
        self._aggregation.restore(state)

    def _row(self, arriving: bool) -> Out | None:
        if self._shown is not None and not self._projector.ordered:
            row = self._shown_as(arriving)
            return None if row is None else Out(row)
        return self._projector.out(self._nothing, self._aggregation.slots(self._nothing), arriving)


@dataclass(frozen=True)
class Grouping:
    """The dimensions of a grouped statement and the sets of them that make levels, finest first.

    The slots of a row are the values of all dimensions (null where its set has not the dimension), then the calls of
    its level, then the values of the levels with a grouping of their own, then which set it is.
    """

    dimensions: tuple[Expr, ...]
    sets: tuple[tuple[int, ...], ...]
    calls: tuple[AggregateCall, ...]
    own: tuple[Level, ...] = ()

    @property
    def levels(self) -> list[Level]:
        """The level of each set."""
        return [Level(tuple(self.dimensions[d] for d in each), self.calls) for each in self.sets]


UnitRow = tuple[tuple[int, Key], Rows]
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
        self._whole = grouping.sets == (tuple(range(len(grouping.dimensions))),)
        self._levels, self._own = levels, own
        level = levels.only if self._whole and not own.levels else None
        self._shown = None if level is None else projector.of_group(level, keyed=True)
        self._rows: dict[Any, Rows] = {}
        """A row of the input for each group, by level and key."""

    def update(self, new: Sequence[Rows], old: Sequence[Rows]) -> Changes:
        levels = self._levels.levels
        gained, lost = self._units(new), self._units(old)
        came, left = dict(gained), dict(lost)
        units, touched = list({**came, **left}), {**left, **came}  # the row that a group is shown with is the newest
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
        shown, level, e = self._shown, self._levels.only, self._projector.environment
        if shown is None or level is None or self._stepwise:
            return rows_of(self.update(new, old))
        before: list[Row] = []
        if self._leaving:
            e.arriving = False
            came, left = {level.key(r): r for r in new}, {level.key(r): r for r in old}
            touched = {**came, **left, **came}
            before = [row for k, r in touched.items() if (row := shown(k, r)) is not None]
        came, left = {level.enter(r): r for r in new}, {level.leave(r): r for r in old}
        touched = {**came, **left, **came}  # the row that a group is shown with is the newest
        e.arriving = True
        after = [row for k, r in touched.items() if (row := shown(k, r)) is not None]
        for key, r in touched.items():
            if self._ever or key in level:
                self._rows[0, key] = r
            else:
                self._rows.pop((0, key), None)
        return after, before

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
        self._rows = {(place, key): r for place, key, r in state[2]}

    def _units(self, rows: Sequence[Rows]) -> list[UnitRow]:
        return [((place, level.key(r)), r) for place, level in enumerate(self._levels.levels) for r in rows]

    def forget(self, units: Iterable[Any]) -> None:
        """Groups that have emptied are no longer known."""
        for unit in units:
            if unit[1] not in self._levels.levels[unit[0]]:
                self._rows.pop(unit, None)

    def _out(self, unit: Any, r: Rows, arriving: bool) -> Out | None:
        place, key = unit
        if self._shown is not None and not self._projector.ordered:
            self._projector.environment.arriving = arriving
            row = self._shown(key, r)
            return None if row is None else Out(row)
        if self._whole:
            s = (*key, *self._levels.levels[0].values(key), *self._own.slots(r))
            return self._projector.out(r, s, arriving)
        dimensions: list[Any] = [None] * len(self._grouping.dimensions)
        for dimension, value in zip(self._grouping.sets[place], key, strict=True):
            dimensions[dimension] = value
        s = (*dimensions, *self._levels.levels[place].values(key), *self._own.slots(r), place)
        return self._projector.out(r, s, arriving)
