"""Which events of a batch may concern anybody, by what all filters over their stream say of the event alone.

The others need not be looked at one by one: between those that are, only the clock moves.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import reduce

import pyarrow as pa

from rollup.core.descriptions import descendants
from rollup.core.untyped import pc
from rollup.engine import operators as op
from rollup.engine.columns.cores.covering import against
from rollup.engine.columns.evaluate import passing, takes
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Call, Expr, Field, Variable, constant, walk
from rollup.engine.rows.component import Component
from rollup.engine.rows.patterns.algebra import FilterNode, Pattern, nodes
from rollup.engine.rows.plans import Filter
from rollup.engine.types import BOOL, RowType

_WORTH = 32
"""A condition over columns costs about as much as so many events that concern nobody."""

Condition = Expr | None
"""What an event fulfils that passes a filter; None: nothing is known of it."""


class Sieve:
    """The filters of a component's statements and contexts, as conditions over columns."""

    def __init__(self, component: Component) -> None:
        self._component = component
        self._changed = 0
        self._known: dict[tuple[str, frozenset[int]], Sequence[Condition]] = {}

    def passing(
        self, kinds: RowType, columns: Sequence[pa.Array], resting: frozenset[int] = frozenset()
    ) -> pa.Array | None:
        """Which events of the stream `kinds` may concern somebody but the instances `resting` (by `id`), as a mask; None:
        all, as far as is known."""
        if not columns:
            return None
        stream, rows = kinds.name, len(columns[0])
        if self._changed != self._component.changed:
            self._changed, self._known = self._component.changed, {}
        conditions = self._known.get((stream, resting))
        if conditions is None:
            conditions = self._known[stream, resting] = list(dict.fromkeys(self._conditions(kinds, resting)))
        if None in conditions or len(conditions) * _WORTH > rows or self._component.runner.changes.get(stream):
            return None
        nobody = pa.repeat(False, rows)
        return reduce(pc.or_, (passing(each, columns, rows) for each in conditions), nobody)

    def _conditions(self, kinds: RowType, resting: frozenset[int]) -> Iterator[Condition]:
        component, instances = self._component, self._component.root.instances
        awake = [each for name, each in component.statements.items() if id(instances.get(name)) not in resting]
        contexts = [each.context for each in component.contexts.values() if each.statements]
        for part in descendants([*awake, *contexts]):
            if isinstance(part, Filter) and part.stream == kinds.name:
                yield _condition(part, 0, kinds)
            elif isinstance(part, Pattern):
                for node in nodes(part.root):
                    if isinstance(node, FilterNode) and node.stream == kinds.name:
                        yield _condition(node, part.tags, kinds)


def _condition(filter: Filter | FilterNode, own: int, kinds: RowType) -> Condition:
    """What a filter says of its own event, the input `own`, and of nothing else, as far as columns compute it at once."""
    types = list(kinds.fields.values())
    equals = [Call(op.EQUAL, (Field(own, place, types[place]), value), BOOL) for place, value in filter.equals]
    parts = [*equals, *conjuncts(filter.test)]
    return conjunction([each for each in parts if against(each) is None and _alone(each, own)])


def _alone(part: Expr, own: int) -> bool:
    """Whether a condition is about the event alone, and none of its operators is called row by row."""
    each = list(walk(part))
    if any(isinstance(inner, Variable) for inner in each):
        return False
    inside = all(inner.input == own for inner in each if isinstance(inner, Field))
    return inside and all(takes(call.op) for call in each if isinstance(call, Call) and not constant(call))
