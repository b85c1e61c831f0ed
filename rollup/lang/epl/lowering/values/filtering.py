"""Conditions by which the index finds statements: what a filter compares has to have the type of what the event has.

The index looks up a comparison of a value of the event alone with a value that is known before the event comes. So no
number may lose digits on the way to the event's type. `i = 1.5` of an int would match nothing or everything, and is
refused, as in Esper. Comparisons that are not looked up (two properties, variables, `between`, under `not`) convert as elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from dataclasses import replace

from rollup.engine.expressions import Ask, Const, Expr, Field, Local, Now, RowOf, Slot, Variable, walk
from rollup.engine.rows.plans import ContextValue, Earlier, Previous
from rollup.engine.types import DataType, Kind
from rollup.lang.epl.catalog import problem
from rollup.lang.epl.lowering.values.expressions import condition, lower
from rollup.lang.epl.render import render
from rollup.lang.epl.scope import Scope
from rollup.lang.epl.scope import walk as parts
from rollup.lang.epl.tree import expressions as ex


def filter_condition(node: ex.Expression, scope: Scope, own: int = 0) -> Expr:
    """A condition of a filter; `own` is the place of its event among the sources."""
    found = condition(node, scope)
    asked = [scope.registry.lookups[each.index] for each in walk(found) if isinstance(each, Ask)]
    if any(isinstance(each, (Earlier, Previous)) for each in asked):
        raise problem(f"`{render(node)}`: a filter sees one event and none before it", node, "where, behind the window")
    check_filter(node, scope, own)
    return found


def check_filter(node: ex.Expression, scope: Scope, own: int = 0) -> None:
    """Raise PlanError where a filter looks a number up among numbers of a narrower type."""
    scope = replace(scope, registry=deepcopy(scope.registry))  # what is lowered here again is not asked for twice
    for event, value, kind in _Filtering(scope, own).looked_up(node):
        wanted = lower(event, scope).type
        if wanted.numeric and kind.numeric and wanted.widest(kind) != wanted:
            named = "BigDecimal" if kind.kind is Kind.DECIMAL else str(kind)
            raise problem(
                f"a filter finds `{render(event)}` by values of its type, {wanted}; `{render(value)}` is {kind}",
                node,
                f"cast({render(event)}, {named})",
            )


class _Filtering:
    """What is looked up in the conditions of one filter."""

    def __init__(self, scope: Scope, own: int) -> None:
        self.scope, self.own = scope, own

    def looked_up(self, node: ex.Expression) -> Iterator[tuple[ex.Expression, ex.Expression, DataType]]:
        """What the event has, what it is compared with, and the type of that."""
        match node:
            case ex.Logical():
                yield from self.looked_up(node.left)
                yield from self.looked_up(node.right)
            case ex.Comparison():
                for event, value in ((node.left, node.right), (node.right, node.left)):
                    if self._of_event(event) and (kind := self._known(value)) is not None:
                        yield event, value, kind
            case ex.In() if self._of_event(node.value):
                yield from self._listed(node)
            case _:
                pass

    def _listed(self, node: ex.In) -> Iterator[tuple[ex.Expression, ex.Expression, DataType]]:
        for item in node.items:
            kind = self._known(item)
            if kind is not None:
                yield node.value, item, kind.element or kind
            elif any(isinstance(each, (Field, RowOf)) for each in walk(lower(item, self.scope))):
                return  # a list with something of the event is not looked up

    def _of_event(self, node: ex.Expression) -> bool:
        """Whether a value is made of the event's own properties and constants, without methods."""
        inside = list(walk(lower(node, self.scope)))
        fields = [each for each in inside if isinstance(each, (Field, RowOf))]
        if not fields or any(each.input != self.own for each in fields) or self._calls(node, methods=True):
            return False
        return not any(isinstance(each, (Ask, Slot, Local, Now)) or self._varies(each) for each in inside)

    def _known(self, node: ex.Expression) -> DataType | None:
        """The type of a value that is known before the event comes; None for one that is not."""
        found = lower(node, self.scope)
        if self._calls(node, methods=False) or (isinstance(found, Const) and found.value is None):
            return None
        for each in walk(found):
            if isinstance(each, (Field, RowOf)) and each.input == self.own:
                return None
            if isinstance(each, (Slot, Local, Now)) or self._varies(each):
                return None
            if isinstance(each, Ask) and not isinstance(self.scope.registry.lookups[each.index], ContextValue):
                return None
        return found.type

    def _varies(self, value: Expr) -> bool:
        return isinstance(value, Variable) and not self.scope.catalog.variables[value.name].constant

    def _calls(self, node: ex.Expression, methods: bool) -> bool:
        """Whether there is a call of a declared expression with arguments in it, or of a method."""
        calls = [each for each in parts(node) if isinstance(each, ex.Call)]
        declared = any(each.of is None and each.arguments and self.scope.declaration(each.name) for each in calls)
        return declared or (methods and any(each.of is not None for each in calls))
