"""Which rows an output shows: what is kept of the changes between two outputs.

Modes: `default` and `all` keep everything (`all` of groups: every group there ever was), `last` the last of each unit,
`snapshot` shows what is there, `first` what begins an interval of its unit.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

from rollup.engine.row import Rows
from rollup.engine.rows.selects.pergroup import PerGroup
from rollup.engine.rows.selects.projecting import Out
from rollup.engine.rows.selects.selecting import Change, Changes, Kind, PerRow, Total


class Shown(NamedTuple):
    """The rows of one output."""

    new: Sequence[Out] = ()
    old: Sequence[Out] = ()


class Collector(Protocol):
    """What is kept between two outputs. `keeps`: whether it takes changes at all, or asks for rows when they are shown."""

    keeps: bool

    def take(self, changes: Changes) -> None:
        """The input has changed."""
        ...

    def show(self) -> Shown:
        """An output is due; a new interval begins."""
        ...

    def snapshot(self) -> Any:
        """The state."""
        ...

    def restore(self, state: Any) -> None:
        """Go on from a state."""
        ...


def outs(changes: Sequence[Change]) -> list[Out]:
    """The rows of changes."""
    return [change.out for change in changes]


def both(kind: Total) -> Shown:
    """The total now, as one that comes and as one that leaves."""
    return Shown(_there(kind.current(None)), _there(kind.previous()))


def _there(out: Out | None) -> list[Out]:
    return [] if out is None else [out]


def _restored(state: Any) -> Any:
    return None if state is None else Out(*state)


class Everything:
    """All rows of the interval; a total that nothing touched shows its value (`idle`)."""

    keeps = True

    def __init__(self, idle: Callable[[], Shown] | None = None) -> None:
        self._new: list[Out] = []
        self._old: list[Out] = []
        self._idle, self._touched = idle, False

    def take(self, changes: Changes) -> None:
        self.add(outs(changes.new), outs(changes.old))

    def add(self, new: Sequence[Out], old: Sequence[Out]) -> None:
        """Rows for the next output."""
        self._new += new
        self._old += old
        self._touched = True

    def show(self) -> Shown:
        shown = self._idle() if self._idle is not None and not self._touched else Shown(self._new, self._old)
        self._new, self._old, self._touched = [], [], False
        return shown

    def snapshot(self) -> Any:
        return [self._new, self._old, self._touched]

    def restore(self, state: Any) -> None:
        self._new, self._old = ([Out(*out) for out in kept] for kept in state[:2])
        self._touched = state[2]


class LastOfUnits:
    """The last row that came and the last that left, of each unit."""

    keeps = True

    def __init__(self) -> None:
        self._new: dict[Any, Out] = {}
        self._old: dict[Any, Out] = {}

    def take(self, changes: Changes) -> None:
        self._new.update(changes.new)
        self._old.update(changes.old)

    def show(self) -> Shown:
        shown = Shown(list(self._new.values()), list(self._old.values()))
        self._new, self._old = {}, {}
        return shown

    def snapshot(self) -> Any:
        return [list(self._new.items()), list(self._old.items())]

    def restore(self, state: Any) -> None:
        self._new, self._old = ({unit: Out(*out) for unit, out in kept} for kept in state)


class LastTotal:
    """The total now, and, if what leaves is `told`, as it was at the output before."""

    keeps = False

    def __init__(self, kind: Total, told: bool) -> None:
        self._kind, self._told = kind, told
        self._before = kind.previous() if told else None

    def take(self, changes: Changes) -> None:
        """The total is asked for when it is shown."""

    def show(self) -> Shown:
        shown = Shown(_there(self._kind.current(None)), _there(self._before))
        self._before = self._kind.previous() if self._told else None
        return shown

    def snapshot(self) -> Any:
        return self._before

    def restore(self, state: Any) -> None:
        self._before = _restored(state)


class OthersOfGroups:
    """The rows of the interval, and of every group that got none its newest row with the value it has at the output."""

    keeps = True

    def __init__(self, kind: PerRow) -> None:
        self._kind = kind
        self._kept = Everything()
        self._seen: dict[Any, None] = {}

    def take(self, changes: Changes) -> None:
        self._kept.take(changes)
        self._seen.update(dict.fromkeys(changes.gained))

    def show(self) -> Shown:
        shown = self._kept.show()
        rest = self._current(unit for unit in self._kind.representatives() if unit not in self._seen)
        self._seen = {}
        return Shown([*shown.new, *rest], shown.old)

    def _current(self, units: Iterable[Any]) -> list[Out]:
        return [out for unit in units if (out := self._kind.current(unit)) is not None]

    def snapshot(self) -> Any:
        return [self._kept.snapshot(), list(self._seen)]

    def restore(self, state: Any) -> None:
        self._kept.restore(state[0])
        self._seen = dict.fromkeys(state[1])


class AllOfGroups(OthersOfGroups):
    """The same, but a group that lost rows shows its newest row at that moment, once."""

    def take(self, changes: Changes) -> None:
        super().take(changes)
        self._kept.add(self._current(dict.fromkeys(changes.lost)), ())
        self._seen.update(dict.fromkeys(changes.lost))


class FirstOfUnits:
    """The rows that begin an interval of their unit, as `passes` says; one row a unit.

    A group's row is the value after the change, and, as one that leaves, the value before the row that began the interval.
    """

    keeps = True

    def __init__(self, of_groups: bool, passes: Callable[[Any, int, int], bool]) -> None:
        self._of_groups, self._passes = of_groups, passes
        self._new: dict[Any, Out] = {}
        self._old: dict[Any, Out] = {}

    def take(self, changes: Changes) -> None:
        if not self._of_groups:
            for rows, counts in ((changes.new, (1, 0)), (changes.old, (0, 1))):
                self._new.update((unit, out) for unit, out in rows if self._passes(unit, *counts))
            return
        after = dict(changes.new)
        for unit, arriving, before in changes.steps:
            if unit in after and self._passes(unit, int(arriving), int(not arriving)):
                self._new[unit] = after[unit]
                if before is not None:
                    self._old.setdefault(unit, before)

    def show(self) -> Shown:
        shown = Shown(list(self._new.values()), list(self._old.values()))
        self._new, self._old = {}, {}
        return shown

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        """Nothing is kept: what is taken is shown at once."""


class Groups:
    """One row a group with its value now, and as it was; `every`: of all groups ever seen, else of those that were touched.

    A group that was touched was as it was before the first change of the interval. With `again` it was as before the first row
    that left it fulfilling the condition. What is not `told` may be none.
    """

    keeps = True

    def __init__(self, kind: PerGroup, every: bool, told: bool) -> None:
        self._kind, self._every, self._told = kind, every, told
        self._again = every is kind.whole
        """As the reference has it: `all` of one set of keys, `last` of several."""
        self._before: dict[Any, Out | None] = {}

    def take(self, changes: Changes) -> None:
        before = dict(changes.old)
        steps = changes.steps or [(unit, True, before.get(unit)) for unit in (*changes.gained, *changes.lost)]
        for unit, _, was in steps:
            if unit not in self._before or (self._again and self._before[unit] is None):
                self._before[unit] = was

    def touching(self, new: Sequence[Rows], old: Sequence[Rows]) -> None:
        """The input has changed, and nobody gets what leaves."""
        for unit in self._kind.touched(new, old):
            self._before[unit] = None

    def note(self, unit: Any) -> None:
        """A group has changed, and nobody gets what leaves."""
        self._before[unit] = None

    def show(self) -> Shown:
        touched, self._before = self._before, {}
        units = self._kind.groups() if self._every else sorted(touched, key=lambda unit: unit[0])
        new = [out for unit in units if (out := self._kind.current(unit)) is not None]
        old = [touched[unit] if unit in touched else self._kind.previous(unit) for unit in units if self._told]
        if not self._every:
            self._kind.forget(units)
        return Shown(new, [out for out in old if out is not None])

    def snapshot(self) -> Any:
        return list(self._before.items())

    def restore(self, state: Any) -> None:
        self._before = {unit: _restored(out) for unit, out in state}


class Content:
    """What is there: nothing leaves."""

    keeps = False

    def __init__(self, content: Callable[[], Sequence[Change]]) -> None:
        self._content = content

    def take(self, changes: Changes) -> None:
        """The content is asked for when it is shown."""

    def show(self) -> Shown:
        return Shown(outs(self._content()))

    def snapshot(self) -> Any:
        return None

    def restore(self, state: Any) -> None:
        """Nothing is kept."""


def collector(
    mode: str, kind: Kind, content: Callable[[], Sequence[Change]], ordered: bool = False, told: bool = True
) -> Collector:
    """The collector of a mode for a kind of statement; `ordered`: the rows of an output are put in order; `told`:
    somebody gets what leaves.
    """
    if mode == "snapshot":
        return Content(content)
    if isinstance(kind, Total):
        total = kind
        return LastTotal(total, told) if mode == "last" else Everything(lambda: both(total))
    if isinstance(kind, PerGroup):
        return Groups(kind, mode == "all", told) if mode in ("last", "all") else Everything()
    if mode == "last":
        return LastOfUnits()
    if mode == "all" and kind.grouped and isinstance(kind, PerRow):
        return OthersOfGroups(kind) if ordered else AllOfGroups(kind)
    return Everything()
