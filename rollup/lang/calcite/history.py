"""Rows of a table that are stored elsewhere: a Delta table, read by DuckDB as it is when a query first names it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from rollup.core.errors import ConfigError, said_by_system

Rows = Callable[[], Any]
"""Gives what DuckDB can scan: an Arrow table or dataset. It is asked when a query names its table."""


def delta(where: str, path: Path) -> tuple[tuple[tuple[str, str], ...], Rows]:
    """The columns of a Delta table with DuckDB's types, and its rows; times are in UTC. Raises ConfigError."""
    from deltalake import DeltaTable
    from deltalake.exceptions import DeltaError

    try:
        dataset = DeltaTable(str(path)).to_pyarrow_dataset()
    except (DeltaError, OSError) as problem:
        reason = said_by_system(problem) or str(problem).split("\n")[0]
        raise ConfigError(f"{where}: {path} cannot be read as a Delta table: {reason}") from None
    with duckdb.connect() as connection:
        kinds = connection.from_arrow(dataset.schema.empty_table()).types
    names = [
        (name, str(kind).replace(" WITH TIME ZONE", "")) for name, kind in zip(dataset.schema.names, kinds, strict=True)
    ]
    return tuple(names), lambda: dataset
