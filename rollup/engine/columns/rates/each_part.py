"""Outputs of partitions, each by a clock or a count of its own, or when it ends.

State: that of the core; `clocks`, of each partition; `waiting`, the rows that its next output may show; where outputs show
what is there, `latest`: the row of each group as it is now, of a total as it was shown last where that is all one sees of it;
so of groups whose aggregates one sees.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import pyarrow as pa

from rollup.engine.columns.cores.batches import Batch, Output
from rollup.engine.columns.cores.folded import Folded
from rollup.engine.columns.cores.parts import Dues, Late
from rollup.engine.columns.groups import Ints
from rollup.engine.columns.rates.beats import Clocks
from rollup.engine.columns.rates.choosing import Chosen, Rows, everything, last, last_of_each
from rollup.engine.columns.rates.known import OWN, Known, signed, table_of
from rollup.engine.columns.rates.of_each import ByWaiting
from rollup.engine.expressions import Expr
from rollup.engine.rows.selects.projecting import Projection
from rollup.engine.state import State

Place = tuple[int, int, int]
"""Of a row: its partition, its group (less than 0: that does not matter), and whether it comes (1) or leaves (-1)."""
Showing = Literal["everything", "last", "there", "nothing"]
"""What an output shows: all rows; the last of each group; the row of each group, or of the total, as it is; no rows, but that
it is there."""

_NOTHING = np.empty(0, np.int64)


@dataclass(frozen=True)
class EachPart(ByWaiting):
    """Outputs that show what has come since the last, or what is there. `total`: a partition has one row that changes;
    `of_groups`: a row stands for a group; `lazy`: aggregates are worked out at an output, so that one who looks at them
    between two sees those of the last; `seen`: one sees the latest rows, not what the core has. `values`: the aggregates of a
    group, where one sees those of the last output beside what is in the window now; they stand behind what is shown.
    """

    shows: Showing
    total: bool
    of_groups: bool
    lazy: bool
    seen: bool
    values: tuple[Expr, ...]

    # state

    def start(self, now: int) -> State:
        """Nothing waits, and no clock runs."""
        empty = self.rows((), ())
        state = self.state(self.core.start(now), Clocks.none(), empty, empty)
        return self.step(state, Batch.nothing(self.kinds, now))[0]

    def rows(
        self,
        places: Sequence[Place],
        found: Sequence[Sequence[Any] | None],
        values: Sequence[Sequence[Any]] | None = None,
    ) -> pa.Table:
        """Rows of some partitions and groups, that come or leave; None is one that does not fulfil `having`."""
        nothing, unknown = (None,) * len(self.core.projection.columns), (None,) * len(self.values)
        shown = [nothing if row is None else tuple(row) for row in found]
        whole = [(*row, *own) for row, own in zip(shown, values or [unknown] * len(shown), strict=True)]
        columns = [pa.array([row[i] for row in whole], kind) for i, kind in enumerate(self._types)]
        part, unit, sign = (np.array([place[i] for place in places], np.int64) for i in range(3))
        rows = Rows(part, unit, sign.astype(np.int8), np.array([row is not None for row in found], bool))
        return table_of(rows, part, columns)

    @property
    def _projection(self) -> Projection:
        """What rows keep until they are shown."""
        projection = self.core.projection
        return replace(projection, columns=(*projection.columns, *self.values)) if self.values else projection

    @cached_property
    def _types(self) -> list[pa.DataType]:
        """The types of that."""
        return self.types_of(self._projection)

    # steps

    def shown(
        self, state: State, batch: Batch, until: int | None, dues: Dues | None = None, late: Late | None = None
    ) -> tuple[State, Output]:
        """A step."""
        (waiting, latest), clocks = (signed(state.tables[each]) for each in ("waiting", "latest")), self.clocks(state)
        used = np.concatenate([each["unit"].to_numpy() for each in (waiting, latest)]) if self._by_unit else _NOTHING
        since = latest.num_rows if self.total else len(clocks.due)
        core, parts = self.core.partings(state.held()["core"], batch, used[used >= 0], since, late)
        parts = parts if self._by_unit else replace(parts, group=None)
        outputs, then = self.beats.outputs(clocks.grown(parts.count), parts, until, dues)
        known = Known(self._projection, parts, outputs, latest, waiting, self.total)
        chosen, stays, now = self._chosen(known)
        chosen = chosen.emitted(self.emitted)
        columns = known.columns([np.asarray(chosen.place), stays, now])
        waiting, latest = known.table(stays, columns), known.table(now, columns)
        latest = self._still(core.held()["core"], known, latest) if self.values else latest
        shown = columns(np.asarray(chosen.place))[: len(self.core.projection.columns)]
        sign = chosen.sign if self.emitted == "both" else None
        found = self.of_outputs(outputs, chosen.output, shown, parts, sign)
        return self.state(core, then.where(parts.alive), waiting, latest), found

    def _still(self, inner: State, known: Known, latest: pa.Table) -> pa.Table:
        """The latest rows without those of groups that have emptied, and had when they were shown last."""
        assert isinstance(self.core.inner, Folded)
        if not self.core.inner.forgets:
            return latest
        there, rows = known.there, inner.tables["groups"].column("rows").to_numpy()
        changed = (there.now != there.shown)[there.shown >= 0]
        return latest.filter(pa.array(changed | (rows[latest["unit"].to_numpy()] > 0)))

    @property
    def _by_unit(self) -> bool:
        """Whether it matters of which group a row is."""
        there = self.shows == "there" and self.of_groups
        return not self.total and (self.shows == "last" or there or bool(self.values))

    def _chosen(self, known: Known) -> tuple[Chosen, Ints, Ints]:
        """What the outputs show, what waits on, and what is latest then."""
        if self.shows == "nothing":
            return Chosen.of(known.rows, (_NOTHING, _NOTHING)), _NOTHING, _NOTHING
        if self.shows == "last" and not self.total:
            return *known.waited(last if self.of_groups else last_of_each), _NOTHING
        if self.shows == "everything":
            return self._everything(known)
        there = known.there
        chosen = Chosen.of(known.rows, (there.place, there.output))
        if not (self.total and self.lazy):
            return chosen, _NOTHING, there.now
        return chosen, there.now[there.now != there.shown], there.shown

    def _everything(self, known: Known) -> tuple[Chosen, Ints, Ints]:
        """The same of all rows; of a total that nothing has touched its row as it is."""
        chosen, stays = known.waited(everything)
        if not self.total:
            if not self.values:
                return chosen, stays, _NOTHING
            return chosen, known.touched()[1], known.there.shown[known.there.shown >= 0]
        there = known.there
        touched, stays = known.touched()
        idle = ~touched[there.output]
        place = np.concatenate([np.asarray(chosen.place), there.place[idle]])
        output = np.concatenate([chosen.output, there.output[idle]])
        order = np.argsort(output, kind="stable")
        return Chosen.of(known.rows, (place[order], output[order])), stays, there.shown if self.lazy else there.now

    def aggregates(self, state: State) -> dict[int, tuple[Any, ...]] | None:
        """The values of the groups as they were shown last, by their numbers; None: one sees those of now."""
        if not self.values:
            return None
        latest, width = state.tables["latest"], OWN + len(self.core.projection.columns)
        values = zip(*(each.to_pylist() for each in latest.columns[width:]), strict=True)
        return dict(zip(latest["unit"].to_pylist(), values, strict=True))

    def contents(self, state: State) -> list[list[tuple[Any, ...]]] | None:
        """The rows of each partition, where they are the latest."""
        if not self.seen:
            return None
        latest = signed(state.tables["latest"])
        latest = latest.filter(latest["passes"]).sort_by([("part", "ascending"), ("unit", "ascending")])
        found = dict[int, list[tuple[Any, ...]]]()
        for part, _, _, _, *row in zip(*(each.to_pylist() for each in latest.columns), strict=True):
            found.setdefault(part, []).append(tuple(row))
        return list(found.values())
