"""A chain of queries as one step: the rows of the first one's table go in, the rows of the last one's output come out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyarrow as pa

from rollup.engine.columns.groups import Bools, Ints
from rollup.engine.columns.slices import Slices
from rollup.engine.state import State
from rollup.lang.uql.ingress import text_of
from rollup.lang.uql.plan import ARRIVAL, Plan

States = tuple[State, ...]


@dataclass(frozen=True)
class Chain:
    """The queries of one text; its state is theirs, one after the other.

    >>> from rollup.lang.uql.catalog import Catalog
    >>> from rollup.lang.uql.plan import plan
    >>> schema = {"schemas": [{"name": "foo", "fields": [{"name": "x", "type": "integer64"}]}]}
    >>> chain = Chain(plan("from foo window slice 2 rows aggregate sum(x) as s append s to bar", Catalog.of(schema)))
    >>> chain.step(chain.start(), pa.table({"x": [1, 2, 3]}), 0)[1].to_pydict()
    {'column0': [3]}
    """

    plans: tuple[Plan, ...]

    @property
    def wall_clock(self) -> bool:
        """Whether time that passes without rows closes windows."""
        return any(plan.wall_clock for plan in self.plans)

    def start(self) -> States:
        """The states before the first row."""
        return tuple(plan.step.start() for plan in self.plans)

    def step(
        self, states: States, batch: pa.Table, arrival: int | Sequence[int], own: Bools | None = None
    ) -> tuple[States, pa.Table]:
        """One batch, and when its rows arrived: microseconds since the start of the query, one for all or one each.

        `own`, of a chain of one query: which rows are in windows, the others only close them.
        """
        return self._through(states, 0, batch, arrival, own)

    def closing(self, batch: pa.Table, arrival: Sequence[int]) -> Ints:
        """The places of the rows of a batch that may close a window of another key than theirs, of a chain of one query."""
        (plan,) = self.plans
        return plan.step.closing(batch.append_column(ARRIVAL, self._times(plan, arrival, batch.num_rows)))

    def advance(self, states: States, now: int) -> tuple[States, pa.Table]:
        """Time has passed without rows."""
        return self._ripple(states, now, finish=False)

    def next_close(self, states: States, now: int) -> int:
        """When the next window of the wall clock closes, in microseconds since the start of the query."""
        shapes = [plan.step.window.shape for plan in self.plans if plan.wall_clock]
        return min((shape.next_close(now) for shape in shapes if isinstance(shape, Slices)), default=now + 1_000_000)

    def finish(self, states: States, now: int) -> tuple[States, pa.Table]:
        """The input has ended: every window closes, those of later queries after they have had the last rows."""
        return self._ripple(states, now, finish=True)

    def _ripple(self, states: States, now: int, finish: bool) -> tuple[States, pa.Table]:
        outputs: list[pa.Table] = []
        for place, plan in enumerate(self.plans):
            step = plan.step
            state, output = step.finish(states[place]) if finish else step.advance(states[place], now)
            states = (*states[:place], state, *states[place + 1 :])
            if place + 1 < len(self.plans) and output.num_rows:
                states, output = self._through(states, place + 1, self._handed(place, output), now)
            if place + 1 == len(self.plans) or output.num_rows:
                outputs.append(output)
        return states, pa.concat_tables(outputs)

    def _through(
        self, states: States, first: int, batch: pa.Table, arrival: int | Sequence[int], own: Bools | None = None
    ) -> tuple[States, pa.Table]:
        """A batch for the query `first`, and what it gives for the ones after it."""
        for place in range(first, len(self.plans)):
            times = self._times(self.plans[place], arrival, batch.num_rows)
            state, output = self.plans[place].step.step(states[place], batch.append_column(ARRIVAL, times), own)
            states = (*states[:place], state, *states[place + 1 :])
            if place + 1 == len(self.plans):
                return states, output
            batch = self._handed(place, output)
            arrival = arrival if isinstance(arrival, int) else (arrival[-1] if len(arrival) else 0)
        raise AssertionError("a chain has queries")

    @staticmethod
    def _times(plan: Plan, arrival: int | Sequence[int], rows: int) -> pa.Array:
        """When the rows arrived; a plan whose windows do not close by it does not ask."""
        if not plan.wall_clock:
            return pa.nulls(rows, pa.int64())
        return pa.repeat(pa.scalar(arrival), rows) if isinstance(arrival, int) else pa.array(arrival, pa.int64())

    def _handed(self, place: int, output: pa.Table) -> pa.Table:
        """The output of a query as rows of the next one's table: by place, with the texts of times that it needs."""
        plan, after = self.plans[place], self.plans[place + 1]
        columns = {
            field.name: output.column(o.place) for o, field in zip(plan.outputs, after.table.fields, strict=True)
        }
        for o, field in zip(plan.outputs, after.table.fields, strict=True):
            if field.name in after.texts:
                columns[text_of(field.name)] = _text(output, o.place, o.text)
        return pa.table(columns)


def _text(output: pa.Table, place: int, text: int | None) -> pa.ChunkedArray:
    from rollup.lang.uql.egress import time_text

    if text is not None:
        return output.column(text)
    times = output.column(place).to_pylist()
    return pa.chunked_array([pa.array([None if time is None else time_text(time) for time in times], pa.string())])
