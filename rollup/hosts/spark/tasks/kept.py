"""Events that tasks have read, kept as files beside them for the second look that late events ask for.

To read a batch of JSON or CSV again costs as much as the first time. So once a batch of a stream needed a second look, the
tasks of the next ones leave what they have parsed in the exchange, and the driver folds that. Where a file is
missing (no room, another machine, a batch before) the batch is read again, as from a source that is cheap to read.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rollup.hosts.spark.tasks.results import KeptFiles, Kind, Result

_BATCHES = 16
"""Batches without a second look after which events are no longer kept."""


class Kept:
    """The files of the batch in hand, gone at the end of a `with`; and which streams are worth it."""

    def __init__(self) -> None:
        self._wanted: dict[str, int] = {}
        self._files: list[str] = []

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        while self._files:
            Path(self._files.pop()).unlink(missing_ok=True)

    def wanted(self, stream: str) -> bool:
        """Whether tasks of a batch of that stream are to keep its events; asked once a batch."""
        left = self._wanted.get(stream, 0)
        self._wanted[stream] = max(0, left - 1)
        return left > 0

    def ask(self, stream: str) -> None:
        """A batch of that stream needed a second look."""
        self._wanted[stream] = _BATCHES

    def files(self, results: Sequence[Result]) -> KeptFiles | None:
        """Where the events of a batch are, by its results; None when not all of them were kept."""
        found = [(each.origin, each.file) for each in results if each.kind is Kind.KEPT and each.file]
        self._files += [file for _, file in found]
        return found if found and len(found) == sum(each.kind is Kind.PART for each in results) else None
