"""The raw source read again: what the job has taken of a stream, in the order it took it, and its partial rows.

What a job has taken is what its last commit says; the streaming query's own log tells the rest. A stream's past is read
in pieces (a file, a version of a Delta table, a stretch of offsets) by the same function that Spark tasks run.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Protocol

import pyarrow as pa
from sqlglot import exp

from rollup.aggregation.event_times import AHEAD
from rollup.checkpoint.marks import ahead
from rollup.conf import Conf
from rollup.core.errors import ConfigError, StoreError
from rollup.core.packing import pack
from rollup.hosts.spark.numbering import Numbering
from rollup.hosts.spark.tasks.results import Kind, Result
from rollup.hosts.spark.tasks.shard_step import shifted
from rollup.hosts.spark.tasks.task import TaskSpec, by_offset
from rollup.lifecycle.replay.raw_files import FILES, FileReader, RawFile
from rollup.lifecycle.replay.raw_iceberg import SnapshotReader
from rollup.lifecycle.replay.raw_kafka import KafkaReader
from rollup.lifecycle.replay.rebuild import Span
from rollup.plan.aggregation import Aggregation, Clock
from rollup.plan.app import Annotation
from rollup.plan.retention import period
from rollup.plan.types import Type
from rollup.program import Program
from rollup.sources.delta import WITHIN
from rollup.sources.kafka import BY_OFFSET
from rollup.sources.topics.notes import with_topics
from rollup.stores.dead_letters import DeadLetters

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

    def results(self, spec: TaskSpec, piece: Any) -> list[Result]:
        """The results of `task.run` over a piece."""
        ...


@dataclass(frozen=True)
class Folded:
    """The partial rows of pieces of one stream (a table each, arrivals numbered over the stream).

    `wide` names the pieces whose events are numbered by offset, `bases` are the arrivals that parts of each piece begin at, `following` the arrival of what comes next, and `events`
    how many records there were.
    """

    pieces: Sequence[Piece]
    wide: frozenset[str]
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
        self._options = {
            name: _instead(with_topics(conf.sources[name], conf.checkpoint / name), folder) for name in self.streams
        }
        self._readers = {name: self._reader(name) for name in self.streams}

    @property
    def noun(self) -> str:
        """What its pieces are called, in the plural."""
        return " and ".join(sorted({reader.noun for reader in self._readers.values()}))

    @property
    def bounded(self) -> bool:
        """Whether a range is looked for by the time that a broker has given to events, and some could be missed."""
        return any(isinstance(each, KafkaReader) and each.slack is not None for each in self._readers.values())

    @property
    def entire(self) -> bool:
        """Whether a range is looked for in all that was taken, in one order of arrival."""
        whole = [isinstance(each, FileReader) and each.entire for each in self._readers.values()]
        return whole == [True] and self.folder is None

    def pieces(self, marks: Mapping[str, Any], span: Span | None = None, done: Sequence[str] = ()) -> list[Piece]:
        """What was taken up to the marks of a commit (`Loaded.source`), in order of arrival; see `Reader.pieces`.

        Raises StoreError while batches come again of which the commit holds a part already.
        """
        for stream in self.streams if self.folder is None else ():
            self._refuse_ahead(stream, marks.get(stream))
        return [p for stream, reader in self._readers.items() for p in reader.pieces(marks.get(stream), span, done)]

    def _refuse_ahead(self, stream: str, mark: Mapping[str, Any] | None) -> None:
        """The log tells what is in the batches up to the mark; of those to come nobody knows what is in which."""
        if mark is not None and ahead(mark, mark["query"]):
            raise StoreError(
                f"{self.aggregation.name} holds events of {stream} from behind batch {mark['batch']}, which is where "
                "the stream has gone back to and not yet caught up",
                hint="ask again when the job has read on",
            )

    def fold(self, pieces: Sequence[Piece], bases: Mapping[str, int], span: Span | None = None) -> Folded:
        """Partial rows of pieces of one stream; `bases` has the arrivals before them, by stream.

        With `span`, what has no event in the range need not be read; it counts as events all the same.
        """
        following = bases.get(pieces[0].stream, 0) if pieces else 0
        partials, found, events = list[pa.Table](), dict[str, Mapping[str, int]](), 0
        wide = set[str]()
        for piece in pieces:
            spec = self._spec(piece.stream, span)
            share = self._share(spec, piece, following)
            if share is None:
                wide.add(piece.name)
                share = self._share(by_offset(spec), piece, following)
                assert share is not None
            following, events, found[piece.name] = share.following, events + share.events, share.bases
            partials += share.partials
        return Folded(pieces, frozenset(wide), partials, found, events, following)

    def _share(self, spec: TaskSpec, piece: Piece, known: int) -> _Share | None:
        """What a piece gives; None when its arrivals are too wide and not yet those of offsets."""
        results, scale = self._readers[piece.stream].results(spec, piece), self.program.scale(piece.stream)
        return _Share.of(results, self.aggregation.name, known, spec, scale)

    def second_look(self, folded: Folded, steps: pa.Table, suspects: pa.Table) -> list[pa.Table]:
        """What admission asks for when events of one bucket arrived on both sides of a step of the clock."""
        asked = {self.aggregation.name: (pack(steps), pack(suspects))}
        found = list[pa.Table]()
        for piece in folded.pieces:
            spec = replace(self._spec(piece.stream, None), refold=asked, bases=folded.bases[piece.name])
            results = self._readers[piece.stream].results(by_offset(spec) if piece.name in folded.wide else spec, piece)
            found += [result.table() for result in results if result.kind is Kind.PARTIALS]
        return found

    def _reader(self, stream: str) -> Reader:
        options = self._options[stream]
        # What goes by the time of arrival is computed again as a whole.
        arriving = self.aggregation.clock is Clock.ARRIVAL
        slack = None if arriving else slack_of(self.slack, options)
        if options["kind"] == "kafka":
            return KafkaReader(self.conf, self.program.streams[stream], options, slack)
        if options["kind"] in FILES:
            checkpoint = None if self.folder is not None else self.conf.checkpoint / stream
            reader = SnapshotReader if options["kind"] == "iceberg" else FileReader
            return reader(self.program.streams[stream], options, checkpoint, slack)
        raise ConfigError(
            f"stream {stream} comes from {options['kind']}, which cannot be read again",
            hint=f"{', '.join((*FILES, 'kafka'))} can be read again",
        )

    def _spec(self, stream: str, span: Span | None) -> TaskSpec:
        options, time = dict(self._options[stream]), self.aggregation.time
        long = {name for name, kind in self.program.streams[stream].attributes.items() if kind is Type.LONG}
        direct = self.aggregation.stream == stream and isinstance(time, exp.Column)
        if span is not None and direct and time is not None and time.name in long:
            options[WITHIN] = (time.name, *span)
        return TaskSpec(self.program.rollups, stream, options, None, (), threads=2, passed=self._passed(stream))

    def _passed(self, stream: str) -> frozenset[str]:
        """The places of the records that the job has refused for a time that may have come by now."""
        letters = self._letters.to_pylist()
        return frozenset(row["position"] for row in letters if row["stream"] == stream and row["reason"] == AHEAD)

    @cached_property
    def _letters(self) -> pa.Table:
        return DeadLetters(self.conf.tables).read()


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
        shared = {key: options[key] for key in ("columns", "optional") if key in options}
        return {"kind": "json", "path": str(folder), **shared}
    if "path" not in options:
        raise ConfigError(
            f"a source of kind {options['kind']} has no folder that {folder} could stand for",
            hint="leave out --source: its table is read again",
        )
    return {**options, "path": str(folder)}


@dataclass(frozen=True)
class _Share:
    """What one piece gave: partial rows numbered over the stream, where its parts begin, its records, what follows."""

    partials: list[pa.Table]
    bases: Mapping[str, int]
    events: int
    following: int

    @classmethod
    def of(cls, results: list[Result], name: str, known: int, spec: TaskSpec, scale: int) -> _Share | None:
        """Of the results of a piece; `known` is the arrival of its first event. None: see `RawSource._share`."""
        numbering = Numbering.of(results, scale)
        order = numbering.order
        found = [each for each in results if each.kind is Kind.PARTIALS and each.name == name]
        found.sort(key=lambda each: order[each.origin])
        read = [(each.origin, each.table()) for each in found]
        filled = [(origin, table) for origin, table in read if table.num_rows]
        tables = [table for _, table in filled]
        if BY_OFFSET not in spec.options and numbering.too_wide(tables, known):
            return None
        base, following = numbering.bounds(tables, known)
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
