"""Rows of a stream appended to a Delta table, exactly once: each append carries the number of its commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from rollup.core.errors import StoreError


class DeltaSink:
    """A Delta table in a folder. Options: `path`, and the `name` of the stream."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.path = Path(options["path"])
        self._name = options["name"]

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        """Append the rows of a commit unless the table has them. Raises StoreError when it cannot be written."""
        application = f"rollup-{query}-{self._name}"
        try:
            if self._version(application) >= batch:
                return
            self.path.parent.mkdir(parents=True, exist_ok=True)
            write_deltalake(
                str(self.path),
                rows,
                mode="append",
                commit_properties=CommitProperties(app_transactions=[Transaction(application, batch)]),
            )
        except (DeltaError, OSError) as problem:
            raise StoreError(f"cannot append the rows of {self._name} to the table {self.path}: {problem}") from None

    def forget(self, query: str, batch: int) -> None:
        """Commits are numbered once and for all: there is nothing to take back."""

    def _version(self, application: str) -> int:
        if not DeltaTable.is_deltatable(str(self.path)):
            return -1
        found = DeltaTable(str(self.path)).transaction_version(application)
        return -1 if found is None else found
