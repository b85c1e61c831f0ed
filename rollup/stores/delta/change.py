"""What changes rows that a Delta table has: a range replaced, columns added. Each leaves versions to be pinned."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, write_deltalake

from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.plan.aggregation import TIMESTAMP
from rollup.sources.content.records import quoted
from rollup.stores.base import Rewrite
from rollup.stores.delta.index import FileIndex
from rollup.stores.delta.schema import as_before
from rollup.stores.delta.write import append


def predicate(start: int | None, end: int | None) -> str:
    """SQL that is true for start <= AGG_TIMESTAMP < end."""
    bounds = [f'"{TIMESTAMP}" >= {start}'] * (start is not None) + [f'"{TIMESTAMP}" < {end}'] * (end is not None)
    return " AND ".join(bounds) or "true"


def replace(
    table: DeltaTable, path: Path, level: Duration, rewrite: Rewrite, keys: Sequence[str], properties: CommitProperties
) -> None:
    """Delete a range and append its new rows: up to two versions, which mean nothing until a record pins the second."""
    table.delete(predicate(rewrite.start, rewrite.end))
    table.update_incremental()
    if rewrite.rows.num_rows:
        append(table, path, level, rewrite.rows, keys, properties)


def add_columns(engine: ColumnEngine, table: DeltaTable, added: pa.Schema, retired: Collection[str]) -> None:
    """Write a table anew with further columns, `before_added` in every row; one it has already stays.

    All files then have all columns, so that no reader needs to reconcile schemas. Rows are streamed.
    """
    stored = [field.name for field in table.schema().fields]
    added = pa.schema([field for field in added if field.name not in stored])
    if not added.names:
        return
    casts = [as_before(f, sql_type(engine, f)) for f in added]
    files = FileIndex.of(table).between(None, None)
    partitions = table.metadata().partition_columns
    order = [*(name for name in stored if name not in partitions), *added.names, *partitions]
    if not files:
        schema = pa.schema([*pa.schema(table.schema().to_arrow()), *added])
        rows: pa.RecordBatchReader = schema.empty_table().select(order).to_reader()
    else:
        names = ", ".join(quoted(name) for name in stored)
        read = "read_parquet($files, hive_partitioning = true, hive_types_autocast = false)"
        source = f"SELECT {', '.join([names, *casts])} FROM {read}"
        wanted = ", ".join(quoted(name) for name in order)
        rows = engine.connection.sql(f"SELECT {wanted} FROM ({source})", params={"files": files}).to_arrow_reader()
    write_deltalake(table, rows, mode="overwrite", schema_mode="overwrite", partition_by=partitions or None)
    table.update_incremental()


def sql_type(engine: ColumnEngine, field: pa.Field) -> str:
    """A column's type as DuckDB writes it."""
    empty = pa.table({"x": pa.array([], field.type)})
    return str(engine.run("SELECT column_type FROM (DESCRIBE SELECT * FROM t)", t=empty)["column_type"][0].as_py())
