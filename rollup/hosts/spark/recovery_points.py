"""To which commits an aggregation in files can go back: who names one to the user, and who goes, ask the same."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rollup.checkpoint.records import Record, RecordFolder
from rollup.core.errors import StoreError, SystemFault
from rollup.hosts.spark.query_log import beyond, query_of
from rollup.stores.delta.missing import damage


@dataclass(frozen=True)
class RecoveryPoints:
    """The commits of an aggregation whose tables are below `root`, and the checkpoint of its streams."""

    name: str
    root: Path
    records: RecordFolder
    checkpoint: Path

    def whole(self, number: int) -> Record:
        """A record whose open rows are there. Raises StoreError where it is damaged."""
        record = self.records.read(number)
        for name in record.open.values():
            self.records.read_rows(name)
        return record

    def check(self, number: int) -> list[str]:
        """What the next start does about the streams after a commit. Raises StoreError where it cannot be gone back to."""
        record = self.whole(number)
        if not record.source and any(self._source(later) for later in self.records.numbers() if later > number):
            raise StoreError(
                f"commit {number} of {self.name} is from before its first batch, and does not say where streams go on",
                hint="choose a later one; to compute all anew remove its tables and the checkpoint",
            )
        if broken := damage(self.root, self.name, record):
            raise StoreError(
                f"commit {number} of {self.name} is whole, its tables are not: {'; '.join(broken.values())}",
                hint="bring them back, or --rebuild goes by the newest",
            )
        return [self._going_on(self.checkpoint / stream, mark) for stream, mark in record.source.items()]

    def possible(self) -> Iterator[int]:
        """The commits that can be gone back to, the newest first. Raises SystemFault where the system refuses to say."""
        for number in reversed(self.records.numbers()):
            try:
                self.check(number)
            except SystemFault:
                raise
            except StoreError:
                continue
            yield number

    def _source(self, number: int) -> Mapping[str, Any]:
        with suppress(StoreError):
            return self.whole(number).source
        return {}

    @staticmethod
    def _going_on(checkpoint: Path, mark: Mapping[str, Any]) -> str:
        query, batch = query_of(checkpoint), int(mark["batch"])
        if query is None:
            return (
                f"{checkpoint.name}: there is no checkpoint, so the stream is read from its start; "
                "events already in the tables are late or counted again: use --rebuild with --aggregation"
            )
        if query != mark["query"]:
            raise StoreError(
                f"{checkpoint} is of another query than the commit",
                hint="--rebuild with --aggregation uses the tables alone",
            )
        beyond(checkpoint, batch)
        return f"{checkpoint.name}: goes on after batch {batch}"
