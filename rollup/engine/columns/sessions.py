"""Sessions: for each key a window from a row that begins one to a row that ends it, or for the length of its life.

An opening row is not asked whether it ends; a closing row is asked whether it begins the next. One clock, the greatest
time seen, expires the sessions of all keys: a session that began at b is over at the first later row at which the clock
has reached b + life, and that row is not in it. Rows outside a session are dropped.

Rows are sorted by key, and for each row the next that begins and the next that ends is found for all at once; only the
walk from session to session is a loop. Sessions are numbered by opening; the open ones stay with their key and number.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from rollup.engine.columns.groups import Bools, Ints, grouped, joined, spans

EndsAt = Callable[[int, Ints], int | None]
"""`ends(opening row, later rows of its key)`: the place in the later rows of the first that ends the session."""


class Rows(NamedTuple):
    """The rows of a batch: their time, whether they begin and whether they end a session, and their keys.

    `ends` is a function where the end depends on the opening row.
    """

    times: Ints
    begins: Bools
    ends: Bools | EndsAt | None
    keys: Sequence[pa.Array]


class Placed(NamedTuple):
    """Which rows go into which session, and the sessions that closed, in order of closing."""

    rows: Ints
    sessions: Ints
    closed: Ints
    opened: Ints
    """For each open session, in the order of the state, its opening row in the batch; below 0: carried session -1 - i."""
    numbers: Ints
    """The numbers of the sessions that stay open."""
    starts: Ints
    """When the sessions that stay open began."""
    clock: int | None
    total: int
    """How many sessions there have been."""


@dataclass(frozen=True)
class Sessions:
    """The shape of the sessions; `life` None: they do not expire."""

    inclusive: bool
    life: int | None

    def place(
        self, rows: Rows, old_keys: Sequence[pa.Array], open_: tuple[Ints, Ints], clock: int | None, count: int
    ) -> Placed:
        """Sort a batch into sessions, given those that are open: their keys, their numbers and when they began."""
        walk = _Walk(self, rows, old_keys, open_, clock)
        return walk.placed(count)


class _Walk:
    """One batch. Carried sessions stand as opening rows before the batch's own."""

    def __init__(
        self, shape: Sessions, rows: Rows, old_keys: Sequence[pa.Array], open_: tuple[Ints, Ints], clock: int | None
    ) -> None:
        self.shape, self.rows = shape, rows
        self.numbers, starts = open_
        self.carried = len(self.numbers)
        self.total = self.carried + len(rows.times)
        self.starts = np.concatenate([starts, rows.times])
        early = rows.times[:1] if clock is None else np.array([clock], np.int64)
        clocks = np.maximum.accumulate(np.concatenate([early, rows.times]))
        self.clock = int(clocks[-1]) if len(clocks) else None
        self.clocks = np.concatenate([np.repeat(early, self.carried), clocks[1:] if len(clocks) else clocks])
        keys = [joined(old, new) for old, new in zip(old_keys, rows.keys, strict=True)]
        groups = grouped(np.zeros(self.total, np.int64), keys, self.carried)
        # numpy sorts numbers of 16 bits in one pass, and there are seldom more keys.
        small = groups.codes.astype(np.uint16) if groups.size < 2**16 else groups.codes
        self.order = np.argsort(small, kind="stable")
        self.key = groups.codes[self.order]
        self.borders = np.searchsorted(self.key, np.arange(groups.size + 1))
        begins = np.concatenate([np.ones(self.carried, bool), rows.begins])[self.order]
        self.begins = np.flatnonzero(begins)
        self.before = np.concatenate([[0], np.cumsum(begins)])  # how many rows that begin lie before each place

    def placed(self, count: int) -> Placed:
        opening, stop, closing, expired = self._sessions()
        at = self.order[opening]  # the row that opens, in order of arrival
        by_opening = np.argsort(at, kind="stable")
        opening, stop, closing, at = (each[by_opening] for each in (opening, stop, closing, at))
        expired = expired[by_opening]
        number = np.empty(len(at), np.int64)
        old = at < self.carried
        number[old] = self.numbers[at[old]]
        number[~old] = count + np.arange(int((~old).sum()))
        lengths = stop - opening
        session = np.repeat(np.arange(len(at)), lengths)
        rows = self.order[spans(opening, lengths)] - self.carried
        real = rows >= 0
        rows, session = rows[real], session[real]
        done = closing >= 0
        shut = np.lexsort((number[done], ~expired[done], closing[done]))
        stays = ~done
        opened = np.where(old, -1 - at, at - self.carried)[stays]
        return Placed(
            rows, number[session], number[done][shut], opened, number[stays], self.starts[at[stays]], self.clock,
            count + int((~old).sum()),
        )  # fmt: skip

    def _sessions(self) -> tuple[Ints, Ints, Ints, Bools]:
        """For each session: the place of its opening row by key, the place after its last, the row that closed it."""
        stop, again, closing, expired = self._closings()
        hop = self.before[again].tolist()
        limits = self.before[self.borders[1:]].tolist()
        opening: list[int] = []
        for group, rank in enumerate(self.before[self.borders[:-1]].tolist()):
            limit = limits[group]
            while rank < limit:
                opening.append(rank)
                rank = hop[rank]
        found = np.array(opening, np.int64)
        return self.begins[found], stop[found], closing[found], expired[found]

    def _closings(self) -> tuple[Ints, Ints, Ints, Bools]:
        """For each row that may open: where the session stops, where the next may begin, the closing row, expired."""
        border = self.borders[1:][self.key[self.begins]] if len(self.begins) else np.empty(0, np.int64)
        over, over_row = self._expiry(border)
        end = self._ends(np.minimum(over, border))
        ended = end < np.minimum(over, border)
        stop = np.where(ended, end + (1 if self.shape.inclusive else 0), np.minimum(over, border))
        rows = np.append(self.order, 0)
        closing = np.where(ended, rows[np.minimum(end, self.total)], over_row)
        again = np.where(ended, end, np.where(over_row >= 0, over, self.total))
        again = np.where(again < border, again, self.total)
        return stop, again, closing, (over_row >= 0) & ~ended

    def _expiry(self, border: Ints) -> tuple[Ints, Ints]:
        """The first place of the key that the session no longer has, and the row at which it is over."""
        if self.shape.life is None or not len(self.begins):
            return border, np.full(len(self.begins), -1, np.int64)
        rows, key = self.order[self.begins], self.key[self.begins]
        due = np.searchsorted(self.clocks, self.starts[rows] + self.shape.life)
        due = np.maximum(due, np.maximum(rows + 1, self.carried))
        over = due < self.total
        place = border.copy()
        if over.any():
            line = self.key * (self.total + 1) + self.order
            place[over] = np.searchsorted(line, key[over] * (self.total + 1) + due[over])
        return place, np.where(over, due, -1)

    def _ends(self, limit: Ints) -> Ints:
        """The place of the row that ends the session, `total` where none does."""
        ends = self.rows.ends
        if ends is None:
            return np.full(len(self.begins), self.total, np.int64)
        if not callable(ends):
            marks = np.flatnonzero(np.concatenate([np.zeros(self.carried, bool), ends])[self.order])
            return np.append(marks, self.total)[np.searchsorted(marks, self.begins, side="right")]
        found = np.full(len(self.begins), self.total, np.int64)
        for rank, place in enumerate(self.begins.tolist()):
            later = self.order[place + 1 : limit[rank]] - self.carried
            at = ends(int(self.order[place]) - self.carried, later)
            if at is not None:
                found[rank] = place + 1 + at
        return found
