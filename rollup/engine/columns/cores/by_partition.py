"""The statement that one in a context is without it, over a stream that is wider by the number of the partition: its windows and
its groups are by that, and nothing is projected.
"""

from __future__ import annotations

from dataclasses import replace

from rollup.engine.columns.cores.covering import first
from rollup.engine.columns.cores.declared import uncountable
from rollup.engine.columns.cores.prior_access import PriorAccess, prior_access
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.cores.rewriting import aggregates, rewritten
from rollup.engine.columns.cores.selected import Selected, over_stream
from rollup.engine.expressions import Ask, Expr, Field, Slot, inside, walk
from rollup.engine.rows.plans import ContextValue, Earlier, Previous, Select, StreamInput
from rollup.engine.rows.selects.pergroup import Grouping
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll, Length, LengthBatch
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.timed import Time
from rollup.engine.types import LONG, DataType, RowType

_NUMBER = "number of the partition"


def numbered(type: RowType) -> RowType:
    """A stream of events with the number of their partition, as their last field."""
    return RowType(type.name, {**type.fields, _NUMBER: LONG})


def recalls(plan: Select) -> list[Earlier | Previous]:
    """What it looks up of rows that came before."""
    return [each for each in plan.lookups if isinstance(each, Earlier | Previous)]


def recalled_first(plan: Select) -> Select:
    """A statement that looks up what came before, and then the properties of its partition."""
    order = sorted(range(len(plan.lookups)), key=lambda place: isinstance(plan.lookups[place], ContextValue))

    def moved(expr: Expr) -> Expr:
        return Ask(order.index(expr.index), expr.type) if isinstance(expr, Ask) else inside(expr, moved)

    return replace(rewritten(plan, moved), lookups=tuple(plan.lookups[place] for place in order))


def _recalling(plan: Select, input: StreamInput, wider: RowType) -> PriorAccess | str:
    """The same of one that reads what came before in its partition: each row with all fields, and with what it reads."""
    window, previous = input.window, [each for each in recalls(plan) if isinstance(each, Previous)]
    number = Field(0, len(wider.fields) - 1, LONG)
    if isinstance(window, KeepAll):
        window = Grouped((number,), window)
    if any(each.what == "window" for each in previous):
        return "lists of what came before in a context"
    if previous and not isinstance(window, Grouped):
        return "prev in a context over a window other than length or keepall"
    if aggregates(plan) or not (window is None or plan.comes_alone):
        return "what came before beside aggregates or with the remove stream, in a context"
    if not (window is None or isinstance(window, Time) or (isinstance(window, Grouped) and window.key == (number,))):
        return f"what came before over the window {type(window).__name__} in a context"
    fields = (Field(0, place, kind) for place, kind in enumerate(wider.fields.values()))
    recalled = tuple(recalls(plan))
    read = [Ask(place, _type(each)) for place, each in enumerate(recalled)]
    alone = replace(
        plan, inputs=(replace(input, window=window),), projection=Projection((*fields, *read)), lookups=recalled
    )
    return prior_access(alone, wider, by=number.index)


def _type(recalled: Earlier | Previous) -> DataType:
    """What is read of a row that came before."""
    counts = isinstance(recalled, Previous) and recalled.what == "count"
    return LONG if recalled.value is None or counts else recalled.value.type


def by_partition(plan: Select, input: StreamInput, wider: RowType) -> FilterProject | Selected | PriorAccess | str:
    """The core of the statement by partitions, of which nothing is projected, but by a program."""
    number = Field(0, len(wider.fields) - 1, LONG)
    window = of_each(input.window, number)
    if recalls(plan):
        return _recalling(plan, replace(input, window=window), wider)
    inner = of_numbered(plan, number)
    if isinstance(inner, str):
        return inner
    inner = replace(inner, inputs=(replace(input, window=window),))
    if isinstance(window, Grouped) and not _together(window):
        return f"the window {type(input.window).__name__} in a context"
    if plan.where is not None and not isinstance(window, KeepAll | Time | None):
        return "where behind a window in a context"
    calls = plan.levels[0].calls if plan.total and isinstance(window, Time) else ()  # a partition that empties goes on
    if (reason := first(uncountable(each, "rows") for each in calls)) is not None:
        return reason
    if window is None and not aggregates(plan):
        return over_stream(inner, wider)
    return over_stream(replace(inner, projection=leaves(plan.projection, inner, number)), wider)


def used(projection: Projection) -> list[Field | Slot]:
    """The fields of the event, and the aggregates and keys, that a projection reads."""
    parts = (each for expr in projection.evaluated for each in walk(expr))
    return list(dict.fromkeys(each for each in parts if isinstance(each, Field | Slot)))


def leaves(projection: Projection, inner: Select, number: Field) -> Projection:
    """What a program shows of the statement by partitions, that projections can be made of: their number, then what is used."""
    if inner.grouping is None:
        return Projection((number, *used(projection)))
    slots = (replace(each, index=each.index + 1) if isinstance(each, Slot) else each for each in used(projection))
    return Projection((Slot(0, LONG), *slots))


def of_numbered(plan: Select, number: Expr) -> Select | str:
    """A statement whose groups are those of a partition each, without what it shows; or the first reason against it."""
    grouping, levels = plan.grouping, plan.levels
    if grouping is not None and (not grouping.whole or grouping.own):
        return "grouping sets in a context"
    if grouping is not None or (plan.total and len(levels) == 1):
        calls = grouping.calls if grouping is not None else levels[0].calls
        keys = (number, *(grouping.dimensions if grouping is not None else ()))
        grouping, levels = Grouping(keys, (tuple(range(len(keys))),), calls), ()
    else:
        levels = tuple(replace(level, keys=(number, *level.keys)) for level in levels)
    return replace(
        plan, projection=Projection(()), grouping=grouping, levels=levels, total=plan.total and grouping is not None, lookups=(),
        emitted="new" if plan.emitted == "new" else "both",
    )  # fmt: skip


def of_each(window: WindowSpec | None, number: Expr) -> WindowSpec | None:
    """The window of each partition as one of all, be it `Grouped` by their numbers."""
    match window:
        case None:
            return None
        case KeepAll() | Time(size=None):
            return window
        case Grouped(key, Length() | LengthBatch(early=False) as inner):
            return Grouped((number, *key), inner)
        case Unique(key, once):
            return Unique((number, *key), once)
        case _:
            return Grouped((number,), window)


def _together(window: Grouped) -> bool:
    """Whether one loop goes through the windows of all keys as the rows came."""
    return isinstance(window.inner, Length) or (isinstance(window.inner, LengthBatch) and not window.inner.early)
