"""Windows by a time that the rows carry: nothing leaves by itself, only when a row arrives whose time has gone on."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from sortedcontainers import SortedKeyList

from rollup.engine.expressions import Expr
from rollup.engine.row import NOTHING, Delta, Row
from rollup.engine.rows.windows.base import Host, Key, Window, time_of
from rollup.engine.rows.windows.counted import Batches
from rollup.engine.rows.windows.timed import Stamped
from rollup.engine.timers import edge


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
    told = True

    def __init__(self, time: Key, span: int) -> None:
        super().__init__()
        self._time, self._span = time, span

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        old = list[Row]()
        for row in rows:
            at = self.reached = self._time(row)
            self.stamp(row, at)
            old += self.before(at - self._span)
        return Delta(rows, old)


@dataclass(frozen=True)
class ExternalTimeBatch:
    """Rows in batches of `span` by their `time`; the raster begins with the first row's time, or at `origin`.

    A batch closes when a row reaches its end; a late row goes into the open batch; gaps jump on the raster. An `origin`
    that is an expression is that of the first row.
    """

    time: Expr
    span: int
    origin: int | Expr | None = None

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _ExternalTimeBatch(time_of(self.time, host), self.span, _origin(self.origin, host))


@dataclass(frozen=True)
class ExternalTimeBatchTimeout(ExternalTimeBatch):
    """The same; when nothing has closed a batch for `timeout` by the engine's clock, what there is of it comes, and again
    with what has arrived since when `timeout` has passed once more. `stamped`: the place of the field, the row's time,
    in which the end of the batch is put."""

    timeout: int = 0
    stamped: int | None = None

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Timeout(self, host)


Origin = Callable[[Row, int], int] | None
"""The beginning of the raster, of the first row and its time; None: that time."""


def _origin(given: int | Expr | None, host: Host) -> Origin:
    if given is None:
        return None
    if isinstance(given, int):
        return lambda row, at: given
    found = time_of(given, host)
    return lambda row, at: found(row)


class _ExternalTimeBatch(Batches):
    moved_on = True

    def __init__(self, time: Key, span: int, begins: Origin) -> None:
        super().__init__()
        self._time, self._span, self._begins = time, span, begins
        self._origin: int | None = None
        self._end: int | None = None

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        new, old = list[Row](), list[Row]()
        for row in rows:
            at = self._time(row)
            self.reached = at if self.reached is None else max(at, self.reached)  # a late row moves no time back
            if self._end is not None and at >= self._end:
                let_out = self.close()
                new += let_out.new
                old += let_out.old
                self._end = None
            if self._end is None:
                self._open(row, at, now)
            self.take(row)
        return Delta(new, old) if new or old else NOTHING

    def _open(self, row: Row, at: int, now: int) -> None:
        """The next batch begins."""
        if self._origin is None:
            self._origin = at if self._begins is None else self._begins(row, at)
        self._end = edge(self._origin, self._span, at)

    def close(self) -> Delta:
        """A row has reached the end of the batch."""
        return self.release()

    def take(self, row: Row) -> None:
        """A row goes into the open batch."""
        self.current.append(row)

    def snapshot(self) -> Any:
        return [super().snapshot(), self._origin, self._end, self.reached]

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self._origin, self._end, self.reached = state[1:]


class _Timeout(_ExternalTimeBatch):
    def __init__(self, spec: ExternalTimeBatchTimeout, host: Host) -> None:
        super().__init__(time_of(spec.time, host), spec.span, _origin(spec.origin, host))
        self._spec, self._host = spec, host
        self._due: int | None = None
        self._shown = False
        """Whether the open batch, so far, has come: it is `last` then."""

    @property
    def due(self) -> int | None:
        return self._due

    def _open(self, row: Row, at: int, now: int) -> None:
        super()._open(row, at, now)
        self._due = now + self._spec.timeout if self._spec.timeout else None

    def take(self, row: Row) -> None:
        if self._spec.stamped is not None:
            values = list(row.values)
            values[self._spec.stamped] = self._end
            row = self._host.row(values)
        super().take(row)

    def close(self) -> Delta:
        let_out = self._more() if self._shown else self.release()
        self._shown = False
        return let_out

    def fire(self, now: int) -> Delta:
        let_out = self._more() if self._shown else self.release()
        self._shown, self._due = True, now + self._spec.timeout
        return let_out

    def _more(self) -> Delta:
        """A batch that has come already comes again with what was added to it."""
        if not self.current:
            return NOTHING
        old, again = self.last, [self._host.row(row.values) for row in self.last]
        self.last, self.current = [*again, *self.current], []
        return Delta(self.last, old)

    def snapshot(self) -> Any:
        return [super().snapshot(), self._due, self._shown]

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self._due, self._shown = state[1], state[2]


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
    """Each row with its time, which is that of its arrival where it is made of the clock's."""

    told = True

    def __init__(self, time: Key, span: int) -> None:
        self._time, self._span = time, span
        self._times: dict[int, Any] = {}
        self._rows: SortedKeyList = SortedKeyList(key=self._time_of)

    def _time_of(self, row: Row) -> Any:
        return self._times[row.id]

    @property
    def due(self) -> int | None:
        return self._time_of(self._first()) + self._span if self._rows else None

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        for row in rows:
            self._times[row.id] = self._time(row)
            self._rows.add(row)
        return Delta(rows, self._out(now))

    def fire(self, now: int) -> Delta:
        return Delta((), self._out(now))

    def _first(self) -> Row:
        row: Any = self._rows[0]
        return row

    def _out(self, now: int) -> list[Row]:
        out = list[Row]()
        while self._rows and self._time_of(self._first()) + self._span <= now:
            out.append(self._first())
            del self._rows[0], self._times[out[-1].id]
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
        if row.id in self._times:
            self._rows.remove(row)
            del self._times[row.id]

    def snapshot(self) -> Any:
        return [[row, self._time_of(row)] for row in self._rows]

    def restore(self, state: Any) -> None:
        self._times = {row.id: time for row, time in state}
        self._rows = SortedKeyList((row for row, _ in state), key=self._time_of)
