"""Which running queries columns cover, or the first reason against."""

from __future__ import annotations

from collections.abc import Sequence

from rollup.engine.columns.cores.covering import KEYS, against, first
from rollup.engine.columns.cores.declared import Lines, uncountable
from rollup.engine.columns.cycles.alerts import Alerts
from rollup.engine.columns.cycles.clocked import Chained, CycleCore
from rollup.engine.columns.cycles.totals import Totals
from rollup.engine.expressions import Field
from rollup.engine.rows.cycles.correlation import CorrelationSpec
from rollup.engine.rows.cycles.partitions import AggregateSpec, PartitionSpec, kept
from rollup.engine.rows.cycles.relating import Projection
from rollup.engine.rows.cycles.running import ChainSpec, RunningSpec
from rollup.engine.rows.cycles.windows import TimeSpec
from rollup.engine.types import RowType

_BITS = 62
"""As many patterns and windows as an alert may have over columns."""


def core_of(spec: RunningSpec, kinds: Sequence[RowType], select: Projection | None) -> CycleCore | str:
    """The core of a query over streams of these rows, a type a chain; or the first reason why it runs on rows."""
    if select is None:
        return "a select that the database answers"
    if spec.policy.kind != "weights":
        return "a schedule"
    chains = list[Chained]()
    for chain, kind in zip(spec.chains, kinds, strict=True):
        made = _chained(chain, kind)
        if isinstance(made, str):
            return made
        chains.append(made)
    reason = first(against(each) for each in (select.test, *select.columns))
    if reason is not None:
        return reason
    if spec.correlation is not None:
        return _alerts(spec, spec.correlation, chains, kinds, select)
    return _totals(spec.chains[0].parts[0], chains[0], kinds[0], select)


def _chained(chain: ChainSpec, kind: RowType) -> Chained | str:
    """The window of a chain, if it is one of time."""
    part = chain.parts[0]
    if len(chain.parts) > 1:
        return "chained partitions"
    if not isinstance(part.window, TimeSpec) or part.window.most is not None or part.time is None:
        most = " with max" if isinstance(part.window, TimeSpec) else ""
        return f"the window {type(part.window).__name__.removesuffix('Spec').lower()}{most}"
    return against(part.where) or Chained(chain.stream, part.where, part.time, part.window.span)


def _totals(part: PartitionSpec, chain: Chained, kind: RowType, select: Projection) -> Totals | str:
    if not part.aggregates:
        return "a partition without aggregates"
    if select.statuses not in (frozenset({1}), frozenset({-1})):
        return "rows that are in from before"
    calls, dead = tuple(kept(each) for each in part.aggregates), select.statuses == frozenset({-1})
    types = list(kind.fields.values())
    reason = first(map(uncountable, calls)) or first(_difference(each, dead) for each in part.aggregates)
    unkeyed = (f"a key of type {types[place]}" if types[place].kind not in KEYS else None for place in part.key)
    reason = reason or first(unkeyed)
    keys = tuple((place, types[place]) for place in part.key)
    differences = frozenset(place for place, each in enumerate(part.aggregates) if each.difference)
    return reason or Totals(
        chain, keys, Lines(calls), differences, part.pinned, dead, select.test, select.columns
    )  # fmt: skip


def _difference(spec: AggregateSpec, dead: bool) -> str | None:
    return "the row that a difference replaces" if spec.difference and dead else None


def _alerts(
    spec: RunningSpec, correlation: CorrelationSpec, chains: list[Chained], kinds: Sequence[RowType], select: Projection
) -> Alerts | str:
    if select.statuses != frozenset({1}):
        return "alerts other than new ones"
    if any(chain.parts[0].key or chain.parts[0].aggregates for chain in spec.chains):
        return "an alert over partitions by a key, or with aggregates"
    if max(len(correlation.patterns), len(chains)) > _BITS:
        return f"an alert of more than {_BITS} patterns or windows"
    columns = [[Field(0, place, each) for place, each in enumerate(kind.fields.values())] for kind in kinds]
    identity = tuple(columns[chain][place] for chain, place in enumerate(correlation.identity))
    shown = tuple((chain, columns[chain][place]) for chain, place in correlation.columns)
    if identity[0].type.kind not in KEYS:
        return f"correlation by a {identity[0].type}"
    reason = first(against(field) for _, field in shown)
    patterns = tuple((_bits(each.present), _bits(each.absent)) for each in correlation.patterns)
    return reason or Alerts(tuple(chains), identity, patterns, shown, select.test, select.columns)


def _bits(places: frozenset[int]) -> int:
    return sum(1 << place for place in places)
