"""Windows bounded by a number of rows, and those that keep all, the first or the last."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rollup.engine.row import NOTHING, Delta, Row, delta_of
from rollup.engine.rows.windows.base import Host, Kept, Window


@dataclass(frozen=True)
class Length:
    """The last `size` rows; the oldest leaves with the arrival that is one too many. Of size 0: each leaves at once.

    >>> from rollup.engine.rows.runner import Runner
    >>> window = Length(1).build(Runner())
    >>> _ = window.enter([Row(1, ("a",))], 0)
    >>> window.enter([Row(2, ("b",))], 0).old
    [Row(1, ('a',))]
    """

    size: int

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Length(self.size)


class _Length(Kept):
    told = True

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        old: list[Row] = []
        held = self.rows
        for row in rows:
            held[row.id] = row
            if len(held) > self._size:
                old.append(held.popitem(last=False)[1])
        return delta_of((rows, old, False))


@dataclass(frozen=True)
class KeepAll:
    """Every row, for ever."""

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _KeepAll()


class _KeepAll(Kept):
    told = True

    @property
    def admit(self) -> Callable[[Row], None]:
        """Nothing ever leaves."""
        return self.push

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        for row in rows:
            self.push(row)
        return Delta(rows, ())


@dataclass(frozen=True)
class FirstLength:
    """The first `size` rows; later ones are not seen until one of these is taken out."""

    size: int

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _FirstLength(self.size)


class _FirstLength(Kept):
    told = True
    passes_empty = False

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        taken = list(rows[: max(0, self._size - len(self.rows))])
        for row in taken:
            self.push(row)
        return Delta(taken, ())


class Batches(Window):
    """A window that lets rows out in batches: `current` is being filled, `last` is what it let out before."""

    in_batches = True
    passes_empty = False

    def __init__(self) -> None:
        self.current: list[Row] = []
        self.last: list[Row] = []

    def content(self) -> Iterable[Row]:
        """The unfinished batch."""
        return iter(self.current)

    def shown(self) -> Iterable[Row]:
        """The batch that was let out."""
        return iter(self.last)

    def previous(self, row: Row) -> Sequence[Row]:
        """The batch of the row, up to the row itself; of a batch that is gone nothing."""
        batch = self.around(row)
        place = next((n for n, each in enumerate(batch) if each is row), -1)
        return batch[: place + 1]

    def around(self, row: Row) -> Sequence[Row]:
        """The batch of the row."""
        return next((batch for batch in (self.last, self.current) if any(each is row for each in batch)), ())

    def remove(self, row: Row) -> None:
        """Out of the unfinished batch, and out of what will be let out as leaving."""
        self.current = [each for each in self.current if each is not row]

    def release(self) -> Delta:
        """The batch is complete: it comes, the one before leaves."""
        delta = Delta(self.current, self.last)
        self.last, self.current = self.current, []
        return delta

    def snapshot(self) -> Any:
        """Both batches."""
        return [self.current, self.last]

    def restore(self, state: Any) -> None:
        """Both batches."""
        self.current, self.last = state[0], state[1]


@dataclass(frozen=True)
class LengthBatch:
    """Rows in batches of `size`. `early`: a row comes at once, and all leave together when the next batch begins.

    `together`: what arrives in one delivery is not divided, so that a batch may be larger. Of size 0: each row leaves
    at once.
    """

    size: int
    early: bool = False
    together: bool = False

    def build(self, host: Host) -> Window:
        """The window, empty."""
        if self.size == 0:
            return _Length(0)
        return _EarlyBatch(self.size) if self.early else _LengthBatch(self.size, self.together)


class _LengthBatch(Batches):
    def __init__(self, size: int, together: bool) -> None:
        super().__init__()
        self._size, self._together = size, together

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        new: list[Row] = []
        old: list[Row] = []
        for arrived in [rows] if self._together else ([row] for row in rows):
            self.current += arrived
            if len(self.current) >= self._size:
                let_out = self.release()
                new += let_out.new
                old += let_out.old
        return Delta(new, old) if new or old else NOTHING


class _EarlyBatch(Batches):
    in_batches = False

    def __init__(self, size: int) -> None:
        super().__init__()
        self._size = size

    def shown(self) -> Iterable[Row]:
        """The batch so far: its rows came as they arrived."""
        return self.content()

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        old: list[Row] = []
        for row in rows:
            if len(self.current) >= self._size:
                old += self.current
                self.current = []
            self.current.append(row)
        return Delta(rows, old)


@dataclass(frozen=True)
class ArrivalBatch:
    """What arrives in one delivery is a batch; it leaves with the next. `size`: in parts of so many rows."""

    size: int | None = None

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return Arrived()


class Arrived(Kept):
    """The rows of the last delivery."""

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        old = list(self.rows.values())
        self.rows = OrderedDict((row.id, row) for row in rows)
        return Delta(rows, old)

    def more(self, rows: Sequence[Row]) -> Delta:
        """Further rows of the same delivery."""
        self.rows.update((row.id, row) for row in rows)
        return Delta(rows, ())
