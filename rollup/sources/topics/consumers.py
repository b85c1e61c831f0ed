"""Clients of a broker, kept in a task's process from batch to batch: to connect takes longer than to read a small one."""

from __future__ import annotations

import atexit
from collections import OrderedDict
from collections.abc import Generator
from contextlib import contextmanager

from confluent_kafka import Consumer, KafkaError

from rollup.sources.topics.ways import Settings

_MOST = 4
"""Clients of a process; each has a few threads and connections."""


class Client:
    """A consumer, and what it has last said of its connections."""

    def __init__(self, settings: Settings) -> None:
        self.said = ""
        self.consumer = Consumer({**settings, "error_cb": self.hear})

    def hear(self, error: KafkaError) -> None:
        """Keep what was said last; that all brokers are down only follows from what was said of each."""
        if not self.said or error.code() != KafkaError._ALL_BROKERS_DOWN:  # pyright: ignore[reportPrivateUsage]
            self.said = str(error.str())


_kept: OrderedDict[tuple[object, ...], Client] = OrderedDict()


@contextmanager
def client(settings: Settings, topic: str) -> Generator[Client]:
    """The client of a topic; it is let go of when reading fails, so that the next try begins anew."""
    key = (topic, *sorted(settings.items()))
    found = _kept.pop(key, None) or Client(settings)
    found.said = ""
    try:
        yield found
    except BaseException:
        found.consumer.close()
        raise
    _kept[key] = found
    while len(_kept) > _MOST:
        _kept.popitem(last=False)[1].consumer.close()


@atexit.register
def close() -> None:
    """Close what is kept."""
    while _kept:
        _kept.popitem()[1].consumer.close()
