"""`every a=A(…)` and `every (a=A(…) or b=B(…) …)`: each event that one of the filters takes is a match, in which the events of
the others are null. Nothing waits; an event that several take is that of the first.

State: the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.projecting import accepted
from rollup.engine.columns.evaluate import carried, evaluate, flags, passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.expressions import Expr
from rollup.engine.rows.plans import Filter
from rollup.engine.state import State
from rollup.engine.types import RowType

_NONE = -1


@dataclass(frozen=True)
class Alternatives:
    """`filters`: in the order in which they are asked, each with the number of the event in the match, where it has a name.

    `columns` and `test` see the fields of the events that have names, whose types are `types`; without `columns` the result is
    these events.
    """

    filters: tuple[tuple[Filter, int | None], ...]
    types: tuple[RowType, ...]
    columns: tuple[Expr, ...] | None = None
    test: Expr | None = None

    @property
    def events(self) -> list[tuple[int, int | None]]:
        """By which tags the events are, and the how manieth of them: the only one."""
        return [(tag, None) for tag in range(len(self.types))]

    def start(self, now: int) -> State:
        """The clock."""
        return State(scalars={"now": now})

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """A match for each event that one of the filters takes."""
        before: int = state.scalars["now"]
        took = self._took(batch)
        places = np.flatnonzero(took != _NONE)
        events = [self._event(number, batch, took[places], places) for number in range(len(self.types))]
        fields = [column for event, _ in events for column in event]
        if self.columns is None:
            shown = [
                pa.StructArray.from_arrays(event, list(kind.fields), mask=pa.array(missing))
                for kind, (event, missing) in zip(self.types, events, strict=True)
            ]
        else:
            shown = [evaluate(each, fields, len(places)) for each in self.columns]
        found = Output(np.maximum(batch.times[places], before), places, tuple(shown))
        mask = passing(self.test, fields, len(places))
        return State(scalars={"now": max(before, batch.now)}), found if mask is None else found.where(mask)

    def _took(self, batch: Batch) -> Ints:
        """Which of the filters takes each event."""
        took = np.full(batch.rows, _NONE)
        several = len({filter.stream for filter, _ in self.filters}) > 1
        for number, (filter, _) in enumerate(self.filters):
            if batch.stream == filter.stream or not several:
                passes = flags(accepted(filter, None, batch.columns, batch.rows), batch.rows)
                took[passes & (took == _NONE)] = number
        return took

    def _event(self, number: int, batch: Batch, took: Ints, places: Ints) -> tuple[Sequence[pa.Array], np.ndarray]:
        """The fields of the events with that number in matches, null in those that have none; and which these are."""
        filters = [place for place, (_, bound) in enumerate(self.filters) if bound == number]
        missing = ~np.isin(took, filters)
        if missing.all():  # the batch may be one of another stream
            return [pa.nulls(len(took), carried(kind)) for kind in self.types[number].fields.values()], missing
        taken = pa.array(places, mask=missing)
        return [plain(column).take(taken) for column in batch.columns], missing
