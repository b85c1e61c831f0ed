"""The join of two windows, or of a stream with a window, inner or outer, as a program: an arrival meets what the other side holds
then.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from rollup.engine.columns.cores.covering import first
from rollup.engine.columns.cores.selected import Selected, calls_of, hashed, of_program, uncounted
from rollup.engine.conjunctions import conjuncts
from rollup.engine.rows.plans import Input, Select, StreamInput
from rollup.engine.rows.selects.joining import WHOLE, JoinSpec
from rollup.engine.types import RowType


def joined(plan: Select, reads: Mapping[str, RowType], ordered: bool = False) -> Selected | str:
    """The core of a join of streams with those fields, or the first reason against it; `ordered`: the rows of an output are put
    in order, for which changes wait until then as they are.
    """
    spec, projection = plan.join, plan.projection
    if plan.lookups:
        return "look-ups beside a join"
    if spec is None or len(plan.inputs) != 2:
        return "a join of more than two"
    (side,) = spec.sides
    folds = bool(calls_of(plan)) or plan.grouping is not None
    reason = first(_unplain(input, place, spec) for place, input in enumerate(plan.inputs)) or uncounted(plan)
    outer = any(side.kind in WHOLE[place] and place != spec.only for place in range(2))
    if reason is not None or (outer and folds):  # a row that was alone does not leave its group when it gets a partner
        return reason or "aggregates over an outer join"
    tested, where = [*conjuncts(side.condition)], [*conjuncts(plan.where)]
    if side.kind == "inner":
        tested, where = [*tested, *where], []
    if plan.rate.limited or (folds and where):
        return of_program(plan, reads, tested, where, (), ordered)
    chosen = [*where, *conjuncts(projection.having)]
    if side.kind == "inner" and not folds:
        tested, chosen = [*tested, *chosen], []
    plan = replace(plan, projection=replace(projection, having=None))
    made = of_program(plan, reads, tested, (), chosen, ordered)
    if isinstance(made, str) and side.kind == "inner" and not folds:  # what no program tests is tested afterwards
        keys = [part for part in tested if hashed(part) is not None]
        made = of_program(plan, reads, keys, (), [part for part in tested if part not in keys], ordered)
    return made


def _unplain(input: Input, place: int, spec: JoinSpec) -> str | None:
    """The first reason against an input, whatever its window."""
    if not isinstance(input, StreamInput) or input.unnest or input.prior:
        return "a join with what is not a plain stream"
    if place == spec.only:
        return None if input.window is None else "a unidirectional join of a window"
    return "a join of a stream without a window" if input.window is None else None
