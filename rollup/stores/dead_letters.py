"""The dead-letter table: records that could not be used, with reason, position and raw text."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake

from rollup.sources.base import DEAD


class DeadLetters:
    """A Delta table `DEAD_LETTERS` in a folder; a batch that comes again is not written again."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "DEAD_LETTERS"

    def append(self, letters: pa.Table, query: str, batch: int) -> None:
        """Write the letters of a batch of a streaming query, once."""
        if not letters.num_rows:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if DeltaTable.is_deltatable(str(self.path)):
            written = DeltaTable(str(self.path)).transaction_version(query)
            if written is not None and written >= batch:
                return
        numbered = letters.append_column("batch", pa.array([batch] * letters.num_rows, pa.int64()))
        properties = CommitProperties(app_transactions=[Transaction(query, batch)])
        write_deltalake(str(self.path), numbered, mode="append", commit_properties=properties)

    def read(self) -> pa.Table:
        """All letters."""
        if not DeltaTable.is_deltatable(str(self.path)):
            return DEAD.append(pa.field("batch", pa.int64())).empty_table()
        return DeltaTable(str(self.path)).to_pyarrow_table()
