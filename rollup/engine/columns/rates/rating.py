"""Which output rates run over columns, and by what."""

from __future__ import annotations

from dataclasses import replace

import pyarrow as pa

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.moving import Moving
from rollup.engine.columns.cores.over_stream import over_stream
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.cores.selected import Selected, selected
from rollup.engine.columns.evaluate import carried
from rollup.engine.columns.rates.counts import Clock, Pacing
from rollup.engine.columns.rates.rated import Rated, Shows
from rollup.engine.expressions import Const, Variable
from rollup.engine.rows.plans import Select
from rollup.engine.rows.selects.rate import Rate
from rollup.engine.rows.windows.expressed import Expressed
from rollup.engine.types import RowType


def rated(plan: Select, stream: RowType, ordered: bool) -> Selected | Rated | str:
    """The core of a statement over one stream with a rate, or the first reason against it; `ordered`: the rows of an output
    are put in order, for which changes wait until then as they are.
    """
    program = selected(plan, stream, ordered)
    if isinstance(program, Selected) or plan.rate.mode == "first":
        return program
    core = over_stream(_unrated(plan), stream)
    return core if isinstance(core, str) else _rated(plan, core, stream, ordered)


def _unrated(plan: Select) -> Select:
    """The statement whose rows wait for outputs."""
    return replace(plan, rate=Rate(), emitted="new" if plan.emitted == "new" else "both")


def _kinds(stream: RowType) -> tuple[pa.DataType, ...]:
    return tuple(carried(kind) for kind in stream.fields.values())


def _rated(plan: Select, core: FilterProject | Folded, stream: RowType, ordered: bool) -> Rated | str:
    """What shows the rows of a core at outputs, or the first reason against it."""
    pacing = _pacing(plan.rate)
    if isinstance(pacing, str):
        return pacing
    reason = _unpaced(plan, core, pacing)
    if reason is not None:
        return reason
    mode = plan.rate.mode
    waits = mode == "default" or (ordered and mode in ("last", "all"))
    lazy = waits and isinstance(core, Folded) and bool(core.calls)
    reason = _unshown(plan, core) or (_unworked(core) if lazy else None)
    if reason is not None:
        return reason
    return Rated(core, _kinds(stream), _shows(plan, core), pacing, plan.total, lazy, plan.emitted)


def _each(core: FilterProject | Folded) -> bool:
    """Whether each row is shown."""
    return isinstance(core, FilterProject) or not core.by_group


def _grouped(core: FilterProject | Folded) -> bool:
    """Whether there are groups."""
    return isinstance(core, Folded) and bool(core.keys)


def _unpaced(plan: Select, core: FilterProject | Folded, pacing: Pacing) -> str | None:
    """The first reason against outputs of any mode."""
    if isinstance(core, Folded) and core.by_group and core.window is not None and core.forgets and core.lines.ever:
        return "aggregates of all that ever came by groups, which an output may show when they have emptied"
    if _grouped(core) and _each(core) and not plan.grouped:
        return "aggregates by groups of their own, with an output rate"
    return None


def _unshown(plan: Select, core: FilterProject | Folded) -> str | None:
    """The first reason against what a snapshot, or an output of all, shows."""
    mode = plan.rate.mode
    if mode == "snapshot" and _each(core):
        return "output snapshot of one row a row"
    if mode == "snapshot" and not plan.total and isinstance(core, Folded) and not core.oldest_first:
        return f"output snapshot over a window of {'batches' if isinstance(core, Queued) and core.batches else 'keys'}"
    if mode in ("all", "snapshot") and _grouped(core) and isinstance(core, Queued) and core.behind:
        return f"output {mode} by groups with where behind a window"
    return "output all of one row a row by groups" if mode == "all" and _each(core) and _grouped(core) else None


def _unworked(core: FilterProject | Folded) -> str | None:
    """The first reason against aggregates that an output works out."""
    if isinstance(core, Queued) and (core.batches or isinstance(core.window, Expressed)):
        return f"aggregates of {'batches' if core.batches else 'such a window'} that an output works out"
    if isinstance(core, Moving) and (core.parts.timed or len(core.parts.parts) > 1):
        return "aggregates of several windows, or of one by time, that an output works out"
    return None


def _shows(plan: Select, core: FilterProject | Folded) -> Shows:
    """What an output shows of the rows that wait for it."""
    match plan.rate.mode:
        case "last":
            return "last"
        case "snapshot":
            return "there"
        case "default":
            return "everything"
        case _:
            return "everything" if _each(core) or plan.total else "all"


def _pacing(rate: Rate) -> Pacing | str:
    """What brings outputs, or the first reason against it."""
    if rate.after_span is not None or rate.after_events is not None:
        return "output after something"
    if rate.at_end or rate.then:
        return "output at the end, or that sets variables"
    if rate.when is not None:
        return "output when something holds"
    if rate.events is None:
        return Pacing(Clock(rate.span or 0, rate.schedule))
    if rate.span is not None or not isinstance(rate.events, Const | Variable):
        return "output every so many events, where that is not a number"
    return Pacing(Clock(), rate.events)
