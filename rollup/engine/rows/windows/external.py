"""Windows by a time that the rows carry: nothing leaves by itself, only when a row arrives whose time has gone on."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sortedcontainers import SortedKeyList

from rollup.engine.expressions import Expr
from rollup.engine.row import NOTHING, Delta, Row
from rollup.engine.rows.windows.base import Host, Key, Window, time_of
from rollup.engine.rows.windows.counted import Batches
from rollup.engine.rows.windows.timed import Stamped


@dataclass(frozen=True)
class ExternalTime:
    """The rows whose `time` is less than `span` before that of the row that arrives.

    Rows leave from the front only, so an older row that came late stays until those before it are out.
    """

    time: Expr
    span: int

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _ExternalTime(time_of(self.time, host), self.span)


class _ExternalTime(Stamped):
    def __init__(self, time: Key, span: int) -> None:
        super().__init__()
        self._time, self._span = time, span

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        old = list[Row]()
        for row in rows:
            at = self._time(row)
            self.stamp(row, at)
            old += self.before(at - self._span)
        return Delta(rows, old)


@dataclass(frozen=True)
class ExternalTimeBatch:
    """Rows in batches of `span` by their `time`; the raster begins with the first row's time, or at `origin`.

    A batch closes when a row reaches its end; a late row goes into the open batch; gaps jump on the raster.
    """

    time: Expr
    span: int
    origin: int | None = None

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _ExternalTimeBatch(time_of(self.time, host), self.span, self.origin)


class _ExternalTimeBatch(Batches):
    moved_on = True

    def __init__(self, time: Key, span: int, origin: int | None) -> None:
        super().__init__()
        self._time, self._span, self._origin = time, span, origin
        self._end: int | None = None

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        new, old = list[Row](), list[Row]()
        for row in rows:
            at = self._time(row)
            if self._end is not None and at >= self._end:
                let_out = self.release()
                new += let_out.new
                old += let_out.old
                self._end = None
            if self._end is None:
                self._origin = at if self._origin is None else self._origin
                self._end = self._origin + ((at - self._origin) // self._span + 1) * self._span
            self.current.append(row)
        return Delta(new, old) if new or old else NOTHING

    def snapshot(self) -> Any:
        return [super().snapshot(), self._origin, self._end]

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self._origin, self._end = state[1], state[2]


@dataclass(frozen=True)
class TimeOrder:
    """Rows in the order of their `time`, each until the engine's clock has reached its time + `span`.

    A row that is too old when it arrives comes and leaves in one delivery.
    """

    time: Expr
    span: int = 0

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _TimeOrder(time_of(self.time, host), self.span)


class _TimeOrder(Window):
    def __init__(self, time: Key, span: int) -> None:
        self._time, self._span = time, span
        self._rows: SortedKeyList = SortedKeyList(key=time)

    @property
    def due(self) -> int | None:
        return self._time(self._first()) + self._span if self._rows else None

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        for row in rows:
            self._rows.add(row)
        return Delta(rows, self._out(now))

    def fire(self, now: int) -> Delta:
        return Delta((), self._out(now))

    def _first(self) -> Row:
        row: Any = self._rows[0]
        return row

    def _out(self, now: int) -> list[Row]:
        out = list[Row]()
        while self._rows and self._time(self._first()) + self._span <= now:
            out.append(self._first())
            del self._rows[0]
        return out

    def content(self) -> Iterable[Row]:
        return iter(self._rows)

    def previous(self, row: Row) -> Sequence[Row]:
        """The first in order of time counts as the newest."""
        return tuple(reversed(self._rows))

    def around(self, row: Row) -> Sequence[Row]:
        """The same."""
        return self.previous(row)

    def remove(self, row: Row) -> None:
        at = self._time(row)
        for place in range(self._rows.bisect_key_left(at), self._rows.bisect_key_right(at)):
            if self._rows[place] is row:
                del self._rows[place]
                return

    def snapshot(self) -> Any:
        return list(self._rows)

    def restore(self, state: Any) -> None:
        self._rows = SortedKeyList(state, key=self._time)
