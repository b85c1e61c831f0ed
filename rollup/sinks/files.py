"""Rows of a stream as Parquet files in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from rollup.checkpoint.records import replace_durably
from rollup.core.errors import StoreError
from rollup.sinks.base import AGAIN


class FileSink:
    """Parquet files in a folder, one a batch, named by it: a batch that comes again replaces its own file."""

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.folder = Path(options["path"])
        self._tidied = False

    def write(self, rows: pa.Table, query: str, batch: int) -> None:
        """Raises StoreError when the file cannot be written; nothing of it is then seen."""
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._tidy(query)
            replace_durably(self.folder / f"{query}-{batch:09d}.parquet", sink.getvalue().to_pybytes())
        except OSError as problem:
            raise StoreError(
                f"cannot write rows into the folder {self.folder}: {problem.strerror}", hint=AGAIN
            ) from None

    def _tidy(self, query: str) -> None:
        """Remove what a job that was killed in the middle of a file has left of it; nobody else writes under this name."""
        if not self._tidied:
            for draft in self.folder.glob(f".{query}-*.parquet.*"):
                draft.unlink(missing_ok=True)
        self._tidied = True

    def forget(self, query: str, batch: int) -> None:
        for file in self.folder.glob(f"{query}-*.parquet"):
            if int(file.stem.removeprefix(f"{query}-")) > batch:
                file.unlink()
