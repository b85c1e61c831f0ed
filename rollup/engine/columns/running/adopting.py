"""What a statement that goes over to columns takes along: the state of its rows, read from the row executor's snapshot.

The slots of a group are the same declared slots in both executors, so sums go on bit for bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from rollup.engine.columns.cores.asking import Asked, Asking
from rollup.engine.columns.cores.batches import Batch, Core
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.folded_joins import FoldedJoin
from rollup.engine.columns.cores.joined import Joined
from rollup.engine.columns.cores.keeping import KeepingEach
from rollup.engine.columns.cores.leveled import Leveled
from rollup.engine.columns.cores.living import Living
from rollup.engine.columns.cores.matched import Matched
from rollup.engine.columns.cores.of_matches import OfMatches
from rollup.engine.columns.cores.partition_totals import PartitionTotals
from rollup.engine.columns.cores.partitioned import Partitioned
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.cores.recalling import Recalling
from rollup.engine.columns.cores.renewing import Renewing
from rollup.engine.columns.cores.sought import Sought
from rollup.engine.columns.rates.firsts import Firsts
from rollup.engine.columns.rates.rated import Rated
from rollup.engine.columns.running.adopting_folds import (
    INPUTS,
    RUNNING,
    aggregates_state,
    columns_of,
    folded_state,
    leveled_state,
    of_totals,
    queued_state,
    staying_state,
    table_of,
)
from rollup.engine.columns.running.adopting_joins import folded_join_state, joined_state
from rollup.engine.columns.running.adopting_lives import living_state
from rollup.engine.columns.running.adopting_partitions import partitioned_state, totals_state
from rollup.engine.columns.running.adopting_patterns import event_of, matched_state
from rollup.engine.columns.running.adopting_rates import rated_state
from rollup.engine.columns.running.adopting_recalled import recalling_state
from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.engine.rows.plans import Lookup, Select, Subquery
from rollup.engine.rows.windows.timed import Time
from rollup.engine.state import State
from rollup.engine.types import RowType


def adopted(core: Core, component: Component, name: str, stream: RowType) -> tuple[State, pa.Table]:
    """The state of a core that goes on where a statement of the row executor stands; and the rows that its window holds."""
    now = component.runner.now
    held = table_of((), stream)
    match core:
        case PartitionTotals():
            return totals_state(core, component, name), held
        case Living():
            return living_state(core, component, name), held
        case Partitioned():
            return partitioned_state(core, component, name), held
        case Rated() | Firsts():
            return rated_state(core, component.root.instances[name], stream)
        case Recalling():
            return recalling_state(core, component.root.instances[name], now), held
        case Leveled():
            return leveled_state(core, component.root.instances[name].snapshot(), stream, now), held
        case FoldedJoin():
            return folded_join_state(core, component.root.instances[name].snapshot(), now), held
        case Queued():
            return queued_state(core, component.root.instances[name].snapshot(), stream, now), held
        case Folded():
            kept = of_totals(component.statements[name].plan, component.root.instances[name].snapshot())
            return folded_state(core, kept, stream, now)
        case KeepingEach():
            return staying_state(core, component.root.instances[name].snapshot()[INPUTS][0][0], now), held
        case Joined():
            return joined_state(core.join, component.root.instances[name].snapshot(), now), held
        case Asking():
            plan = component.statements[name].plan
            assert isinstance(plan, Select)
            return _asking(core, plan.lookups, component.root.instances[name].snapshot(), now), held
        case Matched() | Renewing():
            return matched_state(core, component.root.instances[name].snapshot(), now), held
        case OfMatches():
            return _of_matches(core, component.root.instances[name].snapshot(), now), held
        case _:
            return core.start(now), held


def _asking(core: Asking, lookups: Sequence[Lookup], kept: Any, now: int) -> State:
    """Windows of the sub-queries, and those aggregates that the row executor keeps up; others it works out when it is asked."""
    parts, running = list[State](), iter(kept[RUNNING])
    for each, lookup in zip(core.asked, lookups, strict=True):
        assert isinstance(lookup, Subquery)
        window = kept[INPUTS][lookup.input]
        if isinstance(each, Sought):
            parts.append(each.holding(*columns_of(window[0], isinstance(each.input.window, Time), each.type, now), now))
        elif isinstance(each, Asked) and lookup.calls:
            groups = next(running)
            inner, _ = folded_state(each.core, [[window], None, [[groups]]], each.type, now)
            parts.append(each.holding(inner, each.answers(groups[0][1] if groups else None)))
        elif isinstance(each, Asked):
            columns, times = columns_of(window[0], isinstance(each.core.window, Time), each.type, now)
            came = Batch.of(columns, times, now, each.core.filter.stream)
            parts.append(each.step(each.start(int(times[0]) if len(times) else now), came, False)[0])
    return core.holding(parts, now)


def _of_matches(core: OfMatches, kept: Any, now: int) -> State:
    """The pattern, and the window and aggregates of its matches."""
    (input, *others) = kept[INPUTS]
    alone = [[[_flattened(input[0], core.pattern), *input[1:]], *others], *kept[1:]]
    main = aggregates_state(core.main, alone, core.type, now)
    return core.holding(matched_state(core.pattern, kept, now), main, now)


def _flattened(kept: Any, pattern: Matched | Renewing) -> Any:
    """What a window keeps, each match in it with the fields of its events; those of one without a name are not kept."""
    if isinstance(kept, Row):
        found = [event_of(kept.values[tag], nth) for tag, nth in pattern.events]
        parts = [
            (None,) * len(kind.fields) if each is None else each.values
            for each, kind in zip(found, pattern.types, strict=True)
        ]
        return Row(kept.id, tuple(value for part in parts for value in part))
    if isinstance(kept, list | tuple):
        return type(kept)(_flattened(each, pattern) for each in kept)
    return kept
