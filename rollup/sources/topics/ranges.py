"""Which offsets of a topic a batch has, by the streaming query's own log, and which task reads which of them.

A partition goes to one task whole: its order of arrival is a function of all its messages of a batch.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa

from rollup.core.calendar import names_zone, parse_timestamp
from rollup.core.errors import ConfigError, StoreError, TimeError
from rollup.sources.file_log import logged, unsaid

PARTITION, START, END = "kafka_partition", "kafka_start", "kafka_end"
RANGES = pa.schema([(PARTITION, pa.int32()), (START, pa.int64()), (END, pa.int64())])
"""What a task reads: of a partition, the offsets from `kafka_start` to before `kafka_end`."""


class Range(NamedTuple):
    """Offsets of a partition, without the end."""

    partition: int
    start: int
    end: int


TOPIC, TOPICS, PATTERN, PARTITIONS = "topic", "topics", "topic_pattern", "partitions"
"""The options that say which topics a source reads, and how many partitions one may have."""
_ROOM = 1024
"""Partitions of each of several topics: it stands in what is stored, so it never changes."""


def topics_of(options: Mapping[str, Any]) -> Sequence[str]:
    """The topics that a source or a sink names, in order; none of a pattern.

    >>> topics_of({"topic": "a"}), topics_of({"topics": ["a", "b"]}), topics_of({"topic_pattern": "a.*"})
    (['a'], ['a', 'b'], [])
    """
    return options.get(TOPICS, [options[TOPIC]] if TOPIC in options else [])


@dataclass(frozen=True)
class Topics:
    """The topics of a source in their order. Their partitions are numbered through: each topic has `room` for its own.

    Those of a `pattern` are known once they are met, see `rollup.sources.topics.identity.matched`.

    >>> both = Topics(("a", "b"), 256)
    >>> both.number("b", 3), both.place(259)
    (259, ('b', 3))
    """

    names: tuple[str, ...]
    room: int
    pattern: str | None = None

    @classmethod
    def of(cls, stream: str, options: Mapping[str, Any], room: int) -> Topics:
        """Those of a source. Raises ConfigError."""
        names = topics_of(options)
        where, pattern = f"[sources.{stream}]", options.get(PATTERN)
        said = [name for name in (TOPIC, TOPICS, PATTERN) if name in options]
        if len(said) > 1:
            raise ConfigError(f"{where} has `{said[0]}` and `{said[1]}`", hint="one of them names what is read")
        if not names and not pattern:
            raise ConfigError(
                f"{where} lacks `{TOPIC}`",
                hint=f'`{TOPIC} = "a"`, `{TOPICS} = ["a", "b"]`, or `{PATTERN} = "orders-.*"`',
            )
        if len(set(names)) < len(names):
            raise ConfigError(f"{where} {TOPICS} names a topic twice: {', '.join(names)}", hint="name each once")
        several = pattern is not None or len(names) > 1
        if several and PARTITIONS in options:
            raise ConfigError(
                f"{where} has `{said[0]}` and `{PARTITIONS}`",
                hint=f"of several topics each may have {_ROOM} partitions",
            )
        if pattern is not None:
            _check_pattern(where, pattern)
        return cls(tuple(names), _ROOM if several else int(options.get(PARTITIONS, room)), pattern)

    @property
    def several(self) -> bool:
        """Whether numbers of partitions are others than those of their topic."""
        return self.pattern is not None or len(self.names) > 1

    @property
    def said(self) -> str:
        """Their names or pattern, for people and for Spark."""
        return self.pattern or ",".join(self.names)

    @property
    def subscribed(self) -> dict[str, str]:
        """Spark's options for them. A topic of a pattern may go: `planned` says what is lost, which ends Spark's query."""
        if self.pattern is None:
            return {"subscribe": self.said}
        return {"subscribePattern": self.pattern, "failOnDataLoss": "false"}

    def number(self, topic: str, partition: int) -> int:
        """The number of a partition. Raises StoreError where its topic has more than there is room for."""
        if self.several and partition >= self.room:
            raise StoreError(
                f"topic {topic} has a partition {partition}, and there is room for {self.room} of each topic",
                hint=f'a source of its own, `{TOPIC} = "{topic}"`, takes any number',
            )
        return self.names.index(topic) * self.room + partition

    def place(self, number: int) -> tuple[str, int]:
        """The topic of a partition, and its number there."""
        topic, partition = divmod(number, self.room) if self.several else (0, number)
        return self.names[topic], partition

    def by_topic(self, ranges: Sequence[Range]) -> dict[int, list[Range]]:
        """Ranges by the place of their topic, with the partitions as the topic has them."""
        found: dict[int, list[Range]] = {}
        for each in ranges:
            name, partition = self.place(each.partition)
            found.setdefault(self.names.index(name), []).append(each._replace(partition=partition))
        return found


def begun_at(start: str) -> dict[str, str]:
    """Spark's options for where a topic is begun: "earliest", "latest", JSON of offsets, or a time with its offset.

    Partitions without a message since that time begin with their next one. Raises TimeError for anything else.

    >>> begun_at("2018-01-05T12:00:00Z")["startingTimestamp"], begun_at("latest")
    ('1515153600000', {'startingOffsets': 'latest'})
    """
    if start.lower() in ("earliest", "latest") or start.lstrip().startswith("{"):
        return {"startingOffsets": start}
    instant, _ = parse_timestamp(start)
    if not names_zone(start):
        raise TimeError(f"{start!r} names no zone", hint="e.g. 2018-01-05T12:00:00Z")
    return {"startingTimestamp": str(instant), "startingOffsetsByTimestampStrategy": "latest"}


def _check_pattern(where: str, pattern: str) -> None:
    """Raise ConfigError where a pattern of names of topics is none."""
    try:
        re.compile(pattern)
    except re.error as problem:
        raise ConfigError(
            f"{where} {PATTERN} is {pattern!r}, which is no regular expression: {problem}",
            hint=f'it matches whole names, e.g. `{PATTERN} = "orders-.*"`',
        ) from None


def logs_of(checkpoint: Path, batch: int) -> tuple[dict[str, Any], dict[str, Any]]:
    """The offsets of each topic that a batch begins with, and those that it ends with, as Spark's log has them. Raises
    StoreError when it does not say."""
    log, begun = checkpoint / "offsets", checkpoint / "sources" / "0" / "0"
    before = logged(log / str(batch - 1) if batch else begun, checkpoint, batch)
    return before, logged(log / str(batch), checkpoint, batch)


def planned(checkpoint: Path, batch: int, topics: Topics) -> list[Range]:
    """What a batch has of some topics. Raises StoreError when the log of its query does not say.

    A partition that the batch before does not name is new, and begins at 0; where its first messages are gone already,
    reading them says so. So does a topic that the source names since then. One of a pattern that is no longer there has
    nothing more.
    """
    said, every = logs_of(checkpoint, batch), list[Range]()
    for topic in topics.names:
        if topics.pattern is not None and topic not in said[1]:
            continue
        before = said[0] if topics.pattern is None and topic == topics.names[0] else {topic: {}, **said[0]}
        try:
            starts, ends = ({int(p): int(offset) for p, offset in each[topic].items()} for each in (before, said[1]))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise unsaid(checkpoint, batch, f"{said} are no offsets of topic {topic}") from None
        found = [Range(partition, starts.get(partition, 0), end) for partition, end in sorted(ends.items())]
        if starts.keys() - ends.keys() or any(not 0 <= each.start <= each.end for each in found):
            raise StoreError(
                f"topic {topic} ends before what batch {batch} begins with: it has {ends}, and was read to {starts}",
                hint=f"it was made anew; remove {checkpoint} to read it from its start",
            )
        every += [
            each._replace(partition=topics.number(topic, each.partition)) for each in found if each.end > each.start
        ]
    return every


def dealt(ranges: Sequence[Range], tasks: int) -> pa.Table:
    """Ranges in an order in which Spark's equal slices of it are tasks of about as many messages each.

    >>> dealt([Range(0, 0, 9), Range(1, 0, 1), Range(2, 0, 4), Range(3, 0, 5)], 2)["kafka_partition"].to_pylist()
    [0, 1, 3, 2]
    """
    count, tasks = len(ranges), max(1, min(tasks, len(ranges)))
    room = [(task + 1) * count // tasks - task * count // tasks for task in range(tasks)]
    shares: list[list[Range]] = [[] for _ in range(tasks)]
    sizes = [0] * tasks
    for each in sorted(ranges, key=lambda each: each.start - each.end):
        least = min((task for task in range(tasks) if len(shares[task]) < room[task]), key=lambda task: sizes[task])
        shares[least].append(each)
        sizes[least] += each.end - each.start
    rows = [each for share in shares for each in share]
    return pa.table([list(column) for column in zip(*rows, strict=True)] or [[], [], []], schema=RANGES)
