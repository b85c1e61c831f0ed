"""`output snapshot` of the rows that the window of each partition holds, as they came, with the aggregates of then; or of their
groups, as the first row of each came.

State: that of the core; `clocks`, of each partition; `latest`, the aggregates of each group as they are now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.apart import Apart
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.keys import KeyCodes, whole
from rollup.engine.columns.cores.parts import REST, Dues, Late, Parts, partitions_of
from rollup.engine.columns.cores.projecting import projected
from rollup.engine.columns.evaluate import arrow, evaluate, flags, passing, plain
from rollup.engine.columns.groups import Ints, spans
from rollup.engine.columns.rates.arriving import arrivals
from rollup.engine.columns.rates.beats import Clocks, Outputs
from rollup.engine.columns.rates.choosing import Rows
from rollup.engine.columns.rates.known import Known, table_of
from rollup.engine.columns.rates.of_each import ByBeats
from rollup.engine.expressions import Expr
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.rows.windows.expressed import ExpressedBatch
from rollup.engine.rows.windows.external import ExternalTimeBatch
from rollup.engine.state import State


@dataclass(frozen=True)
class EachContent(ByBeats):
    """Outputs that show what is in the windows; `values`: the aggregates, as the rows of the core have them; `keys`: by which rows
    stand in the window of a partition, as these came first ever.
    """

    values: tuple[Expr, ...]
    keys: tuple[Expr, ...]
    codes: KeyCodes = field(default_factory=KeyCodes, compare=False, repr=False)

    def start(self, now: int) -> State:
        """Nothing is held, and no clock runs."""
        state = self.state(self.core.start(now), Clocks.none(), self.rows([], []), self.known([], []))
        return self.step(state, Batch.nothing(self.kinds, now))[0]

    @staticmethod
    def state(core: State, clocks: Clocks, latest: pa.Table, known: pa.Array | None) -> State:
        """The state of the whole; `known`: the keys that have come, where rows stand by these."""
        own = {"clocks": pa.table(vars(clocks)), "latest": latest}
        own |= {} if known is None else {"keys": pa.table([known], names=["key"])}
        return State.holding({"core": core}, {"now": core.scalars["now"]}, own)

    def rows(self, places: Sequence[tuple[int, int]], values: Sequence[Sequence[Any]]) -> pa.Table:
        """The aggregates of some partitions and groups."""
        columns = [pa.array([row[i] for row in values], kind) for i, kind in enumerate(self._types)]
        part, unit = (np.array([place[i] for place in places], np.int64) for i in range(2))
        ones = np.ones(len(places), np.int8)
        return table_of(Rows(part, unit, ones, ones > 0), part, columns)

    @cached_property
    def _types(self) -> list[pa.DataType]:
        return self.types_of(Projection(self.values))

    def known(self, part: Sequence[int], keys: Sequence[Sequence[Any]]) -> pa.Array | None:
        """Keys of partitions, as they came; None where it does not matter."""
        columns = [pa.array([key[i] for key in keys], arrow(each.type)) for i, each in enumerate(self.keys)]
        return self._struct(pa.array(part, pa.int64()), columns) if self.keys else None

    @staticmethod
    def _struct(part: pa.Array, columns: Sequence[pa.Array]) -> pa.StructArray:
        return pa.StructArray.from_arrays([part, *columns], ["part", *(f"key{i}" for i in range(len(columns)))])

    def _standing(self, state: State, parts: Parts, part: Ints) -> tuple[tuple[Ints, ...], pa.Array | None]:
        """By which numbers rows stand, and the keys that have come then."""
        made = parts.made
        if not self.keys:
            return () if made.moves is None else made.moves.standing, None
        columns = [plain(evaluate(key, made.fields, len(part))) for key in self.keys]
        codes, known = self.codes.codes(
            whole(state.tables["keys"].column("key")), self._struct(pa.array(part), columns)
        )
        if not parts.alive.all():
            own, *columns = known.flatten()
            lives = pa.array(parts.alive[own.to_numpy()])
            places = np.cumsum(parts.alive) - 1
            kept = [each.filter(lives) for each in (pa.array(places[own.to_numpy()]), *columns)]
            known = self._struct(kept[0], kept[1:])
        return (codes,), known

    def shown(
        self, state: State, batch: Batch, until: int | None, dues: Dues | None = None, late: Late | None = None
    ) -> tuple[State, Output]:
        """A step."""
        before, latest, clocks = state.held()["core"], state.tables["latest"], self.clocks(state)
        core, parts = self.core.partings(before, batch, latest["unit"].to_numpy(), len(clocks.due), late)
        clocks = clocks.grown(parts.count)
        outputs, then = self.beats.outputs(clocks, parts, until, dues)
        known = Known(Projection(self.values), parts, outputs, latest, latest.slice(0, 0), False)
        part = partitions_of(parts.made, parts.named)
        standing, keys = self._standing(state, parts, part)
        come: int = before.held()["core"].scalars["come"]
        if self._waits:
            between = self._waiting(parts, part, outputs, clocks, come)
        else:
            between = _inside(parts, part, outputs, self._seen(parts, 0, come))
        row, output = _held(parts, outputs, *between, standing)
        if self._of_groups:
            assert parts.made.codes is not None
            row, output = _first_of_each(parts.made.codes, row, output)
        if self.emitted == "old":  # what is there has not left
            row, output = row[:0], output[:0]
        found = self._output(known, part[row], row, output)
        if self.values:
            now, rows = known.there.now, core.held()["core"].tables["groups"].column("rows").to_numpy()
            latest = known.table(now, known.columns([now]))
            latest = latest.filter(pa.array(rows[latest["unit"].to_numpy()] > 0))
        return self.state(core, then.where(parts.alive), latest, keys), found

    @property
    def _of_groups(self) -> bool:
        """Whether a row stands for a group."""
        return isinstance(self.core.inner, Folded) and self.core.inner.by_group

    @property
    def _waits(self) -> bool:
        """Whether rows are there while they wait for their batch."""
        return isinstance(self.core.inner, Apart) and self.core.inner.batches

    def _seen(self, parts: Parts, begin: int, end: int) -> Ints:
        """Those of some rows that are seen."""
        inner, made = self.core.inner, parts.made
        assert isinstance(inner, Apart)
        if not inner.behind:
            return np.arange(begin, end)
        fields = [each[begin:end] for each in made.fields]
        return begin + np.flatnonzero(flags(passing(inner.where, fields, end - begin), end - begin))

    def _waiting(self, parts: Parts, part: Ints, outputs: Outputs, clocks: Clocks, come: int) -> tuple[Ints, Ints]:
        """As `_inside`, of rows that wait for their batch; `come` have been in one. An output that a batch brings about shows that
        batch, unless another row has completed it, which waits for the next then.
        """
        moves = parts.made.moves
        assert moves is not None
        entering, brings = moves.listed[0], outputs.bringing(parts) & (self.beats.span == 0 and self._completed)
        begin, end = np.full(len(part), REST), outputs.waits[part] + 1
        held, seen = len(part) - len(parts.made.taken.times), self._seen(parts, come, len(part))
        begin[seen] = outputs.first[part[seen]]
        arrived = arrivals(parts, part[held:], outputs, clocks, self.beats.span)
        late = seen[seen >= held]
        begin[late] = arrived[late - held]
        end[entering] = (outputs.move + brings)[np.repeat(np.arange(len(moves.at)), moves.come)]
        return begin, end

    @property
    def _completed(self) -> bool:
        """Whether a batch has all that has come when it is complete."""
        assert isinstance(self.core.inner, Apart)
        window = self.core.inner.of_one
        return not isinstance(window, ExternalTimeBatch) and not (
            isinstance(window, ExpressedBatch) and not window.inclusive
        )

    def _output(self, known: Known, part: Ints, row: Ints, output: Ints) -> Output:
        """Some rows of the windows, each at an output, with the aggregates of then."""
        parts, made = known.parts, known.parts.made
        columns = [each.take(pa.array(row)) for each in made.fields]
        if self._of_groups:
            assert isinstance(self.core.inner, Folded)
            columns = [evaluate(key, columns, len(row)) for key in self.core.inner.keys]
        if self.values:
            assert made.codes is not None
            places = known.there.of(output, part if parts.group is None else made.codes[row])
            columns += self._aggregates(known, places)
        columns += parts.properties(part)
        projection = self.core.projection
        shown, passes = projected(projection, columns, len(row)), passing(projection.having, columns, len(row))
        if passes is not None:
            shown, output = [plain(each).filter(passes) for each in shown], output[flags(passes, len(row))]
        return self.of_outputs(known.outputs, output, shown, parts)

    def _aggregates(self, known: Known, places: Ints) -> Sequence[pa.Array]:
        """The aggregates at some places among what is known; less than 0: those of no rows."""
        there = places >= 0
        found = known.columns([places[there]])(places[there])
        if there.all():
            return found
        assert isinstance(self.core.inner, Folded)
        every = zip(found, self.core.inner.nothing(), strict=True)
        which = pa.array(np.where(there, np.cumsum(there) - 1, there.sum()))
        return [pa.concat_arrays([each, nothing.cast(each.type)]).take(which) for each, nothing in every]


def _first_of_each(group: Ints, row: Ints, output: Ints) -> tuple[Ints, Ints]:
    """Of rows at outputs the first of each group."""
    key = output * (int(group.max(initial=0)) + 1) + group[row]
    first = np.sort(np.unique(key, return_index=True)[1])
    return row[first], output[first]


def _inside(parts: Parts, part: Ints, outputs: Outputs, come: Ints) -> tuple[Ints, Ints]:
    """The place of the first output at which each row is there, and of that at which it no longer is; those of `come` were there
    before the step.
    """
    moves = parts.made.moves
    assert moves is not None
    entering, leaving = moves.listed
    begin, end = np.full(len(part), REST), outputs.waits[part] + 1
    begin[come] = outputs.first[part[come]]
    begin[entering] = outputs.move[np.repeat(np.arange(len(moves.at)), moves.come)]
    end[leaving] = outputs.move[np.repeat(np.arange(len(moves.at)), moves.left)]
    return begin, end


def _held(parts: Parts, outputs: Outputs, begin: Ints, end: Ints, standing: Sequence[Ints]) -> tuple[Ints, Ints]:
    """Which rows are there at which output, as they stand."""
    counts = np.maximum(end - begin, 0)
    row = np.repeat(np.arange(len(counts)), counts)
    output = outputs.numbered(parts.alive)[spans(np.where(counts > 0, begin, 0), counts)]
    shown = output < len(outputs.at)
    row, output = row[shown], output[shown]
    order = np.lexsort((row, *(each[row] for each in standing), output))
    return row[order], output[order]
