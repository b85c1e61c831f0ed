"""Statements that differ only in a literal, `S(symbol = 'K7')`, as one: however many there are, an event is one look-up.

State: the clock. The values are the family's, in order of deployment; rows of one event come in that order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.core.errors import PlanError
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.core import Core
from rollup.engine.columns.cores.covering import first
from rollup.engine.columns.cores.keys import KeyCodes
from rollup.engine.columns.cores.projecting import FilterProject, Taken, projected
from rollup.engine.columns.evaluate import passing
from rollup.engine.columns.groups import Ints, spans
from rollup.engine.expressions import Const
from rollup.engine.rows.plans import Filter
from rollup.engine.state import State
from rollup.engine.types import DataType, Kind, RowType


@dataclass(frozen=True)
class Family(Core):
    """`like`: the statements without their equality; `place`: the field that they compare, with `values[i]` in the i-th."""

    like: FilterProject
    place: int
    values: tuple[str | int, ...]
    _codes: KeyCodes = field(default_factory=KeyCodes, compare=False, repr=False)

    @cached_property
    def _known(self) -> pa.Array:
        return pa.array(list(dict.fromkeys(self.values)))

    @cached_property
    def _statements(self) -> tuple[Ints, Ints, Ints]:
        """For each different value where its statements begin in the third array, and how many they are."""
        known = {value: code for code, value in enumerate(self._known.to_pylist())}
        codes = np.array([known[value] for value in self.values], np.int64)
        counts = np.bincount(codes, minlength=len(known))
        return np.cumsum(counts) - counts, counts, np.argsort(codes, kind="stable")

    def start(self, now: int) -> State:
        """The clock."""
        return self.like.start(now)

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """A row for each event and statement that it concerns."""
        before: int = state.scalars["now"]
        taken = Taken.of(batch, before, self.like.filter, self.like.where)
        codes = self._codes.found(self._known, taken.columns[self.place])
        begins, counts, statements = self._statements
        hit = np.flatnonzero(codes >= 0)
        each = counts[codes[hit]]
        rows = np.repeat(hit, each)
        statement = statements[spans(begins[codes[hit]], each)]
        everyone = len(rows) == len(taken.times) and len(hit) == len(rows)
        columns = taken.columns if everyone else tuple(c.take(pa.array(rows)) for c in taken.columns)
        projection = self.like.projection
        made = projected(projection, columns, len(rows))
        found = Output(taken.times[rows], taken.places[rows], made, statement)
        mask = passing(projection.having, columns, len(rows))
        now = max(before, batch.now)
        return State(scalars={"now": now}), found if mask is None else found.where(mask)


def families(cores: Mapping[str, FilterProject], stream: RowType) -> list[tuple[Family, list[str]]]:
    """The families among some statements over one stream, with the statements' names in the order of their values.

    Raises PlanError for a statement that has no equality with a literal: `may_join` says it beforehand.
    """
    found: dict[tuple[FilterProject, int, type], tuple[list[str | int], list[str]]] = {}
    for name, core in cores.items():
        reason = may_join(core, stream)
        if reason is not None:
            raise PlanError(f"`{name}` is of no family: {reason}")
        place, value = core.filter.equals[0]
        assert isinstance(value, Const)
        like = replace(core, filter=Filter(core.filter.stream, core.filter.equals[1:], core.filter.test))
        values, names = found.setdefault((like, place, type(value.value)), ([], []))
        values.append(value.value)
        names.append(name)
    return [(Family(like, place, tuple(values)), names) for (like, place, _), (values, names) in found.items()]


def may_join(core: FilterProject, stream: RowType) -> str | None:
    """The first reason why a statement is of no family."""
    if not core.filter.equals:
        return "no equality with a literal"
    place, value = core.filter.equals[0]
    kind = list(stream.fields.values())[place]
    return first((None if _alike(kind, value.type) else f"a {kind} compared with a {value.type}",))


def _alike(one: DataType, other: DataType) -> bool:
    whole = (Kind.INT, Kind.LONG)
    return one.kind is other.kind is Kind.STRING or (one.kind in whole and other.kind in whole)
