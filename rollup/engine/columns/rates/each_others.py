"""`output all` of a row for each row, by groups, in a context: the rows of an interval, and of each group that had none the
newest row with the aggregates of now. A group that has lost rows shows its newest row at that moment.

State: that of the core; `clocks`, of each partition; `waiting`, the rows of intervals that are not over; `latest`, the newest row
of each group that ever was, with the aggregates of now, and whether its interval has shown it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.parts import Dues, Late, Parts
from rollup.engine.columns.cores.projecting import projected
from rollup.engine.columns.evaluate import flags, passing, plain
from rollup.engine.columns.groups import Ints, equals
from rollup.engine.columns.rates.beats import Clocks, Outputs
from rollup.engine.columns.rates.choosing import Rows
from rollup.engine.columns.rates.known import OWN, table_of
from rollup.engine.columns.rates.of_each import ByWaiting
from rollup.engine.state import State


@dataclass(frozen=True)
class EachOthers(ByWaiting):
    """Outputs that also show the groups of which nothing has come."""

    def start(self, now: int) -> State:
        """Nothing waits, and no clock runs."""
        core, nothing = self.core.start(now), np.empty(0, np.int64)
        _, parts = self.core.partings(core, Batch.nothing(self.kinds, now), nothing, 0)
        shown = [plain(each) for each in projected(self.core.projection, parts.columns, 0)]
        empty = Rows(nothing, nothing, nothing.astype(np.int8), nothing > 0)
        tables = (table_of(empty, nothing, columns) for columns in (shown, list(map(plain, parts.made.columns))))
        return self.step(self.state(core, Clocks.none(), *tables), Batch.nothing(self.kinds, now))[0]

    def rows(
        self,
        empty: pa.Table,
        places: Sequence[tuple[int, int, int]],
        found: Sequence[Sequence[Any]],
        seen: Sequence[bool],
    ) -> pa.Table:
        """Rows of some partitions and groups that come (1) or leave (-1), as a table that is like an empty one."""
        part, unit, sign = (np.array([each[i] for each in places], np.int64) for i in range(3))
        columns = [pa.array([row[i] for row in found], each.type) for i, each in enumerate(empty.columns[OWN:])]
        return table_of(Rows(part, unit, sign.astype(np.int8), np.array(seen, bool)), part, columns)

    def shown(
        self, state: State, batch: Batch, until: int | None, dues: Dues | None = None, late: Late | None = None
    ) -> tuple[State, Output]:
        """A step."""
        waiting, latest, clocks = state.tables["waiting"], state.tables["latest"], self.clocks(state)
        core, parts = self.core.partings(state.held()["core"], batch, latest["unit"].to_numpy(), len(clocks.due), late)
        outputs, then = self.beats.outputs(clocks.grown(parts.count), parts, until, dues)
        step = Step.of(parts, outputs, latest)
        lines = step.lines(self.emitted != "new")
        columns = [*step.columns(lines.row, lines.of), *parts.properties(lines.part)]
        passes = flags(passing(self.core.projection.having, columns, len(lines.part)), len(lines.part))
        fresh = [plain(each) for each in projected(self.core.projection, columns, len(lines.part))]
        part = waiting["part"].to_numpy()
        number = np.concatenate([step.number(outputs.first[part]), lines.number])
        sign = np.concatenate([waiting["sign"].to_numpy(), lines.sign])
        passes = np.concatenate([np.ones(len(part), bool), passes])
        shown = [pa.concat_arrays([whole(held), new]) for held, new in zip(waiting.columns[OWN:], fresh, strict=True)]
        ends = len(outputs.at)
        which = np.flatnonzero(passes & (number < ends) & (sign > 0 if self.emitted == "new" else sign != 0))
        which = which[sign[which] < 0] if self.emitted == "old" else which
        which = which[np.lexsort((-sign[which], number[which]))]
        found = self.of_outputs(
            outputs, number[which], [each.take(pa.array(which)) for each in shown], parts,
            sign[which] if self.emitted == "both" else None,
        )  # fmt: skip
        stays = np.flatnonzero(passes & (number >= ends) & (number < ends + len(parts.alive)))
        owns = np.concatenate([part, lines.part])[stays]
        stays, owns = stays[parts.alive[owns]], owns[parts.alive[owns]]
        places = (np.cumsum(parts.alive) - 1)[owns]
        kept = Rows(places, places, sign[stays], np.ones(len(stays), bool))
        waiting = table_of(kept, places, [each.take(pa.array(stays)) for each in shown])
        return self.state(core, then.where(parts.alive), waiting, step.latest()), found


@dataclass(frozen=True)
class Lines:
    """Rows to be shown, in order: of which row the fields are and `of` which the aggregates; the partition, the number of the
    output, and whether they come or leave.
    """

    row: Ints
    of: Ints
    part: Ints
    number: Ints
    sign: np.ndarray

    @classmethod
    def together(cls, found: Sequence[Lines], order: Ints) -> Lines:
        """Several in an order."""
        every = (np.concatenate([getattr(each, one.name) for each in found])[order] for one in fields(cls))
        return cls(*every)


@dataclass(frozen=True)
class Step:
    """The newest row of each group from before, `held` of them, and behind them those that a step makes: of each its partition and
    group, the change that made it (-1: none), its place among the outputs, and whether it comes.
    """

    parts: Parts
    outputs: Outputs
    held: pa.Table
    part: Ints
    unit: Ints
    change: Ints
    place: Ints
    comes: np.ndarray

    @classmethod
    def of(cls, parts: Parts, outputs: Outputs, held: pa.Table) -> Step:
        """Of a step."""
        assert parts.group is not None
        own = held["part"].to_numpy()
        made = np.ones(parts.rows, bool) if parts.sign is None else parts.sign > 0
        return cls(
            parts, outputs, held,
            np.concatenate([own, parts.part]),
            np.concatenate([held["unit"].to_numpy(), parts.group]),
            np.concatenate([np.full(len(own), -1), parts.move]),
            np.concatenate([outputs.first[own], outputs.move[parts.move]]),
            np.concatenate([np.ones(len(own), bool), made]),
        )  # fmt: skip

    def number(self, places: Ints) -> Ints:
        """The numbers of outputs at some places."""
        return self.outputs.numbered(self.parts.alive)[places]

    def columns(self, row: Ints, of: Ints) -> list[pa.Array]:
        """The fields of some rows, with the aggregates of others."""
        inner = self.parts.made
        width = len(inner.fields) if inner.moves is not None else len(inner.taken.columns)
        every = zip(self.held.columns[OWN:], self.parts.made.columns, strict=True)
        return [
            pa.concat_arrays([whole(held), plain(made)]).take(pa.array(row if place < width else of))
            for place, (held, made) in enumerate(every)
        ]

    def lines(self, leaving: bool) -> Lines:
        """What outputs show, in order; `leaving`: with what leaves."""
        begin = self.held.num_rows
        made = np.arange(begin, len(self.unit))
        come, left = made[self.comes[made]], made[~self.comes[made]]
        lost = left[np.sort(np.unique(self.change[left] * self._most + self.unit[left], return_index=True)[1])]
        newest = self._last(np.flatnonzero(self.comes), self.change, self.unit[lost], self.change[lost])
        lost, newest = lost[newest >= 0], newest[newest >= 0]
        found = [self._lines(come, come, 1), self._lines(newest, lost, 1), self._others()]
        order = [(self.change[come], 0), (self.change[lost], 1), (np.full(len(found[2].row), 2**62), 2)]
        if leaving:
            found.append(self._lines(left, left, -1))
            order.append((self.change[left], 0))
        turn = np.concatenate([each for each, _ in order])
        kind = np.repeat([each for _, each in order], [len(each) for each, _ in order])
        return Lines.together(found, np.lexsort((kind, turn)))

    @cached_property
    def _most(self) -> int:
        return int(self.unit.max(initial=0)) + 1

    def _lines(self, row: Ints, of: Ints, sign: int) -> Lines:
        number = self.number(self.place[of])
        return Lines(row, of, self.part[of], number, np.full(len(of), sign, np.int8))

    def _last(self, among: Ints, by: Ints, unit: Ints, until: Ints) -> Ints:
        """Of some groups the last row `among` some until then, as told `by`; -1 where there is none."""
        room = int(max(by.max(initial=0), until.max(initial=0))) + 3
        key = self.unit[among] * room + by[among] + 1
        order = np.argsort(key, kind="stable")
        found = np.searchsorted(key[order], unit * room + until + 1, "right") - 1
        rows = np.append(among[order], -1)[found]  # before all of them stands none
        return np.where((rows >= 0) & (self.unit[rows] == unit), rows, -1)

    def _others(self) -> Lines:
        """Of the groups that an output has nothing of, the newest rows, as they came first."""
        outputs, units = self.outputs, self._units
        output, which = equals(outputs.part, self.part[self._first[units]])
        unit, until = units[which], outputs.place[output]
        newest = self._last(np.flatnonzero(self.comes), self.place, unit, until)
        of = self._last(np.arange(len(self.unit)), self.place, unit, until)
        told = self._told
        shown = np.isin(output * self._most + unit, self.number(self.place[told]) * self._most + self.unit[told])
        some = np.flatnonzero((newest >= 0) & ~shown)
        some = some[np.lexsort((self._first[unit[some]], output[some]))]
        ones = np.ones(len(some), np.int8)
        return Lines(newest[some], of[some], self.part[newest[some]], output[some], ones)

    @cached_property
    def _told(self) -> Ints:
        """The rows that have their groups shown in their interval."""
        seen = np.flatnonzero(self.held["passes"].to_numpy())
        return np.concatenate([seen, np.arange(self.held.num_rows, len(self.unit))])

    @cached_property
    def _first(self) -> Ints:
        """The first row of each group that has come, behind all rows of one that has none."""
        found = np.full(self._most, len(self.unit))
        come = np.flatnonzero(self.comes)[::-1]
        found[self.unit[come]] = come
        return found

    @cached_property
    def _units(self) -> Ints:
        """The groups of which rows have come, as they came first."""
        first = self._first
        units = np.flatnonzero(first < len(self.unit))
        return units[np.argsort(first[units])]

    def latest(self) -> pa.Table:
        """The newest row of each group after the step."""
        units, alive, ends = self._units, self.parts.alive, len(self.outputs.at)
        units = units[alive[self.part[self._first[units]]]]
        newest, of = np.full(self._most, -1), np.full(self._most, -1)
        newest[self.unit[self.comes]] = np.flatnonzero(self.comes)
        of[self.unit] = np.arange(len(self.unit))
        told = self._told[self.number(self.place[self._told]) >= ends]
        part = (np.cumsum(alive) - 1)[self.part[newest[units]]]
        regrouped = self.parts.regrouped
        unit = units if regrouped is None else regrouped[units]
        rows = Rows(part, unit, np.ones(len(units), np.int8), np.isin(units, self.unit[told]))
        return table_of(rows, part, self.columns(newest[units], of[units]))
