"""Union, ordered merge and distinct."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
from sqlglot import exp

from rollup.engine.flows.flow import (
    AT,
    NUMBER,
    Column,
    Flow,
    Ints,
    Node,
    Relational,
    State,
    column,
    joined,
    numbered,
    numbers_of,
    positions,
    typed_as,
)
from rollup.engine.flows.joining import spread
from rollup.engine.flows.relate import latest


@dataclass(frozen=True)
class Union:
    """All rows of the inputs as they come. Time is where the input stands that is furthest behind."""

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]

    def start(self) -> State:
        """No marks yet."""
        return State({}, {})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch."""
        names = [*(c.name for c in self.columns), AT]
        rows = joined([flow.rows.rename_columns(names) for flow in inputs])
        order = np.argsort(rows.column(AT).to_numpy(), kind="stable")
        lines = [
            latest(state.tables.get(f"marks{i}"), self._renamed(flow.marks, self.inputs[i]))
            for i, flow in enumerate(inputs)
        ]
        tables = {f"marks{i}": line.slice(max(0, line.num_rows - 1)) for i, line in enumerate(lines)}
        ended = all(flow.ended for flow in inputs)
        return State(tables, {}), Flow(rows.take(pa.array(order)), self._least(lines), ended)

    def _renamed(self, marks: pa.Table, node: Node) -> pa.Table:
        columns = {
            mine.name: marks.column(theirs.name)
            for mine, theirs in zip(self.columns, node.columns, strict=True)
            if mine.monotone
        }
        return pa.table({**columns, AT: marks.column(AT)})

    def _least(self, lines: Sequence[pa.Table]) -> pa.Table:
        every = np.unique(np.concatenate([line.column(AT).to_numpy() for line in lines]))
        wide = [spread(line, every) for line in lines]
        columns: dict[str, pa.Array] = {}
        for c in self.columns:
            if c.monotone:
                pick = min if c.monotone.rising else max
                values = zip(*(numbers_of(line.column(c.name)) for line in wide), strict=True)
                found = [None if None in row else pick(v for v in row if v is not None) for row in values]
                columns[c.name] = typed_as(found, lines[0].schema.field(c.name).type)
        return pa.table({**columns, AT: pa.array(every)})


@dataclass(frozen=True)
class Sort:
    """Rows in order; a row leaves when no row that comes can lie before it. The first key is a column that moves.

    `only`: there are no further keys, so rows of the same value keep their order and need not wait for each other.
    """

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]
    keys: tuple[exp.Expr, ...]
    line: Column
    only: bool

    def start(self) -> State:
        """No rows wait."""
        return State({}, {})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch."""
        flow = inputs[0]
        marks = latest(state.tables.get("marks"), flow.marks)
        rows = joined([state.tables.get("rows"), flow.rows])
        rising = self.line.monotone is None or self.line.monotone.rising
        leaves = positions(marks, self.line.name, rows.column(self.line.name), rising, self.only, flow.ended)
        leaves = np.where(leaves < 0, -1, np.maximum(leaves, rows.column(AT).to_numpy())) if rows.num_rows else leaves
        done = leaves >= 0
        given = self._sorted(rows.filter(pa.array(done)), leaves[done], engine)
        tables = {"rows": rows.filter(pa.array(~done)), "marks": marks.slice(max(0, marks.num_rows - 1))}
        return State(tables, {}), Flow(given, flow.marks, flow.ended)

    def _sorted(self, rows: pa.Table, leaves: Ints, engine: Relational) -> pa.Table:
        items = [*(column(c.name) for c in self.columns), exp.alias_(column("__leaves"), AT, quoted=True)]
        query = (
            exp.select(*items)
            .from_("input")
            .order_by(column("__leaves"), *(k.copy() for k in self.keys), column(NUMBER))
        )
        return engine.ask(query, input=numbered(rows.append_column("__leaves", pa.array(leaves))))


@dataclass(frozen=True)
class Distinct:
    """The first of its kind, at once. What cannot come again is forgotten: `line` is a column that moves."""

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]
    line: Column

    def start(self) -> State:
        """Nothing has been seen."""
        return State({}, {})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch."""
        flow = inputs[0]
        seen = state.tables.get("seen")
        rows = joined([seen, flow.rows])
        names = [c.name for c in self.columns]
        first = exp.Min(this=column(NUMBER))
        query = (
            exp.select(exp.alias_(first, "v"))
            .from_("input")
            .group_by(*(column(n) for n in names))
            .order_by(column("v"))
        )
        places = engine.ask(query, input=numbered(rows)).column("v").to_numpy()
        new = rows.take(pa.array(places[places >= (seen.num_rows if seen is not None else 0)]))
        kept = rows.take(pa.array(places))
        if flow.marks.num_rows and kept.num_rows:
            rising = self.line.monotone is None or self.line.monotone.rising
            last = flow.marks.slice(flow.marks.num_rows - 1)
            kept = kept.filter(
                pa.array(positions(last, self.line.name, kept.column(self.line.name), rising, False, False) < 0)
            )
        return State({"seen": kept}, {}), Flow(new, flow.marks, flow.ended)
