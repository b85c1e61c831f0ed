"""Where outputs divide the changes of an input: loops over changes and over the rows that they make.

A change is an arrival, or what the clock lets out of a window at an instant. An interval is the changes between two
outputs; the last one of a step is unfinished.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from rollup.engine.columns.cores.batches import TIMER
from rollup.engine.columns.cores.projecting import Made, Moves
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop
from rollup.engine.timers import edge

_FIRST = """
def core(at, before, arrived, left, visible, now, span, limit, running, due, opened, inserted, removed, picks):
    n = 0
    for i in range(len(at) + 1):
        t = before[i] if i < len(at) else now
        if running and due <= t:
            opened, due = True, due + ((t - due) // span + 1) * span
        if i == len(at):
            break
        if opened:
            if not visible[i]:
                continue
            picks[n] = i
            n, opened = n + 1, False
        if span > 0:
            if not running:
                running, due = True, at[i] + span
            continue
        inserted += arrived[i]
        removed += left[i]
        if inserted >= limit or removed >= limit:
            opened, inserted, removed = True, 0, 0
    return n, running, due, opened, inserted, removed
"""
_STEPS = """
def core(come, left, entering, leaving, of_rows, group, passes, units, row, change, leaves):
    n, r, begin, head, place = 0, 0, 0, 0, np.empty(units, np.int64)
    for c in range(len(come)):
        while r < len(of_rows) and of_rows[r] == c:
            place[group[r]] = r if passes[r] else -1
            r += 1
        for i in range(come[c] + left[c]):
            goes = i >= come[c]
            code = leaving[head + i - come[c]] if goes else entering[begin + i]
            if place[code] >= 0:
                row[n], change[n], leaves[n] = place[code], c, goes
                n += 1
        begin, head = begin + come[c], head + left[c]
    return n
"""
_FIRST_OF_UNITS = """
def core(at, unit, change, leaves, span, limit, seen, count, since, left, picks):
    n, changed, placed = 0, np.full(len(seen), -1, np.int64), np.empty(len(seen), np.int64)
    for i in range(len(at)):
        u = unit[i]
        if leaves[i]:
            left[u] += 1
        else:
            count[u] += 1
        enough = limit > 0 and (count[u] >= limit or left[u] >= limit)
        if not seen[u] or enough or (span > 0 and at[i] - since[u] >= span):
            seen[u], count[u], since[u], left[u] = True, 0, at[i], 0
            if changed[u] != change[i]:
                changed[u], placed[u] = change[i], n
                n += 1
            picks[placed[u]] = i
    return n
"""
_TOUCHED = """
def core(interval, unit, sign, passes, stamps, places, come, leave):
    n = 0
    for i in range(len(interval)):
        u = unit[i]
        if stamps[u] != interval[i]:
            stamps[u], places[u], come[n], leave[n] = interval[i], n, -1, -1
            n += 1
        if sign[i] > 0:
            come[places[u]] = i
        elif leave[places[u]] < 0 and passes[i]:
            leave[places[u]] = i
    return n
"""


def moves_of(made: Made) -> Moves:
    """The changes that made some rows: arrivals and, at an instant before them, what the clock let out."""
    if made.moves is not None:
        return made.moves
    times, (instants, gone) = made.taken.times, np.unique(made.gone, return_counts=True)
    arrivals = np.arange(len(times)) + np.searchsorted(instants, times, "right")
    leavings = np.arange(len(instants)) + np.searchsorted(times, instants)
    at, event, left = (np.empty(len(times) + len(instants), np.int64) for _ in range(3))
    at[arrivals], event[arrivals], left[arrivals] = times, np.arange(len(times)), 0
    at[leavings], event[leavings], left[leavings] = instants, TIMER, gone
    come = (event >= 0).astype(np.int64)  # where arrivals let rows out those are never more than come
    return Moves(at, event, come, left, _of_rows(made, arrivals, leavings, instants))


def _of_rows(made: Made, arrivals: Ints, leavings: Ints, instants: Ints) -> Ints:
    """The change that made each row."""
    event = made.event
    if event is None:
        return arrivals
    if not len(instants):
        return event
    found, arrived = np.empty(len(event), np.int64), event >= 0
    found[arrived] = arrivals[event[arrived]]
    found[~arrived] = leavings[np.searchsorted(instants, made.at[~arrived])]
    return found


@dataclass(frozen=True)
class Opening:
    """Whether an interval waits for its first change; by the clock, once that runs, one begins at `due`."""

    opened: bool = True
    due: int | None = None
    inserted: int = 0
    removed: int = 0


def first(
    moves: Moves, visible: np.ndarray, pace: tuple[int, int], now: int, then: Opening, late: int | None
) -> tuple[Ints, Opening]:
    """The changes that are the first of their interval to show something. `pace`: span and number of rows, one of them 0.

    What the clock brings comes before an output of its instant. `late`: when that was due, where a clock that jumped is late.
    """
    picks, begun = np.empty(len(visible), np.int64), then.due is not None
    before = np.where(moves.event == TIMER, moves.at - 1, moves.at)
    if late is not None:
        before = np.full(len(moves.at), late - 1)
        if then.due is not None and then.due < late:
            then = replace(then, opened=True, due=edge(then.due, pace[0], now))
    n, begun, due, opened, inserted, removed = loop(_FIRST)(
        moves.at, before, moves.come, moves.left, visible, now, *pace, begun, then.due or 0, then.opened, then.inserted, then.removed, picks
    )  # fmt: skip
    return picks[:n], Opening(bool(opened), int(due) if begun else None, int(inserted), int(removed))


@dataclass(frozen=True)
class Steps:
    """Rows of an input that come or leave, one after the other: the row made of each, its change, and whether it leaves."""

    row: Ints
    change: Ints
    leaves: np.ndarray


def steps_of(made: Made, begin: int, passes: np.ndarray, by_group: bool) -> Steps:
    """The steps whose rows pass. `by_group`: the row made is that of a group after the change, whatever of the group comes and
    leaves in it; before the arrivals of `made.codes` stand `begin` rows that are in the window.
    """
    if made.moves is None or not by_group:
        row = np.flatnonzero(passes)
        change = row if made.moves is None else made.moves.of_rows[row]
        return Steps(row, change, np.zeros(len(row), bool) if made.sign is None else made.sign[row] < 0)
    moves, codes = made.moves, made.codes
    assert codes is not None
    entering, leaving = (codes[each] for each in moves.listed) if moves.listed else (codes[begin:], codes)
    most = int(moves.come.sum() + moves.left.sum())
    row, change, leaves = np.empty(most, np.int64), np.empty(most, np.int64), np.empty(most, bool)
    n = loop(_STEPS)(
        moves.come, moves.left, entering, leaving, moves.of_rows, made.group, passes, int(codes.max(initial=-1)) + 1, row, change, leaves
    )  # fmt: skip
    return Steps(row[:n], change[:n], leaves[:n])


def first_of_units(at: Ints, unit: Ints, steps: Steps, pace: tuple[int, int], units: Sequence[np.ndarray]) -> Ints:
    """The steps that begin an interval of their unit, each at its instant; of several in one change the last, in the place of
    the first. `units`, which are changed: seen, rows that came since, since when, rows that left since.
    """
    picks = np.empty(len(at), np.int64)
    return picks[: loop(_FIRST_OF_UNITS)(at, unit, steps.change, steps.leaves, *pace, *units, picks)]


def touched(interval: Ints, unit: Ints, sign: np.ndarray, passes: np.ndarray, units: int) -> tuple[Ints, Ints]:
    """For each unit of each interval, by first appearance: the last row that comes, and of those that leave and pass the
    first (-1: none).
    """
    stamps, places = np.full(units, -1), np.empty(units, np.int64)
    come, leave = np.empty(len(interval), np.int64), np.empty(len(interval), np.int64)
    n = loop(_TOUCHED)(interval, unit, sign, passes, stamps, places, come, leave)
    return come[:n], leave[:n]
