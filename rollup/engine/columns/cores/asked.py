"""What a filter of a pattern asks of its event: of the event alone, and beside events that have come before."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from rollup.engine import operators as op
from rollup.engine.columns.cores.covering import against, equated, filtered, first
from rollup.engine.columns.cores.links import OPERATORS, Compared
from rollup.engine.columns.cores.rewriting import of_one_event
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Call, Expr, Field, walk
from rollup.engine.rows.patterns.algebra import FilterNode
from rollup.engine.rows.plans import Filter
from rollup.engine.types import RowType

_TURNED = {
    **{each: each for each in (op.EQUAL.name, op.UNEQUAL.name)},
    op.LESS.name: op.GREATER.name,
    op.LESS_EQUAL.name: op.GREATER_EQUAL.name,
    op.GREATER.name: op.LESS.name,
    op.GREATER_EQUAL.name: op.LESS_EQUAL.name,
}
"""The same comparison with its sides exchanged."""


class Asked(NamedTuple):
    """What an event must fulfil by itself, what must be equal, and what else is compared; of the two sides of these the first is
    over events before, each an input of its own, the other over the event.
    """

    filter: Filter
    keys: tuple[tuple[Expr, Expr], ...]
    compared: tuple[Compared, ...]


def alone(node: FilterNode) -> Filter:
    """A filter that asks nothing of other events."""
    return Filter(node.stream, node.equals, None if node.test is None else of_one_event(node.test))


def unfiltered(filter: Filter, type: RowType) -> str | None:
    """The first reason against a filter of events of that type."""
    kinds = list(type.fields.values())
    return first(against(Field(0, place, kinds[place])) for place, _ in filter.equals) or filtered(filter)


def asks_before(node: FilterNode, tags: int) -> bool:
    """Whether something that is asked of an event, behind the `tags` rows of a match, is about others."""
    return _about_others((node.test, *(value for _, value in node.equals)), tags)


def _about_others(parts: Iterable[Expr | None], tags: int) -> bool:
    return any(each < tags for part in parts if part is not None for each in inputs(part))


def inputs(expr: Expr) -> set[int]:
    """The events whose fields an expression is over."""
    return {each.input for each in walk(expr) if isinstance(each, Field)}


def asked(node: FilterNode, known: Collection[int], type: RowType, tags: int) -> Asked | str:
    """What is asked of an event of that type where events of the tags `known` have come, or the first reason against."""
    own, compared, keys = list[Expr](), list[Compared](), list[tuple[Expr, Expr]]()
    for part in conjuncts(node.test):
        if not _about_others((part,), tags):
            own.append(of_one_event(part))
        elif (found := _compared(part, known, tags)) is not None:
            compared.append(found)
        else:
            return "a condition of an event on an earlier one that is no comparison of one with the other"
    equals = tuple(each for each in node.equals if not _about_others((each[1],), tags))
    for place, value in node.equals:
        if (place, value) not in equals:
            pair = (value, Field(0, place, list(type.fields.values())[place]))
            if not inputs(value) <= set(known):
                return "a condition of an event on another that need not have come"
            if not equated(*pair):
                return f"a key of type {pair[1].type}"
            keys.append(pair)
    return Asked(Filter(node.stream, equals, conjunction(own)), tuple(keys), tuple(compared))


def _compared(part: Expr, known: Collection[int], tags: int) -> Compared | None:
    """A comparison with an expression over the events before on one side and one over the event on the other."""
    if not isinstance(part, Call) or part.op.name not in OPERATORS or against(of_one_event(part)) is not None:
        return None
    one, other = part.args
    match inputs(one), inputs(other):
        case earlier, later if earlier and earlier <= set(known) and later <= {tags}:
            return Compared(part.op.name, one, of_one_event(other))
        case later, earlier if earlier and earlier <= set(known) and later <= {tags}:
            return Compared(_TURNED[part.op.name], other, of_one_event(one))
        case _:
            return None
