"""What whoever holds the lease of an aggregation does between two batches: waiting replays and repairs, retention.

A replay reads raw events for as long as it takes, beside the live job, and leaves a request. The live job completes it
with the files it has taken in the meantime and commits it between two batches, so there is one writer at any time and
no event counts twice or is forgotten. Without a live job the replay takes the lease and does the same itself. A
request stays until its commit is made: killed in between, it is simply done again, with the same result.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from rollup.checkpoint.checksums import sealed, unsealed
from rollup.checkpoint.records import home
from rollup.conf import Conf
from rollup.core.columns import ColumnEngine
from rollup.core.errors import FencedError, RollupError, StoreError
from rollup.core.objects import names_in, replace_durably
from rollup.hosts.pipeline import Pipeline
from rollup.lifecycle import change
from rollup.lifecycle.book import Book, folder
from rollup.lifecycle.lease.places import lease_of
from rollup.lifecycle.maintenance.retention import Purge, purge
from rollup.lifecycle.replay.compare import readable
from rollup.lifecycle.replay.raw import RawSource
from rollup.lifecycle.replay.rebuild import Rebuilder, Rebuilt, Span
from rollup.lifecycle.replay.recompute import TrueRows
from rollup.lifecycle.verify import Verifier
from rollup.plan.aggregation import Aggregation
from rollup.plan.retention import retention
from rollup.program import Program
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
        self._engine: ColumnEngine | None = None
        self._purged = time.monotonic()
        self._done: dict[
            Path, str
        ] = {}  # the last request, so that one whose answer cannot be written is not done twice

    @property
    def engine(self) -> ColumnEngine:
        """An engine of our own, made when there is something to do."""
        if self._engine is None:
            self._engine = ColumnEngine(threads=2)
        return self._engine

    @property
    def waiting(self) -> bool:
        """Whether there is something to do."""
        return bool(_requests(self.home)) or self._purge_due

    def run(self) -> list[str]:
        """Do what is waiting; what was done, for people to read. Nothing else may write the aggregation meanwhile.

        Whatever goes wrong with a chore is its answer, and no reason to end the job: its commit was not made. Raises
        FencedError alone, as then another job is at work.
        """
        said: list[str] = []
        for path in _requests(self.home):
            answer = self._answer(path)
            said += answer.values()
            try:
                replace_durably(path.with_suffix(".answer"), sealed(answer))
                path.unlink(missing_ok=True)
            except OSError as problem:
                said.append(f"cannot answer {path}: {problem.strerror}")
        if self._purge_due:
            try:
                said += self.purge()
            except FencedError:
                raise
            except Exception as problem:
                said.append(f"retention of {self.pipeline.aggregation.name} has removed nothing: {_reason(problem)}")
        return said

    def _answer(self, path: Path) -> dict[str, str]:
        """Carry out the request of a file; its answer. Raises FencedError."""
        try:
            request = Request(**unsealed(path.read_bytes(), [each.name for each in fields(Request)]))
        except (ValueError, TypeError) as problem:
            return {"refused": f"{path} is no request: {problem}"}
        except OSError as problem:
            return {"refused": f"cannot read {path}: {problem.strerror}"}
        if path in self._done:
            return {"done": self._done[path]}
        try:
            self._done = {path: self.perform(request)}
        except FencedError:
            raise
        except Exception as problem:
            return {"refused": _reason(problem)}
        return {"done": self._done[path]}

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
        counts = ", ".join(f"{level} {count:,}" for level, count in rows.items())
        name = self.pipeline.aggregation.name
        done = f"{request.kind} is commit {self.pipeline.number} of {name}: rows written: {counts}"
        return f"{done}; {rebuilt.left}" if rebuilt.left else done

    def purge(self) -> list[str]:
        """Remove what retention lets go, in one commit."""
        self._purged = time.monotonic()
        if self.plan is None:
            return []
        found: Purge = purge(self.pipeline, self.engine, self.plan, self.book)
        return [f"removed {level.plural} before {readable(cut)}" for level, cut in found.cuts.items()] + [
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
            if not verifier.wrong(found):
                raise StoreError("nothing differs in this range any more")
            return verifier.repair(found)
        rows = true_rows(self.conf, self.program, self.pipeline.aggregation, self.engine, request)
        rows.take(rows.left(self.pipeline.source))
        rows.refuse_crossed(rebuilder)
        return rebuilder.replace(request.span, rows.rows())


def true_rows(
    conf: Conf, program: Program, aggregation: Aggregation, engine: ColumnEngine, request: Request
) -> TrueRows:
    """The raw rows of a replay, as far as they have been made."""
    source = None if request.source is None else Path(request.source)
    return TrueRows.resume(
        RawSource(conf, program, aggregation, source, request.slack),
        engine,
        request.span,
        home(conf.local, aggregation.name),
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
    place, lease = folder(conf, aggregation.name), lease_of(conf, aggregation, request.kind)
    path = place / "requests" / f"{uuid.uuid4().hex}.json"
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
                replace_durably(path, sealed(asdict(request)))
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
    engine = ColumnEngine(threads=2)
    pipeline = Pipeline(aggregation, open_store(conf, aggregation, engine), engine)
    pipeline.start()
    return Chores(conf, program, pipeline).perform(request)


def _read(path: Path) -> str:
    try:
        answer = unsealed(path.read_bytes(), ["done", "refused"])
    except ValueError as problem:
        raise StoreError(
            f"the answer {path} is damaged: {problem}", hint="`rollup status` tells the newest commit; ask again"
        ) from None
    finally:
        path.unlink(missing_ok=True)
    if "refused" in answer:
        raise StoreError(answer["refused"])
    return str(answer["done"])


def _requests(home: Path) -> list[Path]:
    """The requests that wait. Where the folder cannot be read none can be taken; whoever asked hears that in time."""
    try:
        names = names_in(home / "requests")
    except OSError:
        return []
    return [home / "requests" / name for name in sorted(names) if name.endswith(".json")]


def _reason(problem: Exception) -> str:
    """What an error says: ours as it stands, that of a library in one line with its kind."""
    if isinstance(problem, RollupError):
        return str(problem)
    return f"{type(problem).__name__}: {(str(problem).splitlines() or ['without saying why'])[0]}"
