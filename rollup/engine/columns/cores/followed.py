"""Which patterns of events that follow one another run over columns, and as what: `every` event of a filter, and what follows
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from rollup.engine.columns.cores.asked import alone, asked, asks_before, unfiltered
from rollup.engine.columns.cores.links import Guard, Link
from rollup.engine.columns.cores.matched import Matched
from rollup.engine.expressions import Expr, Field, inside
from rollup.engine.rows.patterns.algebra import (
    EveryNode,
    FilterNode,
    FollowedNode,
    Node,
    Pattern,
    WithinNode,
    nodes,
)
from rollup.engine.types import LONG, RowType


def followed(pattern: Pattern, reads: Mapping[str, RowType], part: int | None = None) -> Matched | str:
    """The core of a pattern whose matches are shown as whole rows, or the first reason against it; `part`: which field of all
    events is the number of their partition.
    """
    found = _parts(pattern)
    if found is None:
        return "a pattern other than every a -> b -> …, within a time or not"
    begin, followers = found
    if asks_before(begin, pattern.tags):
        return "a condition of the first event on another"
    beginning = alone(begin)
    types, links = [reads[begin.stream]], list[Link]()
    reason = unfiltered(beginning, types[0])
    for each in followers:
        link = reason or _link(each, types, reads[each.node.stream], pattern.tags, part)
        if isinstance(link, str):
            return link
        links.append(link)
        types += [link.binds] if link.binds is not None else []
    return Matched(beginning, tuple(links), pattern.limit, tuple(types), part=part)


@dataclass(frozen=True)
class _Follower:
    """What follows: its filter and that one's number in the pattern, how many events come before, what gives it up, and how
    many states it is.
    """

    node: FilterNode
    number: int
    events: int
    guards: tuple[Guard, ...]
    states: int


def _parts(pattern: Pattern) -> tuple[FilterNode, list[_Follower]] | None:
    """What begins a match and what follows, of a pattern that is covered."""
    match pattern:
        case Pattern(
            root=FollowedNode(
                children=(EveryNode(child=FilterNode(tag=0) as begin, keys=None), *children), limits=()
            ),
            discard=False, suppress=False, span=None,
        ) if not begin.consume:  # fmt: skip
            numbers = {id(node): number for number, node in enumerate(nodes(pattern.root))}
            found = list(_followers(children, 1, (), 0, numbers))
            nodes_ = [each.node for each in found if each is not None]
            tags = [node.tag for node in nodes_ if node.tag is not None]
            if len(nodes_) == len(found) and tags == list(range(1, pattern.tags)):
                return begin, [each for each in found if each is not None]
        case _:
            pass
    return None


def _followers(
    children: Sequence[Node], events: int, guards: tuple[Guard, ...], states: int, numbers: Mapping[int, int]
) -> Iterator[_Follower | None]:
    """What follows so many events, in order; None of what is not covered."""
    for child in children:
        number = numbers[id(child)]
        match child:
            case FilterNode(consume=0):
                below = iter([_Follower(child, number, events, guards, states + 1)])
            case WithinNode(child=inner, span=int(span), most=None):
                below = _followers((inner,), events, (*guards, Guard(events - 1, span, number)), states + 1, numbers)
            case FollowedNode(children=several, limits=()):
                below = _followers(several, events, guards, states + 1, numbers)
            case _:
                below = iter([None])
        for each in below:
            yield each
            events += 1


def _link(follower: _Follower, before: Sequence[RowType], type: RowType, tags: int, part: int | None) -> Link | str:
    """What an event of that type must be to follow events of the types `before` that have names, or the first reason against
    it.
    """
    found = asked(follower.node, range(len(before)), type, tags)
    if isinstance(found, str):
        return found
    keys = tuple((_over(one, before), other) for one, other in found.keys)
    compared = tuple(replace(each, one=_over(each.one, before)) for each in found.compared)
    if part is not None:
        number = Field(0, part, LONG)
        keys = ((number, number), *keys)
    binds = None if follower.node.tag is None else type
    link = Link(
        found.filter,
        keys,
        compared,
        follower.guards,
        tuple(before),
        follower.events,
        binds,
        follower.states,
        follower.number,
    )
    if not link.searchable:
        return "a condition of an event on an earlier one without a key or an order"
    return unfiltered(found.filter, type) or link


def places_of(types: Sequence[RowType]) -> list[int]:
    """Where the fields of each event begin among those of all."""
    return list(accumulate((len(each.fields) for each in types), initial=0))


def _over(expr: Expr, before: Sequence[RowType]) -> Expr:
    """An expression over events before another, over the fields of all of them."""
    begins = places_of(before)

    def placed(expr: Expr) -> Expr:
        return Field(0, begins[expr.input] + expr.index, expr.type) if isinstance(expr, Field) else inside(expr, placed)

    return placed(expr)
