"""Which output rates of statements in contexts run over columns, and by what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

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
from rollup.engine.columns.cores.queued import Queued
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
from rollup.engine.rows.plans import Emitted, Filter, Select, StreamInput
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
    Union, KeepAll, Length, Time, ExternalTime, TimeAccumulating, Expressed, FirstLength, FirstTime, Unique, TimeOrder, Sorted, Ranked,
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
    return _Parting(plan, context, reads, ordered, beats, tuple(map(carried, stream.fields.values()))).core()


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


@dataclass(frozen=True)
class _Parting:
    """A statement with a rate in a context, whose partitions are shown by their `beats`; `kinds`: the types of its stream."""

    plan: Select
    context: Context
    reads: Mapping[str, RowType]
    ordered: bool
    beats: Beats
    kinds: tuple[pa.DataType, ...]

    def core(self) -> OfEach | str:
        """What shows its outputs, or the first reason against it."""
        plan, mode, window = self.plan, self.plan.rate.mode, _window(self.plan)
        of_groups = plan.grouping is not None
        if mode == "first" and (plan.grouped or of_groups):
            return self._first_of_groups()
        if mode == "all" and plan.grouped and not of_groups:
            return self._others()
        stays = isinstance(window, KeepAll) and of_groups  # then groups are there as they came
        if mode == "snapshot" and window is not None and not (stays or plan.total):
            return self._content()
        return self._part()

    def _part(self) -> EachPart | EachFirst | str:
        """What shows what has come, or is there."""
        plan, mode, window = self.plan, self.plan.rate.mode, _window(self.plan)
        lazy = mode == "default" or (self.ordered and mode in ("last", "all"))
        # Where a group is seen as it was at the last output, all that changes it must make a row.
        leaves = not isinstance(window, KeepAll | None)
        each = lazy and leaves and bool(plan.levels) and plan.grouping is None and not plan.total
        core = self._inner("both" if each else plan.emitted, each or isinstance(window, Time))
        if isinstance(core, str):
            return core
        by_group = isinstance(core.inner, Folded) and core.inner.by_group
        if plan.emitted != "new" and by_group:
            return "the remove stream of groups or a total with an output rate, in a context"
        if mode == "first":
            return EachFirst(core, self.kinds, plan.emitted, self.beats)
        reason = _against(plan, core.inner, lazy)
        if reason is not None:
            return reason
        of_groups = by_group and not plan.total
        seen = (plan.total and lazy) or (of_groups and mode == "snapshot")
        values = _values(core.inner) if lazy and window is not None and not plan.total else ()
        what = _shows(plan, by_group), plan.total, of_groups, lazy, seen, values
        return EachPart(core, self.kinds, plan.emitted, self.beats, *what)

    def _inner(self, emitted: Emitted, by_itself: bool = True) -> Partitioned | Living | str:
        """The core without a rate, or the first reason against it; `by_itself`: the window of each partition is."""
        alone = replace(self.plan, rate=Rate(), emitted=emitted)
        core = in_context(alone, self.context, self.reads, by_itself)
        if isinstance(core, str):
            return core
        if isinstance(core, PartitionTotals) or not _parted(core.inner):
            return "an output rate over a pattern or previous rows, in a context"
        own = isinstance(core.inner, Folded) and len(core.inner.keys) > 1 and not core.inner.by_group
        return "aggregates by groups of their own, with an output rate" if own and not self.plan.grouped else core

    def _content(self) -> EachContent | str:
        """What shows the rows of windows; all that changes their aggregates must make a row."""
        core = self._inner("both" if self.plan.levels else "new")
        if isinstance(core, str):
            return core
        inner = core.inner
        keys = _stands_by(inner.of_one) if isinstance(inner, Apart) else None
        if keys is None:
            return "output snapshot over an intersection or batches by keys, in a context"
        reason = first(map(unkeyed, keys))
        return reason or EachContent(core, self.kinds, self.plan.emitted, self.beats, _values(inner), keys)

    def _others(self) -> EachOthers | str:
        """What shows all rows and the groups without any; of a group it matters also what leaves."""
        if self.ordered:
            return "output all of one row a row by groups, in order"
        stays = isinstance(_window(self.plan), KeepAll | None)
        core = self._inner(self.plan.emitted if stays else "both", not stays)
        if isinstance(core, str):
            return core
        if not isinstance(core.inner, Folded) or len(core.inner.keys) < 2:
            return "output all of one row a row by groups, without aggregates by them"
        return EachOthers(core, self.kinds, self.plan.emitted, self.beats)

    def _first_of_groups(self) -> EachFirstOfGroups | str:
        """What shows the first row of each group; what leaves a window counts as well."""
        plan, beats = self.plan, self.beats
        if plan.emitted != "new":
            return "output first by groups with the remove stream"
        if beats.at_end:
            return "output first by groups when terminated"
        stays = isinstance(_window(plan), KeepAll | None) and plan.grouping is None
        core = self._inner("new" if stays or plan.grouping is not None else "both", not stays)
        if isinstance(core, str):
            return core
        return EachFirstOfGroups(core, self.kinds, plan.emitted, (beats.span, beats.limit))


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


def _parted(inner: object) -> bool:
    """Whether each change of a core is one of a single partition."""
    if isinstance(inner, Moving):
        return isinstance(inner, Apart) or not inner.parts.timed
    if isinstance(inner, Folded) and not isinstance(inner, Queued):
        return not isinstance(inner.window, Time)
    return isinstance(inner, FilterProject)


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
