"""A topic of JSON events on a broker of its own, for benchmarks: the same events for every side of a comparison."""

from __future__ import annotations

import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass

import duckdb

from benchmarks.common import SEED

LATE_EVERY, LATE_BY = 1000, 30_000
"""With lateness: every so many-th event carries a time that is so many milliseconds too old."""
_CHUNK = 200_000


@dataclass(frozen=True)
class Topic:
    """What is in a topic, and where the broker answers."""

    bootstrap: str
    name: str
    events: int
    partitions: int
    keys: int
    late: bool


@contextmanager
def filled(events: int, partitions: int, keys: int, late: bool) -> Generator[Topic]:
    """One event a millisecond up to now, dealt to the partitions in turn; each message has its event's time."""
    from tests.servers.kafka import KafkaBroker

    with KafkaBroker() as broker:
        name = broker.new_topic(partitions=partitions)
        producer = broker.producer(linger_ms=20, batch_num_messages=50_000, queue_buffering_max_messages=1_000_000)
        first = int(time.time()) // 60 * 60_000 - events
        for begin in range(0, events, _CHUNK):
            rows = _rows(first, begin, min(events, begin + _CHUNK), keys, late)
            for number, value in enumerate(rows, begin):
                producer.produce(name, value, partition=number % partitions, timestamp=first + number)
            producer.flush(60)
        yield Topic(broker.bootstrap, name, events, partitions, keys, late)


def _rows(first: int, begin: int, end: int, keys: int, late: bool) -> list[str]:
    behind = f"CASE WHEN i % {LATE_EVERY} = {LATE_EVERY - 1} THEN {LATE_BY} ELSE 0 END" if late else "0"
    query = f"""
        SELECT format('{{{{"symbol":"k{{}}","price":{{}},"quantity":{{}},"ts":{{}}}}}}', hash(i, {SEED}) % {keys},
            10 + (hash(i, {SEED + 1}) % 1024) / 8.0, hash(i, {SEED + 2}) % 128, {first} + i - {behind})
        FROM range({begin}, {end}) AS numbers(i) ORDER BY i"""
    with duckdb.connect() as connection:
        return [row[0] for row in connection.execute(query).fetchall()]
