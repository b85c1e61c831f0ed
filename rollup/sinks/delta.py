"""Rows of a stream in a Delta table, exactly once: each write carries the number of its commit."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError
from sqlglot import exp

from rollup.core.errors import StoreError, said_by_system
from rollup.engine.flows.keyed import equal_keys, last_of
from rollup.sinks.base import AGAIN


class DeltaSink:
    """A Delta table in a folder. Options: `path`, the `name` of the stream, and of a table its `key`: rows are then
    merged, of each key the last one stays."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.path = Path(options["path"])
        self._name, self._key = options["name"], tuple(options.get("key", ()))

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        """Write the rows of a commit unless the table has them. Raises StoreError when it cannot be written."""
        application = f"rollup-{query}-{self._name}"
        once = CommitProperties(app_transactions=[Transaction(application, batch)])
        try:
            if self._version(application) >= batch:
                return
            rows = equal_keys(last_of(rows, self._key), self._key) if self._key else rows
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._key and DeltaTable.is_deltatable(str(self.path)):
                self._merge(rows, once)
            else:
                write_deltalake(str(self.path), rows, mode="append", commit_properties=once)
        except (DeltaError, OSError) as problem:
            verb = "merge" if self._key else "append"
            said = said_by_system(problem) or problem
            raise StoreError(
                f"cannot {verb} the rows of {self._name} to the table {self.path}: {said}", hint=AGAIN
            ) from None

    def _merge(self, rows: pa.Table, once: CommitProperties) -> None:
        """One row of each key in place of the one that is there; a null is a key as any other."""
        there, come = (
            [exp.column(name, table=table, quoted=True) for name in self._key] for table in ("there", "come")
        )
        # In brackets: DataFusion reads `a IS NOT DISTINCT FROM b AND …` as one of `b AND …`.
        same = [exp.paren(exp.NullSafeEQ(this=one, expression=other)) for one, other in zip(there, come, strict=True)]
        (
            DeltaTable(str(self.path))
            .merge(rows, exp.and_(*same).sql("postgres"), "come", "there", commit_properties=once)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )

    def forget(self, query: str, batch: int) -> None:
        """Commits are numbered once and for all: there is nothing to take back."""

    def _version(self, application: str) -> int:
        if not DeltaTable.is_deltatable(str(self.path)):
            return -1
        found = DeltaTable(str(self.path)).transaction_version(application)
        return -1 if found is None else found
