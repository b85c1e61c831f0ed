"""Sessions: the rows of a key that follow one another closely."""

from __future__ import annotations

import heapq
from bisect import insort
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

from rollup.engine.row import NOTHING, Delta, Row
from rollup.engine.rows.windows.base import Host, Window, key_of


@dataclass(frozen=True)
class Session:
    """The rows of a key until nothing of it has come for `span`; then all of it leave together. No key: one session.

    Sessions that end at one instant leave together; those of two instants one after the other, also after a jump. With
    `latency` a session that has ended leaves so much later; what comes of its key meanwhile is another session.
    """

    span: int
    key: tuple[Any, ...] = ()
    latency: int = 0

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Session(self.span, key_of(self.key, host), self.latency)


class _Session(Window):
    def __init__(self, span: int, key: Any, latency: int) -> None:
        self._span, self._key, self._latency = span, key, latency
        self._ended: list[tuple[int, list[Row]]] = []
        """Sessions that have ended and have yet to leave, with the instant at which they do, in its order."""
        self._rows: dict[Any, list[Row]] = {}
        self._last: dict[Any, int] = {}
        self._numbers: dict[Any, int] = {}
        self._number = self._newest = 0
        self._heap: list[tuple[int, int, Any]] = []
        """One entry a session: its last row's time when that was looked at last, and its number."""

    @property
    def due(self) -> int | None:
        end = self._end_next()
        return end if not self._ended or (end is not None and end < self._ended[0][0]) else self._ended[0][0]

    def _end_next(self) -> int | None:
        """When the next session ends."""
        while self._heap:
            last, number, key = self._heap[0]
            if self._numbers.get(key) != number:  # it has ended
                heapq.heappop(self._heap)
            elif self._last[key] != last:
                heapq.heapreplace(self._heap, (self._last[key], number, key))
            else:
                return last + self._span
        return None

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        now = self._newest = max(now, self._newest)  # a row that is late counts with the newest
        for row in rows:
            key = self._key(row)
            if key in self._rows and now > self._last[key] + self._span:  # the clock stands later than the row
                insort(self._ended, (self._last[key] + self._span + self._latency, self._end(key)), key=itemgetter(0))
            if key not in self._rows:
                self._begin(key, now)
            self._rows[key].append(row)
            self._last[key] = now
        return Delta(rows, ())

    def _begin(self, key: Any, now: int) -> None:
        self._rows[key] = []
        self._number += 1
        self._numbers[key] = self._number
        heapq.heappush(self._heap, (now, self._number, key))

    def _end(self, key: Any) -> list[Row]:
        self._last.pop(key, None)
        self._numbers.pop(key, None)
        return self._rows.pop(key, [])

    def fire(self, now: int) -> Delta:
        out, instant = list[Row](), self.due
        if instant is None or instant > now:
            return NOTHING
        while self._end_next() == instant:
            self._ended.append((instant + self._latency, self._end(self._heap[0][2])))
        while self._ended and self._ended[0][0] == instant:
            out += self._ended.pop(0)[1]
        return Delta((), out)

    def content(self) -> Iterable[Row]:
        return (row for rows in (*(rows for _, rows in self._ended), *self._rows.values()) for row in rows)

    def remove(self, row: Row) -> None:
        self._ended = [(at, [each for each in rows if each is not row]) for at, rows in self._ended]
        key = self._key(row)
        rows = [each for each in self._rows.get(key, []) if each is not row]
        if rows:
            self._rows[key] = rows
        else:
            self._end(key)

    def snapshot(self) -> Any:
        return [[[key, rows, self._last[key]] for key, rows in self._rows.items()], self._ended, self._newest]

    def restore(self, state: Any) -> None:
        self._ended, self._newest = [(at, rows) for at, rows in state[1]], state[2]
        for key, rows, last in state[0]:
            self._begin(key, last)
            self._rows[key], self._last[key] = rows, last
