"""The store of an aggregation in a database, by its URL or the app's @store: PostgreSQL's own way, or plain SQL."""

from __future__ import annotations

from collections.abc import Mapping

import sqlalchemy as sa
from sqlalchemy.exc import ArgumentError

from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError
from rollup.plan.aggregation import Aggregation
from rollup.stores.postgres.database import APPLICATION, PostgresDatabase
from rollup.stores.sql.ddl import Tables, answer_ddl, table_ddl
from rollup.stores.sql.lease import lease_ddl
from rollup.stores.sql.options import StoreOptions
from rollup.stores.sql.plain import CoreDatabase
from rollup.stores.sql.store import SqlStore


def ddl_of(aggregation: Aggregation, options: str | Mapping[str, str]) -> list[str]:
    """The statements that make the tables, and in PostgreSQL (schema public) the functions and views, for reading."""
    found = StoreOptions.of(options)
    statements = table_ddl(aggregation, found.dialect, found.partition is not None)
    statements.append(lease_ddl(aggregation.name, found.dialect))
    return statements + (answer_ddl(aggregation, "public") if found.dialect == "postgresql" else [])


def store_of(
    aggregation: Aggregation, engine: ColumnEngine, options: str | Mapping[str, str] | None = None, patience: float = 60
) -> SqlStore:
    """The store that a URL, the options of `@store(type='rdbms', …)`, or (None) the aggregation's own @store names.

    Raises StoreError naming the option that is wrong or missing, or the driver that is not installed.
    """
    found = StoreOptions.of(aggregation.store if options is None else options)
    tables = Tables(aggregation, found.dialect)
    try:
        ours = found.dialect == "postgresql" and "application_name" not in str(found.url)  # also among its options
        named = {"fallback_application_name": APPLICATION} if ours else {}
        connections = sa.create_engine(found.url, pool_reset_on_return="rollback", connect_args=named)
    except (ModuleNotFoundError, ArgumentError) as problem:
        raise StoreError(f"{found.shown}: {problem}", hint=found.driver_hint) from None
    if found.dialect == "postgresql":
        return SqlStore(aggregation, engine, PostgresDatabase(tables, connections, found.partition), tables, patience)
    if found.partition is not None:
        raise StoreError(f"partition={found.partition!r} needs PostgreSQL, not {found.dialect}")
    return SqlStore(aggregation, engine, CoreDatabase(tables, connections), tables, patience)
