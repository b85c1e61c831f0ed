"""Where a query's items come from: one stream with its window, a join of two, a pattern, a sequence."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from rollup.engine.compiling import predicate
from rollup.engine.expressions import Expr
from rollup.engine.index import FilterIndex
from rollup.engine.row import Delta, Row, Rows
from rollup.engine.rows.deliveries.item import RESET, Chunk, Emit, EmitEach, Item
from rollup.engine.rows.keyed import ByKey
from rollup.engine.rows.patterns.algebra import FilterNode, Pattern, nodes
from rollup.engine.rows.patterns.matcher import Matcher
from rollup.engine.rows.patterns.sequence import Sequence as SequenceSpec
from rollup.engine.rows.patterns.sequence import Sequencer
from rollup.engine.rows.patterns.state import Match
from rollup.engine.rows.runner import Environment, Runner
from rollup.engine.rows.windows.base import Host, Window, WindowSpec
from rollup.engine.rows.windows.counted import ArrivalBatch, Arrived, Batches, Length, LengthBatch
from rollup.engine.rows.windows.expressed import Expressed, ExpressedBatch
from rollup.engine.rows.windows.ranked import LossyFrequent, Sorted
from rollup.engine.rows.windows.sessions import Session
from rollup.engine.rows.windows.timed import Delay, Time, TimeBatch
from rollup.engine.timers import Order, Timers


class Input(Protocol):
    """The source of a query's deliveries; each is given to the `emit` it was built with."""

    @property
    def due(self) -> int | None:
        """The next instant at which `fire` must be called."""
        ...

    def deliver(self, stream: str, chunk: Sequence[Item]) -> None:
        """A delivery of one of its streams."""
        ...

    def fire(self, now: int) -> None:
        """A timer is due."""
        ...

    def snapshot(self) -> Any:
        """Its state as plain values."""
        ...

    def restore(self, state: Any) -> None:
        """Go on from a snapshot."""
        ...


class Stored(Protocol):
    """Rows that a join meets."""

    def content(self) -> Iterable[Row]:
        """All of them, oldest first."""
        ...

    def matching(self, by_key: ByKey, rows: Rows, environment: Environment) -> Iterable[Row]:
        """Those that may fulfil a condition, oldest first: all, where none are found by what they hold."""
        return self.content()


@dataclass(frozen=True)
class StreamSpec:
    """A stream with conditions before and after its window. `keeps_kinds`: rows come with the kind they have already."""

    stream: str
    before: Expr | None = None
    window: WindowSpec | None = None
    after: Expr | None = None
    keeps_kinds: bool = False


class StreamInput(Stored):
    """One stream: filters, a window, filters."""

    def __init__(self, spec: StreamSpec, host: Host, emit: Emit) -> None:
        self.spec, self._host, self._emit = spec, host, emit
        self._before, self._after = predicate(spec.before), predicate(spec.after)
        self.window: Window | None = None if spec.window is None else spec.window.build(host)
        batches = isinstance(self.window, Batches) and not isinstance(spec.window, ExpressedBatch)
        self._batches = batches or isinstance(spec.window, ArrivalBatch)
        self._early = early(spec.window)
        one_by_one = isinstance(self.window, Batches) or isinstance(spec.window, LengthBatch | ExpressedBatch)
        self._one_by_one = one_by_one and not isinstance(spec.window, TimeBatch)

    @property
    def due(self) -> int | None:
        return None if self.window is None else self.window.due

    def deliver(self, stream: str, chunk: Sequence[Item]) -> None:
        size = self.spec.window.size if isinstance(self.spec.window, ArrivalBatch) else None
        if size is not None:
            pieces = self._parts(chunk, size)
        else:
            pieces = map(self.items, [[item] for item in chunk] if self._one_by_one else (chunk,))
        for items in pieces:
            if items:
                self._emit(items)

    def _parts(self, chunk: Sequence[Item], size: int) -> Iterator[Chunk]:
        """A delivery in parts, each selected by itself; what came with the delivery before leaves with the first."""
        e, window = self._host.environment, self.window
        passing = [item for item in chunk if self._before(item.rows, (item.time,), e)]
        for start in range(0, len(passing), size):
            rows = rows_of(passing[start : start + size])
            if isinstance(window, Arrived):
                yield self._passing(self._moved(window.more(rows) if start else window.enter(rows, e.now)))

    def items(self, chunk: Sequence[Item]) -> Chunk:
        """What a delivery lets through: of each arrival first what it pushes out, then the arrival."""
        e, before = self._host.environment, self._before
        passing = chunk if self.spec.before is None else [i for i in chunk if before(i.rows, (i.time,), e)]
        if self.window is None:
            kept = self.spec.keeps_kinds
            found = [item if kept or not item.expired else item._replace(expired=False) for item in passing]
        elif isinstance(self.spec.window, ArrivalBatch):
            found = self._moved(self.window.enter(rows_of(passing), e.now)) if passing else []
        else:
            found = [out for item in passing for out in self._entered(self.window, item)]
        return self._passing(found)

    def _entered(self, window: Window, item: Item) -> Chunk:
        """What one row lets through. To a window of time it came when it was made: what a batch let out late may be too
        old by now."""
        now = self._host.environment.now
        if not isinstance(self.spec.window, Time | Delay | Session):
            return self._moved(window.enter(rows_of([item]), now))
        late = isinstance(self.spec.window, Time) and window.due is not None and window.due <= now
        gone = self._moved(window.fire(now)) if late else []
        return [*gone, *self._moved(window.enter(rows_of([item]), item.time))]

    def fire(self, now: int) -> None:
        items = self.fired(now)
        if items:
            self._emit(items)

    def fired(self, now: int) -> Chunk:
        """What a timer lets through."""
        return [] if self.window is None else self._passing(self._moved(self.window.fire(now)))

    def _passing(self, chunk: Chunk) -> Chunk:
        if self.spec.after is None:
            return chunk
        e = self._host.environment
        return [item for item in chunk if item is RESET or self._after(item.rows, (item.time,), e)]

    def _moved(self, delta: Delta) -> Chunk:
        """What leaves, then what comes, then what leaves as soon as it has come; by rank, all that leaves comes last, and by
        a condition over the content first."""
        now, new = self._host.environment.now, {row.id for row in delta.new}
        if _leaves_last(self.spec.window):
            new |= {row.id for row in delta.old}
        elif _leaves_first(self.spec.window):
            new.clear()
        comes = _comes_now(self.spec.window)
        coming = [Item((row,), False, now if comes else row.values[-1]) for row in delta.new]
        before, after = (
            [Item((row,), True, self._left_at(row, now)) for row in delta.old if (row.id in new) is late]
            for late in (False, True)
        )
        reset = [RESET] if self._batches and (before if self._early else coming) else []
        return [*before, *reset, *coming, *after, *([RESET] if _keeps_nothing(self.spec.window) else [])]

    def _left_at(self, row: Row, now: int) -> int:
        """The time of a row that leaves: when it does, by what its window goes by; of a session that of its arrival."""
        if isinstance(self.spec.window, Session):
            return row.values[-1]
        reached = None if self.window is None else self.window.reached
        return now if reached is None else reached

    def content(self) -> Iterable[Row]:
        """The rows that others meet: those of the window, of one that lets batches out the last batch."""
        return () if self.window is None else held(self.window, self.spec.window)

    def snapshot(self) -> Any:
        return None if self.window is None else self.window.snapshot()

    def restore(self, state: Any) -> None:
        if self.window is not None:
            self.window.restore(state)


def _keeps_nothing(spec: WindowSpec | None) -> bool:
    """Whether each row leaves as soon as it has come; what was summed begins anew then."""
    return isinstance(spec, Length | LengthBatch) and spec.size == 0


def held(window: Window, spec: WindowSpec | None) -> Iterable[Row]:
    """What joins and questions see of a window; `spec` describes it."""
    whole = isinstance(window, Batches) and not isinstance(spec, ExpressedBatch) and not early(spec)
    return iter(window.last) if isinstance(window, Batches) and whole else window.content()


def early(spec: WindowSpec | None) -> bool:
    """Whether the rows of a batch come as they arrive."""
    return isinstance(spec, LengthBatch | TimeBatch | ExpressedBatch) and spec.early


def _comes_now(spec: WindowSpec | None) -> bool:
    """Whether a row has the time at which it is let out, not that at which it arrived."""
    return isinstance(spec, Delay) or (isinstance(spec, ExpressedBatch) and not spec.early)


def _leaves_last(spec: WindowSpec | None) -> bool:
    """Whether all that an arrival pushes out comes behind it."""
    return isinstance(spec, Sorted | LossyFrequent) or (
        isinstance(spec, ExpressedBatch) and spec.early and spec.inclusive
    )


def _leaves_first(spec: WindowSpec | None) -> bool:
    """Whether an arrival that cannot stay leaves before it comes."""
    return isinstance(spec, Expressed) or (isinstance(spec, ExpressedBatch) and not (spec.early and spec.inclusive))


def rows_of(chunk: Sequence[Item]) -> list[Row]:
    """The rows of items of one input."""
    return [row for item in chunk for row in item.rows if row is not None]


@dataclass(frozen=True)
class SideSpec:
    """A side of a join: a stream, or, `stored`, a table or shared window that holds its rows itself; of these a window
    may trigger."""

    stream: StreamSpec
    triggers: bool = True
    stored: bool = False

    @property
    def listens(self) -> bool:
        """Whether it takes the deliveries of its stream."""
        return self.triggers or not self.stored


@dataclass(frozen=True)
class JoinSpec:
    """Two sides, the condition over both rows (left is input 0), and which sides are kept without a match."""

    left: SideSpec
    right: SideSpec
    on: Expr | None
    outer: tuple[bool, bool] = (False, False)


class JoinInput:
    """A join: a row goes into its side's window and meets the content of the other side, oldest first.

    What one row meets is selected by itself: an aggregate and an order are of that row's matches.
    """

    def __init__(self, spec: JoinSpec, host: Host, emit: EmitEach, stored: Callable[[str], Stored]) -> None:
        self.spec, self._host, self._emit, self._on = spec, host, emit, predicate(spec.on)
        self._sides = (StreamInput(spec.left.stream, host, _ignore), StreamInput(spec.right.stream, host, _ignore))
        self._specs = (spec.left, spec.right)
        pairs = zip(self._specs, self._sides, strict=True)
        self._contents = [stored(spec.stream.stream) if spec.stored else own for spec, own in pairs]
        self._by_keys = tuple(ByKey(spec.on, place) for place in range(2))

    @property
    def due(self) -> int | None:
        return min((side.due for side in self._sides if side.due is not None), default=None)

    def deliver(self, stream: str, chunk: Sequence[Item]) -> None:
        concerned = [n for n, side in enumerate(self._specs) if side.stream.stream == stream and side.listens]
        pieces = [[item] for item in chunk] if len(concerned) > 1 else [chunk]
        for piece in pieces:
            for place in concerned:
                self._pass(place, self._sides[place].items(piece))

    def fire(self, now: int) -> None:
        for place, side in enumerate(self._sides):
            if side.due is not None and side.due <= now:
                self._pass(place, side.fired(now))

    def _pass(self, place: int, items: Chunk) -> None:
        if not self._specs[place].triggers:
            return
        joined = [[RESET] if item is RESET else self._joined(place, item) for item in items]
        if joined:
            self._emit([chunk for chunk in joined if chunk])

    def _joined(self, place: int, item: Item) -> Chunk:
        e, row = self._host.environment, _timed(item)
        known = (row,) if place == 0 else (None, row)
        others = self._contents[1 - place].matching(self._by_keys[1 - place], known, e)
        pairs = [(row, other) if place == 0 else (other, row) for other in others]
        found = [pair for pair in pairs if self._on(pair, (item.time,), e)]
        if not found and self.spec.outer[place]:
            found = [(row, None) if place == 0 else (None, row)]
        return [Item(pair, item.expired, item.time) for pair in found]

    def snapshot(self) -> Any:
        return [side.snapshot() for side in self._sides]

    def restore(self, state: Any) -> None:
        for side, inner in zip(self._sides, state, strict=True):
            side.restore(inner)


def _timed(item: Item) -> Row | None:
    """The row of an item of one; one that leaves has the time at which it does."""
    (row,) = item.rows
    return Row(row.id, (*row.values[:-1], item.time)) if item.expired and row is not None else row


def _ignore(chunk: Chunk) -> None:
    """The sides of a join emit nothing by themselves."""


class Scope:
    """What a matcher sees of the engine: the clock and the timers, and a filter index of its own."""

    def __init__(self, environment: Environment, timers: Timers) -> None:
        self.environment, self.timers = environment, timers
        self.indexes: defaultdict[str, FilterIndex] = defaultdict(FilterIndex)

    @property
    def now(self) -> int:
        """The clock."""
        return self.environment.now


class PatternInput:
    """A pattern; each match is selected by itself. The matches of one event leave together where its stream stands in the
    pattern more than once, else each is a delivery of its own."""

    due = None

    def __init__(self, pattern: Pattern, runner: Runner, order: Order, emit: EmitEach) -> None:
        self._scope: Any = Scope(runner.environment, runner.timers)
        self._emit, self._runner = emit, runner
        self._matcher = Matcher(pattern, self._scope, order, self._matched)
        self._times = Counter(node.stream for node in nodes(pattern.root) if isinstance(node, FilterNode))
        self._together = False

    def start(self) -> None:
        """Begin to look."""
        self._matcher.start()

    def stop(self) -> None:
        """Look no longer."""
        self._matcher.stop()

    def deliver(self, stream: str, chunk: Sequence[Item]) -> None:
        for row in rows_of(chunk):
            self._matcher.age(row.values[-1])
            entries = self._scope.indexes[stream].matches(row)
            if entries:
                self._receive(stream, [entry.input for entry in entries], row)

    def _receive(self, stream: str, inputs: list[int], row: Row) -> None:
        self._together = self._times[stream] > 1
        try:
            self._matcher.receive(inputs, row, row.values[-1])
        finally:
            self._together = False

    def fire(self, now: int) -> None:
        """The matcher has timers of its own."""

    def _matched(self, matches: list[Match]) -> None:
        chunks = [[Item(match, False, time)] for match, time in zip(matches, self._matcher.times, strict=True)]
        for together in [chunks] if self._together else [[chunk] for chunk in chunks]:
            self._emit(together)

    def snapshot(self) -> Any:
        return self._matcher.snapshot()

    def restore(self, state: Any) -> None:
        self.stop()
        self._matcher.restore(state)


class SequenceInput:
    """A sequence; each match is a delivery of its own."""

    def __init__(self, spec: SequenceSpec, host: Host, emit: Emit) -> None:
        self._sequencer, self._emit, self._host = Sequencer(spec, host), emit, host

    def deliver(self, stream: str, chunk: Sequence[Item]) -> None:
        for item in chunk:
            for match in self._sequencer.event(stream, rows_of([item])[0], item.time):
                self._emit([Item(match, False, item.time)])

    @property
    def due(self) -> int | None:
        """The end of a silence; a try that is too old is dropped by the next event."""
        return self._sequencer.due

    def fire(self, now: int) -> None:
        for match in self._sequencer.fire(now):
            self._emit([Item(match, False, now)])

    def snapshot(self) -> Any:
        return self._sequencer.snapshot()

    def restore(self, state: Any) -> None:
        self._sequencer.restore(state)
