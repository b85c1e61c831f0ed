"""Sessions: the rows of a key that follow one another closely."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rollup.engine.row import Delta, Row
from rollup.engine.rows.windows.base import Host, Window, key_of


@dataclass(frozen=True)
class Session:
    """The rows of a key until nothing of it has come for `span`; then all of it leave together. No key: one session.

    Sessions that end at one instant leave together; those of two instants one after the other, also after a jump.
    """

    span: int
    key: tuple[Any, ...] = ()

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Session(self.span, key_of(self.key, host))


class _Session(Window):
    def __init__(self, span: int, key: Any) -> None:
        self._span, self._key = span, key
        self._rows: dict[Any, list[Row]] = {}
        self._last: dict[Any, int] = {}
        self._numbers: dict[Any, int] = {}
        self._number = 0
        self._heap: list[tuple[int, int, Any]] = []
        """One entry a session: its last row's time when that was looked at last, and its number."""

    @property
    def due(self) -> int | None:
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
        for row in rows:
            key = self._key(row)
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
        while instant is not None and instant <= now and self.due == instant:
            out += self._end(self._heap[0][2])
        return Delta((), out)

    def content(self) -> Iterable[Row]:
        return (row for rows in self._rows.values() for row in rows)

    def remove(self, row: Row) -> None:
        key = self._key(row)
        rows = [each for each in self._rows.get(key, []) if each is not row]
        if rows:
            self._rows[key] = rows
        else:
            self._end(key)

    def snapshot(self) -> Any:
        return [[key, rows, self._last[key]] for key, rows in self._rows.items()]

    def restore(self, state: Any) -> None:
        for key, rows, last in state:
            self._begin(key, last)
            self._rows[key], self._last[key] = rows, last
