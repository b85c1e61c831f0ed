"""Files, and the log files of Delta tables, read again.

The streaming query's own log names the files of each batch. Without that log (a lost checkpoint, another folder) what
was taken is every file that is there, in order of modification time and path.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa

from rollup.core.errors import StoreError, refused_by_system
from rollup.core.objects import at
from rollup.hosts.spark.query_log import query_of
from rollup.hosts.spark.tasks.results import Result, read
from rollup.hosts.spark.tasks.task import TaskSpec, run
from rollup.lifecycle.replay.rebuild import Span
from rollup.plan.app import StreamDef
from rollup.sources.delta import Delta
from rollup.sources.file_log import Listed, listed, sources_log
from rollup.sources.files import Files
from rollup.sources.iceberg import Iceberg

FILES: Mapping[str, type[Files]] = {"parquet": Files, "csv": Files, "json": Files, "delta": Delta, "iceberg": Iceberg}
"""The kinds of sources that are files, or whose log names what is read as it does files."""


@dataclass(frozen=True)
class RawFile:
    """A file of a stream: where it is, when it was modified (ms), and the number of the log entry that took it."""

    together: ClassVar[int] = 16

    stream: str
    path: str
    modified: int
    entry: int = 0

    @property
    def name(self) -> str:
        """Its path."""
        return self.path


class FileReader:
    """Reads the files of one stream; `checkpoint` None means every file that is there.

    `slack` (ms) says how much older than an event the version of a Delta table may be that holds it: versions older
    than that are not missed when the log no longer has them.
    """

    noun: ClassVar[str] = "files"

    def __init__(
        self, stream: StreamDef, options: Mapping[str, Any], checkpoint: Path | None, slack: int | None
    ) -> None:
        self.stream = stream
        self.options = options
        self.checkpoint = checkpoint
        self.slack = slack
        self._delta = options["kind"] == "delta"
        self._origin = FILES[options["kind"]](stream, options)

    @property
    def entire(self) -> bool:
        """Whether all that was taken is read again, whatever the range."""
        return not self._delta

    def pieces(self, mark: Mapping[str, Any] | None, span: Span | None, done: Sequence[str]) -> list[RawFile]:
        """The files that are not done; see `Reader.pieces`."""
        known, found = set(done), self._taken(mark)
        return [file for file in found if file.path not in known and not self._over(file, span)]

    def results(self, spec: TaskSpec, piece: RawFile) -> list[Result]:
        """The results of `task.run` over a file. Raises StoreError when it, or a data file that it names, is gone."""
        self._check(spec, at(piece.path))
        batch = pa.RecordBatch.from_pydict({"path": [piece.path], "modified": [piece.modified * 1000]})
        return [result for found in run(spec, iter([batch])) for result in read(found)]

    def _taken(self, mark: Mapping[str, Any] | None) -> list[RawFile]:
        logged = None if self.checkpoint is None else logged_files(self.checkpoint, mark)
        found = sorted(
            self._origin.folder.new() if logged is None else logged,
            key=lambda file: (file.entry, self._origin.order(file)),
        )
        return [RawFile(self.stream.name, file.path, file.modified, file.entry) for file in found]

    def _over(self, file: RawFile, span: Span | None) -> bool:
        """Whether a version that is cleaned up was written before the range began, so that nothing of it is missed."""
        if not self._delta or span is None or self.slack is None or Path(file.path).exists():
            return False
        return file.modified < span[0] - self.slack

    def _check(self, spec: TaskSpec, path: Path) -> None:
        if not path.exists():
            what = "version" if self._delta else "raw file"
            hint = "bring it back, or choose a range that the folder still has with --source"
            if self._delta:
                hint = f"the table's log is cleaned up: {hint}"
            raise StoreError(f"the {what} {path} is gone", hint=hint)
        if not self._delta:
            return
        try:
            needed = Delta(self.stream, spec.options).needs(path)
        except (OSError, ValueError) as problem:
            if refused := refused_by_system(f"cannot read {path}", problem):
                raise refused from None
            return  # a damaged log file is a dead letter here as it was in the job
        for file in needed:
            if not file.exists():
                raise StoreError(
                    f"{file} of version {int(path.stem)} is gone: the table was compacted and vacuumed",
                    hint="choose a range that its remaining files cover, or another copy of the table with --source",
                )


def logged_files(checkpoint: Path, mark: Mapping[str, Any] | None) -> list[Listed] | None:
    """The files that the streaming query's log names up to the batch of a commit; None when there is no such log."""
    if mark is None or not sources_log(checkpoint).is_dir():
        return None
    if int(mark["batch"]) < 0:
        return []
    offset = logged_offset(checkpoint, mark["query"], int(mark["batch"]))
    if offset is None:
        return None
    return list(listed(checkpoint, range(int(offset["logOffset"]) + 1)))


def logged_offset(checkpoint: Path, query: str, batch: int) -> dict[str, Any] | None:
    """Where a source was at the end of a batch; None when the log is of another query or does not know the batch."""
    try:
        if query_of(checkpoint) != query:
            return None
        found = json.loads((checkpoint / "offsets" / str(batch)).read_text().strip().split("\n")[-1])
        return found if isinstance(found, dict) else None
    except (OSError, ValueError, KeyError, IndexError) as problem:
        if refused := refused_by_system(f"cannot read the log of the stream in {checkpoint}", problem):
            raise refused from None
        return None
