"""What each kind of pattern node does: a tree of states, one an active instance of a node.

A state is plain data: the match it began with, its children, a few numbers. It tells its parent `true` (a match; `quit`:
and it is over) or `false` (it can no longer become true). A state that is over is `dead`, and whatever is still said to
it or by it is not heard: an event concerns many states, and the first may end the others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from rollup.engine.index import Entry
from rollup.engine.rows.patterns.algebra import (
    AbsentNode,
    AndNode,
    CountNode,
    EveryNode,
    FilterNode,
    FollowedNode,
    IntervalNode,
    NotNode,
    OrNode,
    RepeatNode,
    ScheduleNode,
    WhileNode,
    WithinNode,
)
from rollup.engine.rows.row import Row

if TYPE_CHECKING:
    from rollup.engine.rows.patterns.matcher import Matcher

Match = tuple[Any, ...]
"""By tag: the row, the list of rows, or None."""


class Parent(Protocol):
    """Who is told."""

    def true(self, match: Match, child: State, quit: bool) -> None:
        """A match of the child; `quit`: it is over."""
        ...

    def false(self, child: State) -> None:
        """The child can no longer become true, and is over."""
        ...


class State:
    """An active instance of a node."""

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        self.matcher, self.node, self.parent = matcher, node, parent
        self.begin: Match = ()
        self.dead = False
        self.id = matcher.enlist(self)

    def start(self, begin: Match) -> None:
        """Begin, after what has been bound so far."""
        raise NotImplementedError

    def quit(self) -> None:
        """It is over; so is everything below."""
        if not self.dead:
            self.dead = True
            self.matcher.discharge(self)
            for child in list(self.children()):
                child.quit()

    def children(self) -> Iterable[State]:
        """The active states directly below."""
        return ()

    def true(self, match: Match, child: State, quit: bool) -> None:
        """A child has a match."""
        raise NotImplementedError

    def false(self, child: State) -> None:
        """A child is over without."""
        raise NotImplementedError

    def fail(self) -> None:
        """It can no longer become true."""
        if not self.dead:
            self.quit()
            self.parent.false(self)

    def due(self) -> None:
        """An alarm that it has set."""

    def drop(self, rows: frozenset[int]) -> None:
        """Partial matches that share one of these rows go."""
        for child in list(self.children()):
            child.drop(rows)

    def snapshot(self) -> Any:
        """Plain values, everything below included."""
        return [self.id, self.matcher.place(self.node), self.begin, self.own(), [c.snapshot() for c in self.children()]]

    def own(self) -> Any:
        """What this kind of state knows beside its beginning and its children."""
        return None

    def restore(self, own: Any, children: Sequence[State]) -> None:
        """Go on from a snapshot, the children being there already."""

    def spawn(self, node: Any) -> State:
        """A new child state, not started yet."""
        return self.matcher.made(node, self)


class FilterState(State):
    """Waits for an event; under `every` it stays, since what is below would only begin again as it is."""

    node: FilterNode
    entry: Entry | None = None

    def start(self, begin: Match) -> None:
        self.begin = begin
        self.listen()

    def listen(self) -> None:
        """Be in the filter index, with what the tags have bound as known values."""
        self.entry = self.matcher.listen(self)

    def quit(self) -> None:
        if self.entry is not None:
            self.matcher.unlisten(self.node.stream, self.entry)
            self.entry = None
        super().quit()

    def event(self, row: Row) -> None:
        """An event that passes."""
        match = self.begin if self.node.tag is None else bind(self.begin, self.node.tag, row)
        stays = isinstance(self.parent, EveryState)
        if not stays:
            self.quit()
        self.parent.true(match, self, not stays)

    def drop(self, rows: frozenset[int]) -> None:
        if rows & ids(self.begin):
            self.fail()

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.listen()


class FollowedState(State):
    """The active instances of each child; a match of one starts the next.

    `since`: when the first event of an instance's match came. `origin`: the count that an instance waits behind; when
    the count goes on, another instance takes its place, and when the instance is true, the count is over.
    """

    node: FollowedNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.at: dict[State, int] = {}
        self.since: dict[int, int] = {}
        self.origin: dict[int, int] = {}

    def start(self, begin: Match) -> None:
        self.begin = begin
        self._begin(0, begin, None, None)

    def children(self) -> Iterable[State]:
        return self.at

    def _begin(self, place: int, match: Match, since: int | None, origin: int | None) -> None:
        state = self.spawn(self.node.children[place])
        self.at[state] = place
        if origin is not None:
            self.origin[state.id] = origin
        if since is not None:
            self.since[state.id] = since
            self.matcher.expire(state, since)
        state.start(match)

    def true(self, match: Match, child: State, quit: bool) -> None:
        place = self.at.get(child)
        if place is None or self.dead:
            return
        since = min(self.since.get(child.id, self.matcher.now), self.matcher.first())
        if quit:
            self._gone(child)
        origin, counted = self.matcher.counting(), self.origin.pop(child.id, None)
        if origin is not None:
            self._replaced(origin)
        if counted is not None and not self._finished(counted):
            self._pass(place, match, since, origin)
            self.matcher.finish(counted)
        else:
            self._pass(place, match, since, origin)

    def _pass(self, place: int, match: Match, since: int, origin: int | None) -> None:
        """A match of the child at that place goes on: to the parent, or to the next child."""
        if place == len(self.node.children) - 1:
            over = not self.at
            if over:
                self.quit()
            self.parent.true(match, self, over)
        elif self._room(place + 1):
            self._begin(place + 1, match, since, origin)
        elif not self.at:
            self.fail()

    def _finished(self, number: int) -> bool:
        """End a count that stands directly here; one under `every` is told by the matcher, so that another begins."""
        for state in [state for state in self.at if state.id == number]:
            state.quit()
            self._gone(state)
            return True
        return False

    def _replaced(self, origin: int) -> None:
        for state in [state for state in self.at if self.origin.get(state.id) == origin]:
            state.quit()
            self._gone(state)

    def _gone(self, child: State) -> None:
        self.at.pop(child, None)
        self.since.pop(child.id, None)

    def _room(self, place: int) -> bool:
        limit = self.node.limits[place - 1] if self.node.limits else None
        return limit is None or sum(1 for at in self.at.values() if at == place) < limit

    def false(self, child: State) -> None:
        self._gone(child)
        if child.id in self.origin:
            self.matcher.finish(self.origin.pop(child.id))
        if not self.at:
            self.fail()

    def own(self) -> Any:
        return [list(self.at.values()), list(self.since.items()), list(self.origin.items())]

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.at = dict(zip(children, own[0], strict=True))
        self.since, self.origin = dict(own[1]), dict(own[2])
        for state in children:
            if state.id in self.since:
                self.matcher.expire(state, self.since[state.id])


class AndState(State):
    """The matches of each child so far; one more of any gives the combinations with those of all others."""

    node: AndNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.active: list[State | None] = [None] * len(node.children)
        self.matches: list[list[Match]] = [[] for _ in node.children]
        self.began: int | None = None

    def start(self, begin: Match) -> None:
        self.begin = begin
        self.active = [self.spawn(child) for child in self.node.children]
        for child in list(self.active):
            if child is not None and not self.dead:
                child.start(begin)

    def children(self) -> Iterable[State]:
        return [child for child in self.active if child is not None]

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead or child not in self.active:
            return
        place = self.active.index(child)
        if quit:
            self.active[place] = None
        self.matches[place].append(match)
        if self.began is None and match != self.begin:
            self.began = min(self.matcher.first(), self.matcher.now)
            self.matcher.expire(self, self.began)
        results = combinations([[match] if i == place else found for i, found in enumerate(self.matches)])
        if not results:
            return
        over = all(state is None or isinstance(state, NotState) for state in self.active)
        if over:
            self.quit()
        for result in results:
            self.matcher.begins(self.began)
            self.parent.true(result, self, over)

    def false(self, child: State) -> None:
        if child in self.active:
            self.active[self.active.index(child)] = None
        self.fail()

    def own(self) -> Any:
        return [[state is not None for state in self.active], self.matches, self.began]

    def restore(self, own: Any, children: Sequence[State]) -> None:
        waiting = iter(children)
        self.active = [next(waiting) if there else None for there in own[0]]
        self.matches, self.began = own[1], own[2]
        if self.began is not None:
            self.matcher.expire(self, self.began)


class OrState(State):
    """The active children; the first that is over with a match ends the others."""

    node: OrNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.active: list[State] = []

    def start(self, begin: Match) -> None:
        self.begin = begin
        self.active = [self.spawn(child) for child in self.node.children]
        for child in list(self.active):
            if not self.dead:
                child.start(begin)

    def children(self) -> Iterable[State]:
        return self.active

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead or child not in self.active:
            return
        if quit:
            self.active.remove(child)
            self.quit()
        self.parent.true(match, self, quit)

    def false(self, child: State) -> None:
        if child in self.active:
            self.active.remove(child)
        if not self.active:
            self.fail()

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.active = list(children)


class One(State):
    """A state with one child."""

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.child: State | None = None

    def children(self) -> Iterable[State]:
        return () if self.child is None else (self.child,)

    def begin_child(self, begin: Match) -> None:
        """Start the child; it may be over before this returns."""
        self.child = self.spawn(self.node.child)
        self.child.start(begin)

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.child = children[0] if children else None


class NotState(One):
    """True at once; false for good when its child is over with a match."""

    node: NotNode

    def start(self, begin: Match) -> None:
        self.begin = begin
        self.begin_child(begin)
        if not self.dead:
            self.parent.true(begin, self, False)

    def true(self, match: Match, child: State, quit: bool) -> None:
        if quit:
            self.child = None
            self.fail()

    def false(self, child: State) -> None:
        self.child = None


class EveryState(State):
    """The active instances of its child."""

    node: EveryNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.active: list[State] = []
        self.seen: dict[Any, int] = {}

    def start(self, begin: Match) -> None:
        self.begin = begin
        self._again()

    def children(self) -> Iterable[State]:
        return self.active

    def _again(self) -> None:
        """A new instance. One that is true while it starts (a `not` does that) would begin for ever: it is quit."""
        watch = Watch()
        state = self.matcher.made(self.node.child, watch)
        state.start(self.begin)
        if watch.told:
            state.quit()
        else:
            state.parent = self
            self.active.append(state)

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead or child not in self.active:
            return
        if quit:
            self.active.remove(child)
        if self._ends(child, quit):
            self._again()
        if self._counts(match):
            self.parent.true(match, self, False)

    def _ends(self, child: State, quit: bool) -> bool:
        """Whether another instance begins: a count makes room for the next group once it has its least."""
        if not isinstance(child, CountState):
            return quit or not isinstance(child, FilterState)
        first, child.followed = not child.followed, True
        return first

    def _counts(self, match: Match) -> bool:
        if self.node.keys is None:
            return True
        now, span = self.matcher.now, self.node.span
        key = self.matcher.values(self.node, self.node.keys, match)
        if key in self.seen and (span is None or now < self.seen[key] + span):
            return False
        self.seen[key] = now
        return True

    def false(self, child: State) -> None:
        if child in self.active and not self.dead:
            self.active.remove(child)
            if not (isinstance(child, CountState) and child.followed):
                self._again()

    def own(self) -> Any:
        return list(self.seen.items())

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.active, self.seen = list(children), {key: at for key, at in own}


class Watch:
    """The parent of a child while it starts: remembers that it was told something."""

    def __init__(self) -> None:
        self.told = False

    def true(self, match: Match, child: State, quit: bool) -> None:
        """Remembered."""
        self.told = True

    def false(self, child: State) -> None:
        """Remembered."""
        self.told = True


class RepeatState(State):
    """How often its child was true, and the rows that its tags were bound to."""

    node: RepeatNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.child: State | None = None
        self.until: State | None = None
        self.count = 0
        self.lists: dict[int, list[Row]] = {}

    def start(self, begin: Match) -> None:
        self.begin = begin
        if self.node.until is not None:
            self.until = self.spawn(self.node.until)
            self.until.start(begin)
        if not self.dead:
            self._again()

    def children(self) -> Iterable[State]:
        return [state for state in (self.until, self.child) if state is not None]

    def _again(self) -> None:
        self.child = self.spawn(self.node.child)
        self.child.start(self._bound())

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead:
            return
        if child is self.until:
            self._ended(match)
            return
        if child is not self.child:
            return
        for tag in self.node.tags:
            if match[tag] is not None and not isinstance(match[tag], list):
                self.lists.setdefault(tag, []).append(match[tag])
        self.count += 1
        if quit:
            self.child = None
        exact = self.node.until is None or self.node.low == self.node.high
        if exact and self.node.high is not None and self.count >= self.node.high:
            self.quit()
            self.parent.true(self._bound(), self, True)
        elif quit and (self.node.high is None or self.count < self.node.high):
            self._again()

    def _ended(self, match: Match) -> None:
        if self.count < (self.node.low or 0):
            self.fail()
            return
        self.quit()
        self.parent.true(merged(match, self._bound()), self, True)

    def _bound(self) -> Match:
        match = self.begin
        for tag, rows in self.lists.items():
            match = bind(match, tag, list(rows))
        return match

    def false(self, child: State) -> None:
        if child is self.child:
            self.child = None
            if self.until is None or self.count < (self.node.low or 0):
                self.fail()
        elif child is self.until:
            self.until = None

    def own(self) -> Any:
        return [self.count, list(self.lists.items()), self.until is not None, self.child is not None]

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.count, self.lists = own[0], {tag: rows for tag, rows in own[1]}
        waiting = iter(children)
        self.until = next(waiting) if own[2] else None
        self.child = next(waiting) if own[3] else None


class CountState(One):
    """The rows so far. From `low` on it tells its parent each time, and is not over until `high`, or what follows is."""

    node: CountNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.rows: list[Row] = []
        self.began: int | None = None
        self.followed = False

    def start(self, begin: Match) -> None:
        self.begin = begin
        if self.node.low == 0:
            self._tell(False)
        if not self.dead:
            self.begin_child(begin)

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead:
            return
        self.rows.append(match[self.node.child.tag or 0])
        if self.began is None:
            self.began = self.matcher.now
            self.matcher.expire(self, self.began)
        full = self.node.high is not None and len(self.rows) >= self.node.high
        self.child = None
        if full:
            self.quit()
        else:
            self.begin_child(self.begin)
        if len(self.rows) >= self.node.low:
            self._tell(full)

    def _tell(self, over: bool) -> None:
        self.matcher.count(self.id)
        self.matcher.begins(self.began)
        self.parent.true(bind(self.begin, self.node.child.tag or 0, list(self.rows)), self, over)

    def false(self, child: State) -> None:
        self.child = None
        self.fail()

    def own(self) -> Any:
        return [self.rows, self.began, self.followed]

    def restore(self, own: Any, children: Sequence[State]) -> None:
        super().restore(own, children)
        self.rows, self.began, self.followed = own
        if self.began is not None:
            self.matcher.expire(self, self.began)


class AbsentState(One):
    """Until when there must be no event. One that an alarm begins counts from that alarm's instant, so a clock that jumps
    passes over none."""

    node: AbsentNode
    at = 0

    def start(self, begin: Match) -> None:
        self.begin = begin
        self.at = self.matcher.instant + self.node.span
        self.matcher.alarm(self, self.at)
        self.begin_child(begin)

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead:
            return
        self.child = None
        if self.node.again:
            self.start(self.begin)
        else:
            self.fail()

    def false(self, child: State) -> None:
        self.child = None

    def due(self) -> None:
        """The time has passed, unless an event has started it anew."""
        if self.matcher.now >= self.at:
            self.quit()
            self.parent.true(self.begin, self, True)

    def own(self) -> Any:
        return self.at

    def restore(self, own: Any, children: Sequence[State]) -> None:
        super().restore(own, children)
        self.at = own
        self.matcher.alarm(self, self.at)


class WithinState(One):
    """Its child, until the time is over or there were enough matches."""

    node: WithinNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.end, self.count = 0, 0

    def start(self, begin: Match) -> None:
        self.begin = begin
        self.end = self.matcher.now + self.node.span
        self.matcher.alarm(self, self.end)
        self.begin_child(begin)

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead or child is not self.child:
            return
        self.count += 1
        if quit:
            self.child = None
            self.quit()
        self.parent.true(match, self, quit)
        if self.node.most is not None and self.count >= self.node.most:
            self.fail()

    def false(self, child: State) -> None:
        self.child = None
        self.fail()

    def due(self) -> None:
        """The time is over."""
        self.fail()

    def own(self) -> Any:
        return [self.end, self.count]

    def restore(self, own: Any, children: Sequence[State]) -> None:
        super().restore(own, children)
        self.end, self.count = own
        self.matcher.alarm(self, self.end)


class WhileState(One):
    """Its child, until a match of which the condition is not true."""

    node: WhileNode

    def start(self, begin: Match) -> None:
        self.begin = begin
        self.begin_child(begin)

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead or child is not self.child:
            return
        if quit:
            self.child = None
        if not self.matcher.values(self.node, (self.node.condition,), match)[0]:
            self.fail()
            return
        if quit:
            self.quit()
        self.parent.true(match, self, quit)

    def false(self, child: State) -> None:
        self.child = None
        self.fail()


class AlarmState(State):
    """True at an instant."""

    node: IntervalNode | ScheduleNode
    at = 0

    def start(self, begin: Match) -> None:
        self.begin = begin
        if isinstance(self.node, IntervalNode):
            self.at = self.matcher.now + (self.matcher.values(self.node, (self.node.span,), begin)[0] or 0)
        else:
            self.at = self.node.schedule.after(self.matcher.now)
        if self.at <= self.matcher.now:
            self.due()
        else:
            self.matcher.alarm(self, self.at)

    def due(self) -> None:
        """The instant has come."""
        self.quit()
        self.parent.true(self.begin, self, True)

    def drop(self, rows: frozenset[int]) -> None:
        if rows & ids(self.begin):
            self.fail()

    def own(self) -> Any:
        return self.at

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.at = own
        self.matcher.alarm(self, self.at)


STATES: dict[type, Callable[[Matcher, Any, Parent], State]] = {
    FilterNode: FilterState,
    FollowedNode: FollowedState,
    AndNode: AndState,
    OrNode: OrState,
    NotNode: NotState,
    EveryNode: EveryState,
    RepeatNode: RepeatState,
    CountNode: CountState,
    AbsentNode: AbsentState,
    WithinNode: WithinState,
    WhileNode: WhileState,
    IntervalNode: AlarmState,
    ScheduleNode: AlarmState,
}


def bind(match: Match, tag: int, value: Any) -> Match:
    """A match with one more tag bound."""
    return (*match[:tag], value, *match[tag + 1 :])


def merged(one: Match, two: Match) -> Match:
    """Two matches together; where both bind a tag, the longer list, else the second."""
    return tuple(_both(a, b) for a, b in zip(one, two, strict=True))


def _both(a: Any, b: Any) -> Any:
    if isinstance(a, list) and isinstance(b, list):
        return a if len(a) > len(b) else b
    return a if b is None else b


def combinations(found: Sequence[Sequence[Match]]) -> list[Match]:
    """Every choice of one match a child, put together; the first child varies slowest."""
    results: list[Match] | None = None
    for matches in found:
        if results is None:
            results = list(matches)
        else:
            results = [merged(one, two) for one in results for two in matches]
    return results or []


def ids(match: Match) -> frozenset[int]:
    """The numbers of the rows that a match holds."""
    rows = [row for value in match for row in (value if isinstance(value, list) else [value]) if row is not None]
    return frozenset(row.id for row in rows)
