"""The snapshots of an Iceberg table read again: those that the streaming query's own log names, in their order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from rollup.core.errors import StoreError
from rollup.hosts.spark.tasks.results import Result, read
from rollup.hosts.spark.tasks.task import TaskSpec, run
from rollup.lifecycle.replay.raw_files import FileReader, RawFile, logged_files
from rollup.lifecycle.replay.rebuild import Span
from rollup.sources.iceberg import Iceberg


class SnapshotReader(FileReader):
    """Reads the snapshots of one stream; without a checkpoint, all that lead to the newest one."""

    noun: ClassVar[str] = "snapshots"

    @property
    def entire(self) -> bool:
        """See `FileReader.entire`: expired snapshots before a range are passed over."""
        return False

    @property
    def source(self) -> Iceberg:
        """The table."""
        assert isinstance(self._origin, Iceberg)
        return self._origin

    def pieces(self, mark: Mapping[str, Any] | None, span: Span | None, done: Sequence[str]) -> list[RawFile]:
        """See `Reader.pieces`."""
        found = super().pieces(mark, span, done)
        expired = set(self.source.expired([piece.path for piece in found]))
        for piece in found:
            if piece.path in expired and not self._before(piece, span):
                raise StoreError(
                    f"snapshot {piece.path.rpartition('-')[2]} of {self.source.name} is expired, and the job has taken it",
                    hint="choose a range that begins behind it, or rebuild from the tables",
                )
        return [piece for piece in found if piece.path not in expired]

    def results(self, spec: TaskSpec, piece: RawFile) -> list[Result]:
        """See `Reader.results`."""
        batch = self.source.data_files([piece.path], "the job has taken it").combine_chunks()
        return [result for found in run(spec, iter(batch.to_batches())) for result in read(found)]

    def _before(self, piece: RawFile, span: Span | None) -> bool:
        """Whether a snapshot was made before a range began, so that nothing of it is missed."""
        return span is not None and self.slack is not None and piece.modified < span[0] - self.slack

    def _taken(self, mark: Mapping[str, Any] | None) -> list[RawFile]:
        logged = None if self.checkpoint is None else logged_files(self.checkpoint, mark)
        found = reversed([*self.source.folder.new()]) if logged is None else logged
        return [RawFile(self.stream.name, file.path, file.modified, file.entry) for file in found]
