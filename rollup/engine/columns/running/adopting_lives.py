"""The state of a statement in a context whose partitions begin and end, read from the row executor."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.living import Living
from rollup.engine.columns.evaluate import field
from rollup.engine.columns.running.adopting_folds import KEPT, groups_table
from rollup.engine.operators import LONG_MAX
from rollup.engine.rows.component import Component
from rollup.engine.rows.contexts.runtime import ContextRuntime
from rollup.engine.rows.plans import Select
from rollup.engine.state import State


def living_state(core: Living, component: Component, name: str) -> State:
    """The partitions that live, and the groups of all of them."""
    deployed, now = component.statements[name], component.runner.now
    context = component.contexts[deployed.context or ""]
    inner = core.inner.start(now)
    if isinstance(core.inner, Folded):
        assert isinstance(deployed.plan, Select)
        groups = _groups(core.inner, context, name, deployed.plan.total)
        table = groups_table(core.inner, groups, inner.tables["groups"].schema)
        inner = State({**inner.tables, "groups": table}, inner.scalars)
    return core.state(inner, _partitions(core, context), context.next)


def _partitions(core: Living, context: ContextRuntime) -> pa.Table:
    """Those that live, in the order in which they began."""
    lives, found = core.lives, [(n, dict(context.partitions[n].properties)) for n in sorted(context.partitions)]
    columns: list[Any] = [[n for n, _ in found], [own["startTime"] for _, own in found]]
    columns.append([own["endTime"] if lives.span else LONG_MAX for _, own in found])
    for place in lives.kept:
        columns.append(field([own[lives.tag].values[place] for _, own in found], lives.kinds[place]))
    return pa.table(columns, schema=lives.schema)


def _groups(core: Folded, context: ContextRuntime, name: str, total: bool) -> list[Any]:
    """Key, slots and rows of the groups of all partitions."""
    found = list[Any]()
    for number in sorted(context.partitions):
        kind = context.partitions[number].instances[name].snapshot()[KEPT][0]
        for key, slots, rows in kind[0] if total else kind[0][0]:
            whole = (number, *key)
            named = {f"key{place}": value for place, value in enumerate(whole)}
            found.append((named if len(core.keys) > 1 else number, slots, rows))
    return found
