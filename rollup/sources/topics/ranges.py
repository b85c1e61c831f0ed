"""Which offsets of a topic a batch has, by the streaming query's own log, and which task reads which of them.

A partition goes to one task whole: its order of arrival is a function of all its messages of a batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from rollup.core.calendar import names_zone, parse_timestamp
from rollup.core.errors import StoreError, TimeError
from rollup.sources.file_log import logged, unsaid

PARTITION, START, END = "kafka_partition", "kafka_start", "kafka_end"
RANGES = pa.schema([(PARTITION, pa.int32()), (START, pa.int64()), (END, pa.int64())])
"""What a task reads: of a partition, the offsets from `kafka_start` to before `kafka_end`."""


class Range(NamedTuple):
    """Offsets of a partition, without the end."""

    partition: int
    start: int
    end: int


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


def planned(checkpoint: Path, batch: int, topic: str) -> list[Range]:
    """What a batch has of a topic. Raises StoreError when the log of its query does not say.

    A partition that the batch before does not name is new, and begins at 0; where its first messages are gone already,
    reading them says so.
    """
    log, begun = checkpoint / "offsets", checkpoint / "sources" / "0" / "0"
    said = [
        logged(log / str(batch - 1) if batch else begun, checkpoint, batch),
        logged(log / str(batch), checkpoint, batch),
    ]
    try:
        starts, ends = ({int(p): int(offset) for p, offset in each[topic].items()} for each in said)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise unsaid(checkpoint, batch, f"{said} are no offsets of topic {topic}") from None
    found = [Range(partition, starts.get(partition, 0), end) for partition, end in sorted(ends.items())]
    if starts.keys() - ends.keys() or any(not 0 <= each.start <= each.end for each in found):
        raise StoreError(
            f"topic {topic} ends before what batch {batch} begins with: it has {ends}, and was read to {starts}",
            hint=f"it was made anew; remove {checkpoint} to read it from its start",
        )
    return [each for each in found if each.end > each.start]


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
