"""When partitions of a context are shown, each by itself: every so often from its first event on, every so many events, and when
it ends; and which of its outputs shows which row.

The outputs of a partition are places in a row, those of one partition behind those of the other; behind them is a place for
what waits on.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rollup.engine.columns.cores.batches import TIMER
from rollup.engine.columns.cores.parts import Arrivals, Ended, Parts
from rollup.engine.columns.groups import Ints, spans
from rollup.engine.operators import LONG_MAX

REST = LONG_MAX
"""When a clock is due that does not run."""


@dataclass(frozen=True)
class Clocks:
    """Of each partition when it is due, and how many events have come since its last output."""

    due: Ints
    come: Ints

    def grown(self, count: int) -> Clocks:
        """With partitions that have just begun."""
        more = count - len(self.due)
        if not more:
            return self
        return Clocks(np.append(self.due, np.full(more, REST)), np.append(self.come, np.zeros(more, np.int64)))

    def where(self, alive: np.ndarray) -> Clocks:
        """Those of some partitions."""
        return self if alive.all() else Clocks(self.due[alive], self.come[alive])

    @property
    def next(self) -> int | None:
        """When one is due next."""
        due = int(self.due.min(initial=REST))
        return None if due == REST else due


@dataclass(frozen=True)
class Outputs:
    """Outputs in order: when, the batch's event that brings each or TIMER, of which partition; whether others are told of the
    event afterwards; whether there is a delivery, be it of no rows; and the place of each.

    `first`: the first place of each partition; `waits`: that of what waits on; `arrival`: that of what comes with each arrival.
    """

    at: Ints
    event: Ints
    part: Ints
    early: np.ndarray
    forced: np.ndarray
    place: Ints
    first: Ints
    waits: Ints
    arrival: Ints

    def numbered(self, alive: np.ndarray) -> Ints:
        """For each place the number of its output, behind which those count that wait on, a partition each; the last number is
        of those that nobody shows.
        """
        shown = len(self.at)
        numbers = np.full(int(self.waits[-1]) + 1 if len(self.waits) else 0, shown + len(alive))
        numbers[self.waits] = np.where(alive, shown + np.arange(len(alive)), shown + len(alive))
        numbers[self.place] = np.arange(shown)
        return numbers


@dataclass(frozen=True)
class Beats:
    """Every `span`, or every `limit` events (0: not), and, where it shows itself `at_end`, when the partition ends."""

    span: int = 0
    limit: int = 0
    at_end: bool = False

    def outputs(self, clocks: Clocks, parts: Parts, until: int | None, late: Ints | None) -> tuple[Outputs, Clocks]:
        """The outputs of a step, and the clocks then; of the clock those that are due by `until` (None: none). Those that are
        `late` come then, each once, unless its partition was to end before: when the clock was to end each.
        """
        if self.span:
            return self._by_clock(clocks, parts, until, late)
        return self._by_events(clocks, parts)

    def _by_clock(self, clocks: Clocks, parts: Parts, until: int | None, late: Ints | None) -> tuple[Outputs, Clocks]:
        arrivals, due, ends = parts.arrivals, clocks.due.copy(), np.full(parts.count, -1 if until is None else until)
        if until is not None:
            ends[parts.ended.part] = parts.ended.until
        rests = np.flatnonzero(due[arrivals.part] == REST)
        begun, first = np.unique(arrivals.part[rests], return_index=True)
        due[begun] = arrivals.at[rests[first]] + self.span
        ticks = np.where(due <= ends, (ends - due) // self.span + 1, 0)
        if late is not None:
            late = np.append(late, np.full(parts.count - len(late), REST))
            ticks = np.where(due <= late, np.minimum(ticks, 1), 0)
        part = np.repeat(np.arange(parts.count), ticks)
        at, turn = due[part] + spans(np.zeros_like(ticks), ticks) * self.span, part
        if late is not None:
            at, turn = ends[part], due[part]
        own = due[arrivals.part]
        before = np.where(arrivals.at >= own, (arrivals.at - own) // self.span + 1, 0)
        come = _come(clocks.come, arrivals, before, ticks, parts.count)
        made = at, np.full(len(part), TIMER), part, turn
        after = Clocks(np.where(ticks > 0, due + ((ends - due) // self.span + 1) * self.span, due), come)
        return self._together(parts, ticks, made, before, late), after

    def _by_events(self, clocks: Clocks, parts: Parts) -> tuple[Outputs, Clocks]:
        arrivals, limit = parts.arrivals, self.limit or LONG_MAX
        counts = np.bincount(arrivals.part, minlength=parts.count)
        order = np.argsort(arrivals.part, kind="stable")
        begins = np.cumsum(counts) - counts
        seen = np.empty(len(order), np.int64)
        seen[order] = np.arange(len(order)) - begins[arrivals.part[order]] + clocks.come[arrivals.part[order]]
        closing = order[(seen[order] + 1) % limit == 0]
        come, ticks = (clocks.come + counts) % limit, (clocks.come + counts) // limit
        made = arrivals.at[closing], arrivals.event[closing], arrivals.part[closing], closing
        return self._together(parts, ticks, made, seen // limit), Clocks(clocks.due, come)

    def _together(
        self, parts: Parts, ticks: Ints, made: tuple[Ints, Ints, Ints, Ints], before: Ints, late: Ints | None = None
    ) -> Outputs:
        """The outputs: instants, events, partitions and order of those `made` before the end, and those at the end; `before`:
        after how many of them each arrival comes.
        """
        at, event, part, turn = made
        first = np.cumsum(ticks + 1) - (ticks + 1)
        waits = first + ticks
        place = np.delete(np.arange(len(ticks) + len(part)), waits)
        ended = parts.ended if self.at_end else Ended()
        ends = np.repeat([False, True], [len(part), len(ended.part)])
        begins = np.zeros(len(part), bool) if self.span else parts.arrivals.begins[turn]
        early = np.concatenate([begins, np.ones(len(ended.part), bool)])
        at, event = np.concatenate([at, ended.until]), np.concatenate([event, ended.by])
        part, place = np.concatenate([part, ended.part]), np.concatenate([place, waits[ended.part]])
        # What ends by the clock does so after its output, what ends by an event before that comes to others.
        behind = ends == (event < 0)
        if late is None:
            order = np.lexsort((np.concatenate([turn, np.arange(len(ended.part))]), behind, event, at))
        else:
            order = np.lexsort((part, behind, np.concatenate([turn, late[ended.part]])))
        forced = ends | (self.span > 0)
        arrival = first[parts.arrivals.part] + before
        return Outputs(
            at[order], event[order], part[order], early[order], forced[order], place[order], first, waits, arrival
        )


def _come(come: Ints, arrivals: Arrivals, before: Ints, ticks: Ints, count: int) -> Ints:
    """How many events have come to each partition since its last output, where each comes after so many of them."""
    since = np.bincount(arrivals.part[before == ticks[arrivals.part]], minlength=count)
    return np.where(ticks > 0, 0, come) + since
