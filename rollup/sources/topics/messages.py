"""The messages of ranges of offsets, read in a task with librdkafka: what Spark's Kafka source would hand over.

Nothing is waited for without a limit: when nothing new has come for a while, the read fails, and the batch is tried
again like any other that failed for what may pass.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType

import numpy as np
import numpy.typing as npt
import pyarrow as pa
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from rollup.core.errors import SourceError
from rollup.core.garbage import uncollected
from rollup.sources.topics.consumers import Client, client
from rollup.sources.topics.metadata import HEADER, KEY
from rollup.sources.topics.ranges import Range
from rollup.sources.topics.ways import Settings

MESSAGES = pa.schema(
    [
        ("value", pa.binary()),
        ("timestamp", pa.int64()),
        ("kafka_partition", pa.int32()),
        ("kafka_offset", pa.int64()),
    ]
)
"""`value` is null where a message has none. Fields that are asked for beside it are further columns of bytes."""
PATIENCE = 15.0
"""Seconds without anything new; less than the watchdog over Spark's jobs waits before it says something."""
_AT_ONCE = 16_384
_WAIT = 0.1
"""Seconds of one wait for a message, between looks at the clock."""
_GONE = (KafkaError._AUTO_OFFSET_RESET, KafkaError.OFFSET_OUT_OF_RANGE)  # pyright: ignore[reportPrivateUsage]
_LEAVE = (
    "retention removed it before it was read, or the topic was made anew; `failOnDataLoss = false` in the source's "
    "options goes on with what is left"
)
Longs = npt.NDArray[np.int64]


def read(
    ranges: Sequence[Range], topic: str, settings: Settings, fields: Mapping[str, str] = MappingProxyType({})
) -> pa.Table:
    """All messages of some ranges, with fields beside their values in columns of some names.

    Raises SourceError when they cannot be read, or no longer are there.
    """
    schema = pa.schema([*MESSAGES, *((name, pa.binary()) for name in fields.values())])
    try:
        with client(settings, topic) as found, uncollected():
            tables = _Reading(found, topic, ranges, fields).tables()
            return pa.concat_tables([schema.empty_table(), *tables]).combine_chunks()
    except KafkaException as problem:
        raise SourceError(f"cannot read topic {topic}: {problem.args[0].str()}") from None


class _Reading:
    """The ranges of a task while they are read: per partition the offset that comes next, and the end."""

    def __init__(self, found: Client, topic: str, ranges: Sequence[Range], fields: Mapping[str, str]) -> None:
        self._client, self._topic, self._fields = found, topic, fields
        most = max((each.partition for each in ranges), default=0) + 1
        # One place more, for a partition that is not asked for: nothing of it is below its end.
        self._next: Longs = np.zeros(most + 1, np.int64)
        self._end: Longs = np.zeros(most + 1, np.int64)
        for each in ranges:
            self._next[each.partition], self._end[each.partition] = each.start, each.end
        self._left = {each.partition for each in ranges}
        self._moved = time.monotonic()

    def tables(self) -> Iterator[pa.Table]:
        """The messages, in the order of their offsets in each partition."""
        consumer = self._client.consumer
        consumer.assign([TopicPartition(self._topic, p, int(self._next[p])) for p in sorted(self._left)])
        while self._left:
            found = self._some(consumer)
            errors = list(map(Message.error, found))
            told = (
                [(message, error) for message, error in zip(found, errors, strict=True) if error] if any(errors) else []
            )
            if told:
                found = [message for message, error in zip(found, errors, strict=True) if not error]
            if found:
                yield self._taken(found)
            for message, error in told:  # an end is said after what stands before it
                self._told(message, error)
            self._settle(consumer)

    def _some(self, consumer: Consumer) -> list[Message]:
        """What is there; or else the next message, if it comes soon."""
        found = consumer.consume(_AT_ONCE, 0)
        if not found and (one := consumer.poll(_WAIT)) is not None:
            return [one]
        return found

    def _taken(self, found: list[Message]) -> pa.Table:
        count = len(found)
        partitions = np.fromiter(map(Message.partition, found), np.int32, count)
        offsets = np.fromiter(map(Message.offset, found), np.int64, count)
        times = np.fromiter(map(itemgetter(1), map(Message.timestamp, found)), np.int64, count)
        values = pa.array(list(map(Message.value, found)), pa.binary())
        table = pa.table([values, times, partitions, offsets], schema=MESSAGES)
        for field, name in self._fields.items():
            table = table.append_column(name, pa.array([_field(message, field) for message in found], pa.binary()))
        place = np.minimum(partitions, len(self._end) - 1)
        wanted = (offsets >= self._next[place]) & (offsets < self._end[place])
        np.maximum.at(self._next, place, offsets + 1)
        self._moved = time.monotonic() if wanted.any() else self._moved
        return table if wanted.all() else table.filter(pa.array(wanted))

    def _told(self, message: Message, error: KafkaError) -> None:
        """What the client says instead of a message. An end is one only when it is that of the range: offsets may end
        before it while a partition changes its leader."""
        partition, offset = message.partition(), message.offset()
        if error.code() == KafkaError._PARTITION_EOF:  # pyright: ignore[reportPrivateUsage]
            if partition in self._left and offset is not None and offset >= self._end[partition]:
                self._next[partition] = offset
        elif message.topic() is None:
            self._client.hear(error)
        elif error.code() in _GONE:
            raise SourceError(self._problem(partition, "the topic no longer has all of that"), hint=_LEAVE)
        else:
            raise SourceError(self._problem(partition, error.str()))

    def _settle(self, consumer: Consumer) -> None:
        """Let go of what is read to its end. Raises SourceError when nothing has come for too long."""
        done = [partition for partition in self._left if self._next[partition] >= self._end[partition]]
        if done:
            consumer.incremental_unassign([TopicPartition(self._topic, partition) for partition in done])
            self._left.difference_update(done)
        elif time.monotonic() - self._moved > PATIENCE:
            said = f": {self._client.said}" if self._client.said else ""
            raise SourceError(self._problem(min(self._left), f"nothing has come for {PATIENCE:g} s{said}"))

    def _problem(self, partition: int | None, said: str) -> str:
        where = ""
        if partition in self._left:
            where = f" from offset {self._next[partition]} to {self._end[partition]}"
        return f"cannot read partition {partition} of topic {self._topic}{where}: {said}"


def _field(message: Message, field: str) -> bytes | None:
    """The key of a message, or of its headers of a name the last."""
    if field == KEY:
        found = message.key()
    else:
        name = field.removeprefix(HEADER)
        found = next((value for key, value in reversed(message.headers() or []) if key == name), None)
    return found.encode() if isinstance(found, str) else found
