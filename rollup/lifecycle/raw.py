"""The raw source read again: what the job has taken of a stream, in the order it took it, and its partial rows.

What a job has taken is what its last commit says; the streaming query's own log tells the rest. A stream's past is read
in pieces (a file, a version of a Delta table, a stretch of offsets) by the same function that Spark tasks run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from sqlglot import exp

from rollup.conf import Conf
from rollup.errors import ConfigError
from rollup.hosts.numbering import Numbering
from rollup.hosts.shards import shifted
from rollup.hosts.task import TaskSpec, pack, unpack_row
from rollup.lifecycle.raw_files import FILES, FileReader, RawFile
from rollup.lifecycle.raw_kafka import KafkaReader
from rollup.lifecycle.rebuild import Span
from rollup.plan.aggregation import Aggregation
from rollup.plan.app import Annotation
from rollup.plan.retention import period
from rollup.plan.types import Type
from rollup.program import Program
from rollup.sources.delta import WITHIN

_SLACK = "1 day"


class Piece(Protocol):
    """A share of a stream's past. `together` is how many may be folded at once; `name` is what a stopped replay keeps."""

    together: ClassVar[int]

    @property
    def stream(self) -> str:
        """The stream it is of."""
        ...

    @property
    def name(self) -> str:
        """Its name, one of a kind in its stream."""
        ...


class Reader(Protocol):
    """How the past of one stream is read again."""

    noun: ClassVar[str]

    def pieces(self, mark: Mapping[str, Any] | None, span: Span | None, done: Sequence[str]) -> Sequence[Any]:
        """What is left to read of all that was taken up to a mark, in order; for a range only what can have to do with
        it. Raises StoreError when some of it is gone."""
        ...

    def rows(self, spec: TaskSpec, piece: Any) -> list[dict[str, Any]]:
        """The results of `task.run` over a piece."""
        ...


@dataclass(frozen=True)
class Folded:
    """The partial rows of pieces of one stream (a table each, arrivals numbered over the stream).

    `bases` are the arrivals that parts of each piece begin at, `following` the arrival of what comes next, and `events`
    how many records there were.
    """

    pieces: Sequence[Piece]
    partials: list[pa.Table]
    bases: Mapping[str, Mapping[str, int]]
    events: int
    following: int


class RawSource:
    """The raw events of one aggregation of a configuration.

    `folder` is read in place of the stream's own files, or as an archive of JSON lines in place of its topic. `slack`
    ("1 hour", "all") is how far, in time, the broker's timestamps may be from those of the events.
    """

    def __init__(
        self,
        conf: Conf,
        program: Program,
        aggregation: Aggregation,
        folder: Path | None = None,
        slack: str | None = None,
    ) -> None:
        self.conf = conf
        self.program = program
        self.aggregation = aggregation
        self.folder = folder
        self.slack = slack
        self.streams = [name for name in program.inputs if aggregation.stream in reached(program, name)]
        self._options = {name: _instead(conf.sources[name], folder) for name in self.streams}
        self._readers = {name: self._reader(name) for name in self.streams}

    @property
    def noun(self) -> str:
        """What its pieces are called, in the plural."""
        return " and ".join(sorted({reader.noun for reader in self._readers.values()}))

    @property
    def bounded(self) -> bool:
        """Whether a range is looked for by the time that a broker has given to events, and some could be missed."""
        return any(isinstance(each, KafkaReader) and each.slack is not None for each in self._readers.values())

    def pieces(self, marks: Mapping[str, Any], span: Span | None = None, done: Sequence[str] = ()) -> list[Piece]:
        """What was taken up to the marks of a commit (`Loaded.source`), in order of arrival; see `Reader.pieces`."""
        return [p for stream, reader in self._readers.items() for p in reader.pieces(marks.get(stream), span, done)]

    def fold(self, pieces: Sequence[Piece], bases: Mapping[str, int], span: Span | None = None) -> Folded:
        """Partial rows of pieces of one stream; `bases` has the arrivals before them, by stream.

        With `span`, what has no event in the range need not be read; it counts as events all the same.
        """
        following = bases.get(pieces[0].stream, 0) if pieces else 0
        partials, found, events = list[pa.Table](), dict[str, Mapping[str, int]](), 0
        for piece in pieces:
            rows = self._readers[piece.stream].rows(self._spec(piece.stream, span), piece)
            share = _Share.of(rows, self.aggregation.name, following)
            following, events, found[piece.name] = share.following, events + share.events, share.bases
            partials += share.partials
        return Folded(pieces, partials, found, events, following)

    def second_look(self, folded: Folded, steps: pa.Table, suspects: pa.Table) -> list[pa.Table]:
        """What admission asks for when events of one bucket arrived on both sides of a step of the clock."""
        asked = {self.aggregation.name: (pack(steps), pack(suspects))}
        return [
            unpack_row(row["payload"], row["file"])
            for piece in folded.pieces
            for row in self._readers[piece.stream].rows(
                replace(self._spec(piece.stream, None), refold=asked, bases=folded.bases[piece.name]), piece
            )
            if row["kind"] == "partials"
        ]

    def _reader(self, stream: str) -> Reader:
        options = self._options[stream]
        if options["kind"] == "kafka":
            return KafkaReader(self.conf, self.program.streams[stream], options, slack_of(self.slack, options))
        if options["kind"] in FILES:
            checkpoint = None if self.folder is not None else self.conf.checkpoint / stream
            return FileReader(self.program.streams[stream], options, checkpoint, slack_of(self.slack, options))
        raise ConfigError(
            f"stream {stream} comes from {options['kind']}, which keeps no raw events to read again",
            hint=f"{', '.join((*FILES, 'kafka'))} can be read again",
        )

    def _spec(self, stream: str, span: Span | None) -> TaskSpec:
        options, time = dict(self._options[stream]), self.aggregation.time
        long = {name for name, kind in self.program.streams[stream].attributes.items() if kind is Type.LONG}
        direct = self.aggregation.stream == stream and isinstance(time, exp.Column)
        if span is not None and direct and time is not None and time.name in long:
            options[WITHIN] = (time.name, *span)
        return TaskSpec(self.conf.text(), self.conf.zone, stream, options, None, (), threads=2)


def reached(program: Program, stream: str) -> set[str]:
    """A stream and all that are derived from it."""
    return {stream, *(derivation.target for derivation in program.fed_by(stream))}


def slack_of(given: str | None, options: Mapping[str, Any]) -> int | None:
    """The slack in ms that was asked for, or that of a source's options; None for "all". Raises PlanError.

    >>> slack_of(None, {"slack": "2 hours"}), slack_of("all", {})
    (7200000, None)
    """
    return period(Annotation("slack", {}), given or str(options.get("slack", _SLACK)))


def _instead(options: Mapping[str, Any], folder: Path | None) -> Mapping[str, Any]:
    """A source's options with another folder in the place of where it reads."""
    if folder is None:
        return options
    if options["kind"] == "kafka":
        return {"kind": "json", "path": str(folder), "columns": options.get("columns", {})}
    return {**options, "path": str(folder)}


@dataclass(frozen=True)
class _Share:
    """What one piece gave: partial rows numbered over the stream, where its parts begin, its records, what follows."""

    partials: list[pa.Table]
    bases: Mapping[str, int]
    events: int
    following: int

    @classmethod
    def of(cls, rows: list[dict[str, Any]], name: str, known: int) -> _Share:
        """Of the results of a piece; `known` is the arrival of its first event."""
        numbering = Numbering.of(rows)
        order = numbering.order
        found = [row for row in rows if row["kind"] == "partials" and row["name"] == name]
        found.sort(key=lambda row: order[row["origin"]])
        tables = [(row["origin"], unpack_row(row["payload"], row["file"])) for row in found]
        filled = [(origin, table) for origin, table in tables if table.num_rows]
        base, following = numbering.bounds([table for _, table in filled], known)
        bases = {origin: base + offset for origin, offset in numbering.bases.items()}
        return cls([shifted(table, bases[origin]) for origin, table in filled], bases, numbering.events, following)


def batches(pieces: Sequence[Piece]) -> Iterator[list[Piece]]:
    """The pieces in their order, some at a time and of one stream; how they are cut changes nothing."""
    batch: list[Piece] = []
    for piece in pieces:
        if batch and (len(batch) >= piece.together or batch[0].stream != piece.stream):
            yield batch
            batch = []
        batch.append(piece)
    if batch:
        yield batch


__all__ = ["Folded", "Piece", "RawFile", "RawSource", "batches", "reached", "slack_of"]
