"""Which output rates run over columns, and by what."""

from __future__ import annotations

from dataclasses import replace

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.over_stream import over_stream
from rollup.engine.columns.cores.projecting import FilterProject
from rollup.engine.columns.cores.queued import Queued, may_hold, queued
from rollup.engine.columns.evaluate import carried
from rollup.engine.columns.rates.firsts import Firsts
from rollup.engine.columns.rates.rated import Rated, Shows
from rollup.engine.expressions import Const
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.selects.rates import Rate
from rollup.engine.rows.windows.timed import Time, TimeBatch
from rollup.engine.types import RowType


def rated(plan: Select, stream: RowType, ordered: bool) -> Rated | Firsts | str:
    """The core of a statement over one stream with a rate, or the first reason against it; `ordered`: the rows of an output
    are put in order, for which changes wait until then as they are.
    """
    pace = _pace(plan.rate)
    if isinstance(pace, str):
        return pace
    inner = replace(plan, rate=Rate(), emitted="new" if plan.emitted == "new" else "both")
    core = over_stream(inner, stream)
    if isinstance(core, str):
        return core
    total, each = plan.total, isinstance(core, FilterProject) or not core.by_group
    grouped = isinstance(core, Folded) and bool(core.keys)
    mode = plan.rate.mode
    if grouped and each and not plan.grouped:
        return "aggregates by groups of their own, with an output rate"
    if mode == "first":
        return (
            _first_of_groups(plan, core, pace, stream)
            if isinstance(core, Folded) and grouped
            else _first(plan, core, pace)
        )
    if mode == "snapshot" and each:
        return "output snapshot of one row a row"
    if mode == "snapshot" and not total and isinstance(core, Folded) and not core.oldest_first:
        return f"output snapshot over a window of {'batches' if isinstance(core, Queued) and core.batches else 'keys'}"
    if mode == "all" and each and grouped:
        return "output all of one row a row by groups"
    shows: Shows = "everything" if each or total else "all"
    match mode:
        case "last":
            shows = "last"
        case "snapshot":
            shows = "there"
        case "default":
            shows = "everything"
        case _:
            pass
    waits = mode == "default" or (ordered and mode in ("last", "all"))
    lazy = waits and isinstance(core, Folded) and bool(core.calls)
    if lazy and isinstance(core, Queued) and core.batches:
        return "aggregates of batches that an output works out"
    kinds = tuple(carried(kind) for kind in stream.fields.values())
    return Rated(core, kinds, shows, *pace, total, lazy, plan.emitted)


def _pace(rate: Rate) -> tuple[int, int] | str:
    """Every what span, or how many rows; one of them 0."""
    if rate.events is None:
        return rate.span or 0, 0
    if rate.span is not None or not isinstance(rate.events, Const) or not isinstance(rate.events.value, int):
        return "output every so many events, where that is not a number"
    return (0, rate.events.value) if rate.events.value > 0 else "output every 0 events"


def _first(plan: Select, core: FilterProject | Folded, pace: tuple[int, int]) -> Firsts | str:
    """Of what is not grouped."""
    window = plan.inputs[0].window if isinstance(plan.inputs[0], StreamInput) else None
    if isinstance(window, TimeBatch):
        return "output first over batches by time"
    if pace[0] and isinstance(window, Time):
        return "output first by time over a window of time"
    return Firsts(core, *pace, False, plan.emitted)


def _first_of_groups(plan: Select, core: Folded, pace: tuple[int, int], stream: RowType) -> Firsts | str:
    """Groups have intervals of their own, and rows that leave a window count in them."""
    if plan.emitted != "new":
        return "output first by groups with the remove stream"
    window = core.window
    if isinstance(window, TimeBatch):
        return "output first over batches by time"
    if window is None:
        return Firsts(core, *pace, True, plan.emitted)
    if not may_hold(window):
        return "output first by groups over a window of keys"
    inner = queued(replace(plan, rate=Rate(), emitted="new" if core.by_group else "both"), stream)
    return inner if isinstance(inner, str) else Firsts(inner, *pace, True, plan.emitted)
