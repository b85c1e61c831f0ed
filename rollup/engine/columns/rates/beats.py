"""When partitions of a context are shown, each by itself: every so often from its first change on, every so many rows, and when
it ends; and which of its outputs shows which row.

The outputs of a partition are places in a row, those of one partition behind those of the other; behind them is a place for
what waits on.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER
from rollup.engine.columns.cores.parts import REST, Dues, Ended, PartMoves, Parts
from rollup.engine.columns.groups import Ints, spans
from rollup.engine.columns.loops import loop
from rollup.engine.operators import LONG_MAX
from rollup.engine.timers import edge

_COUNTED = """
def core(part, come, left, limit, inserted, removed, ticks, before, closing):
    n = 0
    for i in range(len(part)):
        p = part[i]
        before[i] = ticks[p]
        inserted[p] += come[i]
        removed[p] += left[i]
        if inserted[p] >= limit or removed[p] >= limit:
            closing[n], n, ticks[p], inserted[p], removed[p] = i, n + 1, ticks[p] + 1, 0, 0
    return n
"""
_FIRSTS = f"""
def core(part, at, before, come, left, visible, span, limit, due, inserted, removed, shown, picks):
    n = 0
    for i in range(len(part)):
        p = part[i]
        if due[p] <= before[i]:
            due[p], shown[p] = due[p] + ((before[i] - due[p]) // span + 1) * span, 0
        if shown[p] == 0:
            if not visible[i]:
                continue
            picks[n], n, shown[p] = i, n + 1, 1
        if span > 0:
            if due[p] == {REST}:
                due[p] = at[i] + span
            continue
        inserted[p] += come[i]
        removed[p] += left[i]
        if inserted[p] >= limit or removed[p] >= limit:
            shown[p], inserted[p], removed[p] = 0, 0, 0
    return n
"""


@dataclass(frozen=True)
class Clocks:
    """Of each partition when it is due, how many rows have come and left since its last output, and (1) whether one that shows
    what comes first has shown it.
    """

    due: Ints
    inserted: Ints
    removed: Ints
    shown: Ints

    @classmethod
    def of(cls, table: pa.Table) -> Clocks:
        """From the table of a state; in those of earlier versions nothing says what has left, and how many have come also whether
        something has been shown.
        """
        columns = [each.to_numpy() for each in table.columns]
        if "come" in table.column_names:
            due, come = columns
            return cls(due, come, np.zeros_like(come), (come > 0).astype(np.int64))
        return cls(*columns)

    @classmethod
    def none(cls) -> Clocks:
        """No partition."""
        return cls(*(np.empty(0, np.int64) for _ in range(4)))

    def grown(self, count: int) -> Clocks:
        """With partitions that have just begun; the arrays are others."""
        more = count - len(self.due)
        counts = (np.append(each, np.zeros(more, np.int64)) for each in (self.inserted, self.removed, self.shown))
        return Clocks(np.append(self.due, np.full(more, REST)), *counts)

    def where(self, alive: np.ndarray) -> Clocks:
        """Those of some partitions."""
        return self if alive.all() else Clocks(*(each[alive] for each in vars(self).values()))


@dataclass(frozen=True)
class Outputs:
    """Outputs in order: when, the batch's event that brings each or TIMER, of which partition; whether others are told of the
    event afterwards; whether there is a delivery, be it of no rows; and the place of each.

    `first`: the first place of each partition; `waits`: that of what waits on; `move`: that of what comes with each change.
    """

    at: Ints
    event: Ints
    part: Ints
    early: np.ndarray
    forced: np.ndarray
    place: Ints
    first: Ints
    waits: Ints
    move: Ints

    def numbered(self, alive: np.ndarray) -> Ints:
        """For each place the number of its output, behind which those count that wait on, a partition each; the last number is
        of those that nobody shows.
        """
        shown = len(self.at)
        numbers = np.full(int(self.waits[-1]) + 1 if len(self.waits) else 0, shown + len(alive))
        numbers[self.waits] = np.where(alive, shown + np.arange(len(alive)), shown + len(alive))
        numbers[self.place] = np.arange(shown)
        return numbers

    def bringing(self, parts: Parts) -> np.ndarray:
        """Which changes an output follows before the next change of their partition."""
        part = parts.moves.part
        order = np.argsort(part, kind="stable")
        last = np.flatnonzero(np.diff(part[order], append=-1) != 0)
        following = np.append(self.move[order][1:], 0)
        following[last] = self.waits[part[order[last]]]
        found = np.empty(len(part), bool)
        found[order] = following > self.move[order]
        return found


@dataclass(frozen=True)
class Beats:
    """Every `span`, or every `limit` rows (0: not), and, where it shows itself `at_end`, when the partition ends."""

    span: int = 0
    limit: int = 0
    at_end: bool = False

    def outputs(self, clocks: Clocks, parts: Parts, until: int | None, dues: Dues | None) -> tuple[Outputs, Clocks]:
        """The outputs of a step, and the clocks then; of the clock those that are due by `until` (None: none). Where that has
        jumped over what was due in each partition, these `dues`, all of it comes then, once, in that order.
        """
        if self.span:
            return self._by_clock(clocks, parts, until, dues)
        return self._by_rows(clocks, parts)

    def firsts(
        self, clocks: Clocks, parts: Parts, visible: np.ndarray, until: int | None, dues: Dues | None
    ) -> tuple[Ints, Clocks]:
        """Which of the changes that show something are the first since an output of their partition, and the clocks then; with
        the rest as in `outputs`.
        """
        moves, picks = parts.moves, np.empty(len(parts.moves.part), np.int64)
        if dues is not None and until is not None:
            due = clocks.due[: len(dues.windows)] - moves.after
            self._passed(clocks, np.flatnonzero((due < dues.windows) & (dues.windows <= until)), until)
        n = loop(_FIRSTS)(
            moves.part, moves.at, self._before(moves, dues), moves.come, moves.left, visible,
            self.span, self.limit or LONG_MAX, clocks.due, clocks.inserted, clocks.removed, clocks.shown, picks,
        )  # fmt: skip
        if until is not None:
            self._passed(clocks, np.flatnonzero(clocks.due <= until), until)
        return picks[:n], clocks

    def _passed(self, clocks: Clocks, parts: Ints, until: int) -> None:
        """The clock has gone over outputs of some partitions."""
        clocks.due[parts], clocks.shown[parts] = edge(clocks.due[parts], self.span or 1, until), 0

    @staticmethod
    def _before(moves: PartMoves, dues: Dues | None) -> Ints:
        """Until when the clock of outputs has gone before each change: what windows let out comes before an output of the
        instant at which that was due, unless it comes `after` it.
        """
        clock = moves.event < 0
        if not clock.any():
            return moves.at
        return np.where(clock, (moves.at if dues is None else dues.windows[moves.part]) - (not moves.after), moves.at)

    def _by_clock(self, clocks: Clocks, parts: Parts, until: int | None, dues: Dues | None) -> tuple[Outputs, Clocks]:
        moves, due, ends = parts.moves, clocks.due, np.full(parts.count, -1 if until is None else until)
        if until is not None:
            ends[parts.ended.part] = parts.ended.until
        rests = np.flatnonzero(due[moves.part] == REST)
        begun, first = np.unique(moves.part[rests], return_index=True)
        due[begun] = moves.at[rests[first]] + self.span
        ticks = np.where(due <= ends, (ends - due) // self.span + 1, 0)
        late = None
        if dues is not None:
            late = np.append(dues.ends, np.full(parts.count - len(dues.ends), REST))
            ticks = np.where(due <= late, np.minimum(ticks, 1), 0)
        part = np.repeat(np.arange(parts.count), ticks)
        at, turn = due[part] + spans(np.zeros_like(ticks), ticks) * self.span, part
        if dues is not None:
            at, turn = ends[part], due[part]
        own, gone = due[moves.part], self._before(moves, dues)
        before = np.minimum(np.where(gone >= own, (gone - own) // self.span + 1, 0), ticks[moves.part])
        made = at, np.full(len(part), TIMER), part, turn
        after = np.where(ticks > 0, due + ((ends - due) // self.span + 1) * self.span, due)
        return self._together(parts, ticks, made, before, late), replace(clocks, due=after)

    def _by_rows(self, clocks: Clocks, parts: Parts) -> tuple[Outputs, Clocks]:
        moves, ticks = parts.moves, np.zeros(parts.count, np.int64)
        before, closing = (np.empty(len(moves.part), np.int64) for _ in range(2))
        n = loop(_COUNTED)(
            moves.part, moves.come, moves.left, self.limit or LONG_MAX, clocks.inserted, clocks.removed, ticks, before, closing
        )  # fmt: skip
        closing = closing[:n]
        made = moves.at[closing], moves.event[closing], moves.part[closing], closing
        return self._together(parts, ticks, made, before), clocks

    def _together(
        self, parts: Parts, ticks: Ints, made: tuple[Ints, Ints, Ints, Ints], before: Ints, late: Ints | None = None
    ) -> Outputs:
        """The outputs: instants, events, partitions and order of those `made` before the end, and those at the end; `before`:
        after how many of them each change comes.
        """
        at, event, part, turn = made
        first = np.cumsum(ticks + 1) - (ticks + 1)
        waits = first + ticks
        order = np.argsort(part, kind="stable")
        place = np.empty(len(part), np.int64)
        place[order] = np.delete(np.arange(len(ticks) + len(part)), waits)
        ended = parts.ended if self.at_end else Ended()
        ends = np.repeat([False, True], [len(part), len(ended.part)])
        begins = np.zeros(len(part), bool) if self.span else parts.moves.begins[turn]
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
        move = first[parts.moves.part] + before
        return Outputs(
            at[order], event[order], part[order], early[order], forced[order], place[order], first, waits, move
        )
