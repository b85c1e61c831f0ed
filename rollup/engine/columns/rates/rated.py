"""Output rates: what a core gives waits for an output, by the clock, or every so many rows.

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
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.projecting import FilterProject, Made, Moves, Pace, projected
from rollup.engine.columns.cores.queued import Queued
from rollup.engine.columns.evaluate import passing, plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.choosing import (
    Chosen,
    Places,
    Rows,
    each,
    everything,
    groups,
    last,
    last_of_each,
    total,
)
from rollup.engine.columns.rates.counts import Counts, Pacing
from rollup.engine.columns.rates.intervals import moves_of
from rollup.engine.row import nested
from rollup.engine.rows.plans import Emitted
from rollup.engine.rows.windows.counted import Length
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
    """What a core makes of a stream whose fields are of `kinds`, shown when `pacing` says.

    `total`: there is one row that changes. `lazy`: aggregates are worked out at an output, so that one who looks at them
    between two sees those of the last.
    """

    core: FilterProject | Folded
    kinds: tuple[pa.DataType, ...]
    shows: Shows
    pacing: Pacing
    total: bool
    lazy: bool
    emitted: Emitted

    # state

    def start(self, now: int) -> State:
        """Nothing waits, and the clock of the outputs rests."""
        core = self.core.start(now)
        latest = self.rows([(0, 1, self._first_total())] * 2 if self.total else [])
        return self.state({"core": core, "shown": core}, self.rows([]), latest, Counts())

    def state(
        self,
        inner: dict[str, State],
        waiting: pa.Table,
        latest: pa.Table,
        counts: Counts,
        until: Batch | None = None,
    ) -> State:
        """The state of the whole: of the core, now and, `until` these events, as it was `shown` last."""
        own = {"now": inner["core"].scalars["now"], **vars(counts)}
        tables = {"waiting": waiting, "latest": latest}
        if not self.lazy:
            return State.holding({"core": inner["core"]}, own, tables)
        batch = Batch.nothing(self.kinds, inner["shown"].scalars["now"]) if until is None else until
        names = [f"field{i}" for i in range(len(batch.columns))]
        tables["until"] = pa.table([pa.array(batch.times), *batch.columns], names=["time", *names])
        return State.holding(inner, {**own, "until": batch.now, "stream": batch.stream}, tables)

    def settled(self, state: State) -> State:
        """The same state, with the core as it was shown last worked out: a step only notes until which event that is."""
        if not self.lazy:
            return state
        inner, (times, *columns) = state.held(), state.tables["until"].columns
        batch = Batch(tuple(map(whole, columns)), times.to_numpy(), state.scalars["until"], _stream(state))
        shown = self.core.made(inner["shown"], self.core.taken(inner["shown"], batch))[0]
        return self.state({**inner, "shown": shown}, state.tables["waiting"], state.tables["latest"], Counts.of(state))

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
        start = self.core.start(0)
        taken = self.core.taken(start, Batch.nothing(self.kinds, 0))
        found = self.core.made(start, taken)[1].output(self.core.projection)
        return [column.type for column in found.columns]

    def rows(self, found: Sequence[tuple[int, int, Sequence[Any] | None]]) -> pa.Table:
        """Rows that wait, of group, sign and values; without values, one that does not fulfil `having`."""
        nothing = (None,) * len(self._columns)
        values = [nothing if row is None else row for _, _, row in found]
        columns = [pa.array([nested(row[i]) for row in values], kind) for i, kind in enumerate(self._columns)]
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

    def shown(self, state: State, batch: Batch, ticks: Ints | None, released: bool = False) -> tuple[State, Output]:
        """A step with outputs by the clock at these instants; None: at those that are due. `released`: what is due to leave
        the window does, late, and no event comes.
        """
        before, counts = state.held(), Counts.of(state)
        waiting, latest = state.tables["waiting"], state.tables["latest"]
        after, made, counts, instants = self._made(state, counts, batch, ticks, released)
        if made.interval is not None:
            waiting = waiting.slice(0, 0)  # they are among those that were made
        outputs, counts = self._due(counts, before["core"], made, instants)
        rows = self._rows(outputs, made, latest, waiting)
        chosen, stay, now = self._chosen(rows, outputs, before["core"], made, after)
        chosen = chosen.emitted(self.emitted)
        columns = self._projected(made, latest, waiting, [chosen.place, stay, now])
        waiting = _table(rows.at(stay), columns(stay))
        latest = _table(rows.at(now), columns(now)) if len(now) else latest
        found = self._output(chosen, outputs, columns(chosen.place))
        if self.shows not in ("all", "there"):
            after, waiting = self._compacted(after, waiting)
        return self._after(state, (before, after), (waiting, latest), counts, (batch, outputs)), found

    def _pace(self, state: State, ticks: Ints) -> Pace | None:
        """Where outputs divide a step, if they show only the latest row of each group; by rows these count from the first."""
        if self.shows == "everything" or not isinstance(self.core, Folded) or not self.core.by_group:
            return None
        counts = self.pacing.known(Counts.of(state))
        if not self.pacing.clock.runs and (self.pacing.rows is None or counts.inserted >= counts.limit):
            return None
        waiting = state.tables["waiting"]["unit"].to_numpy()
        return Pace(ticks, 0 if self.pacing.rows is None else counts.limit, counts.inserted, waiting)

    def _made(
        self, state: State, counts: Counts, batch: Batch, ticks: Ints | None, released: bool
    ) -> tuple[State, Made, Counts, Ints]:
        """What the core makes of a batch; when the clock is due then, and its outputs before."""
        core = state.held()["core"]
        taken = self.core.taken(core, batch)
        if isinstance(self.core, Queued):
            after, made = self.core.released(core, taken) if released else self.core.made(core, taken)
            return after, made, *self._ticks(counts, moves_of(made).at, taken.now, ticks)
        counts, instants = self._ticks(counts, taken.times, taken.now, ticks)
        return *self.core.made(core, taken, self._pace(state, instants)), counts, instants

    def _ticks(self, counts: Counts, at: Ints, now: int, ticks: Ints | None) -> tuple[Counts, Ints]:
        """When the clock, which the first change at these instants starts, is due after a step, and its outputs in that."""
        due, clock = counts.due, self.pacing.clock
        if clock.runs and due is None and len(at):
            due = clock.first(int(at[0]))
        if ticks is None:
            ticks = np.empty(0, np.int64)
            if due is not None:
                ticks, due = clock.until(due, now)
        return replace(counts, due=due), ticks

    def _due(self, counts: Counts, before: State, made: Made, ticks: Ints) -> tuple[Due, Counts]:
        """The outputs of a step."""
        pacing = self.pacing
        if pacing.clock.runs:
            interval = made.interval
            if interval is None:
                timed = made.at
                if made.event is not None:  # what the clock lets out is first
                    timed = np.where(made.event < 0, made.at - 1, made.at)
                interval = np.searchsorted(ticks, timed, "right")
            return Due(ticks, np.full(len(ticks), TIMER), interval), counts
        leaves = made.interval is None and (len(made.gone) or counts.removed or made.moves is not None)
        times, places = made.taken.times, made.taken.places
        counts = pacing.known(counts) if len(times) or leaves else counts
        if leaves:
            moves = self._moves(before, made)
            ends, counts = counts.ends(moves.come, moves.left)
            events = made.taken.placed(moves.event[ends])
            return Due(moves.at[ends], events, np.searchsorted(ends, moves.of_rows)), counts
        limit = max(counts.limit, 1)
        first = max(limit - counts.inserted, 1) - 1  # more may have come than a variable says by now
        ends = np.arange(first, len(times), limit)
        since = len(times) - 1 - int(ends[-1]) if len(ends) else counts.inserted + len(times)
        counts = replace(counts, inserted=since, removed=0)
        return Due(times[ends], places[ends], _intervals(made, ends)), counts

    def _moves(self, before: State, made: Made) -> Moves:
        """The changes of a step; of a window of length with what arrivals let out, which may bring an output, too."""
        moves = moves_of(made)
        if made.moves is not None or not isinstance(self.core, Folded) or not isinstance(self.core.window, Length):
            return moves
        room = self.core.window.size - before.tables["content"].num_rows
        return replace(moves, left=(moves.event >= room).astype(np.int64))

    def _rows(self, outputs: Due, made: Made, latest: pa.Table, waiting: pa.Table) -> Rows:
        """What there is to choose from: the latest rows, those that wait, and new ones."""
        new = len(made.at)
        unit = np.zeros(new, np.int64) if made.group is None or not self.by_unit else made.group
        sign = np.ones(new, np.int8) if made.sign is None else made.sign
        passes = made.passes(self.core.projection.having)
        found = [(outputs.interval, unit, sign, passes)]
        for interval, table in ((0, waiting), (-1, latest)):
            if table.num_rows:
                parts = (whole(table.column(i)).to_numpy(zero_copy_only=False) for i in range(3))
                found.insert(0, (np.full(table.num_rows, interval), *parts))
        return Rows(*found[0]) if len(found) == 1 else Rows(*map(np.concatenate, zip(*found, strict=True)))

    @property
    def by_unit(self) -> bool:
        """Whether it matters of which group a row is."""
        return isinstance(self.core, Folded) and bool(self.core.keys) and self.shows != "everything"

    def _chosen(self, rows: Rows, outputs: Due, before: State, made: Made, after: State) -> tuple[Chosen, Places, Ints]:
        """What the outputs show, what waits on, and what is latest then."""
        number, nothing = len(outputs.at), np.empty(0, np.int64)
        if self.total:
            return total(rows, number, self.shows)
        if self.shows == "everything":
            return *everything(rows, number), nothing
        if self.shows == "last":
            if made.interval is not None:
                return *each(rows, number), nothing
            if isinstance(self.core, Folded) and self.core.by_group:
                return *last(rows, number), nothing
            return *last_of_each(rows, number), nothing
        assert isinstance(self.core, Folded)
        every = self.shows == "all"
        until = np.minimum(outputs.at, made.taken.now)  # what a clock that jumps shows has not left its window
        there = None if every else self.core.there(before, made, until, outputs.event)
        return groups(rows, number, after.tables["groups"].num_rows, every, there)

    def _projected(self, made: Made, latest: pa.Table, waiting: pa.Table, used: Sequence[Places]) -> Any:
        """The columns of rows at some places, of those that are used."""
        known, rows, fields = latest.num_rows + waiting.num_rows, len(made.at), made.columns
        marks = np.zeros(known + rows, bool)
        marks[:known] = True
        for places in used:
            marks[places] = True
        every = bool(marks.all())
        numbers = None if every else np.cumsum(marks) - 1
        if not every:
            fresh = np.flatnonzero(marks[known:])
            fields, rows = [field.take(pa.array(fresh)) for field in fields], len(fresh)
        new = [plain(column) for column in projected(self.core.projection, fields, rows)]
        held = [*([latest] if latest.num_rows else []), *([waiting] if waiting.num_rows else [])]
        found = [_together([*(whole(each.column(i)) for each in held), column]) for i, column in enumerate(new, 3)]

        def columns(at: Places) -> list[pa.Array]:
            if isinstance(at, slice) and numbers is None:
                return [column[at] for column in found]
            place = pa.array(at if numbers is None else numbers[at])
            return [column.take(place) for column in found]

        return columns

    def _output(self, chosen: Chosen, outputs: Due, columns: Sequence[pa.Array]) -> Output:
        at, event = outputs.at[chosen.output], outputs.event[chosen.output]
        sign = None if self.emitted == "new" else chosen.sign
        ticks = None if self.pacing.rows is not None else (outputs.at, outputs.event)
        return Output(at, event, tuple(columns), sign=sign, ticks=ticks).emitted(self.emitted)

    def _after(
        self,
        state: State,
        cores: tuple[dict[str, State], State],
        tables: tuple[pa.Table, pa.Table],
        counts: Counts,
        shown: tuple[Batch, Due],
    ) -> State:
        """The state after a step: the core is shown as it was at the last output of it."""
        (before, after), (batch, outputs) = cores, shown
        if not self.lazy:
            return self.state({"core": after}, *tables, counts)
        if not len(outputs.at):
            found = self.state({"core": after, "shown": before["shown"]}, *tables, counts)
            until = {"until": state.tables["until"]}
            as_it_was = {"until": state.scalars["until"], "stream": _stream(state)}
            return State({**found.tables, **until}, {**found.scalars, **as_it_was})
        at, event = min(int(outputs.at[-1]), after.scalars["now"]), int(outputs.event[-1])
        times = np.maximum(batch.times, before["core"].scalars["now"])
        part = batch.part(0, event + 1 if event >= 0 else int(np.searchsorted(times, at)))
        return self.state({"core": after, "shown": before["core"]}, *tables, counts, replace(part, now=at))

    def _compacted(self, core: State, waiting: pa.Table) -> tuple[State, pa.Table]:
        """Groups that have emptied leave, but for those that wait."""
        if not isinstance(self.core, Folded):
            return core, waiting
        units = waiting["unit"].to_numpy()
        core, numbers = self.core.compacted(core, units)
        return core, waiting if numbers is None else waiting.set_column(0, "unit", pa.array(numbers[units]))


def _stream(state: State) -> str:
    """The stream of the events until which a core was shown last; states of earlier versions have only those of one stream."""
    return state.scalars.get("stream", "")


def _intervals(made: Made, ends: Ints) -> Ints:
    """After how many outputs each row comes, where each of these events, of those taken, brings about one."""
    if made.interval is not None:
        return made.interval
    sizes = np.diff(np.concatenate([[-1], ends, [len(made.taken.times) - 1]]))
    of_events = np.repeat(np.arange(len(sizes)), sizes)
    return of_events if made.event is None else of_events[made.event]


def _together(parts: Sequence[pa.Array]) -> pa.Array:
    return parts[0] if len(parts) == 1 else pa.concat_arrays(list(parts))


def _table(rows: Rows, columns: Sequence[pa.Array]) -> pa.Table:
    names = ["unit", "sign", "passes", *(f"column{i}" for i in range(len(columns)))]
    return pa.table([*map(pa.array, (rows.unit, rows.sign, rows.passes)), *columns], names=names)
