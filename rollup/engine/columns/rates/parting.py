"""Which output rates of statements in contexts run over columns, and by what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pyarrow as pa

from rollup.engine.columns.cores.apart import Apart
from rollup.engine.columns.cores.changes import IN_BATCHES
from rollup.engine.columns.cores.contexts import in_context
from rollup.engine.columns.cores.covering import first
from rollup.engine.columns.cores.folded import Folded, unkeyed
from rollup.engine.columns.cores.living import Living
from rollup.engine.columns.cores.moving import Moving
from rollup.engine.columns.cores.partition_totals import PartitionTotals
from rollup.engine.columns.cores.partitioned import Partitioned
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.evaluate import carried
from rollup.engine.columns.rates.beats import Beats
from rollup.engine.columns.rates.each_content import EachContent
from rollup.engine.columns.rates.each_first import EachFirst, EachFirstOfGroups
from rollup.engine.columns.rates.each_others import EachOthers
from rollup.engine.columns.rates.each_part import EachPart, Showing
from rollup.engine.columns.rates.of_each import OfEach
from rollup.engine.columns.rates.rating import number_of
from rollup.engine.expressions import Const, Expr, Field
from rollup.engine.rows.contexts.levels import Context, Hashed
from rollup.engine.rows.plans import Filter, Select, StreamInput
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.combined import Intersection, Union
from rollup.engine.rows.windows.counted import FirstLength, KeepAll, Length
from rollup.engine.rows.windows.expressed import Expressed
from rollup.engine.rows.windows.external import ExternalTime, TimeOrder
from rollup.engine.rows.windows.keyed import Grouped, Unique
from rollup.engine.rows.windows.ranked import Ranked, Sorted
from rollup.engine.rows.windows.timed import FirstTime, Time, TimeAccumulating
from rollup.engine.types import INT, RowType

_IN_ORDER = (
    Union, Length, Time, ExternalTime, TimeAccumulating, Expressed, FirstLength, FirstTime, Unique, TimeOrder, Sorted, Ranked,
)  # fmt: skip


def rated_in_context(
    plan: Select, context: Context, reads: Mapping[str, RowType], ordered: bool
) -> OfEach | Living | PartitionTotals | str:
    """The core of a statement with a rate in a context, or the first reason against it; `ordered`: the rows of an output are put
    in order, for which changes wait until then as they are.
    """
    by_itself = in_context(plan, context, reads)
    if isinstance(by_itself, PartitionTotals) or (isinstance(by_itself, Living) and not _of_windows(by_itself)):
        return by_itself
    if plan.join is not None:
        return "an output rate over a join in a context"
    beats = _beats(plan.rate)
    if isinstance(beats, str):
        return beats
    (stream, *_) = reads.values()
    kinds = tuple(map(carried, stream.fields.values()))
    if plan.rate.mode == "first" and (plan.grouped or plan.grouping is not None):
        return _first_of_groups(plan, context, reads, beats, kinds)
    window = _window(plan)
    stays = isinstance(window, KeepAll) and plan.grouping is not None  # then groups are there as they came
    if plan.rate.mode == "snapshot" and window is not None and not (stays or plan.total):
        return _content(plan, context, reads, beats, kinds)
    if plan.rate.mode == "all" and plan.grouped and plan.grouping is None:
        return _others(plan, context, reads, beats, kinds, ordered)
    lazy = plan.rate.mode == "default" or (ordered and plan.rate.mode in ("last", "all"))
    # Where a group is seen as it was at the last output, all that changes it must make a row.
    each = lazy and window is not None and bool(plan.levels) and plan.grouping is None and not plan.total
    asked = replace(plan, emitted="both") if each else plan
    core = _core(asked, context, reads, each or isinstance(window, Time))
    if isinstance(core, str):
        return core
    if plan.emitted != "new" and isinstance(core.inner, Folded) and core.inner.by_group:
        return "the remove stream of groups or a total with an output rate, in a context"
    if plan.rate.mode == "first":
        return EachFirst(core, kinds, plan.emitted, beats)
    reason = _against(plan, core.inner, lazy)
    if reason is not None:
        return reason
    by_group = isinstance(core.inner, Folded) and core.inner.by_group
    of_groups = by_group and not plan.total
    seen = (plan.total and lazy) or (of_groups and plan.rate.mode == "snapshot")
    values = _values(core.inner) if lazy and window is not None and not plan.total else ()
    shows = _shows(plan, by_group)
    return EachPart(core, kinds, plan.emitted, beats, shows, plan.total, of_groups, lazy, seen, values)


def _of_windows(core: Living) -> bool:
    """Whether it shows groups of a window, of which not all that came are there, or were shown last, when a partition ends."""
    return core.at_end and core.windowed and not core.one_group


def _window(plan: Select) -> WindowSpec | None:
    """The window of the one input."""
    return plan.inputs[0].window if isinstance(plan.inputs[0], StreamInput) else None


def _values(inner: object) -> tuple[Expr, ...]:
    """The aggregates of a core, as its rows have them."""
    if not isinstance(inner, Folded):
        return ()
    begin = len(inner.keys) if inner.by_group else inner.width
    return tuple(Field(0, place, call.type) for place, call in enumerate(inner.calls, begin))


def rated_in_one(plan: Select, reads: Mapping[str, RowType], ordered: bool) -> OfEach | None:
    """The core of a statement without a context, as one in which all events are in one partition; None: there is none."""
    ((stream, _),) = reads.items()
    one = Hashed(((Filter(stream), Const(0, INT)),), 1, True)
    found = rated_in_context(plan, Context("", (("", one),)), reads, ordered)
    return found if isinstance(found, OfEach) else None


def _core(plan: Select, context: Context, reads: Mapping[str, RowType], by_itself: bool) -> Partitioned | Living | str:
    """The core without a rate, or the first reason against it; `by_itself`: the window of each partition is."""
    core = in_context(replace(plan, rate=Rate()), context, reads, by_itself)
    if isinstance(core, str):
        return core
    if isinstance(core, PartitionTotals) or not _parted(core.inner):
        return "an output rate over a pattern or previous rows, in a context"
    own = isinstance(core.inner, Folded) and len(core.inner.keys) > 1 and not core.inner.by_group
    return "aggregates by groups of their own, with an output rate" if own and not plan.grouped else core


def _content(
    plan: Select, context: Context, reads: Mapping[str, RowType], beats: Beats, kinds: tuple[pa.DataType, ...]
) -> EachContent | str:
    """What shows the rows of windows, or the first reason against it; all that changes their aggregates must make a row."""
    core = _core(replace(plan, emitted="both" if plan.levels else "new"), context, reads, True)
    if isinstance(core, str):
        return core
    inner = core.inner
    keys = _stands_by(inner.of_one) if isinstance(inner, Apart) else None
    if keys is None:
        return "output snapshot over an intersection by keys, in a context"
    reason = first(map(unkeyed, keys))
    return reason or EachContent(core, kinds, plan.emitted, beats, _values(inner), keys)


def _stands_by(window: WindowSpec) -> tuple[Expr, ...] | None:
    """The keys by which the rows of a window stand, as these came first ever; none where they stand as they came, or as the
    window puts them in order; None: they stand otherwise.
    """
    match window:
        case Intersection(parts):  # a key of which others have let the rows out stands anew
            return None if _stands_by(parts[0]) else _stands_by(parts[0])
        case Unique(key, first=False):
            return key
        case Grouped(key, Length() | Time()):
            return key
        case _:
            return () if isinstance(window, (*_IN_ORDER, *IN_BATCHES)) else None


def _others(
    plan: Select,
    context: Context,
    reads: Mapping[str, RowType],
    beats: Beats,
    kinds: tuple[pa.DataType, ...],
    ordered: bool,
) -> EachOthers | str:
    """What shows all rows and the groups without any, or the first reason against it; of a group it matters also what leaves."""
    if ordered:
        return "output all of one row a row by groups, in order"
    core = _core(plan if _window(plan) is None else replace(plan, emitted="both"), context, reads, True)
    if isinstance(core, str):
        return core
    if not isinstance(core.inner, Folded) or len(core.inner.keys) < 2:
        return "output all of one row a row by groups, without aggregates by them"
    return EachOthers(core, kinds, plan.emitted, beats)


def _first_of_groups(
    plan: Select, context: Context, reads: Mapping[str, RowType], beats: Beats, kinds: tuple[pa.DataType, ...]
) -> EachFirstOfGroups | str:
    """What shows the first row of each group, or the first reason against it; what leaves a window counts as well."""
    if plan.emitted != "new":
        return "output first by groups with the remove stream"
    if beats.at_end:
        return "output first by groups when terminated"
    both = _window(plan) is not None and plan.grouping is None
    core = _core(replace(plan, emitted="both") if both else plan, context, reads, True)
    if isinstance(core, str):
        return core
    return EachFirstOfGroups(core, kinds, plan.emitted, (beats.span, beats.limit))


def _parted(inner: object) -> bool:
    """Whether each change of a core is one of a single partition."""
    if isinstance(inner, Moving):
        return isinstance(inner, Apart) or not inner.parts.timed
    return isinstance(inner, FilterProject) or (type(inner) is Folded and not isinstance(inner.window, Time))


def _against(plan: Select, inner: object, lazy: bool) -> str | None:
    """The first reason against what outputs show."""
    mode, windowed = plan.rate.mode, _window(plan) is not None
    if not isinstance(inner, Folded):
        return None
    if windowed and not plan.total and lazy and mode != "default" and inner.calls:
        return "aggregates by groups over a window that an output works out in order, in a context"
    if windowed and inner.window is not None and not plan.total and inner.forgets and inner.lines.ever:
        return "aggregates of all that ever came by groups, which an output may show when they have emptied"
    return None


def _shows(plan: Select, by_group: bool) -> Showing:
    """What an output shows."""
    match plan.rate.mode:
        case "last":
            return "last"
        case "snapshot":
            return "there" if by_group else "nothing"
        case "all" if by_group and not plan.total:
            return "there"
        case _:
            return "everything"


def _beats(rate: Rate) -> Beats | str:
    """When partitions are shown, or the first reason against it."""
    if rate.when is not None or rate.schedule is not None or rate.then:
        return "output at, or when something holds, in a context"
    if rate.after_span is not None or rate.after_events is not None or rate.starts_at_once:
        return "output after something, in a context"
    if rate.end_when is not None or rate.end_then:
        return "output when terminated under a condition, or that sets variables"
    if rate.events is None:
        return Beats(rate.span or 0, 0, rate.at_end)
    events = number_of(rate.events)
    if rate.span is not None or events is None or events <= 0:
        return "output every so many events, where that is not a number above 0"
    return Beats(0, events, rate.at_end)
