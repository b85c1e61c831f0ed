"""What changes rows that a Delta table has: a range replaced, columns added. Each leaves versions to be pinned."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Schema
from deltalake.transaction import AddAction, RemoveAction

from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.identifiers import quoted
from rollup.core.untyped import pc
from rollup.plan.aggregation import TIMESTAMP
from rollup.stores.base import Rewrite
from rollup.stores.delta.index import FileIndex
from rollup.stores.delta.missing import fetched, require_whole
from rollup.stores.delta.schema import as_before
from rollup.stores.delta.session import parquet
from rollup.stores.delta.write import add_files, removal, write_files, written_again

_LEAST, _MOST = -(2**63), 2**63 - 1


def replace(
    table: DeltaTable, path: Path, level: Duration, rewrite: Rewrite, keys: Sequence[str], properties: CommitProperties
) -> None:
    """Put new rows in the place of a range, in one version of the table.

    Files that lie in the range go unread, which is how damaged ones go; of those at its ends the other rows stay.
    """
    import pyarrow.parquet as pq  # a question replaces nothing and need not wait for it

    index, actions = FileIndex.of(table), list[AddAction | RemoveAction]()
    low = _LEAST if rewrite.start is None else rewrite.start
    high = _MOST if rewrite.end is None else rewrite.end
    kept = [rewrite.rows]
    for file in index.between(rewrite.start, rewrite.end):
        at = index.paths.index(file)
        if not low <= index.low[at] <= index.high[at] < high:
            require_whole([file])
            rows = pq.ParquetFile(*fetched([file])).read().select(rewrite.rows.schema.names).cast(rewrite.rows.schema)
            outside = pc.or_(pc.less(rows[TIMESTAMP], low), pc.greater_equal(rows[TIMESTAMP], high))
            kept.append(rows.filter(outside))
        actions.append(removal(file, path, int(index.bytes[at])))
    rows = pa.concat_tables(kept)
    if actions or rows.num_rows:
        added = write_files(path, level, rows, keys) if rows.num_rows else []
        add_files(table, level, [*added, *actions], properties)


def add_columns(
    engine: ColumnEngine, table: DeltaTable, path: Path, added: pa.Schema, retired: Collection[str], keys: Sequence[str]
) -> None:
    """Write a table anew with further columns, `before_added` in every row; one it has already stays.

    All files then have all columns, so that no reader needs to reconcile schemas. One file is held at a time.
    """
    stored = [field.name for field in table.schema().fields]
    added = pa.schema([field for field in added if field.name not in stored])
    if not added.names:
        return
    casts = [as_before(f, sql_type(engine, f)) for f in added]
    partitions = table.metadata().partition_columns
    whole = [field for field in pa.schema(table.schema().to_arrow()) if field.name not in partitions]
    names = ", ".join(quoted(field.name) for field in whole)
    made = list[AddAction | RemoveAction]()
    for file in FileIndex.of(table).paths:
        require_whole([file])
        source = parquet([file])
        rows = engine.run(f"SELECT {', '.join([names, *casts])} FROM {source}").cast(pa.schema([*whole, *added]))
        made.append(written_again(path, file, rows, keys))
    partition = [field for field in pa.schema(table.schema().to_arrow()) if field.name in partitions]
    schema = Schema.from_arrow(pa.schema([*whole, *added, *partition]))
    table.create_write_transaction(made, "overwrite", schema, partition_by=partitions or None)
    table.update_incremental()


def sql_type(engine: ColumnEngine, field: pa.Field) -> str:
    """A column's type as DuckDB writes it."""
    empty = pa.table({"x": pa.array([], field.type)})
    return str(engine.run("SELECT column_type FROM (DESCRIBE SELECT * FROM t)", t=empty)["column_type"][0].as_py())
