"""A pattern at work: its states, their filters in the index, their alarms, and the matches that each event completes."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rollup.engine.compiling import compiled_key
from rollup.engine.expressions import Expr
from rollup.engine.index import Entry
from rollup.engine.row import Row
from rollup.engine.rows.patterns.algebra import (
    AbsentNode,
    FilterNode,
    Pattern,
    RepeatNode,
    SilenceNode,
    nodes,
    too_many,
)
from rollup.engine.rows.patterns.combining import FollowedState, NotState
from rollup.engine.rows.patterns.discarding import Holders
from rollup.engine.rows.patterns.guarding import AbsentState, Raster
from rollup.engine.rows.patterns.repeating import CountState, FilterState
from rollup.engine.rows.patterns.state import Match, Parent, State, ids
from rollup.engine.rows.patterns.states import STATES
from rollup.engine.rows.patterns.waiting import Waiting
from rollup.engine.rows.runner import Environment, Runner
from rollup.engine.timers import Order, Phase

TURNS = 20_000
"""So many times at most alarms follow one another in a jump of the clock; what is due behind these is due once, at its end."""


class Matcher:
    """Runs a pattern; `deliver` gets the matches of an event or an instant, oldest partial match first.

    >>> from rollup.engine.rows.patterns.algebra import EveryNode, FilterNode, FollowedNode
    >>> runner = Runner()
    >>> pattern = Pattern(FollowedNode((EveryNode(FilterNode("A", 0)), FilterNode("B", 1))), tags=2)
    >>> matcher = Matcher(pattern, runner, (0, 0), lambda matches: print(matches))
    >>> matcher.start()
    >>> for stream in "AAB":
    ...     runner.send(stream, (stream,))
    [(Row(1, ('A',)), Row(3, ('B',))), (Row(2, ('A',)), Row(3, ('B',)))]
    """

    def __init__(
        self,
        pattern: Pattern,
        runner: Runner,
        order: Order,
        deliver: Callable[[list[Match]], None],
        scope: Callable[[str], tuple[Mapping[int, Any], Callable[[Row], bool] | None]] | None = None,
        environment: Environment | None = None,
        phase: Phase = Phase.WINDOW,
    ) -> None:
        self.pattern, self.runner, self.order, self.deliver = pattern, runner, order, deliver
        self.spans = pattern.span is not None
        """Whether it matters when the first event of a match came."""
        self._phase = phase
        self._scope = scope
        self._environment = environment or runner.environment
        self._clock = runner.environment.clock
        self._places = {id(node): place for place, node in enumerate(nodes(pattern.root))}
        self._nodes = list(nodes(pattern.root))
        self._until = {id(node.until) for node in self._nodes if isinstance(node, RepeatNode)}
        self._waiting: dict[int, Waiting] = {}
        self._functions: dict[int, Callable[[Any, Any, Any], Any]] = {}
        self._states: dict[int, State] = {}
        self._holders = Holders() if pattern.discard else None
        self._number = 0
        self._alarms: list[tuple[int, int]] = []
        self._ages: list[tuple[int, int]] = []
        """When states that go on with a match are too old for the pattern's span."""
        self._rasters: dict[int, Raster] = {}
        self._waits = any(isinstance(node, AbsentNode | SilenceNode) for node in self._nodes)
        """Whether a silence may come of the clock alone, so that what is too old must be gone by then."""
        self._instant: int | None = None
        self._turned, self._turns = -1, 0
        """How often alarms were due as the clock stood where it stands."""
        self._row_time: int | None = None
        self._counting: int | None = None
        self._begins: int | None = None
        self._found: list[Match] = []
        self._found_at: list[int] = []
        self.times: list[int] = []
        """When each of the matches that are delivered was true: its last event's time, or the end of a silence."""
        self.root: State | None = None

    @property
    def now(self) -> int:
        """The engine's time."""
        return self._clock.now

    @property
    def instant(self) -> int:
        """The instant of the alarm that is being heard, or the time of the event that is received; else the engine's."""
        return self.came if self._instant is None else self._instant

    @property
    def came(self) -> int:
        """The time of the event that is being received; at other times the engine's."""
        return self._clock.now if self._row_time is None else self._row_time

    @property
    def event_time(self) -> int | None:
        """The time of the event that is being received, if one is."""
        return self._row_time if self._instant is None else None

    def start(self) -> None:
        """Begin to look."""
        self.root = self.made(self.pattern.root, self)
        self.root.start((None,) * self.pattern.tags)
        self._deliver()
        self._ask()

    def stop(self) -> None:
        """Forget everything."""
        if self.root is not None:
            self.root.quit()
            self.root = None
        for raster in self._rasters.values():
            raster.quit()
        self._rasters = {}
        self._alarms.clear()  # the states of a snapshot have the same numbers
        self._ages.clear()
        self.runner.timers.forget(self)

    def age(self, to: int) -> None:
        """An event of that time comes: what is too old for it goes."""
        while self._ages and (self._ages[0][0] <= to or self._ages[0][1] not in self._states):
            self._instant, number = heapq.heappop(self._ages)
            state = self._states.get(number)
            if state is not None and not state.dead:
                state.fail()
        self._instant = None

    def receive(self, inputs: Sequence[int], row: Row, at: int | None = None) -> None:
        """Take an event, its time where that is not the engine's, and the states that it concerns.

        States that end a repeat come first, and those that add to a count last: an event that fits a count and the step
        behind it belongs to that step. Among the others, states with conditions come before those that take any event,
        and the oldest first.
        """
        self._row_time = at
        try:
            if len(inputs) > 1:
                self._to_several(inputs, row)
            elif isinstance(state := self._states.get(inputs[0]), FilterState):
                state.event(row)
        finally:  # those before one that refuses the event have had it
            self._row_time = None
            if self._found:
                self._deliver()
            if self._alarms or self._ages:
                self._ask()

    def _to_several(self, inputs: Sequence[int], row: Row) -> None:
        concerned = [state for state in map(self._states.get, inputs) if isinstance(state, FilterState)]
        level = max((state.node.consume for state in concerned), default=0)
        concerned = [state for state in concerned if state.node.consume >= level]
        concerned.sort(key=self._turn)
        for state, number in [(state, state.id) for state in concerned]:
            if state.id == number and not state.dead:  # one that has begun again does not get the event any more
                state.event(row)

    def _turn(self, state: FilterState) -> tuple[int, ...]:
        counts = isinstance(state.parent, CountState)
        if self.pattern.textual:  # of counts that follow one another the later one first
            first = isinstance(state.parent, NotState | AbsentState | Raster)
            return (2, -self.place(state.node), _rank(state)) if counts else (0 if first else 1, 0, _rank(state))
        return 0 if id(state.node) in self._until else 2 if counts else 1, state.open

    def fire(self, phase: Phase, now: int) -> None:
        """Alarms are due; one that is set meanwhile waits for the next call."""
        due = list[tuple[int, int, bool]]()
        for heap in (self._alarms, self._ages) if self._waits else (self._alarms,):
            while heap and heap[0][0] <= now:
                due.append((*heapq.heappop(heap), heap is self._ages))
        self._turns = self._turns + 1 if self._turned == now else 0
        self._turned = now
        if hurries := self._turns >= TURNS:
            self._clock.hurried = True
        for at, number, expires in sorted(due):
            self._instant = now if hurries else at
            state = self._states.get(number)
            if state is not None and not state.dead:
                state.fail() if expires else state.due()
        self._instant = None
        self._deliver()
        self._ask()

    def true(self, match: Match, child: State, quit: bool) -> None:
        """The pattern is true."""
        self._counting = self._begins = None
        self._found.append(match)
        self._found_at.append(self.instant)
        if quit:  # it is over, also for a snapshot
            self.root = None

    def false(self, child: State) -> None:
        """The pattern can no longer become true."""
        self.root = None

    def begun(self, child: State) -> None:
        """No count stands before the whole pattern."""

    def made(self, node: Any, parent: Parent) -> State:
        """A new state of a node."""
        return STATES[type(node)](self, node, parent)

    def raster(self, node: SilenceNode) -> Raster:
        """The raster of a silence; it begins with the first state that waits for it."""
        place = self.place(node)
        if place not in self._rasters:
            self._rasters[place] = Raster(self, node, self)
            self._rasters[place].start((None,) * self.pattern.tags)
        return self._rasters[place]

    def enlist(self, state: State) -> int:
        """The number of a new state. Raises QueryError when there are too many."""
        self.bounded(len(self._states))
        self._number += 1
        self._states[self._number] = state
        return self._number

    def bounded(self, held: int) -> None:
        """Raise QueryError when one more of what a pattern holds so often would be too many."""
        if held >= self.pattern.limit:
            raise too_many(self.pattern.limit)

    def discharge(self, state: State) -> None:
        """A state is over."""
        self._states.pop(state.id, None)
        if self._holders is not None:
            self._holders.forget(state)

    def hold(self, state: State, match: Match) -> None:
        """A state waits with a match that nothing above it has; a match that shares a row of it may take it away."""
        if self._holders is not None:
            self._holders.hold(state, match)

    def listen(self, state: FilterState) -> Entry:
        """Put a filter into the index, with what is bound as known values."""
        node = state.node
        waiting = self._waiting.get(id(node))
        if waiting is None:
            narrowing = None if self._scope is None else self._scope(node.stream)
            waiting = self._waiting[id(node)] = Waiting(node, self.pattern.tags, self._environment, narrowing)
        entry = waiting.entry(self, state.id, state.begin)
        self.runner.indexes[node.stream].add(entry)
        return entry

    def waits_for_the_same(self, node: FilterNode) -> bool:
        """Whether a filter that begins again after the same match is the same in the index."""
        return self._waiting[id(node)].same_again

    def renew(self, state: FilterState, entry: Entry) -> None:
        """A filter in the index is that of a state that has just begun."""
        del self._states[state.id]
        self._number = state.id = number = self._number + 1
        self._states[number] = state
        self.runner.indexes[state.node.stream].renew(entry, number)

    def unlisten(self, stream: str, entry: Entry) -> None:
        """Take a filter out of the index."""
        self.runner.indexes[stream].remove(entry)

    def alarm(self, state: State, at: int) -> None:
        """Call `due` of a state at an instant; a state that is over by then is not called.

        What an alarm sets is later than that alarm, or the clock would not go on.
        """
        heapq.heappush(self._alarms, (at if self._instant is None else max(at, self._instant + 1), state.id))

    def expire(self, state: State, since: int) -> None:
        """A state that goes on with a match whose first event came at `since` fails when the pattern's span is over."""
        if self.pattern.span is not None:
            heapq.heappush(self._ages, (since + self.pattern.span + 1, state.id))

    def count(self, number: int) -> None:
        """The match that is told next is a count that may go on."""
        self._counting = number

    def counting(self) -> int | None:
        """The count whose match is being told, once."""
        number, self._counting = self._counting, None
        return number

    @property
    def counted(self) -> bool:
        """Whether the match that is being told is that of a count."""
        return self._counting is not None

    def begins(self, at: int | None) -> None:
        """The match that is told next has a first event that came at this instant."""
        self._begins = at

    def first(self) -> int:
        """When the first event of the match that is being told came, once; now, where nothing was said."""
        at, self._begins = self._begins, None
        return self.came if at is None else at

    def start_apart(self, state: State, begin: Match) -> None:
        """Start a state while a match waits to be told: what it says of counts and first events is not of this match."""
        counting, begins = self._counting, self._begins
        state.start(begin)
        self._counting, self._begins = counting, begins

    def finish(self, number: int) -> None:
        """What follows a count is true or gone: the count is over, and whoever repeats it begins again."""
        state = self._states.get(number)
        if state is not None and not state.dead:
            state.fail()

    def values(self, node: Any, exprs: Sequence[Expr], match: Match) -> tuple[Any, ...]:
        """The values of a node's expressions over a match."""
        function = self._functions.get(id(node))
        if function is None:
            function = self._functions[id(node)] = compiled_key(exprs)
        return function((*match, None), (), self._environment)

    def place(self, node: Any) -> int:
        """The number of a node in the pattern."""
        return self._places[id(node)]

    def snapshot(self) -> Any:
        """The states, from the root, and the rasters."""
        root = None if self.root is None else self.root.snapshot()
        return [self._number, root, *(raster.snapshot() for raster in self._rasters.values())]

    def restore(self, state: Any) -> None:
        """Go on from a snapshot, instead of `start`."""
        number, root, *rasters = state
        for saved in rasters:
            self._number = saved[0] - 1
            raster = self._rasters[saved[1]] = Raster(self, self._nodes[saved[1]], self)
            self._filled(raster, saved)
        self.root = None if root is None else self._restored(root, self)
        for _, state in sorted(self._states.items()):  # as they began to wait: the oldest gets an event first
            if isinstance(state, FilterState):
                state.listen()
        self._number = number
        self._ask()

    def _restored(self, saved: Any, parent: Parent) -> State:
        self._number = saved[0] - 1
        return self._filled(self.made(self._nodes[saved[1]], parent), saved)

    def _filled(self, state: State, saved: Any) -> State:
        _, _, begin, own, below = saved
        state.begin = tuple(begin)
        state.restore(own, [self._restored(child, state) for child in below])
        return state

    def _deliver(self) -> None:
        found, self._found = self._found, []
        self.times, self._found_at = self._found_at, []
        if self._holders is not None:  # the matches of one event do not take each other away
            for match in found:
                self._holders.lose(ids(match))
        if found and self.pattern.suppress:
            found = self._apart(found)
        if found:
            self.deliver(found)

    def _apart(self, found: list[Match]) -> list[Match]:
        kept, taken = list[Match](), set[int]()
        for match in found:
            if not taken & ids(match):
                kept.append(match)
                taken |= ids(match)
        return kept

    def _ask(self) -> None:
        due = self._next(self._alarms)
        if self._waits and (aged := self._next(self._ages)) is not None and (due is None or aged < due):
            due = aged
        self.runner.timers.ask(self, self._phase, due, 1)

    def _next(self, heap: list[tuple[int, int]]) -> int | None:
        """The next instant of a state that is not over."""
        while heap and heap[0][1] not in self._states:
            heapq.heappop(heap)
        return heap[0][0] if heap else None


def _rank(state: State) -> int:
    """Its place among the tries that wait for the same: as they came there, also where a count has gone on since."""
    parent: Any = state.parent
    while isinstance(parent, State) and not isinstance(parent, FollowedState):
        state, parent = parent, parent.parent
    return parent.rank(state) if isinstance(parent, FollowedState) else 0
