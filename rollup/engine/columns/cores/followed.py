"""Which patterns run over columns, and as what: `every` event of a filter, or of one of several, and what follows it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate

from rollup.engine import operators as op
from rollup.engine.columns.cores.alternatives import Alternatives
from rollup.engine.columns.cores.covering import against, equated, filtered, first, unshown
from rollup.engine.columns.cores.links import OPERATORS, Compared, Guard, Link
from rollup.engine.columns.cores.matched import Matched
from rollup.engine.columns.cores.rewriting import of_fields, of_one_event
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Call, Expr, Field, inside, walk
from rollup.engine.rows.patterns.algebra import (
    EveryNode,
    FilterNode,
    FollowedNode,
    Node,
    OrNode,
    Pattern,
    WithinNode,
    nodes,
)
from rollup.engine.rows.plans import Filter, PatternInput, Select
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.types import LONG, RowType

_TURNED = {
    **{each: each for each in (op.EQUAL.name, op.UNEQUAL.name)},
    op.LESS.name: op.GREATER.name,
    op.LESS_EQUAL.name: op.GREATER_EQUAL.name,
    op.GREATER.name: op.LESS.name,
    op.GREATER_EQUAL.name: op.LESS_EQUAL.name,
}
"""The same comparison with its sides exchanged."""


def matched(plan: Select, reads: Mapping[str, RowType]) -> Matched | Alternatives | str:
    """The core of a pattern over streams with those fields, or the first reason against it."""
    input = plan.inputs[0]
    if not isinstance(input, PatternInput) or input.window is not None or input.prior:
        return "a pattern with a window"
    if plan.levels or plan.grouping or plan.lookups or plan.rate.limited:
        return "aggregates, look-ups or an output rate over a pattern"
    pattern = _alternatives(input.pattern, reads) or pattern_of(input.pattern, reads)
    if isinstance(pattern, str):
        return pattern
    found = of_events(plan, pattern.types)
    columns = None if plan.projection.whole else found.columns
    if isinstance(pattern, Alternatives) and len(pattern.types) > 1 and any(each.type.row for each in columns or ()):
        return "an event that may be none, beside other columns"
    reason = first(map(unshown, columns or ())) or against(found.having)
    return reason or replace(pattern, columns=columns, test=found.having)


def _alternatives(pattern: Pattern, reads: Mapping[str, RowType]) -> Alternatives | str | None:
    """The core of a pattern that an event alone makes true, shown as whole rows, or the first reason against it; None where
    the pattern is another one.
    """
    match pattern:
        case Pattern(root=EveryNode(child=child, keys=None), discard=False, suppress=False, span=None):
            below = list(nodes(child))
        case _:
            return None
    found = [each for each in below if isinstance(each, FilterNode)]
    if len(found) < sum(not isinstance(each, OrNode) for each in below):
        return None
    tags = [each.tag for each in found if each.tag is not None]
    if not tags or tags != list(range(pattern.tags)) or any(each.consume for each in found):
        return None
    if not pattern.textual:  # the row executor asks those first that do not take any event
        found.sort(key=lambda each: not each.equals and each.test is None)
    filters = tuple((_alone(each), each.tag) for each in found)
    if any(_asks_before((each.test, *(value for _, value in each.equals)), pattern.tags) for each in found):
        return "a condition of an event on another of which only one comes"
    types = {each.tag: reads[each.stream] for each in found}
    reason = first(_unfiltered(filter, reads[filter.stream]) for filter, _ in filters)
    return reason or Alternatives(filters, tuple(types[tag] for tag in tags))


def _alone(node: FilterNode) -> Filter:
    """A filter that asks nothing of other events."""
    return Filter(node.stream, node.equals, None if node.test is None else of_one_event(node.test))


def pattern_of(pattern: Pattern, reads: Mapping[str, RowType], part: int | None = None) -> Matched | str:
    """The core of a pattern whose matches are shown as whole rows, or the first reason against it; `part`: which field of all
    events is the number of their partition.
    """
    found = _parts(pattern)
    if found is None:
        return "a pattern other than every a -> b -> …, within a time or not"
    begin, followers = found
    if _asks_before((begin.test, *(value for _, value in begin.equals)), pattern.tags):
        return "a condition of the first event on another"
    beginning = _alone(begin)
    types, links = [reads[begin.stream]], list[Link]()
    reason = _unfiltered(beginning, types[0])
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


def _unfiltered(filter: Filter, type: RowType) -> str | None:
    """The first reason against a filter of events of that type."""
    kinds = list(type.fields.values())
    return first(against(Field(0, place, kinds[place])) for place, _ in filter.equals) or filtered(filter)


def _asks_before(parts: Iterable[Expr | None], tags: int) -> bool:
    """Whether something that is asked of an event, behind the `tags` rows of a match, is about those before it."""
    return any(each < tags for part in parts if part is not None for each in _inputs(part))


def _inputs(expr: Expr) -> set[int]:
    return {each.input for each in walk(expr) if isinstance(each, Field)}


def _link(follower: _Follower, before: Sequence[RowType], type: RowType, tags: int, part: int | None) -> Link | str:
    """What an event of that type must be to follow events of the types `before` that have names, or the first reason against
    it.
    """
    asked = _asked(follower.node, before, type, tags)
    if isinstance(asked, str):
        return asked
    filter, keys, compared = asked
    if part is not None:
        number = Field(0, part, LONG)
        keys = ((number, number), *keys)
    if not keys and compared:
        return "a condition of an event on an earlier one without a key"
    binds = None if follower.node.tag is None else type
    return _unfiltered(filter, type) or Link(
        filter, keys, compared, follower.guards, tuple(before), follower.events, binds, follower.states, follower.number
    )


Asked = tuple[Filter, tuple[tuple[Expr, Expr], ...], tuple[Compared, ...]]
"""What an event must fulfil by itself, what must be equal in those before, and what else is compared with them."""


def _asked(node: FilterNode, before: Sequence[RowType], type: RowType, tags: int) -> Asked | str:
    """What is asked of an event, or the first reason against."""
    own, compared, keys = list[Expr](), list[Compared](), list[tuple[Expr, Expr]]()
    for part in conjuncts(node.test):
        if not _asks_before((part,), tags):
            own.append(of_one_event(part))
        elif (found := _compared(part, before, tags)) is not None:
            compared.append(found)
        else:
            return "a condition of an event on an earlier one that is no comparison of one with the other"
    alone = tuple(each for each in node.equals if not _asks_before((each[1],), tags))
    for place, value in node.equals:
        if (place, value) not in alone:
            pair = (_over(value, before), Field(0, place, list(type.fields.values())[place]))
            if not equated(*pair):
                return f"a key of type {pair[1].type}"
            keys.append(pair)
    return Filter(node.stream, alone, conjunction(own)), tuple(keys), tuple(compared)


def _compared(part: Expr, before: Sequence[RowType], tags: int) -> Compared | None:
    """A comparison with an expression over the events before on one side and one over the event on the other."""
    if not isinstance(part, Call) or part.op.name not in OPERATORS or against(of_one_event(part)) is not None:
        return None
    one, other = part.args
    known = set(range(len(before)))
    match _inputs(one), _inputs(other):
        case earlier, later if earlier and earlier <= known and later <= {tags}:
            return Compared(part.op.name, _over(one, before), of_one_event(other))
        case later, earlier if earlier and earlier <= known and later <= {tags}:
            return Compared(_TURNED[part.op.name], _over(other, before), of_one_event(one))
        case _:
            return None


def places_of(types: Sequence[RowType]) -> list[int]:
    """Where the fields of each event begin among those of all."""
    return list(accumulate((len(each.fields) for each in types), initial=0))


def _over(expr: Expr, before: Sequence[RowType]) -> Expr:
    """An expression over events before another, over the fields of all of them."""
    begins = places_of(before)

    def placed(expr: Expr) -> Expr:
        return Field(0, begins[expr.input] + expr.index, expr.type) if isinstance(expr, Field) else inside(expr, placed)

    return placed(expr)


def of_events(plan: Select, types: Sequence[RowType]) -> Projection:
    """What a pattern shows over the fields of all its events, of these types; `where` and `having` are one condition."""
    begins, projection = places_of(types), plan.projection
    columns = tuple(flat(each, begins) for each in projection.columns)
    conditions = [flat(each, begins) for each in (plan.where, projection.having) if each is not None]
    return Projection(columns, conjunction(conditions))


def flat(expr: Expr, begins: Sequence[int]) -> Expr:
    """A column of the result over the fields of all events, where those of each begin at a place."""
    if isinstance(expr, Call) and expr.op.name.startswith("field ") and isinstance(row := expr.args[0], Field):
        return Field(0, begins[row.index] + int(expr.op.name.removeprefix("field ")), expr.type)
    if isinstance(expr, Field) and expr.type.row is not None:
        return of_fields(expr.type, begins[expr.index])
    return inside(expr, lambda inner: flat(inner, begins))
