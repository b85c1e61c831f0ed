"""Aggregates in two steps: what is kept of a pane, and how a window's value is made of those. Not every one has such steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import gcd
from typing import TYPE_CHECKING

from sqlglot import exp

from rollup.engine.aggregates import known
from rollup.engine.aggregates.declaration import Aggregate
from rollup.engine.aggregates.partials import Moment
from rollup.engine.flows.flow import AT, Column, Monotone, Node, Relational, empty
from rollup.engine.flows.flow import column as flow_column
from rollup.engine.flows.grouping import Group, Hops
from rollup.engine.flows.panes import Merged
from rollup.lang.calcite.grouping import Grouping
from rollup.lang.calcite.semantics import AUXILIARY, Kind, Kinds, kind

if TYPE_CHECKING:
    from rollup.lang.calcite.planning.lowering import Lowering

Merge = Callable[[Sequence[exp.Expr]], exp.Expr]


@dataclass(frozen=True)
class Steps:
    """An aggregate's partial values, in Calcite's words, and the tree of DuckDB's that merges them, given their columns."""

    partials: tuple[exp.Expr, ...]
    merge: Merge


def merged(
    lowering: Lowering, node: Node, group: Grouping, keys: Sequence[exp.Expr], hops: Hops, kinds: Sequence[str]
) -> Merged | None:
    """Overlapping windows merged from panes; None where an aggregate cannot be, or there is nothing to merge."""
    of = lowering.kinds(node.columns)
    found = [steps(aggregate, of) for aggregate in group.aggregates]
    taken = [each for each in found if each is not None]
    if hops.width <= hops.every or len(group.sets) > 1 or group.groupings or len(taken) < len(found):
        return None
    size = gcd(hops.width, hops.every)
    partials = [lowering.ducked(part, node) for each in taken for part in each.partials]
    partials.append(exp.Min(this=flow_column(AT)))
    columns = [lowering.fresh(kind) for kind in lowering.aggregate_types(partials, node, True)]
    moves_ = [lowering.moving(key, node) for key in group.keys]
    inner = (lowering.fresh("BIGINT", Monotone()), *(lowering.fresh(k, m) for k, m in zip(kinds, moves_, strict=True)))
    over = replace(hops, every=size, width=size)
    pane = Group((node,), (*inner, *columns), tuple(keys), tuple(partials), group.sets, over)
    parts = iter([flow_column(c.name) for c in columns[:-1]])
    merges = tuple(each.merge([next(parts) for _ in each.partials]) for each in taken)
    values = tuple(lowering.fresh(kind) for kind in _types(merges, columns, lowering.engine))
    out = (lowering.fresh("BIGINT", Monotone()), *(lowering.fresh(c.type, c.monotone) for c in inner[1:]), *values)
    return Merged((pane,), out, merges, columns[-1], len(keys), hops.every, hops.width, hops.origin, size)


def _types(merges: Sequence[exp.Expr], columns: Sequence[Column], engine: Relational) -> list[str]:
    query = exp.select(*(merge.copy() for merge in merges)).from_("input")
    return engine.types(query, input=empty(columns, engine)) if merges else []


def steps(aggregate: exp.Expr, of: Kinds) -> Steps | None:
    """The steps of an aggregate over generated columns; None where merging would not give the very same value.

    Sums of doubles have none: added in another order they differ in the last digits.
    """
    if isinstance(aggregate, exp.Filter):
        inner = steps(aggregate.this, of)
        if inner is None:
            return None
        kept = (exp.Filter(this=part, expression=aggregate.expression.copy()) for part in inner.partials)
        return Steps(tuple(kept), inner.merge)
    if aggregate.find(exp.Distinct) or any(a.name.upper() in AUXILIARY for a in aggregate.find_all(exp.Anonymous)):
        return None
    function, summed = _STEPPED.get(type(aggregate)), isinstance(aggregate, (exp.Sum, exp.Avg))
    if function is None or aggregate.expressions or (summed and kind(aggregate.this, of) is not Kind.WHOLE):
        return None
    return _kept(function, _as("DECIMAL(38, 0)", aggregate.this.copy()) if summed else aggregate.this)


_STEPPED: Mapping[type[exp.Expr], Aggregate] = {
    exp.Count: known.COUNT,
    exp.Min: known.MIN,
    exp.Max: known.MAX,
    exp.Sum: known.SUM,
    exp.Avg: known.AVG,
}


def _kept(function: Aggregate, argument: exp.Expr) -> Steps:
    """The steps that tables have for a function; sums are made of a type that no number of rows makes too great."""
    kept = function.kept
    assert kept is not None

    def merge(columns: Sequence[exp.Expr]) -> exp.Expr:
        found = dict(zip((partial.name for partial in kept.partials), columns, strict=True))
        merged = {partial.name: partial.merge(lambda name: found[name].copy()) for partial in kept.partials}
        value = kept.value(lambda name: merged[name], ())
        return exp.TryCast(this=value, to=exp.DataType.build("BIGINT")) if function is known.SUM else value

    return Steps(tuple(partial.prepare(argument.copy(), _UNUSED) for partial in kept.partials), merge)


_UNUSED = Moment(exp.null(), exp.null())
"""None of these functions asks when a row came."""


def _as(name: str, value: exp.Expr) -> exp.Expr:
    return exp.cast(value, name, dialect="duckdb")
