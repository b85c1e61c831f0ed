"""Filter and Project: what needs no other row. Time goes on in a filter also where it drops the row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pyarrow as pa
from sqlglot import exp

from rollup.engine.flows.flow import AT, NUMBER, Column, Flow, Node, Relational, State, column, numbered


@dataclass(frozen=True)
class Relate:
    """The rows that meet `where`, with the columns that `items` compute. Column i of the output is item i.

    `limit`: after so many rows nothing comes any more.
    """

    inputs: tuple[Node, ...]
    columns: tuple[Column, ...]
    items: tuple[exp.Expr, ...]
    where: exp.Expr | None = None
    limit: int | None = None

    def start(self) -> State:
        """Nothing is kept but how many rows have come."""
        return State({}, {"given": 0})

    def step(self, state: State, inputs: Sequence[Flow], engine: Relational) -> tuple[State, Flow]:
        """One batch."""
        flow = inputs[0]
        rows = self._rows(flow.rows, engine)
        if self.limit is not None:
            rows = rows.slice(0, max(0, self.limit - state.scalars["given"]))
        given = state.scalars["given"] + rows.num_rows
        return State({}, {"given": given}), Flow(rows, self._marks(flow, engine), flow.ended)

    def _rows(self, rows: pa.Table, engine: Relational) -> pa.Table:
        picked = dict(zip(self.columns, self.items, strict=True))
        if self.where is None and (same := chosen(rows, picked)) is not None:
            return same
        query = exp.select(*(aliased(item, out) for out, item in picked.items()), column(AT)).from_("input")
        if self.where is not None:
            query = query.where(self.where.copy())
        return engine.ask(query.order_by(column(NUMBER)), input=numbered(rows))

    def _marks(self, flow: Flow, engine: Relational) -> pa.Table:
        moving = {out: item for item, out in zip(self.items, self.columns, strict=True) if out.monotone}
        return marked(flow.marks, moving, engine)


_SAME = {
    "BOOLEAN": pa.bool_(), "INTEGER": pa.int32(), "BIGINT": pa.int64(), "DOUBLE": pa.float64(), "VARCHAR": pa.string(),
    "TIMESTAMP": pa.timestamp("us"),
}  # fmt: skip
"""What a column of DuckDB's type is in Arrow, of the types that most columns have."""


def chosen(rows: pa.Table, items: Mapping[Column, exp.Expr]) -> pa.Table | None:
    """The rows under other names where every item is a column as it stands; None: DuckDB must compute them."""
    names = list[str]()
    for out, item in items.items():
        kind = _SAME.get(out.type)
        if kind is None or not isinstance(item, exp.Column) or rows.schema.field(item.name).type != kind:
            return None
        names.append(item.name)
    return rows.select([*names, AT]).rename_columns([*(out.name for out in items), AT])


def aliased(item: exp.Expr, out: Column) -> exp.Expr:
    """An item under the name and with the type of its column."""
    return exp.alias_(exp.cast(item.copy(), out.type, dialect="duckdb"), out.name, quoted=True)


def marked(marks: pa.Table, moving: Mapping[Column, exp.Expr], engine: Relational) -> pa.Table:
    """The marks of columns that move with those of the input."""
    if (same := chosen(marks, moving)) is not None:
        return same
    items = [aliased(item, out) for out, item in moving.items()]
    query = exp.select(*items, column(AT)).from_("input").order_by(column(NUMBER))
    return engine.ask(query, input=numbered(marks))


def latest(old: pa.Table | None, new: pa.Table) -> pa.Table:
    """The marks of a batch after the last one before it, each column going on where it stood."""
    if old is None or not old.num_rows:
        return new
    last = old.slice(old.num_rows - 1)
    both = pa.concat_tables([last, new], promote_options="permissive") if new.num_rows else last
    return both
