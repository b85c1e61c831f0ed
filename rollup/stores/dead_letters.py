"""The dead-letter table: records that could not be used, with reason, position and raw text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError

from rollup.checkpoint.file_sums import FileSums
from rollup.core.errors import StoreError, not_done, refused_by_system
from rollup.core.objects import holds_table
from rollup.core.untyped import pc
from rollup.sources.base import DEAD

SCHEMA = pa.schema(
    [*DEAD, ("query", pa.string()), ("batch", pa.int64()), ("by", pa.string()), ("at", pa.int64())]  # type: ignore[list-item]
)
"""A letter and the streaming query and batch that met it. `by` are the statements that alone refused an event, null for what
nobody has taken, and `at` the time that the event has for them."""
OWN = (*DEAD.names, "by")
"""What tells a letter from another one."""
_COMPACT_EVERY = 64
_CURE = "bring its files back, or move the folder away: a new one is made with the next letter"
_WRITTEN = "the next start writes them: no event is lost"
_RETAKEN = "retaken"
"""The transactions of letters that were taken in again."""


class DeadLetters:
    """A Delta table `DEAD_LETTERS` in a folder. A batch that comes again is not written again, and neither is a letter
    that a query before this one has written: after a lost checkpoint the source sends everything once more."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "DEAD_LETTERS"
        self._sums = FileSums(self.path)
        self._before: dict[str, set[tuple[str, ...]]] = {}

    def append(self, letters: pa.Table, query: str, batch: int) -> None:
        """Write the letters of a batch of a streaming query, once. Raises StoreError."""
        if not letters.num_rows:
            return
        try:
            table = self._table()
            written = table.transaction_version(query)
            if written is not None and written >= batch:
                return
            fresh = self._fresh(table, letters, query)
            rows = fresh.append_column("query", pa.array([query] * fresh.num_rows, pa.string()))
            rows = rows.append_column("batch", pa.array([batch] * fresh.num_rows, pa.int64()))
            write_deltalake(
                table,
                whole(rows),
                mode="append",
                schema_mode="merge",
                commit_properties=CommitProperties(app_transactions=[Transaction(query, batch)]),
            )
            if table.version() % _COMPACT_EVERY == 0 and not any(self._sums.damaged()):
                table.optimize.compact()
                table.vacuum(retention_hours=1, enforce_retention_duration=False, dry_run=False)
            self._sums.add_commits()
        except (DeltaError, OSError) as problem:
            raise self._unwritten(problem) from None

    def forget(self, query: str, batch: int) -> None:
        """Remove the letters of a query's batches after one, which will be read again. Raises StoreError."""
        marked = CommitProperties(app_transactions=[Transaction(query, batch)])
        try:
            if not holds_table(self.path):
                return
            table = self._table()
            if (table.transaction_version(query) or 0) > batch:
                table.delete(f"query = '{query}' and batch > {batch}", commit_properties=marked)
                self._sums.add_commits()
        except (DeltaError, OSError) as problem:
            raise self._unwritten(problem) from None

    def replace(self, gone: pa.Table, added: pa.Table, mark: int) -> None:
        """Take letters out and put others in, once for a mark; these rise. Raises StoreError."""
        try:
            table = self._table()
            if (table.transaction_version(_RETAKEN) or 0) >= mark:
                return
            rows, known = self.read(), Counter(_rows(gone))
            kept = [known[row] == 0 or known.subtract([row]) is not None for row in _rows(rows)]
            write_deltalake(
                table,
                pa.concat_tables([rows.filter(pa.array(kept, pa.bool_())), added.cast(SCHEMA)]),
                mode="overwrite",
                schema_mode="overwrite",
                commit_properties=CommitProperties(app_transactions=[Transaction(_RETAKEN, mark)]),
            )
            self._sums.add_commits()
        except (DeltaError, OSError) as problem:
            raise self._unwritten(problem) from None

    def damaged(self) -> Iterator[str]:
        """Files that are no longer as they were written. Raises OSError where they cannot be read."""
        return self._sums.damaged()

    def require_whole(self) -> None:
        """Raises StoreError where a file is damaged: nothing is to be made of its letters."""
        for file in self.damaged():
            raise StoreError(f"the file {file} is damaged: its checksum is another", hint=_CURE) from None

    def read(self) -> pa.Table:
        """All letters, `SCHEMA`."""
        try:
            if not holds_table(self.path):
                return SCHEMA.empty_table()
            return whole(DeltaTable(str(self.path)).to_pyarrow_table())
        except (DeltaError, OSError, pa.ArrowInvalid) as problem:
            what = f"cannot read the dead letters in {self.path}"
            if refused := refused_by_system(what, problem):
                raise refused from None
            self.require_whole()
            raise StoreError(f"{what}: {str(problem).splitlines()[0]}", hint=_CURE) from None

    def _unwritten(self, problem: Exception) -> StoreError:
        return not_done(f"cannot write dead letters to {self.path}", problem, _WRITTEN)

    def _table(self) -> DeltaTable:
        if not holds_table(self.path):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            DeltaTable.create(str(self.path), SCHEMA, mode="ignore")
        return DeltaTable(str(self.path))

    def _fresh(self, table: DeltaTable, letters: pa.Table, query: str) -> pa.Table:
        """Without those that an earlier query of the same stream has written."""
        if query not in self._before:
            streams = pc.unique(letters["stream"]).to_pylist()
            known = table.to_pyarrow_table(filters=[("query", "!=", query), ("stream", "in", streams)])
            self._before[query] = set(_identity(known))
        before = self._before[query]
        if not before:
            return letters
        return letters.filter(pa.array([letter not in before for letter in _identity(letters)], pa.bool_()))


def whole(letters: pa.Table) -> pa.Table:
    """Letters with all columns; those that they lack are null, as in a table of before they were."""
    for field in SCHEMA:
        if field.name not in letters.column_names:
            letters = letters.append_column(field, pa.nulls(letters.num_rows, field.type))
    return letters.select(SCHEMA.names).cast(SCHEMA)


def _rows(letters: pa.Table) -> list[tuple[Any, ...]]:
    return list(zip(*(letters[name].to_pylist() for name in SCHEMA.names), strict=True))


def _identity(letters: pa.Table) -> list[tuple[str, ...]]:
    letters = whole(letters)
    return list(zip(*(letters[name].to_pylist() for name in OWN), strict=True))
