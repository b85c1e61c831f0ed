"""Rows of a stream as Parquet files in a folder."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.checkpoint.file_sums import FileSums
from rollup.core.errors import StoreError, not_done, refused_by_system
from rollup.core.objects import at, replace_durably
from rollup.sinks.base import AGAIN, Held


class FileSink:
    """Parquet files in a folder, one a batch, named by how many rows of the line there are with it.

    Beside them a file `_<line>-<stream>.json` says how many rows have come, also when files were taken away since; readers
    of Parquet pass over it.
    """

    tells = True

    def __init__(self, options: Mapping[str, Any]) -> None:
        self.folder = at(options["path"])
        self._name = quote(str(options.get("name", "rows")), safe="")
        self._tidied = False

    @property
    def place(self) -> str:
        """The folder."""
        return f"the folder {self.folder}"

    @property
    def filled(self) -> bool:
        """Whether there is a file."""
        return any(self.folder.glob("*.parquet"))

    def held(self, line: str) -> Held | None:
        """What its note says, or a file that is further: a job may have been killed between the two.

        Raises StoreError when the note is damaged."""
        note = self._note(line)
        try:
            found = unsealed(note.read_bytes(), ["rows", "digest"])
            digest = found["digest"]  # null where nobody knew it
            known = Held(int(found["rows"]), None if digest is None else int(digest))
        except FileNotFoundError:
            known = Held(0)
        except (OSError, ValueError, TypeError, KeyError) as problem:
            raise refused_by_system(f"cannot read {note}", problem) or StoreError(
                f"{note} is damaged: {problem}", hint="bring it back, or give the sink another folder"
            ) from None
        newest = max(self._ends(line), default=0)
        return Held(newest, None) if newest > known.rows else known if known.rows else None

    def write(self, rows: pa.Table, line: str, held: Held) -> None:
        """Raises StoreError when the file cannot be written; nothing of it is then seen."""
        sink = pa.BufferOutputStream()
        pq.write_table(rows, sink)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._tidy(line)
            file = self.folder / f"{line}-{self._name}-{held.rows:012d}.parquet"
            replace_durably(file, sink.getvalue().to_pybytes())
            FileSums(self.folder).add([file.name])
            replace_durably(self._note(line), sealed({"rows": held.rows, "digest": held.digest}))
        except OSError as problem:
            raise not_done(f"cannot write rows into the folder {self.folder}", problem, AGAIN) from None

    def damaged(self) -> Iterator[str]:
        """See `rollup.sinks.base.Summed`."""
        return FileSums(self.folder).damaged()

    def forget(self, line: str, rows: int) -> bool:
        for file in self.folder.glob(f"{line}-*.parquet"):
            if int(file.stem.rsplit("-", 1)[1]) > rows:
                file.unlink()
        for note in self.folder.glob(f"_{line}-*.json"):
            note.unlink()
        return True

    def _note(self, line: str) -> Path:
        return self.folder / f"_{line}-{self._name}.json"

    def _ends(self, line: str) -> list[int]:
        """How many rows there are with each file that is still there."""
        names = (file.stem.rpartition("-") for file in self.folder.glob(f"{line}-{self._name}-*.parquet"))
        return [int(end) for start, _, end in names if start == f"{line}-{self._name}" and end.isdecimal()]

    def _tidy(self, line: str) -> None:
        """Remove what a job that was killed in the middle of a file has left of it; nobody else writes under this name."""
        if not self._tidied:
            for draft in self.folder.glob(f".{line}-{self._name}-*.parquet.*"):
                draft.unlink(missing_ok=True)
        self._tidied = True
