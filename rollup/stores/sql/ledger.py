"""Retention of the ledger of late events: it goes with the rows whose late events it counts.

Where a level's rows are removed, the ledger rows of their buckets are merged to one for each bucket of the next coarser
level that is kept, zone, keys and kind. So counts beside the rows that stay are right. Below the cut of the coarsest level
ledger rows are removed too.
`AGG_COMMIT` is then the newest commit of those put together, so `AGG_REVISION` counts them as one.
"""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.identifiers import quoted
from rollup.core.untyped import pc
from rollup.plan.aggregation import COMMIT, EVENTS, KIND, TIMESTAMP, ZONE
from rollup.retrieval.answer import bucket_column
from rollup.stores.sql.ddl import Tables
from rollup.stores.sql.session import Range, Session


def thin(session: Session, engine: ColumnEngine, tables: Tables, cuts: Mapping[Duration, int]) -> None:
    """Bring the ledger in line with levels whose rows before a cut (AGG_TIMESTAMP, ms) are removed."""
    levels = tables.aggregation.levels
    schema = pa.schema(list(tables.late_columns.items()))
    for finer, level, coarser in zip([None, *levels], levels, [*levels[1:], None], strict=False):
        if level not in cuts:
            continue
        within = Range(bucket_column(level), None, cuts[level])
        rows = session.read(tables.late, schema, within)
        # What still has a bucket at a finer level belongs to rows that are there.
        over = rows if finer is None else rows.filter(pc.is_null(rows[bucket_column(finer)]))
        if over.num_rows:
            session.cut(tables.late, within)
            kept = [] if finer is None else [rows.filter(pc.is_valid(rows[bucket_column(finer)]))]
            kept += [] if coarser is None else [_coarser(engine, tables, over, coarser)]
            session.append(tables.late, pa.concat_tables([schema.empty_table(), *kept]))


def _coarser(engine: ColumnEngine, tables: Tables, rows: pa.Table, level: Duration) -> pa.Table:
    """One row a bucket of a level, zone, keys and kind; it has no bucket at finer levels."""
    levels = tables.aggregation.levels
    by = [
        ZONE,
        *(key.name for key in tables.aggregation.keys),
        KIND,
        *map(bucket_column, levels[levels.index(level) :]),
    ]
    made = {TIMESTAMP: quoted(bucket_column(level)), EVENTS: f'sum("{EVENTS}")', COMMIT: f'max("{COMMIT}")'}
    made |= {name: quoted(name) for name in by}
    columns = ", ".join(f"{made.get(name, 'NULL')} AS {quoted(name)}" for name in rows.schema.names)
    groups = ", ".join(map(quoted, by))
    # The new AGG_TIMESTAMP must not be taken for the old one, so groups are named by columns that both have.
    return engine.run(f"SELECT {columns} FROM rows GROUP BY {groups}", rows=rows).cast(rows.schema)
