"""Rows of a stream in a Delta table, exactly once: each write carries how many rows of the line there are with it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any
from urllib.parse import unquote

import pyarrow as pa
from deltalake import CommitProperties, DeltaTable, Transaction, write_deltalake
from deltalake.exceptions import DeltaError
from sqlglot import exp

from rollup.checkpoint.file_sums import FileSums
from rollup.core.errors import StoreError, not_done
from rollup.core.objects import at, holds_table
from rollup.engine.flows.keyed import equal_keys, last_of
from rollup.sinks.base import AGAIN, Held

_DIGEST = "rollup.digest"
"""In the commit's own words: the sum of hashes of the rows of a line, by the name of its transaction."""


class DeltaSink:
    """A Delta table in a folder. Options: `path`, the `name` of the stream, and of a table its `key`: rows are then
    merged, of each key the last one stays."""

    tells = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.path = at(options["path"])
        self._name, self._key = options["name"], tuple(options.get("key", ()))

    @property
    def place(self) -> str:
        """The table."""
        return f"the table {self.path}"

    @property
    def filled(self) -> bool:
        """Whether there is a file. With a key a row that comes again takes the place of the first. Raises StoreError as `held`."""
        try:
            return not self._key and holds_table(self.path) and bool(DeltaTable(str(self.path)).file_uris())
        except (DeltaError, OSError) as problem:
            raise self._refused("read", problem) from None

    def held(self, line: str) -> Held | None:
        """What its transaction says. Raises StoreError when the table cannot be read."""
        try:
            if not holds_table(self.path):
                return None
            table = DeltaTable(str(self.path))
            rows = table.transaction_version(self._application(line))
            return None if rows is None else Held(rows, self._digest(table, line, rows))
        except (DeltaError, OSError) as problem:
            raise self._refused("read", problem) from None

    def write(self, rows: pa.Table, line: str, held: Held) -> None:
        """Raises StoreError when the table cannot be written."""
        application = self._application(line)
        once = CommitProperties(
            app_transactions=[Transaction(application, held.rows)],
            custom_metadata={_DIGEST: json.dumps({application: [held.rows, held.digest]})},
        )
        try:
            rows = equal_keys(last_of(rows, self._key), self._key) if self._key else rows
            self.path.parent.mkdir(parents=True, exist_ok=True)
            if self._key and holds_table(self.path):
                self._merge(rows, once)
            else:
                write_deltalake(str(self.path), rows, mode="append", commit_properties=once)
            FileSums(self.path).add_commits()
        except (DeltaError, OSError) as problem:
            raise self._refused("merge" if self._key else "append", problem) from None

    def _application(self, line: str) -> str:
        return f"rollup-rows-{line}-{self._name}"

    def _digest(self, table: DeltaTable, line: str, rows: int) -> int | None:
        """What the commit of the last rows says; None where the log no longer has that commit."""
        application = self._application(line)
        for commit in table.history():
            with suppress(ValueError, TypeError, KeyError, LookupError):
                count, digest = json.loads(commit[_DIGEST])[application]
                return int(digest) if count == rows and digest is not None else None
        return None

    def _refused(self, verb: str, problem: Exception) -> StoreError:
        rows = f"{verb} the rows of {self._name} to the table" if verb != "read" else "read the table"
        return not_done(f"cannot {rows} {self.path}", problem, AGAIN)

    def _merge(self, rows: pa.Table, once: CommitProperties) -> None:
        """One row of each key in place of the one that is there; a null is a key as any other.

        It writes rows again that others have left, so none of them may be in a damaged file, which nobody would find then.
        """
        table = DeltaTable(str(self.path))
        files = {unquote(str(each)) for each in pa.table(table.get_add_actions())["path"].to_pylist()}
        for file in FileSums(self.path).damaged(files):
            raise StoreError(
                f"cannot merge the rows of {self._name} to the table {self.path}: the file {file} is damaged",
                hint="bring it back from a copy, then start the job again; `rollup verify` names all such files",
            )
        there, come = (
            [exp.column(name, table=table, quoted=True) for name in self._key] for table in ("there", "come")
        )
        # In brackets: DataFusion reads `a IS NOT DISTINCT FROM b AND …` as one of `b AND …`.
        same = [exp.paren(exp.NullSafeEQ(this=one, expression=other)) for one, other in zip(there, come, strict=True)]
        (
            table.merge(rows, exp.and_(*same).sql("postgres"), "come", "there", commit_properties=once)
            .when_matched_update_all()
            .when_not_matched_insert_all()
            .execute()
        )

    def damaged(self) -> Iterator[str]:
        """See `rollup.sinks.base.Summed`."""
        return FileSums(self.path).damaged()

    def forget(self, line: str, rows: int) -> bool:
        """What is there stays there."""
        return False
