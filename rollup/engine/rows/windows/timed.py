"""Windows by the engine's clock: a row's time is its arrival, and rows leave by timers.

A timer that comes late (the clock jumped) lets everything out that is due, oldest first, in one delivery.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from rollup.core.crontabs import Crontab
from rollup.engine.row import NOTHING, Delta, Row, delta_of
from rollup.engine.rows.windows.base import Host, Kept, Window
from rollup.engine.rows.windows.counted import Batches
from rollup.engine.timers import edge


class Stamped(Kept):
    """Rows with the time each came at."""

    def __init__(self) -> None:
        super().__init__()
        self.times: dict[int, int] = {}

    def stamp(self, row: Row, time: int) -> None:
        """A row comes in."""
        self.push(row)
        self.times[row.id] = time

    def remove(self, row: Row) -> None:
        """Nothing is delivered."""
        super().remove(row)
        self.times.pop(row.id, None)

    def before(self, limit: int) -> list[Row]:
        """Let out, from the front, the rows that came at `limit` or earlier."""
        out: list[Row] = []
        rows, times = self.rows, self.times
        while rows and times[first := next(iter(rows))] <= limit:
            del times[first]
            out.append(rows.popitem(last=False)[1])
        return out

    def snapshot(self) -> Any:
        """The rows and their times."""
        return [[row, self.times[row.id]] for row in self.rows.values()]

    def restore(self, state: Any) -> None:
        """The rows and their times."""
        self.rows = OrderedDict((row.id, row) for row, _ in state)
        self.times = {row.id: time for row, time in state}


@dataclass(frozen=True)
class Time:
    """The rows of the last `span`; at arrival + span a row is out. `size`: at most so many rows as well."""

    span: int
    size: int | None = None

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Time(self.span, self.size)


class _Spanned(Stamped):
    """Something is due a span after the oldest row came, which is at hand: it is asked for several times an event."""

    def __init__(self, span: int) -> None:
        super().__init__()
        self._span = span
        self._due: int | None = None

    @property
    def due(self) -> int | None:
        return self._due

    def stamp(self, row: Row, time: int) -> None:
        """A row comes in."""
        super().stamp(row, time)
        if self._due is None:
            self._due = time + self._span

    def remove(self, row: Row) -> None:
        """Nothing is delivered."""
        super().remove(row)
        self._look()

    def before(self, limit: int) -> list[Row]:
        """Let out, from the front, the rows that came at `limit` or earlier."""
        out: list[Row] = []
        rows, times, self._due = self.rows, self.times, None
        for number, row in rows.items():
            time = times[number]
            if time > limit:
                self._due = time + self._span
                break
            out.append(row)
        for row in out:
            number = row.id
            del rows[number], times[number]
        return out

    def restore(self, state: Any) -> None:
        """The rows and their times."""
        super().restore(state)
        self._look()

    def _look(self) -> None:
        """When the oldest row that is left leaves."""
        self._due = None
        for oldest in self.rows:
            self._due = self.times[oldest] + self._span
            break


class _Time(_Spanned):
    told = True

    def __init__(self, span: int, size: int | None) -> None:
        super().__init__(span)
        self._size = size

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        held, times = self.rows, self.times
        if self._size is not None:
            return self._limited(rows, now, self._size)
        for row in rows:
            held[row.id] = row
            times[row.id] = now
        if self._due is None and rows:
            self._due = now + self._span
        return delta_of((rows, (), False))

    def _limited(self, rows: Sequence[Row], now: int, size: int) -> Delta:
        old: list[Row] = []
        for row in rows:
            self.stamp(row, now)
            if len(self.rows) > size:
                old.append(self.oldest())
                self.remove(old[-1])
        return Delta(rows, old)

    def fire(self, now: int) -> Delta:
        return delta_of(((), self.before(now - self._span), False))


@dataclass(frozen=True)
class Delay:
    """Rows come `span` after their arrival, and never leave."""

    span: int

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _Delay(self.span)


class _Delay(_Spanned):
    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        for row in rows:
            self.stamp(row, now)
        return NOTHING

    def fire(self, now: int) -> Delta:
        return Delta(self.before(now - self._span), ())


@dataclass(frozen=True)
class TimeAccumulating:
    """Rows until nothing has come for `span`; then all leave together."""

    span: int

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _TimeAccumulating(self.span)


class _TimeAccumulating(Kept):
    told = True

    def __init__(self, span: int) -> None:
        super().__init__()
        self._span = span
        self._last = 0

    @property
    def due(self) -> int | None:
        return self._last + self._span if self.rows else None

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        for row in rows:
            self.push(row)
        self._last = now
        return Delta(rows, ())

    def fire(self, now: int) -> Delta:
        out = list(self.rows.values())
        self.rows.clear()
        return Delta((), out)

    def snapshot(self) -> Any:
        return [super().snapshot(), self._last]

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self._last = state[1]


@dataclass(frozen=True)
class FirstTime:
    """The rows that come within `span` of the beginning; later ones are not seen."""

    span: int

    def build(self, host: Host) -> Window:
        """The window, empty; its time begins now."""
        return _FirstTime(host.environment.now + self.span)


class _FirstTime(Kept):
    told = True
    passes_empty = False

    def __init__(self, end: int) -> None:
        super().__init__()
        self._end = end

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        if now >= self._end:
            return NOTHING
        for row in rows:
            self.push(row)
        return Delta(rows, ())

    def snapshot(self) -> Any:
        return [super().snapshot(), self._end]

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self._end = state[1]


@dataclass(frozen=True)
class TimeBatch:
    """Rows in batches of `span`. The raster begins with the first row, at `origin`, or with the window (`eager`).

    An empty batch after one with rows lets those leave; after that nothing comes until there are rows again, which
    fall on the same raster. `forced`: a delivery at every edge, also of nothing. `each`: a late timer lets out edge by
    edge; else it lets out once and goes on with the first edge after the clock. `early`: a row comes at once, and all
    of a batch leave at its edge.
    """

    span: int
    origin: int | None = None
    eager: bool = False
    forced: bool = False
    each: bool = False
    early: bool = False

    def build(self, host: Host) -> Window:
        """The window, empty."""
        if self.early:
            return _EarlyTimeBatch(self, self.origin, host.environment.now)
        origin = host.environment.now if self.eager and self.origin is None else self.origin
        return _TimeBatch(self, origin, host.environment.now)


class _TimeBatch(Batches):
    def __init__(self, spec: TimeBatch, origin: int | None, now: int) -> None:
        super().__init__()
        self._spec, self._origin, self.forces = spec, origin, spec.forced
        self._due = self._edge(now) if spec.eager else None

    @property
    def due(self) -> int | None:
        return self._due

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        if self._origin is None:
            self._origin = now
        self.current += rows
        if self._due is None:
            self._due = self._edge(now)
        return NOTHING

    def fire(self, now: int) -> Delta:
        delta, edge = self.release(), self._due if self._spec.each and self._due is not None else now
        goes_on = bool(delta.new) or self._spec.forced
        self._due = self._edge(edge) if goes_on else None
        return delta._replace(forced=self._spec.forced)

    def snapshot(self) -> Any:
        return [super().snapshot(), self._origin, self._due]

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self._origin, self._due = state[1], state[2]

    def _edge(self, now: int) -> int:
        """The first edge of the raster after now."""
        origin = self._origin if self._origin is not None else now
        return edge(origin, self._spec.span, now)


class _EarlyTimeBatch(_TimeBatch):
    in_batches = False

    def shown(self) -> Iterable[Row]:
        """The batch so far: its rows came as they arrived."""
        return self.content()

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        super().enter(rows, now)
        return Delta(rows, ())

    def fire(self, now: int) -> Delta:
        old, self.current, self._due = self.current, [], None
        return Delta((), old)


class _DueBatches(Batches):
    """Batches of which the next is let out at a known instant, if at any."""

    def __init__(self, due: int | None) -> None:
        super().__init__()
        self._due = due

    @property
    def due(self) -> int | None:
        return self._due

    def snapshot(self) -> Any:
        return [super().snapshot(), self._due]

    def restore(self, state: Any) -> None:
        super().restore(state[0])
        self._due = state[1]


@dataclass(frozen=True)
class TimeLengthBatch:
    """Rows in batches of `size`, or of what came within `span` of the last batch or of the first row after a rest.

    After a batch the clock begins anew; after an interval without rows, and nothing to let leave, it rests until a row
    comes. `eager`: it begins with the window. `forced`: it never rests, and delivers also nothing.
    """

    span: int
    size: int
    eager: bool = False
    forced: bool = False

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _TimeLengthBatch(self, host.environment.now + self.span if self.eager else None)


class _TimeLengthBatch(_DueBatches):
    def __init__(self, spec: TimeLengthBatch, due: int | None) -> None:
        super().__init__(due)
        self._spec, self.forces = spec, spec.forced

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        self.current += rows
        if len(self.current) >= self._spec.size:
            return self._let_out(now)
        if self._due is None:
            self._due = now + self._spec.span
        return NOTHING

    def fire(self, now: int) -> Delta:
        return self._let_out(now)._replace(forced=self._spec.forced)

    def _let_out(self, now: int) -> Delta:
        delta = self.release()
        goes_on = delta.new or delta.old or self._spec.forced
        self._due = now + self._spec.span if goes_on else None
        return delta


@dataclass(frozen=True)
class ScheduledBatch:
    """Rows in batches that a calendar lets out; an instant without rows lets nothing out, and nothing leave."""

    schedule: Crontab

    def build(self, host: Host) -> Window:
        """The window, empty."""
        return _ScheduledBatch(self.schedule)


class _ScheduledBatch(_DueBatches):
    def __init__(self, schedule: Crontab) -> None:
        super().__init__(None)
        self._schedule = schedule

    def enter(self, rows: Sequence[Row], now: int) -> Delta:
        if self._due is None:
            self._due = self._schedule.after(now)
        self.current += rows
        return NOTHING

    def fire(self, now: int) -> Delta:
        self._due = None
        return self.release()
