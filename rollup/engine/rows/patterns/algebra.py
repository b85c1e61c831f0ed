"""The description of a pattern: a frozen tree. `states.py` gives each kind of node its behaviour.

Expressions see the tags of the pattern as inputs `0 … n-1` (a row, or a list of rows where the tag stands under a
repeat; absent while it is not bound), and a filter's own event as input `n`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

from rollup.core.errors import QueryError
from rollup.engine.expressions import Expr


class Schedule(Protocol):
    """A calendar of instants."""

    def after(self, instant: int) -> int:
        """The first instant strictly after that one."""
        ...


@dataclass(frozen=True)
class FilterNode:
    """True at an event of `stream` whose fields equal `equals` and that passes `test`; `tag` binds it.

    `consume`: of the filters that one event concerns, only those of the highest level get it.
    """

    stream: str
    tag: int | None = None
    equals: tuple[tuple[int, Expr], ...] = ()
    test: Expr | None = None
    consume: int = 0


@dataclass(frozen=True)
class FollowedNode:
    """One child after the other. `limits`: how many instances of each later child may wait (None: any number)."""

    children: tuple[Node, ...]
    limits: tuple[int | None, ...] = ()


@dataclass(frozen=True)
class AndNode:
    """All children, in any order."""

    children: tuple[Node, ...]


@dataclass(frozen=True)
class OrNode:
    """The first of the children."""

    children: tuple[Node, ...]


@dataclass(frozen=True)
class NotNode:
    """True until its child is, then false for good; one that `lingers` says so only when the rest of its `and` is true."""

    child: Node
    lingers: bool = False


@dataclass(frozen=True)
class EveryNode:
    """A new instance of its child whenever one is true or, with `retry`, false.

    `keys`: a match whose values were seen already (in the last `span`, where there is one) does not count.
    """

    child: Node
    keys: tuple[Expr, ...] | None = None
    span: int | None = None
    retry: bool = True


@dataclass(frozen=True)
class RepeatNode:
    """Its child `low` to `high` times, until `until` is true; the child's `tags` are bound to lists."""

    child: Node
    low: int | None
    high: int | None
    until: Node | None
    tags: tuple[int, ...]


@dataclass(frozen=True)
class CountNode:
    """`low` to `high` events of a filter, bound to a list: from `low` on what follows is looked for, with more added."""

    child: FilterNode
    low: int
    high: int | None


@dataclass(frozen=True)
class AbsentNode:
    """True when `span` has passed without an event of the filter; `again`: an event starts the time anew, else fails.

    `late`: one that an alarm begins counts from the clock, which may have jumped over that alarm.
    """

    child: FilterNode
    span: int
    again: bool = False
    late: bool = False


@dataclass(frozen=True)
class SilenceNode:
    """True each time that `span` has passed without an event of the filter, on a raster that goes on through all matches."""

    child: FilterNode
    span: int


@dataclass(frozen=True)
class WithinNode:
    """Its child, given up after `span`, which may use tags; and after `most` matches."""

    child: Node
    span: int | Expr
    most: int | None = None


@dataclass(frozen=True)
class WhileNode:
    """Its child, given up at the first match of which the condition is not true."""

    child: Node
    condition: Expr


@dataclass(frozen=True)
class IntervalNode:
    """True once `span` after its start. The span may use tags."""

    span: Expr


@dataclass(frozen=True)
class ScheduleNode:
    """True at the next instant of a calendar after its start."""

    schedule: Schedule


Node = (
    FilterNode
    | FollowedNode
    | AndNode
    | OrNode
    | NotNode
    | EveryNode
    | RepeatNode
    | CountNode
    | AbsentNode
    | SilenceNode
    | WithinNode
    | WhileNode
    | IntervalNode
    | ScheduleNode
)


@dataclass(frozen=True)
class Pattern:
    """A pattern: its tree and how many tags it binds.

    `discard`: a match makes other partial matches that share an event with it go. `suppress`: of the matches of one
    event that share an event only the first is delivered. `limit`: partial matches, over which it is an error. `span`:
    from the first event of a match to its last; an older partial match goes. `textual`: an event that several elements
    may take goes to them in the order of the text, but first to what must not come.
    """

    root: Node
    tags: int
    discard: bool = False
    suppress: bool = False
    limit: int = 1_000_000
    span: int | None = None
    textual: bool = False


def too_many(limit: int) -> QueryError:
    """What is said when a pattern would hold more than its limit."""
    return QueryError(
        f"a pattern holds {limit} partial matches",
        hint="bound it with timer:within, every-distinct with a span of time, or a limit on ->",
    )


def nodes(node: Node) -> Iterator[Node]:
    """A node and all below it, in the order in which they are numbered."""
    yield node
    match node:
        case FollowedNode() | AndNode() | OrNode():
            below: tuple[Node, ...] = node.children
        case NotNode() | EveryNode() | WithinNode() | WhileNode() | CountNode() | AbsentNode() | SilenceNode():
            below = (node.child,)
        case RepeatNode():
            below = (node.child,) if node.until is None else (node.child, node.until)
        case _:
            below = ()
    for child in below:
        yield from nodes(child)
