"""Where outputs divide the changes of an input: loops over changes and over the rows that they make.

A change is an arrival, or what the clock lets out of a window at an instant. An interval is the changes between two
outputs; the last one of a step is unfinished.
"""

from __future__ import annotations

import numpy as np

from rollup.engine.columns.cores.batches import TIMER
from rollup.engine.columns.cores.projecting import Made, Moves
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.loops import loop

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


def touched(interval: Ints, unit: Ints, sign: np.ndarray, passes: np.ndarray, units: int) -> tuple[Ints, Ints]:
    """For each unit of each interval, by first appearance: the last row that comes, and of those that leave and pass the
    first (-1: none).
    """
    stamps, places = np.full(units, -1), np.empty(units, np.int64)
    come, leave = np.empty(len(interval), np.int64), np.empty(len(interval), np.int64)
    n = loop(_TOUCHED)(interval, unit, sign, passes, stamps, places, come, leave)
    return come[:n], leave[:n]
