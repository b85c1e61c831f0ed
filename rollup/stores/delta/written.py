"""A Delta table as its one writer knows it: the version, and the files of it, without reading back what it has written.

The library lists and reads its own entry of the log five times after it has made one; in an object store each of that
waits for an answer. An entry that only adds files is some lines of JSON whose name can be made once, as a commit record's.
"""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError
from deltalake.transaction import AddAction

from rollup.core.errors import not_done
from rollup.core.objects import create
from rollup.stores.delta.index import FileIndex
from rollup.stores.delta.write import cleaned_behind

_PLAIN = (1, 2, None, None)
"""The protocol of tables as they are made here; one to which another program has given a feature is for the library."""
_CHECKPOINTED, _CHECKPOINT_EVERY = "delta.checkpointInterval", "100"
"""The property that says after how many versions a checkpoint is made, and the library's own number."""


class WrittenTable:
    """`version` is the newest that its writer has made or accepted; the log may have later ones, of others."""

    def __init__(self, path: Path) -> None:
        """Raises DeltaError or OSError where there is no table."""
        self.path = path
        self._table = DeltaTable(str(path))
        self.version = self._table.version()
        self._listed: tuple[int, FileIndex] | None = None

    @property
    def table(self) -> DeltaTable:
        """The table by the library, which knows this version, or later ones. Raises StoreError as `reread`."""
        if self._table.version() != self.version:
            self._read_on()
        return self._table

    def reread(self) -> None:
        """Go by the newest version in the log, whoever has made it. Raises StoreError when it cannot be read."""
        self._read_on()
        self.version = self._table.version()

    def _read_on(self) -> None:
        try:
            self._table.update_incremental()
        except (DeltaError, OSError) as problem:
            raise not_done(f"cannot read the table {self.path}", problem) from None

    @property
    def index(self) -> FileIndex:
        """The files of the version: from what was known of them, by what the log has got since."""
        known, index = self._listed or (-1, None)
        found = None if index is None else index.after(self.path, known, self.version)
        if found is None:
            table = self.table
            same = table.version() == self.version
            found = FileIndex.of(table if same else DeltaTable(str(self.path), version=self.version))
        self._listed = self.version, found
        return found

    def append(self, files: Sequence[AddAction], writer: str, number: int) -> bool:
        """Add written files in one entry, which says by whom and in which commit.

        False where nobody can say that it is made, or the library is to make it: it also writes checkpoints, and removes
        what is over.
        """
        if not self._plain:
            return False
        actions = [*_said(), *map(_added, files), {"txn": {"appId": writer, "version": number}}]
        content = "\n".join(json.dumps(action, separators=(",", ":"), ensure_ascii=False) for action in actions)
        try:
            create(self.path / "_delta_log" / f"{self.version + 1:020d}.json", content.encode())
        except OSError:  # it is another's, or the system refuses it
            return False
        if self._listed is not None and self._listed[0] == self.version:
            self._listed = self.version + 1, self._listed[1].by(self.path, actions)
        self.version += 1
        return True

    @property
    def _plain(self) -> bool:
        protocol = self._table.protocol()
        said = (
            protocol.min_reader_version,
            protocol.min_writer_version,
            protocol.reader_features,
            protocol.writer_features,
        )
        every = str(self._table.metadata().configuration.get(_CHECKPOINTED, _CHECKPOINT_EVERY))
        if said != _PLAIN or not every.isdecimal() or cleaned_behind(self.version):
            return False
        return (self.version + 2) % max(1, int(every)) != 0


def _said() -> list[dict[str, Any]]:
    info = {"timestamp": int(time.time() * 1000), "operation": "WRITE", "operationParameters": {"mode": "Append"}}
    return [{"commitInfo": {**info, "engineInfo": "rollup"}}]


def _added(file: AddAction) -> dict[str, Any]:
    return {
        "add": {
            "path": quote(file.path, safe="/="),
            "partitionValues": file.partition_values,
            "size": file.size,
            "modificationTime": file.modification_time,
            "dataChange": file.data_change,
            "stats": file.stats,
        }
    }
