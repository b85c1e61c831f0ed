"""Which selects put off what nobody sees of an event, and what runs them."""

from __future__ import annotations

from collections.abc import Sequence

from rollup.engine import operators as op
from rollup.engine.aggregates.known import COUNT, MAXEVER, MIN, MINEVER, SUM, counting
from rollup.engine.expressions import All, Any_, Ask, Call, Const, Expr, Field, Now, RowOf, Slot, Variable, walk
from rollup.engine.folding import AggregateCall
from rollup.engine.rows.lazy import Awaiting, Dating, Gathering, Lapsing, Leaving
from rollup.engine.rows.plans import ContextValue, Finish, Previous, Select, StreamInput
from rollup.engine.rows.select import SelectInstance
from rollup.engine.rows.selects.grouping import Level
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Intersection, Union
from rollup.engine.rows.windows.counted import FirstLength, KeepAll, Length, LengthBatch
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.timed import Time, TimeAccumulating, TimeBatch, TimeLengthBatch
from rollup.engine.types import Kind

_ENTERING = {each.enter for each in (COUNT, SUM, MIN, MINEVER, MAXEVER)}
"""How the values of most aggregates enter, whatever a language makes of them."""
_NUMBERS = (Kind.INT, Kind.LONG, Kind.DOUBLE)
_KEYS = (*_NUMBERS, Kind.STRING, Kind.BOOL)
_SHOWN = (Field, Slot, Const, RowOf, Ask)
"""What is there to be shown, and nothing is worked out."""
_COMPARED = (op.EQUAL, op.UNEQUAL, op.LESS, op.LESS_EQUAL, op.GREATER, op.GREATER_EQUAL, op.BETWEEN)


def made_by(plan: Select) -> type[SelectInstance]:
    """What runs a select."""
    if _lapses(plan):
        return Lapsing
    if _gathers(plan):
        if plan.rate.when is not None:
            return Awaiting
        return Dating if any(_of_time(call) for level in _levels(plan) for call in level.calls) else Gathering
    return Leaving if _leaves_unheard(plan) else SelectInstance


def _gathers(plan: Select) -> bool:
    """Whether events only enter a total, or groups, until an output is due, and nothing that they bring can be refused."""
    match plan:
        case Select(inputs=(StreamInput(window=None, unnest=(), prior=0),), join=None, own_inputs=(), into=None):
            brought = plan.rate.by_clock or _by_variables(plan)
            shown = plan.finish == Finish() and brought and _certain(plan.where)
            calls = [call for level in _levels(plan) for call in level.calls]
            return shown and (_of_total(plan) or _of_groups(plan)) and all(map(_enters, calls))
        case _:
            return False


def _lapses(plan: Select) -> bool:
    """Whether all that events do before an output of the clock, over a window by time, is the same when it is done then: it reads
    nothing but what they hold, and none of them can be refused.
    """
    match plan:
        case Select(inputs=(StreamInput(window=window, unnest=(), prior=0),), join=None, own_inputs=(), into=None):
            if window is None or not _by_time(window):
                return False
        case _:
            return False
    if not plan.rate.by_clock or plan.rate.mode == "first" or not _certain(plan.where):
        return False
    if not all(isinstance(each, ContextValue) for each in plan.lookups):
        return False
    grouping, shown, levels = plan.grouping, plan.projection, _levels(plan)
    keys = [key for level in levels for key in level.keys] if grouping is None else grouping.dimensions
    calls = [call for level in (*levels, *(() if grouping is None else grouping.own)) for call in level.calls]
    return (
        all(map(_key, keys))
        and not any(map(_of_time, calls))
        and all(map(_enters, calls))
        and all(isinstance(each, _SHOWN) for each in (*shown.columns, *shown.order))
        and _certain(shown.having)
    )


def _by_time(window: WindowSpec) -> bool:
    """Whether a window lets rows out by the clock, and takes any event."""
    match window:
        case Time() | TimeAccumulating() | TimeBatch() | TimeLengthBatch():
            return True
        case Grouped(key=key, inner=inner):
            return all(map(_key, key)) and _by_time(inner)
        case Intersection(parts=parts) | Union(parts=parts):
            others = [each for each in parts if not _by_time(each)]
            return len(others) < len(parts) and all(map(_by_rows, others))
        case _:
            return False


def _by_rows(window: WindowSpec) -> bool:
    """Whether a window goes by the rows that come, and takes any."""
    match window:
        case Length() | KeepAll() | LengthBatch() | FirstLength():
            return True
        case Unique(key=key):
            return all(map(_key, key))
        case Grouped(key=key, inner=inner):
            return all(map(_key, key)) and _by_rows(inner)
        case _:
            return False


def _key(expr: Expr) -> bool:
    """Whether rows are told apart by something that they hold, be it what it may."""
    return isinstance(expr, Field) and expr.type.kind in _KEYS


def _by_variables(plan: Select) -> bool:
    """Whether variables alone say when there is an output of what is then."""
    rate = plan.rate
    if rate.when is None or plan.tells_what_leaves or not any(isinstance(each, Variable) for each in walk(rate.when)):
        return False
    others = (rate.span, rate.events, rate.schedule, rate.after_span, rate.after_events)
    said = all(isinstance(each, (Variable, Const, All, Any_, Call)) for each in walk(rate.when))
    times = any(_of_time(call) for level in _levels(plan) for call in level.calls)
    return said and not times and all(each is None for each in others)


def _levels(plan: Select) -> Sequence[Level]:
    return plan.levels if plan.grouping is None else plan.grouping.levels


def _of_total(plan: Select) -> bool:
    """Whether it is one row in all that an output shows as it is then."""
    return plan.total and plan.rate.mode in ("snapshot", "last") and not any(level.keys for level in plan.levels)


def _of_groups(plan: Select) -> bool:
    """Whether an output shows all groups, which fields tell apart, as they are then."""
    grouping = plan.grouping
    modes = ("snapshot",) if plan.rate.when is None else ("snapshot", "last", "all")
    if grouping is None or not grouping.whole or grouping.own or plan.rate.mode not in modes:
        return False
    return all(map(_key, grouping.dimensions))


def _leaves_unheard(plan: Select) -> bool:
    """Whether what the windows, all by time, let out moves nothing but the windows, which are looked at when events come."""
    inputs = [each for each in plan.inputs if isinstance(each, StreamInput) and not each.unnest and not each.prior]
    timed = len(inputs) == len(plan.inputs) and all(type(each.window) is Time for each in inputs)
    if plan.join is None:
        looked = plan.rate == Rate() and all(isinstance(each, ContextValue | Previous) for each in plan.lookups)
    else:
        looked = not plan.lookups
    return timed and looked and plan.comes_alone and not plan.own_inputs


def _enters(call: AggregateCall) -> bool:
    """Whether any value that a field has enters an aggregate."""
    known = call.aggregate.enter in _ENTERING and not call.distinct
    if _of_time(call):
        return not call.distinct and _certain(call.where)
    return known and _certain(call.where) and all(_value(each) and each.type.kind in _NUMBERS for each in call.args)


def _of_time(call: AggregateCall) -> bool:
    """Whether it is the rate of what comes, by the clock."""
    return counting(call.aggregate) is not None and call.args == (Now(),)


def _certain(condition: Expr | None) -> bool:
    """Whether a condition compares numbers of the event, or texts, and so has an answer that time does not change."""
    return condition is None or all(
        _value(each)
        or isinstance(each, (All, Any_))
        or (isinstance(each, Call) and any(each.op is known for known in _COMPARED) and _alike(each.args))
        for each in walk(condition)
    )


def _value(expr: Expr) -> bool:
    return isinstance(expr, (Field, Const, Slot))


def _alike(values: Sequence[Expr]) -> bool:
    kinds = [each.type.kind for each in values]
    return all(kind in _NUMBERS for kind in kinds) or all(kind is Kind.STRING for kind in kinds)
