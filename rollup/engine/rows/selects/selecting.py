"""What rows a change of the input makes: one a row, or one in all, each with its columns and sort keys.

A kind takes the rows that come and leave, keeps the aggregates, and gives `Change`s: the unit a row stands for (its
group, None where there are no groups) with the row. How many of them leave, and when, is the rate's (`rates.py`). One
row a group is the kind of `pergroup.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar

from rollup.engine.row import Row, Rows
from rollup.engine.rows.selects.grouping import Aggregation, Key, OfRows
from rollup.engine.rows.selects.projecting import Out, Projector

Made = TypeVar("Made")


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

    def count(self, new: Sequence[Rows], old: Sequence[Rows]) -> None:
        """The input has changed, and nobody asks now what rows it makes."""
        ...

    def come(self, r: Rows) -> Any:
        """A row comes and is all that does; its group, where there are some."""
        ...

    def leave(self, r: Rows) -> Any:
        """A row leaves and is all that does."""
        ...

    def exchange(self, r: Rows, old: Rows) -> tuple[Any, Any]:
        """A row comes as another leaves, and these are all."""
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

    def come(self, r: Rows) -> None:
        assert self._enter is not None
        self._enter(r)

    def leave(self, r: Rows) -> None:
        assert self._leave is not None
        self._leave(r)

    def exchange(self, r: Rows, old: Rows) -> tuple[None, None]:
        self.come(r)
        self.leave(old)
        return None, None

    def count(self, new: Sequence[Rows], old: Sequence[Rows]) -> None:
        if self._aggregation is not None:
            self._aggregation.change(new, old)
        if self._remember:
            self._representatives.update((self._unit(r), r) for r in new)

    def at_once(self, new: Sequence[Rows], old: Sequence[Rows]) -> AtOnce:
        if self._shown is None or self._remember:
            return rows_of(self.update(new, old))
        return self._both(self._shown, new, old)

    def _both(
        self, shown: Callable[[Key | None, Rows], Made | None], new: Sequence[Rows], old: Sequence[Rows]
    ) -> tuple[list[Made], list[Made]]:
        """What is made of each row that comes and of each that leaves."""
        e = self._projector.environment
        if self._aggregation is None and not (old and self._leaving):
            e.arriving = True
            return [made for r in new if (made := shown(None, r)) is not None], []
        came, left = _keys(self._enter, new), _keys(self._leave, old)
        before: list[Made] = []
        if self._leaving and old:
            e.arriving = False
            before = [made for k, r in zip(left, old, strict=True) if (made := shown(k, r)) is not None]
        e.arriving = True
        return [made for k, r in zip(came, new, strict=True) if (made := shown(k, r)) is not None], before

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
        if shown is not None:
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

    def come(self, r: Rows) -> None:
        self._aggregation.levels[0].enter(r)

    def leave(self, r: Rows) -> None:
        self._aggregation.levels[0].leave(r)

    def exchange(self, r: Rows, old: Rows) -> tuple[None, None]:
        self.come(r)
        self.leave(old)
        return None, None

    def count(self, new: Sequence[Rows], old: Sequence[Rows]) -> None:
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
        if self._shown is not None:
            row = self._shown_as(arriving)
            return None if row is None else Out(row)
        return self._projector.out(self._nothing, self._aggregation.slots(self._nothing), arriving)
