"""The cascade, seconds to years: `step(state, admitted) -> (state, closed rows)`.

A row is merged into the open row of its bucket, zone and keys. A bucket closes at its level when the level's clock (the
greatest bucket start that has arrived there) reaches its end; at the root, the end plus the buffer. What closes is
written and handed to the next level with its bucket start as its time. A correction enters its old bucket like any
row; since that bucket is behind the clock it closes at once, as one more part of the stored row, at every level.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.admission import Admitted
from rollup.aggregation.seams import alike, cut, seams
from rollup.aggregation.state import State
from rollup.core import buckets
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import InOrder, to_sql, unordered
from rollup.core.untyped import pc
from rollup.plan.aggregation import TIMESTAMP, ZONE, Aggregation, Value, column

Clocks = Mapping[Duration, int | None]


@dataclass(frozen=True)
class Closed:
    """The output of a step: rows that closed at each level (`Aggregation.table_schema`), and sums that left 64 bits."""

    rows: Mapping[Duration, pa.Table]
    overflows: int


@dataclass(frozen=True)
class Cascade:
    """The step of one aggregation; the SQL is made once."""

    aggregation: Aggregation
    _texts: dict[object, str] = field(default_factory=dict[object, str], init=False, repr=False, compare=False)

    def step(
        self, engine: ColumnEngine, state: State, admitted: Admitted, given: Clocks | None = None
    ) -> tuple[State, Closed]:
        """Merge the admitted rows, close what the clocks have passed, hand it up level by level.

        Clocks are over all keys. A step over a part of the keys is `given` those after the batch, as its own rows
        cannot tell them.
        """
        clocks, open_rows = dict(state.clocks), dict(state.open)
        closed, overflows = dict[Duration, pa.Table](), 0
        root = self.aggregation.root
        arriving = self._arriving(engine, admitted)
        clocks[root] = admitted.clock
        for level in self.aggregation.levels:
            if level is not root:
                clocks[level] = later(clocks[level], arriving, admitted.now) if given is None else given[level]
            if not arriving and clocks[level] == state.clocks[level]:
                if given is None:
                    break
                continue
            merged = self._merge(engine, level, [open_rows[level], *arriving], level is root)
            splits = [self.split(engine, level, table, clocks[level]) for table in merged]
            open_rows[level] = self._wide([still for still, _ in splits])
            arriving = [done for _, done in splits if done.num_rows]
            closed[level] = pa.concat_tables([narrowed(self.aggregation, table) for table in arriving] or [self._none])
            overflows += sum(
                _lost(self.aggregation, table, narrowed(self.aggregation, table))
                for table in arriving
                if table.schema != self._none.schema
            )
        resume = None if admitted.clock is not None else state.resume
        return State(clocks, open_rows, resume), Closed(closed, overflows)

    def _arriving(self, engine: ColumnEngine, admitted: Admitted) -> list[pa.Table]:
        """What is admitted, in tables that have each of their groups once."""
        if admitted.moved is None or not admitted.moved.num_rows:
            return admitted.rows
        return [*admitted.rows, self.merge(engine, self.aggregation.root, [admitted.moved])]

    def split(
        self, engine: ColumnEngine, level: Duration, merged: pa.Table, clock: int | None
    ) -> tuple[pa.Table, pa.Table]:
        """(still open, closed) of one level."""
        if clock is None or not merged.num_rows:
            return merged, merged.slice(0, 0)
        units = self.aggregation.buffer + 1 if level is self.aggregation.root else 1
        if level.width_ms is not None:
            return cut(merged, clock - level.width_ms * units)
        behind = self._text(("done", level), lambda: self._done_query(level))
        done = engine.run(behind, merged=merged, __clock=pa.table({"__now": [clock]}))["__done"]
        return merged.filter(pc.invert(done)), merged.filter(done)

    def merge(self, engine: ColumnEngine, level: Duration, parts: list[pa.Table]) -> pa.Table:
        """The parts as rows of `level`: cut into its buckets, one row a bucket, zone and keys."""
        return self._wide(self._merge(engine, level, parts, False))

    def _merge(self, engine: ColumnEngine, level: Duration, parts: list[pa.Table], unique: bool) -> list[pa.Table]:
        """As `merge`, in tables that have no row in common.

        `unique` says that each part is cut and merged already: then only groups that two parts share need work. In a
        stream that arrives in order these are the few at the seams, however large the batch.
        """
        parts = [part for part in parts if part.num_rows]
        alone, shared = seams(parts) if unique else ([], parts)
        if unique:
            apart, shared = alike(shared, self.aggregation.identity)
            alone += apart
        if not shared:
            return alone
        return [*alone, self._together(engine, level, self._wide(shared, only_if_mixed=True))]

    def _together(self, engine: ColumnEngine, level: Duration, rows: pa.Table) -> pa.Table:
        """Rows merged to one a bucket, zone and keys."""
        names, zone = self.aggregation.state_schema, rows[ZONE][0].as_py()
        if zone is not None and pc.all(pc.equal(rows[ZONE], zone), skip_nulls=False).as_py():
            in_zone = self._merging(level, in_zone=True)  # no text to compare a row
            merged = engine.run(in_zone, {"zone": zone}, parts=rows)
        else:
            merged = engine.run(self._merging(level, in_zone=False), parts=rows)
        return merged.select(names.names).cast(names)

    def _wide(self, tables: list[pa.Table], only_if_mixed: bool = False) -> pa.Table:
        """One table of the parts, exact sums wide; tables that are all narrow may stay so where SQL widens them."""
        tables = [table for table in tables if table.num_rows]
        if only_if_mixed and len({table.schema for table in tables}) == 1:
            return pa.concat_tables(tables)
        return pa.concat_tables(
            [table.cast(self.aggregation.state_schema) for table in tables]
            or [self.aggregation.state_schema.empty_table()]
        )

    @cached_property
    def _none(self) -> pa.Table:
        return self.aggregation.table_schema.empty_table()

    def _merging(self, level: Duration, in_zone: bool) -> str:
        """The text of the query that merges rows of a level; `in_zone`: of rows that are all in `$zone`."""
        return self._text(("merge", level, in_zone), lambda: self._merge_query(level, in_zone))

    def _text(self, what: object, query: Callable[[], exp.Select]) -> str:
        """What a query is in SQL, made when it is asked for first: many an aggregation never needs most of them."""
        if what not in self._texts:
            self._texts[what] = to_sql(query())
        return self._texts[what]

    def _merge_query(self, level: Duration, in_zone: bool) -> exp.Select:
        begin = column(TIMESTAMP)
        if level is not self.aggregation.root:
            begin = buckets.start(begin, level, self.aggregation.row_zone)
        cut = exp.select(begin.as_(TIMESTAMP, quoted=True), f'* EXCLUDE ("{TIMESTAMP}")', dialect="duckdb").from_(
            "parts"
        )
        groups = [name for name in self.aggregation.identity if not in_zone or name != ZONE]
        merged = unordered(merged_rows(cut, groups, self.aggregation.values))
        return merged.select(exp.alias_(exp.Placeholder(this="zone"), ZONE, quoted=True)) if in_zone else merged

    def _done_query(self, level: Duration) -> exp.Select:
        """For each row, whether its bucket's end is behind the clock `now`: for levels cut by the local calendar."""
        units = self.aggregation.buffer + 1 if level is self.aggregation.root else 1
        end = buckets.end(column(TIMESTAMP), level, self.aggregation.row_zone, units)
        done = exp.LTE(this=end, expression=exp.column("__now")).as_("__done")
        return exp.select(done).from_("merged").join("__clock", join_type="cross")


def merged_rows(rows: exp.Select, groups: list[str], values: tuple[Value, ...]) -> exp.Select:
    """The query that merges partial rows into one row a group; also what retrieval is made of. `rows` becomes part of it."""
    helpers = {helper[0]: helper for value in values for helper in value.helpers}
    source = rows
    if helpers:
        source = exp.select("*").from_(rows.subquery("h", copy=False), copy=False)
        for name, total, count in helpers.values():
            mean = exp.Div(
                this=_over(total, groups),
                expression=exp.func("NULLIF", _over(count, groups), exp.Literal.number(0)),
                safe=True,
            )
            source = source.select(exp.alias_(mean, name, quoted=True, copy=False), copy=False)
    columns = [exp.alias_(value.merge, value.name, quoted=True) for value in values]
    query = exp.select(*(column(name) for name in groups), *columns).from_(source.subquery("p", copy=False), copy=False)
    return query.group_by(*(column(name) for name in groups), copy=False) if groups else query


def _over(aggregate: exp.Expr, groups: list[str]) -> exp.Expr:
    partition: list[exp.Expr] = [column(name) for name in groups]
    if isinstance(aggregate, InOrder):
        return InOrder(this=aggregate.this.copy(), over=partition)
    return exp.Window(this=aggregate.copy(), partition_by=partition)


def narrowed(aggregation: Aggregation, table: pa.Table) -> pa.Table:
    """Rows as their table has them: exact sums as longs, null beyond 64 bits, which its AGG_OVERFLOW then says."""
    if table.schema == aggregation.table_schema:
        return table
    columns = {name: table[name] for name in aggregation.kinds}
    for name, overflow in aggregation.exact.items():
        columns[name] = _to_long(table[name])
        if columns[name].null_count > table[name].null_count:
            gone = pc.and_(columns[name].is_null(), table[name].is_valid())
            columns[overflow] = pc.if_else(gone, True, columns[overflow])
    return pa.table(columns, schema=aggregation.table_schema)


def _to_long(wide: pa.ChunkedArray) -> pa.ChunkedArray:
    try:
        return wide.cast(pa.int64())
    except pa.ArrowInvalid:
        fits = [None if v is None or not -(2**63) <= v < 2**63 else int(v) for v in wide.to_pylist()]
        return pa.chunked_array([pa.array(fits, pa.int64())])


def _lost(aggregation: Aggregation, wide: pa.Table, narrow: pa.Table) -> int:
    return sum(narrow[name].null_count - wide[name].null_count for name in aggregation.exact)


def later(clock: int | None, arriving: list[pa.Table], now: int | None = None) -> int | None:
    """The clock of a level behind rows that arrive there."""
    starts = [pc.max(table[TIMESTAMP]).as_py() for table in arriving if table.num_rows]
    return max([*starts, *(known for known in (clock, now) if known is not None)], default=None)
