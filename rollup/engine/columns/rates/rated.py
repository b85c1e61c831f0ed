"""Output rates: what a core gives waits for an output, every so often or every so many rows.

State: that of the core; `waiting`, the rows since the last output that the next one may show; where outputs show what is
there, `latest`: the row of each group as it is now. Of a total, that is now and as it was at the last output.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import TIMER, Batch, Output
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.projecting import FilterProject, Made, projected
from rollup.engine.columns.evaluate import passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.choosing import Chosen, Rows, everything, groups, last, total
from rollup.engine.columns.rates.intervals import Changes
from rollup.engine.rows.plans import Emitted
from rollup.engine.state import State

Shows = Literal["everything", "last", "all", "there"]
"""What an output shows: all rows of its interval; the last of each group; the row of each group that there ever was; of
each that is there. Rows without groups are one group."""


@dataclass(frozen=True)
class Due:
    """Outputs: when, the batch's event that brings each or TIMER; and of each row after how many of them it comes."""

    at: Ints
    event: Ints
    interval: Ints


@dataclass(frozen=True)
class Rated:
    """What a core makes of a stream whose fields are of `kinds`, shown every `span` or after `limit` rows, one of them 0.

    `total`: there is one row that changes. `lazy`: aggregates are worked out at an output, so that one who looks at them
    between two sees those of the last.
    """

    core: FilterProject | Folded
    kinds: tuple[pa.DataType, ...]
    shows: Shows
    span: int
    limit: int
    total: bool
    lazy: bool
    emitted: Emitted

    # state

    def start(self, now: int) -> State:
        """Nothing waits, and the clock of the outputs rests."""
        core = self.core.start(now)
        latest = self.rows([(0, 1, self._first_total())] * 2 if self.total else [])
        return self.state({"core": core, "shown": core}, self.rows([]), latest, (None, 0, 0))

    def state(
        self, inner: dict[str, State], waiting: pa.Table, latest: pa.Table, counts: tuple[int | None, int, int]
    ) -> State:
        """The state of the whole: of the core, now and as it was `shown` last; `counts`: what is due when, what came and
        what left since the last output.
        """
        due, inserted, removed = counts
        own = {"now": inner["core"].scalars["now"], "due": due, "inserted": inserted, "removed": removed}
        held = inner if self.lazy else {"core": inner["core"]}
        return State.holding(held, own, {"waiting": waiting, "latest": latest})

    def _first_total(self) -> list[Any] | None:
        """The row of no events; None where it does not fulfil `having`."""
        assert isinstance(self.core, Folded)
        columns, projection = self.core.nothing(), self.core.projection
        passed = passing(projection.having, columns, 1)
        if passed is not None and not passed[0].as_py():
            return None
        return [column[0].as_py() for column in projected(projection, columns, 1)]

    @cached_property
    def _columns(self) -> list[pa.DataType]:
        nothing = Batch.of([pa.array([], kind) for kind in self.kinds], [], 0)
        found = self.core.made(self.core.start(0), nothing)[1].output(self.core.projection)
        return [column.type for column in found.columns]

    def rows(self, found: Sequence[tuple[int, int, Sequence[Any] | None]]) -> pa.Table:
        """Rows that wait, of group, sign and values; without values, one that does not fulfil `having`."""
        nothing = (None,) * len(self._columns)
        values = [nothing if row is None else row for _, _, row in found]
        columns = [pa.array([row[i] for row in values], kind) for i, kind in enumerate(self._columns)]
        passes = np.array([row is not None for _, _, row in found], bool)
        units, signs = (
            np.array([unit for unit, _, _ in found], np.int64),
            np.array([each for _, each, _ in found], np.int8),
        )
        return _table(Rows(units, units, signs, passes), columns)

    # steps

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The outputs that are due by the batch's end, and those that its events bring about."""
        return self.shown(state, batch, None)

    def shown(self, state: State, batch: Batch, ticks: Ints | None) -> tuple[State, Output]:
        """A step with outputs by the clock at these instants; None: at those that are due."""
        before = state.held()
        after, made = self.core.made(before["core"], batch)
        instants = np.empty(0, np.int64) if ticks is None else ticks
        due: int | None = state.scalars["due"]
        if self.span and due is None and len(made.taken.times):
            due = int(made.taken.times[0]) + self.span
        if ticks is None and due is not None:
            instants = np.arange(due, after.scalars["now"] + 1, self.span)
            due += self.span * len(instants)
        outputs, inserted, removed = self._due(state, made, instants)
        waiting, latest = state.tables["waiting"], state.tables["latest"]
        rows = self._rows(outputs, made, latest, waiting)
        chosen, stay, now = self._chosen(rows, outputs, before["core"], after, made)
        chosen = chosen.coming if self.emitted == "new" else chosen
        columns = self._projected(made, latest, waiting, [chosen.place, stay, now])
        inner = {"core": after, "shown": self._until(before, batch, outputs)}
        left = [_table(rows.at(places), columns(places)) for places in (stay, now)]
        found = self._output(chosen, outputs, columns(chosen.place))
        return self._compacted(self.state(inner, left[0], left[1], (due, inserted, removed))), found

    def _due(self, state: State, made: Made, ticks: Ints) -> tuple[Due, int, int]:
        """The outputs of a step."""
        if self.span:
            timed = made.at if made.event is None else np.where(made.event == TIMER, made.at - 1, made.at)
            return Due(ticks, np.full(len(ticks), TIMER), np.searchsorted(ticks, timed, "right")), 0, 0
        changes = Changes(made)
        ends, *counts = changes.counted(self.limit, state.scalars["inserted"], state.scalars["removed"])
        found = Due(changes.at[ends], changes.event[ends], np.searchsorted(ends, changes.of_rows))
        return found, counts[0], counts[1]

    def _rows(self, outputs: Due, made: Made, latest: pa.Table, waiting: pa.Table) -> Rows:
        """What there is to choose from: the latest rows, those that wait, and new ones."""
        new, having = len(made.at), self.core.projection.having
        passes = passing(having, made.columns, new)
        parts = [
            (table["unit"].to_numpy(), table["sign"].to_numpy(), table["passes"].to_numpy())
            for table in (latest, waiting)
        ]
        units = np.zeros(new, np.int64) if made.group is None or not self.by_unit else made.group
        signs = np.ones(new, np.int8) if made.sign is None else made.sign
        passed = np.ones(new, bool) if passes is None else passes.to_numpy(zero_copy_only=False)
        unit, sign, passed = (np.concatenate(each) for each in zip(*parts, (units, signs, passed), strict=True))
        before = np.repeat([-1, 0], [latest.num_rows, waiting.num_rows])
        return Rows(np.concatenate([before, outputs.interval]), unit, sign, passed)

    @property
    def by_unit(self) -> bool:
        """Whether it matters of which group a row is."""
        return isinstance(self.core, Folded) and bool(self.core.keys) and self.shows != "everything"

    def _chosen(self, rows: Rows, outputs: Due, before: State, after: State, made: Made) -> tuple[Chosen, Ints, Ints]:
        """What the outputs show, what waits on, and what is latest then."""
        number, nothing = len(outputs.at), np.empty(0, np.int64)
        if self.total:
            return total(rows, number, self.shows)
        if self.shows == "everything":
            return *everything(rows, number), nothing
        if self.shows == "last":
            return *last(rows, number, isinstance(self.core, Folded) and self.core.by_group), nothing
        assert isinstance(self.core, Folded)
        every = self.shows == "all"
        until = np.minimum(outputs.at, after.scalars["now"])  # what a clock that jumps shows has not left its window
        there = None if every else self.core.there(before, made, until, outputs.event)
        return groups(rows, number, after.tables["groups"].num_rows, every, there)

    def _projected(self, made: Made, latest: pa.Table, waiting: pa.Table, used: Sequence[Ints]) -> Any:
        """The columns of rows at some places, of those that are used."""
        known = latest.num_rows + waiting.num_rows
        marks = np.zeros(known + len(made.at), bool)
        marks[:known] = True
        for places in used:
            marks[places] = True
        fresh = np.flatnonzero(marks[known:])
        every, numbers = len(fresh) == len(made.at), np.cumsum(marks) - 1
        taken = made.columns if every else [column.take(pa.array(fresh)) for column in made.columns]
        new = [plain(column) for column in projected(self.core.projection, taken, len(fresh))]
        all_of = [
            pa.concat_arrays([*latest.column(i).chunks, *waiting.column(i).chunks, column])
            for i, column in enumerate(new, 3)
        ]

        def columns(at: Ints) -> list[pa.Array]:
            place = pa.array(at if every else numbers[at])
            return [column.take(place) for column in all_of]

        return columns

    def _output(self, chosen: Chosen, outputs: Due, columns: Sequence[pa.Array]) -> Output:
        at, event = outputs.at[chosen.output], outputs.event[chosen.output]
        sign = None if self.emitted == "new" else chosen.sign
        return Output(at, event, tuple(columns), sign=sign, ticks=outputs.at if self.span else None).emitted(
            self.emitted
        )

    def _until(self, before: dict[str, State], batch: Batch, outputs: Due) -> State:
        """The state of the core at the last output of a step."""
        if not self.lazy or not len(outputs.at):
            return before.get("shown", before["core"])
        at, event = int(outputs.at[-1]), int(outputs.event[-1])
        times = np.maximum(batch.times, before["core"].scalars["now"])
        part = batch.part(0, event + 1 if event >= 0 else int(np.searchsorted(times, at)))
        return self.core.made(before["core"], replace(part, now=at))[0]

    def _compacted(self, state: State) -> State:
        """Groups that have emptied leave, but for those that wait and where each that there ever was is shown."""
        if not isinstance(self.core, Folded) or self.shows in ("all", "there"):
            return state
        inner, waiting = state.held(), state.tables["waiting"]
        units = waiting["unit"].to_numpy()
        core, numbers = self.core.compacted(inner["core"], units)
        if numbers is None:
            return state
        own = {"waiting": waiting.set_column(0, "unit", pa.array(numbers[units])), "latest": state.tables["latest"]}
        return State.holding({**inner, "core": core}, state.scalars, own)


def _table(rows: Rows, columns: Sequence[pa.Array]) -> pa.Table:
    names = ["unit", "sign", "passes", *(f"column{i}" for i in range(len(columns)))]
    return pa.table([*map(pa.array, (rows.unit, rows.sign, rows.passes)), *columns], names=names)
