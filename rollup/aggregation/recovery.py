"""Open rows rebuilt from the tables, when the commit record is gone: each level from the finer table, as the page says."""

from __future__ import annotations

from typing import Protocol

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.cascade import Cascade, Closed, narrowed
from rollup.aggregation.state import State
from rollup.core import buckets
from rollup.core.calendar import Duration, bucket_end
from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from rollup.plan.aggregation import TIMESTAMP, ZONE, Aggregation, column


class Tables(Protocol):
    """What a rebuild reads of a store."""

    def newest(self, level: Duration) -> dict[str, int]:
        """For each zone, the newest AGG_TIMESTAMP in the level's table."""
        ...

    def rows_after(self, level: Duration, start: int | None) -> pa.Table:
        """Rows of a level's table with AGG_TIMESTAMP > start (all when None), `Aggregation.table_schema`."""
        ...


def rebuild(engine: ColumnEngine, cascade: Cascade, tables: Tables) -> tuple[State, Closed]:
    """The state that the tables alone imply, and rows that turn out to be closed already.

    What was open at the finest level is lost, as there is no finer table; `State.resume` then drops re-sent events
    that the finest table already has.
    """
    aggregation = cascade.aggregation
    empty = State.empty(aggregation)
    clocks, open_rows = dict(empty.clocks), dict(empty.open)
    closed = dict(empty.open)
    arriving: list[pa.Table] = []
    for finer, level in zip(aggregation.levels, aggregation.levels[1:], strict=False):
        parts = [_unmerged(engine, aggregation, tables, finer, level, arriving)]
        newest = tables.newest(finer)
        clocks[level] = max(newest.values(), default=None)
        open_rows[level], closed[level] = cascade.split(
            engine, level, cascade.merge(engine, level, parts), clocks[level]
        )
        arriving = [closed[level]]
    root = tables.newest(aggregation.root)
    ends = [bucket_end(start, aggregation.root, zone) for zone, start in root.items()]
    state = State(clocks, open_rows, max(ends, default=None))
    return state, Closed({level: narrowed(aggregation, table) for level, table in closed.items()}, 0)


def _unmerged(
    engine: ColumnEngine,
    aggregation: Aggregation,
    tables: Tables,
    finer: Duration,
    level: Duration,
    arriving: list[pa.Table],
) -> pa.Table:
    """Rows of the finer level, in its table or just closed, whose bucket at `level` is not in that level's table yet.

    Just closed ones are in it when it is the finer table that was lost.
    """
    newest = tables.newest(level)
    stored = tables.rows_after(finer, min(newest.values(), default=None))
    rows = pa.concat_tables([part.cast(aggregation.state_schema) for part in (stored, *arriving)])
    if not rows.num_rows:  # every level of what begins
        return rows
    begin = to_sql(
        buckets.start(
            exp.column(column(TIMESTAMP).this, table="__r"), level, exp.column(column(ZONE).this, table="__r")
        )
    )
    known = pa.table(
        {"__zone": pa.array(newest.keys(), pa.string()), "__newest": pa.array(newest.values(), pa.int64())}
    )
    sql = f'SELECT __r.* FROM rows AS __r LEFT JOIN known AS __k ON __r."{ZONE}" = __k.__zone WHERE __k.__newest IS NULL OR {begin} > __k.__newest'
    return engine.run(sql, rows=rows, known=known).cast(aggregation.state_schema)
