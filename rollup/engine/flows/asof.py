"""A stream joined with versions as of the time of its rows: of each key the version that had begun last by then."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from rollup.engine.flows.flow import AT, Column, Flow, Ints, Node, Relational, State, column, joined, positions
from rollup.engine.flows.frames import held
from rollup.engine.flows.joining import spread
from rollup.engine.flows.relate import latest

_ID, _CAME = "__id", "__came"


@dataclass(frozen=True)
class AsOf:
    """Each row with the versions that held at its `moment`; it waits until no further one can begin by then.

    The inputs are the stream, the versions in any order, and how far versions are: the marks of `line` there say the
    time before which no further version begins. Of two versions of one key and time the later to come holds for rows
    that leave after it. `alike` is the part of `on` that asks of versions nothing but their keys; `outer` keeps rows
    without a version. `moment`, `since` and `line` are timestamps.
    """

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]
    moment: Column
    since: Column
    line: Column
    keys: tuple[Column, ...]
    alike: exp.Expr
    on: exp.Expr
    outer: bool = False

    def start(self) -> State:
        """No row waits, no version is known."""
        return State({}, {"next": 0})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch."""
        stream, versions, line = inputs
        count = state.scalars["next"]
        rows = joined([state.tables.get("rows"), _numbered(stream.rows, count)])
        known = joined([state.tables.get("versions"), _numbered(versions.rows, count + stream.rows.num_rows)])
        count += stream.rows.num_rows + versions.rows.num_rows
        marks, lines = (
            latest(state.tables.get(name), flow.marks) for name, flow in (("marks", stream), ("lines", line))
        )
        leaves = self._leaves(rows, lines, stream.ended)
        output = self._matched(rows, leaves, known, engine)
        waiting = rows.filter(pa.array(leaves < 0))
        tables = {
            "rows": waiting,
            "versions": self._needed(known, waiting, marks, engine),
            "marks": marks.slice(max(0, marks.num_rows - 1)),
            "lines": lines.slice(max(0, lines.num_rows - 1)),
        }
        return State(tables, {"next": count}), Flow(output, self._marks(rows, leaves, marks, lines), stream.ended)

    def _leaves(self, rows: pa.Table, lines: pa.Table, ended: bool) -> Ints:
        """The position at which each row leaves, -1 while it waits."""
        found = positions(lines, self.line.name, rows.column(self.moment.name), True, reached=False, ended=ended)
        return np.where(found < 0, -1, np.maximum(found, rows.column(AT).to_numpy()))

    def _matched(self, rows: pa.Table, leaves: Ints, known: pa.Table, engine: Relational) -> pa.Table:
        """The rows that leave, in the order in which they do, each with its versions in the order in which they came."""
        index = rows.schema.get_field_index(AT)
        left = rows.set_column(index, AT, pa.array(leaves)).filter(pa.array(leaves >= 0))
        right = known.rename_columns(
            [_CAME if name == AT else f"v{name}" if name == _ID else name for name in known.column_names]
        )
        began = exp.and_(
            self.alike.copy(),
            exp.LTE(this=column(self.since.name), expression=column(self.moment.name)),
            exp.LTE(this=column(_CAME), expression=column(AT)),
        )
        chosen = (
            exp.select(exp.alias_(column(_ID), "__for"), *(column(name) for name in right.column_names))
            .from_("l")
            .join("r", on=began)
            .qualify(_first([_ID, *(key.name for key in self.keys)], [self.since.name, f"v{_ID}"]))
        )
        same = exp.EQ(this=column("__for"), expression=column(_ID))
        query = (
            exp.select(*(column(c.name) for c in self.columns), column(AT))
            .from_("l")
            .join(chosen.subquery("m"), on=exp.and_(same, self.on.copy()), join_type="left" if self.outer else "inner")
            .order_by(column(AT), column(_ID), column(f"v{_ID}"))
        )
        return engine.ask(query, l=left, r=right)

    def _needed(self, known: pa.Table, waiting: pa.Table, marks: pa.Table, engine: Relational) -> pa.Table:
        """The versions that a row may still ask for: of each key the last one before all rows to come, and later ones."""
        if not known.num_rows:
            return known
        moments = [waiting.column(self.moment.name), marks.column(self.moment.name).slice(max(0, marks.num_rows - 1))]
        low = min((value for some in moments for value in some.to_pylist() if value is not None), default=None)
        past: exp.Expr = exp.false()
        if low is not None:
            bound = exp.cast(exp.Literal.string(low.isoformat(sep=" ")), "TIMESTAMP", dialect="duckdb")
            past = exp.LTE(this=column(self.since.name), expression=bound)
        time = exp.Case(ifs=[exp.If(this=past, true=exp.Null())], default=column(self.since.name))
        first = _first([*(key.name for key in self.keys)], [self.since.name, _ID], time)
        return engine.ask(exp.select("*").from_("known").qualify(first).order_by(column(_ID)), known=known)

    def _marks(self, rows: pa.Table, leaves: Ints, marks: pa.Table, lines: pa.Table) -> pa.Table:
        """A row to come is one that waits, or one of the stream's that is new."""
        every = np.unique(np.concatenate([marks.column(AT).to_numpy(), lines.column(AT).to_numpy()]))
        names = set(marks.column_names)
        moving = [c for c in self.columns if c.monotone and c.name in names]
        return held(spread(marks, every), rows, leaves, moving)


def _numbered(rows: pa.Table, first: int) -> pa.Table:
    return rows.append_column(_ID, pa.array(np.arange(first, first + rows.num_rows)))


def _first(groups: Sequence[str], order: Sequence[str], group: exp.Expr | None = None) -> exp.Expr:
    """Whether a row is the last of its group in an order."""
    ordered = exp.Order(expressions=[exp.Ordered(this=column(name), desc=True) for name in order])
    parts = [*(column(name) for name in groups), *([] if group is None else [group])]
    number = exp.Window(this=exp.RowNumber(), partition_by=parts, order=ordered)
    return exp.EQ(this=number, expression=exp.Literal.number(1))
