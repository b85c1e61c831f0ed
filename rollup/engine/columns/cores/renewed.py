"""Which patterns begin anew after each match and run over columns so: `every (…)` around what has no `every` in it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rollup.core.descriptions import descendants
from rollup.engine import operators as op
from rollup.engine.columns.cores.asked import asked, inputs, unfiltered
from rollup.engine.columns.cores.links import Compared, Guard
from rollup.engine.columns.cores.renewing import Renewing, Slot
from rollup.engine.columns.cores.renewing_loop import Stage, Taking
from rollup.engine.columns.cores.rewriting import of_one_event
from rollup.engine.expressions import Call, Const, Field
from rollup.engine.rows.patterns.algebra import (
    AndNode,
    EveryNode,
    FilterNode,
    FollowedNode,
    Node,
    NotNode,
    OrNode,
    Pattern,
    RepeatNode,
    WithinNode,
    nodes,
)
from rollup.engine.rows.plans import Select
from rollup.engine.types import Kind, RowType

Event = tuple[int, int | None]
"""An event of a match: its tag, and the how manieth of that tag it is (None: the only one)."""
_MOST = 62
"""So many filters of one stage are bits of a number."""


def renewed(
    plan: Select, pattern: Pattern, reads: Mapping[str, RowType], part: int | None = None
) -> Renewing | str | None:
    """The core of such a pattern, whose matches are shown as whole rows, or the first reason against it; None where the pattern
    is another one. `part`: which field of all events is the number of their partition.
    """
    parts = _parts(pattern)
    if parts is None:
        return None
    tagged = {each.tag: each for stage in parts for each in stage.filters if each.tag is not None}
    lists = {each.tag for stage in parts for each in stage.many}
    single = [tag for tag in sorted(tagged) if tag not in lists]
    if plan.projection.whole and single != list(range(pattern.tags)):
        return "whole rows of a pattern in which a tag is several events or none"
    if not plan.projection.whole and _shows_events(plan):
        return "an event that may be none, beside other columns"
    shown = {each for each in map(element, descendants(plan)) if each is not None}
    events: list[Event] = [(tag, None) for tag in single]
    events += sorted((tag, nth) for tag, nth in shown if tag in lists and nth is not None)
    slots = tuple(Slot(tag, nth, tagged[tag].stream, reads[tagged[tag].stream]) for tag, nth in events)
    stages, known = list[Stage](), list[int]()
    for each in parts:
        stage = _stage(each, slots, known, pattern.tags, reads)
        if isinstance(stage, str):
            return stage
        stages.append(stage)
        known += [one.tag for one in each.filters if one.tag is not None and one.tag not in lists]
    return Renewing(tuple(stages), slots, reads, part=part)


def _shows_events(plan: Select) -> bool:
    """Whether it shows whole events, and not only fields of them."""
    found = list(descendants(plan))
    asked = {id(each.args[0]) for each in found if isinstance(each, Call) and each.op.field is not None}
    return any(isinstance(each, Field) and each.type.row is not None and id(each) not in asked for each in found)


def element(expr: object) -> Event | None:
    """The event that an expression of a statement over a pattern is: that of a tag, or one of the several that it has."""
    match expr:
        case Field(input=0, index=tag, type=kind) if kind.row is not None:
            return tag, None
        case Call(op=op.ELEMENT, args=(Field(input=0, index=tag), Const(value=int(nth)))) if nth >= 0:
            return tag, nth
        case _:
            return None


@dataclass(frozen=True)
class _Part:
    """What a stage is made of: the filters of a node, those of `never` among them; of the events of `many` it takes several, from
    `low` to `high`.
    """

    kind: Literal["all", "any", "times", "until"]
    filters: tuple[FilterNode, ...]
    guards: tuple[Guard, ...]
    node: int
    never: tuple[FilterNode, ...] = ()
    many: tuple[FilterNode, ...] = ()
    low: int = 1
    high: int = 1


def _parts(pattern: Pattern) -> list[_Part] | None:
    """The stages of a pattern that is covered."""
    match pattern:
        case Pattern(root=EveryNode(child=child, keys=None, retry=True), span=None, textual=False):
            numbers = {id(node): number for number, node in enumerate(nodes(pattern.root))}
        case _:
            return None
    found = list(_below(child, 0, (), numbers))
    parts = [each for each in found if each is not None]
    if len(parts) < len(found) or any(one.consume for each in parts for one in each.filters):
        return None
    # A try is at most as many states as the pattern has nodes, so none is refused.
    return parts if all(len(each.filters) <= _MOST for each in parts) and len(numbers) < pattern.limit else None


def _below(node: Node, place: int, guards: tuple[Guard, ...], numbers: Mapping[int, int]) -> Iterator[_Part | None]:
    """The stages that a node is, the first of them so manieth; None of what is not covered."""
    number = numbers[id(node)]
    match node:
        case FollowedNode(children=children, limits=()):
            for child in children:
                for each in _below(child, place, guards, numbers):
                    yield each
                    place += 1
        case WithinNode(child=inner, span=int(span), most=None) if place:
            yield from _below(inner, place, (*guards, Guard(place - 1, span, number)), numbers)
        case FilterNode():
            yield _Part("all", (node,), guards, number)
        case AndNode(children=children):
            yield _together(children, guards, number)
        case OrNode(children=children) if all(isinstance(each, FilterNode) for each in children):
            yield _Part("any", tuple(each for each in children if isinstance(each, FilterNode)), guards, number)
        case RepeatNode(child=FilterNode() as one, until=None, low=int(low), high=high) if 0 < low == high:
            yield _Part("times", (one,), guards, number, many=(one,), low=low, high=low)
        case RepeatNode(child=FilterNode() as one, until=FilterNode() as until, low=low, high=high) if high != 0:
            many, most = (one,), -1 if high is None else high
            yield _Part("until", (until, one), guards, number, many=many, low=low or 0, high=most)
        case _:
            yield None


def _together(children: Sequence[Node], guards: tuple[Guard, ...], number: int) -> _Part | None:
    """All of some filters, and none of others."""
    inner = [each.child if isinstance(each, NotNode) and not each.lingers else each for each in children]
    filters = tuple(each for each in inner if isinstance(each, FilterNode))
    never = tuple(each for each in filters if not any(each is child for child in children))
    if len(filters) < len(children) or len(never) == len(children):
        return None
    return _Part("all", filters, guards, number, never)


def _stage(
    part: _Part, slots: Sequence[Slot], known: Sequence[int], tags: int, reads: Mapping[str, RowType]
) -> Stage | str:
    """A stage before which events of the tags `known` have come, or the first reason against it."""
    takings = list[Taking]()
    # The row executor asks those last that take any event, and first what ends a repeat.
    for child, node in sorted(enumerate(part.filters), key=lambda each: part.kind in ("all", "any") and _open(each[1])):
        found = asked(node, known, reads[node.stream], tags)
        if isinstance(found, str):
            return found
        if any(one.type.kind is Kind.DOUBLE for one, _ in found.keys):  # what is no number equals itself there
            return "a key of type double, where one match is looked for at a time"
        equal = tuple(Compared(op.EQUAL.name, one, other) for one, other in found.keys)
        sides = (*equal, *found.compared)
        if any(len(inputs(each.one)) > 1 for each in sides):
            return "a condition of an event on several earlier ones at once"
        reason = unfiltered(found.filter, reads[node.stream])
        if reason is not None:
            return reason
        fails = any(node is each for each in part.never)
        taken = ((slot.nth, n) for n, slot in enumerate(slots) if slot.tag == node.tag and not fails)
        takings.append(Taking(found.filter, child, tuple(_placed(each, slots) for each in sides), tuple(taken), fails))
    return Stage(part.kind, tuple(takings), part.guards, part.node, part.low, part.high)


def _open(node: FilterNode) -> bool:
    """Whether any event of its stream passes."""
    return not node.equals and node.test is None


def _placed(compared: Compared, slots: Sequence[Slot]) -> tuple[int, Compared]:
    """A comparison with the slot whose event it is about."""
    (tag,) = inputs(compared.one)
    slot = next(number for number, each in enumerate(slots) if each.tag == tag)
    return slot, replace(compared, one=of_one_event(compared.one))
