"""A Kafka topic read again: stretches of offsets, between what the job has begun with and what its last commit took.

An event of a range [start, end) is looked for among the messages that the broker has stamped from `start - slack` to
`end + slack`: a late event is stamped after it happened, one from a clock that is ahead before. The slack is one day
unless the source's options or --slack say otherwise; "all" reads everything that the job has taken.

In a stretch the order of arrival is that of the job when its cuts are the job's batches. Spark's log knows the newest
of these; before them a stretch is cut by the broker's time, which is the order of arrival at a job that keeps up.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from rollup.conf import Conf
from rollup.core.errors import StoreError, refused_by_system
from rollup.hosts.spark.query_log import entries
from rollup.hosts.spark.session import session
from rollup.hosts.spark.tasks.results import RESULT, RESULT_SCHEMA, Result, read
from rollup.hosts.spark.tasks.task import TaskSpec, run
from rollup.lifecycle.replay.compare import readable
from rollup.lifecycle.replay.raw_files import logged_offset
from rollup.lifecycle.replay.rebuild import Span
from rollup.plan.app import StreamDef
from rollup.sources.kafka import Kafka
from rollup.sources.kafka_offsets import Offsets as Found
from rollup.sources.kafka_offsets import offsets
from rollup.sources.topics.ranges import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Offsets = Mapping[int, int]
"""An offset of each partition."""
_MOST = 1_000_000
"""Messages of a stretch, about, where Spark's log does not say how the job has cut it."""


@dataclass(frozen=True)
class Stretch:
    """Of every partition of a topic, the offsets from its start to before its end; `upto` is where reading goes on."""

    together: ClassVar[int] = 1

    stream: str
    starts: Offsets
    ends: Offsets
    upto: Offsets

    @property
    def name(self) -> str:
        """What a stopped replay goes on from."""
        return json.dumps([self.stream, self.upto])

    @property
    def size(self) -> int:
        """How many messages, at most."""
        return sum(self.ends[p] - start for p, start in self.starts.items())


class KafkaReader:
    """Reads the topic of one stream; `slack` (ms) None reads everything that was taken."""

    noun: ClassVar[str] = "stretches of offsets"

    def __init__(self, conf: Conf, stream: StreamDef, options: Mapping[str, Any], slack: int | None) -> None:
        self.conf = conf
        self.stream = stream
        self.options = options
        self.slack = slack
        self._checkpoint = conf.checkpoint / stream.name

    def pieces(self, mark: Mapping[str, Any] | None, span: Span | None, done: Sequence[str]) -> list[Stretch]:
        """What is left of the stretches; see `Reader.pieces`."""
        origin = Kafka(self.stream, self.options)
        origin.reach(0)  # Spark would try for most of a minute
        with offsets(self._spark, self.options, origin.topics) as found:
            first, cuts = self._taken(found, mark)
            window = None if span is None or self.slack is None else (span[0] - self.slack, span[1] + self.slack)
            starts = _named(done, self.stream.name)
            if starts is None:
                starts = {p: max(first.get(p, 0), at) for p, at in self._from(found, first, window).items()}
            else:
                self._check(found, starts, None)
            ends = cuts[-1]
            if window is not None:
                stamped = found.at(window[1])
                ends = {p: min(end, stamped.get(p, (end, 0))[0]) for p, end in ends.items()}
            return list(self._cut(found, starts, cuts, ends))

    def results(self, spec: TaskSpec, piece: Stretch) -> list[Result]:
        """The results of `task.run` over a stretch, in one Spark job."""
        frame = Kafka(self.stream, self.options).between(self._spark, piece.starts, piece.ends)
        return read(frame.mapInArrow(lambda batches: run(spec, batches), RESULT).toArrow().cast(RESULT_SCHEMA))

    @property
    def _spark(self) -> SparkSession:
        return session(self.conf.spark, kafka=True, delta=False)

    def _taken(self, found: Found, mark: Mapping[str, Any] | None) -> tuple[Offsets, list[Offsets]]:
        """Where the query began, and where its batches ended as far as its log says; without a log, all that is there."""
        logged = None
        if mark is not None and int(mark["batch"]) < 0:
            return {}, [{}]
        if mark is not None:
            logged = logged_offset(self._checkpoint, mark["query"], int(mark["batch"]))
        if mark is None or logged is None:
            return {}, [found.end()]
        numbers = sorted(int(path.name) for path in entries(self._checkpoint / "offsets"))
        batches = [logged_offset(self._checkpoint, mark["query"], n) for n in numbers if n <= int(mark["batch"])]
        cuts = [_plain(each, found.topics) for each in batches if each is not None]
        return _begun(self._checkpoint, found.topics), cuts

    def _from(self, found: Found, first: Offsets, window: Span | None) -> Offsets:
        """Where to read from: at the beginning, or at what is stamped at the start of a window."""
        self._check(found, first, None if window is None else window[0])
        begin, end = found.begin(), found.end()
        if window is None:
            return begin
        stamped = found.at(window[0])
        return {p: stamped.get(p, (end[p], 0))[0] for p in begin}

    def _check(self, found: Found, wanted: Offsets, since: int | None) -> None:
        """Raise StoreError when messages from `wanted` on are gone, unless all of them were stamped before `since`."""
        oldest = found.oldest()
        kept = None if since is None else found.kept_since()
        if since is not None and kept is not None and kept <= since:
            return  # a partition may hold nothing between what retention removed and what is left
        for partition, begin in sorted(found.begin().items()):
            stamp = oldest.get(partition, (0, None))[1]
            if begin <= wanted.get(partition, 0) or (since is not None and stamp is not None and stamp <= since):
                continue
            left = "nothing is left" if stamp is None else f"it begins at {readable(stamp)} (offset {begin})"
            hint = "bring an archive of it with --source"
            if stamp is not None and self.slack is not None:
                hint = f"choose a range from {readable(stamp + self.slack)} on, a smaller --slack, or {hint}"
            name, partition = found.topics.place(partition)
            raise StoreError(
                f"partition {partition} of topic {name} no longer has all that this needs: {left}", hint=hint
            )

    def _cut(self, found: Found, starts: Offsets, cuts: Sequence[Offsets], ends: Offsets) -> Iterator[Stretch]:
        """The stretches from `starts` to `ends`; the first one, whose batches may be forgotten, is cut by time."""
        begin, where = found.begin(), {p: starts.get(p, 0) for p in ends}
        for number, cut in enumerate(cuts):
            until = {p: max(where[p], min(end, cut.get(p, 0))) for p, end in ends.items()}
            steps = [*(self._by_time(found, where, until) if number == 0 else []), until]
            for low, high in pairwise([where, *steps]):
                # Spark wants every partition, also one that has nothing here and may have lost what was here.
                idle = {p: at for p, at in begin.items() if p not in high or high[p] <= low[p]}
                stretch = Stretch(self.stream.name, {**low, **idle}, {**high, **idle}, high)
                if stretch.size:
                    yield stretch
            where = until

    def _by_time(self, found: Found, starts: Offsets, ends: Offsets) -> Iterator[Offsets]:
        """Where to cut between two offsets, so that what is between two cuts is about `_MOST` messages."""
        count = sum(max(0, end - starts[p]) for p, end in ends.items()) // _MOST
        stamps = [stamp for _, stamp in found.oldest().values()]
        log = self._checkpoint / "offsets"
        if not count or not stamps or not log.is_dir():
            return
        low, high = min(stamps), max(path.stat().st_mtime_ns // 1_000_000 for path in log.iterdir())
        where = dict(starts)
        for step in range(1, count + 1):
            stamped = found.at(low + (high - low) * step // (count + 1))
            where = {p: max(where[p], min(end, stamped.get(p, (end, 0))[0])) for p, end in ends.items()}
            yield where


def _plain(offsets: Mapping[str, Any], topics: Topics) -> Offsets:
    """Spark's `{"topic": {"0": 17}}` as offsets."""
    return {
        topics.number(name, int(partition)): int(offset)
        for name in topics.names
        for partition, offset in offsets.get(name, {}).items()
    }


def _begun(checkpoint: Path, topics: Topics) -> Offsets:
    """The offsets that a query has begun with; none when its log does not say, which is the beginning of the topic."""
    try:
        return _plain(json.loads((checkpoint / "sources" / "0" / "0").read_text().strip().split("\n")[-1]), topics)
    except (OSError, ValueError, IndexError) as problem:
        if refused := refused_by_system(f"cannot read the log of the stream in {checkpoint}", problem):
            raise refused from None
        return {}


def _named(done: Sequence[str], stream: str) -> Offsets | None:
    """Where the last stretch of a stream that is done ends."""
    for name in reversed(done):
        of, upto = json.loads(name) if name.startswith("[") else ("", {})  # other streams may be files
        if of == stream:
            return {int(partition): int(offset) for partition, offset in upto.items()}
    return None
