"""Which rows the outputs of a step show, and which wait on: of rows in order, each with its interval and its group.

Intervals are counted from that which the step began with; that after the last output is unfinished. Rows from before the
step, the latest of each group or of a total, stand first, in interval -1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.intervals import touched
from rollup.engine.rows.plans import Emitted

Places = Ints | slice
"""Places of rows, or all from one up to another."""


@dataclass(frozen=True)
class Rows:
    """Rows to choose from: interval and group of each, its sign, whether it fulfils `having`."""

    interval: Ints
    unit: Ints
    sign: np.ndarray
    passes: np.ndarray

    def at(self, places: Places) -> Rows:
        """Those at some places."""
        return Rows(self.interval[places], self.unit[places], self.sign[places], self.passes[places])


@dataclass(frozen=True)
class Chosen:
    """Places of rows in the order in which they are shown, with the output and the sign of each."""

    place: Places
    output: Ints
    sign: np.ndarray

    @classmethod
    def of(cls, rows: Rows, come: tuple[Ints, Ints], leave: tuple[Ints, Ints] | None = None) -> Chosen:
        """Of places with their outputs those that fulfil `having`; in an output what leaves is last."""
        place, output = come
        sign = np.ones(len(place), np.int8)
        if leave is not None and len(leave[0]):
            place, output = np.concatenate([place, leave[0]]), np.concatenate([output, leave[1]])
            sign = np.concatenate([sign, np.full(len(leave[0]), -1, np.int8)])
            order = np.lexsort((-sign, output))
            place, output, sign = place[order], output[order], sign[order]
        passes = rows.passes[place]
        return cls(place, output, sign) if passes.all() else cls(place[passes], output[passes], sign[passes])

    def emitted(self, what: Emitted) -> Chosen:
        """What listeners get of it."""
        if isinstance(self.place, slice) or what == "both":
            return self
        which = self.sign > 0 if what == "new" else self.sign < 0
        return self if which.all() else Chosen(self.place[which], self.output[which], self.sign[which])


def everything(rows: Rows, outputs: int) -> tuple[Chosen, Places]:
    """All rows of each interval."""
    comes = rows.sign > 0
    if comes.all() and rows.passes.all():
        return each(rows, outputs)
    done = rows.interval < outputs
    come, leave = np.flatnonzero(done & comes), np.flatnonzero(done & ~comes)
    chosen = Chosen.of(rows, (come, rows.interval[come]), (leave, rows.interval[leave]))
    return chosen, np.flatnonzero(~done & rows.passes)


def each(rows: Rows, outputs: int) -> tuple[Chosen, Places]:
    """Of rows that come, those that pass."""
    end = int(np.searchsorted(rows.interval, outputs))
    stay = slice(end, len(rows.interval))
    if rows.passes[:end].all():
        return Chosen(slice(0, end), rows.interval[:end], rows.sign[:end]), stay
    return Chosen.of(rows, (np.arange(end), rows.interval[:end])), stay


def last(rows: Rows, outputs: int) -> tuple[Chosen, Ints]:
    """Of rows that stand for their groups: of each group of an interval, by the first, the last, if it passes; and the first
    of those that leave.
    """
    come, leave = touched(rows.interval, rows.unit, rows.sign, rows.passes, int(rows.unit.max(initial=-1)) + 1)
    return _until(rows, outputs, come, leave[leave >= 0])


def last_of_each(rows: Rows, outputs: int) -> tuple[Chosen, Ints]:
    """The last row of each group of an interval that passes, by the first; of those that come and of those that leave."""
    found = list[Ints]()
    for which in (rows.sign > 0, rows.sign < 0):
        known = np.flatnonzero(rows.passes & which)
        seen = rows.at(known)
        units = int(seen.unit.max(initial=-1)) + 1
        found.append(known[touched(seen.interval, seen.unit, np.abs(seen.sign), seen.passes, units)[0]])
    return _until(rows, outputs, *found)


def _until(rows: Rows, outputs: int, come: Ints, leave: Ints) -> tuple[Chosen, Ints]:
    """Those of some rows that outputs show, and those that wait on."""
    outs = [(each[rows.interval[each] < outputs], each[rows.interval[each] >= outputs]) for each in (come, leave)]
    (come, later), (leave, left) = outs
    chosen = Chosen.of(rows, (come, rows.interval[come]), (leave, rows.interval[leave]))
    return chosen, np.concatenate([later, left])


def total(rows: Rows, outputs: int, shows: str) -> tuple[Chosen, Ints, Ints]:
    """Of a total; the latest rows are that of now and that of the last output."""
    numbers, comes = np.arange(outputs), np.flatnonzero(rows.sign > 0)[2:]
    found = np.searchsorted(rows.interval[comes], numbers, "right") - 1
    current = np.where(found >= 0, comes[found], 0) if len(comes) else np.zeros(outputs, np.int64)
    latest = np.array([comes[-1] if len(comes) else 0, current[-1] if outputs else 1])
    if shows == "there":
        return Chosen.of(rows, (current, numbers)), comes[:0], latest
    if shows == "last":
        before = np.concatenate([[1], current])[:outputs].astype(np.int64)
        return Chosen.of(rows, (current, numbers), (before, numbers)), comes[:0], latest
    idle = np.setdiff1d(numbers, rows.interval[comes])
    own = np.flatnonzero(rows.interval >= 0)
    done, comes = own[rows.interval[own] < outputs], rows.sign > 0
    come, leave = done[comes[done]], done[~comes[done]]
    places = [np.concatenate([each, current[idle]]) for each in (come, leave)]
    outs = [np.concatenate([rows.interval[each], idle]) for each in (come, leave)]
    order = [np.argsort(each, kind="stable") for each in outs]
    parts = [(each[by], out[by]) for each, out, by in zip(places, outs, order, strict=True)]
    return Chosen.of(rows, parts[0], parts[1]), own[rows.interval[own] >= outputs], latest


def groups(
    rows: Rows, outputs: int, known: int, every: bool, there: Sequence[Ints] | None
) -> tuple[Chosen, Ints, Ints]:
    """The row of each group as it is at an output: of those that are `there` at it, or (None) of each that there ever was.
    `every`: also as it was at the output before.
    """
    before = int(np.searchsorted(rows.interval, 0))
    latest, order = np.full(known, -1), rows.unit[:before]
    latest[order] = np.arange(before)
    seen = rows.at(np.arange(before, len(rows.interval)))
    come, leave = touched(seen.interval, seen.unit, seen.sign, np.ones(len(seen.unit), bool), known)
    ends = np.searchsorted(seen.interval[come], np.arange(outputs + 1), "right")
    come, leave = come + before, np.where(leave < 0, -1, leave + before)
    new, old = list[Ints](), list[Ints]()
    begin, own, left = 0, come[:0], come[:0]
    for number, end in enumerate(ends.tolist()):
        own, left = come[begin:end], leave[begin:end]
        units = rows.unit[own]
        order = np.concatenate([order, units[latest[units] < 0]])  # as they came first, not as they are numbered
        latest[units] = own
        if number == outputs:
            break
        new.append(latest[order] if there is None else latest[there[number]])
        if every:
            gone = latest.copy()
            gone[units] = left
            old.append(gone[order][gone[order] >= 0])
        begin = end
    found = [_numbered(each) for each in (new, old)]
    stay = np.concatenate([own, left[left >= 0]]) if every else come[:0]
    return Chosen.of(rows, found[0], found[1]), stay, latest[order]


def _numbered(parts: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Places together, each with the number of its part."""
    places = np.concatenate([np.empty(0, np.int64), *parts])
    return places, np.repeat(np.arange(len(parts)), [len(part) for part in parts])
