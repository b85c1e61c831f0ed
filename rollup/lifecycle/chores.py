"""What whoever holds the lease of an aggregation does between two batches: waiting replays and repairs, retention.

A replay reads raw events for as long as it takes, beside the live job, and leaves a request. The live job completes it
with the files it has taken in the meantime and commits it between two batches, so there is one writer at any time and
no event counts twice or is forgotten. Without a live job the replay takes the lease and does the same itself. A
request stays until its commit is made: killed in between, it is simply done again, with the same result.
"""

from __future__ import annotations

import json
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rollup.aggregation.engine import Engine
from rollup.aggregation.pipeline import Pipeline
from rollup.conf import Conf
from rollup.errors import RollupError, StoreError
from rollup.lifecycle import change
from rollup.lifecycle.book import Book, folder
from rollup.lifecycle.lease_places import lease_of
from rollup.lifecycle.raw import RawSource
from rollup.lifecycle.rebuild import Rebuilder, Rebuilt, Span
from rollup.lifecycle.recompute import TrueRows
from rollup.lifecycle.retention import Purge, purge
from rollup.lifecycle.verify import Verifier
from rollup.plan.aggregation import Aggregation
from rollup.plan.retention import retention
from rollup.program import Program
from rollup.stores.delta_record import write_durably
from rollup.stores.registry import open_store

REPLAY, REPAIR = "replay", "repair"


@dataclass(frozen=True)
class Request:
    """A change of the past that is asked of whoever writes the aggregation.

    `source` is another folder of raw files, `slack` how far a broker's timestamps may be from those of the events.
    """

    kind: str
    start: int
    end: int
    source: str | None = None
    slack: str | None = None

    @property
    def span(self) -> Span:
        """The range, ms."""
        return self.start, self.end


class Chores:
    """The chores of one aggregation."""

    def __init__(self, conf: Conf, program: Program, pipeline: Pipeline) -> None:
        self.conf = conf
        self.program = program
        self.pipeline = pipeline
        self.book = Book.of(conf, pipeline.aggregation.name)
        self.plan = retention(pipeline.aggregation.purge, pipeline.aggregation.levels)
        self.home = folder(conf, pipeline.aggregation.name)
        self._engine: Engine | None = None
        self._purged = time.monotonic()

    @property
    def engine(self) -> Engine:
        """An engine of our own, made when there is something to do."""
        if self._engine is None:
            self._engine = Engine(threads=2)
        return self._engine

    @property
    def waiting(self) -> bool:
        """Whether there is something to do."""
        return bool(list(_requests(self.home))) or self._purge_due

    def run(self) -> list[str]:
        """Do what is waiting; what was done, for people to read. Nothing else may write the aggregation meanwhile."""
        said: list[str] = []
        for path in _requests(self.home):
            try:
                said.append(self.perform(Request(**json.loads(path.read_text()))))
                answer = {"done": said[-1]}
            except (ValueError, TypeError) as problem:
                answer = {"refused": f"{path} is no request: {problem}"}
            except RollupError as problem:
                if type(problem).__name__ == "FencedError":
                    raise
                answer = {"refused": str(problem)}
            write_durably(path.with_suffix(".answer"), json.dumps(answer).encode())
            path.unlink(missing_ok=True)
        if self._purge_due:
            said += self.purge()
        return said

    def perform(self, request: Request) -> str:
        """Carry out one request in one commit. Raises StoreError when it is refused."""
        rebuilt = self._rebuild(request)
        self.pipeline.rewrite(rebuilt.rewrites, rebuilt.state)
        rows = {level.plural: rewrite.rows.num_rows for level, rewrite in rebuilt.rewrites.items()}
        page = self.book.page()
        if request.kind == REPLAY:
            snapshot = self.pipeline.store.snapshot()
            extent = snapshot.extent(self.pipeline.aggregation.root)
            page = change.filled(page, request.span, None if extent is None else extent[0])
            self.book.write(page)
        self.book.note(request.kind, **asdict(request), commit=self.pipeline.number, rows=rows)
        counts = ", ".join(f"{count} {level}" for level, count in rows.items())
        name = self.pipeline.aggregation.name
        return f"{request.kind} is commit {self.pipeline.number} of {name}: rows written: {counts}"

    def purge(self) -> list[str]:
        """Remove what retention lets go, in one commit."""
        self._purged = time.monotonic()
        if self.plan is None:
            return []
        found: Purge = purge(self.pipeline, self.engine, self.plan, self.book)
        return [f"removed {level.plural} before {cut}" for level, cut in found.cuts.items()] + [
            f"kept {line}" for line in found.kept
        ]

    @property
    def _purge_due(self) -> bool:
        return self.plan is not None and (time.monotonic() - self._purged) * 1000 >= self.plan.interval

    def _rebuild(self, request: Request) -> Rebuilt:
        snapshot, page = self.pipeline.store.snapshot(), self.book.page()
        rebuilder = Rebuilder(self.engine, self.pipeline.cascade, snapshot, page)
        if request.kind == REPAIR:
            verifier = Verifier(self.engine, self.pipeline.cascade, snapshot, page)
            found = list(verifier.levels(request.span))
            if not found:
                raise StoreError("nothing differs in this range any more")
            return verifier.repair(found)
        rows = true_rows(self.conf, self.program, self.pipeline.aggregation, self.engine, request)
        rows.take(rows.left(self.pipeline.source))
        return rebuilder.replace(request.span, rows.rows())


def true_rows(conf: Conf, program: Program, aggregation: Aggregation, engine: Engine, request: Request) -> TrueRows:
    """The raw rows of a replay, as far as they have been made."""
    source = None if request.source is None else Path(request.source)
    return TrueRows.resume(
        RawSource(conf, program, aggregation, source, request.slack),
        engine,
        request.span,
        folder(conf, aggregation.name),
    )


def submit(
    conf: Conf,
    program: Program,
    aggregation: Aggregation,
    request: Request,
    patience: float = 600,
    said: Callable[[str], None] = print,
) -> str:
    """Have a request carried out: by the live job when there is one, otherwise here. What was done.

    Raises StoreError when it is refused, or when the live job does not answer for `patience` seconds.
    """
    home, lease = folder(conf, aggregation.name), lease_of(conf, aggregation, request.kind)
    path = home / "requests" / f"{uuid.uuid4().hex}.json"
    until = time.monotonic() + patience
    asked = False
    try:
        while time.monotonic() < until:
            if lease.take():
                path.unlink(missing_ok=True)
                return _alone(conf, program, aggregation, request)
            if not asked:
                said(f"{lease.holder()} is at work: the {request.kind} waits for the end of its batch")
                path.parent.mkdir(parents=True, exist_ok=True)
                _ask(path, request)
                asked = True
            answer = path.with_suffix(".answer")
            if answer.exists():
                return _read(answer)
            time.sleep(0.2)
    finally:
        lease.release()
        path.unlink(missing_ok=True)
    raise StoreError(
        f"{lease.holder()} has not taken the {request.kind} in {patience:.0f} s",
        hint="what was read is kept; ask again",
    )


def _alone(conf: Conf, program: Program, aggregation: Aggregation, request: Request) -> str:
    engine = Engine(threads=2)
    pipeline = Pipeline(aggregation, open_store(conf, aggregation, engine), engine)
    pipeline.start()
    return Chores(conf, program, pipeline).perform(request)


def _ask(path: Path, request: Request) -> None:
    draft = path.with_suffix(".draft")
    write_durably(draft, json.dumps(asdict(request)).encode())
    draft.rename(path)


def _read(path: Path) -> str:
    answer: dict[str, Any] = json.loads(path.read_text())
    path.unlink()
    if "refused" in answer:
        raise StoreError(answer["refused"])
    return str(answer["done"])


def _requests(home: Path) -> Iterator[Path]:
    yield from sorted((home / "requests").glob("*.json")) if (home / "requests").is_dir() else ()
