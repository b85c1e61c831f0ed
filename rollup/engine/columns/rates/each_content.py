"""`output snapshot` of the rows that the window of each partition holds, as they came, with the aggregates of then.

State: that of the core; `clocks`, of each partition; `latest`, the aggregates of each group as they are now.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.apart import Apart
from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.parts import REST, Dues, Late, Parts, partitions_of
from rollup.engine.columns.cores.projecting import projected
from rollup.engine.columns.evaluate import arrow, flags, passing, plain
from rollup.engine.columns.groups import Ints, spans
from rollup.engine.columns.rates.beats import Clocks, Outputs
from rollup.engine.columns.rates.choosing import Rows
from rollup.engine.columns.rates.known import Known, table_of
from rollup.engine.columns.rates.of_each import ByBeats
from rollup.engine.expressions import Expr
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.state import State


@dataclass(frozen=True)
class EachContent(ByBeats):
    """Outputs that show what is in the windows; `values`: the aggregates, as the rows of the core have them."""

    values: tuple[Expr, ...]

    def start(self, now: int) -> State:
        """Nothing is held, and no clock runs."""
        state = self.state(self.core.start(now), Clocks.none(), self.rows([], []))
        return self.step(state, Batch.nothing(self.kinds, now))[0]

    @staticmethod
    def state(core: State, clocks: Clocks, latest: pa.Table) -> State:
        """The state of the whole."""
        own = {"clocks": pa.table(vars(clocks)), "latest": latest}
        return State.holding({"core": core}, {"now": core.scalars["now"]}, own)

    def rows(self, places: Sequence[tuple[int, int]], values: Sequence[Sequence[Any]]) -> pa.Table:
        """The aggregates of some partitions and groups."""
        columns = [pa.array([row[i] for row in values], arrow(each.type)) for i, each in enumerate(self.values)]
        part, unit = (np.array([place[i] for place in places], np.int64) for i in range(2))
        ones = np.ones(len(places), np.int8)
        return table_of(Rows(part, unit, ones, ones > 0), part, columns)

    def shown(
        self, state: State, batch: Batch, until: int | None, dues: Dues | None = None, late: Late | None = None
    ) -> tuple[State, Output]:
        """A step."""
        before, latest, clocks = state.held()["core"], state.tables["latest"], self.clocks(state)
        core, parts = self.core.partings(before, batch, latest["unit"].to_numpy(), len(clocks.due), late)
        outputs, then = self.beats.outputs(clocks.grown(parts.count), parts, until, dues)
        known = Known(Projection(self.values), parts, outputs, latest, latest.slice(0, 0), False)
        part = partitions_of(parts.made, parts.named)
        row, output = _held(parts, outputs, part, self._come(before, parts))
        if self.emitted == "old":  # what is there has not left
            row, output = row[:0], output[:0]
        found = self._output(known, part[row], row, output)
        if self.values:
            now, rows = known.there.now, core.held()["core"].tables["groups"].column("rows").to_numpy()
            latest = known.table(now, known.columns([now]))
            latest = latest.filter(pa.array(rows[latest["unit"].to_numpy()] > 0))
        return self.state(core, then.where(parts.alive), latest), found

    def _come(self, before: State, parts: Parts) -> Ints:
        """The rows that were in windows before the step and are seen."""
        inner, made = self.core.inner, parts.made
        assert isinstance(inner, Apart)
        come: int = before.held()["core"].scalars["come"]
        held = [each[:come] for each in made.fields]
        return np.flatnonzero(flags(passing(inner.where, held, come), come)) if inner.behind else np.arange(come)

    def _output(self, known: Known, part: Ints, row: Ints, output: Ints) -> Output:
        """Some rows of the windows, each at an output, with the aggregates of then."""
        parts, made = known.parts, known.parts.made
        columns = [each.take(pa.array(row)) for each in made.fields]
        if self.values:
            assert made.codes is not None
            places = known.there.of(output, part if parts.group is None else made.codes[row])
            columns += known.columns([places])(places)
        columns += parts.properties(part)
        projection = self.core.projection
        shown, passes = projected(projection, columns, len(row)), passing(projection.having, columns, len(row))
        if passes is not None:
            shown, output = [plain(each).filter(passes) for each in shown], output[flags(passes, len(row))]
        return self.of_outputs(known.outputs, output, shown, parts)


def _held(parts: Parts, outputs: Outputs, part: Ints, come: Ints) -> tuple[Ints, Ints]:
    """Which rows are in a window at which output, as they came; those of `come` were before the step."""
    moves = parts.made.moves
    assert moves is not None
    entering, leaving = moves.listed
    begin, end = np.full(len(part), REST), outputs.waits[part] + 1
    begin[come] = outputs.first[part[come]]
    begin[entering] = outputs.move[np.repeat(np.arange(len(moves.at)), moves.come)]
    end[leaving] = outputs.move[np.repeat(np.arange(len(moves.at)), moves.left)]
    counts = np.maximum(end - begin, 0)
    row = np.repeat(np.arange(len(part)), counts)
    output = outputs.numbered(parts.alive)[spans(np.where(counts > 0, begin, 0), counts)]
    shown = output < len(outputs.at)
    row, output = row[shown], output[shown]
    order = np.lexsort((row, output))
    return row[order], output[order]
