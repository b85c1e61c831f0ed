"""A partition: one window a key, with or without aggregates over each; chained, what one lets in or out feeds the next."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from heapq import heappop, heappush
from typing import Any, Literal, Protocol

from rollup.engine.compiling import predicate
from rollup.engine.expressions import Expr
from rollup.engine.folding import AggregateCall, Fold, Group
from rollup.engine.row import Row, comparable
from rollup.engine.rows.cycles.windows import CycleWindow, TumblingSpec, WindowSpec, rows_in
from rollup.engine.rows.windows.base import Host
from rollup.engine.types import Kind

Status = Literal["new", "dead"]


class Seen:
    """A partition as a query sees it in a cycle: rows that entered, that are in from before, and that left.

    `old` may be given as a function, which is asked in the same cycle or never: most queries ask for what is new.
    `times`: by the number of a row that was made (of aggregates), the time of the newest event that made it.
    """

    __slots__ = ("_old", "dead", "new", "times")

    def __init__(
        self,
        new: list[Row],
        old: list[Row] | Callable[[], list[Row]],
        dead: list[Row],
        times: dict[int, int] | None = None,
    ) -> None:
        self.new, self.dead, self._old = new, dead, old
        self.times: dict[int, int] = times or {}

    @property
    def old(self) -> list[Row]:
        """The rows that are in from before, oldest first."""
        if not isinstance(self._old, list):
            self._old = self._old()
        return self._old

    def of(self, status: Status) -> list[Row]:
        """The rows of one status."""
        return self.new if status == "new" else self.dead


@dataclass(frozen=True)
class AggregateSpec:
    """An aggregate of a partition. `entrance`: rows that leave are not taken out of it. `difference`: the value is that
    from the one before (null as 0)."""

    call: AggregateCall
    entrance: bool = False
    difference: bool = False


@dataclass(frozen=True)
class PartitionSpec:
    """A partition: places of its key, its window, its aggregates, which rows of the one before feed it and its filter.

    `time` is the place of the rows' time; None: rows are stamped when they are made. `pinned`: the row of a key stays
    when its window is empty.
    """

    key: tuple[int, ...]
    window: WindowSpec
    aggregates: tuple[AggregateSpec, ...] = ()
    pinned: bool = False
    feed: Status = "new"
    where: Expr | None = None
    time: int | None = None


def kept(spec: AggregateSpec) -> AggregateCall:
    """The call; of an entrance-only one nothing ever leaves."""
    aggregate = replace(spec.call.aggregate, leave=None) if spec.entrance else spec.call.aggregate
    return replace(spec.call, aggregate=aggregate)


class Partition:
    """The windows by key, and the last row of each key's aggregates."""

    def __init__(self, spec: PartitionSpec, host: Host) -> None:
        self.spec, self._host = spec, host
        self._passes = predicate(spec.where)
        self._numbers: dict[Any, int] = {}
        self._numbered: dict[int, tuple[Any, CycleWindow]] = {}
        self._begun = 0
        self._ripe: set[int] = set()
        self._dues: list[tuple[int, int]] = []
        self._due: int | None = None
        self._known = False
        self._stamps: dict[int, int] = {}
        self._fold = Fold([kept(each) for each in spec.aggregates])
        self._groups: dict[Any, Group] = {}
        self._last: dict[Any, Row] = {}
        self._made: dict[int, int] = {}
        self._values: dict[Any, tuple[Any, ...]] = {}
        self.beyond = 0
        """How many values of rows that were made are null since 64 bits do not hold them."""

    @property
    def due(self) -> int | None:
        """When the next row leaves by itself; only a cycle changes it."""
        if not self._known:
            self._due, self._known = self._next_due(), True
        return self._due

    def _next_due(self) -> int | None:
        while self._dues and not self._holds(*self._dues[0]):
            heappop(self._dues)
        return self._dues[0][0] if self._dues else None

    def _holds(self, due: int, number: int) -> bool:
        window = self._numbered.get(number)
        return window is not None and window[1].due == due

    @property
    def waiting(self) -> bool:
        """Whether rows wait for a further cycle."""
        return bool(self._ripe) and any(self._numbered[number][1].waiting for number in self._ripe)

    def offer(self, row: Row, at: int) -> bool:
        """A row waits to be taken in, `at` its time where it carries none; False when the filter drops it."""
        if self.spec.where is not None and not self._passes((row,), (), None):
            return False
        key = comparable([row.values[place] for place in self.spec.key])
        number = self._numbers.get(key)
        if number is None:
            number = self._begin(key)
        self._ripe.add(number)
        self._numbered[number][1].offer(row)
        if self.spec.time is None:
            self._stamps[row.id] = at
        return True

    def _begin(self, key: Any) -> int:
        """A new window for a key; windows are numbered as they begin."""
        self._begun += 1
        self._numbers[key] = self._begun
        self._numbered[self._begun] = (key, self.spec.window.build(self._time))
        return self._begun

    def _time(self, row: Row) -> int:
        return self._stamps[row.id] if self.spec.time is None else row.values[self.spec.time]

    def cycle(self, now: int) -> Seen:
        """One cycle; windows that nothing happens to are not touched."""
        new, dead = list[Row](), list[Row]()
        for number in self._concerned(now):
            key, window = self._numbered[number]
            taken = window.cycle(now)
            if self.spec.aggregates:
                taken_new, taken_dead = self._aggregated(key, window, taken.new, taken.dead)
            else:
                taken_new, taken_dead = taken.new, taken.dead
            new += taken_new
            dead += taken_dead
            self._settle(number, key, window)
        self._forget(dead)
        self._known = False
        times, self._made = self._made, {}
        fresh = {row.id for row in new}
        return Seen(sorted(new, key=_number), lambda: self._from_before(fresh), dead, times)

    def _concerned(self, now: int) -> list[int]:
        """The windows that have something to take in or to let out, in the order in which they began."""
        if isinstance(self.spec.window, TumblingSpec):
            self._ripe = set()
            return list(self._numbered)
        while (due := self._next_due()) is not None and due <= now:
            self._ripe.add(heappop(self._dues)[1])
        ripe, self._ripe = self._ripe, set()
        return sorted(ripe)

    def _settle(self, number: int, key: Any, window: CycleWindow) -> None:
        """After its cycle a window is gone, or waits for the next one, or for the instant at which a row leaves."""
        if window.empty and not window.waiting and not (self.spec.pinned and self.spec.aggregates):
            del self._numbers[key], self._numbered[number]
            return
        if window.ripe:
            self._ripe.add(number)
        if (due := window.due) is not None:
            heappush(self._dues, (due, number))

    def _from_before(self, fresh: set[int]) -> list[Row]:
        rows = list(self._last.values()) if self.spec.aggregates else rows_in([w for _, w in self._numbered.values()])
        return sorted((row for row in rows if row.id not in fresh), key=_number)

    def _forget(self, dead: Sequence[Row]) -> None:
        for row in dead:
            self._stamps.pop(row.id, None)

    def _aggregated(
        self, key: Any, window: CycleWindow, new: list[Row], dead: list[Row]
    ) -> tuple[list[Row], list[Row]]:
        """The key's row when it has changed, and the one it replaces."""
        last = self._last.get(key)
        if last is None and not new:  # no row has been let in yet: what was turned away shows nothing
            return [], []
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = self._fold.start()
        self._change(group, new, dead)
        if window.empty and not self.spec.pinned and not window.waiting:
            self._drop(key)
            return [], [] if last is None else [last]
        values = self._fold.values(group)
        if last is not None and _same(values, self._values[key]):
            return [], []
        shown = self._shown(values, self._values.get(key))
        self._values[key] = values
        self.beyond += 0 if self._fold.beyond is None else self._fold.beyond(group)
        self._last[key] = made = self._host.row((*key, *shown))
        self._made[made.id] = max((self._time(row) for row in new), default=self._host.environment.now)
        return [made], [] if last is None else [last]

    def _change(self, group: Group, new: list[Row], dead: list[Row]) -> None:
        environment = self._host.environment
        for row in dead:
            self._fold.leave(group, (row,), environment)
        for row in new:
            self._fold.enter(group, (row,), environment)

    def _shown(self, values: tuple[Any, ...], before: tuple[Any, ...] | None) -> tuple[Any, ...]:
        earlier = before if before is not None else (None,) * len(values)
        return tuple(
            _difference(spec.call, value, base) if spec.difference else value
            for spec, value, base in zip(self.spec.aggregates, values, earlier, strict=True)
        )

    def _drop(self, key: Any) -> None:
        for known in (self._groups, self._last, self._values):
            known.pop(key, None)

    def snapshot(self) -> Any:
        """The windows, the stamps of rows, the aggregates, how many of their values 64 bits did not hold."""
        windows = [[key, window.snapshot()] for key, window in self._numbered.values()]
        groups = [[key, group, self._last.get(key), self._values.get(key)] for key, group in self._groups.items()]
        return [windows, list(self._stamps.items()), groups, self.beyond]

    def restore(self, state: Any) -> None:
        """Go on from a snapshot."""
        self._stamps = {id: at for id, at in state[1]}
        for key, inner in state[0]:
            self._numbered[self._begin(key)][1].restore(inner)
        for number, (key, window) in list(self._numbered.items()):
            self._settle(number, key, window)
        self._known = False
        for key, group, last, values in state[2]:
            self._groups[key] = group
            if last is not None:
                self._last[key], self._values[key] = last, values
        self.beyond = state[3] if len(state) > 3 else 0  # a state from before these were counted


def _same(values: tuple[Any, ...], before: tuple[Any, ...]) -> bool:
    """Whether nothing has changed; what is not a number is the same again."""
    return values == before or all(a == b or (a != a and b != b) for a, b in zip(values, before, strict=True))


def _difference(call: AggregateCall, value: Any, base: Any) -> Any:
    """By how much a value has changed, null as zero."""
    zero = 0.0 if call.type.kind in (Kind.FLOAT, Kind.DOUBLE) else 0
    return (zero if value is None else value) - (zero if base is None else base)


def _number(row: Row) -> int:
    return row.id


class Due(Protocol):
    """What may be due by itself."""

    @property
    def due(self) -> int | None:
        """When."""
        ...


def earliest(parts: Sequence[Due]) -> int | None:
    """The first instant at which one of them is due."""
    found: int | None = None
    for part in parts:
        due = part.due
        if due is not None and (found is None or due < found):
            found = due
    return found


class Chain:
    """Partitions in a row over one stream."""

    def __init__(self, stream: str, specs: Sequence[PartitionSpec], host: Host) -> None:
        self.stream, self.parts = stream, [Partition(spec, host) for spec in specs]

    @property
    def due(self) -> int | None:
        """When the next row leaves by itself."""
        return earliest(self.parts)

    @property
    def waiting(self) -> bool:
        """Whether rows wait for a further cycle."""
        return any(part.waiting for part in self.parts)

    def offer(self, row: Row, now: int) -> bool:
        """An event of the stream; False when the filter drops it."""
        return self.parts[0].offer(row, now)

    def cycle(self, now: int) -> Seen:
        """One cycle of each partition; what the last shows."""
        seen = self.parts[0].cycle(now)
        for part in self.parts[1:]:
            for row in seen.of(part.spec.feed):
                part.offer(row, seen.times.get(row.id, now))
            seen = part.cycle(now)
        return seen

    def snapshot(self) -> Any:
        """Of each partition."""
        return [part.snapshot() for part in self.parts]

    def restore(self, state: Any) -> None:
        """Of each partition."""
        for part, inner in zip(self.parts, state, strict=True):
            part.restore(inner)
