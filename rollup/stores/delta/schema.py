"""The columns of a store's tables: what they must be, and rows of an older declaration under a newer one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow as pa

from rollup.core.calendar import Duration
from rollup.core.errors import StoreError
from rollup.core.identifiers import quoted
from rollup.plan.aggregation import COMMIT, EVENTS, KIND, TIMESTAMP, ZONE, Aggregation
from rollup.stores.base import before_added
from rollup.stores.delta.write import PERIOD, PERIODS


def level_table(aggregation: Aggregation, level: Duration) -> pa.Schema:
    """The columns of a level's table, that of its period included."""
    schema = aggregation.table_schema
    return schema.append(pa.field(PERIOD, pa.string())) if level in PERIODS else schema


def ledger_table(aggregation: Aggregation) -> pa.Schema:
    """The columns of the table of late events."""
    keys = [pa.field(key.name, key.type.arrow) for key in aggregation.keys]
    counts = [(KIND, pa.string()), (EVENTS, pa.int64()), (COMMIT, pa.int64())]
    return pa.schema([(TIMESTAMP, pa.int64()), (ZONE, pa.string()), *keys, *counts])


def check_columns(
    path: Path, stored: pa.Schema, declared: pa.Schema, retired: Collection[str]
) -> Mapping[str, pa.DataType]:
    """The retired columns that a table has. Raises StoreError unless it has the declared ones with their types."""
    missing = [column for column in declared.names if column not in stored.names]
    foreign = [column for column in stored.names if column not in declared.names and column not in retired]
    wrong = [
        f"{f.name} ({stored.field(f.name).type}, not {f.type})"
        for f in declared
        if f.name in stored.names and not _same(stored.field(f.name).type, f.type)
    ]
    if missing or foreign or wrong:
        words = (("lacks", missing), ("has foreign", foreign), ("has another type in", wrong))
        what = "; ".join(f"{word} {', '.join(names)}" for word, names in words if names)
        raise StoreError(
            f"the table {path} {what}",
            hint="`rollup change CONF` says what is different, and with --accept brings it in line; what another program has "
            "changed goes with RESTORE TABLE … TO VERSION AS OF the one before; a table of another owner must move away",
        )
    return {f.name: f.type for f in stored if f.name in retired}


def lacking(path: Path, stored: pa.Schema, aggregation: Aggregation) -> pa.Schema:
    """The declared values that a table does not have yet; rows of it are read with `before_added` in their place.

    Raises StoreError when it lacks more than that, or has another type: then its rows mean something else.
    """
    values = {value.name for value in aggregation.values}
    added = [f for f in aggregation.table_schema if f.name in values and f.name not in stored.names]
    declared = pa.schema([f for f in aggregation.table_schema if f not in added])
    check_columns(path, stored, declared, stored.names)
    return pa.schema(added)


def as_before(field: pa.Field, kind: str) -> str:
    """SQL for a column that a table does not have; `kind` is its type as DuckDB writes it."""
    value = before_added(field.name)
    return f"CAST({'NULL' if value is None else value} AS {kind}) AS {quoted(field.name)}"


def _same(stored: pa.DataType, declared: pa.DataType) -> bool:
    """Whether a stored type is the declared one, whatever width its text and lists are kept in."""
    texts = pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view
    bytes_ = pa.types.is_binary, pa.types.is_large_binary, pa.types.is_binary_view
    for group in (texts, bytes_):
        if any(test(declared) for test in group):
            return any(test(stored) for test in group)
    if pa.types.is_list(declared):
        return (pa.types.is_list(stored) or pa.types.is_large_list(stored)) and _same(
            stored.value_type, declared.value_type
        )
    return stored == declared


def conformed(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """Open rows of an older declaration under a newer one: `before_added` in columns that were not there."""
    if rows.schema.names == schema.names:
        return rows
    columns = [
        rows[f.name] if f.name in rows.schema.names else pa.array([before_added(f.name)] * rows.num_rows, f.type)
        for f in schema
    ]
    return pa.table(columns, names=schema.names).cast(schema)
