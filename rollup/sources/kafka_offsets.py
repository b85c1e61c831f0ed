"""Where a Kafka topic begins, where it ends, and which offset stands at an instant: asked of the broker.

The client is the one that Spark's Kafka source brings, in Spark's own Java, so it reads the same security settings.
"""

from __future__ import annotations

import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rollup.core.errors import StoreError
from rollup.sources.topics.ranges import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_BYTES = "org.apache.kafka.common.serialization.ByteArrayDeserializer"
_RETENTION = ("cleanup.policy", "retention.bytes", "retention.ms")
_LEAST = 1 << 31
"""The lowest instant that is asked for, in January 1970: Java takes a smaller number from Python as an int."""


class Offsets:
    """Offsets of a source's topics by the number of the partition. Made by `offsets`."""

    def __init__(self, jvm: Any, consumer: Any, settings: Any, topics: Topics) -> None:
        self.topics = topics
        self._jvm = jvm
        self._consumer = consumer
        self._settings = settings
        make = jvm.org.apache.kafka.common.TopicPartition
        self._partitions = [
            make(name, one.partition()) for name in topics.names for one in consumer.partitionsFor(name)
        ]

    def _number(self, partition: Any) -> int:
        return self.topics.number(partition.topic(), partition.partition())

    def begin(self) -> dict[int, int]:
        """The first offset that is still there."""
        return {self._number(p): int(offset) for p, offset in self._consumer.beginningOffsets(self._partitions).items()}

    def end(self) -> dict[int, int]:
        """The offset after the last message."""
        return {self._number(p): int(offset) for p, offset in self._consumer.endOffsets(self._partitions).items()}

    def at(self, instant: int) -> dict[int, tuple[int, int]]:
        """Offset and timestamp of the first message stamped at or after an instant (ms); without those that have none."""
        asked = self._jvm.java.util.HashMap()
        for partition in self._partitions:
            asked.put(partition, max(instant, _LEAST))
        found = self._consumer.offsetsForTimes(asked).items()
        return {self._number(p): (int(one.offset()), int(one.timestamp())) for p, one in found if one is not None}

    def oldest(self) -> dict[int, tuple[int, int]]:
        """Offset and timestamp of the first message that is still there; without empty partitions."""
        return self.at(_LEAST)

    def kept_since(self) -> int | None:
        """The instant (ms) from which on the topics' settings let retention remove nothing; None when it is not known.

        It is not where size decides, where keys do, or where the settings may not be read.
        """
        from py4j.protocol import Py4JJavaError

        config = self._jvm.org.apache.kafka.common.config
        kind = getattr(config, "ConfigResource$Type").TOPIC
        resources = [config.ConfigResource(kind, name) for name in self.topics.names]
        admin = self._jvm.org.apache.kafka.clients.admin.AdminClient.create(self._settings)
        try:
            found = admin.describeConfigs(resources).all().get()
            settings = [[found.get(each).get(name).value() for name in _RETENTION] for each in resources]
        except Py4JJavaError:
            return None
        finally:
            admin.close()
        kept = all((policy, size) == ("delete", "-1") and int(age) >= 0 for policy, size, age in settings)
        return int(time.time() * 1000) - min(int(age) for _, _, age in settings) if kept else None


@contextmanager
def offsets(spark: SparkSession, options: Mapping[str, Any], topics: Topics) -> Generator[Offsets]:
    """Those of a Kafka source's options. Raises StoreError when the broker does not answer or has no such topic."""
    from py4j.protocol import Py4JJavaError

    jvm: Any = spark._jvm  # pyright: ignore[reportPrivateUsage]
    settings = jvm.java.util.HashMap()
    given = {n.removeprefix("kafka."): v for n, v in options.get("options", {}).items() if n.startswith("kafka.")}
    plain = {"bootstrap.servers": options["servers"], "key.deserializer": _BYTES, "value.deserializer": _BYTES}
    for name, value in {"default.api.timeout.ms": "30000", **given, **plain}.items():
        settings.put(name, str(value))
    consumer = None
    try:
        consumer = jvm.org.apache.kafka.clients.consumer.KafkaConsumer(settings)
        found = Offsets(jvm, consumer, settings, topics)
        there = {topics.place(number)[0] for number in found.end()}
        if missing := [name for name in topics.names if name not in there]:
            raise StoreError(f"the broker at {options['servers']} has no topic {missing[0]}")
        yield found
    except Py4JJavaError as problem:
        said = str(problem.java_exception.getMessage())
        raise StoreError(f"the broker at {options['servers']} does not tell offsets of {topics.said}: {said}") from None
    finally:
        if consumer is not None:
            consumer.close()
