"""A join in a context: the same join without a context, with the number of the partition as one more field of its streams, which
is equal of all rows of a pair.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from rollup.engine.columns.cores.by_partition import numbered, of_each, of_numbered, recalls
from rollup.engine.columns.cores.covering import against, first
from rollup.engine.columns.cores.folded_joins import FoldedJoin, folded_pairs
from rollup.engine.columns.cores.joined import Joined, Places, flat, join_of
from rollup.engine.columns.cores.nested import divisions
from rollup.engine.columns.cores.partitioned import (
    Partitioned,
    Seeing,
    answered,
    known,
    properties,
    shown,
)
from rollup.engine.columns.cores.partitions import Division
from rollup.engine.conjunctions import conjunction, conjuncts
from rollup.engine.expressions import Call, Coalesce, Expr, Field, walk
from rollup.engine.operators import EQUAL
from rollup.engine.rows.contexts.levels import Context
from rollup.engine.rows.plans import Select, StreamInput
from rollup.engine.rows.selects.joining import JoinSpec
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.types import BOOL, LONG, DataType, RowType


@dataclass(frozen=True)
class _Whole:
    """A join, over streams that are `wider` by the number of the partition."""

    plan: Select
    spec: JoinSpec
    inputs: tuple[StreamInput, StreamInput]
    wider: Mapping[str, RowType]

    def kinds(self, place: int) -> list[DataType]:
        """The types of the fields of an input."""
        return list(self.wider[self.inputs[place].filter.stream].fields.values())

    @property
    def numbers(self) -> tuple[Field, Field]:
        """The number of the partition, of a row of each input."""
        return Field(0, len(self.kinds(0)) - 1, LONG), Field(1, len(self.kinds(1)) - 1, LONG)

    @property
    def number(self) -> Expr:
        """That of a pair: of the row that is never missing, if there is such."""
        one, other = self.numbers
        kind = self.spec.sides[0].kind
        return Coalesce(self.numbers, LONG) if kind == "full" else other if kind == "right" else one

    def core(self) -> tuple[Joined | FoldedJoin, Places] | str:
        """The join without a context, which shows all that is read of a pair, and where that is; or the first reason against it."""
        inner = of_numbered(self.plan, self.number)
        if isinstance(inner, str):
            return inner
        windows = [of_each(each.window, number) for each, number in zip(self.inputs, self.numbers, strict=True)]
        inputs = (replace(each, window=window) for each, window in zip(self.inputs, windows, strict=True))
        (side,) = self.spec.sides
        same = conjunction([Call(EQUAL, self.numbers, BOOL), *conjuncts(side.condition)])
        inner = replace(inner, inputs=tuple(inputs), join=replace(self.spec, sides=(replace(side, condition=same),)))
        read = tuple(
            each
            for expr in (*shown(self.plan.projection), self.number)
            for each in walk(expr)
            if isinstance(each, Field)
        )
        if inner.grouping is not None or inner.levels:
            return self._folded(inner if inner.grouping is not None else replace(inner, projection=Projection(read)))
        found = join_of(inner, self.wider, read)
        if isinstance(found, str):
            return found
        join, chosen, places = found
        return Joined(join, chosen, self._fields(places), inner.emitted), places

    def _folded(self, inner: Select) -> tuple[FoldedJoin, Places] | str:
        found = folded_pairs(inner, self.wider, False)
        if isinstance(found, str):
            return found
        core, places = found
        if core.apart:
            return "aggregates over a unidirectional join in a context"
        return replace(core, kept=True) if core.by_group and len(core.keys) == 1 else core, places

    def _fields(self, places: Places) -> tuple[Field, ...]:
        return tuple(Field(0, at, self.kinds(input)[index]) for (input, index), at in places.items())


def partitioned_join(plan: Select, context: Context, reads: Mapping[str, RowType]) -> Partitioned | str:
    """The core of a join in a context, or the first reason against it."""
    if plan.rate.limited:
        return "an output rate over a join in a context"
    match plan.inputs:
        case (StreamInput() as left, StreamInput() as right) if plan.join is not None:
            wider = {name: numbered(type) for name, type in reads.items()}
            join = _Whole(plan, plan.join, (left, right), wider)
        case _:
            return "a join of more than two, or with what is not a plain stream"
    found = divisions(context, reads)
    if isinstance(found, str):
        return found
    if recalls(plan) or not known(plan, found[0]):
        return "a look-up in a context"
    inner = join.core()
    return inner if isinstance(inner, str) else _shown(plan, found, join, *inner)


def _shown(
    plan: Select, found: tuple[Division, ...], join: _Whole, core: Joined | FoldedJoin, places: Places
) -> Partitioned | str:
    """The core with what the statement shows of its rows, or the first reason against it."""
    given, by_group = plan.projection, isinstance(core, FoldedJoin) and core.by_group
    if by_group and any(isinstance(each, Field) for column in shown(given) for each in walk(column)):
        return "a column that is neither a key nor an aggregate"
    if not by_group:
        having = None if given.having is None else flat(given.having, places)
        given = Projection(tuple(flat(each, places) for each in given.columns), having)
    number = Field(0, 0, LONG) if by_group else flat(join.number, places)
    type = RowType("pairs", {f"field{at}": join.kinds(input)[index] for (input, index), at in places.items()})
    seen, reason = Seeing(given, core, len(places)).projection, first(against(answered(each)) for each in shown(given))
    return reason or Partitioned(found, core, type, number, seen, properties(plan), plan.emitted)
