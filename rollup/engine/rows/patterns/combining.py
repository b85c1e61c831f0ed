"""States with several children: one after the other, together, one of them; and the one that must not be."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rollup.engine.rows.patterns.algebra import AndNode, FollowedNode, NotNode, OrNode
from rollup.engine.rows.patterns.state import Match, One, Parent, State, combinations, shares

if TYPE_CHECKING:
    from rollup.engine.rows.patterns.matcher import Matcher


class FollowedState(State):
    """The active instances of each child; a match of one starts the next.

    `since`: when the first event of an instance's match came, where the pattern has a span. `origin`: the count that an
    instance waits behind; when the count goes on, another instance takes its place, and when the instance is true, the
    count is over. `ranks`: of an instance that took the place of another the number of the first that stood there.
    """

    node: FollowedNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.at: dict[State, int] = {}
        self.since: dict[int, int] = {}
        self.origin: dict[int, int] = {}
        self.ranks: dict[int, int] = {}

    def start(self, begin: Match) -> None:
        self.begin = begin
        self._begin(0, begin, None, None, None)

    def children(self) -> Iterable[State]:
        return self.at

    def _begin(self, place: int, match: Match, since: int | None, origin: int | None, rank: int | None) -> None:
        state = self.spawn(self.node.children[place])
        self.at[state] = place
        if place:
            self.matcher.hold(state, match)
        if rank is not None:
            self.ranks[state.id] = rank
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
        since = self._since(child) if self.matcher.spans else None
        if quit:
            self._gone(child)
        origin, counted = self.matcher.counting(), self.origin.pop(child.id, None)
        rank = None if origin is None else self._replaced(origin)
        if counted is not None and not self._finished(counted):
            self._pass(place, match, since, origin, rank)
            self.matcher.finish(counted)
        else:
            self._pass(place, match, since, origin, rank)

    def _since(self, child: State) -> int:
        """When the first event of the match that a child tells came."""
        return min(self.since.get(child.id, self.matcher.came), self.matcher.first())

    def _pass(self, place: int, match: Match, since: int | None, origin: int | None, rank: int | None) -> None:
        """A match of the child at that place goes on: to the parent, or to the next child."""
        if place == len(self.node.children) - 1:
            over = not self.at
            if over:
                self.quit()
            if origin is not None:
                self.matcher.count(origin)
            self.matcher.begins(since)
            self.parent.true(match, self, over)
        elif self._room(place + 1):
            self._begin(place + 1, match, since, origin, rank)
            self.parent.begun(self)
        elif not self.at:
            self.fail()

    def begun(self, child: State) -> None:
        """What follows a count has an event of its own: the count is over."""
        counted = self.origin.pop(child.id, None)
        if counted is None:
            self.parent.begun(self)
        elif not self._finished(counted):
            self.matcher.finish(counted)

    def _finished(self, number: int) -> bool:
        """End a count that stands directly here; one under `every` is told by the matcher, so that another begins."""
        for state in [state for state in self.at if state.id == number]:
            state.quit()
            self._gone(state)
            return True
        return False

    def _replaced(self, origin: int) -> int | None:
        """End what waits behind a count; the rank of it."""
        rank = None
        for state in [state for state in self.at if self.origin.get(state.id) == origin]:
            rank = self.rank(state)
            state.quit()
            self._gone(state)
        return rank

    def rank(self, child: State) -> int:
        """Instances of one place stand in the order of these numbers."""
        return self.ranks.get(child.id, child.id)

    def _gone(self, child: State) -> None:
        self.at.pop(child, None)
        self.since.pop(child.id, None)
        self.ranks.pop(child.id, None)

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
        kept = [list(each.items()) for each in (self.since, self.origin, self.ranks)]
        return [list(self.at.values()), *kept, self.followed]

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.at = dict(zip(children, own[0], strict=True))
        (self.since, self.origin, self.ranks), self.followed = map(dict, own[1:4]), own[4]
        for state, place in self.at.items():
            if state.id in self.since:
                self.matcher.expire(state, self.since[state.id])
            if place:
                self.matcher.hold(state, state.begin)


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

    def lose(self, rows: frozenset[int]) -> None:
        """What has come of a child that is over cannot come again; of others it is forgotten."""
        shared = [any(shares(match, rows) for match in found) for found in self.matches]
        if shares(self.begin, rows) or any(
            lost and state is None for lost, state in zip(shared, self.active, strict=True)
        ):
            self.fail()
        else:
            self.matches = [[match for match in found if not shares(match, rows)] for found in self.matches]

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead or child not in self.active:
            return
        place = self.active.index(child)
        self.matcher.bounded(len(self.matches[place]))
        if quit:
            self.active[place] = None
        self.matches[place].append(match)
        self.matcher.hold(self, match)
        if self.matcher.spans and self.began is None and match != self.begin:
            self.began = min(self.matcher.first(), self.matcher.came)
            self.matcher.expire(self, self.began)
        results = self._complete(match, place)
        if not results:
            if match != self.begin:
                self.parent.begun(self)
            return
        if any(isinstance(state, NotState) and state.over for state in self.active):
            self.fail()
            return
        over = all(state is None or isinstance(state, NotState) for state in self.active)
        if over:
            self.quit()
        for result in results:
            self.matcher.begins(self.began)
            self.parent.true(result, self, over)

    def _complete(self, match: Match, place: int) -> list[Match]:
        """A match of the child at that place with those of all others."""
        if not all(self.matches):
            return []
        return combinations([[match] if i == place else found for i, found in enumerate(self.matches)])

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
        for match in [match for found in self.matches for match in found]:
            self.matcher.hold(self, match)
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


class NotState(One):
    """True at once; false for good when its child is over with a match. `over`: it is false and has not said so."""

    node: NotNode
    over = False

    def start(self, begin: Match) -> None:
        self.begin = begin
        self.begin_child(begin)
        if not self.dead:
            self.parent.true(begin, self, False)

    def true(self, match: Match, child: State, quit: bool) -> None:
        if quit:
            self.child = None
            self.over = True
            if not self.node.lingers:
                self.fail()

    def false(self, child: State) -> None:
        self.child = None

    def own(self) -> Any:
        return self.over

    def restore(self, own: Any, children: Sequence[State]) -> None:
        super().restore(own, children)
        self.over = own
