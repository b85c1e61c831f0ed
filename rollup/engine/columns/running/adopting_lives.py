"""The state of a statement in a context whose partitions begin and end, read from the row executor; and its partitions as that
has them, for a statement that comes later.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.living import Living
from rollup.engine.columns.evaluate import field
from rollup.engine.columns.running.adopting_folds import KEPT, groups_table
from rollup.engine.operators import LONG_MAX
from rollup.engine.row import Row
from rollup.engine.rows.component import Component
from rollup.engine.rows.contexts.runtime import ContextRuntime
from rollup.engine.state import State


def living_state(core: Living, component: Component, name: str) -> State:
    """The partitions that live, and the groups of all of them."""
    deployed, now = component.statements[name], component.runner.now
    context = component.contexts[deployed.context or ""]
    inner = core.inner.start(now)
    if isinstance(core.inner, Folded):
        groups = _groups(core.inner, context, name)
        table = groups_table(core.inner, groups, inner.tables["groups"].schema)
        inner = State({**inner.tables, "groups": table}, inner.scalars)
    return core.state(inner, _partitions(core, context), context.next)


def _partitions(core: Living, context: ContextRuntime) -> pa.Table:
    """Those that live, in the order in which they began."""
    lives, found = core.lives, [(n, dict(context.partitions[n].properties)) for n in sorted(context.partitions)]
    columns: list[Any] = [[n for n, _ in found], [own["startTime"] for _, own in found]]
    columns.append([own["endTime"] if lives.span else LONG_MAX for _, own in found])
    for place, kind in enumerate(lives.fields):
        columns.append(field([own[lives.tag or ""].values[place] for _, own in found], kind))
    return pa.table(columns, schema=lives.schema)


def _groups(core: Folded, context: ContextRuntime, name: str) -> list[Any]:
    """Key, slots and rows of the groups of all partitions; one that is a group has its place as key, be it empty."""
    found = list[Any]()
    for place, number in enumerate(sorted(context.partitions)):
        kind = context.partitions[number].instances[name].snapshot()[KEPT][0]
        own = kind[0] if core.kept and core.by_group else kind[0][0]
        if core.kept:
            _, slots, rows = own[0] if own else ((), core.lines.fold.start(), 0)
            found.append((place, slots, rows))
            continue
        for key, slots, rows in own:
            whole = (number, *key)
            named = {f"key{at}": value for at, value in enumerate(whole)}
            found.append((named if len(whole) > 1 else number, slots, rows))
    return found


def handed_back(core: Living, state: State) -> Any:
    """The snapshot of a context in the row executor, with the partitions that live."""
    lives, number = core.lives, state.scalars["number"]
    children = list[Any]()
    for own, begun, due, *values in zip(
        *(each.to_pylist() for each in state.tables["partitions"].columns), strict=True
    ):
        properties: dict[str, Any] = {"name": lives.level, "id": own, "startTime": begun}
        if lives.tag is not None:
            properties[lives.tag] = Row(0, tuple(values))
        if lives.span:
            properties["endTime"] = due
        nested = {f"{lives.level}.{name}": value for name, value in properties.items()}
        key = tuple(values[place] for place in lives.distinct) if lives.distinct else own
        waits = [True, due if lives.span else None, None]
        children.append([key, own, {**properties, "name": lives.context, **nested}, waits, None])
    starts = [] if lives.start is None else [[lives.overlap or not children, None, None]]
    return [number, [number, starts, children]]
