"""Between which outputs the events of a step arrive, be they changes or not."""

from __future__ import annotations

import numpy as np

from rollup.engine.columns.cores.parts import Parts
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.beats import Clocks, Outputs


def arrivals(parts: Parts, part: Ints, outputs: Outputs, clocks: Clocks, span: int) -> Ints:
    """The place among the outputs of each event taken, of which `part` are the partitions; `clocks` as they are when the outputs
    begin, which come every `span`, or (0) with changes.
    """
    times, first = parts.made.taken.times, outputs.first[part]
    if span:
        due = clocks.due[part]
        return np.minimum(first + np.where(times >= due, (times - due) // span + 1, 0), outputs.waits[part])
    moves = parts.made.moves
    assert moves is not None
    # A change by an event comes with its arrival, one by the clock before those of its instant.
    latest = np.where(moves.event >= 0, moves.event, np.searchsorted(times, moves.at) - 1)
    most = len(times) + 2
    key = parts.moves.part * most + latest + 1
    order = np.argsort(key, kind="stable")
    following = np.searchsorted(key[order], part * most + np.arange(len(part)) + 1)
    found = outputs.waits[part]
    there = np.flatnonzero(following < len(order))
    change = order[following[there]]
    same = parts.moves.part[change] == part[there]
    found[there[same]] = outputs.move[change[same]]
    return found
