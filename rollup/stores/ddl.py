"""The statements that create an aggregation's tables, for a store's administrator to read or run."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rollup.core.columns import ColumnEngine
from rollup.core.dialects import to_sql
from rollup.plan.aggregation import Aggregation
from rollup.stores.registry import database

if TYPE_CHECKING:
    from rollup.conf import Conf


def statements(conf: Conf, aggregation: Aggregation, engine: ColumnEngine) -> list[str]:
    """One CREATE TABLE a level, in the words of the configured store."""
    options = database(conf, aggregation)
    if options is not None:
        from rollup.stores.databases import ddl_of

        return ddl_of(aggregation, options)
    return [_delta(conf, aggregation, aggregation.table(level)) for level in aggregation.levels]


def _delta(conf: Conf, aggregation: Aggregation, table: str) -> str:
    columns = ",\n  ".join(f"`{name}` {to_sql(kind.table_sql, 'spark')}" for name, kind in aggregation.kinds.items())
    return f"CREATE TABLE `{table}` (\n  {columns}\n) USING delta LOCATION '{conf.tables / table}'"
