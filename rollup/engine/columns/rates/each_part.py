"""Output rates in a context: each partition is shown by a clock or a count of its own, or when it ends.

State: that of the core; `clocks`, of each partition; `waiting`, the rows that its next output may show; where outputs show
what is there, `latest`: the row of each group as it is now, of a total as it was shown last where that is all one sees of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Core, Output
from rollup.engine.columns.cores.living import Living
from rollup.engine.columns.cores.partitioned import Partitioned
from rollup.engine.columns.cores.parts import Parts
from rollup.engine.columns.cores.projecting import projected
from rollup.engine.columns.evaluate import plain
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.beats import REST, Beats, Clocks
from rollup.engine.columns.rates.choosing import Chosen, everything, last, last_of_each
from rollup.engine.columns.rates.known import Known, table_of
from rollup.engine.state import State

Showing = Literal["everything", "last", "there", "first", "nothing"]
"""What an output shows: all rows; the last of each group; the row of each group, or of the total, as it is; no rows, but that
it is there. Or what comes first after an output is shown at once, and nothing else is."""


@dataclass(frozen=True)
class EachPart:
    """What a core makes of a stream whose fields are of `kinds`. `total`: a partition has one row that changes; `of_groups`: a
    row stands for a group; `lazy`: aggregates are worked out at an output, so that one who looks at them between two sees
    those of the last; `seen`: one sees the latest rows, not what the core has.
    """

    core: Living | Partitioned
    kinds: tuple[pa.DataType, ...]
    shows: Showing
    beats: Beats
    total: bool
    of_groups: bool
    lazy: bool
    seen: bool

    # state

    def start(self, now: int) -> State:
        """Nothing waits, and no clock runs."""
        nothing = np.empty(0, np.int64)
        empty = self.rows((), ())
        state = self.state(self.core.start(now), Clocks(nothing, nothing), empty, empty)
        return self.step(state, Batch.nothing(self.kinds, now))[0]

    @staticmethod
    def state(core: State, clocks: Clocks, waiting: pa.Table, latest: pa.Table) -> State:
        """The state of the whole."""
        own = {"clocks": pa.table({"due": clocks.due, "come": clocks.come}), "waiting": waiting, "latest": latest}
        return State.holding({"core": core}, {"now": core.scalars["now"]}, own)

    def rows(self, places: Sequence[tuple[int, int]], found: Sequence[Sequence[Any] | None]) -> pa.Table:
        """Rows of some partitions and groups; None is one that does not fulfil `having`."""
        values = [(None,) * len(self._types) if row is None else row for row in found]
        columns = [pa.array([row[i] for row in values], kind) for i, kind in enumerate(self._types)]
        part, unit = (np.array([place[i] for place in places], np.int64) for i in range(2))
        return table_of(part, unit, np.array([row is not None for row in found], bool), columns)

    @cached_property
    def _types(self) -> list[pa.DataType]:
        """The types of what is shown."""
        nothing = Batch.nothing(self.kinds, 0)
        _, parts = self.core.partings(self.core.start(0), nothing, np.empty(0, np.int64), 0)
        return [plain(each).type for each in projected(self.core.projection, parts.columns, len(parts.at))]

    @staticmethod
    def clocks(state: State) -> Clocks:
        """When partitions are due, and what has come since."""
        return Clocks(*(each.to_numpy() for each in state.tables["clocks"].columns))

    def due(self, state: State) -> int | None:
        """When an output by the clock is due next."""
        return self.clocks(state).next if self.beats.span and self.shows != "first" else None

    # steps

    def step(self, state: State, batch: Batch) -> tuple[State, Output]:
        """The outputs that are due by the batch's end, those that its events bring about, and those of partitions that end."""
        return self.shown(state, batch, max(batch.now, state.scalars["now"]))

    def late(self, state: State, batch: Batch, ends: bool) -> tuple[State, Output]:
        """What is due by the instant of a batch without events, and comes then: outputs, or (`ends`) what partitions that end
        show. Where the clock has jumped both come, as they were due.
        """
        inner, now = state.held()["core"], batch.now
        dues = self.core.dues(inner) if isinstance(self.core, Living) else np.empty(0, np.int64)
        outputs = self.due(state)
        jumped = (outputs is not None and outputs < now) or bool((dues < now).any())
        late = np.append(dues, np.full(len(self.clocks(state).due) - len(dues), REST))
        if isinstance(self.core, Living) and (ends or jumped):
            state = state.instead({"core": self.core.late(inner, now)})
        else:
            batch = replace(batch, now=state.scalars["now"])
        return self.shown(state, batch, now if jumped or not ends else None, late)

    def shown(self, state: State, batch: Batch, until: int | None, late: Ints | None = None) -> tuple[State, Output]:
        """A step with the outputs of the clock that are due by then (None: none); `late` as in `Beats.outputs`."""
        waiting, latest, clocks = state.tables["waiting"], state.tables["latest"], self.clocks(state)
        nothing = np.empty(0, np.int64)
        used = np.concatenate([each["unit"].to_numpy() for each in (waiting, latest)]) if self._by_unit else nothing
        since = latest.num_rows if self.total else len(clocks.due)
        core, parts = self.core.partings(state.held()["core"], batch, used, since)
        parts = parts if self._by_unit else replace(parts, group=None)
        clocks = clocks.grown(parts.count)
        outputs, then = self.beats.outputs(clocks, parts, until, late)
        known = Known(self.core.projection, parts, outputs, latest, waiting, self.total)
        if self.shows == "first":
            return self.state(core, then.where(parts.alive), waiting, latest), self._first(known, clocks)
        chosen, stays, now = self._chosen(known)
        columns = known.columns([np.asarray(chosen.place), stays, now])
        after = self.state(core, then.where(parts.alive), known.table(stays, columns), known.table(now, columns))
        return after, self._output(chosen, known, columns(np.asarray(chosen.place)))

    @property
    def _by_unit(self) -> bool:
        """Whether it matters of which group a row is."""
        return not self.total and (self.shows == "last" or (self.shows == "there" and self.of_groups))

    def _chosen(self, known: Known) -> tuple[Chosen, Ints, Ints]:
        """What the outputs show, what waits on, and what is latest then."""
        nothing = np.empty(0, np.int64)
        if self.shows == "nothing":
            return Chosen.of(known.rows, (nothing, nothing)), nothing, nothing
        if self.shows == "there" or (self.total and self.shows == "last"):
            there, latest = known.there()
            if not (self.total and self.lazy):
                return Chosen.of(known.rows, there), nothing, latest
            before = known.there(True)[1]
            return Chosen.of(known.rows, there), latest[latest != before], before
        if self.shows == "last":
            return *known.waited(last if self.of_groups else last_of_each), nothing
        chosen, stays = known.waited(everything)
        if not self.total:
            return chosen, stays, nothing
        (there, of), latest = known.there(self.lazy)
        touched, stays = known.touched()
        idle = ~touched[of]
        place, output = (
            np.concatenate([np.asarray(chosen.place), there[idle]]),
            np.concatenate([chosen.output, of[idle]]),
        )
        order = np.argsort(output, kind="stable")
        return Chosen.of(known.rows, (place[order], output[order])), stays, latest

    def _output(self, chosen: Chosen, known: Known, columns: Sequence[pa.Array]) -> Output:
        outputs, which = known.outputs, chosen.output
        told = outputs.forced.copy()
        told[which] = True
        by = outputs.at, outputs.event, outputs.part, outputs.early
        at, event, part, early = (each[which] for each in by)
        ticks = tuple(each[told] for each in by)
        return self._told(Output(at, event, tuple(columns), ticks=ticks, part=part, early=early), known.parts)

    def _told(self, output: Output, parts: Parts) -> Output:
        """With what is told of partitions that begin, if these never end."""
        return replace(output, begins=parts.begins, early=None) if isinstance(self.core, Partitioned) else output

    def _first(self, known: Known, clocks: Clocks) -> Output:
        """What comes first after an output of its partition."""
        parts, place = known.parts, known.outputs.arrival
        arrivals = parts.arrivals
        opens = np.zeros(len(place), bool)
        opens[np.unique(place, return_index=True)[1]] = True
        opens &= (place > known.outputs.first[arrivals.part]) | (clocks.come[arrivals.part] == 0)
        rows = known.made + np.flatnonzero(opens[parts.arrival])
        by = parts.arrival[opens[parts.arrival]]
        at, event, part, early = (each[by] for each in (arrivals.at, arrivals.event, arrivals.part, arrivals.begins))
        return self._told(Output(at, event, tuple(known.columns([rows])(rows)), part=part, early=early), parts)

    def contents(self, state: State) -> list[list[tuple[Any, ...]]] | None:
        """The rows of each partition, where they are the latest; None: they are what the core has now."""
        if not self.seen:
            return None
        latest = state.tables["latest"]
        latest = latest.filter(latest["passes"]).sort_by([("part", "ascending"), ("unit", "ascending")])
        found = dict[int, list[tuple[Any, ...]]]()
        for part, _, _, *row in zip(*(each.to_pylist() for each in latest.columns), strict=True):
            found.setdefault(part, []).append(tuple(row))
        return list(found.values())


def parted(core: Core) -> Core:
    """A core, or the one whose partitions it shows each by itself."""
    return core.core if isinstance(core, EachPart) else core
