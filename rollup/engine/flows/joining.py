"""Joins of a stream: with a table as it is or as it was, and with another stream that keeps in step with it."""

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
    empty,
    joined,
    numbered,
    positions,
)
from rollup.engine.flows.frames import held
from rollup.engine.flows.relate import latest

_ID = "__id"
_MATCHED = "__matched"


@dataclass(frozen=True)
class Lookup:
    """Each row with the rows of a table that meet the condition, as the table is when the row arrives.

    `table` is a relation of DuckDB whose columns are the last of the output; `outer` keeps rows without a match.
    """

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]
    table: exp.Expr
    on: exp.Expr
    outer: bool = False

    def start(self) -> State:
        """Nothing is kept."""
        return State({}, {})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch, against the table as it is now."""
        flow = inputs[0]
        items = [exp.column(exp.to_identifier(c.name, quoted=True)) for c in self.columns]
        query = (
            exp.select(*items, column(AT))
            .from_("input")
            .join(self.table.copy(), on=self.on.copy(), join_type="left" if self.outer else "inner")
        )
        rows = engine.ask(query.order_by(column(NUMBER)), input=numbered(flow.rows))
        return state, Flow(rows, flow.marks, flow.ended)


@dataclass(frozen=True)
class Step:
    """The lock step: right.value - left.value lies within [low, high] (None: not bounded on that side).

    `low` and `high` are microseconds for times, else numbers. A bound is a column of each input, both of one kind.
    """

    left: Column
    right: Column
    low: int | None
    high: int | None


@dataclass(frozen=True)
class StreamJoin:
    """Two streams in lock step. A match comes with its second row; a row without one when none can come any more."""

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]
    on: exp.Expr
    steps: tuple[Step, ...]
    outer: tuple[bool, bool] = (False, False)

    def start(self) -> State:
        """No rows wait."""
        return State({}, {"next": 0})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch of both."""
        ended = all(flow.ended for flow in inputs)
        count = state.scalars["next"]
        sides: list[pa.Table] = []
        lines: list[pa.Table] = []
        for side, flow in enumerate(inputs):
            fresh = self._fresh(flow.rows, count)
            count += fresh.num_rows
            sides.append(joined([state.tables.get(f"rows{side}"), fresh]))
            lines.append(latest(state.tables.get(f"marks{side}"), flow.marks))
        matches = self._matches(sides, [state.tables.get(f"rows{s}") for s in (0, 1)], engine)
        sides = [self._noted(rows, matches, side) for side, rows in enumerate(sides)]
        outputs = [matches.drop_columns(["__left", "__right"])]
        tables: dict[str, pa.Table] = {}
        finals: list[Ints] = []
        for side, rows in enumerate(sides):
            over = self._over(side, rows, lines[1 - side], inputs[1 - side].ended)
            finals.append(over)
            if self.outer[side]:
                outputs.append(self._alone(side, rows, over, engine))
            tables[f"rows{side}"] = rows.filter(pa.array(over < 0))
            tables[f"marks{side}"] = lines[side].slice(max(0, lines[side].num_rows - 1))
        rows = joined(outputs)
        order = np.argsort(rows.column(AT).to_numpy(), kind="stable")
        marks = self._marks(sides, finals, lines)
        return State(tables, {"next": count}), Flow(rows.take(pa.array(order)), marks, ended)

    def _fresh(self, rows: pa.Table, count: int) -> pa.Table:
        ids = pa.array(np.arange(count, count + rows.num_rows))
        return rows.append_column(_ID, ids).append_column(_MATCHED, pa.array(np.zeros(rows.num_rows, bool)))

    def _matches(self, sides: Sequence[pa.Table], old: Sequence[pa.Table | None], engine: Relational) -> pa.Table:
        """Pairs of which at least one row is new, at the position of the later one."""
        left, right = (rows.rename_columns([f"__{s}{n[2:]}" if n in (AT, _ID, _MATCHED) else n for n in rows.column_names])
                       for s, rows in zip(("l", "r"), sides, strict=True))  # fmt: skip
        limits = [int(rows.column(_ID)[-1].as_py()) if rows is not None and rows.num_rows else -1 for rows in old]
        new = exp.or_(
            exp.GT(this=column("__lid"), expression=_number(limits[0])),
            exp.GT(this=column("__rid"), expression=_number(limits[1])),
        )
        at = exp.Greatest(this=column("__lat"), expressions=[column("__rat")])
        items = [column(c.name) for c in self.columns]
        ids = [exp.alias_(column("__lid"), "__left"), exp.alias_(column("__rid"), "__right")]
        query = (
            exp.select(*items, exp.alias_(at, AT, quoted=True), *ids)
            .from_("l")
            .join("r", on=exp.and_(self.on.copy(), new))
        )
        return engine.ask(query.order_by(column(AT), column("__lid"), column("__rid")), l=left, r=right)

    def _noted(self, rows: pa.Table, matches: pa.Table, side: int) -> pa.Table:
        """The rows of a side with a note which have had a match."""
        found = np.isin(rows.column(_ID).to_numpy(), matches.column("__right" if side else "__left").to_numpy())
        noted = rows.column(_MATCHED).to_numpy() | found
        return rows.set_column(rows.schema.get_field_index(_MATCHED), _MATCHED, pa.array(noted))

    def _over(self, side: int, rows: pa.Table, marks: pa.Table, ended: bool) -> Ints:
        """For each row of a side the position from which no row of the other can match it, -1 when one still can."""
        found = np.full(rows.num_rows, -1, np.int64)
        for step in self.steps:
            reach = step.high if side == 0 else (None if step.low is None else -step.low)
            if reach is None:
                continue
            mine, other = (step.left, step.right) if side == 0 else (step.right, step.left)
            values = _moved(rows.column(mine.name), reach)
            at = positions(marks, other.name, values, rising=True, reached=False, ended=ended)
            at = np.where(at < 0, -1, np.maximum(at, rows.column(AT).to_numpy()))
            found = np.where(found < 0, at, np.where(at < 0, found, np.minimum(found, at)))
        return found

    def _alone(self, side: int, rows: pa.Table, over: Ints, engine: Relational) -> pa.Table:
        """Rows that leave without a match, with nulls for the other side."""
        lonely = (over >= 0) & ~rows.column(_MATCHED).to_numpy()
        names = set(rows.column_names)
        items = [
            column(c.name)
            if c.name in names
            else exp.alias_(exp.cast(exp.Null(), c.type, dialect="duckdb"), c.name, quoted=True)
            for c in self.columns
        ]
        at = exp.alias_(column("__over"), AT, quoted=True)
        some = rows.append_column("__over", pa.array(over)).filter(pa.array(lonely)).drop_columns([AT])
        if not some.num_rows:
            return empty(self.columns, engine)
        return engine.ask(
            exp.select(*items, at).from_("input").order_by(column("__over"), column(NUMBER)), input=numbered(some)
        )

    def _marks(self, sides: Sequence[pa.Table], finals: Sequence[Ints], lines: Sequence[pa.Table]) -> pa.Table:
        """A later output has a new row of one side and, of the other, one that waits or a new one."""
        every = np.unique(np.concatenate([line.column(AT).to_numpy() for line in lines]))
        columns: dict[str, pa.Array | pa.ChunkedArray] = {}
        for side, line in enumerate(lines):
            names = set(line.column_names)
            moving = [c for c in self.columns if c.monotone and c.name in names]
            wide = spread(line, every)
            back = held(wide, sides[side], finals[side], moving)
            columns |= {c.name: back.column(c.name) for c in moving}
        return pa.table({**columns, AT: pa.array(every)})


def spread(marks: pa.Table, at: Ints) -> pa.Table:
    """Marks at more positions: between two of them the earlier one holds."""
    own = marks.column(AT).to_numpy()
    place = np.searchsorted(own, at, side="right") - 1
    index = pa.array(np.maximum(place, 0), mask=place < 0)
    columns = {name: marks.column(name).take(index) for name in marks.column_names if name != AT}
    return pa.table({**columns, AT: pa.array(at)})


def _moved(values: pa.ChunkedArray, by: int) -> pa.ChunkedArray:
    from rollup.core.untyped import pc

    if pa.types.is_timestamp(values.type):
        whole = pc.add(values.cast(pa.timestamp("us")).cast(pa.int64()), pa.scalar(by))
        return whole.cast(pa.timestamp("us"))
    return pc.add(values, pa.scalar(by))


def _number(value: int) -> exp.Expr:
    return exp.Literal.number(value) if value >= 0 else exp.Neg(this=exp.Literal.number(-value))
