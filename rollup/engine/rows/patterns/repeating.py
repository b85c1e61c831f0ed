"""States that wait for an event, and those that begin again: `every`, repeats and counts."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from rollup.engine.index import Entry
from rollup.engine.row import Row
from rollup.engine.rows.patterns.algebra import CountNode, EveryNode, FilterNode, RepeatNode
from rollup.engine.rows.patterns.state import Match, One, Parent, State, bind, merged

if TYPE_CHECKING:
    from rollup.engine.rows.patterns.matcher import Matcher


class FilterState(State):
    """Waits for an event; under `every` and what repeats it, it stays, since it would only begin again as it is."""

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

    @property
    def open(self) -> bool:
        """Whether any event of its stream passes."""
        return not self.node.equals and self.node.test is None

    def event(self, row: Row) -> None:
        """An event that passes."""
        match = self.begin if self.node.tag is None else bind(self.begin, self.node.tag, row)
        stays = isinstance(self.parent, EveryState) or (isinstance(self.parent, RepeatState) and self.same_again)
        if not stays:
            self.quit()
        self.parent.true(match, self, not stays)

    def again(self) -> None:
        """Wait for the next event, as one that begins now."""
        assert self.entry is not None
        self.matcher.renew(self, self.entry)

    @property
    def same_again(self) -> bool:
        """Whether what it began with alone says which events pass."""
        return self.matcher.waits_for_the_same(self.node)

    def restore(self, own: Any, children: Sequence[State]) -> None:
        """The matcher listens, for all filters in their order."""


class EveryState(State):
    """The active instances of its child, each with the values that it and those before it have `seen`.

    An instance after one that could not become true knows none of them.
    """

    node: EveryNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.active: list[State] = []
        self.seen: dict[State, dict[Any, int]] = {}
        self._told = False
        """Whether a child that has not begun yet, or is over, has said something."""

    def start(self, begin: Match) -> None:
        self.begin = begin
        self._again(True)

    def children(self) -> Iterable[State]:
        return self.active

    def _again(self, empty: bool = False, seen: dict[Any, int] | None = None) -> None:
        """A new instance. One that is true while it starts (a `not` does that) would begin for ever: it is quit.

        A count that may be `empty` is true when nothing has come since what follows was true last.
        """
        self._told = False
        state = self.spawn(self.node.child)
        self.matcher.start_apart(state, self.begin)
        told = self._told
        if told and not isinstance(state, CountState):
            state.quit()
            return
        self.active.append(state)
        if self.node.keys is not None:
            self.seen[state] = OrderedDict(seen or {})
        if told and empty and isinstance(state, CountState):
            state.followed = True  # nothing has come: the next group begins with the first that does
            state.tell(False)
            state.followed = False

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead or child not in self.active:
            self._told = True
            return
        seen = self.seen.get(child)
        counts = seen is None or self._counts(match, seen)
        if quit:
            self.active.remove(child)
            self.seen.pop(child, None)
        if self._ends(child, quit):
            self._again(seen=seen)
        if counts:
            self.parent.true(match, self, False)

    def _ends(self, child: State, quit: bool) -> bool:
        """Whether another instance begins: a count, or what ends in one, makes room for the next once it has its least."""
        if not self.matcher.counted:
            return quit or not isinstance(child, FilterState | RepeatState)
        first, child.followed = not child.followed, True
        return first

    def _counts(self, match: Match, seen: dict[Any, int]) -> bool:
        assert self.node.keys is not None
        now, span = self.matcher.now, self.node.span
        key = self.matcher.values(self.node, self.node.keys, match)
        since = seen.get(key)
        if since is not None:
            if span is None or now < since + span:
                return False
            del seen[key]  # the values stand in the order of their instants, so those that are over stand first
        while span is not None and seen and seen[first := next(iter(seen))] + span <= now:
            del seen[first]
        self.matcher.bounded(len(seen))
        seen[key] = now
        return True

    def false(self, child: State) -> None:
        if self.dead or child not in self.active:
            self._told = True
            return
        self.active.remove(child)
        self.seen.pop(child, None)
        if not self.node.retry and not self.active:
            self.fail()
        elif self.node.retry and not child.followed:
            self._again(True)

    def own(self) -> Any:
        return [list(seen.items()) for seen in self.seen.values()]

    def restore(self, own: Any, children: Sequence[State]) -> None:
        self.active = list(children)
        self.seen = {state: OrderedDict(seen) for state, seen in zip(self.active, own, strict=False)}


class RepeatState(State):
    """How often its child was true, and the rows that its tags were bound to."""

    node: RepeatNode

    def __init__(self, matcher: Matcher, node: Any, parent: Parent) -> None:
        super().__init__(matcher, node, parent)
        self.child: State | None = None
        self.until: State | None = None
        self.count = 0
        self.lists: dict[int, list[Row]] = {}
        self._starting = False

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
        """A new turn. Without a bound, one that is true while it starts is the last: all others would be so too."""
        if self._starting and self.node.high is None:
            return
        self.child = self.spawn(self.node.child)
        self._starting = True
        self.child.start(self.begin)  # each turn sees its own events, not those of the turns before
        self._starting = False

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead:
            return
        if child is self.until:
            self._ended(match)
            return
        if child is not self.child:
            return
        for tag in self.node.tags:
            value = match[tag]
            if value is not None:
                self.lists.setdefault(tag, []).extend(value if isinstance(value, list) else [value])
        self.count += 1
        if quit:
            self.child = None
        exact = self.node.until is None or self.node.low == self.node.high
        if exact and self.node.high is not None and self.count >= self.node.high:
            self._over(self._bound())
        elif self.node.high is not None and self.count >= self.node.high:
            if isinstance(self.child, FilterState):
                self.child.quit()
                self.child = None
        elif isinstance(self.child, FilterState):
            self.child.again()
        elif quit:
            self._again()

    def _ended(self, match: Match) -> None:
        if self.count < (self.node.low or 0):
            self.fail()
            return
        self._over(merged(match, self._bound()))

    def _over(self, match: Match) -> None:
        """It is true. Under `every` it begins again as it is where it waits for the same events again."""
        waiting = [each for each in self.children() if isinstance(each, FilterState) and each.same_again]
        stays = isinstance(self.parent, EveryState) and len(waiting) == 1 + (self.node.until is not None)
        if stays:
            self.count, self.lists = 0, {}
            for each in waiting:
                each.again()
        else:
            self.quit()
        self.parent.true(match, self, not stays)

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

    def start(self, begin: Match) -> None:
        self.begin = begin
        if self.node.high == 0:
            self.quit()
            self.tell(True)
            return
        if self.node.low == 0:
            self.tell(False)
        if not self.dead:
            self.begin_child(begin)

    def true(self, match: Match, child: State, quit: bool) -> None:
        if self.dead:
            return
        self.rows.append(match[self.node.child.tag or 0])
        if self.began is None:
            self.began = self.matcher.came
            self.matcher.expire(self, self.began)
        full = self.node.high is not None and len(self.rows) >= self.node.high
        self.child = None
        if full:
            self.quit()
        else:
            self.begin_child(self.begin)
        if len(self.rows) >= self.node.low:
            self.tell(full)
        elif len(self.rows) == 1:
            self.parent.begun(self)

    def tell(self, over: bool) -> None:
        """The rows so far are a match; `over`: it is not added to."""
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
