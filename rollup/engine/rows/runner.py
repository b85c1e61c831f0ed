"""The runner of the row executor: events to whom they concern, what they cause after them, timers in their order.

The runner knows no language. `depth_first` says how rows that a statement inserts into a stream go on: after the
present event is finished with everywhere (EPL), or at once (SiddhiQL).
"""

from __future__ import annotations

import sys
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVarTuple

from rollup.core.errors import QueryError
from rollup.engine.index import Entry, FilterIndex, Receiver
from rollup.engine.operators import LONG_MAX
from rollup.engine.row import Delta, Row, together
from rollup.engine.rows.journal import Journal
from rollup.engine.timers import Order, Phase, Timers

Ask = Callable[[Any, Any, Any], Any]
Given = TypeVarTuple("Given")
CAUSED = 100_000
"""How many rows one event may cause before it is taken for an endless circle."""


class Clock:
    """The engine's time, one for all. `hurried`: a jump had more to do than is done of one; whoever asks takes it back."""

    __slots__ = ("hurried", "now")

    def __init__(self, now: int = 0) -> None:
        self.now = now
        self.hurried = False


class Environment:
    """What expressions see beside rows: the clock, variables, look-ups that nodes registered.

    Each partition of a statement has one of its own (`child`) with the engine's clock and variables; `context` holds the
    properties of its partition, `arriving` whether the row in hand is one of the insert stream.
    """

    __slots__ = ("arriving", "ask", "clock", "context", "variables")

    def __init__(self, now: int = 0, variables: dict[str, Any] | None = None, ask: list[Ask] | None = None) -> None:
        self.clock = Clock(now)
        self.variables: dict[str, Any] = {} if variables is None else variables
        self.ask: list[Ask] = [] if ask is None else ask
        self.context: Mapping[str, Any] = {}
        self.arriving = True

    @property
    def now(self) -> int:
        """The clock."""
        return self.clock.now

    @now.setter
    def now(self, to: int) -> None:
        self.clock.now = to

    def child(self, context: Mapping[str, Any], variables: dict[str, Any] | None = None) -> Environment:
        """An environment with the same clock, the same variables unless others are given, and look-ups of its own."""
        child = Environment(variables=self.variables if variables is None else variables)
        child.clock, child.context = self.clock, context
        return child


class Delivery(NamedTuple):
    """What a statement gives its listeners at the end of a cycle."""

    statement: str
    at: int
    delta: Delta


class Runner:
    """Runs the deployed statements of a component, event by event."""

    def __init__(self, start: int = 0, depth_first: bool = False) -> None:
        self.environment = Environment(start)
        self.timers = Timers()
        self.indexes: defaultdict[str, FilterIndex] = defaultdict(FilterIndex)
        self.deliveries: list[Delivery] = []
        self._depth_first = depth_first
        self._inserts: deque[Callable[[], None]] = deque()
        self._tells: deque[Callable[[], None]] = deque()
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = False
        self.rows = 0
        """The number of the newest row."""
        self.changes: dict[str, list[tuple[int, Callable[[Row], Row]]]] = {}
        """What is done to the events of a stream before anybody sees them, by priority."""
        self._trail: deque[str] = deque(maxlen=8)
        self.resting: frozenset[int] = frozenset()
        """Who is told nothing, by `id`: a batch has been or will be given to them as a whole."""
        self.refused: tuple[Row, Order] | None = None
        """The event that was refused last, and by whom: those before had it, those after had not."""
        self.fired: list[tuple[int, Phase]] | None = None
        """While somebody wants to know: how many deliveries there were after each timer, with its phase."""
        self.early: list[tuple[int, int, Order]] = []
        """While somebody wants to know: from which delivery to which those are of a partition that begins or ends, which tells
        before others do, and the place of the partition among all."""
        self.direct = sys.maxsize
        """How many deliveries there were when all had heard of the event at hand, and before they hear what it caused."""
        self.journal: Journal | None = None
        """The first events; None where they are not all known, or nobody wants them."""
        self.current: tuple[str, Row] | None = None
        """The event that is being told, with its stream; None while the clock moves."""

    @property
    def now(self) -> int:
        """The clock."""
        return self.environment.now

    def row(self, values: Sequence[Any]) -> Row:
        """A new row with the next number."""
        self.rows += 1
        return Row(self.rows, tuple(values))

    def send(self, stream: str, values: Sequence[Any]) -> None:
        """An event of a stream, and everything it causes."""
        self.rows = number = self.rows + 1
        row = Row(number, tuple(values))
        if self._running:
            self.route(stream, row)
        else:
            self._cycle(stream, row)

    def send_each(
        self, stream: str, events: Iterable[tuple[Sequence[Any], int | None]], most: int, tell: Callable[[], None]
    ) -> None:
        """Events of a stream one after the other, each at its instant (None: whenever that is); `tell` is called when more
        than `most` deliveries wait."""
        index, clock, timers = self.indexes[stream], self.environment.clock, self.timers
        for values, at in events:
            if at is not None:
                if at < clock.now or timers.may_be_due(at):
                    self.advance_span(at)
                else:
                    clock.now = at
            self.rows = number = self.rows + 1
            row = Row(number, tuple(values))
            if self.changes:
                self._cycle(stream, row)
            elif entries := index.matches(row):
                self._cycle(stream, row, entries)
            if len(self.deliveries) > most:
                tell()

    def route(self, stream: str, row: Row) -> None:
        """A row goes into a stream: at once when nothing runs or rows go depth first, else after what runs."""
        if self._depth_first or not self._running:
            self._cycle(stream, row)
        else:
            self.later(lambda: self._receive(stream, row))

    def later(self, work: Callable[[], None]) -> None:
        """Work that begins when what runs now is finished."""
        self._put(self._waiting, work)

    def insert(self, work: Callable[[], None]) -> None:
        """A row goes into a named window: when what runs now is finished, and before what waits in streams."""
        self._put(self._inserts, work)

    def tell_later(self, work: Callable[[], None]) -> None:
        """Consumers of a store are told: after what runs now, and the inserts that an event has caused directly."""
        self._put(self._tells, work)

    def _put(self, queue: deque[Callable[[], None]], work: Callable[[], None]) -> None:
        if self._running:
            queue.append(work)
        else:
            self._during(work)

    def deliver(self, statement: str, delta: Delta) -> None:
        """What a statement gives its listeners."""
        if delta.new or delta.old or delta.forced:
            self.deliveries.append(Delivery(statement, self.environment.clock.now, delta))

    def deliver_together(self, statement: str, begin: int) -> None:
        """Make one of a statement's deliveries from a place on, where the first of them stands."""
        places = [at for at in range(begin, len(self.deliveries)) if self.deliveries[at].statement == statement]
        if len(places) < 2:
            return
        delta, first = together([self.deliveries[at].delta for at in places]), self.deliveries[places[0]]
        for at in reversed(places[1:]):
            del self.deliveries[at]
        self.deliveries[places[0]] = Delivery(statement, first.at, delta)

    def jump(self, to: int) -> None:
        """The clock jumps over what is due."""
        self.journal = None
        self.advance(to)

    def advance(self, to: int) -> None:
        """The clock moves: each timer that is due fires once, late, in the order of its instants."""
        clock = self.environment.clock
        if to > clock.now:
            clock.now = to
        self._fire()

    def note_early(self, begin: int, place: Order) -> None:
        """A partition that begins or ends has told of all that was delivered since."""
        if self.fired is not None and begin < len(self.deliveries):
            self.early.append((begin, len(self.deliveries), place))

    def advance_in_turn(self, to: int) -> None:
        """The clock jumps: each that is due does all that is due of it, then the next."""
        clock = self.environment.clock
        now = clock.now = max(to, clock.now)
        if self.timers.may_be_due(now):
            self.timers.fire_in_turn(now, lambda target, phase: self._during(target.fire, phase, now))

    def advance_span(self, to: int, most: int | None = None) -> bool:
        """The clock walks through every instant that is due, but no more than `most`; whether it has got there."""
        timers, clock = self.timers, self.environment.clock
        left = LONG_MAX if most is None else most
        while timers.may_be_due(to) and (due := timers.next) is not None and due <= to:
            if left <= 0:
                return False
            left -= 1
            self.advance(due)
        if to > clock.now:
            clock.now = to
        elif to < clock.now:
            self.advance(to)
        return True

    def _fire(self) -> None:
        clock = self.environment.clock
        for target, phase in self.timers.take(clock.now):
            self._during(target.fire, phase, clock.now)
            if self.fired is not None:
                self.fired.append((len(self.deliveries), phase))

    def _cycle(self, stream: str, row: Row, entries: Sequence[Entry] | None = None) -> None:
        """A row to those whom it concerns (`entries`, where that is known), and what it causes."""
        if self._running:
            self._receive(stream, row)
            return
        self._running = True
        try:
            self._receive(stream, row, entries)
            if self._inserts or self._tells or self._waiting:
                self.direct = len(self.deliveries)
                self._drain()
        except BaseException:
            self.journal = None
            self._forget()
            raise
        finally:
            self._running = False

    def _receive(self, stream: str, row: Row, entries: Sequence[Entry] | None = None) -> None:
        """All matches are known before the first is told, so nothing that this event starts sees it."""
        if self.changes:
            for _, change in self.changes.get(stream, ()):
                row = change(row)
        self._trail.append(stream)
        if entries is None:
            entries = self.indexes[stream].matches(row)
        if entries:
            if self.journal is not None and not self.journal.note(stream, row, self.environment.clock.now):
                self.journal = None
            before, self.current = self.current, (stream, row)
            try:
                self.tell(entries, row)
            finally:
                self.current = before

    def hear_as(self, stream: str, row: Row) -> None:
        """The event that is being told is one of another stream too: those who hear that one hear it now."""
        self._receive(stream, row)

    def tell(self, entries: Sequence[Entry], row: Row) -> None:
        """An event to those whose filters it passed, each once with all its inputs."""
        if self.resting:
            entries = [entry for entry in entries if id(entry.receiver) not in self.resting]
        receiver: Receiver | None = None
        place, end = 0, len(entries)
        try:
            while place < end:
                receiver, inputs = entries[place].receiver, entries[place].inputs
                place += 1
                while place < end and entries[place].receiver is receiver:
                    inputs = (*inputs, entries[place].input)
                    place += 1
                receiver.receive(inputs, row)
        except QueryError:
            if receiver is not None:
                self.refused = (row, receiver.order)
            raise

    def _refuse_circle(self) -> None:
        path = " -> ".join(dict.fromkeys(self._trail))
        raise QueryError(
            f"one event has caused {CAUSED} others and there is no end: {path} -> …",
            hint="a statement inserts into a stream that it reads in the end; what it would still cause is dropped",
        )

    def _during(self, work: Callable[[*Given], None], *given: *Given) -> None:
        """Work, then what it routed, unless something runs already that will see to it."""
        outermost, self._running = not self._running, True
        try:
            work(*given)
            if outermost and (self._inserts or self._tells or self._waiting):
                self._drain()
        except BaseException:
            self.journal = None
            raise
        finally:
            if outermost:
                self._running = False
                self._forget()

    def _drain(self) -> None:
        """What was caused, until nothing more is."""
        done = 0
        if not self._inserts:
            done = self._tell_consumers(done)
        while queue := self._inserts or self._waiting or self._tells:
            done = self._counted(done)
            queue.popleft()()
            done = self._tell_consumers(done)

    def _tell_consumers(self, done: int) -> int:
        while self._tells:
            done = self._counted(done)
            self._tells.popleft()()
        return done

    def _counted(self, done: int) -> int:
        if done >= CAUSED:
            self._refuse_circle()
        return done + 1

    def _forget(self) -> None:
        """What still waits when something was refused is dropped."""
        if self._inserts or self._tells or self._waiting:
            for queue in (self._inserts, self._tells, self._waiting):
                queue.clear()
