"""Windows by key: one row a key, and one window a key."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rollup.engine.compiling import is_key
from rollup.engine.expressions import Expr, Field
from rollup.engine.row import NOTHING, Delta, Row, delta_of
from rollup.engine.rows.windows.base import Host, Key, Window, WindowSpec, key_of


@dataclass(frozen=True)
class Unique:
    """The newest row of each key, which makes the one before leave; `first`: the first of each key, later ones unseen."""

    key: tuple[Expr, ...]
    first: bool = False

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return UniqueWindow(key_of(self.key, host), self.first, self._places())

    def _places(self) -> tuple[int, ...]:
        """The fields that are the key, where it is nothing but fields, in their order, whose values are keys as they are."""
        places = [each.index for each in self.key if isinstance(each, Field) and is_key(each.type)]
        return tuple(places) if len(places) == len(self.key) and places == sorted(places) else ()


class UniqueWindow(Window):
    """One row a key; `places`: the fields that are the key, by which a named window need not keep its rows again."""

    told = True

    def __init__(self, key: Key, first: bool, places: tuple[int, ...]) -> None:
        self._key, self._first, self.places = key, first, places
        self.passes_empty = not first
        self._rows: dict[Any, Row] = {}

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        new: list[Row] = []
        old: list[Row] = []
        held, key_of = self._rows, self._key
        for row in rows:
            key = key_of(row)
            known = held.get(key)
            if known is not None:
                if self._first:
                    continue
                old.append(known)
            held[key] = row
            new.append(row)
        return delta_of((new, old, False)) if new else NOTHING

    def having(self, key: Any) -> Sequence[Row]:
        """The row of a key, of the values at `places`."""
        row = self._rows.get(key)
        return () if row is None else (row,)

    def sole(self, key: Any) -> Row | None:
        """The same; None where there is none."""
        return self._rows.get(key)

    def content(self) -> Iterable[Row]:
        return iter(self._rows.values())

    def remove(self, row: Row) -> None:
        key = self._key(row)
        if self._rows.get(key) is row:
            del self._rows[key]

    def snapshot(self) -> Any:
        return list(self._rows.values())

    def restore(self, state: Any) -> None:
        self._rows = {self._key(row): row for row in state}


@dataclass(frozen=True)
class Grouped:
    """One window a key, made when the key first comes."""

    key: tuple[Expr, ...]
    inner: WindowSpec

    def build(self, host: Host) -> Window:
        """The windows, none yet."""
        return _Grouped(key_of(self.key, host), self.inner, host)


class _Grouped(Window):
    keyed = True
    passes_empty = False

    def __init__(self, key: Key, inner: WindowSpec, host: Host) -> None:
        self._key, self._inner, self._host = key, inner, host
        first = inner.build(host)
        self._timed, self.forces, self.told, self.in_batches = first.timed, first.forces, first.told, first.in_batches
        self._places: dict[Any, int] = {}
        self._windows: list[Window] = []
        self._asked: list[int | None] = []
        self._heap: list[tuple[int, int]] = []
        """What was asked for, by instant and place; what a window no longer asks for is passed over."""

    @property
    def timed(self) -> bool:
        return self._timed

    @property
    def due(self) -> int | None:
        while self._heap and self._asked[self._heap[0][1]] != self._heap[0][0]:
            heapq.heappop(self._heap)
        return self._heap[0][0] if self._heap else None

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        if len(rows) == 1:
            return self._entered(self._of(rows[0]), rows, now)
        new: list[Row] = []
        old: list[Row] = []
        arrived: dict[int, list[Row]] = {}
        for row in rows:
            arrived.setdefault(self._of(row), []).append(row)
        for place, own in arrived.items():
            delta = self._entered(place, own, now)
            new += delta.new
            old += delta.old
        return Delta(new, old)

    def _entered(self, place: int, rows: Sequence[Row], now: int) -> Delta:
        delta = self._windows[place].enter(rows, now)
        if self._timed:
            self._note(place)
        return Delta(delta.new, delta.old) if delta.forced else delta

    def fire(self, now: int) -> Delta:
        """The window that is due first; each key's is a change of its own, so others may be due still."""
        due = self.due
        if due is None or due > now:
            return NOTHING
        place = self._heap[0][1]
        delta = self._windows[place].fire(now)
        self._note(place)
        return delta

    def content(self) -> Iterable[Row]:
        return (row for window in self._windows for row in window.content())

    def shown(self) -> Iterable[Row]:
        return (row for window in self._windows for row in window.shown())

    def remove(self, row: Row) -> None:
        place = self._of(row)
        self._windows[place].remove(row)
        self._note(place)

    def previous(self, row: Row) -> Sequence[Row]:
        """The rows of the same key."""
        return self._windows[self._of(row)].previous(row)

    def around(self, row: Row) -> Sequence[Row]:
        """The rows of the same key."""
        return self._windows[self._of(row)].around(row)

    def snapshot(self) -> Any:
        return [[key, self._windows[place].snapshot()] for key, place in self._places.items()]

    def restore(self, state: Any) -> None:
        for key, inner in state:
            place = self._new(key)
            self._windows[place].restore(inner)
            self._note(place)

    def _note(self, place: int) -> None:
        """Remember when a window is due next."""
        due = self._windows[place].due
        if due != self._asked[place]:
            self._asked[place] = due
            if due is not None:
                heapq.heappush(self._heap, (due, place))

    def _of(self, row: Row) -> int:
        key = self._key(row)
        place = self._places.get(key)
        return self._new(key) if place is None else place

    def _new(self, key: Any) -> int:
        place = self._places[key] = len(self._windows)
        self._windows.append(self._inner.build(self._host))
        self._asked.append(None)
        return place
