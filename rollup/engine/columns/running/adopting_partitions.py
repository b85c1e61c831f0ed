"""The state of a statement in a context, read from the row executor: what its partitions have, as what one statement has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.keeping import KeepingEach, KeepingFolded
from rollup.engine.columns.cores.matched import Matched
from rollup.engine.columns.cores.partition_totals import PartitionTotals
from rollup.engine.columns.cores.partitioned import Partitioned
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.cores.recalling import Recalling
from rollup.engine.columns.cores.renewing import Renewing
from rollup.engine.columns.cores.rewriting import of_numbers
from rollup.engine.columns.running.adopting_folds import (
    INPUTS,
    KEPT,
    folded_state,
    of_totals,
    queued_state,
    staying_state,
)
from rollup.engine.columns.running.adopting_patterns import matched_in_partitions
from rollup.engine.columns.running.adopting_recalled import in_one, recalling_in_partitions
from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.engine.rows.plans import Select
from rollup.engine.rows.selects.rates import Saved
from rollup.engine.rows.windows.base import WindowSpec
from rollup.engine.rows.windows.counted import KeepAll
from rollup.engine.state import State


def partitioned_state(core: Partitioned, component: Component, name: str) -> State:
    """The partitions as they began, and what all of them have."""
    plan, now = component.statements[name].plan, component.runner.now
    assert isinstance(plan, Select)
    keys, begun = _begun(component, name)
    known, kept = core.division.begun(keys), [of_totals(plan, each) for each in begun]
    if isinstance(core.inner, Recalling):
        inputs = [wider(each[INPUTS][0], number) for number, each in enumerate(kept)]
        return core.state(recalling_in_partitions(core.inner, inputs, now), known)
    if isinstance(core.inner, Matched | Renewing):
        return core.state(matched_in_partitions(core.inner, begun, now), known)
    if isinstance(core.inner, KeepingEach):
        return core.state(staying_state(core.inner, _window(KeepAll(), kept), now), known)
    if not isinstance(core.inner, Folded):
        return core.state(core.inner.start(now), known)
    groups = _groups(core.inner, of_numbers(plan), kept) if core.inner.calls else []
    window = KeepAll() if isinstance(core.inner, KeepingFolded) else core.inner.window
    whole = [[[_window(window, kept)]], None, [[[groups]]]]
    if isinstance(core.inner, Queued):
        return core.state(queued_state(core.inner, whole, core.type, now), known)
    inner, rows = folded_state(core.inner, whole, core.type, now)
    return core.state(core.inner.holding(inner, rows) if isinstance(core.inner, KeepingFolded) else inner, known)


def totals_state(core: PartitionTotals, component: Component, name: str) -> State:
    """Partitions with their slots and the clocks of those that have one."""
    keys, kept = _begun(component, name)
    fold, groups, clocks = core.lines.fold, list[Any](), list[tuple[int, int]]()
    for number, each in enumerate(kept):
        levels, outputs = each[KEPT]
        slots: list[Any] = levels[0][0][1] if levels[0] else fold.start()
        for new, _ in outputs[Saved.PENDING]:  # rows that wait for the output before they count
            for r in new:
                fold.enter(slots, r, None)
        groups.append(slots)
        if outputs[Saved.DUE] is not None:
            clocks.append((outputs[Saved.DUE], number))
    dues, numbers = (np.array([each[place] for each in sorted(clocks)], np.int64) for place in range(2))
    found = zip(core.lines.slots_in(groups), core.lines.slots, strict=True)
    arrays = [np.array(values, slot.dtype) for values, slot in found]
    return core.state(core.division.begun(keys), arrays, (dues, numbers), component.runner.now)


def _begun(component: Component, name: str) -> tuple[list[Any], list[Any]]:
    """What each partition is told by, as they began, and the snapshot of the statement in it; without a context there is one."""
    named = component.statements[name].context
    if named is None:
        return [0], [component.root.instances[name].snapshot()]
    context = component.contexts[named]
    begun = sorted(context.keys.items())
    kept = [context.partitions[number].instances[name].snapshot() for number, _ in begun]
    return [key for _, key in begun], kept


def _groups(core: Folded, plan: Select, kept: Sequence[Any]) -> list[Any]:
    """Key, slots and rows of the groups of all partitions; of a partition that is a group, be it empty."""
    found = list[Any]()
    for number, each in enumerate(kept):
        found += groups_in(core, number, each[KEPT][0], plan.total)
    return found


def groups_in(core: Folded, number: int, kind: Any, total: bool) -> list[Any]:
    """The same of one partition, of whose groups a statement keeps that; `total`: all its rows are one."""
    own = kind[0] if total else kind[0][0]
    if core.kept and not own:
        own = [((), core.lines.fold.start(), 0)]
    return [((number, *key), slots, rows) for key, slots, rows in own]


def _window(window: WindowSpec | None, kept: Sequence[Any]) -> list[Any]:
    """The rows of all windows, as the one window that they are has them."""
    return in_one(window, [wider(each[INPUTS][0][0] or (), number) for number, each in enumerate(kept)])


def wider(kept: Any, number: int) -> Any:
    """What a window keeps, each row in it with the number of its partition."""
    if isinstance(kept, Row):
        return Row(kept.id, (*kept.values, number))
    return type(kept)(wider(each, number) for each in kept) if isinstance(kept, list | tuple) else kept
