"""An aggregation computed again from raw events: with every event in its true bucket, or with the job's own policy.

Replay wants the first: what the buckets should have been. Verification wants the second, because a job that merges or
drops late events is right when its tables show exactly that. Both read files in the order in which the job took them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow as pa

from rollup.aggregation.cascade import Cascade
from rollup.aggregation.engine import Engine
from rollup.aggregation.pipeline import Pipeline
from rollup.aggregation.state import State
from rollup.calendar import Duration
from rollup.errors import StoreError
from rollup.lifecycle.raw import Folded, RawFile, RawSource, batches
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
    """Rows of each level of a range that are closed, and the state after the last file."""

    closed: Mapping[Duration, pa.Table]
    state: State


def rerun(raw: RawSource, engine: Engine, files: Sequence[RawFile], spans: Mapping[Duration, Span]) -> Recomputed:
    """The job run again over files from the first on, late events and all; what it would have in the ranges."""
    store = _RangeStore(raw.aggregation, engine, spans)
    pipeline = Pipeline(raw.aggregation, store, engine)
    arrived: dict[str, int] = {}
    for batch in batches(files):
        folded = raw.fold(batch, arrived)
        stream = batch[0].stream
        arrived[stream] = arrived.get(stream, 0) + folded.events

        def refold(steps: pa.Table, suspects: pa.Table, folded: Folded = folded) -> list[pa.Table]:
            return raw.second_look(folded, steps, suspects)

        pipeline.advance(folded.partials, refold, {})
    return Recomputed(store.tables, pipeline.state)


@dataclass
class TrueRows:
    """Rows of the finest level of a range with every event in its true bucket, made file by file.

    What is done is kept in a folder, so that a replay that was stopped goes on from there.
    """

    raw: RawSource
    engine: Engine
    span: Span
    folder: Path
    done: list[str] = field(default_factory=list[str])
    arrived: dict[str, int] = field(default_factory=dict[str, int])
    parts: int = 0

    @classmethod
    def resume(cls, raw: RawSource, engine: Engine, span: Span, home: Path) -> TrueRows:
        """The one that was begun for the same app, source and range, or a new one."""
        name = json.dumps([raw.conf.text(), raw.conf.zone, str(raw.folder), span, raw.aggregation.name])
        folder = home / f"replay-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        RecordFolder(folder).create()
        found = cls(raw, engine, span, folder)
        try:
            kept = json.loads((folder / "progress.json").read_text())
            found.done, found.arrived, found.parts = kept["done"], kept["arrived"], kept["parts"]
        except (OSError, ValueError, KeyError):
            pass  # nothing usable was kept, so it starts from the first file
        return found

    def take(self, files: Sequence[RawFile]) -> int:
        """Fold the files that are not done yet; how many records they held."""
        known, before = set(self.done), sum(self.arrived.values())
        for batch in batches([file for file in files if file.path not in known]):
            folded = self.raw.fold(batch, self.arrived)
            rows = [within(table, *self.span).select(self._names) for table in folded.partials]
            RecordFolder(self.folder).write_rows(f"part-{self.parts:06d}.arrow", self._merged(rows))
            self.parts += 1
            self.done += [file.path for file in batch]
            self.arrived[batch[0].stream] = self.arrived.get(batch[0].stream, 0) + folded.events
            kept = {"done": self.done, "arrived": self.arrived, "parts": self.parts}
            try:
                write_durably(self.folder / "progress.json", json.dumps(kept).encode())
            except OSError as problem:
                raise StoreError(f"cannot write {self.folder}: {problem.strerror}") from None
        return sum(self.arrived.values()) - before

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
