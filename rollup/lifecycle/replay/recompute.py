"""An aggregation computed again from raw events: with every event in its true bucket, or with the job's own policy.

Replay wants the first: what the buckets should have been. Verification wants the second, because a job that merges or
drops late events is right when its tables show exactly that. Both read in the order in which the job took the events.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field, fields, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from rollup.aggregation.admission import admit
from rollup.aggregation.cascade import Cascade
from rollup.aggregation.state import State
from rollup.checkpoint.checksums import sealed, unsealed, verified
from rollup.checkpoint.records import RecordFolder
from rollup.core.calendar import Duration
from rollup.core.columns import ColumnEngine
from rollup.core.errors import StoreError, SystemFault, not_done, refused_by_system
from rollup.hosts.pipeline import Pipeline
from rollup.lifecycle.replay.crossings import Crossings, events_of, refuse, refuse_part
from rollup.lifecycle.replay.raw import Folded, Piece, RawSource, batches
from rollup.lifecycle.replay.rebuild import Pinned, Span, within
from rollup.plan.aggregation import Aggregation, Clock, Policy
from rollup.stores.base import Commit
from rollup.stores.memory import MemoryStore

_PROGRESS = "progress.jsonl"
_KEPT = ("arrived", "events", "outside", "clock")
"""What a replay that is stopped goes on from, beside what is done and what crossed."""
_STEP = ("done", "part", *_KEPT, *(each.name for each in fields(Crossings)))


class _RangeStore(MemoryStore):
    """Keeps what a check looks at: a range of each level."""

    def __init__(self, aggregation: Aggregation, engine: ColumnEngine, spans: Mapping[Duration, Span]) -> None:
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


def rerun(raw: RawSource, engine: ColumnEngine, pieces: Sequence[Piece], spans: Mapping[Duration, Span]) -> Recomputed:
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
    that have been looked at, in the range or not, and `outside` the events that count outside of it. Where the job merges late events and all of its past is read,
    `crossings` has those that it merged across an end of the range.
    """

    raw: RawSource
    engine: ColumnEngine
    span: Span
    folder: Path
    done: list[str] = field(default_factory=list[str])
    arrived: dict[str, int] = field(default_factory=dict[str, int])
    parts: list[str] = field(default_factory=list[str])
    events: int = 0
    outside: int = 0
    clock: int | None = None
    crossings: Crossings = field(default_factory=Crossings)

    @classmethod
    def resume(cls, raw: RawSource, engine: ColumnEngine, span: Span, home: Path) -> TrueRows:
        """The one that was begun for the same app, source and range, or a new one."""
        name = json.dumps([astuple(raw.program.rollups), str(raw.folder), raw.slack, span, raw.aggregation.name])
        folder = home / f"replay-{hashlib.sha256(name.encode()).hexdigest()[:16]}"
        RecordFolder(folder).create()
        found = cls(raw, engine, span, folder)
        found._take_up()
        return found

    def _take_up(self) -> None:
        """Go on behind the last step that was written whole; what follows it is cut off, and done again."""
        path, whole = self.folder / _PROGRESS, 0
        try:
            lines = path.read_bytes().splitlines(keepends=True)
        except FileNotFoundError:
            return
        except OSError as problem:
            raise not_done(f"cannot read {path}", problem) from None
        for line in lines:
            try:
                step = unsealed(line if line.endswith(b"\n") else b"", _STEP)
                done, part, kept = step["done"], step["part"], {name: step[name] for name in _KEPT}
                kept["crossings"] = Crossings.of(step)
                verified(self.folder / part)
            except (OSError, ValueError, KeyError, TypeError) as problem:
                if refused := refused_by_system(f"cannot read {self.folder / _PROGRESS}", problem):
                    raise refused from None
                break
            self.done += done
            self.parts.append(part)
            for name, value in kept.items():
                setattr(self, name, value)
            whole += len(line)
        os.truncate(path, whole)

    def left(self, marks: Mapping[str, Any]) -> list[Piece]:
        """The pieces, of what was taken up to the marks of a commit, that are not done yet. Raises StoreError."""
        return self.raw.pieces(marks, self.span, self.done)

    def take(self, pieces: Sequence[Piece]) -> int:
        """Fold the pieces that are not done yet; how many records they held."""
        known, before = set(self.done), self.events
        for batch in batches([piece for piece in pieces if piece.name not in known]):
            folded = self.raw.fold(batch, self.arrived, self.span)
            self._trace(folded)
            rows = [within(table, *self.span).select(self._names) for table in folded.partials]
            self.outside += events_of(folded.partials) - events_of(rows)
            part = RecordFolder(self.folder).write_rows(f"part-{len(self.parts):06d}.arrow", self._merged(rows))
            self.parts.append(part)
            names = [piece.name for piece in batch]
            self.done += names
            self.arrived[batch[0].stream] = folded.following
            self.events += folded.events
            kept = {name: getattr(self, name) for name in _KEPT}
            self._note({"done": names, "part": part, **kept, **asdict(self.crossings)})
        return self.events - before

    def _note(self, step: Mapping[str, Any]) -> None:
        """Write a step behind the others: what is kept must not be written anew for every step of a long history."""
        try:
            with (self.folder / _PROGRESS).open("ab") as file:
                file.write(sealed(step) + b"\n")
                file.flush()
                os.fsync(file.fileno())
        except OSError as problem:
            raise StoreError(f"cannot write {self.folder}: {problem.strerror}") from None

    def _trace(self, folded: Folded) -> None:
        """Decide late events as the job did, and note those that it took across an end of the range."""
        aggregation = self.raw.aggregation
        if aggregation.policy is not Policy.MERGE or not self.raw.entire:
            return
        state = State.empty(aggregation)
        state = replace(state, clocks={**state.clocks, aggregation.root: self.clock})
        admitted = admit(self.engine, aggregation, state, folded.partials, partial(self.raw.second_look, folded))
        self.clock = admitted.clock
        if admitted.moves is not None:
            self.crossings = self.crossings.with_moves(admitted.moves, self.span)

    def refuse_crossed(self, pinned: Pinned) -> None:
        """Raise StoreError when the range may not be replayed alone, as events crossed an end of it."""
        if self.raw.aggregation.clock is Clock.ARRIVAL:
            return refuse_part(pinned, self.span, self.outside)
        refuse(pinned, self.span, self.rows(), self.crossings if self.raw.entire else None)

    def rows(self) -> pa.Table:
        """All rows so far, one a bucket, zone and keys."""
        folder = RecordFolder(self.folder)
        try:
            return self._merged([folder.read_rows(part) for part in self.parts])
        except SystemFault:
            raise
        except StoreError as problem:
            raise StoreError(problem.message, hint="give the replay again: what is damaged is made anew") from None

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
