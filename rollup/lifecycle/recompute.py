"""An aggregation computed again from raw events: with every event in its true bucket, or with the job's own policy.

Replay wants the first: what the buckets should have been. Verification wants the second, because a job that merges or
drops late events is right when its tables show exactly that. Both read in the order in which the job took the events.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from rollup.aggregation.cascade import Cascade
from rollup.aggregation.engine import Engine
from rollup.aggregation.pipeline import Pipeline
from rollup.aggregation.state import State
from rollup.calendar import Duration
from rollup.errors import StoreError
from rollup.lifecycle.raw import Folded, Piece, RawSource, batches
from rollup.lifecycle.rebuild import Span, within
from rollup.plan.aggregation import Aggregation
from rollup.stores.base import Commit
from rollup.stores.delta_record import RecordFolder, write_durably
from rollup.stores.memory import MemoryStore


class _RangeStore(MemoryStore):
    """Keeps what a check looks at: a range of each level."""

    def __init__(self, aggregation: Aggregation, engine: Engine, spans: Mapping[Duration, Span]) -> None:
        super().__init__(aggregation, engine)
        self.spans = spans

    def commit(self, commit: Commit) -> None:
        closed = {level: within(rows, *self.spans[level]) for level, rows in commit.closed.items()}
        super().commit(Commit(commit.number, commit.state, closed, None, commit.source))


@dataclass(frozen=True)
class Recomputed:
    """Rows of each level of a range that are closed, and the state after the last event."""

    closed: Mapping[Duration, pa.Table]
    state: State


def rerun(raw: RawSource, engine: Engine, pieces: Sequence[Piece], spans: Mapping[Duration, Span]) -> Recomputed:
    """The job run again over all that it took, late events and all; what it would have in the ranges."""
    store = _RangeStore(raw.aggregation, engine, spans)
    pipeline = Pipeline(raw.aggregation, store, engine)
    arrived: dict[str, int] = {}
    for batch in batches(pieces):
        folded = raw.fold(batch, arrived)
        arrived[batch[0].stream] = folded.following

        def refold(steps: pa.Table, suspects: pa.Table, folded: Folded = folded) -> list[pa.Table]:
            return raw.second_look(folded, steps, suspects)

        pipeline.advance(folded.partials, refold, {})
    return Recomputed(store.tables, pipeline.state)


@dataclass
class TrueRows:
    """Rows of the finest level of a range with every event in its true bucket, made piece by piece.

    What is done is kept in a folder, so that a replay that was stopped goes on from there. `events` counts the records
    that have been looked at, in the range or not.
    """

    raw: RawSource
    engine: Engine
    span: Span
    folder: Path
    done: list[str] = field(default_factory=list[str])
    arrived: dict[str, int] = field(default_factory=dict[str, int])
    parts: int = 0
    events: int = 0

    @classmethod
    def resume(cls, raw: RawSource, engine: Engine, span: Span, home: Path) -> TrueRows:
        """The one that was begun for the same app, source and range, or a new one."""
        name = json.dumps([raw.conf.text(), raw.conf.zone, str(raw.folder), raw.slack, span, raw.aggregation.name])
        folder = home / f"replay-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        RecordFolder(folder).create()
        found = cls(raw, engine, span, folder)
        try:
            kept = json.loads((folder / "progress.json").read_text())
            found.done, found.arrived, found.parts = kept["done"], kept["arrived"], kept["parts"]
            found.events = kept["events"]
        except (OSError, ValueError, KeyError):
            found.done, found.arrived, found.parts = [], {}, 0  # nothing usable was kept: it starts from the beginning
        return found

    def left(self, marks: Mapping[str, Any]) -> list[Piece]:
        """The pieces, of what was taken up to the marks of a commit, that are not done yet. Raises StoreError."""
        return self.raw.pieces(marks, self.span, self.done)

    def take(self, pieces: Sequence[Piece]) -> int:
        """Fold the pieces that are not done yet; how many records they held."""
        known, before = set(self.done), self.events
        for batch in batches([piece for piece in pieces if piece.name not in known]):
            folded = self.raw.fold(batch, self.arrived, self.span)
            rows = [within(table, *self.span).select(self._names) for table in folded.partials]
            RecordFolder(self.folder).write_rows(f"part-{self.parts:06d}.arrow", self._merged(rows))
            self.parts += 1
            self.done += [piece.name for piece in batch]
            self.arrived[batch[0].stream] = folded.following
            self.events += folded.events
            kept = {"done": self.done, "arrived": self.arrived, "parts": self.parts, "events": self.events}
            try:
                write_durably(self.folder / "progress.json", json.dumps(kept).encode())
            except OSError as problem:
                raise StoreError(f"cannot write {self.folder}: {problem.strerror}") from None
        return self.events - before

    def rows(self) -> pa.Table:
        """All rows so far, one a bucket, zone and keys."""
        folder = RecordFolder(self.folder)
        return self._merged([folder.read_rows(f"part-{number:06d}.arrow") for number in range(self.parts)])

    def remove(self) -> None:
        """Forget what was kept."""
        for path in self.folder.iterdir():
            path.unlink()
        self.folder.rmdir()

    @property
    def _names(self) -> list[str]:
        return self.raw.aggregation.state_schema.names

    def _merged(self, parts: list[pa.Table]) -> pa.Table:
        return Cascade(self.raw.aggregation).merge(self.engine, self.raw.aggregation.root, parts)
