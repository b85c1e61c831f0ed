"""Windows that overlap, merged from panes: a row is added up once, in its pane, however many windows it is in.

The input is groups over panes, which a window is made of exactly. The output is the group of each window, given when
the last pane of the window has closed. A pane without a key of the window adds nothing, a window without panes is none.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from rollup.engine.columns.groups import grouped, spans
from rollup.engine.flows.beyond import BEYOND, beyond, counted, with_lost
from rollup.engine.flows.flow import (
    AT,
    END,
    Column,
    Flow,
    Ints,
    Node,
    Relational,
    State,
    column,
    joined,
    positions,
)
from rollup.engine.flows.relate import aliased, latest

_KEY, _LAST, _GIVEN, _CAME = "__key", "__last", "__given", "__came"


@dataclass(frozen=True)
class Merged:
    """Windows of `width` from `origin` on, one each `every`, over panes of `pane`: all whole numbers of microseconds.

    The input's columns are the start of the pane, `keys` keys, partial values, and when its first row came (`first`).
    The output's are the start of the window, the keys, and what `merges` make of the partial values.
    """

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]
    merges: tuple[exp.Expr, ...]
    first: Column
    keys: int
    every: int
    width: int
    origin: int
    pane: int

    def start(self) -> State:
        """No pane is kept, no window was given."""
        return State({}, {"next": None, BEYOND: 0})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch."""
        flow = inputs[0]
        line = latest(state.tables.get("marks"), flow.marks)
        panes = joined([state.tables.get("panes"), flow.rows])
        starts = panes.column(0).combine_chunks().to_numpy() if panes.num_rows else np.empty(0, np.int64)
        low = state.scalars["next"]
        after = self._first_open(line, starts, flow.ended, low)
        rows, lost = self._given(panes, starts, low, after, line, flow.ended, engine)
        kept = panes if after is None else panes.filter(pa.array(starts >= after))
        tables = {"panes": kept, "marks": line.slice(max(0, line.num_rows - 1))}
        scalars = {"next": after, BEYOND: beyond([state]) + lost}
        return State(tables, scalars), Flow(rows, self._marks(flow.marks), flow.ended)

    def _first_open(self, marks: pa.Table, starts: Ints, ended: bool, before: int | None) -> int | None:
        """The start of the first window that is not complete; None before any time has been told."""
        bounds = marks.column(self._pane_name).drop_null()
        if ended and len(starts):
            return self._opening(int(starts.max()) + self.pane + self.width)
        return self._opening(int(bounds[-1].as_py())) if len(bounds) else before

    def _opening(self, bound: int) -> int:
        """The start of the first window that holds a time not below a bound."""
        return ((bound - self.origin - self.width) // self.every + 1) * self.every + self.origin

    @property
    def _pane_name(self) -> str:
        return self.inputs[0].columns[0].name

    def _marks(self, marks: pa.Table) -> pa.Table:
        """The marks of the keys as they are; that of the panes as the first window that is open."""
        bounds = marks.column(self._pane_name).combine_chunks()
        known = bounds.is_valid().to_numpy(zero_copy_only=False)
        numbers = bounds.fill_null(0).to_numpy()
        windows = ((numbers - self.origin - self.width) // self.every + 1) * self.every + self.origin
        moving = [(mine, theirs) for mine, theirs in zip(self.columns[1:], self.inputs[0].columns[1:], strict=False)
                  if mine.monotone]  # fmt: skip
        columns = {mine.name: marks.column(theirs.name) for mine, theirs in moving}
        return pa.table({self.columns[0].name: pa.array(windows, mask=~known), **columns, AT: marks.column(AT)})

    def _given(
        self, panes: pa.Table, starts: Ints, low: int | None, high: int | None, marks: pa.Table, ended: bool,
        engine: Relational,
    ) -> tuple[pa.Table, int]:  # fmt: skip
        """The groups of the windows that start from `low` on and before `high`, in order; and how many sums were lost."""
        keys = [panes.column(1 + place).combine_chunks() for place in range(self.keys)]
        groups = grouped(np.zeros(len(starts), np.int64), keys, 0)
        if high is None:
            starts, groups = starts[:0], grouped(np.empty(0, np.int64), [], 0)
        rows, lasts = self._spread(starts, groups.codes, low, high)
        window = lasts + self.pane - self.width
        merged, lost = self._merged(
            panes.slice(0, len(starts)), starts, groups.codes, groups.codes[rows], lasts, engine
        )
        ends = pa.chunked_array([pa.array(np.unique(window) + self.width)])
        at = positions(marks, self._pane_name, ends, True, reached=True, ended=ended) if len(window) else window
        starts_of = merged.column(_LAST).to_numpy() + self.pane - self.width
        place = groups.first[merged.column(_KEY).to_numpy()]
        out = [pa.array(starts_of), *(key.take(pa.array(place)) for key in keys)]
        out += [merged.column(c.name) for c in self._values]
        when = at[np.searchsorted(ends.to_numpy() - self.width, starts_of)] if len(window) else window
        names = [*(c.name for c in self.columns), AT]
        return pa.table([*out, pa.array(np.where(when < 0, END, when))], names=names), lost

    @property
    def _values(self) -> tuple[Column, ...]:
        return self.columns[1 + self.keys :]

    def _spread(self, starts: Ints, codes: Ints, low: int | None, high: int | None) -> tuple[Ints, Ints]:
        """For each window of each key the latest pane of the key in it: its row, and the start of the window's last pane."""
        if not len(starts) or high is None:
            return np.empty(0, np.int64), np.empty(0, np.int64)
        order = np.lexsort((starts, codes))
        mine, of = starts[order], codes[order]
        following = np.append(np.where(of[1:] == of[:-1], mine[1:], 2**62), 2**62)
        base = self.origin + self.width - self.pane
        least = mine if low is None else np.maximum(mine, low + self.width - self.pane)
        begin = -((base - least) // self.every)
        most = np.minimum(np.minimum(following - 1, mine + self.width - self.pane), high - 1 + self.width - self.pane)
        counts = np.maximum((most - base) // self.every - begin + 1, 0)
        rows = np.repeat(np.arange(len(mine)), counts)
        return order[rows], spans(begin, counts) * self.every + base

    def _merged(
        self, panes: pa.Table, starts: Ints, codes: Ints, keys: Ints, lasts: Ints, engine: Relational
    ) -> tuple[pa.Table, int]:
        """The merged values by key and last pane: panes, and after them a row without values for each group to give."""
        partial = panes.select(range(1 + self.keys, panes.num_columns)).drop_columns([AT])
        blank = pa.table([pa.nulls(len(keys), field.type) for field in partial.schema], schema=partial.schema)
        both = pa.concat_tables([partial, blank])
        both = both.append_column(_KEY, pa.array(np.concatenate([codes, keys])))
        both = both.append_column(_LAST, pa.array(np.concatenate([starts, lasts])))
        both = both.append_column(_GIVEN, pa.array(np.arange(both.num_rows) >= len(starts)))
        values = [aliased(self._over(merge), out) for merge, out in zip(self.merges, self._values, strict=True)]
        came = exp.alias_(self._over(exp.Min(this=column(self.first.name))), _CAME, quoted=True)
        lost = with_lost([self._over(merge) for merge in self.merges])
        inner = exp.select(column(_KEY), column(_LAST), column(_GIVEN), *values, came, *lost).from_("input")
        shown = [column(_KEY), column(_LAST), *(column(c.name) for c in self._values)]
        shown += [column(each.alias) for each in lost]
        query = exp.select(*shown).from_(inner.subquery("s")).where(column(_GIVEN))
        return counted(engine.ask(query.order_by(column(_LAST), column(_CAME), column(_KEY)), input=both))

    def _over(self, merge: exp.Expr) -> exp.Expr:
        """A merge with each of its aggregates taken over the panes of a window."""
        root = exp.Paren(this=merge.copy())
        for found in list(root.find_all(exp.AggFunc)):
            spec = exp.WindowSpec(
                kind="RANGE", start=exp.Literal.number(self.width - self.pane), start_side="PRECEDING",
                end="CURRENT ROW",
            )  # fmt: skip
            order = exp.Order(expressions=[exp.Ordered(this=column(_LAST))])
            over = exp.Window(this=found.copy(), partition_by=[column(_KEY)], order=order, spec=spec, over="OVER")
            found.replace(over)
        return root.this.pop()
