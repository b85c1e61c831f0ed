"""What the states of all kinds of pattern nodes have in common, and the matches that they tell each other.

A state is an active instance of a node, and plain data: the match it began with, its children, a few numbers. It tells
its parent `true` (a match; `quit`: and it is over) or `false` (it can no longer become true). A state that is over is
`dead`, and whatever is still said to it or by it is not heard: an event concerns many states, and the first may end the
others.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

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

    def begun(self, child: State) -> None:
        """The child, not true yet, has taken its first event."""
        ...


class State:
    """An active instance of a node; `followed`: under `every`, another has begun while this one's count goes on."""

    followed = False

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

    def begun(self, child: State) -> None:
        """So has this one."""
        self.parent.begun(self)

    def fail(self) -> None:
        """It can no longer become true."""
        if not self.dead:
            self.quit()
            self.parent.false(self)

    def due(self) -> None:
        """An alarm that it has set."""

    def lose(self, rows: frozenset[int]) -> None:
        """Some rows that it holds are those of a match that takes other partial matches away."""
        self.fail()

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


def bind(match: Match, tag: int, value: Any) -> Match:
    """A match with one more tag bound."""
    return (*match[:tag], value, *match[tag + 1 :])


def merged(one: Match, two: Match) -> Match:
    """Two matches together; where both bind a tag, the longer list, else the second."""
    return tuple(map(_both, one, two))


def _both(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return a if b is None else b
    return a if isinstance(a, list) and isinstance(b, list) and len(a) > len(b) else b


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


def shares(match: Match, rows: frozenset[int]) -> bool:
    """Whether a match holds one of some rows, by their numbers."""
    for value in match:
        if isinstance(value, list):
            if any(row is not None and row.id in rows for row in value):
                return True
        elif value is not None and value.id in rows:
            return True
    return False
