"""Which statements of a component fall apart by keys: those of a keyed context, those whose groups have all to
themselves, and those that look at one event alone."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from rollup.core.descriptions import descendants
from rollup.engine.dividing import Need
from rollup.engine.expressions import Expr, Field
from rollup.engine.rows.component import Component, Deployed
from rollup.engine.rows.contexts.levels import Context, Keyed
from rollup.engine.rows.patterns.algebra import FilterNode
from rollup.engine.rows.plans import ContextValue, Filter, Finish, Select, StoreInput, StreamInput
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.types import RowType

TypeOf = Callable[[str], RowType | None]
_SHARED = "a named window or a table is one for all keys"


def needs_of(component: Component, type_of: TypeOf) -> Iterator[Need | str]:
    """What each statement needs of a key, or why it has none."""
    return (_need(component, deployed, type_of) for deployed in component.statements.values())


def _need(component: Component, deployed: Deployed, type_of: TypeOf) -> Need | str:
    plan = deployed.plan
    if not isinstance(plan, Select):
        return _SHARED if plan is None else f"the statement {type(plan).__name__} may change what all keys see"
    if any(isinstance(each, StoreInput) for each in descendants((plan.inputs, plan.own_inputs))):
        return _SHARED
    if deployed.context is not None:
        return _in_context(plan, component.contexts[deployed.context].context, type_of)
    return _alone(plan) or _grouped(plan, type_of)


def _in_context(plan: Select, context: Context, type_of: TypeOf) -> Need | str:
    (_, first), *_ = context.levels
    if not isinstance(first, Keyed):
        return f"the context {context.name} is not keyed"
    if any(isinstance(each, ContextValue) and each.name == "id" for each in descendants(plan)):
        return "context.id numbers the partitions of all keys"
    keys = {each.filter.stream: _names(type_of(each.filter.stream), each.places) for each in first.streams}
    beside = {*_read(plan), *_read(context)} - keys.keys()
    if beside:
        return f"{min(beside)} goes to the partitions of all keys"
    return keys


def _alone(plan: Select) -> Need | None:
    """The need of a filter, which has no memory."""
    lone = plan.inputs[0] if len(plan.inputs) == 1 and not plan.own_inputs else None
    if not isinstance(lone, StreamInput) or lone.window is not None or lone.prior:
        return None
    remembers = plan.levels or plan.grouping or plan.rate != Rate() or plan.finish != Finish() or plan.lookups
    return None if remembers or plan.into is not None else {lone.filter.stream: None}


def _grouped(plan: Select, type_of: TypeOf) -> Need | str:
    """The need of groups that share nothing: no window over all of them, no order among them."""
    lone = plan.inputs[0] if len(plan.inputs) == 1 and not plan.own_inputs else None
    if not isinstance(lone, StreamInput) or lone.prior or plan.lookups or plan.into is not None:
        return "what one event meets may be of any key"
    if plan.finish != Finish():
        return "order by, limit and distinct are over all keys"
    if plan.rate != Rate():
        return "its output goes by the events of all keys: the first one starts its clock"
    levels = plan.levels if plan.grouping is None else (*plan.grouping.levels, *plan.grouping.own)
    keys = [level.keys for level in levels]
    if lone.window is not None:
        if not isinstance(lone.window, Grouped | Unique):
            return "one window is over all groups"
        keys.append(lone.window.key)
    fields = [_fields(each) for each in keys]
    shared = [place for place in fields[0] if all(place in each for each in fields)] if fields else []
    if not shared:
        return "its groups have no attribute of the stream in common"
    return {lone.filter.stream: _names(type_of(lone.filter.stream), shared)}


def _fields(keys: tuple[Expr, ...]) -> list[int]:
    return [key.index for key in keys if isinstance(key, Field) and key.input == 0]


def _read(part: object) -> set[str]:
    return {each.stream for each in descendants(part) if isinstance(each, Filter | FilterNode)}


def _names(kinds: RowType | None, places: Any) -> tuple[str, ...]:
    names = [] if kinds is None else list(kinds.fields)
    return tuple(names[place] for place in places)
