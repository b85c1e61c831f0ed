"""The rows that outputs of partitions may show, and which of them are there at an output.

They stand in this order: the latest of each group or total, those of totals of no rows of partitions that have begun, those
that have waited since before the step, and those that the step makes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.keys import whole
from rollup.engine.columns.cores.parts import Parts
from rollup.engine.columns.cores.projecting import projected
from rollup.engine.columns.evaluate import flags, passing, plain
from rollup.engine.columns.groups import Ints, equals
from rollup.engine.columns.rates.beats import Outputs
from rollup.engine.columns.rates.choosing import Chosen, Places, Rows
from rollup.engine.operators import LONG_MIN
from rollup.engine.rows.selects.projecting import Projection

Choosing = Callable[[Rows, int], tuple[Chosen, Places]]
At = Callable[[Ints], list[pa.Array]]
"""The columns of the rows at some places."""


def signed(table: pa.Table) -> pa.Table:
    """Rows of a state; in those of earlier versions all have come."""
    if "sign" in table.column_names:
        return table
    return table.add_column(2, "sign", pa.array(np.ones(table.num_rows, np.int8)))


OWN = 4
"""So many columns of a table of rows stand before theirs."""


def table_of(rows: Rows, part: Ints, columns: Sequence[pa.Array]) -> pa.Table:
    """Rows of some partitions and groups."""
    own = {"part": part, "unit": rows.unit, "sign": rows.sign, "passes": rows.passes}
    return pa.table(
        [*map(pa.array, own.values()), *columns], names=[*own, *(f"column{i}" for i in range(len(columns)))]
    )


@dataclass(frozen=True)
class There:
    """The row of each group of its partition at each output, with the group and the output; of each group of those that live on
    the row now, and as it was at the last output (-1: there was none).
    """

    place: Ints
    unit: Ints
    output: Ints
    now: Ints
    shown: Ints

    def of(self, output: Ints, unit: Ints) -> Ints:
        """The row at some outputs of some groups, -1 of one that is not there."""
        most = max(int(self.unit.max(initial=0)), int(unit.max(initial=0))) + 1
        key, wanted = self.output * most + self.unit, output * most + unit
        order = np.argsort(key)
        key = key[order]
        found = np.searchsorted(key, wanted)
        there = np.append(key, -1)[found] == wanted
        return np.where(there, np.append(self.place[order], -1)[found], -1)


@dataclass(frozen=True)
class Known:
    """The rows of a step; `total`: the latest are a row for each partition that was there before. A row whose group does not
    matter is of none, less than 0.
    """

    projection: Projection
    parts: Parts
    outputs: Outputs
    latest: pa.Table
    waiting: pa.Table
    total: bool

    @cached_property
    def begun(self) -> int:
        """How many partitions have begun of which there is a total of no rows."""
        return self.parts.count - self.latest.num_rows if self.total else 0

    @property
    def since(self) -> int:
        """Where those stand that outputs have not shown."""
        return self.latest.num_rows + self.begun

    @property
    def made(self) -> int:
        """Where those stand that the step makes."""
        return self.since + self.waiting.num_rows

    @cached_property
    def part(self) -> Ints:
        """The partition of each."""
        begun = np.arange(self.latest.num_rows, self.since)
        return np.concatenate([_ints(self.latest, "part"), begun, _ints(self.waiting, "part"), self.parts.part])

    @cached_property
    def _unit(self) -> Ints:
        group = self.parts.group
        if group is None:
            return self.part
        begun = np.empty(0, np.int64)
        return np.concatenate([_ints(self.latest, "unit"), begun, _ints(self.waiting, "unit"), group])

    @cached_property
    def _passes(self) -> np.ndarray:
        having, parts = self.projection.having, self.parts
        begun, made = (
            flags(passing(having, columns, rows), rows) if rows else np.empty(0, bool)
            for columns, rows in ((parts.nothing, self.begun), (parts.columns, parts.rows))
        )
        held = (each["passes"].to_numpy() for each in (self.latest, self.waiting))
        return np.concatenate([next(held), begun, next(held), made])

    @cached_property
    def _place(self) -> Ints:
        """The place among outputs that shows each."""
        found = self.outputs.first[self.part]
        found[self.made :] = self.outputs.move[self.parts.move]
        return found

    @cached_property
    def rows(self) -> Rows:
        """What there is to choose from."""
        interval = self.outputs.numbered(self.parts.alive)[self._place]
        return Rows(interval, self._unit, self._sign, self._passes)

    @cached_property
    def _sign(self) -> np.ndarray:
        found = np.ones(len(self.part), np.int8)
        if self.parts.sign is not None:
            found[self.since : self.made] = self.waiting["sign"].to_numpy()
            found[self.made :] = self.parts.sign
        return found

    def waited(self, choose: Choosing) -> tuple[Chosen, Ints]:
        """What outputs show of the rows since those before, and what waits on, of partitions that live on."""
        order = self.since + np.argsort(self.rows.interval[self.since :], kind="stable")
        chosen, stays = choose(self.rows.at(order), len(self.outputs.at))
        return Chosen(order[chosen.place], chosen.output, chosen.sign), self._living(order[stays])

    def touched(self) -> tuple[np.ndarray, Ints]:
        """Which outputs come after a change, and the changes that wait on."""
        interval, outputs = self.rows.interval, len(self.outputs.at)
        found = np.zeros(outputs, bool)
        found[interval[self.since :][interval[self.since :] < outputs]] = True
        waits = np.flatnonzero(interval >= outputs)
        return found, self._living(waits[waits >= self.since])

    def _living(self, places: Ints) -> Ints:
        return places[self.parts.alive[self.part[places]]]

    @cached_property
    def there(self) -> There:
        """Which rows are there when."""
        outputs, (unit, named) = self.outputs, self._in_turn
        base = unit * self._most
        held = np.arange(len(base)) < self.since
        key = base + 2 * self._place + np.where(held, 0, 1)
        order = np.argsort(key, kind="stable")
        key, unit = key[order], unit[order]
        ends = np.flatnonzero(np.diff(unit, append=LONG_MIN)) if len(unit) else np.empty(0, np.int64)
        units, parts = unit[ends], self.part[order[ends]]
        output, which = equals(outputs.part, parts)
        at = np.searchsorted(key, units[which] * self._most + 2 * outputs.place[output] + 1, "right") - 1
        known = (at >= 0) & (unit[at] == units[which]) if len(unit) else np.zeros(0, bool)
        until = units * self._most + 2 * outputs.waits[parts]
        shown = np.searchsorted(key, until, "right") - 1
        before = np.where((shown >= 0) & (unit[shown] == units), order[shown], -1) if len(unit) else shown
        lives = self.parts.alive[parts] & (units >= 0)
        now = order[np.searchsorted(key, until + 1, "right") - 1]
        return There(order[at[known]], named[unit[at[known]]], output[known], now[lives], before[lives])

    @cached_property
    def _in_turn(self) -> tuple[Ints, Ints]:
        """The group of each row by numbers in the order in which their first rows came, which is another than that of the groups
        where a window holds rows back; and the group of each such number. What is of none stays so.
        """
        unit = self._unit
        first = np.full(int(unit.max(initial=-1)) + 1, len(unit))
        there = np.flatnonzero(unit >= 0)
        first[unit[there[::-1]]] = there[::-1]
        named = np.argsort(first, kind="stable")
        numbers = np.empty(len(first), np.int64)
        numbers[named] = np.arange(len(first))
        found = unit.copy()
        found[there] = numbers[unit[there]]
        return found, np.append(named, -1)

    @cached_property
    def _most(self) -> int:
        return 2 * int(self.outputs.waits[-1] + 1) + 2 if len(self.outputs.waits) else 2

    def columns(self, used: Sequence[Ints]) -> At:
        """The columns of those rows that are used."""
        parts, made = self.parts, self.made
        marks = np.zeros(len(self.part), bool)
        marks[:made] = True
        for places in used:
            marks[places] = True
        fresh, numbers = np.flatnonzero(marks[made:]), np.cumsum(marks) - 1
        new = parts.columns
        if len(fresh) < parts.rows:
            new = [column.take(pa.array(fresh)) for column in new]
        begun = projected(self.projection, parts.nothing, self.begun) if self.begun else ()
        of_step = projected(self.projection, new, len(fresh))
        found = list[pa.Array]()
        for i, column in enumerate(of_step):
            held = [whole(each.column(OWN + i)) for each in (self.latest, self.waiting)]
            several = [held[0], *([plain(begun[i])] if self.begun else []), held[1], plain(column)]
            found.append(pa.concat_arrays(several))
        return lambda places: [column.take(pa.array(numbers[places])) for column in found]

    def table(self, places: Ints, columns: At) -> pa.Table:
        """Some rows, with their partitions and groups as they are numbered after the step."""
        part = (np.cumsum(self.parts.alive) - 1)[self.part[places]]
        unit, regrouped = self._unit[places], self.parts.regrouped
        if self.parts.group is None:
            unit = part
        elif regrouped is not None:
            unit = np.where(unit < 0, unit, regrouped[unit])
        rows = Rows(self._place[places], unit, self._sign[places], self._passes[places])
        return table_of(rows, part, columns(places))


def _ints(table: pa.Table, name: str) -> Ints:
    return table[name].to_numpy()
